// Boxes of several dims whose rows an operand is made of: bulk copies of patches, and gathers where there are none.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s --check-prefix=BULK
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-stage,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s --check-prefix=STAGED
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,canonicalize,cse))' --tile-target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-stage,canonicalize,cse,tile-assign-layouts))' --tile-target=sm_90a | FileCheck %s --check-prefix=LAYOUT

// The patch is one copy, and so is each warpgroup's part of the stored one. Threads that copy it divide row numbers; on
// sm_80 it is loaded into registers.
// BULK-LABEL: func.func @patch
// BULK: tile.tma_load %arg0[%c0_i32, %{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}} {tile.box = array<i64: 2, 8, 8, 64>}
// BULK-NOT: tile.load
// BULK: tile.mma wgmma_f16
// BULK: tile.tma_store %{{.*}}, %arg2[{{.*}}] through %{{.*}} {tile.box = array<i64: 2, 8, 8, 64>} : tensor<128x64xf16>
// BULK-NOT: tile.reshape
// STAGED-LABEL: func.func @patch
// STAGED-DAG: %[[EIGHT:.*]] = arith.constant dense<8> : tensor<128xi32>
// STAGED-DAG: %[[ROW:.*]] = tile.iota : tensor<128xi32>
// STAGED: arith.remui %[[ROW]], %[[EIGHT]]
// STAGED: %[[ROWS:.*]] = arith.divui %[[ROW]], %[[EIGHT]]
// STAGED: arith.remui %[[ROWS]], %[[EIGHT]]
// STAGED: arith.divui %[[ROWS]], %[[EIGHT]]
// STAGED: tile.async_gather
// STAGED: tile.mma wgmma_f16
// SM80-LABEL: func.func @patch
// SM80: tile.load %arg0{{.*}} -> tensor<2x8x8x64xf16>
// SM80: tile.reshape
// SM80: tile.share
func.func @patch(%X: !tile.view<4 x f16> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>},
                 %F: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                 %Y: !tile.view<4 x f16> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>, tile.dim_multiple_of = array<i32: 1, 1, 1, 8>},
                 %p: i32, %q: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %c = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %x = tile.load %X[%c0, %p, %q, %c : i32, i32, i32, i32] : !tile.view<4 x f16> -> tensor<2x8x8x64xf16>
    %rows = tile.reshape %x : tensor<2x8x8x64xf16> -> tensor<128x64xf16>
    %f = tile.load %F[%c, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %d = tile.dot %rows, %f, %acc : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  %h = arith.truncf %r : tensor<128x64xf32> to tensor<128x64xf16>
  %y = tile.reshape %h : tensor<128x64xf16> -> tensor<2x8x8x64xf16>
  tile.store %y, %Y[%c0, %p, %q, %c0 : i32, i32, i32, i32] : tensor<2x8x8x64xf16>, !tile.view<4 x f16>
  return
}

// -----

// Parts of 64 rows are no boxes of a patch of 3 x 16 columns: the tile comes in bulk, and is stored by threads.
// BULK-LABEL: func.func @odd_patch
// BULK: tile.tma_load {{.*}} {tile.box = array<i64: 4, 3, 16, 64>}
// BULK-NOT: tile.tma_store
// BULK: tile.store {{.*}} : tensor<4x3x16x64xf32>
func.func @odd_patch(%X: !tile.view<4 x f16> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>},
                     %F: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                     %Y: !tile.view<4 x f32> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>, tile.dim_multiple_of = array<i32: 1, 1, 1, 8>},
                     %p: i32, %q: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<192x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %c = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<192x64xf32>) : i32 {
    %x = tile.load %X[%c0, %p, %q, %c : i32, i32, i32, i32] : !tile.view<4 x f16> -> tensor<4x3x16x64xf16>
    %rows = tile.reshape %x : tensor<4x3x16x64xf16> -> tensor<192x64xf16>
    %f = tile.load %F[%c, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %d = tile.dot %rows, %f, %acc : tensor<192x64xf16>, tensor<64x64xf16> -> tensor<192x64xf32>
    scf.yield %d : tensor<192x64xf32>
  }
  %y = tile.reshape %r : tensor<192x64xf32> -> tensor<4x3x16x64xf32>
  tile.store %y, %Y[%c0, %p, %q, %c0 : i32, i32, i32, i32] : tensor<4x3x16x64xf32>, !tile.view<4 x f32>
  return
}

// -----

