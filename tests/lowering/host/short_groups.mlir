// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Eight rows: their partial sums are folded against each other to one vector of eight results, none of them alone.
// CHECK-LABEL: define void @tile.rows
// CHECK: shufflevector <8 x float>
// CHECK-NOT: store float
// CHECK: store <8 x float>
func.func @rows(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<8x256xf32>
  %r = tile.reduce %a axis 1 : (tensor<8x256xf32>) -> tensor<8x1xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tile.yield %z : f32
  }
  %sums = tile.reshape %r : tensor<8x1xf32> -> tensor<8xf32>
  %twice = arith.addf %sums, %sums : tensor<8xf32>
  tile.store %twice, %O[%c0 : i32] : tensor<8xf32>, !tile.view<1 x f32>
  return
}
