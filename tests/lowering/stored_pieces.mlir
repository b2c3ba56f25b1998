// Tiles that are widened between a load and a store are loaded in pieces of which 16 bytes are stored: an instruction of
// a warp writes whole sectors then. Not where far more is read than written, or where the store stands behind the loop.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: @bytes_to_f32
// CHECK: tile.load {{.*}} tensor<2048xi8, #tile.layout<2048 regs [0:4*1, 0:4*512] lanes [0:32*4] warps [0:4*128]>>
// CHECK-NOT: tile.convert
func.func @bytes_to_f32(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<2048xi8>
  %f = arith.uitofp %v : tensor<2048xi8> to tensor<2048xf32>
  tile.store %f, %y[%c0 : i32] : tensor<2048xf32>, !tile.view<1xf32>
  return
}

// -----
// The numbers of a byte become neighbours: 4 bytes are 8 numbers of 16 bits.
// CHECK-LABEL: @two_of_a_byte
// CHECK: tile.load {{.*}} tensor<2048xi8, #tile.layout<2048 regs [0:4*1, 0:4*512] lanes [0:32*4] warps [0:4*128]>>
// CHECK-NOT: tile.convert
func.func @two_of_a_byte(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c15 = arith.constant dense<15> : tensor<2048xi8>
  %c4 = arith.constant dense<4> : tensor<2048xi8>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<2048xi8>
  %l = arith.andi %v, %c15 : tensor<2048xi8>
  %h = arith.shrui %v, %c4 : tensor<2048xi8>
  %a = arith.uitofp %l : tensor<2048xi8> to tensor<2048xf16>
  %b = arith.uitofp %h : tensor<2048xi8> to tensor<2048xf16>
  %ac = tile.reshape %a : tensor<2048xf16> -> tensor<2048x1xf16>
  %bc = tile.reshape %b : tensor<2048xf16> -> tensor<2048x1xf16>
  %pairs = tile.cat %ac, %bc axis 1 : tensor<2048x1xf16>, tensor<2048x1xf16> -> tensor<2048x2xf16>
  %f = tile.reshape %pairs : tensor<2048x2xf16> -> tensor<4096xf16>
  tile.store %f, %y[%c0 : i32] : tensor<4096xf16>, !tile.view<1xf16>
  return
}

// -----
// Also through scans, and where a loop carries what the iteration before has loaded.
// CHECK-LABEL: @running_sums
// CHECK: tile.load {{.*}} tensor<4x512xi8, #tile.layout<4x512 regs [1:4*1, 1:4*128] lanes [1:32*4] warps [0:4*1]>>
// CHECK-NOT: tile.convert
func.func @running_sums(%n: i32, %x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<4x512xi8>
  %last = scf.for %i = %c0 to %n step %c512 iter_args(%now = %v) -> (tensor<4x512xi8>) : i32 {
    %j = arith.addi %i, %c512 : i32
    %next = tile.load %x[%c0, %j : i32, i32] : !tile.view<2xi8> -> tensor<4x512xi8>
    %w = arith.extui %now : tensor<4x512xi8> to tensor<4x512xi32>
    %s = tile.scan %w axis 1 : (tensor<4x512xi32>) -> tensor<4x512xi32> {
    ^bb0(%a: i32, %b: i32):
      %m = arith.addi %a, %b : i32
      tile.yield %m : i32
    }
    tile.store %s, %y[%c0, %i : i32, i32] : tensor<4x512xi32>, !tile.view<2xi32>
    scf.yield %next : tensor<4x512xi8>
  }
  return
}

