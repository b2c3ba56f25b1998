// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-narrow-gathers,tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Rows of bytes that two k share, `(k + arange) / 2` of columns that wrap around: every row once, as a box.

// CHECK-LABEL: func.func @bytes(
// CHECK: %[[VIEW:.*]] = tile.make_view %arg0
// CHECK: scf.for %[[K:.*]] = %c0_i32
// CHECK: %[[ROW:.*]] = arith.divsi %[[K]], %c2_i32
// CHECK: %[[BYTES:.*]] = tile.load %[[VIEW]][%[[ROW]], %{{.*}} : i32, i32] : <2xi8> -> tensor<32x64xi8>
// CHECK-NOT: tile.gather
// CHECK: tile.reshape %[[BYTES]] : tensor<32x64xi8> -> tensor<32x1x64xi8>
// CHECK: tile.broadcast %{{.*}} -> tensor<32x2x64xi8>
func.func @bytes(%w: !tile.ptr<i8> {tile.align = 16 : i32}, %a: tensor<64x64xf16>, %n: i32 {tile.multiple_of = 16 : i32},
                 %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %two = arith.constant dense<2> : tensor<64x1xi32>
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c64 : i32
  %i = tile.iota : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %firsts = tile.splat %first : i32 -> tensor<64xi32>
  %columns = arith.addi %firsts, %i : tensor<64xi32>
  %around = arith.remsi %columns, %ns : tensor<64xi32>
  %across = tile.reshape %around : tensor<64xi32> -> tensor<1x64xi32>
  %across2 = tile.broadcast %across : tensor<1x64xi32> -> tensor<64x64xi32>
  %stride = tile.splat %n : i32 -> tensor<64x1xi32>
  %sum = scf.for %at = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %ats = tile.splat %at : i32 -> tensor<64xi32>
    %ks = arith.addi %ats, %i : tensor<64xi32>
    %down = tile.reshape %ks : tensor<64xi32> -> tensor<64x1xi32>
    %byte = arith.divsi %down, %two : tensor<64x1xi32>
    %rows = arith.muli %byte, %stride : tensor<64x1xi32>
    %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %places = arith.addi %rows2, %across2 : tensor<64x64xi32>
    %q = tile.gather %w offsets %places : tensor<64x64xi32> : !tile.ptr<i8> -> tensor<64x64xi8>
    %f = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf16>
    %d = tile.dot %a, %f, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %to = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %ys = tile.broadcast %to : tensor<1x64xi32> -> tensor<64x64xi32>
  %bound = tile.splat %n : i32 -> tensor<1x64xi32>
  %inside = arith.cmpi slt, %to, %bound : tensor<1x64xi32>
  %inside2 = tile.broadcast %inside : tensor<1x64xi1> -> tensor<64x64xi1>
  tile.scatter %sum, %y offsets %ys : tensor<64x64xi32> mask %inside2 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Where columns past the end are stored they are others: all bytes are gathered.
// CHECK-LABEL: func.func @stored_past_the_end(
// CHECK-NOT: tile.load
// CHECK: tile.gather %arg0 offsets %{{.*}} : tensor<32x64xi32>
func.func @stored_past_the_end(%w: !tile.ptr<i8> {tile.align = 16 : i32}, %a: tensor<64x64xf16>,
                               %n: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 16 : i32},
                               %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %two = arith.constant dense<2> : tensor<64x1xi32>
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c64 : i32
  %i = tile.iota : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %firsts = tile.splat %first : i32 -> tensor<64xi32>
  %columns = arith.addi %firsts, %i : tensor<64xi32>
  %around = arith.remsi %columns, %ns : tensor<64xi32>
  %across = tile.reshape %around : tensor<64xi32> -> tensor<1x64xi32>
  %across2 = tile.broadcast %across : tensor<1x64xi32> -> tensor<64x64xi32>
  %stride = tile.splat %n : i32 -> tensor<64x1xi32>
  %sum = scf.for %at = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %ats = tile.splat %at : i32 -> tensor<64xi32>
    %ks = arith.addi %ats, %i : tensor<64xi32>
    %down = tile.reshape %ks : tensor<64xi32> -> tensor<64x1xi32>
    %byte = arith.divsi %down, %two : tensor<64x1xi32>
    %rows = arith.muli %byte, %stride : tensor<64x1xi32>
    %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %places = arith.addi %rows2, %across2 : tensor<64x64xi32>
    %q = tile.gather %w offsets %places : tensor<64x64xi32> : !tile.ptr<i8> -> tensor<64x64xi8>
    %f = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf16>
    %d = tile.dot %a, %f, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %to = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %ys = tile.broadcast %to : tensor<1x64xi32> -> tensor<64x64xi32>
  tile.scatter %sum, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}
