// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s
// RUN: tilec compile %s --target host:x86-64 --emit llvm | FileCheck %s --check-prefix=BASE

// A view whose inner stride is known to be 1 moves in vectors of the target, one loop for whatever part is inside; the pad
// is written only when the box leaves the view. The copy is a function that equal loads share.
// CHECK-LABEL: define void @tile.copy
// CHECK: call i64 @llvm.ssub.sat.i64
// CHECK: call void @"load_tensor<256xf32>_1"
// CHECK: store <32 x float>
// CHECK-NOT: extractelement
// CHECK-LABEL: define internal void @"load_tensor<256xf32>_1"
// CHECK: store <32 x float> %{{.*}}
// CHECK: load <32 x float>
// BASE: load <8 x float>
func.func @copy(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %i: i32) attributes {tile.kernel} {
  %a = tile.load %A[%i : i32] : !tile.view<1 x f32> -> tensor<256xf32>
  %b = arith.addf %a, %a : tensor<256xf32>
  tile.store %b, %O[%i : i32] : tensor<256xf32>, !tile.view<1 x f32>
  return
}
