// A tile whose size does not divide into threads, stored between two places of the launch: each run of 16 bytes that is
// wanted whole is one store, the others go byte by byte.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry between(
// CHECK: st.global.v4.b32
// CHECK-COUNT-16: st.global.b8
// CHECK: st.global.v4.b32
// CHECK-COUNT-16: st.global.b8
// CHECK-NOT: st.global
// CHECK: ret
func.func @between(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %out: !tile.ptr<i8> {tile.align = 16 : i32}, %from: i32, %to: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %k = tile.iota : tensor<2832xi32>
  %v = tile.gather %x offsets %k : tensor<2832xi32> : !tile.ptr<i8> -> tensor<2832xi8>
  %f = tile.splat %from : i32 -> tensor<2832xi32>
  %t = tile.splat %to : i32 -> tensor<2832xi32>
  %behind = arith.cmpi sge, %k, %f : tensor<2832xi32>
  %before = arith.cmpi slt, %k, %t : tensor<2832xi32>
  %m = arith.andi %behind, %before : tensor<2832xi1>
  tile.scatter %v, %out offsets %k : tensor<2832xi32> mask %m : tensor<2832xi1> : tensor<2832xi8>, !tile.ptr<i8>
  return
}
