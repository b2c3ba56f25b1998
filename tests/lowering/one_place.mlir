// An operand whose elements lie at one place, some of them wanted: each is asked for under its own mask.
// RUN: tilec compile %s --target sm_80 --ptxas none --emit ptx | FileCheck %s

// Of the first iteration, which is copied in front of the loop: 64 x 64 elements for 128 threads.
// CHECK-LABEL: .entry one_place(
// CHECK-COUNT-32: @%p{{[0-9]+}} ld.global.b16
// CHECK: ret;
func.func @one_place(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %col = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %cols = tile.broadcast %col : tensor<1x64xi32> -> tensor<64x64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %end = tile.splat %m : i32 -> tensor<64x64xi32>
  %sum = arith.addi %cols, %rows : tensor<64x64xi32>
  %in = arith.cmpi slt, %sum, %end : tensor<64x64xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = tile.splat %k : i32 -> tensor<64x64xi32>
    %x = tile.gather %p offsets %at : tensor<64x64xi32> mask %in : tensor<64x64xi1> : !tile.ptr<f16> -> tensor<64x64xf16>
    %y = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
