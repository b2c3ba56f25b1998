// Bitwise operations on bytes work on the words they were loaded in: none is taken apart and put together again.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Sixteen bytes of a thread: four words, each changed by one instruction.
// CHECK-LABEL: .entry offset
// CHECK-NOT: prmt
// CHECK-COUNT-4: xor.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, -2139062144;
// CHECK-NOT: prmt
// CHECK: ret;
func.func @offset(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %half = arith.constant dense<-128> : tensor<64x32xi8>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %b = arith.xori %a, %half : tensor<64x32xi8>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<64x32xi8>, !tile.view<2xi8>
  return
}

// -----

// A shift cuts off what it moves into the neighbour.
// CHECK-LABEL: .entry nibbles
// CHECK-NOT: prmt
// CHECK-COUNT-4: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 252645135;
// CHECK-NOT: prmt
// CHECK: ret;
func.func @nibbles(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %four = arith.constant dense<4> : tensor<64x32xi8>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %b = arith.shrui %a, %four : tensor<64x32xi8>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<64x32xi8>, !tile.view<2xi8>
  return
}

// -----

// Numbers of four bits with a sign: the word is shifted, and a product puts copies of the signs above them.
// CHECK-LABEL: .entry signed_nibbles
// CHECK-NOT: prmt
// CHECK-COUNT-4: mad.lo.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, 30, %r{{[0-9]+}};
// CHECK-NOT: prmt
// CHECK: ret;
func.func @signed_nibbles(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %four = arith.constant dense<4> : tensor<64x32xi8>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %b = arith.shrsi %a, %four : tensor<64x32xi8>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<64x32xi8>, !tile.view<2xi8>
  return
}

// -----

// Sums of bytes: no carry leaves its byte.
// CHECK-LABEL: .entry sums
// CHECK-NOT: prmt
// CHECK-COUNT-8: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 2139062143;
// CHECK-NOT: prmt
// CHECK: ret;
func.func @sums(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %b = tile.load %y[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %s = arith.addi %a, %b : tensor<64x32xi8>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<64x32xi8>, !tile.view<2xi8>
  return
}
