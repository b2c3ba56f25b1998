// Where a kernel has roles and room, the scratch of ops at which warps meet rests until they have met again, and what the
// last of an iteration puts is nobody else's in the loop: no barrier keeps those apart who use the same bytes.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers | FileCheck %s

#rows = #tile.layout<64x128 regs [1:2*1, 0:16*1] lanes [1:32*2] warps [0:4*16, 1:2*64]>
#columns = #tile.layout<64x128 regs [0:2*1, 1:16*1] lanes [0:32*2] warps [1:8*16]>

// CHECK-LABEL: func.func @in_turns
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK: tile.convert {{.*}} {tile.scratch = [[ONE:[0-9]+]] : i32}
// CHECK-NOT: tile.barrier
// CHECK-NOT: tile.scratch = [[ONE]] : i32
// CHECK: tile.convert {{.*}} {tile.scratch = {{[0-9]+}} : i32}
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @in_turns(%x: !tile.view<2xf16>, %y: !tile.view<2xf16>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  tile.specialize regs(24, 240) producer {
    tile.work_loop {
    ^bb0(%u: i32, %v: i32, %w: i32):
    }
  } consumer {
    tile.work_loop {
    ^bb0(%u: i32, %v: i32, %w: i32):
      scf.for %i = %c0 to %n step %c64 : i32 {
        %a = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16, #rows>
        %b = tile.convert %a : tensor<64x128xf16, #rows> -> tensor<64x128xf16, #columns>
        %c = arith.mulf %b, %b : tensor<64x128xf16, #columns>
        %d = tile.convert %c : tensor<64x128xf16, #columns> -> tensor<64x128xf16, #rows>
        tile.store %d, %y[%i, %c0 : i32, i32] : tensor<64x128xf16, #rows>, !tile.view<2xf16>
      }
    }
  }
  return
}

// -----

// Rings leave no room: both take the same bytes.
#rows = #tile.layout<64x128 regs [1:2*1, 0:16*1] lanes [1:32*2] warps [0:4*16, 1:2*64]>
#columns = #tile.layout<64x128 regs [0:2*1, 1:16*1] lanes [0:32*2] warps [1:8*16]>

// CHECK-LABEL: func.func @crowded
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: tile.convert {{.*}} {tile.scratch = [[ONE:[0-9]+]] : i32}
// CHECK: tile.barrier
// CHECK: tile.convert {{.*}} {tile.scratch = [[ONE]] : i32}
// CHECK: return
func.func @crowded(%x: !tile.view<2xf16>, %y: !tile.view<2xf16>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %full = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 13>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<13>
  tile.specialize regs(24, 240) producer {
    tile.work_loop {
    ^bb0(%u: i32, %v: i32, %w: i32):
      scf.for %i = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 16384 : !tile.ring<13>
        %s = tile.smem_slot %full[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 13> -> !tile.smem<128x64xf16, minor = 1>
        tile.tma_load %x[%i, %c0 : i32, i32] to %s signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<13>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%u: i32, %v: i32, %w: i32):
      scf.for %i = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_acquire %ring : !tile.ring<13>
        tile.ring_release %ring : !tile.ring<13>
        %a = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16, #rows>
        %b = tile.convert %a : tensor<64x128xf16, #rows> -> tensor<64x128xf16, #columns>
        %c = arith.mulf %b, %b : tensor<64x128xf16, #columns>
        %d = tile.convert %c : tensor<64x128xf16, #columns> -> tensor<64x128xf16, #rows>
        tile.store %d, %y[%i, %c0 : i32, i32] : tensor<64x128xf16, #rows>, !tile.view<2xf16>
      }
    }
  }
  return
}

// -----

// Without roles: what the loop carries leaves no registers for sixteen programs, so that bytes for ten are no loss. The
// two lookups use bytes of their own, and need one barrier each.
#keys = #tile.layout<2048 regs [0:4*1, 0:4*512] lanes [0:32*4] warps [0:4*128]>

// CHECK-LABEL: func.func @keys_and_places
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK: tile.take {{.*}} {tile.scratch = [[ONE:[0-9]+]] : i32}
// CHECK-NOT: tile.barrier
// CHECK-NOT: tile.scratch = [[ONE]] : i32
// CHECK: tile.take {{.*}} {tile.scratch = {{[0-9]+}} : i32}
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @keys_and_places(%x0: tensor<2048xf32, #keys>, %p0: tensor<2048xi32, #keys>, %at: tensor<2048xi32, #keys>, %n: i32) -> (tensor<2048xf32, #keys>, tensor<2048xi32, #keys>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x, %p = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x0, %b = %p0) -> (tensor<2048xf32, #keys>, tensor<2048xi32, #keys>) : i32 {
    %c = tile.take %a, %at axis 0 : tensor<2048xf32, #keys>, tensor<2048xi32, #keys> -> tensor<2048xf32, #keys>
    %d = tile.take %b, %at axis 0 : tensor<2048xi32, #keys>, tensor<2048xi32, #keys> -> tensor<2048xi32, #keys>
    scf.yield %c, %d : tensor<2048xf32, #keys>, tensor<2048xi32, #keys>
  }
  return %x, %p : tensor<2048xf32, #keys>, tensor<2048xi32, #keys>
}
