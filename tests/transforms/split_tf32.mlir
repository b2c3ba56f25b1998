// Products in tf32x3 of tiles that the program has computed, and large ones: three products of warpgroups in tf32.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-split-tf32 -cse | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 --tile-split-tf32 | FileCheck %s --check-prefix=SM80

// A square: both operands are the same two parts. The rest counts first.
// CHECK-LABEL: func.func @square
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<64x64xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[Y]] : tensor<64x64xf32> to tensor<64x64xi32>
// CHECK: %[[UP:.*]] = arith.addi %[[BITS]], %{{.*}}
// CHECK: %[[KEPT:.*]] = arith.andi %[[UP]], %{{.*}}
// CHECK: %[[NEAR:.*]] = arith.bitcast %[[KEPT]]
// CHECK: %[[REST:.*]] = arith.subf %[[Y]], %[[NEAR]]
// CHECK: %[[A:.*]] = tile.dot %[[REST]], %[[NEAR]], %{{.*}} precision{{ *}}tf32 :
// CHECK: %[[B:.*]] = tile.dot %[[NEAR]], %[[REST]], %[[A]] precision{{ *}}tf32 :
// CHECK: tile.dot %[[NEAR]], %[[NEAR]], %[[B]] precision{{ *}}tf32 :
// CHECK-NOT: tf32x3
// CHECK: return
// SM80-LABEL: func.func @square
// SM80: precision{{ *}}tf32x3
func.func @square(%x: tensor<64x64xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = arith.addf %x, %x : tensor<64x64xf32>
  %d = tile.dot %y, %y, %acc precision tf32x3 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// -----
// Of a transposed tile the source is split, and its parts are transposed.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[NEAR:.*]] = arith.bitcast {{.*}} : tensor<128x64xi32> to tensor<128x64xf32>
// CHECK: %[[REST:.*]] = arith.subf
// CHECK-DAG: tile.trans %[[NEAR]]
// CHECK-DAG: tile.trans %[[REST]]
// CHECK-COUNT-3: tile.dot {{.*}} precision{{ *}}tf32 :
func.func @transposed(%x: tensor<128x64xf32>, %acc: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %t = tile.trans %x, [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
  %d = tile.dot %x, %t, %acc precision tf32x3 : tensor<128x64xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
  return %d : tensor<128x128xf32>
}

// -----
// Loaded operands of large products are split behind their load.
// CHECK-LABEL: func.func @large
// CHECK: %[[L:.*]] = tile.load
// CHECK: arith.bitcast %[[L]]
// CHECK-COUNT-3: tile.dot {{.*}} precision{{ *}}tf32 :
func.func @large(%x: tensor<128x32xf32>, %v: !tile.view<2xf32>, %acc: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %y = tile.load %v[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x128xf32>
  %d = tile.dot %x, %y, %acc precision tf32x3 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  return %d : tensor<128x128xf32>
}

// -----
// A sum that a loop carries is added outside the products.
// CHECK-LABEL: func.func @carried
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = 
// CHECK: %[[A:.*]] = tile.dot {{.*}} precision{{ *}}tf32 :
// CHECK: %[[B:.*]] = tile.dot {{.*}}, %[[A]] precision{{ *}}tf32 :
// CHECK: %[[C:.*]] = tile.dot {{.*}}, %[[B]] precision{{ *}}tf32 :
// CHECK: %[[NEXT:.*]] = arith.addf %[[C]], %[[SUM]] : 
// CHECK: scf.yield %[[NEXT]]
func.func @carried(%v: !tile.view<2xf32>, %acc: tensor<128x128xf32>, %n: i32) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%sum = %acc) -> tensor<128x128xf32> : i32 {
    %x = tile.load %v[%c0, %k : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
    %y = tile.load %v[%k, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x128xf32>
    %d = tile.dot %x, %y, %sum precision tf32x3 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  return %r : tensor<128x128xf32>
}

// -----
// Loaded operands of small products, few rows, chains with a product that only single warps have, and parts that shared
// memory has no room for stay.
// CHECK-LABEL: func.func @loaded
// CHECK: precision{{ *}}tf32x3
// CHECK-LABEL: func.func @few
// CHECK: precision{{ *}}tf32x3
// CHECK-LABEL: func.func @beside_exact
// CHECK: precision{{ *}}tf32x3
// CHECK-LABEL: func.func @deep
// CHECK: precision{{ *}}tf32x3
func.func @loaded(%x: tensor<64x64xf32>, %v: !tile.view<2xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %y = tile.load %v[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %d = tile.dot %x, %y, %acc precision tf32x3 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
func.func @few(%x: tensor<32x32xf32>, %acc: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tile.dot %x, %x, %acc precision tf32x3 : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}
func.func @beside_exact(%x: tensor<64x64xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tile.dot %x, %x, %acc precision tf32x3 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %e = tile.dot %x, %d, %acc : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}
func.func @deep(%x: tensor<128x64xf32>, %v: !tile.view<2xf32>, %acc: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %y = tile.load %v[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %d = tile.dot %x, %y, %acc precision tf32x3 : tensor<128x64xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
  return %d : tensor<128x128xf32>
}
