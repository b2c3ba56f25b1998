// What a whole warp combines takes one instruction, and threads learn whether some or all elements hold from the barrier
// at which they meet: no table in shared memory.
// RUN: split-file %s %t
// RUN: tilec compile %t/any.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=ANY
// RUN: tilec compile %t/any_of_warp.mlir -t sm_80 -e ptx | FileCheck %s --check-prefix=WARP
// RUN: tilec compile %t/largest.mlir -t sm_80 -e ptx | FileCheck %s --check-prefix=LARGEST
// RUN: tilec compile %t/largest_f32.mlir -t sm_80 -e ptx | FileCheck %s --check-prefix=F32

// ANY-NOT: shfl.sync
// ANY-NOT: st.shared
// ANY: bar.red.or.pred
// ANY-NOT: bar.sync

// WARP-NOT: shfl.sync
// WARP: vote.sync.any.pred

// LARGEST-NOT: shfl.sync
// LARGEST: redux.sync.max.s32
// LARGEST: st.shared

// Numbers of f32 are compared as integers in the same order; NaN loses against all of them.
// F32-NOT: shfl.sync
// F32: setp.nan.f32
// F32: redux.sync.min.s32
// F32: st.shared

//--- any.mlir
func.func @k(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<i1>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %b = arith.cmpf ogt, %a, %zero : tensor<512xf32>
  %s = tile.reduce %b axis 0 : (tensor<512xi1>) -> tensor<1xi1> {
  ^bb0(%p: i1, %q: i1):
    %r = arith.ori %p, %q : i1
    tile.yield %r : i1
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi1>, !tile.ptr<i1>
  return
}

//--- any_of_warp.mlir
func.func @k(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<i1>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %b = arith.cmpf ogt, %a, %zero : tensor<128xf32>
  %s = tile.reduce %b axis 0 : (tensor<128xi1>) -> tensor<1xi1> {
  ^bb0(%p: i1, %q: i1):
    %r = arith.ori %p, %q : i1
    tile.yield %r : i1
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi1>, !tile.ptr<i1>
  return
}

//--- largest.mlir
func.func @k(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<i32>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xi32> -> tensor<512xi32>
  %s = tile.reduce %a axis 0 : (tensor<512xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxsi %p, %q : i32
    tile.yield %r : i32
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xi32>, !tile.ptr<i32>
  return
}

//--- largest_f32.mlir
func.func @k(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<f32>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %s = tile.reduce %a axis 0 : (tensor<512xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.minnumf %p, %q : f32
    tile.yield %r : f32
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xf32>, !tile.ptr<f32>
  return
}
