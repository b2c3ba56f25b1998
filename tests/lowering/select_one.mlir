// Sums of which all elements but one are zero read that one: its thread chooses it, its lane hands it to the others.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=llvm -o /dev/null | FileCheck %s

// A column of a matrix, at a place that all threads know.
// CHECK-LABEL: @column(
// CHECK: %[[COLUMN:[0-9]+]] = select i1 %{{[0-9]+}}, float
// CHECK: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1
// CHECK: fadd float %{{[0-9]+}}, 0.000000e+00
// CHECK-NOT: shfl.sync.bfly
// CHECK: ret void
func.func @column(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %i = tile.iota : tensor<64xi32>
  %r = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %j = tile.splat %at : i32 -> tensor<1x64xi32>
  %is = arith.cmpi eq, %r, %j : tensor<1x64xi32>
  %here = tile.broadcast %is : tensor<1x64xi1> -> tensor<32x64xi1>
  %one = arith.select %here, %v, %zero : tensor<32x64xi1>, tensor<32x64xf32>
  %s = tile.reduce %one axis 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tile.yield %t : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<32x1xf32>, !tile.view<2xf32>
  return
}

// -----
// A row of a matrix: places are compared before they become a column.
// CHECK-LABEL: @row(
// CHECK: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1
// CHECK-NOT: shfl.sync.bfly
// CHECK: ret void
func.func @row(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %at: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x8xf32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.splat %at : i32 -> tensor<64xi32>
  %is = arith.cmpi eq, %i, %j : tensor<64xi32>
  %column = tile.reshape %is : tensor<64xi1> -> tensor<64x1xi1>
  %here = tile.broadcast %column : tensor<64x1xi1> -> tensor<64x8xi1>
  %one = arith.select %here, %v, %zero : tensor<64x8xi1>, tensor<64x8xf32>
  %s = tile.reduce %one axis 0 : (tensor<64x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tile.yield %t : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<1x8xf32>, !tile.view<2xf32>
  return
}

// -----
// Coordinates up to a place are not one of them.
// CHECK-LABEL: @up_to(
// CHECK-NOT: shfl.sync.idx
// CHECK: shfl.sync.bfly
func.func @up_to(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %i = tile.iota : tensor<64xi32>
  %r = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %j = tile.splat %at : i32 -> tensor<1x64xi32>
  %is = arith.cmpi sle, %r, %j : tensor<1x64xi32>
  %here = tile.broadcast %is : tensor<1x64xi1> -> tensor<32x64xi1>
  %one = arith.select %here, %v, %zero : tensor<32x64xi1>, tensor<32x64xf32>
  %s = tile.reduce %one axis 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tile.yield %t : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<32x1xf32>, !tile.view<2xf32>
  return
}

// -----
// A row whose number was found in the kernel (a pivot), and one known while compiling: of four registers the bits of the
// coordinate choose, and a constant needs no choice.
// CHECK-LABEL: @pivot(
// CHECK: icmp ult i32 %{{[0-9]+}}, 32
// CHECK: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1
// CHECK-NOT: shfl.sync.bfly
// CHECK: ret void
func.func @pivot(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %p: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x8xf32>
  %five = arith.constant dense<5> : tensor<32x1xi32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x8xf32>
  %i = tile.iota : tensor<32xi32>
  %r = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %first = tile.iota : tensor<1xi32>
  %found = tile.gather %p offsets %first : tensor<1xi32> : !tile.ptr<i32> -> tensor<1xi32>
  %number = tile.reshape %found : tensor<1xi32> -> tensor<1x1xi32>
  %at = tile.broadcast %number : tensor<1x1xi32> -> tensor<32x1xi32>
  %is = arith.cmpi eq, %r, %at : tensor<32x1xi32>
  %here = tile.broadcast %is : tensor<32x1xi1> -> tensor<32x8xi1>
  %one = arith.select %here, %v, %zero : tensor<32x8xi1>, tensor<32x8xf32>
  %s = tile.reduce %one axis 0 : (tensor<32x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tile.yield %t : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<1x8xf32>, !tile.view<2xf32>
  %isFive = arith.cmpi eq, %r, %five : tensor<32x1xi32>
  %hereFive = tile.broadcast %isFive : tensor<32x1xi1> -> tensor<32x8xi1>
  %oneFive = arith.select %hereFive, %v, %zero : tensor<32x8xi1>, tensor<32x8xf32>
  %sFive = tile.reduce %oneFive axis 0 : (tensor<32x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tile.yield %t : f32
  }
  tile.store %sFive, %y[%c1, %c0 : i32, i32] : tensor<1x8xf32>, !tile.view<2xf32>
  return
}
