// The matrix product.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @dots(
func.func @dots(%a: tensor<48x32xf16>, %b: tensor<32x80xf16>, %c: tensor<48x80xf32>, %d: tensor<4x8xi8>, %e: tensor<8x4xi8>, %f: tensor<4x4xi32>,
                %g: tensor<4x4xf64>, %h: tensor<4x4xf32>, %w: tensor<4x4xi32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<48x32xf16>, tensor<32x80xf16> -> tensor<48x80xf32>
  %0 = tile.dot %a, %b, %c : tensor<48x32xf16>, tensor<32x80xf16> -> tensor<48x80xf32>
  // CHECK: -> tensor<4x4xi32>
  %1 = tile.dot %d, %e, %f : tensor<4x8xi8>, tensor<8x4xi8> -> tensor<4x4xi32>
  // CHECK: -> tensor<4x4xf64>
  %2 = tile.dot %g, %g, %g : tensor<4x4xf64>, tensor<4x4xf64> -> tensor<4x4xf64>
  // CHECK: precision tf32x3
  %3 = tile.dot %h, %h, %h precision tf32x3 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: precision bits : tensor<4x4xi32>
  %4 = tile.dot %w, %w, %f precision bits : tensor<4x4xi32>, tensor<4x4xi32> -> tensor<4x4xi32>
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

func.func @words(%a: tensor<4x4xi32>) {
  // expected-error @+1 {{operands must be f16, bf16, f32, f64, f8 or i8, found 'i32'}}
  %0 = tile.dot %a, %a, %a : tensor<4x4xi32>, tensor<4x4xi32> -> tensor<4x4xi32>
  return
}

// -----

func.func @bits_of_floats(%a: tensor<4x4xf32>) {
  // expected-error @+1 {{operands of bits must be i32, found 'f32'}}
  %0 = tile.dot %a, %a, %a precision bits : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @counts_of_bits(%a: tensor<4x4xi32>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{'i32' operands accumulate in 'i32', found 'f32'}}
  %0 = tile.dot %a, %a, %c precision bits : tensor<4x4xi32>, tensor<4x4xi32> -> tensor<4x4xf32>
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
  // expected-error @+1 {{expects warps along N in multiples of 4 (warpgroups), found 2}}
  %1 = tile.mma wgmma_f16 k 32 warps(2, 2) %a, %b, %c : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  return
}

// -----

func.func @wide_registers(%c: tensor<64x64xf32>, %p: tensor<64x32xf32>, %q: !tile.smem<32x64xf32, minor = 0>) {
  // expected-error @+1 {{reads elements of at most 16 bits from registers, found 'tensor<64x32xf32>'}}
  %1 = tile.mma wgmma_tf32 k 32 warps(4, 1) %p, %q, %c : tensor<64x32xf32>, !tile.smem<32x64xf32, minor = 0> -> tensor<64x64xf32>
  return
}

// -----

func.func @interleaved(%c: tensor<64x64xf32>, %p: !tile.smem<64x32xf8E4M3FN, minor = 1>, %q: !tile.smem<32x64xf8E4M3FN, minor = 0, interleaved>) {
  // expected-error @+1 {{reads an interleaved b along k, by warpgroups, with a in registers}}
  %1 = tile.mma wgmma_f8 k 32 warps(4, 1) %p, %q, %c : !tile.smem<64x32xf8E4M3FN, minor = 1>, !tile.smem<32x64xf8E4M3FN, minor = 0, interleaved> -> tensor<64x64xf32>
  return
}

// -----

func.func @interleaved_first(%c: tensor<64x64xf32>, %p: !tile.smem<64x32xf8E4M3FN, minor = 1, interleaved>, %q: !tile.smem<32x64xf8E4M3FN, minor = 0>) {
  // expected-error @+1 {{expects a first operand with its elements in order}}
  %1 = tile.mma wgmma_f8 k 32 warps(4, 1) %p, %q, %c : !tile.smem<64x32xf8E4M3FN, minor = 1, interleaved>, !tile.smem<32x64xf8E4M3FN, minor = 0> -> tensor<64x64xf32>
  return
}

// -----

func.func @share_interleaved(%p: tensor<64x32xf8E4M3FN>) {
  // expected-error @+1 {{expects elements in their order}}
  %1 = tile.share %p : tensor<64x32xf8E4M3FN> -> !tile.smem<64x32xf8E4M3FN, minor = 1, interleaved>
  return
}

// -----

// expected-error @+1 {{panels must have 32, 64 or 128 bytes, found 48 elements}}
func.func @panels(%p: !tile.smem<32x64xf16, minor = 1, panel = 32>, %q: !tile.smem<32x96xf16, minor = 1, stages = 2, panel = 48>) {
  return
}

// -----

// expected-error @+1 {{an interleaved !tile.smem must hold 8-bit elements in rows of whole 16 bytes}}
func.func @interleaved_halves(%q: !tile.smem<32x64xf16, minor = 0, interleaved>) {
  return
}

// -----

func.func @turn(%p: !tile.smem<64x32xf8E4M3FN, minor = 1>, %q: !tile.smem<64x32xf8E4M3FN, minor = 0, interleaved>,
                %r: !tile.smem<64x48xi8, minor = 0>, %s: !tile.smem<64x48xi8, minor = 1>) {
  tile.smem_turn %p to %q : <64x32xf8E4M3FN, minor = 1>, <64x32xf8E4M3FN, minor = 0, interleaved>
  // expected-error @+1 {{turns whole 32x32 blocks of 8-bit or 32-bit elements}}
  tile.smem_turn %r to %s : <64x48xi8, minor = 0>, <64x48xi8, minor = 1>
  return
}

// -----

func.func @zeros(%p: !tile.smem<64x32xf16, minor = 1>) {
  tile.smem_zero %p : <64x32xf16, minor = 1>
  tile.smem_zero %p outside [64, 20] : <64x32xf16, minor = 1>
  // expected-error @+1 {{expects a box inside of}}
  tile.smem_zero %p outside [64, 33] : <64x32xf16, minor = 1>
  return
}

// -----

func.func @zeros_of_rings(%r: !tile.smem<64x32xf16, minor = 1, stages = 2>) {
  // expected-error @+1 {{has a box in one plain tile of two dims}}
  tile.smem_zero %r outside [64, 20] : <64x32xf16, minor = 1, stages = 2>
  return
}

// -----

func.func @turn_nothing(%p: !tile.smem<64x32xf8E4M3FN, minor = 1>) {
  // expected-error @+1 {{expects the same tile with another minor dim}}
  tile.smem_turn %p to %p : <64x32xf8E4M3FN, minor = 1>, <64x32xf8E4M3FN, minor = 1>
  return
}

// -----

func.func @turn_halves(%p: !tile.smem<64x32xf16, minor = 1>, %q: !tile.smem<64x32xf16, minor = 0>) {
  // expected-error @+1 {{turns whole 32x32 blocks of 8-bit or 32-bit elements}}
  tile.smem_turn %p to %q : <64x32xf16, minor = 1>, <64x32xf16, minor = 0>
  return
}
