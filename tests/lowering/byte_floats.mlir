// Bytes of words become f32 by a float's digits: the instruction that takes them out of the word inserts them, and
// differences of them stay differences of floats.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry colours
// CHECK-NOT: cvt.rn.f32
// CHECK-COUNT-2: prmt.b32
// CHECK-NOT: cvt.rn.f32
// CHECK: sub{{(.rn)?}}.f32
// CHECK: ret;
func.func @colours(%p: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %q: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %mask = arith.constant dense<255> : tensor<128xi32>
  %eight = arith.constant dense<8> : tensor<128xi32>
  %c0 = arith.constant 0 : i32
  %v = tile.load %p[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %red = arith.andi %v, %mask : tensor<128xi32>
  %shifted = arith.shrui %v, %eight : tensor<128xi32>
  %green = arith.andi %shifted, %mask : tensor<128xi32>
  %r = arith.uitofp %red : tensor<128xi32> to tensor<128xf32>
  %g = arith.uitofp %green : tensor<128xi32> to tensor<128xf32>
  %d = arith.subf %r, %g : tensor<128xf32>
  tile.store %d, %q[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----

// Numbers that are no bytes keep the conversion.
// CHECK-LABEL: .entry wider
// CHECK: cvt.rn.f32.{{[su]}}32
// CHECK: ret;
func.func @wider(%p: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %q: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %mask = arith.constant dense<511> : tensor<128xi32>
  %c0 = arith.constant 0 : i32
  %v = tile.load %p[%c0 : i32] : !tile.view<1xi32> -> tensor<128xi32>
  %x = arith.andi %v, %mask : tensor<128xi32>
  %f = arith.uitofp %x : tensor<128xi32> to tensor<128xf32>
  tile.store %f, %q[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}

// -----

// Bytes that lie alone are converted: one instruction instead of two.
// CHECK-LABEL: .entry signed_bytes
// CHECK-COUNT-4: cvt.rn.f32.s{{8|16|32}}
// CHECK-NOT: xor.b32 {{.*}}, -2139062144;
// CHECK: ret;
func.func @signed_bytes(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %d = arith.sitofp %a : tensor<512xi8> to tensor<512xf32>
  tile.store %d, %o[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}
