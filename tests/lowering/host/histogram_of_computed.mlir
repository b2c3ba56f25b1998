// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// What is counted is computed in vectors; then every lane counts for itself.
// CHECK-LABEL: define void @tile.bins
// CHECK: @llvm.floor.v16f32
// CHECK: call <16 x i32> @llvm.umin.v16i32
// CHECK-COUNT-16: extractelement <16 x i32> %{{.*}}, i64 {{[0-9]+}}
// CHECK-NOT: @llvm.floor.f32
// CHECK: ret void
func.func @bins(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %scale = arith.constant dense<8.0> : tensor<1024xf32>
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<1024xf32>
  %r = math.sqrt %a : tensor<1024xf32>
  %s = arith.mulf %r, %scale : tensor<1024xf32>
  %f = math.floor %s : tensor<1024xf32>
  %i = arith.fptosi %f : tensor<1024xf32> to tensor<1024xi32>
  %h = tile.histogram %i : tensor<1024xi32> -> tensor<64xi32>
  tile.store %h, %O[%c0 : i32] : tensor<64xi32>, !tile.view<1 x i32>
  return
}
