// What is looked up at addresses that were loaded is read as well under any layout: it takes that of the loads and stores
// around it, which stay wide.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry table
// CHECK-NOT: ld.global{{.*}}b8
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: {{st.shared|st.global.b8}}
// CHECK: ret;
func.func @table(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %t: !tile.ptr<i32>, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0, %c0 : i32, i32] : !tile.view<2xi8> -> tensor<64x64xi8>
  %i = arith.extui %a : tensor<64x64xi8> to tensor<64x64xi32>
  %v = tile.gather %t offsets %i : tensor<64x64xi32> : !tile.ptr<i32> -> tensor<64x64xi32>
  %b = arith.trunci %v : tensor<64x64xi32> to tensor<64x64xi8>
  tile.store %b, %y[%c0, %c0 : i32, i32] : tensor<64x64xi8>, !tile.view<2xi8>
  return
}
