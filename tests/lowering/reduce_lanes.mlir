// Lanes that combine partial results get the same bits: a sum is not made one instruction with the product in front of
// it, which would round one lane's operand and not the other's; other combiners take the lower lane's operand first.
// RUN: split-file %s %t
// RUN: tilec compile %t/sum.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=SUM
// RUN: tilec compile %t/mix.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=MIX

// SUM: mul.f32 [[PRODUCT:%r[0-9]+]],
// SUM-NEXT: shfl.sync.bfly.b32 [[OTHER:%r[0-9]+]], [[PRODUCT]], 1, 31, -1;
// SUM-NEXT: add.rn.f32 {{%r[0-9]+}}, [[PRODUCT]], [[OTHER]];
// SUM-NOT: selp

// MIX: shfl.sync.bfly.b32 [[OTHER:%r[0-9]+]], [[OWN:%r[0-9]+]], 1, 31, -1;
// MIX-DAG: selp.f32 {{%r[0-9]+}}, [[OWN]], [[OTHER]], [[FIRST:%p[0-9]+]];
// MIX-DAG: selp.f32 {{%r[0-9]+}}, [[OTHER]], [[OWN]], [[FIRST]];

//--- sum.mlir
func.func @sum(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<f32>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %b = arith.mulf %a, %a : tensor<32xf32>
  %s = tile.reduce %b axis 0 : (tensor<32xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xf32>, !tile.ptr<f32>
  return
}

//--- mix.mlir
func.func @mix(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %o: !tile.ptr<f32>)
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %s = tile.reduce %a axis 0 : (tensor<32xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %half = arith.constant 0.5 : f32
    %u = arith.mulf %p, %half : f32
    %r = arith.addf %u, %q : f32
    tile.yield %r : f32
  }
  %i = arith.constant dense<0> : tensor<1xi32>
  tile.scatter %s, %o offsets %i : tensor<1xi32> : tensor<1xf32>, !tile.ptr<f32>
  return
}
