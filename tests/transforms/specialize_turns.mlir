// 8-bit and 32-bit tiles that lie across what products want: copied as they lie into a ring of their own, turned by other warps of the
// producer's warpgroup into a stage of the ring that consumers read.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// The values of an attention loop: the weights they meet are in registers, which says in which order keys are counted.
// CHECK-LABEL: func.func @values
// CHECK-DAG: %[[V:.*]] = tile.smem_alloc : <64x64xf8E4M3FN, minor = 0, stages = {{.*}}, interleaved>
// CHECK-DAG: %[[RAW:.*]] = tile.smem_alloc : <64x64xf8E4M3FN, minor = 1, stages = 2>
// CHECK-DAG: %[[READY:.*]] = tile.ring_alloc arrivals 1 fills 3 turned
// CHECK-DAG: %[[LANDED:.*]] = tile.ring_alloc arrivals 3 per_warp : <2>
// CHECK: tile.specialize regs(56, {{.*}}) {{.*}}producer {
// CHECK: scf.for
// CHECK: %[[AT:.*]] = tile.ring_reserve %[[LANDED]] bytes 4096
// CHECK: %[[SLOT:.*]] = tile.smem_slot %[[RAW]][%[[AT]]]
// CHECK: tile.tma_load {{.*}} to %[[SLOT]] signals %[[LANDED]][%[[AT]]]
// CHECK: } turner {
// CHECK: scf.for
// CHECK-NOT: tile.ring_acquire %[[READY]]
// CHECK: %[[FROM:.*]] = tile.ring_acquire %[[LANDED]]
// CHECK: %[[TO:.*]] = tile.ring_reserve %[[READY]] bytes 0
// CHECK-DAG: %[[SOURCE:.*]] = tile.smem_slot %[[RAW]][%[[FROM]]]
// CHECK-DAG: %[[TARGET:.*]] = tile.smem_slot %[[V]][%[[TO]]]
// CHECK: tile.smem_turn %[[SOURCE]] to %[[TARGET]]
// CHECK-NEXT: tile.ring_commit %[[READY]][%[[TO]]]
// CHECK-NEXT: tile.ring_release %[[LANDED]]
// CHECK: } consumer {
// CHECK-NOT: tile.smem_load
// CHECK-NOT: tile.smem_store
// CHECK: %[[I:.*]] = tile.ring_acquire %[[READY]]
// CHECK: tile.smem_slot %[[V]][%[[I]]]
func.func @values(%q: !tile.view<2xf8E4M3FN> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %k: !tile.view<2xf8E4M3FN> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %v: !tile.view<2xf8E4M3FN> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %o: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf8E4M3FN> -> !tile.smem<64x128xf8E4M3FN, minor = 1>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%j, %c0 : i32, i32] box [64, 128] : !tile.view<2xf8E4M3FN> -> !tile.smem<64x128xf8E4M3FN, minor = 1>
    %kt = tile.smem_trans %sk : !tile.smem<64x128xf8E4M3FN, minor = 1> -> !tile.smem<128x64xf8E4M3FN, minor = 0>
    %s = tile.mma wgmma_f8 k 128 warps(4, 1) %sq, %kt, %zero : !tile.smem<64x128xf8E4M3FN, minor = 1>, !tile.smem<128x64xf8E4M3FN, minor = 0> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
    %raw = tile.load_shared %v[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf8E4M3FN> -> !tile.smem<64x64xf8E4M3FN, minor = 1>
    %rv = tile.smem_load %raw : !tile.smem<64x64xf8E4M3FN, minor = 1> -> tensor<64x64xf8E4M3FN>
    %sv = tile.share %rv : tensor<64x64xf8E4M3FN> -> !tile.smem<64x64xf8E4M3FN, minor = 0>
    %d = tile.mma wgmma_f8 k 64 warps(4, 1) %p, %sv, %acc : tensor<64x64xf8E4M3FN>, !tile.smem<64x64xf8E4M3FN, minor = 0> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Both operands of a product across: two fields of one stage, in their own order.
// CHECK-LABEL: func.func @both
// CHECK-DAG: %[[READY:.*]] = tile.ring_alloc arrivals 1 fills 3 turned
// CHECK-DAG: %[[LANDED:.*]] = tile.ring_alloc arrivals 3 per_warp
// CHECK-NOT: interleaved
// CHECK: tile.ring_reserve %[[LANDED]] bytes 8192
// CHECK-NEXT: tile.smem_slot
// CHECK-NEXT: tile.smem_slot
// CHECK-COUNT-2: tile.tma_load
// CHECK: } turner {
// CHECK: tile.ring_acquire %[[LANDED]]
// CHECK-COUNT-2: tile.smem_turn
// CHECK-NEXT: tile.ring_commit %[[READY]]
func.func @both(%a: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %b: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %o: !tile.view<2xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xi32>) : i32 {
    %la = tile.load_shared %a[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %ra = tile.smem_load %la : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
    %sa = tile.share %ra : tensor<64x64xi8> -> !tile.smem<64x64xi8, minor = 0>
    %ta = tile.smem_trans %sa : !tile.smem<64x64xi8, minor = 0> -> !tile.smem<64x64xi8, minor = 1>
    %lb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %rb = tile.smem_load %lb : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
    %sb = tile.share %rb : tensor<64x64xi8> -> !tile.smem<64x64xi8, minor = 0>
    %d = tile.mma wgmma_s8 k 64 warps(4, 1) %ta, %sb, %acc : !tile.smem<64x64xi8, minor = 1>, !tile.smem<64x64xi8, minor = 0> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  }
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2xi32>
  return
}

// -----

// Without alignment threads copy, if the loop asks for it, and none are left to turn: consumers do, as without roles.
// CHECK-LABEL: func.func @unaligned
// CHECK: tile.specialize
// CHECK-NOT: turner
// CHECK: tile.smem_load
// CHECK: tile.smem_store
func.func @unaligned(%a: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %b: !tile.view<2xi8> {tile.unit_stride = 1 : i32}, %o: !tile.view<2xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xi32>) : i32 {
    %la = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %lb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %rb = tile.smem_load %lb : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
    %sb = tile.share %rb : tensor<64x64xi8> -> !tile.smem<64x64xi8, minor = 0>
    %d = tile.mma wgmma_s8 k 64 warps(4, 1) %la, %sb, %acc : !tile.smem<64x64xi8, minor = 1>, !tile.smem<64x64xi8, minor = 0> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  } {tile.specialize = 1 : i32}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2xi32>
  return
}

