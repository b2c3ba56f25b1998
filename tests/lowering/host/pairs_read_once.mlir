// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Every second element of a run is read where it is needed, as runs are: neighbouring vectors, of which lanes are picked.
// CHECK-LABEL: define void @tile.pairs
// CHECK-COUNT-4: load <16 x float>, ptr
// CHECK-NOT: store
// CHECK-COUNT-4: load <16 x float>, ptr
// CHECK-NOT: store
// CHECK: fadd <32 x float>
// CHECK-NEXT: store <32 x float>
// CHECK-NOT: store
// CHECK: ret void
func.func @pairs(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel} {
  %i = tile.iota : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %one = arith.constant dense<1> : tensor<64xi32>
  %even = arith.muli %i, %two : tensor<64xi32>
  %odd = arith.addi %even, %one : tensor<64xi32>
  %x = tile.gather %p offsets %even : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %y = tile.gather %p offsets %odd : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %s = arith.addf %x, %y : tensor<64xf32>
  tile.scatter %s, %q offsets %i : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}
