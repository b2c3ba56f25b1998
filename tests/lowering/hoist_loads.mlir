// What every iteration reads alike is read once, in front of the loop.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-hoist-loads | FileCheck %s

// Out of both loops; what moves with one of them stays in it.
// CHECK-LABEL: func.func @nest
// CHECK: tile.load %arg0[%{{[0-9a-z_]+}} :
// CHECK: scf.for %[[I:[a-z0-9]+]]
// CHECK-NEXT: tile.load %arg0[%[[I]] :
// CHECK-NEXT: scf.for %[[J:[a-z0-9]+]]
// CHECK-NEXT: tile.load %arg0[%[[J]] :
// CHECK-NOT: tile.load
// CHECK: return
func.func @nest(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %id = tile.program_id 0
  %own = arith.muli %id, %c512 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<512xf32>) : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (tensor<512xf32>) : i32 {
      %u = tile.load %x[%own : i32] : !tile.view<1xf32> -> tensor<512xf32>
      %v = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<512xf32>
      %w = tile.load %x[%j : i32] : !tile.view<1xf32> -> tensor<512xf32>
      %p = arith.mulf %u, %v : tensor<512xf32>
      %q = arith.mulf %p, %w : tensor<512xf32>
      %t = arith.addf %b, %q : tensor<512xf32>
      scf.yield %t : tensor<512xf32>
    }
    scf.yield %s : tensor<512xf32>
  }
  tile.store %r, %y[%own : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// Not what the loop writes, not what it may wait for, not more than registers have room for.
// CHECK-LABEL: func.func @written
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: scf.for
// CHECK: tile.load
func.func @written(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %flag: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c512 = arith.constant 512 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %u = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
    %v = arith.addf %u, %u : tensor<512xf32>
    tile.store %v, %x[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %o = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
    %u = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
    tile.store %u, %y[%i : i32] : tensor<512xf32>, !tile.view<1xf32>
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %u = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<8192xf32>
    tile.store %u, %y[%i : i32] : tensor<8192xf32>, !tile.view<1xf32>
  }
  return
}

// -----
// A number read through a pointer, under the condition that the loop runs; what is read at a place of the iteration,
// or through the pointer that the loop writes to, stays.
// CHECK-LABEL: func.func @numbers
// CHECK-SAME: %[[LIMITS:[a-z0-9]+]]: !tile.ptr<i32>, %[[OUT:[a-z0-9]+]]: !tile.ptr<i32>
// CHECK: %[[AT:.*]] = tile.ptr_add %[[LIMITS]]
// CHECK: %[[RUNS:.*]] = arith.cmpi slt
// CHECK: tile.gather %[[AT]] mask %[[RUNS]]
// CHECK-NOT: tile.gather
// CHECK: scf.for
// CHECK: tile.gather
// CHECK: tile.gather %[[OUT]]
// CHECK: return
func.func @numbers(%limits: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %limits, %c3 : !tile.ptr<i32>, i32
    %u = tile.gather %p : !tile.ptr<i32> -> i32
    %q = tile.ptr_add %limits, %i : !tile.ptr<i32>, i32
    %v = tile.gather %q : !tile.ptr<i32> -> i32
    %w = tile.gather %out : !tile.ptr<i32> -> i32
    %s = arith.addi %u, %v : i32
    %t = arith.addi %s, %w : i32
    tile.scatter %t, %out : i32, !tile.ptr<i32>
  }
  return
}
