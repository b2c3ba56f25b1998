// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A row that is stretched: 16 lanes that lie in one vector are one load, up to the last of them, and a permutation.
// CHECK-LABEL: define void @tile.stretch
// CHECK: %[[PLACES:[0-9]+]] = sub <16 x i32> %{{.*}}, %{{.*}}
// CHECK-NEXT: icmp ult <16 x i32> %[[PLACES]], splat (i32 16)
// CHECK: call i32 @llvm.vector.reduce.umax.v16i32(<16 x i32> %[[PLACES]])
// CHECK: call <16 x i32> @llvm.masked.load.v16i32
// CHECK: call <16 x i32> @llvm.x86.avx512.permvar.si.512(<16 x i32> %{{.*}}, <16 x i32> %[[PLACES]])
// CHECK: call <16 x float> @llvm.masked.gather
func.func @stretch(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %d: i32) attributes {tile.kernel} {
  %i = tile.iota : tensor<256xi32>
  %by = tile.splat %d : i32 -> tensor<256xi32>
  %at = arith.divsi %i, %by : tensor<256xi32>
  %x = tile.gather %p offsets %at : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  tile.scatter %x, %q offsets %i : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
