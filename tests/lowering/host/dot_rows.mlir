// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Operands that only products read stay where their views have them, rows apart: a copy is the way of boxes that reach
// over an edge. The product takes the distances of rows.
// CHECK-LABEL: define void @tile.boxes
// CHECK: %[[A:.*]] = select i1 %[[STAYS:.*]], ptr %{{.*}}, ptr
// CHECK-NEXT: %[[ROWS_A:.*]] = select i1 %[[STAYS]], i64 %{{.*}}, i64 32
// CHECK: %[[B:.*]] = select i1
// CHECK-NEXT: %[[ROWS_B:.*]] = select i1 %{{.*}}, i64 %{{.*}}, i64 64
// CHECK: call void @dot_48x64x32_f32_a32_1_b64_c64_new_rows_a_rows_b(ptr {{.*}}, i64 %[[ROWS_A]], i64 %[[ROWS_B]])
func.func @boxes(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<48x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<48x32xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
  %x = tile.dot %a, %b, %zero : tensor<48x32xf32>, tensor<32x64xf32> -> tensor<48x64xf32>
  tile.store %x, %C[%c0, %c0 : i32, i32] : tensor<48x64xf32>, !tile.view<2 x f32>
  return
}
