// Remainders of floats are exact on GPUs: a loop of exactly rounded quotients, in the kernel itself. f16 are computed in
// f32, where their remainder is exact, too.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-NOT: .func
// CHECK-LABEL: entry remainder_f32(
// CHECK-NOT: call
// CHECK: div.rn.f32
// CHECK: cvt.rni.f32.f32
// CHECK: fma.rn.f32
// CHECK: bra
// CHECK-NOT: call
// CHECK: ret;
func.func @remainder_f32(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %u = tile.load %y[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %r = arith.remf %t, %u : tensor<32xf32>
  tile.store %r, %y[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}

// -----

// CHECK-LABEL: entry remainder_f16(
// CHECK-NOT: call
// CHECK: div.rn.f32
// CHECK: cvt.rn.f16.f32
// CHECK-NOT: call
// CHECK: ret;
func.func @remainder_f16(%x: !tile.view<1xf16>, %y: !tile.view<1xf16>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf16> -> tensor<32xf16>
  %u = tile.load %y[%i : i32] : !tile.view<1xf16> -> tensor<32xf16>
  %r = arith.remf %t, %u : tensor<32xf16>
  tile.store %r, %y[%i : i32] : tensor<32xf16>, !tile.view<1xf16>
  return
}
