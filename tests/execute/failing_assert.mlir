// RUN: not tilec run --device host %s 2>&1 | FileCheck %s
// A failed assertion is an error of the launch that names the message, the element and the line.

// CHECK: one is two
// CHECK: failing_assert.mlir:10
func.func @failing() attributes {tile.kernel} {
  %i = tile.iota : tensor<4xi32>
  %two = arith.constant dense<2> : tensor<4xi32>
  %ok = arith.cmpi ne, %i, %two : tensor<4xi32>
  tile.assert %ok, "one is two" : tensor<4xi1>
  return
}
