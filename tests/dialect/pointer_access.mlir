// Gathers, scatters and atomics.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forms(
func.func @forms(%p: !tile.ptr<f32>, %t: tensor<8x!tile.ptr<f32>>, %o: tensor<8xi64>, %m: tensor<8xi1>, %x: tensor<8xf32>, %c: i1, %s: f32,
                 %q: !tile.ptr<i32>, %k: i32) {
  // CHECK: tile.gather %{{.*}} : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  %0 = tile.gather %t : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  // CHECK: tile.gather %{{.*}} offsets %{{.*}} : tensor<8xi64> mask %{{.*}} : tensor<8xi1> other %{{.*}} : tensor<8xf32> cache volatile : !tile.ptr<f32> -> tensor<8xf32>
  %1 = tile.gather %p offsets %o : tensor<8xi64> mask %m : tensor<8xi1> other %x : tensor<8xf32> cache volatile : !tile.ptr<f32> -> tensor<8xf32>
  // CHECK: tile.gather %{{.*}} mask %{{.*}} : i1 : !tile.ptr<f32> -> f32
  %2 = tile.gather %p mask %c : i1 : !tile.ptr<f32> -> f32
  // CHECK: tile.scatter %{{.*}}, %{{.*}} mask
  tile.scatter %x, %t mask %m : tensor<8xi1> : tensor<8xf32>, tensor<8x!tile.ptr<f32>>
  // CHECK: tile.scatter %{{.*}}, %{{.*}} : f32, !tile.ptr<f32>
  tile.scatter %s, %p : f32, !tile.ptr<f32>
  // CHECK: tile.atomic_rmw max relaxed gpu
  %3 = tile.atomic_rmw max relaxed gpu %p offsets %o : tensor<8xi64>, %x mask %m : tensor<8xi1> : !tile.ptr<f32>, tensor<8xf32> -> tensor<8xf32>
  // CHECK: tile.atomic_rmw and acq_rel sys
  %4 = tile.atomic_rmw and acq_rel sys %q, %k : !tile.ptr<i32>, i32 -> i32
  // CHECK: tile.atomic_cas acquire cta
  %5 = tile.atomic_cas acquire cta %q, %k, %k : !tile.ptr<i32>, i32, i32 -> i32
  return
}

// -----

func.func @gather_type(%p: !tile.ptr<f32>) {
  // expected-error @+1 {{result must hold 'f32' as the pointer does, found 'f16'}}
  %0 = tile.gather %p : !tile.ptr<f32> -> f16
  return
}

// -----

func.func @gather_shape(%t: tensor<8x!tile.ptr<f32>>) {
  // expected-error @+1 {{result must have the shape of 'tensor<8x!tile.ptr<f32>>', found 'tensor<4xf32>'}}
  %0 = tile.gather %t : tensor<8x!tile.ptr<f32>> -> tensor<4xf32>
  return
}

// -----

func.func @mask_shape(%t: tensor<8x!tile.ptr<f32>>, %m: tensor<4xi1>) {
  // expected-error @+1 {{mask must have the shape of 'tensor<8x!tile.ptr<f32>>', found 'tensor<4xi1>'}}
  %0 = tile.gather %t mask %m : tensor<4xi1> : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @mask_type(%t: tensor<8x!tile.ptr<f32>>, %m: tensor<8xi8>) {
  // expected-error @+1 {{operand #1 must be 1-bit signless integer or tile}}
  %0 = tile.gather %t mask %m : tensor<8xi8> : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @other_alone(%t: tensor<8x!tile.ptr<f32>>, %x: tensor<8xf32>) {
  // expected-error @+1 {{`other` needs a mask}}
  %0 = tile.gather %t other %x : tensor<8xf32> : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @other_type(%t: tensor<8x!tile.ptr<f32>>, %m: tensor<8xi1>, %x: tensor<8xf16>) {
  // expected-error @+1 {{`other` must be 'tensor<8xf32>', found 'tensor<8xf16>'}}
  %0 = tile.gather %t mask %m : tensor<8xi1> other %x : tensor<8xf16> : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @base(%t: tensor<8x!tile.ptr<f32>>, %o: tensor<8xi64>) {
  // expected-error @+1 {{offsets need a scalar base pointer, found 'tensor<8x!tile.ptr<f32>>'}}
  %0 = tile.gather %t offsets %o : tensor<8xi64> : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @offset_type(%p: !tile.ptr<f32>, %o: tensor<8xi16>) {
  // expected-error @+1 {{of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<8xi16>'}}
  %0 = tile.gather %p offsets %o : tensor<8xi16> : !tile.ptr<f32> -> tensor<8xf32>
  return
}

// -----

func.func @scatter_type(%p: !tile.ptr<f32>, %x: f16) {
  // expected-error @+1 {{value must hold 'f32' as the pointer does, found 'f16'}}
  tile.scatter %x, %p : f16, !tile.ptr<f32>
  return
}

// -----

func.func @rmw_float(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error @+1 {{xor is defined on integers, found 'f32'}}
  %0 = tile.atomic_rmw xor relaxed gpu %p, %x : !tile.ptr<f32>, f32 -> f32
  return
}

// -----

func.func @rmw_f8(%p: !tile.ptr<f8E4M3FN>, %x: f8E4M3FN) {
  // expected-error @+1 {{works on integers of 8 bits or more, f16, bf16, f32 and f64, found 'f8E4M3FN'}}
  %0 = tile.atomic_rmw add relaxed gpu %p, %x : !tile.ptr<f8E4M3FN>, f8E4M3FN -> f8E4M3FN
  return
}

// -----

func.func @rmw_result(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error @+1 {{result must be 'i32', found 'i64'}}
  %0 = tile.atomic_rmw add relaxed gpu %p, %x : !tile.ptr<i32>, i32 -> i64
  return
}

// -----

func.func @rmw_kind(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error @+2 {{expected ::tile::ir::RmwKind to be one of: add, max, min, umax, umin, and, or, xor, exchange}}
  // expected-error @+1 {{failed to parse}}
  %0 = tile.atomic_rmw nand relaxed gpu %p, %x : !tile.ptr<i32>, i32 -> i32
  return
}

// -----

func.func @cas_float(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error @+1 {{compares integers of 8 bits or more, found 'f32'}}
  %0 = tile.atomic_cas relaxed gpu %p, %x, %x : !tile.ptr<f32>, f32, f32 -> f32
  return
}

// -----

func.func @cas_types(%p: !tile.ptr<i32>, %x: i32, %y: i64) {
  // expected-error @+1 {{expected, desired and result must have one type, found 'i64', 'i32' and 'i32'}}
  %0 = tile.atomic_cas relaxed gpu %p, %y, %x : !tile.ptr<i32>, i64, i32 -> i32
  return
}
