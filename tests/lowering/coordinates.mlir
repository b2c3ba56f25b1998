// A mask of rows against columns compares one difference of a thread with a constant for each of its elements.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry below(
// CHECK-NOT: setp.{{[a-z]+}}.s32 %p{{[0-9]+}}, %r{{[0-9]+}}, %r
// CHECK: sub.s32 [[AT:%r[0-9]+]],
// CHECK-NOT: sub.s32
// CHECK-DAG: setp.gt.s32 %p{{[0-9]+}}, [[AT]], 0;
// CHECK-DAG: setp.gt.s32 %p{{[0-9]+}}, [[AT]], 1;
// CHECK: st.global
// CHECK: ret;
func.func @below(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tile.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %below = arith.cmpi ugt, %rows, %columns : tensor<64x64xi32>
  %c1 = arith.constant 1 : i32
  scf.for %at = %c0 to %n step %c1 : i32 {
    %a = tile.load %x[%at, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
    %m = arith.select %below, %a, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    tile.store %m, %x[%at, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  }
  return
}
