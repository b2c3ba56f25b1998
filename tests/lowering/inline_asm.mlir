// Assembly of the kernel's author in the PTX: registers in packs, marked with the place it was written at.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// 128 bytes of 32 threads: each has a word of four, and nothing is taken apart.
// CHECK-LABEL: .entry packed(
// CHECK: ld.global.b32 %r[[X:[0-9]+]]
// CHECK-NOT: prmt
// CHECK: // assembly of {{.*}}inline_asm.mlir:[[@LINE+10]]
// CHECK-NEXT: lop3.b32 %r[[Y:[0-9]+]], %r[[X]], 5, 7, 0x80;
// CHECK-NOT: assembly of
// CHECK-NOT: prmt
// CHECK: st.global.b32 {{.*}}, %r[[Y]];
// CHECK: ret;
func.func @packed(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 128>}, %y: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 128>}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %bytes = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<128xi8>
  // A comment keeps the line numbers apart.
  %r = tile.inline_asm "lop3.b32 $0, $1, 5, 7, 0x80;", "=r,r" (%bytes) pack 4 pure : (tensor<128xi8>) -> tensor<128xi8>
  tile.store %r, %y[%c0 : i32] : tensor<128xi8>, !tile.view<1xi8>
  return
}

// -----

// What is pure and unused goes; what is not stays, in order.
// CHECK-LABEL: .entry effects(
// CHECK-NOT: gone
// CHECK: first
// CHECK: second
// CHECK: ret;
func.func @effects(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %a = tile.inline_asm "gone $0;", "=r" () pure : () -> i32
  %b = tile.inline_asm "first $0;", "=r" () : () -> i32
  %c = tile.inline_asm "second $0;", "=r" () : () -> i32
  return
}
