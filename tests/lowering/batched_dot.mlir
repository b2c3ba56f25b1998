// Several products at once: the loop carries an accumulator for each of the matrices and never puts them together; boxes
// of several matrices are read matrix by matrix.
// RUN: tilec compile %s --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --implicit-check-not=.local
// RUN: tilec compile %s --target=sm_80 --stages=2 -e mlir:tile | FileCheck %s --check-prefix=TILE

// TILE: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<32x32xf32>, tensor<32x32xf32>)
// TILE-NOT: tile.cat
// TILE-COUNT-2: tile.dot
// TILE-NOT: tile.cat
// TILE: scf.yield
// TILE: return

// Four warps, two matrices of 32 x 32 x 32 each: 2 x 2 k steps x 2 blocks of 16 x 8 a warp, and what they read.
// CHECK-LABEL: .entry batched(
// CHECK: cp.async
// CHECK-COUNT-8: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: mma.sync
// CHECK: ret;
func.func @batched(%A: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 1, 16, 16>},
                   %B: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 1, 16, 16>},
                   %C: !tile.view<3xf32> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 1, 16, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<2x32x32xf32>
  %sum = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<2x32x32xf32>) : i32 {
    %a = tile.load %A[%c0, %c0, %k : i32, i32, i32] : !tile.view<3xf16> -> tensor<2x32x32xf16>
    %b = tile.load %B[%c0, %k, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<2x32x32xf16>
    %a0 = tile.extract %a [0, 0, 0] : tensor<2x32x32xf16> -> tensor<1x32x32xf16>
    %a1 = tile.extract %a [1, 0, 0] : tensor<2x32x32xf16> -> tensor<1x32x32xf16>
    %b0 = tile.extract %b [0, 0, 0] : tensor<2x32x32xf16> -> tensor<1x32x32xf16>
    %b1 = tile.extract %b [1, 0, 0] : tensor<2x32x32xf16> -> tensor<1x32x32xf16>
    %s0 = tile.extract %acc [0, 0, 0] : tensor<2x32x32xf32> -> tensor<1x32x32xf32>
    %s1 = tile.extract %acc [1, 0, 0] : tensor<2x32x32xf32> -> tensor<1x32x32xf32>
    %x0 = tile.reshape %a0 : tensor<1x32x32xf16> -> tensor<32x32xf16>
    %x1 = tile.reshape %a1 : tensor<1x32x32xf16> -> tensor<32x32xf16>
    %y0 = tile.reshape %b0 : tensor<1x32x32xf16> -> tensor<32x32xf16>
    %y1 = tile.reshape %b1 : tensor<1x32x32xf16> -> tensor<32x32xf16>
    %z0 = tile.reshape %s0 : tensor<1x32x32xf32> -> tensor<32x32xf32>
    %z1 = tile.reshape %s1 : tensor<1x32x32xf32> -> tensor<32x32xf32>
    %d0 = tile.dot %x0, %y0, %z0 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %d1 = tile.dot %x1, %y1, %z1 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %e0 = tile.reshape %d0 : tensor<32x32xf32> -> tensor<1x32x32xf32>
    %e1 = tile.reshape %d1 : tensor<32x32xf32> -> tensor<1x32x32xf32>
    %both = tile.cat %e0, %e1 axis 0 : tensor<1x32x32xf32>, tensor<1x32x32xf32> -> tensor<2x32x32xf32>
    scf.yield %both : tensor<2x32x32xf32>
  }
  tile.store %sum, %C[%c0, %c0, %c0 : i32, i32, i32] : tensor<2x32x32xf32>, !tile.view<3xf32>
  return
}
