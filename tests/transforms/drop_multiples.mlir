// Remainders by a power of two forget the multiples of it that were added.
// RUN: tile-opt %s --tile-drop-multiples | FileCheck %s

// Places in groups of 16, in a loop over blocks of 128: the same in every iteration.
// CHECK-LABEL: func.func @groups
// CHECK: %[[LANE:.*]] = tile.iota : tensor<128xi32>
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = tile.reshape %[[LANE]]
// CHECK: arith.remsi %[[ROW]],
func.func @groups(%y: !tile.view<2xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %sixteen = arith.constant dense<16> : tensor<1x128xi32>
  %lane = tile.iota : tensor<128xi32>
  scf.for %k = %c0 to %n step %c128 : i32 {
    %start = tile.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %start, %lane : tensor<128xi32>
    %row = tile.reshape %at : tensor<128xi32> -> tensor<1x128xi32>
    %place = arith.remsi %row, %sixteen : tensor<1x128xi32>
    tile.store %place, %y[%c0, %k : i32, i32] : tensor<1x128xi32>, !tile.view<2xi32>
  }
  return
}

// What may be negative keeps its sign, and so does what is left of it.
// CHECK-LABEL: func.func @signs
// CHECK: %[[X:.*]] = arith.addi %arg1, %{{.*}} : i32
// CHECK: arith.remsi %[[X]],
// CHECK: %[[Z:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: arith.remsi %[[Z]],
func.func @signs(%y: !tile.view<1xi32>, %n: i32, %m: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c16 = arith.constant 16 : i32
  %x = arith.addi %n, %c16 : i32
  %a = arith.remsi %x, %c16 : i32
  %low = arith.andi %m, %c7 : i32
  %less = arith.subi %low, %c7 : i32
  %z = arith.addi %less, %c16 : i32
  %b = arith.remsi %z, %c16 : i32
  tile.store %a, %y[%c0 : i32] : i32, !tile.view<1xi32>
  tile.store %b, %y[%c1 : i32] : i32, !tile.view<1xi32>
  return
}

// What is left of two numbers that are small may be larger than they are: 64 .. 95 of 0 .. 63, twice more than 127.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[A:.*]] = arith.addi %{{.*}}, %{{.*}} : i8
// CHECK-NEXT: %[[B:.*]] = arith.addi %{{.*}}, %{{.*}} : i8
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[A]], %[[B]] : i8
// CHECK-NEXT: arith.remsi %[[SUM]],
func.func @narrow(%y: !tile.view<1xi8>, %n: i8, %m: i8) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i8
  %c32 = arith.constant 32 : i8
  %c64 = arith.constant 64 : i8
  %c95 = arith.constant 95 : i8
  %above_n = arith.maxsi %n, %c64 : i8
  %above_m = arith.maxsi %m, %c64 : i8
  %from_n = arith.minsi %above_n, %c95 : i8
  %from_m = arith.minsi %above_m, %c95 : i8
  %bit_n = arith.andi %n, %c32 : i8
  %bit_m = arith.andi %m, %c32 : i8
  %less_n = arith.subi %bit_n, %c64 : i8
  %less_m = arith.subi %bit_m, %c64 : i8
  %a = arith.addi %less_n, %from_n : i8
  %b = arith.addi %less_m, %from_m : i8
  %x = arith.addi %a, %b : i8
  %r = arith.remsi %x, %c16 : i8
  tile.store %r, %y[%c0 : i32] : i8, !tile.view<1xi8>
  return
}
