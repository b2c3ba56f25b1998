// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Two boxes are updated in one loop where both are inside of their views, and read where they lie.
// CHECK-LABEL: define void @tile.update
// CHECK: %[[X:[0-9]+]] = select i1 %{{[0-9]+}}, ptr %{{[0-9]+}}, ptr
// CHECK: %[[Y:[0-9]+]] = select i1 %{{[0-9]+}}, ptr %{{[0-9]+}}, ptr
// CHECK: br i1 %{{[0-9]+}}, label %[[TOGETHER:then[0-9]*]], label
// CHECK: [[TOGETHER]]:
// CHECK: getelementptr float, ptr %[[X]],
// CHECK: load <32 x float>, ptr
// CHECK: getelementptr float, ptr %[[Y]],
// CHECK: load <32 x float>, ptr
// CHECK: store <32 x float>
// CHECK: store <32 x float>
// CHECK: br i1
func.func @update(%X: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %Y: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %i: i32) attributes {tile.kernel} {
  %x = tile.load %X[%i : i32] : !tile.view<1 x f32> -> tensor<256xf32>
  %y = tile.load %Y[%i : i32] : !tile.view<1 x f32> -> tensor<256xf32>
  %s = arith.addf %x, %y : tensor<256xf32>
  %d = arith.subf %x, %y : tensor<256xf32>
  tile.store %s, %X[%i : i32] : tensor<256xf32>, !tile.view<1 x f32>
  tile.store %d, %Y[%i : i32] : tensor<256xf32>, !tile.view<1 x f32>
  return
}
