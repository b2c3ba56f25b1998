// Rows shorter than a sector of memory (pairs), each thread with a run of them from a scan: lanes next to each other
// write rows next to each other, so that a warp sends whole sectors.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: @side_by_side

// CHECK: %[[PAIRS:.*]] = tile.cat {{.*}} -> tensor<1024x2xf32, #tile.layout<1024x2 regs [0:4*1, 0:2*512, 1:2*1] lanes [0:32*4] warps [0:4*128]>>
// CHECK: %[[TURNED:.*]] = tile.convert %[[PAIRS]] : {{.*}} -> tensor<1024x2xf32, #tile.layout<1024x2 regs [1:2*1, 0:8*128] lanes [0:32*1] warps [0:4*32]>>
// CHECK: tile.store %[[TURNED]]
func.func @side_by_side(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 2, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %s = tile.scan %v axis 0 : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    tile.yield %m : f32
  }
  %n = arith.negf %s : tensor<1024xf32>
  %sc = tile.reshape %s : tensor<1024xf32> -> tensor<1024x1xf32>
  %nc = tile.reshape %n : tensor<1024xf32> -> tensor<1024x1xf32>
  %pairs = tile.cat %sc, %nc axis 1 : tensor<1024x1xf32>, tensor<1024x1xf32> -> tensor<1024x2xf32>
  tile.store %pairs, %y[%c0, %c0 : i32, i32] : tensor<1024x2xf32>, !tile.view<2xf32>
  return
}

// -----
// Rows that are known to lie apart are sectors of their own, whichever thread writes them.
// CHECK-LABEL: @apart
// CHECK: tile.cat
// CHECK-NOT: tile.convert
// CHECK: tile.store
func.func @apart(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %s = tile.scan %v axis 0 : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    tile.yield %m : f32
  }
  %n = arith.negf %s : tensor<1024xf32>
  %sc = tile.reshape %s : tensor<1024xf32> -> tensor<1024x1xf32>
  %nc = tile.reshape %n : tensor<1024xf32> -> tensor<1024x1xf32>
  %pairs = tile.cat %sc, %nc axis 1 : tensor<1024x1xf32>, tensor<1024x1xf32> -> tensor<1024x2xf32>
  tile.store %pairs, %y[%c0, %c0 : i32, i32] : tensor<1024x2xf32>, !tile.view<2xf32>
  return
}
