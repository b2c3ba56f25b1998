// Bounds of loops that are extremes or sums of a tile: every warp finds them by itself, also the producer's.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-specialize -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @ranges
// CHECK: tile.specialize {{.*}}producer {
// CHECK: tile.work_loop
// The 96 numbers from the program's place on, three of each lane; lanes behind the last one would repeat that.
// CHECK: %[[LO:.*]] = tile.ballot combined min {
// CHECK: ^bb0(%[[LANE:.*]]: i32):
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %{{.*}} : i64
// CHECK: %[[A:.*]] = tile.load %{{.*}}[%[[AT]] : i64] pad 0x41DFFFFFFFC00000 : <1xi32> -> i32
// CHECK: %[[B:.*]] = tile.load
// CHECK: %[[LEAST:.*]] = arith.minsi %[[A]], %[[B]]
// CHECK: %[[C:.*]] = tile.load
// CHECK: arith.minsi %[[LEAST]], %[[C]]
// CHECK: tile.yield
// CHECK: %[[HI:.*]] = tile.ballot combined max {
// CHECK: %[[P:.*]] = tile.ptr_add
// CHECK: %[[H:.*]] = tile.gather %[[P]] mask %{{.*}} : i1 other %{{.*}} : i32 : !tile.ptr<i32> -> i32
// CHECK: arith.addi %[[H]]
// CHECK: arith.minsi %{{.*}}, %c79_i32
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[HI]]
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK-NOT: tile.reduce
// CHECK: tile.ballot
// CHECK: tile.ballot
// CHECK: scf.for
func.func @ranges(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %lo: !tile.view<1xi32>, %hi: !tile.ptr<i32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %one = arith.constant dense<1> : tensor<80xi32>
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %l = tile.load %lo[%first : i32] pad 0x41DFFFFFFFC00000 : !tile.view<1xi32> -> tensor<96xi32>
  %lr = tile.reduce %l axis 0 : (tensor<96xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.minsi %p, %q : i32
    tile.yield %m : i32
  }
  %begin = tile.item %lr : tensor<1xi32> -> i32
  %i = tile.iota : tensor<80xi32>
  %last = tile.splat %first : i32 -> tensor<80xi32>
  %there = arith.cmpi slt, %i, %last : tensor<80xi32>
  %h = tile.gather %hi offsets %i : tensor<80xi32> mask %there : tensor<80xi1> other %one : tensor<80xi32> : !tile.ptr<i32> -> tensor<80xi32>
  %h1 = arith.addi %h, %one : tensor<80xi32>
  %hr = tile.reduce %h1 axis 0 : (tensor<80xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.maxsi %p, %q : i32
    tile.yield %m : i32
  }
  %end = tile.item %hr : tensor<1xi32> -> i32
  %r = scf.for %k = %begin to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = tile.assume %k multiple_of 64 : i32
    %sa = tile.load_shared %a[%c0, %at : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%at, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----
// What is stored in between may be what is read; and sums of 80 numbers would count the last one more than once.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: tile.ballot
// CHECK-NOT: tile.specialize
// CHECK: return
func.func @stay(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %lo: !tile.view<1xi32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %l = tile.load %lo[%c0 : i32] : !tile.view<1xi32> -> tensor<96xi32>
  tile.store %c0, %lo[%c64 : i32] : i32, !tile.view<1xi32>
  %lr = tile.reduce %l axis 0 : (tensor<96xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.minsi %p, %q : i32
    tile.yield %m : i32
  }
  %begin = tile.item %lr : tensor<1xi32> -> i32
  %i = tile.iota : tensor<80xi32>
  %hr = tile.reduce %i axis 0 : (tensor<80xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.addi %p, %q : i32
    tile.yield %m : i32
  }
  %end = tile.item %hr : tensor<1xi32> -> i32
  %r = scf.for %k = %begin to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = tile.assume %k multiple_of 64 : i32
    %sa = tile.load_shared %a[%c0, %at : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%at, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
