// Loops that count: every warp to the largest of its own numbers, if nobody can tell.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-part-ways -tile-place-buffers -tile-insert-barriers | FileCheck %s

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
