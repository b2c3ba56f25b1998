// Copies into shared memory by all threads. What is not known to be aligned goes through registers, element by element, and
// a remark says what to promise; two elements of 16 bits are stored as a word.
// RUN: tile-opt %s -split-input-file -verify-diagnostics --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// In a loop a box that is inside as a whole is read without asking for each element.
// CHECK-LABEL: entry narrow(
// CHECK-NOT: cp.async.cg
// CHECK: bra.uni {{.*}}
// CHECK-NEXT: $L__BB{{.*}}:
// CHECK-NEXT: ld.global.b16
// CHECK-NOT: setp
// CHECK: $L__BB
// CHECK: st.shared.b32
// CHECK: @%p{{[0-9]+}} ld.global.b16
// CHECK: ret;
func.func @narrow(%p: !tile.ptr<f16>, %n: i64, %y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %x = tile.make_view %p, dims(%n, %n), strides(%n, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %end = arith.trunci %n : i64 to i32
  %s = tile.smem_alloc : !tile.smem<32x64xf16, minor = 1>
  scf.for %k = %c0 to %end step %c64 : i32 {
    // expected-remark @+1 {{copied element by element, through registers: the view's address in bytes is only known as a multiple of 2 (multiple_of promises more)}}
    tile.async_copy %x[%c0, %k : i32, i32] to %s box [32, 64] : !tile.view<2xf16>, !tile.smem<32x64xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
    %t = tile.smem_load %s : !tile.smem<32x64xf16, minor = 1> -> tensor<32x64xf16>
    tile.store %t, %y[%c0, %k : i32, i32] : tensor<32x64xf16>, !tile.view<2xf16>
  }
  return
}

// -----

// A vector is copied as its only row.
// CHECK-LABEL: entry vector(
// CHECK: cp.async.cg.shared.global
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @vector(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %n: i32, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %s = tile.smem_alloc : !tile.smem<1x64xf32, minor = 1>
  scf.for %k = %c0 to %n step %c64 : i32 {
    tile.async_copy %x[%k : i32] to %s box [1, 64] : !tile.view<1xf32>, !tile.smem<1x64xf32, minor = 1>
    tile.async_commit
    tile.async_wait 0
    %t = tile.smem_load %s : !tile.smem<1x64xf32, minor = 1> -> tensor<1x64xf32>
    tile.store %t, %y[%c0, %k : i32, i32] : tensor<1x64xf32>, !tile.view<2xf32>
  }
  return
}

// -----

// Of copies that follow each other the second one reads before the first one stores: both are on their way together.
// CHECK-LABEL: entry both(
// CHECK: ld.global.b16
// CHECK-NOT: st.shared
// CHECK-COUNT-15: ld.global.b16
// CHECK-NOT: ld.global.b16
// CHECK-COUNT-16: st.shared.b16
// CHECK: ret;
func.func @both(%a: !tile.view<2xf16>, %b: !tile.view<2xf16>, %y: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.smem_alloc : !tile.smem<32x32xf16, minor = 1>
  %t = tile.smem_alloc : !tile.smem<32x32xf16, minor = 1>
  tile.async_copy %a[%c0, %c0 : i32, i32] to %s box [32, 32] : !tile.view<2xf16>, !tile.smem<32x32xf16, minor = 1>
  tile.async_copy %b[%c0, %c0 : i32, i32] to %t box [32, 32] : !tile.view<2xf16>, !tile.smem<32x32xf16, minor = 1>
  tile.async_commit
  tile.async_wait 0
  %x = tile.smem_load %s : !tile.smem<32x32xf16, minor = 1> -> tensor<32x32xf16>
  %z = tile.smem_load %t : !tile.smem<32x32xf16, minor = 1> -> tensor<32x32xf16>
  %sum = arith.addf %x, %z : tensor<32x32xf16>
  tile.store %sum, %y[%c0, %c0 : i32, i32] : tensor<32x32xf16>, !tile.view<2xf16>
  return
}
