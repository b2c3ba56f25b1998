// Copies of later iterations stand behind a product of warpgroups that needs nothing but its stage: it runs while their
// addresses are computed, and follows that of the iteration before without a gap.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-stage,tile-assign-layouts,canonicalize,cse,tile-async-waits))' --tile-target=sm_90a | FileCheck %s

// The mask of the rows goes through shared memory on its way to the threads that copy them: no reason to wait either.
// CHECK-LABEL: func.func @gathered
// CHECK: tile.smem_alloc {tile.rotates} : <64x64xf16, minor = 1, stages = 3>
// CHECK: scf.for {{.*}} iter_args(%[[ACC:[a-z0-9]+]] =
// CHECK-NEXT: tile.async_wait 1
// CHECK-NEXT: tile.barrier
// CHECK-NOT: tile.async_gather
// CHECK-NOT: tile.mma_wait
// CHECK: %[[D:.*]] = tile.mma wgmma_f16
// CHECK-NEXT: tile.mma_wait 1
// CHECK-NEXT: tile.barrier
// CHECK: tile.convert
// CHECK: tile.async_gather
// CHECK: tile.async_commit
// CHECK-NOT: tile.mma_wait
// CHECK: scf.yield %[[D]]
func.func @gathered(%b: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %c: !tile.view<2xf32>, %n: i32, %p: !tile.ptr<f16> {tile.align = 16 : i32}, %rows: tensor<64x64xi32>, %first: tensor<64x1xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<64x64xi32>
    %offsets = arith.addi %rows, %at : tensor<64x64xi32>
    %ends = tile.splat %k : i32 -> tensor<64x1xi32>
    %live = arith.cmpi slt, %first, %ends : tensor<64x1xi32>
    %mask = tile.broadcast %live : tensor<64x1xi1> -> tensor<64x64xi1>
    %sa = tile.gather_shared %p offsets %offsets : tensor<64x64xi32> mask %mask : tensor<64x64xi1> : !tile.ptr<f16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A product that waits for what the iteration computes is no reason to be late with copies.
// CHECK-LABEL: func.func @computed
// CHECK-NOT: tile.rotates
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: tile.async_copy
// CHECK: tile.async_commit
// CHECK: arith.mulf
// CHECK: tile.mma wgmma_f16
func.func @computed(%a: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %b: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %half = arith.constant dense<0.5> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %less = arith.mulf %acc, %half : tensor<64x64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %less : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A product that its own iteration reads has ended when the next one begins: no second barrier.
// CHECK-LABEL: func.func @read
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 1
// CHECK-NEXT: tile.barrier
// CHECK: tile.mma wgmma_f16
// CHECK-NOT: tile.barrier
// CHECK: tile.async_copy
// CHECK: tile.mma_wait 0
// CHECK: scf.yield
func.func @read(%a: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %b: !tile.view<2xf16> {tile.unit_stride = 1 : i32}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %half = arith.constant dense<0.5> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %less = arith.mulf %d, %half : tensor<64x64xf32>
    %sum = arith.addf %acc, %less : tensor<64x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
