// Products by warpgroups: which classes of products, on which grid, with which operands.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90a | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_90 | FileCheck %s --check-prefix=WARPS

// WARPS-NOT: wgmma

// 128 rows on two warpgroups: 64 each, all columns.
// CHECK-LABEL: func.func @rows
// CHECK: tile.mma wgmma_bf16 k 64 warps(8, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<128x64xbf16, minor = 1>, <64x176xbf16, minor = 1>
func.func @rows(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x176xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<128x64xbf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x176xbf16>
  %d = tile.dot %a, %b, %zero : tensor<128x64xbf16>, tensor<64x176xbf16> -> tensor<128x176xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<128x176xf32>, !tile.view<2 x f32>
  return
}

// -----

// 64 rows on two warpgroups: half of the columns each, whole panels of 64.
// CHECK-LABEL: func.func @columns
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 2)
func.func @columns(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x256xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x256xf16> -> tensor<64x256xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x256xf32>, !tile.view<2 x f32>
  return
}

// -----

// A chain that two warpgroups cannot divide by rows: half of the columns each, the middle tile through shared memory. Columns
// of an operand whose k is minor may be divided anywhere.
// CHECK-LABEL: func.func @chain_of_columns
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 2)
// CHECK: %[[P:.*]] = tile.share
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 2) %[[P]],
func.func @chain_of_columns(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %V: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zs = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %t = tile.trans %b, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
  %s = tile.dot %a, %t, %zs : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
  %v = tile.load %V[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
  %d = tile.dot %p, %v, %zero : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// 88 columns per warpgroup are no whole panels, of whatever width; 16 rows are a quarter of an instruction: single warps.
// CHECK-LABEL: func.func @unfit
// CHECK: tile.mma m16n8k16_f16
// CHECK: tile.mma m16n8k16_f16
func.func @unfit(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x176xf32>
  %zs = arith.constant dense<0.0> : tensor<16x176xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %s = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x176xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x176xf16> -> tensor<64x176xf32>
  %e = tile.dot %s, %b, %zs : tensor<16x64xf16>, tensor<64x176xf16> -> tensor<16x176xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x176xf32>, !tile.view<2 x f32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<16x176xf32>, !tile.view<2 x f32>
  return
}

// -----

// The accumulator of one product feeds the next: it stays in registers on three warpgroups of 64 rows.
// CHECK-LABEL: func.func @chained
// CHECK: %[[S:.*]] = tile.mma wgmma_f16 k 64 warps(12, 1)
// CHECK: %[[P:.*]] = arith.truncf %[[S]]
// CHECK-NOT: tile.share
// CHECK: tile.mma wgmma_f16 k 80 warps(12, 1) %[[P]], %{{.*}}, %{{.*}} : tensor<192x80xf16>, <80x64xf16, minor = 1>
func.func @chained(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %V: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
  %zs = arith.constant dense<0.0> : tensor<192x80xf32>
  %zero = arith.constant dense<0.0> : tensor<192x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<192x64xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<80x64xf16>
  %t = tile.trans %b, [1, 0] : tensor<80x64xf16> -> tensor<64x80xf16>
  %s = tile.dot %a, %t, %zs : tensor<192x64xf16>, tensor<64x80xf16> -> tensor<192x80xf32>
  %p = arith.truncf %s : tensor<192x80xf32> to tensor<192x80xf16>
  %v = tile.load %V[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<80x64xf16>
  %d = tile.dot %p, %v, %zero : tensor<192x80xf16>, tensor<80x64xf16> -> tensor<192x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<192x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// One product of a class that warpgroups cannot compute keeps the whole class on single warps.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: wgmma
// CHECK: return
func.func @mixed(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %t = tile.trans %b, [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %d = tile.dot %a, %t, %zero precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %e = tile.dot %a, %t, %d : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// tf32 wants its elements along k. One operand across is read by the threads: b as the first operand of the transposed
// product, on warpgroups along the columns. With both across the threads read a, and b turns on its way.
// CHECK-LABEL: func.func @tf32
// CHECK: tile.mma wgmma_tf32 k 32 warps(8, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<128x32xf32, minor = 1>, <32x128xf32, minor = 0>
// CHECK: tile.mma wgmma_tf32 k 32 warps(1, 8) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<128x32xf32, minor = 1>, <32x128xf32, minor = 1>
// CHECK: tile.mma wgmma_tf32 k 32 warps(8, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<128x32xf32, minor = 0>, <32x128xf32, minor = 0>
// CHECK: tile.mma wgmma_tf32 k 32 warps(8, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<128x32xf32, minor = 0>, <32x128xf32, minor = 0>
func.func @tf32(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<128x32xf32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<128x32xf32>
  %t = tile.trans %b, [1, 0] : tensor<128x32xf32> -> tensor<32x128xf32>
  %n = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
  %m = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
  %s = tile.trans %m, [1, 0] : tensor<32x128xf32> -> tensor<128x32xf32>
  %d = tile.dot %a, %t, %zero precision tf32 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  %e = tile.dot %a, %n, %zero precision tf32 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  %f = tile.dot %s, %t, %zero precision tf32 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  %g = tile.dot %s, %n, %zero precision tf32 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  tile.store %f, %C[%i, %i : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  tile.store %g, %C[%i, %i : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Bytes: f8 without widening. One operand across is read by the threads, like tf32.
// CHECK-LABEL: func.func @bytes
// CHECK-NOT: arith.extf
// CHECK-NOT: tile.share
// CHECK: tile.mma wgmma_f8 k 64 warps(1, 4) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<64x64xf8E4M3FN, minor = 1>, <64x64xf8E4M3FN, minor = 1>
func.func @bytes(%A: !tile.view<2 x f8E4M3FN>, %B: !tile.view<2 x f8E4M3FN>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Both across: they turn on their way, in whichever way the kernel's roles allow.
// CHECK-LABEL: func.func @bytes_across
// CHECK-COUNT-2: tile.share
// CHECK: tile.mma wgmma_f8 k 64 warps(4, 1)
func.func @bytes_across(%A: !tile.view<2 x f8E4M3FN>, %B: !tile.view<2 x f8E4M3FN>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %t = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %a = tile.trans %t, [1, 0] : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Weights made of accumulators stay in registers, of bytes as of halves.
// CHECK-LABEL: func.func @bytes_chained
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: tile.mma wgmma_f8 k 64 warps(4, 1) %[[P]], %{{.*}}, %{{.*}} : tensor<64x64xf8E4M3FN>, <64x64xf8E4M3FN, minor = 0>
func.func @bytes_chained(%A: !tile.view<2 x f8E4M3FN>, %B: !tile.view<2 x f8E4M3FN>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %t = tile.trans %b, [1, 0] : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %s = tile.dot %a, %t, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
  %d = tile.dot %p, %b, %zero : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Integers come in steps of 16 columns; 40 columns have room for 48. k reaches to 32 bytes.
// CHECK-LABEL: func.func @integers
// CHECK: tile.mma wgmma_s8 k 40 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<64x64xi8, minor = 1>, <64x48xi8, minor = 0>
func.func @integers(%A: !tile.view<2 x i8>, %B: !tile.view<2 x i8> {tile.unit_stride = 0 : i32}, %C: !tile.view<2 x i32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0> : tensor<64x40xi32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x i8> -> tensor<64x40xi8>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x i8> -> tensor<40x40xi8>
  %d = tile.dot %a, %b, %zero : tensor<64x40xi8>, tensor<40x40xi8> -> tensor<64x40xi32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x40xi32>, !tile.view<2 x i32>
  return
}

// -----

// So do products of bits, whose words are placed as f32 is for tf32.
// CHECK-LABEL: func.func @bits
// CHECK: tile.mma wgmma_b1 k 20 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<64x24xi32, minor = 1, panel = 32>, <24x48xi32, minor = 0, panel = 32>
func.func @bits(%A: !tile.view<2 x i32>, %B: !tile.view<2 x i32> {tile.unit_stride = 0 : i32}, %C: !tile.view<2 x i32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0> : tensor<64x40xi32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x i32> -> tensor<64x20xi32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x i32> -> tensor<20x40xi32>
  %d = tile.dot %a, %b, %zero precision bits : tensor<64x20xi32>, tensor<20x40xi32> -> tensor<64x40xi32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x40xi32>, !tile.view<2 x i32>
  return
}

// -----

// Columns minor: rows in whole pieces of 32 bytes, so that there is a swizzle.
// CHECK-LABEL: func.func @narrow
// CHECK: tile.mma wgmma_f16 k 16 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<64x16xf16, minor = 1>, <16x32xf16, minor = 1> -> tensor<64x24xf32>
func.func @narrow(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x24xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x16xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x24xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x16xf16>, tensor<16x24xf16> -> tensor<64x24xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x24xf32>, !tile.view<2 x f32>
  return
}

// -----

// Masks are made again wherever they are used: one of the accumulators and of a first operand connects nobody, so the
// operand, computed from loads, goes to shared memory. A first operand made from indices alone stays in registers.
// CHECK-LABEL: func.func @shared_mask
// CHECK: %[[S:.*]] = tile.share
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 1) %[[S]]
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf16>
func.func @shared_mask(%A: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero16 = arith.constant dense<0.0> : tensor<64x64xf16>
  %one16 = arith.constant dense<1.0> : tensor<64x64xf16>
  %rows = tile.iota : tensor<64xi32>
  %column = tile.reshape %rows : tensor<64xi32> -> tensor<64x1xi32>
  %wide = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %bound = tile.splat %i : i32 -> tensor<64x64xi32>
  %mask = arith.cmpi slt, %wide, %bound : tensor<64x64xi32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %b = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %doubled = arith.addf %a, %a : tensor<64x64xf16>
  %masked = arith.select %mask, %doubled, %zero16 : tensor<64x64xi1>, tensor<64x64xf16>
  %d = tile.dot %masked, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %e = arith.select %mask, %d, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  %ones = arith.select %mask, %one16, %zero16 : tensor<64x64xi1>, tensor<64x64xf16>
  %sums = tile.dot %ones, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %sums, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Warpgroups have no products of 64-bit elements: the larger instruction of single warps.
// CHECK-LABEL: func.func @doubles
// CHECK: tile.mma m16n8k8_f64 k 12 warps(4, 1)
func.func @doubles(%A: !tile.view<2 x f64> {tile.unit_stride = 0 : i32}, %B: !tile.view<2 x f64>, %C: !tile.view<2 x f64>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<50x40xf64>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f64> -> tensor<50x12xf64>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f64> -> tensor<12x40xf64>
  %d = tile.dot %a, %b, %zero : tensor<50x12xf64>, tensor<12x40xf64> -> tensor<50x40xf64>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<50x40xf64>, !tile.view<2 x f64>
  return
}

// -----

// Rows normed on their way, with statistics from in front of the loop: the threads that compute the operand hold it. What is
// shared with other warpgroups, or made of a tile that does not change, goes through shared memory.
// CHECK-LABEL: func.func @normed
// CHECK: scf.for
// CHECK: %[[Y:.*]] = arith.mulf
// CHECK-NOT: tile.share
// CHECK: tile.mma wgmma_f16 k 64 warps(8, 1) %[[Y]]
// CHECK-LABEL: func.func @of_columns
// CHECK: tile.share
// CHECK: tile.mma wgmma_f16 k 64 warps(4, 2)
func.func @normed(%X: !tile.view<2 x f16>, %W: !tile.view<2 x f16>, %S: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %s = tile.load %S[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<128x1xf16>
  %scale = tile.broadcast %s : tensor<128x1xf16> -> tensor<128x64xf16>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %x = tile.load %X[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<128x64xf16>
    %y = arith.mulf %x, %scale : tensor<128x64xf16>
    %w = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %y, %w, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}
func.func @of_columns(%X: !tile.view<2 x f16>, %W: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %x = tile.load %X[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %y = arith.mulf %x, %x : tensor<64x64xf16>
    %w = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %y, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// A computed operand is shared as it lies in the threads: along the rows of what was loaded, wherever those went.
// CHECK-LABEL: func.func @along
// CHECK: tile.share %{{.*}} : tensor<128x16xf16> -> <128x16xf16, minor = 0>
func.func @along(%X: !tile.view<3 x f16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>}, %W: !tile.view<2 x f16>, %C: !tile.view<2 x f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x16xf32>
  %c0 = arith.constant 0 : i32
  %x = tile.load %X[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3 x f16> -> tensor<8x16x16xf16>
  %t = tile.trans %x, [0, 2, 1] : tensor<8x16x16xf16> -> tensor<8x16x16xf16>
  %rows = tile.reshape %t : tensor<8x16x16xf16> -> tensor<128x16xf16>
  %w = tile.load %W[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<16x16xf16>
  %d = tile.dot %rows, %w, %zero : tensor<128x16xf16>, tensor<16x16xf16> -> tensor<128x16xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<128x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// The same through pointers: states whose neighbours lie along the dim that is summed over.
// CHECK-LABEL: func.func @along_pointers
// CHECK: tile.share %{{.*}} : tensor<64x16xf16> -> <64x16xf16, minor = 0>
func.func @along_pointers(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %stride: i32 {tile.multiple_of = 16 : i32}, %X: !tile.view<2 x f16>, %C: !tile.view<2 x f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %c0 = arith.constant 0 : i32
  %k = tile.iota : tensor<64xi32>
  %n = tile.iota : tensor<16xi32>
  %by = tile.splat %stride : i32 -> tensor<16xi32>
  %away = arith.muli %n, %by : tensor<16xi32>
  %k1 = tile.reshape %k : tensor<64xi32> -> tensor<64x1xi32>
  %n1 = tile.reshape %away : tensor<16xi32> -> tensor<1x16xi32>
  %k2 = tile.broadcast %k1 : tensor<64x1xi32> -> tensor<64x16xi32>
  %n2 = tile.broadcast %n1 : tensor<1x16xi32> -> tensor<64x16xi32>
  %off = arith.addi %k2, %n2 : tensor<64x16xi32>
  %state = tile.gather %p offsets %off : tensor<64x16xi32> : !tile.ptr<f32> -> tensor<64x16xf32>
  %half = arith.truncf %state : tensor<64x16xf32> to tensor<64x16xf16>
  %x = tile.load %X[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %d = tile.dot %x, %half, %zero : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<64x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// What else reads a fetched tile reads it back where it needs it, not where it is loaded.
// CHECK-LABEL: func.func @read_late
// CHECK: tile.load_shared %arg0
// CHECK-NEXT: tile.load_shared %arg1
// CHECK: tile.mma wgmma_bf16
// CHECK: tile.smem_load
// CHECK-NEXT: arith.extf
func.func @read_late(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %d = tile.dot %a, %b, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %wide = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
  %sum = arith.addf %d, %wide : tensor<64x64xf32>
  tile.store %sum, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----
// What is made of loads alone is computed once and shared, whatever it is added to elsewhere: in registers it would be
// there for all of the loop. What products went into is in the right threads already.
// CHECK-LABEL: func.func @made_of_loads
// CHECK: %[[S:.*]] = tile.share
// CHECK: scf.for
// CHECK: tile.mma wgmma_f16 {{.*}}%[[S]],
// CHECK: tile.mma wgmma_f16 {{.*}} : tensor<64x64xf16>, <64x64xf16
func.func @made_of_loads(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x0 = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
  %wide = arith.extf %x0 : tensor<64x64xf16> to tensor<64x64xf32>
  %a = arith.addf %x0, %x0 : tensor<64x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %wide) -> (tensor<64x64xf32>) : i32 {
    %b = tile.load %y[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %half = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %e = tile.dot %half, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Nobody says how many warps: threads of four would hold more than two programs have registers for, so there are eight.
// CHECK-LABEL: func.func @eight_warps
// CHECK-SAME: tile.num_warps = 8 : i32
func.func @eight_warps(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r:3 = scf.for %i = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<128x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %d = tile.dot %a, %b, %x : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %e = tile.dot %a, %b, %y : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %p = arith.mulf %d, %e : tensor<128x64xf32>
    %q = arith.addf %p, %z : tensor<128x64xf32>
    scf.yield %d, %e, %q : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>
  }
  tile.store %r#0, %C[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  tile.store %r#1, %C[%c0, %c64 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  tile.store %r#2, %C[%c64, %c64 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Half of the rows: four do.
// CHECK-LABEL: func.func @four_warps
// CHECK-SAME: tile.num_warps = 4 : i32
func.func @four_warps(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = scf.for %i = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %d = tile.dot %a, %b, %x : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %e = tile.dot %a, %b, %y : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %p = arith.mulf %d, %e : tensor<64x64xf32>
    %q = arith.addf %p, %z : tensor<64x64xf32>
    scf.yield %d, %e, %q : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
  tile.store %r#0, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  tile.store %r#1, %C[%c0, %c64 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  tile.store %r#2, %C[%c64, %c64 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
