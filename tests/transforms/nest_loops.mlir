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

// -----

// What the last iteration reads is made once, however often each number is read on the way to it.
// CHECK-LABEL: func.func @squares(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.gather
// CHECK-NOT: scf.if
// CHECK: }
// CHECK-COUNT-40: arith.muli
// CHECK: tile.scatter
func.func @squares(%n: i32, %m: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = arith.subi %n, %c1 : i32
  %all = arith.muli %m, %n : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %all step %c1 iter_args(%before = %zero) -> (f32) : i32 {
    %j = arith.remsi %i, %n : i32
    %at = tile.ptr_add %p, %i : !tile.ptr<f32>, i32
    %now = tile.gather %at : !tile.ptr<f32> -> f32
    %x = arith.addf %now, %before : f32
    %to = tile.ptr_add %q, %j : !tile.ptr<f32>, i32
    tile.scatter %x, %to : f32, !tile.ptr<f32>
    %v0 = arith.muli %i, %i : i32
    %v1 = arith.muli %v0, %v0 : i32
    %v2 = arith.muli %v1, %v1 : i32
    %v3 = arith.muli %v2, %v2 : i32
    %v4 = arith.muli %v3, %v3 : i32
    %v5 = arith.muli %v4, %v4 : i32
    %v6 = arith.muli %v5, %v5 : i32
    %v7 = arith.muli %v6, %v6 : i32
    %v8 = arith.muli %v7, %v7 : i32
    %v9 = arith.muli %v8, %v8 : i32
    %v10 = arith.muli %v9, %v9 : i32
    %v11 = arith.muli %v10, %v10 : i32
    %v12 = arith.muli %v11, %v11 : i32
    %v13 = arith.muli %v12, %v12 : i32
    %v14 = arith.muli %v13, %v13 : i32
    %v15 = arith.muli %v14, %v14 : i32
    %v16 = arith.muli %v15, %v15 : i32
    %v17 = arith.muli %v16, %v16 : i32
    %v18 = arith.muli %v17, %v17 : i32
    %v19 = arith.muli %v18, %v18 : i32
    %v20 = arith.muli %v19, %v19 : i32
    %v21 = arith.muli %v20, %v20 : i32
    %v22 = arith.muli %v21, %v21 : i32
    %v23 = arith.muli %v22, %v22 : i32
    %v24 = arith.muli %v23, %v23 : i32
    %v25 = arith.muli %v24, %v24 : i32
    %v26 = arith.muli %v25, %v25 : i32
    %v27 = arith.muli %v26, %v26 : i32
    %v28 = arith.muli %v27, %v27 : i32
    %v29 = arith.muli %v28, %v28 : i32
    %v30 = arith.muli %v29, %v29 : i32
    %v31 = arith.muli %v30, %v30 : i32
    %v32 = arith.muli %v31, %v31 : i32
    %v33 = arith.muli %v32, %v32 : i32
    %v34 = arith.muli %v33, %v33 : i32
    %v35 = arith.muli %v34, %v34 : i32
    %v36 = arith.muli %v35, %v35 : i32
    %v37 = arith.muli %v36, %v36 : i32
    %v38 = arith.muli %v37, %v37 : i32
    %v39 = arith.muli %v38, %v38 : i32
    %ends = arith.cmpi eq, %j, %end : i32
    scf.if %ends {
      %to1 = tile.ptr_add %q, %v39 : !tile.ptr<f32>, i32
      tile.scatter %x, %to1 : f32, !tile.ptr<f32>
    }
    scf.yield %x : f32
  }
  return
}
