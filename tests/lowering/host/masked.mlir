// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Offsets that count up are one address and a vector. Where the whole mask holds a store is a plain one, else a masked
// one; a load among other work is a masked one in any case, and has no buffer.
// CHECK-LABEL: define void @tile.masked
// CHECK-NOT: %arena,
// CHECK: call <32 x float> @llvm.masked.load
// CHECK: call i1 @llvm.vector.reduce.and
// CHECK: call void @llvm.masked.store
func.func @masked(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %i = tile.iota : tensor<128xi32>
  %nn = tile.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %nn : tensor<128xi32>
  %a = tile.gather %p offsets %i : tensor<128xi32> mask %m : tensor<128xi1> : !tile.ptr<f32> -> tensor<128xf32>
  %b = arith.addf %a, %a : tensor<128xf32>
  tile.scatter %b, %p offsets %i : tensor<128xi32> mask %m : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
  return
}
