// A vector from which several tiles are made by a little arithmetic is converted once, and what is widened to 64 bits is
// converted narrow. What more than a few operations stand between is converted itself.
// RUN: tile-opt %s -split-input-file -tile-common-sources | FileCheck %s

#own = #tile.layout<1x256 regs [] lanes [1:32*1] warps [1:8*32]>
#all = #tile.layout<1x256 regs [1:2*1, 1:32*8] lanes [1:4*2, rep:8] warps [rep:8]>
// CHECK-LABEL: func.func @shifts(
// CHECK: %[[S:.*]] = tile.gather
// CHECK-NEXT: %[[C:.*]] = tile.convert %[[S]]
// CHECK-NOT: tile.convert
// CHECK: %[[UP:.*]] = arith.shli %{{.*}}, %[[C]] :
// CHECK-NEXT: %[[MASK:.*]] = arith.subi %[[UP]]
// CHECK-NEXT: arith.addi %[[C]], %[[MASK]]
// CHECK: return
func.func @shifts(%p: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %one = arith.constant dense<1> : tensor<1x256xi32, #own>
  %i = tile.iota : tensor<256xi32, #tile.layout<256 regs [] lanes [0:32*1] warps [0:8*32]>>
  %at = tile.reshape %i : tensor<256xi32, #tile.layout<256 regs [] lanes [0:32*1] warps [0:8*32]>> -> tensor<1x256xi32, #own>
  %s = tile.gather %p offsets %at : tensor<1x256xi32, #own> : !tile.ptr<i32> -> tensor<1x256xi32, #own>
  %up = arith.shli %one, %s : tensor<1x256xi32, #own>
  %mask = arith.subi %up, %one : tensor<1x256xi32, #own>
  %cs = tile.convert %s : tensor<1x256xi32, #own> -> tensor<1x256xi32, #all>
  %cm = tile.convert %mask : tensor<1x256xi32, #own> -> tensor<1x256xi32, #all>
  %sum = arith.addi %cs, %cm : tensor<1x256xi32, #all>
  %places = tile.convert %at : tensor<1x256xi32, #own> -> tensor<1x256xi32, #all>
  tile.scatter %sum, %y offsets %places : tensor<1x256xi32, #all> : tensor<1x256xi32, #all>, !tile.ptr<i32>
  return
}

// -----

#own = #tile.layout<1x256 regs [] lanes [1:32*1] warps [1:8*32]>
#all = #tile.layout<1x256 regs [1:2*1, 1:32*8] lanes [1:4*2, rep:8] warps [rep:8]>
// CHECK-LABEL: func.func @wide(
// CHECK: %[[F:.*]] = tile.gather
// CHECK-NEXT: %[[C:.*]] = tile.convert %[[F]] : tensor<1x256xi32,
// CHECK: arith.extsi %[[C]]
// CHECK: tile.convert %{{.*}} : tensor<1x256xf32,
// CHECK: return
func.func @wide(%at: tensor<1x256xi32, #own>, %p: !tile.ptr<i32>, %y: !tile.ptr<i64>, %z: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %f = tile.gather %p offsets %at : tensor<1x256xi32, #own> : !tile.ptr<i32> -> tensor<1x256xi32, #own>
  %w = arith.extsi %f : tensor<1x256xi32, #own> to tensor<1x256xi64, #own>
  %c = tile.convert %w : tensor<1x256xi64, #own> -> tensor<1x256xi64, #all>
  %real = arith.sitofp %f : tensor<1x256xi32, #own> to tensor<1x256xf32, #own>
  %e = math.exp %real : tensor<1x256xf32, #own>
  %g = tile.convert %e : tensor<1x256xf32, #own> -> tensor<1x256xf32, #all>
  %places = tile.convert %at : tensor<1x256xi32, #own> -> tensor<1x256xi32, #all>
  tile.scatter %c, %y offsets %places : tensor<1x256xi32, #all> : tensor<1x256xi64, #all>, !tile.ptr<i64>
  tile.scatter %g, %z offsets %places : tensor<1x256xi32, #all> : tensor<1x256xf32, #all>, !tile.ptr<f32>
  return
}

// -----

// A few numbers of each thread stay as they are.
#own = #tile.layout<128x1 regs [] lanes [0:32*1] warps [0:4*32]>
#rows = #tile.layout<128x1 regs [0:8*16] lanes [rep:8, 0:4*1] warps [0:4*4]>
// CHECK-LABEL: func.func @few(
// CHECK: %[[W:.*]] = arith.extsi
// CHECK: tile.convert %[[W]] : tensor<128x1xi64,
func.func @few(%at: tensor<128x1xi32, #own>, %p: !tile.ptr<i32>, %y: !tile.ptr<i64>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %f = tile.gather %p offsets %at : tensor<128x1xi32, #own> : !tile.ptr<i32> -> tensor<128x1xi32, #own>
  %w = arith.extsi %f : tensor<128x1xi32, #own> to tensor<128x1xi64, #own>
  %c = tile.convert %w : tensor<128x1xi64, #own> -> tensor<128x1xi64, #rows>
  %places = tile.convert %at : tensor<128x1xi32, #own> -> tensor<128x1xi32, #rows>
  tile.scatter %c, %y offsets %places : tensor<128x1xi32, #rows> : tensor<128x1xi64, #rows>, !tile.ptr<i64>
  return
}
