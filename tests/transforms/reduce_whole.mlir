// A tile that is reduced to one element is reduced along all of its dims at once.
// RUN: tile-opt %s -split-input-file --tile-reduce-whole | FileCheck %s

#tile = #tile.layout<32x512 regs [1:4*1, 1:4*128, 0:4*8] lanes [1:32*4] warps [0:8*1]>
#row = #tile.layout<32x1 regs [0:4*8] lanes [rep:32] warps [0:8*1]>
#one = #tile.layout<1x1 regs [] lanes [rep:32] warps [rep:8]>

// Lanes and warps meet for one value, not for every row.
// CHECK-LABEL: func.func @total
// CHECK: %[[LINE:.*]] = tile.reshape %{{.*}} -> tensor<16384xf32, #tile.layout<16384 regs [0:4*1, 0:4*128, 0:4*4096] lanes [0:32*4] warps [0:8*512]>>
// CHECK: %[[SUM:.*]] = tile.reduce %[[LINE]] axis 0 : {{.*}} -> tensor<1xf32
// CHECK-NOT: tile.reduce
// CHECK: tile.item %[[SUM]] : tensor<1xf32
func.func @total(%x: tensor<32x512xf32, #tile>) -> f32 {
  %r = tile.reduce %x axis 1 : (tensor<32x512xf32, #tile>) -> tensor<32x1xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %s = tile.reduce %r axis 0 : (tensor<32x1xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %t = tile.item %s : tensor<1x1xf32, #one> -> f32
  return %t : f32
}

// -----

#tile = #tile.layout<32x512 regs [1:4*1, 1:4*128, 0:4*8] lanes [1:32*4] warps [0:8*1]>
#row = #tile.layout<32x1 regs [0:4*8] lanes [rep:32] warps [0:8*1]>
#one = #tile.layout<1x1 regs [] lanes [rep:32] warps [rep:8]>

// The largest sum of a row, and rows that something else reads.
// CHECK-LABEL: func.func @others
// CHECK: tile.reduce %{{.*}} axis 1
// CHECK: tile.reduce %{{.*}} axis 0
// CHECK: tile.reduce %{{.*}} axis 1
// CHECK: tile.reduce %{{.*}} axis 0
func.func @others(%x: tensor<32x512xf32, #tile>) -> (tensor<1x1xf32, #one>, tensor<32x1xf32, #row>, tensor<1x1xf32, #one>) {
  %r = tile.reduce %x axis 1 : (tensor<32x512xf32, #tile>) -> tensor<32x1xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %s = tile.reduce %r axis 0 : (tensor<32x1xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.yield %c : f32
  }
  %u = tile.reduce %x axis 1 : (tensor<32x512xf32, #tile>) -> tensor<32x1xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.yield %c : f32
  }
  %v = tile.reduce %u axis 0 : (tensor<32x1xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.yield %c : f32
  }
  return %s, %u, %v : tensor<1x1xf32, #one>, tensor<32x1xf32, #row>, tensor<1x1xf32, #one>
}
