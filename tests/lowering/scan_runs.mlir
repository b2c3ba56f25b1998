// Scans whose steps are much work (functions) lie in long runs of a lane: fewer steps between lanes and for what comes
// before a run. Cheap ones keep pieces of 16 bytes.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: @logarithms
// CHECK: tile.load {{.*}} tensor<4x256xf32, #tile.layout<4x256 regs [1:8*1] lanes [1:32*8] warps [0:4*1]>>
// CHECK-NOT: tile.convert
func.func @logarithms(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x256xf32>
  %s = tile.scan %a axis 1 : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%p: f32, %q: f32):
    %most = arith.maximumf %p, %q : f32
    %least = arith.minimumf %p, %q : f32
    %d = arith.subf %least, %most : f32
    %e = math.exp %d : f32
    %l = math.log1p %e : f32
    %r = arith.addf %most, %l : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x256xf32>, !tile.view<2xf32>
  return
}

// -----
// CHECK-LABEL: @sums
// CHECK: tile.load {{.*}} tensor<4x256xf32, #tile.layout<4x256 regs [1:4*1, 1:2*128] lanes [1:32*4] warps [0:4*1]>>
func.func @sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x256xf32>
  %s = tile.scan %a axis 1 : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x256xf32>, !tile.view<2xf32>
  return
}

// -----

// Short axes and odd sizes: two lanes have a row of 21, and the 52 rows lie in the other lanes and the warps. Warps along
// the axis, because they do not divide the rows, would meet in shared memory.
// CHECK-LABEL: @blocks_of_rows
// CHECK: tile.scan {{.*}} axis 2 : (tensor<4x13x21xi8, #tile.layout<4x13x21 regs [2:11*1] lanes [1:16*1, 2:2*11] warps [0:4*1]>>)
func.func @blocks_of_rows(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<4x273xi8>
  %b = tile.reshape %a : tensor<4x273xi8> -> tensor<4x13x21xi8>
  %s = tile.scan %b axis 2 : (tensor<4x13x21xi8>) -> tensor<4x13x21xi8> {
  ^bb0(%p: i8, %q: i8):
    %r = arith.maxui %p, %q : i8
    tile.yield %r : i8
  }
  %t = tile.reshape %s : tensor<4x13x21xi8> -> tensor<4x273xi8>
  tile.store %t, %x[%c0, %c0 : i32, i32] : tensor<4x273xi8>, !tile.view<2xi8>
  return
}

// -----

// The rows of a dim are in as many warps as divide the number of all: of 24 by 2, 12 for 7 rows, and not 8.
// CHECK-LABEL: @many_warps
// CHECK: tile.scan {{.*}} axis 0 : (tensor<40x7x5xi32, #tile.layout<40x7x5 regs [0:5*1] lanes [2:4*1, 0:8*5] warps [2:2*4, 1:12*1]>>)
func.func @many_warps(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 24 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<40x35xi32>
  %b = tile.reshape %a : tensor<40x35xi32> -> tensor<40x7x5xi32>
  %s = tile.scan %b axis 0 : (tensor<40x7x5xi32>) -> tensor<40x7x5xi32> {
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    tile.yield %r : i32
  }
  %t = tile.reshape %s : tensor<40x7x5xi32> -> tensor<40x35xi32>
  tile.store %t, %x[%c0, %c0 : i32, i32] : tensor<40x35xi32>, !tile.view<2xi32>
  return
}

// -----

// Columns are neighbours in memory where the tile is read, rows where it is stored: as it is read, a row would lie in
// all warps, and threads would add up what each of them has, for every run. It is scanned as it will be stored.
// CHECK-LABEL: @turned
// CHECK: tile.load {{.*}} tensor<64x256xf32, #tile.layout<64x256 regs [0:4*1, 1:16*16] lanes [0:16*4, 1:2*1] warps [1:8*2]>>
// CHECK: tile.convert
// CHECK: tile.scan {{.*}} axis 1 : (tensor<64x256xf32, #tile.layout<64x256 regs [1:4*1, 1:2*128, 0:8*8] lanes [1:32*4] warps [0:8*1]>>)
// CHECK-NOT: tile.convert
func.func @turned(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 16>, tile.dim_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x256xf32>
  %s = tile.scan %a axis 1 : (tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<64x256xf32>, !tile.view<2xf32>
  return
}
