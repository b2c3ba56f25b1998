// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Lookups in a table of 16 entries, and in one of 24, permute registers; in a larger one they are gathers of 32-bit
// places.
// CHECK-LABEL: define void @tile.lookup
// CHECK: call <16 x i32> @llvm.x86.avx512.permvar.si.512
// CHECK: call <16 x i16> @llvm.masked.load{{.*}}<i1 true, {{.*}}i1 false>
// CHECK: call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512
// CHECK: getelementptr i32, ptr %{{.*}}, <16 x i32>
// CHECK: call <16 x i32> @llvm.masked.gather
func.func @lookup(%I: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %A: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %B: !tile.view<1 x i16> {tile.unit_stride = 0 : i32}, %C: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %X: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %Y: !tile.view<1 x i16> {tile.unit_stride = 0 : i32}, %Z: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %i = tile.load %I[%c0 : i32] : !tile.view<1 x i32> -> tensor<256xi32>
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x i32> -> tensor<16xi32>
  %b = tile.load %B[%c0 : i32] : !tile.view<1 x i16> -> tensor<24xi16>
  %c = tile.load %C[%c0 : i32] : !tile.view<1 x i32> -> tensor<64xi32>
  %x = tile.take %a, %i axis 0 : tensor<16xi32>, tensor<256xi32> -> tensor<256xi32>
  %y = tile.take %b, %i axis 0 : tensor<24xi16>, tensor<256xi32> -> tensor<256xi16>
  %z = tile.take %c, %i axis 0 : tensor<64xi32>, tensor<256xi32> -> tensor<256xi32>
  tile.store %x, %X[%c0 : i32] : tensor<256xi32>, !tile.view<1 x i32>
  tile.store %y, %Y[%c0 : i32] : tensor<256xi16>, !tile.view<1 x i16>
  tile.store %z, %Z[%c0 : i32] : tensor<256xi32>, !tile.view<1 x i32>
  return
}
