// Rows that are combined, in blocks or few of them, lie in registers of one thread, so that no thread waits for another.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers | FileCheck %s

// CHECK-LABEL: func.func @halved
// CHECK: tile.load {{.*}} tensor<32x32x4xi8, #tile.layout<32x32x4 regs [2:4*1, 0:8*1] lanes [1:32*1] warps [0:4*8]>>
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @halved(%x: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 16, 4>, tile.stride_multiple_of = array<i32: 16, 4, 1>}, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<32x32x4xi8>
  %f = arith.uitofp %v : tensor<32x32x4xi8> to tensor<32x32x4xf32>
  %cut = tile.reshape %f : tensor<32x32x4xf32> -> tensor<16x2x32x4xf32>
  %sum = tile.reduce %cut axis 1 : (tensor<16x2x32x4xf32>) -> tensor<16x1x32x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %w = arith.addf %a, %b : f32
    tile.yield %w : f32
  }
  %rows = tile.reshape %sum : tensor<16x1x32x4xf32> -> tensor<16x32x4xf32>
  tile.store %rows, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<16x32x4xf32>, !tile.view<3xf32>
  return
}

// -----
// Without such blocks: warps take turns, as elsewhere.
// CHECK-LABEL: func.func @plain
// CHECK: tile.load {{.*}} tensor<32x32x4xi8, #tile.layout<32x32x4 regs [2:4*1, 0:8*4] lanes [1:32*1] warps [0:4*1]>>
func.func @plain(%x: !tile.view<3xi8> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 16, 4>, tile.stride_multiple_of = array<i32: 16, 4, 1>}, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xi8> -> tensor<32x32x4xi8>
  %f = arith.uitofp %v : tensor<32x32x4xi8> to tensor<32x32x4xf32>
  tile.store %f, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<32x32x4xf32>, !tile.view<3xf32>
  return
}

// -----
// Blocks of 4 x 4 out of four rows that the four warps would have read: a thread reads its block, row by row.
// CHECK-LABEL: func.func @squares
// CHECK: tile.load {{.*}} tensor<4x512xi32, #tile.layout<4x512 regs [1:4*1, 0:4*1] lanes [1:32*4] warps [1:4*128]>>
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @squares(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<4x512xi32>
  %cut = tile.reshape %v : tensor<4x512xi32> -> tensor<4x128x4xi32>
  %turned = tile.trans %cut, [1, 0, 2] : tensor<4x128x4xi32> -> tensor<128x4x4xi32>
  %blocks = tile.reshape %turned : tensor<128x4x4xi32> -> tensor<128x16xi32>
  %most = tile.reduce %blocks axis 1 : (tensor<128x16xi32>) -> tensor<128x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %w = arith.maxsi %a, %b : i32
    tile.yield %w : i32
  }
  tile.store %most, %y[%c0, %c0 : i32, i32] : tensor<128x1xi32>, !tile.view<2xi32>
  return
}

// -----
// Fewer columns: lanes take the rows, as long as eight of them read a line.
// CHECK-LABEL: func.func @in_lanes
// CHECK: tile.load {{.*}} tensor<4x128xi32, #tile.layout<4x128 regs [1:4*1] lanes [1:8*4, 0:4*1] warps [1:4*32]>>
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @in_lanes(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<4x128xi32>
  %cut = tile.reshape %v : tensor<4x128xi32> -> tensor<4x32x4xi32>
  %turned = tile.trans %cut, [1, 0, 2] : tensor<4x32x4xi32> -> tensor<32x4x4xi32>
  %blocks = tile.reshape %turned : tensor<32x4x4xi32> -> tensor<32x16xi32>
  %most = tile.reduce %blocks axis 1 : (tensor<32x16xi32>) -> tensor<32x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %w = arith.maxsi %a, %b : i32
    tile.yield %w : i32
  }
  tile.store %most, %y[%c0, %c0 : i32, i32] : tensor<32x1xi32>, !tile.view<2xi32>
  return
}

// -----
// Rows too short for lines: warps meet.
// CHECK-LABEL: func.func @short
// CHECK: tile.load {{.*}} warps [0:4*1]>>
// CHECK: tile.scratch
// CHECK: return
func.func @short(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<4x32xi32>
  %cut = tile.reshape %v : tensor<4x32xi32> -> tensor<4x8x4xi32>
  %turned = tile.trans %cut, [1, 0, 2] : tensor<4x8x4xi32> -> tensor<8x4x4xi32>
  %blocks = tile.reshape %turned : tensor<8x4x4xi32> -> tensor<8x16xi32>
  %most = tile.reduce %blocks axis 1 : (tensor<8x16xi32>) -> tensor<8x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %w = arith.maxsi %a, %b : i32
    tile.yield %w : i32
  }
  tile.store %most, %y[%c0, %c0 : i32, i32] : tensor<8x1xi32>, !tile.view<2xi32>
  return
}

