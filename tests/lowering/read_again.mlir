// Which rows a program gathers or adds to, wanted under another layout than they were read in: read once more instead of
// exchanged, so that no warp waits for another.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: tile.gather %arg1
// CHECK-NOT: tile.convert
// CHECK: return
func.func @rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}, %at: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %i = tile.iota : tensor<128xi32>
  %r = tile.gather %at offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  tile.store %r, %z[%c0 : i32] : tensor<128xi32>, !tile.view<1xi32>
  %c32 = arith.constant dense<32> : tensor<128xi32>
  %first = arith.muli %r, %c32 : tensor<128xi32>
  %column = tile.reshape %first : tensor<128xi32> -> tensor<128x1xi32>
  %rows = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %k : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<128x32xi32>
  %offsets = arith.addi %rows, %columns : tensor<128x32xi32>
  tile.scatter %v, %y offsets %offsets : tensor<128x32xi32> : tensor<128x32xf32>, !tile.ptr<f32>
  return
}

// -----
// Two reads one after the other would be waited for twice: these are exchanged.
// CHECK-LABEL: func.func @chained
// CHECK-COUNT-2: tile.gather
// CHECK-NOT: tile.gather
// CHECK: tile.convert
// CHECK: return
func.func @chained(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}, %at: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %i = tile.iota : tensor<128xi32>
  %s = tile.gather %at offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %r = tile.gather %at offsets %s : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  tile.store %r, %z[%c0 : i32] : tensor<128xi32>, !tile.view<1xi32>
  %c32 = arith.constant dense<32> : tensor<128xi32>
  %first = arith.muli %r, %c32 : tensor<128xi32>
  %column = tile.reshape %first : tensor<128xi32> -> tensor<128x1xi32>
  %rows = tile.broadcast %column : tensor<128x1xi32> -> tensor<128x32xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %k : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<128x32xi32>
  %offsets = arith.addi %rows, %columns : tensor<128x32xi32>
  tile.scatter %v, %y offsets %offsets : tensor<128x32xi32> : tensor<128x32xf32>, !tile.ptr<f32>
  return
}

// -----
// A column of a matrix of three, wanted along the rows of a tile: every warp would read all of it, a sector an element.
// CHECK-LABEL: func.func @strided
// CHECK: scf.for
// CHECK: tile.load %arg1{{.*}} tensor<128x1xf32, #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32]>>
// CHECK: tile.convert
// CHECK: scf.yield
func.func @strided(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 1, 1>, tile.dim_multiple_of = array<i32: 16, 1>}, %at: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 1, 1>, tile.dim_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x1xf32>
  %own = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x1xf32>
  %owns = tile.broadcast %own : tensor<64x1xf32> -> tensor<64x128xf32>
  %r = scf.for %j = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<64x1xf32>) : i32 {
    %c = tile.load %at[%j, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x1xf32>
    %row = tile.trans %c, [1, 0] : tensor<128x1xf32> -> tensor<1x128xf32>
    %rows = tile.broadcast %row : tensor<1x128xf32> -> tensor<64x128xf32>
    %d = arith.subf %owns, %rows : tensor<64x128xf32>
    %e = math.exp2 %d : tensor<64x128xf32>
    %s = tile.reduce %e axis 1 : (tensor<64x128xf32>) -> tensor<64x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.yield %t : f32
    }
    %next = arith.addf %acc, %s : tensor<64x1xf32>
    scf.yield %next : tensor<64x1xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x1xf32>, !tile.view<2xf32>
  return
}

// -----
// Factors of several heads, a vector of eight for every thread: one more access.
// CHECK-LABEL: func.func @heads
// CHECK-COUNT-1: tile.gather %arg1
// CHECK-NOT: tile.convert
// CHECK: return
func.func @heads(%x: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>, tile.dim_multiple_of = array<i32: 2, 8, 64>}, %factors: !tile.ptr<f16> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<2x8x64xf16>
  %i = tile.iota : tensor<512xi32>
  %at = tile.reshape %i : tensor<512xi32> -> tensor<8x64xi32>
  %f = tile.gather %factors offsets %at : tensor<8x64xi32> : !tile.ptr<f16> -> tensor<8x64xf16>
  %g = tile.reshape %f : tensor<8x64xf16> -> tensor<1x8x64xf16>
  %h = tile.broadcast %g : tensor<1x8x64xf16> -> tensor<2x8x64xf16>
  %p = arith.mulf %v, %h : tensor<2x8x64xf16>
  tile.store %p, %x[%c0, %c0, %c0 : i32, i32, i32] : tensor<2x8x64xf16>, !tile.view<3xf16>
  return
}
