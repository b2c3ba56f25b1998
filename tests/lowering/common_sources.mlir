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

// -----

// What a product's result is added to is stored as it was loaded: the result alone is exchanged.
#lines = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#sums = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
// CHECK-LABEL: func.func @there_and_back(
// CHECK: %[[OLD:.*]] = tile.gather
// CHECK-NOT: tile.convert
// CHECK: %[[T:.*]] = arith.truncf
// CHECK-NEXT: %[[C:.*]] = tile.convert %[[T]] : tensor<64x64xbf16,
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[C]], %[[OLD]] :
// CHECK: %[[HALF:.*]] = arith.mulf %[[SUM]], %{{.*}} :
// CHECK-NEXT: tile.scatter %[[HALF]],
// CHECK-NOT: tile.convert
// CHECK: return
func.func @there_and_back(%at: tensor<64x64xi32, #lines>, %s: tensor<64x64xf32, #sums>, %p: !tile.ptr<bf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %half = arith.constant dense<0.5> : tensor<64x64xbf16, #sums>
  %old = tile.gather %p offsets %at : tensor<64x64xi32, #lines> : !tile.ptr<bf16> -> tensor<64x64xbf16, #lines>
  %there = tile.convert %old : tensor<64x64xbf16, #lines> -> tensor<64x64xbf16, #sums>
  %t = arith.truncf %s : tensor<64x64xf32, #sums> to tensor<64x64xbf16, #sums>
  %sum = arith.addf %t, %there : tensor<64x64xbf16, #sums>
  %scaled = arith.mulf %sum, %half : tensor<64x64xbf16, #sums>
  %back = tile.convert %scaled : tensor<64x64xbf16, #sums> -> tensor<64x64xbf16, #lines>
  tile.scatter %back, %p offsets %at : tensor<64x64xi32, #lines> : tensor<64x64xbf16, #lines>, !tile.ptr<bf16>
  return
}

// -----

// Two narrow exchanges do not become a wide one, nor is done without one that others need.
#lines = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#sums = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-4: tile.convert %{{.*}} : tensor<64x64xbf16,
// CHECK-NOT: tile.convert
// CHECK: return
func.func @kept(%at: tensor<64x64xi32, #lines>, %to: tensor<64x64xi32, #sums>, %s: tensor<64x64xf32, #sums>, %p: !tile.ptr<bf16>, %q: !tile.ptr<bf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %old = tile.gather %p offsets %at : tensor<64x64xi32, #lines> : !tile.ptr<bf16> -> tensor<64x64xbf16, #lines>
  %there = tile.convert %old : tensor<64x64xbf16, #lines> -> tensor<64x64xbf16, #sums>
  %w = arith.extf %there : tensor<64x64xbf16, #sums> to tensor<64x64xf32, #sums>
  %sum = arith.addf %s, %w : tensor<64x64xf32, #sums>
  %t = arith.truncf %sum : tensor<64x64xf32, #sums> to tensor<64x64xbf16, #sums>
  %back = tile.convert %t : tensor<64x64xbf16, #sums> -> tensor<64x64xbf16, #lines>
  tile.scatter %back, %p offsets %at : tensor<64x64xi32, #lines> : tensor<64x64xbf16, #lines>, !tile.ptr<bf16>
  %other = tile.gather %q offsets %at : tensor<64x64xi32, #lines> : !tile.ptr<bf16> -> tensor<64x64xbf16, #lines>
  %needed = tile.convert %other : tensor<64x64xbf16, #lines> -> tensor<64x64xbf16, #sums>
  tile.scatter %needed, %p offsets %to : tensor<64x64xi32, #sums> : tensor<64x64xbf16, #sums>, !tile.ptr<bf16>
  %r = arith.truncf %s : tensor<64x64xf32, #sums> to tensor<64x64xbf16, #sums>
  %both = arith.addf %r, %needed : tensor<64x64xbf16, #sums>
  %last = tile.convert %both : tensor<64x64xbf16, #sums> -> tensor<64x64xbf16, #lines>
  tile.scatter %last, %q offsets %at : tensor<64x64xi32, #lines> : tensor<64x64xbf16, #lines>, !tile.ptr<bf16>
  return
}

// -----

#lines = #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>
#sums = #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>

// Keys of a sort, which are the upper words of what is exchanged, become that behind the exchange.
// CHECK-LABEL: func.func @keys(
// CHECK: %[[C:.*]] = tile.convert %{{.*}} : tensor<64x64xi32,
// CHECK-NEXT: %[[W:.*]] = arith.extsi %[[C]]
// CHECK: %[[UP:.*]] = arith.shli %[[W]]
// CHECK-NOT: tile.convert
// CHECK: tile.scatter %[[UP]]
func.func @keys(%at: tensor<64x64xi32, #sums>, %to: tensor<64x64xi32, #lines>, %p: !tile.ptr<i32>, %y: !tile.ptr<i64>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %up = arith.constant dense<32> : tensor<64x64xi64, #sums>
  %k = tile.gather %p offsets %at : tensor<64x64xi32, #sums> : !tile.ptr<i32> -> tensor<64x64xi32, #sums>
  %w = arith.extsi %k : tensor<64x64xi32, #sums> to tensor<64x64xi64, #sums>
  %u = arith.shli %w, %up : tensor<64x64xi64, #sums>
  %c = tile.convert %u : tensor<64x64xi64, #sums> -> tensor<64x64xi64, #lines>
  tile.scatter %c, %y offsets %to : tensor<64x64xi32, #lines> : tensor<64x64xi64, #lines>, !tile.ptr<i64>
  return
}
