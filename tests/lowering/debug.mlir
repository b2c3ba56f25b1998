// print and assert without calls (a call would serialise tensor-core pipelines): an atomic on the ring, stores, a trap.
// RUN: tilec compile %s -t sm_80 -e ptx --line-info | FileCheck %s
// RUN: tilec compile %s -t sm_90a -e json | FileCheck %s --check-prefix=INFO
// REQUIRES: ptxas

// CHECK-LABEL: .entry debug(
// CHECK-NOT: call
// CHECK: .loc
// CHECK: atom{{.*}}add.u32
// CHECK: st.volatile.global
// CHECK: trap;
// CHECK-NOT: call
// CHECK: ret;

// INFO: "uses_debug_ring": true
// INFO: "debug_sites": [
// INFO: "kind": "print"
// INFO-NEXT: "message": "v"
// INFO-NEXT: "dtype": "f32"
// INFO: "kind": "assertion"
// INFO-NEXT: "message": "negative"
// INFO: "line":
func.func @debug(%x: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel} {
  %at = tile.iota : tensor<256xi32>
  %v = tile.gather %x offsets %at : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  tile.print "v" %v : tensor<256xf32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %ok = arith.cmpf oge, %v, %zero : tensor<256xf32>
  tile.assert %ok, "negative" : tensor<256xi1>
  return
}
