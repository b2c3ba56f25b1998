// Who releases tells others that all it wrote before is there; what a bulk copy writes may still be on its way.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @stored_then_released
// CHECK-NOT: tile.tma_store
// CHECK: tile.store
// CHECK-NOT: tile.tma_store
func.func @stored_then_released(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %flag: !tile.ptr<i32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %h = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %h, %c[%m0, %n0 : i32, i32] : tensor<128x128xf16>, !tile.view<2xf16>
  %old = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  return
}

// -----

// What is stored behind the release, as by the last of several programs, is nobody's to be told of.
// CHECK-LABEL: func.func @released_then_stored
// CHECK: tile.atomic_rmw add acq_rel
// CHECK: scf.if
// CHECK: tile.tma_store
func.func @released_then_stored(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %flag: !tile.ptr<i32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %h = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  %old = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  %last = arith.cmpi eq, %old, %c1 : i32
  scf.if %last {
    tile.store %h, %c[%m0, %n0 : i32, i32] : tensor<128x128xf16>, !tile.view<2xf16>
  }
  return
}

// -----

// One or the other.
// CHECK-LABEL: func.func @stored_or_released
// CHECK: scf.if
// CHECK: tile.tma_store
// CHECK: else
// CHECK: tile.atomic_rmw add acq_rel
func.func @stored_or_released(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %flag: !tile.ptr<i32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %h = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  %even = arith.cmpi eq, %x, %c0 : i32
  scf.if %even {
    tile.store %h, %c[%m0, %n0 : i32, i32] : tensor<128x128xf16>, !tile.view<2xf16>
  } else {
    %old = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
  }
  return
}

// -----

// The next iteration's release is behind this one's store.
// CHECK-LABEL: func.func @released_in_a_loop
// CHECK-NOT: tile.tma_store
// CHECK: tile.store
// CHECK-NOT: tile.tma_store
func.func @released_in_a_loop(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %flag: !tile.ptr<i32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %h = arith.truncf %r : tensor<128x128xf32> to tensor<128x128xf16>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %old = tile.atomic_rmw add acq_rel gpu %flag, %c1 : !tile.ptr<i32>, i32 -> i32
    %at = arith.muli %i, %c128 : i32
    tile.store %h, %c[%at, %n0 : i32, i32] : tensor<128x128xf16>, !tile.view<2xf16>
  }
  return
}
