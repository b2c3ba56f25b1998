// Stages that threads compute an operand from are given back in front of the barrier behind the operand's store, whose fence
// the copies into the stage need, too.
// RUN: tile-opt %s --tile-target=sm_90a -tile-late-releases | FileCheck %s

// Waits for stages of another ring may stand between.
// CHECK-LABEL: func.func @behind_stores
// CHECK: tile.ring_acquire %[[X:.*]] :
// CHECK-NOT: tile.ring_release %[[X]]
// CHECK: tile.ring_acquire
// CHECK: tile.smem_store
// CHECK: tile.ring_release %[[X]]
// CHECK-NEXT: tile.barrier
func.func @behind_stores(%n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %bufX = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %bufY = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %own = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ringX = tile.ring_alloc arrivals 4 per_warp : !tile.ring<2>
  %ringY = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %i = tile.ring_acquire %ringX : !tile.ring<2>
    %x = tile.smem_slot %bufX[%i] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %t = tile.smem_load %x : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    tile.ring_release %ringX : !tile.ring<2>
    %j = tile.ring_acquire %ringY : !tile.ring<2>
    %y = tile.smem_slot %bufY[%j] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %u = arith.addf %t, %t : tensor<64x64xf16>
    tile.smem_store %u, %own : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1>
    tile.barrier
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %own, %y, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = tile.mma_wait 0 of %d : tensor<64x64xf32>
    tile.ring_release %ringY : !tile.ring<2>
    scf.yield %w : tensor<64x64xf32>
  }
  return
}

// The next stage of the same ring comes before any store: nothing moves. Nor does a ring's only stage, which the producer
// waits for.
// CHECK-LABEL: func.func @stays
// CHECK: tile.smem_load
// CHECK-NEXT: tile.ring_release
// CHECK: tile.smem_load
// CHECK-NEXT: tile.ring_release
// CHECK: tile.smem_load
// CHECK-NEXT: tile.ring_release
func.func @stays(%n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %bufX = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %one = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %own = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ringX = tile.ring_alloc arrivals 4 per_warp : !tile.ring<2>
  %ringY = tile.ring_alloc arrivals 4 per_warp : !tile.ring<1>
  %h = tile.ring_acquire %ringY : !tile.ring<1>
  %v = tile.smem_slot %one[%h] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
  %s = tile.smem_load %v : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
  tile.ring_release %ringY : !tile.ring<1>
  %i = tile.ring_acquire %ringX : !tile.ring<2>
  %x = tile.smem_slot %bufX[%i] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
  %t = tile.smem_load %x : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
  tile.ring_release %ringX : !tile.ring<2>
  %j = tile.ring_acquire %ringX : !tile.ring<2>
  %y = tile.smem_slot %bufX[%j] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
  %u = tile.smem_load %y : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
  tile.ring_release %ringX : !tile.ring<2>
  %a = arith.addf %t, %u : tensor<64x64xf16>
  %b = arith.addf %a, %s : tensor<64x64xf16>
  tile.barrier
  tile.smem_store %b, %own : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1>
  %d = tile.mma wgmma_f16 k 64 warps(4, 1) %own, %own, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  return
}
