// Promises and debugging.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @hints(
func.func @hints(%i: i32, %t: tensor<4xi64>, %c: i1, %m: tensor<4xi1>, %x: tensor<4xf32>) {
  // CHECK: tile.assume %{{.*}} multiple_of 16 : i32
  %0 = tile.assume %i multiple_of 16 : i32
  // CHECK: tile.assume %{{.*}} multiple_of 8 : tensor<4xi64>
  %1 = tile.assume %t multiple_of 8 : tensor<4xi64>
  // CHECK: tile.assume_true %{{.*}}
  tile.assume_true %c
  // CHECK: tile.print "x = " %{{.*}} : tensor<4xf32>
  tile.print "x = " %x : tensor<4xf32>
  // CHECK: tile.print "u = " %{{.*}} unsigned : tensor<4xi64>
  tile.print "u = " %t unsigned : tensor<4xi64>
  // CHECK: tile.assert %{{.*}}, "in range" : tensor<4xi1>
  tile.assert %m, "in range" : tensor<4xi1>
  return
}

// -----

func.func @zero(%i: i32) {
  // expected-error @+1 {{attribute 'multiple_of' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = tile.assume %i multiple_of 0 : i32
  return
}

// -----

func.func @float(%x: f32) {
  // expected-error @+1 {{operand #0 must be integer}}
  %0 = tile.assume %x multiple_of 2 : f32
  return
}

// -----

func.func @condition(%x: tensor<4xi8>) {
  // expected-error @+1 {{operand #0 must be 1-bit signless integer or tile}}
  tile.assert %x, "not a condition" : tensor<4xi8>
  return
}

// -----

func.func @print(%p: !tile.ptr<f32>) {
  // expected-error @+1 {{operand #0 must be number}}
  tile.print "pointer" %p : !tile.ptr<f32>
  return
}
