// A tile is combined once along an axis that several reductions of it have.
// RUN: tile-opt %s -split-input-file -tile-share-reductions -canonicalize | FileCheck %s

// The sum of everything starts from the sums of columns.
// CHECK-LABEL: @columns_and_all
// CHECK: %[[COLUMNS:.*]] = tile.reduce %arg0 axis 0
// CHECK: %[[ALL:.*]] = tile.reduce %[[COLUMNS]] axis 1 : (tensor<1x64xf32>) -> tensor<1x1xf32>
// CHECK-NOT: tile.reduce
// CHECK: return %[[COLUMNS]], %[[ALL]]
func.func @columns_and_all(%x: tensor<96x64xf32>) -> (tensor<1x64xf32>, tensor<1x1xf32>) {
  %columns = tile.reduce %x axis 0 : (tensor<96x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b fastmath<contract> : f32
    tile.yield %s : f32
  }
  %rows = tile.reduce %x axis 1 : (tensor<96x64xf32>) -> tensor<96x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b fastmath<contract> : f32
    tile.yield %s : f32
  }
  %all = tile.reduce %rows axis 0 : (tensor<96x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b fastmath<contract> : f32
    tile.yield %s : f32
  }
  return %columns, %all : tensor<1x64xf32>, tensor<1x1xf32>
}

// -----
// Three axes, of which the middle one is shared.
// CHECK-LABEL: @cube
// CHECK: %[[MIDDLE:.*]] = tile.reduce %arg0 axis 1
// CHECK: %[[LAST:.*]] = tile.reduce %[[MIDDLE]] axis 2 : (tensor<4x1x16xi32>) -> tensor<4x1x1xi32>
// CHECK: tile.reduce %[[LAST]] axis 0 : (tensor<4x1x1xi32>) -> tensor<1x1x1xi32>
// CHECK-NOT: tile.reduce
func.func @cube(%x: tensor<4x8x16xi32>) -> (tensor<4x1x16xi32>, tensor<1x1x1xi32>) {
  %middle = tile.reduce %x axis 1 : (tensor<4x8x16xi32>) -> tensor<4x1x16xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.maxsi %a, %b : i32
    tile.yield %s : i32
  }
  %2 = tile.reduce %x axis 2 : (tensor<4x8x16xi32>) -> tensor<4x8x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.maxsi %a, %b : i32
    tile.yield %s : i32
  }
  %1 = tile.reduce %2 axis 1 : (tensor<4x8x1xi32>) -> tensor<4x1x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.maxsi %a, %b : i32
    tile.yield %s : i32
  }
  %0 = tile.reduce %1 axis 0 : (tensor<4x1x1xi32>) -> tensor<1x1x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.maxsi %a, %b : i32
    tile.yield %s : i32
  }
  return %middle, %0 : tensor<4x1x16xi32>, tensor<1x1x1xi32>
}

// -----
// Not: another combiner; one that does not commute; results that somebody reads between.
// CHECK-LABEL: @others
// CHECK-COUNT-6: tile.reduce %arg0
// CHECK-COUNT-3: tile.reduce
func.func @others(%x: tensor<8x16xf32>) -> (tensor<1x16xf32>, tensor<1x1xf32>, tensor<1x16xf32>, tensor<1x1xf32>, tensor<1x16xf32>, tensor<8x1xf32>, tensor<1x1xf32>) {
  %c0 = tile.reduce %x axis 0 : (tensor<8x16xf32>) -> tensor<1x16xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tile.yield %s : f32
  }
  %c1 = tile.reduce %x axis 0 : (tensor<8x16xf32>) -> tensor<1x16xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %b : f32
  }
  %c2 = tile.reduce %x axis 0 : (tensor<8x16xf32>) -> tensor<1x16xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tile.yield %s : f32
  }
  %r0 = tile.reduce %x axis 1 : (tensor<8x16xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %r1 = tile.reduce %x axis 1 : (tensor<8x16xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %b : f32
  }
  %r2 = tile.reduce %x axis 1 : (tensor<8x16xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tile.yield %s : f32
  }
  %0 = tile.reduce %r0 axis 0 : (tensor<8x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %1 = tile.reduce %r1 axis 0 : (tensor<8x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %b : f32
  }
  %2 = tile.reduce %r2 axis 0 : (tensor<8x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    tile.yield %s : f32
  }
  return %c0, %0, %c1, %1, %c2, %r2, %2 : tensor<1x16xf32>, tensor<1x1xf32>, tensor<1x16xf32>, tensor<1x1xf32>, tensor<1x16xf32>, tensor<8x1xf32>, tensor<1x1xf32>
}
