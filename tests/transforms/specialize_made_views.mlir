// Views made in the kernel: their tensor maps are written by the producer, where the view is made.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-specialize,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s

// One of a list of matrices; rows of both by their number of columns, which is a dim of each: where it is not positive,
// there is nothing to read. The other stride is an argument.
// CHECK-LABEL: func.func @matrices
// CHECK: %[[MEMORY:.*]] = tile.smem_alloc : <1x128xi8, minor = 1>
// CHECK: producer {
// CHECK: %[[A:.*]] = tile.make_view
// CHECK-NEXT: tile.tma_describe %[[A]] in %[[MEMORY]] : <2xf16>, <1x128xi8, minor = 1>
// CHECK: %[[B:.*]] = tile.make_view
// CHECK-NEXT: tile.tma_describe %[[B]] in %[[MEMORY]]
// CHECK: scf.for
// CHECK-NEXT: tile.ring_reserve
// CHECK: tile.tma_load %[[A]]
// CHECK: tile.tma_load %[[B]]
// CHECK: } consumer {
// CHECK-NOT: tile.tma_describe
func.func @matrices(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %list: !tile.ptr<i32>, %c: !tile.view<2xf32>, %n: i32, %ld: i32 {tile.multiple_of = 16 : i32}) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %id = tile.program_id 0
  %lp = tile.ptr_add %list, %id : !tile.ptr<i32>, i32
  %which = tile.gather %lp : !tile.ptr<i32> -> i32
  %at = arith.muli %which, %c64 : i32
  %columns = arith.extsi %at : i32 to i64
  %q = tile.ptr_add %p, %at : !tile.ptr<f16>, i32
  %lds = arith.extsi %ld : i32 to i64
  %v = tile.make_view %q, dims(%rows, %columns), strides(%columns, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %w = tile.make_view %q, dims(%columns, %rows), strides(%lds, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %w[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Matrices that addresses in a table point to, and results that those in another table do: other memory, as other
// arguments are.
// CHECK-LABEL: func.func @tables
// CHECK: producer {
// CHECK: tile.int_to_ptr
// CHECK: tile.tma_describe
// CHECK: tile.tma_load
func.func @tables(%as: !tile.ptr<i64>, %cs: !tile.ptr<i64>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %groups: i32, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %g = %c0 to %groups step %c1 : i32 {
    %ap = tile.ptr_add %as, %g : !tile.ptr<i64>, i32
    %aa = tile.gather %ap : !tile.ptr<i64> -> i64
    %aligned = tile.assume %aa multiple_of 16 : i64
    %a = tile.int_to_ptr %aligned : !tile.ptr<f16>
    %v = tile.make_view %a, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %cp = tile.ptr_add %cs, %g : !tile.ptr<i64>, i32
    %ca = tile.gather %cp : !tile.ptr<i64> -> i64
    %c = tile.int_to_ptr %ca : !tile.ptr<f32>
    %w = tile.make_view %c, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f32> -> !tile.view<2xf32>
    tile.store %r, %w[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  }
  return
}

// -----

// Rows of packed numbers: half of an argument that is a multiple of 128, and that with another argument behind it. Both
// are above 0 where the launch finds the arguments above 0.
// CHECK-LABEL: func.func @packed
// CHECK: producer {
// CHECK: tile.tma_describe
// CHECK: tile.tma_describe
// CHECK: tile.tma_load
// CHECK: tile.tma_load
func.func @packed(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %c: !tile.view<2xf32>, %n: i32, %k2: i32 {tile.multiple_of = 128 : i32}, %pad: i32 {tile.multiple_of = 16 : i32}) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %half = arith.divsi %k2, %c2 : i32
  %more = arith.addi %half, %pad : i32
  %halves = arith.extsi %half : i32 to i64
  %padded = arith.extsi %more : i32 to i64
  %v = tile.make_view %p, dims(%rows, %rows), strides(%halves, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %w = tile.make_view %p, dims(%rows, %rows), strides(%padded, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %w[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A number from memory that is at least 1, and promised to be a multiple.
// CHECK-LABEL: func.func @promised
// CHECK: producer {
// CHECK: tile.tma_describe
// CHECK: tile.tma_load
func.func @promised(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %list: !tile.ptr<i32>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %read = tile.gather %list : !tile.ptr<i32> -> i32
  %some = arith.maxsi %read, %c1 : i32
  %steps = tile.assume %some multiple_of 16 : i32
  %ld = arith.extsi %steps : i32 to i64
  %v = tile.make_view %p, dims(%rows, %rows), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A stride from memory that is promised to be positive.
// CHECK-LABEL: func.func @stride_promised(
// CHECK: %[[VIEW:.*]] = tile.make_view
// CHECK: tile.tma_load %[[VIEW]]
func.func @stride_promised(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %list: !tile.ptr<i32>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %read = tile.gather %list : !tile.ptr<i32> -> i32
  %positive = tile.assume %read multiple_of 1 from 1 to 2147483647 : i32
  %steps = arith.muli %positive, %c64 : i32
  %ld = arith.extsi %steps : i32 to i64
  %v = tile.make_view %p, dims(%rows, %rows), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}
