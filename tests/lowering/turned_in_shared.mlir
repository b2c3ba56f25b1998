// What is computed on its way from shared memory to shared memory is read and written as it lies there.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// Keys that lie along the dim that is summed over, decayed column by column.
// CHECK: entry decayed(
// CHECK-NOT: ld.shared.b16
// CHECK: ld.shared.v4.b32
// CHECK-NOT: st.shared.b16
// CHECK: st.shared.v4.b32
// CHECK-NOT: st.shared.b16
// CHECK: ret;
func.func @decayed() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %a = tile.smem_alloc : !tile.smem<128x64xbf16, minor = 0>
  %b = tile.smem_alloc : !tile.smem<128x64xbf16, minor = 0>
  %k = tile.smem_load %a : !tile.smem<128x64xbf16, minor = 0> -> tensor<128x64xbf16>
  %c = tile.iota : tensor<64xi32>
  %r = arith.sitofp %c : tensor<64xi32> to tensor<64xf32>
  %r1 = tile.reshape %r : tensor<64xf32> -> tensor<1x64xf32>
  %d = tile.broadcast %r1 : tensor<1x64xf32> -> tensor<128x64xf32>
  %w = arith.extf %k : tensor<128x64xbf16> to tensor<128x64xf32>
  %m = arith.mulf %w, %d : tensor<128x64xf32>
  %n = arith.truncf %m : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.smem_store %n, %b : tensor<128x64xbf16>, !tile.smem<128x64xbf16, minor = 0>
  return
}

// Keys of bytes that lie along the dim that is summed over, widened.
// CHECK: entry widened(
// CHECK-NOT: ld.shared.b8
// CHECK-NOT: ld.shared.u8
// CHECK-NOT: ld.shared.s8
// CHECK: ld.shared.v2.b32
// CHECK-NOT: st.shared.b16
// CHECK: st.shared.v4.b32
// CHECK-NOT: st.shared.b16
// CHECK: ret;
func.func @widened() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %a = tile.smem_alloc : !tile.smem<128x64xi8, minor = 0>
  %b = tile.smem_alloc : !tile.smem<128x64xf16, minor = 0>
  %k = tile.smem_load %a : !tile.smem<128x64xi8, minor = 0> -> tensor<128x64xi8>
  %n = arith.sitofp %k : tensor<128x64xi8> to tensor<128x64xf16>
  tile.smem_store %n, %b : tensor<128x64xf16>, !tile.smem<128x64xf16, minor = 0>
  return
}

// States that lie turned, read for nothing but the sum of their products.
// CHECK: entry summed(
// CHECK-NOT: ld.shared.b16
// CHECK: ld.shared.v4.b32
// CHECK-NOT: ld.shared.b16
// CHECK: ret;
func.func @summed() attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %a = tile.smem_alloc : !tile.smem<64x64xbf16, minor = 0>
  %b = tile.smem_alloc : !tile.smem<64x64xbf16, minor = 0>
  %to = tile.smem_alloc : !tile.smem<64x1xf32, minor = 1>
  %x = tile.smem_load %a : !tile.smem<64x64xbf16, minor = 0> -> tensor<64x64xbf16>
  %y = tile.smem_load %b : !tile.smem<64x64xbf16, minor = 0> -> tensor<64x64xbf16>
  %xf = arith.extf %x : tensor<64x64xbf16> to tensor<64x64xf32>
  %yf = arith.extf %y : tensor<64x64xbf16> to tensor<64x64xf32>
  %p = arith.mulf %xf, %yf : tensor<64x64xf32>
  %s = tile.reduce %p axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tile.yield %t : f32
  }
  tile.smem_store %s, %to : tensor<64x1xf32>, !tile.smem<64x1xf32, minor = 1>
  return
}
