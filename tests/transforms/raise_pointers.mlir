// Tiles of pointers become a scalar base and an offset tile; what all elements share goes into the base, in 64 bits.
// RUN: tile-opt %s -split-input-file -tile-raise-pointers -canonicalize -cse -verify-diagnostics | FileCheck %s

// The program's own start is part of the base; 32-bit offsets stay 32 bits.
// CHECK-LABEL: func.func @start_goes_into_the_base(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !tile.ptr<f32>
// CHECK: %[[START:.*]] = arith.muli
// CHECK: %[[WIDE:.*]] = arith.extsi %[[START]] : i32 to i64
// CHECK: %[[BASE:.*]] = tile.ptr_add %[[P]], %[[WIDE]]
// CHECK: tile.gather %[[BASE]] offsets %{{.*}} : tensor<128xi32> :
func.func @start_goes_into_the_base(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel} {
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %starts = tile.splat %start : i32 -> tensor<128xi32>
  %iota = tile.iota : tensor<128xi32>
  %offs = arith.addi %starts, %iota : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %pp = tile.ptr_add %ps, %offs : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.gather %pp : tensor<128x!tile.ptr<f32>> -> tensor<128xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  tile.scatter %v, %qs : tensor<128xf32>, tensor<128x!tile.ptr<f32>>
  return
}

// -----

// Two offsets of unknown size add up in 64 bits; two that provably fit stay in 32.
// CHECK-LABEL: func.func @width_of_sums(
// CHECK: tile.gather %{{.*}} offsets %{{.*}} : tensor<16x32xi64>
// CHECK: tile.gather %{{.*}} offsets %{{.*}} : tensor<16x32xi32>
func.func @width_of_sums(%p: !tile.ptr<f32>, %stride: i32, %out: !tile.ptr<f32>) attributes {tile.kernel} {
  %i = tile.iota : tensor<16xi32>
  %rows = tile.reshape %i : tensor<16xi32> -> tensor<16x1xi32>
  %j = tile.iota : tensor<32xi32>
  %cols = tile.reshape %j : tensor<32xi32> -> tensor<1x32xi32>
  %colsb = tile.broadcast %cols : tensor<1x32xi32> -> tensor<16x32xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x1x!tile.ptr<f32>>

  %s = tile.splat %stride : i32 -> tensor<16x1xi32>
  %ro = arith.muli %rows, %s : tensor<16x1xi32>
  %p0 = tile.ptr_add %ps, %ro : tensor<16x1x!tile.ptr<f32>>, tensor<16x1xi32>
  %p1 = tile.broadcast %p0 : tensor<16x1x!tile.ptr<f32>> -> tensor<16x32x!tile.ptr<f32>>
  %p2 = tile.ptr_add %p1, %colsb : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
  %a = tile.gather %p2 : tensor<16x32x!tile.ptr<f32>> -> tensor<16x32xf32>

  %c32 = arith.constant dense<32> : tensor<16x1xi32>
  %rk = arith.muli %rows, %c32 : tensor<16x1xi32>
  %q0 = tile.ptr_add %ps, %rk : tensor<16x1x!tile.ptr<f32>>, tensor<16x1xi32>
  %q1 = tile.broadcast %q0 : tensor<16x1x!tile.ptr<f32>> -> tensor<16x32x!tile.ptr<f32>>
  %q2 = tile.ptr_add %q1, %colsb : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
  %b = tile.gather %q2 : tensor<16x32x!tile.ptr<f32>> -> tensor<16x32xf32>
  %c = arith.addf %a, %b : tensor<16x32xf32>
  tile.scatter %c, %q2 : tensor<16x32xf32>, tensor<16x32x!tile.ptr<f32>>
  return
}

// -----

