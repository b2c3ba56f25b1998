// Threads whose elements are all masked have nothing to order: they pass by the fences.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// REQUIRES: ptxas

// CHECK-LABEL: .entry masked(
// CHECK: bar.sync
// CHECK: @%p{{.*}} bra
// CHECK: fence.acq_rel.gpu
// CHECK-COUNT-4: atom.relaxed.gpu.global.exch.b32
// CHECK: @%p{{.*}} bra
// CHECK: fence.acq_rel.gpu
// CHECK: bar.sync
func.func @masked(%table: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %end = tile.splat %n : i32 -> tensor<512xi32>
  %in = arith.cmpi slt, %at, %end : tensor<512xi32>
  %before = tile.atomic_rmw exchange acq_rel gpu %table offsets %at : tensor<512xi32>, %at mask %in : tensor<512xi1> : !tile.ptr<i32>, tensor<512xi32> -> tensor<512xi32>
  tile.scatter %before, %table offsets %at : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
