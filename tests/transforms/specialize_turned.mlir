// Products whose rows are the tile's columns (their warps stand along n) leave by bulk copies, too: a warpgroup has 64
// columns of each round of all warpgroups, and panels of its own.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// Two warpgroups, 80 rows: one round.
// CHECK-LABEL: func.func @one_round
// CHECK: tile.tma_store {{.*}} : tensor<80x128xf16>, <2xf16>, <80x128xf16, minor = 1>
func.func @one_round(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<80x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<80x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [80, 64] : !tile.view<2xf16> -> !tile.smem<80x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(1, 8) %sa, %sb, %acc : !tile.smem<80x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<80x128xf32>
    scf.yield %d : tensor<80x128xf32>
  }
  %h = arith.truncf %r : tensor<80x128xf32> to tensor<80x128xf16>
  tile.store %h, %c[%c0, %c0 : i32, i32] : tensor<80x128xf16>, !tile.view<2xf16>
  return
}

// -----

// Four rounds of one warpgroup: a buffer for two, one is filled while the other is copied out.
// CHECK-LABEL: func.func @four_rounds
// CHECK: tile.tma_store {{.*}} : tensor<40x256xf16>, <2xf16>, <40x128xf16, minor = 1>
func.func @four_rounds(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<40x256xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<40x256xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [40, 64] : !tile.view<2xf16> -> !tile.smem<40x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 256] : !tile.view<2xf16> -> !tile.smem<64x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(1, 4) %sa, %sb, %acc : !tile.smem<40x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<40x256xf32>
    scf.yield %d : tensor<40x256xf32>
  }
  %h = arith.truncf %r : tensor<40x256xf32> to tensor<40x256xf16>
  tile.store %h, %c[%c0, %c0 : i32, i32] : tensor<40x256xf16>, !tile.view<2xf16>
  return
}

// -----

// The transpose of such a product has its rows along the view's rows again.
// CHECK-LABEL: func.func @turned_back
// CHECK: tile.tma_store {{.*}} : tensor<128x80xf16>, <2xf16>, <128x{{[0-9]+}}xf16, minor = 1
func.func @turned_back(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<80x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<80x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [80, 64] : !tile.view<2xf16> -> !tile.smem<80x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(1, 8) %sa, %sb, %acc : !tile.smem<80x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<80x128xf32>
    scf.yield %d : tensor<80x128xf32>
  }
  %h = arith.truncf %r : tensor<80x128xf32> to tensor<80x128xf16>
  %t = tile.trans %h, [1, 0] : tensor<80x128xf16> -> tensor<128x80xf16>
  tile.store %t, %c[%c0, %c0 : i32, i32] : tensor<128x80xf16>, !tile.view<2xf16>
  return
}
