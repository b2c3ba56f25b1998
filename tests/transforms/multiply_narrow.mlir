// RUN: tile-opt %s -split-input-file --tile-multiply-narrow --canonicalize --cse | FileCheck %s

// What was widened for the product is multiplied as it was, also behind a transpose.
// CHECK-LABEL: func.func @halves
// CHECK: %[[T:.*]] = tile.trans %arg1, [1, 0] : tensor<16x32xf16> -> tensor<32x16xf16>
// CHECK: tile.dot %arg0, %[[T]], %arg2 : tensor<16x32xf16>, tensor<32x16xf16>
// CHECK-NOT: arith.extf
func.func @halves(%a: tensor<16x32xf16>, %b: tensor<16x32xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %x = arith.extf %a : tensor<16x32xf16> to tensor<16x32xf32>
  %y = arith.extf %b : tensor<16x32xf16> to tensor<16x32xf32>
  %t = tile.trans %y, [1, 0] : tensor<16x32xf32> -> tensor<32x16xf32>
  %p = tile.dot %x, %t, %c precision tf32 : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  return %p : tensor<16x16xf32>
}

// -----

// Eight bits become the other operand's sixteen; f8 of both sides f16: sums of f8 in tensor cores have fewer bits.
// CHECK-LABEL: func.func @bytes
// CHECK-DAG: %[[I:.*]] = arith.sitofp %arg1 : tensor<32x16xi8> to tensor<32x16xbf16>
// CHECK-DAG: tile.dot %arg0, %[[I]], %{{.*}} : tensor<16x32xbf16>, tensor<32x16xbf16>
// CHECK-DAG: %[[F:.*]] = arith.extf %arg2 : tensor<16x16xf8E4M3FN> to tensor<16x16xf16>
// CHECK-DAG: tile.dot %[[F]], %[[F]], %{{.*}} : tensor<16x16xf16>, tensor<16x16xf16>
func.func @bytes(%a: tensor<16x32xbf16>, %b: tensor<32x16xi8>, %c: tensor<16x16xf8E4M3FN>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = arith.extf %a : tensor<16x32xbf16> to tensor<16x32xf32>
  %y = arith.sitofp %b : tensor<32x16xi8> to tensor<32x16xf32>
  %p = tile.dot %x, %y, %z : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
  %w = arith.extf %c : tensor<16x16xf8E4M3FN> to tensor<16x16xf32>
  %q = tile.dot %w, %w, %z : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  return %p, %q : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// f16 with bf16, with f32, and integers of more bits stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: tile.dot {{.*}} : tensor<16x16xf32>, tensor<16x16xf32> ->
func.func @others(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>, %d: tensor<16x16xi16>) -> tensor<16x16xf32> {
  %x = arith.extf %a : tensor<16x16xf16> to tensor<16x16xf32>
  %y = arith.extf %b : tensor<16x16xbf16> to tensor<16x16xf32>
  %i = arith.sitofp %d : tensor<16x16xi16> to tensor<16x16xf32>
  %p = tile.dot %x, %y, %c : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %q = tile.dot %x, %c, %p : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %r = tile.dot %x, %i, %q : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}
