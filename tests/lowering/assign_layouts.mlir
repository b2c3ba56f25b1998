// Layouts: coalesced for accesses, spread through elementwise work and loops, index tiles computed again instead of moved.
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -verify-diagnostics | FileCheck %s

// A transposed copy: both accesses coalesced, one conversion on the way.
// CHECK-LABEL: func.func @transpose(
// CHECK: tile.load {{.*}} regs [1:4*1, 0:4*8] lanes [1:16*4, 0:2*1] warps [0:4*2]
// CHECK: tile.convert {{.*}} -> tensor<32x64xf32, #tile.layout<32x64 regs [0:4*1, 1:4*16] lanes [0:8*4, 1:4*1] warps [1:4*4]>>
// CHECK-NOT: tile.convert
// CHECK: tile.trans {{.*}} -> tensor<64x32xf32, #tile.layout<64x32 regs [1:4*1, 0:4*16] lanes [1:8*4, 0:4*1] warps [0:4*4]>>
// CHECK-NOT: tile.convert
// CHECK: tile.store
func.func @transpose(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                     %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %t = tile.trans %a, [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>
  tile.store %t, %y[%c0, %c0 : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
  return
}

// -----

// The mask's iota follows the tile it masks, in the loop and after it: no conversion anywhere.
// CHECK-LABEL: func.func @masked_loop(
// CHECK-NOT: tile.convert
// CHECK: return
func.func @masked_loop(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32, %o: !tile.ptr<f32> {tile.align = 16 : i32})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<512xi32>
  %ns = tile.splat %n : i32 -> tensor<512xi32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %step = arith.constant dense<512> : tensor<512xi32>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero, %at = %i) -> (tensor<512xf32>, tensor<512xi32>) : i32 {
    %m = arith.cmpi slt, %at, %ns : tensor<512xi32>
    %v = tile.gather %x offsets %at : tensor<512xi32> mask %m : tensor<512xi1> : !tile.ptr<f32> -> tensor<512xf32>
    %t = arith.addf %s, %v : tensor<512xf32>
    %next = arith.addi %at, %step : tensor<512xi32>
    scf.yield %t, %next : tensor<512xf32>, tensor<512xi32>
  }
  tile.scatter %r#0, %o offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// A tile that no thread could hold is refused at its own line.
func.func @too_large(%x: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @+1 {{each of 128 threads would hold 8192 bytes of a tile of 1048576 bytes; the registers of a thread are 1020 bytes}}
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<512x512xf32>
  tile.store %a, %x[%c0, %c0 : i32, i32] : tensor<512x512xf32>, !tile.view<2xf32>
  return
}

// -----

// A tile cut into blocks of rows, read in 8-byte pieces by whole rows: each thread holds a run of 16 rows, so blocks are
// combined without other lanes. What is not cut keeps the widest access.
// CHECK-LABEL: func.func @blocks_of_rows(
// CHECK: tile.load %arg0{{.*}} regs [1:2*1, 0:16*1] lanes [1:32*2] warps [0:4*16]
// CHECK-NOT: tile.convert
// CHECK: tile.reduce
// CHECK: tile.load %arg0{{.*}} regs [1:4*1, 0:8*8] lanes [1:16*4, 0:2*1] warps [0:4*2]
func.func @blocks_of_rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                          %y: !tile.view<3xf32>, %z: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %blocks = tile.reshape %a : tensor<64x64xf32> -> tensor<32x2x64xf32>
  %r = tile.reduce %blocks axis 1 : (tensor<32x2x64xf32>) -> tensor<32x1x64xf32> {
  ^bb0(%p: f32, %q: f32):
    %m = arith.mulf %p, %q : f32
    tile.yield %m : f32
  }
  tile.store %r, %y[%c0, %c0, %c0 : i32, i32, i32] : tensor<32x1x64xf32>, !tile.view<3xf32>
  %b = tile.load %x[%c64, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<64x64xf32>
  %n = arith.negf %b : tensor<64x64xf32>
  tile.store %n, %z[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A row that everybody needs is loaded as it is needed, not as it is read best and then handed round through shared memory.
// CHECK-LABEL: func.func @row
// CHECK: tile.load %arg0{{.*}} -> tensor<32xf32, #tile.layout<32 regs [0:4*1] lanes [0:8*4, rep:4] warps [rep:4]>>
// CHECK-NOT: tile.convert
// CHECK: return
func.func @row(%r: !tile.view<1xf32>, %x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %row = tile.load %r[%i : i32] : !tile.view<1xf32> -> tensor<32xf32>
  %flat = tile.reshape %row : tensor<32xf32> -> tensor<1x32xf32>
  %wide = tile.broadcast %flat : tensor<1x32xf32> -> tensor<128x32xf32>
  %t = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %s = arith.addf %t, %wide : tensor<128x32xf32>
  tile.store %s, %x[%i, %i : i32, i32] : tensor<128x32xf32>, !tile.view<2xf32>
  return
}

// -----

// Upper halves of widening products, as generators of random numbers have them, are one instruction each: still cheap.
// CHECK-LABEL: func.func @rounds(
// CHECK-NOT: tile.convert
// CHECK: return
func.func @rounds(%x: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>},
                  %y: !tile.view<2xi32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %factor = arith.constant dense<3528531795> : tensor<64xi64>
  %half = arith.constant dense<32> : tensor<64xi64>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %i = tile.iota : tensor<64xi32>
  %x0 = arith.addi %i, %ns : tensor<64xi32>
  %w0 = arith.extui %x0 : tensor<64xi32> to tensor<64xi64>
  %p0 = arith.muli %w0, %factor : tensor<64xi64>
  %s0 = arith.shrui %p0, %half : tensor<64xi64>
  %h0 = arith.trunci %s0 : tensor<64xi64> to tensor<64xi32>
  %x1 = arith.xori %h0, %ns : tensor<64xi32>
  %w1 = arith.extui %x1 : tensor<64xi32> to tensor<64xi64>
  %p1 = arith.muli %w1, %factor : tensor<64xi64>
  %s1 = arith.shrui %p1, %half : tensor<64xi64>
  %h1 = arith.trunci %s1 : tensor<64xi64> to tensor<64xi32>
  %x2 = arith.xori %h1, %ns : tensor<64xi32>
  %w2 = arith.extui %x2 : tensor<64xi32> to tensor<64xi64>
  %p2 = arith.muli %w2, %factor : tensor<64xi64>
  %s2 = arith.shrui %p2, %half : tensor<64xi64>
  %h2 = arith.trunci %s2 : tensor<64xi64> to tensor<64xi32>
  %x3 = arith.xori %h2, %ns : tensor<64xi32>
  %row = tile.reshape %x3 : tensor<64xi32> -> tensor<1x64xi32>
  %words = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi32> -> tensor<32x64xi32>
  %b = arith.addi %a, %words : tensor<32x64xi32>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<32x64xi32>, !tile.view<2xi32>
  return
}

// -----

// Ones are added at places that were loaded: the ones lie where the places do, nothing is exchanged.
// CHECK-LABEL: func.func @counted
// CHECK-NOT: tile.convert
// CHECK: tile.atomic_rmw add
// CHECK-NOT: tile.convert
// CHECK: tile.scatter
// CHECK: return
func.func @counted(%x: !tile.view<1xi64> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>}, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<1024xi32>
  %at = tile.load %x[%c0 : i32] : !tile.view<1xi64> -> tensor<1024xi64>
  %o = tile.atomic_rmw add relaxed gpu %y offsets %at : tensor<1024xi64>, %one : !tile.ptr<i32>, tensor<1024xi32> -> tensor<1024xi32>
  tile.scatter %one, %y offsets %at : tensor<1024xi64> : tensor<1024xi32>, !tile.ptr<i32>
  return
}

// -----

// A loop hands one of its tiles on to another one, which lies differently: converted on the way, neither changes.
// CHECK-LABEL: func.func @handed_on(
// CHECK: scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] =
// CHECK: %[[B:.*]] = tile.convert %[[A]]
// CHECK-NEXT: scf.yield %{{.*}}, %[[B]]
func.func @handed_on(%n: i32, %flag: i1, %in: !tile.ptr<i64>, %out: !tile.ptr<i64>)
    attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<2x128x2xi64>
  %none = arith.constant dense<0.0> : tensor<2x128x2xf64>
  %i = tile.iota {start = 0 : i64} : tensor<512xi32>
  %at = tile.reshape %i : tensor<512xi32> -> tensor<2x128x2xi32>
  %read = tile.gather %in offsets %at : tensor<2x128x2xi32> : !tile.ptr<i64> -> tensor<2x128x2xi64>
  %first:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %read, %b = %zero)
      -> (tensor<2x128x2xi64>, tensor<2x128x2xi64>) : i32 {
    scf.yield %zero, %a : tensor<2x128x2xi64>, tensor<2x128x2xi64>
  }
  %second:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %first#0, %b = %first#1, %x = %none)
      -> (tensor<2x128x2xi64>, tensor<2x128x2xi64>, tensor<2x128x2xf64>) : i32 {
    %y = arith.addf %x, %x : tensor<2x128x2xf64>
    %whole = arith.fptosi %y : tensor<2x128x2xf64> to tensor<2x128x2xi64>
    %next = arith.select %flag, %zero, %whole : tensor<2x128x2xi64>
    %both:2 = scf.if %flag -> (tensor<2x128x2xi64>, tensor<2x128x2xf64>) {
      %byte = arith.trunci %whole : tensor<2x128x2xi64> to tensor<2x128x2xi8>
      %turned = tile.trans %byte, [2, 1, 0] : tensor<2x128x2xi8> -> tensor<2x128x2xi8>
      %wide = arith.uitofp %turned : tensor<2x128x2xi8> to tensor<2x128x2xf64>
      scf.yield %zero, %wide : tensor<2x128x2xi64>, tensor<2x128x2xf64>
    } else {
      %sums = tile.scan %y axis 1 : (tensor<2x128x2xf64>) -> tensor<2x128x2xf64> {
      ^bb0(%p: f64, %q: f64):
        %sum = arith.addf %p, %q : f64
        tile.yield %sum : f64
      }
      %ends = arith.fptosi %sums : tensor<2x128x2xf64> to tensor<2x128x2xi8>
      %long = arith.extui %ends : tensor<2x128x2xi8> to tensor<2x128x2xi64>
      scf.yield %long, %y : tensor<2x128x2xi64>, tensor<2x128x2xf64>
    }
    scf.yield %next, %both#0, %both#1 : tensor<2x128x2xi64>, tensor<2x128x2xi64>, tensor<2x128x2xf64>
  }
  tile.scatter %second#0, %out offsets %at : tensor<2x128x2xi32> : tensor<2x128x2xi64>, !tile.ptr<i64>
  %behind = tile.ptr_add %out, %n : !tile.ptr<i64>, i32
  tile.scatter %second#1, %behind offsets %at : tensor<2x128x2xi32> : tensor<2x128x2xi64>, !tile.ptr<i64>
  return
}
