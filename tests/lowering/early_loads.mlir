// Loads stand in front of the places where warps wait for each other, with what their addresses are computed from.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-early-loads | FileCheck %s

// What is weighed by a reduction's result, at addresses that were loaded.
// CHECK-LABEL: func.func @weighed
// CHECK: tile.gather
// CHECK: tile.gather
// CHECK: tile.reduce
// CHECK-NOT: tile.gather
// CHECK: tile.store
func.func @weighed(%at: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<512xi32>
  %r = tile.gather %at offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %m = tile.reduce %r axis 0 : (tensor<512xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %s = arith.maxsi %p, %q : i32
    tile.yield %s : i32
  }
  %most = tile.item %m : tensor<1xi32> -> i32
  %f = arith.sitofp %most : i32 to f32
  %weight = tile.splat %f : f32 -> tensor<512xf32>
  %two = arith.constant dense<2> : tensor<512xi32>
  %there = arith.muli %r, %two : tensor<512xi32>
  %v = tile.gather %x offsets %there : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %w = arith.mulf %v, %weight : tensor<512xf32>
  tile.store %w, %y[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// Not in front of a store that may write what is read, nor where the address comes from the reduction, nor what all
// programs read; past a store to other memory.
// CHECK-LABEL: func.func @written
// CHECK: tile.load %arg1[%{{[0-9]+}} :
// CHECK: tile.reduce
// CHECK: tile.store
// CHECK: tile.load %arg0
// CHECK: tile.load %arg1[%{{[0-9]+}} :
// CHECK: tile.load %arg1[%c512
func.func @written(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %z: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %id = tile.program_id 0
  %own = arith.muli %id, %c512 : i32
  %v = tile.load %z[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %m = tile.reduce %v axis 0 : (tensor<512xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.maxnumf %p, %q : f32
    tile.yield %s : f32
  }
  %most = tile.item %m : tensor<1xf32> -> f32
  %place = arith.fptosi %most : f32 to i32
  tile.store %v, %x[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  %a = tile.load %x[%own : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %b = tile.load %y[%own : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %c = tile.load %y[%place : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %d = arith.addf %a, %b : tensor<512xf32>
  %f = tile.load %y[%c512 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %g = arith.addf %d, %f : tensor<512xf32>
  %e = arith.addf %g, %c : tensor<512xf32>
  tile.store %e, %z[%c512 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// A thread keeps only so many registers for it.
// CHECK-LABEL: func.func @large
// CHECK: tile.reduce
// CHECK: tile.load %arg1
func.func @large(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %m = tile.reduce %v axis 0 : (tensor<64x128xf32>) -> tensor<1x128xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.maxnumf %p, %q : f32
    tile.yield %s : f32
  }
  %id = tile.program_id 0
  %w = tile.load %y[%id, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %b = tile.broadcast %m : tensor<1x128xf32> -> tensor<64x128xf32>
  %d = arith.subf %w, %b : tensor<64x128xf32>
  tile.store %d, %x[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----
// A tile of 32 registers and what says where it lies.
// CHECK-LABEL: func.func @slot
// CHECK: tile.gather {{.*}} -> i32
// CHECK: tile.load %arg1{{.*}} -> tensor<128x32xf32
// CHECK: tile.reduce
// CHECK: return
func.func @slot(%z: !tile.view<1xf32>, %y: !tile.view<3xf32> {tile.align = 16 : i32, tile.unit_stride = 2 : i32}, %slots: !tile.ptr<i32>, %out: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %id = tile.program_id 0
  %v = tile.load %z[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %m = tile.reduce %v axis 0 : (tensor<512xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.maxnumf %p, %q : f32
    tile.yield %s : f32
  }
  %most = tile.item %m : tensor<1xf32> -> f32
  %place = tile.ptr_add %slots, %id : !tile.ptr<i32>, i32
  %slot = tile.gather %place : !tile.ptr<i32> -> i32
  %x = tile.load %y[%slot, %c0, %c0 : i32, i32, i32] : !tile.view<3xf32> -> tensor<128x32xf32>
  %w = tile.splat %most : f32 -> tensor<128x32xf32>
  %r = arith.mulf %x, %w : tensor<128x32xf32>
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x32xf32>, !tile.view<2xf32>
  return
}

// -----
// Rows at addresses that were loaded do not wait for lanes that wait for other loads: their weights, say.
// CHECK-LABEL: func.func @rows
// CHECK: tile.gather {{.*}} -> tensor<32xi32
// CHECK: tile.gather {{.*}} -> tensor<32xf32
// CHECK: tile.gather {{.*}} -> tensor<32x64xf16
// CHECK: tile.reduce
// CHECK: return
func.func @rows(%at: !tile.ptr<i32> {tile.align = 16 : i32}, %s: !tile.ptr<f32> {tile.align = 16 : i32}, %x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<32xi32>
  %r = tile.gather %at offsets %i : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %v = tile.gather %s offsets %r : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
  %m = tile.reduce %v axis 0 : (tensor<32xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.maxnumf %p, %q : f32
    tile.yield %t : f32
  }
  %most = tile.item %m : tensor<1xf32> -> f32
  %c64 = arith.constant dense<64> : tensor<32xi32>
  %first = arith.muli %r, %c64 : tensor<32xi32>
  %column = tile.reshape %first : tensor<32xi32> -> tensor<32x1xi32>
  %rows = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %k = tile.iota : tensor<64xi32>
  %row = tile.reshape %k : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %offsets = arith.addi %rows, %columns : tensor<32x64xi32>
  %h = tile.gather %x offsets %offsets : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  %f = arith.extf %h : tensor<32x64xf16> to tensor<32x64xf32>
  %by = tile.splat %most : f32 -> tensor<32x64xf32>
  %w = arith.mulf %f, %by : tensor<32x64xf32>
  tile.store %w, %y[%c0, %c0 : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}

// -----
// In front of divisions of f64, which branch; not of f32.
// CHECK-LABEL: func.func @divided
// CHECK: tile.load %arg1
// CHECK: arith.divf {{.*}}xf64
func.func @divided(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>, %z: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c32 = arith.constant 32 : i32
  %id = tile.program_id 0
  %own = arith.muli %id, %c32 : i32
  %a = tile.load %x[%own : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %one = arith.constant dense<1.0> : tensor<32xf64>
  %q = arith.divf %one, %a : tensor<32xf64>
  %b = tile.load %y[%own : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %s = arith.addf %q, %b : tensor<32xf64>
  tile.store %s, %z[%own : i32] : tensor<32xf64>, !tile.view<1xf64>
  return
}

// CHECK-LABEL: func.func @divided_short
// CHECK: arith.divf {{.*}}xf32
// CHECK: tile.load %arg1
func.func @divided_short(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %z: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c32 = arith.constant 32 : i32
  %id = tile.program_id 0
  %own = arith.muli %id, %c32 : i32
  %a = tile.load %x[%own : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %one = arith.constant dense<1.0> : tensor<32xf32>
  %q = arith.divf %one, %a : tensor<32xf32>
  %b = tile.load %y[%own : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %s = arith.addf %q, %b : tensor<32xf32>
  tile.store %s, %z[%own : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}
