// Functions of f64 are computed of four elements at a time, step by step: their chains overlap, and a constant serves
// all of them.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// A step of the series with one constant, of four elements; then the next step.
// CHECK-LABEL: entry four(
// CHECK: fma.rn.f64 {{.*}}, 0d[[A:3[0-9A-F]+|B[0-9A-F]+]];
// CHECK-NEXT: fma.rn.f64 {{.*}}, 0d[[A]];
// CHECK-NEXT: fma.rn.f64 {{.*}}, 0d[[A]];
// CHECK-NEXT: fma.rn.f64 {{.*}}, 0d[[A]];
// CHECK-NEXT: fma.rn.f64 {{.*}}, 0d[[B:3[0-9A-F]+|B[0-9A-F]+]];
// CHECK-NEXT: fma.rn.f64 {{.*}}, 0d[[B]];
func.func @four(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<256xf64>
  %e = math.exp %t : tensor<256xf64>
  tile.store %e, %y[%i : i32] : tensor<256xf64>, !tile.view<1xf64>
  return
}
