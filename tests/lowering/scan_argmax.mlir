// One row per warp: a running sum is shuffles only. A flat argmax over all warps carries value and index together.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_80,sm_90a -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// RES-COUNT-2: "spill_store_bytes": 0

// CHECK-LABEL: .entry scan_argmax(
// CHECK-NOT: bar.sync
// CHECK: shfl.sync.up
// CHECK-NOT: bar.sync
// CHECK: shfl.sync.bfly
// CHECK: st.shared
// CHECK: bar.sync
// CHECK-NOT: bar.sync
// CHECK: ret;
func.func @scan_argmax(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 4>}, %o: !tile.ptr<i32>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x128xf32>
  %s = tile.scan %a axis 1 : (tensor<4x128xf32>) -> tensor<4x128xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x128xf32>, !tile.view<2xf32>
  %flat = tile.reshape %s : tensor<4x128xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  %m:2 = tile.reduce %flat, %i axis 0 : (tensor<512xf32>, tensor<512xi32>) -> (tensor<1xf32>, tensor<1xi32>) {
  ^bb0(%v: f32, %vi: i32, %w: f32, %wi: i32):
    %gt = arith.cmpf ogt, %v, %w : f32
    %eq = arith.cmpf oeq, %v, %w : f32
    %lower = arith.cmpi slt, %vi, %wi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %rv = arith.select %keep, %v, %w : f32
    %ri = arith.select %keep, %vi, %wi : i32
    tile.yield %rv, %ri : f32, i32
  }
  %zero = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %m#1, %o offsets %zero : tensor<1xi32> : tensor<1xi32>, !tile.ptr<i32>
  return
}
