// Sums and extremes of what is loaded under the condition: a warp that has left would add nothing.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -tile-place-buffers -tile-insert-barriers | FileCheck %s

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
