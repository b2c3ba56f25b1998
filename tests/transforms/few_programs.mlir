// Launches of at most one program per multiprocessor: more warps, since no other program's hide what these wait for. The
// kernel notes that its code varies with the grid, whichever it is compiled for.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-assign-layouts))' --tile-target=sm_90a | FileCheck %s --check-prefixes=ALL,MANY
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-assign-layouts))' --tile-target=sm_90a --tile-few-programs | FileCheck %s --check-prefixes=ALL,FEW

// A warpgroup leaves the multiprocessor to two programs; of one, two warpgroups compute it.
// ALL-LABEL: func.func @product
// MANY-SAME: tile.num_warps = 4 : i32, tile.varies_with_grid
// FEW-SAME: tile.num_warps = 8 : i32, tile.varies_with_grid
// MANY: wgmma_f16 k 64 warps(4, 1)
// FEW: wgmma_f16 k 64 warps(4, 2)
func.func @product(%A: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f16> {tile.unit_stride = 1 : i32},
                   %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Few rows stay with four warps.
// ALL-LABEL: func.func @few_rows
// ALL-SAME: attributes {tile.kernel, tile.num_warps = 4 : i32}
func.func @few_rows(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<16x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// The kernel's own wish counts, of programs on a multiprocessor and of warps.
// ALL-LABEL: func.func @asked
// ALL-SAME: attributes {tile.kernel, tile.num_warps = 4 : i32, tile.programs = 2 : i32}
func.func @asked(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.programs = 2 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Without products: up to 16 warps, four elements for each thread at least.
// ALL-LABEL: func.func @row
// MANY-SAME: tile.num_warps = 4 : i32, tile.varies_with_grid
// FEW-SAME: tile.num_warps = 16 : i32, tile.varies_with_grid
func.func @row(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<8192xf32>
  tile.store %a, %y[%c0 : i32] : tensor<8192xf32>, !tile.view<1xf32>
  return
}

// -----

// A recurrence whose steps sum: more warps would wait for each other longer.
// ALL-LABEL: func.func @steps
// ALL-SAME: attributes {tile.kernel, tile.num_warps = 4 : i32}
func.func @steps(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %start = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<8192xf32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%state = %start) -> (tensor<8192xf32>) : i32 {
    %sum = tile.reduce %state axis 0 : (tensor<8192xf32>) -> tensor<1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %all = tile.broadcast %sum : tensor<1xf32> -> tensor<8192xf32>
    %next = arith.subf %state, %all : tensor<8192xf32>
    scf.yield %next : tensor<8192xf32>
  }
  tile.store %end, %y[%c0 : i32] : tensor<8192xf32>, !tile.view<1xf32>
  return
}

// -----

// ALL-LABEL: func.func @short_row
// MANY-SAME: tile.num_warps = 4 : i32, tile.varies_with_grid
// FEW-SAME: tile.num_warps = 8 : i32, tile.varies_with_grid
func.func @short_row(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  tile.store %a, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----

// ALL-LABEL: func.func @shorter_row
// ALL-SAME: attributes {tile.kernel, tile.num_warps = 4 : i32}
func.func @shorter_row(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  tile.store %a, %y[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----

// Three programs on a multiprocessor, as the kernel asks, leave no registers for more warps of each.
// ALL-LABEL: func.func @asked_row
// ALL-SAME: attributes {tile.kernel, tile.num_warps = 4 : i32, tile.programs = 3 : i32}
func.func @asked_row(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.programs = 3 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<4096xf32>
  tile.store %a, %y[%c0 : i32] : tensor<4096xf32>, !tile.view<1xf32>
  return
}
