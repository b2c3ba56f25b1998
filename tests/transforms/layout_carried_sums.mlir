// A state that a loop carries and sums along its rows: few lanes share a row, so that few exchanges sum it, and what
// memory would like to have (sixteen lanes) is a conversion outside the loop at most.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @state
// CHECK: scf.for {{.*}} -> (tensor<32x64xf32, #tile.layout<32x64 regs [1:16*1, 0:4*8] lanes [1:4*16, 0:8*1] warps []>>)
// CHECK-NOT: tile.convert
// CHECK: tile.reduce
// CHECK: scf.yield
func.func @state(%x: !tile.view<2xf32>, %a: !tile.view<2xf32>, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%state = %s) -> (tensor<32x64xf32>) : i32 {
    %k = tile.load %a[%t, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<1x64xf32>
    %row = tile.broadcast %k : tensor<1x64xf32> -> tensor<32x64xf32>
    %p = arith.mulf %state, %row : tensor<32x64xf32>
    %sum = tile.reduce %p axis 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %column = tile.broadcast %sum : tensor<32x1xf32> -> tensor<32x64xf32>
    %q = arith.mulf %column, %row : tensor<32x64xf32>
    %next = arith.addf %state, %q : tensor<32x64xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}

// -----
// Tiles of the loop's own that are read in every iteration have their say: as memory likes it.
// CHECK-LABEL: func.func @read
// CHECK: scf.for {{.*}} -> (tensor<32x64xf32, #tile.layout<32x64 regs [1:4*1, 0:16*2] lanes [1:16*4, 0:2*1] warps []>>)
func.func @read(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<2xf32>, %z: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %r = scf.for %t = %c0 to %n step %c32 iter_args(%state = %zero) -> (tensor<32x64xf32>) : i32 {
    %k = tile.load %x[%t, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
    %next = arith.addf %state, %k : tensor<32x64xf32>
    %sum = tile.reduce %next axis 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %vector = tile.reshape %sum : tensor<32x1xf32> -> tensor<32xf32>
    tile.store %vector, %z[%t : i32] : tensor<32xf32>, !tile.view<1xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}

// -----
// What leaves a pipelined loop is converted where its last copies have landed: there its stages lend their memory.
// CHECK-LABEL: func.func @landed
// CHECK: scf.for
// CHECK: tile.async_wait 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.convert
func.func @landed(%x: !tile.view<2xf32>, %a: !tile.view<2xf32>, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x32xf32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%state = %s) -> (tensor<32x32xf32>) : i32 {
    %k = tile.load %a[%t, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x1xf32>
    %spread = tile.broadcast %k : tensor<32x1xf32> -> tensor<32x32xf32>
    %p = arith.mulf %state, %spread : tensor<32x32xf32>
    %sum = tile.reduce %p axis 0 : (tensor<32x32xf32>) -> tensor<1x32xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %sums = tile.broadcast %sum : tensor<1x32xf32> -> tensor<32x32xf32>
    %q = arith.mulf %sums, %spread : tensor<32x32xf32>
    %next = arith.addf %state, %q : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  tile.async_wait 0
  tile.barrier
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
  return
}

// -----
// Sums of vectors in a row for each group, combined behind the loop: as the vectors are read, with all rows in a thread.
// CHECK-LABEL: func.func @groups
// CHECK: scf.for {{.*}} -> (tensor<6x256xi64, #tile.layout<6x256 regs [1:2*1, 0:6*1] lanes [1:32*2] warps [1:4*64]>>)
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @groups(%x: !tile.view<1xi64> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %g: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<2xi64>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0> : tensor<6x256xi64>
  %i = tile.iota : tensor<6xi32>
  %column = tile.reshape %i : tensor<6xi32> -> tensor<6x1xi32>
  %groups = tile.broadcast %column : tensor<6x1xi32> -> tensor<6x256xi32>
  %r = scf.for %t = %c0 to %n step %c256 iter_args(%sums = %zero) -> (tensor<6x256xi64>) : i32 {
    %a = tile.load %x[%t : i32] : !tile.view<1xi64> -> tensor<256xi64>
    %b = tile.load %g[%t : i32] : !tile.view<1xi32> -> tensor<256xi32>
    %ar = tile.reshape %a : tensor<256xi64> -> tensor<1x256xi64>
    %br = tile.reshape %b : tensor<256xi32> -> tensor<1x256xi32>
    %wide = tile.broadcast %ar : tensor<1x256xi64> -> tensor<6x256xi64>
    %of = tile.broadcast %br : tensor<1x256xi32> -> tensor<6x256xi32>
    %mine = arith.cmpi eq, %of, %groups : tensor<6x256xi32>
    %add = arith.select %mine, %wide, %zero : tensor<6x256xi1>, tensor<6x256xi64>
    %next = arith.addi %sums, %add : tensor<6x256xi64>
    scf.yield %next : tensor<6x256xi64>
  }
  %sum = tile.reduce %r axis 1 : (tensor<6x256xi64>) -> tensor<6x1xi64> {
  ^bb0(%u: i64, %v: i64):
    %w = arith.addi %u, %v : i64
    tile.yield %w : i64
  }
  tile.store %sum, %y[%c0, %c0 : i32, i32] : tensor<6x1xi64>, !tile.view<2xi64>
  return
}

// -----
// The same sums taken along the vectors in every iteration: the matrix lies as the vectors do, and nothing is moved.
// CHECK-LABEL: func.func @summed_groups
// CHECK: scf.for
// CHECK-NOT: tile.convert
// CHECK: tile.reduce {{.*}} axis 0 : (tensor<256x6xi64, #tile.layout<256x6 regs [0:2*1, 1:6*1] lanes [0:32*2] warps [0:4*64]>>)
func.func @summed_groups(%x: !tile.view<1xi64> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %g: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.view<2xi64>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0> : tensor<256x6xi64>
  %none = arith.constant dense<0> : tensor<1x6xi64>
  %i = tile.iota : tensor<6xi32>
  %row = tile.reshape %i : tensor<6xi32> -> tensor<1x6xi32>
  %groups = tile.broadcast %row : tensor<1x6xi32> -> tensor<256x6xi32>
  %r = scf.for %t = %c0 to %n step %c256 iter_args(%sums = %none) -> (tensor<1x6xi64>) : i32 {
    %a = tile.load %x[%t : i32] : !tile.view<1xi64> -> tensor<256xi64>
    %b = tile.load %g[%t : i32] : !tile.view<1xi32> -> tensor<256xi32>
    %ar = tile.reshape %a : tensor<256xi64> -> tensor<256x1xi64>
    %br = tile.reshape %b : tensor<256xi32> -> tensor<256x1xi32>
    %wide = tile.broadcast %ar : tensor<256x1xi64> -> tensor<256x6xi64>
    %of = tile.broadcast %br : tensor<256x1xi32> -> tensor<256x6xi32>
    %mine = arith.cmpi eq, %of, %groups : tensor<256x6xi32>
    %add = arith.select %mine, %wide, %zero : tensor<256x6xi1>, tensor<256x6xi64>
    %sum = tile.reduce %add axis 0 : (tensor<256x6xi64>) -> tensor<1x6xi64> {
    ^bb0(%u: i64, %v: i64):
      %w = arith.addi %u, %v : i64
      tile.yield %w : i64
    }
    %next = arith.addi %sums, %sum : tensor<1x6xi64>
    scf.yield %next : tensor<1x6xi64>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<1x6xi64>, !tile.view<2xi64>
  return
}

// -----
// Which of the sequences go on: their lengths are moved to where rows want to know it, in front of the loop.
// CHECK-LABEL: func.func @lengths
// CHECK: tile.convert {{.*}} : tensor<16xi32
// CHECK: scf.for
// CHECK-NOT: tile.convert
// CHECK: scf.yield
func.func @lengths(%len: !tile.ptr<i32> {tile.align = 16 : i32}, %x: !tile.view<3xf32> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 1, 16, 16>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %who = tile.iota : tensor<16xi32>
  %l = tile.gather %len offsets %who : tensor<16xi32> : !tile.ptr<i32> -> tensor<16xi32>
  %longest = tile.reduce %l axis 0 : (tensor<16xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.maxsi %p, %q : i32
    tile.yield %m : i32
  }
  %end = tile.item %longest : tensor<1xi32> -> i32
  %r = scf.for %t = %c0 to %end step %c1 iter_args(%state = %zero) -> (tensor<16x64xf32>) : i32 {
    %a = tile.load %x[%t, %c0, %c0 : i32, i32, i32] : !tile.view<3xf32> -> tensor<16x64xf32>
    %at = tile.splat %t : i32 -> tensor<16xi32>
    %on = arith.cmpi slt, %at, %l : tensor<16xi32>
    %column = tile.reshape %on : tensor<16xi1> -> tensor<16x1xi1>
    %rows = tile.broadcast %column : tensor<16x1xi1> -> tensor<16x64xi1>
    %s = arith.addf %state, %a : tensor<16x64xf32>
    %next = arith.select %rows, %s, %state : tensor<16x64xi1>, tensor<16x64xf32>
    scf.yield %next : tensor<16x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// -----
// A matrix from in front of the loop that every iteration multiplies and sums along its rows lies as if it were carried.
// CHECK-LABEL: func.func @kept
// CHECK: tile.load %arg0{{.*}} -> tensor<64x64xf32
// CHECK: scf.for
// CHECK: tile.reduce {{.*}} axis 1 : (tensor<64x64xf32, #tile.layout<64x64 regs [1:16*1, 0:2*32] lanes [1:4*16, 0:8*1] warps [0:4*8]>>)
func.func @kept(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<1x64xf32>
  %m = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%v = %one) -> (tensor<1x64xf32>) : i32 {
    %row = tile.broadcast %v : tensor<1x64xf32> -> tensor<64x64xf32>
    %p = arith.mulf %m, %row : tensor<64x64xf32>
    %sum = tile.reduce %p axis 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
    ^bb0(%u: f32, %w: f32):
      %s = arith.addf %u, %w : f32
      tile.yield %s : f32
    }
    %next = tile.trans %sum, [1, 0] : tensor<64x1xf32> -> tensor<1x64xf32>
    scf.yield %next : tensor<1x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<1x64xf32>, !tile.view<2xf32>
  return
}

// -----
// A state that would lie so anyway does so before the rows that come an iteration early have a say.
// CHECK-LABEL: func.func @early_rows
// CHECK: %[[FIRST:.*]] = tile.gather {{.*}} -> tensor<64xf32, #tile.layout<64 regs [0:4*1] lanes [0:16*4, rep:2] warps [rep:4]>>
// CHECK: scf.for
// CHECK-NOT: tile.convert
// CHECK: tile.reduce
func.func @early_rows(%k: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<32xi32>
  %first = tile.gather %k offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
  %z0 = tile.gather %k offsets %j : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
  %r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%state = %zero, %now = %first, %z = %z0) -> (tensor<32x64xf32>, tensor<64xf32>, tensor<32xf32>) : i32 {
    %at = arith.muli %t, %c64 : i32
    %p = tile.ptr_add %k, %at : !tile.ptr<f32>, i32
    %next = tile.gather %p offsets %i : tensor<64xi32> : !tile.ptr<f32> -> tensor<64xf32>
    %row = tile.reshape %now : tensor<64xf32> -> tensor<1x64xf32>
    %all = tile.broadcast %row : tensor<1x64xf32> -> tensor<32x64xf32>
    %z1 = tile.gather %p offsets %j : tensor<32xi32> : !tile.ptr<f32> -> tensor<32xf32>
    %column = tile.reshape %z : tensor<32xf32> -> tensor<32x1xf32>
    %wide = tile.broadcast %column : tensor<32x1xf32> -> tensor<32x64xf32>
    %scaled = arith.mulf %all, %wide : tensor<32x64xf32>
    %all2 = tile.broadcast %row : tensor<1x64xf32> -> tensor<32x64xf32>
    %faded = arith.mulf %state, %all2 : tensor<32x64xf32>
    %s = arith.addf %faded, %scaled : tensor<32x64xf32>
    %all3 = tile.broadcast %row : tensor<1x64xf32> -> tensor<32x64xf32>
    %seen = arith.mulf %s, %all3 : tensor<32x64xf32>
    %sum = tile.reduce %seen axis 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
    ^bb0(%u: f32, %w: f32):
      %both = arith.addf %u, %w : f32
      tile.yield %both : f32
    }
    %line = tile.reshape %sum : tensor<32x1xf32> -> tensor<32xf32>
    %o = tile.ptr_add %y, %at : !tile.ptr<f32>, i32
    tile.scatter %line, %o offsets %j : tensor<32xi32> : tensor<32xf32>, !tile.ptr<f32>
    scf.yield %s, %next, %z1 : tensor<32x64xf32>, tensor<64xf32>, tensor<32xf32>
  }
  return
}

// -----
// A matrix that comes from a product and that a loop of many iterations sums along its columns (a forward substitution)
// lies as the loop likes it: it is converted once.
// CHECK-LABEL: func.func @substitution
// CHECK: tile.mma
// CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #tile.layout<64x64 regs [0:16*1, 1:2*32] lanes [0:4*16, 1:8*1] warps [1:4*8]>>)
// CHECK: scf.yield
func.func @substitution(%a: !tile.smem<64x64xbf16, minor = 1>, %b: !tile.smem<64x64xbf16, minor = 1>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %i = tile.iota : tensor<64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %m = tile.mma m16n8k16_bf16 k 64 warps(4, 1) %a, %b, %zero : !tile.smem<64x64xbf16, minor = 1>, !tile.smem<64x64xbf16, minor = 1> -> tensor<64x64xf32>
  %r = scf.for %t = %c1 to %c64 step %c1 iter_args(%state = %m) -> (tensor<64x64xf32>) : i32 {
    %at = tile.splat %t : i32 -> tensor<64x64xi32>
    %here = arith.cmpi eq, %rows, %at : tensor<64x64xi32>
    %one = arith.select %here, %state, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %row = tile.reduce %one axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %turned = tile.trans %row, [1, 0] : tensor<1x64xf32> -> tensor<64x1xf32>
    %factors = tile.broadcast %turned : tensor<64x1xf32> -> tensor<64x64xf32>
    %p = arith.mulf %factors, %state : tensor<64x64xf32>
    %more = tile.reduce %p axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %sums = tile.broadcast %more : tensor<1x64xf32> -> tensor<64x64xf32>
    %next = arith.select %here, %sums, %state : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----
// The same where the row comes from a table in shared memory: one sum and its product remain, and the warps still have
// columns of their own.
// CHECK-LABEL: func.func @substitution_from_table
// CHECK: tile.mma
// CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #tile.layout<64x64 regs [0:8*1, 1:4*16] lanes [0:8*8, 1:4*1] warps [1:4*4]>>)
// CHECK: scf.yield
func.func @substitution_from_table(%a: !tile.smem<64x64xbf16, minor = 1>, %b: !tile.smem<64x64xbf16, minor = 1>, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %i = tile.iota : tensor<64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %m = tile.mma m16n8k16_bf16 k 64 warps(4, 1) %a, %b, %zero : !tile.smem<64x64xbf16, minor = 1>, !tile.smem<64x64xbf16, minor = 1> -> tensor<64x64xf32>
  %r = scf.for %t = %c1 to %c64 step %c1 iter_args(%state = %m) -> (tensor<64x64xf32>) : i32 {
    %at = tile.splat %t : i32 -> tensor<64x1xi32>
    %is = arith.cmpi eq, %column, %at : tensor<64x1xi32>
    %here = tile.broadcast %is : tensor<64x1xi1> -> tensor<64x64xi1>
    %place = tile.splat %t : i32 -> tensor<1x64xi32>
    %row = tile.take %m, %place axis 0 : tensor<64x64xf32>, tensor<1x64xi32> -> tensor<1x64xf32>
    %turned = tile.trans %row, [1, 0] : tensor<1x64xf32> -> tensor<64x1xf32>
    %factors = tile.broadcast %turned : tensor<64x1xf32> -> tensor<64x64xf32>
    %p = arith.mulf %factors, %state : tensor<64x64xf32>
    %more = tile.reduce %p axis 0 : (tensor<64x64xf32>) -> tensor<1x64xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.yield %w : f32
    }
    %sums = tile.broadcast %more : tensor<1x64xf32> -> tensor<64x64xf32>
    %next = arith.select %here, %sums, %state : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %r, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
