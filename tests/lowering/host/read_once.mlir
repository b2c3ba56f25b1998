// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A row that is read once, and one that all programs read twice: nothing is asked for ahead.
// CHECK-LABEL: define void @tile.once
// CHECK-NOT: prefetch
// CHECK: ret void
func.func @once(%X: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %W: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %Y: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %row = tile.program_id 0
  %x = tile.load %X[%row, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<1x1024xf32>
  %w = tile.load %W[%c0 : i32] : !tile.view<1 x f32> -> tensor<1024xf32>
  %v = tile.reshape %w : tensor<1024xf32> -> tensor<1x1024xf32>
  %sum = tile.reduce %v axis 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %all = tile.broadcast %sum : tensor<1x1xf32> -> tensor<1x1024xf32>
  %d = arith.subf %x, %all : tensor<1x1024xf32>
  %y = arith.mulf %d, %v : tensor<1x1024xf32>
  tile.store %y, %Y[%row, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2 x f32>
  return
}
