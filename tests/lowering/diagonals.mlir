// Elements of one diagonal of a matrix that is copied element by element (x[t - k], taps of a filter) are the same: a
// thread has rows side by side, reads each diagonal once, at a constant distance from the first, and writes words.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// 32 rows of 64 for four warps: eight rows of two columns each, nine diagonals instead of sixteen elements.
// CHECK-LABEL: .entry toeplitz(
// CHECK: ld.global.b16 %{{.*}}, [%[[X:rd[0-9]+]]];
// CHECK: ld.global.b16 %{{.*}}, [%[[X]]+2];
// CHECK-COUNT-7: ld.global.b16 %{{.*}}, [%[[X]]+-
// CHECK-NOT: ld.global
// CHECK-COUNT-8: st.shared{{.*}}b32
// CHECK-NOT: st.shared
// CHECK: ret
func.func @toeplitz(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<64xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %t : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %k : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.subi %a, %b : tensor<32x64xi32>
  %end = tile.splat %n : i32 -> tensor<32x64xi32>
  %in = arith.cmpi slt, %at, %end : tensor<32x64xi32>
  %s = tile.smem_alloc : <32x64xf16, minor = 1>
  tile.async_gather %x offsets %at : tensor<32x64xi32> mask %in : tensor<32x64xi1> to %s : <f16>, <32x64xf16, minor = 1>
  tile.async_commit
  tile.async_wait 0
  return
}

// -----

// The mask asks for columns: all elements are read.
// CHECK-LABEL: .entry columns(
// CHECK-COUNT-16: ld.global{{.*}}b16
// CHECK-NOT: ld.global
// CHECK: ret
func.func @columns(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<64xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %t : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %k : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.subi %a, %b : tensor<32x64xi32>
  %end = tile.splat %n : i32 -> tensor<32x64xi32>
  %in = arith.cmpi slt, %a, %end : tensor<32x64xi32>
  %s = tile.smem_alloc : <32x64xf16, minor = 1>
  tile.async_gather %x offsets %at : tensor<32x64xi32> mask %in : tensor<32x64xi1> to %s : <f16>, <32x64xf16, minor = 1>
  tile.async_commit
  tile.async_wait 0
  return
}

// -----

// In a loop, where the first and the last diagonal of a thread are inside the bounds, all are: no conditions. Without the
// lower bound places might wrap in between.
// CHECK-LABEL: .entry inside(
// CHECK-COUNT-9: {{^[[:space:]]*}}ld.global.b16
// CHECK-COUNT-9: @%p{{[0-9]+}} ld.global.b16
// CHECK-NOT: ld.global
// CHECK: ret
// CHECK-LABEL: .entry below(
// CHECK-NOT: {{^[[:space:]]*}}ld.global.b16
// CHECK: ret
func.func @inside(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0> : tensor<32x64xi32>
  %t = tile.iota : tensor<64xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %t : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %k : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.subi %a, %b : tensor<32x64xi32>
  %end = tile.splat %n : i32 -> tensor<32x64xi32>
  %s = tile.smem_alloc : <32x64xf16, minor = 1>
  scf.for %i = %c0 to %m step %c32 : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
    %first = tile.splat %i : i32 -> tensor<32x64xi32>
    %place = arith.addi %at, %first : tensor<32x64xi32>
    %low = arith.cmpi sge, %place, %zero : tensor<32x64xi32>
    %high = arith.cmpi slt, %place, %end : tensor<32x64xi32>
    %in = arith.andi %low, %high : tensor<32x64xi1>
    tile.async_gather %p offsets %at : tensor<32x64xi32> mask %in : tensor<32x64xi1> to %s : <f16>, <32x64xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
  }
  return
}
func.func @below(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32, %m: i32, %f: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c32 = arith.constant 32 : i32
  %t = tile.iota : tensor<64xi32>
  %k = tile.iota : tensor<32xi32>
  %row = tile.reshape %t : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %k : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.subi %a, %b : tensor<32x64xi32>
  %end = tile.splat %n : i32 -> tensor<32x64xi32>
  %s = tile.smem_alloc : <32x64xf16, minor = 1>
  scf.for %i = %f to %m step %c32 : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
    %first = tile.splat %i : i32 -> tensor<32x64xi32>
    %place = arith.addi %at, %first : tensor<32x64xi32>
    %in = arith.cmpi slt, %place, %end : tensor<32x64xi32>
    tile.async_gather %p offsets %at : tensor<32x64xi32> mask %in : tensor<32x64xi1> to %s : <f16>, <32x64xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
  }
  return
}
