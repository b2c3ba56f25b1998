// Reductions across many warps, whose results all threads want.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Sixteen parts: a lane reads one, and four rounds of shuffles combine them.
// CHECK-LABEL: entry sum_of_sixteen(
// CHECK: bar.sync
// CHECK-NOT: ld.shared.v4
// CHECK: ld.shared.b32
// CHECK-COUNT-4: shfl.sync.bfly
// CHECK-NOT: shfl.sync
// CHECK: ret;
func.func @sum_of_sixteen(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 16 : i32} {
  %i = tile.iota : tensor<2048xi32>
  %v = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<f32> -> tensor<2048xf32>
  %s = tile.reduce %v axis 0 : (tensor<2048xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %all = tile.broadcast %s : tensor<1xf32> -> tensor<2048xf32>
  %w = arith.divf %v, %all : tensor<2048xf32>
  tile.scatter %w, %y offsets %i : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}

// Extremes: one instruction.
// CHECK-LABEL: entry largest_of_sixteen(
// CHECK: redux.sync.max.s32
// CHECK: bar.sync
// CHECK-NOT: ld.shared.v4
// CHECK: ld.shared.b32
// CHECK-NOT: shfl.sync
// CHECK: redux.sync.max.s32
// CHECK: ret;
func.func @largest_of_sixteen(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 16 : i32} {
  %i = tile.iota : tensor<2048xi32>
  %v = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<f32> -> tensor<2048xf32>
  %s = tile.reduce %v axis 0 : (tensor<2048xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.yield %c : f32
  }
  %all = tile.broadcast %s : tensor<1xf32> -> tensor<2048xf32>
  %w = arith.subf %v, %all : tensor<2048xf32>
  tile.scatter %w, %y offsets %i : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}

// Eight are few enough for every thread.
// CHECK-LABEL: entry sum_of_eight(
// CHECK: bar.sync
// CHECK-COUNT-2: ld.shared.v4
// CHECK-NOT: shfl.sync
// CHECK: ret;
func.func @sum_of_eight(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %i = tile.iota : tensor<2048xi32>
  %v = tile.gather %x offsets %i : tensor<2048xi32> : !tile.ptr<f32> -> tensor<2048xf32>
  %s = tile.reduce %v axis 0 : (tensor<2048xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %all = tile.broadcast %s : tensor<1xf32> -> tensor<2048xf32>
  %w = arith.divf %v, %all : tensor<2048xf32>
  tile.scatter %w, %y offsets %i : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}
