// Bytes of the microscaling formats on tiles and scalars; what they are not defined on.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @formats(
// CHECK: tile.widen_e2m1 %{{.*}} : tensor<8x4xi8> -> tensor<8x4xbf16>
// CHECK: tile.widen_e2m1 %{{.*}} : i8 -> f32
// CHECK: tile.widen_e8m0 %{{.*}} : tensor<8x4xi8> -> tensor<8x4xf16>
func.func @formats(%x: tensor<8x4xi8>, %s: i8) {
  %0, %1 = tile.widen_e2m1 %x : tensor<8x4xi8> -> tensor<8x4xbf16>
  %2, %3 = tile.widen_e2m1 %s : i8 -> f32
  %4 = tile.widen_e8m0 %x : tensor<8x4xi8> -> tensor<8x4xf16>
  return
}

// -----

func.func @words(%x: tensor<8xi32>) {
  // expected-error @+1 {{'tile.widen_e2m1' op operand #0 must be 8-bit signless integer or tile}}
  %0, %1 = tile.widen_e2m1 %x : tensor<8xi32> -> tensor<8xbf16>
  return
}

// -----

func.func @doubles(%x: tensor<8xi8>) {
  // expected-error @+1 {{'tile.widen_e8m0' op result #0 must be 16-bit float or bfloat16 type or 32-bit float or tile}}
  %0 = tile.widen_e8m0 %x : tensor<8xi8> -> tensor<8xf64>
  return
}

// -----

func.func @another_shape(%x: tensor<8xi8>) {
  // expected-error @+1 {{'tile.widen_e8m0' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tile.widen_e8m0 %x : tensor<8xi8> -> tensor<4xbf16>
  return
}
