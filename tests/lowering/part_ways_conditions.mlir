// Warps leave loops whose condition has parts, each of which stays false, or is carried beside what it is made of.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -tile-place-buffers -tile-insert-barriers | FileCheck %s

// One part or the other is false of each element, and stays so.
// CHECK-LABEL: func.func @parts
// CHECK: attributes {tile.parts_ways}
// CHECK: return
func.func @parts(%x: !tile.ptr<f32>, %e: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %all = tile.splat %n : i32 -> tensor<256xi32>
  %live = arith.cmpi slt, %o, %all : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %first = arith.constant dense<0.0> : tensor<256xf32>
  %r:2 = scf.while (%j = %o, %a = %first) : (tensor<256xi32>, tensor<256xf32>) -> (tensor<256xi32>, tensor<256xf32>) {
    %less = arith.cmpi slt, %j, %end : tensor<256xi32>
    %on = arith.andi %live, %less : tensor<256xi1>
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %j, %a : tensor<256xi32>, tensor<256xf32>
  } do {
  ^bb0(%j: tensor<256xi32>, %a: tensor<256xf32>):
    %less = arith.cmpi slt, %j, %end : tensor<256xi32>
    %on = arith.andi %live, %less : tensor<256xi1>
    %v = tile.gather %x offsets %j : tensor<256xi32> mask %on : tensor<256xi1> : !tile.ptr<f32> -> tensor<256xf32>
    %b = arith.addf %a, %v : tensor<256xf32>
    %i = arith.addi %j, %one : tensor<256xi32>
    scf.yield %i, %b : tensor<256xi32>, tensor<256xf32>
  }
  tile.scatter %r#1, %x offsets %o : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}

// -----

// The first condition was made of a constant, and its comparison turned round.
// CHECK-LABEL: func.func @carried
// CHECK: attributes {tile.parts_ways}
// CHECK: return
func.func @carried(%x: !tile.ptr<i32>, %e: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %begin = arith.cmpi sgt, %end, %zero : tensor<256xi32>
  %r:2 = scf.while (%on = %begin, %j = %zero) : (tensor<256xi1>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>) {
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %on, %j : tensor<256xi1>, tensor<256xi32>
  } do {
  ^bb0(%on: tensor<256xi1>, %j: tensor<256xi32>):
    %one = arith.extui %on : tensor<256xi1> to tensor<256xi32>
    %i = arith.addi %j, %one : tensor<256xi32>
    %next = arith.cmpi slt, %i, %end : tensor<256xi32>
    scf.yield %next, %i : tensor<256xi1>, tensor<256xi32>
  }
  tile.scatter %r#1, %x offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}

// -----

// The first condition is another: where it is false, the next one may be true.
// CHECK-LABEL: func.func @begins_otherwise
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @begins_otherwise(%x: !tile.ptr<i32>, %e: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %three = arith.constant dense<3> : tensor<256xi32>
  %end = tile.gather %e offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %begin = arith.cmpi sgt, %end, %three : tensor<256xi32>
  %r:2 = scf.while (%on = %begin, %j = %zero) : (tensor<256xi1>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>) {
    %s = tile.reduce %on axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%p: i1, %q: i1):
      %t = arith.ori %p, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %on, %j : tensor<256xi1>, tensor<256xi32>
  } do {
  ^bb0(%on: tensor<256xi1>, %j: tensor<256xi32>):
    %one = arith.extui %on : tensor<256xi1> to tensor<256xi32>
    %i = arith.addi %j, %one : tensor<256xi32>
    %next = arith.cmpi slt, %i, %end : tensor<256xi32>
    scf.yield %next, %i : tensor<256xi1>, tensor<256xi32>
  }
  tile.scatter %r#1, %x offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}
