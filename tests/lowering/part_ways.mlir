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

// What is not loaded is 0, and so is its product: a row of a sparse matrix times a vector.
// CHECK-LABEL: func.func @masked_products
// CHECK: attributes {tile.parts_ways}
// CHECK: return
func.func @masked_products(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = tile.gather %y offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %m = arith.mulf %v, %w : tensor<256xf32>
    %b = arith.addf %a, %m : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// The other factor may be infinite.
// CHECK-LABEL: func.func @unmasked_factor
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @unmasked_factor(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = tile.gather %y offsets %j : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
    %m = arith.mulf %v, %w : tensor<256xf32>
    %b = arith.addf %a, %m : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// The largest of a list: what is not loaded is less than all.
// CHECK-LABEL: func.func @largest
// CHECK: attributes {tile.parts_ways}
// CHECK: return
func.func @largest(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %low = arith.constant dense<0xFF800000> : tensor<256xf32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0xFF800000> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> other %low : tensor<256xf32> : !tile.ptr<f32> -> tensor<256xf32>
    %b = arith.maxnumf %a, %v : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// It begins as a NaN, which going on would replace.
// CHECK-LABEL: func.func @largest_of_none
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @largest_of_none(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %low = arith.constant dense<0xFF800000> : tensor<256xf32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0x7FC00000> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %on = arith.cmpi slt, %j, %end : tensor<256xi32>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> other %low : tensor<256xf32> : !tile.ptr<f32> -> tensor<256xf32>
    %b = arith.maxnumf %a, %v : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
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

// Warps count to the largest of their own numbers.
// CHECK-LABEL: func.func @to_the_longest
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: return
func.func @to_the_longest(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %far = arith.constant dense<0x7F800000> : tensor<256xf32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %n = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %s = tile.reduce %n axis 0 : (tensor<256xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.maxsi %p, %q : i32
    tile.yield %t : i32
  }
  %most = tile.item %s : tensor<1xi32> -> i32
  %r = scf.for %k = %c0 to %most step %c1 iter_args(%a = %first) -> (tensor<256xf32>) : i32 {
    %j = tile.splat %k : i32 -> tensor<256xi32>
    %on = arith.cmpi slt, %j, %n : tensor<256xi32>
    %at = arith.addi %o, %j : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %b = arith.addf %a, %v : tensor<256xf32>
    scf.yield %b : tensor<256xf32>
  }
  tile.scatter %r, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// The nearest of lists of different lengths, compared and chosen.
// CHECK-LABEL: func.func @nearest_of_the_longest
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: return
func.func @nearest_of_the_longest(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %far = arith.constant dense<0x7F800000> : tensor<256xf32>
  %first = arith.constant dense<0x7F800000> : tensor<256xf32>
  %n = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %s = tile.reduce %n axis 0 : (tensor<256xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.maxsi %p, %q : i32
    tile.yield %t : i32
  }
  %most = tile.item %s : tensor<1xi32> -> i32
  %r = scf.for %k = %c0 to %most step %c1 iter_args(%a = %first) -> (tensor<256xf32>) : i32 {
    %j = tile.splat %k : i32 -> tensor<256xi32>
    %on = arith.cmpi slt, %j, %n : tensor<256xi32>
    %at = arith.addi %o, %j : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %d = arith.select %on, %v, %far : tensor<256xi1>, tensor<256xf32>
    %c = arith.cmpf olt, %d, %a : tensor<256xf32>
    %b = arith.select %c, %d, %a : tensor<256xi1>, tensor<256xf32>
    scf.yield %b : tensor<256xf32>
  }
  tile.scatter %r, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// Elements go on past their own number.
// CHECK-LABEL: func.func @counted_for_all
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @counted_for_all(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %far = arith.constant dense<0x7F800000> : tensor<256xf32>
  %first = arith.constant dense<1.0> : tensor<256xf32>
  %n = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %s = tile.reduce %n axis 0 : (tensor<256xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.maxsi %p, %q : i32
    tile.yield %t : i32
  }
  %most = tile.item %s : tensor<1xi32> -> i32
  %r = scf.for %k = %c0 to %most step %c1 iter_args(%a = %first) -> (tensor<256xf32>) : i32 {
    %j = tile.splat %k : i32 -> tensor<256xi32>
    %on = arith.cmpi slt, %j, %n : tensor<256xi32>
    %at = arith.addi %o, %j : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %w = arith.addf %v, %first : tensor<256xf32>
    %c = arith.mulf %a, %w : tensor<256xf32>
    %b = arith.addf %c, %first : tensor<256xf32>
    scf.yield %b : tensor<256xf32>
  }
  tile.scatter %r, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// What an iteration reads another may have written: all meet.
// CHECK-LABEL: func.func @counted_and_written
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @counted_and_written(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %far = arith.constant dense<0x7F800000> : tensor<256xf32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %n = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %s = tile.reduce %n axis 0 : (tensor<256xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.maxsi %p, %q : i32
    tile.yield %t : i32
  }
  %most = tile.item %s : tensor<1xi32> -> i32
  %r = scf.for %k = %c0 to %most step %c1 iter_args(%a = %first) -> (tensor<256xf32>) : i32 {
    %j = tile.splat %k : i32 -> tensor<256xi32>
    %on = arith.cmpi slt, %j, %n : tensor<256xi32>
    %at = arith.addi %o, %j : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %b = arith.addf %a, %v : tensor<256xf32>
    tile.scatter %b, %x offsets %at : tensor<256xi32> mask %on : tensor<256xi1> : tensor<256xf32>, !tile.ptr<f32>
    scf.yield %b : tensor<256xf32>
  }
  tile.scatter %r, %y offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
