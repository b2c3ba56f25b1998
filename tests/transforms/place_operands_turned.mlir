// Products by warpgroups that are computed as their transposes, since their rows are none of instructions.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90a | FileCheck %s

// Rows that instructions do not divide: loops that only multiply compute the transpose, of whose rows (the columns)
// warpgroups have 64 each. Not where the loop does more with the sum, nor of fewer rows than 24.
// CHECK-LABEL: func.func @turned
// CHECK: tile.mma wgmma_f16 k 64 warps(1, 8) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<80x64xf16, minor = 1>, <64x128xf16, minor = 1> -> tensor<80x128xf32>
// CHECK: tile.mma wgmma_f16 k 64 warps(1, 8) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<24x64xf16, minor = 1>, <64x128xf16, minor = 1> -> tensor<24x128xf32>
// CHECK: tile.mma m16n8k16_f16 k 64 warps(1, 8) {{.*}} -> tensor<16x128xf32>
// CHECK: tile.mma m16n8k16_f16 k 64 {{.*}} -> tensor<80x128xf32>
func.func @turned(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<80x128xf32>
  %few = arith.constant dense<0.0> : tensor<24x128xf32>
  %fewer = arith.constant dense<0.0> : tensor<16x128xf32>
  %half = arith.constant dense<0.5> : tensor<80x128xf32>
  %p = scf.for %k = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<80x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<80x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %x : tensor<80x64xf16>, tensor<64x128xf16> -> tensor<80x128xf32>
    scf.yield %d : tensor<80x128xf32>
  }
  %q = scf.for %k = %c0 to %n step %c64 iter_args(%x = %few) -> (tensor<24x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<24x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %x : tensor<24x64xf16>, tensor<64x128xf16> -> tensor<24x128xf32>
    scf.yield %d : tensor<24x128xf32>
  }
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%x = %fewer) -> (tensor<16x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<16x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %x : tensor<16x64xf16>, tensor<64x128xf16> -> tensor<16x128xf32>
    scf.yield %d : tensor<16x128xf32>
  }
  %t = scf.for %k = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<80x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<80x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %h = arith.mulf %x, %half : tensor<80x128xf32>
    %d = tile.dot %a, %b, %h : tensor<80x64xf16>, tensor<64x128xf16> -> tensor<80x128xf32>
    scf.yield %d : tensor<80x128xf32>
  }
  tile.store %p, %C[%c0, %c0 : i32, i32] : tensor<80x128xf32>, !tile.view<2 x f32>
  tile.store %q, %C[%c0, %c0 : i32, i32] : tensor<24x128xf32>, !tile.view<2 x f32>
  tile.store %s, %C[%c0, %c0 : i32, i32] : tensor<16x128xf32>, !tile.view<2 x f32>
  tile.store %t, %C[%c0, %c0 : i32, i32] : tensor<80x128xf32>, !tile.view<2 x f32>
  return
}
