// Products of f8 by single warps. Where warpgroups multiply f8 a single warp has no such instruction: two products of f16
// take its place, of the first two of every four neighbours along k and of the others.
// RUN: tilec compile %s -t sm_89 -e ptx | FileCheck %s --check-prefix=WHOLE
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s --check-prefix=HALVES

// Two warps side by side, two k steps, a column of eight each.
// WHOLE-LABEL: entry few_rows(
// WHOLE-COUNT-2: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
// WHOLE-NOT: mma.sync
// WHOLE-NOT: cvt.rn.f16x2
// WHOLE: ret;

// HALVES-LABEL: entry few_rows(
// HALVES-DAG: cvt.rn.f16x2.e4m3x2
// HALVES-DAG: cvt.rn.f16x2.e5m2x2
// HALVES-COUNT-4: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// HALVES-NOT: mma.sync
// HALVES: ret;
func.func @few_rows(%x: !tile.view<2xf8E4M3FN> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %w: !tile.view<2xf8E5M2> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf8E4M3FN> -> tensor<16x64xf8E4M3FN>
  %b = tile.load %w[%c0, %c0 : i32, i32] : !tile.view<2xf8E5M2> -> tensor<16x64xf8E5M2>
  %t = tile.trans %b, [1, 0] : tensor<16x64xf8E5M2> -> tensor<64x16xf8E5M2>
  %d = tile.dot %a, %t, %zero : tensor<16x64xf8E4M3FN>, tensor<64x16xf8E5M2> -> tensor<16x16xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2xf32>
  return
}
