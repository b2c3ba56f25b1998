// Chained asynchronous products: the second one runs beside the elementwise work of the next iteration.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-rotate,canonicalize,cse))' | FileCheck %s

// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[Q:.*]]: !tile.smem<64x64xf16, minor = 1>, %[[K:.*]]: !tile.view<2xf16>, %[[V:.*]]: !tile.view<2xf16>, %[[N:.*]]: i32
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0_i32
// CHECK: %[[R:.*]]:2 = scf.if %[[ANY]]
// The first iteration without its second product,
// CHECK: tile.load_shared %[[K]][%c0_i32,
// CHECK: %[[S0:.*]] = tile.mma wgmma_f16
// CHECK: %[[W0:.*]] = math.exp2 %[[S0]]
// CHECK: %[[O0:.*]] = arith.mulf
// CHECK: %[[P0:.*]] = arith.truncf %[[W0]]
// CHECK-NOT: tile.mma
// then product 1 of this, product 2 of the iteration before, and the rest.
// CHECK: %[[L:.*]]:4 = scf.for %[[J:.*]] = %c64_i32 to %[[N]] step %c64_i32 iter_args(%[[M:.*]] = %[[W0]], %[[I:.*]] = %c0_i32, %[[P:.*]] = %[[P0]], %[[O:.*]] = %[[O0]])
// CHECK-NEXT: tile.load_shared %[[K]][%[[J]],
// CHECK-NEXT: tile.smem_trans
// CHECK-NEXT: %[[S:.*]] = tile.mma wgmma_f16 {{.*}} %[[Q]],
// CHECK-NEXT: tile.load_shared %[[V]][%[[I]],
// CHECK-NEXT: %[[D:.*]] = tile.mma wgmma_f16 {{.*}} %[[P]], %{{.*}}, %[[O]] :
// CHECK-NEXT: %[[E:.*]] = arith.maximumf %[[S]], %[[M]]
// CHECK-NEXT: %[[W:.*]] = math.exp2 %[[E]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[D]], %[[W]]
// CHECK-NEXT: %[[PACKED:.*]] = arith.truncf %[[W]]
// CHECK-NEXT: scf.yield %[[W]], %[[J]], %[[PACKED]], %[[SCALED]]
// CHECK-NEXT: } {tile.pingpong = 1 : i32, tile.stages = 2 : i32}
// CHECK: tile.load_shared %[[V]][%[[L]]#1,
// CHECK: %[[END:.*]] = tile.mma wgmma_f16 {{.*}} %[[L]]#2, %{{.*}}, %[[L]]#3 :
// CHECK: scf.yield %[[L]]#0, %[[END]]
// CHECK: } else {
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @attention(%q: !tile.smem<64x64xf16, minor = 1>, %K: !tile.view<2xf16>, %V: !tile.view<2xf16>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %r:2 = scf.for %j = %c0 to %n step %c64 iter_args(%m = %low, %acc = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %k = tile.load_shared %K[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %kt = tile.smem_trans %k : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %kt, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    %e = arith.maximumf %s, %m : tensor<64x64xf32>
    %w = math.exp2 %e : tensor<64x64xf32>
    %o = arith.mulf %acc, %w : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load_shared %V[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %o : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %w, %d : tensor<64x64xf32>, tensor<64x64xf32>
  } {tile.stages = 2 : i32, tile.pingpong = 1 : i32}
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A loop that surely runs needs no guard. An index that only the delayed load needs moves with it; one that the loop
// carries is carried one iteration longer. Two second products move together.
// CHECK-LABEL: func.func @two
// CHECK-NOT: scf.if
// CHECK: scf.for %[[J:.*]] = %c65_i32 to %c256_i32 {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[P:[a-z0-9]+]] = %{{.*}}, %[[X:[a-z0-9]+]] = %{{.*}}, %[[Y:[a-z0-9]+]] = %{{[a-z0-9]+}})
// CHECK: %[[S:.*]] = tile.mma {{.*}} tensor<64x64xf32>
// CHECK: tile.mma wgmma_f16 {{.*}} %[[P]], %{{.*}}, %[[X]] :
// CHECK: tile.mma wgmma_f16 {{.*}} %[[P]], %{{.*}}, %[[Y]] :
// CHECK: math.exp2 %[[S]]
// CHECK: scf.yield
// CHECK: tile.mma
// CHECK: tile.mma
// CHECK-NOT: tile.mma
// CHECK: return
func.func @two(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %n = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = scf.for %j = %c1 to %n step %c64 iter_args(%x = %zero, %y = %zero, %at = %from) -> (tensor<64x64xf32>, tensor<64x64xf32>, i32) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %row = arith.muli %j, %j : i32
    %u = tile.load_shared %V[%row, %c1 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %v = tile.load_shared %V[%at, %c1 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %x1 = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %u, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %y1 = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %y : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %next = arith.addi %at, %j : i32
    scf.yield %x1, %y1, %next : tensor<64x64xf32>, tensor<64x64xf32>, i32
  }
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// The second iteration's index could wrap where bounds are unknown: it is capped by the upper bound.
// CHECK-LABEL: func.func @bounds
// CHECK: scf.if
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %c64_i64 : i64
// CHECK: %[[CAP:.*]] = arith.minsi %[[SUM]], %{{.*}} : i64
// CHECK: %[[SECOND:.*]] = arith.trunci %[[CAP]] : i64 to i32
// CHECK: scf.for %{{.*}} = %[[SECOND]] to

// Turned off by the user.
// CHECK-LABEL: func.func @off
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: math.exp2
// CHECK: tile.mma
// CHECK: scf.yield

// Somebody else needs the second operand in time.
// CHECK-LABEL: func.func @shared_operand
// CHECK-NOT: scf.if
// CHECK: return

// The loop writes what a moved load might read.
// CHECK-LABEL: func.func @writes
// CHECK-NOT: scf.if
// CHECK: return

// The result is needed in its own iteration, or nothing is there to overlap with.
// CHECK-LABEL: func.func @needed
// CHECK-NOT: scf.if
// CHECK: return
// CHECK-LABEL: func.func @sequential
// CHECK-NOT: scf.if
// CHECK: return
func.func @bounds(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load_shared %V[%j, %from : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @off(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load_shared %V[%j, %from : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.overlap = 0 : i32}
  return %r : tensor<64x64xf32>
}
func.func @shared_operand(%V: !tile.view<2xf16>, %q: !tile.smem<64x64xf16, minor = 1>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %v = tile.load_shared %V[%j, %from : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %v, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @writes(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load_shared %V[%j, %from : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.store %p, %V[%j, %from : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @needed(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %q, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %d2 = arith.mulf %d, %w : tensor<64x64xf32>
    scf.yield %d2 : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @sequential(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %from: i32, %n: i32) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %from to %n step %c64 iter_args(%x = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = arith.truncf %x : tensor<64x64xf32> to tensor<64x64xf16>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %a, %q, %zero : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %q, %x : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Where masks make a loop of their own of the first iterations there is no prologue: the second product stands in a branch
// that all iterations but the first take, and the first leaves the accumulator as it is.
// CHECK-LABEL: func.func @masked
// CHECK: scf.if
// CHECK-NOT: tile.mma
// CHECK: %[[L:.*]]:4 = scf.for %[[J:.*]] = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%[[M:.*]] = %{{.*}}, %[[I:.*]] = %c0_i32, %[[P:.*]] = %{{.*}}, %[[O:.*]] = %[[ZERO:.*]])
// CHECK: %[[S:.*]] = tile.mma wgmma_f16
// CHECK: %[[LATER:.*]] = arith.cmpi sgt, %[[J]], %c0_i32
// CHECK: %[[D:.*]] = scf.if %[[LATER]]
// CHECK-NEXT: tile.load_shared %{{.*}}[%[[I]],
// CHECK-NEXT: %[[SECOND:.*]] = tile.mma wgmma_f16 {{.*}} %[[P]], %{{.*}}, %[[O]] :
// CHECK-NEXT: scf.yield %[[SECOND]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[O]]
// CHECK: arith.select %{{.*}}, %[[S]]
// CHECK: arith.mulf %[[D]]
// CHECK: scf.yield
// CHECK: tile.mma wgmma_f16 {{.*}} %[[L]]#2, %{{.*}}, %[[L]]#3 :
func.func @masked(%q: !tile.smem<64x64xf16, minor = 1>, %V: !tile.view<2xf16>, %n: i32) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %blocks = arith.ceildivsi %n, %c64 : i32
  %last = arith.subi %blocks, %c1 : i32
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r:2 = scf.for %j = %c0 to %blocks step %c1 iter_args(%m = %low, %acc = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
    %b = arith.subi %last, %j : i32
    %n0 = arith.muli %b, %c64 : i32
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %t = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %e = arith.maximumf %t, %m : tensor<64x64xf32>
    %w = math.exp2 %e : tensor<64x64xf32>
    %o = arith.mulf %acc, %w : tensor<64x64xf32>
    %p = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load_shared %V[%n0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %v, %o : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %w, %d : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %r#0, %r#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// The accumulator takes 128 registers of a thread, the scores of an iteration 64 and their halves 32: with those of two
// iterations the loop would spill, so it stays as it is.
// CHECK-LABEL: func.func @crowded
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: tile.mma wgmma_f16
// CHECK: math.exp2
// CHECK: tile.mma wgmma_f16
// CHECK: scf.yield
// CHECK-NOT: tile.mma
// The same loop may be told to.
// CHECK-LABEL: func.func @told
// CHECK: scf.if
// CHECK: tile.mma wgmma_f16
// CHECK: scf.for
func.func @crowded(%q: !tile.smem<64x64xf16, minor = 1>, %K: !tile.view<2xf16>, %V: !tile.view<2xf16>, %n: i32) -> tensor<64x256xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %j = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
    %k = tile.load_shared %K[%j, %c0 : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %kt = tile.smem_trans %k : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %kt, %none : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<64x128xf32>
    %w = math.exp2 %s : tensor<64x128xf32>
    %p = arith.truncf %w : tensor<64x128xf32> to tensor<64x128xf16>
    %v = tile.load_shared %V[%j, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 128 warps(4, 1) %p, %v, %acc : tensor<64x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<64x256xf32>
    scf.yield %d : tensor<64x256xf32>
  }
  return %r : tensor<64x256xf32>
}
func.func @told(%q: !tile.smem<64x64xf16, minor = 1>, %K: !tile.view<2xf16>, %V: !tile.view<2xf16>, %n: i32) -> tensor<64x256xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf32>
  %r = scf.for %j = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<64x256xf32>) : i32 {
    %k = tile.load_shared %K[%j, %c0 : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %kt = tile.smem_trans %k : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %kt, %none : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 0> -> tensor<64x128xf32>
    %w = math.exp2 %s : tensor<64x128xf32>
    %p = arith.truncf %w : tensor<64x128xf32> to tensor<64x128xf16>
    %v = tile.load_shared %V[%j, %c0 : i32, i32] box [128, 256] : !tile.view<2xf16> -> !tile.smem<128x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 128 warps(4, 1) %p, %v, %acc : tensor<64x128xf16>, !tile.smem<128x256xf16, minor = 1> -> tensor<64x256xf32>
    scf.yield %d : tensor<64x256xf32>
  } {tile.overlap = 1 : i32}
  return %r : tensor<64x256xf32>
}

// -----

// The third product reads the second operand of the first, so it stays in its iteration. The second one needs nothing of
// it: it runs beside the work between.
// CHECK-LABEL: func.func @early
// CHECK: scf.for
// CHECK: tile.mma wgmma_f16
// CHECK: tile.load_shared %arg3
// CHECK: tile.mma wgmma_f16
// CHECK: math.exp2
// CHECK: tile.mma wgmma_f16
// CHECK: scf.yield
func.func @early(%q: !tile.smem<64x64xf16, minor = 1>, %g: !tile.smem<64x64xf16, minor = 1>, %K: !tile.view<2xf16>, %V: !tile.view<2xf16>, %n: i32) -> tensor<64x64xf32> attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %k = tile.load_shared %K[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %kt = tile.smem_trans %k : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %kt, %none : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    %w = math.exp2 %s : tensor<64x64xf32>
    %v = tile.load_shared %V[%j, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %vt = tile.smem_trans %v : !tile.smem<64x64xf16, minor = 1> -> !tile.smem<64x64xf16, minor = 0>
    %t = tile.mma wgmma_f16 k 64 warps(4, 1) %g, %vt, %none : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 0> -> tensor<64x64xf32>
    %d = arith.mulf %w, %t : tensor<64x64xf32>
    %p = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %o = tile.mma wgmma_f16 k 64 warps(4, 1) %p, %k, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %o : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
