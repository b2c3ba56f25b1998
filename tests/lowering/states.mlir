// States that a loop updates with vectors it loads, in memory in front of the loop and behind it.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=llvm -o /dev/null | FileCheck %s --check-prefix=LLVM

// Neighbouring rows in a thread: it reads runs of the vector that has an element for each row.
// CHECK-LABEL: @rows(
// CHECK: tile.load %arg0{{.*}} tensor<128x32xf32, #tile.layout<128x32 regs [1:4*1, 0:8*1] lanes [1:8*4, 0:4*8] warps [0:4*32]>>
// CHECK: scf.for
// CHECK: tile.load %arg1{{.*}} tensor<128xbf16, #tile.layout<128 regs [0:8*1] lanes [rep:8, 0:4*8] warps [0:4*32]>>
// CHECK-NOT: tile.convert

// Their addresses do not lie in registers meanwhile, and the sixteen rows of a group are inside or outside together: one
// comparison for the eight of a thread.
// LLVM-LABEL: @rows(
// LLVM: icmp ult
// LLVM: ld.global.v4.b32
// LLVM-NOT: icmp ult
// LLVM-COUNT-7: ld.global.v4.b32
// LLVM: = phi
// LLVM: %[[HERE:[0-9]+]] = call i64 asm sideeffect "mov.b64 $0, $1;", "=l,l"(i64
// LLVM-NEXT: inttoptr i64 %[[HERE]] to ptr addrspace(1)
// LLVM-COUNT-8: st.global.v4.b32
func.func @rows(%state: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %k: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = tile.load %state[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%s = %s0) -> (tensor<128x32xf32>) : i32 {
    %v = tile.load %k[%t, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128xbf16>
    %f = arith.extf %v : tensor<128xbf16> to tensor<128xf32>
    %c = tile.reshape %f : tensor<128xf32> -> tensor<128x1xf32>
    %b = tile.broadcast %c : tensor<128x1xf32> -> tensor<128x32xf32>
    %next = arith.mulf %s, %b : tensor<128x32xf32>
    scf.yield %next : tensor<128x32xf32>
  }
  tile.store %last, %state[%c0, %c0 : i32, i32] : tensor<128x32xf32>, !tile.view<2xf32>
  return
}

// -----
// Where nothing says that the number of rows is a multiple of eight, each row is asked about.
// LLVM-LABEL: @rows_apart(
// LLVM-COUNT-9: icmp ult
// LLVM: = phi
func.func @rows_apart(%state: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %k: !tile.view<2xbf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 1, 16>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s0 = tile.load %state[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<128x32xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%s = %s0) -> (tensor<128x32xf32>) : i32 {
    %v = tile.load %k[%t, %c0 : i32, i32] : !tile.view<2xbf16> -> tensor<128xbf16>
    %f = arith.extf %v : tensor<128xbf16> to tensor<128xf32>
    %c = tile.reshape %f : tensor<128xf32> -> tensor<128x1xf32>
    %b = tile.broadcast %c : tensor<128x1xf32> -> tensor<128x32xf32>
    %next = arith.mulf %s, %b : tensor<128x32xf32>
    scf.yield %next : tensor<128x32xf32>
  }
  tile.store %last, %state[%c0, %c0 : i32, i32] : tensor<128x32xf32>, !tile.view<2xf32>
  return
}
