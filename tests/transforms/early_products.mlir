// RUN: tile-opt %s -split-input-file --tile-early-products | FileCheck %s
// Small products of warps stand side by side where nothing between them is for both.

// The second product needs nothing of what is stored in between; the third one does.
// CHECK-LABEL: func.func @side_by_side
// CHECK: tile.mma
// CHECK-NEXT: tile.smem_trans
// CHECK-NEXT: tile.mma
// CHECK-NEXT: arith.truncf
// CHECK: tile.smem_store
// CHECK: tile.mma
func.func @side_by_side(%c: !tile.view<2xf32>, %zero: tensor<16x64xf32>, %none: tensor<16x16xf32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %q = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %k = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  %e = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  %a = tile.mma m16n8k16_f16 k 64 warps(1, 4) %q, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
  %h = arith.truncf %a : tensor<16x64xf32> to tensor<16x64xf16>
  tile.smem_store %h, %e : tensor<16x64xf16>, !tile.smem<16x64xf16, minor = 1>
  %t = tile.smem_trans %k : !tile.smem<16x64xf16, minor = 1> -> !tile.smem<64x16xf16, minor = 0>
  %s = tile.mma m16n8k16_f16 k 64 warps(1, 4) %q, %t, %none : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 0> -> tensor<16x16xf32>
  %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %e, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
  tile.store %s, %c[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2xf32>
  tile.store %d, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----
// Not across a barrier, where copies land.
// CHECK-LABEL: func.func @landing
// CHECK: tile.mma
// CHECK: tile.smem_store
// CHECK: tile.barrier
// CHECK: tile.mma
func.func @landing(%c: !tile.view<2xf32>, %zero: tensor<16x64xf32>, %x: tensor<16x64xf16>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %q = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %e = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  %a = tile.mma m16n8k16_f16 k 64 warps(1, 4) %q, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
  tile.smem_store %x, %e : tensor<16x64xf16>, !tile.smem<16x64xf16, minor = 1>
  tile.barrier
  %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %q, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
  tile.store %a, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  tile.store %d, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}