// A loop that advances by a scalar carries the scalar base; the offsets stay outside.
// CHECK-LABEL: func.func @loop_carries_the_base(
// CHECK: %[[OFFS:.*]] = tile.iota : tensor<64xi32>
// CHECK: scf.for {{.*}} iter_args(%[[BASE:.*]] = %arg0, %{{.*}}) -> (!tile.ptr<f32>, tensor<64xf32>)
// CHECK: tile.gather %[[BASE]] offsets %[[OFFS]] : tensor<64xi32>
// CHECK: tile.ptr_add %[[BASE]], %{{.*}} : !tile.ptr<f32>, i64
func.func @loop_carries_the_base(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %step = arith.constant dense<64> : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %iota = tile.iota : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %p0 = tile.ptr_add %ps, %iota : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%q = %p0, %acc = %zero) -> (tensor<64x!tile.ptr<f32>>, tensor<64xf32>) : i32 {
    %v = tile.gather %q : tensor<64x!tile.ptr<f32>> -> tensor<64xf32>
    %s = arith.addf %acc, %v : tensor<64xf32>
    %next = tile.ptr_add %q, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %next, %s : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
  }
  tile.scatter %r#1, %r#0 : tensor<64xf32>, tensor<64x!tile.ptr<f32>>
  return
}

// -----

// Advancing each element by its own step carries 64-bit offsets; what the loop leaves is used after it.
// CHECK-LABEL: func.func @loop_carries_offsets(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args({{.*}}) -> (tensor<64xi64>, tensor<64xf32>)
// CHECK: tile.scatter %[[R]]#1, %arg0 offsets %[[R]]#0 : tensor<64xi64>
func.func @loop_carries_offsets(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %iota = tile.iota : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %ps, %acc = %zero) -> (tensor<64x!tile.ptr<f32>>, tensor<64xf32>) : i32 {
    %v = tile.gather %q : tensor<64x!tile.ptr<f32>> -> tensor<64xf32>
    %s = arith.addf %acc, %v : tensor<64xf32>
    %next = tile.ptr_add %q, %iota : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %next, %s : tensor<64x!tile.ptr<f32>>, tensor<64xf32>
  }
  tile.scatter %r#1, %r#0 : tensor<64xf32>, tensor<64x!tile.ptr<f32>>
  return
}

// -----

// A branch over whole tiles selects the base; a choice per element counts offsets from the first base, in elements.
// CHECK-LABEL: func.func @several_bases(
// CHECK: %[[B:.*]] = arith.select %arg3, %arg0, %arg1 : !tile.ptr<f32>
// CHECK: tile.gather %[[B]] offsets
// CHECK: %[[P:.*]] = tile.ptr_to_int %arg0
// CHECK: %[[Q:.*]] = tile.ptr_to_int %arg1
// CHECK: %[[BYTES:.*]] = arith.subi %[[Q]], %[[P]] : i64
// CHECK: %[[ELEMENTS:.*]] = arith.shrsi %[[BYTES]], %c2_i64 : i64
// CHECK: tile.splat %[[ELEMENTS]]
// CHECK: %[[O:.*]] = arith.select %{{.*}} : tensor<8xi1>, tensor<8xi64>
// CHECK: tile.gather %arg0 offsets %[[O]] : tensor<8xi64>
func.func @several_bases(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %out: !tile.ptr<f32>, %cond: i1) attributes {tile.kernel} {
  %iota = tile.iota : tensor<8xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %pp = tile.ptr_add %ps, %iota : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %qq = tile.ptr_add %qs, %iota : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %either = scf.if %cond -> tensor<8x!tile.ptr<f32>> {
    scf.yield %pp : tensor<8x!tile.ptr<f32>>
  } else {
    scf.yield %qq : tensor<8x!tile.ptr<f32>>
  }
  %a = tile.gather %either : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  %four = arith.constant dense<4> : tensor<8xi32>
  %m = arith.cmpi slt, %iota, %four : tensor<8xi32>
  %mixed = arith.select %m, %pp, %qq : tensor<8xi1>, tensor<8x!tile.ptr<f32>>
  %b = tile.gather %mixed : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  %c = arith.addf %a, %b : tensor<8xf32>
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  tile.scatter %c, %os : tensor<8xf32>, tensor<8x!tile.ptr<f32>>
  return
}

// -----

