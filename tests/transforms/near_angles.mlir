// Sines of whole numbers of a small range times constants are marked: their quadrant is found with f32. Others, and
// sines of f64, are left alone.
// RUN: tile-opt %s -split-input-file --tile-near-angles | FileCheck %s

// CHECK-LABEL: func.func @twiddles
// CHECK: math.cos %{{.*}} {tile.near}
// CHECK: math.sin %{{.*}} {tile.near}
func.func @twiddles(%n: i32) -> (tensor<64xf32>, tensor<64xf32>) {
  %c16 = arith.constant dense<16> : tensor<64xi32>
  %step = arith.constant dense<3.926991e-01> : tensor<64xf32>
  %i = tile.iota : tensor<64xi32>
  %k = arith.remsi %i, %c16 : tensor<64xi32>
  %f = arith.sitofp %k : tensor<64xi32> to tensor<64xf32>
  %angle = arith.mulf %f, %step : tensor<64xf32>
  %c = math.cos %angle : tensor<64xf32>
  %minus = arith.negf %angle : tensor<64xf32>
  %s = math.sin %minus : tensor<64xf32>
  return %c, %s : tensor<64xf32>, tensor<64xf32>
}

// -----

// CHECK-LABEL: func.func @positions
// CHECK-NOT: tile.near
// CHECK: return
func.func @positions(%n: i32, %x: tensor<64xf32>, %w: tensor<64xf64>) -> (f32, tensor<64xf32>, tensor<64xf64>) {
  %f = arith.sitofp %n : i32 to f32
  %s = math.sin %f : f32
  %t = math.cos %x : tensor<64xf32>
  %half = arith.constant dense<5.000000e-01> : tensor<64xf64>
  %u = math.sin %half : tensor<64xf64>
  return %s, %t, %u : f32, tensor<64xf32>, tensor<64xf64>
}

// -----

// Random numbers: 24 bits of a word, from 0 to 1.
// CHECK-LABEL: func.func @random
// CHECK: math.sin %{{.*}} {tile.near}
func.func @random(%word: tensor<64xi32>) -> tensor<64xf32> {
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %unit = arith.constant dense<5.9604644775390625E-8> : tensor<64xf32>
  %turn = arith.constant dense<6.28318548> : tensor<64xf32>
  %bits = arith.shrui %word, %c8 : tensor<64xi32>
  %f = arith.uitofp %bits : tensor<64xi32> to tensor<64xf32>
  %u = arith.mulf %f, %unit : tensor<64xf32>
  %angle = arith.mulf %u, %turn : tensor<64xf32>
  %s = math.sin %angle : tensor<64xf32>
  return %s : tensor<64xf32>
}

// -----

// Clamped, and what a loop carries and clamps; the smaller of a number and none may be the number, so that a bound from
// below alone says nothing; what a loop adds to may grow.
// CHECK-LABEL: func.func @clamped
// CHECK: math.sin %{{.*}} {tile.near}
// CHECK: scf.for
// CHECK: math.cos %{{.*}} {tile.near}
// CHECK: math.cos %{{[a-z0-9_]*}} :
// CHECK: math.tan %{{.*}} {tile.near}
// CHECK: math.sin %{{[a-z0-9_#]*}} :
func.func @clamped(%x: tensor<64xf32>, %y: tensor<64xf32>, %n: i32) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %less = arith.constant dense<-1.0> : tensor<64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %high = arith.minimumf %x, %one : tensor<64xf32>
  %both = arith.maxnumf %high, %less : tensor<64xf32>
  %s = math.sin %both : tensor<64xf32>
  %all:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %one, %sum = %less, %b = %one) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) : i32 {
    %c = math.cos %a : tensor<64xf32>
    %d = math.cos %b : tensor<64xf32>
    %moved = arith.addf %a, %y : tensor<64xf32>
    %most = arith.minnumf %moved, %one : tensor<64xf32>
    %next = arith.maxnumf %most, %less : tensor<64xf32>
    %more = arith.addf %b, %d : tensor<64xf32>
    scf.yield %next, %c, %more : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  %t = math.tan %all#0 : tensor<64xf32>
  %u = math.sin %all#2 : tensor<64xf32>
  return %s, %all#1, %t, %u : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----
// A flag that is converted with its sign is -1 or 0: the quotient may be 40000.
// CHECK-LABEL: func.func @flags
// CHECK: math.sin %{{[a-z0-9_]*}} :
// CHECK: math.sin %{{.*}} {tile.near}
func.func @flags(%b: tensor<64xi1>) -> (tensor<64xf32>, tensor<64xf32>) {
  %more = arith.constant dense<1.5> : tensor<64xf32>
  %all = arith.constant dense<20000.0> : tensor<64xf32>
  %s = arith.sitofp %b : tensor<64xi1> to tensor<64xf32>
  %t = arith.addf %s, %more : tensor<64xf32>
  %q = arith.divf %all, %t : tensor<64xf32>
  %far = math.sin %q : tensor<64xf32>
  %near = math.sin %s : tensor<64xf32>
  return %far, %near : tensor<64xf32>, tensor<64xf32>
}
