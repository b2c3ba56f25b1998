// Rows that are combined in blocks lie in registers of one thread, so that no warp waits for another.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers | FileCheck %s

// CHECK-LABEL: func.func @halved
// CHECK: tile.load {{.*}} tensor<32x32x4xi8, #tile.layout<32x32x4 regs [2:4*1, 0:8*1] lanes [1:32*1] warps [0:4*8]>>
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @halved(%x: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 16, 4>, tile.stride_multiple_of = array<i32: 16, 4, 1>}, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<32x32x4xi8>
  %f = arith.uitofp %v : tensor<32x32x4xi8> to tensor<32x32x4xf32>
  %cut = tile.reshape %f : tensor<32x32x4xf32> -> tensor<16x2x32x4xf32>
  %sum = tile.reduce %cut axis 1 : (tensor<16x2x32x4xf32>) -> tensor<16x1x32x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %w = arith.addf %a, %b : f32
    tile.yield %w : f32
  }
  %rows = tile.reshape %sum : tensor<16x1x32x4xf32> -> tensor<16x32x4xf32>
  tile.store %rows, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<16x32x4xf32>, !tile.view<3xf32>
  return
}

// -----
// Without such blocks: warps take turns, as elsewhere.
// CHECK-LABEL: func.func @plain
// CHECK: tile.load {{.*}} tensor<32x32x4xi8, #tile.layout<32x32x4 regs [2:4*1, 0:8*4] lanes [1:32*1] warps [0:4*1]>>
func.func @plain(%x: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 16, 4>, tile.stride_multiple_of = array<i32: 16, 4, 1>}, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<32x32x4xi8>
  %f = arith.uitofp %v : tensor<32x32x4xi8> to tensor<32x32x4xf32>
  tile.store %f, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<32x32x4xf32>, !tile.view<3xf32>
  return
}
