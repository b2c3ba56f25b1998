// Copies that are the same for both programs of a cluster are marked: each program starts one half of them.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// CHECK-LABEL: func.func @shared
// CHECK: producer {
// CHECK-DAG: tile.tma_load %arg1{{.*}}{tile.multicast}
// CHECK-DAG: tile.tma_load %arg0{{[^{]*$}}
func.func @shared(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32, tile.cluster = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c64 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %n0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.print "r" %r : tensor<64x128xf32>
  return
}

// -----

// What differs comes in with the second iteration, through the value that a's column is; b's is computed from it.
// CHECK-LABEL: func.func @carried
// CHECK-NOT: tile.multicast
func.func @carried(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32, tile.cluster = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c64 : i32
  %r:2 = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero, %p = %c0) -> (tensor<64x128xf32>, i32) : i32 {
    %q = arith.addi %p, %n0 : i32
    %sa = tile.load_shared %a[%k, %p : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %q : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %next = arith.addi %q, %m : i32
    scf.yield %d, %next : tensor<64x128xf32>, i32
  }
  tile.print "r" %r#0 : tensor<64x128xf32>
  return
}
