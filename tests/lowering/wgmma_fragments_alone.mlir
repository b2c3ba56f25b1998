// The same where every iteration needs its product: nothing runs when the next one begins, and nothing is waited for.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-specialize -tile-stage -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: %if ptxas %{ tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-specialize -tile-stage -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=cubin -o /dev/null | FileCheck %s --check-prefix=LOG --implicit-check-not=C75 %}

// CHECK: .entry alone
// CHECK-NOT: wgmma.wait_group
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-2: wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK-NOT: wgmma.wait_group.sync.aligned 1;
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: wgmma.wait_group
// LOG-NOT: C75
func.func @alone(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %K: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 16 : i32
  %c256 = arith.constant 256 : i32
  %c128 = arith.constant 128 : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %im = arith.muli %pm, %c256 : i32
  %in = arith.muli %pn, %c128 : i32
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %i = %c0 to %K step %c32 iter_args(%sum = %zero) -> (tensor<256x128xf32>) : i32 {
    %a = tile.load %A[%im, %i : i32, i32] : !tile.view<2 x f32> -> tensor<256x16xf32>
    %b = tile.load %B[%i, %in : i32, i32] : !tile.view<2 x f32> -> tensor<16x128xf32>
    %d = tile.dot %a, %b, %zero precision tf32 : tensor<256x16xf32>, tensor<16x128xf32> -> tensor<256x128xf32>
    %most = arith.maxnumf %sum, %d : tensor<256x128xf32>
    scf.yield %most : tensor<256x128xf32>
  } {tile.stages = 4 : i32}
  tile.store %r, %C[%im, %in : i32, i32] : tensor<256x128xf32>, !tile.view<2 x f32>
  return
}
