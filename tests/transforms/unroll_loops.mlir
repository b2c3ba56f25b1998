// Loops that ask for several bodies an iteration get them, and a loop for what remains, where only the launch knows how
// many there are. By steps of more than one, or from a beginning above 0, the end is never in front of the beginning:
// iterations are counted without a sign.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-unroll-loops))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @asked
// CHECK: %[[END:.*]] = arith.maxsi %arg2, %arg3
// CHECK: arith.subi %[[END]], %arg2
// CHECK: scf.for
// CHECK-COUNT-4: tile.gather
// CHECK: scf.yield
// CHECK-NEXT: } {tile.as_asked}
// CHECK: scf.for
// CHECK: tile.gather
// CHECK-NOT: tile.gather
// CHECK: scf.yield
// CHECK-NEXT: } {tile.as_asked}
// CHECK: return
func.func @asked(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %low: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %c32 = arith.constant 32 : i32
  %o = tile.iota : tensor<32xi32>
  %sum = scf.for %i = %low to %n step %c32 iter_args(%acc = %zero) -> (tensor<32xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<32xi32>
    %at = arith.addi %start, %o : tensor<32xi32>
    %v = tile.gather %x offsets %at : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %s = arith.addf %acc, %v : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  } {tile.unroll = 4 : i32}
  tile.scatter %sum, %y offsets %o : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
  return
}

// -----

// The number of iterations is known: LLVM does it. So it does where the step is a value of the launch.
// CHECK-LABEL: func.func @known
// CHECK: tile.gather
// CHECK-NOT: tile.gather
// CHECK: tile.unroll = 4
// CHECK: tile.gather
// CHECK-NOT: tile.gather
// CHECK: tile.unroll = 2
func.func @known(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c640 = arith.constant 640 : i32
  %o = tile.iota : tensor<32xi32>
  %sum = scf.for %i = %c0 to %c640 step %c32 iter_args(%acc = %zero) -> (tensor<32xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<32xi32>
    %at = arith.addi %start, %o : tensor<32xi32>
    %v = tile.gather %x offsets %at : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %s = arith.addf %acc, %v : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  } {tile.unroll = 4 : i32}
  %more = scf.for %i = %c0 to %n step %step iter_args(%acc = %sum) -> (tensor<32xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<32xi32>
    %at = arith.addi %start, %o : tensor<32xi32>
    %v = tile.gather %x offsets %at : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %s = arith.addf %acc, %v : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  } {tile.unroll = 2 : i32}
  tile.scatter %more, %y offsets %o : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
  return
}

// -----

// From 0 on, one by one, the difference says itself that there is no iteration; from elsewhere it may wrap.
// CHECK-LABEL: func.func @one_by_one
// CHECK-NOT: arith.maxsi
// CHECK: scf.for
// CHECK-COUNT-2: tile.gather
// CHECK: scf.for
// CHECK: %[[END:.*]] = arith.maxsi %arg2, %arg3
// CHECK: arith.subi %[[END]], %arg2
// CHECK: scf.for
// CHECK-COUNT-2: tile.gather
// CHECK: scf.for
// CHECK: return
func.func @one_by_one(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %low: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<32xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<32xi32>
    %at = arith.addi %start, %o : tensor<32xi32>
    %v = tile.gather %x offsets %at : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %s = arith.addf %acc, %v : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  } {tile.unroll = 2 : i32}
  %more = scf.for %i = %low to %n step %c1 iter_args(%acc = %sum) -> (tensor<32xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<32xi32>
    %at = arith.addi %start, %o : tensor<32xi32>
    %v = tile.gather %x offsets %at : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %s = arith.addf %acc, %v : tensor<32xf32>
    scf.yield %s : tensor<32xf32>
  } {tile.unroll = 2 : i32}
  tile.scatter %more, %y offsets %o : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
  return
}
