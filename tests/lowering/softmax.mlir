// A row of 8192 halves on 8 warps: one pass over memory in 16-byte accesses, two reductions of five shuffles and one barrier
// each (their scratch does not overlap, so nothing waits in between), single-instruction exponentials.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_90a -e json | FileCheck %s --check-prefix=RES
// RUN: tilec compile %s -t sm_80 -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// CHECK-LABEL: .entry softmax(
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-5: shfl.sync.bfly
// CHECK: st.shared.b32
// CHECK: bar.sync
// CHECK: ld.shared.v4.b32
// CHECK-COUNT-32: ex2.approx.ftz.f32
// CHECK-COUNT-5: shfl.sync.bfly
// CHECK: bar.sync
// CHECK-NOT: bar.sync
// CHECK-COUNT-4: st.global.v4.b32
// CHECK-NOT: st.global

// RES: "spill_store_bytes": 0
func.func @softmax(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>},
                   %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>})
    attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %pid = tile.program_id 0
  %h = tile.load %x[%pid, %c0 : i32, i32] pad 0xFFF0000000000000 : !tile.view<2xf16> -> tensor<1x8192xf16>
  %a = arith.extf %h : tensor<1x8192xf16> to tensor<1x8192xf32>
  %m = tile.reduce %a axis 1 : (tensor<1x8192xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %mb = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x8192xf32>
  %d = arith.subf %a, %mb : tensor<1x8192xf32>
  %e = math.exp %d : tensor<1x8192xf32>
  %s = tile.reduce %e axis 1 : (tensor<1x8192xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x8192xf32>
  %f = arith.divf %e, %sb : tensor<1x8192xf32>
  %o = arith.truncf %f : tensor<1x8192xf32> to tensor<1x8192xf16>
  tile.store %o, %y[%pid, %c0 : i32, i32] : tensor<1x8192xf16>, !tile.view<2xf16>
  return
}
