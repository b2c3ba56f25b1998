// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// A row shifted by one: places of 16 lanes that are neighbours are one load, what crosses the end is gathered.
// CHECK-LABEL: define void @tile.shift
// CHECK: icmp eq <16 x i32> %[[PLACES:.*]], %{{.*}}
// CHECK: call <16 x i32> @llvm.x86.avx512.permvar.si.512
// CHECK: else:
// CHECK: add <16 x i32> %{{.*}}, <i32 0, i32 1, i32 2, i32 3,
// CHECK: br i1 %{{.*}}, label %[[THEN:.*]], label %[[ELSE:.*]]
// CHECK: [[THEN]]:
// CHECK: load <16 x float>, ptr
// CHECK: [[ELSE]]:
// CHECK: call <16 x float> @llvm.masked.gather
func.func @shift(%A: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}, %O: !tile.view<1 x f32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<512xi32>
  %last = arith.constant dense<511> : tensor<512xi32>
  %i = tile.iota : tensor<512xi32>
  %next = arith.addi %i, %one : tensor<512xi32>
  %inside = arith.minsi %next, %last : tensor<512xi32>
  %a = tile.load %A[%c0 : i32] : !tile.view<1 x f32> -> tensor<512xf32>
  %t = tile.take %a, %inside axis 0 : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  tile.store %t, %O[%c0 : i32] : tensor<512xf32>, !tile.view<1 x f32>
  return
}
