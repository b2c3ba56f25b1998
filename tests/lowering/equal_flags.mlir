// Neighbours that lie on one side of a bound are compared once for all of them that a thread has.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// A row's size is a multiple of 16: each piece of four elements is inside or outside, and so is its sum.
// CHECK: entry pieces(
// CHECK: griddepcontrol.launch_dependents
// CHECK-COUNT-2: setp.lt.s32
// CHECK-NOT: setp.lt.s32
// CHECK: ret;
func.func @pieces(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<1024xi32>
  %end = tile.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %end : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %a = tile.gather %x offsets %i : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
  %b = arith.select %in, %a, %zero : tensor<1024xi1>, tensor<1024xf32>
  tile.scatter %b, %y offsets %i : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  return
}
