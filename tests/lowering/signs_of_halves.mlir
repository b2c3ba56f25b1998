// Numbers that are rounded to 16 bits get their sign as a bit, and are rounded in pairs.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: .entry halves(
// CHECK-NOT: {{(abs|neg).f16|cvt.rn.f16.f32}}
// CHECK: cvt.rn.f16x2.f32
// CHECK-NOT: {{(abs|neg).f16|cvt.rn.f16.f32}}
// CHECK: ret;
func.func @halves(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>},
                  %y: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = arith.constant 0 : i32
  %v = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %t = math.erf %v : tensor<1024xf32>
  %h = arith.truncf %t : tensor<1024xf32> to tensor<1024xf16>
  tile.store %h, %y[%o : i32] : tensor<1024xf16>, !tile.view<1xf16>
  return
}

// -----

// What stays in 32 bits has an instruction for it.
// CHECK: .entry words(
// CHECK: copysign.f32
// CHECK: ret;
func.func @words(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>},
                 %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = arith.constant 0 : i32
  %v = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %t = math.tanh %v : tensor<1024xf32>
  tile.store %t, %y[%o : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----

// Of what is only rounded to 16 bits no more is computed than rounding keeps: one instruction each of the special unit's,
// no sign to be put back.
// CHECK: .entry rounded(
// CHECK-COUNT-8: ex2.approx.ftz.f32
// CHECK-NOT: {{copysign|ex2|and.b32}}
// CHECK: ret;
func.func @rounded(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>},
                   %y: !tile.view<1xbf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = arith.constant 0 : i32
  %v = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %t = math.tanh %v : tensor<1024xf32>
  %h = arith.truncf %t : tensor<1024xf32> to tensor<1024xbf16>
  tile.store %h, %y[%o : i32] : tensor<1024xbf16>, !tile.view<1xbf16>
  return
}
