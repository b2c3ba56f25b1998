// Numbers of four bits on their way into registers of a product: they are read from shared memory as pairs of bytes, and
// two pairs are shifted as one word.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry nibbles
// CHECK-NOT: shr.u16
// CHECK: ld.shared.b16
// CHECK-NOT: shr.u16
// CHECK-COUNT-16: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 252645135;
// CHECK-NOT: {{shr.u16|252645135}}
// CHECK: wgmma.mma_async
// CHECK-NOT: {{shr.u16|252645135}}
// CHECK: ret;
func.func @nibbles(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %w: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %four = arith.constant dense<4> : tensor<128x64xi8>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %x = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %b = tile.load %w[%c0, %k : i32, i32] : !tile.view<2xi8> -> tensor<128x64xi8>
    %s = arith.shrui %b, %four : tensor<128x64xi8>
    %f = arith.uitofp %s : tensor<128x64xi8> to tensor<128x64xf16>
    %t = tile.trans %f, [1, 0] : tensor<128x64xf16> -> tensor<64x128xf16>
    %d = tile.dot %x, %t, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
