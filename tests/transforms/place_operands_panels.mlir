// Panels of operands of warpgroups in shared memory: as many as their columns need, as few as copies are fast with.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90a | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90 | FileCheck %s --check-prefix=WARPS

// WARPS-NOT: wgmma

// Two warpgroups share 64 rows: 96 columns each, which are no whole panels of 64. Those of b are narrower then. Where its
// elements are neighbours along k, columns start anywhere.
// CHECK-LABEL: func.func @narrow_panels
// CHECK: tile.mma wgmma_bf16 k 64 warps(4, 2) {{.*}}<64x192xbf16, minor = 1, panel = 32>
// CHECK-LABEL: func.func @along_k
// CHECK: tile.mma wgmma_bf16 k 64 warps(4, 2) {{.*}}<64x192xbf16, minor = 0>
// WARPS-LABEL: func.func @narrow_panels
// WARPS: tile.mma m16n8k16_bf16 {{.*}}<64x192xbf16, minor = 1>
func.func @narrow_panels(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x192xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<64x192xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x192xbf16>
    %d = tile.dot %a, %b, %x : tensor<64x64xbf16>, tensor<64x192xbf16> -> tensor<64x192xf32>
    scf.yield %d : tensor<64x192xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x192xf32>, !tile.view<2 x f32>
  return
}
func.func @along_k(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x192xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<64x192xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %b = tile.load %B[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<192x64xbf16>
    %t = tile.trans %b, [1, 0] : tensor<192x64xbf16> -> tensor<64x192xbf16>
    %d = tile.dot %a, %t, %x : tensor<64x64xbf16>, tensor<64x192xbf16> -> tensor<64x192xf32>
    scf.yield %d : tensor<64x192xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x192xf32>, !tile.view<2 x f32>
  return
}
// -----

// 48 columns of each: panels of 16.
// CHECK-LABEL: func.func @narrowest_panels
// CHECK: tile.mma wgmma_bf16 k 64 warps(4, 2) {{.*}}<64x96xbf16, minor = 1, panel = 16>
func.func @narrowest_panels(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x96xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<64x96xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x96xbf16>
    %d = tile.dot %a, %b, %x : tensor<64x64xbf16>, tensor<64x96xbf16> -> tensor<64x96xf32>
    scf.yield %d : tensor<64x96xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x96xf32>, !tile.view<2 x f32>
  return
}
// -----

// Rows that need padding lie in wider panels where these are fewer, the last one filled in part: of 40 elements one of
// 64 instead of three of 16, of 72 two instead of five.
// CHECK-LABEL: func.func @heads
// CHECK-DAG: tile.load_shared %arg0{{.*}} box [64, 40] : <2xf16> -> <64x48xf16, minor = 1, panel = 64>
// CHECK-DAG: tile.load_shared %arg1{{.*}} box [64, 40] : <2xf16> -> <64x48xf16, minor = 1, panel = 64>
// CHECK-DAG: tile.load_shared %arg2{{.*}} box [64, 72] : <2xf16> -> <64x80xf16, minor = 1, panel = 64>
// CHECK: tile.mma wgmma_f16 k 40 warps(4, 1)
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 1) {{.*}} -> tensor<64x72xf32>
func.func @heads(%Q: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %K: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %V: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x72xf32>
  %q = tile.load %Q[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x40xf16>
  %k = tile.load %K[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x40xf16>
  %v = tile.load %V[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x72xf16>
  %t = tile.trans %k, [1, 0] : tensor<64x40xf16> -> tensor<40x64xf16>
  %s = tile.dot %q, %t, %zero : tensor<64x40xf16>, tensor<40x64xf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
  %o = tile.dot %p, %v, %none : tensor<64x64xf16>, tensor<64x72xf16> -> tensor<64x72xf32>
  tile.store %o, %O[%i, %i : i32, i32] : tensor<64x72xf32>, !tile.view<2 x f32>
  return
}
// -----

// So do rows of bulk copies without padding, if the room is a third of theirs at most: of 112 elements two panels of 64
// instead of seven of 16, of 80 three of 32 instead of five. Not of 96, whose three panels are as fast as two, nor
// what threads copy.
// CHECK-LABEL: func.func @sizes
// CHECK-DAG: tile.load_shared %arg0{{.*}} -> <64x112xf16, minor = 1, panel = 64>
// CHECK-DAG: tile.load_shared %arg1{{.*}} -> <64x112xf16, minor = 1>
// CHECK-DAG: tile.load_shared %arg2{{.*}} -> <64x80xf16, minor = 1, panel = 32>
// CHECK-DAG: tile.load_shared %arg0{{.*}} -> <64x96xf16, minor = 1>
func.func @sizes(%Q: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %K: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %V: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %O: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x80xf32>
  %more = arith.constant dense<0.0> : tensor<64x96xf32>
  %c0 = arith.constant 0 : i32
  %q = tile.load %Q[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x112xf16>
  %k = tile.load %K[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x112xf16>
  %v = tile.load %V[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x80xf16>
  %w = tile.load %Q[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x96xf16>
  %t = tile.trans %k, [1, 0] : tensor<64x112xf16> -> tensor<112x64xf16>
  %s = tile.dot %q, %t, %zero : tensor<64x112xf16>, tensor<112x64xf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
  %o = tile.dot %p, %v, %none : tensor<64x64xf16>, tensor<64x80xf16> -> tensor<64x80xf32>
  %u = tile.dot %p, %w, %more : tensor<64x64xf16>, tensor<64x96xf16> -> tensor<64x96xf32>
  tile.store %o, %O[%i, %i : i32, i32] : tensor<64x80xf32>, !tile.view<2 x f32>
  tile.store %u, %O[%i, %i : i32, i32] : tensor<64x96xf32>, !tile.view<2 x f32>
  return
}
