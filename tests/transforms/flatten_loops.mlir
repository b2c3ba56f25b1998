// Loops around a loop of products whose copies run ahead become one with it.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-flatten-loops,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// The taps, and the channels of each: a channel block at a time, then the next tap from the first block on. The mask of
// the tap is computed in every iteration.
// CHECK-LABEL: func.func @taps
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32
// CHECK-DAG: %[[WIDE:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK-DAG: %[[SUM:.*]] = arith.addi %[[WIDE]], %c63_i64
// CHECK-DAG: %[[TRIPS:.*]] = arith.divsi %[[SUM]], %c64_i64
// CHECK-DAG: %[[SOME:.*]] = arith.maxsi %[[TRIPS]], %c0_i64
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[SOME]], %c9_i64
// CHECK: %[[LAST:.*]] = arith.trunci
// CHECK: scf.for %{{.*}} = %c0_i64 to %[[ALL]] step %c1_i64 iter_args(%[[ACC:.*]] = %{{.*}}, %[[TAP:.*]] = %c0_i32, %[[K:.*]] = %c0_i32)
// CHECK-NOT: scf.for
// CHECK: arith.cmpi slt, %[[TAP]],
// CHECK: tile.load_shared %{{.*}}[%[[TAP]], %c0_i32, %[[K]] : i32, i32, i32]
// CHECK: %[[D:.*]] = tile.mma {{.*}} %[[ACC]]
// CHECK: %[[MORE:.*]] = arith.addi %[[K]], %c64_i32 overflow<nsw>
// CHECK: %[[END:.*]] = arith.cmpi eq, %[[K]], %[[LAST]]
// CHECK: %[[NEXT:.*]] = arith.select %[[END]], %c0_i32, %[[MORE]]
// CHECK: %[[AFTER:.*]] = arith.addi %[[TAP]], %c1_i32 overflow<nsw>
// CHECK: %[[TO:.*]] = arith.select %[[END]], %[[AFTER]], %[[TAP]]
// CHECK: scf.yield %[[D]], %[[TO]], %[[NEXT]]
// CHECK-NEXT: {tile.stages = 3 : i32}
func.func @taps(%n: i32, %X: !view, %W: !view, %limit: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %in = arith.cmpi slt, %tap, %limit : i32
    %row = arith.select %in, %tap, %limit : i32
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %w = tile.load_shared %W[%row, %k, %c0 : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } {tile.stages = 3 : i32}
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// Three loops. A number that the outermost advances, and one that begins again with the innermost.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32, %[[M:[a-z0-9]*]]: i32
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[ROW:.*]] = %[[N]], %[[AT:.*]] = %[[M]], %[[R:.*]] = %c1_i32, %[[S:.*]] = %c0_i32, %[[K:.*]] = %c0_i32)
// CHECK-DAG: tile.load_shared %{{.*}}[%[[R]], %[[ROW]], %[[AT]] :
// CHECK-DAG: tile.load_shared %{{.*}}[%[[S]], %[[K]], %[[ROW]] :
// CHECK-DAG: %[[DOWN:.*]] = arith.addi %[[ROW]], %[[N]]
// CHECK-DAG: %[[ON:.*]] = arith.addi %[[AT]], %[[M]]
// CHECK-DAG: %[[ENDK:.*]] = arith.cmpi eq, %[[K]], %c192_i32
// CHECK-DAG: %[[ENDS:.*]] = arith.cmpi eq, %[[S]], %c2_i32
// CHECK-DAG: %[[BOTH:.*]] = arith.andi %[[ENDK]], %[[ENDS]]
// CHECK-DAG: %[[NROW:.*]] = arith.select %[[BOTH]], %[[DOWN]], %[[ROW]]
// CHECK-DAG: %[[NAT:.*]] = arith.select %[[ENDK]], %[[M]], %[[ON]]
// CHECK-DAG: %[[NR:.*]] = arith.select %[[BOTH]], %{{.*}}, %[[R]]
// CHECK: scf.yield %{{.*}}, %[[NROW]], %[[NAT]], %[[NR]], %{{.*}}, %{{.*}} :
func.func @carried(%n: i32, %m: i32, %X: !view, %W: !view) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %r = %c1 to %m step %c1 iter_args(%a0 = %zero, %row = %n) -> (tensor<64x64xf32>, i32) : i32 {
    %a3 = scf.for %s = %c0 to %c3 step %c1 iter_args(%a1 = %a0) -> (tensor<64x64xf32>) : i32 {
      %a4:2 = scf.for %k = %c0 to %c256 step %c64 iter_args(%a2 = %a1, %at = %m) -> (tensor<64x64xf32>, i32) : i32 {
        %x = tile.load_shared %X[%r, %row, %at : i32, i32, i32] box [64, 64] : !view -> !x
        %w = tile.load_shared %W[%s, %k, %row : i32, i32, i32] box [64, 64] : !view -> !x
        %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %a2 : !x, !x -> tensor<64x64xf32>
        %on = arith.addi %at, %m : i32
        scf.yield %d, %on : tensor<64x64xf32>, i32
      }
      scf.yield %a4#0 : tensor<64x64xf32>
    }
    %down = arith.addi %row, %n : i32
    scf.yield %a3, %down : tensor<64x64xf32>, i32
  }
  return %r#0 : tensor<64x64xf32>
}

