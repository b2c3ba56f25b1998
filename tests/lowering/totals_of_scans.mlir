// A reduction of what a scan combines along the same axis is what the scan comes to.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-totals-of-scans | FileCheck %s

#row = #tile.layout<4x512 regs [1:4*1, 1:4*128] lanes [1:32*4] warps [0:4*1]>
#sum = #tile.layout<4x1 regs [] lanes [rep:32] warps [0:4*1]>
// CHECK-LABEL: @sums
// CHECK: %[[S:.*]] = tile.scan
// CHECK-NOT: tile.reduce
// CHECK: %[[T:.*]] = tile.total %[[S]] : {{.*}} -> tensor<4x1xi32
// CHECK: return %[[S]], %[[T]]
func.func @sums(%x: tensor<4x512xi32, #row>) -> (tensor<4x512xi32, #row>, tensor<4x1xi32, #sum>) {
  %s = tile.scan %x axis 1 : (tensor<4x512xi32, #row>) -> tensor<4x512xi32, #row> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.addi %a, %b : i32
    tile.yield %m : i32
  }
  %t = tile.reduce %x axis 1 : (tensor<4x512xi32, #row>) -> tensor<4x1xi32, #sum> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.addi %a, %b : i32
    tile.yield %m : i32
  }
  return %s, %t : tensor<4x512xi32, #row>, tensor<4x1xi32, #sum>
}

// -----
// The reduction may come first.
#row = #tile.layout<4x512 regs [1:4*1, 1:4*128] lanes [1:32*4] warps [0:4*1]>
#sum = #tile.layout<4x1 regs [] lanes [rep:32] warps [0:4*1]>
// CHECK-LABEL: @sum_first
// CHECK: %[[S:.*]] = tile.scan {{.*}} reverse
// CHECK: %[[T:.*]] = tile.total %[[S]]
// CHECK: arith.negf %[[T]]
func.func @sum_first(%x: tensor<4x512xf32, #row>) -> (tensor<4x512xf32, #row>, tensor<4x1xf32, #sum>) {
  %t = tile.reduce %x axis 1 : (tensor<4x512xf32, #row>) -> tensor<4x1xf32, #sum> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    tile.yield %m : f32
  }
  %n = arith.negf %t : tensor<4x1xf32, #sum>
  %s = tile.scan %x axis 1 reverse : (tensor<4x512xf32, #row>) -> tensor<4x512xf32, #row> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    tile.yield %m : f32
  }
  return %s, %n : tensor<4x512xf32, #row>, tensor<4x1xf32, #sum>
}

// -----
// Not another combination, and not where threads hold padding behind a line.
#row = #tile.layout<4x512 regs [1:4*1, 1:4*128] lanes [1:32*4] warps [0:4*1]>
#sum = #tile.layout<4x1 regs [] lanes [rep:32] warps [0:4*1]>
#odd = #tile.layout<100 regs [0:1*1] lanes [0:32*1] warps [0:4*32]>
#one = #tile.layout<1 regs [] lanes [rep:32] warps [rep:4]>
// CHECK-LABEL: @others
// CHECK-NOT: tile.total
func.func @others(%x: tensor<4x512xi32, #row>, %y: tensor<100xi32, #odd>) -> (tensor<4x512xi32, #row>, tensor<4x1xi32, #sum>, tensor<100xi32, #odd>, tensor<1xi32, #one>) {
  %s = tile.scan %x axis 1 : (tensor<4x512xi32, #row>) -> tensor<4x512xi32, #row> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.addi %a, %b : i32
    tile.yield %m : i32
  }
  %t = tile.reduce %x axis 1 : (tensor<4x512xi32, #row>) -> tensor<4x1xi32, #sum> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.maxsi %a, %b : i32
    tile.yield %m : i32
  }
  %u = tile.scan %y axis 0 : (tensor<100xi32, #odd>) -> tensor<100xi32, #odd> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.addi %a, %b : i32
    tile.yield %m : i32
  }
  %v = tile.reduce %y axis 0 : (tensor<100xi32, #odd>) -> tensor<1xi32, #one> {
  ^bb0(%a: i32, %b: i32):
    %m = arith.addi %a, %b : i32
    tile.yield %m : i32
  }
  return %s, %t, %u, %v : tensor<4x512xi32, #row>, tensor<4x1xi32, #sum>, tensor<100xi32, #odd>, tensor<1xi32, #one>
}
