// Loads of what others may be writing: under the condition of the loop they are none for a warp that has left.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -tile-place-buffers -tile-insert-barriers | FileCheck %s

// The roots of trees that others may be changing: a warp that has left would read nothing more.
// CHECK-LABEL: func.func @roots
// CHECK: scf.while
// CHECK: tile.reduce {{.*}} {tile.parts_ways}
// CHECK: attributes {tile.parts_ways}
func.func @roots(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %p0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a0 = arith.cmpi ne, %p0, %o : tensor<256xi32>
  %r:3 = scf.while (%a = %a0, %v = %o, %p = %p0) : (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) {
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%e: i1, %q: i1):
      %t = arith.ori %e, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %a, %v, %p : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  } do {
  ^bb0(%a: tensor<256xi1>, %v: tensor<256xi32>, %p: tensor<256xi32>):
    %w = arith.select %a, %p, %v : tensor<256xi1>, tensor<256xi32>
    %u = tile.gather %x offsets %w : tensor<256xi32> mask %a : tensor<256xi1> cache volatile : !tile.ptr<i32> -> tensor<256xi32>
    %q = arith.select %a, %u, %p : tensor<256xi1>, tensor<256xi32>
    %b = arith.cmpi ne, %w, %q : tensor<256xi32>
    %d = arith.andi %a, %b : tensor<256xi1>
    scf.yield %d, %w, %q : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}

// -----

// Without the mask it would go on reading what others write.
// CHECK-LABEL: func.func @roots_of_all
// CHECK-NOT: tile.parts_ways
// CHECK: return
func.func @roots_of_all(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = tile.iota : tensor<256xi32>
  %p0 = tile.gather %x offsets %o : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %a0 = arith.cmpi ne, %p0, %o : tensor<256xi32>
  %r:3 = scf.while (%a = %a0, %v = %o, %p = %p0) : (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) -> (tensor<256xi1>, tensor<256xi32>, tensor<256xi32>) {
    %s = tile.reduce %a axis 0 : (tensor<256xi1>) -> tensor<1xi1> {
    ^bb0(%e: i1, %q: i1):
      %t = arith.ori %e, %q : i1
      tile.yield %t : i1
    }
    %c = tile.item %s : tensor<1xi1> -> i1
    scf.condition(%c) %a, %v, %p : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  } do {
  ^bb0(%a: tensor<256xi1>, %v: tensor<256xi32>, %p: tensor<256xi32>):
    %w = arith.select %a, %p, %v : tensor<256xi1>, tensor<256xi32>
    %u = tile.gather %x offsets %w : tensor<256xi32> cache volatile : !tile.ptr<i32> -> tensor<256xi32>
    %q = arith.select %a, %u, %p : tensor<256xi1>, tensor<256xi32>
    %b = arith.cmpi ne, %w, %q : tensor<256xi32>
    %d = arith.andi %a, %b : tensor<256xi1>
    scf.yield %d, %w, %q : tensor<256xi1>, tensor<256xi32>, tensor<256xi32>
  }
  tile.scatter %r#1, %y offsets %o : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}
