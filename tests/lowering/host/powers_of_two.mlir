// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s
// RUN: tilec compile %s --target host:x86-64-v3 --emit llvm | FileCheck %s --check-prefix=PLAIN

// Where the machine has instructions for it, no shifts take a power of two apart or put one together.
// CHECK-LABEL: define void @tile.powers
// CHECK: call <16 x float> @llvm.x86.avx512.mask.reduce.ps.512
// CHECK-NOT: shl
// CHECK: call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512
// PLAIN-LABEL: define void @tile.powers
// PLAIN-NOT: avx512
// PLAIN: shl <{{[0-9]+}} x i32>
func.func @powers(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<64xf32>
  %e = math.exp2 %a : tensor<64xf32>
  tile.store %e, %O[%c0 : i32] : tensor<64xf32>, !tile.view<1 x f32>
  return
}
