// Histograms that loops add up count in one table: filled in front of them, read behind them.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-count-in-place | FileCheck %s

// CHECK-LABEL: func.func @loop
// CHECK: %[[TABLE:.*]] = tile.smem_alloc : <1x256xi32, minor = 1>
// CHECK: tile.smem_store %{{.*}}, %[[TABLE]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: scf.for {{.*}} to %arg3 step %{{[a-z0-9_]*}} : i32 {
// CHECK: %[[V:.*]] = tile.gather
// CHECK-NEXT: tile.smem_count %[[V]] in %[[TABLE]]
// CHECK-NEXT: } {tile.unroll = 2 : i32}
// CHECK-NEXT: %[[ROW:.*]] = tile.smem_load %[[TABLE]]
// CHECK-NEXT: %[[SUM:.*]] = tile.reshape %[[ROW]]
// CHECK-NEXT: tile.store %[[SUM]]
func.func @loop(%x: !tile.ptr<i32>, %out: !tile.view<1xi32>, %init: tensor<256xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%count = %init) -> (tensor<256xi32>) : i32 {
    %at = tile.iota : tensor<512xi32>
    %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %h = tile.histogram %v : tensor<512xi32> -> tensor<256xi32>
    %s = arith.addi %h, %count : tensor<256xi32>
    scf.yield %s : tensor<256xi32>
  } {tile.unroll = 2 : i32}
  tile.store %r, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  return
}

// -----
// Through nested loops, under a branch, by a sum of two histograms, and on behind the loops. The other tile is carried
// as before.
// CHECK-LABEL: func.func @nest
// CHECK-COUNT-1: tile.smem_store
// CHECK: scf.for {{.*}} iter_args(%[[F:.*]] = %{{.*}}) -> (tensor<256xf32>)
// CHECK: scf.for %{{[a-z0-9]*}} = %{{[a-z0-9_]*}} to %{{[a-z0-9_]*}} step %{{[a-z0-9_]*}} : i32 {
// CHECK-COUNT-2: tile.smem_count
// CHECK: scf.if
// CHECK-NEXT: tile.smem_count
// CHECK-NEXT: }
// CHECK: scf.yield %{{.*}} : tensor<256xf32>
// CHECK: scf.for
// CHECK: tile.smem_count
// CHECK: }
// CHECK: tile.smem_count
// CHECK-NEXT: tile.smem_load
// CHECK-NOT: tile.histogram
func.func @nest(%x: tensor<512xi32>, %f: tensor<256xf32>, %out: !tile.view<1xi32>, %fout: !tile.view<1xf32>, %n: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<256xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%count = %zero, %g = %f) -> (tensor<256xi32>, tensor<256xf32>) : i32 {
    %in = scf.for %j = %c0 to %n step %c1 iter_args(%c = %count) -> (tensor<256xi32>) : i32 {
      %k = tile.splat %j : i32 -> tensor<512xi32>
      %v = arith.addi %x, %k : tensor<512xi32>
      %h = tile.histogram %v : tensor<512xi32> -> tensor<256xi32>
      %l = tile.histogram %k : tensor<512xi32> -> tensor<256xi32>
      %both = arith.addi %h, %l : tensor<256xi32>
      %s = arith.addi %c, %both : tensor<256xi32>
      %t = scf.if %b -> tensor<256xi32> {
        %m = tile.histogram %v : tensor<512xi32> -> tensor<256xi32>
        %u = arith.addi %s, %m : tensor<256xi32>
        scf.yield %u : tensor<256xi32>
      } else {
        scf.yield %s : tensor<256xi32>
      }
      scf.yield %t : tensor<256xi32>
    }
    %g2 = arith.addf %g, %f : tensor<256xf32>
    scf.yield %in, %g2 : tensor<256xi32>, tensor<256xf32>
  }
  %rest = scf.for %i = %c0 to %n step %c1 iter_args(%c = %r#0) -> (tensor<256xi32>) : i32 {
    %h = tile.histogram %x : tensor<512xi32> -> tensor<256xi32>
    %s = arith.addi %c, %h : tensor<256xi32>
    scf.yield %s : tensor<256xi32>
  }
  %last = tile.histogram %x : tensor<512xi32> -> tensor<256xi32>
  %all = arith.addi %rest, %last : tensor<256xi32>
  tile.store %all, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#1, %fout[%c0 : i32] : tensor<256xf32>, !tile.view<1xf32>
  return
}

