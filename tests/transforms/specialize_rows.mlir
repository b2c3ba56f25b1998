// What a loop reads beside its staged tiles, and what it shares in every iteration, as gradients of attention do.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-specialize -canonicalize -cse | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-specialize -tile-assign-layouts -canonicalize -cse -tile-async-waits -tile-place-buffers -tile-insert-barriers | FileCheck %s --check-prefix=ORDER

// The row joins the stage of the tile acquired before it. The shared tile has two buffers in turn, so one barrier is left
// in the loop: between its writers and its readers. Warpgroups side by side store their own columns of the sum.
// CHECK-LABEL: func.func @statistics
// CHECK-DAG: %[[ROWS:.*]] = tile.smem_alloc : <1x64xf32, minor = 1, stages = 2>
// CHECK-DAG: %[[SUMS:.*]] = tile.smem_alloc : <64x128xf32, minor = 1>
// CHECK-DAG: %[[TURNS:.*]] = tile.smem_alloc {tile.alternates} : <128x64xf16, minor = 1, stages = 2>
// CHECK: producer {
// CHECK: scf.for
// CHECK: tile.ring_reserve %[[RING:.*]] bytes 16640
// CHECK: tile.tma_load %arg1{{.*}} signals %[[RING]]
// CHECK: tile.tma_load %arg2{{.*}} signals %[[RING]]
// CHECK: consumer {
// CHECK: scf.for %[[I:.*]] = %c0_i32 to
// CHECK: tile.mma {{.*}}warps(8, 1)
// CHECK: tile.smem_load {{.*}} -> tensor<1x64xf32>
// CHECK: arith.subf
// CHECK: %[[TURN:.*]] = arith.andi %[[I]], %c1_i32
// CHECK: tile.smem_slot %[[TURNS]][%[[TURN]]]
// CHECK: tile.smem_store
// CHECK: tile.tma_store add %{{.*}}, %arg3{{.*}} through %[[SUMS]]
// CHECK-NOT: tile.load %

