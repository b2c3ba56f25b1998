// A few elements that are taken out one by one, as scalars: every thread reads them all, and nothing is exchanged.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers | FileCheck %s

// CHECK-LABEL: func.func @record
// CHECK: tile.load {{.*}} tensor<4xf32, #tile.layout<4 regs [0:4*1] lanes [rep:32] warps [rep:4]>>
// CHECK-NOT: tile.convert
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @record(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 4>, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%n, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4xf32>
  %a = tile.extract %v [0] : tensor<4xf32> -> tensor<1xf32>
  %b = tile.extract %v [3] : tensor<4xf32> -> tensor<1xf32>
  %p = tile.item %a : tensor<1xf32> -> f32
  %q = tile.item %b : tensor<1xf32> -> f32
  %s = arith.addf %p, %q : f32
  %t = tile.splat %s : f32 -> tensor<1024xf32>
  tile.store %t, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----
// Elements that are worked on together are dealt out.
// CHECK-LABEL: func.func @together
// CHECK: tile.load {{.*}} tensor<4xf32, #tile.layout<4 regs [] lanes [0:4*1, rep:8] warps [rep:4]>>
// CHECK: return
func.func @together(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 4>, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%n, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4xf32>
  %w = arith.addf %v, %v : tensor<4xf32>
  tile.store %w, %y[%c0 : i32] : tensor<4xf32>, !tile.view<1xf32>
  return
}
