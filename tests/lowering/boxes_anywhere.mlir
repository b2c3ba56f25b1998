// Boxes of halves and bytes that may start anywhere, of rows that are whole accesses: two accesses of 16 bytes for each run,
// words chosen and joined by where the box starts.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry halves(
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-9: selp.b32
// CHECK-COUNT-4: shf.r.wrap.b32
// CHECK: st.global.v4.b32
// CHECK: ret;
func.func @halves(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %at : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  tile.store %a, %y[%c0, %c0 : i32, i32] : tensor<16x64xf16>, !tile.view<2xf16>
  return
}

// -----
// Rows that begin anywhere: element by element.
// CHECK-LABEL: .entry rows(
// CHECK-NOT: ld.global.v4
// CHECK: ret;
func.func @rows(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %at : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  tile.store %a, %y[%c0, %c0 : i32, i32] : tensor<16x64xf16>, !tile.view<2xf16>
  return
}