// -----
// Two tables; a loop with a condition.
// CHECK-LABEL: func.func @two
// CHECK: %[[B:.*]] = tile.smem_alloc : <1x64xi32
// CHECK: %[[A:.*]] = tile.smem_alloc : <1x256xi32
// CHECK: scf.while (%[[I:.*]] = %{{.*}}) : (i32) -> i32
// CHECK: tile.smem_count %{{.*}} in %[[A]]
// CHECK: tile.smem_count %{{.*}} in %[[B]]
// CHECK: scf.yield %{{.*}} : i32
// CHECK-DAG: tile.smem_load %[[A]]
// CHECK-DAG: tile.smem_load %[[B]]
func.func @two(%x: tensor<512xi32>, %out: !tile.view<1xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<256xi32>
  %none = arith.constant dense<0> : tensor<64xi32>
  %r:3 = scf.while (%i = %c0, %p = %none, %q = %zero) : (i32, tensor<64xi32>, tensor<256xi32>) -> (i32, tensor<256xi32>, tensor<64xi32>) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %q, %p : i32, tensor<256xi32>, tensor<64xi32>
  } do {
  ^bb0(%i: i32, %q: tensor<256xi32>, %p: tensor<64xi32>):
    %next = arith.addi %i, %c1 : i32
    %k = tile.splat %i : i32 -> tensor<512xi32>
    %v = arith.addi %x, %k : tensor<512xi32>
    %h = tile.histogram %v : tensor<512xi32> -> tensor<256xi32>
    %l = tile.histogram %v : tensor<512xi32> -> tensor<64xi32>
    %s = arith.addi %q, %h : tensor<256xi32>
    %t = arith.addi %p, %l : tensor<64xi32>
    scf.yield %next, %t, %s : i32, tensor<64xi32>, tensor<256xi32>
  }
  tile.store %r#1, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#2, %out[%c0 : i32] : tensor<64xi32>, !tile.view<1xi32>
  return
}

// -----
// The outer loop begins anew: the inner one has the table, filled again each time.
// CHECK-LABEL: func.func @anew
// CHECK: scf.for
// CHECK: tile.smem_store
// CHECK: scf.for
// CHECK: tile.smem_count
// CHECK: }
// CHECK: tile.smem_load
// CHECK: tile.store
func.func @anew(%x: tensor<512xi32>, %out: !tile.view<1xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<256xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %in = scf.for %j = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<256xi32>) : i32 {
      %h = tile.histogram %x : tensor<512xi32> -> tensor<256xi32>
      %s = arith.addi %c, %h : tensor<256xi32>
      scf.yield %s : tensor<256xi32>
    }
    tile.store %in, %out[%i : i32] : tensor<256xi32>, !tile.view<1xi32>
  }
  return
}

// -----
// Not where the loop reads the tile, where the histogram is made in front of the loop, where somebody else reads it,
// where the tiles change places, or where the tile is left as it was in one branch only.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tile.smem
func.func @others(%x: tensor<512xi32>, %out: !tile.view<1xi32>, %n: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<256xi32>
  %once = tile.histogram %x : tensor<512xi32> -> tensor<256xi32>
  %r:6 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %c = %zero, %d = %zero, %e = %zero, %f = %zero, %g = %zero)
      -> (tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>) : i32 {
    %k = tile.splat %i : i32 -> tensor<512xi32>
    tile.store %a, %out[%i : i32] : tensor<256xi32>, !tile.view<1xi32>
    %h0 = tile.histogram %k : tensor<512xi32> -> tensor<256xi32>
    %s0 = arith.addi %a, %h0 : tensor<256xi32>
    %s1 = arith.addi %c, %once : tensor<256xi32>
    %h2 = tile.histogram %k : tensor<512xi32> -> tensor<256xi32>
    %s2 = arith.addi %d, %h2 : tensor<256xi32>
    tile.store %h2, %out[%i : i32] : tensor<256xi32>, !tile.view<1xi32>
    %h3 = tile.histogram %k : tensor<512xi32> -> tensor<256xi32>
    %s3 = arith.addi %e, %h3 : tensor<256xi32>
    %h5 = tile.histogram %k : tensor<512xi32> -> tensor<256xi32>
    %s5 = scf.if %b -> tensor<256xi32> {
      %t = arith.addi %g, %h5 : tensor<256xi32>
      scf.yield %t : tensor<256xi32>
    } else {
      scf.yield %zero : tensor<256xi32>
    }
    scf.yield %s0, %s1, %s2, %f, %s3, %s5 : tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>, tensor<256xi32>
  }
  tile.store %r#0, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#1, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#2, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#3, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#4, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  tile.store %r#5, %out[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  return
}

