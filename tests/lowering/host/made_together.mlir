// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A running maximum and where it was, both updated in place: one loop makes both, and compares once.
// CHECK-LABEL: define void @tile.argmax
// CHECK: for.body:
// CHECK: loop{{[0-9]*}}:
// CHECK: fcmp ogt <[[N:[0-9]+]] x float>
// CHECK: select <[[N]] x i1> %{{.*}}, <[[N]] x i32>
// CHECK: store <[[N]] x i32>
// CHECK-NOT: fcmp
// CHECK: store <[[N]] x float>
// CHECK-NOT: fcmp ogt
// CHECK: for.done:
func.func @argmax(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}, %P: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0xFF800000> : tensor<256xf32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %last:2 = scf.for %t = %c0 to %n step %c1 iter_args(%best = %none, %at = %zero) -> (tensor<256xf32>, tensor<256xi32>) : i32 {
    %x = tile.load %A[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<256xf32>
    %better = arith.cmpf ogt, %x, %best : tensor<256xf32>
    %row = tile.splat %t : i32 -> tensor<256xi32>
    %where = arith.select %better, %row, %at : tensor<256xi1>, tensor<256xi32>
    %next = arith.select %better, %x, %best : tensor<256xi1>, tensor<256xf32>
    scf.yield %next, %where : tensor<256xf32>, tensor<256xi32>
  }
  tile.store %last#1, %O[%c0 : i32] : tensor<256xi32>, !tile.view<1 x i32>
  tile.store %last#0, %P[%c0 : i32] : tensor<256xf32>, !tile.view<1 x f32>
  return
}
