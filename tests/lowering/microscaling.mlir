// Bytes of two e2m1 numbers become pairs of 16-bit floats: nothing is converted one by one, and no pair put together.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// A word of four bytes: two masks, and for every byte a selection, a product that moves both numbers, a mask, a factor.
// CHECK-LABEL: .entry words(
// CHECK-NOT: {{cvt.*b?f16}}
// CHECK: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 252645135;
// CHECK: prmt.b32
// CHECK: mul.lo.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, 4160;
// CHECK: and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, -2118090304;
// CHECK: {{fma.rn|mul}}.bf16x2
// CHECK-NOT: {{cvt.*b?f16}}
// CHECK: ret;
func.func @words(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %y: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %bytes = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x32xi8>
  %low, %high = tile.widen_e2m1 %bytes : tensor<64x32xi8> -> tensor<64x32xbf16>
  %a = tile.reshape %low : tensor<64x32xbf16> -> tensor<64x32x1xbf16>
  %b = tile.reshape %high : tensor<64x32xbf16> -> tensor<64x32x1xbf16>
  %pairs = tile.cat %a, %b axis 2 : tensor<64x32x1xbf16>, tensor<64x32x1xbf16> -> tensor<64x32x2xbf16>
  %all = tile.reshape %pairs : tensor<64x32x2xbf16> -> tensor<64x64xbf16>
  tile.store %all, %y[%c0, %c0 : i32, i32] : tensor<64x64xbf16>, !tile.view<2xbf16>
  return
}

// -----

// A byte in a register of its own.
// CHECK-LABEL: .entry bytes(
// CHECK: mul.{{.*}}2097664
// CHECK: mul.f16x2
// CHECK: ret;
func.func @bytes(%x: !tile.view<1xi8>, %low: !tile.view<1xf16>, %high: !tile.view<1xf16>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %bytes = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<32xi8>
  %a, %b = tile.widen_e2m1 %bytes : tensor<32xi8> -> tensor<32xf16>
  tile.store %a, %low[%c0 : i32] : tensor<32xf16>, !tile.view<1xf16>
  tile.store %b, %high[%c0 : i32] : tensor<32xf16>, !tile.view<1xf16>
  return
}

// -----

// An exponent goes into both halves; one operation for the subnormal, one for the NaN.
// CHECK-LABEL: .entry powers(
// CHECK: mul.{{.*}}8388736
// CHECK: max.u32 %r{{[0-9]+}}, %r{{[0-9]+}}, 4194368;
// CHECK: fma.rn.bf16
// CHECK: ret;
func.func @powers(%x: !tile.view<1xi8> {tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xbf16> {tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %bytes = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<32xi8>
  %p = tile.widen_e8m0 %bytes : tensor<32xi8> -> tensor<32xbf16>
  tile.store %p, %y[%c0 : i32] : tensor<32xbf16>, !tile.view<1xbf16>
  return
}
