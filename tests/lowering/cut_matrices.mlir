// A batch of small matrices that a loop carries and cuts: each thread has a whole matrix, and all pieces of it. A batch
// that does not divide into threads lies as it would.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @rotations
// CHECK: scf.for {{.*}}tensor<128x3x3xf64, #tile.layout<128x3x3 regs [2:3*1, 1:3*1] lanes [0:32*1] warps [0:4*32]>>
// CHECK: tile.extract {{.*}} -> tensor<128x1x1xf64, #tile.layout<128x1x1 regs [] lanes [0:32*1] warps [0:4*32]>>
func.func @rotations(%x: !tile.view<3xf64> {tile.align = 16 : i32, tile.unit_stride = 2 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %a = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf64> -> tensor<128x3x3xf64>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%m = %a) -> (tensor<128x3x3xf64>) : i32 {
    %p = tile.extract %m [0, 0, 1] : tensor<128x3x3xf64> -> tensor<128x1x1xf64>
    %b = tile.broadcast %p : tensor<128x1x1xf64> -> tensor<128x3x3xf64>
    %n = arith.mulf %m, %b : tensor<128x3x3xf64>
    scf.yield %n : tensor<128x3x3xf64>
  }
  tile.store %r, %x[%c0, %c0, %c0 : i32, i32, i32] : tensor<128x3x3xf64>, !tile.view<3xf64>
  return
}

// -----

// CHECK-LABEL: func.func @few
// CHECK-NOT: tensor<96x3x3xf64, #tile.layout<96x3x3 regs [2:3*1, 1:3*1] lanes [0:32*1]
// CHECK: return
func.func @few(%x: !tile.view<3xf64> {tile.align = 16 : i32, tile.unit_stride = 2 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %a = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf64> -> tensor<96x3x3xf64>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%m = %a) -> (tensor<96x3x3xf64>) : i32 {
    %p = tile.extract %m [0, 0, 1] : tensor<96x3x3xf64> -> tensor<96x1x1xf64>
    %b = tile.broadcast %p : tensor<96x1x1xf64> -> tensor<96x3x3xf64>
    %n = arith.mulf %m, %b : tensor<96x3x3xf64>
    scf.yield %n : tensor<96x3x3xf64>
  }
  tile.store %r, %x[%c0, %c0, %c0 : i32, i32, i32] : tensor<96x3x3xf64>, !tile.view<3xf64>
  return
}
