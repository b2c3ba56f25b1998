// Programs of one warpgroup of consumers: where a product of the loop waits for work on results, more of them share the
// multiprocessor, though registers may not suffice (pipeline.cpp looks). It multiplies what is computed of another one's
// result,
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @chained
// CHECK-SAME: tile.crowded
// CHECK: tile.specialize regs(32, 128)
func.func @chained(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %more = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%c0, %i : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %sq, %sk, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %e = math.exp2 %s : tensor<64x64xf32>
    %m = arith.addf %more, %e : tensor<64x64xf32>
    %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %sk, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %m : tensor<64x64xf32>, tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r#0 : tensor<64x64xf32>
  tile.print "m" %r#1 : tensor<64x64xf32>
  return
}

// -----

// or adds to what the iteration has changed.
// CHECK-LABEL: func.func @decays
// CHECK-SAME: tile.crowded
// CHECK: tile.specialize regs(32, 128)
func.func @decays(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %half = arith.constant dense<0.5> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %more = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%c0, %i : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %e = math.exp2 %more : tensor<64x64xf32>
    %m = arith.addf %more, %e : tensor<64x64xf32>
    %less = arith.mulf %acc, %half : tensor<64x64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sq, %sk, %less : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %m : tensor<64x64xf32>, tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r#0 : tensor<64x64xf32>
  tile.print "m" %r#1 : tensor<64x64xf32>
  return
}

// -----

// CHECK-LABEL: func.func @apart
// CHECK-NOT: tile.crowded
// CHECK: tile.specialize regs(40, 216)
func.func @apart(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %more = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%c0, %i : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %sq, %sk, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %e = math.exp2 %s : tensor<64x64xf32>
    %m = arith.addf %more, %e : tensor<64x64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sk, %sk, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %m : tensor<64x64xf32>, tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r#0 : tensor<64x64xf32>
  tile.print "m" %r#1 : tensor<64x64xf32>
  return
}
