// Reductions across warps: lanes share what goes into the table, threads read from it what their layout of the result
// wants.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s --check-prefix=LAYOUT

// Sums of columns that are stored. Four lanes of a column, four columns a thread: 2 + 1 shuffles, each lane keeps one
// sum. Behind the table a thread reads the parts of one element.
// LAYOUT-LABEL: func.func @stored
// LAYOUT: tile.reduce {{.*}} -> tensor<1x32xf32, #tile.layout<1x32 regs []
// LAYOUT-NOT: tile.convert
// CHECK-LABEL: .entry stored
// CHECK-COUNT-3: shfl.sync.bfly
// CHECK-NOT: shfl
// CHECK: st.shared.b32
// CHECK-NOT: st.shared
// CHECK: bar.sync
// CHECK: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// CHECK: st.global.b32
// CHECK-NOT: st.global
// CHECK: ret;
func.func @stored(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %s = tile.reduce %v axis 0 : (tensor<128x32xf32>) -> tensor<1x32xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %t = math.absf %s : tensor<1x32xf32>
  tile.store %t, %y[%c0, %c0 : i32, i32] : tensor<1x32xf32>, !tile.view<2xf32>
  return
}

// -----
// Maxima that go back to the rows they are of: every thread reads those of its own columns.
// LAYOUT-LABEL: func.func @spread
// LAYOUT: tile.reduce {{.*}} -> tensor<1x32xf32, #tile.layout<1x32 regs [1:4*1]
// LAYOUT-NOT: tile.convert
// CHECK-LABEL: .entry spread
// CHECK-COUNT-3: shfl.sync.bfly
// CHECK-NOT: shfl
// CHECK: bar.sync
// CHECK-COUNT-4: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// CHECK: ret;
func.func @spread(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %s = tile.reduce %v axis 0 : (tensor<128x32xf32>) -> tensor<1x32xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maxnumf %p, %q : f32
    tile.yield %r : f32
  }
  %b = tile.broadcast %s : tensor<1x32xf32> -> tensor<128x32xf32>
  %d = arith.subf %v, %b : tensor<128x32xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<128x32xf32>, !tile.view<2xf32>
  return
}

// -----
// A combiner that depends on which of two comes first is not shared.
// CHECK-LABEL: .entry ordered
// CHECK-COUNT-8: shfl.sync.bfly
// CHECK-NOT: shfl
// CHECK: bar.sync
// CHECK: ret;
func.func @ordered(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 128, 32>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %s = tile.reduce %v axis 0 : (tensor<128x32xf32>) -> tensor<1x32xf32> {
  ^bb0(%p: f32, %q: f32):
    %half = arith.constant 0.5 : f32
    %h = arith.mulf %p, %half : f32
    %r = arith.addf %h, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<1x32xf32>, !tile.view<2xf32>
  return
}

// -----
// Threads with neighbours of the result write and read these in vectors: a table for each part of the axis, not a place
// for each element. Two words of a warp's threads never meet in one bank.
// CHECK-LABEL: .entry neighbours
// CHECK-NOT: shfl
// CHECK: st.shared.v4.b32
// CHECK-NOT: st.shared
// CHECK: bar.sync
// CHECK-COUNT-4: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// CHECK: ret;
func.func @neighbours(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 128, 1>, tile.dim_multiple_of = array<i32: 64, 128>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 128, 1>, tile.dim_multiple_of = array<i32: 64, 128>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %s = tile.reduce %v axis 0 : (tensor<64x128xf32>) -> tensor<1x128xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %b = tile.broadcast %s : tensor<1x128xf32> -> tensor<64x128xf32>
  %d = arith.subf %v, %b : tensor<64x128xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----
// Sums of columns of which a thread wants eight: they are read and combined four at a time, so that the parts of all
// are not alive at once.
// CHECK-LABEL: .entry eight
// CHECK: bar.sync
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK: add.f32
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK: add.f32
// CHECK: ld.shared.v4.b32
// CHECK: ret;
func.func @eight(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 128, 16>}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 128, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %h = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<128x16xf16>
  %v = arith.extf %h : tensor<128x16xf16> to tensor<128x16xf32>
  %s = tile.reduce %v axis 0 : (tensor<128x16xf32>) -> tensor<1x16xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %b = tile.broadcast %s : tensor<1x16xf32> -> tensor<128x16xf32>
  %d = arith.subf %v, %b : tensor<128x16xf32>
  %e = arith.truncf %d : tensor<128x16xf32> to tensor<128x16xf16>
  tile.store %e, %y[%c0, %c0 : i32, i32] : tensor<128x16xf16>, !tile.view<2xf16>
  return
}
