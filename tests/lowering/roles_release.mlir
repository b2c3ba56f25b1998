// A stage given back an iteration late, in front of the next product: that of the iteration before has needed all warps of
// the group, so they need not meet.
// RUN: tile-opt %s -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: setmaxnreg.inc.sync.aligned.u32 232;
// CHECK-NOT: bar.sync {{.*}}, 128;
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 0
func.func @late(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %bufA = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1, stages = 4>
  %bufB = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<128x64xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 2 : !tile.ring<4>
  tile.specialize regs(40, 232) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      scf.for %k = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 24576 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
        tile.tma_load %a[%x0, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>, !tile.ring<4>
        tile.tma_load %b[%k, %c0 : i32, i32] to %sb signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c128 : i32
      %any = arith.cmpi sgt, %n, %c0 : i32
      %done = scf.if %any -> (tensor<128x64xf32>) {
        %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
          %slot = tile.ring_acquire %ring : !tile.ring<4>
          %sa = tile.smem_slot %bufA[%slot] : !tile.smem<128x64xf16, minor = 1, stages = 4> -> !tile.smem<128x64xf16, minor = 1>
          %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
          tile.mma_wait 0
          %later = arith.cmpi ne, %k, %c0 : i32
          tile.ring_release %ring if %later : !tile.ring<4>
          %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<128x64xf32>
          scf.yield %d : tensor<128x64xf32>
        }
        %w = tile.mma_wait 0 of %r : tensor<128x64xf32>
        tile.ring_release %ring : !tile.ring<4>
        scf.yield %w : tensor<128x64xf32>
      } else { scf.yield %zero : tensor<128x64xf32> }
      %h = arith.truncf %done : tensor<128x64xf32> to tensor<128x64xf16>
      tile.tma_store %h, %c[%x0, %c0 : i32, i32] through %out : tensor<128x64xf16>, !tile.view<2xf16>, !tile.smem<128x64xf16, minor = 1>
    }
  }
  return
}
