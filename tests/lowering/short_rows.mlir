// Short rows that lanes would pad (colours of a pixel, coordinates of a point) lie in one thread each.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// Colours computed apart are put together, and columns cut, by naming registers.
// CHECK-LABEL: @colours
// CHECK: tile.load {{.*}} tensor<8x128x3xi8, #tile.layout<8x128x3 regs [2:3*1, 1:4*32, 0:2*4] lanes [1:32*1] warps [0:4*1]>>
// CHECK: tile.extract {{.*}} tensor<8x128x1xi8, #tile.layout<8x128x1 regs [1:4*32, 0:2*4] lanes [1:32*1] warps [0:4*1]>>
// CHECK-NOT: tile.convert
// CHECK: tile.store {{.*}} tensor<8x128x3xi8, #tile.layout<8x128x3 regs [2:3*1, 1:4*32, 0:2*4] lanes [1:32*1] warps [0:4*1]>>
func.func @colours(%x: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32}, %y: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32}, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %p = tile.load %x[%at, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<8x128x3xi8>
  %r = tile.extract %p [0, 0, 0] : tensor<8x128x3xi8> -> tensor<8x128x1xi8>
  %g = tile.extract %p [0, 0, 1] : tensor<8x128x3xi8> -> tensor<8x128x1xi8>
  %b = tile.extract %p [0, 0, 2] : tensor<8x128x3xi8> -> tensor<8x128x1xi8>
  %s = arith.addi %r, %g : tensor<8x128x1xi8>
  %t = arith.addi %b, %g : tensor<8x128x1xi8>
  %rg = tile.cat %s, %g axis 2 : tensor<8x128x1xi8>, tensor<8x128x1xi8> -> tensor<8x128x2xi8>
  %rgb = tile.cat %rg, %t axis 2 : tensor<8x128x2xi8>, tensor<8x128x1xi8> -> tensor<8x128x3xi8>
  tile.store %rgb, %y[%at, %c0, %c0 : i32, i32, i32] : tensor<8x128x3xi8>, !tile.view<3xi8>
  return
}

// -----
// Fewer rows than threads are shared by lanes.
// CHECK-LABEL: @few
// CHECK: tile.load {{.*}} lanes [1:4*1, 0:8*1]
func.func @few(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %p = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x3xf32>
  tile.store %p, %y[%c0, %c0 : i32, i32] : tensor<64x3xf32>, !tile.view<2xf32>
  return
}

// -----
// Dims that no number of lanes divides lie whole in a thread, where smaller pieces of whole lines leave them to it.
// CHECK-LABEL: @matrices
// CHECK: tile.load {{.*}} tensor<3x3x64xf32, #tile.layout<3x3x64 regs [1:3*1, 0:3*1] lanes [2:32*1] warps [2:2*32]>>
func.func @matrices(%x: !tile.view<3xf32> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>}, %y: !tile.view<3xf32>, %at: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %p = tile.load %x[%c0, %c0, %at : i32, i32, i32] : !tile.view<3xf32> -> tensor<3x3x64xf32>
  tile.store %p, %y[%c0, %c0, %at : i32, i32, i32] : tensor<3x3x64xf32>, !tile.view<3xf32>
  return
}

// -----
// Pieces of 16 bytes where smaller ones would not be whole lines, or leave threads without elements too.
// CHECK-LABEL: @too_short
// CHECK: tile.load {{.*}} tensor<3x24xf32, #tile.layout<3x24 regs [1:2*1, 1:2*16]
func.func @too_short(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>, %at: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %p = tile.load %x[%c0, %at : i32, i32] : !tile.view<2xf32> -> tensor<3x24xf32>
  tile.store %p, %y[%c0, %at : i32, i32] : tensor<3x24xf32>, !tile.view<2xf32>
  return
}
