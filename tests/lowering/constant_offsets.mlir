// Elements of a thread whose places differ by constants share an address.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// The places are sums in 32 bits that do not wrap: three of four vectors are constants away from the first.
// CHECK-LABEL: entry vectors(
// CHECK: mul.wide.u32 [[AT:%rd[0-9]+]], {{%r[0-9]+}}, 2;
// CHECK-NEXT: add.s64 [[FIRST:%rd[0-9]+]], {{%rd[0-9]+}}, [[AT]];
// CHECK-NOT: mul.wide
// CHECK: [[SECOND:%rd[0-9]+]], [[FIRST]], 2048;
// CHECK-NOT: mul.wide
// CHECK: [[FIRST]], 4096;
// CHECK-NOT: mul.wide
// CHECK: [[FIRST]], 6144;
func.func @vectors(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.ptr<f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<4096xf16>
  %i = tile.iota : tensor<4096xi32>
  %ns = tile.splat %n : i32 -> tensor<4096xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<4096xi32>
  %v = tile.gather %x offsets %i : tensor<4096xi32> mask %in : tensor<4096xi1> other %zero : tensor<4096xf16> : !tile.ptr<f16> -> tensor<4096xf16>
  %w = arith.extf %v : tensor<4096xf16> to tensor<4096xf32>
  %s = tile.reduce %w axis 0 : (tensor<4096xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %sum = tile.item %s : tensor<1xf32> -> f32
  %o = arith.constant 0 : i32
  %os = tile.splat %o : i32 -> tensor<1xi32>
  tile.scatter %s, %y offsets %os : tensor<1xi32> : tensor<1xf32>, !tile.ptr<f32>
  return
}

// -----
// Rows are as far apart as the launch says, and every one begins somewhere else: nothing is shared.
// CHECK-LABEL: entry rows(
// CHECK-COUNT-3: mul.wide.s32
// CHECK: ret;
func.func @rows(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %stride: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = tile.iota : tensor<128xi32>
  %s = tile.splat %stride : i32 -> tensor<128xi32>
  %at = arith.muli %i, %s : tensor<128xi32>
  %v = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %v, %y offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
