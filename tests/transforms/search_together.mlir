// Searches in a row: one loop takes a step of each.
// RUN: tile-opt %s -split-input-file --tile-search-together -canonicalize | FileCheck %s

// Two places in a list, each between bounds of its own. A search that is done reads nothing and keeps its bounds.
// CHECK-LABEL: func.func @both_ends
// CHECK-SAME: (%[[LIST:.*]]: !tile.ptr<i32>, %[[N:.*]]: i32, %[[A:.*]]: i32, %[[B:.*]]: i32
// CHECK: %[[B1:.*]] = arith.addi %[[B]]
// CHECK: %[[R:.*]]:{{[0-9]+}} = scf.while (%[[L0:.*]] = %c0_i32, %[[H0:.*]] = %[[N]], %[[L1:.*]] = %c0_i32, %[[H1:.*]] = %[[N]])
// CHECK: %[[GO0:.*]] = arith.cmpi slt, %[[L0]], %[[H0]]
// CHECK: %[[GO1:.*]] = arith.cmpi slt, %[[L1]], %[[H1]]
// CHECK: %[[GO:.*]] = arith.ori %[[GO0]], %[[GO1]]
// CHECK: scf.condition(%[[GO]])
// CHECK: do {
// CHECK-NOT: arith.cmpi
// CHECK: tile.gather %{{.*}} mask %[[ON0:.*]] : i1
// CHECK-NOT: arith.cmpi
// CHECK: tile.gather %{{.*}} mask %[[ON1:.*]] : i1
// CHECK: arith.cmpi slt, %{{.*}}, %[[A]]
// CHECK: arith.select %[[ON0]]
// CHECK: arith.cmpi slt, %{{.*}}, %[[B1]]
// CHECK: arith.select %[[ON1]]
// CHECK: scf.yield
// CHECK-NOT: scf.while
// CHECK: return
func.func @both_ends(%list: !tile.ptr<i32>, %n: i32, %a: i32, %b: i32, %out: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r:2 = scf.while (%l = %c0, %h = %n) : (i32, i32) -> (i32, i32) {
    %go = arith.cmpi slt, %l, %h : i32
    scf.condition(%go) %l, %h : i32, i32
  } do {
  ^bb0(%l: i32, %h: i32):
    %s = arith.addi %l, %h : i32
    %m = arith.divsi %s, %c2 : i32
    %p = tile.ptr_add %list, %m : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    %below = arith.cmpi slt, %x, %a : i32
    %m1 = arith.addi %m, %c1 : i32
    %l1 = arith.select %below, %m1, %l : i32
    %h1 = arith.select %below, %h, %m : i32
    scf.yield %l1, %h1 : i32, i32
  }
  %b1 = arith.addi %b, %c1 : i32
  %q:2 = scf.while (%l = %c0, %h = %n) : (i32, i32) -> (i32, i32) {
    %go = arith.cmpi slt, %l, %h : i32
    scf.condition(%go) %l, %h : i32, i32
  } do {
  ^bb0(%l: i32, %h: i32):
    %s = arith.addi %l, %h : i32
    %m = arith.divsi %s, %c2 : i32
    %p = tile.ptr_add %list, %m : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    %below = arith.cmpi slt, %x, %b1 : i32
    %m1 = arith.addi %m, %c1 : i32
    %l1 = arith.select %below, %m1, %l : i32
    %h1 = arith.select %below, %h, %m : i32
    scf.yield %l1, %h1 : i32, i32
  }
  %size = arith.subi %q#0, %r#0 : i32
  tile.scatter %size, %out : i32, !tile.ptr<i32>
  return
}

// -----
// Fixed numbers of steps: what is read is read together.
// CHECK-LABEL: func.func @steps
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: tile.gather
// CHECK-NEXT: tile.gather
// CHECK-NOT: scf.for
// CHECK: return
func.func @steps(%next: !tile.ptr<i32>, %a: i32, %b: i32, %n: i32, %out: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %a) -> (i32) : i32 {
    %p = tile.ptr_add %next, %at : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    %y = arith.addi %x, %c1 : i32
    scf.yield %y : i32
  }
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%at = %b) -> (i32) : i32 {
    %p = tile.ptr_add %next, %at : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    scf.yield %x : i32
  }
  %s = arith.addi %r, %q : i32
  tile.scatter %s, %out : i32, !tile.ptr<i32>
  return
}

// -----
// The second begins where the first ends; what is written in between may be what is read; a sum waits for no read.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-5: scf.for
// CHECK: return
func.func @apart(%next: !tile.ptr<i32>, %a: i32, %n: i32, %out: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %a) -> (i32) : i32 {
    %p = tile.ptr_add %next, %at : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    scf.yield %x : i32
  }
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%at = %r) -> (i32) : i32 {
    %p = tile.ptr_add %next, %at : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    scf.yield %x : i32
  }
  tile.scatter %q, %next : i32, !tile.ptr<i32>
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%at = %a) -> (i32) : i32 {
    %p = tile.ptr_add %next, %at : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    scf.yield %x : i32
  }
  %u = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (i32) : i32 {
    %p = tile.ptr_add %next, %i : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    %y = arith.addi %x, %sum : i32
    scf.yield %y : i32
  }
  %v = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (i32) : i32 {
    %p = tile.ptr_add %next, %i : !tile.ptr<i32>, i32
    %x = tile.gather %p : !tile.ptr<i32> -> i32
    %y = arith.addi %x, %sum : i32
    scf.yield %y : i32
  }
  %s = arith.addi %t, %u : i32
  %w = arith.addi %s, %v : i32
  tile.scatter %w, %out : i32, !tile.ptr<i32>
  return
}
