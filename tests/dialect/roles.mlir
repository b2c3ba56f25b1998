// Roles, rings, bulk copies and asynchronous products: the form specialize makes.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @gemm(
func.func @gemm(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %bufB = tile.smem_alloc : !tile.smem<64x256xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<128x64xf32, minor = 1>
  // CHECK: tile.ring_alloc arrivals 2 : {{.*}}<4>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  // CHECK: tile.ring_alloc arrivals 8 per_warp payload 8 : {{.*}}<2>
  %queue = tile.ring_alloc arrivals 8 per_warp payload 8 : !tile.ring<2>
  // CHECK: tile.specialize regs(40, 232) producer {
  tile.specialize regs(40, 232) producer {
    // CHECK: tile.work_loop queue %{{.*}} : {{.*}}<2> {
    tile.work_loop queue %queue : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
      scf.for %k = %c0 to %n step %c64 : i32 {
        // CHECK: tile.ring_reserve %{{.*}} bytes 49152 : {{.*}}<4>
        %slot = tile.ring_reserve %ring bytes 49152 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        // CHECK: tile.tma_load %{{.*}} to %{{.*}} signals %{{.*}}[%{{.*}}]
        tile.tma_load %a[%x, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
        tile.tma_load %b[%k, %y : i32, i32] to %sb signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x256xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop queue %queue : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
        // CHECK: tile.ring_acquire %{{.*}} : {{.*}}<4>
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<128x256xf32>
        // CHECK: tile.mma_wait 1
        tile.mma_wait 1
        %later = arith.cmpi sgt, %k, %c0 : i32
        // CHECK: tile.ring_release %{{.*}} if %{{.*}} : {{.*}}<4>
        tile.ring_release %ring if %later : !tile.ring<4>
        scf.yield %d : tensor<128x256xf32>
      }
      // CHECK: tile.mma_wait 0 of %{{.*}} : tensor<128x256xf32>
      %done = tile.mma_wait 0 of %r : tensor<128x256xf32>
      %any = arith.cmpi sgt, %n, %c0 : i32
      tile.ring_release %ring if %any : !tile.ring<4>
      // CHECK: tile.tma_store %{{.*}}, %{{.*}} through %{{.*}}
      tile.tma_store %done, %c[%x, %y : i32, i32] through %out : tensor<128x256xf32>, !tile.view<2xf32>, !tile.smem<128x64xf32, minor = 1>
      tile.tma_store add %done, %c[%x, %y : i32, i32] through %out : tensor<128x256xf32>, !tile.view<2xf32>, !tile.smem<128x64xf32, minor = 1>
      tile.turn_wait
      tile.turn_pass
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @handed(
func.func @handed(%x: i32, %y: i64, %z: i1) attributes {tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 4 per_warp payload 16 : !tile.ring<2>
  tile.specialize regs(40, 232) producer {
    // CHECK: tile.hand_over %{{.*}}, %{{.*}}, %{{.*}} through %{{.*}} : i32, i64, i1 through <2>
    tile.hand_over %x, %y, %z through %ring : i32, i64, i1 through !tile.ring<2>
  } consumer {
    // CHECK: tile.take_over %{{.*}}, %{{.*}}, %{{.*}} through %{{.*}} : i32, i64, i1 through <2>
    %r:3 = tile.take_over %x, %y, %z through %ring : i32, i64, i1 through !tile.ring<2>
  }
  return
}

// -----

func.func @too_little(%x: i32, %y: i64) attributes {tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 4 per_warp payload 8 : !tile.ring<2>
  // expected-error @+1 {{expects a ring with a payload of 16 bytes, found 8}}
  tile.hand_over %x, %y through %ring : i32, i64 through !tile.ring<2>
  return
}

// -----

func.func @other_types(%x: i32, %y: i64) attributes {tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 4 per_warp payload 16 : !tile.ring<2>
  tile.specialize regs(40, 232) producer {
    tile.hand_over %x through %ring : i32 through !tile.ring<2>
  } consumer {
    // expected-error @+1 {{expects the types of the ring's hand_over}}
    %r = tile.take_over %y through %ring : i64 through !tile.ring<2>
  }
  return
}

// -----

func.func @slot(%i: i32) {
  %ring = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %fits = tile.smem_slot %ring[%i] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<32x128xi8, minor = 1>
  // expected-error @+1 {{expects a tile that fits a stage of 8192 bytes aligned to 1024, found '!tile.smem<64x128xf16, minor = 1>' of 16384 aligned to 1024}}
  %large = tile.smem_slot %ring[%i] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x128xf16, minor = 1>
  return
}

// -----

func.func @slot_of_ring(%i: i32) {
  %ring = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  // expected-error @+1 {{expects one stage, found the ring '!tile.smem<64x32xf16, minor = 1, stages = 2>'}}
  %two = tile.smem_slot %ring[%i] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x32xf16, minor = 1, stages = 2>
  return
}

// -----

func.func @registers() {
  // expected-error @+1 {{expects registers from 24 to 256 in steps of 8, or 0, found 20}}
  tile.specialize regs(20, 232) producer { } consumer { }
  return
}

// -----

func.func @staging(%t: tensor<128x96xf16>, %v: !tile.view<2xf16>, %i: i32) {
  %s = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1>
  // expected-error @+1 {{expects staging with 128 rows, a divisor of 96 columns and minor = 1, found '!tile.smem<128x64xf16, minor = 1>'}}
  tile.tma_store %t, %v[%i, %i : i32, i32] through %s : tensor<128x96xf16>, !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>
  return
}

// -----

func.func @rank(%v: !tile.view<6xf16>, %i: i32, %r: !tile.ring<2>) {
  %s = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1>
  // expected-error @+1 {{expects a view of at most 5 dims, found '!tile.view<6xf16>'}}
  tile.tma_load %v[%i, %i, %i, %i, %i, %i : i32, i32, i32, i32, i32, i32] to %s signals %r[%i] : !tile.view<6xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<2>
  return
}

// -----

func.func @accumulate(%t: tensor<4x8xi8>, %v: !tile.view<2xi8>, %i: i32) {
  // expected-error @+1 {{adds f64, f32, f16, bf16, i64 or i32, found a view of 'i8'}}
  tile.accumulate %t, %v[%i, %i : i32, i32] : tensor<4x8xi8>, !tile.view<2xi8>
  return
}

// -----

func.func @added(%t: tensor<64x64xi8>, %v: !tile.view<2xi8>, %i: i32) {
  %s = tile.smem_alloc : !tile.smem<64x64xi8, minor = 1>
  // expected-error @+1 {{adds f32, f16, bf16 or i32, found 'tensor<64x64xi8>'}}
  tile.tma_store add %t, %v[%i, %i : i32, i32] through %s : tensor<64x64xi8>, !tile.view<2xi8>, !tile.smem<64x64xi8, minor = 1>
  return
}

// -----

func.func @stages() {
  // expected-error @+1 {{!tile.ring must have 1 to 1024 stages, found 0}}
  %r = tile.ring_alloc arrivals 1 : !tile.ring<0>
  return
}

// -----

func.func @argument_described(%v: !tile.view<2xf16>) {
  %s = tile.smem_alloc : !tile.smem<1x128xi8, minor = 1>
  // expected-error @+1 {{expects a view made by tile.make_view}}
  tile.tma_describe %v in %s : !tile.view<2xf16>, !tile.smem<1x128xi8, minor = 1>
  return
}

// -----

func.func @small_memory(%p: !tile.ptr<f16>, %n: i64) {
  %s = tile.smem_alloc : !tile.smem<1x256xi8, minor = 1>
  %v = tile.make_view %p, dims(%n), strides(%n) : !tile.ptr<f16> -> !tile.view<1xf16>
  // expected-error @+1 {{expects 128 bytes of memory, found '!tile.smem<1x256xi8, minor = 1>'}}
  tile.tma_describe %v in %s : !tile.view<1xf16>, !tile.smem<1x256xi8, minor = 1>
  return
}
