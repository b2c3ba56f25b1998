// Counters of loops on their way to the assembler: addresses move on by themselves, and a loop ends by a counter of 32
// bits, whatever is counted for addresses: the assembler finds how often it runs.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry walk
// CHECK: [[HEAD:\$L__BB[0-9_]+]]:
// CHECK-NOT: mad.lo.s64
// CHECK-NOT: cvt.u32.u64
// CHECK: ld.global
// CHECK: ld.global
// CHECK-DAG: add.s64
// CHECK-DAG: add.s32 {{.*}}, 1;
// CHECK: setp.{{[a-z]*}}.s32
// CHECK: bra {{.*}}[[HEAD]];
func.func @walk(%a: !tile.ptr<f32> {tile.align = 16 : i32}, %b: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %out: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x32xf32>
  %i = tile.iota : tensor<32xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1x32xf32>) : i32 {
    %p = tile.ptr_add %a, %k : !tile.ptr<f32>, i32
    %x = tile.gather %p offsets %i : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %row = tile.reshape %x : tensor<32xf32> -> tensor<1x32xf32>
    %y = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x32xf32>
    %z = arith.mulf %row, %y : tensor<1x32xf32>
    %s = arith.addf %acc, %z : tensor<1x32xf32>
    scf.yield %s : tensor<1x32xf32>
  }
  %line = tile.reshape %r : tensor<1x32xf32> -> tensor<32xf32>
  tile.store %line, %out[%c0 : i32] : tensor<32xf32>, !tile.view<1xf32>
  return
}
