// Comparisons that ranges decide become constants, and what only they guarded goes with them.
// RUN: tile-opt %s -split-input-file -tile-simplify-masks -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @always(
// CHECK-NOT: mask
// CHECK: return
func.func @always(%p: !tile.ptr<f32>) {
  %iota = tile.iota : tensor<64xi32>
  %bound = arith.constant dense<64> : tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %other = arith.constant dense<1.0> : tensor<64xf32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> other %other : tensor<64xf32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// CHECK-LABEL: func.func @never(
// CHECK-NOT: tile.gather
// CHECK: tile.scatter %{{.*}}, %arg0 offsets
// CHECK-NOT: tile.scatter
func.func @never(%p: !tile.ptr<f32>) {
  %iota = tile.iota from 64 : tensor<64xi32>
  %bound = arith.constant dense<64> : tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %other = arith.constant dense<1.0> : tensor<64xf32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> other %other : tensor<64xf32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// Nothing is known about n: the mask stays. A wrap of the sum is possible, so it is not decided either.
// CHECK-LABEL: func.func @unknown(
// CHECK: tile.gather {{.*}} mask
// CHECK: tile.gather {{.*}} mask
func.func @unknown(%p: !tile.ptr<f32>, %n: i32) {
  %iota = tile.iota : tensor<64xi32>
  %bound = tile.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : !tile.ptr<f32> -> tensor<64xf32>
  %sum = arith.addi %iota, %bound : tensor<64xi32>
  %later = arith.cmpi sge, %sum, %bound : tensor<64xi32>
  %w = tile.gather %p offsets %iota : tensor<64xi32> mask %later : tensor<64xi1> : !tile.ptr<f32> -> tensor<64xf32>
  %s = arith.addf %v, %w : tensor<64xf32>
  tile.scatter %s, %p offsets %iota : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}
