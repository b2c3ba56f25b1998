// Factors and zero points that loops of products gather beside their operands come an iteration early.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s

// Factors of rows that a loop gathers beside its operands come an iteration early; places of rows to copy do not.
// CHECK-LABEL: func.func @factors_of_rows
// CHECK: %[[FIRST:.*]] = tile.gather {{.*}} mask {{.*}} -> tensor<64xf32>
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[NOW:.*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = tile.gather {{.*}} mask {{.*}} -> tensor<64xf32>
// CHECK: tile.reshape %[[NOW]]
// CHECK: scf.yield {{.*}}, %[[NEXT]]
func.func @factors_of_rows(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %p: !tile.ptr<f32>, %at: !tile.view<1xi32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %rows = tile.load %at[%c0 : i32] : !tile.view<1xi32> -> tensor<64xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %k64 = arith.muli %k, %c64 : i32
    %x = tile.load %a[%c0, %k64 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %y = tile.load %a[%k64, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %y, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %pk = tile.ptr_add %p, %k : !tile.ptr<f32>, i32
    %f = tile.gather %pk offsets %rows : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
    %column = tile.reshape %f : tensor<64xf32> -> tensor<64x1xf32>
    %all = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %w = arith.mulf %d, %all : tensor<64x64xf32>
    %s = arith.addf %sum, %w : tensor<64x64xf32>
    scf.yield %s : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----
// So do zero points of columns, and a few factors of each row, that operands are made of.
// CHECK-LABEL: func.func @zero_points
// CHECK: %[[FIRST:.*]] = tile.gather {{.*}} -> tensor<64xi32>
// CHECK: %[[FACTORS:.*]] = tile.gather {{.*}} -> tensor<64x2xf16>
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[NOW:.*]] = %[[FIRST]], %[[OF:.*]] = %[[FACTORS]])
// CHECK: %[[NEXT:.*]] = tile.gather {{.*}} -> tensor<64xi32>
// CHECK: %[[MORE:.*]] = tile.gather {{.*}} -> tensor<64x2xf16>
// CHECK: tile.reshape %[[NOW]]
// CHECK: tile.reshape %[[OF]]
// CHECK: scf.yield {{.*}}, %[[NEXT]], %[[MORE]]
func.func @zero_points(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %z: !tile.ptr<i32>, %s: !tile.ptr<f16>, %b: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %columns = tile.iota : tensor<64xi32>
  %pair = arith.constant dense<[[0, 1]]> : tensor<1x2xi32>
  %across = tile.broadcast %pair : tensor<1x2xi32> -> tensor<64x2xi32>
  %rows = tile.reshape %columns : tensor<64xi32> -> tensor<64x1xi32>
  %down = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x2xi32>
  %pitch = arith.constant dense<100> : tensor<64x2xi32>
  %lines = arith.muli %down, %pitch : tensor<64x2xi32>
  %at = arith.addi %lines, %across : tensor<64x2xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %k64 = arith.muli %k, %c64 : i32
    %x = tile.load %a[%c0, %k64 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %bytes = tile.load %b[%c0, %k64 : i32, i32] : !tile.view<2xi8> -> tensor<64x64xi8>
    %words = arith.extsi %bytes : tensor<64x64xi8> to tensor<64x64xi32>
    %pk = tile.ptr_add %z, %k64 : !tile.ptr<i32>, i32
    %points = tile.gather %pk offsets %columns : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
    %row = tile.reshape %points : tensor<64xi32> -> tensor<64x1xi32>
    %all = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
    %less = arith.subi %words, %all : tensor<64x64xi32>
    %f = arith.sitofp %less : tensor<64x64xi32> to tensor<64x64xf16>
    %ps = tile.ptr_add %s, %k : !tile.ptr<f16>, i32
    %few = tile.gather %ps offsets %at : tensor<64x2xi32> : !tile.ptr<f16> -> tensor<64x2xf16>
    %apart = tile.reshape %few : tensor<64x2xf16> -> tensor<64x2x1xf16>
    %groups = tile.broadcast %apart : tensor<64x2x1xf16> -> tensor<64x2x32xf16>
    %factors = tile.reshape %groups : tensor<64x2x32xf16> -> tensor<64x64xf16>
    %w = arith.mulf %f, %factors : tensor<64x64xf16>
    %wt = tile.trans %w, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %wt, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
