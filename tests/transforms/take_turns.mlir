// Loops that ask for turns: one wait in front of an iteration's first product, one pass behind its last one.
// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-take-turns))' --tile-target=sm_90a --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @attention
// CHECK: } consumer {
// CHECK: scf.for
// CHECK: tile.turn_wait
// CHECK-NEXT: tile.mma
// CHECK: scf.if
// CHECK: tile.mma
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: tile.turn_pass
// CHECK-NEXT: tile.mma_wait
// CHECK: } {tile.pingpong = 1 : i32}
// CHECK: scf.for
// CHECK-NOT: tile.turn
func.func @attention(%q: !tile.smem<64x64xf16, minor = 1>, %k: !tile.smem<64x64xf16, minor = 1>, %n: i32, %c: i1) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile.specialize regs(0, 0) producer {
  } consumer {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %o = scf.if %c -> (tensor<64x64xf32>) {
        %p = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
        %w = tile.mma_wait 0 of %p : tensor<64x64xf32>
        scf.yield %w : tensor<64x64xf32>
      } else {
        scf.yield %acc : tensor<64x64xf32>
      }
      %t = tile.mma_wait 0 of %s : tensor<64x64xf32>
      %e = arith.addf %t, %o : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
    %u = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %t = tile.mma_wait 0 of %s : tensor<64x64xf32>
      scf.yield %t : tensor<64x64xf32>
    }
  }
  return
}

// Who waits for a turn does not come to a place where all warps meet.
// CHECK-LABEL: func.func @meets
// CHECK-NOT: tile.turn
// CHECK: return
func.func @meets(%q: !tile.smem<64x64xf16, minor = 1>, %k: !tile.smem<64x64xf16, minor = 1>, %n: i32, %c: i1) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile.specialize regs(0, 0) producer {
  } consumer {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-remark@+1 {{warpgroups take no turns: all warps meet between an iteration's products}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      tile.barrier
      %p = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %w:2 = tile.mma_wait 0 of %s, %p : tensor<64x64xf32>, tensor<64x64xf32>
      %e = arith.addf %w#0, %w#1 : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
    // expected-remark@+1 {{warpgroups take no turns: all warps meet between an iteration's products}}
    %t = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %o = scf.if %c -> (tensor<64x64xf32>) {
        tile.barrier
        %p = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
        %w = tile.mma_wait 0 of %p : tensor<64x64xf32>
        scf.yield %w : tensor<64x64xf32>
      } else {
        scf.yield %acc : tensor<64x64xf32>
      }
      scf.yield %o : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
  }
  return
}

// A loop in a branch takes the turns, the one around it does not: who had the outer turn would wait for an inner one.
// CHECK-LABEL: func.func @nested
// CHECK: scf.for
// CHECK-NOT: tile.turn
// CHECK: scf.if
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.turn_wait
// CHECK-NEXT: tile.mma
// CHECK-NEXT: tile.turn_pass
// CHECK-NOT: tile.turn
// CHECK: return
func.func @nested(%q: !tile.smem<64x64xf16, minor = 1>, %k: !tile.smem<64x64xf16, minor = 1>, %n: i32, %c: i1) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  tile.specialize regs(0, 0) producer {
  } consumer {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %o = scf.if %c -> (tensor<64x64xf32>) {
        %t = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
          %p = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
          %w = tile.mma_wait 0 of %p : tensor<64x64xf32>
          scf.yield %w : tensor<64x64xf32>
        } {tile.pingpong = 1 : i32}
        scf.yield %t : tensor<64x64xf32>
      } else {
        scf.yield %sum : tensor<64x64xf32>
      }
      scf.yield %o : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
  }
  return
}

// Among an iteration's products the only stage of a ring is given back and waited for again: by the time of its turn the
// other warpgroup has not given it back.
// CHECK-LABEL: func.func @one_stage
// CHECK-NOT: tile.turn
// CHECK-LABEL: func.func @two_stages
// CHECK: tile.turn_wait
func.func @one_stage(%q: !tile.smem<64x64xf16, minor = 1>, %k: !tile.smem<64x64xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 1 : <1>
  tile.specialize regs(0, 0) producer {
  } consumer {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-remark@+1 {{warpgroups take no turns: one that waits for its turn holds a stage of a ring that another one needs during its own (1 stages)}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      tile.ring_release %ring : <1>
      %slot = tile.ring_acquire %ring : <1>
      %t = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %s : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %w = tile.mma_wait 0 of %t : tensor<64x64xf32>
      scf.yield %w : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
  }
  return
}
func.func @two_stages(%q: !tile.smem<64x64xf16, minor = 1>, %k: !tile.smem<64x64xf16, minor = 1>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %ring = tile.ring_alloc arrivals 1 : <2>
  tile.specialize regs(0, 0) producer {
  } consumer {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %s = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      tile.ring_release %ring : <2>
      %slot = tile.ring_acquire %ring : <2>
      %t = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %k, %s : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      %w = tile.mma_wait 0 of %t : tensor<64x64xf32>
      scf.yield %w : tensor<64x64xf32>
    } {tile.pingpong = 1 : i32}
  }
  return
}
