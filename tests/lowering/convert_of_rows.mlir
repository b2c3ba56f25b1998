// Tiles of three dims change layout as rows of their last one: accumulators leave as 8x8 matrices, not element by element.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

#turned = #tile.layout<8x16x16 regs [1:2*1, 2:2*8, 1:2*8, 0:2*4] lanes [1:4*2, 2:8*1] warps [0:4*1]>
#rows = #tile.layout<8x16x16 regs [2:8*1, 0:2*4] lanes [2:2*8, 1:16*1] warps [0:4*1]>

// CHECK: entry turned(
// CHECK-NOT: st.shared
// CHECK-COUNT-2: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-NOT: st.shared
// CHECK-COUNT-2: ld.shared.v4.b32
// CHECK: ret;
func.func @turned(%x: !tile.view<3xf16>, %y: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i, %i : i32, i32, i32] : !tile.view<3xf16> -> tensor<8x16x16xf16, #turned>
  %c = tile.convert %t : tensor<8x16x16xf16, #turned> -> tensor<8x16x16xf16, #rows>
  tile.store %c, %y[%i, %i, %i : i32, i32, i32] : tensor<8x16x16xf16, #rows>, !tile.view<3xf16>
  return
}
