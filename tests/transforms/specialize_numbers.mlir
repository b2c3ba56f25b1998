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
// What is stored in between may be what is read; and no instruction multiplies the numbers of lanes.
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
    %m = arith.muli %p, %q : i32
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
// A sum of 80 numbers, of which lanes behind the last one add nothing; and whether any of 40 flags is set.
// CHECK-LABEL: func.func @counted
// CHECK: tile.specialize {{.*}}producer {
// CHECK: %[[COUNT:.*]] = tile.ballot combined add {
// CHECK: ^bb0(%[[LANE:.*]]: i32):
// CHECK: %[[PLACE:.*]] = arith.addi %[[LANE]], %c64_i32
// CHECK: %[[OWN:.*]] = arith.cmpi slt, %[[PLACE]], %c80_i32
// CHECK: arith.select %[[OWN]], %{{.*}}, %c0_i32
// CHECK: %[[ANY:.*]] = tile.ballot combined or {
// CHECK: arith.ori {{.*}} : i1
// CHECK: arith.extui {{.*}} : i1 to i32
// CHECK: %[[SET:.*]] = arith.trunci %[[ANY]] : i32 to i1
// CHECK: scf.if %[[SET]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK-NOT: tile.reduce
func.func @counted(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %list: !tile.view<1xi32>, %flags: !tile.view<1xi32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0> : tensor<80xi32>
  %off = arith.constant dense<0> : tensor<40xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %l = tile.load %list[%c0 : i32] : !tile.view<1xi32> -> tensor<80xi32>
  %is = arith.cmpi sge, %l, %none : tensor<80xi32>
  %one = arith.extui %is : tensor<80xi1> to tensor<80xi32>
  %lr = tile.reduce %one axis 0 : (tensor<80xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.addi %p, %q : i32
    tile.yield %m : i32
  }
  %count = tile.item %lr : tensor<1xi32> -> i32
  %f = tile.load %flags[%c0 : i32] : !tile.view<1xi32> -> tensor<40xi32>
  %on = arith.cmpi ne, %f, %off : tensor<40xi32>
  %fr = tile.reduce %on axis 0 : (tensor<40xi1>) -> tensor<1xi1> {
  ^bb0(%p: i1, %q: i1):
    %m = arith.ori %p, %q : i1
    tile.yield %m : i1
  }
  %any = tile.item %fr : tensor<1xi1> -> i1
  %r = scf.if %any -> (tensor<64x64xf32>) {
    %s = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %at = arith.muli %k, %c64 : i32
      %sa = tile.load_shared %a[%c0, %at : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %sb = tile.load_shared %a[%at, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  } else {
    scf.yield %zero : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
