// Warpgroups with several blocks of 64 rows go through all steps of one block before the next: where registers do not
// suffice for all blocks, the assembler exchanges them once for a product, not at every step.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// The first step of every block starts from zero, the second adds to it.
// CHECK: .entry two_blocks
// CHECK: wgmma.fence.sync.aligned;
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0, {{[01]}};
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, {{[01]}};
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0, {{[01]}};
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, {{[01]}};
// CHECK-NOT: wgmma.mma_async
// CHECK: wgmma.commit_group.sync.aligned;
func.func @two_blocks(%A: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<128x32xbf16>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<32x64xbf16>
  %r = tile.dot %a, %b, %zero : tensor<128x32xbf16>, tensor<32x64xbf16> -> tensor<128x64xf32>
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  return
}
