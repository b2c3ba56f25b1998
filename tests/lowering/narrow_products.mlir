// Products by multiply-adds whose rows are shorter than a warp's lanes have neighbours for: more rows of fewer lanes, so
// that every product is computed once.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-operands -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: @eight_columns
// CHECK: tile.mma fma {{.*}} -> tensor<128x8xf32, #tile.layout<128x8 regs [1:4*1, 0:2*64] lanes [1:2*4, 0:16*1] warps [0:4*16]>>
func.func @eight_columns(%A: !tile.view<2xf32>, %B: !tile.view<2xf32>, %C: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128x8xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x8xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x8xf32>
  %d = tile.dot %a, %b, %zero : tensor<128x8xf32>, tensor<8x8xf32> -> tensor<128x8xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<128x8xf32>, !tile.view<2xf32>
  return
}

// CHECK-LABEL: @wide
// CHECK: tile.mma fma {{.*}} -> tensor<64x64xf32, #tile.layout<64x64 regs [1:4*1, 0:4*1, 0:2*32] lanes [1:8*4, 0:4*4]
func.func @wide(%A: !tile.view<2xf32>, %B: !tile.view<2xf32>, %C: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x8xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x64xf32>
  %d = tile.dot %a, %b, %zero : tensor<64x8xf32>, tensor<8x64xf32> -> tensor<64x64xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// Second operands whose neighbours lie along k: neighbouring lanes read neighbouring columns, in different banks, and the
// four columns of a lane are as many lanes apart.
// CHECK-LABEL: @along_k
// CHECK: tile.mma fma {{.*}} -> tensor<64x64xf32, #tile.layout<64x64 regs [1:4*8, 0:4*1, 0:2*32] lanes [1:8*1, 0:4*4]
func.func @along_k(%A: !tile.view<2xf32>, %B: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %C: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32>
  %t = tile.trans %b, [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %d = tile.dot %a, %t, %zero : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// As many rows as columns: where no grid of warps computes anything twice, rows of eight lanes.
// CHECK-LABEL: @square
// CHECK: tile.mma fma k 8 warps(4, 1) {{.*}} -> tensor<32x32xf32, #tile.layout<32x32 regs [1:4*1, 0:2*16] lanes [1:8*4, 0:4*1] warps [0:4*4]>>
func.func @square(%A: !tile.view<2xf32>, %B: !tile.view<2xf32>, %C: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x8xf32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x32xf32>
  %d = tile.dot %a, %b, %zero : tensor<32x8xf32>, tensor<8x32xf32> -> tensor<32x32xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}
