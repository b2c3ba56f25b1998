// Products one after another in straight-line code: the copies of one start in front of the product two before it.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-stage,canonicalize,cse))' --tile-target=sm_80 | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-stage,tile-place-buffers))' --tile-target=sm_80 | FileCheck %s --check-prefix=PLACED

// Three pairs of copies are in flight; a buffer is free again when its product is done: that of the fourth lies where that
// of the first did.
// CHECK-LABEL: func.func @four
// CHECK-COUNT-6: tile.async_copy
// CHECK-NOT: tile.async_copy
// CHECK: tile.async_wait 4
// CHECK-NEXT: tile.barrier
// CHECK: tile.mma
// CHECK-COUNT-2: tile.async_copy
// CHECK: tile.async_wait 4
// CHECK-NEXT: tile.barrier
// CHECK: tile.mma
// CHECK: tile.async_wait 2
// CHECK: tile.mma
// CHECK: tile.async_wait 0
// CHECK: tile.mma
// PLACED-LABEL: func.func @four
// PLACED-SAME: tile.shared_bytes = 12288
func.func @four(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %k3 = arith.addi %n, %c64 : i32
  %a0 = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b0 = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d0 = tile.dot %a0, %b0, %zero : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  %a1 = tile.load %A[%c0, %c32 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b1 = tile.load %B[%c32, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d1 = tile.dot %a1, %b1, %d0 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  %a2 = tile.load %A[%c0, %c64 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b2 = tile.load %B[%c64, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d2 = tile.dot %a2, %b2, %d1 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  %k4 = arith.addi %k3, %c32 : i32
  %a3 = tile.load %A[%c0, %k4 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b3 = tile.load %B[%k4, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d3 = tile.dot %a3, %b3, %d2 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  tile.store %d3, %C[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2 x f32>
  return
}

// -----

// What is written in between stays in front of the copies behind it, and where only two products read copies nothing moves.
// CHECK-LABEL: func.func @written
// CHECK-COUNT-4: tile.async_copy
// CHECK: tile.mma
// CHECK: tile.mma
// CHECK: tile.store
// CHECK-COUNT-2: tile.async_copy
// CHECK: tile.async_wait 0
// CHECK: tile.mma
func.func @written(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                   %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                   %C: !tile.view<2 x f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %a0 = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b0 = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d0 = tile.dot %a0, %b0, %zero : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  %a1 = tile.load %A[%c0, %c32 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b1 = tile.load %B[%c32, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d1 = tile.dot %a1, %b1, %d0 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  tile.store %d1, %C[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2 x f32>
  %a2 = tile.load %A[%c0, %c64 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %b2 = tile.load %B[%c64, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %d2 = tile.dot %a2, %b2, %d1 : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  tile.store %d2, %C[%c32, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2 x f32>
  return
}

// -----

// A row of every iteration, without products: it is read in front of the copies for later iterations. What was read is
// what the next iteration fills, and whether there is an iteration so far ahead takes a comparison with a number that
// was made in front of the loop.
// CHECK-LABEL: func.func @rows
// CHECK: %[[EARLIER:.*]] = arith.subi %{{.*}}, %c3_i64
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[EARLIER]], %c-2147483648_i64
// CHECK: %[[END:.*]] = arith.trunci %[[LEAST]]
// CHECK: scf.for %[[IV:.*]] = {{.*}} iter_args(%[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c3_i32)
// CHECK-NEXT: tile.async_wait 2
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[SLOT:.*]] = tile.smem_slot %{{.*}}[%[[READ]]]
// CHECK-NEXT: tile.smem_load %[[SLOT]]
// CHECK: tile.smem_slot %{{.*}}[%[[WRITE]]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[IV]], %[[END]]
// CHECK: tile.async_copy {{.*}} if %[[EXISTS]]
// CHECK: tile.async_commit
// CHECK: scf.yield %{{.*}}, %[[READ]] :
func.func @rows(%A: !tile.view<2 x f16>, %C: !tile.view<2 x f16>, %n: i32) attributes {tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %a = tile.load_shared %A[%k, %c0 : i32, i32] box [1, 64] : !tile.view<2 x f16> -> !tile.smem<1x64xf16, minor = 1>
    %r = tile.smem_load %a : !tile.smem<1x64xf16, minor = 1> -> tensor<1x64xf16>
    tile.store %r, %C[%k, %c0 : i32, i32] : tensor<1x64xf16>, !tile.view<2 x f16>
  } {tile.stages = 4 : i32}
  return
}
