// Addresses that differ by strides of the launch are made from each other.
// RUN: tile-opt %s -split-input-file --tile-share-bases | FileCheck %s

// The plane above and the row below of a place: one sum each, whatever it took to compute theirs.
// CHECK-LABEL: func.func @neighbours
// CHECK: %[[BASE:.*]] = tile.ptr_add %arg0, %{{.*}}
// CHECK: tile.gather %[[BASE]]
// CHECK: %[[UP:.*]] = tile.ptr_add %[[BASE]], %arg1
// CHECK: tile.gather %[[UP]]
// CHECK: %[[BACK:.*]] = arith.subi %c0{{.*}}, %arg2
// CHECK: %[[BELOW:.*]] = tile.ptr_add %[[BASE]], %[[BACK]]
// CHECK: tile.gather %[[BELOW]]
func.func @neighbours(%u: !tile.ptr<f32>, %layer: i64, %row: i64, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %m1 = arith.constant -1 : i32
  %x = tile.iota : tensor<64xi32>
  %z = tile.program_id 1
  %r = tile.program_id 2
  %zw = arith.extsi %z : i32 to i64
  %rw = arith.extsi %r : i32 to i64
  %pz = arith.muli %zw, %layer : i64
  %pr = arith.muli %rw, %row : i64
  %p = arith.addi %pz, %pr : i64
  %at = tile.ptr_add %u, %p : !tile.ptr<f32>, i64
  %a = tile.gather %at offsets %x : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %zu = arith.addi %z, %c1 : i32
  %zuw = arith.extsi %zu : i32 to i64
  %pu = arith.muli %zuw, %layer : i64
  %q = arith.addi %pu, %pr : i64
  %up = tile.ptr_add %u, %q : !tile.ptr<f32>, i64
  %b = tile.gather %up offsets %x : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %rb = arith.addi %r, %m1 : i32
  %rbw = arith.extsi %rb : i32 to i64
  %pb = arith.muli %rbw, %row : i64
  %s = arith.addi %pz, %pb : i64
  %below = tile.ptr_add %u, %s : !tile.ptr<f32>, i64
  %c = tile.gather %below offsets %x : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %ab = arith.addf %a, %b : tensor<64xf32>
  %all = arith.addf %ab, %c : tensor<64xf32>
  tile.scatter %all, %y offsets %x : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}

// -----

// Places of 32 bits that may wrap are not the sum of their parts, and what is written to keeps its address.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: tile.ptr_add %arg0
// CHECK-NOT: tile.ptr_add
func.func @stays(%u: !tile.ptr<f32>, %layer: i64, %n: i32) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %x = tile.iota : tensor<64xi32>
  %nw = arith.extsi %n : i32 to i64
  %p = arith.muli %nw, %layer : i64
  %at = tile.ptr_add %u, %p : !tile.ptr<f32>, i64
  %a = tile.gather %at offsets %x : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %next = arith.addi %n, %c1 : i32
  %nextw = arith.extsi %next : i32 to i64
  %q = arith.muli %nextw, %layer : i64
  %up = tile.ptr_add %u, %q : !tile.ptr<f32>, i64
  %b = tile.gather %up offsets %x : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %ab = arith.addf %a, %b : tensor<64xf32>
  %z = tile.program_id 1
  %z1 = arith.addi %z, %c1 : i32
  %z1w = arith.extsi %z1 : i32 to i64
  %nz = arith.addi %nw, %z1w : i64
  %r = arith.muli %nz, %layer : i64
  %to = tile.ptr_add %u, %r : !tile.ptr<f32>, i64
  tile.scatter %ab, %to offsets %x : tensor<64xi32> : tensor<64xf32>, !tile.ptr<f32>
  return
}
