// Rows of a box that may start in front of its view: one comparison of each row with the number of rows inside, which
// is 0 where the copy is not enabled. No sizes are chosen twice.
// RUN: tile-opt %s --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry backwards(
// CHECK: add.s32 [[SECOND:%r[0-9]+]], [[FIRST:%r[0-9]+]], 16;
// CHECK: setp.lt.u32 [[INSIDE:%p[0-9]+]], [[SECOND]], [[COUNT:%r[0-9]+]];
// CHECK-NEXT: selp.b32 [[BYTES:%r[0-9]+]], 16, 0, [[INSIDE]];
// CHECK-NEXT: cp.async.cg.shared.global {{.*}}, 16, [[BYTES]];
// CHECK: setp.lt.u32 {{%p[0-9]+}}, {{%r[0-9]+}}, [[COUNT]];
// CHECK: ret;
func.func @backwards(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 64>}, %n: i32, %first: i32, %on: i1, %y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %back = arith.subi %first, %i : i32
    %row = arith.muli %back, %c64 : i32
    tile.async_copy %x[%row, %c0 : i32, i32] to %s if %on box [64, 64] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
    %t = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    tile.store %t, %y[%row, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  }
  return
}

// Neighbours in memory are neighbours in a column of the buffer: sixteen threads read them side by side, four bytes each.
// CHECK-LABEL: entry turned(
// CHECK: mov.u32 [[THREAD:%r[0-9]+]], %tid.x;
// CHECK: and.b32 {{%r[0-9]+}}, [[THREAD]], 15;
// CHECK: shr.u32 {{%r[0-9]+}}, [[THREAD]], 4;
// CHECK-COUNT-8: cp.async.ca.shared.global {{.*}}, 4
// CHECK-NOT: cp.async.ca
// CHECK: ret;
func.func @turned(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %n: i32, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %s = tile.smem_alloc : !tile.smem<64x16xf32, minor = 0>
  scf.for %k = %c0 to %n step %c16 : i32 {
    tile.async_copy %x[%c0, %k : i32, i32] to %s box [64, 16] : !tile.view<2xf32>, !tile.smem<64x16xf32, minor = 0>
    tile.async_commit
    tile.async_wait 0
    %t = tile.smem_load %s : !tile.smem<64x16xf32, minor = 0> -> tensor<64x16xf32>
    tile.store %t, %y[%c0, %k : i32, i32] : tensor<64x16xf32>, !tile.view<2xf32>
  }
  return
}

// One row: all four warps have a part of it, 16 bytes for each thread.
// CHECK-LABEL: entry row(
// CHECK-COUNT-1: cp.async.cg.shared.global
// CHECK-NOT: cp.async.cg
// CHECK: ret;
func.func @row(%x: !tile.view<2xi64> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 2, 1>, tile.dim_multiple_of = array<i32: 1, 256>}, %n: i32, %y: !tile.view<2xi64>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.smem_alloc : !tile.smem<1x256xi64, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.async_copy %x[%i, %c0 : i32, i32] to %s box [1, 256] : !tile.view<2xi64>, !tile.smem<1x256xi64, minor = 1>
    tile.async_commit
    tile.async_wait 0
    %t = tile.smem_load %s : !tile.smem<1x256xi64, minor = 1> -> tensor<1x256xi64>
    tile.store %t, %y[%i, %c0 : i32, i32] : tensor<1x256xi64>, !tile.view<2xi64>
  }
  return
}

// A row of 128 bytes: eight lanes of the one warp copy, under a predicate. Around a branch, addresses and conditions could
// not be computed beside other work. Indices and ends are compared in 32 bits.
// CHECK-LABEL: entry few_lanes(
// CHECK: setp.eq.b32 [[FEW:%p[0-9]+]], {{%r[0-9]+}}, 0;
// CHECK: cp.async.wait_group
// CHECK-NOT: setp{{.*}}64
// CHECK-NOT: bra
// CHECK: @[[FEW]] cp.async.cg.shared.global [{{%r[0-9]+}}], [{{%rd[0-9]+}}], 16, {{%p[0-9]+}};
// CHECK: ret;
func.func @few_lanes(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32, %y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %program = tile.program_id 0
  %column = arith.muli %program, %c64 : i32
  %s = tile.smem_alloc : !tile.smem<1x64xf16, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.async_wait 0
    tile.async_copy %x[%i, %column : i32, i32] to %s box [1, 64] : !tile.view<2xf16>, !tile.smem<1x64xf16, minor = 1>
    tile.async_commit
    %t = tile.smem_load %s : !tile.smem<1x64xf16, minor = 1> -> tensor<1x64xf16>
    tile.store %t, %y[%i, %column : i32, i32] : tensor<1x64xf16>, !tile.view<2xf16>
  }
  return
}
