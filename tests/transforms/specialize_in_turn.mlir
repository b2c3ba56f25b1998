// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' | FileCheck %s

// Four tiles of 64 KB behind a loop, read one after the other: rings of their own would not fit, one ring for all does.
// CHECK-LABEL: func.func @behind
// CHECK: tile.specialize
// CHECK: producer {
// CHECK: scf.for
// CHECK: }
// CHECK: tile.ring_reserve %[[RING:.*]] bytes 65536
// CHECK: tile.ring_reserve %[[RING]] bytes 65536
// CHECK: tile.ring_reserve %[[RING]] bytes 65536
// CHECK: tile.ring_reserve %[[RING]] bytes 65536
// CHECK-NOT: tile.ring_reserve
// CHECK: consumer {
// CHECK: scf.for
// CHECK: }
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma
// CHECK: tile.ring_release %[[RING]]
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma
// CHECK: tile.ring_release %[[RING]]
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma
// CHECK: tile.ring_release %[[RING]]
// CHECK: tile.ring_acquire %[[RING]]
func.func @behind(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %c384 = arith.constant 384 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %h = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  %b0 = tile.load_shared %b[%c0, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %b1 = tile.load_shared %b[%c128, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %b2 = tile.load_shared %b[%c256, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %b3 = tile.load_shared %b[%c384, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %wide = arith.constant dense<0.0> : tensor<128x256xf32>
  %d0 = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %b0, %wide : tensor<128x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<128x256xf32>
  %d1 = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %b1, %d0 : tensor<128x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<128x256xf32>
  %d2 = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %b2, %d1 : tensor<128x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<128x256xf32>
  %d3 = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %b3, %d2 : tensor<128x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<128x256xf32>
  tile.store %d3, %c[%c0, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>
  return
}

// -----

// Copies of the loop get their second stages before the next program's tile in front of it gets its own.
// CHECK-LABEL: func.func @front
// CHECK-DAG: tile.smem_alloc : <128x256xf16, minor = 1>
// CHECK-DAG: tile.smem_alloc : <256x128xf16, minor = 1, stages = 2>
// CHECK: tile.specialize
func.func @front(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sa = tile.load_shared %a[%c0, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %r = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sb = tile.load_shared %b[%c0, %k : i32, i32] box [256, 128] : !tile.view<2xf16> -> !tile.smem<256x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 256 warps(8, 1) %sa, %sb, %zero : !tile.smem<128x256xf16, minor = 1>, !tile.smem<256x128xf16, minor = 1> -> tensor<128x128xf32>
    %h = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xf16>
    %sw = tile.load_shared %w[%k, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %e = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %sw, %acc : tensor<128x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %e : tensor<128x128xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// One warpgroup, and two tiles of 32 KB behind the loop: with a ring for each of them one program fills the
// multiprocessor, which multiplies nothing while it works on results. They take turns, and two programs fit.
// CHECK-LABEL: func.func @two_programs
// CHECK: tile.specialize regs(40, 216) programs 2 producer {
// CHECK: scf.for
// CHECK: }
// CHECK: tile.ring_reserve %[[RING:.*]] bytes 32768
// CHECK: tile.ring_reserve %[[RING]] bytes 32768
// CHECK-NOT: tile.ring_reserve
// CHECK: consumer {
func.func @two_programs(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  %h = arith.truncf %r : tensor<64x128xf32> to tensor<64x128xf16>
  %b0 = tile.load_shared %b[%c0, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  %b1 = tile.load_shared %b[%c128, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  %d0 = tile.mma wgmma_f16 k 128 warps(4, 1) %h, %b0, %zero : tensor<64x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<64x128xf32>
  %g = arith.truncf %d0 : tensor<64x128xf32> to tensor<64x128xf16>
  %d1 = tile.mma wgmma_f16 k 128 warps(4, 1) %g, %b1, %zero : tensor<64x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<64x128xf32>
  tile.store %d1, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
