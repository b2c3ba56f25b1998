// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s
// RUN: tilec compile %s --target host:x86-64 --emit llvm | FileCheck %s --check-prefix=BASE
// RUN: tilec compile %s --target host --emit json | FileCheck %s --check-prefix=ARENA

// Two equal products share one function. Its loop over k holds a register tile of multiply-adds on whole vectors; the f16
// operands are widened into scratch first, the transposed one by blocks in registers.
// CHECK-LABEL: define void @tile.dots
// CHECK: fpext <{{[0-9]+}} x half>
// CHECK: call void @transpose_32x64_f16_f32
// CHECK: call void @dot_48x64x32_f32_a32_1_b64_c64_new
// CHECK: call void @dot_48x64x32_f32_a32_1_b64_c64_add
// CHECK: call void @dot_48x64x32_f32_a32_1_b64_c64_add
// CHECK-LABEL: define internal void @dot_48x64x32_f32_a32_1_b64_c64_new
// CHECK: accumulate:
// CHECK-COUNT-16: call <16 x float> @llvm.fma.v16f32
// CHECK-COUNT-1: define internal void @dot_48x64x32_f32_a32_1_b64_c64_add
// CHECK-NOT: define internal void @dot

// Without fused multiply-add there is no call to fmaf in its place.
// BASE-NOT: llvm.fma
// BASE: fmul <4 x float>

// The accumulator is updated in place: one buffer of 48 x 64 f32 for all three products.
// ARENA-COUNT-1: "bytes": 12288
// ARENA-NOT: "bytes": 12288
func.func @dots(%A: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<48x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<48x32xf16>
  %bt = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %b = tile.trans %bt, [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
  %x = tile.dot %a, %b, %zero : tensor<48x32xf16>, tensor<32x64xf16> -> tensor<48x64xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<48x64xf32>) : i32 {
    %p = tile.dot %a, %b, %acc : tensor<48x32xf16>, tensor<32x64xf16> -> tensor<48x64xf32>
    %q = tile.dot %a, %b, %p : tensor<48x32xf16>, tensor<32x64xf16> -> tensor<48x64xf32>
    scf.yield %q : tensor<48x64xf32>
  }
  tile.store %y, %C[%c0, %c0 : i32, i32] : tensor<48x64xf32>, !tile.view<2 x f32>
  return
}
