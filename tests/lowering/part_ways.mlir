// Warps leave loops whose elements are done, and branches for any of some, without asking the others.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -tile-place-buffers -tile-insert-barriers | FileCheck %s

// What is active is carried, all else chosen by it.
// CHECK-LABEL: func.func @active
// CHECK: scf.while
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @active(%x: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %two = arith.constant dense<2> : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a0 = arith.cmpi ne, %x0, %one : tensor<256xi32>
  %r:3 = scf.while (%a = %a0, %v = %x0, %n = %zero) : (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) {
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %a, %v, %n : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  } do {
  ^bb0(%a: tensor<256xi1>, %v: tensor<256xi32>, %n: tensor<256xi32>):
    %h = arith.divsi %v, %two : tensor<256xi32>
    %w = arith.select %a, %h, %v : tensor<256xi1>, tensor<256xi32>
    %k = arith.extui %a : tensor<256xi1> to tensor<256xi32>
    %m = arith.addi %n, %k : tensor<256xi32>
    %b = arith.cmpi ne, %w, %one : tensor<256xi32>
    %d = arith.andi %a, %b : tensor<256xi1>
    scf.yield %d, %w, %m : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  }
  %sum = arith.addi %r#1, %r#2 : tensor<256xi32>
  tile.scatter %sum, %x offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}

// -----

// A place that goes on beyond its end, and a sum that has nothing added there; the rounds are counted for nobody.
// CHECK-LABEL: func.func @lists
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @lists(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %none = arith.constant dense<0.0> : tensor<256xf32>
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %c99 = arith.constant 99 : i32
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %r:3 = scf.while (%j = %o, %a = %none, %k = %c0) : (tensor<256xi32>, tensor<256xf32>, i32) -> (tensor<256xi32>, tensor<256xf32>, i32) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    %few = arith.cmpi slt, %k, %c99 : i32
    %go = arith.andi %few, %c : i1
    scf.condition(%go) %j, %a, %k : tensor<256xi32>, tensor<256xf32>, i32
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>, %k: i32):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = arith.select %on, %v, %none : tensor<256xi1>, tensor<256xf32>
    %b = arith.addf %a, %w : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    %n = arith.addi %k, %c1 : i32
    scf.yield %i, %b, %n : tensor<256xi32>, tensor<256xf32>, i32
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// The last of all rounds is asked for behind the loop: warps would not agree.
// CHECK-LABEL: func.func @rounds
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @rounds(%x: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %r:2 = scf.while (%v = %x0, %n = %c0) : (tensor<256xi32>, i32) -> (tensor<256xi32>, i32) {
    %a = arith.cmpi sgt, %v, %zero : tensor<256xi32>
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %v, %n : tensor<256xi32>, i32
  } do {
  ^bb0(%v: tensor<256xi32>, %n: i32):
    %w = arith.subi %v, %one : tensor<256xi32>
    %m = arith.addi %n, %c1 : i32
    scf.yield %w, %m : tensor<256xi32>, i32
  }
  tile.scatter %r#1, %x : i32, !tile.ptr<i32>
  return
}

// -----

// Elements that are done go on changing as long as there are others.
// CHECK-LABEL: func.func @go_on
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @go_on(%x: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1.0> : tensor<256xf32>
  %half = arith.constant dense<0.5> : tensor<256xf32>
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  %r = scf.while (%v = %x0) : (tensor<256xf32>) -> tensor<256xf32> {
    %a = arith.cmpf ogt, %v, %one : tensor<256xf32>
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %v : tensor<256xf32>
  } do {
  ^bb0(%v: tensor<256xf32>):
    %w = arith.mulf %v, %half : tensor<256xf32>
    scf.yield %w : tensor<256xf32>
  }
  tile.scatter %r, %x offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// A branch that writes for those elements alone; where what it writes may be where others have written, the vote is where all meet.
// CHECK-LABEL: func.func @branches
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: scf.if
// CHECK: } {tile.parts_ways}
// CHECK: tile.reduce {{.*}} {tile.scratch = 0 : i32}
// CHECK: scf.if
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @branches(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %v = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a = arith.cmpi sgt, %v, %zero : tensor<256xi32>
  %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
  ^bb0(%p: i1, %q: i1):
    %t = arith.ori %p, %q : i1
    tile.yield %t : i1
  }
  %c = tile.item %s : tensor<1xi1> -> i1
  scf.if %c {
    tile.scatter %v, %y offsets %v : tensor<256xi32> mask %a : tensor<256xi1> : tensor<256xi32>, !tile.ptr<i32>
  }
  tile.scatter %v, %z offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  %b = arith.cmpi slt, %v, %zero : tensor<256xi32>
  %u = tile.reduce %b axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
  ^bb0(%p: i1, %q: i1):
    %t = arith.ori %p, %q : i1
    tile.yield %t : i1
  }
  %d = tile.item %u : tensor<1xi1> -> i1
  scf.if %d {
    tile.scatter %o, %z offsets %v : tensor<256xi32> mask %b : tensor<256xi1> : tensor<256xi32>, !tile.ptr<i32>
  }
  return
}

