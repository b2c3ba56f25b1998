// Lanes that exchange among themselves use bytes of their own warp, whatever other moves lie at the same place: no warp
// waits for another, however many such moves follow each other. Moves of all warps meet as ever.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=PTX

#pairs = #tile.layout<64x32 regs [1:2*1, 0:2*8, 1:4*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
#rows = #tile.layout<64x32 regs [0:16*1] lanes [1:32*1] warps [0:4*16]>
#wide = #tile.layout<64x32 regs [1:8*1, 0:2*32] lanes [1:4*8, 0:8*1] warps [0:4*8]>

// CHECK-LABEL: func.func @own
// CHECK-NOT: tile.barrier
// CHECK: tile.convert {{.*}}tile.scratch = [[AT:[0-9]+]] : i32, tile.scratch_pitch = [[PITCH:[0-9]+]] : i32} : tensor<64x32xf32
// CHECK-NOT: tile.barrier
// CHECK: tile.convert {{.*}}tile.scratch = [[AT]] : i32, tile.scratch_pitch = [[PITCH]] : i32} : tensor<64x32xf16
// CHECK-NOT: tile.barrier
// CHECK: return
// PTX-LABEL: .entry own(
// PTX-NOT: bar.sync
// PTX: bar.warp.sync
// PTX-NOT: bar.sync
// PTX: ret;
func.func @own(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %z: !tile.view<2xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32, #pairs>
  %c = tile.convert %t : tensor<64x32xf32, #pairs> -> tensor<64x32xf32, #rows>
  %half = arith.truncf %c : tensor<64x32xf32, #rows> to tensor<64x32xf16, #rows>
  %e = tile.convert %half : tensor<64x32xf16, #rows> -> tensor<64x32xf16, #pairs>
  tile.store %c, %y[%i, %i : i32, i32] : tensor<64x32xf32, #rows>, !tile.view<2xf32>
  tile.store %e, %z[%i, %i : i32, i32] : tensor<64x32xf16, #pairs>, !tile.view<2xf16>
  return
}

// -----
#pairs = #tile.layout<64x32 regs [1:2*1, 0:2*8, 1:4*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>
#rows = #tile.layout<64x32 regs [0:16*1] lanes [1:32*1] warps [0:4*16]>
#wide = #tile.layout<64x32 regs [1:8*1, 0:2*32] lanes [1:4*8, 0:8*1] warps [0:4*8]>

// Warps must meet: before they write what others may still be reading of the iteration before, and, in the move
// itself, before they read.
// CHECK-LABEL: func.func @all
// CHECK: scf.for
// CHECK: tile.convert
// CHECK: tile.barrier
// CHECK: tile.convert
// CHECK: return
func.func @all(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %j = %i to %n step %one : i32 {
    %t = tile.load %x[%j, %i : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32, #pairs>
    %c = tile.convert %t : tensor<64x32xf32, #pairs> -> tensor<64x32xf32, #rows>
    %d = arith.mulf %c, %c : tensor<64x32xf32, #rows>
    %e = tile.convert %d : tensor<64x32xf32, #rows> -> tensor<64x32xf32, #wide>
    tile.store %e, %y[%j, %i : i32, i32] : tensor<64x32xf32, #wide>, !tile.view<2xf32>
  }
  return
}
