// Sums that are cut to bytes, and sizes of bytes: words throughout, cut once.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry sizes(
// CHECK-NOT: s16
// CHECK: sub.s32
// CHECK: cvt.s32.s8
// CHECK: abs.s32
// CHECK-NOT: s16
// CHECK: ret;
func.func @sizes(%x: !tile.view<1xi8>, %y: !tile.view<1xi8>, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %a = tile.load %x[%i : i32] : !tile.view<1xi8> -> tensor<128xi8>
  %b = tile.load %y[%i : i32] : !tile.view<1xi8> -> tensor<128xi8>
  %p = arith.extui %a : tensor<128xi8> to tensor<128xi32>
  %q = arith.extui %b : tensor<128xi8> to tensor<128xi32>
  %d = arith.subi %p, %q : tensor<128xi32>
  %c = arith.trunci %d : tensor<128xi32> to tensor<128xi8>
  %e = arith.extsi %c : tensor<128xi8> to tensor<128xi32>
  %s = math.absi %e : tensor<128xi32>
  tile.store %s, %z[%i : i32] : tensor<128xi32>, !tile.view<1xi32>
  return
}

// CHECK-LABEL: entry distances(
// CHECK-NOT: {{max|min}}.u16
// CHECK: abs.s32
// CHECK: ret;
func.func @distances(%x: !tile.view<1xi8>, %y: !tile.view<1xi8>, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %i = arith.constant 0 : i32
  %a = tile.load %x[%i : i32] : !tile.view<1xi8> -> tensor<128xi8>
  %b = tile.load %y[%i : i32] : !tile.view<1xi8> -> tensor<128xi8>
  %p = arith.extui %a : tensor<128xi8> to tensor<128xi32>
  %q = arith.extui %b : tensor<128xi8> to tensor<128xi32>
  %d = arith.subi %p, %q : tensor<128xi32>
  %s = math.absi %d : tensor<128xi32>
  tile.store %s, %z[%i : i32] : tensor<128xi32>, !tile.view<1xi32>
  return
}
