// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Values and their weights are read where they are added, in four tables in turns. What is outside adds 0.
// CHECK-LABEL: define void @tile.weighted
// CHECK: call void @llvm.memset{{.*}} i64 256,
// CHECK: call void @llvm.memset{{.*}} i64 768,
// CHECK: %[[W:.*]] = select i1 %{{.*}}, float %{{.*}}, float 0.000000e+00
// CHECK: fadd float %{{.*}}, %[[W]]
// CHECK-COUNT-3: fadd <{{[0-9]+}} x float>
// CHECK: ret void
func.func @weighted(%A: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %W: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x i32> -> tensor<1024xi32>
  %w = tile.load %W[%c0 : i32] : !tile.view<1 x f32> -> tensor<1024xf32>
  %h = tile.histogram %a weights %w : tensor<1024xf32> : tensor<1024xi32> -> tensor<64xf32>
  tile.store %h, %O[%c0 : i32] : tensor<64xf32>, !tile.view<1 x f32>
  return
}
