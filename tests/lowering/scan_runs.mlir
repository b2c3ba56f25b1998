// Scans whose steps are much work (functions) lie in long runs of a lane: fewer steps between lanes and for what comes
// before a run. Cheap ones keep pieces of 16 bytes.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: @logarithms
// CHECK: tile.load {{.*}} tensor<4x256xf32, #tile.layout<4x256 regs [1:8*1] lanes [1:32*8] warps [0:4*1]>>
// CHECK-NOT: tile.convert
func.func @logarithms(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x256xf32>
  %s = tile.scan %a axis 1 : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%p: f32, %q: f32):
    %most = arith.maximumf %p, %q : f32
    %least = arith.minimumf %p, %q : f32
    %d = arith.subf %least, %most : f32
    %e = math.exp %d : f32
    %l = math.log1p %e : f32
    %r = arith.addf %most, %l : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x256xf32>, !tile.view<2xf32>
  return
}

// -----
// CHECK-LABEL: @sums
// CHECK: tile.load {{.*}} tensor<4x256xf32, #tile.layout<4x256 regs [1:4*1, 1:2*128] lanes [1:32*4] warps [0:4*1]>>
func.func @sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x256xf32>
  %s = tile.scan %a axis 1 : (tensor<4x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %x[%c0, %c0 : i32, i32] : tensor<4x256xf32>, !tile.view<2xf32>
  return
}
