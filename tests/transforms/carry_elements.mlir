// Integers that loops and branches hand on as tiles of one element are handed on as scalars.
// RUN: tile-opt %s -split-input-file -tile-carry-elements -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @counted(
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (i32)
// CHECK: %[[TILE:.*]] = tile.splat %[[N]] : i32 -> tensor<1xi32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[TILE]]
// CHECK: %[[ITEM:.*]] = tile.item %[[NEXT]]
// CHECK: scf.yield %[[ITEM]] : i32
// CHECK: return %[[R]] : i32
func.func @counted(%p: !tile.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<1xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<1xi32>) : i32 {
    %at = tile.ptr_add %p, %i : !tile.ptr<i32>, i32
    %x = tile.gather %at : !tile.ptr<i32> -> i32
    %t = tile.splat %x : i32 -> tensor<1xi32>
    %next = arith.addi %s, %t : tensor<1xi32>
    scf.yield %next : tensor<1xi32>
  }
  %item = tile.item %r : tensor<1xi32> -> i32
  return %item : i32
}

// -----

// Of a loop with a condition what comes in and what goes on are different values; the branch hands one on, too. A tile
// of several elements, and a float, stay.
// CHECK-LABEL: func.func @searched(
// CHECK: scf.while (%[[AT:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, tensor<2xi32>, tensor<1xf32>) -> (i32, tensor<2xi32>, tensor<1xf32>)
// CHECK: arith.cmpi slt, %[[AT]]
// CHECK: scf.if {{.*}} -> (i32)
func.func @searched(%p: !tile.ptr<i32>, %n: i32, %two: tensor<2xi32>, %f: tensor<1xf32>) -> (i32, tensor<2xi32>, tensor<1xf32>) {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0> : tensor<1x1xi32>
  %one = arith.constant dense<1> : tensor<1x1xi32>
  %r:3 = scf.while (%at = %zero, %t = %two, %g = %f) : (tensor<1x1xi32>, tensor<2xi32>, tensor<1xf32>) -> (tensor<1x1xi32>, tensor<2xi32>, tensor<1xf32>) {
    %i = tile.item %at : tensor<1x1xi32> -> i32
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %at, %t, %g : tensor<1x1xi32>, tensor<2xi32>, tensor<1xf32>
  } do {
  ^bb0(%at: tensor<1x1xi32>, %t: tensor<2xi32>, %g: tensor<1xf32>):
    %i = tile.item %at : tensor<1x1xi32> -> i32
    %place = tile.ptr_add %p, %i : !tile.ptr<i32>, i32
    %x = tile.gather %place : !tile.ptr<i32> -> i32
    %found = arith.cmpi eq, %x, %c0 : i32
    %next = scf.if %found -> (tensor<1x1xi32>) {
      %all = tile.splat %n : i32 -> tensor<1x1xi32>
      scf.yield %all : tensor<1x1xi32>
    } else {
      tile.scatter %i, %place : i32, !tile.ptr<i32>
      %further = arith.addi %at, %one : tensor<1x1xi32>
      scf.yield %further : tensor<1x1xi32>
    }
    %t2 = arith.addi %t, %t : tensor<2xi32>
    %g2 = arith.addf %g, %g : tensor<1xf32>
    scf.yield %next, %t2, %g2 : tensor<1x1xi32>, tensor<2xi32>, tensor<1xf32>
  }
  %item = tile.item %r#0 : tensor<1x1xi32> -> i32
  return %item, %r#1, %r#2 : i32, tensor<2xi32>, tensor<1xf32>
}

// -----

// Beside products an integer that is a box of one element is read as a scalar, of any rank and with what stands for
// places outside of the view; a float stays a tile.
// CHECK-LABEL: func.func @loaded(
// CHECK: %[[N:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}} : i32, i32] pad 7.000000e+00 : <2xi32> -> i32
// CHECK: %[[M:.*]] = tile.load {{.*}} cache volatile : <2xi32> -> i32
// CHECK: %[[F:.*]] = tile.load {{.*}} : <2xf32> -> tensor<1xf32>
// CHECK: %[[S:.*]] = tile.item %[[F]]
// CHECK: return %[[N]], %[[M]], %[[S]]
func.func @loaded(%v: !tile.view<2xi32>, %x: !tile.view<2xf32>, %i: i32, %p: tensor<16x16xf16>, %q: tensor<16x16xf32>) -> (i32, i32, f32, tensor<16x16xf32>) {
  %a = tile.load %v[%i, %i : i32, i32] pad 7.0 : !tile.view<2xi32> -> tensor<1x1xi32>
  %n = tile.item %a : tensor<1x1xi32> -> i32
  %c = tile.load %v[%i, %i : i32, i32] cache volatile : !tile.view<2xi32> -> tensor<1xi32>
  %m = tile.item %c : tensor<1xi32> -> i32
  %b = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<1xf32>
  %s = tile.item %b : tensor<1xf32> -> f32
  %d = tile.dot %p, %p, %q : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  return %n, %m, %s, %d : i32, i32, f32, tensor<16x16xf32>
}

// -----

// CHECK-LABEL: func.func @no_product(
// CHECK: tile.load {{.*}} -> tensor<1xi32>
func.func @no_product(%v: !tile.view<1xi32>, %i: i32) -> i32 {
  %a = tile.load %v[%i : i32] : !tile.view<1xi32> -> tensor<1xi32>
  %n = tile.item %a : tensor<1xi32> -> i32
  return %n : i32
}
