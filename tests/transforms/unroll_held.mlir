// Loops that hold what they load for several iterations: as many bodies, so that nothing moves from register to register.
// RUN: tile-opt %s -split-input-file -tile-unroll-held | FileCheck %s

// Three bodies, each with the values that the one before it hands on; behind them a loop for what remains.
// CHECK-LABEL: func.func @three
// CHECK: %[[MAIN:.*]]:4 = scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{[a-z0-9_]*}})
// CHECK: %[[D:.*]] = tile.gather
// CHECK: %[[S1:.*]] = arith.addf %[[S]], %[[A]]
// CHECK: %[[E:.*]] = tile.gather
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[B]]
// CHECK: %[[F:.*]] = tile.gather
// CHECK: %[[S3:.*]] = arith.addf %[[S2]], %[[C]]
// CHECK: scf.yield %[[S3]], %[[D]], %[[E]], %[[F]]
// CHECK-NOT: tile.held
// CHECK: scf.for {{.*}} iter_args({{.*}} = %[[MAIN]]#0, {{.*}} = %[[MAIN]]#1
// CHECK: tile.gather
// CHECK-NOT: tile.gather
// CHECK: return
func.func @three(%V: !tile.ptr<f32>, %O: !tile.view<1 x f32>, %a: tensor<128xf32>, %b: tensor<128xf32>, %c: tensor<128xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %x = %a, %y = %b, %z = %c) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
    %p = tile.ptr_add %V, %i : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %t = arith.addf %s, %x : tensor<128xf32>
    scf.yield %t, %y, %z, %v : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  } {tile.held = 3 : i64}
  tile.store %r#0, %O[%c0 : i32] : tensor<128xf32>, !tile.view<1 x f32>
  return
}

// -----

// Iterations with registers for two only are long ones, each of which hides what it waits for; around another loop they
// are longer yet.
// CHECK-LABEL: func.func @two
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @two(%V: !tile.ptr<f32>, %O: !tile.view<1 x f32>, %a: tensor<128xf32>, %b: tensor<128xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %x = %a, %y = %b) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
    %p = tile.ptr_add %V, %i : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %t = arith.addf %s, %x : tensor<128xf32>
    scf.yield %t, %y, %v : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  } {tile.held = 2 : i64}
  tile.store %r#0, %O[%c0 : i32] : tensor<128xf32>, !tile.view<1 x f32>
  return
}
// CHECK-LABEL: func.func @around
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @around(%V: !tile.ptr<f32>, %O: !tile.view<1 x f32>, %a: tensor<128xf32>, %b: tensor<128xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<128xi32>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %x = %a, %y = %b) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
    %p = tile.ptr_add %V, %i : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%q = %s) -> (tensor<128xf32>) : i32 {
      %u = arith.addf %q, %x : tensor<128xf32>
      scf.yield %u : tensor<128xf32>
    }
    scf.yield %t, %y, %v : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  } {tile.held = 4 : i64}
  tile.store %r#0, %O[%c0 : i32] : tensor<128xf32>, !tile.view<1 x f32>
  return
}

// -----

// Counting down: all bodies load beside one place.
// CHECK-LABEL: func.func @down
// CHECK: scf.for %[[I:[a-z0-9]*]] =
// CHECK: arith.subi %{{.*}}, %[[I]] : i32
// CHECK: %[[AT1:.*]] = arith.subi %{{.*}}, %[[I]] : i32
// CHECK: %[[M1:.*]] = arith.constant -1 : i32
// CHECK: %[[B1:.*]] = arith.addi %[[AT1]], %[[M1]] : i32
// CHECK: tile.load %{{.*}}[%[[B1]] : i32]
// CHECK: %[[AT2:.*]] = arith.subi %{{.*}}, %[[I]] : i32
// CHECK: %[[M2:.*]] = arith.constant -2 : i32
// CHECK: %[[B2:.*]] = arith.addi %[[AT2]], %[[M2]] : i32
// CHECK: tile.load %{{.*}}[%[[B2]] : i32]
// CHECK: return
func.func @down(%V: !tile.view<1 x f32>, %O: !tile.view<1 x f32>, %a: tensor<128xf32>, %b: tensor<128xf32>, %c: tensor<128xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %x = %a, %y = %b, %z = %c) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
    %at = arith.subi %n, %i : i32
    %v = tile.load %V[%at : i32] : !tile.view<1 x f32> -> tensor<128xf32>
    %t = arith.addf %s, %x : tensor<128xf32>
    scf.yield %t, %y, %z, %v : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  } {tile.held = 3 : i64}
  tile.store %r#0, %O[%c0 : i32] : tensor<128xf32>, !tile.view<1 x f32>
  return
}
