// What loops wait for comes an iteration early where it says whether something else is read, or is shared by neighbours.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s

// A filter: flags of the next rows are on their way while those that passed are read.
// CHECK-LABEL: func.func @filter
// CHECK: %[[FIRST:.*]] = tile.gather %arg0
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[FLAGS:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.gather %arg0
// CHECK: %[[PASSED:.*]] = arith.cmpi sle, %[[FLAGS]]
// CHECK: tile.gather %arg1 {{.*}} mask %[[PASSED]]
// CHECK: scf.yield {{.*}}, %[[NEXT]]
func.func @filter(%flags: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32},
                  %y: !tile.ptr<f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %most = arith.constant dense<7> : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %o = tile.iota : tensor<256xi32>
  %sum = scf.for %i = %c0 to %n step %c256 iter_args(%acc = %zero) -> (tensor<256xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<256xi32>
    %at = arith.addi %start, %o : tensor<256xi32>
    %f = tile.gather %flags offsets %at : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
    %passed = arith.cmpi sle, %f, %most : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %passed : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %s = arith.addf %acc, %v : tensor<256xf32>
    scf.yield %s : tensor<256xf32>
  }
  tile.scatter %sum, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// Words that sixteen neighbours of a row share (codes of two bits).
// CHECK-LABEL: func.func @codes
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[WORDS:.*]] = %{{.*}}) -> (tensor<16x16xf32>, tensor<16x128xi32>)
// CHECK: %[[NEXT:.*]] = tile.gather %arg1
// CHECK: arith.shrui %[[WORDS]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @codes(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                 %W: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %sixteen = arith.constant dense<16> : tensor<128xi32>
  %pitch = arith.constant dense<64> : tensor<16xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %low = arith.constant dense<3> : tensor<16x128xi32>
  %columns = tile.iota : tensor<16xi32>
  %lines = arith.muli %columns, %pitch : tensor<16xi32>
  %column = tile.reshape %lines : tensor<16xi32> -> tensor<16x1xi32>
  %down = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x128xi32>
  %o = tile.iota : tensor<128xi32>
  %within = arith.remsi %o, %sixteen : tensor<128xi32>
  %by = arith.muli %within, %two : tensor<128xi32>
  %byRow = tile.reshape %by : tensor<128xi32> -> tensor<1x128xi32>
  %shift = tile.broadcast %byRow : tensor<1x128xi32> -> tensor<16x128xi32>
  %sum = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<16x128xf16>
    %start = tile.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %start, %o : tensor<128xi32>
    %word = arith.divsi %at, %sixteen : tensor<128xi32>
    %row = tile.reshape %word : tensor<128xi32> -> tensor<1x128xi32>
    %across = tile.broadcast %row : tensor<1x128xi32> -> tensor<16x128xi32>
    %offsets = arith.addi %down, %across : tensor<16x128xi32>
    %words = tile.gather %W offsets %offsets : tensor<16x128xi32> : !tile.ptr<i32> -> tensor<16x128xi32>
    %moved = arith.shrui %words, %shift : tensor<16x128xi32>
    %cut = arith.andi %moved, %low : tensor<16x128xi32>
    %w = arith.sitofp %cut : tensor<16x128xi32> to tensor<16x128xf16>
    %t = tile.trans %w, [1, 0] : tensor<16x128xf16> -> tensor<128x16xf16>
    %d = tile.dot %a, %t, %acc : tensor<16x128xf16>, tensor<128x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows that a table names, under a branch: the next place of the table is on its way while this row is read.
