// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Every third byte: a whole vector of them comes from three neighbouring ones.
// CHECK-LABEL: define void @tile.thirds
// CHECK-COUNT-3: load <64 x i8>
// CHECK: shufflevector <192 x i8>
// CHECK-COUNT-3: load <64 x i8>
// CHECK: shufflevector <192 x i8>
// CHECK: store <128 x i8>
func.func @thirds(%A: !tile.ptr<i8>, %O: !tile.view<1 x i8> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %three = arith.constant dense<3> : tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %x = arith.muli %i, %three : tensor<1024xi32>
  %a = tile.gather %A offsets %x : tensor<1024xi32> : !tile.ptr<i8> -> tensor<1024xi8>
  tile.store %a, %O[%c0 : i32] : tensor<1024xi8>, !tile.view<1 x i8>
  return
}
