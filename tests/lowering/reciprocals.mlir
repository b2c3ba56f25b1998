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

// -----

// By a number that the loop keeps: its reciprocal is made once, and large ones are scaled as the hardware does. What the
// loop makes is divided by as ever.
// CHECK-LABEL: entry kept(
// CHECK-NOT: div.full
// CHECK: rcp.approx.ftz.f32
// CHECK: $L__BB
// CHECK-NOT: rcp.approx
// CHECK-COUNT-2: mul.rn.f32
// CHECK-NOT: rcp.approx
// CHECK: div.full.ftz.f32
// CHECK: ret;
func.func @kept(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %by: f32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 128 : i32
  %i = tile.iota : tensor<128xi32>
  %b = tile.splat %by : f32 -> tensor<128xf32>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %start = arith.muli %k, %size : i32
    %s = tile.splat %start : i32 -> tensor<128xi32>
    %at = arith.addi %s, %i : tensor<128xi32>
    %v = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %q = arith.divf %v, %b : tensor<128xf32>
    %r = arith.divf %q, %v : tensor<128xf32>
    tile.scatter %r, %y offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  }
  return
}
