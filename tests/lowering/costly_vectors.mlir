// A vector of much work that every row of a tile needs: worked on once for every element, two in a thread, and handed to
// the threads of the rows. With little work each thread does it again for its sixteen rows.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @hashed
// CHECK: arith.muli {{.*}} : tensor<256xi64, #tile.layout<256 regs [0:2*1] lanes [0:32*2] warps [0:4*64]>>
// CHECK: arith.muli {{.*}} : tensor<256xi64, #tile.layout<256 regs [0:2*1] lanes [0:32*2] warps [0:4*64]>>
// CHECK: tile.reshape {{.*}} : tensor<256xi64, {{.*}} regs [0:2*1] {{.*}} -> tensor<256x1xi64, {{.*}} regs [0:16*16]
// CHECK: tile.atomic_rmw {{.*}} regs [0:16*16] lanes [1:8*1, 0:4*1] warps [0:4*4]
func.func @hashed(%keys: !tile.view<1xi64> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %words: !tile.ptr<i32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %k1 = arith.constant dense<-49064778989728563> : tensor<256xi64>
  %k2 = arith.constant dense<-4265267296055464877> : tensor<256xi64>
  %half = arith.constant dense<33> : tensor<256xi64>
  %eight = arith.constant dense<8> : tensor<256x1xi64>
  %ones = arith.constant dense<1> : tensor<256x8xi32>
  %k = tile.load %keys[%c0 : i32] : !tile.view<1xi64> -> tensor<256xi64>
  %a = arith.shrui %k, %half : tensor<256xi64>
  %b = arith.xori %k, %a : tensor<256xi64>
  %c = arith.muli %b, %k1 : tensor<256xi64>
  %d = arith.shrui %c, %half : tensor<256xi64>
  %e = arith.xori %c, %d : tensor<256xi64>
  %f = arith.muli %e, %k2 : tensor<256xi64>
  %g = arith.shrui %f, %half : tensor<256xi64>
  %r = tile.reshape %g : tensor<256xi64> -> tensor<256x1xi64>
  %m = arith.muli %r, %eight : tensor<256x1xi64>
  %rows = tile.broadcast %m : tensor<256x1xi64> -> tensor<256x8xi64>
  %i = tile.iota : tensor<8xi64>
  %row = tile.reshape %i : tensor<8xi64> -> tensor<1x8xi64>
  %columns = tile.broadcast %row : tensor<1x8xi64> -> tensor<256x8xi64>
  %at = arith.addi %rows, %columns : tensor<256x8xi64>
  %old = tile.atomic_rmw or relaxed gpu %words offsets %at : tensor<256x8xi64>, %ones : !tile.ptr<i32>, tensor<256x8xi32> -> tensor<256x8xi32>
  return
}

// -----

// CHECK-LABEL: func.func @placed
// CHECK: tile.load {{.*}} regs [0:16*16]
// CHECK: tile.atomic_rmw
func.func @placed(%keys: !tile.view<1xi64> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %words: !tile.ptr<i32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %half = arith.constant dense<33> : tensor<256xi64>
  %eight = arith.constant dense<8> : tensor<256x1xi64>
  %ones = arith.constant dense<1> : tensor<256x8xi32>
  %k = tile.load %keys[%c0 : i32] : !tile.view<1xi64> -> tensor<256xi64>
  %g = arith.shrui %k, %half : tensor<256xi64>
  %r = tile.reshape %g : tensor<256xi64> -> tensor<256x1xi64>
  %m = arith.muli %r, %eight : tensor<256x1xi64>
  %rows = tile.broadcast %m : tensor<256x1xi64> -> tensor<256x8xi64>
  %i = tile.iota : tensor<8xi64>
  %row = tile.reshape %i : tensor<8xi64> -> tensor<1x8xi64>
  %columns = tile.broadcast %row : tensor<1x8xi64> -> tensor<256x8xi64>
  %at = arith.addi %rows, %columns : tensor<256x8xi64>
  %old = tile.atomic_rmw or relaxed gpu %words offsets %at : tensor<256x8xi64>, %ones : !tile.ptr<i32>, tensor<256x8xi32> -> tensor<256x8xi32>
  return
}
