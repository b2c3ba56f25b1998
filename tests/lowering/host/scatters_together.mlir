// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Two scatters of what is computed from one gather run in one loop, in which it is read once. Those through one argument
// do so where they turn out not to meet.
// CHECK-LABEL: define void @tile.both
// CHECK: %[[X:[0-9]+]] = load <[[N:[0-9]+]] x float>, ptr
// CHECK-NOT: load
// CHECK: store <[[N]] x float> %[[X]], ptr
// CHECK: store <[[N]] x float> %{{.*}}, ptr
// CHECK: br i1
// CHECK: %[[DISTANCE:[0-9]+]] = sub i64
// CHECK: icmp sge i64 %[[DISTANCE]], 1024
// CHECK: icmp sle i64 %[[DISTANCE]], -1024
// CHECK: %[[X:[0-9]+]] = load <[[N]] x float>, ptr
// CHECK-NOT: load
// CHECK: store <[[N]] x float> %[[X]], ptr
// CHECK: store <[[N]] x float> %{{.*}}, ptr
// CHECK: br i1
// CHECK: else:
// CHECK: load <[[N]] x float>, ptr
// CHECK: br i1
// CHECK: load <[[N]] x float>, ptr
func.func @both(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %r: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %i = tile.iota : tensor<256xi32>
  %x = tile.gather %r offsets %i : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  %s = arith.addf %x, %x : tensor<256xf32>
  tile.scatter %x, %p offsets %i : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  tile.scatter %s, %q offsets %i : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  %one = arith.constant 1 : i32
  scf.for %k = %one to %n step %one : i32 {
    %at = tile.ptr_add %q, %k : !tile.ptr<f32>, i32
    %y = tile.gather %r offsets %i : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
    %t = arith.addf %y, %y : tensor<256xf32>
    tile.scatter %y, %q offsets %i : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
    tile.scatter %t, %at offsets %i : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  }
  return
}
