// Lines of a tile that lie with other threads are read from one copy of it: one store for each element, one barrier.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-take-slices -tile-place-buffers -tile-insert-barriers | FileCheck %s

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
