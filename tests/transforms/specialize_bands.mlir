// Products whose rows are the grid's x and whose columns are its y are computed in bands of x: programs at a time then
// read the least of both operands. The order of the grid stays where it may be seen, or saves nothing.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// Rows of 64 by 128 columns, two programs on a multiprocessor: bands as wide as sqrt(128 * 2 * 128 / 64), unless the cache holds
// what K gives.
// CHECK-LABEL: func.func @product
// CHECK: %[[BAND:.*]] = arith.select %{{.*}}, %c23_i32, %c2147483647_i32
// CHECK: producer {
// CHECK: tile.work_loop band %[[BAND]] {
// CHECK: consumer {
// CHECK: tile.work_loop band %[[BAND]] {
func.func @product(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c128 : i32
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

// Other programs see by the counter which came first.
// CHECK-LABEL: func.func @counts
// CHECK-NOT: band
func.func @counts(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32, %counter: !tile.ptr<i32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m = arith.muli %x, %c64 : i32
  %n0 = arith.muli %y, %c128 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %n0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.print "r" %r : tensor<64x128xf32>
  %before = tile.atomic_rmw add relaxed gpu %counter, %c1 : !tile.ptr<i32>, i32 -> i32
  tile.print "before" %before : i32
  return
}

// -----

// Programs along x share the second operand as it is; heads, along y, have nothing in common.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: band
func.func @heads(%a: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %b: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 8, 8, 1>}, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m = arith.muli %x, %c64 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%y, %m, %k : i32, i32, i32] box [1, 64, 64] : !tile.view<3xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%y, %k, %c0 : i32, i32, i32] box [1, 64, 128] : !tile.view<3xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.print "r" %r : tensor<64x128xf32>
  return
}
