// A cat of cats along one axis has all their operands.
// RUN: tile-opt %s -split-input-file -tile-join-cats | FileCheck %s
// RUN: tile-opt %s -split-input-file -tile-join-cats=keep-alike | FileCheck %s --check-prefix=ALIKE

// CHECK-LABEL: func.func @three(
// CHECK-SAME: %[[R:.*]]: tensor<8x1xi8>, %[[G:.*]]: tensor<8x1xi8>, %[[B:.*]]: tensor<8x1xi8>
// CHECK-NEXT: %[[ALL:.*]] = tile.cat %[[R]], %[[G]], %[[B]] axis 1
// CHECK-NEXT: return %[[ALL]]
func.func @three(%r: tensor<8x1xi8>, %g: tensor<8x1xi8>, %b: tensor<8x1xi8>) -> tensor<8x3xi8> {
  %two = tile.cat %r, %g axis 1 : tensor<8x1xi8>, tensor<8x1xi8> -> tensor<8x2xi8>
  %all = tile.cat %two, %b axis 1 : tensor<8x2xi8>, tensor<8x1xi8> -> tensor<8x3xi8>
  return %all : tensor<8x3xi8>
}

// -----

// Somebody else wants the pair, or the axis is another: they stay.
// CHECK-LABEL: func.func @kept(
// CHECK: %[[PAIR:.*]] = tile.cat %{{.*}}, %{{.*}} axis 1
// CHECK: tile.cat %[[PAIR]], %{{.*}} axis 1
// CHECK: %[[DOWN:.*]] = tile.cat %{{.*}}, %{{.*}} axis 0
// CHECK: tile.cat %[[DOWN]], %{{.*}} axis 1
func.func @kept(%r: tensor<8x1xi8>, %g: tensor<8x1xi8>, %long: tensor<16x1xi8>)
    -> (tensor<8x2xi8>, tensor<8x3xi8>, tensor<16x2xi8>) {
  %pair = tile.cat %r, %g axis 1 : tensor<8x1xi8>, tensor<8x1xi8> -> tensor<8x2xi8>
  %all = tile.cat %pair, %g axis 1 : tensor<8x2xi8>, tensor<8x1xi8> -> tensor<8x3xi8>
  %down = tile.cat %r, %g axis 0 : tensor<8x1xi8>, tensor<8x1xi8> -> tensor<16x1xi8>
  %beside = tile.cat %down, %long axis 1 : tensor<16x1xi8>, tensor<16x1xi8> -> tensor<16x2xi8>
  return %pair, %all, %beside : tensor<8x2xi8>, tensor<8x3xi8>, tensor<16x2xi8>
}

// -----

// Halves of one shape are parts of the threads' registers, which halves and quarters together would not be.
// CHECK-LABEL: func.func @halves(
// CHECK: tile.cat %{{.*}}, %{{.*}}, %{{.*}} axis 1
// ALIKE-LABEL: func.func @halves(
// ALIKE: %[[PAIR:.*]] = tile.cat %arg0, %arg1 axis 1
// ALIKE: tile.cat %[[PAIR]], %arg2 axis 1
// ALIKE-LABEL: func.func @three_alike(
// ALIKE: tile.cat %arg0, %arg1, %arg2 axis 1
func.func @halves(%a: tensor<8x4xi8>, %b: tensor<8x4xi8>, %c: tensor<8x8xi8>) -> tensor<8x16xi8> {
  %pair = tile.cat %a, %b axis 1 : tensor<8x4xi8>, tensor<8x4xi8> -> tensor<8x8xi8>
  %all = tile.cat %pair, %c axis 1 : tensor<8x8xi8>, tensor<8x8xi8> -> tensor<8x16xi8>
  return %all : tensor<8x16xi8>
}
func.func @three_alike(%a: tensor<8x4xi8>, %b: tensor<8x4xi8>, %c: tensor<8x4xi8>) -> tensor<8x12xi8> {
  %pair = tile.cat %a, %b axis 1 : tensor<8x4xi8>, tensor<8x4xi8> -> tensor<8x8xi8>
  %all = tile.cat %pair, %c axis 1 : tensor<8x8xi8>, tensor<8x4xi8> -> tensor<8x12xi8>
  return %all : tensor<8x12xi8>
}
