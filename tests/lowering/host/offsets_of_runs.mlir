// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// Offsets that several accesses share, and whose rows are runs: every vector of an access takes the first of its own,
// and none of them is written to memory.
// CHECK-LABEL: define void @tile.rows
// CHECK-NOT: store <{{[0-9]+}} x i32>
// CHECK: ret void
func.func @rows(%A: !tile.ptr<f32>, %B: !tile.ptr<f32>, %C: !tile.ptr<f32>, %O: !tile.ptr<f32>, %width: i32) attributes {tile.kernel} {
  %i = tile.iota : tensor<16xi32>
  %j = tile.iota : tensor<128xi32>
  %row = tile.reshape %i : tensor<16xi32> -> tensor<16x1xi32>
  %column = tile.reshape %j : tensor<128xi32> -> tensor<1x128xi32>
  %w = tile.splat %width : i32 -> tensor<16x1xi32>
  %start = arith.muli %row, %w : tensor<16x1xi32>
  %starts = tile.broadcast %start : tensor<16x1xi32> -> tensor<16x128xi32>
  %columns = tile.broadcast %column : tensor<1x128xi32> -> tensor<16x128xi32>
  %place = arith.addi %starts, %columns : tensor<16x128xi32>
  %a = tile.gather %A offsets %place : tensor<16x128xi32> : !tile.ptr<f32> -> tensor<16x128xf32>
  %b = tile.gather %B offsets %place : tensor<16x128xi32> : !tile.ptr<f32> -> tensor<16x128xf32>
  %c = tile.gather %C offsets %place : tensor<16x128xi32> : !tile.ptr<f32> -> tensor<16x128xf32>
  %s = arith.addf %a, %b : tensor<16x128xf32>
  %t = arith.addf %s, %c : tensor<16x128xf32>
  tile.scatter %t, %O offsets %place : tensor<16x128xi32> : tensor<16x128xf32>, !tile.ptr<f32>
  return
}
