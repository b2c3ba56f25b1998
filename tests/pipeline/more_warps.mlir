// Code that spills, of a kernel that does not say how many warps it has, gets a try with twice as many. It is kept where
// it spills a quarter at most.
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 255 registers"\nif grep -q "reqntid 128" "$4"; then echo "400 bytes stack frame, 400 bytes spill stores, 400 bytes spill loads"; fi\n' > %t.spills && chmod +x %t.spills
// RUN: tilec report %s -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=TWICE
// TWICE-DAG: "spill_store_bytes": 0
// TWICE-DAG: "threads": 256

// Where it spills as much, or the kernel says four warps, the first stays.
// RUN: sed 's/if grep.*then/if true; then/' %t.spills > %t.always && chmod +x %t.always
// RUN: tilec report %s -t sm_80 --json --ptxas %t.always | FileCheck %s -check-prefix=STAYS
// RUN: sed 's/tile.kernel/tile.kernel, tile.num_warps = 4 : i32/' %s > %t.four.mlir
// RUN: tilec report %t.four.mlir -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=STAYS
// STAYS-DAG: "spill_store_bytes": 400
// STAYS-DAG: "threads": 128
func.func @sums(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 64, 128>, tile.stride_multiple_of = array<i32: 16, 1>},
                %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 64, 128>, tile.stride_multiple_of = array<i32: 16, 1>})
    attributes {tile.kernel} {
  %o = arith.constant 0 : i32
  %a = tile.load %x[%o, %o : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %b = arith.mulf %a, %a : tensor<64x128xf32>
  tile.store %b, %y[%o, %o : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}
