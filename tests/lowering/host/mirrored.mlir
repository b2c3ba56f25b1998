// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Mirrored coordinates: whether the lanes of a vector lie side by side is found out as they are computed.
// CHECK-LABEL: define void @tile.mirrored
// CHECK: %[[SAME:.*]] = icmp eq <16 x i32>
// CHECK: %[[ALL:.*]] = call i1 @llvm.vector.reduce.and.v16i1(<16 x i1> %[[SAME]])
// CHECK: br i1 %[[ALL]]
// CHECK: load <16 x float>
// CHECK: call <16 x float> @llvm.masked.gather
func.func @mirrored(%A: !tile.ptr<f32>, %width: i32, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %last = tile.splat %width : i32 -> tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %back = arith.subi %last, %i : tensor<1024xi32>
  %outside = arith.cmpi sge, %i, %last : tensor<1024xi32>
  %x = arith.select %outside, %back, %i : tensor<1024xi1>, tensor<1024xi32>
  %a = tile.gather %A offsets %x : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
  tile.store %a, %O[%c0 : i32] : tensor<1024xf32>, !tile.view<1 x f32>
  return
}
