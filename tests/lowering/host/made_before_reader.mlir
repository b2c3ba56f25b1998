// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Here the sum reads the tile turned as well: it is made where its op stands.
// CHECK-LABEL: define void @tile.turned
// CHECK: loop:
// CHECK: fmul <{{[0-9]+}} x float>
// CHECK: store <{{[0-9]+}} x float>
// CHECK: accumulate:
// CHECK-NOT: fmul
// CHECK: ret void
func.func @turned(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
  %b = arith.mulf %a, %a : tensor<64x64xf32>
  %t = tile.trans %b, [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %s = arith.addf %b, %t : tensor<64x64xf32>
  %sum = tile.reduce %s axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tile.yield %z : f32
  }
  tile.store %sum, %O[%c0, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2 x f32>
  return
}
