// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s
// RUN: tilec compile %s --target host:x86-64-v3 --emit llvm | FileCheck %s --check-prefix=V3

// The larger of two numbers, either of which may be NaN, is one instruction of AVX-512. Beside a constant any is.
// CHECK-LABEL: define void @tile.extremes
// CHECK: call <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float> %{{.*}}, <16 x float> %{{.*}}, i32 5,
// CHECK: call <32 x float> @llvm.minnum.v32f32(
// CHECK: call <8 x double> @llvm.x86.avx512.mask.range.pd.512(<8 x double> %{{.*}}, <8 x double> %{{.*}}, i32 4,
// V3-LABEL: define void @tile.extremes
// V3: call <16 x float> @llvm.maxnum.v16f32(
// V3: call <8 x double> @llvm.minnum.v8f64(
func.func @extremes(%p: !tile.ptr<f32>, %q: !tile.ptr<f64>) attributes {tile.kernel} {
  %i = tile.iota : tensor<64xi32>
  %n = arith.constant dense<64> : tensor<64xi32>
  %j = arith.addi %i, %n : tensor<64xi32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %a = tile.gather %p offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %b = tile.gather %p offsets %j : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %c = arith.maxnumf %a, %b : tensor<64xf32>
  %d = arith.minnumf %c, %one : tensor<64xf32>
  tile.scatter %d, %p offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  %x = tile.gather %q offsets %i : tensor<64xi32> : !tile.ptr<f64> -> tensor<64xf64>
  %y = tile.gather %q offsets %j : tensor<64xi32> : !tile.ptr<f64> -> tensor<64xf64>
  %z = arith.minnumf %x, %y : tensor<64xf64>
  tile.scatter %z, %q offsets %i : tensor<64xi32> : tensor<64xf64>, !tile.ptr<f64>
  return
}
