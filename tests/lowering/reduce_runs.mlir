// Threads with six neighbours each of what a reduction across warps gives: 24 bytes from one thread's to the next, which
// only vectors of two are aligned to, whatever the constants added to the threads' addresses are.
// RUN: tile-opt %s --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: st.shared.b32
// CHECK: bar.sync
// CHECK-COUNT-6: ld.shared.v2.b32
// CHECK-NOT: ld.shared
// CHECK: ret;
#rows = #tile.layout<8x48 regs [1:6*1] lanes [1:8*6, 0:4*1] warps [0:2*4]>
#sums = #tile.layout<1x48 regs [1:6*1] lanes [1:8*6, rep:4] warps [rep:2]>
func.func @six(%x: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %y: !tile.view<2xf32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<8x48xf32, #rows>
  %s = tile.reduce %v axis 0 : (tensor<8x48xf32, #rows>) -> tensor<1x48xf32, #sums> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maxnumf %p, %q : f32
    tile.yield %r : f32
  }
  %b = tile.broadcast %s : tensor<1x48xf32, #sums> -> tensor<8x48xf32, #rows>
  %d = arith.subf %v, %b : tensor<8x48xf32, #rows>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<8x48xf32, #rows>, !tile.view<2xf32>
  return
}
