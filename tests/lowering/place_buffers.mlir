// Shared memory: lifetimes that do not meet share bytes; what does not fit is a table, not a launch failure.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-place-buffers -tile-insert-barriers -verify-diagnostics | FileCheck %s

// The second buffer takes the first one's place; a barrier keeps its writers behind the first one's readers.
// CHECK-LABEL: func.func @reuse(
// CHECK: tile.smem_alloc at 0
// CHECK: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
// CHECK: tile.smem_alloc at 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
#l = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @reuse(%a: tensor<64x64xf16, #l>) -> (tensor<64x64xf16, #l>, tensor<64x64xf16, #l>) attributes {tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  tile.smem_store %a, %s : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
  %b = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
  %t = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  tile.smem_store %b, %t : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
  %c = tile.smem_load %t : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
  return %b, %c : tensor<64x64xf16, #l>, tensor<64x64xf16, #l>
}

// -----

// Both live at once: different bytes, one barrier before the reads.
// CHECK-LABEL: func.func @apart(
// CHECK: tile.smem_alloc at 0
// CHECK: tile.smem_alloc at 8192
// CHECK: tile.smem_store
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
// CHECK-NEXT: tile.smem_load
// CHECK-NEXT: return
#l = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @apart(%a: tensor<64x64xf16, #l>) -> (tensor<64x64xf16, #l>, tensor<64x64xf16, #l>) attributes {tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %t = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  tile.smem_store %a, %s : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
  tile.smem_store %a, %t : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
  %b = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
  %c = tile.smem_load %t : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
  return %b, %c : tensor<64x64xf16, #l>, tensor<64x64xf16, #l>
}

// -----

// What one iteration wrote is read in it, and the next one may only write after that.
// CHECK-LABEL: func.func @back_edge(
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
#l = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @back_edge(%a: tensor<64x64xf16, #l>, %n: i32) -> tensor<64x64xf16, #l> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<64x64xf16, #l>) : i32 {
    tile.smem_store %x, %s : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
    %b = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    scf.yield %b : tensor<64x64xf16, #l>
  }
  return %r : tensor<64x64xf16, #l>
}

// -----

// expected-error @+1 {{kernel `over` needs 262144 bytes of shared memory per program, sm_80 has}}
func.func @over(%x: !tile.view<2xf16>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-note @+2 {{262144 bytes at 0: ring of 8 x 128x128xf16}}
  // expected-note @+1 {{a ring of 5 stage(s) of 32768 bytes would fit}}
  %s = tile.smem_alloc : !tile.smem<128x128xf16, minor = 1, stages = 8>
  %t = tile.smem_slot %s[%c0] : !tile.smem<128x128xf16, minor = 1, stages = 8> -> !tile.smem<128x128xf16, minor = 1>
  tile.smem_zero %t : !tile.smem<128x128xf16, minor = 1>
  return
}

// -----

// An asynchronous product reads until its wait: a barrier before that does not part it from the next writer.
// CHECK-LABEL: func.func @running(
// CHECK: tile.mma wgmma
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.mma_wait 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_store
func.func @running(%x: tensor<64x64xf16, #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>>, %acc: tensor<64x64xf32>) {
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %d = tile.mma wgmma_f16 k 64 warps(4, 1) %buf, %buf, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  tile.barrier
  %r = tile.mma_wait 0 of %d : tensor<64x64xf32>
  tile.smem_store %x, %buf : tensor<64x64xf16, #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>>, !tile.smem<64x64xf16, minor = 1>
  return
}

// -----

// Barriers come behind the buffers. What bulk copies read or write keeps its bytes to itself: they run beside the program's
// order. The consumers' own buffers share, but for the one before: whoever reads that may not have met the others yet.
// CHECK-LABEL: func.func @rings(
// CHECK: tile.smem_alloc at 0 : {{.*}}stages = 2
// CHECK: tile.ring_alloc arrivals 1 at 32832 :
// CHECK: tile.ring_alloc arrivals 4 per_warp payload 4 at 32768 :
// CHECK: consumer
// CHECK: tile.smem_alloc at 16384
// CHECK: tile.smem_load
// CHECK: tile.smem_alloc at 24576
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
// CHECK-NEXT: tile.smem_alloc at 16384
// CHECK-NEXT: tile.smem_store
#l = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @rings(%v: !tile.view<2xf16>, %i: i32) attributes {tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %r = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %q = tile.ring_alloc arrivals 4 per_warp payload 4 : !tile.ring<3>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 8192 : !tile.ring<2>
    %stage = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    tile.tma_load %v[%i, %i : i32, i32] to %stage signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
  } consumer {
    %slot = tile.ring_acquire %r : !tile.ring<2>
    %stage = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %a = tile.smem_load %stage : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    %t = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
    tile.smem_store %a, %t : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
    %b = tile.smem_load %t : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    %u = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
    tile.smem_store %b, %u : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
    %c = tile.smem_load %u : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
    tile.smem_store %c, %w : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
  }
  return
}

