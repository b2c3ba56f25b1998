// A long block is copied for its inside where it has a clamped read for every so many operations.
// RUN: awk '/again$/ { for (i = 0; i < 520; ++i) print; next } 1' %s | tile-opt -split-input-file --tile-peel-edges | FileCheck %s

// CHECK-LABEL: func.func @many_reads
// CHECK: scf.if
// CHECK: } else {
// CHECK: return
func.func @many_reads(%p: !tile.ptr<i8>, %q: !tile.ptr<i8>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0> : tensor<128xi32>
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %low = arith.maxsi %x, %zero : tensor<128xi32>
  %at = arith.minsi %low, %last : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  %r0 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r1 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r2 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r3 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r4 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r5 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r6 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r7 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r8 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r9 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r10 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r11 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r12 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %r13 = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %v = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %o = tile.ptr_add %qs, %x : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  tile.scatter %v, %o : tensor<128xi8>, tensor<128x!tile.ptr<i8>>  // again
  return
}

// -----

// CHECK-LABEL: func.func @few_reads
// CHECK-NOT: scf.if
// CHECK: return
func.func @few_reads(%p: !tile.ptr<i8>, %q: !tile.ptr<i8>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0> : tensor<128xi32>
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %s = tile.splat %start : i32 -> tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = arith.addi %s, %i : tensor<128xi32>
  %last = tile.splat %n : i32 -> tensor<128xi32>
  %low = arith.maxsi %x, %zero : tensor<128xi32>
  %at = arith.minsi %low, %last : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %a = tile.ptr_add %ps, %at : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  %v = tile.gather %a : tensor<128x!tile.ptr<i8>> -> tensor<128xi8>
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>>
  %o = tile.ptr_add %qs, %x : tensor<128x!tile.ptr<i8>>, tensor<128xi32>
  tile.scatter %v, %o : tensor<128xi8>, tensor<128x!tile.ptr<i8>>  // again
  return
}