// -----
// A loop adds rows to vectors, and scales and shifts them by others: whole rows in warps would hold 6 x 32 of those
// registers, and pieces of rows 6 x 8. What sums of rows pass between warps is an element for each row.
// CHECK-LABEL: func.func @many_vectors
// CHECK: scf.for
// CHECK: tile.load {{.*}} tensor<4x1024xf16, #tile.layout<4x1024 regs [1:8*1, 0:4*1] lanes [1:32*8] warps [1:4*256]>>
func.func @many_vectors(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %v: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1024xf32>
  %scale = tile.load %v[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x1024xf32>
  %shift = tile.load %v[%c1, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x1024xf32>
  %gate = tile.load %v[%c2, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x1024xf32>
  %scales = tile.broadcast %scale : tensor<1x1024xf32> -> tensor<4x1024xf32>
  %shifts = tile.broadcast %shift : tensor<1x1024xf32> -> tensor<4x1024xf32>
  %gates = tile.broadcast %gate : tensor<1x1024xf32> -> tensor<4x1024xf32>
  %r:3 = scf.for %i = %c0 to %n step %c4 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (tensor<1x1024xf32>, tensor<1x1024xf32>, tensor<1x1024xf32>) : i32 {
    %h = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<4x1024xf16>
    %f = arith.extf %h : tensor<4x1024xf16> to tensor<4x1024xf32>
    %row = tile.reduce %f axis 1 : (tensor<4x1024xf32>) -> tensor<4x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %rows = tile.broadcast %row : tensor<4x1xf32> -> tensor<4x1024xf32>
    %d = arith.subf %f, %rows : tensor<4x1024xf32>
    %e = arith.mulf %d, %scales : tensor<4x1024xf32>
    %g = arith.addf %d, %shifts : tensor<4x1024xf32>
    %k = arith.mulf %g, %gates : tensor<4x1024xf32>
    %se = tile.reduce %e axis 0 : (tensor<4x1024xf32>) -> tensor<1x1024xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %sg = tile.reduce %g axis 0 : (tensor<4x1024xf32>) -> tensor<1x1024xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %sk = tile.reduce %k axis 0 : (tensor<4x1024xf32>) -> tensor<1x1024xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %na = arith.addf %a, %se : tensor<1x1024xf32>
    %nb = arith.addf %b, %sg : tensor<1x1024xf32>
    %nc = arith.addf %c, %sk : tensor<1x1024xf32>
    scf.yield %na, %nb, %nc : tensor<1x1024xf32>, tensor<1x1024xf32>, tensor<1x1024xf32>
  }
  tile.store %r#0, %y[%c0, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2xf32>
  tile.store %r#1, %y[%c1, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2xf32>
  tile.store %r#2, %y[%c2, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2xf32>
  return
}

// -----
// One sum leaves room enough: a row for each warp, which sums it, too.
// CHECK-LABEL: func.func @one_vector
// CHECK: tile.load {{.*}} tensor<4x1024xf16, #tile.layout<4x1024 regs [1:8*1, 1:4*256] lanes [1:32*8] warps [0:4*1]>>
func.func @one_vector(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1024xf32>
  %none = arith.constant dense<0.0> : tensor<4x1xf32>
  %r:2 = scf.for %i = %c0 to %n step %c4 iter_args(%a = %zero, %b = %none) -> (tensor<1x1024xf32>, tensor<4x1xf32>) : i32 {
    %h = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<4x1024xf16>
    %f = arith.extf %h : tensor<4x1024xf16> to tensor<4x1024xf32>
    %se = tile.reduce %f axis 0 : (tensor<4x1024xf32>) -> tensor<1x1024xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %na = arith.addf %a, %se : tensor<1x1024xf32>
    %row = tile.reduce %f axis 1 : (tensor<4x1024xf32>) -> tensor<4x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %w = arith.addf %p, %q : f32
      tile.yield %w : f32
    }
    %nb = arith.addf %b, %row : tensor<4x1xf32>
    scf.yield %na, %nb : tensor<1x1024xf32>, tensor<4x1xf32>
  }
  tile.store %r#0, %y[%c0, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2xf32>
  tile.store %r#1, %y[%c4, %c0 : i32, i32] : tensor<4x1xf32>, !tile.view<2xf32>
  return
}

// -----
// Nothing but a sum over two vectors of every row: both in one thread.
// CHECK-LABEL: func.func @short_axis
// CHECK: tile.load {{.*}} tensor<64x2x64xf16, #tile.layout<64x2x64 regs [2:8*1, 0:4*8, 1:2*1] lanes [2:8*8, 0:2*32, 0:2*1] warps [0:4*2]>>
// CHECK-NOT: tile.scratch
// CHECK: return
func.func @short_axis(%x: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 2, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>}, %y: !tile.view<3xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<64x2x64xf16>
  %f = arith.extf %v : tensor<64x2x64xf16> to tensor<64x2x64xf32>
  %sum = tile.reduce %f axis 1 : (tensor<64x2x64xf32>) -> tensor<64x1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %w = arith.addf %a, %b : f32
    tile.yield %w : f32
  }
  tile.store %sum, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<64x1x64xf32>, !tile.view<3xf32>
  return
}

// -----
// A loop adds such sums to what it carries, and lanes are combined once, behind it: they keep the neighbours they read.
// CHECK-LABEL: func.func @accumulated
// CHECK: tile.load {{.*}} tensor<64x2x64xf16, #tile.layout<64x2x64 regs [2:8*1, 0:8*8] lanes [2:8*8, 1:2*1, 0:2*1] warps [0:4*2]>>
// CHECK: return
func.func @accumulated(%x: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.dim_multiple_of = array<i32: 16, 2, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>}, %y: !tile.view<3xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant dense<0.0> : tensor<64x1x64xf32>
  %all = scf.for %j = %c0 to %n step %c2 iter_args(%acc = %zero) -> (tensor<64x1x64xf32>) : i32 {
    %v = tile.load %x[%c0, %j, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<64x2x64xf16>
    %f = arith.extf %v : tensor<64x2x64xf16> to tensor<64x2x64xf32>
    %sum = tile.reduce %f axis 1 : (tensor<64x2x64xf32>) -> tensor<64x1x64xf32> {
    ^bb0(%a: f32, %b: f32):
      %w = arith.addf %a, %b : f32
      tile.yield %w : f32
    }
    %next = arith.addf %acc, %sum : tensor<64x1x64xf32>
    scf.yield %next : tensor<64x1x64xf32>
  }
  tile.store %all, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<64x1x64xf32>, !tile.view<3xf32>
  return
}
