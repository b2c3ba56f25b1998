// Products of single warps beside sums along the rows they multiply: a thread has runs of rows for the sums, and what
// the products need passes within the warp, by matrices of 8x8. A loop's accumulators of whole warpgroups keep their
// layout from iteration to iteration.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-assign-layouts -canonicalize -cse | FileCheck %s --check-prefix=LAYOUT
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-stage -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// LAYOUT-LABEL: func.func @chunk
// LAYOUT: tile.smem_load
// LAYOUT: tile.reduce {{.*}}tensor<4x16x64xf32, #tile.layout<4x16x64 regs [2:2*1, 1:16*1] lanes [2:32*2] warps [0:4*1]>>) -> tensor<4x1x64xf32
// LAYOUT: tile.batch_mma
// LAYOUT: scf.for {{.*}} iter_args(%[[ACC:[a-z0-9]+]] =
// LAYOUT-NOT: tile.convert
// LAYOUT: tile.mma wgmma_f16 {{.*}}%[[ACC]]
// LAYOUT-NOT: tile.convert
// LAYOUT: scf.yield
// CHECK-LABEL: .entry chunk(
// CHECK: ldmatrix.sync
// CHECK: mma.sync.aligned.m16n8k16
// CHECK: ret;
func.func @chunk(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 64, 1>, tile.dim_multiple_of = array<i32: 64, 64>},
                 %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 64, 1>, tile.dim_multiple_of = array<i32: 64, 64>},
                 %s: !tile.view<3xf32>, %p: !tile.view<3xf32>, %z: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %tile = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
  %blocks = tile.reshape %tile : tensor<64x64xf16> -> tensor<4x16x64xf16>
  %wide = arith.extf %blocks : tensor<4x16x64xf16> to tensor<4x16x64xf32>
  %square = arith.mulf %wide, %wide : tensor<4x16x64xf32>
  %sum = tile.reduce %square axis 1 : (tensor<4x16x64xf32>) -> tensor<4x1x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  tile.store %sum, %s[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x1x64xf32>, !tile.view<3xf32>
  %half = arith.truncf %square : tensor<4x16x64xf32> to tensor<4x16x64xf16>
  %turned = tile.trans %half, [0, 2, 1] : tensor<4x16x64xf16> -> tensor<4x64x16xf16>
  %d = tile.batch_dot %half, %turned, %zero : tensor<4x16x64xf16>, tensor<4x64x16xf16> -> tensor<4x16x16xf32>
  tile.store %d, %p[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x16x16xf32>, !tile.view<3xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %b = tile.load %y[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %e = tile.dot %tile, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %r, %z[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
