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

// -----

// The parts of a place in a picture, and what has to hold for it: rows come together, then columns.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[R:[^ ]*]]: tensor<16x1xi64>, %[[S:[^ ]*]]: tensor<16x1xi64>, %[[C:[^ ]*]]: tensor<1x32xi64>
// CHECK: %[[ROWS:.*]] = arith.addi %[[R]], %[[S]] : tensor<16x1xi64>
// CHECK: %[[ROW:.*]] = tile.broadcast %[[ROWS]]
// CHECK: %[[COLUMN:.*]] = tile.broadcast %[[C]]
// CHECK: arith.addi %[[ROW]], %[[COLUMN]] : tensor<16x32xi64>
// CHECK-DAG: arith.andi %{{.*}} : tensor<16x1xi1>
// CHECK-DAG: arith.andi %{{.*}} : tensor<1x32xi1>
// CHECK: arith.andi %{{.*}} : tensor<16x32xi1>
// CHECK-NOT: arith.andi
// CHECK: return
func.func @grouped(%r: tensor<16x1xi64>, %s: tensor<16x1xi64>, %c: tensor<1x32xi64>, %m: tensor<16x1xi1>, %n: tensor<16x1xi1>, %k: tensor<1x32xi1>, %l: tensor<1x32xi1>) -> (tensor<16x32xi64>, tensor<16x32xi1>) {
  %rb = tile.broadcast %r : tensor<16x1xi64> -> tensor<16x32xi64>
  %sb = tile.broadcast %s : tensor<16x1xi64> -> tensor<16x32xi64>
  %cb = tile.broadcast %c : tensor<1x32xi64> -> tensor<16x32xi64>
  %x = arith.addi %rb, %cb : tensor<16x32xi64>
  %y = arith.addi %x, %sb : tensor<16x32xi64>
  %mb = tile.broadcast %m : tensor<16x1xi1> -> tensor<16x32xi1>
  %nb = tile.broadcast %n : tensor<16x1xi1> -> tensor<16x32xi1>
  %kb = tile.broadcast %k : tensor<1x32xi1> -> tensor<16x32xi1>
  %lb = tile.broadcast %l : tensor<1x32xi1> -> tensor<16x32xi1>
  %a = arith.andi %mb, %kb : tensor<16x32xi1>
  %b = arith.andi %nb, %lb : tensor<16x32xi1>
  %z = arith.andi %a, %b : tensor<16x32xi1>
  return %y, %z : tensor<16x32xi64>, tensor<16x32xi1>
}

// -----

// Sums of floats keep their order, and so do sums that something else reads, too.
// CHECK-LABEL: func.func @ordered(
// CHECK: arith.addf %{{.*}} : tensor<16x32xf32>
// CHECK: arith.addf %{{.*}} : tensor<16x32xf32>
// CHECK: arith.addi %{{.*}} : tensor<16x32xi32>
// CHECK: arith.addi %{{.*}} : tensor<16x32xi32>
func.func @ordered(%r: tensor<16x1xf32>, %s: tensor<16x1xf32>, %c: tensor<1x32xf32>, %i: tensor<16x1xi32>, %j: tensor<16x1xi32>, %k: tensor<1x32xi32>) -> (tensor<16x32xf32>, tensor<16x32xi32>, tensor<16x32xi32>) {
  %rb = tile.broadcast %r : tensor<16x1xf32> -> tensor<16x32xf32>
  %sb = tile.broadcast %s : tensor<16x1xf32> -> tensor<16x32xf32>
  %cb = tile.broadcast %c : tensor<1x32xf32> -> tensor<16x32xf32>
  %x = arith.addf %rb, %cb : tensor<16x32xf32>
  %y = arith.addf %x, %sb : tensor<16x32xf32>
  %ib = tile.broadcast %i : tensor<16x1xi32> -> tensor<16x32xi32>
  %jb = tile.broadcast %j : tensor<16x1xi32> -> tensor<16x32xi32>
  %kb = tile.broadcast %k : tensor<1x32xi32> -> tensor<16x32xi32>
  %u = arith.addi %ib, %kb : tensor<16x32xi32>
  %v = arith.addi %u, %jb : tensor<16x32xi32>
  return %y, %u, %v : tensor<16x32xf32>, tensor<16x32xi32>, tensor<16x32xi32>
}
