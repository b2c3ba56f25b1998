// The matrix product.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @dots(
func.func @dots(%a: tensor<48x32xf16>, %b: tensor<32x80xf16>, %c: tensor<48x80xf32>, %d: tensor<4x8xi8>, %e: tensor<8x4xi8>, %f: tensor<4x4xi32>,
                %g: tensor<4x4xf64>, %h: tensor<4x4xf32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<48x32xf16>, tensor<32x80xf16> -> tensor<48x80xf32>
  %0 = tile.dot %a, %b, %c : tensor<48x32xf16>, tensor<32x80xf16> -> tensor<48x80xf32>
  // CHECK: -> tensor<4x4xi32>
  %1 = tile.dot %d, %e, %f : tensor<4x8xi8>, tensor<8x4xi8> -> tensor<4x4xi32>
  // CHECK: -> tensor<4x4xf64>
  %2 = tile.dot %g, %g, %g : tensor<4x4xf64>, tensor<4x4xf64> -> tensor<4x4xf64>
  // CHECK: precision tf32x3
  %3 = tile.dot %h, %h, %h precision tf32x3 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @inner(%a: tensor<4x8xf16>, %b: tensor<4x8xf16>, %c: tensor<4x8xf32>) {
  // expected-error @+1 {{inner dims must agree: 'tensor<4x8xf16>' * 'tensor<4x8xf16>'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf32>
  return
}

// -----

func.func @acc_shape(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x8xf32>) {
  // expected-error @+1 {{accumulator must be 4x4, found 'tensor<4x8xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x8xf32>
  return
}

// -----

func.func @mixed(%a: tensor<4x8xf16>, %b: tensor<8x4xbf16>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{operands must have one element type, found 'f16' and 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf16>, tensor<8x4xbf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @acc_type(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf16>) {
  // expected-error @+1 {{'f16' operands accumulate in 'f32', found 'f16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf16>
  return
}

// -----

func.func @integers(%a: tensor<4x8xi16>, %b: tensor<8x4xi16>, %c: tensor<4x4xi32>) {
  // expected-error @+1 {{operands must be f16, bf16, f32, f64, f8 or i8, found 'i16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xi16>, tensor<8x4xi16> -> tensor<4x4xi32>
  return
}

// -----

func.func @rank(%a: tensor<2x4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{operand #0 must be 2-D tile}}
  %0 = tile.dot %a, %b, %c : tensor<2x4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf32>
  return
}

// -----

// CHECK-LABEL: func.func @warpgroups(
func.func @warpgroups(%a: !tile.smem<64x32xf16, minor = 1>, %b: !tile.smem<32x64xf16, minor = 1>, %c: tensor<64x64xf32>,
                      %p: tensor<64x32xf16>) {
  // CHECK: tile.mma wgmma_f16 k 32 warps(4, 1)
  %0 = tile.mma wgmma_f16 k 32 warps(4, 1) %a, %b, %c : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  // CHECK: tile.mma wgmma_f16 k 32 warps(4, 2)
  %1 = tile.mma wgmma_f16 k 32 warps(4, 2) %p, %b, %0 : tensor<64x32xf16>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  return
}

// -----

func.func @half_a_warpgroup(%a: !tile.smem<64x32xf16, minor = 1>, %b: !tile.smem<32x64xf16, minor = 1>, %c: tensor<64x64xf32>) {
  // expected-error @+1 {{expects warps along M in multiples of 4 (warpgroups), found 2}}
  %1 = tile.mma wgmma_f16 k 32 warps(2, 2) %a, %b, %c : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  return
}

// -----

func.func @narrow_registers(%c: tensor<64x64xf32>, %p: tensor<64x32xf8E4M3FN>, %q: !tile.smem<32x64xf8E4M3FN, minor = 0>) {
  // expected-error @+1 {{reads 16-bit elements from registers only, found 'tensor<64x32xf8E4M3FN>'}}
  %1 = tile.mma wgmma_e4m3 k 32 warps(4, 1) %p, %q, %c : tensor<64x32xf8E4M3FN>, !tile.smem<32x64xf8E4M3FN, minor = 0> -> tensor<64x64xf32>
  return
}
