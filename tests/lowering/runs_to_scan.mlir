// Rows that are scanned lie in runs of a thread's own where nothing says how their elements should lie: a quarter of the
// steps between lanes. Loaded rows lie as they are loaded.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @looked_up
// CHECK: tile.gather {{.*}} -> tensor<4x128xi32, #tile.layout<4x128 regs [1:4*1] lanes [1:32*4] warps [0:4*1]>>
// CHECK-NOT: tile.convert
// CHECK: tile.scan
// CHECK-NOT: tile.convert
// CHECK: return
func.func @looked_up(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %places: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %r = tile.iota : tensor<4xi32>
  %starts = tile.gather %places offsets %r : tensor<4xi32> : !tile.ptr<i32> -> tensor<4xi32>
  %start = tile.reshape %starts : tensor<4xi32> -> tensor<4x1xi32>
  %width = tile.broadcast %start : tensor<4x1xi32> -> tensor<4x128xi32>
  %i = tile.iota : tensor<128xi32>
  %column = tile.reshape %i : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tile.broadcast %column : tensor<1x128xi32> -> tensor<4x128xi32>
  %at = arith.muli %width, %columns : tensor<4x128xi32>
  %v = tile.gather %x offsets %at : tensor<4x128xi32> : !tile.ptr<i32> -> tensor<4x128xi32>
  %sums = tile.scan %v axis 1 : (tensor<4x128xi32>) -> tensor<4x128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  tile.store %sums, %y[%c0, %c0 : i32, i32] : tensor<4x128xi32>, !tile.view<2xi32>
  return
}

// -----

// Neighbours in memory that begin anywhere lie in neighbouring lanes.
// CHECK-LABEL: func.func @in_rows
// CHECK: tile.gather {{.*}} -> tensor<4x128xi32, #tile.layout<4x128 regs [1:4*32] lanes [1:32*1] warps [0:4*1]>>
func.func @in_rows(%x: !tile.ptr<i32>, %places: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.view<2xi32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %r = tile.iota : tensor<4xi32>
  %starts = tile.gather %places offsets %r : tensor<4xi32> : !tile.ptr<i32> -> tensor<4xi32>
  %start = tile.reshape %starts : tensor<4xi32> -> tensor<4x1xi32>
  %first = tile.broadcast %start : tensor<4x1xi32> -> tensor<4x128xi32>
  %i = tile.iota : tensor<128xi32>
  %column = tile.reshape %i : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tile.broadcast %column : tensor<1x128xi32> -> tensor<4x128xi32>
  %at = arith.addi %first, %columns : tensor<4x128xi32>
  %v = tile.gather %x offsets %at : tensor<4x128xi32> : !tile.ptr<i32> -> tensor<4x128xi32>
  %sums = tile.scan %v axis 1 : (tensor<4x128xi32>) -> tensor<4x128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  tile.store %sums, %y[%c0, %c0 : i32, i32] : tensor<4x128xi32>, !tile.view<2xi32>
  return
}
