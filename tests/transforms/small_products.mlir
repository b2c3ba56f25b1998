// RUN: tile-opt %s -split-input-file --tile-small-products | FileCheck %s

// CHECK-LABEL: func.func @four
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4x2x3xf32>, %[[B:[a-z0-9]+]]: tensor<4x3x5xf32>, %[[C:[a-z0-9]+]]: tensor<4x2x5xf32>
// CHECK: %[[T:.*]] = tile.trans %[[B]], [0, 2, 1] : tensor<4x3x5xf32> -> tensor<4x5x3xf32>
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : tensor<4x2x5x3xf32>
// CHECK: %[[S:.*]] = tile.reduce %[[P]] axis 3 : (tensor<4x2x5x3xf32>) -> tensor<4x2x5x1xf32>
// CHECK: %[[F:.*]] = tile.reshape %[[S]]
// CHECK: %[[R:.*]] = arith.addf %[[C]], %[[F]]
// CHECK-NOT: tile.dot
// CHECK: return %[[R]]
// Matrices in another order stay.
// CHECK-LABEL: func.func @turned
// CHECK-COUNT-4: tile.dot
func.func @four(%a: tensor<4x2x3xf32>, %b: tensor<4x3x5xf32>, %c: tensor<4x2x5xf32>) -> tensor<4x2x5xf32> {
  %ae0 = tile.extract %a[0, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a0 = tile.reshape %ae0 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be0 = tile.extract %b[0, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b0 = tile.reshape %be0 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce0 = tile.extract %c[0, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c0 = tile.reshape %ce0 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d0 = tile.dot %a0, %b0, %c0 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w0 = tile.reshape %d0 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae1 = tile.extract %a[1, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a1 = tile.reshape %ae1 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be1 = tile.extract %b[1, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b1 = tile.reshape %be1 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce1 = tile.extract %c[1, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c1 = tile.reshape %ce1 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d1 = tile.dot %a1, %b1, %c1 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w1 = tile.reshape %d1 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae2 = tile.extract %a[2, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a2 = tile.reshape %ae2 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be2 = tile.extract %b[2, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b2 = tile.reshape %be2 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce2 = tile.extract %c[2, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c2 = tile.reshape %ce2 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d2 = tile.dot %a2, %b2, %c2 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w2 = tile.reshape %d2 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae3 = tile.extract %a[3, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a3 = tile.reshape %ae3 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be3 = tile.extract %b[3, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b3 = tile.reshape %be3 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce3 = tile.extract %c[3, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c3 = tile.reshape %ce3 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d3 = tile.dot %a3, %b3, %c3 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w3 = tile.reshape %d3 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %r = tile.cat %w0, %w1, %w2, %w3 axis 0 : tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32> -> tensor<4x2x5xf32>
  return %r : tensor<4x2x5xf32>
}
func.func @turned(%a: tensor<4x2x3xf32>, %b: tensor<4x3x5xf32>, %c: tensor<4x2x5xf32>) -> tensor<4x2x5xf32> {
  %ae0 = tile.extract %a[0, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a0 = tile.reshape %ae0 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be0 = tile.extract %b[0, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b0 = tile.reshape %be0 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce0 = tile.extract %c[0, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c0 = tile.reshape %ce0 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d0 = tile.dot %a0, %b0, %c0 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w0 = tile.reshape %d0 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae1 = tile.extract %a[1, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a1 = tile.reshape %ae1 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be1 = tile.extract %b[1, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b1 = tile.reshape %be1 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce1 = tile.extract %c[1, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c1 = tile.reshape %ce1 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d1 = tile.dot %a1, %b1, %c1 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w1 = tile.reshape %d1 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae2 = tile.extract %a[3, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a2 = tile.reshape %ae2 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be2 = tile.extract %b[2, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b2 = tile.reshape %be2 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce2 = tile.extract %c[2, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c2 = tile.reshape %ce2 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d2 = tile.dot %a2, %b2, %c2 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w2 = tile.reshape %d2 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %ae3 = tile.extract %a[2, 0, 0] : tensor<4x2x3xf32> -> tensor<1x2x3xf32>
  %a3 = tile.reshape %ae3 : tensor<1x2x3xf32> -> tensor<2x3xf32>
  %be3 = tile.extract %b[3, 0, 0] : tensor<4x3x5xf32> -> tensor<1x3x5xf32>
  %b3 = tile.reshape %be3 : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %ce3 = tile.extract %c[3, 0, 0] : tensor<4x2x5xf32> -> tensor<1x2x5xf32>
  %c3 = tile.reshape %ce3 : tensor<1x2x5xf32> -> tensor<2x5xf32>
  %d3 = tile.dot %a3, %b3, %c3 : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %w3 = tile.reshape %d3 : tensor<2x5xf32> -> tensor<1x2x5xf32>
  %r = tile.cat %w0, %w1, %w2, %w3 axis 0 : tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32> -> tensor<4x2x5xf32>
  return %r : tensor<4x2x5xf32>
}
