// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A box of three dims that is read once and row by row stays where the view has it, with planes and rows apart; known to
// be inside of the view, it is not even looked at.
// CHECK-LABEL: define void @tile.grid
// CHECK: call void @"load_tensor<4x8x64xf32>
// CHECK: select i1 %[[STAYS:[0-9]+]], ptr %{{.*}}, ptr
// CHECK-NEXT: select i1 %[[STAYS]], i64 %{{.*}}, i64 512
// CHECK-NEXT: select i1 %[[STAYS]], i64 %{{.*}}, i64 64
// CHECK-NOT: call void @"load_tensor
// CHECK: ret void
func.func @grid(%A: !tile.view<3 x f32> {tile.unit_stride = 2 : i32}, %C: !tile.view<3 x f32> {tile.unit_stride = 2 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile.load %A[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3 x f32> -> tensor<4x8x64xf32>
  %b = tile.load %A[%c1, %c0, %c0 : i32, i32, i32] {tile.inside} : !tile.view<3 x f32> -> tensor<4x8x64xf32>
  %x = arith.addf %a, %b : tensor<4x8x64xf32>
  tile.store %x, %C[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x8x64xf32>, !tile.view<3 x f32>
  return
}
