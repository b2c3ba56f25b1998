// Pages of keys in 8-bit floats, which are widened: rows at places that a table says. Where the only bulk copy is one
// that no loop repeats (the query's rows), there are no roles to lose, and where a second program has no registers
// nobody computes while such a row is waited for: it is copied to shared memory, an iteration or more ahead.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_90a | FileCheck %s
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands,tile-fetch-ahead))' --tile-target=sm_89 | FileCheck %s --check-prefix=THREADS

// CHECK-LABEL: func.func @many_pages
// CHECK: scf.for
// CHECK: tile.gather_shared {{.*}} -> <64x128xf8E4M3FN
// CHECK: tile.smem_load
// CHECK: arith.extf
func.func @many_pages(%Q: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %K: !tile.ptr<f8E4M3FN> {tile.align = 16 : i32}, %table: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c16 = arith.constant dense<16> : tensor<64xi32>
  %row = arith.constant dense<128> : tensor<64x128xi32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %q = tile.load %Q[%c0, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
  %i = tile.iota : tensor<64xi32>
  %column = tile.iota : tensor<128xi32>
  %columnRow = tile.reshape %column : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tile.broadcast %columnRow : tensor<1x128xi32> -> tensor<64x128xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %first = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %first, %i : tensor<64xi32>
    %which = arith.divui %at, %c16 : tensor<64xi32>
    %page = tile.gather %table offsets %which : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
    %pageColumn = tile.reshape %page : tensor<64xi32> -> tensor<64x1xi32>
    %pages = tile.broadcast %pageColumn : tensor<64x1xi32> -> tensor<64x128xi32>
    %start = arith.muli %pages, %row : tensor<64x128xi32>
    %places = arith.addi %start, %columns : tensor<64x128xi32>
    %v = tile.gather %K offsets %places : tensor<64x128xi32> : !tile.ptr<f8E4M3FN> -> tensor<64x128xf8E4M3FN>
    %wide = arith.extf %v : tensor<64x128xf8E4M3FN> to tensor<64x128xbf16>
    %d = tile.dot %q, %wide, %acc : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// One page for all rows is a box, of which threads know few addresses. Targets without bulk copies have none to keep.
// CHECK-LABEL: func.func @one_page
// CHECK-NOT: tile.gather_shared
// THREADS-LABEL: func.func @one_page
// THREADS: tile.gather_shared
func.func @one_page(%Q: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %K: !tile.ptr<f8E4M3FN> {tile.align = 16 : i32}, %table: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c64s = arith.constant dense<64> : tensor<64xi32>
  %row = arith.constant dense<128> : tensor<64x128xi32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %q = tile.load %Q[%c0, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128x64xbf16>
  %i = tile.iota : tensor<64xi32>
  %column = tile.iota : tensor<128xi32>
  %columnRow = tile.reshape %column : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tile.broadcast %columnRow : tensor<1x128xi32> -> tensor<64x128xi32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %first = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %first, %i : tensor<64xi32>
    %which = arith.divui %at, %c64s : tensor<64xi32>
    %page = tile.gather %table offsets %which : tensor<64xi32> : !tile.ptr<i32> -> tensor<64xi32>
    %pageColumn = tile.reshape %page : tensor<64xi32> -> tensor<64x1xi32>
    %pages = tile.broadcast %pageColumn : tensor<64x1xi32> -> tensor<64x128xi32>
    %start = arith.muli %pages, %row : tensor<64x128xi32>
    %places = arith.addi %start, %columns : tensor<64x128xi32>
    %v = tile.gather %K offsets %places : tensor<64x128xi32> : !tile.ptr<f8E4M3FN> -> tensor<64x128xf8E4M3FN>
    %wide = arith.extf %v : tensor<64x128xf8E4M3FN> to tensor<64x128xbf16>
    %d = tile.dot %q, %wide, %acc : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<128x128xf32>, !tile.view<2xf32>
  return
}

// -----

// A block of 32 by 64: several programs have registers, and compute while others wait.
// CHECK-LABEL: func.func @small_block
// CHECK-NOT: tile.gather_shared
// THREADS-LABEL: func.func @small_block
// THREADS: tile.gather_shared
func.func @small_block(%Q: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %K: !tile.ptr<f8E4M3FN> {tile.align = 16 : i32}, %table: !tile.ptr<i32> {tile.align = 16 : i32}, %C: !tile.view<2xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %row = arith.constant dense<64> : tensor<32x64xi32>
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %q = tile.load %Q[%c0, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<32x32xbf16>
  %i = tile.iota : tensor<32xi32>
  %column = tile.iota : tensor<64xi32>
  %columnRow = tile.reshape %column : tensor<64xi32> -> tensor<1x64xi32>
  %columns = tile.broadcast %columnRow : tensor<1x64xi32> -> tensor<32x64xi32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<32x64xf32>) : i32 {
    %first = tile.splat %k : i32 -> tensor<32xi32>
    %at = arith.addi %first, %i : tensor<32xi32>
    %page = tile.gather %table offsets %at : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
    %pageColumn = tile.reshape %page : tensor<32xi32> -> tensor<32x1xi32>
    %pages = tile.broadcast %pageColumn : tensor<32x1xi32> -> tensor<32x64xi32>
    %start = arith.muli %pages, %row : tensor<32x64xi32>
    %places = arith.addi %start, %columns : tensor<32x64xi32>
    %v = tile.gather %K offsets %places : tensor<32x64xi32> : !tile.ptr<f8E4M3FN> -> tensor<32x64xf8E4M3FN>
    %wide = arith.extf %v : tensor<32x64xf8E4M3FN> to tensor<32x64xbf16>
    %d = tile.dot %q, %wide, %acc : tensor<32x32xbf16>, tensor<32x64xbf16> -> tensor<32x64xf32>
    scf.yield %d : tensor<32x64xf32>
  }
  tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}
