// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Along the innermost dim, rows too few for a group: four vectors of partial maxima, folded by halves at the end of the row.
// CHECK-LABEL: define void @tile.rows
// CHECK: accumulate:
// CHECK: phi <64 x float>
// CHECK-COUNT-4: call <16 x float> @llvm.x86.avx512.mask.range.ps.512
// CHECK: shufflevector <64 x float>
// CHECK-COUNT-2: call <16 x float> @llvm.x86.avx512.mask.range.ps.512
// CHECK: call float @llvm.maxnum.f32
// CHECK: store float
func.func @rows(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<3x256xf32>
  %r = tile.reduce %a axis 1 : (tensor<3x256xf32>) -> tensor<3x1xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tile.yield %z : f32
  }
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<3x1xf32>, !tile.view<2 x f32>
  return
}
