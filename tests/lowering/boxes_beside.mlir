// Boxes a few elements beside each other are cut from aligned accesses, each of which is made once; what is written
// between is seen. Where rows are no whole accesses, every box has its own.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry row(
// CHECK-COUNT-3: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @row(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 4>},
               %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 4>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c512 = arith.constant 512 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %m1 = arith.constant -1 : i32
  %m3 = arith.constant -3 : i32
  %p = tile.program_id 0
  %o = arith.muli %p, %c512 : i32
  %o1 = arith.addi %o, %1 : i32
  %o2 = arith.addi %o, %2 : i32
  %om1 = arith.addi %o, %m1 : i32
  %om3 = arith.addi %o, %m3 : i32
  %a = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %b = tile.load %x[%o1 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %c = tile.load %x[%o2 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %d = tile.load %x[%om1 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %e = tile.load %x[%om3 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %s = arith.addf %a, %b : tensor<512xf32>
  %t = arith.addf %s, %c : tensor<512xf32>
  %u = arith.addf %t, %d : tensor<512xf32>
  %v = arith.addf %u, %e : tensor<512xf32>
  tile.store %v, %y[%o : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// CHECK-LABEL: .entry between(
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: st.global
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: ret;
func.func @between(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 4>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c512 = arith.constant 512 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %p = tile.program_id 0
  %o = arith.muli %p, %c512 : i32
  %o1 = arith.addi %o, %1 : i32
  %o2 = arith.addi %o, %2 : i32
  %z = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %a = tile.load %x[%o1 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %s = arith.addf %z, %a : tensor<512xf32>
  tile.store %s, %x[%o : i32] : tensor<512xf32>, !tile.view<1xf32>
  %b = tile.load %x[%o2 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  tile.store %b, %x[%o : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}
