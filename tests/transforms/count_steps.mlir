// Integers that a loop advances by the same number in every iteration are counted, not carried.
// RUN: tile-opt %s -split-input-file -tile-count-steps -canonicalize | FileCheck %s

// Columns that move by what the loop's counter moves by: the counter stands for them.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[FIRST:.*]] = tile.iota
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK: %[[MOVED:.*]] = tile.splat %[[I]]
// CHECK: %[[NOW:.*]] = arith.addi %[[FIRST]], %[[MOVED]]
// CHECK: tile.gather %{{.*}} offsets %[[NOW]]
// CHECK-NOT: scf.yield %
func.func @columns(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %first = tile.iota : tensor<64xi32>
  %by = arith.constant dense<64> : tensor<64xi32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %first) -> (tensor<64xi32>) : i32 {
    %x = tile.gather %p offsets %o : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
    tile.scatter %x, %q offsets %o : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
    %next = arith.addi %o, %by : tensor<64xi32>
    scf.yield %next : tensor<64xi32>
  }
  return
}

// -----

// Three times as far, in 64 bits, from a place of its own.
// CHECK-LABEL: func.func @three_times(
// CHECK-SAME: %{{.*}}: !tile.ptr<f32>, %[[START:.*]]: i64, %{{.*}}: i32
// CHECK: scf.for %[[I:[^ ]*]] = %{{.*}} : i32 {
// CHECK: %[[WIDE:.*]] = arith.extsi %[[I]]
// CHECK: %[[MOVED:.*]] = arith.muli %[[WIDE]], %c3_i64
// CHECK: arith.addi %[[START]], %[[MOVED]]
func.func @three_times(%p: !tile.ptr<f32>, %start: i64, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c6 = arith.constant 6 : i64
  %one = arith.constant 1.0 : f32
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%at = %start) -> (i64) : i32 {
    %q = tile.ptr_add %p, %at : !tile.ptr<f32>, i64
    tile.scatter %one, %q : f32, !tile.ptr<f32>
    %next = arith.addi %at, %c6 : i64
    scf.yield %next : i64
  }
  return
}

// -----

// What is added is known in the loop only, in two steps, and the last value is asked for: a scalar comes round.
// CHECK-LABEL: func.func @in_steps(
// CHECK-SAME: %[[FIRST:[^ ]*]]: tensor<8x1xi32>
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %c0_i32) -> (i32)
// CHECK: %[[NOW:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<8x1xi32>
// CHECK: %[[BY:.*]] = tile.gather
// CHECK: %[[T:.*]] = arith.addi %[[S]], %[[BY]] : i32
// CHECK: %[[U:.*]] = arith.subi %[[T]], %c3_i32 : i32
// CHECK: scf.yield %[[U]] : i32
// CHECK: tile.splat %[[LAST]]
// CHECK: return
func.func @in_steps(%first: tensor<8x1xi32>, %p: !tile.ptr<i32>, %n: i32) -> tensor<8x1xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %three = arith.constant dense<3> : tensor<8x1xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %first) -> (tensor<8x1xi32>) : i32 {
    tile.scatter %o, %p offsets %o : tensor<8x1xi32> : tensor<8x1xi32>, !tile.ptr<i32>
    %by = tile.gather %p : !tile.ptr<i32> -> i32
    %more = tile.splat %by : i32 -> tensor<8x1xi32>
    %there = arith.addi %more, %o : tensor<8x1xi32>
    %next = arith.subi %there, %three : tensor<8x1xi32>
    scf.yield %next : tensor<8x1xi32>
  }
  return %r : tensor<8x1xi32>
}

// -----

// Elements that move by numbers of their own are carried, and so are numbers of 8 bits.
// CHECK-LABEL: func.func @apart(
// CHECK: scf.for {{.*}} -> (tensor<8xi32>, tensor<8xi8>)
func.func @apart(%first: tensor<8xi32>, %bytes: tensor<8xi8>, %n: i32) -> (tensor<8xi32>, tensor<8xi8>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %by = tile.iota : tensor<8xi32>
  %one = arith.constant dense<1> : tensor<8xi8>
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%o = %first, %b = %bytes) -> (tensor<8xi32>, tensor<8xi8>) : i32 {
    %next = arith.addi %o, %by : tensor<8xi32>
    %up = arith.addi %b, %one : tensor<8xi8>
    scf.yield %next, %up : tensor<8xi32>, tensor<8xi8>
  }
  return %r, %s : tensor<8xi32>, tensor<8xi8>
}

// -----

