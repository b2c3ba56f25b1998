// What iterations read from memory beside asynchronous products: behind them, which run while it comes, or behind their
// waits.
// RUN: tile-opt %s -split-input-file --tile-async-waits | FileCheck %s

// What was read from memory is stored behind the wait: the later, the longer loads may take.
// CHECK-LABEL: func.func @from_memory
// CHECK: } consumer {
// CHECK: scf.for
// CHECK: tile.load %arg1
// CHECK: tile.mma_wait 0{{$}}
// CHECK: tile.smem_store
// CHECK: tile.mma wgmma_f16
// CHECK: scf.yield
func.func @from_memory(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %turns = tile.smem_alloc {tile.alternates} : !tile.smem<64x128xf16, minor = 1, stages = 2>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      scf.for %k = %c0 to %n step %c1 : i32 {
        %slot = tile.ring_reserve %ring bytes 16384 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        tile.tma_load %a[%x, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %first = tile.load %b[%c0, %y : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16>
      %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %early = %first) -> (tensor<128x128xf32>, tensor<64x128xf16>) : i32 {
        %ahead = arith.addi %k, %c1 : i32
        %next = tile.load %b[%ahead, %y : i32, i32] : !tile.view<2xf16> -> tensor<64x128xf16>
        tile.barrier
        %turn = arith.andi %k, %c1 : i32
        %mine = tile.smem_slot %turns[%turn] : !tile.smem<64x128xf16, minor = 1, stages = 2> -> !tile.smem<64x128xf16, minor = 1>
        tile.smem_store %early, %mine : tensor<64x128xf16>, !tile.smem<64x128xf16, minor = 1>
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %mine, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
        tile.ring_release %ring : !tile.ring<4>
        scf.yield %d, %next : tensor<128x128xf32>, tensor<64x128xf16>
      }
      tile.store %r#0, %c[%x, %y : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
    }
  }
  return
}

// -----
// Factors of rows that an iteration reads and hands to other lanes: behind the product, which runs while they come.
// CHECK-LABEL: func.func @factors_of_rows
// CHECK: scf.for
// CHECK: tile.gather
// CHECK-NOT: tile.convert
// CHECK: tile.mma wgmma_f16
// CHECK: tile.convert
// CHECK: tile.mma_wait 0
#own = #tile.layout<64x1 regs [0:2*1] lanes [0:32*2] warps [rep:4]>
#rows = #tile.layout<64x1 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:4*16]>
#flat = #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps [rep:4]>
#acc = #tile.layout<64x128 regs [1:2*1, 0:2*8, 1:16*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
func.func @factors_of_rows(%p: !tile.ptr<f32>, %c: !tile.view<2xf32>, %at: tensor<64xi32, #flat>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %bufA = tile.smem_alloc {tile.rotates} : !tile.smem<64x64xf16, minor = 1, stages = 3>
  %bufB = tile.smem_alloc {tile.rotates} : !tile.smem<64x128xf16, minor = 1, stages = 3>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0) -> (tensor<64x128xf32, #acc>, i32) : i32 {
    tile.async_wait 1
    tile.barrier
    %sa = tile.smem_slot %bufA[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x128xf16, minor = 1, stages = 3> -> !tile.smem<64x128xf16, minor = 1>
    %pk = tile.ptr_add %p, %k : !tile.ptr<f32>, i32
    %f = tile.gather %pk offsets %at : tensor<64xi32, #flat> : !tile.ptr<f32> -> tensor<64xf32, #flat>
    %column = tile.reshape %f : tensor<64xf32, #flat> -> tensor<64x1xf32, #own>
    %mine = tile.convert %column : tensor<64x1xf32, #own> -> tensor<64x1xf32, #rows>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32, #acc>
    %all = tile.broadcast %mine : tensor<64x1xf32, #rows> -> tensor<64x128xf32, #acc>
    %w = arith.mulf %d, %all : tensor<64x128xf32, #acc>
    %s = arith.addf %sum, %w : tensor<64x128xf32, #acc>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %s, %next : tensor<64x128xf32, #acc>, i32
  }
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32, #acc>, !tile.view<2xf32>
  return
}

