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

// So is a tile of halves that goes on to shared memory, on its way to the layout of sums.
// CHECK-LABEL: func.func @residual(
// CHECK: consumer
// CHECK: tile.load %arg2
// CHECK: scf.for
// CHECK: tile.mma wgmma_bf16
// CHECK: tile.convert
// CHECK: arith.addf
func.func @residual(%a: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                    %b: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                    %c: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
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
  %old = tile.load %c[%row, %column : i32, i32] : !tile.view<2xbf16> -> tensor<128x128xbf16>
  %wide = arith.extf %old : tensor<128x128xbf16> to tensor<128x128xf32>
  %new = arith.addf %wide, %sum : tensor<128x128xf32>
  %t = arith.truncf %new : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %t, %c[%row, %column : i32, i32] : tensor<128x128xbf16>, !tile.view<2xbf16>
  return
}

// Where the loop leaves no registers, in front of a product behind it, as soon as these are free.
// CHECK-LABEL: func.func @two_sums(
// CHECK: consumer
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.mma_wait 0 of
// CHECK: tile.load %arg3
// CHECK: tile.ring_acquire
// CHECK: tile.mma wgmma_bf16
// CHECK: arith.addf
func.func @two_sums(%a: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                    %b: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                    %w: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                    %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                    %k: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %row = arith.muli %x, %c128 : i32
  %sums:2 = scf.for %i = %c0 to %k step %c64 iter_args(%f = %zero, %g = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
    %p = tile.load %a[%row, %i : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
    %q = tile.load %b[%i, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<64x128xbf16>
    %r = tile.load %b[%i, %c128 : i32, i32] : !tile.view<2xbf16> -> tensor<64x128xbf16>
    %d = tile.dot %p, %q, %f : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %e = tile.dot %p, %r, %g : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d, %e : tensor<128x128xf32>, tensor<128x128xf32>
  }
  %both = arith.mulf %sums#0, %sums#1 : tensor<128x128xf32>
  %z = arith.truncf %both : tensor<128x128xf32> to tensor<128x128xbf16>
  %m = tile.load %w[%c0, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128x128xbf16>
  %s = tile.dot %z, %m, %none : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
  %old = tile.load %c[%row, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x128xf32>
  %new = arith.addf %old, %s : tensor<128x128xf32>
  tile.store %new, %c[%row, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// A tile that is exchanged on its way to the sum, in front of a product that does not ask for it: the product goes first.
// CHECK-LABEL: func.func @product_first(
// CHECK: consumer
// CHECK: scf.for
// CHECK: tile.mma_wait 0 of
// CHECK: tile.load %arg3
// CHECK-NOT: tile.convert
// CHECK: tile.mma wgmma_bf16
// CHECK: tile.convert
// CHECK: arith.addf
func.func @product_first(%a: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                         %b: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                         %w: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                         %c: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                         %k: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %x = tile.program_id 0
  %row = arith.muli %x, %c128 : i32
  %sums:2 = scf.for %i = %c0 to %k step %c64 iter_args(%f = %zero, %g = %zero) -> (tensor<128x128xf32>, tensor<128x128xf32>) : i32 {
    %p = tile.load %a[%row, %i : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
    %q = tile.load %b[%i, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<64x128xbf16>
    %r = tile.load %b[%i, %c128 : i32, i32] : !tile.view<2xbf16> -> tensor<64x128xbf16>
    %d = tile.dot %p, %q, %f : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %e = tile.dot %p, %r, %g : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d, %e : tensor<128x128xf32>, tensor<128x128xf32>
  }
  %both = arith.mulf %sums#0, %sums#1 : tensor<128x128xf32>
  %z = arith.truncf %both : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %z, %c[%row, %c128 : i32, i32] : tensor<128x128xbf16>, !tile.view<2xbf16>
  %m = tile.load %w[%c0, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128x128xbf16>
  %old = tile.load %c[%row, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128x128xbf16>
  %wide = arith.extf %old : tensor<128x128xbf16> to tensor<128x128xf32>
  %s = tile.dot %z, %m, %none : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
  %new = arith.addf %wide, %s : tensor<128x128xf32>
  %t = arith.truncf %new : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %t, %c[%row, %c0 : i32, i32] : tensor<128x128xbf16>, !tile.view<2xbf16>
  return
}
