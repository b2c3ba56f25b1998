// Tiles that a loop cuts and puts together again in every iteration are carried in pieces.
// RUN: tile-opt %s -split-input-file -tile-split-carried -canonicalize | FileCheck %s

// Two products at once: each updates an accumulator of its own, without the dim that counts them.
// CHECK-LABEL: func.func @accumulators(
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[FIRST:.*]] = %{{.*}}, %[[SECOND:.*]] = %{{.*}}) -> (tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK: %[[P:.*]] = tile.dot {{.*}}, %[[FIRST]]
// CHECK: %[[Q:.*]] = tile.dot {{.*}}, %[[SECOND]]
// CHECK-NOT: tile.cat
// CHECK: scf.yield %[[P]], %[[Q]]
// CHECK: tile.cat
func.func @accumulators(%a: tensor<2x16x16xf16>, %b: tensor<2x16x8xf16>, %n: i32) -> tensor<2x16x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x16x8xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<2x16x8xf32>) : i32 {
    %a0 = tile.extract %a [0, 0, 0] : tensor<2x16x16xf16> -> tensor<1x16x16xf16>
    %a1 = tile.extract %a [1, 0, 0] : tensor<2x16x16xf16> -> tensor<1x16x16xf16>
    %b0 = tile.extract %b [0, 0, 0] : tensor<2x16x8xf16> -> tensor<1x16x8xf16>
    %b1 = tile.extract %b [1, 0, 0] : tensor<2x16x8xf16> -> tensor<1x16x8xf16>
    %x0 = tile.reshape %a0 : tensor<1x16x16xf16> -> tensor<16x16xf16>
    %x1 = tile.reshape %a1 : tensor<1x16x16xf16> -> tensor<16x16xf16>
    %y0 = tile.reshape %b0 : tensor<1x16x8xf16> -> tensor<16x8xf16>
    %y1 = tile.reshape %b1 : tensor<1x16x8xf16> -> tensor<16x8xf16>
    %c = tile.extract %acc [0, 0, 0] : tensor<2x16x8xf32> -> tensor<1x16x8xf32>
    %d = tile.extract %acc [1, 0, 0] : tensor<2x16x8xf32> -> tensor<1x16x8xf32>
    %e = tile.reshape %c : tensor<1x16x8xf32> -> tensor<16x8xf32>
    %f = tile.reshape %d : tensor<1x16x8xf32> -> tensor<16x8xf32>
    %p = tile.dot %x0, %y0, %e : tensor<16x16xf16>, tensor<16x8xf16> -> tensor<16x8xf32>
    %q = tile.dot %x1, %y1, %f : tensor<16x16xf16>, tensor<16x8xf16> -> tensor<16x8xf32>
    %s = tile.reshape %p : tensor<16x8xf32> -> tensor<1x16x8xf32>
    %t = tile.reshape %q : tensor<16x8xf32> -> tensor<1x16x8xf32>
    %next = tile.cat %s, %t axis 0 : tensor<1x16x8xf32>, tensor<1x16x8xf32> -> tensor<2x16x8xf32>
    scf.yield %next : tensor<2x16x8xf32>
  }
  return %r : tensor<2x16x8xf32>
}

// -----

// Halves that trade places: what comes round is a piece of the iteration before.
// CHECK-LABEL: func.func @traded(
// CHECK: scf.for {{.*}} iter_args(%[[LOW:.*]] = %{{.*}}, %[[HIGH:.*]] = %{{.*}}) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[SUM:.*]] = arith.addf %[[LOW]], %[[HIGH]]
// CHECK: scf.yield %[[HIGH]], %[[SUM]]
func.func @traded(%x: tensor<16xf32>, %n: i32) -> tensor<16xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<16xf32>) : i32 {
    %low = tile.extract %t [0] : tensor<16xf32> -> tensor<8xf32>
    %high = tile.extract %t [8] : tensor<16xf32> -> tensor<8xf32>
    %sum = arith.addf %low, %high : tensor<8xf32>
    %next = tile.cat %high, %sum axis 0 : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// -----

// The whole is read, or cut elsewhere than it is put together: it stays.
// CHECK-LABEL: func.func @whole(
// CHECK: scf.for {{.*}} -> (tensor<16xf32>, tensor<16xf32>)
func.func @whole(%x: tensor<16xf32>, %n: i32) -> (tensor<16xf32>, tensor<16xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x, %u = %x) -> (tensor<16xf32>, tensor<16xf32>) : i32 {
    %low = tile.extract %t [0] : tensor<16xf32> -> tensor<8xf32>
    %middle = tile.extract %u [4] : tensor<16xf32> -> tensor<8xf32>
    %all = arith.mulf %t, %t : tensor<16xf32>
    %half = tile.extract %all [8] : tensor<16xf32> -> tensor<8xf32>
    %next = tile.cat %half, %low axis 0 : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>
    %other = tile.cat %middle, %low axis 0 : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>
    scf.yield %next, %other : tensor<16xf32>, tensor<16xf32>
  }
  return %r#0, %r#1 : tensor<16xf32>, tensor<16xf32>
}

// -----

// The one matrix of a batch: carried as the product leaves it.
// CHECK-LABEL: func.func @one_matrix(
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<16x8xf32>)
// CHECK-NEXT: %[[P:.*]] = tile.dot {{.*}}, %[[ACC]]
// CHECK-NEXT: scf.yield %[[P]]
// CHECK: tile.reshape %[[LOOP]]
func.func @one_matrix(%a: tensor<16x16xf16>, %b: tensor<16x8xf16>, %n: i32) -> tensor<1x16x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x16x8xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1x16x8xf32>) : i32 {
    %c = tile.reshape %acc : tensor<1x16x8xf32> -> tensor<16x8xf32>
    %p = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x8xf16> -> tensor<16x8xf32>
    %next = tile.reshape %p : tensor<16x8xf32> -> tensor<1x16x8xf32>
    scf.yield %next : tensor<1x16x8xf32>
  }
  return %r : tensor<1x16x8xf32>
}

// -----

// Read as it is, too: left.
// CHECK-LABEL: func.func @read_whole(
// CHECK: scf.for {{.*}} -> (tensor<2x8xf32>)
func.func @read_whole(%x: tensor<2x8xf32>, %n: i32) -> tensor<2x8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<2x8xf32>) : i32 {
    %flat = tile.reshape %t : tensor<2x8xf32> -> tensor<16xf32>
    %whole = tile.reshape %x : tensor<2x8xf32> -> tensor<16xf32>
    %s = arith.addf %flat, %whole : tensor<16xf32>
    %back = tile.reshape %s : tensor<16xf32> -> tensor<2x8xf32>
    %y = arith.addf %back, %t : tensor<2x8xf32>
    %z = tile.reshape %y : tensor<2x8xf32> -> tensor<16xf32>
    %next = tile.reshape %z : tensor<16xf32> -> tensor<2x8xf32>
    scf.yield %next : tensor<2x8xf32>
  }
  return %r : tensor<2x8xf32>
}
