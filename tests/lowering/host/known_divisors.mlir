// What a loop divides by becomes a factor in front of it: vectors have no division.
// RUN: tilec compile %s --target host:x86-64-v3 --emit asm | FileCheck %s

// CHECK-LABEL: signed:
// CHECK-NOT: idiv
// CHECK: {{divq|divl}}
// CHECK: vpmuldq
// CHECK-NOT: div
// CHECK: retq
func.func @signed(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %trips: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant 512 : i32
  %i = tile.iota : tensor<512xi32>
  %by = tile.splat %n : i32 -> tensor<512xi32>
  scf.for %k = %c0 to %trips step %c1 : i32 {
    %start = arith.muli %k, %size : i32
    %s = tile.splat %start : i32 -> tensor<512xi32>
    %at = arith.addi %s, %i : tensor<512xi32>
    %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %r = arith.remsi %v, %by : tensor<512xi32>
    tile.scatter %r, %y offsets %at : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  }
  return
}
