// Boxes as bulk copies: which dims a tensor map has, how a box is cut, where the parts land.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-emit=as=ptx -o /dev/null | FileCheck %s

// 320 rows of 80 elements: panels of 16 (rows are a multiple of 32 bytes only), 160 rows at a time.
// CHECK: tensor map of parameter 0: dims 1 0, box 16 160, swizzle 32
// CHECK: entry split(
// CHECK-COUNT-10: cp.async.bulk.tensor.2d.shared::cluster
// CHECK-NOT: cp.async.bulk.tensor
// CHECK: ret;
func.func @split(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<320x80xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 51200 : !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<320x80xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

// A box whose columns are contiguous, in the last dims of a view of rank 5; indices of 64 bits stay outside when they are.
// CHECK: tensor map of parameter 0: dims 3 4 2 1 0, box 32 64 1 1 1, swizzle 128
// CHECK: entry columns(
// CHECK: max.s64 {{.*}}, -2147483648;
// CHECK: min.s64 {{.*}}, 2147483647;
// CHECK: cp.async.bulk.tensor.5d.shared::cluster
func.func @columns(%v: !tile.view<5xf32> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 4, 4, 4, 1, 4>}, %far: i64, %x: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc at 0 : !tile.smem<32x64xf32, minor = 0>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<3>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 8192 : !tile.ring<3>
    tile.tma_load %v[%x, %x, %x, %far, %x : i32, i32, i32, i64, i32] to %s signals %r[%slot] : !tile.view<5xf32>, !tile.smem<32x64xf32, minor = 0>, !tile.ring<3>
  } consumer {
  }
  return
}

// -----

// Two boxes of one view: two maps; the same box again: none.
// CHECK: tensor map of parameter 0: dims 1 0, box 64 64, swizzle 128
// CHECK-NEXT: tensor map of parameter 0: dims 1 0, box 64 32, swizzle 128
// CHECK-NOT: tensor map
// CHECK: entry twice(
func.func @twice(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %t = tile.smem_alloc at 8192 : !tile.smem<32x64xf16, minor = 1>
  %u = tile.smem_alloc at 16384 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 20480 : !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %t signals %r[%slot] : !tile.view<2xf16>, !tile.smem<32x64xf16, minor = 1>, !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %u signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

// A box of several dims: its rows are patches of pixels. One copy, also of more than 256 rows.
// CHECK: tensor map of parameter 0: dims 3 2 1 0, box 64 16 16 2, swizzle 128
// CHECK: entry patches(
// CHECK-COUNT-1: cp.async.bulk.tensor.4d.shared::cluster
// CHECK-NOT: cp.async.bulk.tensor
// CHECK: ret;
func.func @patches(%v: !tile.view<4xf16> {tile.align = 16 : i32, tile.unit_stride = 3 : i32, tile.stride_multiple_of = array<i32: 8, 8, 8, 1>}, %x: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc at 0 : !tile.smem<512x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 65536 : !tile.ring<1>
    tile.tma_load %v[%x, %x, %x, %x : i32, i32, i32, i32] to %s signals %r[%slot] {tile.box = array<i64: 2, 16, 16, 64>} : !tile.view<4xf16>, !tile.smem<512x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

// The same box rounded to tf32 and as it is: two maps.
// CHECK: tensor map of parameter 0: dims 1 0, box 32 64, swizzle 128, tf32
// CHECK-NEXT: tensor map of parameter 0: dims 1 0, box 32 64, swizzle 128{{$}}
// CHECK: entry rounded(
func.func @rounded(%v: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x32xf32, minor = 1>
  %t = tile.smem_alloc at 8192 : !tile.smem<64x32xf32, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 16384 : !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] {tile.tf32} : !tile.view<2xf32>, !tile.smem<64x32xf32, minor = 1>, !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %t signals %r[%slot] : !tile.view<2xf32>, !tile.smem<64x32xf32, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

// Rows with which a view ends, where they are fewer than the box's: in loops around which the box stays where it is,
// they are copied by a map with as many rows, and zeros behind them in each panel. Not where the view is known to end
// with a box, nor boxes that move with the loop.
// CHECK: tensor map of parameter 0: dims 1 0, box 64 64, swizzle 128{{$}}
// CHECK-NEXT: tensor map of parameter 1: dims 1 0, box 64 64, swizzle 128{{$}}
// CHECK-NEXT: tensor map of parameter 0: dims 1 0, box 64 64, swizzle 128, remainder
// CHECK-NOT: tensor map
// CHECK: .global .align 128 .b8 tile_zero_rows[16384];
// CHECK: entry last_rows(
// CHECK-COUNT-2: prefetch.tensormap
// CHECK-NOT: prefetch.tensormap
// CHECK: and.b64 [[LEFT:%rd[0-9]+]], {{%rd[0-9]+}}, 63;
// CHECK-DAG: setp.eq.b64 [[NONE:%p[0-9]+]], [[LEFT]], 0;
// CHECK-DAG: setp.ne.b64 [[ELSEWHERE:%p[0-9]+]], {{%rd[0-9]+}}, [[LEFT]];
// CHECK: or.pred {{%p[0-9]+}}, [[NONE]], [[ELSEWHERE]];
// CHECK: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{{%r[0-9]+}}], [tile_zero_rows]
// CHECK: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{{%r[0-9]+}}], [tile_zero_rows]
// CHECK-NOT: cp.async.bulk.shared
// CHECK: ret;
func.func @last_rows(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 64, 1>}, %i: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x128xf16, minor = 1>
  %t = tile.smem_alloc at 16384 : !tile.smem<64x64xf16, minor = 1>
  %u = tile.smem_alloc at 24576 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    scf.for %k = %c0 to %n step %c128 : i32 {
      %slot = tile.ring_reserve %r bytes 32768 : !tile.ring<1>
      tile.tma_load %v[%i, %k : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x128xf16, minor = 1>, !tile.ring<1>
      tile.tma_load %w[%i, %k : i32, i32] to %t signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
      tile.tma_load %v[%k, %i : i32, i32] to %u signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
    }
  } consumer {
  }
  return
}

// -----

// Rows that do not fill their last panel: a map of its own for that one, whose rows lie as far apart as the others'.
// CHECK: tensor map of parameter 0: dims 1 0, box 64 64, swizzle 128
// CHECK-NEXT: tensor map of parameter 0: dims 1 0, box 16 64, swizzle 128
// CHECK-NOT: tensor map
// CHECK: entry narrow(
// CHECK: add.s32 [[SECOND:%r[0-9]+]], [[X:%r[0-9]+]], 64;
// CHECK: cp.async.bulk.tensor.2d{{.*}}, [[[WIDE:%rd[0-9]+]], {[[X]], [[X]]}]
// CHECK: add.s32 {{%r[0-9]+}}, {{%r[0-9]+}}, 8192;
// CHECK-NOT: [[[WIDE]],
// CHECK: cp.async.bulk.tensor.2d{{.*}}, [{{%rd[0-9]+}}, {[[SECOND]], [[X]]}]
// CHECK: ret;
func.func @narrow(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %s = tile.smem_alloc at 0 : !tile.smem<64x80xf16, minor = 1, panel = 64>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 10240 : !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x80xf16, minor = 1, panel = 64>, !tile.ring<1>
  } consumer {
  }
  return
}
