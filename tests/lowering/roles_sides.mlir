// Bulk stores of one warpgroup, on both sides of a branch. Two forms that ptxas takes for divergent, and the loop around
// them with it, are kept from it: an address that is a constant, and a branch with warps meeting on both sides.
// RUN: tile-opt %s -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: shfl.sync.idx.b32 [[WARP:%r[0-9]+]], {{%r[0-9]+}}, 0, 31, -1;
// CHECK: shfl.sync.idx.b32 {{%r[0-9]+}}, [[WARP]], 0, 31, -1;
// One side stands in front of the other, whose condition is a number of its own.
// CHECK-DAG: setp.lt.s32 [[WHOLE:%p[0-9]+]], {{%r[0-9]+}}, {{%r[0-9]+}};{{[[:space:]]+}}selp.b32 [[WIDE:%r[0-9]+]], 1, 0, [[WHOLE]];
// CHECK-DAG: mov.b32 [[FLAG:%r[0-9]+]], [[WIDE]];
// CHECK-DAG: setp.eq.b32 {{%p[0-9]+}}, [[FLAG]], 0;
// CHECK-DAG: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [%r{{[0-9]+}}];
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{{.*}}], [%r{{[0-9]+}}];
// CHECK-NOT: cp.async.bulk.tensor.2d.global
func.func @sides(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %c: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %bufA = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 4>
  %bufB = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 4>
  %out = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %ring = tile.ring_alloc arrivals 1 : !tile.ring<4>
  tile.specialize regs(56, 240) producer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c64 : i32
      scf.for %k = %c0 to %n step %c64 : i32 {
        %slot = tile.ring_reserve %ring bytes 16384 : !tile.ring<4>
        %sa = tile.smem_slot %bufA[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
        %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
        tile.tma_load %a[%x0, %k : i32, i32] to %sa signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<4>
        tile.tma_load %b[%k, %c0 : i32, i32] to %sb signals %ring[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<4>
      }
    }
  } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %x0 = arith.muli %x, %c64 : i32
      %any = arith.cmpi sgt, %n, %c0 : i32
      %done = scf.if %any -> (tensor<64x64xf32>) {
        %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
          %slot = tile.ring_acquire %ring : !tile.ring<4>
          %sa = tile.smem_slot %bufA[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
          %sb = tile.smem_slot %bufB[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 4> -> !tile.smem<64x64xf16, minor = 1>
          tile.mma_wait 0
          %later = arith.cmpi ne, %k, %c0 : i32
          tile.ring_release %ring if %later : !tile.ring<4>
          %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
          scf.yield %d : tensor<64x64xf32>
        }
        %w = tile.mma_wait 0 of %r : tensor<64x64xf32>
        tile.ring_release %ring : !tile.ring<4>
        scf.yield %w : tensor<64x64xf32>
      } else { scf.yield %zero : tensor<64x64xf32> }
      %h = arith.truncf %done : tensor<64x64xf32> to tensor<64x64xf16>
      %whole = arith.cmpi slt, %x, %n : i32
      scf.if %whole {
        tile.tma_store %h, %c[%x0, %c0 : i32, i32] through %out : tensor<64x64xf16>, !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>
      } else {
        %twice = arith.addf %h, %h : tensor<64x64xf16>
        tile.tma_store %twice, %c[%x0, %c0 : i32, i32] through %out : tensor<64x64xf16>, !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>
      }
    }
  }
  return
}
