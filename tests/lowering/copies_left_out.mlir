// Gathers into shared memory that go through registers are left out where an iteration needs none any more, in loops
// inside of others: as elements that are not read they would take as long as those of other iterations.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Inside of the branch elements are read without a condition of their own.
// CHECK-LABEL: .entry nested(
// CHECK-NOT: @%p{{[0-9]+}} ld.global
// CHECK: {{^}}{{[[:space:]]*}}ld.global{{.*}}b16
// CHECK-NOT: @%p{{[0-9]+}} ld.global
// CHECK: st.shared
// CHECK: ret
func.func @nested(%x: !tile.ptr<f16>, %stride: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.iota : tensor<32xi32>
  %k = tile.iota : tensor<32xi32>
  %st = tile.splat %stride : i32 -> tensor<32xi32>
  %rows = arith.muli %k, %st : tensor<32xi32>
  %row = tile.reshape %t : tensor<32xi32> -> tensor<1x32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x32xi32>
  %at = arith.addi %a, %b : tensor<32x32xi32>
  scf.for %tap = %c0 to %n step %c1 : i32 {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
      %more = arith.cmpi slt, %i, %stride : i32
      %s = tile.smem_alloc : <32x32xf16, minor = 1>
      tile.async_gather %p offsets %at : tensor<32x32xi32> to %s if %more : <f16>, <32x32xf16, minor = 1>
      tile.async_commit
      tile.async_wait 0
    }
  }
  return
}

// -----

// A loop of its own has many iterations, and branches cost registers.
// CHECK-LABEL: .entry alone(
// CHECK: @%p{{[0-9]+}} ld.global{{.*}}b16
// CHECK: ret
func.func @alone(%x: !tile.ptr<f16>, %stride: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.iota : tensor<32xi32>
  %k = tile.iota : tensor<32xi32>
  %st = tile.splat %stride : i32 -> tensor<32xi32>
  %rows = arith.muli %k, %st : tensor<32xi32>
  %row = tile.reshape %t : tensor<32xi32> -> tensor<1x32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x32xi32>
  %at = arith.addi %a, %b : tensor<32x32xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
    %more = arith.cmpi slt, %i, %stride : i32
    %s = tile.smem_alloc : <32x32xf16, minor = 1>
    tile.async_gather %p offsets %at : tensor<32x32xi32> to %s if %more : <f16>, <32x32xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
  }
  return
}

// -----

// Copies of words are asynchronous: they read nothing where there is nothing to read.
// CHECK-LABEL: .entry words(
// CHECK: cp.async
// CHECK-NOT: ld.global
// CHECK: ret
func.func @words(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %t = tile.iota : tensor<32xi32>
  %k = tile.iota : tensor<32xi32>
  %st = arith.constant dense<64> : tensor<32xi32>
  %rows = arith.muli %k, %st : tensor<32xi32>
  %row = tile.reshape %t : tensor<32xi32> -> tensor<1x32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %a = tile.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %b = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x32xi32>
  %at = arith.addi %a, %b : tensor<32x32xi32>
  scf.for %tap = %c0 to %n step %c1 : i32 {
    scf.for %i = %c0 to %n step %c64 : i32 {
      %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
      %more = arith.cmpi slt, %i, %tap : i32
      %s = tile.smem_alloc : <32x32xf16, minor = 1>
      tile.async_gather %p offsets %at : tensor<32x32xi32> to %s if %more : <f16>, <32x32xf16, minor = 1>
      tile.async_commit
      tile.async_wait 0
    }
  }
  return
}
