// Comparisons that ranges decide become constants, and what only they guarded goes with them.
// RUN: tile-opt %s -split-input-file -tile-simplify-masks -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @always(
// CHECK-NOT: mask
// CHECK: return
func.func @always(%p: !tile.ptr<f32>) {
  %iota = tile.iota : tensor<64xi32>
  %bound = arith.constant dense<64> : tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %other = arith.constant dense<1.0> : tensor<64xf32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> other %other : tensor<64xf32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// CHECK-LABEL: func.func @never(
// CHECK-NOT: tile.gather
// CHECK: tile.scatter %{{.*}}, %arg0 offsets
// CHECK-NOT: tile.scatter
func.func @never(%p: !tile.ptr<f32>) {
  %iota = tile.iota from 64 : tensor<64xi32>
  %bound = arith.constant dense<64> : tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %other = arith.constant dense<1.0> : tensor<64xf32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> other %other : tensor<64xf32> : !tile.ptr<f32> -> tensor<64xf32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// Nothing is known about n: the mask stays. A wrap of the sum is possible, so it is not decided either.
// CHECK-LABEL: func.func @unknown(
// CHECK: tile.gather {{.*}} mask
// CHECK: tile.gather {{.*}} mask
func.func @unknown(%p: !tile.ptr<f32>, %n: i32) {
  %iota = tile.iota : tensor<64xi32>
  %bound = tile.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %iota, %bound : tensor<64xi32>
  %v = tile.gather %p offsets %iota : tensor<64xi32> mask %mask : tensor<64xi1> : !tile.ptr<f32> -> tensor<64xf32>
  %sum = arith.addi %iota, %bound : tensor<64xi32>
  %later = arith.cmpi sge, %sum, %bound : tensor<64xi32>
  %w = tile.gather %p offsets %iota : tensor<64xi32> mask %later : tensor<64xi1> : !tile.ptr<f32> -> tensor<64xf32>
  %s = arith.addf %v, %w : tensor<64xf32>
  tile.scatter %s, %p offsets %iota : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// A loop that counts by 64 to a multiple of 64 covers nothing behind its end; written either way.
// CHECK-LABEL: func.func @whole_steps(
// CHECK-NOT: mask
// CHECK: return
func.func @whole_steps(%p: !tile.ptr<f32>, %n: i32 {tile.multiple_of = 64 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %other = arith.constant dense<1.0> : tensor<64xf32>
  %iota = tile.iota : tensor<64xi32>
  scf.for %k = %c0 to %n step %c64 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %iota : tensor<64xi32>
    %end = tile.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %at, %end : tensor<64xi32>
    %v = tile.gather %p offsets %at : tensor<64xi32> mask %inside : tensor<64xi1> other %other : tensor<64xf32> : !tile.ptr<f32> -> tensor<64xf32>
    %rest = arith.subi %n, %k : i32
    %left = tile.splat %rest : i32 -> tensor<64xi32>
    %near = arith.cmpi sgt, %left, %iota : tensor<64xi32>
    tile.scatter %v, %p offsets %at : tensor<64xi32> mask %near : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  }
  return
}

// -----

// Not where the end is no multiple of the step, the tile is longer than the step, or the bound is another one.
// CHECK-LABEL: func.func @parts(
// CHECK: tile.scatter {{.*}} mask
// CHECK: tile.scatter {{.*}} mask
// CHECK: tile.scatter {{.*}} mask
func.func @parts(%p: !tile.ptr<f32>, %n: i32 {tile.multiple_of = 32 : i32}, %m: i32 {tile.multiple_of = 64 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %v = arith.constant dense<1.0> : tensor<64xf32>
  %iota = tile.iota : tensor<64xi32>
  scf.for %k = %c0 to %n step %c64 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %iota : tensor<64xi32>
    %end = tile.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %at, %end : tensor<64xi32>
    tile.scatter %v, %p offsets %at : tensor<64xi32> mask %inside : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  }
  scf.for %k = %c0 to %n step %c32 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %iota : tensor<64xi32>
    %end = tile.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %at, %end : tensor<64xi32>
    tile.scatter %v, %p offsets %at : tensor<64xi32> mask %inside : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  }
  scf.for %k = %c0 to %m step %c64 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %iota : tensor<64xi32>
    %end = tile.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %at, %end : tensor<64xi32>
    tile.scatter %v, %p offsets %at : tensor<64xi32> mask %inside : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  }
  return
}

// -----

// A count of what is known not to be negative needs no look (program_id, and what is 0 or more already); one of what is
// left does.
// CHECK-LABEL: func.func @counts
// CHECK-SAME: %[[N:.*]]: i32, %
// CHECK: %[[ID:.*]] = tile.program_id
// CHECK: arith.ceildivui %[[ID]], %c64{{.*}} : i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %c64
// CHECK: %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK: arith.ceildivui %[[SOME]], %c64{{.*}} : i32
// CHECK: arith.ceildivui %[[SOME]], %c32{{.*}} : i32
func.func @counts(%n: i32, %p: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %id = tile.program_id 0
  %clamped = arith.maxsi %id, %c0 : i32
  %whole = arith.ceildivui %clamped, %c64 : i32
  %left = arith.subi %n, %c64 : i32
  %some = arith.maxsi %left, %c0 : i32
  %rest = arith.ceildivui %some, %c64 : i32
  %again = arith.maxsi %c0, %some : i32
  %halves = arith.ceildivui %again, %c32 : i32
  %sum = arith.addi %whole, %rest : i32
  %both = arith.addi %sum, %halves : i32
  tile.scatter %both, %p : i32, !tile.ptr<i32>
  return
}

// -----

// Of one bit with a sign, true is -1: nothing is known of what is below 0 then, or above it.
// CHECK-LABEL: func.func @one_bit
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %arg0, %c5{{.*}} : i32
// CHECK: arith.cmpi sge, %[[FEW]], %false : i1
// CHECK: arith.cmpi sgt, %[[FEW]], %true : i1
// CHECK: %[[AB:.*]] = arith.xori
// CHECK: arith.xori %[[AB]], %[[FEW]] : i1
func.func @one_bit(%n: i32, %p: !tile.ptr<i1>) attributes {tile.kernel} {
  %c5 = arith.constant 5 : i32
  %no = arith.constant false
  %yes = arith.constant true
  %few = arith.cmpi slt, %n, %c5 : i32
  %a = arith.cmpi sle, %no, %few : i1
  %b = arith.cmpi slt, %yes, %few : i1
  %c = arith.maxsi %yes, %few : i1
  %ab = arith.xori %a, %b : i1
  %both = arith.xori %ab, %c : i1
  tile.scatter %both, %p : i1, !tile.ptr<i1>
  return
}

// -----

// Of the smallest of two ends that one bounds which not all counts are in front of.
// CHECK-LABEL: func.func @of_two(
// CHECK-SAME: %{{.*}}: !tile.ptr<f32>, %[[N:[^ ]*]]: i32
// CHECK: %[[IOTA:.*]] = tile.iota : tensor<64xi32>
// CHECK: %[[END:.*]] = tile.splat %[[N]]
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[IOTA]], %[[END]]
// CHECK: tile.scatter {{.*}} mask %[[IN]]
// CHECK: %[[LEAST:.*]] = arith.minsi %[[N]], %c63_i32
// CHECK: %[[SHORT:.*]] = tile.splat %[[LEAST]]
// CHECK: %[[SAME:.*]] = tile.splat %[[N]]
// CHECK: %[[UPTO:.*]] = arith.cmpi sge, %[[SAME]], %[[IOTA]]
// CHECK: tile.scatter {{.*}} mask %[[UPTO]]
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[IOTA]], %[[SHORT]]
// CHECK: tile.scatter {{.*}} mask %[[SOME]]
func.func @of_two(%p: !tile.ptr<f32>, %n: i32) {
  %iota = tile.iota : tensor<64xi32>
  %v = arith.constant dense<1.0> : tensor<64xf32>
  %c64 = arith.constant 64 : i32
  %c63 = arith.constant 63 : i32
  %all = arith.minsi %c64, %n : i32
  %alls = tile.splat %all : i32 -> tensor<64xi32>
  %in = arith.cmpi slt, %iota, %alls : tensor<64xi32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %in : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  %few = arith.minsi %n, %c63 : i32
  %fews = tile.splat %few : i32 -> tensor<64xi32>
  %upto = arith.cmpi sge, %fews, %iota : tensor<64xi32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %upto : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  %some = arith.cmpi slt, %iota, %fews : tensor<64xi32>
  tile.scatter %v, %p offsets %iota : tensor<64xi32> mask %some : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  return
}
