// Code that spills is assembled again, with results computed in front of what threads wait for: four tiles that wait for
// a sum are two, rounded. It is kept where it spills less.
// RUN: rm -f %t.first %t.second
// RUN: printf '#!/bin/sh\nprintf "\\177ELF" > "$6"\necho "Used 255 registers"\nif test -e %t.first; then cp "$4" %t.second; else cp "$4" %t.first; echo "400 bytes stack frame, 400 bytes spill stores, 400 bytes spill loads"; fi\n' > %t.spills && chmod +x %t.spills
// RUN: tilec report %s -t sm_80 --json --ptxas %t.spills | FileCheck %s -check-prefix=REPORT
// REPORT: "spill_store_bytes": 0
// RUN: FileCheck %s -check-prefix=FIRST < %t.first
// FIRST-NOT: cvt.rn.f16x2
// FIRST: shfl.sync
// RUN: FileCheck %s -check-prefix=SECOND < %t.second
// SECOND-COUNT-32: cvt.rn.f16x2
// SECOND: shfl.sync

// Where it spills as much, or few words, the first stays.
// RUN: rm -f %t.first %t.second && sed 's/; else cp/; echo "390 bytes stack frame, 390 bytes spill stores, 390 bytes spill loads"; else cp/' %t.spills > %t.still && chmod +x %t.still
// RUN: tilec report %s -t sm_80 --json --ptxas %t.still | FileCheck %s -check-prefix=STILL
// STILL: "spill_store_bytes": 400
// RUN: rm -f %t.first %t.second && sed 's/400/12/g' %t.spills > %t.few && chmod +x %t.few
// RUN: tilec report %s -t sm_80 --json --ptxas %t.few | FileCheck %s -check-prefix=FEW
// FEW: "spill_store_bytes": 12
// RUN: not test -e %t.second
func.func @four(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 64, 512>, tile.stride_multiple_of = array<i32: 16, 1>},
                %s: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 64>},
                %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 64, 256>, tile.stride_multiple_of = array<i32: 16, 1>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = arith.constant 0 : i32
  %p = arith.constant 128 : i32
  %q = arith.constant 256 : i32
  %r = arith.constant 384 : i32
  %a = tile.load %x[%o, %o : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %b = tile.load %x[%o, %p : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %c = tile.load %x[%o, %q : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %d = tile.load %x[%o, %r : i32, i32] : !tile.view<2xf32> -> tensor<64x128xf32>
  %ab = arith.mulf %a, %b : tensor<64x128xf32>
  %cd = arith.mulf %c, %d : tensor<64x128xf32>
  %all = arith.mulf %ab, %cd : tensor<64x128xf32>
  %sums = tile.reduce %all axis 1 : (tensor<64x128xf32>) -> tensor<64x1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %flat = tile.reshape %sums : tensor<64x1xf32> -> tensor<64xf32>
  tile.store %flat, %s[%o : i32] : tensor<64xf32>, !tile.view<1xf32>
  %e = arith.addf %a, %b : tensor<64x128xf32>
  %f = arith.addf %c, %d : tensor<64x128xf32>
  %g = arith.truncf %e : tensor<64x128xf32> to tensor<64x128xf16>
  %h = arith.truncf %f : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %g, %y[%o, %o : i32, i32] : tensor<64x128xf16>, !tile.view<2xf16>
  tile.store %h, %y[%o, %p : i32, i32] : tensor<64x128xf16>, !tile.view<2xf16>
  return
}