// -----

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// An inner loop that goes over as many numbers every time, from where the outer one says: it counts from 0.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32
// CHECK: scf.for {{.*}} to %c36_i64 step %c1_i64 iter_args(%[[ACC:.*]] = %{{.*}}, %[[TAP:.*]] = %c0_i32, %[[K:.*]] = %c0_i32)
// CHECK: %[[BASE:.*]] = arith.muli %[[TAP]], %[[N]]
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]], %[[K]] overflow<nsw>
// CHECK: tile.load_shared %{{.*}}[%[[TAP]], %c0_i32, %[[AT]] :
// CHECK: arith.cmpi eq, %[[K]], %c192_i32
func.func @moved(%n: i32, %X: !view) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %base = arith.muli %tap, %n : i32
    %end = arith.addi %base, %c256 : i32
    %s = scf.for %k = %base to %end step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// What stays: a sum that begins again with every inner loop, bounds that the outer loop moves, a copy that all
// iterations of the inner loop make alike, a load beside it, many iterations, stages that the outer loop asks for.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-12: scf.for
func.func @stay(%n: i32, %X: !view, %W: !view, %P: !tile.ptr<i32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %c8192 = arith.constant 8192 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r0 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r1 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r0) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %tap to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r2 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r1) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %w = tile.load_shared %W[%tap, %c0, %c0 : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r3 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r2) -> (tensor<64x64xf32>) : i32 {
    %p = tile.ptr_add %P, %tap : !tile.ptr<i32>, i32
    %t = tile.gather %p : !tile.ptr<i32> -> i32
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%t, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r4 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r3) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %c8192 step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r5 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r4) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r5 : tensor<64x64xf32>
}

// -----

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// A large choice by a mask that only some inner iterations need is left to peel_masks; so much beside the inner loop
// would cost more than it saves.
// CHECK-LABEL: func.func @masks
// CHECK-COUNT-4: scf.for
func.func @masks(%n: i32, %X: !view) -> tensor<64x64xf32> {
  %i = tile.iota : tensor<4096xi32>
  %ii = arith.muli %i, %i : tensor<4096xi32>
  %limit = tile.reshape %ii : tensor<4096xi32> -> tensor<64x64xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r0 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      %ks = tile.splat %k : i32 -> tensor<64x64xi32>
      %in = arith.cmpi slt, %ks, %limit : tensor<64x64xi32>
      %kept = arith.select %in, %d, %zero : tensor<64x64xi1>, tensor<64x64xf32>
      scf.yield %kept : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  %r1 = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %r0) -> (tensor<64x64xf32>) : i32 {
    %taps = tile.splat %tap : i32 -> tensor<64x64xi32>
    %q = arith.divsi %limit, %taps : tensor<64x64xi32>
    %in = arith.cmpi slt, %q, %limit : tensor<64x64xi32>
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      %kept = arith.select %in, %d, %zero : tensor<64x64xi1>, tensor<64x64xf32>
      scf.yield %kept : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  return %r1 : tensor<64x64xf32>
}

