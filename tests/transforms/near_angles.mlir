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