// -----

// A search in a fixed number of rounds that breaks off: the vote of one round is the next one's condition.
// CHECK-LABEL: func.func @search
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @search(%x: !tile.ptr<f32>, %y: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %true = arith.constant true
  %key = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %r:4 = scf.while (%i = %c0, %h = %last, %l = %zero, %alive = %true) : (i32, tensor<128xi32>, tensor<128xi32>, i1) -> (i32, tensor<128xi32>, tensor<128xi32>, i1) {
    %few = arith.cmpi slt, %i, %c32 : i32
    %go = arith.andi %few, %alive : i1
    scf.condition(%go) %i, %h, %l, %alive : i32, tensor<128xi32>, tensor<128xi32>, i1
  } do {
  ^bb0(%i: i32, %h: tensor<128xi32>, %l: tensor<128xi32>, %alive: i1):
    %open = arith.cmpi slt, %l, %h : tensor<128xi32>
    %s = tile.reduce %open axis 0 : (tensor<128xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    %w:2 = scf.if %c -> (tensor<128xi32>, tensor<128xi32>) {
      %sum = arith.addi %l, %h : tensor<128xi32>
      %mid = arith.divsi %sum, %two : tensor<128xi32>
      %v = tile.gather %x offsets %mid : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
      %less = arith.cmpf olt, %v, %key : tensor<128xf32>
      %next = arith.addi %mid, %one : tensor<128xi32>
      %up = arith.andi %open, %less : tensor<128xi1>
      %low = arith.select %up, %next, %l : tensor<128xi1>, tensor<128xi32>
      %more = arith.cmpf oge, %v, %key : tensor<128xf32>
      %down = arith.andi %open, %more : tensor<128xi1>
      %high = arith.select %down, %mid, %h : tensor<128xi1>, tensor<128xi32>
      scf.yield %low, %high : tensor<128xi32>, tensor<128xi32>
    } else {
      scf.yield %l, %h : tensor<128xi32>, tensor<128xi32>
    }
    %j = arith.addi %i, %c1 : i32
    scf.yield %j, %w#1, %w#0, %c : i32, tensor<128xi32>, tensor<128xi32>, i1
  }
  tile.scatter %r#2, %y offsets %o : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----

// break_if(all(done)): the rest of the body is a branch on the answer, and the next iteration asks for its negation.
// CHECK-LABEL: func.func @break_where_all_are_done
// CHECK: attributes {tile.parts_ways}
func.func @break_where_all_are_done(%x: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %half = arith.constant dense<0.5> : tensor<256xf32>
  %one = arith.constant dense<1.0> : tensor<256xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c40 = arith.constant 40 : i32
  %true = arith.constant true
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  %d0 = arith.cmpf olt, %x0, %one : tensor<256xf32>
  %r:3 = scf.while (%k = %c0, %d = %d0, %on = %true, %v = %x0) : (i32, tensor<256xi1>, i1, tensor<256xf32>) -> (i32, tensor<256xi1>, tensor<256xf32>) {
    %few = arith.cmpi slt, %k, %c40 : i32
    %go = arith.andi %few, %on : i1
    scf.condition(%go) %k, %d, %v : i32, tensor<256xi1>, tensor<256xf32>
  } do {
  ^bb0(%k: i32, %d: tensor<256xi1>, %v: tensor<256xf32>):
    %s = tile.reduce %d axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.andi %p, %q : i1
      tile.yield %t : i1
    }
    %all = tile.item %s : tensor<1xi1> -> i1
    %some = arith.xori %all, %true : i1
    %n:2 = scf.if %all -> (tensor<256xi1>, tensor<256xf32>) {
      scf.yield %d, %v : tensor<256xi1>, tensor<256xf32>
    } else {
      %h = arith.mulf %v, %half : tensor<256xf32>
      %w = arith.select %d, %v, %h : tensor<256xi1>, tensor<256xf32>
      %small = arith.cmpf olt, %w, %one : tensor<256xf32>
      %e = arith.ori %d, %small : tensor<256xi1>
      scf.yield %e, %w : tensor<256xi1>, tensor<256xf32>
    }
    %i = arith.addi %k, %c1 : i32
    scf.yield %i, %n#0, %some, %n#1 : i32, tensor<256xi1>, i1, tensor<256xf32>
  }
  tile.scatter %r#2, %x offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// Steps that are taken or not, one behind the other (an unrolled search): each is looked at once, though there are more
// ways through them than anybody could walk.
// CHECK-LABEL: func.func @many_steps
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @many_steps(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %none = arith.constant dense<0.0> : tensor<256xf32>
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %c99 = arith.constant 99 : i32
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %r:3 = scf.while (%j = %o, %a = %none, %k = %c0) : (tensor<256xi32>, tensor<256xf32>, i32) -> (tensor<256xi32>, tensor<256xf32>, i32) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    %few = arith.cmpi slt, %k, %c99 : i32
    %go = arith.andi %few, %c : i1
    scf.condition(%go) %j, %a, %k : tensor<256xi32>, tensor<256xf32>, i32
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>, %k: i32):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = arith.select %on, %v, %none : tensor<256xi1>, tensor<256xf32>
    %b = arith.addf %a, %w : tensor<256xf32>
    %i0 = arith.addi %j, %one : tensor<256xi32>
    %l0 = arith.constant dense<1.0> : tensor<256xf32>
    %q0 = arith.cmpf olt, %v, %l0 : tensor<256xf32>
    %p0 = arith.addi %i0, %one : tensor<256xi32>
    %i1 = arith.select %q0, %p0, %i0 : tensor<256xi1>, tensor<256xi32>
    %l1 = arith.constant dense<2.0> : tensor<256xf32>
    %q1 = arith.cmpf olt, %v, %l1 : tensor<256xf32>
    %p1 = arith.addi %i1, %one : tensor<256xi32>
    %i2 = arith.select %q1, %p1, %i1 : tensor<256xi1>, tensor<256xi32>
    %l2 = arith.constant dense<3.0> : tensor<256xf32>
    %q2 = arith.cmpf olt, %v, %l2 : tensor<256xf32>
    %p2 = arith.addi %i2, %one : tensor<256xi32>
    %i3 = arith.select %q2, %p2, %i2 : tensor<256xi1>, tensor<256xi32>
    %l3 = arith.constant dense<4.0> : tensor<256xf32>
    %q3 = arith.cmpf olt, %v, %l3 : tensor<256xf32>
    %p3 = arith.addi %i3, %one : tensor<256xi32>
    %i4 = arith.select %q3, %p3, %i3 : tensor<256xi1>, tensor<256xi32>
    %l4 = arith.constant dense<5.0> : tensor<256xf32>
    %q4 = arith.cmpf olt, %v, %l4 : tensor<256xf32>
    %p4 = arith.addi %i4, %one : tensor<256xi32>
    %i5 = arith.select %q4, %p4, %i4 : tensor<256xi1>, tensor<256xi32>
    %l5 = arith.constant dense<6.0> : tensor<256xf32>
    %q5 = arith.cmpf olt, %v, %l5 : tensor<256xf32>
    %p5 = arith.addi %i5, %one : tensor<256xi32>
    %i6 = arith.select %q5, %p5, %i5 : tensor<256xi1>, tensor<256xi32>
    %l6 = arith.constant dense<7.0> : tensor<256xf32>
    %q6 = arith.cmpf olt, %v, %l6 : tensor<256xf32>
    %p6 = arith.addi %i6, %one : tensor<256xi32>
    %i7 = arith.select %q6, %p6, %i6 : tensor<256xi1>, tensor<256xi32>
    %l7 = arith.constant dense<8.0> : tensor<256xf32>
    %q7 = arith.cmpf olt, %v, %l7 : tensor<256xf32>
    %p7 = arith.addi %i7, %one : tensor<256xi32>
    %i8 = arith.select %q7, %p7, %i7 : tensor<256xi1>, tensor<256xi32>
    %l8 = arith.constant dense<9.0> : tensor<256xf32>
    %q8 = arith.cmpf olt, %v, %l8 : tensor<256xf32>
    %p8 = arith.addi %i8, %one : tensor<256xi32>
    %i9 = arith.select %q8, %p8, %i8 : tensor<256xi1>, tensor<256xi32>
    %l9 = arith.constant dense<10.0> : tensor<256xf32>
    %q9 = arith.cmpf olt, %v, %l9 : tensor<256xf32>
    %p9 = arith.addi %i9, %one : tensor<256xi32>
    %i10 = arith.select %q9, %p9, %i9 : tensor<256xi1>, tensor<256xi32>
    %l10 = arith.constant dense<11.0> : tensor<256xf32>
    %q10 = arith.cmpf olt, %v, %l10 : tensor<256xf32>
    %p10 = arith.addi %i10, %one : tensor<256xi32>
    %i11 = arith.select %q10, %p10, %i10 : tensor<256xi1>, tensor<256xi32>
    %l11 = arith.constant dense<12.0> : tensor<256xf32>
    %q11 = arith.cmpf olt, %v, %l11 : tensor<256xf32>
    %p11 = arith.addi %i11, %one : tensor<256xi32>
    %i12 = arith.select %q11, %p11, %i11 : tensor<256xi1>, tensor<256xi32>
    %l12 = arith.constant dense<13.0> : tensor<256xf32>
    %q12 = arith.cmpf olt, %v, %l12 : tensor<256xf32>
    %p12 = arith.addi %i12, %one : tensor<256xi32>
    %i13 = arith.select %q12, %p12, %i12 : tensor<256xi1>, tensor<256xi32>
    %l13 = arith.constant dense<14.0> : tensor<256xf32>
    %q13 = arith.cmpf olt, %v, %l13 : tensor<256xf32>
    %p13 = arith.addi %i13, %one : tensor<256xi32>
    %i14 = arith.select %q13, %p13, %i13 : tensor<256xi1>, tensor<256xi32>
    %l14 = arith.constant dense<15.0> : tensor<256xf32>
    %q14 = arith.cmpf olt, %v, %l14 : tensor<256xf32>
    %p14 = arith.addi %i14, %one : tensor<256xi32>
    %i15 = arith.select %q14, %p14, %i14 : tensor<256xi1>, tensor<256xi32>
    %l15 = arith.constant dense<16.0> : tensor<256xf32>
    %q15 = arith.cmpf olt, %v, %l15 : tensor<256xf32>
    %p15 = arith.addi %i15, %one : tensor<256xi32>
    %i16 = arith.select %q15, %p15, %i15 : tensor<256xi1>, tensor<256xi32>
    %l16 = arith.constant dense<17.0> : tensor<256xf32>
    %q16 = arith.cmpf olt, %v, %l16 : tensor<256xf32>
    %p16 = arith.addi %i16, %one : tensor<256xi32>
    %i17 = arith.select %q16, %p16, %i16 : tensor<256xi1>, tensor<256xi32>
    %l17 = arith.constant dense<18.0> : tensor<256xf32>
    %q17 = arith.cmpf olt, %v, %l17 : tensor<256xf32>
    %p17 = arith.addi %i17, %one : tensor<256xi32>
    %i18 = arith.select %q17, %p17, %i17 : tensor<256xi1>, tensor<256xi32>
    %l18 = arith.constant dense<19.0> : tensor<256xf32>
    %q18 = arith.cmpf olt, %v, %l18 : tensor<256xf32>
    %p18 = arith.addi %i18, %one : tensor<256xi32>
    %i19 = arith.select %q18, %p18, %i18 : tensor<256xi1>, tensor<256xi32>
    %l19 = arith.constant dense<20.0> : tensor<256xf32>
    %q19 = arith.cmpf olt, %v, %l19 : tensor<256xf32>
    %p19 = arith.addi %i19, %one : tensor<256xi32>
    %i20 = arith.select %q19, %p19, %i19 : tensor<256xi1>, tensor<256xi32>
    %l20 = arith.constant dense<21.0> : tensor<256xf32>
    %q20 = arith.cmpf olt, %v, %l20 : tensor<256xf32>
    %p20 = arith.addi %i20, %one : tensor<256xi32>
    %i21 = arith.select %q20, %p20, %i20 : tensor<256xi1>, tensor<256xi32>
    %l21 = arith.constant dense<22.0> : tensor<256xf32>
    %q21 = arith.cmpf olt, %v, %l21 : tensor<256xf32>
    %p21 = arith.addi %i21, %one : tensor<256xi32>
    %i22 = arith.select %q21, %p21, %i21 : tensor<256xi1>, tensor<256xi32>
    %l22 = arith.constant dense<23.0> : tensor<256xf32>
    %q22 = arith.cmpf olt, %v, %l22 : tensor<256xf32>
    %p22 = arith.addi %i22, %one : tensor<256xi32>
    %i23 = arith.select %q22, %p22, %i22 : tensor<256xi1>, tensor<256xi32>
    %l23 = arith.constant dense<24.0> : tensor<256xf32>
    %q23 = arith.cmpf olt, %v, %l23 : tensor<256xf32>
    %p23 = arith.addi %i23, %one : tensor<256xi32>
    %i24 = arith.select %q23, %p23, %i23 : tensor<256xi1>, tensor<256xi32>
    %l24 = arith.constant dense<25.0> : tensor<256xf32>
    %q24 = arith.cmpf olt, %v, %l24 : tensor<256xf32>
    %p24 = arith.addi %i24, %one : tensor<256xi32>
    %i25 = arith.select %q24, %p24, %i24 : tensor<256xi1>, tensor<256xi32>
    %l25 = arith.constant dense<26.0> : tensor<256xf32>
    %q25 = arith.cmpf olt, %v, %l25 : tensor<256xf32>
    %p25 = arith.addi %i25, %one : tensor<256xi32>
    %i26 = arith.select %q25, %p25, %i25 : tensor<256xi1>, tensor<256xi32>
    %l26 = arith.constant dense<27.0> : tensor<256xf32>
    %q26 = arith.cmpf olt, %v, %l26 : tensor<256xf32>
    %p26 = arith.addi %i26, %one : tensor<256xi32>
    %i27 = arith.select %q26, %p26, %i26 : tensor<256xi1>, tensor<256xi32>
    %l27 = arith.constant dense<28.0> : tensor<256xf32>
    %q27 = arith.cmpf olt, %v, %l27 : tensor<256xf32>
    %p27 = arith.addi %i27, %one : tensor<256xi32>
    %i28 = arith.select %q27, %p27, %i27 : tensor<256xi1>, tensor<256xi32>
    %l28 = arith.constant dense<29.0> : tensor<256xf32>
    %q28 = arith.cmpf olt, %v, %l28 : tensor<256xf32>
    %p28 = arith.addi %i28, %one : tensor<256xi32>
    %i29 = arith.select %q28, %p28, %i28 : tensor<256xi1>, tensor<256xi32>
    %l29 = arith.constant dense<30.0> : tensor<256xf32>
    %q29 = arith.cmpf olt, %v, %l29 : tensor<256xf32>
    %p29 = arith.addi %i29, %one : tensor<256xi32>
    %i30 = arith.select %q29, %p29, %i29 : tensor<256xi1>, tensor<256xi32>
    %l30 = arith.constant dense<31.0> : tensor<256xf32>
    %q30 = arith.cmpf olt, %v, %l30 : tensor<256xf32>
    %p30 = arith.addi %i30, %one : tensor<256xi32>
    %i31 = arith.select %q30, %p30, %i30 : tensor<256xi1>, tensor<256xi32>
    %l31 = arith.constant dense<32.0> : tensor<256xf32>
    %q31 = arith.cmpf olt, %v, %l31 : tensor<256xf32>
    %p31 = arith.addi %i31, %one : tensor<256xi32>
    %i32 = arith.select %q31, %p31, %i31 : tensor<256xi1>, tensor<256xi32>
    %l32 = arith.constant dense<33.0> : tensor<256xf32>
    %q32 = arith.cmpf olt, %v, %l32 : tensor<256xf32>
    %p32 = arith.addi %i32, %one : tensor<256xi32>
    %i33 = arith.select %q32, %p32, %i32 : tensor<256xi1>, tensor<256xi32>
    %l33 = arith.constant dense<34.0> : tensor<256xf32>
    %q33 = arith.cmpf olt, %v, %l33 : tensor<256xf32>
    %p33 = arith.addi %i33, %one : tensor<256xi32>
    %i34 = arith.select %q33, %p33, %i33 : tensor<256xi1>, tensor<256xi32>
    %l34 = arith.constant dense<35.0> : tensor<256xf32>
    %q34 = arith.cmpf olt, %v, %l34 : tensor<256xf32>
    %p34 = arith.addi %i34, %one : tensor<256xi32>
    %i35 = arith.select %q34, %p34, %i34 : tensor<256xi1>, tensor<256xi32>
    %l35 = arith.constant dense<36.0> : tensor<256xf32>
    %q35 = arith.cmpf olt, %v, %l35 : tensor<256xf32>
    %p35 = arith.addi %i35, %one : tensor<256xi32>
    %i36 = arith.select %q35, %p35, %i35 : tensor<256xi1>, tensor<256xi32>
    %l36 = arith.constant dense<37.0> : tensor<256xf32>
    %q36 = arith.cmpf olt, %v, %l36 : tensor<256xf32>
    %p36 = arith.addi %i36, %one : tensor<256xi32>
    %i37 = arith.select %q36, %p36, %i36 : tensor<256xi1>, tensor<256xi32>
    %l37 = arith.constant dense<38.0> : tensor<256xf32>
    %q37 = arith.cmpf olt, %v, %l37 : tensor<256xf32>
    %p37 = arith.addi %i37, %one : tensor<256xi32>
    %i38 = arith.select %q37, %p37, %i37 : tensor<256xi1>, tensor<256xi32>
    %l38 = arith.constant dense<39.0> : tensor<256xf32>
    %q38 = arith.cmpf olt, %v, %l38 : tensor<256xf32>
    %p38 = arith.addi %i38, %one : tensor<256xi32>
    %i39 = arith.select %q38, %p38, %i38 : tensor<256xi1>, tensor<256xi32>
    %l39 = arith.constant dense<40.0> : tensor<256xf32>
    %q39 = arith.cmpf olt, %v, %l39 : tensor<256xf32>
    %p39 = arith.addi %i39, %one : tensor<256xi32>
    %i40 = arith.select %q39, %p39, %i39 : tensor<256xi1>, tensor<256xi32>
    %n = arith.addi %k, %c1 : i32
    scf.yield %i40, %b, %n : tensor<256xi32>, tensor<256xf32>, i32
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// Flags that nothing is added to, or taken from, and what is combined with the end of unsigned numbers, or with all bits.
// CHECK-LABEL: func.func @flags_and_ends
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @flags_and_ends(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %five = arith.constant dense<5> : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %ones = arith.constant dense<-1> : tensor<256xi32>
  %true = arith.constant dense<true> : tensor<256xi1>
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a0 = arith.cmpi ne, %x0, %zero : tensor<256xi32>
  %f0 = arith.cmpi sgt, %x0, %five : tensor<256xi32>
  %r:7 = scf.while (%a = %a0, %at = %x0, %f = %f0, %g = %f0, %least = %x0, %most = %x0, %bits = %x0) : (tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>) {
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %a, %at, %f, %g, %least, %most, %bits : tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>
  } do {
  ^bb0(%a: tensor<256xi1>, %at: tensor<256xi32>, %f: tensor<256xi1>, %g: tensor<256xi1>, %least: tensor<256xi32>, %most: tensor<256xi32>, %bits: tensor<256xi32>):
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %a : tensor<256xi1> : !tile.ptr<i32> -> tensor<256xi32>
    %is5 = arith.cmpi eq, %v, %five : tensor<256xi32>
    %is = arith.andi %a, %is5 : tensor<256xi1>
    %not = arith.xori %is, %true : tensor<256xi1>
    %f1 = arith.ori %f, %is : tensor<256xi1>
    %g1 = arith.andi %g, %not : tensor<256xi1>
    %or1 = arith.select %a, %v, %ones : tensor<256xi1>, tensor<256xi32>
    %or0 = arith.select %a, %v, %zero : tensor<256xi1>, tensor<256xi32>
    %least1 = arith.minui %least, %or1 : tensor<256xi32>
    %most1 = arith.maxui %most, %or0 : tensor<256xi32>
    %bits1 = arith.andi %bits, %or1 : tensor<256xi32>
    %at1 = arith.select %a, %v, %at : tensor<256xi1>, tensor<256xi32>
    %on = arith.cmpi sgt, %v, %five : tensor<256xi32>
    %a1 = arith.andi %a, %on : tensor<256xi1>
    scf.yield %a1, %at1, %f1, %g1, %least1, %most1, %bits1 : tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>
  }
  %u = arith.extui %r#2 : tensor<256xi1> to tensor<256xi32>
  %w = arith.extui %r#3 : tensor<256xi1> to tensor<256xi32>
  %t0 = arith.addi %u, %w : tensor<256xi32>
  %t1 = arith.addi %t0, %r#4 : tensor<256xi32>
  %t2 = arith.addi %t1, %r#5 : tensor<256xi32>
  %t3 = arith.addi %t2, %r#6 : tensor<256xi32>
  tile.scatter %t3, %y offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}

// -----

// What is left out of a gather is anything: flags that it is asked for are not still.
// CHECK-LABEL: func.func @other_flags
// CHECK-NOT: tile.parts_ways
// CHECK: tile.scatter
func.func @other_flags(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %five = arith.constant dense<5> : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %ones = arith.constant dense<-1> : tensor<256xi32>
  %true = arith.constant dense<true> : tensor<256xi1>
  %x0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a0 = arith.cmpi ne, %x0, %zero : tensor<256xi32>
  %f0 = arith.cmpi sgt, %x0, %five : tensor<256xi32>
  %r:7 = scf.while (%a = %a0, %at = %x0, %f = %f0, %g = %f0, %least = %x0, %most = %x0, %bits = %x0) : (tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>) {
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %a, %at, %f, %g, %least, %most, %bits : tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>
  } do {
  ^bb0(%a: tensor<256xi1>, %at: tensor<256xi32>, %f: tensor<256xi1>, %g: tensor<256xi1>, %least: tensor<256xi32>, %most: tensor<256xi32>, %bits: tensor<256xi32>):
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %a : tensor<256xi1> : !tile.ptr<i32> -> tensor<256xi32>
    %is5 = arith.cmpi eq, %v, %five : tensor<256xi32>
    %is = arith.andi %a, %is5 : tensor<256xi1>
    %not = arith.xori %is, %true : tensor<256xi1>
    %f1 = arith.ori %f, %is : tensor<256xi1>
    %g1 = arith.andi %g, %is5 : tensor<256xi1>
    %or1 = arith.select %a, %v, %ones : tensor<256xi1>, tensor<256xi32>
    %or0 = arith.select %a, %v, %zero : tensor<256xi1>, tensor<256xi32>
    %least1 = arith.minui %least, %or1 : tensor<256xi32>
    %most1 = arith.maxui %most, %or0 : tensor<256xi32>
    %bits1 = arith.andi %bits, %or1 : tensor<256xi32>
    %at1 = arith.select %a, %v, %at : tensor<256xi1>, tensor<256xi32>
    %on = arith.cmpi sgt, %v, %five : tensor<256xi32>
    %a1 = arith.andi %a, %on : tensor<256xi1>
    scf.yield %a1, %at1, %f1, %g1, %least1, %most1, %bits1 : tensor<256xi1>, tensor<256xi32>, tensor<256xi1>, tensor<256xi1>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>
  }
  %u = arith.extui %r#2 : tensor<256xi1> to tensor<256xi32>
  %w = arith.extui %r#3 : tensor<256xi1> to tensor<256xi32>
  %t0 = arith.addi %u, %w : tensor<256xi32>
  %t1 = arith.addi %t0, %r#4 : tensor<256xi32>
  %t2 = arith.addi %t1, %r#5 : tensor<256xi32>
  %t3 = arith.addi %t2, %r#6 : tensor<256xi32>
  tile.scatter %t3, %y offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}
