// A loop goes on counting in one table: filled in vectors, no barrier and no other access inside, read behind it.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry counts_of_loop(
// CHECK-COUNT-4: st.shared.v4
// CHECK: bar.sync
// CHECK: $L__BB0_{{.*}}:
// CHECK-NOT: {{(bar.sync|(ld|st).shared)}}
// CHECK: red.relaxed.cta.shared.add.u32
// CHECK-NOT: {{(bar.sync|(ld|st).shared)}}
// CHECK: bra
// CHECK: bar.sync
// CHECK: ld.shared
// CHECK: st.global
func.func @counts_of_loop(%x: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %to = tile.iota : tensor<2048xi32>
  %zero = arith.constant dense<0> : tensor<2048xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%count = %zero) -> (tensor<2048xi32>) : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<i32>, i32
    %v = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %h = tile.histogram %v : tensor<512xi32> -> tensor<2048xi32>
    %s = arith.addi %count, %h : tensor<2048xi32>
    scf.yield %s : tensor<2048xi32>
  }
  tile.scatter %r, %out offsets %to : tensor<2048xi32> : tensor<2048xi32>, !tile.ptr<i32>
  return
}
