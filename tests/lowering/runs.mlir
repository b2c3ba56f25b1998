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

// -----
// Digits from the last to the first, in front of the end of each line: the k-th lies length - 1 - k behind the begin,
// where k < length. Lines of nobody are empty.
// CHECK-LABEL: func.func @from_the_end
// CHECK: tile.scan
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @from_the_end(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>, %count: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %last = arith.constant -1 : i64
  %all = tile.splat %count : i32 -> tensor<128xi32>
  %is = arith.cmpi slt, %i, %all : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %digits = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %whole = arith.addi %digits, %one : tensor<128xi32>
  %lengths = arith.select %is, %whole, %none : tensor<128xi1>, tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %ofEnds = arith.addi %starts, %digits : tensor<128xi32>
  tile.scatter %n, %p offsets %ofEnds : tensor<128xi32> mask %is : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %q = tile.ptr_add %p, %last : !tile.ptr<i8>, i64
  %some = arith.cmpi ult, %none, %digits : tensor<128xi32>
  %someHere = arith.andi %some, %is : tensor<128xi1>
  tile.scatter %n, %q offsets %ofEnds : tensor<128xi32> mask %someHere : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %begins = arith.extsi %starts : tensor<128xi32> to tensor<128xi64>
  %further = arith.subi %digits, %one : tensor<128xi32>
  %wide = arith.extsi %further : tensor<128xi32> to tensor<128xi64>
  %places = arith.addi %begins, %wide : tensor<128xi64>
  %two = arith.cmpi sgt, %digits, %one : tensor<128xi32>
  %twoHere = arith.andi %two, %is : tensor<128xi1>
  tile.scatter %n, %q offsets %places : tensor<128xi64> mask %twoHere : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}

// -----
// The same without the condition under which there is a line: lengths of the others are 0.
// CHECK-LABEL: func.func @of_nobody
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: tile.scatter
func.func @of_nobody(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>, %count: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %last = arith.constant -1 : i64
  %all = tile.splat %count : i32 -> tensor<128xi32>
  %is = arith.cmpi slt, %i, %all : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %digits = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %whole = arith.addi %digits, %one : tensor<128xi32>
  %lengths = arith.select %is, %whole, %none : tensor<128xi1>, tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %ofEnds = arith.addi %starts, %digits : tensor<128xi32>
  tile.scatter %n, %p offsets %ofEnds : tensor<128xi32> mask %is : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %q = tile.ptr_add %p, %last : !tile.ptr<i8>, i64
  %some = arith.cmpi sgt, %digits, %none : tensor<128xi32>
  tile.scatter %n, %q offsets %ofEnds : tensor<128xi32> mask %some : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}

// -----
// Lengths of any size: their sum may wrap, and runs lie on top of each other.
// CHECK-LABEL: func.func @too_long
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: tile.scatter
func.func @too_long(%l: !tile.ptr<i32>, %p: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %one = arith.constant 1 : i64
  %first = arith.constant dense<1> : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %lengths = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %any = arith.cmpi sgt, %lengths, %none : tensor<128xi32>
  tile.scatter %lengths, %p offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi32>, !tile.ptr<i32>
  %q = tile.ptr_add %p, %one : !tile.ptr<i32>, i64
  %two = arith.cmpi sgt, %lengths, %first : tensor<128xi32>
  tile.scatter %i, %q offsets %starts : tensor<128xi32> mask %two : tensor<128xi1> : tensor<128xi32>, !tile.ptr<i32>
  return
}

// -----
// Numbers of the launch: below the length, but perhaps below 0, where the run before is.
// CHECK-LABEL: func.func @in_front
// CHECK: tile.scatter
// CHECK: tile.barrier
// CHECK: tile.scatter
// CHECK-LABEL: func.func @not_in_front
// CHECK: tile.scan
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @in_front(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %lengths = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %any = arith.cmpi ne, %lengths, %none : tensor<128xi32>
  tile.scatter %n, %p offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %ks = tile.splat %k : i32 -> tensor<128xi32>
  %wide = arith.extsi %ks : tensor<128xi32> to tensor<128xi64>
  %begins = arith.extsi %starts : tensor<128xi32> to tensor<128xi64>
  %places = arith.addi %begins, %wide : tensor<128xi64>
  %below = arith.cmpi slt, %ks, %lengths : tensor<128xi32>
  tile.scatter %n, %p offsets %places : tensor<128xi64> mask %below : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}
func.func @not_in_front(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %lengths = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %any = arith.cmpi ne, %lengths, %none : tensor<128xi32>
  tile.scatter %n, %p offsets %starts : tensor<128xi32> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %ks = tile.splat %k : i32 -> tensor<128xi32>
  %wide = arith.extsi %ks : tensor<128xi32> to tensor<128xi64>
  %begins = arith.extsi %starts : tensor<128xi32> to tensor<128xi64>
  %places = arith.addi %begins, %wide : tensor<128xi64>
  %below = arith.cmpi ult, %ks, %lengths : tensor<128xi32>
  tile.scatter %n, %p offsets %places : tensor<128xi64> mask %below : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}

// -----
// All runs begin %k behind the start, which may be any number: what both have in common does not matter.
// CHECK-LABEL: func.func @begin_anywhere
// CHECK: tile.scan
// CHECK-NOT: tile.barrier
// CHECK: return
func.func @begin_anywhere(%l: !tile.ptr<i8>, %p: !tile.ptr<i8>, %k: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi64>
  %first = arith.constant dense<1> : tensor<128xi32>
  %n = tile.gather %l offsets %i : tensor<128xi32> : !tile.ptr<i8> -> tensor<128xi8>
  %lengths = arith.extui %n : tensor<128xi8> to tensor<128xi32>
  %ends = tile.scan %lengths axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<128xi32>
  %ks = tile.splat %k : i32 -> tensor<128xi32>
  %wide = arith.extsi %ks : tensor<128xi32> to tensor<128xi64>
  %begins = arith.extsi %starts : tensor<128xi32> to tensor<128xi64>
  %places = arith.addi %begins, %wide : tensor<128xi64>
  %any = arith.cmpi sgt, %lengths, %none : tensor<128xi32>
  tile.scatter %n, %p offsets %places : tensor<128xi64> mask %any : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  %behind = arith.addi %places, %one : tensor<128xi64>
  %two = arith.cmpi sgt, %lengths, %first : tensor<128xi32>
  tile.scatter %n, %p offsets %behind : tensor<128xi64> mask %two : tensor<128xi1> : tensor<128xi8>, !tile.ptr<i8>
  return
}
