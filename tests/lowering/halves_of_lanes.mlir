// Sums of several rows over lanes, in which the lanes share the work (halving.h).
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// 16 rows over the 32 lanes of a warp, eight rows at a time: 4 + 2 + 1 shuffles that halve the number of values, two
// rounds of one value, and 8 shuffles that fetch each sum from its lane. Five rounds of 16 would be 80 shuffles.
// CHECK-LABEL: .entry sums(
// CHECK-COUNT-34: shfl.sync
// CHECK-NOT: shfl
// CHECK: ret;
func.func @sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<16x128xf32>
  %r = tile.reduce %a axis 1 : (tensor<16x128xf32>) -> tensor<16x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    tile.yield %o : f32
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<16x1xf32>, !tile.view<2xf32>
  return
}

// Of two rows halving would save no quarter of the work: five rounds of both.
// CHECK-LABEL: .entry two_sums(
// CHECK-COUNT-10: shfl.sync.bfly
// CHECK-NOT: shfl
// CHECK: ret;
func.func @two_sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 2, 16>}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<2x128xf32>
  %r = tile.reduce %a axis 1 : (tensor<2x128xf32>) -> tensor<2x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    tile.yield %o : f32
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<2x1xf32>, !tile.view<2xf32>
  return
}
