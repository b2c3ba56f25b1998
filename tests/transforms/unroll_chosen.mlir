// Loops that choose rows or columns of a carried tile by their own number become straight-line code.
// RUN: tile-opt %s -split-input-file -tile-unroll-chosen -canonicalize | FileCheck %s

// An elimination of 8 x 8: every body knows its column.
// CHECK-LABEL: func.func @eliminate
// CHECK-NOT: scf.for
// CHECK-COUNT-8: tile.reduce
// CHECK-NOT: {{scf.for|tile.reduce}}
// CHECK: tile.store
func.func @eliminate(%x: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x8xf32>
  %i = tile.iota : tensor<8xi32>
  %col = tile.reshape %i : tensor<8xi32> -> tensor<1x8xi32>
  %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%m = %a) -> (tensor<8x8xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<1x8xi32>
    %is = arith.cmpi eq, %col, %at : tensor<1x8xi32>
    %here = tile.broadcast %is : tensor<1x8xi1> -> tensor<8x8xi1>
    %chosen = arith.select %here, %m, %zero : tensor<8x8xi1>, tensor<8x8xf32>
    %column = tile.reduce %chosen axis 1 : (tensor<8x8xf32>) -> tensor<8x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.yield %t : f32
    }
    %all = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x8xf32>
    %next = arith.subf %m, %all : tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  }
  tile.store %r, %x[%c0, %c0 : i32, i32] : tensor<8x8xf32>, !tile.view<2xf32>
  return
}

// -----
// Not: a place that is not the loop's number; an end that the launch tells; loops that say how they run.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: scf.for
func.func @stays(%x: !tile.view<2xf32>, %place: i32, %end: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x8xf32>
  %i = tile.iota : tensor<8xi32>
  %col = tile.reshape %i : tensor<8xi32> -> tensor<1x8xi32>
  %elsewhere = scf.for %k = %c0 to %c8 step %c1 iter_args(%m = %a) -> (tensor<8x8xf32>) : i32 {
    %at = tile.splat %place : i32 -> tensor<1x8xi32>
    %is = arith.cmpi eq, %col, %at : tensor<1x8xi32>
    %here = tile.broadcast %is : tensor<1x8xi1> -> tensor<8x8xi1>
    %chosen = arith.select %here, %m, %zero : tensor<8x8xi1>, tensor<8x8xf32>
    %column = tile.reduce %chosen axis 1 : (tensor<8x8xf32>) -> tensor<8x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.yield %t : f32
    }
    %all = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x8xf32>
    %next = arith.subf %m, %all : tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  }
  %some = scf.for %k = %c0 to %end step %c1 iter_args(%m = %elsewhere) -> (tensor<8x8xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<1x8xi32>
    %is = arith.cmpi eq, %col, %at : tensor<1x8xi32>
    %here = tile.broadcast %is : tensor<1x8xi1> -> tensor<8x8xi1>
    %chosen = arith.select %here, %m, %zero : tensor<8x8xi1>, tensor<8x8xf32>
    %column = tile.reduce %chosen axis 1 : (tensor<8x8xf32>) -> tensor<8x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.yield %t : f32
    }
    %all = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x8xf32>
    %next = arith.subf %m, %all : tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  }
  %asked = scf.for %k = %c0 to %c8 step %c1 iter_args(%m = %some) -> (tensor<8x8xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<1x8xi32>
    %is = arith.cmpi eq, %col, %at : tensor<1x8xi32>
    %here = tile.broadcast %is : tensor<1x8xi1> -> tensor<8x8xi1>
    %chosen = arith.select %here, %m, %zero : tensor<8x8xi1>, tensor<8x8xf32>
    %column = tile.reduce %chosen axis 1 : (tensor<8x8xf32>) -> tensor<8x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.yield %t : f32
    }
    %all = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x8xf32>
    %next = arith.subf %m, %all : tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  } {tile.unroll = 2 : i32}
  tile.store %asked, %x[%c0, %c0 : i32, i32] : tensor<8x8xf32>, !tile.view<2xf32>
  return
}
