// Loops whose threads combine something in every iteration wait for each other; loads come an iteration early there.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s

// Where threads combine what they have, small boxes come an iteration early: they wait for each other anyway.
// CHECK-LABEL: func.func @beside_meetings
// CHECK: %[[FIRST:.*]] = tile.load %arg0
// CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.load %arg0
// CHECK: tile.reshape %[[Q]]
// CHECK: scf.yield %[[NEXT]]
func.func @beside_meetings(%Q: !tile.view<2 x f32>, %K: !tile.view<2 x f32>, %S: !tile.view<2 x f32>, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %k = tile.load %K[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
  scf.for %h = %c0 to %n step %c1 : i32 {
    %q = tile.load %Q[%h, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<128xf32>
    %row = tile.reshape %q : tensor<128xf32> -> tensor<1x128xf32>
    %all = tile.broadcast %row : tensor<1x128xf32> -> tensor<32x128xf32>
    %p = arith.mulf %k, %all : tensor<32x128xf32>
    %s = tile.reduce %p axis 1 : (tensor<32x128xf32>) -> tensor<32x1xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %line = tile.reshape %s : tensor<32x1xf32> -> tensor<32xf32>
    tile.store %line, %S[%h, %c0 : i32, i32] : tensor<32xf32>, !tile.view<2 x f32>
  }
  return
}

// So do rows by pointers that the loop moves on; places that change with the loop would take registers of their own.
// CHECK-LABEL: func.func @rows_beside_meetings
// CHECK: %[[FIRST:.*]] = tile.gather
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[ROW:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.gather
// CHECK: tile.reshape %[[ROW]]
// CHECK: scf.yield {{.*}}, %[[NEXT]]
// CHECK-LABEL: func.func @places_beside_meetings
// CHECK-NOT: tile.gather
// CHECK: scf.for
// CHECK: tile.gather
func.func @rows_beside_meetings(%K: !tile.ptr<f32>, %O: !tile.ptr<f32>, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<32x128xf32>
  %places = tile.iota : tensor<128xi32>
  %rows = tile.iota : tensor<32xi32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%state = %zero) -> (tensor<32x128xf32>) : i32 {
    %at = arith.muli %t, %c128 : i32
    %p = tile.ptr_add %K, %at : !tile.ptr<f32>, i32
    %k = tile.gather %p offsets %places : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %row = tile.reshape %k : tensor<128xf32> -> tensor<1x128xf32>
    %all = tile.broadcast %row : tensor<1x128xf32> -> tensor<32x128xf32>
    %next = arith.addf %state, %all : tensor<32x128xf32>
    %s = tile.reduce %next axis 1 : (tensor<32x128xf32>) -> tensor<32x1xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %line = tile.reshape %s : tensor<32x1xf32> -> tensor<32xf32>
    %o = tile.ptr_add %O, %at : !tile.ptr<f32>, i32
    tile.scatter %line, %o offsets %rows : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
    scf.yield %next : tensor<32x128xf32>
  }
  return
}
func.func @places_beside_meetings(%K: !tile.ptr<f32>, %O: !tile.ptr<f32>, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x128xf32>
  %i = tile.iota : tensor<128xi32>
  %rows = tile.iota : tensor<32xi32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%state = %zero) -> (tensor<32x128xf32>) : i32 {
    %turn = tile.splat %t : i32 -> tensor<128xi32>
    %places = arith.xori %i, %turn : tensor<128xi32>
    %k = tile.gather %K offsets %places : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %row = tile.reshape %k : tensor<128xf32> -> tensor<1x128xf32>
    %all = tile.broadcast %row : tensor<1x128xf32> -> tensor<32x128xf32>
    %next = arith.addf %state, %all : tensor<32x128xf32>
    %s = tile.reduce %next axis 1 : (tensor<32x128xf32>) -> tensor<32x1xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %line = tile.reshape %s : tensor<32x1xf32> -> tensor<32xf32>
    %o = tile.ptr_add %O, %t : !tile.ptr<f32>, i32
    tile.scatter %line, %o offsets %rows : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
    scf.yield %next : tensor<32x128xf32>
  }
  return
}

// Boxes that are left where they were read come early, too, if the loop steps over them: running sums down columns, in
// place. Not where the next box begins in this one.
// CHECK-LABEL: func.func @in_place
// CHECK: %[[FIRST:.*]] = tile.load %arg0
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[NOW:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.load %arg0
// CHECK: tile.scan %[[NOW]]
// CHECK: tile.store
// CHECK: scf.yield {{.*}}, %[[NEXT]]
// CHECK-LABEL: func.func @overlapping
// CHECK: scf.for
// CHECK: %[[NOW:.*]] = tile.load %arg0
// CHECK: tile.scan %[[NOW]]
func.func @in_place(%S: !tile.view<2 x i32>, %n: i32, %x: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0> : tensor<1x32xi32>
  %last = scf.for %i = %c0 to %n step %c32 iter_args(%before = %zero) -> (tensor<1x32xi32>) : i32 {
    %p = tile.load %S[%i, %x : i32, i32] : !tile.view<2 x i32> -> tensor<32x32xi32>
    %s = tile.scan %p axis 0 : (tensor<32x32xi32>) -> tensor<32x32xi32> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    %all = tile.broadcast %before : tensor<1x32xi32> -> tensor<32x32xi32>
    %r = arith.addi %s, %all : tensor<32x32xi32>
    tile.store %r, %S[%i, %x : i32, i32] : tensor<32x32xi32>, !tile.view<2 x i32>
    %t = tile.extract %r [31, 0] : tensor<32x32xi32> -> tensor<1x32xi32>
    scf.yield %t : tensor<1x32xi32>
  }
  return
}
func.func @overlapping(%S: !tile.view<2 x i32>, %n: i32, %x: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  scf.for %i = %c0 to %n step %c16 : i32 {
    %p = tile.load %S[%i, %x : i32, i32] : !tile.view<2 x i32> -> tensor<32x32xi32>
    %s = tile.scan %p axis 0 : (tensor<32x32xi32>) -> tensor<32x32xi32> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    tile.store %s, %S[%i, %x : i32, i32] : tensor<32x32xi32>, !tile.view<2 x i32>
  }
  return
}
