// Tiles of 16-bit elements come back from shared memory by ldmatrix where products hold them: four 8x8 matrices at a time,
// also where several warps read the same ones, and turned where pairs lie across the buffer's rows.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

#operand = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:2*8, 1:4*16] lanes [1:4*2, 0:8*1] warps [0:4*16, rep:2]>

// CHECK-LABEL: entry rows(
// CHECK-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: ld.shared
// CHECK: ret;
func.func @rows(%y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %t = tile.smem_load %s : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16, #operand>
  tile.store %t, %y[%i, %i : i32, i32] : tensor<64x64xf16, #operand>, !tile.view<2xf16>
  return
}

// -----

#operand = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:2*8, 1:4*16] lanes [1:4*2, 0:8*1] warps [0:4*16]>

// CHECK-LABEL: entry columns(
// CHECK-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-NOT: ld.shared
// CHECK: ret;
func.func @columns(%y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc : !tile.smem<64x64xf16, minor = 0>
  %t = tile.smem_load %s : !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf16, #operand>
  tile.store %t, %y[%i, %i : i32, i32] : tensor<64x64xf16, #operand>, !tile.view<2xf16>
  return
}

// -----

#words = #tile.layout<64x32 regs [1:2*1, 0:2*8, 1:4*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>

// CHECK-LABEL: entry words(
// CHECK-NOT: ldmatrix
// CHECK: ld.shared
// CHECK: ret;
func.func @words(%y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc : !tile.smem<64x32xf32, minor = 1>
  %t = tile.smem_load %s : !tile.smem<64x32xf32, minor = 1> -> tensor<64x32xf32, #words>
  tile.store %t, %y[%i, %i : i32, i32] : tensor<64x32xf32, #words>, !tile.view<2xf32>
  return
}
