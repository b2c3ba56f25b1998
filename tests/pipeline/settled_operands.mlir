// Code whose products the assembler lets wait for each other, for lack of registers, gets a try with products that end
// with their iteration: their operands in registers are then free when the next one begins.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 255 registers"\nif grep -o "wgmma.[mw][a-z]*_[a-z]*" "$4" | head -1 | grep -q wait; then echo "ptxas info : (C7512) Potential Performance Loss"; fi\n' > %t.waits && chmod +x %t.waits
// RUN: rm -rf %t && tilec compile %s -t sm_90a --ptxas %t.waits -e mlir:gpu -o %t --remarks 2>&1 | FileCheck %s -check-prefix=REMARK
// RUN: FileCheck %s -check-prefix=SETTLED < %t/settled_operands.sm_90a.gpu.mlir
// REMARK: remark: products end with their iteration: where some run on that read registers, the assembler lets all of them wait
// SETTLED: tile.specialize
// SETTLED: scf.for
// SETTLED: tile.mma wgmma_bf16
// SETTLED-NEXT: tile.mma_wait 0

// Where that changes nothing, the first stays.
// RUN: sed 's/if grep.*then/if true; then/' %t.waits > %t.always && chmod +x %t.always
// RUN: rm -rf %t && tilec compile %s -t sm_90a --ptxas %t.always -e mlir:gpu -o %t
// RUN: FileCheck %s -check-prefix=STAYS < %t/settled_operands.sm_90a.gpu.mlir
// STAYS: scf.for
// STAYS: tile.mma_wait 0
// STAYS: tile.mma wgmma_bf16
func.func @settled(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %h = arith.truncf %a : tensor<64x64xf32> to tensor<64x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x256xbf16>
    %d = tile.dot %h, %b, %acc : tensor<64x64xbf16>, tensor<64x256xbf16> -> tensor<64x256xf32>
    scf.yield %d : tensor<64x256xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x256xf32>, !tile.view<2 x f32>
  return
}
