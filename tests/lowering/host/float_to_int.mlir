// RUN: tilec compile %s --target host:x86-64-v4 --emit asm | FileCheck %s

// Conversions saturate in vectors, to bytes and to words: no lane goes alone.
// CHECK-LABEL: tile.bytes:
// CHECK: vcvttps2dq {{.*}}%zmm
// CHECK: vpmovdb
// CHECK: vcvttps2dq {{.*}}%zmm
func.func @bytes(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %B: !tile.view<1 x i8> {tile.unit_stride = 0 : i32}, %C: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<64xf32>
  %b = arith.fptoui %a : tensor<64xf32> to tensor<64xi8>
  %c = arith.fptosi %a : tensor<64xf32> to tensor<64xi32>
  tile.store %b, %B[%c0 : i32] : tensor<64xi8>, !tile.view<1 x i8>
  tile.store %c, %C[%c0 : i32] : tensor<64xi32>, !tile.view<1 x i32>
  return
}
