// What conditions that are assumed say of numbers goes with the numbers.
// RUN: tile-opt %s --tile-keep-promises | FileCheck %s

// Of arguments as attributes, wherever it is said at the top; of others in front of their uses, those in loops, too.
// CHECK-LABEL: func.func @numbers(
// CHECK-SAME: %arg1: i32 {tile.at_least = 1 : i64, tile.at_most = 2147483647 : i64}
// CHECK-SAME: %arg2: i32 {tile.at_least = 0 : i64, tile.at_most = 99 : i64, tile.multiple_of = 16 : i32}
// CHECK: %[[LD:.*]] = tile.gather %arg0
// CHECK: tile.assume_true
// CHECK: %[[KEPT:.*]] = tile.assume %[[LD]] multiple_of 1 from 1 to 2147483647 : i32
// CHECK: scf.for
// CHECK: arith.muli %{{.*}}, %[[KEPT]] : i32
func.func @numbers(%p: !tile.ptr<i32>, %n: i32, %m: i32, %y: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %c100 = arith.constant 100 : i32
  %has = arith.cmpi sgt, %n, %c0 : i32
  tile.assume_true %has
  %low = arith.cmpi sge, %m, %c0 : i32
  %high = arith.cmpi slt, %m, %c100 : i32
  %rest = arith.remsi %m, %c16 : i32
  %whole = arith.cmpi eq, %rest, %c0 : i32
  tile.assume_true %low
  tile.assume_true %high
  tile.assume_true %whole
  %ld = tile.gather %p : !tile.ptr<i32> -> i32
  %positive = arith.cmpi sgt, %ld, %c0 : i32
  tile.assume_true %positive
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = arith.muli %i, %ld : i32
    %to = tile.ptr_add %y, %at : !tile.ptr<i32>, i32
    tile.scatter %m, %to : i32, !tile.ptr<i32>
  }
  return
}

// Two promises of one number; one that says nothing new, and one that cannot hold.
// CHECK-LABEL: func.func @two(
// CHECK: %[[X:.*]] = tile.gather %arg0
// CHECK: %[[A:.*]] = tile.assume %[[X]] multiple_of 1 from 1 to 2147483647 : i32
// CHECK: %[[B:.*]] = tile.assume %[[A]] multiple_of 1 from 1 to 99 : i32
// CHECK-NOT: tile.assume %
// CHECK: tile.scatter %[[B]], %arg1
func.func @two(%p: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c100 = arith.constant 100 : i32
  %x = tile.gather %p : !tile.ptr<i32> -> i32
  %low = arith.cmpi sgt, %x, %c0 : i32
  %high = arith.cmpi slt, %x, %c100 : i32
  %known = arith.cmpi sge, %x, %c0 : i32
  %wrong = arith.cmpi sgt, %x, %c100 : i32
  tile.assume_true %low
  tile.assume_true %high
  tile.assume_true %known
  tile.assume_true %wrong
  tile.scatter %x, %y : i32, !tile.ptr<i32>
  return
}

// A promise under a condition holds there alone, of arguments, too.
// CHECK-LABEL: func.func @conditional(
// CHECK-SAME: %arg0: i32, %arg1: i1
// CHECK: scf.if
// CHECK: %[[KEPT:.*]] = tile.assume %arg0 multiple_of 1 from 1 to 2147483647 : i32
// CHECK: tile.scatter %[[KEPT]], %arg2
// CHECK: }
// CHECK: tile.scatter %arg0, %arg2
func.func @conditional(%n: i32, %is: i1, %y: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  scf.if %is {
    %positive = arith.cmpi sgt, %n, %c0 : i32
    tile.assume_true %positive
    tile.scatter %n, %y : i32, !tile.ptr<i32>
  }
  tile.scatter %n, %y : i32, !tile.ptr<i32>
  return
}

