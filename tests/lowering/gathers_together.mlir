// Gathers of neighbouring places through one pointer are read element by element, side by side, though other work stands
// between them. What is read again behind a write of other memory is not; writing the same memory keeps them apart.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry corners(
// CHECK: ld.global.b32 %r{{[0-9]+}}, [%[[A:rd[0-9]+]]];
// CHECK-NEXT: ld.global.b32 %r{{[0-9]+}}, [%[[A]]+12];
// CHECK: ld.global.b32 %r{{[0-9]+}}, [%[[B:rd[0-9]+]]];
// CHECK-NEXT: ld.global.b32 %r{{[0-9]+}}, [%[[B]]+12];
// CHECK: st.global.v2
// CHECK-NOT: ld.global
// CHECK: st.global.b32
// CHECK: ld.global.b32
// CHECK-NOT: +20]
// CHECK: ld.global.b32
// CHECK: ld.global.b32 %r{{[0-9]+}}, [%{{.*}}+20];
// CHECK: st.global.v2
func.func @corners(%places: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<f32>,
                   %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %three = arith.constant dense<3> : tensor<512xi64>
  %five = arith.constant dense<5> : tensor<512xi64>
  %place = tile.gather %places offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %at = arith.extsi %place : tensor<512xi32> to tensor<512xi64>
  %a = tile.gather %p offsets %at : tensor<512xi64> : !tile.ptr<f32> -> tensor<512xf32>
  %half = arith.constant dense<0.5> : tensor<512xf32>
  %weighed = arith.mulf %a, %half : tensor<512xf32>
  %next = arith.addi %at, %three : tensor<512xi64>
  %b = tile.gather %p offsets %next : tensor<512xi64> : !tile.ptr<f32> -> tensor<512xf32>
  %sum = arith.addf %weighed, %b : tensor<512xf32>
  tile.scatter %sum, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  %c = tile.gather %p offsets %at : tensor<512xi64> : !tile.ptr<f32> -> tensor<512xf32>
  tile.scatter %c, %p offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  // The next link of a chain cannot be read beside this one.
  %link = tile.gather %places offsets %at : tensor<512xi64> : !tile.ptr<i32> -> tensor<512xi32>
  %wide = arith.extsi %link : tensor<512xi32> to tensor<512xi64>
  %after = tile.gather %places offsets %wide : tensor<512xi64> : !tile.ptr<i32> -> tensor<512xi32>
  %far = arith.extsi %after : tensor<512xi32> to tensor<512xi64>
  %last = arith.addi %far, %five : tensor<512xi64>
  %d = tile.gather %p offsets %last : tensor<512xi64> : !tile.ptr<f32> -> tensor<512xf32>
  tile.scatter %d, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}
