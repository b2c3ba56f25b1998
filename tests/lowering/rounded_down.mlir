// Quotients rounded down by a constant are shifts, or those of numbers that are not negative; numbers rounded away from
// zero at halves are cut sums.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: entry eights(
// CHECK: shr.s32 {{.*}}, 3;
// CHECK-NOT: {{mul|setp.ne|shr}}
// CHECK: st.global
func.func @eights(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %n = arith.constant dense<8> : tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %v = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %q = arith.floordivsi %v, %n : tensor<128xi32>
  tile.scatter %q, %y offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----

// CHECK-LABEL: entry sevens(
// CHECK: shr.s32 [[SIGN:%r[0-9]+]], {{.*}}, 31;
// CHECK: xor.b32 {{.*}}, [[SIGN]];
// CHECK: mul
// CHECK: xor.b32 {{.*}}, [[SIGN]];
// CHECK-NOT: setp
// CHECK: st.global
func.func @sevens(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %n = arith.constant dense<7> : tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %v = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %q = arith.floordivsi %v, %n : tensor<128xi32>
  tile.scatter %q, %y offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----

// CHECK-LABEL: entry halves_away(
// CHECK: copysign.f32
// CHECK-NEXT: add.rn.f32
// CHECK-NEXT: cvt.rzi.f32.f32
// CHECK-NOT: cvt
// CHECK: st.global
func.func @halves_away(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %v = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %r = math.round %v : tensor<128xf32>
  tile.scatter %r, %y offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----

// CHECK-LABEL: entry halves_away_of_f64(
// CHECK: copysign.f64
// CHECK-NEXT: add.rn.f64
// CHECK-NEXT: cvt.rzi.f64.f64
// CHECK-NOT: cvt
// CHECK: st.global
func.func @halves_away_of_f64(%x: !tile.ptr<f64>, %y: !tile.ptr<f64>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %v = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<f64> -> tensor<128xf64>
  %r = math.round %v : tensor<128xf64>
  tile.scatter %r, %y offsets %i : tensor<128xi32> : tensor<128xf64>, !tile.ptr<f64>
  return
}
