// Producers also for loops whose products read nothing as it was copied, and beside tiles that are gathered once.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-specialize -canonicalize -cse | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-specialize -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Both operands are computed from copies.
// CHECK-LABEL: func.func @computed
// CHECK: tile.specialize {{.*}}producer {
// CHECK-COUNT-2: tile.tma_load
// CHECK: consumer {
// CHECK: scf.for
// CHECK-COUNT-2: tile.smem_load
// CHECK: tile.smem_store
// CHECK: tile.mma
func.func @computed(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %ta = tile.smem_load %sa : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    %tb = tile.smem_load %sb : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    %aa = arith.mulf %ta, %ta : tensor<64x64xf16>
    %bb = arith.mulf %tb, %tb : tensor<64x64xf16>
    %shared = tile.share %bb : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %aa, %shared, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// The rows gathered in front of the loop are the consumers' business: nothing runs ahead of them.
// CHECK-LABEL: func.func @gathered_once
// CHECK: tile.specialize {{.*}}producer {
// CHECK-NOT: gather
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK: %[[Q:.*]] = tile.gather %{{.*}} offsets
// CHECK: tile.smem_store %[[Q]]
// CHECK: scf.for
// CHECK: tile.mma
func.func @gathered_once(%p: !tile.ptr<f16>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %rows = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %cols = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %stride = tile.splat %n : i32 -> tensor<64x1xi32>
  %starts = arith.muli %rows, %stride : tensor<64x1xi32>
  %wide = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tile.broadcast %cols : tensor<1x64xi32> -> tensor<64x64xi32>
  %o = arith.addi %wide, %columns : tensor<64x64xi32>
  %q = tile.gather_shared %p offsets %o : tensor<64x64xi32> : !tile.ptr<f16> -> !tile.smem<64x64xf16, minor = 1>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Few rows are multiplied by single warps, which wait for nothing: such a loop gets a producer where it asks for one.
// CHECK-LABEL: func.func @asked
// CHECK: tile.specialize {{.*}}producer {
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK: tile.mma m16n8k16_f16
func.func @asked(%q: !tile.view<2xf16>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = tile.load %q[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %a, %sb, %acc : tensor<16x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
    scf.yield %d : tensor<16x64xf32>
  } {tile.stages = 3 : i32, tile.specialize = 1 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Or where the rows are those of one instruction: the loop lasts as long as its copies.
// CHECK-LABEL: func.func @few_rows
// CHECK: tile.specialize {{.*}}producer {
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK: tile.mma m16n8k16_f16
// CHECK: return
func.func @few_rows(%q: !tile.view<2xf16>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = tile.load %q[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %a, %sb, %acc : tensor<16x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
    scf.yield %d : tensor<16x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----

// So does one whose copies are widened on their way to the product.
// CHECK-LABEL: func.func @few_rows_of_widened
// CHECK: tile.specialize {{.*}}producer {
// CHECK: tile.tma_load
// CHECK: consumer {
// CHECK: tile.smem_load
// CHECK: tile.mma m16n8k16_f16
// CHECK: return
func.func @few_rows_of_widened(%q: !tile.view<2xf16>, %b: !tile.view<2xf8E4M3FN> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = tile.load %q[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf8E4M3FN> -> !tile.smem<64x64xf8E4M3FN, minor = 1>
    %narrow = tile.smem_load %sb : !tile.smem<64x64xf8E4M3FN, minor = 1> -> tensor<64x64xf8E4M3FN>
    %wide = arith.extf %narrow : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
    %shared = tile.share %wide : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(1, 4) %a, %shared, %acc : tensor<16x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<16x64xf32>
    scf.yield %d : tensor<16x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----

// More rows wait for the tensor cores.
// CHECK-LABEL: func.func @unasked
// CHECK-NOT: tile.specialize
// CHECK: return
func.func @unasked(%q: !tile.view<2xf16>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %q[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma m16n8k16_f16 k 64 warps(4, 1) %a, %sb, %acc : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Six shared tiles one after the other take the room of one: both stages of the ring fit.
// CHECK-LABEL: func.func @powers
// CHECK: tile.smem_alloc : <128x128xf16, minor = 1, stages = 2>
// CHECK-NOT: does not fit
func.func @powers(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %m = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %at = tile.smem_trans %sa : !tile.smem<128x128xf16, minor = 1> -> !tile.smem<128x128xf16, minor = 0>
    %d0 = tile.mma wgmma_f16 k 128 warps(8, 1) %sa, %at, %acc : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 0> -> tensor<128x128xf32>
    %h1 = arith.truncf %d0 : tensor<128x128xf32> to tensor<128x128xf16>
    %s1 = tile.share %h1 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d1 = tile.mma wgmma_f16 k 128 warps(8, 1) %s1, %s1, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    %h2 = arith.truncf %d1 : tensor<128x128xf32> to tensor<128x128xf16>
    %s2 = tile.share %h2 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d2 = tile.mma wgmma_f16 k 128 warps(8, 1) %s2, %s2, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    %h3 = arith.truncf %d2 : tensor<128x128xf32> to tensor<128x128xf16>
    %s3 = tile.share %h3 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d3 = tile.mma wgmma_f16 k 128 warps(8, 1) %s3, %s3, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    %h4 = arith.truncf %d3 : tensor<128x128xf32> to tensor<128x128xf16>
    %s4 = tile.share %h4 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d4 = tile.mma wgmma_f16 k 128 warps(8, 1) %s4, %s4, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    %h5 = arith.truncf %d4 : tensor<128x128xf32> to tensor<128x128xf16>
    %s5 = tile.share %h5 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d5 = tile.mma wgmma_f16 k 128 warps(8, 1) %s5, %s5, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    %h6 = arith.truncf %d5 : tensor<128x128xf32> to tensor<128x128xf16>
    %s6 = tile.share %h6 : tensor<128x128xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d6 = tile.mma wgmma_f16 k 128 warps(8, 1) %s6, %s6, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %d6 : tensor<128x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// As many programs of a multiprocessor as the kernel asks for, although its tiles leave little beside them: the producer
// has no more registers than it needs then.
// CHECK-LABEL: func.func @two_programs
// CHECK: tile.specialize regs(24, 232) programs 2
// Unasked there would be one, whose warpgroup spills with nobody to compute meanwhile: rather programs without roles.
// REMARK: remark: no producer warps: a multiprocessor would hold one warpgroup of consumers, and tiles alive here need about 256 registers
// CHECK-LABEL: func.func @one_program
// CHECK-NOT: tile.specialize
// Without roles a loop with one stage would have nothing copied ahead.
// CHECK-LABEL: func.func @one_stage
// CHECK: tile.specialize regs(56, 240) producer
func.func @two_programs(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.programs = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r:3 = scf.for %m = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c64 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %p = arith.mulf %d, %e : tensor<64x128xf32>
    %q = arith.addf %p, %z : tensor<64x128xf32>
    scf.yield %d, %e, %q : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r#0, %out[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#1, %out[%c0, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#2, %out[%c64, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

func.func @one_program(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r:3 = scf.for %m = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c64 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %p = arith.mulf %d, %e : tensor<64x128xf32>
    %q = arith.addf %p, %z : tensor<64x128xf32>
    scf.yield %d, %e, %q : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>
  } {tile.stages = 2 : i32}
  tile.store %r#0, %out[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#1, %out[%c0, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#2, %out[%c64, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

func.func @one_stage(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r:3 = scf.for %m = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c64 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %p = arith.mulf %d, %e : tensor<64x128xf32>
    %q = arith.addf %p, %z : tensor<64x128xf32>
    scf.yield %d, %e, %q : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>
  } {tile.stages = 1 : i32}
  tile.store %r#0, %out[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#1, %out[%c0, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#2, %out[%c64, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  return
}

// -----

// Two programs have hardly room for what their tiles take, and the next plan is a warpgroup alone with its multiprocessor:
// they get by without room for what an estimate overlooks.
// CHECK-LABEL: func.func @close
// CHECK: tile.specialize regs(40, 216) programs 2
func.func @close(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %small = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = scf.for %m = %c0 to %n step %c64 iter_args(%x = %zero, %y = %zero, %z = %small) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c64 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %x : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %y : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<64x128xf32>
    %q = arith.addf %z, %z : tensor<64x64xf32>
    scf.yield %d, %e, %q : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r#0, %out[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#1, %out[%c0, %c64 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#2, %out[%c64, %c64 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Nor do they need a third stage; one stage would stop both.
// CHECK-LABEL: func.func @two_stages
// CHECK: tile.smem_alloc : <128x128xf16, minor = 1, stages = 2>
// CHECK: tile.specialize regs(40, 216) programs 2
func.func @two_stages(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %small = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = scf.for %m = %c0 to %n step %c128 iter_args(%x = %zero, %y = %zero, %z = %small) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c128 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 128 warps(4, 1) %sa, %sb, %x : !tile.smem<64x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<64x128xf32>
    %e = tile.mma wgmma_f16 k 128 warps(4, 1) %sa, %sb, %y : !tile.smem<64x128xf16, minor = 1>, !tile.smem<128x128xf16, minor = 1> -> tensor<64x128xf32>
    %q = arith.addf %z, %z : tensor<64x64xf32>
    scf.yield %d, %e, %q : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r#0, %out[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#1, %out[%c0, %c128 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  tile.store %r#2, %out[%c128, %c128 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Two programs of three warpgroups leave 80 registers for a thread, the products need 80 for their results alone.
// CHECK-LABEL: func.func @asks_for_too_many
// CHECK: tile.specialize regs(40, 232) producer
func.func @asks_for_too_many(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32, tile.programs = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x160xf32>
  %r = scf.for %m = %c0 to %n step %c64 iter_args(%x = %zero) -> (tensor<128x160xf32>) : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %a[%m, %c64 : i32, i32] box [64, 160] : !tile.view<2xf16> -> !tile.smem<64x160xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %x : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x160xf16, minor = 1> -> tensor<128x160xf32>
    scf.yield %d : tensor<128x160xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x160xf32>, !tile.view<2xf32>
  return
}
