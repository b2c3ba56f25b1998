// Fields of records are read as one vector by each thread, written and added to as one, where records are aligned so and
// all of it is wanted.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Four floats of a record of six: two pairs; what the mask leaves out reads as its value.
// CHECK-LABEL: .entry pairs(
// CHECK-COUNT-2: ld.global.v2.b32
// CHECK-NOT: ld.global{{.*}}b32
// CHECK: ret;
func.func @pairs(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %3 = arith.constant 3 : i32
  %six = arith.constant dense<6> : tensor<128xi32>
  %most = arith.constant dense<1000> : tensor<128xi32>
  %other = arith.constant dense<1.0> : tensor<128xf32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %at = arith.muli %hash, %six : tensor<128xi32>
  %in = arith.cmpi slt, %hash, %most : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x, %3 : !tile.ptr<f32>, i32
  %b = tile.gather %x1 offsets %at : tensor<128xi32> mask %in : tensor<128xi1> other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %a = tile.gather %x offsets %at : tensor<128xi32> mask %in : tensor<128xi1> other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %c = tile.gather %x2 offsets %at : tensor<128xi32> mask %in : tensor<128xi1> other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %d = tile.gather %x3 offsets %at : tensor<128xi32> mask %in : tensor<128xi1> other %other : tensor<128xf32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.subf %a, %b : tensor<128xf32>
  %t = arith.divf %c, %d : tensor<128xf32>
  %u = arith.divf %s, %t : tensor<128xf32>
  tile.store %u, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// All of a record of four bytes, side by side: one word.
// CHECK-LABEL: .entry bytes(
// CHECK-COUNT-1: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @bytes(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.view<1xi8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %3 = arith.constant 3 : i32
  %four = arith.constant dense<4> : tensor<128xi32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %at = arith.muli %hash, %four : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<i8>, i32
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<i8>, i32
  %x3 = tile.ptr_add %x, %3 : !tile.ptr<i8>, i32
  %a = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %b = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %c = tile.gather %x2 offsets %at : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %d = tile.gather %x3 offsets %at : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %s = arith.muli %a, %b : tensor<128xi8>
  %t = arith.subi %c, %d : tensor<128xi8>
  %u = arith.muli %s, %t : tensor<128xi8>
  tile.store %u, %y[%c0 : i32] : tensor<128xi8>, !tile.view<1xi8>
  return
}

