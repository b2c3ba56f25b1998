// Of an operand that several products read, one after the other, threads keep no more than a few registers: they read it
// again.
// RUN: tilec compile %s --target=sm_80 --emit=ptx | FileCheck %s

// CHECK-LABEL: .entry again(
// CHECK-COUNT-64: ldmatrix.sync.aligned.m8n8.x4.trans
// CHECK-NOT: x4.trans
// CHECK: ret;
func.func @again(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>},
                 %w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>},
                 %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x128xf32>
  %b = tile.load %w[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16>
  %a0 = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %a1 = tile.load %x[%c64, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %p0 = tile.dot %a0, %b, %zero : tensor<16x64xf16>, tensor<64x128xf16> -> tensor<16x128xf32>
  %p1 = tile.dot %a1, %b, %zero : tensor<16x64xf16>, tensor<64x128xf16> -> tensor<16x128xf32>
  %s = arith.mulf %p0, %p1 : tensor<16x128xf32>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<16x128xf32>, !tile.view<2xf32>
  return
}
