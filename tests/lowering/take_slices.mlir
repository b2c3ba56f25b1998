// Lines of a tile that lie with other threads are read from one copy of it: one store for each element, one barrier.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-take-slices -tile-place-buffers -tile-insert-barriers | FileCheck %s

// CHECK-LABEL: func.func @points
// CHECK-NOT: tile.extract
// CHECK: %[[X:.*]] = tile.load
// CHECK: tile.take %[[X]], %{{.*}} axis 1 {tile.scratch = [[A:[0-9]+]] : i32} :
// CHECK: tile.take %[[X]], %{{.*}} axis 1 {tile.scratch = [[A]] : i32, tile.scratch_filled} :
// CHECK: tile.take %[[X]], %{{.*}} axis 1 {tile.scratch = [[A]] : i32, tile.scratch_filled} :
// CHECK: return
func.func @points(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x3xf32>
  %0 = tile.extract %a [0, 0] : tensor<128x3xf32> -> tensor<128x1xf32>
  %1 = tile.extract %a [0, 1] : tensor<128x3xf32> -> tensor<128x1xf32>
  %2 = tile.extract %a [0, 2] : tensor<128x3xf32> -> tensor<128x1xf32>
  %s = arith.addf %0, %1 : tensor<128x1xf32>
  %d = arith.mulf %s, %2 : tensor<128x1xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<128x1xf32>, !tile.view<2xf32>
  return
}

// One line alone, and lines that each thread has in registers: as they were.
// CHECK-LABEL: func.func @one
// CHECK: tile.extract
// CHECK-NOT: tile.take
// CHECK-LABEL: func.func @registers
// CHECK-NOT: tile.take
// CHECK: return
func.func @one(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %0 = tile.extract %a [0, 5] : tensor<64x64xf32> -> tensor<64x1xf32>
  tile.store %0, %y[%c0, %c0 : i32, i32] : tensor<64x1xf32>, !tile.view<2xf32>
  return
}
func.func @registers(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<2x1024xf32>
  %0 = tile.extract %a [0, 0] : tensor<2x1024xf32> -> tensor<1x1024xf32>
  %1 = tile.extract %a [1, 0] : tensor<2x1024xf32> -> tensor<1x1024xf32>
  %s = arith.addf %0, %1 : tensor<1x1024xf32>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<1x1024xf32>, !tile.view<2xf32>
  return
}

// -----