// -----
// Not: records of three, which begin anywhere; half of a pair; a store between; another mask.
// CHECK-LABEL: .entry apart(
// CHECK-NOT: ld.global.v2
// CHECK: ret;
func.func @apart(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %3 = arith.constant 3 : i32
  %4 = arith.constant 4 : i32
  %5 = arith.constant 5 : i32
  %three = arith.constant dense<3> : tensor<128xi32>
  %six = arith.constant dense<6> : tensor<128xi32>
  %most = arith.constant dense<1000> : tensor<128xi32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %in = arith.cmpi slt, %hash, %most : tensor<128xi32>
  %at3 = arith.muli %hash, %three : tensor<128xi32>
  %at6 = arith.muli %hash, %six : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x, %3 : !tile.ptr<f32>, i32
  %x4 = tile.ptr_add %x, %4 : !tile.ptr<f32>, i32
  %x5 = tile.ptr_add %x, %5 : !tile.ptr<f32>, i32
  %a = tile.gather %x offsets %at3 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.gather %x1 offsets %at3 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %c = tile.gather %x1 offsets %at6 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %d = tile.gather %x2 offsets %at6 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %a, %x offsets %at3 : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %e = tile.gather %x3 offsets %at6 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %f = tile.gather %x4 offsets %at6 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %g = tile.gather %x5 offsets %at6 : tensor<128xi32> mask %in : tensor<128xi1> : !tile.ptr<f32> -> tensor<128xf32>
  tile.store %b, %y[%1, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  tile.store %c, %y[%2, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  tile.store %d, %y[%3, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  tile.store %e, %y[%4, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  tile.store %f, %y[%5, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  tile.store %g, %y[%5, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
  return
}

// -----
// Sums and counts of cells: a pair is added at once, by the second addition.
// CHECK-LABEL: .entry cells(
// CHECK-COUNT-1: red.relaxed.gpu.global.add.v2.f32
// CHECK-NOT: red.
// CHECK: ret;
func.func @cells(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %n = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %v = tile.load %y[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %a = tile.atomic_rmw add relaxed gpu %x offsets %at : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %b = tile.atomic_rmw add relaxed gpu %x1 offsets %at : tensor<128xi32>, %one : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  return
}

// -----
// What is read between them sees the first addition of its thread, and words of odd places are in no pair.
// CHECK-LABEL: .entry apart(
// CHECK: red.relaxed.gpu.global.add.f32
// CHECK: ld.global
// CHECK: red.relaxed.gpu.global.add.f32
// CHECK: red.relaxed.gpu.global.add.f32
// CHECK: ret;
func.func @apart(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %n = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<f32>, i32
  %a = tile.atomic_rmw add relaxed gpu %x offsets %at : tensor<128xi32>, %one : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %v = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.atomic_rmw add relaxed gpu %x1 offsets %at : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  %d = tile.atomic_rmw add relaxed gpu %x2 offsets %at : tensor<128xi32>, %v : !tile.ptr<f32>, tensor<128xf32> -> tensor<128xf32>
  return
}

// -----
// The number of the field and the place of the program are one sum: the place is a multiple of the record.
// CHECK-LABEL: .entry placed(
// CHECK-COUNT-1: ld.global.v2.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @placed(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %c256 = arith.constant 256 : i64
  %two = arith.constant dense<2> : tensor<128xi32>
  %pid = tile.program_id 0
  %wide = arith.extsi %pid : i32 to i64
  %place = arith.muli %wide, %c256 : i64
  %next = arith.addi %place, %c1 : i64
  %n = tile.iota : tensor<128xi32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x0 = tile.ptr_add %x, %place : !tile.ptr<f32>, i64
  %x1 = tile.ptr_add %x, %next : !tile.ptr<f32>, i64
  %a = tile.gather %x0 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.divf %a, %b : tensor<128xf32>
  tile.store %s, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// A place of which nothing is known, and a sum that may wrap: one by one.
// CHECK-LABEL: .entry apart(
// CHECK-NOT: ld.global.v2
// CHECK: ret;
func.func @apart(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %m: i64, %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %next = arith.addi %m, %c1 : i64
  %wraps = arith.addi %k, %one : i32
  %n = tile.iota : tensor<128xi32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x0 = tile.ptr_add %x, %m : !tile.ptr<f32>, i64
  %x1 = tile.ptr_add %x, %next : !tile.ptr<f32>, i64
  %x2 = tile.ptr_add %x, %k : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x, %wraps : !tile.ptr<f32>, i32
  %a = tile.gather %x0 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %c = tile.gather %x2 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %d = tile.gather %x3 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.divf %a, %b : tensor<128xf32>
  %t = arith.divf %c, %d : tensor<128xf32>
  %u = arith.divf %s, %t : tensor<128xf32>
  tile.store %u, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// Fields written one after the other are written by the last of them; a read between them, and a field that is written
// twice, keep their order.
// CHECK-LABEL: .entry written(
// CHECK-NOT: bar.sync
// CHECK-COUNT-1: st.global.v2.b32
// CHECK-NOT: st.global
// CHECK: ret;
// CHECK-LABEL: .entry read_between(
// CHECK: st.global.b32
// CHECK-NOT: st.global.v2
// CHECK: ret;
// CHECK-LABEL: .entry twice(
// CHECK: mul.{{.*}}f32 [[B:%r[0-9]+]],
// CHECK: st.global.v2.b32 [%{{.*}}], {[[B]], %r{{[0-9]+}}};
// CHECK: ret;
func.func @written(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %v: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %n = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %a = tile.load %v[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  tile.scatter %a, %x offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %b = arith.mulf %a, %a : tensor<128xf32>
  tile.scatter %b, %x1 offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
func.func @read_between(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %v: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %n = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %a = tile.load %v[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  tile.scatter %a, %x offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %b = tile.gather %x offsets %n : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %b, %x1 offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
func.func @twice(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: !tile.view<1xi32>, %v: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %n = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %a = tile.load %v[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %at = arith.muli %n, %two : tensor<128xi32>
  %b = arith.mulf %a, %a : tensor<128xf32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  tile.scatter %a, %x offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %b, %x offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %a, %x1 offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// The fields of one record, read by all threads.
// CHECK-LABEL: .entry of_all(
// CHECK-COUNT-1: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @of_all(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %i: i32, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %at = arith.muli %i, %c4 : i32
  %x0 = tile.ptr_add %x, %at : !tile.ptr<f32>, i32
  %x1 = tile.ptr_add %x0, %c1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x0, %c2 : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x0, %c3 : !tile.ptr<f32>, i32
  %a = tile.gather %x0 : !tile.ptr<f32> -> f32
  %b = tile.gather %x1 : !tile.ptr<f32> -> f32
  %c = tile.gather %x2 : !tile.ptr<f32> -> f32
  %d = tile.gather %x3 : !tile.ptr<f32> -> f32
  %s = arith.divf %a, %b : f32
  %t = arith.divf %c, %d : f32
  %u = arith.mulf %s, %t : f32
  %v = tile.splat %u : f32 -> tensor<128xf32>
  tile.store %v, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// Three fields of a record of four are one access all the same; two of one half are a pair.
// CHECK-LABEL: .entry three_of_four(
// CHECK-COUNT-1: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @three_of_four(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %four = arith.constant dense<4> : tensor<128xi32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %at = arith.muli %hash, %four : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<f32>, i32
  %a = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %c = tile.gather %x2 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.addf %a, %b : tensor<128xf32>
  %t = arith.mulf %s, %c : tensor<128xf32>
  tile.store %t, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// CHECK-LABEL: .entry two_of_four(
// CHECK-COUNT-1: ld.global.v2.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @two_of_four(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %2 = arith.constant 2 : i32
  %3 = arith.constant 3 : i32
  %four = arith.constant dense<4> : tensor<128xi32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %at = arith.muli %hash, %four : tensor<128xi32>
  %x2 = tile.ptr_add %x, %2 : !tile.ptr<f32>, i32
  %x3 = tile.ptr_add %x, %3 : !tile.ptr<f32>, i32
  %a = tile.gather %x2 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %b = tile.gather %x3 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.addf %a, %b : tensor<128xf32>
  tile.store %s, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----
// A store through another argument stands between them: it changes nothing that they read.
// CHECK-LABEL: .entry beside(
// CHECK-COUNT-1: ld.global.v2.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @beside(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.view<1xf32>, %z: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %n = tile.iota : tensor<128xi32>
  %hash = arith.muli %n, %n : tensor<128xi32>
  %at = arith.muli %hash, %two : tensor<128xi32>
  %x1 = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %a = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.store %a, %y[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  %b = tile.gather %x1 offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.store %b, %z[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}