// All parts of one condition, of an argument and of another number.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME: %arg0: i32 {tile.at_least = 1 : i64, tile.at_most = 99 : i64, tile.multiple_of = 16 : i32}
// CHECK: %[[X:.*]] = tile.gather %arg1
// CHECK: %[[LOW:.*]] = tile.assume %[[X]] multiple_of 1 from 1 to 2147483647 : i32
// CHECK: %[[BOTH:.*]] = tile.assume %[[LOW]] multiple_of 1 from 1 to 99 : i32
// CHECK: tile.scatter %[[BOTH]], %arg2
func.func @parts(%n: i32, %p: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c100 = arith.constant 100 : i32
  %low = arith.cmpi sgt, %n, %c0 : i32
  %high = arith.cmpi slt, %n, %c100 : i32
  %rest = arith.remsi %n, %c16 : i32
  %whole = arith.cmpi eq, %rest, %c0 : i32
  %inside = arith.andi %low, %high : i1
  %all = arith.andi %inside, %whole : i1
  tile.assume_true %all
  %x = tile.gather %p : !tile.ptr<i32> -> i32
  %above = arith.cmpi sgt, %x, %c0 : i32
  %below = arith.cmpi slt, %x, %c100 : i32
  %between = arith.andi %above, %below : i1
  tile.assume_true %between
  tile.scatter %x, %y : i32, !tile.ptr<i32>
  return
}

// Of sizes and strides of arguments, narrowed or not, as attributes of these: accesses through the view ask them. What
// is known already stays; what holds under a condition only is no attribute.
// CHECK-LABEL: func.func @views(
// CHECK-SAME: %arg0: !tile.view<2xf16> {tile.dim_multiple_of = array<i32: 1, 8>, tile.stride_multiple_of = array<i32: 4, 1>}
// CHECK-SAME: %arg1: !tile.view<2xf16> {tile.stride_multiple_of = array<i32: 16, 2>}
func.func @views(%a: !tile.view<2xf16>, %b: !tile.view<2xf16> {tile.stride_multiple_of = array<i32: 16, 1>}, %is: i1)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i64
  %c4 = arith.constant 4 : i64
  %z = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %size = tile.view_dim %a, 1 : !tile.view<2xf16>
  %narrow = arith.trunci %size : i64 to i32
  %ra = arith.remsi %narrow, %c8 : i32
  %wa = arith.cmpi eq, %ra, %z : i32
  tile.assume_true %wa
  %row = tile.view_stride %a, 0 : !tile.view<2xf16>
  %rr = arith.remsi %row, %c4 : i64
  %wr = arith.cmpi eq, %rr, %c0 : i64
  tile.assume_true %wr
  %known = tile.view_stride %b, 0 : !tile.view<2xf16>
  %rk = arith.remsi %known, %c4 : i64
  %wk = arith.cmpi eq, %rk, %c0 : i64
  tile.assume_true %wk
  %column = tile.view_stride %b, 1 : !tile.view<2xf16>
  %rc = arith.remsi %column, %c2 : i64
  %wc = arith.cmpi eq, %rc, %c0 : i64
  tile.assume_true %wc
  scf.if %is {
    %rows = tile.view_dim %b, 0 : !tile.view<2xf16>
    %ro = arith.remsi %rows, %c4 : i64
    %wo = arith.cmpi eq, %ro, %c0 : i64
    tile.assume_true %wo
  }
  return
}

// The power of two of a multiple, beside what is known.
// CHECK-LABEL: func.func @powers_of_two(
// CHECK-SAME: %arg0: !tile.view<2xf16> {tile.stride_multiple_of = array<i32: 24, 1>}
func.func @powers_of_two(%a: !tile.view<2xf16> {tile.stride_multiple_of = array<i32: 6, 1>}) attributes {tile.kernel} {
  %z = arith.constant 0 : i32
  %c40 = arith.constant 40 : i32
  %stride = tile.view_stride %a, 0 : !tile.view<2xf16>
  %narrow = arith.trunci %stride : i64 to i32
  %rest = arith.remsi %narrow, %c40 : i32
  %whole = arith.cmpi eq, %rest, %z : i32
  tile.assume_true %whole
  return
}
