// Matrices read along diagonals and reduced: a thread has a block of neighbours and reads every diagonal of it once.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// 256 samples by 32 lags over 128 threads: 64 elements each, in blocks of 8 x 8: 15 reads, not 64.
// CHECK-LABEL: .entry lags(
// CHECK-COUNT-15: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @lags(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<256xi32>
  %k = tile.iota : tensor<32xi32>
  %tc = tile.reshape %t : tensor<256xi32> -> tensor<256x1xi32>
  %kr = tile.reshape %k : tensor<32xi32> -> tensor<1x32xi32>
  %rows = tile.broadcast %tc : tensor<256x1xi32> -> tensor<256x32xi32>
  %columns = tile.broadcast %kr : tensor<1x32xi32> -> tensor<256x32xi32>
  %at = arith.addi %rows, %columns : tensor<256x32xi32>
  %size = tile.splat %n : i32 -> tensor<256x32xi32>
  %in = arith.cmpi slt, %at, %size : tensor<256x32xi32>
  %v = tile.gather %x offsets %at : tensor<256x32xi32> mask %in : tensor<256x32xi1> : !tile.ptr<f32> -> tensor<256x32xf32>
  %q = arith.mulf %v, %v : tensor<256x32xf32>
  %s = tile.reduce %q axis 1 : (tensor<256x32xf32>) -> tensor<256x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %f = tile.reshape %s : tensor<256x1xf32> -> tensor<256xf32>
  tile.scatter %f, %y offsets %t : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
// -----
// A mask of columns beside the one of places: read if any column of the diagonal is wanted, and chosen for each element.
// CHECK-LABEL: .entry own_masks(
// CHECK-COUNT-15: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @own_masks(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<256xi32>
  %k = tile.iota : tensor<32xi32>
  %tc = tile.reshape %t : tensor<256xi32> -> tensor<256x1xi32>
  %kr = tile.reshape %k : tensor<32xi32> -> tensor<1x32xi32>
  %rows = tile.broadcast %tc : tensor<256x1xi32> -> tensor<256x32xi32>
  %columns = tile.broadcast %kr : tensor<1x32xi32> -> tensor<256x32xi32>
  %at = arith.subi %rows, %columns : tensor<256x32xi32>
  %zero = arith.constant dense<0> : tensor<256x32xi32>
  %in = arith.cmpi sge, %at, %zero : tensor<256x32xi32>
  %taps = tile.splat %m : i32 -> tensor<1x32xi32>
  %there = arith.cmpi slt, %kr, %taps : tensor<1x32xi32>
  %these = tile.broadcast %there : tensor<1x32xi1> -> tensor<256x32xi1>
  %mask = arith.andi %these, %in : tensor<256x32xi1>
  %v = tile.gather %x offsets %at : tensor<256x32xi32> mask %mask : tensor<256x32xi1> : !tile.ptr<f32> -> tensor<256x32xf32>
  %s = tile.reduce %v axis 1 : (tensor<256x32xf32>) -> tensor<256x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %f = tile.reshape %s : tensor<256x1xf32> -> tensor<256xf32>
  tile.scatter %f, %y offsets %t : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
// -----
// Rows that lie apart have no diagonals in common.
// CHECK-LABEL: .entry apart(
// CHECK-COUNT-64: ld.global.b32
// CHECK: ret;
func.func @apart(%x: !tile.ptr<f32> {tile.align = 4 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<256xi32>
  %k = tile.iota : tensor<32xi32>
  %pitch = arith.constant dense<33> : tensor<256x1xi32>
  %tc = tile.reshape %t : tensor<256xi32> -> tensor<256x1xi32>
  %ts = arith.muli %tc, %pitch : tensor<256x1xi32>
  %kr = tile.reshape %k : tensor<32xi32> -> tensor<1x32xi32>
  %rows = tile.broadcast %ts : tensor<256x1xi32> -> tensor<256x32xi32>
  %columns = tile.broadcast %kr : tensor<1x32xi32> -> tensor<256x32xi32>
  %at = arith.addi %rows, %columns : tensor<256x32xi32>
  %v = tile.gather %x offsets %at : tensor<256x32xi32> : !tile.ptr<f32> -> tensor<256x32xf32>
  %s = tile.reduce %v axis 1 : (tensor<256x32xf32>) -> tensor<256x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %f = tile.reshape %s : tensor<256x1xf32> -> tensor<256xf32>
  tile.scatter %f, %y offsets %t : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
