// How many stages loops get that ask for none: as many as leave shared memory for a second program on the multiprocessor,
// where there are registers for one.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-stage))' --tile-target=sm_90a | FileCheck %s

// Eight warps that sum in 64 registers each: 3 stages of 32 KiB twice.
// CHECK-LABEL: func.func @half
// CHECK: tile.smem_alloc {{.*}}stages = 3>
func.func @half(%A: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %C: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %b = tile.load_shared %B[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %a, %b, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// Sums in 128 registers leave none: 4 stages of 48 KiB.
// CHECK-LABEL: func.func @whole
// CHECK: tile.smem_alloc {{.*}}stages = 4>
func.func @whole(%A: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %C: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %b = tile.load_shared %B[%k, %c0 : i32, i32] box [64, 256] : !tile.view<2xf16> -> !tile.smem<64x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %a, %b, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>
  return
}
