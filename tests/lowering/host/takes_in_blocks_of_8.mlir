// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Numbers of 64 bits, the same in blocks of 8.
// CHECK-LABEL: define void @tile.exchange_long
// CHECK: lshr <8 x i32>
// CHECK: call <8 x i64> @llvm.x86.avx512.permvar.di.512
// CHECK: call <8 x i64> @llvm.masked.gather
func.func @exchange_long(%A: !tile.view<1 x i64> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x i64> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %four = arith.constant dense<4> : tensor<512xi32>
  %i = tile.iota : tensor<512xi32>
  %other = arith.xori %i, %four : tensor<512xi32>
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x i64> -> tensor<512xi64>
  %t = tile.take %a, %other axis 0 : tensor<512xi64>, tensor<512xi32> -> tensor<512xi64>
  tile.store %t, %O[%c0 : i32] : tensor<512xi64>, !tile.view<1 x i64>
  return
}
