// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Elementwise work is evaluated inside the loop that stores it: one pass over memory, nothing kept in the arena but the
// two loads; what does not change along a row (the scaled column) is computed once per row, outside the vector loop.
// CHECK-LABEL: define void @tile.fused
// CHECK: call void @"load_tensor<16x256xf32>
// CHECK: call void @"load_tensor<16x1xf32>
// The row loop computes the scale of its row ...
// CHECK: load float, ptr
// CHECK: fmul float %{{.*}}, 2.000000e+00
// ... and the vector loop uses it.
// CHECK: load <32 x float>
// CHECK: fmul <32 x float>
// CHECK: store <32 x float>
// CHECK-NOT: fmul float %{{.*}}, 2.000000e+00
// CHECK: ret void
func.func @fused(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %S: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %two = arith.constant dense<2.0> : tensor<16x1xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x256xf32>
  %s = tile.load %S[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x1xf32>
  %s2 = arith.mulf %s, %two : tensor<16x1xf32>
  %sb = tile.broadcast %s2 : tensor<16x1xf32> -> tensor<16x256xf32>
  %r = arith.mulf %a, %sb : tensor<16x256xf32>
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x256xf32>, !tile.view<2 x f32>
  return
}
