// Loads that loops would wait for are under way early.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s

// Weights that are widened and scaled on their way to a product are copied as they are and read back; scales, whose rows
// are no box for bulk copies here, are loaded an iteration early.
// CHECK-LABEL: func.func @weights
// CHECK: %[[FIRST:.*]] = tile.load %arg2{{.*}} -> tensor<1x128xf16>
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args({{.*}}, %[[S:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[NEXT:.*]] = tile.load %arg2[%[[AHEAD]],
// CHECK: %[[W:.*]] = tile.load_shared %arg1{{.*}} <64x128xi8, minor = 1>
// CHECK: tile.smem_load %[[W]]
// CHECK: tile.broadcast %[[S]]
// CHECK: tile.share
// CHECK: scf.yield {{.*}}, %[[NEXT]]
func.func @weights(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %W: !tile.view<2 x i8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                   %S: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %bytes = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x128xi8>
    %s = tile.load %S[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<1x128xf16>
    %wide = arith.sitofp %bytes : tensor<64x128xi8> to tensor<64x128xf16>
    %scales = tile.broadcast %s : tensor<1x128xf16> -> tensor<64x128xf16>
    %w = arith.mulf %wide, %scales : tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// What operands of a branch are computed from comes by copies as well: the loads are the loop's.
// CHECK-LABEL: func.func @branch
// CHECK: scf.for
// CHECK: %[[W:.*]] = tile.load_shared %arg1{{.*}} <64x128xi8, minor = 1>
// CHECK: %[[BYTES:.*]] = tile.smem_load %[[W]]
// CHECK: scf.if
// CHECK: arith.sitofp %[[BYTES]]
// CHECK: tile.share
func.func @branch(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                  %W: !tile.view<2 x i8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                  %C: !tile.view<2 x f32>, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %bytes = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x i8> -> tensor<64x128xi8>
    %counts = arith.cmpi slt, %k, %m : i32
    %next = scf.if %counts -> (tensor<64x128xf32>) {
      %w = arith.sitofp %bytes : tensor<64x128xi8> to tensor<64x128xf16>
      %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
      scf.yield %d : tensor<64x128xf32>
    } else {
      scf.yield %acc : tensor<64x128xf32>
    }
    scf.yield %next : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// An operand with a product in it has other work to wait behind: its loads stay.
// CHECK-LABEL: func.func @bias
// CHECK: scf.for
// CHECK: tile.load %arg2{{.*}} -> tensor<64x64xf32>
// CHECK-NOT: tile.smem_load
// CHECK: return
func.func @bias(%K: !tile.view<2 x f16>, %V: !tile.view<2 x f16>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %q = tile.load %K[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %K[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %b = tile.load %B[%c0, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %v = tile.load %V[%k, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %t = arith.addf %s, %b : tensor<64x64xf32>
    %p = arith.truncf %t : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.dot %p, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A loop without products that asks for stages has its loads in flight.
// CHECK-LABEL: func.func @recurrence
// CHECK: scf.for
// CHECK: %[[X:.*]] = tile.load_shared %arg0{{.*}} box [1, 64]
// CHECK: %[[T:.*]] = tile.smem_load %[[X]]
// CHECK: tile.reshape %[[T]] : tensor<1x64xf32> -> tensor<64xf32>
// CHECK-LABEL: func.func @unasked
// CHECK-NOT: tile.load_shared
func.func @recurrence(%X: !tile.view<2 x f32>, %Y: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<64xf32>) : i32 {
    %x = tile.load %X[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64xf32>
    %m = arith.mulf %s, %x : tensor<64xf32>
    %a = arith.addf %m, %x : tensor<64xf32>
    tile.store %a, %Y[%t, %c0 : i32, i32] : tensor<64xf32>, !tile.view<2 x f32>
    scf.yield %a : tensor<64xf32>
  } {tile.stages = 4 : i32}
  return
}
func.func @unasked(%X: !tile.view<2 x f32>, %Y: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<64xf32>) : i32 {
    %x = tile.load %X[%t, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<64xf32>
    %a = arith.addf %s, %x : tensor<64xf32>
    scf.yield %a : tensor<64xf32>
  }
  tile.store %h, %Y[%c0, %c0 : i32, i32] : tensor<64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Factors of columns in a vector come as rows beside the tiles they are for, where bulk copies make them.
// CHECK-LABEL: func.func @factors
// CHECK-NOT: tile.load %
// CHECK: scf.for
// CHECK: %[[X:.*]] = tile.load_shared %arg0{{.*}} <128x64xbf16, minor = 1>
// CHECK: tile.smem_load %[[X]]
// CHECK: %[[G:.*]] = tile.load_shared %arg1[%{{.*}} : i32] box [1, 64] : <1xbf16> -> <1x64xbf16, minor = 1>
// CHECK: tile.smem_load %[[G]]
// CHECK: tile.mma
// Bulk copies need the address aligned: this one is loaded into registers, an iteration early.
// CHECK-LABEL: func.func @unaligned
// CHECK: tile.load %arg1
// CHECK: scf.for
// CHECK: tile.load %arg1
func.func @factors(%X: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %G: !tile.view<1 x bf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32},
                   %W: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %x = tile.load %X[%c0, %k : i32, i32] : !tile.view<2 x bf16> -> tensor<128x64xbf16>
    %g = tile.load %G[%k : i32] : !tile.view<1 x bf16> -> tensor<64xbf16>
    %row = tile.reshape %g : tensor<64xbf16> -> tensor<1x64xbf16>
    %wide = tile.broadcast %row : tensor<1x64xbf16> -> tensor<128x64xbf16>
    %a = arith.mulf %x, %wide : tensor<128x64xbf16>
    %w = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %d = tile.dot %a, %w, %acc : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  return
}
func.func @unaligned(%X: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %G: !tile.view<1 x bf16>,
                   %W: !tile.view<2 x bf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %x = tile.load %X[%c0, %k : i32, i32] : !tile.view<2 x bf16> -> tensor<128x64xbf16>
    %g = tile.load %G[%k : i32] : !tile.view<1 x bf16> -> tensor<64xbf16>
    %row = tile.reshape %g : tensor<64xbf16> -> tensor<1x64xbf16>
    %wide = tile.broadcast %row : tensor<1x64xbf16> -> tensor<128x64xbf16>
    %a = arith.mulf %x, %wide : tensor<128x64xbf16>
    %w = tile.load %W[%k, %c0 : i32, i32] : !tile.view<2 x bf16> -> tensor<64x64xbf16>
    %d = tile.dot %a, %w, %acc : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<128x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Rows gathered at addresses that are loaded: these come an iteration early, and not for an iteration that is not there.
// CHECK-LABEL: func.func @gathered_rows
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: tile.splat %[[SOME]]
// CHECK: %[[FIRST:.*]] = tile.gather %arg0
// CHECK: %[[LAST:.*]] = arith.subi %arg3, %c16_i32
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[AT:.*]] = %[[FIRST]])
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[LAST]]
// CHECK: tile.splat %[[MORE]]
// CHECK: %[[NEXT:.*]] = tile.gather %arg0
// CHECK: tile.reshape %[[AT]]
// CHECK: tile.gather %arg1
// CHECK-NOT: tile.gather
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @gathered_rows(%at: !tile.ptr<i32>, %x: !tile.ptr<f32>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %lanes = tile.iota : tensor<16xi32>
  %columns = tile.iota : tensor<64xi32>
  %row = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %across = tile.broadcast %row : tensor<1x64xi32> -> tensor<16x64xi32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %first = tile.splat %i : i32 -> tensor<16xi32>
    %place = arith.addi %first, %lanes : tensor<16xi32>
    %index = tile.gather %at offsets %place : tensor<16xi32> : !tile.ptr<i32> -> tensor<16xi32>
    %column = tile.reshape %index : tensor<16xi32> -> tensor<16x1xi32>
    %down = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x64xi32>
    %offsets = arith.addi %down, %across : tensor<16x64xi32>
    %v = tile.gather %x offsets %offsets : tensor<16x64xi32> : !tile.ptr<f32> -> tensor<16x64xf32>
    %next = arith.addf %acc, %v : tensor<16x64xf32>
    scf.yield %next : tensor<16x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A box that is updated in place comes an iteration early where the loop steps over whole boxes, and not where the next one
// overlaps it, or where the loop writes elsewhere in the same argument.
// CHECK-LABEL: func.func @updates
// CHECK: %[[FIRST:.*]] = tile.load %arg2
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[NEXT:.*]] = tile.load %arg2[%c0_i32, %[[AHEAD]]
// CHECK: arith.addf %{{.*}}, %[[Y]]
// CHECK: tile.store
// CHECK: scf.yield %[[NEXT]]
// CHECK: scf.for %[[J:[a-z0-9]+]] = {{[^(]*}} {
// CHECK: tile.load %arg2[%c0_i32, %[[J]]
// CHECK: scf.for %[[K:[a-z0-9]+]] = {{[^(]*}} {
// CHECK: tile.load %arg2[%c0_i32, %[[K]]
func.func @updates(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %Y: !tile.view<2 x f32>, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
  scf.for %k = %c0 to %n step %c64 : i32 {
    %b = tile.load %B[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %y = tile.load %Y[%c0, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %s = arith.addf %d, %y : tensor<64x64xf32>
    tile.store %s, %Y[%c0, %k : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  }
  scf.for %k = %c0 to %n step %c32 : i32 {
    %b = tile.load %B[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %y = tile.load %Y[%c0, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %s = arith.addf %d, %y : tensor<64x64xf32>
    tile.store %s, %Y[%c0, %k : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  }
  scf.for %k = %c0 to %n step %c64 : i32 {
    %b = tile.load %B[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %y = tile.load %Y[%c0, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x64xf32>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %s = arith.addf %d, %y : tensor<64x64xf32>
    tile.store %s, %Y[%c0, %k : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
    tile.store %s, %Y[%c64, %k : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  }
  return
}

// -----

// Words that eight rows share, and factors of groups, are gathered an iteration early beside products: a thread has few
// of them. Where every row has its own word they stay.
// CHECK-LABEL: func.func @packed
// CHECK: tile.gather %arg1
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[WORD:.*]] = %{{.*}}) -> (tensor<64x128xf32>, tensor<64x128xi32>)
// CHECK: arith.addi %[[I]], %{{.*}} overflow<nsw>
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[I]]
// CHECK: %[[NEXT:.*]] = tile.gather %arg1
// CHECK: arith.shrsi %[[WORD]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK-LABEL: func.func @words
// CHECK: scf.for
// CHECK: tile.gather %arg1
// CHECK: tile.mma
func.func @packed(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                  %W: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pitch = arith.constant dense<128> : tensor<64x128xi32>
  %eights = arith.constant dense<8> : tensor<64xi32>
  %fours = arith.constant dense<4> : tensor<64xi32>
  %low = arith.constant dense<15> : tensor<64x128xi32>
  %rows = tile.iota : tensor<64xi32>
  %within = arith.remsi %rows, %eights : tensor<64xi32>
  %by = arith.muli %within, %fours : tensor<64xi32>
  %byColumn = tile.reshape %by : tensor<64xi32> -> tensor<64x1xi32>
  %shift = tile.broadcast %byColumn : tensor<64x1xi32> -> tensor<64x128xi32>
  %columns = tile.iota : tensor<128xi32>
  %row = tile.reshape %columns : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %row : tensor<1x128xi32> -> tensor<64x128xi32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %rows : tensor<64xi32>
    %word = arith.divsi %at, %eights : tensor<64xi32>
    %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
    %down = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x128xi32>
    %lines = arith.muli %down, %pitch : tensor<64x128xi32>
    %offsets = arith.addi %lines, %across : tensor<64x128xi32>
    %words = tile.gather %W offsets %offsets : tensor<64x128xi32> : !tile.ptr<i32> -> tensor<64x128xi32>
    %moved = arith.shrsi %words, %shift : tensor<64x128xi32>
    %cut = arith.andi %moved, %low : tensor<64x128xi32>
    %w = arith.sitofp %cut : tensor<64x128xi32> to tensor<64x128xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x128xf32>, !tile.view<2 x f32>
  return
}
func.func @words(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                 %W: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %pitch = arith.constant dense<16> : tensor<16x16xi32>
  %rows = tile.iota : tensor<16xi32>
  %row = tile.reshape %rows : tensor<16xi32> -> tensor<1x16xi32>
  %across = tile.broadcast %row : tensor<1x16xi32> -> tensor<16x16xi32>
  %sum = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<64x16xf32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x16xf16>
    %start = tile.splat %k : i32 -> tensor<16xi32>
    %at = arith.addi %start, %rows : tensor<16xi32>
    %column = tile.reshape %at : tensor<16xi32> -> tensor<16x1xi32>
    %down = tile.broadcast %column : tensor<16x1xi32> -> tensor<16x16xi32>
    %lines = arith.muli %down, %pitch : tensor<16x16xi32>
    %offsets = arith.addi %lines, %across : tensor<16x16xi32>
    %words = tile.gather %W offsets %offsets : tensor<16x16xi32> : !tile.ptr<i32> -> tensor<16x16xi32>
    %w = arith.sitofp %words : tensor<16x16xi32> to tensor<16x16xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x16xf16>, tensor<16x16xf16> -> tensor<64x16xf32>
    scf.yield %d : tensor<64x16xf32>
  }
  tile.store %sum, %C[%c0, %c0 : i32, i32] : tensor<64x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// The same by a pointer that walks.
// CHECK-LABEL: func.func @packed_walking
// CHECK: %[[FIRST:.*]] = tile.gather %arg1
// CHECK: %[[P:.*]] = tile.ptr_add %arg1
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %arg1, %[[WORD:.*]] = %[[FIRST]], %[[Q:.*]] = %[[P]])
// CHECK: %[[NEXT:.*]] = tile.gather %[[Q]]
// CHECK: %[[Q2:.*]] = tile.ptr_add %[[Q]]
// CHECK: arith.shrsi %[[WORD]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]], %[[Q2]]
func.func @packed_walking(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>},
                          %W: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2 x f32>, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %step = arith.constant 512 : i32
  %pitch = arith.constant dense<64> : tensor<64x64xi32>
  %eights = arith.constant dense<8> : tensor<64xi32>
  %fours = arith.constant dense<4> : tensor<64xi32>
  %low = arith.constant dense<15> : tensor<64x64xi32>
  %rows = tile.iota : tensor<64xi32>
  %within = arith.remsi %rows, %eights : tensor<64xi32>
  %by = arith.muli %within, %fours : tensor<64xi32>
  %byColumn = tile.reshape %by : tensor<64xi32> -> tensor<64x1xi32>
  %shift = tile.broadcast %byColumn : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tile.iota : tensor<64xi32>
  %row = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %across = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %word = arith.divsi %rows, %eights : tensor<64xi32>
  %column = tile.reshape %word : tensor<64xi32> -> tensor<64x1xi32>
  %down = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %lines = arith.muli %down, %pitch : tensor<64x64xi32>
  %offsets = arith.addi %lines, %across : tensor<64x64xi32>
  %sum:2 = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero, %p = %W) -> (tensor<64x64xf32>, !tile.ptr<i32>) : i32 {
    %a = tile.load %A[%c0, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %words = tile.gather %p offsets %offsets : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
    %moved = arith.shrsi %words, %shift : tensor<64x64xi32>
    %cut = arith.andi %moved, %low : tensor<64x64xi32>
    %w = arith.sitofp %cut : tensor<64x64xi32> to tensor<64x64xf16>
    %d = tile.dot %a, %w, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %q = tile.ptr_add %p, %step : !tile.ptr<i32>, i32
    scf.yield %d, %q : tensor<64x64xf32>, !tile.ptr<i32>
  } {tile.stages = 4 : i32}
  tile.store %sum#0, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----
// A loop that asks for stages has them for rows it reads through pointers, too, whatever lies behind their ends.
// CHECK-LABEL: func.func @rows_of_pointers
// CHECK: scf.for
// CHECK: tile.gather_shared {{.*}} : tensor<1x1024xi32> mask {{.*}} -> <1x1024xf32
// CHECK: arith.select
// CHECK-NOT: tile.gather %
// CHECK: tile.scatter
func.func @rows_of_pointers(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32, %width: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %low = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %o = tile.iota : tensor<1024xi32>
  %w = tile.splat %width : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %o, %w : tensor<1024xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = arith.muli %i, %width : i32
    %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i32
    %v = tile.gather %p offsets %o : tensor<1024xi32> mask %in : tensor<1024xi1> other %low : tensor<1024xf32> : !tile.ptr<f32> -> tensor<1024xf32>
    %q = tile.ptr_add %y, %at : !tile.ptr<f32>, i32
    %twice = arith.addf %v, %v : tensor<1024xf32>
    tile.scatter %twice, %q offsets %o : tensor<1024xi32> mask %in : tensor<1024xi1> : tensor<1024xf32>, !tile.ptr<f32>
  } {tile.stages = 4 : i32}
  return
}

// -----
// A loop that writes every step of a state reads boxes as many steps early as few registers hold, unrolled so that these
// need not move; what it gathers asks whether the step exists.
// CHECK-LABEL: func.func @steps
// CHECK-COUNT-8: tile.load %arg0{{.*}} -> tensor<256xf16>
// CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}, %[[A:[^ ]*]] = %{{[^,]*}}, %[[B:[^ ]*]] =
// CHECK: tile.load %arg0
// CHECK: arith.addf %{{.*}}, %[[A]]
// CHECK: tile.store
// CHECK: tile.load %arg0
// CHECK: arith.addf %{{.*}}, %[[B]]
// CHECK-COUNT-7: tile.store
// CHECK: scf.yield
// CHECK: scf.for
func.func @steps(%X: !tile.view<2 x f16>, %Y: !tile.view<2 x f16>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf16>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<256xf16>) : i32 {
    %x = tile.load %X[%t, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<256xf16>
    %next = arith.addf %s, %x : tensor<256xf16>
    tile.store %next, %Y[%t, %c0 : i32, i32] : tensor<256xf16>, !tile.view<2 x f16>
    scf.yield %next : tensor<256xf16>
  }
  return
}

// CHECK-LABEL: func.func @gathered_steps
// CHECK: tile.gather {{.*}} mask
// CHECK: scf.for
// CHECK: %[[LAST:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK: tile.splat %[[LAST]] : i1 -> tensor<128xi1>
// CHECK: tile.gather {{.*}} mask
// CHECK: tile.store
func.func @gathered_steps(%p: !tile.ptr<f32>, %Y: !tile.view<2 x f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %lane = tile.iota : tensor<128xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128xf32>) : i32 {
    %at = tile.ptr_add %p, %t : !tile.ptr<f32>, i32
    %x = tile.gather %at offsets %lane : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %next = arith.addf %s, %x : tensor<128xf32>
    tile.store %next, %Y[%t, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2 x f32>
    scf.yield %next : tensor<128xf32>
  }
  return
}

// What may be written by the loop stays where it is, and so does what a loop that writes nothing reads.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK-NOT: scf.for
func.func @in_place(%X: !tile.view<2 x f16>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf16>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<256xf16>) : i32 {
    %x = tile.load %X[%t, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<256xf16>
    %next = arith.addf %s, %x : tensor<256xf16>
    %u = arith.addi %t, %c1 : i32
    tile.store %next, %X[%u, %c0 : i32, i32] : tensor<256xf16>, !tile.view<2 x f16>
    scf.yield %next : tensor<256xf16>
  }
  return
}

// Boxes that the loop writes where it read them, counting down: no later iteration reads what an earlier one wrote.
// CHECK-LABEL: func.func @in_place_backwards
// CHECK-COUNT-8: tile.load
// CHECK: scf.for
// CHECK: tile.load %arg0
// CHECK: arith.addf
// CHECK: tile.store {{.*}} %arg0
// CHECK-COUNT-7: tile.store
// CHECK: scf.yield
func.func @in_place_backwards(%X: !tile.view<2 x f16>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf16>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %last = arith.subi %n, %c1 : i32
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<256xf16>) : i32 {
    %row = arith.subi %last, %t : i32
    %x = tile.load %X[%row, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<256xf16>
    %next = arith.addf %s, %x : tensor<256xf16>
    tile.store %next, %X[%row, %c0 : i32, i32] : tensor<256xf16>, !tile.view<2 x f16>
    scf.yield %next : tensor<256xf16>
  }
  return
}

// Columns that move on belong to other threads: they would have to wait for each other.
// CHECK-LABEL: func.func @in_place_along_row
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK-NOT: tile.load
// CHECK: return
func.func @in_place_along_row(%X: !tile.view<2 x f16>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<256xf16>
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %r = scf.for %t = %c0 to %n step %c256 iter_args(%s = %zero) -> (tensor<256xf16>) : i32 {
    %x = tile.load %X[%c0, %t : i32, i32] : !tile.view<2 x f16> -> tensor<256xf16>
    %next = arith.addf %s, %x : tensor<256xf16>
    tile.store %next, %X[%c0, %t : i32, i32] : tensor<256xf16>, !tile.view<2 x f16>
    scf.yield %next : tensor<256xf16>
  }
  return
}

// -----
// One element is not copied to shared memory beside the rows that are.
// CHECK-LABEL: func.func @one_element
// CHECK-NOT: tile.load_shared %arg1
// CHECK: tile.load_shared %arg0
// CHECK-NOT: tile.load_shared %arg1
// CHECK: return
func.func @one_element(%X: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %F: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<1x1024xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<1x1024xf32>) : i32 {
    %x = tile.load %X[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<1x1024xf32>
    %f = tile.load %F[%i, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<1x1xf32>
    %b = tile.broadcast %f : tensor<1x1xf32> -> tensor<1x1024xf32>
    %p = arith.mulf %x, %b : tensor<1x1024xf32>
    %next = arith.addf %s, %p : tensor<1x1024xf32>
    scf.yield %next : tensor<1x1024xf32>
  } {tile.stages = 3 : i32}
  %o = tile.iota : tensor<1024xi32>
  %flat = tile.reshape %r : tensor<1x1024xf32> -> tensor<1024xf32>
  tile.scatter %flat, %y offsets %o : tensor<1024xi32> : tensor<1024xf32>, !tile.ptr<f32>
  return
}

// -----

// Who asks for a number of bodies gets that: one, with the loads of one iteration ahead.
// CHECK-LABEL: func.func @one_body
// CHECK-COUNT-1: tile.load
// CHECK-NOT: tile.load
// CHECK: scf.for {{.*}} step %c1_i32
// CHECK-COUNT-1: tile.load
// CHECK-NOT: tile.load
// CHECK: tile.store
// CHECK-NOT: tile.store
// CHECK: return
func.func @one_body(%x: !tile.view<2xf32>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128xf32>) : i32 {
    %v = tile.load %x[%t, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128xf32>
    %next = arith.addf %sum, %v : tensor<128xf32>
    tile.store %next, %y[%t, %c0 : i32, i32] : tensor<128xf32>, !tile.view<2xf32>
    scf.yield %next : tensor<128xf32>
  } {tile.unroll = 1 : i32}
  return
}
