// Sums of 32 bits that leave a loop, or did not enter it, and are multiplied as 64: they cross its end narrow, and their
// products are those of 32 bits.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry sums(
// CHECK-NOT: mad.lo.s64
// CHECK-COUNT-4: mul.wide.s32
// CHECK-NOT: mad.lo.s64
// CHECK: ret;
func.func @sums(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %f: !tile.ptr<i32> {tile.align = 16 : i32},
                %y: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c512 = arith.constant 512 : i32
  %none = arith.constant dense<0> : tensor<512xi32>
  %half = arith.constant dense<1073741824> : tensor<512xi64>
  %by = arith.constant dense<31> : tensor<512xi64>
  %i = tile.iota : tensor<512xi32>
  %factor = tile.gather %f offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %none) -> (tensor<512xi32>) : i32 {
    %row = arith.muli %k, %c512 : i32
    %base = tile.ptr_add %x, %row : !tile.ptr<i32>, i32
    %v = tile.gather %base offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %next = arith.addi %acc, %v : tensor<512xi32>
    scf.yield %next : tensor<512xi32>
  }
  %ws = arith.extsi %sum : tensor<512xi32> to tensor<512xi64>
  %wf = arith.extsi %factor : tensor<512xi32> to tensor<512xi64>
  %product = arith.muli %ws, %wf : tensor<512xi64>
  %more = arith.addi %product, %half : tensor<512xi64>
  %high = arith.shrsi %more, %by : tensor<512xi64>
  %cut = arith.trunci %high : tensor<512xi64> to tensor<512xi32>
  tile.scatter %cut, %y offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