// -----
// Nine tiles are read for one of four times the bytes: loads of 16 bytes.
// CHECK-LABEL: @filter
// CHECK-COUNT-9: tile.load {{.*}} tensor<2048xi8, #tile.layout<2048 regs [0:16*1] lanes [0:32*16] warps [0:4*512]>>
func.func @filter(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %c6 = arith.constant 6 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %v0 = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v1 = tile.load %x[%c1, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v2 = tile.load %x[%c2, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v3 = tile.load %x[%c3, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v4 = tile.load %x[%c4, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v5 = tile.load %x[%c5, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v6 = tile.load %x[%c6, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v7 = tile.load %x[%c7, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %v8 = tile.load %x[%c8, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<2048xi8>
  %a = arith.maxui %v0, %v1 : tensor<2048xi8>
  %b = arith.maxui %a, %v2 : tensor<2048xi8>
  %c = arith.maxui %b, %v3 : tensor<2048xi8>
  %d = arith.maxui %c, %v4 : tensor<2048xi8>
  %e = arith.maxui %d, %v5 : tensor<2048xi8>
  %f = arith.maxui %e, %v6 : tensor<2048xi8>
  %g = arith.maxui %f, %v7 : tensor<2048xi8>
  %h = arith.maxui %g, %v8 : tensor<2048xi8>
  %w = arith.extui %h : tensor<2048xi8> to tensor<2048xi32>
  tile.store %w, %y[%c0 : i32] : tensor<2048xi32>, !tile.view<1xi32>
  return
}

// -----
// Sums of many loads are stored once.
// CHECK-LABEL: @behind_the_loop
// CHECK: scf.for
// CHECK: tile.load {{.*}} tensor<1024xf16, #tile.layout<1024 regs [0:8*1] lanes [0:32*8] warps [0:4*256]>>
func.func @behind_the_loop(%n: i32, %x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<1024xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<1024xf32>) : i32 {
    %v = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<1024xf16>
    %w = arith.extf %v : tensor<1024xf16> to tensor<1024xf32>
    %s = arith.addf %acc, %w : tensor<1024xf32>
    scf.yield %s : tensor<1024xf32>
  }
  tile.store %sum, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----
// Long runs of a thread, which a scan of much work wants: warps hand elements around before they store them.
// CHECK-LABEL: @long_runs
// CHECK: %[[S:.*]] = tile.scan {{.*}} -> tensor<4x512xf32, #tile.layout<4x512 regs [1:16*1] lanes [1:32*16] warps [0:4*1]>>
// CHECK: %[[LINES:.*]] = tile.convert %[[S]] : {{.*}} -> tensor<4x512xf32, #tile.layout<4x512 regs [1:4*1, 1:4*128] lanes [1:32*4] warps [0:4*1]>>
// CHECK: tile.store %[[LINES]]
func.func @long_runs(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x512xf32>
  %s = tile.scan %a axis 1 : (tensor<4x512xf32>) -> tensor<4x512xf32> {
  ^bb0(%p: f32, %q: f32):
    %most = arith.maximumf %p, %q : f32
    %least = arith.minimumf %p, %q : f32
    %d = arith.subf %least, %most : f32
    %e = math.exp %d : f32
    %l = math.log1p %e : f32
    %r = arith.addf %most, %l : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x512xf32>, !tile.view<2xf32>
  return
}

// -----
// So are those that are added to memory: 16 bytes of f32 come from 8 bytes of f16.
// CHECK-LABEL: @added_to_rows
// CHECK: tile.load {{.*}} tensor<32x32xf16, #tile.layout<32x32 regs [1:4*1, 0:2*16] lanes [1:8*4, 0:4*1] warps [0:4*4]>>
// CHECK-NOT: tile.convert
func.func @added_to_rows(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant dense<32> : tensor<32x32xi32>
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
  %f = arith.extf %v : tensor<32x32xf16> to tensor<32x32xf32>
  %i = tile.iota : tensor<32xi32>
  %row = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %rows = tile.broadcast %row : tensor<32x1xi32> -> tensor<32x32xi32>
  %column = tile.reshape %i : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
  %first = arith.muli %rows, %c32 : tensor<32x32xi32>
  %at = arith.addi %first, %columns : tensor<32x32xi32>
  %o = tile.atomic_rmw add relaxed gpu %y offsets %at : tensor<32x32xi32>, %f : !tile.ptr<f32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return
}
