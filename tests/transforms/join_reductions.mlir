// Reductions of one shape along one axis that read one tile run in one pass over it.
// RUN: tile-opt %s -split-input-file -tile-join-reductions | FileCheck %s

// Elementwise work between the two that only the second one needs moves up with it.
// CHECK-LABEL: func.func @moments(
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>
// CHECK-NEXT: %[[SQUARES:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[SUMS:.*]]:2 = tile.reduce %[[X]], %[[SQUARES]] axis 1
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32):
// CHECK-NEXT: %[[E:.*]] = arith.addf %[[A]], %[[C]]
// CHECK-NEXT: %[[F:.*]] = arith.maximumf %[[B]], %[[D]]
// CHECK-NEXT: tile.yield %[[E]], %[[F]]
// CHECK: %[[TWICE:.*]] = arith.addf %[[SUMS]]#0, %[[SUMS]]#0
// CHECK-NEXT: return %[[TWICE]], %[[SUMS]]#1
func.func @moments(%x: tensor<8x64xf32>) -> (tensor<8x1xf32>, tensor<8x1xf32>) {
  %sum = tile.reduce %x axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %twice = arith.addf %sum, %sum : tensor<8x1xf32>
  %squares = arith.mulf %x, %x : tensor<8x64xf32>
  %largest = tile.reduce %squares axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tile.yield %s : f32
  }
  return %twice, %largest : tensor<8x1xf32>, tensor<8x1xf32>
}

// -----

// The second one needs the first, reads another tile, goes along another axis, or reads what is loaded behind the first.
// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-5: = tile.reduce %{{[^,]*}} axis
func.func @kept(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %v: !tile.view<2xf32>, %i: i32) -> (tensor<8x1xf32>, tensor<8x1xf32>,
    tensor<1x64xf32>, tensor<8x1xf32>) {
  %sum = tile.reduce %x axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %all = tile.broadcast %sum : tensor<8x1xf32> -> tensor<8x64xf32>
  %centred = arith.subf %x, %all : tensor<8x64xf32>
  %largest = tile.reduce %centred axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tile.yield %s : f32
  }
  %other = tile.reduce %y axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %columns = tile.reduce %x axis 0 : (tensor<8x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %late = tile.load %v[%i, %i : i32, i32] : <2xf32> -> tensor<8x64xf32>
  %product = arith.mulf %x, %late : tensor<8x64xf32>
  %last = tile.reduce %product axis 1 : (tensor<8x64xf32>) -> tensor<8x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %both = arith.addf %other, %last : tensor<8x1xf32>
  return %sum, %largest, %columns, %both : tensor<8x1xf32>, tensor<8x1xf32>, tensor<1x64xf32>, tensor<8x1xf32>
}
