// Places that a loop moves on from rows found in front of it: the rows are exchanged once, in front of the loop.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers | FileCheck %s

// CHECK-LABEL: func.func @slices
// CHECK: tile.convert
// CHECK: scf.for
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @slices(%start: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<4x32xf32>
  %s = tile.iota : tensor<4xi32>
  %from = tile.gather %start offsets %s : tensor<4xi32> : !tile.ptr<i32> -> tensor<4xi32>
  %column = tile.reshape %from : tensor<4xi32> -> tensor<4x1xi32>
  %lane = tile.iota : tensor<32xi32>
  %row = tile.reshape %lane : tensor<32xi32> -> tensor<1x32xi32>
  %lanes = tile.broadcast %row : tensor<1x32xi32> -> tensor<4x32xi32>
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<4x32xf32>) : i32 {
    %by = arith.muli %j, %c32 : i32
    %far = tile.splat %by : i32 -> tensor<4x1xi32>
    %p = arith.addi %column, %far : tensor<4x1xi32>
    %wide = tile.broadcast %p : tensor<4x1xi32> -> tensor<4x32xi32>
    %q = arith.addi %wide, %lanes : tensor<4x32xi32>
    %v = tile.gather %x offsets %q : tensor<4x32xi32> : !tile.ptr<f32> -> tensor<4x32xf32>
    %t = arith.addf %a, %v : tensor<4x32xf32>
    scf.yield %t : tensor<4x32xf32>
  }
  tile.store %sum, %y[%c0, %c0 : i32, i32] : tensor<4x32xf32>, !tile.view<2xf32>
  return
}
