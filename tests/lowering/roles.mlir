// Roles, rings and bulk copies down to PTX and the assembler: what the launcher passes, who runs what, what waits for what.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: %if ptxas %{ tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=cubin -o /dev/null | FileCheck %s --check-prefix=LOG --implicit-check-not=warning %}

// 4 warps more than the consumers; barriers behind the buffers; three extents, the counter, one map per view and box.
// CHECK: // threads 384, shared bytes 98416, persistent, tickets
// CHECK-NEXT: // tensor map of parameter 0: dims 1 0, box 64 128, swizzle 128
// CHECK-NEXT: // tensor map of parameter 1: dims 1 0, box 32 64, swizzle 128
// CHECK: .visible .entry column_sums(
// CHECK: .param .u32 column_sums_param_11,
// CHECK-NEXT: .param .u32 column_sums_param_12,
// CHECK-NEXT: .param .u32 column_sums_param_13,
// CHECK-NEXT: .param .u64 .ptr .global .align 1 column_sums_param_14,
// CHECK-NEXT: .param .align 64 .b8 column_sums_param_15[128],
// CHECK-NEXT: .param .align 64 .b8 column_sums_param_16[128]
// CHECK: .reqntid 384
// CHECK-NEXT: .minnctapersm 1

// One thread sets up 2 barriers for each of 4 + 2 stages: one copy announcement fills, 8 warps empty.
// CHECK: shfl.sync.idx.b32
// CHECK-COUNT-2: prefetch.tensormap
// CHECK: mov.b32 [[ONE:%r[0-9]+]], 1;
// CHECK-COUNT-4: mbarrier.init.shared.b64 {{.*}}, [[ONE]];
// CHECK: mov.b32 [[EIGHT:%r[0-9]+]], 8;
// CHECK-COUNT-4: mbarrier.init.shared.b64 {{.*}}, [[EIGHT]];
// CHECK-COUNT-2: mbarrier.init.shared.b64 {{.*}}, [[ONE]];
// CHECK-COUNT-2: mbarrier.init.shared.b64 {{.*}}, [[EIGHT]];
// CHECK-NEXT: fence.mbarrier_init.release.cluster;
// CHECK: bar.sync 0;

// The producer: one thread hands out positions and copies.
// CHECK: setmaxnreg.dec.sync.aligned.u32 40;
// CHECK: elect.sync
// CHECK: atom.relaxed.gpu.global.add.u32
// CHECK: mbarrier.try_wait.parity
// CHECK: st.shared.b32
// CHECK: mbarrier.arrive.shared.b64 _
// CHECK: mbarrier.try_wait.parity
// CHECK: mov.b32 [[BYTES:%r[0-9]+]], 16384;
// CHECK: mbarrier.arrive.expect_tx.shared.b64 {{.*}}, [[BYTES]];
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes

// The consumers: a position, stages, then each warpgroup stores its own rows. Staging of two panels is two buffers: one is
// filled while the other is copied out. No barrier makes one warpgroup wait for the other.
// CHECK: setmaxnreg.inc.sync.aligned.u32 232;
// CHECK-NOT: bar.sync 1,
// CHECK: mbarrier.try_wait.parity
// CHECK: ld.shared.b32
// CHECK: mbarrier.try_wait.parity
// CHECK: bar.warp.sync
// CHECK: @{{%p[0-9]+}} mbarrier.arrive.shared.b64 _
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync [[GROUP:%r[0-9]+]], 128;
// CHECK-COUNT-8: st.shared.v2.b32
// CHECK: fence.proxy.async.shared::cta;
// CHECK-NEXT: bar.sync [[GROUP]], 128;
// CHECK: elect.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group.read 1;
// CHECK: bar.sync [[GROUP]], 128;
// CHECK-COUNT-8: st.shared.v2.b32
// CHECK: fence.proxy.async.shared::cta;
// CHECK-NEXT: bar.sync [[GROUP]], 128;
// CHECK: elect.sync
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// CHECK-NEXT: cp.async.bulk.commit_group;
// CHECK: cp.async.bulk.wait_group 0;
// The last program of all leaves the counter at zero.
// CHECK: atom.acq_rel.gpu.global.add.u32
// CHECK-COUNT-2: st.global.b32 {{.*}}, 0;

// LOG: 0 bytes spill stores, 0 bytes spill loads
// LOG: Used 168 registers
func.func @column_sums(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<128x64xf32, minor = 1>
  %ring = tile.ring_alloc arrivals 8 per_warp : !tile.ring<4>
  %queue = tile.ring_alloc arrivals 8 per_warp payload 8 : !tile.ring<2>
  tile.specialize regs(40, 232) producer {
    tile.work_loop queue %queue : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      scf.for %k = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 16384 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        tile.tma_load %a[%x0, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop queue %queue : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      %y0 = arith.muli %y, %c64 : i32
      %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %t = tile.smem_load %sa : !tile.smem<128x64xf16, minor = 1> -> tensor<128x64xf16>
        tile.ring_release %ring : !tile.ring<4>
        %t32 = arith.extf %t : tensor<128x64xf16> to tensor<128x64xf32>
        %d = arith.addf %acc, %t32 : tensor<128x64xf32>
        scf.yield %d : tensor<128x64xf32>
      }
      tile.tma_store %r, %c[%x0, %y0 : i32, i32] through %out : tensor<128x64xf32>, !tile.view<2xf32>, !tile.smem<128x64xf32, minor = 1>
    }
  }
  return
}
