// Loops that pass over steps by what memory says: the steps that are there, found 32 at a time.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-list-steps,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @masked
// CHECK-SAME: i32, %[[N:[a-z0-9]+]]: i32) ->
// CHECK: %[[STEPS:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[UP:.*]] = arith.addi %[[STEPS]], %c31_i64
// CHECK: %[[GROUPS:.*]] = arith.shrsi %[[UP]], %c5_i64
// CHECK: scf.for %[[G:.*]] = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%[[OUTER:.*]] = %{{.*}})
// Lanes behind the last step ask for that one, and do not count.
// CHECK: %[[BITS:.*]] = tile.ballot {
// CHECK: ^bb0(%[[LANE:.*]]: i32):
// CHECK: arith.cmpi slt, %[[LANE]], %[[LEFT:.*]] : i32
// CHECK: arith.minsi %[[LANE]]
// CHECK: tile.load
// CHECK: tile.yield
// CHECK: %[[COUNT:.*]] = math.ctpop %[[BITS]]
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[COUNT]] step %c1_i32 iter_args(%[[REST:.*]] = %[[BITS]], %[[ACC:.*]] = %[[OUTER]])
// CHECK: %[[PLACE:.*]] = math.cttz %[[REST]]
// CHECK-NOT: scf.if
// CHECK: %[[NEXT:.*]] = tile.dot
// CHECK: %[[LESS:.*]] = arith.subi %[[REST]], %c1_i32
// CHECK: %[[CLEARED:.*]] = arith.andi %[[REST]], %[[LESS]]
// CHECK: scf.yield %[[CLEARED]], %[[NEXT]]
// CHECK: } {tile.stages = 3 : i32}
func.func @masked(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %mask: !tile.view<2xi32>, %row: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %m = tile.load %mask[%row, %k : i32, i32] : !tile.view<2xi32> -> i32
    %there = arith.cmpi ne, %m, %c0 : i32
    %k0 = arith.muli %k, %c64 : i32
    %next = scf.if %there -> (tensor<64x64xf32>) {
      %x = tile.load %a[%row, %k0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
      %y = tile.load %b[%k0, %row : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
      %d = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  return %r : tensor<64x64xf32>
}

// -----
// Other bounds and steps; nothing is carried.
// CHECK-LABEL: func.func @from
// CHECK: arith.ceildivsi
// CHECK: scf.for
// CHECK: tile.ballot
// CHECK: scf.for
// CHECK: tile.store
func.func @from(%a: tensor<64x64xf16>, %out: !tile.view<2xf32>, %mask: !tile.ptr<i8>, %lo: i32, %n: i32) {
  %c0 = arith.constant 0 : i8
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %lo to %n step %c3 : i32 {
    %p = tile.ptr_add %mask, %k : !tile.ptr<i8>, i32
    %m = tile.gather %p : !tile.ptr<i8> -> i8
    %there = arith.cmpi sgt, %m, %c0 : i8
    scf.if %there {
      %d = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      tile.store %d, %out[%k, %k : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
    }
  }
  return
}

// -----
// What is passed over says so itself: later steps may ask what earlier ones wrote.
// CHECK-LABEL: func.func @written
// CHECK-NOT: tile.ballot
// CHECK: return
func.func @written(%a: tensor<64x64xf16>, %mask: !tile.view<1xf32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %m = tile.load %mask[%k : i32] : !tile.view<1xf32> -> f32
    %there = arith.cmpf one, %m, %none : f32
    scf.if %there {
      %d = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %flat = tile.reshape %d : tensor<64x64xf32> -> tensor<4096xf32>
      tile.store %flat, %mask[%k : i32] : tensor<4096xf32>, !tile.view<1xf32>
    }
  }
  return
}

// -----
// Steps that are passed over change something, or what is asked depends on what was done before.
// CHECK-LABEL: func.func @otherwise
// CHECK-NOT: tile.ballot
// CHECK: return
func.func @otherwise(%a: tensor<64x64xf16>, %mask: !tile.view<1xi32>, %n: i32) -> (tensor<64x64xf32>, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %c0) -> (tensor<64x64xf32>, i32) : i32 {
    %m = tile.load %mask[%k : i32] : !tile.view<1xi32> -> i32
    %there = arith.cmpi ne, %m, %c0 : i32
    %next = scf.if %there -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    %on = arith.addi %at, %c1 : i32
    scf.yield %next, %on : tensor<64x64xf32>, i32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %r#0) -> (tensor<64x64xf32>) : i32 {
    %sum = tile.reduce %acc axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %all = tile.reduce %sum axis 0 : (tensor<64x1xf32>) -> tensor<1x1xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %one = tile.item %all : tensor<1x1xf32> -> f32
    %m = tile.load %mask[%k : i32] : !tile.view<1xi32> -> i32
    %f = arith.sitofp %m : i32 to f32
    %there = arith.cmpf olt, %one, %f : f32
    %next = scf.if %there -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    scf.yield %next : tensor<64x64xf32>
  }
  return %s, %r#1 : tensor<64x64xf32>, i32
}

// -----
// The step alone decides (the diagonal), few steps, no product: as they were.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tile.ballot
// CHECK: return
func.func @others(%a: tensor<64x64xf16>, %out: !tile.view<1xi32>, %mask: !tile.view<1xi32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %there = arith.cmpi slt, %k, %c4 : i32
    %next = scf.if %there -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    scf.yield %next : tensor<64x64xf32>
  }
  %s = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %r) -> (tensor<64x64xf32>) : i32 {
    %m = tile.load %mask[%k : i32] : !tile.view<1xi32> -> i32
    %there = arith.cmpi ne, %m, %c0 : i32
    %next = scf.if %there -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    scf.yield %next : tensor<64x64xf32>
  }
  scf.for %k = %c0 to %n step %c1 : i32 {
    %m = tile.load %mask[%k : i32] : !tile.view<1xi32> -> i32
    %there = arith.cmpi ne, %m, %c0 : i32
    scf.if %there {
      tile.store %k, %out[%k : i32] : i32, !tile.view<1xi32>
    }
  }
  return %s : tensor<64x64xf32>
}
