// Updates that no program of the kernel could see the order of are relaxed.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-relax-atomics))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK-COUNT-2: atomic_rmw add relaxed gpu
func.func @sums(%x: !tile.view<1xi32>, %y: !tile.ptr<i32>, %z: !tile.ptr<i32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %v = tile.load %x[%i : i32] : !tile.view<1xi32> -> tensor<128xi32>
    %a = tile.atomic_rmw add acq_rel gpu %y offsets %v : tensor<128xi32>, %v : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
    %b = tile.atomic_rmw add acq_rel gpu %z offsets %v : tensor<128xi32>, %v : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  }
  return
}

// -----
// The kernel reads what it updates.
// CHECK-LABEL: func.func @reads
// CHECK: atomic_rmw add acq_rel
func.func @reads(%y: !tile.ptr<i32>) attributes {tile.kernel} {
  %at = tile.iota : tensor<128xi32>
  %v = tile.gather %y offsets %at : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %a = tile.atomic_rmw add acq_rel gpu %y offsets %at : tensor<128xi32>, %v : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  return
}

// -----
// A ticket tells who is last: what was added before it must be there.
// CHECK-LABEL: func.func @ticket
// CHECK-COUNT-2: atomic_rmw add acq_rel
func.func @ticket(%y: !tile.ptr<i32>, %flag: !tile.ptr<i32>, %out: !tile.ptr<i32>) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  %a = tile.atomic_rmw add acq_rel gpu %y offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  %t = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  %v = tile.splat %t : i32 -> tensor<128xi32>
  tile.scatter %v, %out offsets %at : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----
// A flag behind stored data, and one for other devices.
// CHECK-LABEL: func.func @flag
// CHECK: atomic_rmw add acq_rel
func.func @flag(%x: !tile.view<1xi32>, %flag: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  tile.store %at, %x[%c0 : i32] : tensor<128xi32>, !tile.view<1xi32>
  %t = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  return
}

// -----
// CHECK-LABEL: func.func @system
// CHECK: atomic_rmw add acq_rel sys
func.func @system(%flag: !tile.ptr<i32>) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %t = tile.atomic_rmw add acq_rel sys %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  return
}

// -----
// One element beside others may be the flag that another kernel waits for.
// CHECK-LABEL: func.func @counted
// CHECK: atomic_rmw add relaxed gpu
// CHECK: atomic_rmw add acq_rel gpu
func.func @counted(%y: !tile.ptr<i32>, %flag: !tile.ptr<i32>) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  %a = tile.atomic_rmw add acq_rel gpu %y offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  %t = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  return
}

// -----
// A tile of one element is one element.
// CHECK-LABEL: func.func @counted_in_a_tile
// CHECK: atomic_rmw add relaxed gpu
// CHECK: atomic_rmw add acq_rel gpu
func.func @counted_in_a_tile(%y: !tile.ptr<i32>, %flag: !tile.ptr<i32>) attributes {tile.kernel} {
  %one = arith.constant dense<1> : tensor<1xi32>
  %first = arith.constant dense<0> : tensor<1xi32>
  %at = tile.iota : tensor<128xi32>
  %a = tile.atomic_rmw add acq_rel gpu %y offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  %t = tile.atomic_rmw add acq_rel gpu %flag offsets %first : tensor<1xi32>, %one : !tile.ptr<i32>, tensor<1xi32> -> tensor<1xi32>
  return
}

// -----
// Sums of floats are no flags, though data are stored beside them: gradients of a table, of weights, and one number.
// CHECK-LABEL: func.func @gradients
// CHECK: atomic_rmw add relaxed gpu
// CHECK: atomic_rmw add relaxed gpu
// CHECK: atomic_rmw exchange acq_rel gpu
// CHECK: atomic_rmw add acq_rel gpu
func.func @gradients(%x: !tile.view<1xf32>, %out: !tile.view<1xf32>, %t: !tile.ptr<f32>, %s: !tile.ptr<f32>, %last: !tile.ptr<f32>, %n: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1.0 : f32
  %at = tile.iota : tensor<128xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  tile.store %v, %out[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  %a = tile.atomic_rmw add acq_rel gpu %t offsets %at : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %b = tile.atomic_rmw add acq_rel gpu %s, %c1 : !tile.ptr<f32>, f32 -> f32
  %c = tile.atomic_rmw exchange acq_rel gpu %last, %c1 : !tile.ptr<f32>, f32 -> f32
  %d = tile.atomic_rmw add acq_rel gpu %n offsets %at : tensor<128xi32>, %at : !tile.ptr<i32>, tensor<128xi32> -> tensor<128xi32>
  return
}

// -----
// The kernel reads the sums: whoever sees one sees what was stored before it.
// CHECK-LABEL: func.func @sums_that_are_read
// CHECK: atomic_rmw add acq_rel
func.func @sums_that_are_read(%out: !tile.view<1xf32>, %s: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %at = tile.iota : tensor<128xi32>
  %v = tile.gather %s offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.store %v, %out[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  %a = tile.atomic_rmw add acq_rel gpu %s offsets %at : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  return
}