// -----
// Not where tables beside each other are more than there is: histograms in turns share the bytes.
// CHECK-LABEL: func.func @large
// CHECK-NOT: tile.smem
func.func @large(%x: tensor<512xi32>, %out: !tile.view<1xi32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<32768xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %d = %zero) -> (tensor<32768xi32>, tensor<32768xi32>) : i32 {
    %k = tile.splat %i : i32 -> tensor<512xi32>
    %h = tile.histogram %x : tensor<512xi32> -> tensor<32768xi32>
    %s = arith.addi %c, %h : tensor<32768xi32>
    %l = tile.histogram %k : tensor<512xi32> -> tensor<32768xi32>
    %t = arith.addi %d, %l : tensor<32768xi32>
    scf.yield %s, %t : tensor<32768xi32>, tensor<32768xi32>
  }
  tile.store %r#0, %out[%c0 : i32] : tensor<32768xi32>, !tile.view<1xi32>
  tile.store %r#1, %out[%c0 : i32] : tensor<32768xi32>, !tile.view<1xi32>
  return
}

// -----
// Weights that are floats: of each number there are copies side by side, which are added up behind the loop, to what
// the tile began with.
// CHECK-LABEL: func.func @weights
// CHECK: %[[TABLE:.*]] = tile.smem_alloc : <1x2048xf32, minor = 1>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<1x2048xf32>
// CHECK: tile.smem_store %[[ZERO]], %[[TABLE]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: scf.for {{.*}} : i32 {
// CHECK: tile.smem_count %{{.*}} weights %{{.*}} : tensor<512xf32> in %[[TABLE]] copies 8
// CHECK-NEXT: }
// CHECK-NEXT: %[[ROW:.*]] = tile.smem_load %[[TABLE]]
// CHECK-NEXT: %[[EACH:.*]] = tile.reshape %[[ROW]] : tensor<1x2048xf32> -> tensor<256x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = tile.reduce %[[EACH]] axis 1
// CHECK: %[[LINE:.*]] = tile.reshape %[[SUM]]
// CHECK-NEXT: %[[ALL:.*]] = arith.addf %arg2, %[[LINE]]
// CHECK-NEXT: tile.store %[[ALL]]
func.func @weights(%x: tensor<512xf32>, %out: !tile.view<1xf32>, %init: tensor<256xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %init) -> (tensor<256xf32>) : i32 {
    %at = tile.iota : tensor<512xi32>
    %h = tile.histogram %at weights %x : tensor<512xf32> : tensor<512xi32> -> tensor<256xf32>
    %s = arith.addf %sum, %h : tensor<256xf32>
    scf.yield %s : tensor<256xf32>
  }
  tile.store %r, %out[%c0 : i32] : tensor<256xf32>, !tile.view<1xf32>
  return
}

// -----
// Fewer where they would keep other programs away, none of integers of 32 bits. A sum that is rounded by itself stays.
// CHECK-LABEL: func.func @fewer
// CHECK-DAG: tile.smem_alloc : <1x4000xf64, minor = 1>
// CHECK-DAG: tile.smem_alloc : <1x100xi32, minor = 1>
// CHECK: scf.for
// CHECK-DAG: tile.smem_count %{{.*}} weights %{{.*}} : tensor<512xf64> in %{{.*}} copies 2
// CHECK-DAG: tile.smem_count %{{.*}} weights %{{.*}} : tensor<512xi32> in %{{[0-9]*}} :
// CHECK: tile.histogram
// CHECK-NEXT: tile.add_rn
func.func @fewer(%x: tensor<512xf64>, %out: !tile.view<1xf64>, %w: tensor<512xi32>, %iout: !tile.view<1xi32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<2000xf64>
  %none = arith.constant dense<0> : tensor<100xi32>
  %few = arith.constant dense<0.0> : tensor<10xf64>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %none, %c = %few) -> (tensor<2000xf64>, tensor<100xi32>, tensor<10xf64>) : i32 {
    %at = tile.iota : tensor<512xi32>
    %h0 = tile.histogram %at weights %x : tensor<512xf64> : tensor<512xi32> -> tensor<2000xf64>
    %s0 = arith.addf %a, %h0 : tensor<2000xf64>
    %h1 = tile.histogram %at weights %w : tensor<512xi32> : tensor<512xi32> -> tensor<100xi32>
    %s1 = arith.addi %b, %h1 : tensor<100xi32>
    %h2 = tile.histogram %at weights %x : tensor<512xf64> : tensor<512xi32> -> tensor<10xf64>
    %s2 = tile.add_rn %c, %h2 : tensor<10xf64>
    scf.yield %s0, %s1, %s2 : tensor<2000xf64>, tensor<100xi32>, tensor<10xf64>
  }
  tile.store %r#0, %out[%c0 : i32] : tensor<2000xf64>, !tile.view<1xf64>
  tile.store %r#1, %iout[%c0 : i32] : tensor<100xi32>, !tile.view<1xi32>
  tile.store %r#2, %out[%c0 : i32] : tensor<10xf64>, !tile.view<1xf64>
  return
}
