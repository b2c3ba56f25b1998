// Sums, products, quotients and roots that are rounded by themselves: instructions that say so, beside approximations and
// multiply-adds of others; 16-bit floats by way of f32.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry f32(
// CHECK: mul.rn.f32
// CHECK: add.rn.f32
// CHECK: div.rn.f32
// CHECK: sqrt.rn.f32
// CHECK: div.full
// CHECK: sqrt.approx
// CHECK: fma.rn.f32
// CHECK: ret;
func.func @f32(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %a = tile.mul_rn %t, %t : tensor<32xf32>
  %b = tile.add_rn %a, %t : tensor<32xf32>
  %c = tile.div_rn %b, %t : tensor<32xf32>
  %d = tile.sqrt_rn %c : tensor<32xf32>
  %e = arith.divf %d, %t : tensor<32xf32>
  %f = math.sqrt %e : tensor<32xf32>
  %g = arith.mulf %f, %t : tensor<32xf32>
  %h = arith.addf %g, %t : tensor<32xf32>
  tile.store %h, %y[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// -----

// CHECK-LABEL: entry others(
// CHECK-DAG: mul.rn.f64
// CHECK-DAG: add.rn.f64
// CHECK-DAG: div.rn.f64
// CHECK-DAG: sqrt.rn.f64
// CHECK-DAG: mul.rn.f32
// CHECK-DAG: div.rn.f32
// CHECK-NOT: approx
// CHECK: ret;
func.func @others(%x: !tile.view<1xf64>, %h: !tile.view<1xf16>, %y: !tile.view<1xf64>, %z: !tile.view<1xf16>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %a = tile.mul_rn %t, %t : tensor<32xf64>
  %b = tile.add_rn %a, %t : tensor<32xf64>
  %c = tile.div_rn %b, %t : tensor<32xf64>
  %d = tile.sqrt_rn %c : tensor<32xf64>
  tile.store %d, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  %u = tile.load %h[%i : i32] : !tile.view<1xf16> -> tensor<32xf16>
  %v = tile.mul_rn %u, %u : tensor<32xf16>
  %w = tile.div_rn %v, %u : tensor<32xf16>
  tile.store %w, %z[%i : i32] : tensor<32xf16>, !tile.view<1xf16>
  return
}
