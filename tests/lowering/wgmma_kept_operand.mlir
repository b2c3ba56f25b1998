// A first operand in registers that stays the same in all iterations is copied for every product: ptxas 13.0 takes its
// registers for free behind the product. One that is made anew is read as it is.
// RUN: tile-opt %s -mlir-disable-threading --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: .entry kept
// CHECK: mov.u32 t, %dynamic_smem_size;
// CHECK-COUNT-4: xor.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[ZERO:%r[0-9]+]];
// CHECK: wgmma.mma_async
func.func @kept(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x16xf16>
  %b = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %buf = tile.smem_alloc : !tile.smem<16x64xf16, minor = 1>
  tile.smem_store %b, %buf : tensor<16x64xf16>, !tile.smem<16x64xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %d = tile.mma wgmma_f16 k 16 warps(4, 1) %a, %buf, %acc : tensor<64x16xf16>, !tile.smem<16x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// Shared before it is multiplied: nobody needs the registers behind the product.
// CHECK: .entry shared_before
// CHECK-NOT: %dynamic_smem_size
func.func @shared_before(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %x[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    tile.smem_store %a, %buf : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %buf, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
