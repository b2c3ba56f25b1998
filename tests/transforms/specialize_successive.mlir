// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' | FileCheck %s

// Two loops of products one behind the other, whose tiles have other types. With rings of their own a multiprocessor had
// room for one program; with one ring for both it has for two. Both loops see its stages as tiles of their own types, the
// larger tile of each in the same buffer.
// CHECK-LABEL: func.func @types
// CHECK: %[[LARGE:.*]] = tile.smem_alloc : <128x128xi8, minor = 1, stages = 4>
// CHECK: %[[SMALL:.*]] = tile.smem_alloc : <64x128xi8, minor = 1, stages = 4>
// CHECK: %[[RING:.*]] = tile.ring_alloc arrivals 1 : <4>
// CHECK-NOT: tile.ring_alloc
// CHECK: tile.specialize regs(40, 216) programs 2 producer {
// CHECK: scf.for
// CHECK: %[[I:.*]] = tile.ring_reserve %[[RING]] bytes 24576
// CHECK-DAG: tile.smem_slot %[[LARGE]][%[[I]]] : <128x128xi8, minor = 1, stages = 4> -> <128x128xi8, minor = 1>
// CHECK-DAG: tile.smem_slot %[[SMALL]][%[[I]]] : <64x128xi8, minor = 1, stages = 4> -> <64x128xi8, minor = 1>
// CHECK: scf.for
// CHECK: %[[J:.*]] = tile.ring_reserve %[[RING]] bytes 24576
// CHECK-DAG: tile.smem_slot %[[LARGE]][%[[J]]] : <128x128xi8, minor = 1, stages = 4> -> <64x128xf16, minor = 1>
// CHECK-DAG: tile.smem_slot %[[SMALL]][%[[J]]] : <64x128xi8, minor = 1, stages = 4> -> <64x64xf16, minor = 1>
// CHECK: consumer {
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma wgmma_s8
// CHECK: tile.ring_release %[[RING]]
// CHECK: tile.ring_acquire %[[RING]]
// CHECK: tile.mma wgmma_f16
// CHECK: tile.ring_release %[[RING]]
func.func @types(%a: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %b: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %d: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0> : tensor<64x128xi32>
  %whole = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %none) -> (tensor<64x128xi32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 128] : !tile.view<2xi8> -> !tile.smem<64x128xi8, minor = 1>
    %sb = tile.load_shared %b[%c0, %k : i32, i32] box [128, 128] : !tile.view<2xi8> -> !tile.smem<128x128xi8, minor = 1>
    %tb = tile.smem_trans %sb : !tile.smem<128x128xi8, minor = 1> -> !tile.smem<128x128xi8, minor = 0>
    %m = tile.mma wgmma_s8 k 128 warps(4, 1) %sa, %tb, %acc : !tile.smem<64x128xi8, minor = 1>, !tile.smem<128x128xi8, minor = 0> -> tensor<64x128xi32>
    scf.yield %m : tensor<64x128xi32>
  }
  %start = arith.sitofp %whole : tensor<64x128xi32> to tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %start) -> (tensor<64x128xf32>) : i32 {
    %sc = tile.load_shared %c[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sd = tile.load_shared %d[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %m = tile.mma wgmma_f16 k 64 warps(4, 1) %sc, %sd, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %m : tensor<64x128xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----

// With half of each tile there is room for two programs anyway: each loop keeps a ring, which the producer fills while the
// other loop is not over.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: tile.ring_alloc
// CHECK: tile.specialize regs(40, 216) programs 2 producer {
func.func @apart(%a: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %b: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %d: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0> : tensor<64x128xi32>
  %whole = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (tensor<64x128xi32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xi8> -> !tile.smem<64x64xi8, minor = 1>
    %sb = tile.load_shared %b[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xi8> -> !tile.smem<128x64xi8, minor = 1>
    %tb = tile.smem_trans %sb : !tile.smem<128x64xi8, minor = 1> -> !tile.smem<64x128xi8, minor = 0>
    %m = tile.mma wgmma_s8 k 64 warps(4, 1) %sa, %tb, %acc : !tile.smem<64x64xi8, minor = 1>, !tile.smem<64x128xi8, minor = 0> -> tensor<64x128xi32>
    scf.yield %m : tensor<64x128xi32>
  }
  %start = arith.sitofp %whole : tensor<64x128xi32> to tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %start) -> (tensor<64x128xf32>) : i32 {
    %sc = tile.load_shared %c[%c0, %k : i32, i32] box [64, 32] : !tile.view<2xf16> -> !tile.smem<64x32xf16, minor = 1>
    %sd = tile.load_shared %d[%k, %c0 : i32, i32] box [32, 128] : !tile.view<2xf16> -> !tile.smem<32x128xf16, minor = 1>
    %m = tile.mma wgmma_f16 k 32 warps(4, 1) %sc, %sd, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %m : tensor<64x128xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
