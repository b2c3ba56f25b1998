// Reductions that warps carry out together meet at one barrier.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-reduce-together | FileCheck %s

// The second one does not wait for the first one, nor for what is done with its result.
// CHECK-LABEL: func.func @sums
// CHECK: %[[SQUARES:.*]] = arith.mulf
// CHECK: %[[BOTH:.*]]:2 = tile.reduce %{{.*}}, %[[SQUARES]] axis 0
// CHECK: tile.atomic_rmw
// CHECK: tile.atomic_rmw
// CHECK-NOT: tile.reduce
// CHECK: return
func.func @sums(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %s = tile.reduce %a axis 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %i = tile.item %s : tensor<1xf32> -> f32
  %o = tile.atomic_rmw add relaxed gpu %p, %i : !tile.ptr<f32>, f32 -> f32
  %b = arith.mulf %a, %a : tensor<1024xf32>
  %t = tile.reduce %b axis 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tile.yield %w : f32
  }
  %j = tile.item %t : tensor<1xf32> -> f32
  %r = tile.atomic_rmw add relaxed gpu %q, %j : !tile.ptr<f32>, f32 -> f32
  return
}

// -----
// Where the second one needs the first one they stay apart; and where lanes of one warp have the whole axis nothing is
// gained.
// CHECK-LABEL: func.func @variance
// CHECK: tile.reduce
// CHECK: tile.reduce
// CHECK: return
func.func @variance(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %s = tile.reduce %a axis 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %m = tile.broadcast %s : tensor<1xf32> -> tensor<1024xf32>
  %d = arith.subf %a, %m : tensor<1024xf32>
  %t = tile.reduce %d axis 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  tile.store %t, %y[%c0 : i32] : tensor<1xf32>, !tile.view<1xf32>
  return
}

// -----
// CHECK-LABEL: func.func @in_a_warp
// CHECK: tile.reduce
// CHECK: tile.reduce
// CHECK: return
func.func @in_a_warp(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 32, 32>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x128xf32>
  %b = arith.mulf %a, %a : tensor<4x128xf32>
  %s = tile.reduce %a axis 1 : (tensor<4x128xf32>) -> tensor<4x1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %t = tile.reduce %b axis 1 : (tensor<4x128xf32>) -> tensor<4x1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %r = arith.addf %s, %t : tensor<4x1xf32>
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<4x1xf32>, !tile.view<2xf32>
  return
}
