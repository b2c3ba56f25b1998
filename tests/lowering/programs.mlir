// Programs that shall fit a multiprocessor reach the assembler, which then bounds the registers of a thread.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry three(
// CHECK: .minnctapersm 3
func.func @three(%x: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.programs = 3 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %b = arith.negf %a : tensor<128xf32>
  tile.store %b, %x[%c0 : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}