// -----

// Where there is no room for both, the second waits for the readers of the first.
// CHECK-LABEL: func.func @tight(
// CHECK: consumer
// CHECK: tile.smem_alloc at 0
// CHECK: tile.smem_load
// CHECK: tile.smem_alloc at 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_store
#l = #tile.layout<640x64 regs [1:8*1, 0:40*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @tight(%v: !tile.view<2xf16>, %i: i32, %x: tensor<640x64xf16, #l>) attributes {tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %r = tile.ring_alloc arrivals 1 : !tile.ring<2>
  %q = tile.ring_alloc arrivals 4 per_warp payload 4 : !tile.ring<3>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 8192 : !tile.ring<2>
    %stage = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    tile.tma_load %v[%i, %i : i32, i32] to %stage signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
  } consumer {
    %slot = tile.ring_acquire %r : !tile.ring<2>
    %stage = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    %t = tile.smem_alloc : !tile.smem<640x64xf16, minor = 1>
    tile.smem_store %x, %t : tensor<640x64xf16, #l>, !tile.smem<640x64xf16, minor = 1>
    %b = tile.smem_load %t : !tile.smem<640x64xf16, minor = 1> -> tensor<640x64xf16, #l>
    %u = tile.smem_alloc : !tile.smem<640x64xf16, minor = 1>
    tile.smem_store %b, %u : tensor<640x64xf16, #l>, !tile.smem<640x64xf16, minor = 1>
  }
  return
}

// -----

// expected-error @+1 {{kernel `barriers` needs 180224 bytes of shared memory per program, sm_80 has 166912}}
func.func @barriers() attributes {tile.num_warps = 4 : i32} {
  // expected-note @+2 {{163840 bytes at 0: 1280x64xf16}}
  // expected-note @+1 {{it fits when this buffer has at most 150528 bytes: use smaller tiles}}
  %s = tile.smem_alloc : !tile.smem<1280x64xf16, minor = 1>
  // expected-note @+1 {{16384 bytes at 163840: barriers of a ring of 1024}}
  %r = tile.ring_alloc arrivals 1 : !tile.ring<1024>
  return
}

// -----

// The largest buffer lies where little else does: another one is at fault.
#a = #tile.layout<960x64 regs [1:8*1, 0:60*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#b = #tile.layout<896x64 regs [1:8*1, 0:56*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#c = #tile.layout<512x64 regs [1:8*1, 0:32*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
// expected-error @+1 {{kernel `not_the_largest` needs 180224 bytes of shared memory per program, sm_80 has 166912}}
func.func @not_the_largest(%x: tensor<960x64xf16, #a>, %y: tensor<896x64xf16, #b>, %z: tensor<512x64xf16, #c>) -> (tensor<960x64xf16, #a>, tensor<896x64xf16, #b>, tensor<512x64xf16, #c>) attributes {tile.num_warps = 4 : i32} {
  // expected-note @+1 {{122880 bytes at 0: 960x64xf16}}
  %a = tile.smem_alloc : !tile.smem<960x64xf16, minor = 1>
  tile.smem_store %x, %a : tensor<960x64xf16, #a>, !tile.smem<960x64xf16, minor = 1>
  %p = tile.smem_load %a : !tile.smem<960x64xf16, minor = 1> -> tensor<960x64xf16, #a>
  // expected-note @+2 {{114688 bytes at 0: 896x64xf16}}
  // expected-note @+1 {{it fits when this buffer has at most 101376 bytes: use smaller tiles}}
  %b = tile.smem_alloc : !tile.smem<896x64xf16, minor = 1>
  // expected-note @+1 {{65536 bytes at 114688: 512x64xf16}}
  %c = tile.smem_alloc : !tile.smem<512x64xf16, minor = 1>
  tile.smem_store %y, %b : tensor<896x64xf16, #b>, !tile.smem<896x64xf16, minor = 1>
  tile.smem_store %z, %c : tensor<512x64xf16, #c>, !tile.smem<512x64xf16, minor = 1>
  %q = tile.smem_load %b : !tile.smem<896x64xf16, minor = 1> -> tensor<896x64xf16, #b>
  %r = tile.smem_load %c : !tile.smem<512x64xf16, minor = 1> -> tensor<512x64xf16, #c>
  return %p, %q, %r : tensor<960x64xf16, #a>, tensor<896x64xf16, #b>, tensor<512x64xf16, #c>
}

