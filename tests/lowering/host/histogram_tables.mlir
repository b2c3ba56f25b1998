// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Values that follow each other are counted in four tables in turns, which are added up behind the loop. Bytes are read
// where they are counted, and none of them is outside of 256 bins.
// CHECK-LABEL: define void @tile.bytes
// CHECK: call void @llvm.memset{{.*}} i64 1024,
// CHECK: call void @llvm.memset{{.*}} i64 3072,
// CHECK-COUNT-4: load i8
// CHECK-COUNT-4: load <32 x i32>
// CHECK: ret void
func.func @bytes(%A: !tile.ptr<i8>, %O: !tile.view<1 x i32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<4096xi32>
  %a = tile.gather %A offsets %i : tensor<4096xi32> : !tile.ptr<i8> -> tensor<4096xi8>
  %v = arith.extui %a : tensor<4096xi8> to tensor<4096xi32>
  %h = tile.histogram %v : tensor<4096xi32> -> tensor<256xi32>
  tile.store %h, %O[%c0 : i32] : tensor<256xi32>, !tile.view<1 x i32>
  return
}
