// Gathers into shared memory that go through registers are left out where an iteration needs none any more: as elements
// that are not read they would take as long as others.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry elements(
// CHECK: @%p{{[0-9]+}} bra [[END:\$.*]];
// CHECK: ld.global{{.*}}b16
// CHECK: st.shared
// CHECK: [[END]]:
// CHECK-NOT: st.shared
// CHECK: ret
func.func @elements(%x: !tile.ptr<f16>, %stride: i32, %more: i1) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<32xi32>
  %k = tile.iota : tensor<32xi32>
  %st = tile.splat %stride : i32 -> tensor<32xi32>
  %rows = arith.muli %k, %st : tensor<32xi32>
  %row = tile.reshape %t : tensor<32xi32> -> tensor<1x32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x32xi32>
  %at = arith.addi %a, %b : tensor<32x32xi32>
  %s = tile.smem_alloc : <32x32xf16, minor = 1>
  tile.async_gather %x offsets %at : tensor<32x32xi32> to %s if %more : <f16>, <32x32xf16, minor = 1>
  tile.async_commit
  tile.async_wait 0
  return
}

// -----

// Copies of words are asynchronous: they read nothing where there is nothing to read.
// CHECK-LABEL: .entry words(
// CHECK-NOT: bra
// CHECK: cp.async
// CHECK: ret
func.func @words(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %more: i1) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %t = tile.iota : tensor<32xi32>
  %k = tile.iota : tensor<32xi32>
  %st = arith.constant dense<64> : tensor<32xi32>
  %rows = arith.muli %k, %st : tensor<32xi32>
  %row = tile.reshape %t : tensor<32xi32> -> tensor<1x32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x32xi32>
  %at = arith.addi %a, %b : tensor<32x32xi32>
  %s = tile.smem_alloc : <32x32xf16, minor = 1>
  tile.async_gather %x offsets %at : tensor<32x32xi32> to %s if %more : <f16>, <32x32xf16, minor = 1>
  tile.async_commit
  tile.async_wait 0
  return
}