// -----

!view = !tile.view<3 x f16>
!x = !tile.smem<64x64xf16, minor = 1>

// Where the innermost loop begins and ends depends on the outermost, not on the one between: those two become one, with
// all that they carry.
// CHECK-LABEL: func.func @two_of_three
// CHECK: scf.for %[[R:.*]] = %c0_i32 to %c9_i32 step %c1_i32 iter_args(%[[OUTER:.*]] = %{{.*}}) -> (tensor<64x64xf32>)
// CHECK: %[[INNER:.*]]:3 = scf.for %{{.*}} = %c0_i64 to %{{.*}} step %c1_i64 iter_args(%[[ACC:.*]] = %[[OUTER]], %[[TAP:.*]] = %c0_i32, %[[K:.*]] = %{{.*}})
// CHECK-NOT: scf.for
// CHECK: tile.load_shared %{{.*}}[%[[TAP]], %c0_i32, %[[K]] : i32, i32, i32]
// CHECK: %[[D:.*]] = tile.mma {{.*}} %[[ACC]]
// CHECK: scf.yield %[[D]],
// CHECK: scf.yield %[[INNER]]#0
func.func @two_of_three(%n: i32, %X: !view, %W: !view) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = scf.for %r = %c0 to %c9 step %c1 iter_args(%all = %zero) -> (tensor<64x64xf32>) : i32 {
    %from = arith.muli %r, %c64 : i32
    %few = arith.cmpi slt, %r, %n : i32
    %to = arith.select %few, %n, %from : i32
    %t = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %all) -> (tensor<64x64xf32>) : i32 {
      %s = scf.for %k = %from to %to step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
        %x = tile.load_shared %X[%tap, %c0, %k : i32, i32, i32] box [64, 64] : !view -> !x
        %w = tile.load_shared %W[%tap, %k, %c0 : i32, i32, i32] box [64, 64] : !view -> !x
        %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %acc : !x, !x -> tensor<64x64xf32>
        scf.yield %d : tensor<64x64xf32>
      } {tile.stages = 3 : i32}
      scf.yield %s : tensor<64x64xf32>
    }
    scf.yield %t : tensor<64x64xf32>
  }
  return %q : tensor<64x64xf32>
}

// -----

!x = !tile.smem<64x64xf16, minor = 1>

// Where the rows of a tap lie is read from a table: that is read ahead like what is copied from there.
// CHECK-LABEL: func.func @rows_of_table
// CHECK: scf.for %{{.*}} = %c0_i64 to %{{.*}} step %c1_i64
// CHECK-NOT: scf.for
// CHECK: %[[ROWS:.*]] = tile.gather %{{.*}} : tensor<64xi32>
// CHECK: tile.gather_shared
// CHECK-NOT: scf.for
// CHECK: return
func.func @rows_of_table(%n: i32, %table: !tile.ptr<i32>, %p: !tile.ptr<f16> {tile.align = 16 : i32}) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %lane = tile.iota : tensor<64xi32>
  %r = scf.for %tap = %c0 to %c9 step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %tap, %c64 : i32
    %t = tile.ptr_add %table, %first : !tile.ptr<i32>, i32
    %rows = tile.gather %t offsets %lane : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
    %many = arith.constant dense<64> : tensor<64xi32>
    %begin = arith.muli %rows, %many : tensor<64xi32>
    %column = tile.reshape %begin : tensor<64xi32> -> tensor<64x1xi32>
    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
      %ks = tile.splat %k : i32 -> tensor<64xi32>
      %at = arith.addi %ks, %lane : tensor<64xi32>
      %row = tile.reshape %at : tensor<64xi32> -> tensor<1x64xi32>
      %a = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
      %b = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %a, %b : tensor<64x64xi32>
      %x = tile.gather_shared %p offsets %offsets : tensor<64x64xi32> : <f16> -> <64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %x, %acc : !x, !x -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
