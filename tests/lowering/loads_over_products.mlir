// Sums that a kernel updates in place are loaded in front of the loop of products that is added to them, where one program
// has the multiprocessor and its registers have room for both.
// RUN: tile-opt %s --tile-target=sm_90a -tile-gpu-pipeline | FileCheck %s

// CHECK-LABEL: func.func @update(
// CHECK: tile.specialize regs(40, 232) producer
// CHECK: consumer
// CHECK: tile.load
// CHECK: scf.for
// CHECK: tile.mma wgmma_bf16
// CHECK: arith.addf
// CHECK-NEXT: tile.store
func.func @update(%a: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                  %b: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                  %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                  %k: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %row = arith.muli %x, %c128 : i32
  %column = arith.muli %y, %c128 : i32
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %p = tile.load %a[%row, %i : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
    %q = tile.load %b[%i, %column : i32, i32] : !tile.view<2xbf16> -> tensor<64x128xbf16>
    %d = tile.dot %p, %q, %acc : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %old = tile.load %c[%row, %column : i32, i32] : !tile.view<2xf32> -> tensor<128x128xf32>
  %new = arith.addf %old, %sum : tensor<128x128xf32>
  tile.store %new, %c[%row, %column : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// A tile so large that both do not fit stays behind the loop.
// CHECK-LABEL: func.func @larger(
// CHECK: consumer
// CHECK-NOT: tile.load
// CHECK: tile.mma wgmma_bf16
// CHECK: tile.load
// CHECK: tile.store
func.func @larger(%a: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                  %b: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                  %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                  %k: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %row = arith.muli %x, %c128 : i32
  %column = arith.muli %y, %c256 : i32
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    %p = tile.load %a[%row, %i : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
    %q = tile.load %b[%i, %column : i32, i32] : !tile.view<2xbf16> -> tensor<64x256xbf16>
    %d = tile.dot %p, %q, %acc : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %old = tile.load %c[%row, %column : i32, i32] : !tile.view<2xf32> -> tensor<128x256xf32>
  %new = arith.addf %old, %sum : tensor<128x256xf32>
  tile.store %new, %c[%row, %column : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>
  return
}
