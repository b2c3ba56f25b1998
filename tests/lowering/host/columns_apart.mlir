// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Sums of columns, and scans down them, read a box where the view has it, as sums of rows do: rows that lie apart are a
// stride of their loops.
// CHECK-LABEL: define void @tile.columns
// CHECK: call void @"load_tensor<32x128xf32>
// CHECK: %[[PITCH:[0-9]+]] = select i1 %{{.*}}, i64 %{{.*}}, i64 128
// CHECK: mul nsw i64 %{{.*}}, %[[PITCH]]
// CHECK: load <64 x float>
// CHECK: call void @"load_tensor<16x128xf32>
// CHECK: %[[PITCH:[0-9]+]] = select i1 %{{.*}}, i64 %{{.*}}, i64 128
// CHECK: mul nsw i64 %{{.*}}, %[[PITCH]]
// CHECK: ret void
func.func @columns(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
  %sum = tile.reduce %a axis 0 : (tensor<32x128xf32>) -> tensor<1x128xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tile.yield %z : f32
  }
  tile.store %sum, %O[%c0, %c0 : i32, i32] : tensor<1x128xf32>, !tile.view<2 x f32>
  %b = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x128xf32>
  %sums = tile.scan %b axis 0 : (tensor<16x128xf32>) -> tensor<16x128xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tile.yield %z : f32
  }
  tile.store %sums, %O[%c0, %c0 : i32, i32] : tensor<16x128xf32>, !tile.view<2 x f32>
  return
}
