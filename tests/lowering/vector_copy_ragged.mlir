// Nothing promised about the size: wide accesses where the whole tile is inside, single predicated ones at the edge.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry copy(
// CHECK: bra
// CHECK: {{^[[:space:]]+}}ld.global.v4.b32
// CHECK: @%p{{[0-9]+}} ld.global.b32
// CHECK: {{^[[:space:]]+}}st.global.v4.b32
// CHECK: @%p{{[0-9]+}} st.global.b32
func.func @copy(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32},
                %z: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c512 = arith.constant 512 : i32
  %pid = tile.program_id 0
  %o = arith.muli %pid, %c512 : i32
  %a = tile.load %x[%o : i32] : !tile.view<1xf32> -> tensor<512xf32>
  tile.store %a, %z[%o : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}
