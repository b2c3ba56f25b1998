// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A state that decays and takes a product in place: decayed vectors start the sums of each register tile, there is no
// pass over the state in front of the product.
// CHECK-LABEL: define void @tile.onto
// CHECK: for.body:
// CHECK-NOT: store <
// CHECK: fmul <16 x float>
// CHECK: accumulate:
// CHECK: call <16 x float> @llvm.fma.v16f32
// CHECK: store <16 x float>
// CHECK: ret void
func.func @onto(%K: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %V: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %D: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.load %D[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x1xf32>
  %rows = tile.broadcast %d : tensor<64x1xf32> -> tensor<64x64xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%h = %zero) -> (tensor<64x64xf32>) : i32 {
    %k = tile.load %K[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x8xf32>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<8x64xf32>
    %decayed = arith.mulf %h, %rows : tensor<64x64xf32>
    %next = tile.dot %k, %v, %decayed : tensor<64x8xf32>, tensor<8x64xf32> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %last, %O[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
