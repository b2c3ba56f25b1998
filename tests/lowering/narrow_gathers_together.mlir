// Gathers into shared memory that go through registers and follow each other: the second one reads before the first one
// stores, so that both are on their way together. The ends of groups of asynchronous copies between them are none of
// theirs.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry both(
// CHECK-NOT: st.shared
// CHECK: cp.async.commit_group
// CHECK-NOT: st.shared
// CHECK-COUNT-2: ld.global{{.*}}b16
// CHECK: st.shared.b16
// CHECK: cp.async.wait_group
// CHECK: ret
func.func @both(%x: !tile.ptr<f16>, %stride: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<16xi32>
  %st = tile.splat %stride : i32 -> tensor<16xi32>
  %rows = arith.muli %i, %st : tensor<16xi32>
  %row = tile.reshape %i : tensor<16xi32> -> tensor<1x16xi32>
  %column = tile.reshape %rows : tensor<16xi32> -> tensor<16x1xi32>
  %a = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %b = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x16xi32>
  %at = arith.addi %a, %b : tensor<16x16xi32>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %x, %k : !tile.ptr<f16>, i32
    %s = tile.smem_alloc : <16x16xf16, minor = 1>
    tile.async_gather %p offsets %at : tensor<16x16xi32> to %s : <f16>, <16x16xf16, minor = 1>
    tile.async_commit
    %q = tile.ptr_add %p, %stride : !tile.ptr<f16>, i32
    %t = tile.smem_alloc : <16x16xf16, minor = 1>
    tile.async_gather %q offsets %at : tensor<16x16xi32> to %t : <f16>, <16x16xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
  }
  return
}

// -----

// A barrier stands between: what is stored in front of it is for those behind it.
// CHECK-LABEL: .entry meets(
// CHECK: ld.global{{.*}}b16
// CHECK: st.shared.b16
// CHECK: bar
// CHECK: ld.global{{.*}}b16
// CHECK: st.shared.b16
// CHECK: ret
func.func @meets(%x: !tile.ptr<f16>, %stride: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<16xi32>
  %st = tile.splat %stride : i32 -> tensor<16xi32>
  %rows = arith.muli %i, %st : tensor<16xi32>
  %row = tile.reshape %i : tensor<16xi32> -> tensor<1x16xi32>
  %column = tile.reshape %rows : tensor<16xi32> -> tensor<16x1xi32>
  %a = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %b = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x16xi32>
  %at = arith.addi %a, %b : tensor<16x16xi32>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %p = tile.ptr_add %x, %k : !tile.ptr<f16>, i32
    %s = tile.smem_alloc : <16x16xf16, minor = 1>
    tile.async_gather %p offsets %at : tensor<16x16xi32> to %s : <f16>, <16x16xf16, minor = 1>
    tile.async_commit
    tile.barrier
    %q = tile.ptr_add %p, %stride : !tile.ptr<f16>, i32
    %t = tile.smem_alloc : <16x16xf16, minor = 1>
    tile.async_gather %q offsets %at : tensor<16x16xi32> to %t : <f16>, <16x16xf16, minor = 1>
    tile.async_commit
    tile.async_wait 0
  }
  return
}

// -----

// The second one is left out by iterations that need none: the first one does not wait for it.
// CHECK-LABEL: .entry left_out(
// CHECK: ld.global{{.*}}b16
// CHECK: st.shared.b16
// CHECK: bra
// CHECK: ld.global{{.*}}b16
// CHECK: st.shared.b16
// CHECK: ret
func.func @left_out(%x: !tile.ptr<f16>, %stride: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<16xi32>
  %st = tile.splat %stride : i32 -> tensor<16xi32>
  %rows = arith.muli %i, %st : tensor<16xi32>
  %row = tile.reshape %i : tensor<16xi32> -> tensor<1x16xi32>
  %column = tile.reshape %rows : tensor<16xi32> -> tensor<16x1xi32>
  %a = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %b = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x16xi32>
  %at = arith.addi %a, %b : tensor<16x16xi32>
  scf.for %tap = %c0 to %n step %c1 : i32 {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %p = tile.ptr_add %x, %k : !tile.ptr<f16>, i32
      %more = arith.cmpi slt, %k, %stride : i32
      %s = tile.smem_alloc : <16x16xf16, minor = 1>
      %t = tile.smem_alloc : <16x16xf16, minor = 1>
      tile.async_gather %p offsets %at : tensor<16x16xi32> to %s : <f16>, <16x16xf16, minor = 1>
      %q = tile.ptr_add %p, %stride : !tile.ptr<f16>, i32
      tile.async_gather %q offsets %at : tensor<16x16xi32> to %t if %more : <f16>, <16x16xf16, minor = 1>
      tile.async_commit
      tile.async_wait 0
    }
  }
  return
}
