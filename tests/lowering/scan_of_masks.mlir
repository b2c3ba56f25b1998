// Counts of what a mask selects, along the rows of a tile: a thread holds a run of rows, although the mask itself is
// cheap and is computed again wherever it is wanted.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK: tile.scan {{.*}} axis 0 : (tensor<512x16xi32, #tile.layout<512x16 regs [1:2*1, 0:32*1]
func.func @ranks(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>}, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<512xi32>
  %column = tile.reshape %a : tensor<512xi32> -> tensor<512x1xi32>
  %n = tile.iota : tensor<16xi32>
  %row = tile.reshape %n : tensor<16xi32> -> tensor<1x16xi32>
  %l = tile.broadcast %column : tensor<512x1xi32> -> tensor<512x16xi32>
  %r = tile.broadcast %row : tensor<1x16xi32> -> tensor<512x16xi32>
  %m = arith.cmpi eq, %l, %r : tensor<512x16xi32>
  %ones = arith.extui %m : tensor<512x16xi1> to tensor<512x16xi32>
  %s = tile.scan %ones axis 0 : (tensor<512x16xi32>) -> tensor<512x16xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.addi %p, %q : i32
    tile.yield %t : i32
  }
  %z = arith.constant dense<0> : tensor<512x16xi32>
  %chosen = arith.select %m, %s, %z : tensor<512x16xi1>, tensor<512x16xi32>
  %place = tile.reduce %chosen axis 1 : (tensor<512x16xi32>) -> tensor<512x1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.addi %p, %q : i32
    tile.yield %t : i32
  }
  %at = tile.reshape %place : tensor<512x1xi32> -> tensor<512xi32>
  tile.scatter %a, %y offsets %at : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
