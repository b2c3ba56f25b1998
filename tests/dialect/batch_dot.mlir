// Products of several matrices: a type of products there are, as many matrices on either side.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @fine
func.func @fine(%a: tensor<4x48x32xf16>, %b: tensor<4x32x80xf16>, %c: tensor<4x48x80xf32>, %d: tensor<2x4x4xf32>) {
  // CHECK: tile.batch_dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x48x32xf16>, tensor<4x32x80xf16> -> tensor<4x48x80xf32>
  %0 = tile.batch_dot %a, %b, %c : tensor<4x48x32xf16>, tensor<4x32x80xf16> -> tensor<4x48x80xf32>
  // CHECK: tile.batch_dot %{{.*}}, %{{.*}}, %{{.*}} precision tf32
  %1 = tile.batch_dot %d, %d, %d precision tf32 : tensor<2x4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  // CHECK: tile.batch_mma m16n8k16_f16 %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x48x32xf16>, tensor<4x32x80xf16> -> tensor<4x48x80xf32>
  %2 = tile.batch_mma m16n8k16_f16 %a, %b, %c : tensor<4x48x32xf16>, tensor<4x32x80xf16> -> tensor<4x48x80xf32>
  return
}

// -----
func.func @counts(%a: tensor<4x8x8xf16>, %b: tensor<2x8x8xf16>, %c: tensor<4x8x8xf32>) {
  // expected-error @+1 {{operands must be as many matrices: 'tensor<4x8x8xf16>' * 'tensor<2x8x8xf16>' + 'tensor<4x8x8xf32>'}}
  %0 = tile.batch_dot %a, %b, %c : tensor<4x8x8xf16>, tensor<2x8x8xf16> -> tensor<4x8x8xf32>
  return
}

// -----
func.func @inner(%a: tensor<4x8x4xf16>, %b: tensor<4x8x8xf16>, %c: tensor<4x8x8xf32>) {
  // expected-error @+1 {{inner dims must agree: 'tensor<4x8x4xf16>' * 'tensor<4x8x8xf16>'}}
  %0 = tile.batch_dot %a, %b, %c : tensor<4x8x4xf16>, tensor<4x8x8xf16> -> tensor<4x8x8xf32>
  return
}

// -----
func.func @accumulator(%a: tensor<4x8x8xf16>, %c: tensor<4x8x8xf16>) {
  // expected-error @+1 {{'f16' operands accumulate in 'f32', found 'f16'}}
  %0 = tile.batch_dot %a, %a, %c : tensor<4x8x8xf16>, tensor<4x8x8xf16> -> tensor<4x8x8xf16>
  return
}

// -----
func.func @rank(%a: tensor<8x8xf16>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{must be 3-D tile}}
  %0 = tile.batch_dot %a, %a, %c : tensor<8x8xf16>, tensor<8x8xf16> -> tensor<8x8xf32>
  return
}

// -----
func.func @matrices(%a: tensor<4x16x16xf16>, %b: tensor<4x32x8xf16>, %c: tensor<4x16x8xf32>) {
  // expected-error @+1 {{operands must be as many matrices that fit: 'tensor<4x16x16xf16>' * 'tensor<4x32x8xf16>' + 'tensor<4x16x8xf32>'}}
  %0 = tile.batch_mma m16n8k16_f16 %a, %b, %c : tensor<4x16x16xf16>, tensor<4x32x8xf16> -> tensor<4x16x8xf32>
  return
}
