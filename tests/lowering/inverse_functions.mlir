// Inverse functions, hyperbolic ones and those exact near 0 are straight-line code on GPUs: no calls, no branches, f32 of
// the machine's quick parts, f64 of series.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry inverse_f32(
// CHECK-NOT: {{call|bra |div.rn|sqrt.rn}}
// CHECK-COUNT-32: {{sqrt.approx|rcp.approx|div.full|ex2.approx}}
// CHECK-NOT: {{call|bra |div.rn|sqrt.rn}}
// CHECK: ret;
func.func @inverse_f32(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %a = math.asin %t : tensor<32x32xf32>
  %b = math.atan2 %a, %t : tensor<32x32xf32>
  %c = math.sinh %b : tensor<32x32xf32>
  %d = math.cosh %c : tensor<32x32xf32>
  %e = math.erfc %d : tensor<32x32xf32>
  tile.store %e, %y[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----

// CHECK-LABEL: entry inverse_f64(
// CHECK-NOT: {{call|bra }}
// CHECK: sqrt.rn.f64
// CHECK-NOT: {{call|bra }}
// CHECK: div.rn.f64
// CHECK-NOT: {{call|bra }}
// CHECK: ret;
func.func @inverse_f64(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %a = math.acos %t : tensor<32xf64>
  %b = math.atan2 %a, %t : tensor<32xf64>
  %c = math.expm1 %b : tensor<32xf64>
  %d = math.log1p %c : tensor<32xf64>
  %e = math.atanh %d : tensor<32xf64>
  tile.store %e, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  return
}

// -----

// Quotients inside functions, and rsqrt, begin with the machine's first digits.
// CHECK-LABEL: entry errors_and_roots_f64(
// CHECK-NOT: {{call|bra |div.rn|sqrt.rn|rcp.rn}}
// CHECK: rcp.approx.ftz.f64
// CHECK-NOT: {{call|bra |div.rn|sqrt.rn|rcp.rn}}
// CHECK: rsqrt.approx.ftz.f64
// CHECK-NOT: {{call|bra |div.rn|sqrt.rn|rcp.rn}}
// CHECK: ret;
func.func @errors_and_roots_f64(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %a = math.erf %t : tensor<32xf64>
  %b = math.erfc %a : tensor<32xf64>
  %c = math.cbrt %b : tensor<32xf64>
  %d = math.rsqrt %c : tensor<32xf64>
  tile.store %d, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  return
}

// -----

// CHECK-LABEL: entry gamma_f32(
// CHECK-NOT: {{call|bra |\.f64}}
// CHECK: ret;
func.func @gamma_f32(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %a = tile.lgamma %t : tensor<32xf32>
  %b = tile.tgamma %a : tensor<32xf32>
  tile.store %b, %y[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// -----

// CHECK-LABEL: entry gamma_f64(
// CHECK-NOT: {{call|bra }}
// CHECK: div.rn.f64
// CHECK-NOT: {{call|bra }}
// CHECK: ret;
func.func @gamma_f64(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %a = tile.lgamma %t : tensor<32xf64>
  %b = tile.tgamma %a : tensor<32xf64>
  tile.store %b, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  return
}

// -----

// Quantiles of f32 in f32; Bessel functions, whose zeros want more digits, in f64.
// CHECK-LABEL: entry quantiles_f32(
// CHECK-NOT: {{call|bra |\.f64}}
// CHECK: ret;
func.func @quantiles_f32(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %a = tile.erfinv %t : tensor<32xf32>
  %b = tile.normcdf %a : tensor<32xf32>
  %c = tile.erfcinv %b : tensor<32xf32>
  %d = tile.normcdfinv %c : tensor<32xf32>
  %e = tile.gelu %d : tensor<32xf32>
  tile.store %e, %y[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// -----

// CHECK-LABEL: entry bessel_f32(
// CHECK-NOT: {{call|bra }}
// CHECK: cvt.f64.f32
// CHECK-NOT: {{call|bra }}
// CHECK: cvt.rn.f32.f64
// CHECK-NOT: {{call|bra }}
// CHECK: ret;
func.func @bessel_f32(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %a = tile.j0 %t : tensor<32xf32>
  %b = tile.y1 %a : tensor<32xf32>
  tile.store %b, %y[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// -----

// CHECK-LABEL: entry special_f64(
// CHECK-NOT: {{call|bra }}
// CHECK: div.rn.f64
// CHECK-NOT: {{call|bra }}
// CHECK: ret;
func.func @special_f64(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %a = tile.erfinv %t : tensor<32xf64>
  %b = tile.normcdf %a : tensor<32xf64>
  %c = tile.erfcinv %b : tensor<32xf64>
  %d = tile.normcdfinv %c : tensor<32xf64>
  %e = tile.j1 %d : tensor<32xf64>
  %f = tile.y0 %e : tensor<32xf64>
  %g = tile.gelu %f : tensor<32xf64>
  tile.store %g, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  return
}
