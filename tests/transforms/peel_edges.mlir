// Programs wholly inside a picture read neighbours without clamps and masks of places, and boxes without bounds.
// RUN: tile-opt %s -split-input-file --tile-peel-edges --canonicalize --cse | FileCheck %s

// Of the two sides that are clamped the farthest places decide: start - 0 >= 0 (and as 32 bits), start + 127 + 1 < n.
// CHECK-LABEL: func.func @clamped
// CHECK: %[[START:.*]] = arith.muli
// CHECK: %[[WIDE:.*]] = arith.extsi %[[START]] : i32 to i64
// CHECK: scf.if
// CHECK-NOT: arith.maxsi
// CHECK-NOT: arith.minsi
// CHECK: tile.gather
// CHECK: tile.scatter
// CHECK: } else {
// CHECK: tile.gather
// CHECK: tile.scatter
// CHECK: return
func.func @clamped(%p: !tile.ptr<i8>, %q: !tile.ptr<i8>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %one = arith.constant dense<1> : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %right = arith.addi %x, %one : tensor<128xi32>
  %low = arith.maxsi %right, %zero : tensor<128xi32>
  %at = arith.minsi %low, %last : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %o = tile.ptr_add %qs, %x : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  tile.scatter %v, %o : tensor<128xi8>, tensor<128x!tile.ptr<i8>>
  return
}

// -----

// Four reads under masks of their own; what the block leaves comes out of both ways.
// CHECK-LABEL: func.func @masked
// CHECK: %[[R:.*]] = scf.if {{.*}} -> (tensor<128xf32>)
// CHECK-COUNT-4: tile.gather %{{[^ ]*}} : tensor<128x!tile.ptr<f32>>
// CHECK: scf.yield
// CHECK: } else {
// CHECK-COUNT-4: tile.gather %{{[^ ]*}} mask
// CHECK: scf.yield
// CHECK: return %[[R]]
func.func @masked(%p: !tile.ptr<f32>, %start: i32, %n: i32) -> tensor<128xf32> {
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x0 = arith.addi %s, %i : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %end = tile.splat %n : i32 -> tensor<128xi32>
  %x1 = arith.addi %x0, %one : tensor<128xi32>
  %x2 = arith.addi %x1, %one : tensor<128xi32>
  %x3 = arith.addi %x2, %one : tensor<128xi32>
  %m0 = arith.cmpi slt, %x0, %end : tensor<128xi32>
  %m1 = arith.cmpi slt, %x1, %end : tensor<128xi32>
  %m2 = arith.cmpi slt, %x2, %end : tensor<128xi32>
  %m3 = arith.cmpi slt, %x3, %end : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %a0 = tile.ptr_add %ps, %x0 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a1 = tile.ptr_add %ps, %x1 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a2 = tile.ptr_add %ps, %x2 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a3 = tile.ptr_add %ps, %x3 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v0 = tile.gather %a0 mask %m0 : tensor<128xi1> : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %v1 = tile.gather %a1 mask %m1 : tensor<128xi1> : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %v2 = tile.gather %a2 mask %m2 : tensor<128xi1> : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %v3 = tile.gather %a3 mask %m3 : tensor<128xi1> : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %s0 = arith.addf %v0, %v1 : tensor<128xf32>
  %s1 = arith.addf %v2, %v3 : tensor<128xf32>
  %r = arith.addf %s0, %s1 : tensor<128xf32>
  return %r : tensor<128xf32>
}

// -----

// A single mask is not worth a copy of the code; nor are places that are read from memory clamped in one order only.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: scf.if
func.func @left_alone(%p: !tile.ptr<i32>, %n: i32) -> tensor<128xi32> {
  %i = tile.iota : tensor<128xi32>
  %end = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %end : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  %a = tile.ptr_add %ps, %i : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
  %v = tile.gather %a mask %m : tensor<128xi1> : tensor<128x!tile.ptr<i32>> -> tensor<128xi32>
  %c = arith.minsi %v, %end : tensor<128xi32>
  %b = tile.ptr_add %ps, %c : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
  %w = tile.gather %b mask %m : tensor<128xi1> : tensor<128x!tile.ptr<i32>> -> tensor<128xi32>
  return %w : tensor<128xi32>
}

// -----

