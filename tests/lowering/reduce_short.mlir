// Short integers that lie across a warp are reduced as words by one instruction, extended as their order asks.
// RUN: split-file %s %t
// RUN: tilec compile %t/signed.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=SIGNED
// RUN: tilec compile %t/unsigned.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=UNSIGNED
// RUN: tilec compile %t/sum.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=SUM

// SIGNED-NOT: shfl
// SIGNED: redux.sync.max.s32
// SIGNED-NOT: shfl

// UNSIGNED-NOT: shfl
// UNSIGNED: redux.sync.min.u32
// UNSIGNED-NOT: shfl

// SUM-NOT: shfl
// SUM: redux.sync.add.s32
// SUM-NOT: shfl

//--- signed.mlir
func.func @signed(%x: !tile.view<1xi8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 128>}, %o: !tile.ptr<i8>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi8> -> tensor<128xi8>
  %s = tile.reduce %a axis 0 : (tensor<128xi8>) -> tensor<1xi8> {
  ^bb0(%p: i8, %q: i8):
    %r = arith.maxsi %p, %q : i8
    tile.yield %r : i8
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi8>, !tile.ptr<i8>
  return
}

//--- unsigned.mlir
func.func @unsigned(%x: !tile.view<1xi16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<i16>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi16> -> tensor<32xi16>
  %s = tile.reduce %a axis 0 : (tensor<32xi16>) -> tensor<1xi16> {
  ^bb0(%p: i16, %q: i16):
    %r = arith.minui %p, %q : i16
    tile.yield %r : i16
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi16>, !tile.ptr<i16>
  return
}

//--- sum.mlir
func.func @sum(%x: !tile.view<1xi16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<i16>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi16> -> tensor<32xi16>
  %s = tile.reduce %a axis 0 : (tensor<32xi16>) -> tensor<1xi16> {
  ^bb0(%p: i16, %q: i16):
    %r = arith.addi %p, %q : i16
    tile.yield %r : i16
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi16>, !tile.ptr<i16>
  return
}
