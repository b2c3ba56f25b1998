// A kernel whose copies are all boxes: a producer with the kernel's slice, consumers with the rest.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// Two loads of one product are fields of one stage; the store goes out in bulk, in two passes so that four stages fit.
// CHECK-LABEL: func.func @gemm
// CHECK-DAG: %[[A:.*]] = tile.smem_alloc : <128x64xf16, minor = 1, stages = 4>
// CHECK-DAG: %[[B:.*]] = tile.smem_alloc : <256x64xf16, minor = 1, stages = 4>
// CHECK-DAG: %[[OUT:.*]] = tile.smem_alloc : <128x128xf16, minor = 1>
// CHECK-DAG: %[[RING:.*]] = tile.ring_alloc arrivals 2 : <4>
// CHECK: tile.specialize regs(40, 232) producer {
// CHECK-NEXT: tile.work_loop {
// CHECK-NEXT: ^bb0(%[[X:.*]]: i32, %[[Y:.*]]: i32, %{{.*}}: i32):
// CHECK: %[[M:.*]] = arith.muli %[[X]], %c128_i32
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %arg3 step %c64_i32{{.*}} {
// CHECK-NEXT: %[[SLOT:.*]] = tile.ring_reserve %[[RING]] bytes 49152
// CHECK-NEXT: %[[SA:.*]] = tile.smem_slot %[[A]][%[[SLOT]]]
// CHECK-NEXT: %[[SB:.*]] = tile.smem_slot %[[B]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %arg0[%[[M]], %[[K]] : i32, i32] to %[[SA]] signals %[[RING]][%[[SLOT]]]
// CHECK-NEXT: tile.tma_load %arg1[%{{.*}}, %[[K]] : i32, i32] to %[[SB]] signals %[[RING]][%[[SLOT]]]
// CHECK-NEXT: }
// CHECK: } consumer {
// CHECK-NEXT: tile.work_loop {
// CHECK: scf.for
// CHECK-NEXT: %[[READ:.*]] = tile.ring_acquire %[[RING]]
// CHECK: tile.smem_trans
// CHECK: tile.mma {{.*}}wgmma_f16
// CHECK-NEXT: tile.ring_release %[[RING]]
// CHECK: tile.tma_store %{{.*}}, %arg2[{{.*}}] through %[[OUT]]
// CHECK-NOT: tile.load_shared
func.func @gemm(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %m0 = arith.muli %x, %c128 : i32
  %n0 = arith.muli %y, %c256 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %sa = tile.load_shared %a[%m0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%n0, %k : i32, i32] box [256, 64] : !tile.view<2xf16> -> !tile.smem<256x64xf16, minor = 1>
    %t = tile.smem_trans %sb : !tile.smem<256x64xf16, minor = 1> -> !tile.smem<64x256xf16, minor = 0>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %t, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 0> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %h = arith.truncf %r : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %h, %c[%m0, %n0 : i32, i32] : tensor<128x256xf16>, !tile.view<2xf16>
  return
}
