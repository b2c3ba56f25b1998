// Stages that threads read by ordinary loads are given back behind a fence: bulk copies do not queue up behind loads that
// are still under way. Stages given back together share one; what warpgroups read by descriptors needs none.
// RUN: tile-opt %s -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: setmaxnreg{{.*}} 232;
// CHECK: ld.shared.b16
// CHECK: ld.shared.b16
// CHECK: fence.proxy.async.shared::cta
// CHECK-NOT: fence.proxy.async
// CHECK: mbarrier.arrive.shared.b64
// CHECK-NOT: fence.proxy.async
// CHECK: mbarrier.arrive.shared.b64
// CHECK-NOT: fence.proxy.async
// CHECK: wgmma.mma_async
// CHECK-NOT: fence.proxy.async
// CHECK: ret;
func.func @reads(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %o: !tile.view<2xf16>, %f: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %bufX = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %bufY = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %bufA = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %ringX = tile.ring_alloc arrivals 4 per_warp : !tile.ring<1>
  %ringY = tile.ring_alloc arrivals 4 per_warp : !tile.ring<1>
  %ringA = tile.ring_alloc arrivals 1 : !tile.ring<2>
  tile.specialize regs(40, 232) producer {
    scf.for %k = %c0 to %n step %c64 : i32 {
      %i = tile.ring_reserve %ringX bytes 8192 : !tile.ring<1>
      %x = tile.smem_slot %bufX[%i] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %a[%k, %c0 : i32, i32] to %x signals %ringX[%i] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
      %j = tile.ring_reserve %ringY bytes 8192 : !tile.ring<1>
      %y = tile.smem_slot %bufY[%j] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %b[%k, %c0 : i32, i32] to %y signals %ringY[%j] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
      %l = tile.ring_reserve %ringA bytes 8192 : !tile.ring<2>
      %p = tile.smem_slot %bufA[%l] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %b[%k, %c64 : i32, i32] to %p signals %ringA[%l] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
    }
  } consumer {
    %r:2 = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %none, %acc = %zero) -> (tensor<64x64xf16>, tensor<64x64xf32>) : i32 {
      %i = tile.ring_acquire %ringX : !tile.ring<1>
      %x = tile.smem_slot %bufX[%i] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      %tx = tile.smem_load %x : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
      %j = tile.ring_acquire %ringY : !tile.ring<1>
      %y = tile.smem_slot %bufY[%j] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      %ty = tile.smem_load %y : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
      tile.ring_release %ringX : !tile.ring<1>
      tile.ring_release %ringY : !tile.ring<1>
      %both = arith.addf %tx, %ty : tensor<64x64xf16>
      %next = arith.addf %sum, %both : tensor<64x64xf16>
      %l = tile.ring_acquire %ringA : !tile.ring<2>
      %p = tile.smem_slot %bufA[%l] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %p, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %w = tile.mma_wait 0 of %d : tensor<64x64xf32>
      tile.ring_release %ringA : !tile.ring<2>
      scf.yield %next, %w : tensor<64x64xf16>, tensor<64x64xf32>
    }
    tile.store %r#0, %o[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
    tile.store %r#1, %f[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  }
  return
}
