// Takes from one tile share what the first of them puts into shared memory, and scratch of ops that follow each other
// takes turns: one barrier for each tile that is put there.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers | FileCheck %s
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=PTX

// CHECK-LABEL: func.func @takes
// CHECK-NOT: tile.barrier
// CHECK: tile.take {{.*}}tile.scratch = [[A:[0-9]+]]
// CHECK: tile.take {{.*}}tile.scratch = [[A]] : i32, tile.scratch_filled
// CHECK: tile.take {{.*}}tile.scratch = [[B:[0-9]+]]
// CHECK: tile.take {{.*}}tile.scratch = [[B]] : i32, tile.scratch_filled
// CHECK: tile.take {{.*}}tile.scratch = [[A]] : i32}
// CHECK: tile.take {{.*}}tile.scratch = [[A]] : i32, tile.scratch_filled
// CHECK-NOT: tile.barrier
// CHECK: return
// PTX-COUNT-3: {{bar(rier)?[.](cta[.])?sync}}
// PTX-NOT: {{bar(rier)?[.](cta[.])?sync}}
// PTX: ret;
func.func @takes(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.load %z[%c0 : i32] : !tile.view<1xi32> -> tensor<1024xi32>
  %k = arith.addi %i, %i : tensor<1024xi32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %a0 = tile.take %a, %i axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %a1 = tile.take %a, %k axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %b = arith.addf %a0, %a1 : tensor<1024xf32>
  %b0 = tile.take %b, %i axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %b1 = tile.take %b, %k axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %c = arith.addf %b0, %b1 : tensor<1024xf32>
  %d0 = tile.take %c, %i axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %d1 = tile.take %c, %k axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %d = arith.addf %d0, %d1 : tensor<1024xf32>
  tile.store %d, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// Threads hold runs of neighbours: known steps along a tile would meet in one bank, but for a gap behind every 128 bytes.
// CHECK-LABEL: func.func @steps
// CHECK: tile.take {{.*}}tile.scratch = {{[0-9]+}} : i32, tile.scratch_gaps = array<i64: 4, 128>
// CHECK: tile.take {{.*}}tile.scratch_filled, tile.scratch_gaps = array<i64: 4, 128>
func.func @steps(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>}, %y: !tile.view<1xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %by = arith.constant dense<37> : tensor<1024xi32>
  %low = arith.constant dense<0> : tensor<1024xi32>
  %high = arith.constant dense<1023> : tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %down = arith.subi %i, %by : tensor<1024xi32>
  %up = arith.addi %i, %by : tensor<1024xi32>
  %before = arith.maxsi %down, %low : tensor<1024xi32>
  %after = arith.minsi %up, %high : tensor<1024xi32>
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %a0 = tile.take %a, %before axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %a1 = tile.take %a, %after axis 0 : tensor<1024xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %b = arith.addf %a0, %a1 : tensor<1024xf32>
  tile.store %b, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// Rows from elsewhere keep their columns: four of them are written and read at a time, whatever the rows are.
// PTX-LABEL: .entry rows(
// PTX: st.shared.v4
// PTX-NOT: ld.shared.b32
// PTX: ld.shared.v4
// PTX-NOT: ld.shared.b32
// PTX: ret;
func.func @rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %y: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}, %z: !tile.view<1xi32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.load %z[%c0 : i32] : !tile.view<1xi32> -> tensor<32xi32>
  %column = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %rows = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %b = tile.take %a, %rows axis 0 : tensor<32x64xf32>, tensor<32x64xi32> -> tensor<32x64xf32>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}
