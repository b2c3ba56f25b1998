// A tile in shared memory that is wanted under two layouts is read twice, through names of its dims, too: nothing passes
// through shared memory a second time.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @twice
// CHECK-COUNT-2: tile.smem_load
// CHECK-NOT: tile.convert
// CHECK: return
func.func @twice(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 64, 1>, tile.dim_multiple_of = array<i32: 64, 64>},
                 %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 64, 1>, tile.dim_multiple_of = array<i32: 64, 64>},
                 %z: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 64, 1>, tile.dim_multiple_of = array<i32: 64, 64>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %s = tile.load_shared %x[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
  %t = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
  %d = tile.mma wgmma_f16 k 64 warps(4, 1) %s, %s, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
  %wide = arith.extf %t : tensor<64x64xf16> to tensor<64x64xf32>
  %both = arith.addf %d, %wide : tensor<64x64xf32>
  tile.store %both, %z[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  %blocks = tile.reshape %t : tensor<64x64xf16> -> tensor<4096xf16>
  %flat = tile.reshape %blocks : tensor<4096xf16> -> tensor<64x64xf16>
  tile.store %flat, %y[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  return
}
