// Stores through pointers that move on evenly, in loops of several bodies: what is asked in front of the loop is whether
// bodies meet.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-unroll-loops -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -canonicalize | FileCheck %s

// Four rows an iteration: the loop stands there twice, and the one that is taken unless rows overlap has no barrier. A row
// is a fourth of what the loop moves on by.
// CHECK-LABEL: func.func @rows
// CHECK: %[[MOVED:.*]] = arith.muli {{.*}}, %c4_i64 : i64
// CHECK: arith.divsi %[[MOVED]], %c4_i64 : i64
// CHECK: arith.cmpi sle, {{.*}}, %c1023_i64 : i64
// CHECK: scf.if
// CHECK: scf.for {{.*}} step %c4_i32
// CHECK-COUNT-4: tile.barrier
// CHECK: } else {
// CHECK: scf.for {{.*}} step %c4_i32
// CHECK-NOT: tile.barrier
// CHECK: tile.scatter
// CHECK-NOT: tile.barrier
// CHECK: tile.scatter
// CHECK-NOT: tile.barrier
// CHECK: tile.scatter
// CHECK-NOT: tile.barrier
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: scf.if
// CHECK: scf.for {{.*}} step %c1_i32
// CHECK: return
func.func @rows(%x: !tile.ptr<f32>, %ld: i64, %rows: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<1024xi32>
  %v = arith.constant dense<1.0> : tensor<1024xf32>
  scf.for %i = %c0 to %rows step %c1 : i32 {
    %row = arith.extsi %i : i32 to i64
    %at = arith.muli %row, %ld : i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    tile.scatter %v, %p offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  } {tile.unroll = 4 : i32}
  return
}

// -----
// Each body writes where the next one reads: other places than its own, and barriers in every body.
// CHECK-LABEL: func.func @neighbours
// CHECK: scf.for {{.*}} step %c2_i32
// CHECK: tile.barrier
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: tile.scatter
// CHECK: return
func.func @neighbours(%x: !tile.ptr<f32>, %ld: i64, %rows: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<1024xi32>
  scf.for %i = %c0 to %rows step %c1 : i32 {
    %row = arith.extsi %i : i32 to i64
    %at = arith.muli %row, %ld : i64
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i64
    %q = tile.ptr_add %p, %ld : !tile.ptr<f32>, i64
    %v = tile.gather %p offsets %o : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
    tile.scatter %v, %q offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  } {tile.unroll = 2 : i32}
  return
}
