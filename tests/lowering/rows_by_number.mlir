// Sizes of views are no negative numbers: whether a number of 64 bits is one of a row takes one comparison.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry rows(
// CHECK-NOT: setp.{{[gl][et]}}.s64
// CHECK: setp.{{[gl][et]}}.u64
// CHECK-NOT: setp.
// CHECK: ret;
func.func @rows(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %n: !tile.ptr<i64> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0> : tensor<128xi64>
  %i = tile.iota : tensor<128xi32>
  %row = tile.gather %n offsets %i : tensor<128xi32> : !tile.ptr<i64> -> tensor<128xi64>
  %dim = tile.view_dim %x, 0 : !tile.view<1xf32>
  %size = tile.splat %dim : i64 -> tensor<128xi64>
  %low = arith.cmpi sge, %row, %zero : tensor<128xi64>
  %high = arith.cmpi slt, %row, %size : tensor<128xi64>
  %is = arith.andi %low, %high : tensor<128xi1>
  %p = tile.view_ptr %x : !tile.view<1xf32> -> !tile.ptr<f32>
  %v = tile.gather %p offsets %row : tensor<128xi64> mask %is : tensor<128xi1> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %v, %y offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
