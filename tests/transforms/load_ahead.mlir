// Small boxes that loops of products read beside their operands, in kernels without roles: an iteration early.
// RUN: tile-opt %s -split-input-file -tile-load-ahead | FileCheck %s

// What is subtracted from the product is carried; where the loop writes to the view it is read from, or asks for one
// stage, or the box is large, it stays.
// CHECK-LABEL: func.func @residual
// CHECK: %[[FIRST:.*]] = tile.load %arg1
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[NEXT:.*]] = tile.load %arg1[%[[AHEAD]],
// CHECK: tile.load_shared %arg0[%[[I]],
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @residual(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    tile.store %e, %O[%t, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// CHECK-LABEL: func.func @written
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @written(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %v : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    tile.store %d, %V[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
    scf.yield %d : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %V[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// CHECK-LABEL: func.func @unasked
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @unasked(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %acc : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  } {tile.stages = 1 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// 64 registers of a thread.
// CHECK-LABEL: func.func @large
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @large(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x128xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %t = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [64, 64] : !tile.view<2 x f16> -> !tile.smem<64x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x128xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = arith.subf %d, %v : tensor<64x128xf32>
    scf.yield %e : tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Three stages: as early as the operands, two iterations.
// CHECK-LABEL: func.func @two
// CHECK: %[[FIRST:.*]] = tile.load %arg1[%c0
// CHECK: %[[SECOND:.*]] = tile.load %arg1[%{{[0-9]+}},
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]], %[[W:.*]] = %[[SECOND]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[FURTHER:.*]] = arith.addi %[[AHEAD]],
// CHECK: %[[NEXT:.*]] = tile.load %arg1[%[[FURTHER]],
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[W]], %[[NEXT]]
func.func @two(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows by a pointer that the loop moves on, in a loop that says nothing of stages: the iteration that is not there reads
// nothing.
// CHECK-LABEL: func.func @rows
// CHECK: %[[FIRST:.*]] = tile.gather
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[I]],
// CHECK: %[[MASK:.*]] = tile.splat %[[IS]]
// CHECK: %[[NEXT:.*]] = tile.gather {{.*}} mask %[[MASK]]
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @rows(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %p = tile.ptr_add %V, %t : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// In a loop that says nothing of stages, rows of 64 registers stay, and with them those that wait at the same time.
// CHECK-LABEL: func.func @beside_large_rows
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.ptr_add %arg1, %[[I]]
// CHECK: tile.gather
func.func @beside_large_rows(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %j = tile.iota : tensor<8192xi32>
  %pairs = tile.reshape %j : tensor<8192xi32> -> tensor<16x16x32xi32>
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %p = tile.ptr_add %V, %t : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %z = tile.gather %p offsets %pairs : tensor<16x16x32xi32> : !tile.ptr<f32> -> tensor<16x16x32xf32>
    %q = tile.reduce %z axis 2 : (tensor<16x16x32xf32>) -> tensor<16x16x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %f = tile.reshape %q : tensor<16x16x1xf32> -> tensor<16x16xf32>
    %g = arith.addf %e, %f : tensor<16x16xf32>
    %s = arith.addf %acc, %g : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}
