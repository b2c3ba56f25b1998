// A loop that asks for it gets a producer whose threads gather: the addresses' computation is part of its slice, a stage
// has a tile of theirs and one copied in bulk, and five arrivals fill it.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Layouts: four warps in the producer, eight among the consumers.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,tile-assign-layouts,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s --check-prefix=LAYOUT

// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[A:.*]] = tile.smem_alloc : <128x64xf16, minor = 1, stages = 5>
// CHECK-DAG: %[[B:.*]] = tile.smem_alloc : <64x128xf16, minor = 1, stages = 5>
// CHECK-DAG: %[[RING:.*]] = tile.ring_alloc arrivals 2 fills 5 : <5>
// CHECK: tile.specialize regs(88, 208) producer {
// CHECK: tile.work_loop {
// CHECK: %[[IDS:.*]] = tile.load %{{.*}} -> tensor<128xi32>
// CHECK: scf.for
// CHECK: %[[OFFSETS:.*]] = arith.addi {{.*}} : tensor<128x64xi32>
// CHECK-NEXT: %[[SLOT:.*]] = tile.ring_reserve %[[RING]] bytes 16384
// CHECK-NEXT: %[[SA:.*]] = tile.smem_slot %[[A]][%[[SLOT]]]
// CHECK-NEXT: %[[SB:.*]] = tile.smem_slot %[[B]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %{{.*}} to %[[SB]] signals %[[RING]][%[[SLOT]]]
// CHECK-NEXT: tile.async_gather %{{.*}} offsets %[[OFFSETS]] {{.*}} mask {{.*}} to %[[SA]]
// CHECK-NEXT: tile.ring_commit %[[RING]][%[[SLOT]]]
// CHECK-NEXT: }
// CHECK: } consumer {
// CHECK-NOT: tile.load %
// CHECK-NOT: tensor<128x64xi32>
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma wgmma_f16
// CHECK: tile.ring_release %[[RING]]
// CHECK-NOT: tile.gather_shared
// LAYOUT-LABEL: func.func @rows
// LAYOUT: producer {
// LAYOUT-NOT: tile.convert
// LAYOUT: tile.async_gather {{.*}}warps
// LAYOUT: } consumer {
func.func @rows(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %list: !tile.view<1xi32> {tile.unit_stride = 0 : i32}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %rows: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pitch = arith.constant dense<512> : tensor<128x1xi32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c128 : i32
  %ids = tile.load %list[%m0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %column = tile.reshape %ids : tensor<128xi32> -> tensor<128x1xi32>
  %limit = tile.splat %rows : i32 -> tensor<128x1xi32>
  %real = arith.cmpi slt, %column, %limit : tensor<128x1xi32>
  %starts = arith.muli %column, %pitch : tensor<128x1xi32>
  %start = tile.broadcast %starts : tensor<128x1xi32> -> tensor<128x64xi32>
  %mask = tile.broadcast %real : tensor<128x1xi1> -> tensor<128x64xi1>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %steps = tile.iota : tensor<64xi32>
    %at = tile.splat %k : i32 -> tensor<64xi32>
    %ks = arith.addi %steps, %at : tensor<64xi32>
    %row = tile.reshape %ks : tensor<64xi32> -> tensor<1x64xi32>
    %all = tile.broadcast %row : tensor<1x64xi32> -> tensor<128x64xi32>
    %offsets = arith.addi %start, %all : tensor<128x64xi32>
    %sa = tile.gather_shared %a offsets %offsets : tensor<128x64xi32> mask %mask : tensor<128x64xi1> : !tile.ptr<f16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %n0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {tile.stages = 3 : i32, tile.specialize = 1 : i32}
  tile.store %r, %c[%m0, %n0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// A box of a view without alignment is copied by the threads, too. How often comes from memory: the queue of positions
// is read by eight warps, the producer's among them.
// CHECK-LABEL: func.func @box
// CHECK-DAG: tile.ring_alloc arrivals 1 fills 4 : <4>
// CHECK-DAG: %[[QUEUE:.*]] = tile.ring_alloc arrivals 8 per_warp payload 8 : <2>
// CHECK: work_loop queue %[[QUEUE]]
// CHECK: tile.ring_reserve {{.*}} bytes 0
// CHECK: tile.async_copy %arg0
// CHECK-NEXT: tile.async_copy %arg1
// CHECK-NEXT: tile.ring_commit
// LAYOUT-LABEL: func.func @box
func.func @box(%a: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %b: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %c: !tile.view<2xf32>, %lengths: !tile.view<1xi32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.program_id 0
  %n = tile.load %lengths[%x : i32] : !tile.view<1xi32> -> i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%x, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 2 : i32, tile.specialize = 1 : i32}
  tile.store %r, %c[%x, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Unasked, too, where the accumulators leave no registers for a second program of the multiprocessor: the boxes of a view
// whose rows lie as memory says, perhaps one on another. Half as many columns, and the threads copy between their products.
// CHECK-LABEL: func.func @alone
// CHECK: tile.specialize regs({{.*}}) producer {
// CHECK: tile.async_copy
// CHECK-NEXT: tile.async_copy
// CHECK-NEXT: tile.ring_commit
// LAYOUT-LABEL: func.func @alone
func.func @alone(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %starts: !tile.view<1xi64> {tile.unit_stride = 0 : i32}, %c: !tile.view<2xf32>, %n: i64) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %from = tile.load %starts[%x : i32] : !tile.view<1xi64> -> i64
  %start = tile.assume %from multiple_of 8 : i64
  %pitch = tile.assume %n multiple_of 8 : i64
  %p = tile.ptr_add %a, %start : !tile.ptr<f16>, i64
  %v = tile.make_view %p, dims(%n, %pitch), strides(%start, %c1) : !tile.ptr<f16> -> !tile.view<2xf16>
  %end = arith.trunci %n : i64 to i32
  %r = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %v[%k, %c0 : i32, i32] box [64, 256] : !tile.view<2xf16> -> !tile.smem<64x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%x, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>
  return
}

// -----

// CHECK-LABEL: func.func @beside_another
// CHECK-NOT: tile.specialize
// LAYOUT-LABEL: func.func @beside_another
func.func @beside_another(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %starts: !tile.view<1xi64> {tile.unit_stride = 0 : i32}, %c: !tile.view<2xf32>, %n: i64) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %from = tile.load %starts[%x : i32] : !tile.view<1xi64> -> i64
  %start = tile.assume %from multiple_of 8 : i64
  %pitch = tile.assume %n multiple_of 8 : i64
  %p = tile.ptr_add %a, %start : !tile.ptr<f16>, i64
  %v = tile.make_view %p, dims(%n, %pitch), strides(%start, %c1) : !tile.ptr<f16> -> !tile.view<2xf16>
  %end = arith.trunci %n : i64 to i32
  %r = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %v[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%x, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}
