// A producer whose threads gather, unasked: where tiles alive at once leave no registers for a second program of the
// multiprocessor. Words that eight rows share are held once, and what they go through on their way to a product is not
// there all at once: two programs run beside each other, and no warps only copy.
// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead,tile-specialize))' --tile-target=sm_90a 2>&1 | FileCheck %s

// CHECK: remark: no producer warps: a tile gathered through pointers is not a box of a view
// CHECK-LABEL: func.func @shared_words
// CHECK-NOT: tile.specialize
// CHECK-LABEL: func.func @words
// CHECK: tile.specialize
func.func @shared_words(%A: !tile.ptr<f16> {tile.align = 16 : i32}, %W: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pitch = arith.constant dense<128> : tensor<64x128xi32>
  %length = arith.constant dense<4096> : tensor<128x64xi32>
  %eights = arith.constant dense<8> : tensor<64xi32>
  %low = arith.constant dense<15> : tensor<64x128xi32>
  %rows = tile.iota : tensor<64xi32>
  %columns = tile.iota : tensor<128xi32>
  %row = tile.reshape %columns : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %row : tensor<1x128xi32> -> tensor<64x128xi32>
  %down = tile.reshape %columns : tensor<128xi32> -> tensor<128x1xi32>
  %lines = tile.broadcast %down : tensor<128x1xi32> -> tensor<128x64xi32>
  %starts = arith.muli %lines, %length : tensor<128x64xi32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %rows : tensor<64xi32>
    %atRow = tile.reshape %at : tensor<64xi32> -> tensor<1x64xi32>
    %atRows = tile.broadcast %atRow : tensor<1x64xi32> -> tensor<128x64xi32>
    %places = arith.addi %starts, %atRows : tensor<128x64xi32>
    %a = tile.gather %A offsets %places : tensor<128x64xi32> : !tile.ptr<f16> -> tensor<128x64xf16>
    %word = arith.divsi %at, %eights : tensor<64xi32>
    %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
    %wordRows = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x128xi32>
    %wordLines = arith.muli %wordRows, %pitch : tensor<64x128xi32>
    %offsets = arith.addi %wordLines, %across : tensor<64x128xi32>
    %words = tile.gather %W offsets %offsets : tensor<64x128xi32> : !tile.ptr<i32> -> tensor<64x128xi32>
    %cut = arith.andi %words, %low : tensor<64x128xi32>
    %w = arith.sitofp %cut : tensor<64x128xi32> to tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}
func.func @words(%A: !tile.ptr<f16> {tile.align = 16 : i32}, %W: !tile.ptr<i64> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pitch = arith.constant dense<128> : tensor<64x128xi32>
  %length = arith.constant dense<4096> : tensor<128x64xi32>
  %eights = arith.constant dense<8> : tensor<64xi32>
  %low = arith.constant dense<15> : tensor<64x128xi32>
  %rows = tile.iota : tensor<64xi32>
  %columns = tile.iota : tensor<128xi32>
  %row = tile.reshape %columns : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %row : tensor<1x128xi32> -> tensor<64x128xi32>
  %down = tile.reshape %columns : tensor<128xi32> -> tensor<128x1xi32>
  %lines = tile.broadcast %down : tensor<128x1xi32> -> tensor<128x64xi32>
  %starts = arith.muli %lines, %length : tensor<128x64xi32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %rows : tensor<64xi32>
    %atRow = tile.reshape %at : tensor<64xi32> -> tensor<1x64xi32>
    %atRows = tile.broadcast %atRow : tensor<1x64xi32> -> tensor<128x64xi32>
    %places = arith.addi %starts, %atRows : tensor<128x64xi32>
    %a = tile.gather %A offsets %places : tensor<128x64xi32> : !tile.ptr<f16> -> tensor<128x64xf16>
    %word = arith.addi %at, %eights : tensor<64xi32>
    %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
    %wordRows = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x128xi32>
    %wordLines = arith.muli %wordRows, %pitch : tensor<64x128xi32>
    %offsets = arith.addi %wordLines, %across : tensor<64x128xi32>
    %wide = tile.gather %W offsets %offsets : tensor<64x128xi32> : !tile.ptr<i64> -> tensor<64x128xi64>
    %words = arith.trunci %wide : tensor<64x128xi64> to tensor<64x128xi32>
    %cut = arith.andi %words, %low : tensor<64x128xi32>
    %w = arith.sitofp %cut : tensor<64x128xi32> to tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}

// What is made of the sums behind the loop, one element after the other, takes no registers beside them: two programs of
// one warpgroup of consumers, not one without a producer.
// CHECK-LABEL: func.func @leaky
// CHECK: tile.specialize regs(40, 216) programs 2
func.func @leaky(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %slope = arith.constant dense<0.01> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<128x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %positive = arith.cmpf oge, %sum, %zero : tensor<128x128xf32>
  %less = arith.mulf %sum, %slope : tensor<128x128xf32>
  %leaky = arith.select %positive, %sum, %less : tensor<128x128xi1>, tensor<128x128xf32>
  tile.store %leaky, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}
