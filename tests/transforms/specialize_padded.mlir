// Tiles that products read with padding are larger boxes of views that end where the tile does.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @heads
// CHECK: tile.specialize
// CHECK: %[[ROWS:.*]] = tile.view_dim %arg1, 0
// CHECK: %[[WIDTH:.*]] = tile.view_dim %arg1, 1
// CHECK: %[[MOST:.*]] = arith.minsi %[[WIDTH]], %c72_i64 : i64
// CHECK: %[[K:.*]] = tile.make_view %{{.*}}, dims(%[[ROWS]], %[[MOST]]), {{.*}} {tile.of_launch}
// CHECK: tile.tma_load %{{.*}} to %{{.*}} signals %{{.*}} : <2xf16>, <64x128xf16, minor = 1>
// CHECK: scf.for
// CHECK: tile.tma_load %[[K]][%{{.*}}, %{{.*}} : i32, i32] to %{{.*}} : <2xf16>, <64x128xf16, minor = 1>
func.func @heads(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 72] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%j, %c0 : i32, i32] box [64, 72] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %t = tile.smem_trans %sk : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 72 warps(4, 1) %sq, %t, %acc : !tile.smem<64x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.print "r" %r : tensor<64x64xf32>
  return
}

// -----

// Where the tile ends elsewhere in every iteration, there is no such view, and the kernel stays as it is.
// CHECK-LABEL: func.func @moving
// CHECK-NOT: tile.make_view
// CHECK-NOT: tile.specialize
// CHECK: tile.load_shared %arg1[%{{.*}}, %arg3 : i32, i32] box [64, 72]
// CHECK: return
func.func @moving(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c72 = arith.constant 72 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [64, 72] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
  %r = scf.for %j = %c0 to %n step %c72 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%c0, %j : i32, i32] box [64, 72] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %t = tile.smem_trans %sk : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 72 warps(4, 1) %sq, %t, %acc : !tile.smem<64x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.print "r" %r : tensor<64x64xf32>
  return
}

// -----

// Nor where a loop copies rows in many panels of 32 bytes.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: tile.make_view
// CHECK-NOT: tile.specialize
// CHECK: return
func.func @narrow(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [5, 80] : !tile.view<2xf16> -> !tile.smem<64x80xf16, minor = 1>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sk = tile.load_shared %k[%j, %c0 : i32, i32] box [64, 80] : !tile.view<2xf16> -> !tile.smem<64x80xf16, minor = 1>
    %t = tile.smem_trans %sk : !tile.smem<64x80xf16, minor = 1> -> !tile.smem<80x64xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 80 warps(4, 1) %sq, %t, %acc : !tile.smem<64x80xf16, minor = 1>, !tile.smem<80x64xf16, minor = 0> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.print "r" %r : tensor<64x64xf32>
  return
}

// -----

// Nor where that leaves a loop one stage: 128 KB of keys beside 64 KB of queries.
// CHECK-LABEL: func.func @one_stage
// CHECK-NOT: tile.specialize
// CHECK: tile.load_shared {{.*}} box [128, 232]
// CHECK: tile.load_shared {{.*}} box [256, 232]
// CHECK: return
func.func @one_stage(%q: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %k: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sq = tile.load_shared %q[%c0, %c0 : i32, i32] box [128, 232] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
  %r = scf.for %j = %c0 to %n step %c256 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %sk = tile.load_shared %k[%j, %c0 : i32, i32] box [256, 232] : !tile.view<2xf16> -> !tile.smem<256x256xf16, minor = 1>
    %t = tile.smem_trans %sk : !tile.smem<256x256xf16, minor = 1> -> !tile.smem<256x256xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 232 warps(8, 1) %sq, %t, %acc : !tile.smem<128x256xf16, minor = 1>, !tile.smem<256x256xf16, minor = 0> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  tile.print "r" %r : tensor<128x256xf32>
  return
}
