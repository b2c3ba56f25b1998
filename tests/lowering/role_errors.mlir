// What stands in the way of roles and bulk copies, in words. Much of this would compile and hang, or copy the wrong bytes.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-emit -verify-diagnostics -o /dev/null | FileCheck %s --allow-empty --implicit-check-not=entry

// 40 + 2 * 240 registers per thread: more than 3 * 168, which the program enters with.
func.func @registers() attributes {tile.kernel, tile.num_warps = 8 : i32} {
  // expected-error @+1 {{asks for 40 registers per thread of the producer and 240 of 2 consumer warpgroups, 520 in all; the program enters with 168 each, 504 in all}}
  tile.specialize regs(40, 240) producer { } consumer { }
  return
}

// -----

func.func @warps() attributes {tile.kernel, tile.num_warps = 6 : i32} {
  // expected-error @+1 {{expects 1 to 6 warpgroups of 4 consumer warps, found 6 warps}}
  tile.specialize regs(0, 0) producer { } consumer { }
  return
}

// -----

func.func @arrivals() attributes {tile.kernel, tile.num_warps = 8 : i32} {
  // expected-error @+1 {{expects 2 arrivals (one of each consumer warpgroup), found 8}}
  %r = tile.ring_alloc arrivals 8 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer { } consumer { }
  return
}

// -----

// Only the first warp of a group would say that the position has been read.
func.func @queue() attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %r = tile.ring_alloc arrivals 2 payload 8 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer { } consumer {
    // expected-error @+1 {{a queue of this kernel that every warp releases, with a payload of 4 bytes}}
    tile.work_loop queue %r : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
    }
  }
  return
}

// -----

func.func @producer_tile() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile.specialize regs(0, 0) producer {
    // expected-error @+1 {{cannot run in the producer: it is one thread}}
    tile.barrier
  } consumer {
  }
  return
}

// -----

func.func @sides() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %r = tile.ring_alloc arrivals 1 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    // expected-error @+1 {{belongs into the consumer of a tile.specialize}}
    %s = tile.ring_acquire %r : !tile.ring<2>
  } consumer {
  }
  return
}

// -----

func.func @bytes(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 8192 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    // expected-error @+1 {{announces 4096 bytes, its copies have 8192}}
    %slot = tile.ring_reserve %r bytes 4096 : !tile.ring<1>
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @no_work_loop(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{must stand inside the kernel's tile.work_loop}}
  %x = tile.program_id 0
  tile.work_loop {
  ^bb0(%a: i32, %b: i32, %c: i32):
  }
  return
}

// -----

func.func @unit_stride(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.stride_multiple_of = array<i32: 8, 8>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: no dim of the view is known to have stride 1}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @alignment(%v: !tile.view<2xf16> {tile.align = 8 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: the view's address is not known to be a multiple of 16 bytes}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @strides(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: stride 0 of the view is not known to be a multiple of 16 bytes}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @minor(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 0>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: the buffer's contiguous dim is 0, the view's is 1}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x64xf16, minor = 0>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @gaps(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<60x40xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: a box of 60 rows of 80 bytes has gaps in shared memory}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<60x40xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @short_rows(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x4xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: rows of 8 bytes are not a multiple of 16 bytes}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<64x4xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @rows(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<298x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: 298 rows do not split into copies of at most 256}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<298x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @patterns(%v: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<60x128xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: 60 rows are not a multiple of the 8 rows of a swizzle pattern}}
    tile.tma_load %v[%i, %i : i32, i32] to %s signals %r[%slot] : !tile.view<2xf16>, !tile.smem<60x128xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

func.func @outer(%v: !tile.view<3xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 8, 8>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %s = tile.smem_alloc at 0 : !tile.smem<64x64xf16, minor = 1>
  %r = tile.ring_alloc arrivals 1 at 65536 : !tile.ring<1>
  tile.specialize regs(0, 0) producer {
    %slot = tile.ring_reserve %r bytes 1048560 : !tile.ring<1>
    // expected-error @+1 {{cannot be a bulk copy: dim 0 of the view has stride 1, but is no dim of the box}}
    tile.tma_load %v[%i, %i, %i : i32, i32, i32] to %s signals %r[%slot] : !tile.view<3xf16>, !tile.smem<64x64xf16, minor = 1>, !tile.ring<1>
  } consumer {
  }
  return
}

// -----

// Of what fills a stage: the copies of threads are counted where a ring_commit stands.
func.func @fills() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{expects fills by the producer's 4 warps, found 1 fills}}
  %r = tile.ring_alloc arrivals 1 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    %s = tile.ring_reserve %r bytes 0 : !tile.ring<2>
    tile.ring_commit %r[%s] : !tile.ring<2>
  } consumer { }
  return
}

// -----

func.func @uncounted() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{expects a ring_commit of the producer's 4 warps, found 4 fills}}
  %r = tile.ring_alloc arrivals 1 fills 4 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    %s = tile.ring_reserve %r bytes 0 : !tile.ring<2>
  } consumer { }
  return
}

// -----

// Warps of the producer that read the queue release it like consumers.
func.func @shared_queue() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %r = tile.ring_alloc arrivals 1 fills 4 at 0 : !tile.ring<2>
  // expected-error @+1 {{expects 8 arrivals (one of each consumer warp), found 4}}
  %q = tile.ring_alloc arrivals 4 per_warp payload 8 at 64 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    tile.work_loop queue %q : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %s = tile.ring_reserve %r bytes 0 : !tile.ring<2>
      tile.ring_commit %r[%s] : !tile.ring<2>
    }
  } consumer {
    tile.work_loop queue %q : !tile.ring<2> {
    ^bb0(%x: i32, %y: i32, %z: i32):
    }
  }
  return
}

