// Cache hints reach the instruction, whichever way the data travels: bulk copies, asynchronous ones, plain accesses.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s --check-prefixes=CHECK,BULK
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s --check-prefixes=CHECK,ASYNC

// CHECK-LABEL: .entry product(
// BULK-DAG: createpolicy.fractional.L2::evict_first.b64 [[FIRST:%rd[0-9]+]], 1.0;
// BULK-DAG: createpolicy.fractional.L2::evict_last.b64 [[LAST:%rd[0-9]+]], 1.0;
// BULK-DAG: cp.async.bulk.tensor.2d.shared::cluster.global{{.*}}.L2::cache_hint {{.*}}, [[FIRST]];
// BULK-DAG: cp.async.bulk.tensor.2d.shared::cluster.global{{.*}}.L2::cache_hint {{.*}}, [[LAST]];
// BULK: createpolicy.fractional.L2::evict_first.b64 [[OUT:%rd[0-9]+]], 1.0;
// BULK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint {{.*}}, [[OUT]];
// ASYNC-DAG: createpolicy.fractional.L2::evict_first.b64 [[FIRST:%rd[0-9]+]], 1.0;
// ASYNC-DAG: createpolicy.fractional.L2::evict_last.b64 [[LAST:%rd[0-9]+]], 1.0;
// ASYNC-DAG: cp.async.cg.shared.global.L2::cache_hint [{{.*}}], [{{.*}}], 16, {{.*}}[[FIRST]];
// ASYNC-DAG: cp.async.cg.shared.global.L2::cache_hint [{{.*}}], [{{.*}}], 16, {{.*}}[[LAST]];
// ASYNC: st.global.L1::no_allocate.L2::cache_hint{{.*}}.b32
func.func @product(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                   %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>},
                   %C: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 1, 8>, tile.stride_multiple_of = array<i32: 8, 1>},
                   %depth: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %m = arith.muli %pid, %c128 : i32
  %sum = scf.for %k = %c0 to %depth step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> : i32 {
    %a = tile.load %A[%m, %k : i32, i32] cache streaming : !tile.view<2 x f16> -> tensor<128x64xf16>
    %b = tile.load %B[%k, %c0 : i32, i32] cache last : !tile.view<2 x f16> -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %half = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %half, %C[%m, %c0 : i32, i32] cache streaming : tensor<128x128xf16>, !tile.view<2 x f16>
  return
}
