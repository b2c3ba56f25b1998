// What shared memory is for where it is short: in a loop, whole tiles that leave and copies that consumers would wait for
// come before second buffers of shared tiles.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' | FileCheck %s

// The tile that is added to a product comes through a ring.
// CHECK-LABEL: func.func @states
// CHECK-NOT: tile.alternates
// CHECK: tile.specialize
// CHECK-COUNT-4: tile.tma_load
// CHECK: consumer {
// CHECK-NOT: tile.load
// CHECK: tile.tma_store {{.*}} <128x64xbf16, minor = 1>
// CHECK-NOT: tile.load
// CHECK: tile.tma_store {{.*}} <64x64xbf16, minor = 1>
func.func @states(%w: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %k: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %g: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %u: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %s: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %o: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %zero) -> (tensor<128x64xf32>) : i32 {
    %t = arith.muli %i, %c64 : i32
    %at = arith.muli %i, %c128 : i32
    %low = arith.truncf %state : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %low, %s[%at, %c0 : i32, i32] : tensor<128x64xbf16>, !tile.view<2xbf16>
    %slow = tile.share %low : tensor<128x64xbf16> -> !tile.smem<128x64xbf16, minor = 1>
    %sw = tile.load_shared %w[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %sk = tile.load_shared %k[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %sg = tile.load_shared %g[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xf32> -> !tile.smem<64x128xf32, minor = 1>
    %d = tile.mma wgmma_bf16 k 128 warps(4, 1) %sw, %slow, %none : !tile.smem<64x128xbf16, minor = 1>, !tile.smem<128x64xbf16, minor = 1> -> tensor<64x64xf32>
    %tu = tile.load %u[%t, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<64x64xbf16>
    %wu = arith.extf %tu : tensor<64x64xbf16> to tensor<64x64xf32>
    %x = arith.subf %wu, %d : tensor<64x64xf32>
    %now = arith.truncf %x : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %now, %o[%t, %c0 : i32, i32] : tensor<64x64xbf16>, !tile.view<2xbf16>
    %snow = tile.share %now : tensor<64x64xbf16> -> !tile.smem<64x64xbf16, minor = 1>
    %tk = tile.smem_load %sk : !tile.smem<64x128xbf16, minor = 1> -> tensor<64x128xbf16>
    %tg = tile.smem_load %sg : !tile.smem<64x128xf32, minor = 1> -> tensor<64x128xf32>
    %wk = arith.extf %tk : tensor<64x128xbf16> to tensor<64x128xf32>
    %kg = arith.mulf %wk, %tg : tensor<64x128xf32>
    %kd = arith.truncf %kg : tensor<64x128xf32> to tensor<64x128xbf16>
    %skd = tile.share %kd : tensor<64x128xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %turned = tile.smem_trans %skd : !tile.smem<64x128xbf16, minor = 1> -> !tile.smem<128x64xbf16, minor = 0>
    %next = tile.mma wgmma_bf16 k 64 warps(4, 1) %turned, %snow, %state : !tile.smem<128x64xbf16, minor = 0>, !tile.smem<64x64xbf16, minor = 1> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  } {tile.stages = 2 : i32}
  return
}

// -----
// Second buffers would leave room for parts of the stored tile, which each wait for the one before.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: tile.alternates
// CHECK: tile.specialize
// CHECK: consumer {
// CHECK: tile.tma_store {{.*}} <128x64xbf16, minor = 1>
// CHECK: tile.tma_store {{.*}} <64x64xbf16, minor = 1>
func.func @whole(%w: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %k: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %g: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %s: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %o: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%state = %zero) -> (tensor<128x64xf32>) : i32 {
    %t = arith.muli %i, %c64 : i32
    %at = arith.muli %i, %c128 : i32
    %low = arith.truncf %state : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %low, %s[%at, %c0 : i32, i32] : tensor<128x64xbf16>, !tile.view<2xbf16>
    %slow = tile.share %low : tensor<128x64xbf16> -> !tile.smem<128x64xbf16, minor = 1>
    %sw = tile.load_shared %w[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %sk = tile.load_shared %k[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %sg = tile.load_shared %g[%t, %c0 : i32, i32] box [64, 128] : !tile.view<2xf32> -> !tile.smem<64x128xf32, minor = 1>
    %d = tile.mma wgmma_bf16 k 128 warps(4, 1) %sw, %slow, %none : !tile.smem<64x128xbf16, minor = 1>, !tile.smem<128x64xbf16, minor = 1> -> tensor<64x64xf32>
    %x = arith.addf %d, %d : tensor<64x64xf32>
    %now = arith.truncf %x : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %now, %o[%t, %c0 : i32, i32] : tensor<64x64xbf16>, !tile.view<2xbf16>
    %snow = tile.share %now : tensor<64x64xbf16> -> !tile.smem<64x64xbf16, minor = 1>
    %tk = tile.smem_load %sk : !tile.smem<64x128xbf16, minor = 1> -> tensor<64x128xbf16>
    %tg = tile.smem_load %sg : !tile.smem<64x128xf32, minor = 1> -> tensor<64x128xf32>
    %wk = arith.extf %tk : tensor<64x128xbf16> to tensor<64x128xf32>
    %kg = arith.mulf %wk, %tg : tensor<64x128xf32>
    %kd = arith.truncf %kg : tensor<64x128xf32> to tensor<64x128xbf16>
    %skd = tile.share %kd : tensor<64x128xbf16> -> !tile.smem<64x128xbf16, minor = 1>
    %turned = tile.smem_trans %skd : !tile.smem<64x128xbf16, minor = 1> -> !tile.smem<128x64xbf16, minor = 0>
    %next = tile.mma wgmma_bf16 k 64 warps(4, 1) %turned, %snow, %state : !tile.smem<128x64xbf16, minor = 0>, !tile.smem<64x64xbf16, minor = 1> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  } {tile.stages = 2 : i32}
  return
}
