// A flat index is divided by each size once: quotients by products of sizes go on from quotients by their factors.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-chain-quotients,canonicalize,cse))' | FileCheck %s

// [B, H, S, D]: by D, by S and by H, as of numbers that the launch gives.
// CHECK-LABEL: func.func @places
// CHECK: %[[I:.*]] = arith.addi
// CHECK-DAG: %[[D:.*]] = tile.splat %arg1
// CHECK-DAG: arith.remsi %[[I]], %[[D]]
// CHECK-DAG: %[[ROW:.*]] = arith.divsi %[[I]], %[[D]]
// CHECK-DAG: %[[S:.*]] = tile.splat %arg2
// CHECK-DAG: arith.remsi %[[ROW]], %[[S]]
// CHECK-DAG: %[[HEAD:.*]] = arith.divsi %[[ROW]], %[[S]]
// CHECK-DAG: %[[H:.*]] = tile.splat %arg3
// CHECK-DAG: arith.remsi %[[HEAD]], %[[H]]
// CHECK-DAG: arith.divsi %[[HEAD]], %[[H]]
// CHECK-NOT: divsi
// CHECK-NOT: remsi
func.func @places(%y: !tile.ptr<i64>, %nd: i64, %ns: i64, %nh: i64) attributes {tile.kernel} {
  %c512 = arith.constant 512 : i64
  %pid = tile.program_id 0
  %p = arith.extsi %pid : i32 to i64
  %first = arith.muli %p, %c512 : i64
  %o = tile.iota : tensor<512xi64>
  %f = tile.splat %first : i64 -> tensor<512xi64>
  %i = arith.addi %f, %o : tensor<512xi64>
  %d = tile.splat %nd : i64 -> tensor<512xi64>
  %col = arith.remsi %i, %d : tensor<512xi64>
  %row = arith.divsi %i, %d : tensor<512xi64>
  %s = tile.splat %ns : i64 -> tensor<512xi64>
  %token = arith.remsi %row, %s : tensor<512xi64>
  %ds = arith.muli %nd, %ns : i64
  %dst = tile.splat %ds : i64 -> tensor<512xi64>
  %heads = arith.divsi %i, %dst : tensor<512xi64>
  %h = tile.splat %nh : i64 -> tensor<512xi64>
  %head = arith.remsi %heads, %h : tensor<512xi64>
  %hds = arith.muli %nh, %ds : i64
  %all = tile.splat %hds : i64 -> tensor<512xi64>
  %batch = arith.divsi %i, %all : tensor<512xi64>
  %a = arith.addi %col, %token : tensor<512xi64>
  %b = arith.addi %head, %batch : tensor<512xi64>
  %c = arith.muli %a, %b : tensor<512xi64>
  tile.scatter %c, %y offsets %o : tensor<512xi64> : tensor<512xi64>, !tile.ptr<i64>
  return
}

// -----

// What is left of a plane is what its whole planes leave.
// CHECK-LABEL: func.func @rest
// CHECK-DAG: %[[Q:.*]] = arith.divui %arg1, %arg2
// CHECK-DAG: %[[PLANES:.*]] = arith.divui %[[Q]], %arg3
// CHECK-DAG: %[[SIZE:.*]] = arith.muli %arg2, %arg3
// CHECK: %[[WHOLE:.*]] = arith.muli %[[PLANES]], %[[SIZE]]
// CHECK: arith.subi %arg1, %[[WHOLE]]
// CHECK-NOT: remui %arg1
func.func @rest(%y: !tile.ptr<i32>, %i: i32, %w: i32, %h: i32) attributes {tile.kernel} {
  %q = arith.divui %i, %w : i32
  %row = arith.remui %q, %h : i32
  %size = arith.muli %w, %h : i32
  %in = arith.remui %i, %size : i32
  %sum = arith.addi %row, %in : i32
  tile.scatter %sum, %y : i32, !tile.ptr<i32>
  return
}

// -----

