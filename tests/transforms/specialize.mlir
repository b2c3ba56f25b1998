// A kernel whose copies are all boxes: a producer with the kernel's slice, consumers with the rest.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// Two loads of one product are fields of one stage; the store goes out in bulk, in two passes so that four stages fit.
// CHECK-LABEL: func.func @gemm
// CHECK-DAG: %[[A:.*]] = tile.smem_alloc : <128x64xf16, minor = 1, stages = 4>
// CHECK-DAG: %[[B:.*]] = tile.smem_alloc : <256x64xf16, minor = 1, stages = 4>
// CHECK-DAG: %[[OUT:.*]] = tile.smem_alloc : <128x128xf16, minor = 1>
// CHECK-DAG: %[[RING:.*]] = tile.ring_alloc arrivals 2 : <4>
// CHECK: tile.specialize regs(40, 232) producer {
// CHECK: tile.work_loop band %{{.*}} {
// CHECK-NEXT: ^bb0(%[[X:.*]]: i32, %[[Y:.*]]: i32, %{{.*}}: i32):
// CHECK: %[[M:.*]] = arith.muli %[[X]], %c128_i32
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %arg3 step %c64_i32{{.*}} {
// CHECK-NEXT: %[[SLOT:.*]] = tile.ring_reserve %[[RING]] bytes 49152
// CHECK-NEXT: %[[SA:.*]] = tile.smem_slot %[[A]][%[[SLOT]]]
// CHECK-NEXT: %[[SB:.*]] = tile.smem_slot %[[B]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %arg0[%[[M]], %[[K]] : i32, i32] to %[[SA]] signals %[[RING]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %arg1[%{{.*}}, %[[K]] : i32, i32] to %[[SB]] signals %[[RING]][%[[SLOT]]]
// CHECK-NEXT: }
// CHECK: } consumer {
// CHECK: tile.work_loop band %{{.*}} {
// CHECK: scf.for
// CHECK-NEXT: %[[READ:.*]] = tile.ring_acquire %[[RING]]
// CHECK: tile.smem_trans
// CHECK: tile.mma {{.*}}wgmma_f16
// CHECK-NEXT: tile.ring_release %[[RING]]
// CHECK: tile.tma_store %{{.*}}, %arg2[{{.*}}] through %[[OUT]]
// CHECK-NOT: tile.load_shared
func.func @gemm(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c256 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [256, 64] : !tile.view<2xf16> -> !tile.smem<256x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<256x64xf16, minor = 1> -> !tile.smem<64x256xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 0> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %h = arith.truncf %r : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %h, %c[%m0, %n0 : i32, i32] : tensor<128x256xf16>, !tile.view<2xf16>
  return
}

// -----

// A product one iteration behind the other, two loops made from one, their prologue and epilogue: one ring for each of the
// views, in program order. The query tile is held through the loops: behind the key tile that is needed at once, and twice,
// so that the next program's is there when this one ends. How much there is to do differs: programs draw tickets.
// CHECK-LABEL: func.func @attention
// CHECK: %[[KEYS:.*]] = tile.ring_alloc arrivals 2 : <2>
// CHECK: %[[QUERIES:.*]] = tile.ring_alloc arrivals 2 : <2>
// CHECK: %[[VALUES:.*]] = tile.ring_alloc arrivals 2 : <2>
// CHECK: %[[OUT:.*]] = tile.smem_alloc : <128x128xf16, minor = 1>
// CHECK: %[[QUEUE:.*]] = tile.ring_alloc arrivals 8 per_warp payload 8 : <2>
// CHECK: producer {
// CHECK: tile.work_loop queue %[[QUEUE]]
// CHECK: scf.if
// CHECK: tile.ring_reserve %[[KEYS]]
// CHECK: tile.ring_reserve %[[QUERIES]]
// CHECK: scf.for
// CHECK: tile.ring_reserve %[[KEYS]]
// CHECK: tile.ring_reserve %[[VALUES]]
// CHECK: scf.for
// CHECK: tile.ring_reserve %[[KEYS]]
// CHECK: tile.ring_reserve %[[VALUES]]
// CHECK: tile.ring_reserve %[[VALUES]]
// CHECK: } consumer {
// CHECK: tile.ring_acquire %[[KEYS]]
// CHECK: tile.ring_acquire %[[QUERIES]]
// CHECK: tile.mma
// CHECK-NEXT: tile.ring_release %[[KEYS]]
// CHECK: scf.for
// CHECK: tile.ring_acquire %[[KEYS]]
// CHECK: tile.mma
// CHECK-NEXT: tile.ring_release %[[KEYS]]
// CHECK-NEXT: tile.ring_acquire %[[VALUES]]
// CHECK: tile.mma
// CHECK-NEXT: tile.ring_release %[[VALUES]]
// CHECK: scf.for
// CHECK: tile.ring_acquire %[[KEYS]]
// CHECK: tile.ring_acquire %[[VALUES]]
// CHECK: tile.ring_release %[[QUERIES]]
// CHECK-NEXT: tile.ring_acquire %[[VALUES]]
// CHECK: tile.ring_release %[[VALUES]]
// CHECK: tile.tma_store {{.*}} through %[[OUT]]
func.func @attention(%q: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %k: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %v: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %o: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>, tile.dim_multiple_of = array<i32: 1, 1, 16>}) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %h = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %end = arith.addi %m0, %c128 : i32
  %sq = tile.load_shared %q[%h, %m0, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
  %any = arith.cmpi sgt, %end, %c0 : i32
  %r = scf.if %any -> tensor<128x128xf32> {
    %sk0 = tile.load_shared %k[%h, %c0, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
    %tk0 = tile.smem_trans %sk0 : !tile.smem<128x128xf16, minor = 1> -> !tile.smem<128x128xf16, minor = 0>
    %s0 = tile.mma wgmma_f16 k 128 warps(8, 1) %sq, %tk0, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 0> -> tensor<128x128xf32>
    %p0 = arith.truncf %s0 : tensor<128x128xf32> to tensor<128x128xf16>
    %a1, %pp1 = scf.for %j = %c128 to %m0 step %c128 iter_args(%acc = %zero, %p = %p0) -> (tensor<128x128xf32>, tensor<128x128xf16>) : i32 {
      %sk = tile.load_shared %k[%h, %j, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
      %tk = tile.smem_trans %sk : !tile.smem<128x128xf16, minor = 1> -> !tile.smem<128x128xf16, minor = 0>
      %jp = arith.subi %j, %c128 : i32
      %sv = tile.load_shared %v[%h, %jp, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
      %s = tile.mma wgmma_f16 k 128 warps(8, 1) %sq, %tk, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 0> -> tensor<128x128xf32>
      %d = tile.mma wgmma_f16 k 128 warps(8, 1) %p, %sv, %acc : tensor<128x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
      %e = math.exp2 %s : tensor<128x128xf32>
      %np = arith.truncf %e : tensor<128x128xf32> to tensor<128x128xf16>
      scf.yield %d, %np : tensor<128x128xf32>, tensor<128x128xf16>
    }
    %a2, %pp2 = scf.for %j = %m0 to %end step %c128 iter_args(%acc = %a1, %p = %pp1) -> (tensor<128x128xf32>, tensor<128x128xf16>) : i32 {
      %sk = tile.load_shared %k[%h, %j, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
      %tk = tile.smem_trans %sk : !tile.smem<128x128xf16, minor = 1> -> !tile.smem<128x128xf16, minor = 0>
      %jp = arith.subi %j, %c128 : i32
      %sv = tile.load_shared %v[%h, %jp, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
      %s = tile.mma wgmma_f16 k 128 warps(8, 1) %sq, %tk, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 0> -> tensor<128x128xf32>
      %d = tile.mma wgmma_f16 k 128 warps(8, 1) %p, %sv, %acc : tensor<128x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
      %e = math.exp2 %s : tensor<128x128xf32>
      %np = arith.truncf %e : tensor<128x128xf32> to tensor<128x128xf16>
      scf.yield %d, %np : tensor<128x128xf32>, tensor<128x128xf16>
    }
    %svl = tile.load_shared %v[%h, %m0, %c0 : i32, i32, i32] box [128, 128] : !tile.view<3xf16> -> !tile.smem<128x128xf16, minor = 1>
    %dl = tile.mma wgmma_f16 k 128 warps(8, 1) %pp2, %svl, %a2 : tensor<128x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %dl : tensor<128x128xf32>
  } else {
    scf.yield %zero : tensor<128x128xf32>
  }
  %out = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %out, %o[%h, %m0, %c0 : i32, i32, i32] : tensor<128x128xf16>, !tile.view<3xf16>
  return
}

// -----

// Conditions and addresses from memory are the producer's to read too; tiles in registers are not. A tile read into
// registers as well is released by every warp. Bulk stores would overtake the ordinary one of the same argument.
// CHECK-LABEL: func.func @skipping
// CHECK: %[[RING:.*]] = tile.ring_alloc arrivals 4 per_warp : <3>
// CHECK: %[[PRODUCTS:.*]] = tile.ring_alloc arrivals 1 : <3>
// CHECK: producer {
// CHECK: tile.work_loop queue
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%[[AT:.*]] = %c0_i32) -> (i32)
// CHECK-NEXT: %[[KEEP:.*]] = tile.load %arg3[%[[J]] : i32]
// CHECK-NOT: arith.addf
// CHECK: scf.if
// CHECK: tile.ring_reserve %[[RING]] bytes 8192
// CHECK: tile.tma_load %arg0[%c0_i32, %[[AT]] : i32, i32]
// CHECK: tile.ring_reserve %[[PRODUCTS]] bytes 8192
// CHECK: tile.tma_load %arg1[%[[AT]], %c0_i32 : i32, i32]
// CHECK: scf.yield
// CHECK: } consumer {
// CHECK: scf.if
// CHECK-NEXT: %[[SLOT:.*]] = tile.ring_acquire %[[RING]]
// CHECK: tile.smem_load
// CHECK: tile.mma
// CHECK-NEXT: tile.ring_release
// CHECK-NEXT: tile.ring_release
// CHECK: tile.store
// CHECK: tile.store
func.func @skipping(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %table: !tile.view<1xi32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %c0) -> (tensor<64x64xf32>, i32) : i32 {
    %keep = tile.load %table[%j : i32] : !tile.view<1xi32> -> i32
    %columns = tile.assume %keep multiple_of 8 : i32
    %some = arith.cmpi sgt, %keep, %c0 : i32
    %next = scf.if %some -> tensor<64x64xf32> {
      %sa = tile.load_shared %a[%c0, %at : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %sb = tile.load_shared %b[%at, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %ra = tile.smem_load %sa : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
      %ea = arith.extf %ra : tensor<64x64xf16> to tensor<64x64xf32>
      %sum = arith.addf %acc, %ea : tensor<64x64xf32>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %sum : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    %after = arith.addi %at, %columns : i32
    scf.yield %next, %after : tensor<64x64xf32>, i32
  } {tile.stages = 3 : i32}
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  tile.store %r#0, %c[%c0, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A tile computed in registers goes to a buffer of its own; padding is zeroed once, by the consumers.
// CHECK-LABEL: func.func @shared_by_consumers
// CHECK: %[[PADDED:.*]] = tile.smem_alloc : <64x64xf16, minor = 0>
// CHECK: tile.specialize
// CHECK: consumer {
// CHECK: tile.smem_zero %[[PADDED]]
// CHECK-NEXT: tile.barrier
// CHECK: tile.work_loop
// CHECK: tile.smem_store %{{.*}}, %[[PADDED]]
// CHECK: %[[OWN:.*]] = tile.smem_alloc : <64x64xf16, minor = 1>
// CHECK-NEXT: tile.smem_store %{{.*}}, %[[OWN]]
// CHECK: tile.mma {{.*}} %[[OWN]]
func.func @shared_by_consumers(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %g: tensor<48x64xf16>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sg = tile.share %g : tensor<48x64xf16> -> !tile.smem<64x64xf16, minor = 0>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 48 warps(4, 1) %sa, %sg, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %sh = tile.share %h : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %sh, %sa, %d : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// One that needs no product of its iteration goes to two buffers that take turns by the number of the iteration: it is
// computed under the product of the one before.
// CHECK-LABEL: func.func @by_number
// CHECK: %[[TURNS:.*]] = tile.smem_alloc {tile.alternates} : <64x64xf16, minor = 1, stages = 2>
// CHECK: consumer {
// CHECK: %[[NUMBER:.*]] = arith.shrui %{{.*}}, %c6_i32
// CHECK-NEXT: %[[TURN:.*]] = arith.andi %[[NUMBER]], %c1_i32
// CHECK-NEXT: %[[OWN:.*]] = tile.smem_slot %[[TURNS]][%[[TURN]]]
// CHECK-NEXT: tile.smem_store %{{.*}}, %[[OWN]]
// CHECK: tile.mma {{.*}} %[[OWN]]
func.func @by_number(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %f = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
    %h = arith.truncf %f : tensor<64x64xf32> to tensor<64x64xf16>
    %sh = tile.share %h : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sh, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Three programs would fit the shared memory, but enter with 80 registers a thread: a product of 128 columns alone takes
// 64 for its sums, and ptxas wants them from the start.
// CHECK-LABEL: func.func @crowded
// CHECK: tile.specialize regs(40, 216) programs 2 producer
func.func @crowded(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----

// A view made of an argument's address, dims and strides in another order is still the argument to a tensor map.
// CHECK-LABEL: func.func @turned
// CHECK: producer {
// CHECK: %[[V:.*]] = tile.make_view
// CHECK: tile.tma_load %[[V]][
// CHECK: } consumer {
// CHECK: tile.mma
// CHECK: tile.tma_store
func.func @turned(%a: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %p = tile.view_ptr %a : !tile.view<3xf16> -> !tile.ptr<f16>
  %d0 = tile.view_dim %a, 0 : !tile.view<3xf16>
  %d1 = tile.view_dim %a, 1 : !tile.view<3xf16>
  %d2 = tile.view_dim %a, 2 : !tile.view<3xf16>
  %s0 = tile.view_stride %a, 0 : !tile.view<3xf16>
  %s1 = tile.view_stride %a, 1 : !tile.view<3xf16>
  %s2 = tile.view_stride %a, 2 : !tile.view<3xf16>
  %v = tile.make_view %p, dims(%d1, %d0, %d2), strides(%s1, %s0, %s2) : !tile.ptr<f16> -> !tile.view<3xf16>
  %h = tile.program_id 0
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load_shared %v[%h, %k, %c0 : i32, i32, i32] box [64, 64] : !tile.view<3xf16> -> !tile.smem<64x64xf16, minor = 1>
    %xt = tile.smem_trans %x : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 0>
    %next = tile.mma wgmma_f16 k 64 warps(4, 1) %xt, %x, %acc : !tile.smem<64x64xf16, minor = 0>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  %out = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %out, %c[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  return
}

// -----

// Of f32 tiles that only tf32 products read no more is copied than these look at; others come as they are.
// CHECK-LABEL: func.func @tf32
// CHECK: tile.specialize
// CHECK: tile.tma_load %arg0{{.*}} {tile.tf32} :
// CHECK: tile.tma_load %arg1
// CHECK-NOT: tile.tf32
// CHECK: } consumer {
func.func @tf32(%a: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %b: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %sum = %none) -> (tensor<64x64xf32>, tensor<64x32xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 32] : !tile.view<2xf32> -> !tile.smem<64x32xf32, minor = 1>
    %sb = tile.load_shared %b[%c0, %k : i32, i32] box [64, 32] : !tile.view<2xf32> -> !tile.smem<64x32xf32, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<64x32xf32, minor = 1> -> !tile.smem<32x64xf32, minor = 0>
    %d = tile.mma wgmma_tf32 k 32 warps(4, 1) %sa, %t, %acc : !tile.smem<64x32xf32, minor = 1>, !tile.smem<32x64xf32, minor = 0> -> tensor<64x64xf32>
    %v = tile.smem_load %sb : !tile.smem<64x32xf32, minor = 1> -> tensor<64x32xf32>
    %s = arith.addf %sum, %v : tensor<64x32xf32>
    scf.yield %d, %s : tensor<64x64xf32>, tensor<64x32xf32>
  }
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  tile.store %r#1, %c[%c0, %c32 : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
  return
}
