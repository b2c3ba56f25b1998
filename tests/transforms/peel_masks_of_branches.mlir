// Branches around products, loads and stores under the same comparisons lose their conditions with the masks.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-peel-masks,canonicalize,cse))' | FileCheck %s

// A branch around a product that only the first iteration does not take: it keeps a loop for itself, the others have the
// product without a branch. Another condition, which the loop does not decide, stays.
// CHECK-LABEL: func.func @branch
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[FIRST:.*]] step %c64_i32
// CHECK: scf.if
// CHECK: tile.dot
// CHECK: } else {
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c64_i32
// CHECK-NOT: else
// CHECK: tile.dot
// CHECK: scf.if %{{.*}}
// CHECK: tile.dot
// CHECK: } else {
// CHECK: return
func.func @branch(%a: tensor<64x64xf16>, %n: i32, %flag: i1) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %later = arith.cmpi sgt, %j, %c0 : i32
    %s = scf.if %later -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    %t = scf.if %flag -> (tensor<64x64xf32>) {
      %d = tile.dot %a, %a, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %s : tensor<64x64xf32>
    }
    scf.yield %t : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r : tensor<64x64xf32>
}

// -----

// Blocks from a list, of which the first %partial are masked by what is loaded: whatever that says, later ones are not.
// CHECK-LABEL: func.func @listed
// CHECK-SAME: %[[PARTIAL:[a-z0-9]+]]: i32
// CHECK: %[[WIDE:.*]] = arith.extsi %[[PARTIAL]] : i32 to i64
// CHECK: %[[FIRST:.*]] = scf.for
// CHECK: arith.ori
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: %[[REST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK: return %[[REST]]
func.func @listed(%a: tensor<64x64xf16>, %list: !tile.view<1xi32>, %partial: i32, %count: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %q = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %e = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = tile.load %list[%e : i32] : !tile.view<1xi32> -> i32
    %n0 = arith.muli %block, %c64 : i32
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %keys = arith.addi %j1, %row : tensor<1x64xi32>
    %n = tile.broadcast %keys : tensor<1x64xi32> -> tensor<64x64xi32>
    %seen = arith.cmpi sle, %n, %q : tensor<64x64xi32>
    %whole = arith.cmpi sge, %e, %partial : i32
    %wholes = tile.splat %whole : i1 -> tensor<64x64xi1>
    %mask = arith.ori %seen, %wholes : tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Rows past the end are zeros. They were read from shared memory for that: whole tiles stay there.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK: %[[X:.*]] = tile.load_shared
// CHECK-NOT: tile.smem_load
// CHECK: tile.mma {{.*}}, %[[X]],
// CHECK: scf.for
// CHECK: %[[Y:.*]] = tile.load_shared
// CHECK: tile.smem_load %[[Y]]
// CHECK: arith.select
// CHECK: tile.share
// CHECK: tile.stages = 1
func.func @rows(%x: !tile.view<2xf16>, %n: i32, %a: !tile.smem<64x64xf16, minor = 1>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %end = tile.splat %n : i32 -> tensor<64x1xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %there = tile.load_shared %x[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %tile = tile.smem_load %there : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    %j1 = tile.splat %j : i32 -> tensor<64x1xi32>
    %at = arith.addi %j1, %row : tensor<64x1xi32>
    %in = arith.cmpi slt, %at, %end : tensor<64x1xi32>
    %mask = tile.broadcast %in : tensor<64x1xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %tile, %none : tensor<64x64xi1>, tensor<64x64xf16>
    %b = tile.share %w : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %next = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %b, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r : tensor<64x64xf32>
}

// -----

// Loads under the comparison that hides scores do without it in the loop that hides none; another one stays.
// CHECK-LABEL: func.func @loads
// CHECK: scf.for
// CHECK: tile.gather %{{[^ ]*}} offsets %{{[^ ]*}} : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
// CHECK: %[[OTHER:.*]] = arith.cmpi eq
// CHECK: tile.gather %{{[^ ]*}} offsets %{{[^ ]*}} : tensor<64xi32> mask %[[OTHER]] : tensor<64xi1> : !tile.ptr<i32>
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: tile.gather %{{[^ ]*}} offsets %{{[^ ]*}} : tensor<64xi32> mask %[[IN:[^ ]*]] : tensor<64xi1>
// CHECK: tile.gather %{{[^ ]*}} offsets %{{[^ ]*}} : tensor<64xi32> mask %{{[^ ]*}} : tensor<64xi1>
// CHECK: arith.select
// CHECK: scf.yield
func.func @loads(%a: tensor<64x64xf16>, %p: !tile.ptr<i32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %none = arith.constant dense<-1> : tensor<64xi32>
  %nothing = arith.constant dense<0> : tensor<64xi32>
  %i = tile.iota : tensor<64xi32>
  %end = tile.splat %n : i32 -> tensor<64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %j1 = tile.splat %j : i32 -> tensor<64xi32>
    %col = arith.addi %j1, %i : tensor<64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<64xi32>
    %page = tile.gather %p offsets %col : tensor<64xi32> mask %in : tensor<64xi1> other %none : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
    %even = arith.cmpi eq, %page, %nothing : tensor<64xi32>
    %both = arith.andi %in, %even : tensor<64xi1>
    %bias = tile.gather %p offsets %page : tensor<64xi32> mask %both : tensor<64xi1> : !tile.ptr<i32> -> tensor<64xi32>
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %f = arith.sitofp %bias : tensor<64xi32> to tensor<64xf32>
    %row = tile.reshape %f : tensor<64xf32> -> tensor<1x64xf32>
    %rows = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
    %sum = arith.addf %s, %rows : tensor<64x64xf32>
    %inRow = tile.reshape %in : tensor<64xi1> -> tensor<1x64xi1>
    %mask = tile.broadcast %inRow : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %sum, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r : tensor<64x64xf32>
}