// In any order: planes first.
// CHECK-LABEL: func.func @order
// CHECK-DAG: %[[W:.*]] = tile.splat %arg2
// CHECK-DAG: %[[H:.*]] = tile.splat %arg3
// CHECK-DAG: %[[ROW:.*]] = arith.divsi %arg1, %[[W]]
// CHECK-DAG: arith.divsi %[[ROW]], %[[H]]
// CHECK-DAG: arith.remsi %[[ROW]], %[[H]]
// CHECK-NOT: divsi
func.func @order(%y: !tile.ptr<i32>, %i: tensor<128xi32>, %nw: i32, %nh: i32) {
  %o = tile.iota : tensor<128xi32>
  %size = arith.muli %nh, %nw : i32
  %hw = tile.splat %size : i32 -> tensor<128xi32>
  %plane = arith.divsi %i, %hw : tensor<128xi32>
  %w = tile.splat %nw : i32 -> tensor<128xi32>
  %q = arith.divsi %i, %w : tensor<128xi32>
  %h = tile.splat %nh : i32 -> tensor<128xi32>
  %row = arith.remsi %q, %h : tensor<128xi32>
  %sum = arith.addi %row, %plane : tensor<128xi32>
  tile.scatter %sum, %y offsets %o : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----

// Nothing is gained where the quotient is not divided already, or with another sign.
// CHECK-LABEL: func.func @alone
// CHECK: arith.divsi %arg1, %arg2
// CHECK: %[[SIZE:.*]] = arith.muli %arg2, %arg3
// CHECK: arith.divsi %arg1, %[[SIZE]]
// CHECK: arith.remui %{{.*}}, %arg3
func.func @alone(%y: !tile.ptr<i32>, %i: i32, %w: i32, %h: i32) attributes {tile.kernel} {
  %q = arith.divsi %i, %w : i32
  %size = arith.muli %w, %h : i32
  %plane = arith.divsi %i, %size : i32
  %row = arith.remui %q, %h : i32
  %sum = arith.addi %row, %plane : i32
  tile.scatter %sum, %y : i32, !tile.ptr<i32>
  return
}

// -----

// Products: places are computed again where operands, results and masks want them, not all of them everywhere.
// CHECK-LABEL: func.func @product
// CHECK: %[[SIZE:.*]] = arith.muli %arg2, %arg3
// CHECK: arith.divsi %arg1, %[[SIZE]]
func.func @product(%y: !tile.view<2xf32>, %i: i32, %w: i32, %h: i32, %a: tensor<16x16xf16>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %q = arith.divsi %i, %w : i32
  %row = arith.remsi %q, %h : i32
  %size = arith.muli %w, %h : i32
  %plane = arith.divsi %i, %size : i32
  %c = tile.dot %a, %a, %zero : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  tile.store %c, %y[%row, %plane : i32, i32] : tensor<16x16xf32>, !tile.view<2xf32>
  return
}

// -----

// Sizes of the rows are not sizes of the columns, though both lie in one vector.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK-DAG: %[[ROWS:.*]] = tile.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x16xi32>
// CHECK-DAG: %[[COLUMNS:.*]] = tile.broadcast %{{.*}} : tensor<1x16xi32> -> tensor<16x16xi32>
// CHECK-DAG: %[[PLANES:.*]] = arith.muli %[[COLUMNS]]
// CHECK-DAG: %[[ROW:.*]] = arith.divsi %[[I:.*]], %[[ROWS]]
// CHECK-DAG: arith.remsi %[[ROW]]
// CHECK-DAG: arith.divsi %[[I]], %[[PLANES]]
func.func @rows_and_columns(%sizes: !tile.ptr<i32>, %y: !tile.ptr<i32>, %n: i32) attributes {tile.kernel} {
  %o = tile.iota : tensor<16xi32>
  %w = tile.gather %sizes offsets %o : tensor<16xi32> : !tile.ptr<i32> -> tensor<16xi32>
  %col = tile.reshape %w : tensor<16xi32> -> tensor<16x1xi32>
  %row = tile.reshape %w : tensor<16xi32> -> tensor<1x16xi32>
  %down = tile.broadcast %col : tensor<16x1xi32> -> tensor<16x16xi32>
  %across = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %all = tile.iota : tensor<256xi32>
  %i = tile.reshape %all : tensor<256xi32> -> tensor<16x16xi32>
  %h = tile.splat %n : i32 -> tensor<16x16xi32>
  %q = arith.divsi %i, %down : tensor<16x16xi32>
  %r = arith.remsi %q, %h : tensor<16x16xi32>
  %size = arith.muli %across, %h : tensor<16x16xi32>
  %p = arith.divsi %i, %size : tensor<16x16xi32>
  %s = arith.addi %p, %r : tensor<16x16xi32>
  tile.scatter %s, %y offsets %i : tensor<16x16xi32> : tensor<16x16xi32>, !tile.ptr<i32>
  return
}