// -----

func.func @bytes_of_threads() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %r = tile.ring_alloc arrivals 1 fills 4 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    // expected-error @+1 {{announces 64 bytes of a ring that only threads fill}}
    %s = tile.ring_reserve %r bytes 64 : !tile.ring<2>
    tile.ring_commit %r[%s] : !tile.ring<2>
  } consumer { }
  return
}

// -----

func.func @meeting() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %r = tile.ring_alloc arrivals 1 fills 4 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer {
    %s = tile.ring_reserve %r bytes 0 : !tile.ring<2>
    tile.ring_commit %r[%s] : !tile.ring<2>
    // expected-error @+1 {{cannot run in the producer: its threads do not meet}}
    tile.barrier
  } consumer { }
  return
}

// -----

// Every warp of a turner reads the stage.
func.func @turner_releases() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{expects every warp of the turner to release its stages}}
  %r = tile.ring_alloc arrivals 3 at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer { } turner {
    %i = tile.ring_acquire %r : !tile.ring<2>
    tile.ring_release %r : !tile.ring<2>
  } consumer { }
  return
}

// -----

func.func @turner_arrivals() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // expected-error @+1 {{expects 3 arrivals}}
  %r = tile.ring_alloc arrivals 4 per_warp at 0 : !tile.ring<2>
  tile.specialize regs(0, 0) producer { } turner {
    %i = tile.ring_acquire %r : !tile.ring<2>
    tile.ring_release %r : !tile.ring<2>
  } consumer { }
  return
}

// -----

func.func @turner_barrier() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile.specialize regs(0, 0) producer { } turner {
    // expected-error @+1 {{cannot run in the turner: its warps turn tiles from ring to ring}}
    tile.barrier
  } consumer { }
  return
}

// -----

func.func @turn_elsewhere() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %a = tile.smem_alloc at 0 : !tile.smem<32x32xi8, minor = 1>
  %b = tile.smem_alloc at 1024 : !tile.smem<32x32xi8, minor = 0>
  tile.specialize regs(0, 0) producer { } consumer {
    // expected-error @+1 {{belongs into the turner of a tile.specialize}}
    tile.smem_turn %a to %b : <32x32xi8, minor = 1>, <32x32xi8, minor = 0>
  }
  return
}
