// Code of producer and consumer warps whose products the assembler lets wait for each other, or that spills, for lack of
// registers, gets a try without roles. It is kept where its products run on, and it spills a quarter at most.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 255 registers"\nif grep -q "reqntid 256" "$4"; then echo "ptxas info : (C7512) Potential Performance Loss"; fi\n' > %t.waits && chmod +x %t.waits
// RUN: tilec report %s -t sm_90a --json --ptxas %t.waits | FileCheck %s -check-prefix=WITHOUT
// RUN: sed 's/(C7512) Potential Performance Loss/800 bytes stack frame, 400 bytes spill stores, 400 bytes spill loads/' %t.waits > %t.spills && chmod +x %t.spills
// RUN: tilec report %s -t sm_90a --json --ptxas %t.spills | FileCheck %s -check-prefix=WITHOUT
// WITHOUT: "threads": 128

// Where the one without roles is no better, or nothing is wrong, the first stays.
// RUN: sed 's/if grep.*then/if true; then/' %t.waits > %t.always && chmod +x %t.always
// RUN: tilec report %s -t sm_90a --json --ptxas %t.always | FileCheck %s -check-prefix=STAYS
// RUN: sed 's/if grep.*then/if false; then/' %t.waits > %t.never && chmod +x %t.never
// RUN: tilec report %s -t sm_90a --json --ptxas %t.never | FileCheck %s -check-prefix=STAYS
// STAYS: "threads": 256
func.func @product(%A: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %B: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x128xbf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}
