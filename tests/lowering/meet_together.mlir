// What goes from warps to warps at one barrier, where it can.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-meet-together | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-meet-together -tile-place-buffers -tile-insert-barriers | FileCheck %s --check-prefix=PLACED

// The other takes need nothing of the first one: what they take from is computed in front of it. Their scratch lives
// from there on, beside the first one's.
// CHECK-LABEL: func.func @takes
// CHECK: %[[DOUBLED:.*]] = arith.addf
// CHECK: %[[A:.*]] = tile.take %{{.*}} {tile.meets = 0 : i32}
// CHECK: %[[SUM:.*]] = arith.mulf %[[A]]
// CHECK: tile.take %[[DOUBLED]]{{.*}} {tile.met = 0 : i32}
// PLACED-LABEL: func.func @takes
// PLACED-NOT: tile.barrier
// PLACED: tile.take {{.*}} {tile.meets = 0 : i32, tile.scratch = [[FIRST:[0-9]+]] : i32}
// PLACED-NOT: tile.scratch = [[FIRST]] : i32
// PLACED: tile.take {{.*}} {tile.met = 0 : i32, tile.scratch = {{[0-9]+}} : i32}
// PLACED-NOT: tile.barrier
// PLACED: tile.take {{.*}} {tile.met = 0 : i32, tile.scratch = {{[0-9]+}} : i32}
// PLACED: return
func.func @takes(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %a = tile.take %v, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %s = arith.mulf %a, %a : tensor<128xf32>
  %w = arith.addf %v, %v : tensor<128xf32>
  %b = tile.take %w, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %z = arith.mulf %v, %v : tensor<128xf32>
  %c = tile.take %z, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %t = arith.addf %s, %b : tensor<128xf32>
  %r = arith.addf %t, %c : tensor<128xf32>
  tile.store %r, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// Of what is reduced a thread puts sums, not the tile: many reductions of large tiles meet.
// CHECK-LABEL: func.func @sums
// CHECK: tile.reduce {{.*}} {tile.meets = 0 : i32}
// CHECK: tile.reduce {{.*}} {tile.met = 0 : i32}
// CHECK: tile.reduce {{.*}} {tile.met = 0 : i32}
// PLACED-LABEL: func.func @sums
func.func @sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %w = arith.addf %v, %v : tensor<64x64xf32>
  %z = arith.mulf %v, %v : tensor<64x64xf32>
  %s0 = tile.reduce %v axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %h0 = arith.truncf %s0 : tensor<1x64xf32> to tensor<1x64xf16>
  tile.store %h0, %y[%c0, %c0 : i32, i32] : tensor<1x64xf16>, !tile.view<2xf16>
  %s1 = tile.reduce %w axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %h1 = arith.truncf %s1 : tensor<1x64xf32> to tensor<1x64xf16>
  tile.store %h1, %y[%c1, %c0 : i32, i32] : tensor<1x64xf16>, !tile.view<2xf16>
  %s2 = tile.reduce %z axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %h2 = arith.truncf %s2 : tensor<1x64xf32> to tensor<1x64xf16>
  tile.store %h2, %y[%c2, %c0 : i32, i32] : tensor<1x64xf16>, !tile.view<2xf16>
  return
}

