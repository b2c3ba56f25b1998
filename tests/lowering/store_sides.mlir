// Two warpgroups side by side store a tile of 64 x 512 through a buffer of half its columns, which leaves room for a
// fifth stage: each stores its own 256 columns in four parts, and the buffer is two, of 64 columns for each of them.
// RUN: tile-opt %s --tile-target=sm_90a --tile-specialize | FileCheck %s --check-prefix=PLAN
// RUN: tile-opt %s --tile-target=sm_90a --tile-specialize -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// PLAN-DAG: tile.smem_alloc : <32x512xf16, minor = 1, stages = 5>
// PLAN-DAG: tile.smem_alloc : <64x256xf16, minor = 1>
// Either half of the buffer is filled while the other may still be copied out; the last copy is that of columns 192 on.
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: bar.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [[[EVEN:%r[0-9]+]]];
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: bar.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [[[ODD:%r[0-9]+]]];
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: bar.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [[[EVEN]]];
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: bar.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [[[ODD]]];
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK-NOT: cp.async.bulk.tensor
func.func @wide(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x512xf32>
  %x = tile.program_id 0
  %x0 = arith.muli %x, %c64 : i32
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x512xf32>) : i32 {
    %sa = tile.load_shared %a[%x0, %k : i32, i32] box [64, 32] : !tile.view<2xf16> -> !tile.smem<64x32xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [32, 512] : !tile.view<2xf16> -> !tile.smem<32x512xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 32 warps(4, 2) %sa, %sb, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x512xf16, minor = 1> -> tensor<64x512xf32>
    scf.yield %d : tensor<64x512xf32>
  } {tile.stages = 5 : i32}
  %h = arith.truncf %r : tensor<64x512xf32> to tensor<64x512xf16>
  tile.store %h, %c[%x0, %c0 : i32, i32] : tensor<64x512xf16>, !tile.view<2xf16>
  return
}
