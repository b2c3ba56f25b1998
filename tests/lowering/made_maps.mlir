// Tensor maps of views made in the kernel: memory of the program's own, written where the view is described, when its
// numbers have changed, in one of several places: copies may still read the others.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-NOT: tensor map of parameter
// CHECK-DAG: .global .align 128 .b8 tile_made_maps[1310848];
// CHECK-DAG: .global .align 4 .b8 tile_made_maps_taken[640];
// CHECK: entry made(
// The thread that copies takes a block.
// CHECK: mov.u32 {{.*}}, %smid;
// CHECK: ld.relaxed.gpu.global.u32
// CHECK: atom.acquire.gpu.global.or.b32
// CHECK-NOT: mbarrier.try_wait
// CHECK: tensormap.replace.tile.rank.shared::cta.b1024.b32
// CHECK: tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [{{.*}}], 6;
// CHECK: tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [{{.*}}], 3;
// CHECK: tensormap.replace.tile.global_address.shared::cta.b1024.b64
// CHECK-DAG: tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [{{.*}}], 0,
// CHECK-DAG: tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [{{.*}}], 0,
// CHECK-DAG: tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [{{.*}}], 1,
// CHECK-DAG: tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [{{.*}}], 1,
// CHECK-DAG: tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [{{.*}}], 0,
// CHECK: st.global.v4
// CHECK: fence.proxy.tensormap::generic.release.gpu;
// CHECK: fence.proxy.tensormap::generic.acquire.gpu [{{.*}}], 128;
// CHECK: cp.async.bulk.tensor.2d.shared::cluster
// CHECK: atom.release.gpu.global.and.b32
func.func @made(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %rows: i64, %columns: i64 {tile.multiple_of = 8 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %m = tile.smem_alloc at 16384 : !tile.smem<1x128xi8, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    %v = tile.make_view %p, dims(%rows, %columns), strides(%columns, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    tile.tma_describe %v in %m : !tile.view<2xf16>, !tile.smem<1x128xi8, minor = 1>
    scf.for %k = %c0 to %n step %c1 : i32 {
      %slot = tile.ring_reserve %r bytes 8192 : !tile.ring<2>
      %t = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %v[%c0, %c0 : i32, i32] to %t signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
    }
  } consumer {
  }
  return
}

// -----

// Of two matrices for each step. Where a map comes back to its first place, copies of both stages have arrived. Both are
// made known together.
// CHECK-LABEL: .entry steps(
// CHECK: fence.proxy.tensormap::generic.release.gpu;
// CHECK: fence.proxy.tensormap::generic.acquire.gpu
// CHECK: fence.proxy.tensormap::generic.acquire.gpu
// CHECK-NOT: fence.proxy.tensormap
// CHECK: cp.async.bulk.tensor.2d
// CHECK: cp.async.bulk.tensor.2d
// CHECK: and.b32 {{.*}}, 7;
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: tensormap.replace.tile.global_address
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: and.b32 {{.*}}, 7;
// CHECK: tensormap.replace.tile.global_address
// CHECK-NOT: fence.proxy.tensormap
func.func @steps(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %q: !tile.ptr<f16> {tile.align = 16 : i32}, %sizes: !tile.ptr<i64>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  %columns = arith.constant 64 : i64
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1, stages = 2>
  %m = tile.smem_alloc at 16384 : !tile.smem<1x128xi8, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %sizep = tile.ptr_add %sizes, %k : !tile.ptr<i64>, i32
      %rows = tile.gather %sizep : !tile.ptr<i64> -> i64
      %v = tile.make_view %p, dims(%rows, %columns), strides(%columns, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
      tile.tma_describe %v in %m : !tile.view<2xf16>, !tile.smem<1x128xi8, minor = 1>
      %w = tile.make_view %q, dims(%rows, %columns), strides(%columns, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
      tile.tma_describe %w in %m : !tile.view<2xf16>, !tile.smem<1x128xi8, minor = 1>
      %slot = tile.ring_reserve %r bytes 8192 : !tile.ring<2>
      %t = tile.smem_slot %s[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %v[%c0, %c0 : i32, i32] to %t signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
      %again = tile.ring_reserve %r bytes 8192 : !tile.ring<2>
      %u = tile.smem_slot %s[%again] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
      tile.tma_load %w[%c0, %c0 : i32, i32] to %u signals %r[%again] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<2>
    }
  } consumer {
  }
  return
}
