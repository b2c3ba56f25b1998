// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s
// RUN: sed 's/relaxed/release/' %s | tilec compile - --target host:x86-64-v4 --emit llvm | FileCheck %s --check-prefix=TOLD

// Bytes that are only copied go by whole lines, around the caches where the output is large; a relaxed atomic beside them
// tells nobody that they are there, another one might.
// CHECK-LABEL: define void @tile.copy_bytes
// CHECK: store <128 x i8> %{{.*}}, align 64, !nontemporal
// TOLD-LABEL: define void @tile.copy_bytes
// TOLD-NOT: nontemporal
// TOLD: store <128 x i8>
func.func @copy_bytes(%X: !tile.view<2 x i8> {tile.unit_stride = 1 : i32}, %Y: !tile.view<2 x i8> {tile.unit_stride = 1 : i32}, %most: !tile.ptr<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %row = tile.program_id 0
  %x = tile.load %X[%row, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<4x128xi8>
  tile.store %x, %Y[%row, %c0 : i32, i32] : tensor<4x128xi8>, !tile.view<2 x i8>
  %old = tile.atomic_rmw max relaxed gpu %most, %one : !tile.ptr<i32>, i32 -> i32
  return
}
