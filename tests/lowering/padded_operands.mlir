// Zeros around tiles whose products sum over padding: written beside the tile, without a barrier between the two, and
// for as long only as the tile is there, so that later tiles use the same bytes.
// RUN: tile-opt %s --tile-target=sm_90a -tile-stage -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers | FileCheck %s
// RUN: tile-opt %s -mlir-disable-threading --tile-target=sm_90a -tile-stage -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=PTX

// CHECK-LABEL: func.func @one_after_another
// CHECK: %[[A:.*]] = tile.smem_alloc at [[AT:.*]] : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.smem_zero %[[A]] outside [64, 20]
// CHECK-NEXT: tile.smem_store %{{.*}}, %[[A]]
// CHECK-NEXT: tile.async_wait 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.mma {{.*}} %[[A]]
// CHECK: %[[B:.*]] = tile.smem_alloc at [[AT]] : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.smem_zero %[[B]] outside [64, 24]
// CHECK-NEXT: tile.smem_store %{{.*}}, %[[B]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.mma {{.*}} %[[B]]

// Columns 20 to 31 of a row are pieces of 8 bytes, 24 to 31 one of 16.
// PTX-LABEL: .entry one_after_another
// PTX: st.shared.v2.b32 {{.*}}, {0, 0};
// PTX-NOT: bar.sync
// PTX: st.shared.b16
// PTX: bar.sync
// PTX: mma.sync
// PTX: st.shared.v4.b32 {{.*}}, {0, 0, 0, 0};
// PTX-NOT: bar.sync
// PTX: st.shared
// PTX: bar.sync
// PTX: mma.sync
func.func @one_after_another(%x: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = tile.load_shared %B[%c0, %c0 : i32, i32] box [32, 64] : !tile.view<2 x f16> -> !tile.smem<32x64xf16, minor = 1>
  %y = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x20xf16>
  %a = tile.share %y : tensor<64x20xf16> -> !tile.smem<64x32xf16, minor = 1>
  %d = tile.mma m16n8k16_f16 k 20 warps(2, 2) %a, %r, %zero : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
  %z = tile.extract %h [0, 0] : tensor<64x64xf16> -> tensor<64x24xf16>
  %b = tile.share %z : tensor<64x24xf16> -> !tile.smem<64x32xf16, minor = 1>
  %e = tile.mma m16n8k16_f16 k 24 warps(2, 2) %b, %r, %zero : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  tile.store %e, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