// Sums of sums are walked once each, not 2^28 times; and factors that conditions of 64 bits have no room for end it.
// CHECK-LABEL: func.func @doubled
// CHECK-NOT: scf.if
func.func @doubled(%p: !tile.ptr<i8>, %start: i32, %n: i32) -> tensor<128xi8> {
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x0 = arith.addi %s, %i : tensor<128xi32>
  %x1 = arith.addi %x0, %x0 : tensor<128xi32>
  %x2 = arith.addi %x1, %x1 : tensor<128xi32>
  %x3 = arith.addi %x2, %x2 : tensor<128xi32>
  %x4 = arith.addi %x3, %x3 : tensor<128xi32>
  %x5 = arith.addi %x4, %x4 : tensor<128xi32>
  %x6 = arith.addi %x5, %x5 : tensor<128xi32>
  %x7 = arith.addi %x6, %x6 : tensor<128xi32>
  %x8 = arith.addi %x7, %x7 : tensor<128xi32>
  %x9 = arith.addi %x8, %x8 : tensor<128xi32>
  %x10 = arith.addi %x9, %x9 : tensor<128xi32>
  %x11 = arith.addi %x10, %x10 : tensor<128xi32>
  %x12 = arith.addi %x11, %x11 : tensor<128xi32>
  %x13 = arith.addi %x12, %x12 : tensor<128xi32>
  %x14 = arith.addi %x13, %x13 : tensor<128xi32>
  %x15 = arith.addi %x14, %x14 : tensor<128xi32>
  %x16 = arith.addi %x15, %x15 : tensor<128xi32>
  %x17 = arith.addi %x16, %x16 : tensor<128xi32>
  %x18 = arith.addi %x17, %x17 : tensor<128xi32>
  %x19 = arith.addi %x18, %x18 : tensor<128xi32>
  %x20 = arith.addi %x19, %x19 : tensor<128xi32>
  %x21 = arith.addi %x20, %x20 : tensor<128xi32>
  %x22 = arith.addi %x21, %x21 : tensor<128xi32>
  %x23 = arith.addi %x22, %x22 : tensor<128xi32>
  %x24 = arith.addi %x23, %x23 : tensor<128xi32>
  %x25 = arith.addi %x24, %x24 : tensor<128xi32>
  %x26 = arith.addi %x25, %x25 : tensor<128xi32>
  %x27 = arith.addi %x26, %x26 : tensor<128xi32>
  %x28 = arith.addi %x27, %x27 : tensor<128xi32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %at = arith.minsi %x28, %last : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  return %v : tensor<128xi8>
}

// -----

// Places that wrap around: (x + n + 1) % n is x + 1 in a program that lies inside, and floor_mod(x - 1, n) is x - 1.
// CHECK-LABEL: func.func @wrapped
// CHECK-COUNT-2: arith.remsi
// CHECK: scf.if
// CHECK-NOT: arith.remsi
// CHECK-NOT: arith.select
// CHECK: tile.gather
// CHECK-NOT: arith.remsi
// CHECK: } else {
// CHECK: return
func.func @wrapped(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1> : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %n1 = arith.addi %n, %c1 : i32
  %n1s = tile.splat %n1 : i32 -> tensor<128xi32>
  %right = arith.addi %x, %n1s : tensor<128xi32>
  %r = arith.remsi %right, %ns : tensor<128xi32>
  %left = arith.subi %x, %one : tensor<128xi32>
  %rem = arith.remsi %left, %ns : tensor<128xi32>
  %signs = arith.xori %rem, %ns : tensor<128xi32>
  %differ = arith.cmpi slt, %signs, %zero : tensor<128xi32>
  %some = arith.cmpi ne, %rem, %zero : tensor<128xi32>
  %both = arith.andi %differ, %some : tensor<128xi1>
  %more = arith.select %both, %ns, %zero : tensor<128xi1>, tensor<128xi32>
  %l = arith.addi %rem, %more : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %a = tile.ptr_add %ps, %r : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %b = tile.ptr_add %ps, %l : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %w = tile.gather %b : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %sum = arith.addf %v, %w : tensor<128xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %o = tile.ptr_add %qs, %x : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  tile.scatter %sum, %o : tensor<128xf32>, tensor<128x!tile.ptr<f32>>
  return
}

// -----

// Rows and columns of places that run through a whole picture: few programs lie in one row.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK-NOT: scf.if
// CHECK: return
func.func @rows_and_columns(%p: !tile.ptr<f32>, %n: i32) -> tensor<128xf32> {
  %c128 = arith.constant 128 : i32
  %one = arith.constant dense<1> : tensor<128xi32>
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %row = arith.divsi %x, %ns : tensor<128xi32>
  %column = arith.remsi %x, %ns : tensor<128xi32>
  %next = arith.addi %x, %one : tensor<128xi32>
  %other = arith.remsi %next, %ns : tensor<128xi32>
  %sum = arith.addi %row, %column : tensor<128xi32>
  %at = arith.addi %sum, %other : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  return %v : tensor<128xf32>
}

