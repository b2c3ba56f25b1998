// What flags choose, or 0, is added under a predicate: a thread's elements one after the other, a product as part of an
// fma. Of two flags the comparison takes the second one along: the code generator would make two choices of it.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry masked(
// CHECK: and.pred
// CHECK: fma.rn.f32 [[SUM:%r[0-9]+]], {{.*}}, [[BEFORE:%r[0-9]+]];
// CHECK-NEXT: selp.f32 %r{{[0-9]+}}, [[SUM]], [[BEFORE]], %p
// CHECK-NOT: 0f00000000, %p
// CHECK: ret;
func.func @masked(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.view<2xf32>, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128x8xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x8xf32>
  %i = tile.iota : tensor<8xi32>
  %row = tile.reshape %i : tensor<8xi32> -> tensor<1x8xi32>
  %j = tile.broadcast %row : tensor<1x8xi32> -> tensor<128x8xi32>
  %ends = tile.splat %n : i32 -> tensor<128x8xi32>
  %starts = tile.splat %m : i32 -> tensor<128x8xi32>
  %below = arith.cmpi slt, %j, %ends : tensor<128x8xi32>
  %above = arith.cmpi sge, %j, %starts : tensor<128x8xi32>
  %in = arith.andi %below, %above : tensor<128x8xi1>
  %square = arith.mulf %a, %a fastmath<contract> : tensor<128x8xf32>
  %kept = arith.select %in, %square, %zero : tensor<128x8xi1>, tensor<128x8xf32>
  %s = tile.reduce %kept axis 1 : (tensor<128x8xf32>) -> tensor<128x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q fastmath<contract> : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<128x1xf32>, !tile.view<2xf32>
  return
}

// How many of several flags are set: additions of one in place.
// CHECK-LABEL: .entry counted(
// CHECK-COUNT-2: @%p{{[0-9]+}} add.s32 [[N:%r[0-9]+]], [[N]], 1;
// CHECK: ret;
func.func @counted(%x: !tile.view<1xf32>, %y: !tile.view<1xi32>, %k: f32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %half = arith.constant dense<0.5> : tensor<32xf32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %old = tile.load %y[%c0 : i32] : !tile.view<1xi32> -> tensor<32xi32>
  %s = tile.splat %k : f32 -> tensor<32xf32>
  %p = arith.cmpf oge, %a, %s : tensor<32xf32>
  %q = arith.cmpf oge, %a, %half : tensor<32xf32>
  %m = arith.extui %p : tensor<32xi1> to tensor<32xi32>
  %n = arith.extui %q : tensor<32xi1> to tensor<32xi32>
  %t = arith.addi %old, %m : tensor<32xi32>
  %u = arith.addi %t, %n : tensor<32xi32>
  tile.store %u, %y[%c0 : i32] : tensor<32xi32>, !tile.view<1xi32>
  return
}
