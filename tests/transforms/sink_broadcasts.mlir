// Elementwise work on repeated values is done once, before they are repeated.
// RUN: tile-opt %s -split-input-file -tile-sink-broadcasts -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @scalars(
// CHECK: %[[S:.*]] = arith.addf %arg0, %arg1 : f32
// CHECK: %[[E:.*]] = math.exp %[[S]] : f32
// CHECK: tile.splat %[[E]] : f32 -> tensor<64xf32>
func.func @scalars(%a: f32, %b: f32) -> tensor<64xf32> {
  %as = tile.splat %a : f32 -> tensor<64xf32>
  %bs = tile.splat %b : f32 -> tensor<64xf32>
  %s = arith.addf %as, %bs : tensor<64xf32>
  %e = math.exp %s : tensor<64xf32>
  return %e : tensor<64xf32>
}

// -----

// Rows stay rows; constants and scalars join them.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[M:.*]] = arith.mulf %arg0, %{{.*}} : tensor<16x1xf32>
// CHECK: %[[A:.*]] = arith.addf %[[M]], %{{.*}} : tensor<16x1xf32>
// CHECK: tile.broadcast %[[A]] : tensor<16x1xf32> -> tensor<16x32xf32>
func.func @rows(%r: tensor<16x1xf32>, %x: f32) -> tensor<16x32xf32> {
  %rb = tile.broadcast %r : tensor<16x1xf32> -> tensor<16x32xf32>
  %two = arith.constant dense<2.0> : tensor<16x32xf32>
  %m = arith.mulf %rb, %two : tensor<16x32xf32>
  %xs = tile.splat %x : f32 -> tensor<16x32xf32>
  %s = arith.addf %m, %xs : tensor<16x32xf32>
  return %s : tensor<16x32xf32>
}

// -----

// A row and a column make a whole tile: nothing to gain.
// CHECK-LABEL: func.func @outer(
// CHECK: arith.addf %{{.*}} : tensor<16x32xf32>
func.func @outer(%r: tensor<16x1xf32>, %c: tensor<1x32xf32>) -> tensor<16x32xf32> {
  %rb = tile.broadcast %r : tensor<16x1xf32> -> tensor<16x32xf32>
  %cb = tile.broadcast %c : tensor<1x32xf32> -> tensor<16x32xf32>
  %s = arith.addf %rb, %cb : tensor<16x32xf32>
  return %s : tensor<16x32xf32>
}

// -----

// The result type of a comparison or a cast differs from its operands'; predicates and flags are kept.
// CHECK-LABEL: func.func @types(
// CHECK: %[[C:.*]] = arith.cmpi slt, %arg0, %{{.*}} : tensor<1x32xi32>
// CHECK: tile.broadcast %[[C]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[F:.*]] = arith.sitofp %arg1 : i32 to f32
// CHECK: tile.splat %[[F]] : f32 -> tensor<16x32xf32>
func.func @types(%c: tensor<1x32xi32>, %n: i32) -> (tensor<16x32xi1>, tensor<16x32xf32>) {
  %cb = tile.broadcast %c : tensor<1x32xi32> -> tensor<16x32xi32>
  %ns = tile.splat %n : i32 -> tensor<16x32xi32>
  %m = arith.cmpi slt, %cb, %ns : tensor<16x32xi32>
  %f = arith.sitofp %ns : tensor<16x32xi32> to tensor<16x32xf32>
  return %m, %f : tensor<16x32xi1>, tensor<16x32xf32>
}
