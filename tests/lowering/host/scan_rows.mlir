// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A scan along rows goes by vectors: sums of neighbours 1, 2, 4, .. lanes apart, then what came before, whose last lane
// is what comes next. What is summed is computed in vectors as well.
// CHECK-LABEL: define void @tile.running
// CHECK: accumulate:
// CHECK: phi <[[N:[0-9]+]] x float>
// CHECK: fdiv <[[N]] x float>
// CHECK: shufflevector <[[N]] x float> {{.*}} <i32 0, i32 0, i32 1, i32 2
// CHECK: fadd <[[N]] x float>
// CHECK: select <[[N]] x i1> <i1 false, i1 true, i1 true
// CHECK: shufflevector <[[N]] x float> {{.*}} <i32 0, i32 1, i32 0, i32 1
// CHECK: store <[[N]] x float>
// CHECK: done
// CHECK-NOT: fadd float
// CHECK: ret void
func.func @running(%X: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %Y: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<4x256xf32>
  %x = tile.load %X[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<4x256xf32>
  %r = arith.divf %one, %x : tensor<4x256xf32>
  %y = tile.scan %r axis 1 : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  tile.store %y, %Y[%c0, %c0 : i32, i32] : tensor<4x256xf32>, !tile.view<2 x f32>
  return
}
