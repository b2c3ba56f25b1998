// Tiles stored for warpgroups' products before threads meet are fenced together: one fence in front of the barrier, none
// behind the first store.
// RUN: tile-opt %s -mlir-disable-threading --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK: .entry two
// CHECK-NOT: fence.proxy.async
// CHECK-COUNT-10: st.shared.b16
// CHECK: fence.proxy.async
// CHECK-NOT: fence.proxy.async
// CHECK: bar.sync
// CHECK-NOT: fence.proxy.async
// CHECK: wgmma.mma_async
// CHECK-NOT: fence.proxy.async
func.func @two(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x16xf32>
  %h = arith.truncf %a : tensor<64x16xf32> to tensor<64x16xf16>
  %b = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<16x16xf32>
  %g = arith.truncf %b : tensor<16x16xf32> to tensor<16x16xf16>
  %first = tile.smem_alloc : !tile.smem<64x16xf16, minor = 1>
  tile.smem_store %h, %first : tensor<64x16xf16>, !tile.smem<64x16xf16, minor = 1>
  %second = tile.smem_alloc : !tile.smem<16x16xf16, minor = 1>
  tile.smem_store %g, %second : tensor<16x16xf16>, !tile.smem<16x16xf16, minor = 1>
  %d = tile.mma wgmma_f16 k 16 warps(4, 1) %first, %second, %zero : !tile.smem<64x16xf16, minor = 1>, !tile.smem<16x16xf16, minor = 1> -> tensor<64x16xf32>
  tile.store %d, %x[%c0, %c0 : i32, i32] : tensor<64x16xf32>, !tile.view<2xf32>
  return
}
