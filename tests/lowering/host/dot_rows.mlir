// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// The second operand of a product stays where its view has it, rows apart: a copy is the way of boxes that reach over an
// edge. The product takes the distance of its rows. (The first one is copied: its rows would each need an address.)
// CHECK-LABEL: define void @tile.boxes
// CHECK: call void @"load_tensor<48x32xf32>
// CHECK: call void @"load_tensor<32x64xf32>
// CHECK: %[[B:[0-9]+]] = select i1 %[[STAYS:[0-9]+]], ptr %{{.*}}, ptr
// CHECK-NEXT: %[[ROWS:[0-9]+]] = select i1 %[[STAYS]], i64 %{{.*}}, i64 64
// CHECK: call void @dot_48x64x32_f32_a32_1_b64_c64_new_rows({{.*}}, i64 %[[ROWS]])
func.func @boxes(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<48x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<48x32xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
  %x = tile.dot %a, %b, %zero : tensor<48x32xf32>, tensor<32x64xf32> -> tensor<48x64xf32>
  tile.store %x, %C[%c0, %c0 : i32, i32] : tensor<48x64xf32>, !tile.view<2 x f32>
  return
}
