// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// The update needs the sum: a loop of its own behind it.
// CHECK-LABEL: define void @tile.needs_the_sum
// CHECK: accumulate:
// CHECK-NOT: fsub <64 x float>
// CHECK: {{^}}done{{[0-9]+}}:
// CHECK: fsub <64 x float>
// CHECK: ret void
func.func @needs_the_sum(%K: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %O: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%h = %zero) -> (tensor<32x64xf32>) : i32 {
    %sum = tile.reduce %h axis 0 : (tensor<32x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %sums = tile.broadcast %sum : tensor<1x64xf32> -> tensor<32x64xf32>
    %next = arith.subf %h, %sums : tensor<32x64xf32>
    tile.store %sum, %O[%t, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2 x f32>
    scf.yield %next : tensor<32x64xf32>
  }
  return
}
