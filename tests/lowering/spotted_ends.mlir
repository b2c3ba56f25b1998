// Flags of elements in front of an end that may fall between neighbours: nothing behind it is read, so that elements come
// one by one there, and together where the end is behind all of them.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry bounded(
// CHECK: bra
// CHECK: bra
// CHECK-COUNT-4: @%p{{[0-9]+}} ld.global.b32
// CHECK: ret;
func.func @bounded(%flags: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<i32> {tile.align = 16 : i32},
                   %y: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi32>
  %end = tile.splat %n : i32 -> tensor<512xi32>
  %inside = arith.cmpi slt, %i, %end : tensor<512xi32>
  %f = tile.gather %flags offsets %i : tensor<512xi32> mask %inside : tensor<512xi1> other %zero : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %chosen = arith.cmpi ne, %f, %zero : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> mask %chosen : tensor<512xi1> : !tile.ptr<i32> -> tensor<512xi32>
  tile.scatter %x, %y offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