// A column and a row of a large tile: each is put by those who have it, not the whole tile.
// CHECK-LABEL: func.func @few
// CHECK-NOT: tile.take
// CHECK: tile.extract %{{.*}} [0, 5]
// CHECK-NOT: tile.take
// CHECK: tile.extract %{{.*}} [5, 0]
// CHECK-NOT: tile.take
// CHECK: return
func.func @few(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %0 = tile.extract %a [0, 5] : tensor<64x64xf32> -> tensor<64x1xf32>
  %1 = tile.extract %a [5, 0] : tensor<64x64xf32> -> tensor<1x64xf32>
  %2 = tile.broadcast %0 : tensor<64x1xf32> -> tensor<64x64xf32>
  %3 = tile.broadcast %1 : tensor<1x64xf32> -> tensor<64x64xf32>
  %4 = arith.mulf %2, %3 : tensor<64x64xf32>
  %5 = arith.subf %a, %4 : tensor<64x64xf32>
  tile.store %5, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Boxes that overlap (windows of a filter) share one copy of the tile; halves of a tile put each what they have.
// CHECK-LABEL: func.func @windows
// CHECK: %[[W:.*]] = tile.load
// CHECK: tile.extract %[[W]] [0, 1] {tile.puts_whole, tile.scratch = [[B:[0-9]+]] : i32} :
// CHECK-NOT: tile.barrier
// CHECK: tile.extract %[[W]] [0, 2] {tile.puts_whole, tile.scratch = [[B]] : i32, tile.scratch_filled} :
// CHECK-NOT: tile.barrier
// CHECK: tile.extract %[[W]] [0, 3] {tile.puts_whole, tile.scratch = [[B]] : i32, tile.scratch_filled} :
// CHECK: return
// CHECK-LABEL: func.func @halves
// CHECK-NOT: tile.puts_whole
// CHECK: return
func.func @windows(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<16x64xf32>
  %0 = tile.extract %a [0, 1] : tensor<16x64xf32> -> tensor<16x60xf32>
  %1 = tile.extract %a [0, 2] : tensor<16x64xf32> -> tensor<16x60xf32>
  %2 = tile.extract %a [0, 3] : tensor<16x64xf32> -> tensor<16x60xf32>
  %s = arith.addf %0, %1 : tensor<16x60xf32>
  %d = arith.mulf %s, %2 : tensor<16x60xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<16x60xf32>, !tile.view<2xf32>
  return
}
func.func @halves(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<16x64xf32>
  %0 = tile.extract %a [0, 0] : tensor<16x64xf32> -> tensor<16x32xf32>
  %1 = tile.extract %a [0, 32] : tensor<16x64xf32> -> tensor<16x32xf32>
  %s = arith.addf %0, %1 : tensor<16x32xf32>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<16x32xf32>, !tile.view<2xf32>
  return
}

// -----

// A table that a loop looks up is copied once, in front of it.
// CHECK-LABEL: func.func @table
// CHECK: %[[T:.*]] = tile.load
// CHECK: tile.take %[[T]], %{{.*}} axis 0 {tile.makes_copy, tile.scratch = [[A:[0-9]+]] : i32} :
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK: tile.take %[[T]], %{{.*}} axis 0 {tile.reads_copy, tile.scratch = [[A]] : i32, tile.scratch_filled} :
// CHECK-NOT: tile.barrier
// CHECK: tile.take %[[T]], %{{.*}} axis 0 {tile.reads_copy, tile.scratch = [[A]] : i32, tile.scratch_filled} :
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @table(%x: !tile.view<1xi32>, %y: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<256xi32>
  %i = tile.iota : tensor<128xi32>
  %mask = arith.constant dense<255> : tensor<128xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %i) -> (tensor<128xi32>) : i32 {
    %at = arith.andi %a, %mask : tensor<128xi32>
    %u = tile.take %t, %at axis 0 : tensor<256xi32>, tensor<128xi32> -> tensor<128xi32>
    %b = arith.andi %u, %mask : tensor<128xi32>
    %v = tile.take %t, %b axis 0 : tensor<256xi32>, tensor<128xi32> -> tensor<128xi32>
    %s = arith.addi %u, %v : tensor<128xi32>
    scf.yield %s : tensor<128xi32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<128xi32>, !tile.view<1xi32>
  return
}

// -----

// A row of a table, read as a row and as a column: it is read twice, not converted.
// CHECK-LABEL: func.func @row_and_column
// CHECK: tile.take %{{.*}} {tile.makes_copy,
// CHECK: scf.for
// CHECK-NOT: tile.barrier
// CHECK-NOT: tile.convert
// CHECK: tile.take %{{.*}} {tile.reads_copy,
// CHECK-NOT: tile.convert
// CHECK: tile.take %{{.*}} {tile.reads_copy,
// CHECK-NOT: tile.barrier
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @row_and_column(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %all = scf.for %k = %c0 to %c32 step %c1 iter_args(%s = %a) -> (tensor<32x32xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<1x32xi32>
    %row = tile.take %a, %at axis 0 : tensor<32x32xf32>, tensor<1x32xi32> -> tensor<1x32xf32>
    %column = tile.trans %row, [1, 0] : tensor<1x32xf32> -> tensor<32x1xf32>
    %b = tile.broadcast %row : tensor<1x32xf32> -> tensor<32x32xf32>
    %c = tile.broadcast %column : tensor<32x1xf32> -> tensor<32x32xf32>
    %bc = arith.mulf %b, %c : tensor<32x32xf32>
    %next = arith.addf %s, %bc : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  tile.store %all, %y[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}
