// Counts are made in shared memory: cleared, one reduction per element whose value is counted, read by everyone.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_80,sm_90a -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// RES-COUNT-2: "spill_store_bytes": 0

// CHECK-LABEL: .entry counts(
// CHECK: st.shared
// CHECK: bar.sync
// CHECK-COUNT-4: red.relaxed.cta.shared.add.u32
// CHECK-NOT: red.
// CHECK: bar.sync
// CHECK: ld.shared
// CHECK: st.global
func.func @counts(%x: !tile.ptr<i32>, %out: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %h = tile.histogram %v : tensor<512xi32> -> tensor<128xi32>
  %to = tile.iota : tensor<128xi32>
  tile.scatter %h, %out offsets %to : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
