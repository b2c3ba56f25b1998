// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Clamped coordinates grow by one or, at an edge, not at all: where the last lane of a vector is as far from the first
// as it can be, all lie side by side. Bytes that nothing widens fill vectors when they are stored.
// CHECK-LABEL: define void @tile.edged
// CHECK: %[[FAR:.*]] = icmp eq i64 %{{.*}}, 63
// CHECK: br i1 %[[FAR]]
// CHECK: load <64 x i8>
// CHECK: call <16 x i32> @llvm.masked.gather
// CHECK: %[[SMALL:.*]] = call <128 x i8> @llvm.umin
// CHECK: store <128 x i8> %[[SMALL]]
// CHECK: ret void
func.func @edged(%A: !tile.ptr<i8>, %width: i32, %O: !tile.view<1 x i8> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %limit = arith.constant dense<100> : tensor<1024xi8>
  %one = arith.constant dense<1> : tensor<1024xi32>
  %zero = arith.constant dense<0> : tensor<1024xi32>
  %last = tile.splat %width : i32 -> tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %left = arith.subi %i, %one : tensor<1024xi32>
  %low = arith.maxsi %left, %zero : tensor<1024xi32>
  %x = arith.minsi %low, %last : tensor<1024xi32>
  %a = tile.gather %A offsets %x : tensor<1024xi32> : !tile.ptr<i8> -> tensor<1024xi8>
  %small = arith.minui %a, %limit : tensor<1024xi8>
  tile.store %small, %O[%c0 : i32] : tensor<1024xi8>, !tile.view<1 x i8>
  return
}
