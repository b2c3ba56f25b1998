// Copies to shared memory say which of their indices are never negative.
// RUN: tile-opt %s -split-input-file -tile-record-starts | FileCheck %s
// RUN: tile-opt %s -split-input-file -tile-record-starts -tile-stage | FileCheck %s --check-prefix=STAGE

// Blocks from the last to the first, of a size that fits 32 bits.
// CHECK-LABEL: func.func @down
// CHECK: tile.load_shared {{.*}} {tile.from_zero = array<i1: true, true>}
// The iteration behind the last has block -1: not proven again, but recorded.
// STAGE-LABEL: func.func @down
// STAGE: scf.for
// STAGE: tile.async_copy {{.*}} {tile.from_zero = array<i1: true, true>}
func.func @down(%K: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %a: !tile.smem<64x64xf16, minor = 1>) -> tensor<64x64xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %dim = tile.view_dim %K, 0 : !tile.view<2 x f16>
  %n = arith.trunci %dim overflow<nsw> : i64 to i32
  %end = arith.ceildivui %n, %c64 : i32
  %last = arith.subi %end, %c1 : i32
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = arith.subi %last, %i : i32
    %row = arith.muli %block, %c64 : i32
    %k = tile.load_shared %K[%row, %c0 : i32, i32] box [64, 64] : !tile.view<2 x f16> -> !tile.smem<64x64xf16, minor = 1>
    %s = tile.mma m16n8k16_f16 k 64 warps(2, 2) %a, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %s : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r : tensor<64x64xf32>
}

// -----

// A size that may not fit 32 bits may be anything there: the start is not known.
// CHECK-LABEL: func.func @unknown
// CHECK: tile.load_shared {{.*}} {tile.from_zero = array<i1: false, true>}
func.func @unknown(%K: !tile.view<2 x f16>, %m: i32) -> (!tile.smem<64x64xf16, minor = 1>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %dim = tile.view_dim %K, 0 : !tile.view<2 x f16>
  %n = arith.trunci %dim : i64 to i32
  %up = arith.addi %n, %c64 : i32
  %more = arith.muli %up, %m : i32
  %k = tile.load_shared %K[%more, %c0 : i32, i32] box [64, 64] : !tile.view<2 x f16> -> !tile.smem<64x64xf16, minor = 1>
  return %k : !tile.smem<64x64xf16, minor = 1>
}
