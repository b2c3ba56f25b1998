// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Functions of f64 are computed in vectors; the C library is called for angles beyond 2^30 alone.
// CHECK-LABEL: define void @tile.functions
// CHECK-NOT: @llvm.exp.v
// CHECK: %[[FAR:.*]] = fcmp oge <{{[0-9]+}} x double> %{{.*}}, splat (double 0x41D0000000000000)
// CHECK: %[[ANY:.*]] = call i1 @llvm.vector.reduce.or.v{{[0-9]+}}i1(<{{[0-9]+}} x i1> %[[FAR]])
// CHECK: br i1 %[[ANY]], label %[[EXACT:.*]], label
// CHECK: [[EXACT]]:
// CHECK-NEXT: call <{{[0-9]+}} x double> @llvm.sin
// CHECK: ret void
func.func @functions(%A: !tile.view<1 x f64> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f64> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f64> -> tensor<1024xf64>
  %e = math.exp %a : tensor<1024xf64>
  %s = math.sin %e : tensor<1024xf64>
  tile.store %s, %O[%c0 : i32] : tensor<1024xf64>, !tile.view<1 x f64>
  return
}
