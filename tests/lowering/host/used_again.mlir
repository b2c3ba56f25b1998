// A dear value with several uses stays in registers where one op's loops are all that needs it: loaded once, computed
// once, and nothing but the result is stored. Where a reduction needs it, too, it is kept.
// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// CHECK-LABEL: define void @tile.squares
// CHECK: load <[[N:[0-9]+]] x float>
// CHECK: fdiv <[[N]] x float>
// CHECK-NOT: store
// CHECK: fdiv <[[N]] x float>
// CHECK-NOT: store
// CHECK: fsub <[[N]] x float>
// CHECK: store <[[N]] x float>
// CHECK-NOT: fdiv <[[N]] x float>
// CHECK: ret void
func.func @squares(%X: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %Y: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<256xf32>
  %x = tile.load %X[%c0 : i32] : !tile.view<1 x f32> -> tensor<256xf32>
  %a = arith.divf %one, %x : tensor<256xf32>
  %b = arith.mulf %a, %a : tensor<256xf32>
  %c = arith.divf %b, %x : tensor<256xf32>
  %d = arith.mulf %c, %a : tensor<256xf32>
  %e = arith.subf %d, %c : tensor<256xf32>
  tile.store %e, %Y[%c0 : i32] : tensor<256xf32>, !tile.view<1 x f32>
  return
}
