// Products that do not need each other are under way at the same time: what is made of the first one's result stands
// behind the second.
// RUN: tile-opt %s -split-input-file --tile-async-waits | FileCheck %s

// A step of an inverse by doubling: x p and p p. What the next step reads of x is stored when both are on their way.
// CHECK-LABEL: func.func @doubling
// CHECK: %[[X:.*]] = tile.mma wgmma_tf32 k 64 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-NOT: tile.mma_wait
// CHECK: %[[P:.*]] = tile.mma wgmma_tf32
// CHECK-NEXT: %[[READ:.*]]:2 = tile.mma_wait 0 of %[[X]], %[[P]]
// CHECK-NEXT: tile.smem_store %[[READ]]#0
func.func @doubling(%x: tensor<64x64xf32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %rows = tile.smem_alloc : <64x64xf32, minor = 1>
  %columns = tile.smem_alloc : <64x64xf32, minor = 0>
  tile.smem_store %x, %rows : tensor<64x64xf32>, <64x64xf32, minor = 1>
  tile.smem_store %x, %columns : tensor<64x64xf32>, <64x64xf32, minor = 0>
  %xp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %x : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  %next = tile.smem_alloc : <64x64xf32, minor = 1>
  tile.smem_store %xp, %next : tensor<64x64xf32>, <64x64xf32, minor = 1>
  %pp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %zero : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  %turned = tile.smem_alloc : <64x64xf32, minor = 0>
  tile.smem_store %pp, %turned : tensor<64x64xf32>, <64x64xf32, minor = 0>
  %r = tile.mma wgmma_tf32 k 64 warps(4, 1) %next, %turned, %xp : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// The second one reads what is stored of the first one's result, into the buffer that it reads.
// CHECK-LABEL: func.func @chain
// CHECK: %[[X:.*]] = tile.mma wgmma_tf32
// CHECK: tile.mma_wait 0 of %[[X]]
// CHECK: tile.smem_store
// CHECK: tile.mma wgmma_tf32
func.func @chain(%x: tensor<64x64xf32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %rows = tile.smem_alloc : <64x64xf32, minor = 1>
  %columns = tile.smem_alloc : <64x64xf32, minor = 0>
  tile.smem_store %x, %rows : tensor<64x64xf32>, <64x64xf32, minor = 1>
  tile.smem_store %x, %columns : tensor<64x64xf32>, <64x64xf32, minor = 0>
  %xp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %x : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  %next = tile.smem_alloc : <64x64xf32, minor = 1>
  tile.smem_store %xp, %next : tensor<64x64xf32>, <64x64xf32, minor = 1>
  %r = tile.mma wgmma_tf32 k 64 warps(4, 1) %next, %columns, %zero : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A buffer from in front of both: whoever reads it between them is not known here.
// CHECK-LABEL: func.func @shared
// CHECK: %[[X:.*]] = tile.mma wgmma_tf32
// CHECK: tile.mma_wait 0 of %[[X]]
// CHECK: tile.smem_store
// CHECK: tile.mma wgmma_tf32
func.func @shared(%x: tensor<64x64xf32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %rows = tile.smem_alloc : <64x64xf32, minor = 1>
  %columns = tile.smem_alloc : <64x64xf32, minor = 0>
  %out = tile.smem_alloc : <64x64xf32, minor = 1>
  tile.smem_store %x, %rows : tensor<64x64xf32>, <64x64xf32, minor = 1>
  tile.smem_store %x, %columns : tensor<64x64xf32>, <64x64xf32, minor = 0>
  %xp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %x : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  tile.smem_store %xp, %out : tensor<64x64xf32>, <64x64xf32, minor = 1>
  %pp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %zero : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  %sum = arith.addf %xp, %pp : tensor<64x64xf32>
  tile.store %sum, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// The second one reads it by another name.
// CHECK-LABEL: func.func @named
// CHECK: %[[X:.*]] = tile.mma wgmma_tf32
// CHECK: tile.mma_wait 0 of %[[X]]
// CHECK: tile.smem_store
// CHECK: tile.mma wgmma_tf32
func.func @named(%x: tensor<64x64xf32>, %c: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %rows = tile.smem_alloc : <64x64xf32, minor = 1>
  %columns = tile.smem_alloc : <64x64xf32, minor = 0>
  tile.smem_store %x, %rows : tensor<64x64xf32>, <64x64xf32, minor = 1>
  tile.smem_store %x, %columns : tensor<64x64xf32>, <64x64xf32, minor = 0>
  %xp = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %columns, %zero : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  %next = tile.smem_alloc : <64x64xf32, minor = 1>
  %turned = tile.smem_trans %next : !tile.smem<64x64xf32, minor = 1> -> !tile.smem<64x64xf32, minor = 0>
  tile.smem_store %xp, %next : tensor<64x64xf32>, <64x64xf32, minor = 1>
  %r = tile.mma wgmma_tf32 k 64 warps(4, 1) %rows, %turned, %zero : !tile.smem<64x64xf32, minor = 1>, <64x64xf32, minor = 0> -> tensor<64x64xf32>
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
