// Products of widened integers of which halves are read are products of the narrow ones; the host computes both halves
// of a vector's products from those of its even and of its odd lanes.
// RUN: tile-opt %s -split-input-file -tile-narrow-products | FileCheck %s
// RUN: tilec compile %s -t host:x86-64-v4 -e llvm | FileCheck %s --check-prefix=CODE

// CHECK-LABEL: func @halves
// CHECK-NOT: muli
// CHECK: %[[LOW:.+]], %[[HIGH:.+]] = arith.mului_extended {{.*}} : tensor<64xi32>
// CHECK: arith.xori %[[LOW]], %[[HIGH]]
// CODE: mul <[[H:[0-9]+]] x i64>
// CODE: mul <[[H]] x i64>
// CODE: shufflevector <[[N:[0-9]+]] x i32> {{.*}} <i32 0, i32 [[N]], i32 2, i32
// CODE: shufflevector <[[N]] x i32> {{.*}} <i32 1, i32 {{[0-9]+}}, i32 3, i32
func.func @halves(%x: !tile.view<1xi32> {tile.unit_stride = 0 : i32}, %y: !tile.view<1xi32> {tile.unit_stride = 0 : i32}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %word = arith.constant 3528531795 : i64
  %factor = tile.splat %word : i64 -> tensor<64xi64>
  %by = arith.constant dense<32> : tensor<64xi64>
  %t = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<64xi32>
  %wide = arith.extui %t : tensor<64xi32> to tensor<64xi64>
  %p = arith.muli %wide, %factor : tensor<64xi64>
  %s = arith.shrui %p, %by : tensor<64xi64>
  %high = arith.trunci %s : tensor<64xi64> to tensor<64xi32>
  %low = arith.trunci %p : tensor<64xi64> to tensor<64xi32>
  %r = arith.xori %low, %high : tensor<64xi32>
  tile.store %r, %y[%c0 : i32] : tensor<64xi32>, !tile.view<1xi32>
  return
}
