// Products of bits: words of 32 are loaded as tf32 is, by instructions of their own; counts start as integers.
// RUN: split-file %s %t
// RUN: tilec compile %t/gemm.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefix=WARPS --implicit-check-not=.local
// RUN: tilec compile %t/gemm.mlir --target=sm_90a --stages=2 --emit=ptx | FileCheck %s --check-prefix=GROUPS --implicit-check-not=.local
// RUN: tile-opt %t/fma.mlir --tile-target=sm_80 -tile-stage -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=FMA
// RUN: tile-opt %t/batch.mlir --tile-target=sm_90a -tile-unroll-batches -tile-place-operands | FileCheck %s --check-prefix=BATCH
// RUN: %if ptxas %{ tilec compile %t/gemm.mlir --target=sm_90a --stages=3 --emit=json | FileCheck %s --check-prefix=CODE --implicit-check-not=C75 %}

// 2 x 2 warps of 32 x 32, four steps of 8 words: nothing is rounded on its way.
// WARPS: ldmatrix.sync.aligned.m8n8.x4.shared
// WARPS-NOT: {{and.b32.*-8192|mul.f32}}
// WARPS-COUNT-32: mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc
// WARPS-NOT: mma.sync

// GROUPS: cp.async.bulk.tensor
// GROUPS-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc {{.*}}, 1;
// GROUPS-NOT: wgmma.mma_async

// CODE: "spill_store_bytes": 0
// CODE: "BGMMA": 4

// Without an instruction: 32 counts of a thread, of 8 words each.
// FMA: .entry fma
// FMA: ld.shared.v4.b32
// FMA: and.b32
// FMA-COUNT-256: popc.b32
// FMA-NOT: {{popc|mul.lo.s32}}

// BATCH: tile.batch_mma m16n8k256_b1

//--- gemm.mlir
func.func @gemm(%A: !tile.view<2 x i32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 32>}, %B: !tile.view<2 x i32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 4>, tile.dim_multiple_of = array<i32: 32, 64>}, %C: !tile.view<2 x i32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xi32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x i32> -> tensor<64x32xi32>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x i32> -> tensor<32x64xi32>
    %d = tile.dot %a, %b, %c precision bits : tensor<64x32xi32>, tensor<32x64xi32> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xi32>, !tile.view<2 x i32>
  return
}

//--- fma.mlir
func.func @fma(%A: !tile.view<2 x i32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %B: !tile.view<2 x i32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %C: !tile.view<2 x i32> {tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x i32> -> tensor<64x8xi32>
  %b = tile.load %B[%c0, %c0 : i32, i32] : !tile.view<2 x i32> -> tensor<8x64xi32>
  %x = tile.share %a : tensor<64x8xi32> -> !tile.smem<64x8xi32, minor = 1>
  %y = tile.share %b : tensor<8x64xi32> -> !tile.smem<8x64xi32, minor = 1>
  %d = tile.mma fma k 8 warps(2, 2) %x, %y, %zero : !tile.smem<64x8xi32, minor = 1>, !tile.smem<8x64xi32, minor = 1> -> tensor<64x64xi32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<64x64xi32>, !tile.view<2 x i32>
  return
}

//--- batch.mlir
func.func @batch(%X: !tile.view<3 x i32>, %P: !tile.view<3 x i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0> : tensor<4x16x16xi32>
  %ones = arith.constant dense<-1> : tensor<4x16x16xi32>
  %x = tile.load %X[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3 x i32> -> tensor<4x16x16xi32>
  %y = arith.xori %x, %ones : tensor<4x16x16xi32>
  %t = tile.trans %y, [0, 2, 1] : tensor<4x16x16xi32> -> tensor<4x16x16xi32>
  %d = tile.batch_dot %y, %t, %zero precision bits : tensor<4x16x16xi32>, tensor<4x16x16xi32> -> tensor<4x16x16xi32>
  tile.store %d, %P[%c0, %c0, %c0 : i32, i32, i32] : tensor<4x16x16xi32>, !tile.view<3 x i32>
  return
}
