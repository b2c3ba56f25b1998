// RUN: tile-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-stage,canonicalize,cse))' --tile-target=sm_80 | FileCheck %s

// Three stages: two iterations copied ahead under their own conditions, one group open inside the loop, and one barrier
// that both publishes this iteration's copies and frees the slot of the one before.
// CHECK-LABEL: func.func @ring
// CHECK: %[[RING:.*]] = tile.smem_alloc : <64x32xf16, minor = 1, stages = 3>
// CHECK: %[[FIRST:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i64
// CHECK: tile.async_copy %arg0{{.*}} to %{{.*}} if %[[FIRST]] box [64, 32]
// CHECK-NEXT: tile.async_commit
// CHECK: %[[SECOND:.*]] = arith.cmpi sgt, %{{.*}}, %c32_i64
// CHECK: tile.async_copy %arg0{{.*}} to %{{.*}} if %[[SECOND]] box [64, 32]
// CHECK-NEXT: tile.async_commit
// CHECK: scf.for %[[IV:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c2_i32)
// CHECK-NEXT: tile.async_wait 1
// CHECK-NEXT: tile.barrier
// CHECK: %[[AHEAD:.*]] = arith.addi %[[IV]], %c64_i32
// CHECK: tile.smem_slot %[[RING]][%[[WRITE]]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt
// CHECK: tile.async_copy %arg0[%{{.*}}, %[[AHEAD]]{{.*}} if %[[EXISTS]]
// CHECK-NEXT: tile.async_commit
// CHECK: %[[SLOT:.*]] = tile.smem_slot %[[RING]][%[[READ]]]
// CHECK: tile.mma {{.*}} %[[SLOT]]
// CHECK: tile.async_wait 0
// CHECK-NEXT: tile.barrier
func.func @ring(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Addresses that the loop carries run ahead as a shadow copy of the carried value.
// CHECK-LABEL: func.func @carried
// CHECK: tile.async_copy %arg0[%{{.*}}, %c0_i32 :
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %c0_i32, %[[AHEAD:.*]] = %[[START:.*]], %{{.*}} = %c0_i32, %{{.*}} = %c1_i32)
// CHECK: tile.async_copy %arg0[%{{.*}}, %[[AHEAD]] :
// CHECK: %[[NEXT:.*]] = arith.addi %[[AHEAD]], %arg4
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]],
func.func @carried(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32, %stride: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %c0) -> (tensor<64x64xf32>, i32) : i32 {
    %a = tile.load_shared %A[%c0, %at : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    %next = arith.addi %at, %stride : i32
    scf.yield %d, %next : tensor<64x64xf32>, i32
  } {tile.stages = 2 : i32}
  tile.store %r#0, %C[%c0, %r#1 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// An index read from memory (block table) is read ahead too, but only for iterations that exist.
// CHECK-LABEL: func.func @indirect
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: %[[I:.*]] = tile.load %arg4[%c0_i32
// CHECK: tile.async_copy %arg0[%[[I]],
// CHECK: scf.for
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt
// CHECK: scf.if %[[EXISTS]] {
// CHECK-NEXT: %[[J:.*]] = tile.load %arg4
// CHECK: tile.async_copy %arg0[%[[J]],
// CHECK: tile.async_commit
func.func @indirect(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32, %table: !tile.view<1 x i32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %i = tile.load %table[%k : i32] : !tile.view<1 x i32> -> i32
    %a = tile.load_shared %A[%i, %c0 : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A copy under a condition (zero blocks are skipped) runs ahead under that iteration's condition, never without it.
// CHECK-LABEL: func.func @conditional
// CHECK: scf.for
// CHECK: tile.async_wait 0
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt
// CHECK: scf.if %[[EXISTS]] {
// CHECK-NEXT: %[[M:.*]] = tile.load %arg4
// CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi ne, %[[M]], %c0_i32
// CHECK-NEXT: scf.if %[[KEEP]] {
// CHECK-NEXT: tile.async_copy
// CHECK: tile.async_commit
// CHECK: scf.if
// CHECK: tile.mma
func.func @conditional(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32, %mask: !tile.view<1 x i32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %m = tile.load %mask[%k : i32] : !tile.view<1 x i32> -> i32
    %keep = arith.cmpi ne, %m, %c0 : i32
    %next = scf.if %keep -> tensor<64x64xf32> {
      %a = tile.load_shared %A[%c0, %k : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
      %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %acc : tensor<64x64xf32>
    }
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A loop that writes the memory it copies keeps its order: copy, wait, barrier, and a barrier before the buffer is reused.
// CHECK-LABEL: func.func @in_place
// CHECK: scf.for
// CHECK-NEXT: %[[BUFFER:.*]] = tile.smem_alloc : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.async_copy %arg0{{.*}} to %[[BUFFER]] box
// CHECK-NEXT: tile.async_commit
// CHECK-NEXT: tile.async_wait 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.mma {{.*}} %[[BUFFER]]
func.func @in_place(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %h: tensor<64x32xf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  // expected-remark @+1 {{copies are not pipelined: the loop may write what it copies}}
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.store %h, %A[%c0, %k : i32, i32] : tensor<64x32xf16>, !tile.view<2 x f16>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Who asks for stages hears of it without asking for remarks.
// CHECK-LABEL: func.func @in_place_asked
func.func @in_place_asked(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %h: tensor<64x32xf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  // expected-warning @+1 {{copies are not pipelined: the loop may write what it copies}}
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    tile.store %h, %A[%c0, %k : i32, i32] : tensor<64x32xf16>, !tile.view<2 x f16>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Stages shrink until the rings fit (163 KiB on sm_80), and the user who asked for more is told.
// CHECK-LABEL: func.func @too_many
// CHECK: tile.smem_alloc : <256x64xf16, minor = 1, stages = 5>
func.func @too_many(%A: !tile.view<2 x f16>, %B: !tile.smem<64x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<256x64xf32>
  // expected-remark @+1 {{pipelined with 5 stages: 8 of 32768 bytes do not fit the 166912 bytes of shared memory}}
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<256x64xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [256, 64] : !tile.view<2 x f16> -> !tile.smem<256x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(8, 1) %a, %B, %acc : !tile.smem<256x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<256x64xf32>
    scf.yield %d : tensor<256x64xf32>
  } {tile.stages = 8 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<256x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Padding is zeroed once, in front of the loop, with a barrier before copies land on top.
// CHECK-LABEL: func.func @padded
// CHECK: %[[RING:.*]] = tile.smem_alloc : <64x32xf16, minor = 1, stages = 2>
// CHECK-NEXT: tile.smem_zero %[[RING]]
// CHECK-NEXT: tile.barrier
// CHECK: tile.async_copy %arg0{{.*}} box [64, 20]
func.func @padded(%A: !tile.view<2 x f16>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c20 = arith.constant 20 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c20 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [64, 20] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 20 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows and columns of padding only make rows and columns of padding: nothing is zeroed, and the buffer is where the tile
// is. What the product sums over must be zero: that is zeroed beside the tile, at the same time.
// CHECK-LABEL: func.func @padded_columns
// CHECK: %[[A:.*]] = tile.smem_alloc : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.smem_zero %[[A]] outside [64, 20]
// CHECK-NEXT: tile.smem_store %{{.*}}, %[[A]]
// CHECK: tile.mma
// CHECK-NOT: tile.smem_zero
// CHECK: tile.smem_alloc : <32x64xf16, minor = 1>
// CHECK-NOT: tile.smem_zero
// CHECK: return
func.func @padded_columns(%x: tensor<64x20xf16>, %y: tensor<32x24xf16>, %C: !tile.view<2 x f32>, %D: !tile.view<2 x f32>, %B: !tile.smem<32x64xf16, minor = 1>, %E: !tile.smem<64x32xf16, minor = 1>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x24xf32>
  %a = tile.share %x : tensor<64x20xf16> -> !tile.smem<64x32xf16, minor = 1>
  %d = tile.mma m16n8k16_f16 k 20 warps(2, 2) %a, %B, %zero : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  tile.store %d, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  %b = tile.share %y : tensor<32x24xf16> -> !tile.smem<32x64xf16, minor = 1>
  %e = tile.mma m16n8k16_f16 k 32 warps(2, 2) %E, %b, %zeros : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x24xf32>
  tile.store %e, %D[%c0, %c0 : i32, i32] : tensor<64x24xf32>, !tile.view<2 x f32>
  return
}

// -----

// The padding of a tile that a loop makes again and again is zeroed once.
// CHECK-LABEL: func.func @padded_in_loop
// CHECK: %[[A:.*]] = tile.smem_alloc : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.smem_zero %[[A]] outside [64, 20]
// CHECK-NEXT: scf.for
// CHECK-NOT: tile.smem_zero
// CHECK: tile.smem_store %{{.*}}, %[[A]]
func.func @padded_in_loop(%x: tensor<64x20xf16>, %C: !tile.view<2 x f32>, %B: !tile.smem<32x64xf16, minor = 1>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %y = %x) -> (tensor<64x64xf32>, tensor<64x20xf16>) : i32 {
    %a = tile.share %y : tensor<64x20xf16> -> !tile.smem<64x32xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 20 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    %z = arith.addf %y, %y : tensor<64x20xf16>
    scf.yield %d, %z : tensor<64x64xf32>, tensor<64x20xf16>
  }
  tile.store %r#0, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A computed tile gets a buffer and a store; a tile copied once before a pipelined loop needs no wait of its own.
// CHECK-LABEL: func.func @once
// CHECK: %[[Q:.*]] = tile.smem_alloc : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.async_copy %arg0{{.*}} to %[[Q]] box
// CHECK-NEXT: tile.async_commit
// CHECK-NOT: tile.async_wait
// CHECK: scf.for
// CHECK-NEXT: tile.async_wait 0
func.func @once(%A: !tile.view<2 x f16>, %K: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load_shared %A[%c0, %c0 : i32, i32] box [64, 32] : !tile.view<2 x f16> -> !tile.smem<64x32xf16, minor = 1>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %b = tile.load_shared %K[%c0, %k : i32, i32] box [32, 64] : !tile.view<2 x f16> -> !tile.smem<32x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %q, %b, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// CHECK-LABEL: func.func @computed
// CHECK: %[[P:.*]] = tile.smem_alloc : <64x32xf16, minor = 1>
// CHECK-NEXT: tile.smem_store %arg0, %[[P]]
// CHECK-NEXT: tile.mma {{.*}} %[[P]]
func.func @computed(%p: tensor<64x32xf16>, %B: !tile.smem<32x64xf16, minor = 1>) -> tensor<64x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.share %p : tensor<64x32xf16> -> !tile.smem<64x32xf16, minor = 1>
  %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %zero : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// -----

// The ring is gone when the tiles of the product behind it come: 3 x 32768 bytes beside twice 65536 would not fit.
// CHECK-LABEL: func.func @behind
// CHECK: tile.smem_alloc{{.*}} : <128x64xf16, minor = 1, stages = 3>
func.func @behind(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %a = tile.load_shared %A[%c0, %k : i32, i32] box [128, 64] : !tile.view<2 x f16> -> !tile.smem<128x64xf16, minor = 1>
    %b = tile.load_shared %B[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2 x f16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(2, 2) %a, %b, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  %e = tile.load_shared %A[%c0, %c512 : i32, i32] box [128, 256] : !tile.view<2 x f16> -> !tile.smem<128x256xf16, minor = 1>
  %f = tile.load_shared %B[%c512, %c0 : i32, i32] box [256, 128] : !tile.view<2 x f16> -> !tile.smem<256x128xf16, minor = 1>
  %g = tile.mma m16n8k16_f16 k 256 warps(2, 2) %e, %f, %r : !tile.smem<128x256xf16, minor = 1>, !tile.smem<256x128xf16, minor = 1> -> tensor<128x128xf32>
  tile.store %g, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// Columns of a picture, two bytes apart from any alignment: their elements go through registers, and no more than one
// iteration ahead.
// CHECK-LABEL: func.func @element_by_element
// CHECK: tile.smem_alloc {{.*}}: <64x32xf16, minor = 0, stages = 2>
func.func @element_by_element(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %off: tensor<64x32xi32>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  // expected-remark @+1 {{pipelined with 2 stages: what is gathered element by element goes through registers}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %q = tile.ptr_add %p, %k : !tile.ptr<f16>, i32
    %a = tile.gather_shared %q offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> !tile.smem<64x32xf16, minor = 0>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 0>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 4 : i32}
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// Unasked they are not copied ahead at all: no places of other iterations are alive.
// CHECK-LABEL: func.func @element_by_element_unasked
// CHECK-NOT: stages =
// CHECK: return
func.func @element_by_element_unasked(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %off: tensor<64x32xi32>, %B: !tile.smem<32x64xf16, minor = 1>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %q = tile.ptr_add %p, %k : !tile.ptr<f16>, i32
    %a = tile.gather_shared %q offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> !tile.smem<64x32xf16, minor = 0>
    %d = tile.mma m16n8k16_f16 k 32 warps(2, 2) %a, %B, %acc : !tile.smem<64x32xf16, minor = 0>, !tile.smem<32x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Stages that nothing uses: what the loop reads is not copied, and the user who asked is told.
// CHECK-LABEL: func.func @nothing_copied
// CHECK: scf.for
// CHECK-NOT: tile.smem_alloc
// CHECK: return
func.func @nothing_copied(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %o = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  // expected-remark @+1 {{copies are not pipelined: nothing that this loop loads is copied to shared memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<128xf32>) : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %s = arith.addf %a, %v : tensor<128xf32>
    scf.yield %s : tensor<128xf32>
  } {tile.stages = 3 : i32}
  tile.scatter %r, %y offsets %o : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----

// Products wait for what the loop gathers into registers: nobody asked for stages, and is told all the same.
// CHECK-LABEL: func.func @gathered_operand
func.func @gathered_operand(%x: !tile.ptr<f16>, %at: tensor<64x64xi32>, %a: tensor<64x64xf16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %first = tile.share %a : tensor<64x64xf16> -> <64x64xf16, minor = 1>
  // expected-remark @+1 {{copies are not pipelined: nothing that this loop loads is copied to shared memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f16>, i32
    %v = tile.gather %p offsets %at : tensor<64x64xi32> : !tile.ptr<f16> -> tensor<64x64xf16>
    %twice = arith.addf %v, %v : tensor<64x64xf16>
    %b = tile.share %twice : tensor<64x64xf16> -> <64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(2, 2) %first, %b, %acc : !tile.smem<64x64xf16, minor = 1>, <64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
