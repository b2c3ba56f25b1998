// RUN: tile-opt %s -split-input-file --tile-assign-layouts | FileCheck %s
// Short rows from places read from memory are read by the threads that know the places.

// Pairs: two places in each thread, the rows of both, no conversion between.
// CHECK-LABEL: func.func @pairs
// CHECK: tile.load {{.*}} -> tensor<256xi32, #{{.*}}256 regs [0:2*1]
// CHECK-NOT: tile.convert
// CHECK: tile.gather {{.*}} -> tensor<256x2xf16, #{{.*}}256x2 regs [1:2*1, 0:2*1] lanes [0:32*2] warps [0:4*64]
// CHECK-NOT: tile.convert
// CHECK: tile.store
func.func @pairs(%at: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}, %p: !tile.ptr<f16> {tile.align = 16 : i32}, %w: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>},
                 %out: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %two = arith.constant dense<2> : tensor<256xi32>
  %places = tile.load %at[%c0 : i32] : !tile.view<1xi32> -> tensor<256xi32>
  %weights = tile.load %w[%c0 : i32] : !tile.view<1xf32> -> tensor<256xf32>
  %starts = arith.muli %places, %two : tensor<256xi32>
  %column = tile.reshape %starts : tensor<256xi32> -> tensor<256x1xi32>
  %wide = tile.broadcast %column : tensor<256x1xi32> -> tensor<256x2xi32>
  %pair = tile.iota : tensor<2xi32>
  %row = tile.reshape %pair : tensor<2xi32> -> tensor<1x2xi32>
  %across = tile.broadcast %row : tensor<1x2xi32> -> tensor<256x2xi32>
  %offsets = arith.addi %wide, %across : tensor<256x2xi32>
  %x = tile.gather %p offsets %offsets : tensor<256x2xi32> : !tile.ptr<f16> -> tensor<256x2xf16>
  %wider = arith.extf %x : tensor<256x2xf16> to tensor<256x2xf32>
  %first = tile.extract %wider [0, 0] : tensor<256x2xf32> -> tensor<256x1xf32>
  %second = tile.extract %wider [0, 1] : tensor<256x2xf32> -> tensor<256x1xf32>
  %sum = arith.addf %first, %second : tensor<256x1xf32>
  %flat = tile.reshape %sum : tensor<256x1xf32> -> tensor<256xf32>
  %y = arith.mulf %flat, %weights : tensor<256xf32>
  tile.store %y, %out[%c0 : i32] : tensor<256xf32>, !tile.view<1xf32>
  return
}