// Pointer tiles carried by a while loop, with atomics as users.
// CHECK-LABEL: func.func @while_loop(
// CHECK: scf.while {{.*}} : (i32, !tile.ptr<i32>) -> (i32, !tile.ptr<i32>)
// CHECK: tile.atomic_rmw add relaxed gpu %{{.*}} offsets %{{.*}} : tensor<8xi64>
func.func @while_loop(%p: !tile.ptr<i32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %eight = arith.constant dense<8> : tensor<8xi32>
  %iota = tile.iota : tensor<8xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %pp = tile.ptr_add %ps, %iota : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  %r:2 = scf.while (%i = %c0, %q = %pp) : (i32, tensor<8x!tile.ptr<i32>>) -> (i32, tensor<8x!tile.ptr<i32>>) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %q : i32, tensor<8x!tile.ptr<i32>>
  } do {
  ^bb0(%i: i32, %q: tensor<8x!tile.ptr<i32>>):
    %old = tile.atomic_rmw add relaxed gpu %q, %iota : tensor<8x!tile.ptr<i32>>, tensor<8xi32> -> tensor<8xi32>
    %next = arith.addi %i, %c1 : i32
    %qn = tile.ptr_add %q, %eight : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
    scf.yield %next, %qn : i32, tensor<8x!tile.ptr<i32>>
  }
  return
}

// -----

// Subtraction, 64-bit offsets made from 32-bit tiles, transposition and narrow index types.
// CHECK-LABEL: func.func @shapes(
// CHECK: %[[T:.*]] = tile.trans %{{.*}}, [1, 0] : tensor<4x8xi32> -> tensor<8x4xi32>
// CHECK: tile.gather %{{.*}} offsets %[[T]] : tensor<8x4xi32>
func.func @shapes(%p: !tile.ptr<f16>, %n: i64) attributes {tile.kernel} {
  %iota = tile.iota : tensor<32xi8>
  %square = tile.reshape %iota : tensor<32xi8> -> tensor<4x8xi8>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<4x8x!tile.ptr<f16>>
  %pp = tile.ptr_add %ps, %square : tensor<4x8x!tile.ptr<f16>>, tensor<4x8xi8>
  %t = tile.trans %pp, [1, 0] : tensor<4x8x!tile.ptr<f16>> -> tensor<8x4x!tile.ptr<f16>>
  %ns = tile.splat %n : i64 -> tensor<8x4xi64>
  %five = arith.constant dense<5> : tensor<8x4xi64>
  %back = arith.subi %five, %ns : tensor<8x4xi64>
  %tp = tile.ptr_add %t, %back : tensor<8x4x!tile.ptr<f16>>, tensor<8x4xi64>
  %v = tile.gather %tp : tensor<8x4x!tile.ptr<f16>> -> tensor<8x4xf16>
  tile.scatter %v, %tp : tensor<8x4xf16>, tensor<8x4x!tile.ptr<f16>>
  return
}

// -----

// What differs by a number is seen to, however it was written: 2 (6 m + 1) + 1 is 12 m and 3.
// CHECK-LABEL: func.func @field(
// CHECK: %[[M:.*]] = arith.muli %arg1, %c12_i64 : i64
// CHECK: %[[S:.*]] = arith.addi %[[M]], %c3_i64 : i64
// CHECK: %[[P:.*]] = tile.ptr_add %arg0, %[[S]]
// CHECK: tile.gather %[[P]] offsets
func.func @field(%p: !tile.ptr<f32>, %m: i64) attributes {tile.kernel} {
  %n = tile.iota : tensor<8xi64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %six = arith.constant dense<6> : tensor<8xi64>
  %one = arith.constant dense<1> : tensor<8xi64>
  %ms = tile.splat %m : i64 -> tensor<8xi64>
  %r = arith.addi %ms, %n : tensor<8xi64>
  %a = arith.muli %r, %six : tensor<8xi64>
  %b = arith.addi %a, %one : tensor<8xi64>
  %c = arith.muli %b, %two : tensor<8xi64>
  %d = arith.addi %c, %one : tensor<8xi64>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %at = tile.ptr_add %ps, %d : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  %v = tile.gather %at : tensor<8x!tile.ptr<f32>> -> tensor<8xf32>
  tile.scatter %v, %at : tensor<8xf32>, tensor<8x!tile.ptr<f32>>
  return
}

// -----

func.func @from_outside(%p: tensor<4x!tile.ptr<f32>>) {
  // expected-error @+1 {{a tile of pointers comes from an operation that has no offset form}}
  %v = tile.gather %p : tensor<4x!tile.ptr<f32>> -> tensor<4xf32>
  return
}
