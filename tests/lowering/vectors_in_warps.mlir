// A short vector that is scanned is in every warp as a whole: no warp waits for another while it is scanned, summed, or
// spread over the rows and columns of a tile, through bytes of the warp's own.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_80 -e mlir:gpu | FileCheck %s --check-prefix=LAYOUT

// CHECK-LABEL: .entry decay(
// CHECK-NOT: bar.sync
// CHECK: shfl.sync.up
// CHECK-NOT: bar.sync
// CHECK: bar.warp.sync
// CHECK-NOT: bar.sync
// CHECK: ret;
// LAYOUT: tile.scan {{.*}}tensor<64xf32, #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps [rep:4]>>
// LAYOUT-NOT: tile.barrier
// LAYOUT: tile.reshape {{.*}}tile.scratch = [[AT:[0-9]+]]
// LAYOUT: tile.reshape {{.*}}tile.scratch = [[AT]] :
func.func @decay(%g: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 64>}, %x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 64>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %g[%c0 : i32] : !tile.view<1xf32> -> tensor<64xf32>
  %s = tile.scan %v axis 0 : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %t = tile.reduce %v axis 0 : (tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %total = tile.item %t : tensor<1xf32> -> f32
  %row = tile.reshape %s : tensor<64xf32> -> tensor<64x1xf32>
  %column = tile.reshape %s : tensor<64xf32> -> tensor<1x64xf32>
  %rows = tile.broadcast %row : tensor<64x1xf32> -> tensor<64x64xf32>
  %columns = tile.broadcast %column : tensor<1x64xf32> -> tensor<64x64xf32>
  %d = arith.subf %rows, %columns : tensor<64x64xf32>
  %totals = tile.splat %total : f32 -> tensor<64x64xf32>
  %e = arith.mulf %d, %totals : tensor<64x64xf32>
  tile.store %e, %x[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
