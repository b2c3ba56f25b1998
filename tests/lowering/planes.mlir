// Planes of an array of fields, x[field * n + i] with i < n: no element of one is an element of another.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @planes
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @planes(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %c3 = arith.constant 3 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %p = tile.program_id 0
  %b = arith.muli %p, %c128 : i32
  %s = tile.splat %b : i32 -> tensor<128xi32>
  %i = arith.addi %s, %o : tensor<128xi32>
  %e = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %e : tensor<128xi32>
  %w = arith.extsi %b : i32 to i64
  %f0 = tile.ptr_add %x, %w : !tile.ptr<f32>, i64
  tile.scatter %v, %f0 offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  %x1 = tile.ptr_add %x, %n : !tile.ptr<f32>, i32
  %f1 = tile.ptr_add %x1, %w : !tile.ptr<f32>, i64
  tile.scatter %v, %f1 offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  %n3 = arith.muli %n, %c3 : i32
  %x3 = tile.ptr_add %x, %n3 : !tile.ptr<f32>, i32
  %f3 = tile.ptr_add %x3, %w : !tile.ptr<f32>, i64
  tile.scatter %v, %f3 offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// A promise about the planes' size, which is a product: it is the size that the mask compares with all the same.
// CHECK-LABEL: func.func @promised
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @promised(%x: !tile.ptr<f32>, %nx: i32, %ny: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %n = arith.muli %nx, %ny : i32
  %o = tile.iota : tensor<128xi32>
  %p = tile.program_id 0
  %b = arith.muli %p, %c128 : i32
  %s = tile.splat %b : i32 -> tensor<128xi32>
  %i = arith.addi %s, %o : tensor<128xi32>
  %e = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %e : tensor<128xi32>
  %w = arith.extsi %b : i32 to i64
  %known = tile.assume %n multiple_of 1 from 1 to 2147483647 : i32
  %f0 = tile.ptr_add %x, %w : !tile.ptr<f32>, i64
  tile.scatter %v, %f0 offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  %x1 = tile.ptr_add %x, %known : !tile.ptr<f32>, i32
  %f1 = tile.ptr_add %x1, %w : !tile.ptr<f32>, i64
  tile.scatter %v, %f1 offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Groups of four numbers an element, planes of four numbers: the groups fill theirs. Two numbers further on they do not.
// CHECK-LABEL: func.func @groups
// CHECK: tile.scatter
// CHECK-NEXT: tile.scatter
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
// CHECK: return
func.func @groups(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %c4 = arith.constant 4 : i32
  %c6 = arith.constant 6 : i32
  %four = arith.constant dense<4> : tensor<128xi32>
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %i = tile.iota : tensor<128xi32>
  %e = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %e : tensor<128xi32>
  %o = arith.muli %i, %four : tensor<128xi32>
  %n4 = arith.muli %n, %c4 : i32
  %n6 = arith.muli %n, %c6 : i32
  %y = tile.ptr_add %x, %n4 : !tile.ptr<f32>, i32
  %z = tile.ptr_add %x, %n6 : !tile.ptr<f32>, i32
  tile.scatter %v, %x offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %v, %y offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %v, %z offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Eight planes an iteration, the next eight in the next one.
// CHECK-LABEL: func.func @loop
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @loop(%x: !tile.ptr<f32>, %n: i32, %steps: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c7 = arith.constant 7 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %e = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %o, %e : tensor<128xi32>
  scf.for %t = %c0 to %steps step %c1 : i32 {
    %t8 = arith.muli %t, %c8 : i32
    %a = arith.muli %t8, %n : i32
    %p = tile.ptr_add %x, %a : !tile.ptr<f32>, i32
    tile.scatter %v, %p offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
    %t7 = arith.addi %t8, %c7 : i32
    %b = arith.muli %t7, %n : i32
    %q = tile.ptr_add %x, %b : !tile.ptr<f32>, i32
    tile.scatter %v, %q offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// Nine planes with eight between iterations: the last one is the first of the next iteration.
// CHECK-LABEL: func.func @meets
// CHECK: tile.barrier
// CHECK: return
func.func @meets(%x: !tile.ptr<f32>, %n: i32, %steps: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %e = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %o, %e : tensor<128xi32>
  scf.for %t = %c0 to %steps step %c1 : i32 {
    %t8 = arith.muli %t, %c8 : i32
    %a = arith.muli %t8, %n : i32
    %p = tile.ptr_add %x, %a : !tile.ptr<f32>, i32
    tile.scatter %v, %p offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
    %t7 = arith.addi %t8, %c8 : i32
    %b = arith.muli %t7, %n : i32
    %q = tile.ptr_add %x, %b : !tile.ptr<f32>, i32
    tile.scatter %v, %q offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  }
  return
}

// -----
// No mask says that n is more than 127; nor does one of another number.
// CHECK-LABEL: func.func @unknown
// CHECK: tile.barrier
// CHECK: tile.barrier
// CHECK: return
func.func @unknown(%x: !tile.ptr<f32>, %n: i32, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %e = tile.splat %k : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %o, %e : tensor<128xi32>
  %y = tile.ptr_add %x, %n : !tile.ptr<f32>, i32
  %z = tile.ptr_add %y, %n : !tile.ptr<f32>, i32
  tile.scatter %v, %x offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %v, %y offsets %o : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %v, %z offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Planes of rows, x[(field * ny + row) * nx + i] with i < nx: with any rows at all they are apart. The program looks.
// CHECK-LABEL: func.func @planes_of_rows
// CHECK-SAME: (%{{.*}}, %[[NX:.*]]: i32, %[[NY:.*]]: i32)
// CHECK: tile.scatter
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[NY]], %{{.*}} : i32
// CHECK-NEXT: scf.if %[[NONE]] {
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: }
// CHECK-NEXT: tile.scatter
// Other places: nothing is known of them.
// CHECK-NOT: arith.cmpi
// CHECK: tile.barrier
// CHECK-NEXT: tile.scatter
// CHECK: return
func.func @planes_of_rows(%x: !tile.ptr<f32>, %nx: i32, %ny: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %c2 = arith.constant 2 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %p = tile.program_id 0
  %row = tile.program_id 1
  %b = arith.muli %p, %c128 : i32
  %s = tile.splat %b : i32 -> tensor<128xi32>
  %i = arith.addi %s, %o : tensor<128xi32>
  %e = tile.splat %nx : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %e : tensor<128xi32>
  %r = arith.muli %row, %nx : i32
  %rs = tile.splat %r : i32 -> tensor<128xi32>
  %at = arith.addi %rs, %i : tensor<128xi32>
  %plane = arith.muli %nx, %ny : i32
  tile.scatter %v, %x offsets %at : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  %x1 = tile.ptr_add %x, %plane : !tile.ptr<f32>, i32
  tile.scatter %v, %x1 offsets %at : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  %twice = arith.muli %at, %o : tensor<128xi32>
  tile.scatter %v, %x offsets %twice : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Where whole tiles lie inside no mask says so, but the branch does.
// CHECK-LABEL: func.func @whole_tiles
// CHECK: scf.if
// CHECK-NEXT: tile.scatter
// CHECK-NEXT: tile.scatter
// CHECK-NEXT: } else {
// CHECK-NEXT: tile.scatter
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.scatter
func.func @whole_tiles(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c128 = arith.constant 128 : i32
  %c0 = arith.constant 0 : i32
  %v = arith.constant dense<1.0> : tensor<128xf32>
  %o = tile.iota : tensor<128xi32>
  %p = tile.program_id 0
  %b = arith.muli %p, %c128 : i32
  %x1 = tile.ptr_add %x, %n : !tile.ptr<f32>, i32
  %f0 = tile.ptr_add %x, %b : !tile.ptr<f32>, i32
  %f1 = tile.ptr_add %x1, %b : !tile.ptr<f32>, i32
  %e = arith.addi %b, %c128 : i32
  %d = arith.subi %e, %n : i32
  %in = arith.cmpi sle, %d, %c0 : i32
  scf.if %in {
    tile.scatter %v, %f0 offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
    tile.scatter %v, %f1 offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  } else {
    tile.scatter %v, %f0 offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
    tile.scatter %v, %f1 offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  }
  return
}
