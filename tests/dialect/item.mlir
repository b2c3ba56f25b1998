// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tile-opt %s -split-input-file -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=FOLD

// The element of a one-element tile, whatever its rank.
// CHECK-LABEL: func.func @item
// CHECK: tile.item %{{.*}} : tensor<1x1xf32> -> f32
func.func @item(%0: tensor<1x1xf32>) -> f32 {
  %1 = tile.item %0 : tensor<1x1xf32> -> f32
  return %1 : f32
}

// -----

// FOLD-LABEL: func.func @of_splat
// FOLD-SAME: (%[[X:.*]]: i1)
// FOLD-NEXT: return %[[X]] : i1
func.func @of_splat(%0: i1) -> i1 {
  %1 = tile.splat %0 : i1 -> tensor<1xi1>
  %2 = tile.reshape %1 : tensor<1xi1> -> tensor<1x1xi1>
  %3 = tile.item %2 : tensor<1x1xi1> -> i1
  return %3 : i1
}

// -----

// A tile that is made of the element of one is that one, however its dims of size 1 lie; a larger one is not.
// FOLD-LABEL: func.func @made_again
// FOLD-SAME: (%[[X:.*]]: tensor<1xf32>)
// FOLD-NEXT: %[[ONE:.*]] = tile.item %[[X]]
// FOLD-NEXT: %[[TWO:.*]] = tile.splat %[[ONE]] : f32 -> tensor<2xf32>
// FOLD-NEXT: return %[[X]], %[[X]], %[[TWO]]
func.func @made_again(%0: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<2xf32>) {
  %1 = tile.item %0 : tensor<1xf32> -> f32
  %2 = tile.splat %1 : f32 -> tensor<1xf32>
  %3 = tile.reshape %0 : tensor<1xf32> -> tensor<1x1xf32>
  %4 = tile.item %3 : tensor<1x1xf32> -> f32
  %5 = tile.splat %4 : f32 -> tensor<1xf32>
  %6 = tile.splat %1 : f32 -> tensor<2xf32>
  return %2, %5, %6 : tensor<1xf32>, tensor<1xf32>, tensor<2xf32>
}

// -----

func.func @too_many(%0: tensor<2xf32>) -> f32 {
  // expected-error @+1 {{expects a tile of one element, found 'tensor<2xf32>'}}
  %1 = tile.item %0 : tensor<2xf32> -> f32
  return %1 : f32
}
