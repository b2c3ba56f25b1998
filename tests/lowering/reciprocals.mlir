// 1 / x is the hardware's reciprocal: as exact as a quotient, without its reduction of ranges. Other quotients are not,
// but those by square roots are products by what 1 over the root is.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry reciprocal(
// CHECK-NOT: div.full
// CHECK: rcp.approx.ftz.f32
// CHECK-NOT: div.full
// CHECK: ret;
func.func @reciprocal(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %r = arith.divf %one, %t : tensor<32x32xf32>
  tile.store %r, %y[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----

// CHECK-LABEL: entry quotient(
// CHECK-NOT: rcp.approx
// CHECK: div.full.ftz.f32
// CHECK: ret;
func.func @quotient(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %two = arith.constant dense<2.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %r = arith.divf %two, %t : tensor<32x32xf32>
  tile.store %r, %y[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----

// CHECK-LABEL: entry root(
// CHECK-NOT: {{rcp|div|[[:space:]]sqrt}}
// CHECK: rsqrt.approx.ftz.f32
// CHECK-NOT: {{[[:space:]]}}mul.{{.*}}f32
// CHECK: ret;
func.func @root(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %above = arith.constant dense<1.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %s = math.sqrt %t : tensor<32x32xf32>
  %r = arith.divf %above, %s : tensor<32x32xf32>
  tile.store %r, %y[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----

// CHECK-LABEL: entry by_root(
// CHECK-NOT: {{rcp|div|[[:space:]]sqrt}}
// CHECK: rsqrt.approx.ftz.f32
// CHECK: mul{{.*}}f32
// CHECK: ret;
func.func @by_root(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %above = arith.constant dense<3.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %s = math.sqrt %t : tensor<32x32xf32>
  %r = arith.divf %above, %s : tensor<32x32xf32>
  tile.store %r, %y[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}
