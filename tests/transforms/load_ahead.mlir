// Small boxes that loops of products read beside their operands, in kernels without roles: an iteration early.
// RUN: tile-opt %s -split-input-file -tile-load-ahead | FileCheck %s

// What is subtracted from the product is carried; where the loop writes to the view it is read from, or asks for one
// stage, or the box is large, it stays.
// CHECK-LABEL: func.func @residual
// CHECK: %[[FIRST:.*]] = tile.load %arg1
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[NEXT:.*]] = tile.load %arg1[%[[AHEAD]],
// CHECK: tile.load_shared %arg0[%[[I]],
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @residual(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    tile.store %e, %O[%t, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// CHECK-LABEL: func.func @written
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @written(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %v : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    tile.store %d, %V[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
    scf.yield %d : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %V[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// CHECK-LABEL: func.func @unasked
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @unasked(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %acc : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    scf.yield %e : tensor<16x16xf32>
  } {tile.stages = 1 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// 64 registers of a thread.
// CHECK-LABEL: func.func @large
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.load %arg1[%[[I]],
func.func @large(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x128xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %t = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [64, 64] : !tile.view<2 x f16> -> !tile.smem<64x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x128xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = arith.subf %d, %v : tensor<64x128xf32>
    scf.yield %e : tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Three stages: as early as the operands, two iterations.
// CHECK-LABEL: func.func @two
// CHECK: %[[FIRST:.*]] = tile.load %arg1[%c0
// CHECK: %[[SECOND:.*]] = tile.load %arg1[%{{[0-9]+}},
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]], %[[W:.*]] = %[[SECOND]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[FURTHER:.*]] = arith.addi %[[AHEAD]],
// CHECK: %[[NEXT:.*]] = tile.load %arg1[%[[FURTHER]],
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[W]], %[[NEXT]]
func.func @two(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.load %V[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows by a pointer that the loop moves on, in a loop that says nothing of stages: the iteration that is not there reads
// nothing.
// CHECK-LABEL: func.func @rows
// CHECK: %[[FIRST:.*]] = tile.gather
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[I]],
// CHECK: %[[MASK:.*]] = tile.splat %[[IS]]
// CHECK: %[[NEXT:.*]] = tile.gather {{.*}} mask %[[MASK]]
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @rows(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %p = tile.ptr_add %V, %t : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows by a pointer that walks, and is carried for that: reads ahead have a pointer of their own, three iterations further
// on where copies of operands have four stages.
// CHECK-LABEL: func.func @walking
// CHECK: %[[FIRST:.*]] = tile.gather %arg1
// CHECK: %[[P1:.*]] = tile.ptr_add %arg1
// CHECK: %[[SECOND:.*]] = tile.gather %[[P1]]
// CHECK: %[[P2:.*]] = tile.ptr_add %[[P1]]
// CHECK: %[[THIRD:.*]] = tile.gather %[[P2]]
// CHECK: %[[P3:.*]] = tile.ptr_add %[[P2]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %arg1, %[[V:.*]] = %[[FIRST]], %[[W:.*]] = %[[SECOND]], %[[X:.*]] = %[[THIRD]], %[[Q:.*]] = %[[P3]])
// CHECK: %[[NEXT:.*]] = tile.gather %[[Q]] {{.*}} mask
// CHECK: %[[Q1:.*]] = tile.ptr_add %[[Q]]
// CHECK: arith.subf %{{.*}}, %[[V]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[W]], %[[X]], %[[NEXT]], %[[Q1]]
func.func @walking(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %r:2 = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero, %p = %V) -> (tensor<16x16xf32>, !tile.ptr<f32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    %q = tile.ptr_add %p, %c16 : !tile.ptr<f32>, i32
    scf.yield %s, %q : tensor<16x16xf32>, !tile.ptr<f32>
  } {tile.stages = 4 : i32}
  tile.store %r#0, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// While rows of 64 registers are waited for, the others are free, and no pointer of theirs runs ahead.
// CHECK-LABEL: func.func @walking_beside_large_rows
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[P:.*]] = %arg1) ->
// CHECK: tile.gather %[[P]] offsets
func.func @walking_beside_large_rows(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %j = tile.iota : tensor<8192xi32>
  %pairs = tile.reshape %j : tensor<8192xi32> -> tensor<16x16x32xi32>
  %r:2 = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero, %p = %V) -> (tensor<16x16xf32>, !tile.ptr<f32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %z = tile.gather %p offsets %pairs : tensor<16x16x32xi32> : !tile.ptr<f32> -> tensor<16x16x32xf32>
    %q = tile.reduce %z axis 2 : (tensor<16x16x32xf32>) -> tensor<16x16x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %f = tile.reshape %q : tensor<16x16x1xf32> -> tensor<16x16xf32>
    %g = arith.addf %e, %f : tensor<16x16xf32>
    %s = arith.addf %acc, %g : tensor<16x16xf32>
    %further = tile.ptr_add %p, %c16 : !tile.ptr<f32>, i32
    scf.yield %s, %further : tensor<16x16xf32>, !tile.ptr<f32>
  } {tile.stages = 3 : i32}
  tile.store %r#0, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// A view that the loop makes further on may lie behind everything there is when the loop has ended: no box of it is early.
// CHECK-LABEL: func.func @view_of_iteration
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: %[[VIEW:.*]] = tile.make_view
// CHECK: tile.load %[[VIEW]]
func.func @view_of_iteration(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32, %d: i64) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %one = arith.constant 1 : i64
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %p = tile.ptr_add %V, %t : !tile.ptr<f32>, i32
    %view = tile.make_view %p, dims(%d, %d), strides(%d, %one) : !tile.ptr<f32> -> !tile.view<2xf32>
    %v = tile.load %view[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<16x16xf32>
    %m = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %m, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Words that an iteration has loaded for the next one (fetch_ahead) come as early as copies in four stages: two further.
// CHECK-LABEL: func.func @words
// CHECK: %[[SECOND:.*]] = tile.gather %{{.*}} offsets
// CHECK: %[[THIRD:.*]] = tile.gather %{{.*}} offsets
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %{{.*}}, %[[A:.*]] = %[[SECOND]], %[[B:.*]] = %[[THIRD]])
// CHECK: %[[NEXT:.*]] = tile.gather %{{.*}} offsets
// CHECK: arith.shrsi %[[NOW]]
// CHECK: scf.yield %{{.*}}, %[[A]], %[[B]], %[[NEXT]]
// CHECK: tile.held = 3
func.func @words(%K: !tile.view<2 x f16>, %V: !tile.ptr<i32>, %O: !tile.view<2 x f32>, %n: i32, %first: tensor<64x16xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %eights = arith.constant dense<8> : tensor<64xi32>
  %pitch = arith.constant dense<16> : tensor<64x16xi32>
  %fours = arith.constant dense<4> : tensor<64x16xi32>
  %rows = tile.iota : tensor<64xi32>
  %columns = tile.iota : tensor<16xi32>
  %row = tile.reshape %columns : tensor<16xi32> -> tensor<1x16xi32>
  %across = tile.broadcast %row : tensor<1x16xi32> -> tensor<64x16xi32>
  %word = arith.divsi %rows, %eights : tensor<64xi32>
  %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
  %down = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x16xi32>
  %lines = arith.muli %down, %pitch : tensor<64x16xi32>
  %at = arith.addi %lines, %across : tensor<64x16xi32>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero, %now = %first) -> (tensor<16x16xf32>, tensor<64x16xi32>) : i32 {
    %next = arith.addi %t, %c1 : i32
    %there = arith.muli %next, %c64 : i32
    %p = tile.ptr_add %V, %there : !tile.ptr<i32>, i32
    %words = tile.gather %p offsets %at : tensor<64x16xi32> : !tile.ptr<i32> -> tensor<64x16xi32>
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %moved = arith.shrsi %now, %fours : tensor<64x16xi32>
    %f = arith.sitofp %moved : tensor<64x16xi32> to tensor<64x16xf16>
    %w = tile.share %f : tensor<64x16xf16> -> !tile.smem<64x16xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %acc : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    scf.yield %d, %words : tensor<16x16xf32>, tensor<64x16xi32>
  } {tile.stages = 4 : i32}
  tile.store %r#0, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Offsets that walk as a tile would be held twice: they stay.
// CHECK-LABEL: func.func @walking_offsets
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[AT:.*]] = %{{[a-z0-9_]*}}) ->
// CHECK: tile.gather %arg1 offsets %[[AT]]
func.func @walking_offsets(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %step = arith.constant dense<16> : tensor<16x16xi32>
  %i = tile.iota : tensor<256xi32>
  %first = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %r:2 = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero, %at = %first) -> (tensor<16x16xf32>, tensor<16x16xi32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %v = tile.gather %V offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %s = arith.addf %acc, %e : tensor<16x16xf32>
    %next = arith.addi %at, %step : tensor<16x16xi32>
    scf.yield %s, %next : tensor<16x16xf32>, tensor<16x16xi32>
  } {tile.stages = 2 : i32}
  tile.store %r#0, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// In a loop that says nothing of stages, rows of 64 registers stay, and with them those that wait at the same time.
// CHECK-LABEL: func.func @beside_large_rows
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{[a-z0-9_]*}}) ->
// CHECK: tile.ptr_add %arg1, %[[I]]
// CHECK: tile.gather
func.func @beside_large_rows(%K: !tile.view<2 x f16>, %V: !tile.ptr<f32>, %O: !tile.view<2 x f32>, %w: !tile.smem<64x16xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %i = tile.iota : tensor<256xi32>
  %at = tile.reshape %i : tensor<256xi32> -> tensor<16x16xi32>
  %j = tile.iota : tensor<8192xi32>
  %pairs = tile.reshape %j : tensor<8192xi32> -> tensor<16x16x32xi32>
  %r = scf.for %t = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %k = tile.load_shared %K[%t, %c0 : i32, i32] box [16, 64] : !tile.view<2 x f16> -> !tile.smem<16x64xf16, minor = 1>
    %p = tile.ptr_add %V, %t : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %at : tensor<16x16xi32> : !tile.ptr<f32> -> tensor<16x16xf32>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %k, %w, %zero : !tile.smem<16x64xf16, minor = 1>, !tile.smem<64x16xf16, minor = 1> -> tensor<16x16xf32>
    %e = arith.subf %d, %v : tensor<16x16xf32>
    %z = tile.gather %p offsets %pairs : tensor<16x16x32xi32> : !tile.ptr<f32> -> tensor<16x16x32xf32>
    %q = tile.reduce %z axis 2 : (tensor<16x16x32xf32>) -> tensor<16x16x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %f = tile.reshape %q : tensor<16x16x1xf32> -> tensor<16x16xf32>
    %g = arith.addf %e, %f : tensor<16x16xf32>
    %s = arith.addf %acc, %g : tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %r, %O[%c0, %c0 : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// A recurrence: what it multiplies the iteration before has computed, or lies on the chip. It copies nothing; the large
// tile that it loads comes an iteration early.
// CHECK-LABEL: func.func @recurrence
// CHECK: %[[FIRST:.*]] = tile.load %arg0[%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: scf.for %[[T:.*]] = {{.*}} iter_args(%[[H:.*]] = %{{.*}}, %[[X:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[T]],
// CHECK: %[[NEXT:.*]] = tile.load %arg0[%[[AHEAD]],
// CHECK: tile.mma wgmma_f16 {{.*}} %[[H]],
// CHECK: arith.extf %[[X]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @recurrence(%X: !tile.view<3 x f16>, %O: !tile.view<3 x f16>, %w: !tile.smem<64x64xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%h = %none) -> (tensor<64x64xf16>) : i32 {
    %x = tile.load %X[%t, %c0, %c0 : i32, i32, i32] : !tile.view<3 x f16> -> tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %h, %w, %zero : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %wide = arith.extf %x : tensor<64x64xf16> to tensor<64x64xf32>
    %s = arith.addf %d, %wide : tensor<64x64xf32>
    %next = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    tile.store %next, %O[%t, %c0, %c0 : i32, i32, i32] : tensor<64x64xf16>, !tile.view<3 x f16>
    scf.yield %next : tensor<64x64xf16>
  }
  return
}

// -----

// One stage is asked for: nothing comes early.
// CHECK-LABEL: func.func @recurrence_of_one
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: tile.load %arg0[%[[T]],
func.func @recurrence_of_one(%X: !tile.view<3 x f16>, %w: !tile.smem<64x64xf16, minor = 1>, %n: i32) -> tensor<64x64xf16> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%h = %none) -> (tensor<64x64xf16>) : i32 {
    %x = tile.load %X[%t, %c0, %c0 : i32, i32, i32] : !tile.view<3 x f16> -> tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %h, %w, %zero : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %wide = arith.extf %x : tensor<64x64xf16> to tensor<64x64xf32>
    %s = arith.addf %d, %wide : tensor<64x64xf32>
    %next = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    scf.yield %next : tensor<64x64xf16>
  } {tile.stages = 1 : i32}
  return %r : tensor<64x64xf16>
}

// -----

// What was only loaded early is no result of the iteration before: the other operand stays.
// CHECK-LABEL: func.func @operand_loaded_early
// CHECK: scf.for %[[T:[a-z0-9]+]] = {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}) ->
// CHECK: tile.load %arg0[%[[T]],
func.func @operand_loaded_early(%X: !tile.view<2 x f16>, %a0: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r:2 = scf.for %t = %c0 to %n step %c64 iter_args(%acc = %zero, %a = %a0) -> (tensor<64x64xf32>, tensor<64x64xf16>) : i32 {
    %ahead = arith.addi %t, %c64 : i32
    %next = tile.load %X[%ahead, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %b = tile.load %X[%t, %c64 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %sb = tile.share %b : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %sb, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64xf16>
  }
  return %r#0 : tensor<64x64xf32>
}

// -----

// Nor is a row that goes on (the largest numbers of attention) what the product multiplies.
// CHECK-LABEL: func.func @rows_go_on
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: tile.load %arg0[%[[T]],
func.func @rows_go_on(%X: !tile.view<2 x f32>, %w: !tile.smem<64x64xf16, minor = 1>, %m0: tensor<64x1xf32>, %n: i32) -> tensor<64x64xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r:2 = scf.for %t = %c0 to %n step %c64 iter_args(%acc = %zero, %m = %m0) -> (tensor<64x64xf32>, tensor<64x1xf32>) : i32 {
    %x = tile.load %X[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %all = tile.broadcast %m : tensor<64x1xf32> -> tensor<64x64xf32>
    %p = arith.subf %x, %all : tensor<64x64xf32>
    %a = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %w, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %next = math.exp2 %m : tensor<64x1xf32>
    scf.yield %d, %next : tensor<64x64xf32>, tensor<64x1xf32>
  }
  return %r#0 : tensor<64x64xf32>
}
