// Scalars that consumers would compute in front of their work come from the producer.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-hand-scalars))' --tile-target=sm_90a | FileCheck %s

// Divisions of ids: the quotients and what a few instructions more make of them. The sum of one of them and a constant
// stays with the consumers. The producer has one of the divisions already.
// CHECK-LABEL: func.func @divided
// CHECK: %[[RING:.*]] = tile.ring_alloc arrivals 4 per_warp payload 16 : <2>
// CHECK: producer {
// CHECK: ^bb0(%[[X:[a-z0-9]+]]: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: %[[Q:.*]] = arith.divsi %[[X]], %arg1
// CHECK-NOT: arith.divsi
// CHECK: %[[R:.*]] = arith.remsi %[[X]], %arg1
// CHECK: tile.hand_over %[[Q]], %[[R]] through %[[RING]] : i32, i32 through <2>
// CHECK-NEXT: scf.for
// CHECK: consumer {
// CHECK: ^bb0(%[[MINE:[a-z0-9]+]]: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[A:.*]] = arith.divsi %[[MINE]], %arg1
// CHECK-NEXT: %[[B:.*]] = arith.remsi %[[MINE]], %arg1
// CHECK-NEXT: %[[TAKEN:.*]]:2 = tile.take_over %[[A]], %[[B]] through %[[RING]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[TAKEN]]#1, %{{.*}}
// CHECK: tile.ring_acquire
// CHECK: tile.print "quotient" %[[TAKEN]]#0
// CHECK: tile.print "remainder" %[[TAKEN]]#1
// CHECK: tile.print "sum" %[[SUM]]
func.func @divided(%a: !tile.view<2xf16>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %buffer = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 1 : !tile.ring<1>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %q = arith.divsi %x, %n : i32
      scf.for %i = %c0 to %c1 step %c1 : i32 {
        %slot = tile.ring_reserve %ring bytes 8192 : !tile.ring<1>
        %s = tile.smem_slot %buffer[%slot] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
        tile.tma_load %a[%q, %c0 : i32, i32] to %s signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
      }
    }
  } consumer {
    %c5 = arith.constant 5 : i32
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %q = arith.divsi %x, %n : i32
      %r = arith.remsi %x, %n : i32
      %sum = arith.addi %r, %c5 : i32
      %slot = tile.ring_acquire %ring : !tile.ring<1>
      tile.ring_release %ring : !tile.ring<1>
      tile.print "quotient" %q : i32
      tile.print "remainder" %r : i32
      tile.print "sum" %sum : i32
    }
  }
  return
}

// -----

// Reads of memory that the producer makes, too, and wide scalars. What depends on arguments alone is moved out of the
// loop without anybody's help.
// CHECK-LABEL: func.func @read
// CHECK: %[[RING:.*]] = tile.ring_alloc arrivals 4 per_warp payload 16 : <2>
// CHECK: producer {
// CHECK: %[[FIRST:.*]] = tile.load %arg1
// CHECK: tile.ring_reserve
// CHECK: tile.tma_load
// CHECK: tile.hand_over %[[FIRST]], %{{.*}} through %[[RING]] : i32, i64 through <2>
// CHECK: consumer {
// CHECK: %[[TAKEN:.*]]:2 = tile.take_over {{.*}} : i32, i64 through <2>
// CHECK: %[[MANY:.*]] = arith.cmpi sgt, %[[TAKEN]]#0
// CHECK: tile.print "wide" %[[TAKEN]]#1
// CHECK: scf.if %[[MANY]]
// CHECK: tile.print "other" %{{[^#]*}} : i32
func.func @read(%a: !tile.view<2xf16>, %list: !tile.view<1xi32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %buffer = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 1 : !tile.ring<1>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %first = tile.load %list[%x : i32] : !tile.view<1xi32> -> i32
      %slot = tile.ring_reserve %ring bytes 8192 : !tile.ring<1>
      %s = tile.smem_slot %buffer[%slot] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %a[%first, %c0 : i32, i32] to %s signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %first = tile.load %list[%x : i32] : !tile.view<1xi32> -> i32
      %slot = tile.ring_acquire %ring : !tile.ring<1>
      tile.ring_release %ring : !tile.ring<1>
      %long = arith.extsi %first : i32 to i64
      %square = arith.muli %long, %long : i64
      %cube = arith.muli %square, %long : i64
      %many = arith.cmpi sgt, %first, %c0 : i32
      %half = arith.divsi %n, %n : i32
      %quarter = arith.divsi %half, %n : i32
      tile.print "first" %first : i32
      tile.print "wide" %cube : i64
      scf.if %many {
        tile.print "other" %quarter : i32
      }
    }
  }
  return
}

// -----

// A read that the producer does not make may have to stay behind what stands in front of it.
// CHECK-LABEL: func.func @own
// CHECK: consumer {
// CHECK: ^bb0(%[[X:[a-z0-9]+]]: i32,
// CHECK-NEXT: %[[TAKEN:.*]] = tile.take_over %[[X]]
// CHECK: %[[OWN:.*]] = tile.load %arg1[%[[TAKEN]]
// CHECK-NEXT: tile.print "own" %[[OWN]]
func.func @own(%a: !tile.view<2xf16>, %list: !tile.view<1xi32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %buffer = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 1 : !tile.ring<1>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %slot = tile.ring_reserve %ring bytes 8192 : !tile.ring<1>
      %s = tile.smem_slot %buffer[%slot] : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %a[%x, %c0 : i32, i32] to %s signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %slot = tile.ring_acquire %ring : !tile.ring<1>
      tile.ring_release %ring : !tile.ring<1>
      %first = tile.load %list[%x : i32] : !tile.view<1xi32> -> i32
      tile.print "own" %first : i32
    }
  }
  return
}
