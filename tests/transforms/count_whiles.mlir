// Loops with a condition whose number of iterations is known when they begin become loops that count.
// RUN: tile-opt %s -split-input-file -tile-count-whiles -canonicalize | FileCheck %s

// The counter advances by a constant below a bound; its last value is read.
// CHECK-LABEL: func.func @below(
// CHECK-SAME: %[[FROM:.*]]: i32, %[[N:.*]]: i32
// CHECK-NOT: scf.while
// CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %[[FROM]] to %[[N]] step %c4_i32 iter_args(%{{.*}} = %[[FROM]], %[[X:.*]] = %{{.*}})
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[I]], %c4_i32
// CHECK-DAG: %[[SUM:.*]] = arith.addi %[[X]], %[[I]]
// CHECK: scf.yield %[[NEXT]], %[[SUM]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @below(%from: i32, %n: i32) -> (i32, i32) {
  %c4 = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %r:2 = scf.while (%i = %from, %x = %c0) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %x : i32, i32
  } do {
  ^bb0(%i: i32, %x: i32):
    %sum = arith.addi %x, %i : i32
    %next = arith.addi %i, %c4 : i32
    scf.yield %next, %sum : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// -----

// A program takes every num_programs-th tile; the bound is made in the condition, and stands on its left.
// CHECK-LABEL: func.func @tiles(
// CHECK: %[[HIGH:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: %[[STEP:.*]] = tile.num_programs 0
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %[[HIGH]] step %[[STEP]]
// CHECK: tile.ptr_add %{{.*}}, %[[T]]
func.func @tiles(%p: !tile.ptr<i32>, %n: i32, %m: i32) {
  %first = tile.program_id 0
  %r = scf.while (%t = %first) : (i32) -> i32 {
    %tiles = arith.muli %n, %m : i32
    %more = arith.cmpi sgt, %tiles, %t : i32
    scf.condition(%more) %t : i32
  } do {
  ^bb0(%t: i32):
    %at = tile.ptr_add %p, %t : !tile.ptr<i32>, i32
    tile.scatter %m, %at : i32, !tile.ptr<i32>
    %by = tile.num_programs 0
    %next = arith.addi %t, %by : i32
    scf.yield %next : i32
  }
  return
}

// -----

// As many iterations as bits are set; behind the loop none is.
// CHECK-LABEL: func.func @bits(
// CHECK-SAME: %{{.*}}: !tile.ptr<i32>, %[[BITS:.*]]: i32
// CHECK: %[[COUNT:.*]] = math.ctpop %[[BITS]]
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[COUNT]] step %c1_i32 iter_args(%[[LEFT:.*]] = %[[BITS]])
// CHECK: math.cttz %[[LEFT]]
// CHECK: %[[LESS:.*]] = arith.{{(subi|addi)}} %[[LEFT]]
// CHECK: arith.andi %[[LEFT]], %[[LESS]]
func.func @bits(%p: !tile.ptr<i32>, %bits: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%b = %bits) : (i32) -> i32 {
    %more = arith.cmpi ne, %b, %c0 : i32
    scf.condition(%more) %b : i32
  } do {
  ^bb0(%b: i32):
    %k = math.cttz %b : i32
    %at = tile.ptr_add %p, %k : !tile.ptr<i32>, i32
    tile.scatter %k, %at : i32, !tile.ptr<i32>
    %less = arith.subi %b, %c1 : i32
    %next = arith.andi %b, %less : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// -----

// A bound that the loop moves, a step that may be 0, a value that is halved, a condition that reads memory: as they are.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: scf.while
// CHECK-NOT: scf.for
func.func @others(%p: !tile.ptr<i32>, %n: i32, %step: i32) -> (i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a:2 = scf.while (%i = %c0, %high = %n) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %i, %high : i32
    scf.condition(%more) %i, %high : i32, i32
  } do {
  ^bb0(%i: i32, %high: i32):
    %next = arith.addi %i, %c1 : i32
    %less = arith.subi %high, %c1 : i32
    scf.yield %next, %less : i32, i32
  }
  %b = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %step : i32
    scf.yield %next : i32
  }
  %c = scf.while (%i = %n) : (i32) -> i32 {
    %more = arith.cmpi ne, %i, %c0 : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.shrui %i, %c1 : i32
    scf.yield %next : i32
  }
  %d = scf.while (%i = %c0) : (i32) -> i32 {
    %high = tile.gather %p : !tile.ptr<i32> -> i32
    %more = arith.cmpi slt, %i, %high : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  return %a#0, %b, %c, %d : i32, i32, i32, i32
}
