// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A state is summed up, then updated: both in one pass over it. What a later row needs is read before it is overwritten.
// CHECK-LABEL: define void @tile.walk
// CHECK: accumulate:
// CHECK: %[[H:.*]] = load <64 x float>
// CHECK: %[[HALF:.*]] = fmul <64 x float> %[[H]],
// CHECK: %[[NEXT:.*]] = fadd <64 x float> %[[HALF]],
// CHECK: store <64 x float> %[[NEXT]]
// CHECK: fadd <64 x float> %{{.*}}, %[[H]]
// CHECK-NOT: fmul <64 x float>
// CHECK: ret void
func.func @walk(%K: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %half = arith.constant dense<0.5> : tensor<32x64xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%h = %zero) -> (tensor<32x64xf32>) : i32 {
    %k = tile.load %K[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64xf32>
    %row = tile.reshape %k : tensor<64xf32> -> tensor<1x64xf32>
    %rows = tile.broadcast %row : tensor<1x64xf32> -> tensor<32x64xf32>
    %sum = tile.reduce %h axis 0 : (tensor<32x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %decayed = arith.mulf %h, %half : tensor<32x64xf32>
    %next = arith.addf %decayed, %rows : tensor<32x64xf32>
    tile.store %sum, %O[%t, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2 x f32>
    scf.yield %next : tensor<32x64xf32>
  }
  return
}
