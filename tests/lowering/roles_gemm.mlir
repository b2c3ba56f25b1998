// A product with roles as a whole: the copies' map and order, products in flight over the back edge of the loop, turns of the
// warpgroups, additions of the result to a view. The assembler must find nothing to serialise and nothing to spill.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: %if ptxas %{ tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=cubin -o /dev/null | FileCheck %s --check-prefix=LOG --implicit-check-not=C75 %}

// Positions in strides of the programs: three extents, no counter.
// CHECK: // threads 384, shared bytes 229440, persistent
// CHECK-NEXT: // tensor map of parameter 0: dims 1 0, box 64 128, swizzle 128
// CHECK-NEXT: // tensor map of parameter 1: dims 1 0, box 64 64, swizzle 128
// CHECK-NEXT: // tensor map of parameter 2: dims 1 0, box 64 64, swizzle 128
// CHECK-NEXT: // tensor map of parameter 0: dims 1 0, box 64 128, swizzle 128, remainder
// One panel of a, four of b; then a's last rows, in a block of their own.
// CHECK-COUNT-5: cp.async.bulk.tensor.2d.shared::cluster
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK: cp.async.bulk.tensor.2d.shared::cluster
// CHECK: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{{%r[0-9]+}}], [{{%rd[0-9]+}}]

// The last warpgroup passes the first turn to warpgroup 0, once.
// CHECK: setmaxnreg.inc.sync.aligned.u32 232;
// CHECK: bar.arrive {{8|%r[0-9]+}}, 256;
// CHECK: mbarrier.try_wait.parity
// CHECK: bar.sync [[TURN:%r[0-9]+]], 256;
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK: bar.arrive {{%r[0-9]+}}, 256;
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: @{{%p[0-9]+}} mbarrier.arrive.shared.b64 _
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: @{{%p[0-9]+}} mbarrier.arrive.shared.b64 _
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: fence.proxy.async.shared::cta;
// CHECK: cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
// CHECK-NOT: st.shared
// CHECK-NOT: st.global

// LOG: 0 bytes spill stores, 0 bytes spill loads
func.func @gemm_in_turns(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %bufB = tile.smem_alloc : !tile.smem<64x256xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<128x128xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      %y0 = arith.muli %y, %c256 : i32
      scf.for %k = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 49152 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        tile.tma_load %a[%x0, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
        tile.tma_load %b[%k, %y0 : i32, i32] to %sb signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x256xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      %y0 = arith.muli %y, %c256 : i32
      %any = arith.cmpi sgt, %n, %c0 : i32
      %done = scf.if %any -> (tensor<128x256xf32>) {
      %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
        %slot = tile.ring_acquire %ring : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x256xf16, minor = 1, stages = 4> -> !tile.smem<64x256xf16, minor = 1>
        tile.turn_wait
        %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x256xf16, minor = 1> -> tensor<128x256xf32>
        tile.turn_pass
        tile.mma_wait 1
        %later = arith.cmpi sgt, %k, %c0 : i32
        tile.ring_release %ring if %later : !tile.ring<4>
        scf.yield %d : tensor<128x256xf32>
      }
      %w = tile.mma_wait 0 of %r : tensor<128x256xf32>
      tile.ring_release %ring : !tile.ring<4>
      scf.yield %w : tensor<128x256xf32>
      } else { scf.yield %zero : tensor<128x256xf32> }
      %h = arith.truncf %done : tensor<128x256xf32> to tensor<128x256xf16>
      tile.tma_store add %h, %c[%x0, %y0 : i32, i32] through %out : tensor<128x256xf16>, !tile.view<2xf16>, !tile.smem<128x128xf16, minor = 1>
    }
  }
  return
}
