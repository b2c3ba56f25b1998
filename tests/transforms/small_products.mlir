// Many small products that no tensor core multiplies are sums of products, element by element.
// RUN: tile-opt %s -split-input-file --tile-small-products | FileCheck %s

// CHECK-LABEL: func.func @four
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4x2x3xf32>, %[[B:[a-z0-9]+]]: tensor<4x3x5xf32>, %[[C:[a-z0-9]+]]: tensor<4x2x5xf32>
// CHECK: %[[T:.*]] = tile.trans %[[B]], [0, 2, 1] : tensor<4x3x5xf32> -> tensor<4x5x3xf32>
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : tensor<4x2x5x3xf32>
// CHECK: %[[S:.*]] = tile.reduce %[[P]] axis 3 : (tensor<4x2x5x3xf32>) -> tensor<4x2x5x1xf32>
// CHECK: %[[F:.*]] = tile.reshape %[[S]]
// CHECK: %[[R:.*]] = arith.addf %[[C]], %[[F]]
// CHECK-NOT: tile.batch_dot
// CHECK: return %[[R]]
func.func @four(%a: tensor<4x2x3xf32>, %b: tensor<4x3x5xf32>, %c: tensor<4x2x5xf32>) -> tensor<4x2x5xf32> {
  %r = tile.batch_dot %a, %b, %c : tensor<4x2x3xf32>, tensor<4x3x5xf32> -> tensor<4x2x5xf32>
  return %r : tensor<4x2x5xf32>
}

// -----
// Few, large, of narrow numbers, or not rounded as sums of f32 are: they stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: tile.batch_dot
func.func @others(%few: tensor<2x4x4xf32>, %large: tensor<4x32x32xf32>, %half: tensor<4x4x4xf16>, %one: tensor<4x4x4xf32>) {
  %0 = tile.batch_dot %few, %few, %few : tensor<2x4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  %1 = tile.batch_dot %large, %large, %large : tensor<4x32x32xf32>, tensor<4x32x32xf32> -> tensor<4x32x32xf32>
  %2 = tile.batch_dot %half, %half, %one : tensor<4x4x4xf16>, tensor<4x4x4xf16> -> tensor<4x4x4xf32>
  %3 = tile.batch_dot %one, %one, %one precision tf32 : tensor<4x4x4xf32>, tensor<4x4x4xf32> -> tensor<4x4x4xf32>
  return
}
