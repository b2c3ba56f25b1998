// Elements of 16 bits that are copied one by one: a thread has two side by side, a word of the buffer, where lanes that
// read every second one read as many lines as lanes that read every one.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-assign-layouts | FileCheck %s

// Neighbours, at any place.
// CHECK-LABEL: func.func @neighbours
// CHECK: tile.async_gather {{.*}} : tensor<64x32xi32, #tile.layout<64x32 regs [0:2*1, 1:8*4] lanes [0:32*2] warps [1:4*1]>>
func.func @neighbours(%x: !tile.ptr<f16>, %row: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<32xi32>
  %rs = tile.splat %row : i32 -> tensor<32xi32>
  %jr = arith.muli %j, %rs : tensor<32xi32>
  %i2 = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %j2 = tile.reshape %jr : tensor<32xi32> -> tensor<1x32xi32>
  %is = tile.broadcast %i2 : tensor<64x1xi32> -> tensor<64x32xi32>
  %js = tile.broadcast %j2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %is, %js : tensor<64x32xi32>
  %s = tile.smem_alloc : <64x32xf16, minor = 0>
  tile.async_gather %x offsets %at : tensor<64x32xi32> to %s : <f16>, <64x32xf16, minor = 0>
  return
}

// -----

// Several numbers apart, how many the launch tells: pairs would read twice the lines.
// CHECK-LABEL: func.func @apart
// CHECK: tile.async_gather {{.*}} : tensor<64x32xi32, #tile.layout<64x32 regs [0:2*32, 1:8*4] lanes [0:32*1] warps [1:4*1]>>
func.func @apart(%x: !tile.ptr<f16>, %row: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<32xi32>
  %ss = tile.splat %step : i32 -> tensor<64xi32>
  %rs = tile.splat %row : i32 -> tensor<32xi32>
  %iss = arith.muli %i, %ss : tensor<64xi32>
  %jr = arith.muli %j, %rs : tensor<32xi32>
  %i2 = tile.reshape %iss : tensor<64xi32> -> tensor<64x1xi32>
  %j2 = tile.reshape %jr : tensor<32xi32> -> tensor<1x32xi32>
  %is = tile.broadcast %i2 : tensor<64x1xi32> -> tensor<64x32xi32>
  %js = tile.broadcast %j2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %is, %js : tensor<64x32xi32>
  %s = tile.smem_alloc : <64x32xf16, minor = 0>
  tile.async_gather %x offsets %at : tensor<64x32xi32> to %s : <f16>, <64x32xf16, minor = 0>
  return
}

// -----

// Each in a line of its own, whoever reads it.
// CHECK-LABEL: func.func @lines
// CHECK: tile.async_gather {{.*}} : tensor<64x32xi32, #tile.layout<64x32 regs [0:2*1, 1:8*4] lanes [0:32*2] warps [1:4*1]>>
func.func @lines(%x: !tile.ptr<f16>, %row: i32, %step: i32 {tile.multiple_of = 64 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<32xi32>
  %ss = tile.splat %step : i32 -> tensor<64xi32>
  %rs = tile.splat %row : i32 -> tensor<32xi32>
  %iss = arith.muli %i, %ss : tensor<64xi32>
  %jr = arith.muli %j, %rs : tensor<32xi32>
  %i2 = tile.reshape %iss : tensor<64xi32> -> tensor<64x1xi32>
  %j2 = tile.reshape %jr : tensor<32xi32> -> tensor<1x32xi32>
  %is = tile.broadcast %i2 : tensor<64x1xi32> -> tensor<64x32xi32>
  %js = tile.broadcast %j2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %is, %js : tensor<64x32xi32>
  %s = tile.smem_alloc : <64x32xf16, minor = 0>
  tile.async_gather %x offsets %at : tensor<64x32xi32> to %s : <f16>, <64x32xf16, minor = 0>
  return
}