// -----
// A take from what the first one got waits for it; a third one that needs neither meets with the first.
// CHECK-LABEL: func.func @chain
// CHECK: tile.take {{.*}} {tile.meets = 0 : i32}
// CHECK-NEXT: tile.take {{.*}} : tensor
// CHECK: tile.take {{.*}} {tile.met = 0 : i32}
func.func @chain(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %a = tile.take %v, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %b = tile.take %a, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %w = arith.addf %v, %v : tensor<128xf32>
  %c = tile.take %w, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %r = arith.addf %c, %b : tensor<128xf32>
  tile.store %r, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// A reduction across warps and a take; what is loaded behind the first one stays, and meets for itself.
// CHECK-LABEL: func.func @kinds
// CHECK: tile.reduce {{.*}} {tile.meets = 0 : i32}
// CHECK: tile.take {{.*}} {tile.met = 0 : i32}
// CHECK: tile.load
// CHECK: tile.take {{.*}} : tensor
// CHECK: return
func.func @kinds(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %s = tile.reduce %v axis 0 : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %w = arith.addf %p, %q : f32
    tile.yield %w : f32
  }
  %b = tile.take %v, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  %m = tile.broadcast %s : tensor<1xf32> -> tensor<128xf32>
  %r = arith.addf %m, %b : tensor<128xf32>
  tile.store %r, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  %u = tile.load %y[%n : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %c = tile.take %u, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
  tile.store %c, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// Pairs are not worth it: side by side they would leave no room for taking turns. Each meets for itself, and waits for
// nothing else.
// CHECK-LABEL: func.func @turns
// CHECK: tile.meets = 0
// CHECK: tile.met = 0
// CHECK: tile.meets = 1
// CHECK: tile.met = 1
// PLACED-LABEL: func.func @turns
// PLACED-NOT: tile.met
// PLACED-NOT: tile.barrier
// PLACED: return
func.func @turns(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<768xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<768xf32>
  %w = arith.addf %v, %v : tensor<768xf32>
  %a = tile.take %v, %at axis 0 : tensor<768xf32>, tensor<768xi32> -> tensor<768xf32>
  %b = tile.take %w, %at axis 0 : tensor<768xf32>, tensor<768xi32> -> tensor<768xf32>
  %c = tile.take %a, %at axis 0 : tensor<768xf32>, tensor<768xi32> -> tensor<768xf32>
  %d = tile.take %b, %at axis 0 : tensor<768xf32>, tensor<768xi32> -> tensor<768xf32>
  %r = arith.addf %c, %d : tensor<768xf32>
  tile.store %r, %y[%c0 : i32] : tensor<768xf32>, !tile.view<1xf32>
  return
}

// -----
// Two in a loop take turns, with one barrier each: a group of both would have two, too. Three are better off together.
// CHECK-LABEL: func.func @loops
// CHECK: scf.for
// CHECK-NOT: tile.met
// CHECK: scf.for
// CHECK: tile.meets
// CHECK-COUNT-2: tile.met =
// CHECK: return
func.func @loops(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %two:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %v, %b = %v) -> (tensor<128xf32>, tensor<128xf32>) : i32 {
    %p = tile.take %a, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
    %q = tile.take %b, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
    %s = arith.addf %p, %b : tensor<128xf32>
    scf.yield %q, %s : tensor<128xf32>, tensor<128xf32>
  }
  %three:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %two#0, %b = %two#1, %c = %v) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) : i32 {
    %p = tile.take %a, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
    %q = tile.take %b, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
    %r = tile.take %c, %at axis 0 : tensor<128xf32>, tensor<128xi32> -> tensor<128xf32>
    %s = arith.addf %p, %b : tensor<128xf32>
    scf.yield %q, %r, %s : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  }
  %t = arith.addf %three#0, %three#1 : tensor<128xf32>
  %u = arith.addf %t, %three#2 : tensor<128xf32>
  tile.store %u, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// A pair takes turns, three beside it still meet. None of what they put has to move, so the registers of a large tile
// do not matter.
// CHECK-LABEL: func.func @pair_and_three
// CHECK: tile.extract {{.*}} {tile.meets = 0 : i32}
// CHECK: tile.extract {{.*}} {tile.met = 0 : i32}
// CHECK: tile.extract {{.*}} {tile.met = 0 : i32}
// CHECK: tile.extract {{.*}} {tile.meets = 1 : i32}
// CHECK: tile.extract {{.*}} {tile.met = 1 : i32}
// PLACED-LABEL: func.func @pair_and_three
// PLACED: tile.extract {{.*}} {tile.meets = 0 : i32
// PLACED: tile.extract {{.*}} {tile.met = 0 : i32
// PLACED: tile.extract {{.*}} {tile.met = 0 : i32
// PLACED-NOT: tile.me
// PLACED: return
func.func @pair_and_three(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<96x64xf32>
  %d = tile.extract %a [1, 1] : tensor<96x64xf32> -> tensor<1x1xf32>
  %c = tile.extract %a [0, 1] : tensor<96x64xf32> -> tensor<96x1xf32>
  %r = tile.extract %a [1, 0] : tensor<96x64xf32> -> tensor<1x64xf32>
  %db = tile.broadcast %d : tensor<1x1xf32> -> tensor<1x64xf32>
  %rd = arith.mulf %r, %db : tensor<1x64xf32>
  %cb = tile.broadcast %c : tensor<96x1xf32> -> tensor<96x64xf32>
  %rb = tile.broadcast %rd : tensor<1x64xf32> -> tensor<96x64xf32>
  %p = arith.mulf %cb, %rb : tensor<96x64xf32>
  %b = arith.subf %a, %p : tensor<96x64xf32>
  %c2 = tile.extract %b [0, 2] : tensor<96x64xf32> -> tensor<96x1xf32>
  %r2 = tile.extract %b [2, 0] : tensor<96x64xf32> -> tensor<1x64xf32>
  %cb2 = tile.broadcast %c2 : tensor<96x1xf32> -> tensor<96x64xf32>
  %rb2 = tile.broadcast %r2 : tensor<1x64xf32> -> tensor<96x64xf32>
  %p2 = arith.mulf %cb2, %rb2 : tensor<96x64xf32>
  %s = arith.subf %b, %p2 : tensor<96x64xf32>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<96x64xf32>, !tile.view<2xf32>
  return
}
