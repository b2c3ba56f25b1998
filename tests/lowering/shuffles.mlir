// Elements that stay inside a warp travel by shuffles: takes of known indices, and halves of a tile that lie in different
// lanes. No barrier, no shared memory.
// RUN: split-file %s %t
// RUN: tilec compile %t/take.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=TAKE
// RUN: tilec compile %t/shift.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=SHIFT
// RUN: tilec compile %t/across.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=ACROSS
// RUN: tilec compile %t/turn.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=TURN
// RUN: tilec compile %t/first.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=FIRST
// RUN: tilec compile %t/runs.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=RUNS
// RUN: tilec compile %t/halves.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=HALVES

// Four neighbours per thread: i ^ 2 renames, i ^ 8 asks the lane two further on, once per register.
// TAKE-NOT: {{bar.sync|st.shared}}
// TAKE-COUNT-4: shfl.sync.bfly.b32 {{.*}}, 2, 31, -1;
// TAKE-NOT: {{bar.sync|st.shared|shfl}}
// TAKE: ret;

// Shifted by one: of the four neighbours of a thread one comes from the lane before, in both halves of the tile.
// SHIFT-NOT: {{bar.sync|st.shared}}
// SHIFT-COUNT-2: shfl.sync.idx.b32
// SHIFT-NOT: {{bar.sync|st.shared|shfl}}
// SHIFT: ret;

// Another warp's elements: shared memory.
// ACROSS: st.shared
// ACROSS: bar.sync
// ACROSS: ret;

// Rows of four lanes that pass elements on in turns, or all take the first: one shuffle, from a lane that each computes.
// TURN-NOT: {{bar.sync|st.shared|selp}}
// TURN: shfl.sync.idx.b32
// TURN-NOT: {{bar.sync|st.shared|shfl|selp}}
// TURN: ret;
// FIRST-NOT: {{bar.sync|st.shared|selp}}
// FIRST: shfl.sync.idx.b32
// FIRST-NOT: {{bar.sync|st.shared|shfl|selp}}
// FIRST: ret;

// Where threads have runs of neighbours, shared memory gives them four at a time.
// RUNS-NOT: shfl
// RUNS: st.shared.v4
// RUNS: ld.shared.v4
// RUNS-NOT: {{ld.shared|shfl}}
// RUNS: ret;

// Lanes trade two of their four registers; both halves come out of that.
// HALVES-NOT: {{bar.sync|st.shared}}
// HALVES-COUNT-2: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// HALVES-NOT: {{bar.sync|st.shared|shfl}}
// HALVES: ret;

//--- shift.mlir
func.func @shift(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>})
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<256xf32>
  %i = tile.iota : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %before = arith.subi %i, %one : tensor<256xi32>
  %inside = arith.maxsi %before, %zero : tensor<256xi32>
  %b = tile.take %a, %inside axis 0 : tensor<256xf32>, tensor<256xi32> -> tensor<256xf32>
  tile.store %b, %x[%c0 : i32] : tensor<256xf32>, !tile.view<1xf32>
  return
}

//--- turn.mlir
func.func @turn(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %t = tile.iota : tensor<4xi32>
  %i = tile.iota : tensor<8xi32>
  %four = arith.constant dense<4> : tensor<8x4xi32>
  %row = tile.reshape %t : tensor<4xi32> -> tensor<1x4xi32>
  %columns = tile.broadcast %row : tensor<1x4xi32> -> tensor<8x4xi32>
  %column = tile.reshape %i : tensor<8xi32> -> tensor<8x1xi32>
  %rows = tile.broadcast %column : tensor<8x1xi32> -> tensor<8x4xi32>
  %starts = arith.muli %rows, %four : tensor<8x4xi32>
  %places = arith.addi %starts, %columns : tensor<8x4xi32>
  %a = tile.gather %x offsets %places : tensor<8x4xi32> : !tile.ptr<i32> -> tensor<8x4xi32>
  %one = arith.constant dense<1> : tensor<8x4xi32>
  %next = arith.addi %columns, %one : tensor<8x4xi32>
  %which = arith.remsi %next, %four : tensor<8x4xi32>
  %b = tile.take %a, %which axis 1 : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>
  tile.scatter %b, %y offsets %places : tensor<8x4xi32> : tensor<8x4xi32>, !tile.ptr<i32>
  return
}

//--- first.mlir
func.func @first(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %t = tile.iota : tensor<4xi32>
  %i = tile.iota : tensor<8xi32>
  %four = arith.constant dense<4> : tensor<8x4xi32>
  %row = tile.reshape %t : tensor<4xi32> -> tensor<1x4xi32>
  %columns = tile.broadcast %row : tensor<1x4xi32> -> tensor<8x4xi32>
  %column = tile.reshape %i : tensor<8xi32> -> tensor<8x1xi32>
  %rows = tile.broadcast %column : tensor<8x1xi32> -> tensor<8x4xi32>
  %starts = arith.muli %rows, %four : tensor<8x4xi32>
  %places = arith.addi %starts, %columns : tensor<8x4xi32>
  %a = tile.gather %x offsets %places : tensor<8x4xi32> : !tile.ptr<i32> -> tensor<8x4xi32>
  %which = arith.constant dense<0> : tensor<8x4xi32>
  %b = tile.take %a, %which axis 1 : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>
  tile.scatter %b, %y offsets %places : tensor<8x4xi32> : tensor<8x4xi32>, !tile.ptr<i32>
  return
}

//--- runs.mlir
func.func @runs(%x: !tile.view<3xf32> {tile.align = 16 : i32, tile.unit_stride = 2 : i32, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.dim_multiple_of = array<i32: 16, 16, 16>})
    attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %which = arith.constant dense<2> : tensor<8x1x4xi32>
  %a = tile.load %x[%c0, %c0, %c0 : i32, i32, i32] : !tile.view<3xf32> -> tensor<8x4x4xf32>
  %b = tile.take %a, %which axis 1 : tensor<8x4x4xf32>, tensor<8x1x4xi32> -> tensor<8x1x4xf32>
  %c = tile.broadcast %b : tensor<8x1x4xf32> -> tensor<8x4x4xf32>
  tile.store %c, %x[%c0, %c0, %c0 : i32, i32, i32] : tensor<8x4x4xf32>, !tile.view<3xf32>
  return
}

//--- take.mlir
func.func @take(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  %two = arith.constant dense<2> : tensor<512xi32>
  %eight = arith.constant dense<8> : tensor<512xi32>
  %near = arith.xori %i, %two : tensor<512xi32>
  %far = arith.xori %i, %eight : tensor<512xi32>
  %b = tile.take %a, %near axis 0 : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  %c = tile.take %b, %far axis 0 : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  tile.store %c, %x[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

//--- across.mlir
func.func @across(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  %half = arith.constant dense<256> : tensor<512xi32>
  %far = arith.xori %i, %half : tensor<512xi32>
  %c = tile.take %a, %far axis 0 : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  tile.store %c, %x[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

//--- halves.mlir
func.func @halves(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<4x128xf32>
  %b = arith.mulf %a, %a : tensor<4x128xf32>
  %low = tile.extract %b [0, 0] : tensor<4x128xf32> -> tensor<4x64xf32>
  %high = tile.extract %b [0, 64] : tensor<4x128xf32> -> tensor<4x64xf32>
  %s = arith.addf %low, %high : tensor<4x64xf32>
  tile.store %s, %y[%c0, %c0 : i32, i32] : tensor<4x64xf32>, !tile.view<2xf32>
  return
}
