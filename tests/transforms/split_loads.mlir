// Boxes that are read to be cut are read piece by piece.
// RUN: tile-opt %s -split-input-file -tile-split-loads -canonicalize | FileCheck %s

// Both rows of a list.
// CHECK-LABEL: @rows
// CHECK-DAG: tile.load %arg0[%c0_i32, %arg1 {{.*}} tensor<1x32xi32>
// CHECK-DAG: tile.load %arg0[%c1_i32, %arg1 {{.*}} tensor<1x32xi32>
// CHECK-NOT: tile.extract
func.func @rows(%edges: !tile.view<2xi32> {tile.unit_stride = 1 : i32}, %at: i32) -> (tensor<1x32xi32>, tensor<1x32xi32>) {
  %c0 = arith.constant 0 : i32
  %both = tile.load %edges[%c0, %at : i32, i32] : !tile.view<2xi32> -> tensor<2x32xi32>
  %from = tile.extract %both [0, 0] : tensor<2x32xi32> -> tensor<1x32xi32>
  %to = tile.extract %both [1, 0] : tensor<2x32xi32> -> tensor<1x32xi32>
  return %from, %to : tensor<1x32xi32>, tensor<1x32xi32>
}

// -----
// Parts of a row, of which one is not wanted; the place of the second may not fit 32 bits. What memory outside reads as
// stays.
// CHECK-LABEL: @parts
// CHECK: %[[WIDE:.*]] = arith.extsi %arg1 : i32 to i64
// CHECK: %[[AT:.*]] = arith.addi %[[WIDE]], %c128_i64
// CHECK-DAG: tile.load %arg0[%c0_i32, %arg1 {{.*}} pad 2.000000e+00 {{.*}} tensor<16x64xf16>
// CHECK-DAG: tile.load %arg0[%c0_i32, %[[AT]] {{.*}} pad 2.000000e+00 {{.*}} tensor<16x64xf16>
func.func @parts(%x: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %at: i32) -> (tensor<16x64xf16>, tensor<16x64xf16>) {
  %c0 = arith.constant 0 : i32
  %row = tile.load %x[%c0, %at : i32, i32] pad 2.0 : !tile.view<2xf16> -> tensor<16x192xf16>
  %q = tile.extract %row [0, 0] : tensor<16x192xf16> -> tensor<16x64xf16>
  %v = tile.extract %row [0, 128] : tensor<16x192xf16> -> tensor<16x64xf16>
  return %q, %v : tensor<16x64xf16>, tensor<16x64xf16>
}

// -----
// Neighbours in memory come together.
// CHECK-LABEL: @columns
// CHECK: tile.load {{.*}} tensor<32x4xf32>
// CHECK-NOT: tile.load
func.func @columns(%boxes: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %at: i32) -> (tensor<32x1xf32>, tensor<32x1xf32>) {
  %c0 = arith.constant 0 : i32
  %all = tile.load %boxes[%at, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x4xf32>
  %x = tile.extract %all [0, 0] : tensor<32x4xf32> -> tensor<32x1xf32>
  %y = tile.extract %all [0, 1] : tensor<32x4xf32> -> tensor<32x1xf32>
  return %x, %y : tensor<32x1xf32>, tensor<32x1xf32>
}

// -----
// The whole is wanted, too.
// CHECK-LABEL: @whole
// CHECK: tile.load {{.*}} tensor<2x32xi32>
// CHECK-NOT: tile.load
func.func @whole(%edges: !tile.view<2xi32> {tile.unit_stride = 1 : i32}, %at: i32) -> (tensor<2x32xi32>, tensor<1x32xi32>) {
  %c0 = arith.constant 0 : i32
  %both = tile.load %edges[%c0, %at : i32, i32] : !tile.view<2xi32> -> tensor<2x32xi32>
  %from = tile.extract %both [0, 0] : tensor<2x32xi32> -> tensor<1x32xi32>
  return %both, %from : tensor<2x32xi32>, tensor<1x32xi32>
}

// -----
// Matrices of a product of several, one operand the other one turned: each is read once, and turned by itself.
// CHECK-LABEL: @matrices
// CHECK-DAG: %[[FIRST:.*]] = tile.load %arg0[%arg1, {{.*}} tensor<1x32x64xf16>
// CHECK-DAG: %[[AT:.*]] = arith.addi %{{.*}}, %c1
// CHECK-DAG: %[[SECOND:.*]] = tile.load %arg0[%[[AT]], {{.*}} tensor<1x32x64xf16>
// CHECK-NOT: tile.load
// CHECK-DAG: tile.trans %[[FIRST]], [0, 2, 1]
// CHECK-DAG: tile.trans %[[SECOND]], [0, 2, 1]
// CHECK-NOT: tile.extract
func.func @matrices(%x: !tile.view<3xf16> {tile.unit_stride = 2 : i32}, %at: i32)
    -> (tensor<1x32x64xf16>, tensor<1x64x32xf16>, tensor<1x32x64xf16>, tensor<1x64x32xf16>) {
  %c0 = arith.constant 0 : i32
  %both = tile.load %x[%at, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<2x32x64xf16>
  %turned = tile.trans %both, [0, 2, 1] : tensor<2x32x64xf16> -> tensor<2x64x32xf16>
  %a0 = tile.extract %both [0, 0, 0] : tensor<2x32x64xf16> -> tensor<1x32x64xf16>
  %b0 = tile.extract %turned [0, 0, 0] : tensor<2x64x32xf16> -> tensor<1x64x32xf16>
  %a1 = tile.extract %both [1, 0, 0] : tensor<2x32x64xf16> -> tensor<1x32x64xf16>
  %b1 = tile.extract %turned [1, 0, 0] : tensor<2x64x32xf16> -> tensor<1x64x32xf16>
  return %a0, %b0, %a1, %b1 : tensor<1x32x64xf16>, tensor<1x64x32xf16>, tensor<1x32x64xf16>, tensor<1x64x32xf16>
}

// -----
// Heads side by side in a row.
// CHECK-LABEL: @heads
// CHECK-COUNT-2: tile.load {{.*}} tensor<32x64xf16>
// CHECK-NOT: tile.extract
func.func @heads(%x: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %at: i32) -> (tensor<1x32x64xf16>, tensor<1x32x64xf16>) {
  %c0 = arith.constant 0 : i32
  %rows = tile.load %x[%at, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x128xf16>
  %cut = tile.reshape %rows : tensor<32x128xf16> -> tensor<32x2x64xf16>
  %heads = tile.trans %cut, [1, 0, 2] : tensor<32x2x64xf16> -> tensor<2x32x64xf16>
  %first = tile.extract %heads [0, 0, 0] : tensor<2x32x64xf16> -> tensor<1x32x64xf16>
  %second = tile.extract %heads [1, 0, 0] : tensor<2x32x64xf16> -> tensor<1x32x64xf16>
  return %first, %second : tensor<1x32x64xf16>, tensor<1x32x64xf16>
}
