// Places of a thread that are constants apart share the division of the first one.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Eight places: the first one and their distance are divided; threads with negative places divide all eight, by a
// factor (known_divisors.mlir).
// CHECK-LABEL: .entry ring(
// CHECK-COUNT-2: rem.u32
// CHECK-COUNT-7: min.u32
// CHECK: rcp.approx.ftz.f64
// CHECK-COUNT-8: mul.hi.s32
// CHECK-NOT: rem.
// CHECK: ret;
func.func @ring(%y: !tile.view<1xi32>, %start: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<1024xi32>
  %s = tile.splat %start : i32 -> tensor<1024xi32>
  %by = tile.splat %n : i32 -> tensor<1024xi32>
  %x = arith.addi %s, %i : tensor<1024xi32>
  %r = arith.remsi %x, %by : tensor<1024xi32>
  tile.store %r, %y[%c0 : i32] : tensor<1024xi32>, !tile.view<1xi32>
  return
}

// -----
// Not: two places; a divisor for each; places that are no constants apart; what a loop behind it makes small.
// CHECK-LABEL: .entry two(
// CHECK-NOT: min.u32
// CHECK: ret;
func.func @two(%y: !tile.view<1xi32>, %start: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<256xi32>
  %by = tile.splat %n : i32 -> tensor<256xi32>
  %r = arith.remsi %i, %by : tensor<256xi32>
  tile.store %r, %y[%c0 : i32] : tensor<256xi32>, !tile.view<1xi32>
  return
}

// -----
// CHECK-LABEL: .entry squares(
// CHECK-NOT: min.u32
// CHECK: ret;
func.func @squares(%y: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<1024xi32>
  %x = arith.muli %i, %i : tensor<1024xi32>
  %by = tile.splat %n : i32 -> tensor<1024xi32>
  %r = arith.remsi %x, %by : tensor<1024xi32>
  %q = arith.remsi %by, %i : tensor<1024xi32>
  %s = arith.addi %r, %q : tensor<1024xi32>
  tile.store %s, %y[%c0 : i32] : tensor<1024xi32>, !tile.view<1xi32>
  return
}

// -----
// CHECK-LABEL: .entry rows(
// CHECK-NOT: min.u32
// CHECK: ret;
func.func @rows(%x: !tile.ptr<f32>, %y: !tile.view<1xf32>, %m: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %i = tile.iota : tensor<1024xi32>
  %by = tile.splat %n : i32 -> tensor<1024xi32>
  %r = arith.remsi %i, %by : tensor<1024xi32>
  %sum = scf.for %k = %c0 to %m step %c1 iter_args(%s = %zero) -> (tensor<1024xf32>) : i32 {
    %at = tile.ptr_add %x, %k : !tile.ptr<f32>, i32
    %v = tile.gather %at offsets %r : tensor<1024xi32> : !tile.ptr<f32> -> tensor<1024xf32>
    %t = arith.addf %s, %v : tensor<1024xf32>
    scf.yield %t : tensor<1024xf32>
  }
  tile.store %sum, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----
// Places next to each other that a multiple of 16 does not part: one division for each run of four, and remainders that
// count up.
// CHECK-LABEL: .entry runs(
// CHECK-COUNT-2: div.u32
// CHECK-NOT: {{div|rem}}.
// CHECK: ret;
func.func @runs(%y: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<1024xi32>
  %by = tile.splat %n : i32 -> tensor<1024xi32>
  %q = arith.divui %i, %by : tensor<1024xi32>
  %r = arith.remui %i, %by : tensor<1024xi32>
  %s = arith.muli %q, %r : tensor<1024xi32>
  tile.scatter %s, %y offsets %i : tensor<1024xi32> : tensor<1024xi32>, !tile.ptr<i32>
  return
}
