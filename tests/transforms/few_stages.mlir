// Launches of at most one program per multiprocessor have its shared memory for themselves: their rings have more
// stages, as many as a second program would have left, or as the loop asks for. The kernel notes that its code varies.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,tile-stage,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s --check-prefixes=ALL,MANY
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,tile-stage,canonicalize,cse))' --tile-target=sm_90a --tile-few-programs | FileCheck %s --check-prefixes=ALL,FEW

// Two programs of a warpgroup each would have 112 KB.
// ALL-LABEL: func.func @roles
// ALL-SAME: tile.varies_with_grid
// MANY: tile.ring_alloc arrivals 1 : <4>
// FEW: tile.ring_alloc arrivals 1 : <8>
// ALL: tile.specialize regs(40, 216) programs 2
func.func @roles(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.print "r" %r : tensor<64x128xf32>
  return
}

// -----

// What a loop asks for is enough for both, so there is one code.
// ALL-LABEL: func.func @asked
// ALL-NOT: tile.varies_with_grid
// ALL: tile.ring_alloc arrivals 1 : <2>
// ALL: tile.specialize regs(40, 216) programs 2
func.func @asked(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = math.exp2 %d : tensor<64x128xf32>
    scf.yield %e : tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.print "r" %r : tensor<64x128xf32>
  return
}

// -----

// Without roles.
// ALL-LABEL: func.func @threads
// ALL-SAME: tile.varies_with_grid
// MANY: tile.smem_alloc : <64x64xf16, minor = 1, stages = 3>
// FEW: tile.smem_alloc : <64x64xf16, minor = 1, stages = 6>
func.func @threads(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 16 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.print "r" %r : tensor<64x64xf32>
  return
}
