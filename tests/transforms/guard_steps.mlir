// RUN: tile-opt %s -split-input-file -tile-guard-steps | FileCheck %s
// RUN: tile-opt %s -split-input-file -tile-guard-steps=report | FileCheck %s --check-prefix=REPORT
// Loops whose step may be 0 or less have no iteration then; where launches report, they say so.

// CHECK-LABEL: func.func @from_launch(
// CHECK: %[[OK:.*]] = arith.cmpi sgt, %arg3, %c0_i32
// CHECK-NOT: tile.assert
// CHECK: %[[BY:.*]] = arith.select %[[OK]], %arg3, %c1073741824_i32
// CHECK: %[[END:.*]] = arith.select %[[OK]], %arg2, %arg1
// CHECK: scf.for %{{.*}} = %arg1 to %[[END]] step %[[BY]]
// REPORT-LABEL: func.func @from_launch(
// REPORT: %[[OK:.*]] = arith.cmpi sgt
// REPORT: tile.assert %[[OK]], "the step of a range must be positive
// REPORT: scf.for
func.func @from_launch(%p: !tile.ptr<i32>, %low: i32, %high: i32, %step: i32) {
  scf.for %i = %low to %high step %step : i32 {
    %at = tile.ptr_add %p, %i : !tile.ptr<i32>, i32
    tile.scatter %i, %at : i32, !tile.ptr<i32>
  }
  return
}

// -----

// The bits of an unsigned step have no sign.
// CHECK-LABEL: func.func @unsigned(
// CHECK: arith.cmpi ne, %arg1
func.func @unsigned(%p: !tile.ptr<i64>, %step: i64) {
  %c0 = arith.constant 0 : i64
  %c9 = arith.constant 9 : i64
  scf.for unsigned %i = %c0 to %c9 step %step : i64 {
    %at = tile.ptr_add %p, %i : !tile.ptr<i64>, i64
    tile.scatter %i, %at : i64, !tile.ptr<i64>
  }
  return
}

// -----

// Constants, and numbers of programs, are positive: nothing to guard.
// CHECK-LABEL: func.func @positive(
// CHECK-NOT: arith.select
// CHECK: return
// REPORT-LABEL: func.func @positive(
// REPORT-NOT: tile.assert
// REPORT: return
func.func @positive(%p: !tile.ptr<i32>, %high: i32) {
  %first = tile.program_id 0
  %all = tile.num_programs 0
  %c2 = arith.constant 2 : i32
  scf.for %i = %first to %high step %all : i32 {
    scf.for %j = %first to %i step %c2 : i32 {
      %at = tile.ptr_add %p, %j : !tile.ptr<i32>, i32
      tile.scatter %i, %at : i32, !tile.ptr<i32>
    }
  }
  return
}
