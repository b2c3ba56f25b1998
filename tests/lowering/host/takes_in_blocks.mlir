// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Exchanges with neighbours: where the places of 16 lanes are of one block of 16, that is loaded and permuted.
// CHECK-LABEL: define void @tile.exchange
// CHECK: %[[BLOCKS:.*]] = lshr <16 x i32>
// CHECK: %[[SAME:.*]] = icmp eq <16 x i32> %[[BLOCKS]]
// CHECK: call i1 @llvm.vector.reduce.and.v16i1(<16 x i1> %[[SAME]])
// CHECK: call <16 x i32> @llvm.x86.avx512.permvar.si.512
// CHECK: call <16 x float> @llvm.masked.gather
func.func @exchange(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %four = arith.constant dense<4> : tensor<512xi32>
  %i = tile.iota : tensor<512xi32>
  %other = arith.xori %i, %four : tensor<512xi32>
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<512xf32>
  %t = tile.take %a, %other axis 0 : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  tile.store %t, %O[%c0 : i32] : tensor<512xf32>, !tile.view<1 x f32>
  return
}
