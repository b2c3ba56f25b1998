// Pointers, views and tiles: what they may hold and which shapes exist.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK: func.func private @types(!tile.ptr<f8E4M3FN>, !tile.view<2xbf16>, tensor<3x5x!tile.ptr<i64>>, !tile.view<8xi1>)
func.func private @types(!tile.ptr<f8E4M3FN>, !tile.view<2 x bf16>, tensor<3x5x!tile.ptr<i64>>, !tile.view<8xi1>)

// -----

// expected-error @+1 {{!tile.ptr must hold i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32 or f64, found 'i7'}}
func.func private @odd_integer(!tile.ptr<i7>)

// -----

// expected-error @+1 {{!tile.ptr must hold i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32 or f64, found 'ui32'}}
func.func private @signedness(!tile.ptr<ui32>)

// -----

// expected-error @+1 {{!tile.ptr must hold i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32 or f64, found '!tile.ptr<f32>'}}
func.func private @pointer_to_pointer(!tile.ptr<!tile.ptr<f32>>)

// -----

// expected-error @+1 {{!tile.view rank must be between 1 and 8, found 9}}
func.func private @rank(!tile.view<9xf32>)

// -----

// expected-error @+1 {{!tile.view must hold i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32 or f64, found 'index'}}
func.func private @index(!tile.view<1xindex>)

// -----

// expected-error @+1 {{expected integer value}}
func.func private @no_rank(!tile.view<f32>)

// -----

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error @+1 {{must be tile (tensor of rank 1 to 8 with static positive dims and at most 4194304 elements) of}}
  %0 = tile.broadcast %a : tensor<?xf32> -> tensor<4xf32>
  return
}

// -----

func.func @unranked(%a: tensor<*xf32>) {
  // expected-error @+1 {{but got 'tensor<*xf32>'}}
  %0 = tile.reshape %a : tensor<*xf32> -> tensor<4xf32>
  return
}

// -----

func.func @empty(%a: f32) {
  // expected-error @+1 {{but got 'tensor<0xf32>'}}
  %0 = tile.splat %a : f32 -> tensor<0xf32>
  return
}

// -----

func.func @rank_zero(%a: f32) {
  // expected-error @+1 {{but got 'tensor<f32>'}}
  %0 = tile.splat %a : f32 -> tensor<f32>
  return
}

// -----

func.func @huge(%a: f32) {
  // expected-error @+1 {{but got 'tensor<9223372036854775807x2xf32>'}}
  %0 = tile.splat %a : f32 -> tensor<9223372036854775807x2xf32>
  return
}

// -----

func.func @large(%a: f32) {
  // expected-error @+1 {{but got 'tensor<4096x1025xf32>'}}
  %0 = tile.splat %a : f32 -> tensor<4096x1025xf32>
  return
}

// -----

func.func @odd_elements(%a: tensor<4xi7>) {
  // expected-error @+1 {{of number (i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32, f64) or}}
  %0 = tile.reshape %a : tensor<4xi7> -> tensor<2x2xi7>
  return
}