// -----

// One of the tiles stays for the whole loop, in a view that bulk copies do not read: consumers share it, and turn it.
// CHECK-LABEL: func.func @stays_across
// CHECK: } turner {
// CHECK: tile.smem_turn
// CHECK-NOT: tile.smem_turn
// CHECK: } consumer {
// CHECK: %[[A:.*]] = tile.load
// CHECK: tile.smem_store %[[A]]
// CHECK: scf.for
// CHECK-NOT: tile.smem_load
// CHECK: tile.mma
func.func @stays_across(%a: !tile.view<2xi8>, %b: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %o: !tile.view<2xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %la = tile.load_shared %a[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
  %ra = tile.smem_load %la : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
  %sa = tile.share %ra : tensor<64x64xi8> -> !tile.smem<64x64xi8, minor = 0>
  %ta = tile.smem_trans %sa : !tile.smem<64x64xi8, minor = 0> -> !tile.smem<64x64xi8, minor = 1>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xi32>) : i32 {
    %lb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %rb = tile.smem_load %lb : !tile.smem<64x64xi8, minor = 1> -> tensor<64x64xi8>
    %sb = tile.share %rb : tensor<64x64xi8> -> !tile.smem<64x64xi8, minor = 0>
    %d = tile.mma wgmma_s8 k 64 warps(4, 1) %ta, %sb, %acc : !tile.smem<64x64xi8, minor = 1>, !tile.smem<64x64xi8, minor = 0> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  }
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2xi32>
  return
}

// -----

// f32 operands across: the threads read a as it lies, b turns. It stays in its own order.
// CHECK-LABEL: func.func @words
// CHECK-NOT: interleaved
// CHECK: tile.ring_alloc arrivals 4 per_warp fills 4 turned
// CHECK: } turner {
// CHECK: tile.smem_turn {{.*}} : <32x64xf32, minor = 1>, <32x64xf32, minor = 0>
// CHECK-NOT: tile.smem_turn
// CHECK: } consumer {
// CHECK: tile.mma wgmma_tf32 {{.*}} : !tile.smem<64x32xf32, minor = 0>, <32x64xf32, minor = 0>
func.func @words(%a: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %b: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %o: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %la = tile.load_shared %a[%k, %c0 : i32, i32] box [32, 64] : !tile.view<2xf32> -> !tile.smem<32x64xf32, minor = 1>
    %ta = tile.smem_trans %la : !tile.smem<32x64xf32, minor = 1> -> !tile.smem<64x32xf32, minor = 0>
    %lb = tile.load_shared %b[%k, %c0 : i32, i32] box [32, 64] : !tile.view<2xf32> -> !tile.smem<32x64xf32, minor = 1>
    %rb = tile.smem_load %lb : !tile.smem<32x64xf32, minor = 1> -> tensor<32x64xf32>
    %sb = tile.share %rb : tensor<32x64xf32> -> !tile.smem<32x64xf32, minor = 0>
    %d = tile.mma wgmma_tf32 k 32 warps(4, 1) %ta, %sb, %acc : !tile.smem<64x32xf32, minor = 0>, !tile.smem<32x64xf32, minor = 0> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
