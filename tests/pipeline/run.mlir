// `tilec run`: prints are shown, failed asserts are errors with their line, the grid comes from the kernel.
// RUN: rm -rf %t && split-file %s %t
// RUN: tilec run %t/good.mlir -d host | FileCheck %s -check-prefix=GOOD
// GOOD-DAG: (0, 0, 0): pid {{.*}}0
// GOOD-DAG: (1, 2, 0): pid {{.*}}3
// GOOD: host: ok
// RUN: %exit1 tilec run %t/bad.mlir -d host 2>&1 | FileCheck %s -check-prefix=BAD
// BAD: bad.mlir:5: assertion failed: one is two
// RUN: %exit1 tilec run %t/parameter.mlir -d host 2>&1 | FileCheck %s -check-prefix=PARAMETER
// PARAMETER: tilec run needs a kernel without parameters, found 1 in `{{.*}}k`

//--- good.mlir
func.func @k() attributes {tile.kernel, tile.grid = array<i32: 2, 3>} {
  %x = tile.program_id 0
  %y = tile.program_id 1
  %s = arith.addi %x, %y : i32
  tile.print "pid" %s : i32
  return
}

//--- bad.mlir
func.func @k() attributes {tile.kernel} {
  %a = arith.constant dense<1> : tensor<4xi32>
  %b = tile.iota : tensor<4xi32>
  %c = arith.cmpi eq, %a, %b : tensor<4xi32>
  tile.assert %c, "one is two" : tensor<4xi1>
  return
}

//--- parameter.mlir
func.func @k(%n: i32) attributes {tile.kernel} { return }