// -----

// Every second place of a row that is clamped: 2 x + 1 <= n at the last of them.
// CHECK-LABEL: func.func @every_second
// CHECK: arith.minsi
// CHECK: scf.if
// CHECK-NOT: arith.minsi
// CHECK: } else {
func.func @every_second(%p: !tile.ptr<f32>, %start: i32, %n: i32) -> tensor<128xf32> {
  %one = arith.constant dense<1> : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %twice = arith.muli %x, %two : tensor<128xi32>
  %right = arith.addi %twice, %one : tensor<128xi32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %at = arith.minsi %right, %last : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  return %v : tensor<128xf32>
}

// -----

// Nine boxes of one view in seven rows: of the places that differ by numbers the farthest decide. What is stored is
// inside, too. (3 <= y, y + 8 + 3 <= rows, 1 <= x, x + 64 + 1 <= columns, and the sizes of what is stored.)
// CHECK-LABEL: func.func @cross
// CHECK-DAG: tile.view_dim %arg0, 0
// CHECK-DAG: tile.view_dim %arg0, 1
// CHECK-DAG: tile.view_dim %arg1, 0
// CHECK-DAG: tile.view_dim %arg1, 1
// CHECK: scf.if
// CHECK-COUNT-9: tile.load {{.*}} {tile.inside}
// CHECK: tile.store {{.*}} {tile.inside}
// CHECK: } else {
// CHECK-NOT: tile.inside
// CHECK-COUNT-9: tile.load
// CHECK: tile.store
// CHECK: return
func.func @cross(%u: !tile.view<2xf32>, %o: !tile.view<2xf32>) {
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %i = tile.program_id 0
  %j = tile.program_id 1
  %y = arith.muli %i, %c8 : i32
  %x = arith.muli %j, %c64 : i32
  %s0 = tile.load %u[%y, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %k1 = arith.constant -3 : i32
  %y1 = arith.addi %y, %k1 : i32
  %v1 = tile.load %u[%y1, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s1 = arith.addf %s0, %v1 : tensor<8x64xf32>
  %k2 = arith.constant -2 : i32
  %y2 = arith.addi %y, %k2 : i32
  %v2 = tile.load %u[%y2, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s2 = arith.addf %s1, %v2 : tensor<8x64xf32>
  %k3 = arith.constant -1 : i32
  %y3 = arith.addi %y, %k3 : i32
  %v3 = tile.load %u[%y3, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s3 = arith.addf %s2, %v3 : tensor<8x64xf32>
  %k4 = arith.constant 1 : i32
  %y4 = arith.addi %y, %k4 : i32
  %v4 = tile.load %u[%y4, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s4 = arith.addf %s3, %v4 : tensor<8x64xf32>
  %k5 = arith.constant 2 : i32
  %y5 = arith.addi %y, %k5 : i32
  %v5 = tile.load %u[%y5, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s5 = arith.addf %s4, %v5 : tensor<8x64xf32>
  %k6 = arith.constant 3 : i32
  %y6 = arith.addi %y, %k6 : i32
  %v6 = tile.load %u[%y6, %x : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s6 = arith.addf %s5, %v6 : tensor<8x64xf32>
  %k7 = arith.constant -1 : i32
  %x7 = arith.addi %x, %k7 : i32
  %v7 = tile.load %u[%y, %x7 : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s7 = arith.addf %s6, %v7 : tensor<8x64xf32>
  %k8 = arith.constant 1 : i32
  %x8 = arith.addi %x, %k8 : i32
  %v8 = tile.load %u[%y, %x8 : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %s8 = arith.addf %s7, %v8 : tensor<8x64xf32>
  tile.store %s8, %o[%y, %x : i32, i32] : tensor<8x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Few boxes, and few rows of them, have few comparisons: nothing would be saved.
// CHECK-LABEL: func.func @four_views
// CHECK-NOT: scf.if
// CHECK: return
func.func @four_views(%a: !tile.view<1xf32>, %b: !tile.view<1xf32>, %c: !tile.view<1xf32>, %d: !tile.view<1xf32>, %i: i32) {
  %x = tile.load %a[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %y = tile.load %b[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %z = tile.load %c[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %s = arith.addf %x, %y : tensor<128xf32>
  %t = arith.addf %s, %z : tensor<128xf32>
  tile.store %t, %d[%i : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}
