// Cache hints of plain accesses say what both caches are to do.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry copy(
// CHECK: ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {{.*}}, %rd{{[0-9]+}};
// CHECK: st.global.L1::evict_last.L2::cache_hint.v4.b32 {{.*}}, %rd{{[0-9]+}};
func.func @copy(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>},
                %z: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 512>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c512 = arith.constant 512 : i32
  %pid = tile.program_id 0
  %o = arith.muli %pid, %c512 : i32
  %a = tile.load %x[%o : i32] cache streaming : !tile.view<1xf32> -> tensor<512xf32>
  tile.store %a, %z[%o : i32] cache last : tensor<512xf32>, !tile.view<1xf32>
  return
}
