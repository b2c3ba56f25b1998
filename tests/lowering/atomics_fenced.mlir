// Several ordered updates of a thread share one fence before and one after them.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// REQUIRES: ptxas

// CHECK-LABEL: .entry several(
// CHECK: bar.sync
// CHECK: fence.acq_rel.sys
// CHECK-COUNT-4: red.relaxed.sys.global.add.u32
// CHECK: fence.acq_rel.sys
// CHECK: bar.sync
func.func @several(%i: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %r = tile.atomic_rmw add acq_rel sys %i offsets %at : tensor<512xi32>, %at : !tile.ptr<i32>, tensor<512xi32> -> tensor<512xi32>
  return
}
