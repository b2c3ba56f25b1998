// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// What is put into is copied; elements then go one by one to their places, or where nobody looks.
// CHECK-LABEL: define void @tile.places
// CHECK: %[[NOWHERE:.*]] = alloca float
// CHECK: icmp ult {{.*}} splat (i32 64)
// CHECK: %[[AT:.*]] = select i1 %{{.*}}, ptr %{{.*}}, ptr %[[NOWHERE]]
// CHECK: store float %{{.*}}, ptr %[[AT]]
// CHECK: ret void
func.func @places(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %I: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<1024xf32>
  %i = tile.load %I[%c0 : i32] : !tile.view<1 x i32> -> tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = tile.put %a at %i into %zero axis 0 : (tensor<1024xf32>, tensor<1024xi32>, tensor<64xf32>) -> tensor<64xf32>
  tile.store %r, %O[%c0 : i32] : tensor<64xf32>, !tile.view<1 x f32>
  return
}
