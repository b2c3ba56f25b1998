// The mask of a copy to shared memory is computed by the threads that copy, although the copy's offsets, which any thread
// can compute, have no layout of their own to pass on.
// RUN: tile-opt %s --tile-target=sm_90a --tile-assign-layouts | FileCheck %s

// Pixels and taps of a convolution: columns 8 by 8, bounds of four sides.
// CHECK-LABEL: func.func @taps
// CHECK-NOT: tile.convert
// CHECK: tile.async_gather %{{.*}} offsets %{{.*}} : tensor<128x32xi32, #tile.layout<128x32 regs [1:8*1, 0:4*32] lanes [1:4*8, 0:8*1] warps [0:4*8]>> mask
// CHECK-NOT: tile.convert
func.func @taps(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %h: i32, %w: i32, %n: i32 {tile.multiple_of = 16 : i32},
                %c: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 32 : i32}, %yes: i1)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0> : tensor<128x32xi32>
  %i = tile.iota : tensor<128xi32>
  %j = tile.iota : tensor<32xi32>
  %start = tile.splat %k : i32 -> tensor<32xi32>
  %at = arith.addi %start, %j : tensor<32xi32>
  %channels = tile.splat %c : i32 -> tensor<32xi32>
  %tap = arith.divsi %at, %channels : tensor<32xi32>
  %channel = arith.remsi %at, %channels : tensor<32xi32>
  %taps = tile.reshape %tap : tensor<32xi32> -> tensor<1x32xi32>
  %right = tile.broadcast %taps : tensor<1x32xi32> -> tensor<128x32xi32>
  %rows = tile.reshape %i : tensor<128xi32> -> tensor<128x1xi32>
  %down = tile.broadcast %rows : tensor<128x1xi32> -> tensor<128x32xi32>
  %y = arith.addi %down, %right : tensor<128x32xi32>
  %z = arith.subi %down, %right : tensor<128x32xi32>
  %high = tile.splat %h : i32 -> tensor<128x32xi32>
  %wide = tile.splat %w : i32 -> tensor<128x32xi32>
  %a = arith.cmpi slt, %y, %high : tensor<128x32xi32>
  %b = arith.cmpi sge, %z, %zero : tensor<128x32xi32>
  %d = arith.cmpi slt, %z, %wide : tensor<128x32xi32>
  %product = arith.muli %y, %z : tensor<128x32xi32>
  %e = arith.cmpi ne, %product, %high : tensor<128x32xi32>
  %ab = arith.andi %a, %b : tensor<128x32xi1>
  %abd = arith.andi %ab, %d : tensor<128x32xi1>
  %in = arith.andi %abd, %e : tensor<128x32xi1>
  %width = tile.splat %n : i32 -> tensor<128x32xi32>
  %base = arith.muli %down, %width : tensor<128x32xi32>
  %cols = tile.reshape %channel : tensor<32xi32> -> tensor<1x32xi32>
  %across = tile.broadcast %cols : tensor<1x32xi32> -> tensor<128x32xi32>
  %place = arith.addi %base, %across : tensor<128x32xi32>
  %smem = tile.smem_alloc : <128x32xf16, minor = 1>
  tile.async_gather %x offsets %place : tensor<128x32xi32> mask %in : tensor<128x32xi1> to %smem if %yes : !tile.ptr<f16>, !tile.smem<128x32xf16, minor = 1>
  return
}
