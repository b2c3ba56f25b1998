// Functions of elements on tiles and scalars; what they are not defined on.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @functions(
// CHECK: tile.lgamma %{{.*}} : tensor<8x4xf32>
// CHECK: tile.tgamma %{{.*}} : tensor<8x4xf32>
// CHECK: tile.tgamma %{{.*}} : f64
// CHECK: tile.bit_reverse %{{.*}} : tensor<8xi16>
// CHECK: tile.erfinv %{{.*}} : f64
// CHECK: tile.erfcinv %{{.*}} : f64
// CHECK: tile.gelu %{{.*}} : tensor<8x4xf32>
// CHECK: tile.normcdf %{{.*}} : tensor<8x4xf32>
// CHECK: tile.normcdfinv %{{.*}} : tensor<8x4xf32>
// CHECK: tile.j0 %{{.*}} : f64
// CHECK: tile.j1 %{{.*}} : f64
// CHECK: tile.y0 %{{.*}} : f64
// CHECK: tile.y1 %{{.*}} : f64
// CHECK: tile.add_rn %{{.*}}, %{{.*}} : tensor<8x4xf32>
// CHECK: tile.mul_rn %{{.*}}, %{{.*}} : f64
// CHECK: tile.div_rn %{{.*}}, %{{.*}} : f64
// CHECK: tile.sqrt_rn %{{.*}} : tensor<8x4xf32>
func.func @functions(%x: tensor<8x4xf32>, %s: f64, %i: tensor<8xi16>) {
  %0 = tile.lgamma %x : tensor<8x4xf32>
  %1 = tile.tgamma %0 : tensor<8x4xf32>
  %2 = tile.tgamma %s : f64
  %3 = tile.bit_reverse %i : tensor<8xi16>
  %4 = tile.erfinv %s : f64
  %5 = tile.erfcinv %4 : f64
  %gelu = tile.gelu %x : tensor<8x4xf32>
  %6 = tile.normcdf %gelu : tensor<8x4xf32>
  %7 = tile.normcdfinv %6 : tensor<8x4xf32>
  %8 = tile.j0 %s : f64
  %9 = tile.j1 %8 : f64
  %10 = tile.y0 %9 : f64
  %11 = tile.y1 %10 : f64
  %12 = tile.add_rn %x, %7 : tensor<8x4xf32>
  %13 = tile.mul_rn %s, %11 : f64
  %14 = tile.div_rn %13, %s : f64
  %15 = tile.sqrt_rn %12 : tensor<8x4xf32>
  return
}

// -----

func.func @lgamma_of_integers(%x: tensor<8xi32>) {
  // expected-error @+1 {{'tile.lgamma' op operand #0 must be 16-bit float or bfloat16 type or 32-bit float or 64-bit float or tile}}
  %0 = tile.lgamma %x : tensor<8xi32>
  return
}

// -----

func.func @bits_of_floats(%x: f32) {
  // expected-error @+1 {{'tile.bit_reverse' op operand #0 must be integer (i1, i8, i16, i32, i64) or tile}}
  %0 = tile.bit_reverse %x : f32
  return
}

// -----

func.func @rounded_integers(%x: tensor<8xi32>) {
  // expected-error @+1 {{'tile.div_rn' op operand #0 must be 16-bit float or bfloat16 type or 32-bit float or 64-bit float or tile}}
  %0 = tile.div_rn %x, %x : tensor<8xi32>
  return
}
