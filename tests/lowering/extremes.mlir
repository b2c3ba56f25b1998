// The larger or smaller of f64 numbers and constants: a comparison and a choice. Of others and of f32: the instruction.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry extremes(
// CHECK-NOT: max.f64
// CHECK: setp.gt.f64 %wins
// CHECK-NEXT: // end inline asm
// CHECK: setp.le.f64 %wins
// CHECK: min.f64
// CHECK: max.f32
// CHECK: ret;
func.func @extremes(%x: !tile.view<1xf64>, %y: !tile.view<1xf64>, %z: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<32xf64>
  %zero = arith.constant dense<0.0> : tensor<32xf64>
  %null = arith.constant dense<0.0> : tensor<32xf32>
  %a = tile.load %x[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %b = tile.load %y[%i : i32] : !tile.view<1xf64> -> tensor<32xf64>
  %c = arith.maxnumf %a, %one : tensor<32xf64>
  tile.store %c, %x[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  %d = arith.minnumf %zero, %b : tensor<32xf64>
  %e = arith.minnumf %d, %a : tensor<32xf64>
  tile.store %e, %y[%i : i32] : tensor<32xf64>, !tile.view<1xf64>
  %f = arith.truncf %e : tensor<32xf64> to tensor<32xf32>
  %g = arith.maxnumf %f, %null : tensor<32xf32>
  tile.store %g, %z[%i : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}
