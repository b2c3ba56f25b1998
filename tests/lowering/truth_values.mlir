// A truth value as a float is one of two numbers: none is converted.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry counted
// CHECK-NOT: cvt.rn
// CHECK: selp.f32 {{.*}}, 0f3F800000, 0f00000000
// CHECK-NOT: cvt.rn
// CHECK: ret;
func.func @counted(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %five = arith.constant dense<5> : tensor<512xi32>
  %v = tile.gather %x offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %is = arith.cmpi slt, %v, %five : tensor<512xi32>
  %n = arith.uitofp %is : tensor<512xi1> to tensor<512xf32>
  tile.scatter %n, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}
