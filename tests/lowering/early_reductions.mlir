// What a reduction alone still waits for is reduced in front of the place where warps meet; what is read behind it, too,
// stays where it is.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-reduce-whole -tile-early-reductions | FileCheck %s

// CHECK-LABEL: func.func @largest(
// CHECK: tile.load
// CHECK: tile.reduce
// CHECK: tile.convert
// CHECK: tile.store {{.*}} %arg1
func.func @largest(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %most: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %half = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xf16>
  %turned = tile.trans %half, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
  tile.store %turned, %y[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  %size = math.absf %a : tensor<64x64xf32>
  %rows = tile.reduce %size axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %m = arith.maxnumf %p, %q : f32
    tile.yield %m : f32
  }
  %all = tile.reduce %rows axis 0 : (tensor<64x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %m = arith.maxnumf %p, %q : f32
    tile.yield %m : f32
  }
  %one = tile.item %all : tensor<1x1xf32> -> f32
  tile.scatter %one, %most : f32, !tile.ptr<f32>
  return
}

// CHECK-LABEL: func.func @read_again(
// CHECK: tile.convert
// CHECK: tile.store {{.*}} %arg1
// CHECK: tile.reduce
func.func @read_again(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                      %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %half = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xf16>
  %turned = tile.trans %half, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
  tile.store %turned, %y[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  %size = math.absf %a : tensor<64x64xf32>
  %rows = tile.reduce %size axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %m = arith.maxnumf %p, %q : f32
    tile.yield %m : f32
  }
  %wide = tile.broadcast %rows : tensor<64x1xf32> -> tensor<64x64xf32>
  %b = arith.divf %a, %wide : tensor<64x64xf32>
  tile.store %b, %x[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
