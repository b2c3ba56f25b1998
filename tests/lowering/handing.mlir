// Scalars from the producer to the consumers: words in a stage of a ring, read by every lane, given back by every warp.
// RUN: tile-opt %s -tile-place-buffers -tile-insert-barriers --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// The stores follow the wait for an empty stage, the arrival follows them.
// CHECK: mbarrier.try_wait.parity
// CHECK: st.shared.v4.b32
// CHECK: mbarrier.arrive.shared.b64 _,
// CHECK: setmaxnreg.dec.sync.aligned.u32 232;
// What the consumers would have computed is gone.
// CHECK-NOT: {{div|rem}}.{{s|u}}32
// CHECK: mbarrier.try_wait.parity
// CHECK: ld.shared.v4.b32
// CHECK: bar.warp.sync
// CHECK: mbarrier.arrive.shared.b64 _,
// CHECK: st.global.b32
// CHECK-NOT: {{div|rem}}.{{s|u}}32
func.func @handed(%out: !tile.ptr<i32>, %n: i32, %w: i64) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 4 per_warp payload 16 : !tile.ring<2>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %q = arith.divsi %x, %n : i32
      %c = arith.cmpi slt, %q, %n : i32
      tile.hand_over %q, %w, %c through %ring : i32, i64, i1 through !tile.ring<2>
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %q = arith.divsi %x, %n : i32
      %c = arith.cmpi slt, %q, %n : i32
      %t:3 = tile.take_over %q, %w, %c through %ring : i32, i64, i1 through !tile.ring<2>
      scf.if %t#2 {
        %p = tile.ptr_add %out, %t#1 : !tile.ptr<i32>, i64
        tile.scatter %t#0, %p : i32, !tile.ptr<i32>
      }
    }
  }
  return
}
