// RUN: tile-opt %s -split-input-file --tile-target=sm_90a --tile-assign-layouts | FileCheck %s
// Elements of which no two are neighbours in memory are read by lanes along the dim in which they lie nearest.

// A weight every 9 numbers along the first dim; how long the rows are, the launch tells.
// CHECK-LABEL: func.func @taps
// CHECK: tile.gather %arg0 offsets {{.*}} -> tensor<32x64xf16, #tile.layout<32x64 regs [1:16*4] lanes [0:32*1] warps [1:4*1]>>
func.func @taps(%w: !tile.ptr<f16>, %y: !tile.view<2 x f16>, %C: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %nine = arith.constant dense<9> : tensor<32x64xi32>
  %c = tile.iota : tensor<32xi32>
  %o = tile.iota : tensor<64xi32>
  %Cs = tile.splat %C : i32 -> tensor<64xi32>
  %oC = arith.muli %o, %Cs : tensor<64xi32>
  %row = tile.reshape %oC : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %column = tile.reshape %c : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %both = arith.addi %rows, %columns : tensor<32x64xi32>
  %at = arith.muli %both, %nine : tensor<32x64xi32>
  %x = tile.gather %w offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<32x64xf16>, !tile.view<2 x f16>
  return
}

// -----

// Rows of another length than a line apart in both dims: the last dim, as always.
// CHECK-LABEL: func.func @far
// CHECK: tile.gather %arg0 offsets {{.*}} -> tensor<32x64xf16, #tile.layout<32x64 regs [1:2*32, 0:8*4] lanes [1:32*1] warps [0:4*1]>>
func.func @far(%w: !tile.ptr<f16>, %y: !tile.view<2 x f16>, %C: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %far = arith.constant dense<100> : tensor<32xi32>
  %c = tile.iota : tensor<32xi32>
  %o = tile.iota : tensor<64xi32>
  %Cs = tile.splat %C : i32 -> tensor<64xi32>
  %oC = arith.muli %o, %Cs : tensor<64xi32>
  %row = tile.reshape %oC : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %step = arith.muli %c, %far : tensor<32xi32>
  %column = tile.reshape %step : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.addi %rows, %columns : tensor<32x64xi32>
  %x = tile.gather %w offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<32x64xf16>, !tile.view<2 x f16>
  return
}
