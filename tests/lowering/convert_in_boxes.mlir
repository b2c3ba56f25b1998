// Large tiles whose lanes exchange among themselves pass in boxes. Neither the boxes nor what threads hold need divide the
// tile: products of bytes count 112 columns as 128, and what lies behind the tile is neither stored nor read.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

#sums = #tile.layout<128x112 regs [1:2*1, 0:2*1, 1:14*8, 0:2*64] lanes [1:4*2, 0:8*2] warps [0:4*16]>
#operand = #tile.layout<128x112 regs [1:2*1, 0:2*8, 1:16*8, 0:2*64] lanes [1:4*2, 0:8*1] warps [0:4*16]>

// CHECK: entry operand(
// CHECK: st.shared
// CHECK: bar.warp.sync
// CHECK: ld.shared
// CHECK: ret;
func.func @operand(%x: !tile.view<2xf8E4M3FN>, %y: !tile.view<2xf8E4M3FN>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf8E4M3FN> -> tensor<128x112xf8E4M3FN, #sums>
  %c = tile.convert %t : tensor<128x112xf8E4M3FN, #sums> -> tensor<128x112xf8E4M3FN, #operand>
  tile.store %c, %y[%i, %i : i32, i32] : tensor<128x112xf8E4M3FN, #operand>, !tile.view<2xf8E4M3FN>
  return
}
