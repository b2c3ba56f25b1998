// RUN: tilec compile %s --target host:sapphirerapids --emit llvm | FileCheck %s
// RUN: tilec compile %s --target host:sapphirerapids --exact-math --emit llvm | FileCheck %s --check-prefix=EXACT
// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s --check-prefix=VECTORS
// RUN: tilec compile %s --target host:x86-64-v3 --emit llvm | FileCheck %s --check-prefix=VECTORS

// Products of bf16 and i8 stay narrow: A is read where it lies, rows apart, B becomes words of neighbours along k, the
// transposed one by turning words. 2 x 2 registers of C stay while k runs; another configuration for the last columns.
// CHECK-LABEL: define void @tile.narrow
// CHECK: call void @words_64x72_bf16
// CHECK: call void @dot_64x72x64_bf16_unit_c72_new
// CHECK: call void @words_of_columns_64x64_i8
// CHECK: call void @dot_64x64x64_i8_unit_c64_add
// A second operand that is computed becomes words in registers: the upper halves of floats.
// CHECK: fmul <16 x float>
// CHECK: lshr <16 x i32> %{{.*}}, splat (i32 16)
// CHECK: and <16 x i32> %{{.*}}, splat (i32 -65536)
// CHECK: call void @dot_64x64x64_bf16_unit_c64_new
// CHECK-NOT: fpext
// CHECK: define internal void @words_64x72_bf16
// CHECK: zext <16 x i16>
// CHECK: call <16 x i16> @llvm.masked.load
// CHECK: define internal void @dot_64x72x64_bf16_unit_c72_new
// CHECK: call void @llvm.x86.ldtilecfg
// CHECK-COUNT-4: call void @llvm.x86.tilezero
// CHECK-COUNT-4: call void @llvm.x86.tileloadd64
// CHECK-COUNT-4: call void @llvm.x86.tdpbf16ps
// CHECK-COUNT-4: call void @llvm.x86.tilestored64
// CHECK: call void @llvm.x86.ldtilecfg
// CHECK-COUNT-2: call void @llvm.x86.tdpbf16ps
// CHECK: call void @llvm.x86.tilerelease
// CHECK: define internal void @dot_64x64x64_i8_unit_c64_add
// CHECK: call void @llvm.x86.tdpbssd
// A product too small for it.
// CHECK: define internal void @dot_8x8x8_f32

// The unit takes subnormals as 0: not where arithmetic is to be exact. Whole numbers are.
// EXACT-NOT: llvm.x86.tdpbf16ps
// EXACT: llvm.x86.tdpbssd
// VECTORS-NOT: llvm.x86.t
func.func @narrow(%A: !tile.view<2 x bf16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x bf16> {tile.unit_stride = 1 : i32}, %X: !tile.view<2 x i8> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %Y: !tile.view<2 x i32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x72xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x72xbf16>
  %c = tile.dot %a, %b, %zero : tensor<64x64xbf16>, tensor<64x72xbf16> -> tensor<64x72xf32>
  tile.store %c, %C[%c0, %c0 : i32, i32] : tensor<64x72xf32>, !tile.view<2 x f32>
  %x = tile.load %X[%c0, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
  %xt = tile.trans %x, [1, 0] : tensor<64x64xi8> -> tensor<64x64xi8>
  %y = tile.load %Y[%c0, %c0 : i32, i32] : !tile.view<2 x i32> -> tensor<64x64xi32>
  %z = tile.dot %x, %xt, %y : tensor<64x64xi8>, tensor<64x64xi8> -> tensor<64x64xi32>
  tile.store %z, %Y[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2 x i32>
  %v = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
  %w = arith.mulf %v, %v : tensor<64x64xbf16>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %e = tile.dot %a, %w, %none : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %e, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  %small = arith.constant dense<0.0> : tensor<8x8xf32>
  %p = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<8x8xbf16>
  %q = tile.dot %p, %p, %small : tensor<8x8xbf16>, tensor<8x8xbf16> -> tensor<8x8xf32>
  tile.store %q, %C[%c0, %c0 : i32, i32] : tensor<8x8xf32>, !tile.view<2 x f32>
  return
}
