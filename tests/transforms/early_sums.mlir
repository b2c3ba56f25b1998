// RUN: tile-opt %s -split-input-file --tile-early-sums | FileCheck %s
// What several tiles come to stands beside the first product that follows them: one tile waits for the rest, not three.

// CHECK-LABEL: func.func @stages
// CHECK: %[[A:.*]] = tile.mma
// CHECK: %[[B:.*]] = tile.mma
// CHECK: %[[C:.*]] = tile.mma
// CHECK-NEXT: %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: tile.mma
// CHECK-NEXT: arith.addf %[[AB]], %[[C]]
// CHECK: arith.addf
func.func @stages(%x: tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>,
                  %zero: tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>)
    -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>> attributes {tile.num_warps = 4 : i32} {
  %w = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>
  %a = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %zero : tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %a16 = arith.truncf %a : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>> to tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %b = tile.mma wgmma_f16 k 64 warps(4, 1) %a16, %w, %zero : tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %b16 = arith.truncf %b : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>> to tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %c = tile.mma wgmma_f16 k 64 warps(4, 1) %b16, %w, %zero : tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %zero : tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %e = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %w, %d : tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %ab = arith.addf %a, %b : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %abc = arith.addf %ab, %c : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %all = arith.addf %abc, %e : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  return %all : tensor<64x64xf32, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
}
