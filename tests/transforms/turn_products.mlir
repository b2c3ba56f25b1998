// Products whose second operand is widened on its way, as transposed products whose first operand stays in registers.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-turn-products))' --tile-target=sm_90a | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-turn-products,tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s --check-prefix=PLACED

// The accumulator is carried as its transpose; a constant it starts from is a constant again.
// CHECK-LABEL: func.func @weights
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (tensor<128x64xf32>)
// CHECK: %[[AT:.*]] = tile.trans %{{.*}}, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
// CHECK: %[[WT:.*]] = tile.trans %{{.*}}, [1, 0] : tensor<64x128xf16> -> tensor<128x64xf16>
// CHECK: %[[D:.*]] = tile.dot %[[WT]], %[[AT]], %[[ACC]] : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: scf.yield %[[D]]
// CHECK: %[[BACK:.*]] = tile.trans %[[SUM]], [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
// CHECK: tile.store %[[BACK]]
// Bytes are copied, nothing is shared.
// PLACED-LABEL: func.func @weights
// PLACED-DAG: tile.load_shared %arg0
// PLACED-DAG: %[[BYTES:.*]] = tile.load_shared %arg1
// PLACED: tile.smem_load %[[BYTES]]
// PLACED-NOT: tile.share
// PLACED: tile.mma wgmma_f16 k 64 warps(8, 1) %{{.*}}, %{{.*}}, %{{.*}} : tensor<128x64xf16>, <64x64xf16, minor = 0>
func.func @weights(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %W: !tile.view<2 x i8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %bytes = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x128xi8>
    %w = arith.sitofp %bytes : tensor<64x128xi8> to tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// A first operand that is widened need not turn; it stays in registers, too.
// CHECK-LABEL: func.func @widened_first
// CHECK-NOT: tile.trans
// PLACED-LABEL: func.func @widened_first
// PLACED-NOT: tile.share
// PLACED: tile.mma wgmma_f16 k 64 warps(8, 1) %{{.*}} : tensor<128x64xf16>, <64x64xf16, minor = 1>
func.func @widened_first(%A: !tile.view<2 x i8>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %bytes = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x i8> -> tensor<128x64xi8>
    %a = arith.sitofp %bytes : tensor<128x64xi8> to tensor<128x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Not turned: scaled only, which is read in full width anyway; columns that are no whole warps; an accumulator that the
// iteration reads.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tile.trans
func.func @others(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %W: !tile.view<2 x i8>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %narrow = arith.constant dense<0.0> : tensor<64x64xf32>
  %two = arith.constant dense<2.0> : tensor<64x128xf16>
  %half = arith.constant dense<0.5> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sums:3 = scf.for %k = %c0 to %n step %c64 iter_args(%x = %zero, %y = %narrow, %z = %zero) -> (tensor<64x128xf32>, tensor<64x64xf32>, tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %scaled = arith.mulf %b, %two : tensor<64x128xf16>
    %d = tile.dot %a, %scaled, %x : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    %few = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
    %wide = arith.sitofp %few : tensor<64x64xi8> to tensor<64x64xf16>
    %e = tile.dot %a, %wide, %y : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %bytes = tile.load %W[%k, %c64 : i32, i32] : !tile.view<2 x i8> -> tensor<64x128xi8>
    %w = arith.sitofp %bytes : tensor<64x128xi8> to tensor<64x128xf16>
    %less = arith.mulf %z, %half : tensor<64x128xf32>
    %f = tile.dot %a, %w, %less : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d, %e, %f : tensor<64x128xf32>, tensor<64x64xf32>, tensor<64x128xf32>
  }
  tile.store %sums#0, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  tile.store %sums#1, %C[%c64, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  tile.store %sums#2, %C[%c64, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Beside few rows, words of several numbers and gathered factors of groups are no obstacle.
// CHECK-LABEL: func.func @few_rows
// CHECK: tile.dot %{{.*}} : tensor<128x64xf16>, tensor<64x16xf16> -> tensor<128x16xf32>
func.func @few_rows(%A: !tile.view<2 x f16>, %W: !tile.view<2 x i32>, %S: !tile.ptr<f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x128xf32>
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %fours = arith.constant dense<4> : tensor<1x8x1xi32>
  %low = arith.constant dense<15> : tensor<8x8x128xi32>
  %i = tile.iota : tensor<8xi32>
  %places = tile.reshape %i : tensor<8xi32> -> tensor<1x8x1xi32>
  %shift = arith.muli %places, %fours : tensor<1x8x1xi32>
  %shifts = tile.broadcast %shift : tensor<1x8x1xi32> -> tensor<8x8x128xi32>
  %columns = tile.iota : tensor<128xi32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<16x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<16x64xf16>
    %k8 = arith.divsi %k, %c8 : i32
    %words = tile.load %W[%k8, %c0 : i32, i32] : !tile.view<2 x i32> -> tensor<8x128xi32>
    %rows = tile.reshape %words : tensor<8x128xi32> -> tensor<8x1x128xi32>
    %all = tile.broadcast %rows : tensor<8x1x128xi32> -> tensor<8x8x128xi32>
    %moved = arith.shrsi %all, %shifts : tensor<8x8x128xi32>
    %codes = arith.andi %moved, %low : tensor<8x8x128xi32>
    %flat = tile.reshape %codes : tensor<8x8x128xi32> -> tensor<64x128xi32>
    %f = arith.sitofp %flat : tensor<64x128xi32> to tensor<64x128xf16>
    %s = tile.gather %S offsets %columns : tensor<128xi32> : !tile.ptr<f16> -> tensor<128xf16>
    %row = tile.reshape %s : tensor<128xf16> -> tensor<1x128xf16>
    %factors = tile.broadcast %row : tensor<1x128xf16> -> tensor<64x128xf16>
    %w = arith.mulf %f, %factors : tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<16x64xf16>, tensor<64x128xf16> -> tensor<16x128xf32>
    scf.yield %d : tensor<16x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<16x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Beside many rows, threads read such factors less often for elements that they exchange.
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: tile.trans
func.func @many_rows(%A: !tile.view<2 x f16>, %W: !tile.view<2 x i8>, %S: !tile.ptr<f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %columns = tile.iota : tensor<128xi32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %bytes = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x128xi8>
    %f = arith.sitofp %bytes : tensor<64x128xi8> to tensor<64x128xf16>
    %s = tile.gather %S offsets %columns : tensor<128xi32> : !tile.ptr<f16> -> tensor<128xf16>
    %row = tile.reshape %s : tensor<128xf16> -> tensor<1x128xf16>
    %factors = tile.broadcast %row : tensor<1x128xf16> -> tensor<64x128xf16>
    %w = arith.mulf %f, %factors : tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}
