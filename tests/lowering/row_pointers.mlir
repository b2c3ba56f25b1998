// Offsets that are sums of rows and columns: the pointer to a row is made once for all that several accesses read of it.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=llvm -o /dev/null | FileCheck %s

// A thread has two rows of three columns.
// CHECK-LABEL: @rows(
// CHECK: %[[FIRST:[0-9]+]] = mul i64 %{{[0-9]+}}, %1
// CHECK: %[[SECOND:[0-9]+]] = mul i64 %{{[0-9]+}}, %1
// CHECK: %[[BYTES:[0-9]+]] = mul i64 %[[FIRST]], 4
// CHECK-NEXT: %[[ROW:[0-9]+]] = getelementptr i8, ptr addrspace(1) %0, i64 %[[BYTES]]
// CHECK-NEXT: %[[COLUMN:[0-9]+]] = mul i64
// CHECK-NEXT: %[[PLACE:[0-9]+]] = getelementptr i8, ptr addrspace(1) %[[ROW]], i64 %[[COLUMN]]
// CHECK-NEXT: load float, ptr addrspace(1) %[[PLACE]]
// CHECK: %[[BYTES:[0-9]+]] = mul i64 %[[SECOND]], 4
// CHECK-NEXT: getelementptr i8, ptr addrspace(1) %0, i64 %[[BYTES]]
// CHECK: store float
func.func @rows(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %pitch: i64, %columns: !tile.ptr<i32>, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<8xi32>
  %far = tile.splat %pitch : i64 -> tensor<8xi64>
  %i64 = arith.extsi %i : tensor<8xi32> to tensor<8xi64>
  %rows = arith.muli %i64, %far : tensor<8xi64>
  %row = tile.reshape %rows : tensor<8xi64> -> tensor<8x1xi64>
  %wide = tile.broadcast %row : tensor<8x1xi64> -> tensor<8x96xi64>
  %j = tile.iota : tensor<96xi32>
  %at = tile.gather %columns offsets %j : tensor<96xi32> : !tile.ptr<i32> -> tensor<96xi32>
  %at64 = arith.extsi %at : tensor<96xi32> to tensor<96xi64>
  %column = tile.reshape %at64 : tensor<96xi64> -> tensor<1x96xi64>
  %long = tile.broadcast %column : tensor<1x96xi64> -> tensor<8x96xi64>
  %offsets = arith.addi %wide, %long : tensor<8x96xi64>
  %v = tile.gather %x offsets %offsets : tensor<8x96xi64> : !tile.ptr<f32> -> tensor<8x96xf32>
  tile.scatter %v, %y offsets %offsets : tensor<8x96xi64> : tensor<8x96xf32>, !tile.ptr<f32>
  return
}
