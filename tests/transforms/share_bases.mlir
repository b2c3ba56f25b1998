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

// -----

// Squares of squares are no sum that anybody takes apart.
// CHECK-LABEL: func.func @squares(
// CHECK: %[[FIRST:.*]] = tile.ptr_add %arg2, %[[AT:.*]] :
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %arg1
// CHECK: tile.ptr_add %arg2, %[[NEXT]]
func.func @squares(%x: i64, %layer: i64, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %v0 = arith.muli %x, %x : i64
  %v1 = arith.muli %v0, %v0 : i64
  %v2 = arith.muli %v1, %v1 : i64
  %v3 = arith.muli %v2, %v2 : i64
  %v4 = arith.muli %v3, %v3 : i64
  %v5 = arith.muli %v4, %v4 : i64
  %v6 = arith.muli %v5, %v5 : i64
  %v7 = arith.muli %v6, %v6 : i64
  %v8 = arith.muli %v7, %v7 : i64
  %v9 = arith.muli %v8, %v8 : i64
  %v10 = arith.muli %v9, %v9 : i64
  %v11 = arith.muli %v10, %v10 : i64
  %v12 = arith.muli %v11, %v11 : i64
  %v13 = arith.muli %v12, %v12 : i64
  %v14 = arith.muli %v13, %v13 : i64
  %v15 = arith.muli %v14, %v14 : i64
  %v16 = arith.muli %v15, %v15 : i64
  %v17 = arith.muli %v16, %v16 : i64
  %v18 = arith.muli %v17, %v17 : i64
  %v19 = arith.muli %v18, %v18 : i64
  %v20 = arith.muli %v19, %v19 : i64
  %v21 = arith.muli %v20, %v20 : i64
  %v22 = arith.muli %v21, %v21 : i64
  %v23 = arith.muli %v22, %v22 : i64
  %v24 = arith.muli %v23, %v23 : i64
  %v25 = arith.muli %v24, %v24 : i64
  %v26 = arith.muli %v25, %v25 : i64
  %v27 = arith.muli %v26, %v26 : i64
  %v28 = arith.muli %v27, %v27 : i64
  %v29 = arith.muli %v28, %v28 : i64
  %v30 = arith.muli %v29, %v29 : i64
  %v31 = arith.muli %v30, %v30 : i64
  %v32 = arith.muli %v31, %v31 : i64
  %v33 = arith.muli %v32, %v32 : i64
  %v34 = arith.muli %v33, %v33 : i64
  %v35 = arith.muli %v34, %v34 : i64
  %v36 = arith.muli %v35, %v35 : i64
  %v37 = arith.muli %v36, %v36 : i64
  %v38 = arith.muli %v37, %v37 : i64
  %v39 = arith.muli %v38, %v38 : i64
  %a = tile.ptr_add %p, %v39 : !tile.ptr<f32>, i64
  %first = tile.gather %a : !tile.ptr<f32> -> f32
  %more = arith.addi %v39, %layer : i64
  %b = tile.ptr_add %p, %more : !tile.ptr<f32>, i64
  %second = tile.gather %b : !tile.ptr<f32> -> f32
  %sum = arith.addf %first, %second : f32
  tile.scatter %sum, %q : f32, !tile.ptr<f32>
  return
}