// -----
// Numbers that an iteration reads are read behind the product that needs them not.
// CHECK-LABEL: func.func @factor_of_block
// CHECK: scf.for
// CHECK-NOT: tile.gather
// CHECK: tile.mma wgmma_f16
// CHECK-NEXT: tile.gather
// CHECK: tile.mma_wait 0
// Where something is written in between they stay.
// CHECK-LABEL: func.func @factor_written
// CHECK: scf.for
// CHECK: tile.gather
// CHECK: tile.mma wgmma_f16
// CHECK: tile.mma_wait 0
func.func @factor_of_block(%p: !tile.ptr<f32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %bufA = tile.smem_alloc {tile.rotates} : !tile.smem<64x64xf16, minor = 1, stages = 3>
  %bufB = tile.smem_alloc {tile.rotates} : !tile.smem<64x128xf16, minor = 1, stages = 3>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0) -> (tensor<64x128xf32>, i32) : i32 {
    %sa = tile.smem_slot %bufA[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x128xf16, minor = 1, stages = 3> -> !tile.smem<64x128xf16, minor = 1>
    %pk = tile.ptr_add %p, %k : !tile.ptr<f32>, i32
    %f = tile.gather %pk : !tile.ptr<f32> -> f32
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %all = tile.splat %f : f32 -> tensor<64x128xf32>
    %w = arith.mulf %d, %all : tensor<64x128xf32>
    %s = arith.addf %sum, %w : tensor<64x128xf32>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %s, %next : tensor<64x128xf32>, i32
  }
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
func.func @factor_written(%p: !tile.ptr<f32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %bufA = tile.smem_alloc {tile.rotates} : !tile.smem<64x64xf16, minor = 1, stages = 3>
  %bufB = tile.smem_alloc {tile.rotates} : !tile.smem<64x128xf16, minor = 1, stages = 3>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %slot = %c0) -> (tensor<64x128xf32>, i32) : i32 {
    %sa = tile.smem_slot %bufA[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x128xf16, minor = 1, stages = 3> -> !tile.smem<64x128xf16, minor = 1>
    %pk = tile.ptr_add %p, %k : !tile.ptr<f32>, i32
    %f = tile.gather %pk : !tile.ptr<f32> -> f32
    tile.store %sum, %c[%k, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %all = tile.splat %f : f32 -> tensor<64x128xf32>
    %w = arith.mulf %d, %all : tensor<64x128xf32>
    %s = arith.addf %sum, %w : tensor<64x128xf32>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %s, %next : tensor<64x128xf32>, i32
  }
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----
// What the iteration before has loaded is exchanged between threads and widened behind the product, while it runs: the
// weights that the product reads stay where they are, and no scratch shares their bytes.
// CHECK-LABEL: func.func @loaded_before
// CHECK: scf.for %{{.*}} iter_args(%[[H:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}})
// CHECK: %[[D:.*]] = tile.mma wgmma_f16
// CHECK-NEXT: %[[MINE:.*]] = tile.convert %[[X]]
// CHECK-NEXT: arith.extf %[[MINE]]
// CHECK-NEXT: tile.mma_wait 0 of %[[D]]
// CHECK-NEXT: arith.addf
// Where the loop writes the weights, the product is over first: their bytes may serve the exchange.
// CHECK-LABEL: func.func @weights_written
// CHECK: tile.mma wgmma_f16
// CHECK-NEXT: tile.mma_wait 0
// CHECK-NEXT: tile.convert
#rows = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#acc = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
func.func @loaded_before(%X: !tile.view<3xf16>, %h0: tensor<64x64xf16, #acc>, %x0: tensor<64x64xf16, #rows>, %n: i32) -> tensor<64x64xf16, #acc> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0, %x = %x0) -> (tensor<64x64xf16, #acc>, tensor<64x64xf16, #rows>) : i32 {
    %ahead = arith.addi %t, %c1 : i32
    %next = tile.load %X[%ahead, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<64x64xf16, #rows>
    %mine = tile.convert %x : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #acc>
    %wide = arith.extf %mine : tensor<64x64xf16, #acc> to tensor<64x64xf32, #acc>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %h, %w, %zero : tensor<64x64xf16, #acc>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #acc>
    %s = arith.addf %d, %wide : tensor<64x64xf32, #acc>
    %new = arith.truncf %s : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    scf.yield %new, %next : tensor<64x64xf16, #acc>, tensor<64x64xf16, #rows>
  }
  return %r#0 : tensor<64x64xf16, #acc>
}
func.func @weights_written(%X: !tile.view<3xf16>, %h0: tensor<64x64xf16, #acc>, %x0: tensor<64x64xf16, #rows>, %n: i32) -> tensor<64x64xf16, #acc> attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%h = %h0, %x = %x0) -> (tensor<64x64xf16, #acc>, tensor<64x64xf16, #rows>) : i32 {
    %ahead = arith.addi %t, %c1 : i32
    %next = tile.load %X[%ahead, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<64x64xf16, #rows>
    tile.smem_store %h, %w : tensor<64x64xf16, #acc>, !tile.smem<64x64xf16, minor = 1>
    tile.barrier
    %mine = tile.convert %x : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #acc>
    %wide = arith.extf %mine : tensor<64x64xf16, #acc> to tensor<64x64xf32, #acc>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %h, %w, %zero : tensor<64x64xf16, #acc>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #acc>
    %s = arith.addf %d, %wide : tensor<64x64xf32, #acc>
    %new = arith.truncf %s : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    scf.yield %new, %next : tensor<64x64xf16, #acc>, tensor<64x64xf16, #rows>
  }
  return %r#0 : tensor<64x64xf16, #acc>
}
