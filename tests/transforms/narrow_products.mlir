// RUN: tile-opt %s -split-input-file -tile-narrow-products | FileCheck %s

// Signed ones, and one of which the lower half alone is read.
// CHECK-LABEL: func @signed
// CHECK: arith.mulsi_extended {{.*}} : tensor<8xi32>
// CHECK: arith.muli {{.*}} : tensor<8xi32>
func.func @signed(%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %by = arith.constant dense<32> : tensor<8xi64>
  %a = arith.extsi %x : tensor<8xi32> to tensor<8xi64>
  %b = arith.extsi %y : tensor<8xi32> to tensor<8xi64>
  %p = arith.muli %a, %b : tensor<8xi64>
  %s = arith.shrsi %p, %by : tensor<8xi64>
  %high = arith.trunci %s : tensor<8xi64> to tensor<8xi32>
  %c = arith.extsi %high : tensor<8xi32> to tensor<8xi64>
  %q = arith.muli %c, %b : tensor<8xi64>
  %low = arith.trunci %q : tensor<8xi64> to tensor<8xi32>
  return %high, %low : tensor<8xi32>, tensor<8xi32>
}

// -----

// Read whole, of different signs, or by a factor of more bits: left as they are.
// CHECK-LABEL: func @left
// CHECK-NOT: extended
// CHECK-COUNT-3: arith.muli {{.*}} : tensor<8xi64>
func.func @left(%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<8xi64>, tensor<8xi32>, tensor<8xi32>) {
  %by = arith.constant dense<32> : tensor<8xi64>
  %large = arith.constant dense<4294967296> : tensor<8xi64>
  %a = arith.extsi %x : tensor<8xi32> to tensor<8xi64>
  %b = arith.extui %y : tensor<8xi32> to tensor<8xi64>
  %p = arith.muli %b, %b : tensor<8xi64>
  %q = arith.muli %a, %b : tensor<8xi64>
  %r = arith.muli %b, %large : tensor<8xi64>
  %s = arith.shrui %q, %by : tensor<8xi64>
  %t = arith.shrui %r, %by : tensor<8xi64>
  %high = arith.trunci %s : tensor<8xi64> to tensor<8xi32>
  %other = arith.trunci %t : tensor<8xi64> to tensor<8xi32>
  return %p, %high, %other : tensor<8xi64>, tensor<8xi32>, tensor<8xi32>
}
