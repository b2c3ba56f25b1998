// RUN: tile-opt %s | tile-opt | FileCheck %s
// A ring that a producer's threads fill beside bulk copies.
func.func @k(%p: !tile.ptr<f16>, %o: tensor<64x64xi32>) attributes {tile.num_warps = 4 : i32} {
  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 2>
  // CHECK: tile.ring_alloc arrivals 1 fills 5 : <2>
  %r = tile.ring_alloc arrivals 1 fills 5 : !tile.ring<2>
  tile.specialize regs(56, 104) programs 3 producer {
    // CHECK: %[[SLOT:.*]] = tile.ring_reserve
    %slot = tile.ring_reserve %r bytes 128 : !tile.ring<2>
    %s = tile.smem_slot %buf[%slot] : !tile.smem<64x64xf16, minor = 1, stages = 2> -> !tile.smem<64x64xf16, minor = 1>
    tile.async_gather %p offsets %o : tensor<64x64xi32> to %s : !tile.ptr<f16>, !tile.smem<64x64xf16, minor = 1>
    // CHECK: tile.ring_commit %{{.*}}[%[[SLOT]]] : <2>
    tile.ring_commit %r[%slot] : !tile.ring<2>
  } consumer {
  }
  return
}
