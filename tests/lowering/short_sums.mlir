// Tiles that nothing but their reductions and scans place.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// Combined along a short axis into a sum that a loop carries: a thread keeps the whole axis of its own sums, nothing is
// exchanged and nothing converted on the way round.
// CHECK-LABEL: @carried_sum
// CHECK: scf.for
// CHECK: tile.reduce {{.*}} axis 2 : (tensor<64x64x4xi32, #tile.layout<64x64x4 regs [2:4*1, 1:4*1, 0:4*16] lanes [1:16*4, 0:2*1] warps [0:8*2]>>)
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @carried_sum(%A: !tile.view<2xi32>, %B: !tile.view<2xi32>, %C: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %sum = scf.for %k = %c0 to %n step %c4 iter_args(%acc = %zero) -> (tensor<64x64xi32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2xi32> -> tensor<64x4xi32>
    %b = tile.load %B[%c0, %k : i32, i32] : !tile.view<2xi32> -> tensor<64x4xi32>
    %a3 = tile.reshape %a : tensor<64x4xi32> -> tensor<64x1x4xi32>
    %b3 = tile.reshape %b : tensor<64x4xi32> -> tensor<1x64x4xi32>
    %l = tile.broadcast %a3 : tensor<64x1x4xi32> -> tensor<64x64x4xi32>
    %r = tile.broadcast %b3 : tensor<1x64x4xi32> -> tensor<64x64x4xi32>
    %x = arith.xori %l, %r : tensor<64x64x4xi32>
    %s = tile.reduce %x axis 2 : (tensor<64x64x4xi32>) -> tensor<64x64x1xi32> {
    ^bb0(%p: i32, %q: i32):
      %t = arith.addi %p, %q : i32
      tile.yield %t : i32
    }
    %flat = tile.reshape %s : tensor<64x64x1xi32> -> tensor<64x64xi32>
    %next = arith.addi %acc, %flat : tensor<64x64xi32>
    scf.yield %next : tensor<64x64xi32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2xi32>
  return
}

// -----
// Scanned values of two registers: a run of each lane's, one exchange for all of it.
// CHECK-LABEL: @long_scan
// CHECK: tile.scan {{.*}} axis 0 : (tensor<512xi64, #tile.layout<512 regs [0:4*1] lanes [0:32*4] warps [0:4*128]>>)
func.func @long_scan(%x: !tile.ptr<i64> {tile.align = 8 : i32}, %y: !tile.ptr<i64> {tile.align = 16 : i32}, %n: i64) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi64>
  %a = tile.gather %x offsets %i : tensor<512xi64> : !tile.ptr<i64> -> tensor<512xi64>
  %s = tile.scan %a axis 0 : (tensor<512xi64>) -> tensor<512xi64> {
  ^bb0(%p: i64, %q: i64):
    %t = arith.addi %p, %q : i64
    tile.yield %t : i64
  }
  tile.scatter %s, %y offsets %i : tensor<512xi64> : tensor<512xi64>, !tile.ptr<i64>
  return
}

// -----
// Of several loads the widest says how its tiles lie.
// CHECK-LABEL: @wide_first
// CHECK: tile.load %{{.*}}[%c1_i32 : i32] : <1xf32> -> tensor<512xf32, #tile.layout<512 regs [0:4*1]
// CHECK: tile.load %{{.*}}[%c0_i32 : i32] : <1xf32> -> tensor<512xf32, #tile.layout<512 regs [0:4*1]
func.func @wide_first(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile.load %x[%c1 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %b = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %s = arith.addf %a, %b : tensor<512xf32>
  tile.store %s, %y[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// Atomics at places that were computed go to memory one by one: what they are computed from stays wide.
// CHECK-LABEL: @scattered
// CHECK: tile.load {{.*}} -> tensor<512xi8, #tile.layout<512 regs [0:4*1]
func.func @scattered(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>}, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<512xi8>
  %i = arith.extui %a : tensor<512xi8> to tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %bit = arith.shli %one, %i : tensor<512xi32>
  %old = tile.atomic_rmw or relaxed gpu %y offsets %i : tensor<512xi32>, %bit : !tile.ptr<i32>, tensor<512xi32> -> tensor<512xi32>
  return
}

// -----
// The same along an axis as long as the bits of a word, of what was made of vectors: every thread has the bits of its own.
// CHECK-LABEL: @bits
// CHECK: tile.reduce {{.*}} axis 2 : (tensor<256x8x32xi32, #tile.layout<256x8x32 regs [2:32*1, 1:4*1, 0:4*64] lanes [1:2*4, 0:16*1] warps [0:4*16]>>)
// CHECK-NOT: tile.convert
// CHECK: return
func.func @bits(%V: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<256x1x32xi32>
  %i = tile.iota : tensor<256xi32>
  %b = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i : tensor<256xi32> -> tensor<256x1x1xi32>
  %bits = tile.reshape %b : tensor<32xi32> -> tensor<1x1x32xi32>
  %r = tile.broadcast %rows : tensor<256x1x1xi32> -> tensor<256x1x32xi32>
  %s = tile.broadcast %bits : tensor<1x1x32xi32> -> tensor<256x1x32xi32>
  %shifted = arith.shrui %r, %s : tensor<256x1x32xi32>
  %set = arith.andi %shifted, %one : tensor<256x1x32xi32>
  %wide = tile.broadcast %set : tensor<256x1x32xi32> -> tensor<256x8x32xi32>
  %x = arith.muli %wide, %wide : tensor<256x8x32xi32>
  %sum = tile.reduce %x axis 2 : (tensor<256x8x32xi32>) -> tensor<256x8x1xi32> {
  ^bb0(%p: i32, %q: i32):
    %t = arith.xori %p, %q : i32
    tile.yield %t : i32
  }
  %flat = tile.reshape %sum : tensor<256x8x1xi32> -> tensor<256x8xi32>
  tile.store %flat, %C[%c0, %c0 : i32, i32] : tensor<256x8xi32>, !tile.view<2xi32>
  return
}
