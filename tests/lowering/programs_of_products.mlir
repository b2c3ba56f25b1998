// Programs that shall fit a multiprocessor, as many as leave products the registers they need.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s --check-prefix=WARPGROUPS

// Four programs of 256 threads leave 64 registers for a thread; a warpgroup's product of 160 columns is not assembled
// with so few.
// CHECK-LABEL: .entry products(
// CHECK: .minnctapersm 4
// WARPGROUPS-LABEL: .entry products(
// WARPGROUPS: .minnctapersm 2
func.func @products(%a: !tile.view<2xf16>, %out: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 8 : i32, tile.programs = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128x160xf32>
  %x = tile.load %a[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<128x64xf16>
  %y = tile.load %a[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x160xf16>
  %d = tile.dot %x, %y, %zero : tensor<128x64xf16>, tensor<64x160xf16> -> tensor<128x160xf32>
  tile.store %d, %out[%c0, %c0 : i32, i32] : tensor<128x160xf32>, !tile.view<2xf32>
  return
}
