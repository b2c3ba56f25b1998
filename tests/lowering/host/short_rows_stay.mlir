// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Rows shorter than a line of the caches go around them where they lie together only: pieces of lines are put together
// there.
// CHECK-LABEL: define void @tile.short
// CHECK-NOT: store <8 x float> {{.*}}nontemporal
// CHECK: store <32 x float> {{.*}} !nontemporal
// CHECK-NOT: store <8 x float> {{.*}}nontemporal
// CHECK: ret void
func.func @short(%X: !tile.view<3 x f32> {tile.unit_stride = 2 : i32}, %Y: !tile.view<3 x f32> {tile.unit_stride = 2 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %row = tile.program_id 0
  %x = tile.load %X[%row, %c0, %c0 : i32, i32, i32] : !tile.view<3 x f32> -> tensor<1x64x8xf32>
  %y = arith.addf %x, %x : tensor<1x64x8xf32>
  %t = tile.reshape %y : tensor<1x64x8xf32> -> tensor<64x8xf32>
  %z = arith.negf %t : tensor<64x8xf32>
  %u = tile.reshape %z : tensor<64x8xf32> -> tensor<1x64x8xf32>
  tile.store %u, %Y[%c0, %row, %c0 : i32, i32, i32] : tensor<1x64x8xf32>, !tile.view<3 x f32>
  return
}
