// What a loop divides by without changing it becomes a factor and a shift in front of the loop: the upper half of a
// product for each division, signed or not; a multiplication and an addition where dividends are not negative.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry signed(
// CHECK-NOT: {{rem|div}}.{{s|u}}32
// CHECK: rcp.approx.ftz.f64
// CHECK-NOT: {{rcp|rem|div}}.
// CHECK: $L__BB{{.*}}:
// CHECK-NOT: fma.rn.f64
// CHECK-COUNT-4: mul.hi.s32
// CHECK-NOT: {{rem|div}}.{{s|u}}32
// CHECK: ret;
func.func @signed(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %trips: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 512 : i32
  %i = tile.iota : tensor<512xi32>
  %by = tile.splat %n : i32 -> tensor<512xi32>
  scf.for %k = %c0 to %trips step %c1 : i32 {
    %start = arith.muli %k, %size : i32
    %s = tile.splat %start : i32 -> tensor<512xi32>
    %at = arith.addi %s, %i : tensor<512xi32>
    %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %r = arith.remsi %v, %by : tensor<512xi32>
    tile.scatter %r, %y offsets %at : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  }
  return
}

// -----
// CHECK-LABEL: .entry unsigned(
// CHECK: rcp.approx.ftz.f64
// CHECK: $L__BB{{.*}}:
// CHECK-COUNT-4: mov.b64 {_, %r{{[0-9]+}}}, %rd
// CHECK-NOT: {{rem|div}}.{{s|u}}32
// CHECK: ret;
func.func @unsigned(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %trips: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 512 : i32
  %i = tile.iota : tensor<512xi32>
  %by = tile.splat %n : i32 -> tensor<512xi32>
  scf.for %k = %c0 to %trips step %c1 : i32 {
    %start = arith.muli %k, %size : i32
    %s = tile.splat %start : i32 -> tensor<512xi32>
    %at = arith.addi %s, %i : tensor<512xi32>
    %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %q = arith.divui %v, %by : tensor<512xi32>
    tile.scatter %q, %y offsets %at : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  }
  return
}

// -----
// Not: the loop changes what it divides by; few divisions without a loop.
// CHECK-LABEL: .entry changed(
// CHECK-NOT: rcp.approx
// CHECK: rem.s32
func.func @changed(%y: !tile.ptr<i32>, %trips: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
  scf.for %k = %c1 to %trips step %c1 : i32 {
    %m = arith.addi %k, %n : i32
    %by = tile.splat %m : i32 -> tensor<128xi32>
    %r = arith.remsi %i, %by : tensor<128xi32>
    tile.scatter %r, %y offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  }
  return
}
// -----
// CHECK-LABEL: .entry few(
// CHECK-NOT: rcp.approx
// CHECK: rem.u32
func.func @few(%y: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<256xi32>
  %by = tile.splat %n : i32 -> tensor<256xi32>
  %r = arith.remui %i, %by : tensor<256xi32>
  tile.scatter %r, %y offsets %i : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
  return
}

// -----
// Nor in loops of which an outer one changes what they divide by: it may divide few times before that.
// CHECK-LABEL: .entry of_an_outer_loop(
// CHECK-NOT: rcp.approx
// CHECK: rem.s32
// CHECK: ret;
func.func @of_an_outer_loop(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %trips: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %trips step %c1 : i32 {
    %at = tile.ptr_add %x, %k : !tile.ptr<i32>, i32
    %by = tile.gather %at : !tile.ptr<i32> -> i32
    scf.for %i = %c0 to %by step %c1 : i32 {
      %v = arith.muli %i, %n : i32
      %sum = arith.remsi %v, %by : i32
      %to = tile.ptr_add %y, %i : !tile.ptr<i32>, i32
      tile.scatter %sum, %to : i32, !tile.ptr<i32>
    }
  }
  return
}