// ORDER-LABEL: func.func @statistics
// ORDER: consumer {
// ORDER: scf.for
// The row is read behind the wait for the product it goes with.
// ORDER: tile.mma {{.*}}warps(8, 1)
// ORDER: tile.mma_wait
// ORDER-NEXT: {{.*}}tile.smem_load
// ORDER-NOT: tile.barrier
// ORDER: tile.smem_store
// ORDER: tile.barrier
// ORDER: tile.mma {{.*}}warps(4, 2)
// ORDER-NOT: tile.barrier
// ORDER-NOT: tile.convert
// ORDER: tile.tma_store add
// ORDER-NOT: tile.barrier
func.func @statistics(%keys: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %queries: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %rows: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %sums: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = tile.program_id 0
  %n0 = arith.muli %x, %c128 : i32
  %k = tile.load_shared %keys[%n0, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %m0 = arith.muli %i, %c64 : i32
    %q = tile.load_shared %queries[%m0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %row = tile.load %rows[%c0, %m0 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
    %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
    %qt = tile.smem_trans %q : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 128 warps(8, 1) %k, %qt, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<128x64xf32>
    %d = arith.subf %s, %wide : tensor<128x64xf32>
    %h = arith.truncf %d : tensor<128x64xf32> to tensor<128x64xf16>
    %shared = tile.share %h : tensor<128x64xf16> -> !tile.smem<128x64xf16, minor = 1>
    %ht = tile.smem_trans %shared : !tile.smem<128x64xf16, minor = 1> -> !tile.smem<64x128xf16, minor = 0>
    %part = tile.mma wgmma_f16 k 128 warps(4, 2) %ht, %k, %none : !tile.smem<64x128xf16, minor = 0>, !tile.smem<128x128xf16, minor = 1> -> tensor<64x128xf32>
    tile.accumulate %part, %sums[%m0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2xf32>
  } {tile.stages = 2 : i32}
  return
}

// -----

// A row that memory tells the place of stays a load of the consumers.
// CHECK-LABEL: func.func @elsewhere
// CHECK: consumer {
// CHECK: tile.load %arg2
func.func @elsewhere(%keys: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %queries: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %rows: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %out: !tile.view<2xf32>, %table: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %k = tile.load_shared %keys[%c0, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %m0 = arith.muli %i, %c64 : i32
    %q = tile.load_shared %queries[%m0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %at = tile.load %table[%i : i32] : !tile.view<1xi32> -> i32
    %row = tile.load %rows[%at, %m0 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
    %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
    %qt = tile.smem_trans %q : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 128 warps(8, 1) %k, %qt, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<128x64xf32>
    %d = arith.subf %s, %wide : tensor<128x64xf32>
    %sum = arith.addf %acc, %d : tensor<128x64xf32>
    scf.yield %sum : tensor<128x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A row in another line than the tiles' of its iteration (factors of groups of columns) costs the producer a quotient.
// CHECK-LABEL: func.func @groups
// CHECK: producer {
// CHECK: %[[GROUP:.*]] = arith.divsi
// CHECK: tile.tma_load %arg2[%[[GROUP]],
// CHECK: consumer {
// CHECK-NOT: tile.load %arg2
func.func @groups(%keys: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %queries: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %rows: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %k = tile.load_shared %keys[%c0, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %m0 = arith.muli %i, %c64 : i32
    %q = tile.load_shared %queries[%m0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %group = arith.divsi %m0, %c128 : i32
    %row = tile.load %rows[%group, %m0 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
    %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
    %qt = tile.smem_trans %q : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 128 warps(8, 1) %k, %qt, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<128x64xf32>
    %d = arith.subf %s, %wide : tensor<128x64xf32>
    %sum = arith.addf %acc, %d : tensor<128x64xf32>
    scf.yield %sum : tensor<128x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2xf32>
  return
}

// -----

// So does one whose group is the counter of the loop, at columns that are always the same.
// CHECK-LABEL: func.func @counted
// CHECK: producer {
// CHECK: tile.tma_load %arg2[{{.*}}, %c64
// CHECK: consumer {
// CHECK-NOT: tile.load %arg2
func.func @counted(%keys: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %queries: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %rows: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %k = tile.load_shared %keys[%c0, %c0 : i32, i32] box [128, 128] : !tile.view<2xf16> -> !tile.smem<128x128xf16, minor = 1>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %m0 = arith.muli %i, %c64 : i32
    %q = tile.load_shared %queries[%m0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %row = tile.load %rows[%i, %c64 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
    %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
    %qt = tile.smem_trans %q : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 128 warps(8, 1) %k, %qt, %zero : !tile.smem<128x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<128x64xf32>
    %d = arith.subf %s, %wide : tensor<128x64xf32>
    %sum = arith.addf %acc, %d : tensor<128x64xf32>
    scf.yield %sum : tensor<128x64xf32>
  }
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Where the row lies is computed behind the first reader of the tile in front of it: it has a ring of its own.
// CHECK-LABEL: func.func @known_late
// ORDER-LABEL: func.func @known_late
// CHECK: producer {
// CHECK: scf.for
// CHECK: tile.ring_reserve %{{.*}} bytes 8192
// CHECK: tile.tma_load %arg0
// CHECK: %[[AT:.*]] = arith.divsi
// CHECK: tile.ring_reserve %{{.*}} bytes 128
// CHECK: tile.tma_load %arg1[%[[AT]],
func.func @known_late(%weights: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %factors: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %w = tile.load_shared %weights[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %held = tile.smem_load %w : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    %at = arith.divsi %k, %c128 : i32
    %f = tile.load_shared %factors[%at, %c0 : i32, i32] box [1, 64] : !tile.view<2xf16> -> !tile.smem<1x64xf16, minor = 1>
    %row = tile.smem_load %f : !tile.smem<1x64xf16, minor = 1> -> tensor<1x64xf16>
    %wide = tile.broadcast %row : tensor<1x64xf16> -> tensor<64x64xf16>
    %scaled = arith.mulf %held, %wide : tensor<64x64xf16>
    %b = tile.share %scaled : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %x = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %x, %b, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %out[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A tile that is added to a product comes with the tiles of the product, and is read where it is added.
// CHECK-LABEL: func.func @beside
// CHECK: producer {
// CHECK-DAG: tile.tma_load %arg0
// CHECK-DAG: tile.tma_load %arg1
// CHECK-DAG: tile.tma_load %arg2
// CHECK: consumer {
// CHECK-NOT: tile.load %
// CHECK: tile.mma
// CHECK: tile.smem_load {{.*}} -> tensor<64x64xf16>
// CHECK: arith.extf
// ORDER-LABEL: func.func @beside
func.func @beside(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %bias: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.program_id 0
  %n0 = arith.muli %x, %c64 : i32
  %r = scf.for %m = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %beside = tile.load %bias[%m, %n0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%c0, %m : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %wide = arith.extf %beside : tensor<64x64xf16> to tensor<64x64xf32>
    %sum = arith.addf %d, %wide : tensor<64x64xf32>
    %all = arith.addf %acc, %sum : tensor<64x64xf32>
    scf.yield %all : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %out[%c0, %n0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// So it does where threads read what is staged, and make the product's operand of it.
// CHECK-LABEL: func.func @beside_made
// CHECK: producer {
// CHECK: tile.work_loop
// CHECK: scf.for
// CHECK-DAG: tile.tma_load %arg0
// CHECK-DAG: tile.tma_load %arg2
// CHECK: consumer {
// CHECK-NOT: tile.load %
// ORDER-LABEL: func.func @beside_made
func.func @beside_made(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %bias: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.program_id 0
  %n0 = arith.muli %x, %c64 : i32
  %w = tile.load_shared %b[%c0, %n0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
  scf.for %m = %c0 to %n step %c64 : i32 {
    %beside = tile.load %bias[%m, %n0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %sa = tile.load_shared %a[%m, %n0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %ta = tile.smem_load %sa : !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf16>
    %squares = arith.mulf %ta, %ta : tensor<64x64xf16>
    %made = tile.share %squares : tensor<64x64xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %w, %made, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %wide = arith.extf %beside : tensor<64x64xf16> to tensor<64x64xf32>
    %sum = arith.mulf %d, %wide : tensor<64x64xf32>
    tile.store %sum, %out[%m, %n0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  } {tile.stages = 2 : i32}
  return
}

// -----

// Not where the product's tiles would have a stage less for it.
// CHECK-LABEL: func.func @no_room
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.load %arg2
// ORDER-LABEL: func.func @no_room
func.func @no_room(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %bias: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %out: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x144xf32>
  %x = tile.program_id 0
  %n0 = arith.muli %x, %c64 : i32
  %r = scf.for %m = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x144xf32>) : i32 {
    %beside = tile.load %bias[%m, %n0 : i32, i32] : !tile.view<2xf32> -> tensor<64x144xf32>
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 256] : !tile.view<2xf16> -> !tile.smem<64x256xf16, minor = 1>
    %sb = tile.load_shared %b[%c0, %m : i32, i32] box [256, 144] : !tile.view<2xf16> -> !tile.smem<256x144xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 256 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x256xf16, minor = 1>, !tile.smem<256x144xf16, minor = 1> -> tensor<64x144xf32>
    %sum = arith.addf %d, %beside : tensor<64x144xf32>
    %all = arith.addf %acc, %sum : tensor<64x144xf32>
    scf.yield %all : tensor<64x144xf32>
  } {tile.stages = 2 : i32}
  tile.store %r, %out[%c0, %n0 : i32, i32] : tensor<64x144xf32>, !tile.view<2xf32>
  return
}

// -----

// A row that the loop itself writes stays a load: its copy, made ahead, could be older than what was written.
// CHECK-LABEL: func.func @rewritten
// CHECK: producer {
// CHECK-NOT: tile.tma_load %arg2
// CHECK: consumer {
// CHECK: tile.load %arg2
// CHECK: tile.store {{.*}}, %arg2
// ORDER-LABEL: func.func @rewritten
func.func @rewritten(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %row: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %m = %c0 to %n step %c64 : i32 {
    %sa = tile.load_shared %a[%m, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%c0, %m : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %old = tile.load %row[%c0, %m : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %zero : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %sum = tile.reduce %d axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %flat = tile.reshape %sum : tensor<1x64xf32> -> tensor<64xf32>
    %new = arith.addf %old, %flat : tensor<64xf32>
    tile.store %new, %row[%c0, %m : i32, i32] : tensor<64xf32>, !tile.view<2xf32>
  } {tile.stages = 2 : i32}
  return
}

// -----

// A loop that only reads, in front of the one with products: its tiles come through a ring, too.
// CHECK-LABEL: func.func @normed
// CHECK: producer {
// CHECK: scf.for
// CHECK: tile.tma_load %arg0
// CHECK: scf.for
// CHECK: tile.tma_load %arg0
// CHECK: tile.tma_load %arg1
// CHECK: consumer {
// CHECK: scf.for
// CHECK: tile.smem_load {{.*}} -> tensor<128x64xf16>
// CHECK: tile.reduce
// CHECK: scf.for
// CHECK: tile.mma
// CHECK-NOT: tile.load %arg0
// CHECK: return
func.func @normed(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %w: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0.0> : tensor<128x1xf32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %p = tile.program_id 0
  %m = arith.muli %p, %c128 : i32
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%l = %none) -> (tensor<128x1xf32>) : i32 {
    %t = tile.load %x[%m, %k : i32, i32] : !tile.view<2xf16> -> tensor<128x64xf16>
    %f = arith.extf %t : tensor<128x64xf16> to tensor<128x64xf32>
    %r = tile.reduce %f axis 1 : (tensor<128x64xf32>) -> tensor<128x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %next = arith.addf %l, %r : tensor<128x1xf32>
    scf.yield %next : tensor<128x1xf32>
  }
  %d = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %sa = tile.load_shared %x[%m, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %w[%k, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %e = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x128xf16, minor = 1> -> tensor<128x128xf32>
    scf.yield %e : tensor<128x128xf32>
  } {tile.stages = 3 : i32}
  %wide = tile.broadcast %s : tensor<128x1xf32> -> tensor<128x128xf32>
  %o = arith.mulf %d, %wide : tensor<128x128xf32>
  tile.store %o, %y[%m, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// A mask of 64 bytes is shorter than what stages of bulk copies begin at multiples of: its slots are 128 bytes apart.
// CHECK-LABEL: func.func @mask
// CHECK-DAG: tile.smem_alloc : <1x64xi8, minor = 1, stages = 2>
// CHECK: producer {
// CHECK: tile.ring_reserve %{{.*}} bytes 64 :
// CHECK: consumer {
// CHECK-NOT: tile.load %
// CHECK: tile.smem_load {{.*}} -> tensor<1x64xi8>
// ORDER-LABEL: func.func @mask
// Four tiles of 16384, two slots of 128, and barriers.
// ORDER-SAME: tile.shared_bytes = 65952 :
func.func @mask(%keys: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %masks: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %no = arith.constant dense<0> : tensor<1x64xi8>
  %x = tile.program_id 0
  %m0 = arith.muli %x, %c64 : i32
  %q = tile.load_shared %keys[%m0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %n0 = arith.muli %i, %c64 : i32
    %k = tile.load_shared %keys[%n0, %c0 : i32, i32] box [64, 128] : !tile.view<2xf16> -> !tile.smem<64x128xf16, minor = 1>
    %row = tile.load %masks[%c0, %n0 : i32, i32] : !tile.view<2xi8> -> tensor<64xi8>
    %flat = tile.reshape %row : tensor<64xi8> -> tensor<1x64xi8>
    %is = arith.cmpi ne, %flat, %no : tensor<1x64xi8>
    %wide = tile.broadcast %is : tensor<1x64xi1> -> tensor<64x64xi1>
    %kt = tile.smem_trans %k : !tile.smem<64x128xf16, minor = 1> -> !tile.smem<128x64xf16, minor = 0>
    %s = tile.mma wgmma_f16 k 128 warps(4, 1) %q, %kt, %zero : !tile.smem<64x128xf16, minor = 1>, !tile.smem<128x64xf16, minor = 0> -> tensor<64x64xf32>
    %kept = arith.select %wide, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %sum = arith.addf %acc, %kept : tensor<64x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  tile.store %all, %y[%m0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
