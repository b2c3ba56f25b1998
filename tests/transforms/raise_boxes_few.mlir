// Of few programs, which wait for what they have on the way, rows of words that eight k share become boxes; of many they
// are read by the threads that multiply them. The kernel notes that its code varies with the grid.
// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s --check-prefixes=ALL,MANY
// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a --tile-few-programs | FileCheck %s --check-prefixes=ALL,FEW

// ALL-LABEL: func.func @words(
// ALL-SAME: tile.varies_with_grid
// MANY: tile.gather %arg0 offsets %{{.*}} : tensor<64x64xi32>
// MANY-NOT: tile.load
// FEW: %[[VIEW:.*]] = tile.make_view %arg0
// FEW: scf.for %[[K:.*]] = %c0_i32
// FEW: %[[ROW:.*]] = arith.divsi %[[K]], %c8_i32
// FEW: %[[WORDS:.*]] = tile.load %[[VIEW]][%[[ROW]], %{{.*}} : i32, i32] : <2xi32> -> tensor<8x64xi32>
// FEW-NOT: tile.gather
// FEW: tile.broadcast %{{.*}} -> tensor<8x8x64xi32>
func.func @words(%w: !tile.ptr<i32> {tile.align = 16 : i32}, %a: tensor<64x64xf16>, %n: i32 {tile.multiple_of = 16 : i32},
                 %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %eight = arith.constant dense<8> : tensor<64x1xi32>
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
    %word = arith.divsi %down, %eight : tensor<64x1xi32>
    %rows = arith.muli %word, %stride : tensor<64x1xi32>
    %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %places = arith.addi %rows2, %across2 : tensor<64x64xi32>
    %q = tile.gather %w offsets %places : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
    %f = arith.sitofp %q : tensor<64x64xi32> to tensor<64x64xf16>
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

// Beside an operand that is no box nothing changes, and nothing stays of what was tried.
// ALL-LABEL: func.func @beside_others(
// ALL-NOT: tile.load
// ALL: tile.gather %arg0 offsets %{{.*}} : tensor<64x64xi32>
// ALL-NOT: tile.broadcast {{.*}}x8x
func.func @beside_others(%w: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<f16>, %list: tensor<64x64xi32>, %n: i32 {tile.multiple_of = 16 : i32},
                 %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %eight = arith.constant dense<8> : tensor<64x1xi32>
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
    %word = arith.divsi %down, %eight : tensor<64x1xi32>
    %rows = arith.muli %word, %stride : tensor<64x1xi32>
    %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %places = arith.addi %rows2, %across2 : tensor<64x64xi32>
    %q = tile.gather %w offsets %places : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
    %a = tile.gather %p offsets %list : tensor<64x64xi32> : !tile.ptr<f16> -> tensor<64x64xf16>
    %f = arith.sitofp %q : tensor<64x64xi32> to tensor<64x64xf16>
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
