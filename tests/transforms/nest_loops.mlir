// A loop over the blocks of all tiles, with a counter that starts again, becomes a loop over blocks in one over tiles.
// RUN: tile-opt %s -split-input-file -tile-nest-loops -canonicalize -cse | FileCheck %s

// A product as persistent kernels have it: the tile is chosen where the counter is 0, and stored where it is n - 1.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[N:[^ ]*]]: i32, %[[M:[^ ]*]]: i32, %[[FIRST:[^ ]*]]: i32
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.0{{.*}}> : tensor<64x64xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %[[C0]]
// CHECK: %[[TIMES:.*]] = arith.select %[[SOME]], %[[M]], %[[C0]]
// CHECK: scf.for %{{.*}} = %[[C0]] to %[[TIMES]] {{.*}} iter_args(%[[TILE:.*]] = %[[FIRST]]) -> (i32) : i32 {
// CHECK: %[[NEXT:.*]] = arith.addi %[[TILE]], %c132_i32
// CHECK: %[[ROW:.*]] = arith.muli %[[NEXT]], %c64_i32
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %[[C0]] to %[[N]] {{.*}} iter_args(%[[ACC:.*]] = %[[ZEROS]])
// CHECK: arith.muli %[[K]], %c64_i32
// CHECK: tile.load %{{.*}}[%[[ROW]],
// CHECK: tile.dot {{.*}}, %[[ACC]]
// CHECK-NOT: scf.if
// CHECK: } {tile.stages = 3 : i32}
// CHECK: tile.store %[[SUM]], %{{.*}}[%[[ROW]], %[[C0]]
// CHECK: scf.yield %[[NEXT]]
func.func @product(%n: i32, %m: i32, %first: i32, %a: !tile.view<2xf16>, %y: !tile.view<2xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %minus = arith.constant -1 : i32
  %c64 = arith.constant 64 : i32
  %c132 = arith.constant 132 : i32
  %all = arith.muli %n, %m : i32
  %end = arith.subi %n, %c1 : i32
  %r:4 = scf.for %i = %c0 to %all step %c1 iter_args(%before = %minus, %tile = %first, %row = %c0, %acc = %zeros) -> (i32, i32, i32, tensor<64x64xf32>) : i32 {
    %more = arith.addi %before, %c1 : i32
    %wraps = arith.cmpi eq, %before, %end : i32
    %block = arith.select %wraps, %c0, %more : i32
    %begins = arith.cmpi eq, %block, %c0 : i32
    %now:2 = scf.if %begins -> (i32, i32) {
      %t = arith.addi %tile, %c132 : i32
      %p = arith.muli %t, %c64 : i32
      scf.yield %t, %p : i32, i32
    } else {
      scf.yield %tile, %row : i32, i32
    }
    %k = arith.muli %block, %c64 : i32
    %x = tile.load %a[%now#1, %k : i32, i32] : <2xf16> -> tensor<64x64xf16>
    %sum = tile.dot %x, %x, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %ends = arith.cmpi eq, %block, %end : i32
    %next = arith.select %ends, %zeros, %sum : tensor<64x64xf32>
    scf.if %ends {
      tile.store %sum, %y[%now#1, %c0 : i32, i32] : tensor<64x64xf32>, <2xf32>
    }
    scf.yield %block, %now#0, %now#1, %next : i32, i32, i32, tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  return
}

// -----

// A remainder counts as well; a sum that begins again where it is 0, and what the last iteration reads is made again.
// CHECK-LABEL: func.func @remainder(
// CHECK: scf.for %[[I:[^ ]*]] = %c0_i32 to
// CHECK: %[[START:.*]] = arith.muli %[[I]], %arg0
// CHECK: %[[SUM:.*]] = scf.for %[[J:[^ ]*]] = %c0_i32 to %arg0 step %c1_i32 iter_args(%[[S:.*]] = %{{cst.*}}) -> (f32)
// CHECK: %[[AT:.*]] = arith.addi %[[START]], %[[J]]
// CHECK: tile.ptr_add %arg2, %[[AT]]
// CHECK: arith.addf %[[S]]
// CHECK: %[[LAST:.*]] = arith.addi %[[START]],
// CHECK: %[[TILE:.*]] = arith.divsi %[[LAST]], %arg0
// CHECK: %[[TO:.*]] = tile.ptr_add %arg3, %[[TILE]]
// CHECK: tile.scatter %[[SUM]], %[[TO]]
func.func @remainder(%n: i32, %m: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = arith.subi %n, %c1 : i32
  %all = arith.muli %m, %n : i32
  %r = scf.for %i = %c0 to %all step %c1 iter_args(%s = %zero) -> (f32) : i32 {
    %j = arith.remsi %i, %n : i32
    %begins = arith.cmpi eq, %j, %c0 : i32
    %s0 = arith.select %begins, %zero, %s : f32
    %at = tile.ptr_add %p, %i : !tile.ptr<f32>, i32
    %x = tile.gather %at : !tile.ptr<f32> -> f32
    %sum = arith.addf %s0, %x : f32
    %tile = arith.divsi %i, %n : i32
    %ends = arith.cmpi eq, %j, %end : i32
    scf.if %ends {
      %to1 = tile.ptr_add %q, %tile : !tile.ptr<f32>, i32
      tile.scatter %sum, %to1 : f32, !tile.ptr<f32>
    }
    scf.yield %sum : f32
  }
  return
}

// -----

// A counter that is advanced at the end; the loop's results are those of the outer loop.
// CHECK-LABEL: func.func @advanced(
// CHECK: %[[ALL:.*]] = scf.for {{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[SUM:.*]] = scf.for %[[J:.*]] = %c0_i32 to %arg0 {{.*}} iter_args(%{{.*}} = %{{cst.*}}) -> (f32)
// CHECK: tile.ptr_add %arg2, %[[J]]
// CHECK: %[[MORE:.*]] = arith.addf %[[TOTAL]], %[[SUM]]
// CHECK: scf.yield %[[MORE]]
// CHECK: return %[[ALL]]
func.func @advanced(%n: i32, %m: i32, %p: !tile.ptr<f32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %all = arith.muli %m, %n : i32
  %r:3 = scf.for %i = %c0 to %all step %c1 iter_args(%j = %c0, %s = %zero, %total = %zero) -> (i32, f32, f32) : i32 {
    %at = tile.ptr_add %p, %j : !tile.ptr<f32>, i32
    %x = tile.gather %at : !tile.ptr<f32> -> f32
    %sum = arith.addf %s, %x : f32
    %more = arith.addi %j, %c1 : i32
    %ends = arith.cmpi eq, %more, %n : i32
    %after:2 = scf.if %ends -> (f32, f32) {
      %t = arith.addf %total, %sum : f32
      scf.yield %t, %zero : f32, f32
    } else {
      scf.yield %total, %sum : f32, f32
    }
    %next = arith.select %ends, %c0, %more : i32
    scf.yield %next, %after#1, %after#0 : i32, f32, f32
  }
  return %r#2 : f32
}

// -----

// What other iterations read of the first one's work, or do behind a store, stays; so does a counter of other length.
// CHECK-LABEL: func.func @stays(
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @stays(%n: i32, %m: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = arith.subi %n, %c1 : i32
  %all = arith.muli %m, %n : i32
  scf.for %i = %c0 to %all step %c1 : i32 {
    %j = arith.remsi %i, %n : i32
    %to2 = tile.ptr_add %q, %i : !tile.ptr<f32>, i32
    tile.scatter %zero, %to2 : f32, !tile.ptr<f32>
    %begins = arith.cmpi eq, %j, %c0 : i32
    scf.if %begins {
      %to3 = tile.ptr_add %p, %i : !tile.ptr<f32>, i32
      tile.scatter %zero, %to3 : f32, !tile.ptr<f32>
    }
    %to4 = tile.ptr_add %q, %j : !tile.ptr<f32>, i32
    tile.scatter %zero, %to4 : f32, !tile.ptr<f32>
  }
  %other = arith.addi %n, %m : i32
  scf.for %i = %c0 to %other step %c1 : i32 {
    %j = arith.remsi %i, %n : i32
    %ends = arith.cmpi eq, %j, %end : i32
    scf.if %ends {
      %to5 = tile.ptr_add %q, %i : !tile.ptr<f32>, i32
      tile.scatter %zero, %to5 : f32, !tile.ptr<f32>
    }
  }
  return
}
