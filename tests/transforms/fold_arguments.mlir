// RUN: tile-opt %s -tile-fold-arguments -canonicalize | FileCheck %s
// Arguments that are promised to be 1 are that number; the parameter stays, launches pass and check it.

// CHECK-LABEL: func.func @strides(
// CHECK-SAME: %arg2: i32 {tile.one}, %arg3: i32
// CHECK: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-NOT: %arg2
// CHECK: %[[AT:.*]] = arith.muli %arg1, %arg3 : i32
// CHECK: tile.ptr_add %arg0, %[[AT]]
// CHECK: tile.ptr_add %{{.*}}, %arg1
// CHECK: tile.scatter %[[C1]],
func.func @strides(%p: !tile.ptr<i32>, %i: i32, %one: i32 {tile.one}, %stride: i32) attributes {tile.kernel} {
  %row = arith.muli %i, %stride : i32
  %column = arith.muli %i, %one : i32
  %q = tile.ptr_add %p, %row : !tile.ptr<i32>, i32
  %at = tile.ptr_add %q, %column : !tile.ptr<i32>, i32
  tile.scatter %one, %at : i32, !tile.ptr<i32>
  return
}
