// Loops that carry the rows they have passed: as many bodies as rows take turns, so that none moves to other registers.
// RUN: tile-opt %s -split-input-file -tile-unroll-turns | FileCheck %s

// Three: the iteration has loaded a row where the oldest is still read.
// CHECK-LABEL: func.func @three
// CHECK: %[[MAIN:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{[a-z0-9_]*}})
// CHECK: tile.load
// CHECK: tile.store
// CHECK: %[[C:.*]] = tile.load
// CHECK: arith.addf %[[B]], %[[C]]
// CHECK: tile.store
// CHECK: %[[D:.*]] = tile.load
// CHECK: tile.store
// CHECK: scf.yield %[[C]], %[[D]]
// CHECK: scf.for {{.*}} iter_args({{.*}} = %[[MAIN]]#0, {{.*}} = %[[MAIN]]#1)
// CHECK-COUNT-1: tile.load
// CHECK-NOT: tile.load
// CHECK: return
func.func @three(%V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %a: tensor<512xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%older = %a, %old = %a) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    %now = tile.load %V[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<512xf32>
    %s = arith.addf %older, %now : tensor<512xf32>
    %t = arith.addf %s, %old : tensor<512xf32>
    tile.store %t, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    scf.yield %old, %now : tensor<512xf32>, tensor<512xf32>
  }
  return
}

// -----
// Two: the new one can have the place of the oldest.
// CHECK-LABEL: func.func @two
// CHECK: scf.for
// CHECK-COUNT-2: tile.load
// CHECK: scf.yield
// CHECK: scf.for
// CHECK-COUNT-1: tile.load
// CHECK-NOT: tile.load
// CHECK: return
func.func @two(%V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %a: tensor<512xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%older = %a, %old = %a) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    %t = arith.addf %older, %old : tensor<512xf32>
    tile.store %t, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    %now = tile.load %V[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<512xf32>
    scf.yield %old, %now : tensor<512xf32>, tensor<512xf32>
  }
  return
}

// -----
// Tiles that change places take turns, too.
// CHECK-LABEL: func.func @swap
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{[a-z0-9_]*}})
// CHECK: tile.store %[[A]]
// CHECK: tile.store %[[B]]
// CHECK: scf.yield %[[A]], %[[B]]
func.func @swap(%O: !tile.view<2 x f32>, %a: tensor<512xf32>, %b: tensor<512xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    tile.store %x, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<512xf32>, tensor<512xf32>
  }
  return
}

// -----
// Not for a few registers, nor where the kernel says how many bodies it wants, copies come ahead, loads are
// held, or much is loaded.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: tile.store
// CHECK-NOT: tile.store
func.func @others(%V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %a: tensor<128xf32>, %b: tensor<512xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %a) -> (tensor<128xf32>, tensor<128xf32>) : i32 {
    tile.store %x, %O[%i, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<128xf32>, tensor<128xf32>
  }
  %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %b, %y = %b) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    tile.store %x, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<512xf32>, tensor<512xf32>
  } {tile.unroll = 1 : i32}
  %t:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %b, %y = %b) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    tile.store %x, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<512xf32>, tensor<512xf32>
  } {tile.stages = 3 : i32}
  %u:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %b, %y = %b) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    %l = tile.load %V[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<1024xf32>
    tile.store %l, %O[%i, %c0 : i32, i32] : tensor<1024xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<512xf32>, tensor<512xf32>
  }
  %w:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %b, %y = %b) -> (tensor<512xf32>, tensor<512xf32>) : i32 {
    tile.store %x, %O[%i, %c0 : i32, i32] : tensor<512xf32>, !tile.view<2 x f32>
    scf.yield %y, %x : tensor<512xf32>, tensor<512xf32>
  } {tile.held = 2 : i64}
  return
}
