// Tiles that need a thread's registers twice over are named before the assembler goes to work on them.
// RUN: tilec compile %s -t sm_80 -e ptx --ptxas none --warps 4 --remarks -o %t 2>&1 | FileCheck %s
// RUN: tilec compile %s -t sm_80 -e ptx --ptxas none --warps 16 --remarks -o %t 2>&1 | FileCheck %s -check-prefix=FITS --allow-empty
// CHECK: registers_twice.mlir:[[#@LINE+9]]:10: remark: tiles alive here need about 512 registers of each thread, which has 255
// FITS-NOT: remark: tiles alive here
func.func @sums(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %c: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {
    %x = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<256x32xf16>
    %y = tile.load %a[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x256xf16>
    %d = tile.dot %x, %y, %acc : tensor<256x32xf16>, tensor<32x256xf16> -> tensor<256x256xf32>
    scf.yield %d : tensor<256x256xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<256x256xf32>, !tile.view<2xf32>
  return
}
