// Stored tiles that leave through the stage of a tile nobody needs any more.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// With staging of their own for the results, keys and values would have one stage. The query tile, which is read only
// where there is something to do, is copied on every path then, and kept until the store.
// CHECK-LABEL: func.func @behind_a_branch
// CHECK-DAG: %[[QUERIES:.*]] = tile.ring_alloc arrivals 2 : <1>
// CHECK-DAG: %[[KEYS:.*]] = tile.ring_alloc arrivals 2 : <2>
// CHECK: producer {
// CHECK: tile.ring_reserve %[[QUERIES]]
// CHECK: scf.if
// CHECK: tile.ring_reserve %[[KEYS]]
// CHECK: } consumer {
// CHECK: %[[AT:.*]] = tile.ring_acquire %[[QUERIES]]
// CHECK: %[[TILE:.*]] = tile.smem_slot {{.*}}[%[[AT]]]
// CHECK: scf.if
// CHECK-NOT: tile.ring_release %[[QUERIES]]
// CHECK: else
// CHECK: tile.tma_store {{.*}} through %[[TILE]]
// CHECK: tile.ring_release %[[QUERIES]]
func.func @behind_a_branch(%q: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %k: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %o: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>, tile.dim_multiple_of = array<i32: 1, 1, 16>}, %end: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c80 = arith.constant 80 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0.0> : tensor<128x80xf32>
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %h = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %sq = tile.load_shared %q[%h, %m0, %c0 : i32, i32, i32] box [128, 256] : !tile.view<3xf16> -> !tile.smem<128x256xf16, minor = 1>
  %any = arith.cmpi sgt, %end, %c0 : i32
  %r = scf.if %any -> tensor<128x256xf32> {
    %a = scf.for %j = %c0 to %end step %c80 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %sk = tile.load_shared %k[%h, %j, %c0 : i32, i32, i32] box [80, 256] : !tile.view<3xf16> -> !tile.smem<80x256xf16, minor = 1>
      %tk = tile.smem_trans %sk : !tile.smem<80x256xf16, minor = 1> -> !tile.smem<256x80xf16, minor = 0>
      %s = tile.mma wgmma_f16 k 256 warps(8, 1) %sq, %tk, %none : !tile.smem<128x256xf16, minor = 1>, !tile.smem<256x80xf16, minor = 0> -> tensor<128x80xf32>
      %p = arith.truncf %s : tensor<128x80xf32> to tensor<128x80xf16>
      %jv = arith.addi %j, %end : i32
      %sv = tile.load_shared %k[%h, %jv, %c0 : i32, i32, i32] box [80, 256] : !tile.view<3xf16> -> !tile.smem<80x256xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 80 warps(8, 1) %p, %sv, %acc : tensor<128x80xf16>, !tile.smem<80x256xf16, minor = 1> -> tensor<128x256xf32>
      scf.yield %d : tensor<128x256xf32>
    } {tile.stages = 2 : i32}
    scf.yield %a : tensor<128x256xf32>
  } else {
    scf.yield %zero : tensor<128x256xf32>
  }
  %out = arith.truncf %r : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %out, %o[%h, %m0, %c0 : i32, i32, i32] : tensor<128x256xf16>, !tile.view<3xf16>
  return
}

// -----

// A buffer for the result would leave one stage for the loop's copies: the result is stored from registers.
// CHECK-LABEL: func.func @from_registers
// CHECK: tile.ring_alloc arrivals 2 : <3>
// CHECK: consumer {
// CHECK-NOT: tile.tma_store
// CHECK: tile.store
func.func @from_registers(%w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %o: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %end: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x512xf32>
  %x = tile.program_id 0
  %m0 = arith.muli %x, %c64 : i32
  %r = scf.for %j = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x512xf32>) : i32 {
    %sw = tile.load_shared %w[%m0, %j : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sk = tile.load_shared %k[%j, %c0 : i32, i32] box [64, 512] : !tile.view<2xf16> -> !tile.smem<64x512xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 2) %sw, %sk, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x512xf16, minor = 1> -> tensor<64x512xf32>
    scf.yield %d : tensor<64x512xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %o[%m0, %c0 : i32, i32] : tensor<64x512xf32>, !tile.view<2xf32>
  return
}
