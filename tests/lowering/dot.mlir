// Products down to PTX: which instructions, how many, and that nothing spills to local memory.
// RUN: split-file %s %t
// RUN: tilec compile %t/f16_nn.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,F16_NN --implicit-check-not=.local
// RUN: tilec compile %t/f16_tt.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,F16_TT --implicit-check-not=.local
// RUN: tilec compile %t/tf32.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,TF32 --implicit-check-not=.local
// RUN: tilec compile %t/tf32x3.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,TF32X3 --implicit-check-not=.local
// RUN: tilec compile %t/s8.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,S8 --implicit-check-not=.local
// RUN: tilec compile %t/f32.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,F32 --implicit-check-not=.local
// RUN: tilec compile %t/f64.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,F64,F64_80 --implicit-check-not=.local
// RUN: tilec compile %t/f64.mlir --target=sm_90a --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,F64,F64_90 --implicit-check-not=.local
// RUN: tilec compile %t/unaligned.mlir --target=sm_80 --stages=2 --emit=ptx | FileCheck %s --check-prefixes=ALL,UNALIGNED --implicit-check-not=.local
// REQUIRES: ptxas
// RUN: tilec compile %t/f16_nn.mlir --target=sm_90a --stages=3 --emit=json | FileCheck %s --check-prefix=RESOURCES

// ALL: cp.async.commit_group
// ALL: cp.async.wait_group
// ALL: bar.sync

// 2 x 2 warps of 32 x 32: per k step 2 loads of A, 2 transposing loads of B, 8 products; 4 k steps.
// F16_NN-COUNT-16: ldmatrix.sync.aligned.m8n8.x4{{.*}}
// F16_NN-NOT: ldmatrix
// F16_NN: ret;

// Both operands stored the other way round: A transposes, B does not.
// F16_TT: ldmatrix.sync.aligned.m8n8.x4.trans
// F16_TT: ldmatrix.sync.aligned.m8n8.x4.shared
// F16_TT-COUNT-32: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// F16_TT-NOT: mma.sync

// A row-major B of 32-bit elements cannot go through ldmatrix: plain loads, rounded like the rest.
// TF32-DAG: ldmatrix.sync.aligned.m8n8.x4.shared
// TF32-DAG: ld.shared.b32
// TF32-DAG: mul.f32 {{.*}}, 0f3F800AAB;
// TF32-COUNT-31: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32

// Three products per atom.
// TF32X3-COUNT-96: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// TF32X3-NOT: mma.sync

// S8-COUNT-16: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// S8-NOT: mma.sync

// F32-NOT: mma.sync
// F32: ld.shared.v4
// F32-COUNT-512: fma.rn{{.*}}f32
// F32-NOT: fma.rn

// 2 x 2 warps of 32 x 32, two k steps of 8 products or 32 small ones each.
// F64-NOT: fma.rn.f64
// F64_80-COUNT-64: mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64
// F64_90-COUNT-16: mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64
// F64-NOT: {{mma.sync|fma.rn.f64}}
// F64: ret;

// No alignment is promised: elements through registers, still with the pipeline's barriers.
// UNALIGNED-NOT: cp.async.cg
// UNALIGNED-NOT: cp.async.ca
// UNALIGNED: ldmatrix.sync
// UNALIGNED: ld.global{{.*}}b16

// Three stages, their barriers.
// RESOURCES: "shared_bytes": 49264
// RESOURCES: "spill_store_bytes": 0
// RESOURCES: "stack_bytes": 0

//--- f16_nn.mlir
func.func @gemm(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 64 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

//--- f16_tt.mlir
func.func @gemm(%A: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 8>, tile.dim_multiple_of = array<i32: 64, 64>}, %B: !tile.view<2 x f16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 8>, tile.dim_multiple_of = array<i32: 64, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 64 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %c : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

//--- tf32.mlir
func.func @gemm(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 32>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 32, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
    %d = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

//--- tf32x3.mlir
func.func @gemm(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 32>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 4>, tile.dim_multiple_of = array<i32: 32, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
    %d = tile.dot %a, %b, %c precision tf32x3 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

//--- s8.mlir
func.func @gemm(%A: !tile.view<2 x i8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 64, 64>}, %B: !tile.view<2 x i8> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.stride_multiple_of = array<i32: 1, 16>, tile.dim_multiple_of = array<i32: 64, 64>}, %C: !tile.view<2 x i32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 64 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xi32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
    %d = tile.dot %a, %b, %c : tensor<64x64xi8>, tensor<64x64xi8> -> tensor<64x64xi32>
    scf.yield %d : tensor<64x64xi32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xi32>, !tile.view<2 x i32>
  return
}

//--- f32.mlir
func.func @gemm(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 16, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 16 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x16xf32>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f32> -> tensor<16x64xf32>
    %d = tile.dot %a, %b, %c : tensor<64x16xf32>, tensor<16x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

//--- f64.mlir
func.func @gemm(%A: !tile.view<2 x f64> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 2, 1>, tile.dim_multiple_of = array<i32: 64, 16>}, %B: !tile.view<2 x f64> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 2, 1>, tile.dim_multiple_of = array<i32: 16, 64>}, %C: !tile.view<2 x f64> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 16 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf64>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf64>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f64> -> tensor<64x16xf64>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f64> -> tensor<16x64xf64>
    %d = tile.dot %a, %b, %c : tensor<64x16xf64>, tensor<16x64xf64> -> tensor<64x64xf64>
    scf.yield %d : tensor<64x64xf64>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf64>, !tile.view<2 x f64>
  return
}

//--- unaligned.mlir
func.func @gemm(%A: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
    %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
