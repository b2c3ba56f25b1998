// A tf32 product with b stored [K, N]: every thread reads its part of b^T in pairs and multiplies from registers, in groups of
// two k steps that take turns with two sets of registers; a is the second operand, by descriptor. Each warp releases stages
// of its own: it reads them at its own time. The assembler must find nothing to serialise and nothing to spill.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-specialize -tile-stage -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: %if ptxas %{ tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-specialize -tile-stage -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=cubin -o /dev/null | FileCheck %s --check-prefix=LOG --implicit-check-not=C75 %}

// CHECK: .entry fragments
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-COUNT-4: ld.shared.v2.b32
// CHECK-NOT: ld.shared
// CHECK: wgmma.fence.sync.aligned;
// CHECK: wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {{.*}} 1, 1, 1;
// CHECK: wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {{.*}} 1, 1, 1;
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-COUNT-4: ld.shared.v2.b32
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-2: wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32
// CHECK: wgmma.commit_group.sync.aligned;
// The product of the iteration before is finished when two groups are left.
// CHECK: wgmma.wait_group.sync.aligned 2;
// CHECK: bar.warp.sync
// CHECK: mbarrier.arrive.shared.b64
// Neighbours along n are neighbours in the accumulator: no trip through shared memory.
// CHECK-NOT: st.shared
// CHECK: st.global
// LOG: 0 bytes spill stores, 0 bytes spill loads
func.func @fragments(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %K: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c256 = arith.constant 256 : i32
  %c128 = arith.constant 128 : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %im = arith.muli %pm, %c256 : i32
  %in = arith.muli %pn, %c128 : i32
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %i = %c0 to %K step %c32 iter_args(%sum = %zero) -> (tensor<256x128xf32>) : i32 {
    %a = tile.load %A[%im, %i : i32, i32] : !tile.view<2 x f32> -> tensor<256x32xf32>
    %b = tile.load %B[%i, %in : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
    %d = tile.dot %a, %b, %sum precision tf32 : tensor<256x32xf32>, tensor<32x128xf32> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  } {tile.stages = 4 : i32}
  tile.store %r, %C[%im, %in : i32, i32] : tensor<256x128xf32>, !tile.view<2 x f32>
  return
}