// Channels first: the rows are channels, pixels of four rows of the image lie side by side, in panels of 32. One copy;
// threads divide column numbers instead. On sm_80 it is loaded into registers.
// BULK-LABEL: func.func @channels_first
// BULK: tile.smem_alloc : <32x128xf16, minor = 1, stages = {{[0-9]+}}, panel = 32>
// BULK: tile.tma_load %arg1{{.*}} {tile.box = array<i64: 1, 32, 1, 4, 32>}
// BULK-NOT: tile.load
// BULK: tile.mma wgmma_f16
// STAGED-LABEL: func.func @channels_first
// STAGED-DAG: %[[PIXELS:.*]] = arith.constant dense<32> : tensor<128xi32>
// STAGED-DAG: %[[COLUMN:.*]] = tile.iota : tensor<128xi32>
// STAGED: arith.remui %[[COLUMN]], %[[PIXELS]]
// STAGED: arith.divui %[[COLUMN]], %[[PIXELS]]
// STAGED: tile.async_gather {{.*}}<32x128xf16, minor = 1, panel = 32>
// SM80-LABEL: func.func @channels_first
// SM80: tile.load %arg1{{.*}} -> tensor<1x32x1x4x32xf16>
// SM80: tile.share
func.func @channels_first(%W: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                          %X: !tile.view<5 x f16> {tile.align = 16 : i32, tile.unit_stride = 4 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 8, 1>},
                          %Y: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                          %z: i32, %p: i32, %q: i32 {tile.multiple_of = 8 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %c = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %w = tile.load %W[%c0, %c : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
    %x = tile.load %X[%c0, %c, %z, %p, %q : i32, i32, i32, i32, i32] : !tile.view<5 x f16> -> tensor<1x32x1x4x32xf16>
    %pixels = tile.reshape %x : tensor<1x32x1x4x32xf16> -> tensor<32x128xf16>
    %d = tile.dot %w, %pixels, %acc : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %r, %Y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// 24 channels are padded to 32 for the product: pixels of several rows are copied whole or not at all.
// BULK-LABEL: func.func @padded_channels
// BULK: tile.load %arg1{{.*}} -> tensor<1x24x1x4x32xf16>
// STAGED-LABEL: func.func @padded_channels
// STAGED: tile.load %arg1{{.*}} -> tensor<1x24x1x4x32xf16>
func.func @padded_channels(%W: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                           %X: !tile.view<5 x f16> {tile.align = 16 : i32, tile.unit_stride = 4 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 8, 1>},
                           %Y: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                           %z: i32, %p: i32, %q: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c24 = arith.constant 24 : i32
  %r = scf.for %c = %c0 to %n step %c24 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %w = tile.load %W[%c0, %c : i32, i32] : !tile.view<2 x f16> -> tensor<64x24xf16>
    %x = tile.load %X[%c0, %c, %z, %p, %q : i32, i32, i32, i32, i32] : !tile.view<5 x f16> -> tensor<1x24x1x4x32xf16>
    %pixels = tile.reshape %x : tensor<1x24x1x4x32xf16> -> tensor<24x128xf16>
    %d = tile.dot %w, %pixels, %acc : tensor<64x24xf16>, tensor<24x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %r, %Y[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Threads have pieces of two rows each: they find out themselves where those are, rather than for one row and tell others.
// LAYOUT-LABEL: func.func @short_rows
// LAYOUT-NOT: tile.convert
// LAYOUT: tile.async_gather
// LAYOUT-NOT: tile.convert
// LAYOUT: tile.mma
func.func @short_rows(%X: !tile.view<4 x f16> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>, tile.dim_multiple_of = array<i32: 1, 1, 1, 16>},
                      %F: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                      %Y: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                      %p: i32, %q: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x16xf32>
  %c0 = arith.constant 0 : i32
  %x = tile.load %X[%c0, %p, %q, %c0 : i32, i32, i32, i32] : !tile.view<4 x f16> -> tensor<1x8x16x16xf16>
  %rows = tile.reshape %x : tensor<1x8x16x16xf16> -> tensor<128x16xf16>
  %f = tile.load %F[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<16x16xf16>
  %d = tile.dot %rows, %f, %zero : tensor<128x16xf16>, tensor<16x16xf16> -> tensor<128x16xf32>
  tile.store %d, %Y[%c0, %c0 : i32, i32] : tensor<128x16xf32>, !tile.view<2 x f32>
  return
}
