// Where the first number of the grid counts rows of memory and the second one columns, the two change places.
// RUN: tile-opt %s -split-input-file -tile-walk-rows | FileCheck %s

// CHECK-LABEL: func.func @boxes(
// CHECK-DAG: %[[X:.*]] = tile.program_id 0
// CHECK-DAG: %[[Y:.*]] = tile.program_id 1
// CHECK-DAG: %[[GX:.*]] = tile.num_programs 0
// CHECK-DAG: %[[GY:.*]] = tile.num_programs 1
// CHECK: %[[ROWS:.*]] = arith.extui %[[GY]]
// CHECK: %[[N:.*]] = arith.addi
// CHECK: arith.divui %[[N]], %[[ROWS]] : i64
// CHECK-NEXT: %[[ROW:.*]] = arith.trunci
// CHECK-NEXT: arith.remui %[[N]], %[[ROWS]] : i64
// CHECK-NEXT: %[[COLUMN:.*]] = arith.trunci
// CHECK: %[[I:.*]] = arith.muli %[[ROW]],
// CHECK: %[[J:.*]] = arith.muli %[[COLUMN]],
// CHECK: tile.load %{{.*}}[%[[I]], %[[J]] :
func.func @boxes(%a: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %b: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) {
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id 0
  %y = tile.program_id 1
  %i = arith.muli %x, %c8 : i32
  %j = arith.muli %y, %c64 : i32
  %t = tile.load %a[%i, %j : i32, i32] : !tile.view<2 x f32> -> tensor<8x64xf32>
  tile.store %t, %b[%i, %j : i32, i32] : tensor<8x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Through pointers, rows are what is multiplied by a number of the launch.
// CHECK-LABEL: func.func @pointers(
// CHECK: arith.divui
// CHECK: tile.gather
func.func @pointers(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %w: i32) {
  %c64 = arith.constant 64 : i32
  %x = tile.program_id 0
  %y = tile.program_id 1
  %r = arith.muli %x, %w : i32
  %j = arith.muli %y, %c64 : i32
  %o = arith.addi %r, %j : i32
  %i = tile.iota : tensor<64xi32>
  %s = tile.splat %o : i32 -> tensor<64xi32>
  %at = arith.addi %i, %s : tensor<64xi32>
  %t = tile.gather %p offsets %at : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %t, %q offsets %at : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// A transpose goes along the rows of one of its tensors either way.
// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: arith.divui
// CHECK: tile.store
func.func @transposed(%a: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %b: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}) {
  %x = tile.program_id 0
  %y = tile.program_id 1
  %t = tile.load %a[%x, %y : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
  tile.store %t, %b[%y, %x : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Programs that draw numbers may wait for earlier ones.
// CHECK-LABEL: func.func @tickets(
// CHECK-NOT: arith.divui
// CHECK: tile.store
func.func @tickets(%a: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %b: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %p: !tile.ptr<i32>) {
  %one = arith.constant 1 : i32
  %x = tile.program_id 0
  %y = tile.program_id 1
  %n = tile.atomic_rmw add acq_rel gpu %p, %one : !tile.ptr<i32>, i32 -> i32
  %t = tile.load %a[%x, %y : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
  tile.store %t, %b[%x, %y : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
