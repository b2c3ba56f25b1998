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

// -----

// Places by divisions of a flat index, rows a multiple of 16 long: a thread reads four places that it finds together.
// CHECK-LABEL: func.func @places
// CHECK: tile.gather %arg0 offsets {{.*}} -> tensor<1024xf16, #tile.layout<1024 regs [0:4*1, 0:2*512] lanes [0:32*4] warps [0:4*128]>>
// CHECK-NOT: tile.convert
// CHECK: tile.scatter
func.func @places(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.ptr<f16> {tile.align = 16 : i32}, %W: i32 {tile.multiple_of = 16 : i32}, %H: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<1024xi32>
  %Ws = tile.splat %W : i32 -> tensor<1024xi32>
  %Hs = tile.splat %H : i32 -> tensor<1024xi32>
  %steps = tile.splat %step : i32 -> tensor<1024xi32>
  %column = arith.remsi %i, %Ws : tensor<1024xi32>
  %rows = arith.divsi %i, %Ws : tensor<1024xi32>
  %row = arith.remsi %rows, %Hs : tensor<1024xi32>
  %plane = arith.divsi %rows, %Hs : tensor<1024xi32>
  %a = arith.muli %column, %steps : tensor<1024xi32>
  %b = arith.addi %a, %row : tensor<1024xi32>
  %at = arith.addi %b, %plane : tensor<1024xi32>
  %v = tile.gather %x offsets %at : tensor<1024xi32> : !tile.ptr<f16> -> tensor<1024xf16>
  tile.scatter %v, %y offsets %i : tensor<1024xi32> : tensor<1024xf16>, !tile.ptr<f16>
  return
}

// -----

// Neighbours in memory that nothing aligns (a picture moved by a few columns) cannot be read together either: a thread
// reads places that it finds together.
// CHECK-LABEL: func.func @moved
// CHECK: tile.gather %arg0 offsets {{.*}} -> tensor<1024xf16, #tile.layout<1024 regs [0:4*1, 0:2*512] lanes [0:32*4] warps [0:4*128]>>
// CHECK-NOT: tile.convert
// CHECK: tile.scatter
func.func @moved(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.ptr<f16> {tile.align = 16 : i32}, %W: i32 {tile.multiple_of = 16 : i32}, %H: i32, %by: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<1024xi32>
  %Ws = tile.splat %W : i32 -> tensor<1024xi32>
  %Hs = tile.splat %H : i32 -> tensor<1024xi32>
  %bys = tile.splat %by : i32 -> tensor<1024xi32>
  %column = arith.remsi %i, %Ws : tensor<1024xi32>
  %rows = arith.divsi %i, %Ws : tensor<1024xi32>
  %row = arith.remsi %rows, %Hs : tensor<1024xi32>
  %plane = arith.divsi %rows, %Hs : tensor<1024xi32>
  %a = arith.addi %column, %bys : tensor<1024xi32>
  %b = arith.addi %a, %row : tensor<1024xi32>
  %at = arith.addi %b, %plane : tensor<1024xi32>
  %v = tile.gather %x offsets %at : tensor<1024xi32> : !tile.ptr<f16> -> tensor<1024xf16>
  tile.scatter %v, %y offsets %i : tensor<1024xi32> : tensor<1024xf16>, !tile.ptr<f16>
  return
}

// -----

// Offsets that a loop made, which carries a vector beside them: no dim of the vector is one of theirs.
// CHECK-LABEL: func.func @made_in_a_loop
// CHECK: tile.gather %arg0
func.func @made_in_a_loop(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.view<2 x f16>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %vector = tile.splat %n : i32 -> tensor<32xi32>
  %start = arith.constant dense<0> : tensor<32x64xi32>
  %made:2 = scf.for %k = %c0 to %n step %c1 iter_args(%v = %vector, %a = %start) -> (tensor<32xi32>, tensor<32x64xi32>) : i32 {
    %w = arith.addi %v, %v : tensor<32xi32>
    %column = tile.reshape %w : tensor<32xi32> -> tensor<32x1xi32>
    %more = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
    %b = arith.addi %a, %more : tensor<32x64xi32>
    scf.yield %w, %b : tensor<32xi32>, tensor<32x64xi32>
  }
  %nine = arith.constant dense<9> : tensor<64xi32>
  %i = tile.iota : tensor<64xi32>
  %i9 = arith.muli %i, %nine : tensor<64xi32>
  %row = tile.reshape %i9 : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %at = arith.addi %made#1, %rows : tensor<32x64xi32>
  %v = tile.gather %x offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  tile.store %v, %y[%c0, %c0 : i32, i32] : tensor<32x64xf16>, !tile.view<2 x f16>
  return
}

// -----

// Strides that the launch tells: rows of which each has a sector for itself are nobody's neighbours, numbers along the
// other dim may be (a weight every 9 numbers again).
// CHECK-LABEL: func.func @launched
// CHECK: tile.gather %arg0 offsets {{.*}} -> tensor<32x64xf16, #tile.layout<32x64 regs [1:16*4] lanes [0:32*1] warps [1:4*1]>>
func.func @launched(%w: !tile.ptr<f16>, %y: !tile.view<2 x f16>, %row: i32 {tile.multiple_of = 16 : i32}, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c = tile.iota : tensor<32xi32>
  %o = tile.iota : tensor<64xi32>
  %steps = tile.splat %step : i32 -> tensor<32xi32>
  %far = tile.splat %row : i32 -> tensor<64xi32>
  %cs = arith.muli %c, %steps : tensor<32xi32>
  %os = arith.muli %far, %o : tensor<64xi32>
  %o2 = tile.reshape %os : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %o2 : tensor<1x64xi32> -> tensor<32x64xi32>
  %c2 = tile.reshape %cs : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.broadcast %c2 : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.addi %rows, %columns : tensor<32x64xi32>
  %x = tile.gather %w offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<32x64xf16>, !tile.view<2 x f16>
  return
}

// -----

// Rows of 8 numbers may share sectors: the last dim, as always.
// CHECK-LABEL: func.func @both_may
// CHECK: tile.gather %arg0 offsets {{.*}} lanes [1:32*1] warps [0:4*1]>>
func.func @both_may(%w: !tile.ptr<f16>, %y: !tile.view<2 x f16>, %row: i32 {tile.multiple_of = 8 : i32}, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c = tile.iota : tensor<32xi32>
  %o = tile.iota : tensor<64xi32>
  %steps = tile.splat %step : i32 -> tensor<32xi32>
  %near = tile.splat %row : i32 -> tensor<64xi32>
  %cs = arith.muli %c, %steps : tensor<32xi32>
  %os = arith.muli %near, %o : tensor<64xi32>
  %o2 = tile.reshape %os : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %o2 : tensor<1x64xi32> -> tensor<32x64xi32>
  %c2 = tile.reshape %cs : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.broadcast %c2 : tensor<32x1xi32> -> tensor<32x64xi32>
  %at = arith.addi %rows, %columns : tensor<32x64xi32>
  %x = tile.gather %w offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<32x64xf16>, !tile.view<2 x f16>
  return
}
