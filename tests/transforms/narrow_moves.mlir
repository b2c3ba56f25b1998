// RUN: tile-opt %s -split-input-file --tile-narrow-moves | FileCheck %s

// Pairs of channels of pairs of rows: 16 bits of each number change places.
// CHECK-LABEL: func.func @pairs
// CHECK: %[[R:.*]] = arith.truncf %arg0 : tensor<128x128xf32> to tensor<128x128xbf16>
// CHECK: %[[S:.*]] = tile.reshape %[[R]] : tensor<128x128xbf16> -> tensor<4x32x4x32xbf16>
// CHECK: %[[T:.*]] = tile.trans %[[S]], [0, 2, 1, 3] : tensor<4x32x4x32xbf16> -> tensor<4x4x32x32xbf16>
// CHECK: %[[U:.*]] = tile.reshape %[[T]] : tensor<4x4x32x32xbf16> -> tensor<16x1024xbf16>
// CHECK: return %[[U]]
func.func @pairs(%p: tensor<128x128xf32>) -> tensor<16x1024xbf16> {
  %x = tile.reshape %p : tensor<128x128xf32> -> tensor<4x32x4x32xf32>
  %t = tile.trans %x, [0, 2, 1, 3] : tensor<4x32x4x32xf32> -> tensor<4x4x32x32xf32>
  %u = tile.reshape %t : tensor<4x4x32x32xf32> -> tensor<16x1024xf32>
  %r = arith.truncf %u : tensor<16x1024xf32> to tensor<16x1024xbf16>
  return %r : tensor<16x1024xbf16>
}

// -----

// Two dims, and a tile that is wanted as it is, too.
// CHECK-LABEL: func.func @matrix
// CHECK: tile.trans %{{.*}} : tensor<64x32xf32>
// CHECK: arith.truncf
// CHECK-LABEL: func.func @both
// CHECK: tile.trans %{{.*}} : tensor<4x64x32xf32>
// CHECK: arith.truncf
func.func @matrix(%p: tensor<64x32xf32>) -> tensor<32x64xf16> {
  %t = tile.trans %p, [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %r = arith.truncf %t : tensor<32x64xf32> to tensor<32x64xf16>
  return %r : tensor<32x64xf16>
}
func.func @both(%p: tensor<4x64x32xf32>) -> (tensor<4x32x64xf32>, tensor<4x32x64xf16>) {
  %t = tile.trans %p, [0, 2, 1] : tensor<4x64x32xf32> -> tensor<4x32x64xf32>
  %r = arith.truncf %t : tensor<4x32x64xf32> to tensor<4x32x64xf16>
  return %t, %r : tensor<4x32x64xf32>, tensor<4x32x64xf16>
}
