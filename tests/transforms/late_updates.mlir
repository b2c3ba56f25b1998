// The next value of a carried tile is made behind the reads of this one, so that it can take its place.
// RUN: tile-opt %s -split-input-file -tile-late-updates | FileCheck %s

// CHECK-LABEL: func.func @state_read_by_another_product(
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[KEPT:.*]] = arith.mulf %[[S]],
// CHECK: tile.dot %{{.*}}, %[[S]], %{{.*}} :
// CHECK-NEXT: %[[NEXT:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[KEPT]] :
// CHECK: scf.yield %[[NEXT]]
func.func @state_read_by_another_product(%x: tensor<16x16xf32>, %v: tensor<16x32xf32>, %d: tensor<16x32xf32>,
                                         %o: !tile.view<2 x f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (tensor<16x32xf32>) : i32 {
    %kept = arith.mulf %s, %d : tensor<16x32xf32>
    %next = tile.dot %x, %v, %kept : tensor<16x16xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
    %out = tile.dot %x, %s, %z : tensor<16x16xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
    tile.store %out, %o[%i, %c0 : i32, i32] : tensor<16x32xf32>, !tile.view<2 x f32>
    scf.yield %next : tensor<16x32xf32>
  }
  return
}

// -----

// Whoever reads the old value needs the new one as well: both exist, nothing moves.
// CHECK-LABEL: func.func @difference(
// CHECK: %[[NEXT:.*]] = tile.dot
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[NEXT]]
// CHECK-NEXT: tile.store %[[D]]
func.func @difference(%x: tensor<16x16xf32>, %o: !tile.view<2 x f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (tensor<16x16xf32>) : i32 {
    %next = tile.dot %x, %x, %s : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %d = arith.subf %next, %s : tensor<16x16xf32>
    tile.store %d, %o[%i, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
    scf.yield %next : tensor<16x16xf32>
  }
  return
}
