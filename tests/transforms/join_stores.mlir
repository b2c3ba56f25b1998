// Stores of one shape that store what is computed from one tile stand side by side.
// RUN: tile-opt %s -split-input-file -tile-join-stores | FileCheck %s

// The first moves down over work that does not touch its memory; the order of the two stays.
// CHECK-LABEL: func.func @both(
// CHECK: %[[X:.*]] = tile.gather
// CHECK: %[[S:.*]] = arith.addf %[[X]]
// CHECK-NEXT: %[[Z:.*]] = tile.gather
// CHECK-NEXT: %[[D:.*]] = arith.mulf %[[X]], %[[Z]]
// CHECK-NEXT: tile.scatter %[[S]],
// CHECK-NEXT: tile.scatter %[[D]],
func.func @both(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %r: !tile.ptr<f32>) {
  %i = tile.iota : tensor<64xi32>
  %x = tile.gather %r offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %s = arith.addf %x, %x : tensor<64xf32>
  tile.scatter %s, %p offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  %z = tile.gather %r offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %d = arith.mulf %x, %z : tensor<64xf32>
  tile.scatter %d, %q offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// What is read in between may be what the first one wrote; what shares nothing stays where it is.
// CHECK-LABEL: func.func @apart(
// CHECK: tile.scatter
// CHECK-NEXT: %[[Z:.*]] = tile.gather
// CHECK-NEXT: %[[D:.*]] = arith.mulf %{{.*}}, %[[Z]]
// CHECK-NEXT: tile.scatter %[[D]],
// CHECK-NEXT: %[[W:.*]] = tile.gather
// CHECK-NEXT: tile.scatter %[[W]],
func.func @apart(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %r: !tile.ptr<f32>) {
  %i = tile.iota : tensor<64xi32>
  %x = tile.gather %r offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %x, %p offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  %z = tile.gather %p offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %d = arith.mulf %x, %z : tensor<64xf32>
  tile.scatter %d, %q offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  %w = tile.gather %r offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %w, %p offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// Boxes of views join boxes.
// CHECK-LABEL: func.func @boxes(
// CHECK: %[[S:.*]] = arith.addf
// CHECK-NEXT: %[[D:.*]] = arith.mulf
// CHECK-NEXT: tile.store %[[S]],
// CHECK-NEXT: tile.store %[[D]],
func.func @boxes(%p: !tile.view<1 x f32>, %q: !tile.view<1 x f32>, %r: !tile.view<1 x f32>, %i: i32) {
  %x = tile.load %r[%i : i32] : !tile.view<1 x f32> -> tensor<64xf32>
  %s = arith.addf %x, %x : tensor<64xf32>
  tile.store %s, %p[%i : i32] : tensor<64xf32>, !tile.view<1 x f32>
  %d = arith.mulf %x, %x : tensor<64xf32>
  tile.store %d, %q[%i : i32] : tensor<64xf32>, !tile.view<1 x f32>
  return
}
