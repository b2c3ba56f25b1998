// Several rows: each warp owns whole rows, so a layernorm-like reduction never leaves it. No shared memory, no barrier.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry center(
// CHECK-NOT: bar.sync
// CHECK-NOT: .shared
// CHECK: shfl.sync.bfly
// CHECK-NOT: bar.sync
// CHECK-NOT: .shared
// CHECK: ret;
func.func @center(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 4>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c16 : i32
  %a = tile.load %x[%row, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<16x256xf32>
  %s = tile.reduce %a axis 1 : (tensor<16x256xf32>) -> tensor<16x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = arith.constant dense<3.90625e-3> : tensor<16x1xf32>
  %mean = arith.mulf %s, %n : tensor<16x1xf32>
  %mb = tile.broadcast %mean : tensor<16x1xf32> -> tensor<16x256xf32>
  %d = arith.subf %a, %mb : tensor<16x256xf32>
  tile.store %d, %x[%row, %c0 : i32, i32] : tensor<16x256xf32>, !tile.view<2xf32>
  return
}