// A step that iterations begin with, from one step before the first number, is their end; one that is the loop's own, from
// where that begins, is the loop's.
// CHECK-LABEL: func.func @begins(
// CHECK-SAME: %[[P:.*]]: !tile.ptr<i32>, %[[FIRST:[^ ]*]]: i32, %[[STEP:[^ ]*]]: i32, %[[OTHER:[^ ]*]]: i32
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %{{.*}} step %[[STEP]] iter_args(%[[AT:.*]] = %[[FIRST]]) -> (i32) : i32 {
// CHECK: tile.scatter %[[I]], %[[P]]
// CHECK: tile.scatter %[[AT]], %[[P]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %[[OTHER]]
// CHECK: scf.yield %[[NEXT]]
func.func @begins(%p: !tile.ptr<i32>, %first: i32, %step: i32, %other: i32, %n: i32) {
  %a = arith.subi %first, %step : i32
  %b = arith.subi %first, %other : i32
  %r:2 = scf.for %i = %first to %n step %step iter_args(%x = %a, %y = %b) -> (i32, i32) : i32 {
    %u = arith.addi %x, %step : i32
    %v = arith.addi %y, %other : i32
    tile.scatter %u, %p : i32, !tile.ptr<i32>
    tile.scatter %v, %p : i32, !tile.ptr<i32>
    scf.yield %u, %v : i32, i32
  }
  return
}

// -----

// Where what was there before is read as well, or the last number, it stays.
// CHECK-LABEL: func.func @read_before(
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: arith.addi %[[X]],
// CHECK: arith.addi %[[Y]],
// CHECK: tile.scatter
func.func @read_before(%p: !tile.ptr<i32>, %first: i32, %step: i32, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first, %y = %first) -> (i32, i32) : i32 {
    %u = arith.addi %x, %step : i32
    %v = arith.addi %y, %step : i32
    tile.scatter %x, %p : i32, !tile.ptr<i32>
    tile.scatter %u, %p : i32, !tile.ptr<i32>
    tile.scatter %v, %p : i32, !tile.ptr<i32>
    scf.yield %u, %v : i32, i32
  }
  return %r#1 : i32
}

// -----

// What is left gets less: a constant that is subtracted is its negative, added. Of tiles, too, and at the end of
// iterations that begin with it.
// CHECK-LABEL: func.func @left(
// CHECK-SAME: %{{.*}}: !tile.ptr<i32>, %[[N:[^ ]*]]: i32, %{{.*}}: i32, %[[TILE:[^ ]*]]: tensor<64xi32>
// CHECK: %[[FIRST:.*]] = arith.subi %[[N]], %c64_i32
// CHECK: scf.for %[[I:[^ ]*]] = %{{.*}} : i32 {
// CHECK: arith.muli %[[I]], %c-64_i32
// CHECK: %[[LESS:.*]] = arith.addi %[[FIRST]], %
// CHECK: %[[LEFT:.*]] = arith.addi %[[N]], %
// CHECK: arith.addi %[[TILE]], %{{.*}} : tensor<64xi32>
// CHECK: tile.scatter %[[LEFT]],
// CHECK: tile.scatter %[[LESS]],
// CHECK-NOT: scf.yield %
func.func @left(%p: !tile.ptr<i32>, %n: i32, %k: i32, %tile: tensor<64xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c64s = arith.constant dense<64> : tensor<64xi32>
  %r:3 = scf.for %i = %c0 to %k step %c1 iter_args(%x = %n, %y = %n, %o = %tile) -> (i32, i32, tensor<64xi32>) : i32 {
    %u = arith.subi %x, %c64 : i32
    %v = arith.subi %y, %c64 : i32
    %w = arith.subi %o, %c64s : tensor<64xi32>
    tile.scatter %x, %p : i32, !tile.ptr<i32>
    tile.scatter %v, %p : i32, !tile.ptr<i32>
    tile.scatter %o, %p offsets %o : tensor<64xi32> : tensor<64xi32>, !tile.ptr<i32>
    scf.yield %u, %v, %w : i32, i32, tensor<64xi32>
  }
  return
}

// -----

// A number that is subtracted from another one, `64 - x`, goes to and fro.
// CHECK-LABEL: func.func @to_and_fro(
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (i32)
// CHECK: %[[NEXT:.*]] = arith.subi %c64_i32, %[[X]]
// CHECK: scf.yield %[[NEXT]]
func.func @to_and_fro(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> (i32) : i32 {
    %u = arith.subi %c64, %x : i32
    tile.scatter %u, %p : i32, !tile.ptr<i32>
    scf.yield %u : i32
  }
  return
}
