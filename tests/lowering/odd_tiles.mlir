// Tiles whose sides are no powers of two: exact splits over the threads, wide accesses, no spills.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_80,sm_90a -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// RES-COUNT-2: "spill_store_bytes": 0

// CHECK-LABEL: .entry odd(
// CHECK-COUNT-6: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-6: st.shared.v4.b32
// CHECK: bar.sync
// CHECK-COUNT-48: ld.shared.b16
// CHECK-COUNT-6: st.global.v4.b32
func.func @odd(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 8, 8>},
               %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 8, 8>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x96xf16>
  %t = tile.trans %a, [1, 0] : tensor<64x96xf16> -> tensor<96x64xf16>
  tile.store %t, %y[%c0, %c0 : i32, i32] : tensor<96x64xf16>, !tile.view<2xf16>
  return
}
