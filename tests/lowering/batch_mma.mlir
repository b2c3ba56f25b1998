// Products of single warps: each warp computes the matrices it multiplies, passes their rows on among its own lanes, and
// multiplies what it has in registers. No barrier.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-operands -tile-assign-layouts -canonicalize -cse | FileCheck %s --check-prefix=LAYOUT
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-operands -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// x times its own transpose: one move for both operands, whose fragments are the same registers.
// LAYOUT-LABEL: func.func @gram
// LAYOUT: %[[Y:.*]] = arith.mulf {{.*}}warps [0:4*1]>>
// LAYOUT: %[[A:.*]] = tile.convert %[[Y]] {{.*}} -> tensor<8x16x64xf16, #tile.layout<8x16x64 regs [2:2*1, 1:2*8, 2:8*8, 0:2*4] lanes [2:4*2, 1:8*1] warps [0:4*1]>>
// LAYOUT: %[[B:.*]] = tile.trans %[[A]], [0, 2, 1]
// LAYOUT-NOT: tile.convert
// LAYOUT: tile.batch_mma m16n8k16_f16 %[[A]], %[[B]], {{.*}} -> tensor<8x16x16xf32, #tile.layout<8x16x16 regs [2:2*1, 1:2*8, 2:2*8, 0:2*4] lanes [2:4*2, 1:8*1] warps [0:4*1]>>
// Two matrices a warp, four k steps, two instructions each; their rows come back four 8x8 matrices at a time.
// CHECK-LABEL: .entry gram(
// CHECK-NOT: bar.sync
// CHECK: bar.warp.sync
// CHECK: st.shared.v4
// CHECK: bar.warp.sync
// CHECK-COUNT-8: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: ld.shared
// CHECK-COUNT-16: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: {{mma|bar}}.sync
// CHECK: ret;
func.func @gram(%X: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 8, 16, 64>},
                %P: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<8x16x16xf32>
  %x = tile.load %X[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<8x16x64xf16>
  %y = arith.mulf %x, %x : tensor<8x16x64xf16>
  %t = tile.trans %y, [0, 2, 1] : tensor<8x16x64xf16> -> tensor<8x64x16xf16>
  %d = tile.batch_dot %y, %t, %zero : tensor<8x16x64xf16>, tensor<8x64x16xf16> -> tensor<8x16x16xf32>
  tile.store %d, %P[%c0, %c0, %c0 : i32, i32, i32] : tensor<8x16x16xf32>, !tile.view<3xf32>
  return
}

// -----
// Rows that are combined as well lie in runs of a thread.
// LAYOUT-LABEL: func.func @combined
// LAYOUT: arith.mulf {{.*}} #tile.layout<4x16x64 regs [2:2*1, 1:16*1] lanes [2:32*2] warps [0:4*1]>>
// CHECK-LABEL: .entry combined(
// CHECK-NOT: bar.sync
// CHECK: ret;
func.func @combined(%X: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 4, 16, 64>},
                    %P: !tile.view<3xf32>, %S: !tile.view<3xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %x = tile.load %X[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<4x16x64xf16>
  %y = arith.mulf %x, %x : tensor<4x16x64xf16>
  %s = tile.reduce %y axis 1 : (tensor<4x16x64xf16>) -> tensor<4x1x64xf16> {
  ^bb0(%p: f16, %q: f16):
    %r = arith.maximumf %p, %q : f16
    tile.yield %r : f16
  }
  %t = tile.trans %y, [0, 2, 1] : tensor<4x16x64xf16> -> tensor<4x64x16xf16>
  %d = tile.batch_dot %y, %t, %zero : tensor<4x16x64xf16>, tensor<4x64x16xf16> -> tensor<4x16x16xf32>
  tile.store %s, %S[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x1x64xf16>, !tile.view<3xf16>
  tile.store %d, %P[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x16x16xf32>, !tile.view<3xf32>
  return
}

// -----
// Fewer matrices than warps: two warps side by side have the columns of one. Bytes and tf32 have fragments of their own.
// CHECK-LABEL: .entry few(
// CHECK-COUNT-2: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// CHECK-NOT: s8.s8
// CHECK-COUNT-2: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-NOT: mma.sync
// CHECK: ret;
func.func @few(%X: !tile.view<3xi8>, %P: !tile.view<3xi32>, %Y: !tile.view<3xf32>, %Q: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %none = arith.constant dense<0> : tensor<4x16x32xi32>
  %zero = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %x = tile.load %X[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<4x32x32xi8>
  %a = tile.extract %x [0, 0, 0] : tensor<4x32x32xi8> -> tensor<4x16x32xi8>
  %d = tile.batch_dot %a, %x, %none : tensor<4x16x32xi8>, tensor<4x32x32xi8> -> tensor<4x16x32xi32>
  tile.store %d, %P[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x16x32xi32>, !tile.view<3xi32>
  %y = tile.load %Y[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf32> -> tensor<4x16x16xf32>
  %z = arith.mulf %y, %y : tensor<4x16x16xf32>
  %e = tile.batch_dot %z, %y, %zero precision tf32 : tensor<4x16x16xf32>, tensor<4x16x16xf32> -> tensor<4x16x16xf32>
  tile.store %e, %Q[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x16x16xf32>, !tile.view<3xf32>
  return
}
