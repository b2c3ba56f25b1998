// RUN: tile-opt %s -split-input-file --tile-accumulate-products | FileCheck %s

// What a loop carries, also times a factor, is the accumulator of the product added to it.
// CHECK-LABEL: func.func @carried
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[SOFT:.*]] = %{{.*}})
// CHECK: %[[D:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[ACC]]
// CHECK: %[[S:.*]] = arith.mulf %[[SOFT]], %{{.*}}
// CHECK: %[[E:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[S]]
// CHECK-NOT: arith.addf
// CHECK: scf.yield %[[D]], %[[E]]
func.func @carried(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %f: tensor<16x16xf32>, %n: index) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z, %y = %z) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    %p = tile.dot %a, %b, %z : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.addf %x, %p fastmath<contract> : tensor<16x16xf32>
    %q = tile.dot %b, %a, %z : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %t = arith.mulf %y, %f fastmath<contract> : tensor<16x16xf32>
    %u = arith.addf %t, %q fastmath<contract> : tensor<16x16xf32>
    scf.yield %s, %u : tensor<16x16xf32>, tensor<16x16xf32>
  }
  return %r#0, %r#1 : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// One product after the other, of integers, behind a loop.
// CHECK-LABEL: func.func @sums
// CHECK: %[[A:.*]] = tile.dot %arg0, %arg1, %{{.*}} : tensor<16x32xi8>
// CHECK: %[[B:.*]] = tile.dot %arg0, %arg1, %[[A]]
// CHECK: return %[[B]]
func.func @sums(%a: tensor<16x32xi8>, %b: tensor<32x16xi8>) -> tensor<16x16xi32> {
  %z = arith.constant dense<0> : tensor<16x16xi32>
  %p = tile.dot %a, %b, %z : tensor<16x32xi8>, tensor<32x16xi8> -> tensor<16x16xi32>
  %q = tile.dot %a, %b, %z : tensor<16x32xi8>, tensor<32x16xi8> -> tensor<16x16xi32>
  %s = arith.addi %p, %q : tensor<16x16xi32>
  return %s : tensor<16x16xi32>
}

// -----

// A summand of another kind, sums that are rounded by themselves, products of f8 and those that are used twice stay.
// CHECK-LABEL: func.func @others
// CHECK: %[[P:.*]] = tile.dot
// CHECK: arith.addf %arg2, %[[P]]
// CHECK: iter_args(%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %{{.*}})
// CHECK: %[[Q:.*]] = tile.dot %arg0, %arg1,
// CHECK: %[[S:.*]] = arith.addf %[[X]], %[[Q]] :
// CHECK: %[[R:.*]] = tile.dot %arg3, %arg3,
// CHECK: arith.addf %[[Y]], %[[R]]
// CHECK: %[[U:.*]] = tile.dot %arg0, %arg1,
// CHECK: arith.addf %[[S]], %[[U]]
func.func @others(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>, %d: tensor<32x32xf8E4M3FN>, %n: index) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %w = arith.constant dense<0.0> : tensor<32x32xf32>
  %p = tile.dot %a, %b, %z : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  %o = arith.addf %c, %p fastmath<contract> : tensor<16x16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %o, %y = %w) -> (tensor<16x16xf32>, tensor<32x32xf32>) {
    %q = tile.dot %a, %b, %z : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.addf %x, %q : tensor<16x16xf32>
    %e = tile.dot %d, %d, %w : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E4M3FN> -> tensor<32x32xf32>
    %t = arith.addf %y, %e fastmath<contract> : tensor<32x32xf32>
    %u = tile.dot %a, %b, %z : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %v = arith.addf %s, %u fastmath<contract> : tensor<16x16xf32>
    %k = arith.addf %v, %u fastmath<contract> : tensor<16x16xf32>
    scf.yield %k, %t : tensor<16x16xf32>, tensor<32x32xf32>
  }
  return %o, %r#0, %r#1 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<32x32xf32>
}
