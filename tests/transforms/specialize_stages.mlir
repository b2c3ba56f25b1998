// Stages that a loop asks for are copies under way: in loops of one product, and those that do nothing but multiply, the
// two that products read come on top, if there is room.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK: tile.ring_alloc arrivals 2 : <5>
func.func @product(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// Three stages of 64 KB are all there is room for.
// CHECK-LABEL: func.func @large
// CHECK: tile.ring_alloc arrivals 2 : <3>
func.func @large(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 128 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// So they do beside other work on tiles,
// CHECK-LABEL: func.func @scaled
// CHECK: tile.ring_alloc arrivals 2 : <5>
func.func @scaled(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    %e = math.exp2 %d : tensor<128x128xf32>
    scf.yield %e : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// but not where two are asked for,
// CHECK-LABEL: func.func @double_buffer
// CHECK: tile.ring_alloc arrivals 2 : <2>
func.func @double_buffer(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    %e = math.exp2 %d : tensor<128x128xf32>
    scf.yield %e : tensor<128x128xf32>
  } {tile.stages = 2 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// nor beside chains of products.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: tile.ring_alloc {{.*}} : <{{[4-8]}}>
// CHECK: tile.specialize
func.func @chain(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %sc = tile.load_shared %b[%k, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    %e = math.exp2 %d : tensor<128x128xf32>
    %h = arith.truncf %e : tensor<128x128xf32> to tensor<128x128xf16>
    %f = tile.mma wgmma_f16 k 128 warps(8, 1) %h, %sc, %e : tensor<128x128xf16>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %f : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// nor where threads read large tiles through the cache that shared memory takes its room from.
// CHECK-LABEL: func.func @cached
// CHECK: tile.ring_alloc arrivals 2 : <3>
func.func @cached(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    %t = tile.load %a[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<128x128xf16>
    %x = arith.extf %t : tensor<128x128xf16> to tensor<128x128xf32>
    %e = arith.mulf %d, %x : tensor<128x128xf32>
    scf.yield %e : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<128x128xf32>
  return
}

// -----

// Two programs of two warpgroups of consumers each, where tiles are small: one waits for its end, the other computes.
// CHECK-LABEL: func.func @small
// CHECK: tile.ring_alloc arrivals 2 : <4>
// CHECK: tile.specialize regs(32, 104) programs 2 producer
func.func @small(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 2) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  } {tile.stages = 3 : i32}
  tile.print "r" %r : tensor<64x128xf32>
  return
}

// -----

// Rings of two stages leave no room for results on their way into whole rows: threads write what they hold.
// CHECK-LABEL: func.func @full
// CHECK-NOT: tile.smem_alloc : <192x32
// CHECK: tile.ring_alloc arrivals 3 : <2>
// CHECK-NOT: tile.smem_alloc : <192x32
// CHECK: tile.store {{.*}} {tile.as_computed}
func.func @full(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %o: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 8, 8>}, %n: i32) attributes {tile.num_warps = 12 : i32} {
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<192x32xf32>
  %r = scf.for %k = %c0 to %n step %c256 iter_args(%acc = %zero) -> (tensor<192x32xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [192, 256] : !tile.view<2xf16> -> !tile.smem<192x256xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [256, 32] : !tile.view<2xf16> -> !tile.smem<256x32xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 256 warps(12, 1) %sa, %sb, %acc : !tile.smem<192x256xf16, minor = 1>, !tile.smem<256x32xf16, minor = 1> -> tensor<192x32xf32>
    scf.yield %d : tensor<192x32xf32>
  } {tile.stages = 2 : i32}
  %h = arith.truncf %r : tensor<192x32xf32> to tensor<192x32xf16>
  tile.store %h, %o[%c0, %c0 : i32, i32] : tensor<192x32xf16>, !tile.view<2xf16>
  return
}
