// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Views of a matrix of which every program has its own are parts of a view of all of them, which the launch describes.

// Head %h of sequence %b, [T, 64] of an array [B, T, 8, 64]: two dims in front. What is stored behind the loop as well;
// what it stores in every iteration stays.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[Q:[^:]*]]: !tile.ptr<f16> {tile.align = 16 : i32}, %[[T:[^:]*]]: i32
// CHECK: %[[B:.*]] = arith.divsi
// CHECK: %[[H:.*]] = arith.remsi
// CHECK: %[[T64:.*]] = arith.extsi %[[T]] : i32 to i64
// CHECK: %[[FAR:.*]] = arith.muli %[[T64]], %c512_i64
// CHECK: %[[V:.*]] = tile.make_view %[[Q]], dims(%[[ANY:.*]], %[[ANY]], %[[T64]], %c64_i64), strides(%[[FAR]], %c64_i64, %c512_i64, %c1_i64) {tile.of_launch} : <f16> -> <4xf16>
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: tile.load %[[V]][%[[B]], %[[H]], %[[I]], %c0_i32 : i32, i32, i32, i32] : <4xf16> -> tensor<64x64xf16>
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[I]], %c0_i32 : i32, i32] : tensor<64x64xf16>, <2xf16>
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[B]], %[[H]], %c0_i32, %c0_i32 : i32, i32, i32, i32] : tensor<64x64xf16>, <4xf16>
func.func @heads(%q: !tile.ptr<f16> {tile.align = 16 : i32}, %t: i32, %y: !tile.ptr<f16> {tile.align = 16 : i32}, %z: !tile.ptr<f16> {tile.align = 16 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 64 : i64
  %pitch = arith.constant 512 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %b = arith.divsi %pid, %c8 : i32
  %h = arith.remsi %pid, %c8 : i32
  %bt = arith.muli %b, %t : i32
  %bth = arith.muli %bt, %c8 : i32
  %row = arith.addi %bth, %h : i32
  %at = arith.muli %row, %c64 : i32
  %t64 = arith.extsi %t : i32 to i64
  %qp = tile.ptr_add %q, %at : !tile.ptr<f16>, i32
  %v = tile.make_view %qp, dims(%t64, %width), strides(%pitch, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %yp = tile.ptr_add %y, %at : !tile.ptr<f16>, i32
  %w = tile.make_view %yp, dims(%width, %width), strides(%pitch, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %zp = tile.ptr_add %z, %at : !tile.ptr<f16>, i32
  %u = tile.make_view %zp, dims(%t64, %width), strides(%pitch, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %i = %c0 to %t step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %v[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    tile.store %x, %u[%i, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
    %d = tile.dot %x, %x, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %o = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %o, %w[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  return
}

// Counts with the same stride are one dim, also where their number is no product of arguments: state b * NT + i, NT the
// chunks of T. The view is the same in all iterations.
// CHECK-LABEL: func.func @states(
// CHECK: scf.for %[[I:.*]] = %c0_i32
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[I]] : i32
// CHECK: tile.load %{{.*}}[%[[AT]], %c0_i32, %c0_i32 : i32, i32, i32] : <3xf16> -> tensor<64x64xf16>
func.func @states(%s: !tile.ptr<f16> {tile.align = 16 : i32}, %t: i32, %y: !tile.view<2xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c4096 = arith.constant 4096 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %b = tile.program_id 0
  %t0 = arith.maxsi %t, %c0 : i32
  %nt = arith.ceildivui %t0, %c64 : i32
  %bnt = arith.muli %b, %nt : i32
  %r = scf.for %i = %c0 to %nt step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %n = arith.addi %bnt, %i : i32
    %at = arith.muli %n, %c4096 : i32
    %sp = tile.ptr_add %s, %at : !tile.ptr<f16>, i32
    %v = tile.make_view %sp, dims(%width, %width), strides(%width, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    %x = tile.load %v[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %x, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// Matrices that may lie in front of the first one, that begin at no multiple of 16 bytes of each other, or that have as
// many rows as memory says, stay views of one program.
// CHECK-LABEL: func.func @own(
// CHECK-COUNT-3: tile.load %{{.*}} : <2xf16> -> tensor<64x64xf16>
// CHECK-NOT: tile.load %{{.*}} : <3xf16>
func.func @own(%q: !tile.ptr<f16> {tile.align = 16 : i32}, %sizes: !tile.ptr<i32>, %t: i32, %y: !tile.view<2xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c4096 = arith.constant 4096 : i32
  %one = arith.constant 1 : i64
  %width = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %before = arith.subi %t, %pid : i32
  %far = arith.muli %before, %c4096 : i32
  %ap = tile.ptr_add %q, %far : !tile.ptr<f16>, i32
  %a = tile.make_view %ap, dims(%width, %width), strides(%width, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %near = arith.muli %pid, %c4 : i32
  %bp = tile.ptr_add %q, %near : !tile.ptr<f16>, i32
  %b = tile.make_view %bp, dims(%width, %width), strides(%width, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %own = arith.muli %pid, %c4096 : i32
  %cp = tile.ptr_add %q, %own : !tile.ptr<f16>, i32
  %sizep = tile.ptr_add %sizes, %pid : !tile.ptr<i32>, i32
  %size = tile.gather %sizep : !tile.ptr<i32> -> i32
  %rows = arith.extsi %size : i32 to i64
  %c = tile.make_view %cp, dims(%rows, %width), strides(%width, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %i = %c0 to %t step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %a[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %z = tile.load %b[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %u = tile.load %c[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %z, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %e = tile.dot %x, %u, %d : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
