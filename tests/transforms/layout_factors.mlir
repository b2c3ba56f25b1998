// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-assign-layouts | FileCheck %s
// Factors that a loop gathers for the rows of a product lie as its rows do: nobody hands them on in the loop,
// though every warp keeps all of their places for other vectors.

// CHECK-LABEL: func.func @rows
// CHECK: tile.gather %arg1 {{.*}} -> tensor<64xi32, #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps [rep:4]>>
// CHECK: scf.for
// CHECK: tile.gather {{.*}} -> tensor<64xf32, #tile.layout<64 regs [0:2*8] lanes [rep:4, 0:8*1] warps [0:4*16]>>
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @rows(%p: !tile.ptr<f32>, %at: !tile.ptr<i32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %three = arith.constant dense<3> : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %bufA = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %bufB = tile.smem_alloc : !tile.smem<64x128xf16, minor = 1>
  %i = tile.iota : tensor<64xi32>
  %token = tile.gather %at offsets %i : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %places = arith.muli %token, %three : tensor<64xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x128xf32>) : i32 {
    %pk = tile.ptr_add %p, %k : !tile.ptr<f32>, i32
    %f = tile.gather %pk offsets %places : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %bufA, %bufB, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %column = tile.reshape %f : tensor<64xf32> -> tensor<64x1xf32>
    %all = tile.broadcast %column : tensor<64x1xf32> -> tensor<64x128xf32>
    %w = arith.mulf %d, %all : tensor<64x128xf32>
    %s = arith.addf %sum, %w : tensor<64x128xf32>
    scf.yield %s : tensor<64x128xf32>
  }
  %weights = tile.gather %p offsets %token : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %weight = tile.reshape %weights : tensor<64xf32> -> tensor<64x1xf32>
  %wide = tile.broadcast %weight : tensor<64x1xf32> -> tensor<64x128xf32>
  %y = arith.mulf %r, %wide : tensor<64x128xf32>
  tile.store %y, %c[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
