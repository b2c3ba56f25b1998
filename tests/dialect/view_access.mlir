// Boxes of views.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @boxes(
func.func @boxes(%v: !tile.view<3xf32>, %w: !tile.view<1xi8>, %i: i32, %j: i64) {
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}} : i32, i64, i32] : <3xf32> -> tensor<4x8xf32>
  %0 = tile.load %v[%i, %j, %i : i32, i64, i32] : !tile.view<3xf32> -> tensor<4x8xf32>
  // CHECK: pad 0xFFF0000000000000 cache streaming
  %1 = tile.load %v[%i, %i, %i : i32, i32, i32] pad 0xFFF0000000000000 cache streaming : !tile.view<3xf32> -> tensor<4x8xf32>
  // CHECK: tile.load %{{.*}} : <3xf32> -> f32
  %2 = tile.load %v[%i, %i, %i : i32, i32, i32] : !tile.view<3xf32> -> f32
  // CHECK: pad -1.000000e+00
  %3 = tile.load %w[%i : i32] pad -1.0 : !tile.view<1xi8> -> tensor<16xi8>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32] cache last : tensor<4x8xf32>, <3xf32>
  tile.store %0, %v[%i, %i, %i : i32, i32, i32] cache last : tensor<4x8xf32>, !tile.view<3xf32>
  // CHECK: tile.store {{.*}} : f32, <3xf32>
  tile.store %2, %v[%i, %i, %i : i32, i32, i32] : f32, !tile.view<3xf32>
  return
}

// -----

func.func @indices(%v: !tile.view<2xf32>, %i: i32) {
  // expected-error @+1 {{expects one index per view dim (2), found 1}}
  %0 = tile.load %v[%i : i32] : !tile.view<2xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @rank(%v: !tile.view<1xf32>, %i: i32) {
  // expected-error @+1 {{tile rank 2 exceeds the view's rank 1}}
  %0 = tile.load %v[%i : i32] : !tile.view<1xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @element(%v: !tile.view<1xf32>, %i: i32) {
  // expected-error @+1 {{expects tiles of 'f32' as the view holds, found 'tensor<8xf16>'}}
  %0 = tile.load %v[%i : i32] : !tile.view<1xf32> -> tensor<8xf16>
  return
}

// -----

func.func @index_type(%v: !tile.view<1xf32>, %i: i8) {
  // expected-error @+1 {{operand #1 must be variadic of 32-bit signless integer or 64-bit signless integer, but got 'i8'}}
  %0 = tile.load %v[%i : i8] : !tile.view<1xf32> -> tensor<8xf32>
  return
}

// -----

func.func @fraction(%v: !tile.view<1xi32>, %i: i32) {
  // expected-error @+1 {{pad of a view of 'i32' must be a whole number that fits, found 5.000000e-01}}
  %0 = tile.load %v[%i : i32] pad 0.5 : !tile.view<1xi32> -> tensor<8xi32>
  return
}

// -----

func.func @infinite(%v: !tile.view<1xi32>, %i: i32) {
  // expected-error @+1 {{pad of a view of 'i32' must be a whole number that fits, found INF}}
  %0 = tile.load %v[%i : i32] pad 0x7FF0000000000000 : !tile.view<1xi32> -> tensor<8xi32>
  return
}

// -----

func.func @too_large(%v: !tile.view<1xi8>, %i: i32) {
  // expected-error @+1 {{pad of a view of 'i8' must be a whole number that fits, found 2.560000e+02}}
  %0 = tile.load %v[%i : i32] pad 256.0 : !tile.view<1xi8> -> tensor<8xi8>
  return
}

// -----

func.func @store(%x: tensor<8xf32>, %v: !tile.view<1xf16>, %i: i32) {
  // expected-error @+1 {{expects tiles of 'f16' as the view holds, found 'tensor<8xf32>'}}
  tile.store %x, %v[%i : i32] : tensor<8xf32>, !tile.view<1xf16>
  return
}
