// Small products in a loop whose threads combine what comes of them in every iteration: one warp has all of it in its
// registers, and waits for nobody. Launches of few programs have four: nothing else hides what one waits for.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90a | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90a --tile-few-programs | FileCheck %s --check-prefix=FEW

// CHECK-LABEL: func.func @squarings
// CHECK-SAME: tile.num_warps = 1 : i32
// FEW-LABEL: func.func @squarings
// FEW-SAME: tile.num_warps = 4 : i32
func.func @squarings(%p: !tile.view<2xf16>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %first = tile.load %p[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<32x32xf16>) : i32 {
    %d = tile.dot %x, %x, %zero : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %s = tile.reduce %d axis 1 : (tensor<32x32xf32>) -> tensor<32x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tile.yield %m : f32
    }
    %t = tile.broadcast %s : tensor<32x1xf32> -> tensor<32x32xf32>
    %q = arith.divf %d, %t : tensor<32x32xf32>
    %h = arith.truncf %q : tensor<32x32xf32> to tensor<32x32xf16>
    scf.yield %h : tensor<32x32xf16>
  }
  %e = arith.extf %r : tensor<32x32xf16> to tensor<32x32xf32>
  tile.store %e, %y[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----

// What is loaded in every iteration is loaded by more warps.
// CHECK-LABEL: func.func @loads
// CHECK-SAME: tile.num_warps = 4 : i32
func.func @loads(%p: !tile.view<2xf16>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x1xf32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %none) -> (tensor<32x1xf32>) : i32 {
    %x = tile.load %p[%c0, %i : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
    %d = tile.dot %x, %x, %zero : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %s = tile.reduce %d axis 1 : (tensor<32x32xf32>) -> tensor<32x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tile.yield %m : f32
    }
    %t = arith.addf %sum, %s : tensor<32x1xf32>
    scf.yield %t : tensor<32x1xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<32x1xf32>, !tile.view<2xf32>
  return
}
