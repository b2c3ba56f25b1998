// Integers of 16 bits two at a time: from bytes of a word, sums, differences and extremes. Of what is taken from several
// the negative is made once. sm_80 has no such instructions.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s --tile-target=sm_80 -tile-assign-layouts -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=OLD

// OLD-NOT: s16x2
// CHECK-LABEL: entry pairs(
// CHECK-COUNT-4: prmt.b32
// CHECK-NOT: sub.s16
// CHECK: add.s16x2
// CHECK: min.s16x2
// CHECK-NOT: sub.s16
// CHECK: st.global
// CHECK: ret;
func.func @pairs(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i16> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %far = arith.constant dense<128> : tensor<128xi32>
  %at_i = tile.iota : tensor<128xi32>
  %at_j = arith.addi %at_i, %far : tensor<128xi32>
  %ten = arith.constant dense<10> : tensor<128xi16>
  %a = tile.gather %x offsets %at_i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %b = tile.gather %x offsets %at_j : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %u = arith.extui %a : tensor<128xi8> to tensor<128xi16>
  %s = arith.extsi %b : tensor<128xi8> to tensor<128xi16>
  %d = arith.subi %u, %s : tensor<128xi16>
  %e = arith.addi %d, %ten : tensor<128xi16>
  %f = arith.minsi %e, %u : tensor<128xi16>
  tile.scatter %f, %y offsets %at_i : tensor<128xi32> : tensor<128xi16>, !tile.ptr<i16>
  return
}

// One negative for three differences: four sums of each pair, and not six complements.
// CHECK-LABEL: entry negatives(
// CHECK: griddepcontrol.launch_dependents
// CHECK: not.b32
// CHECK: add.s16x2
// CHECK-NOT: not.b32
// CHECK-NOT: sub.s16
// CHECK: max.u16x2
// CHECK: ret;
func.func @negatives(%x: !tile.ptr<i16> {tile.align = 16 : i32}, %y: !tile.ptr<i16> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %far = arith.constant dense<64> : tensor<64xi32>
  %at_i = tile.iota : tensor<64xi32>
  %at_j = arith.addi %at_i, %far : tensor<64xi32>
  %at_k = arith.addi %at_j, %far : tensor<64xi32>
  %a = tile.gather %x offsets %at_i : tensor<64xi32> : !tile.ptr<i16> -> tensor<64xi16>
  %b = tile.gather %x offsets %at_j : tensor<64xi32> : !tile.ptr<i16> -> tensor<64xi16>
  %c = tile.gather %x offsets %at_k : tensor<64xi32> : !tile.ptr<i16> -> tensor<64xi16>
  %d = arith.subi %a, %c : tensor<64xi16>
  %e = arith.subi %b, %c : tensor<64xi16>
  %f = arith.maxui %d, %e : tensor<64xi16>
  tile.scatter %f, %y offsets %at_i : tensor<64xi32> : tensor<64xi16>, !tile.ptr<i16>
  return
}

// Carried from iteration to iteration in pairs; what is looked up byte by byte is packed where the sum of it is used.
// CHECK-LABEL: entry carried(
// CHECK: $L__BB
// CHECK: mov.b32 {{.*}}, {%rs
// CHECK: add.s16x2
// CHECK: max.s16x2
// CHECK-NOT: mov.b32 {%rs
// CHECK: bra
// CHECK: ret;
func.func @carried(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i16> {tile.align = 16 : i32}, %z: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0> : tensor<64xi16>
  %at = tile.iota : tensor<64xi32>
  %from = tile.gather %z offsets %at : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
  %best = scf.for %i = %zero to %n step %one iter_args(%so = %none) -> (tensor<64xi16>) : i32 {
    %shift = tile.splat %i : i32 -> tensor<64xi32>
    %place = arith.addi %from, %shift : tensor<64xi32>
    %a = tile.gather %x offsets %place : tensor<64xi32> : !tile.ptr<i8> -> tensor<64xi8>
    %s = arith.extsi %a : tensor<64xi8> to tensor<64xi16>
    %sum = arith.addi %so, %s : tensor<64xi16>
    %more = arith.maxsi %sum, %none : tensor<64xi16>
    scf.yield %more : tensor<64xi16>
  }
  tile.scatter %best, %y offsets %at : tensor<64xi32> : tensor<64xi16>, !tile.ptr<i16>
  return
}
