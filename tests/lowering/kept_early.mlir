// Loads for the next iteration stay in front of long work: lanes meet behind them, which the assembler moves no load
// across. Under flags that were loaded an iteration early neighbours are still one access.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry long(
// CHECK: bar.warp.sync
// CHECK-COUNT-4: @%p{{[0-9]+}} ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: mul.f32
// CHECK: ret
func.func @long(%flags: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.ptr<f32> {tile.align = 16 : i32},
                %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<2048xf32>
  %most = arith.constant dense<7> : tensor<2048xi32>
  %c0 = arith.constant 0 : i32
  %c2048 = arith.constant 2048 : i32
  %o = tile.iota : tensor<2048xi32>
  %sum = scf.for %i = %c0 to %n step %c2048 iter_args(%acc = %zero) -> (tensor<2048xf32>) : i32 {
    %start = tile.splat %i : i32 -> tensor<2048xi32>
    %at = arith.addi %start, %o : tensor<2048xi32>
    %f = tile.gather %flags offsets %at : tensor<2048xi32> : !tile.ptr<i32> -> tensor<2048xi32>
    %passed = arith.cmpi sle, %f, %most : tensor<2048xi32>
    %v = tile.gather %x offsets %at : tensor<2048xi32> mask %passed : tensor<2048xi1> : !tile.ptr<f32> -> tensor<2048xf32>
    %w0 = arith.mulf %v, %v : tensor<2048xf32>
    %w1 = arith.mulf %w0, %v : tensor<2048xf32>
    %w2 = arith.mulf %w1, %v : tensor<2048xf32>
    %w3 = arith.mulf %w2, %v : tensor<2048xf32>
    %w4 = arith.mulf %w3, %v : tensor<2048xf32>
    %w5 = arith.mulf %w4, %v : tensor<2048xf32>
    %w6 = arith.mulf %w5, %v : tensor<2048xf32>
    %w7 = arith.mulf %w6, %v : tensor<2048xf32>
    %w8 = arith.mulf %w7, %v : tensor<2048xf32>
    %w9 = arith.mulf %w8, %v : tensor<2048xf32>
    %w10 = arith.mulf %w9, %v : tensor<2048xf32>
    %w11 = arith.mulf %w10, %v : tensor<2048xf32>
    %s = arith.addf %acc, %w11 : tensor<2048xf32>
    scf.yield %s : tensor<2048xf32>
  }
  tile.scatter %sum, %y offsets %o : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}
