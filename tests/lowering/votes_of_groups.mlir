// Flags of rows that eight lanes share: one vote of the warp a row, of which each lane looks at its group's bits. Of the
// two lanes of a short row: a shuffle.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry rows(
// CHECK: vote.sync.ballot.b32
// CHECK-NOT: shfl
// CHECK: ret;
func.func @rows(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.ptr<i8>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<16x32xi32>
  %s = tile.splat %k : i32 -> tensor<16x32xi32>
  %e = arith.cmpi eq, %a, %s : tensor<16x32xi32>
  %r = tile.reduce %e axis 1 : (tensor<16x32xi1>) -> tensor<16x1xi1> {
  ^bb0(%p: i1, %q: i1):
    %o = arith.ori %p, %q : i1
    tile.yield %o : i1
  }
  %b = arith.extui %r : tensor<16x1xi1> to tensor<16x1xi8>
  %i = tile.iota : tensor<16xi32>
  %at = tile.reshape %i : tensor<16xi32> -> tensor<16x1xi32>
  tile.scatter %b, %y offsets %at : tensor<16x1xi32> : tensor<16x1xi8>, !tile.ptr<i8>
  return
}

// -----
// CHECK-LABEL: .entry pairs(
// CHECK-NOT: vote
// CHECK: shfl
// CHECK: ret;
func.func @pairs(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 16, 8>}, %y: !tile.ptr<i8>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<64x8xi32>
  %s = tile.splat %k : i32 -> tensor<64x8xi32>
  %e = arith.cmpi eq, %a, %s : tensor<64x8xi32>
  %r = tile.reduce %e axis 1 : (tensor<64x8xi1>) -> tensor<64x1xi1> {
  ^bb0(%p: i1, %q: i1):
    %o = arith.andi %p, %q : i1
    tile.yield %o : i1
  }
  %b = arith.extui %r : tensor<64x1xi1> to tensor<64x1xi8>
  %i = tile.iota : tensor<64xi32>
  %at = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  tile.scatter %b, %y offsets %at : tensor<64x1xi32> : tensor<64x1xi8>, !tile.ptr<i8>
  return
}
