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

func.func @too_many(%0: tensor<2xf32>) -> f32 {
  // expected-error @+1 {{expects a tile of one element, found 'tensor<2xf32>'}}
  %1 = tile.item %0 : tensor<2xf32> -> f32
  return %1 : f32
}
