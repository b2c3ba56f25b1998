// What elements write into runs of their own, one behind the other, meets nobody: element i has l[i] places from
// cumsum(l) - l on, and writes the k-th where l[i] > k. Without that condition the places may be a neighbour's.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @runs
// CHECK: tile.scan
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @runs(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %one = arith.constant 1 : i64
  %none = arith.constant dense<0> : tensor<128xi32>
  %first = arith.constant dense<1> : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %lengths = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %any = arith.cmpi sgt, %lengths, %none : tensor<128xi32>
  tile.scatter %n, %p offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %q = tile.ptr_add %p, %one : !tile.ptr<i8>, i64
  %two = arith.cmpi sgt, %lengths, %first : tensor<128xi32>
  tile.scatter %n, %q offsets %starts : tensor<128xi32> mask %two : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}

// -----
// CHECK-LABEL: func.func @too_far
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: tile.scatter
func.func @too_far(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %one = arith.constant 1 : i64
  %none = arith.constant dense<0> : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %lengths = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %any = arith.cmpi sgt, %lengths, %none : tensor<128xi32>
  tile.scatter %n, %p offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %q = tile.ptr_add %p, %one : !tile.ptr<i8>, i64
  tile.scatter %n, %q offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}
