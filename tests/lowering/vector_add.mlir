// Aligned 16-byte accesses, all loads before the first use, one predicate each, no barrier. Without promises about the
// size, one test of the whole tile chooses between wide and single accesses.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry add(
// CHECK-NOT: bar.sync
// CHECK-COUNT-4: @%p{{[0-9]+}} ld.global.v4.b32
// CHECK: add{{.*}}.f32
// CHECK-COUNT-2: @%p{{[0-9]+}} st.global.v4.b32
// CHECK-NOT: bar.sync
// CHECK: ret;
func.func @add(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>},
               %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>},
               %z: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 16>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c1024 = arith.constant 1024 : i32
  %pid = tile.program_id 0
  %o = arith.muli %pid, %c1024 : i32
  %a = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %b = tile.load %y[%o : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %c = arith.addf %a, %b : tensor<1024xf32>
  tile.store %c, %z[%o : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}