// -----

// The last copies of a pipelined loop write zeros that nobody reads: until they have landed, their bytes are taken.
// CHECK-LABEL: func.func @copies_in_flight(
// CHECK: tile.smem_alloc at 9216
// CHECK: scf.for
// CHECK: tile.convert {{.*}}tile.scratch = 0
// CHECK: tile.async_wait 0
// CHECK: tile.barrier
// CHECK: tile.convert {{.*}}tile.scratch = 8256
#f = #tile.layout<32x64 regs [1:4*1, 0:4*8] lanes [1:16*4, 0:2*1] warps [0:4*2]>
#t = #tile.layout<32x64 regs [0:4*1, 1:4*16] lanes [0:8*4, 1:4*1] warps [1:4*4]>
func.func @copies_in_flight(%x: !tile.view<2xf32>, %a: tensor<32x64xf32, #f>, %n: i32) -> (tensor<32x64xf32, #t>, tensor<32x64xf32, #t>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.smem_alloc : !tile.smem<32x64xf32, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.async_copy %x[%c0, %c0 : i32, i32] to %s box [32, 64] : !tile.view<2xf32>, !tile.smem<32x64xf32, minor = 1>
    tile.async_commit
  }
  %early = tile.convert %a : tensor<32x64xf32, #f> -> tensor<32x64xf32, #t>
  tile.async_wait 0
  tile.barrier
  %late = tile.convert %a : tensor<32x64xf32, #f> -> tensor<32x64xf32, #t>
  return %early, %late : tensor<32x64xf32, #t>, tensor<32x64xf32, #t>
}

// -----

// Operands that a loop computes one after the other have bytes of their own each: whoever writes the second has met the
// readers of the first one's last turn meanwhile.
// CHECK-LABEL: func.func @in_turn(
// CHECK: scf.for
// CHECK: tile.smem_alloc at 0
// CHECK: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
// CHECK-NEXT: tile.smem_alloc at 8192
// CHECK-NEXT: tile.smem_store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_load
#l = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
func.func @in_turn(%a: tensor<64x64xf16, #l>, %n: i32) -> tensor<64x64xf16, #l> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<64x64xf16, #l>) : i32 {
    %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
    tile.smem_store %x, %s : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
    %b = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    %t = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
    tile.smem_store %b, %t : tensor<64x64xf16, #l>, !tile.smem<64x64xf16, minor = 1>
    %c = tile.smem_load %t : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #l>
    scf.yield %c : tensor<64x64xf16, #l>
  }
  return %r : tensor<64x64xf16, #l>
}

// -----
// Straight-line code whose tile waits at barriers: its registers leave few programs, so there is room for scratch to
// rest, and one barrier a step is enough.
#tile = #tile.layout<64x64 regs [1:4*1, 0:16*4] lanes [1:16*4, 0:2*1] warps [0:2*2]>
#turned = #tile.layout<64x64 regs [0:4*1, 1:16*4] lanes [0:16*4, 1:2*1] warps [1:2*2]>
#strip = #tile.layout<64x8 regs [1:8*1, 0:16*4] lanes [rep:16, 0:2*1] warps [0:2*2]>
// CHECK-LABEL: func.func @waiting
// CHECK: tile.extract {{.*}} {tile.scratch = [[ONE:[0-9]+]] : i32}
// CHECK-NOT: tile.barrier
// CHECK-NOT: tile.scratch = [[ONE]] : i32
// CHECK: tile.extract {{.*}} {tile.scratch = {{[0-9]+}} : i32}
// CHECK: return
func.func @waiting(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %z: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32, #tile>
  %c = tile.extract %a [0, 1] : tensor<64x64xf32, #tile> -> tensor<64x8xf32, #strip>
  tile.store %c, %y[%c0, %c0 : i32, i32] : tensor<64x8xf32, #strip>, !tile.view<2xf32>
  %b = arith.addf %a, %a : tensor<64x64xf32, #tile>
  %d = tile.extract %b [0, 2] : tensor<64x64xf32, #tile> -> tensor<64x8xf32, #strip>
  tile.store %d, %y[%c0, %c8 : i32, i32] : tensor<64x8xf32, #strip>, !tile.view<2xf32>
  %h = arith.truncf %b : tensor<64x64xf32, #tile> to tensor<64x64xf16, #tile>
  %t = tile.convert %h : tensor<64x64xf16, #tile> -> tensor<64x64xf16, #turned>
  tile.store %t, %z[%c0, %c0 : i32, i32] : tensor<64x64xf16, #turned>, !tile.view<2xf16>
  return
}
