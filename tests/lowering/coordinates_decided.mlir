// A mask is not computed where blocks of rows and columns decide it.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// Rows from 16 on are below all of the eight columns, whichever thread has them: four elements of sixteen are compared.
// CHECK-LABEL: .entry mostly(
// CHECK-COUNT-4: setp.gt.s32
// CHECK-NOT: setp.gt.s32
// CHECK: ret;
func.func @mostly(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<8xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %column = tile.reshape %j : tensor<8xi32> -> tensor<1x8xi32>
  %rows = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x8xi32>
  %columns = tile.broadcast %column : tensor<1x8xi32> -> tensor<64x8xi32>
  %below = arith.cmpi sgt, %rows, %columns : tensor<64x8xi32>
  %c1 = arith.constant 1 : i32
  scf.for %at = %c0 to %n step %c1 : i32 {
    %a = tile.load %x[%at, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x8xf32>
    %m = arith.select %below, %a, %zero : tensor<64x8xi1>, tensor<64x8xf32>
    tile.store %m, %x[%at, %c0 : i32, i32] : tensor<64x8xf32>, !tile.view<2xf32>
  }
  return
}