// CHECK-LABEL: func.func @branch
// CHECK: %[[TABLE:.*]] = tile.ptr_add %arg0
// CHECK: %[[FIRST:.*]] = tile.gather %[[TABLE]]
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[PLACE:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = tile.ptr_add %arg0
// CHECK: %[[NEXT:.*]] = tile.gather %[[AHEAD]]
// CHECK: %[[THERE:.*]] = arith.cmpi sge, %[[PLACE]]
// CHECK: scf.if %[[THERE]]
// CHECK: tile.ptr_add %arg1, %[[PLACE]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @branch(%table: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32},
                  %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<256xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256xf32>) : i32 {
    %p = tile.ptr_add %table, %i : !tile.ptr<i32>, i32
    %place = tile.gather %p : !tile.ptr<i32> -> i32
    %there = arith.cmpi sge, %place, %c0 : i32
    %s = scf.if %there -> (tensor<256xf32>) {
      %row = tile.ptr_add %x, %place : !tile.ptr<f32>, i32
      %v = tile.gather %row offsets %o : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
      %t = arith.addf %acc, %v : tensor<256xf32>
      scf.yield %t : tensor<256xf32>
    } else {
      scf.yield %acc : tensor<256xf32>
    }
    scf.yield %s : tensor<256xf32>
  }
  tile.scatter %sum, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// A factor that stands at that place, and under which the row is read, cannot be on its way; the place can.
// CHECK-LABEL: func.func @chain
// CHECK: %[[TABLE:.*]] = tile.ptr_add %arg0
// CHECK: %[[FIRST:.*]] = tile.gather %[[TABLE]]
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[PLACE:.*]] = %[[FIRST]]) -> (tensor<256xf32>, i32)
// CHECK: %[[AHEAD:.*]] = tile.ptr_add %arg0
// CHECK: %[[NEXT:.*]] = tile.gather %[[AHEAD]]
// CHECK: %[[FACTOR:.*]] = tile.ptr_add %arg2, %[[PLACE]]
// CHECK: tile.gather %[[FACTOR]] : !tile.ptr<f32> -> f32
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @chain(%table: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32},
                 %w: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %none = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<256xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256xf32>) : i32 {
    %p = tile.ptr_add %table, %i : !tile.ptr<i32>, i32
    %place = tile.gather %p : !tile.ptr<i32> -> i32
    %q = tile.ptr_add %w, %place : !tile.ptr<f32>, i32
    %factor = tile.gather %q : !tile.ptr<f32> -> f32
    %counts = arith.cmpf ogt, %factor, %none : f32
    %s = scf.if %counts -> (tensor<256xf32>) {
      %row = tile.ptr_add %x, %place : !tile.ptr<f32>, i32
      %v = tile.gather %row offsets %o : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
      %f = tile.splat %factor : f32 -> tensor<256xf32>
      %m = arith.mulf %v, %f : tensor<256xf32>
      %t = arith.addf %acc, %m : tensor<256xf32>
      scf.yield %t : tensor<256xf32>
    } else {
      scf.yield %acc : tensor<256xf32>
    }
    scf.yield %s : tensor<256xf32>
  }
  tile.scatter %sum, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// Places that a branch of the loop writes stay where they are.
// CHECK-LABEL: func.func @written
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]*}} = %{{[a-z0-9_]*}}) -> (tensor<256xf32>)
// CHECK: tile.gather
// CHECK: scf.if
func.func @written(%table: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32},
                   %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<256xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256xf32>) : i32 {
    %p = tile.ptr_add %table, %i : !tile.ptr<i32>, i32
    %place = tile.gather %p : !tile.ptr<i32> -> i32
    %row = tile.ptr_add %x, %place : !tile.ptr<f32>, i32
    %v = tile.gather %row offsets %o : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
    %there = arith.cmpi sge, %place, %c0 : i32
    scf.if %there {
      %next = arith.addi %i, %c1 : i32
      %q = tile.ptr_add %table, %next : !tile.ptr<i32>, i32
      tile.scatter %c0, %q : i32, !tile.ptr<i32>
    }
    %t = arith.addf %acc, %v : tensor<256xf32>
    scf.yield %t : tensor<256xf32>
  }
  tile.scatter %sum, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
