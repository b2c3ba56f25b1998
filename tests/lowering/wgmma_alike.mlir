// Accumulators that hold one number get registers of their own in front of the fence: copies between it and the product
// make the assembler fence again (C7519).
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK: .entry alike
// CHECK-COUNT-31: mov.b32 %r{{[0-9]+}}, %r
// CHECK: wgmma.fence.sync.aligned;
// CHECK-NOT: mov
// CHECK: wgmma.mma_async.sync.aligned
func.func @alike(%A: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %start: f32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %acc = tile.splat %start : f32 -> tensor<64x64xf32>
  %r = tile.dot %a, %b, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
