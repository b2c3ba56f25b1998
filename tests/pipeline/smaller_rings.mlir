// Rings take all of shared memory that is left. Where what conversions need beside them does not fit then, they get
// smaller before the kernel goes without producer warps; and nothing of 128 x 256 sums, of which each is multiplied in 64
// bits and shifted by numbers of its column, spills.
// RUN: tilec compile %s -t sm_90a -e mlir:gpu,json --remarks -o %t 2>&1 | FileCheck %s -check-prefix=SAID
// RUN: FileCheck %s < %t/smaller_rings.sm_90a.gpu.mlir
// RUN: FileCheck %s -check-prefix=JSON < %t/smaller_rings.sm_90a.json
// SAID: remark: smaller rings: with all of their stages, what conversions need does not fit shared memory
// SAID-NOT: remark: no producer warps
// CHECK: tile.specialize
// JSON: "spill_store_bytes": 0
func.func @requant(%arg0: !tile.view<2xi8> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>, tile.unit_stride = 1 : i32}, %arg1: !tile.view<2xi8> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>, tile.unit_stride = 1 : i32}, %arg2: !tile.ptr<i32> {tile.align = 16 : i32}, %arg3: !tile.ptr<i8> {tile.align = 16 : i32}, %arg4: !tile.view<2xi8> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 16>, tile.stride_multiple_of = array<i32: 16, 1>, tile.unit_stride = 1 : i32}, %arg5: i32) attributes {tile.kernel} {
  %0 = tile.program_id 1
  %c128_i32 = arith.constant 128 : i32
  %1 = arith.muli %0, %c128_i32 : i32
  %2 = tile.program_id 0
  %c256_i32 = arith.constant 256 : i32
  %3 = arith.muli %2, %c256_i32 : i32
  %cst = arith.constant dense<0> : tensor<128x256xi32>
  %4 = tile.view_dim %arg0, 1 : <2xi8>
  %5 = arith.trunci %4 overflow<nsw> : i64 to i32
  %c0_i32 = arith.constant 0 : i32
  %c64_i32 = arith.constant 64 : i32
  %6 = scf.for %arg6 = %c0_i32 to %5 step %c64_i32 iter_args(%arg7 = %cst) -> (tensor<128x256xi32>)  : i32 {
    %50 = tile.load %arg1[%3, %arg6 : i32, i32] : <2xi8> -> tensor<256x64xi8>
    %51 = tile.trans %50, [1, 0] : tensor<256x64xi8> -> tensor<64x256xi8>
    %52 = tile.load %arg0[%1, %arg6 : i32, i32] : <2xi8> -> tensor<128x64xi8>
    %53 = tile.dot %52, %51, %arg7 : tensor<128x64xi8>, tensor<64x256xi8> -> tensor<128x256xi32>
    scf.yield %53 : tensor<128x256xi32>
  }
  %7 = tile.iota : tensor<256xi32>
  %8 = tile.splat %3 : i32 -> tensor<256xi32>
  %9 = arith.addi %8, %7 : tensor<256xi32>
  %10 = tile.view_dim %arg4, 1 : <2xi8>
  %11 = arith.trunci %10 overflow<nsw> : i64 to i32
  %12 = tile.splat %11 : i32 -> tensor<256xi32>
  %13 = arith.cmpi slt, %9, %12 : tensor<256xi32>
  %14 = tile.splat %arg2 : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %15 = tile.ptr_add %14, %9 : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %16 = tile.gather %15 mask %13 : tensor<256xi1> : tensor<256x!tile.ptr<i32>> -> tensor<256xi32>
  %17 = tile.reshape %16 : tensor<256xi32> -> tensor<1x256xi32>
  %18 = tile.splat %arg3 : !tile.ptr<i8> -> tensor<256x!tile.ptr<i8>>
  %19 = tile.ptr_add %18, %9 : tensor<256x!tile.ptr<i8>>, tensor<256xi32>
  %20 = tile.gather %19 mask %13 : tensor<256xi1> : tensor<256x!tile.ptr<i8>> -> tensor<256xi8>
  %21 = arith.extui %20 : tensor<256xi8> to tensor<256xi32>
  %22 = tile.reshape %21 : tensor<256xi32> -> tensor<1x256xi32>
  %23 = arith.extsi %17 : tensor<1x256xi32> to tensor<1x256xi64>
  %24 = arith.extsi %6 : tensor<128x256xi32> to tensor<128x256xi64>
  %25 = tile.broadcast %23 : tensor<1x256xi64> -> tensor<128x256xi64>
  %26 = arith.muli %24, %25 : tensor<128x256xi64>
  %cst_0 = arith.constant dense<1073741824> : tensor<128x256xi64>
  %27 = arith.addi %26, %cst_0 : tensor<128x256xi64>
  %cst_1 = arith.constant dense<31> : tensor<128x256xi64>
  %28 = arith.shrsi %27, %cst_1 : tensor<128x256xi64>
  %29 = arith.trunci %28 : tensor<128x256xi64> to tensor<128x256xi32>
  %cst_2 = arith.constant dense<1> : tensor<1x1xi32>
  %30 = tile.broadcast %cst_2 : tensor<1x1xi32> -> tensor<1x256xi32>
  %31 = arith.shli %30, %22 : tensor<1x256xi32>
  %cst_3 = arith.constant dense<1> : tensor<1x256xi32>
  %32 = arith.subi %31, %cst_3 : tensor<1x256xi32>
  %33 = tile.broadcast %32 : tensor<1x256xi32> -> tensor<128x256xi32>
  %34 = arith.andi %29, %33 : tensor<128x256xi32>
  %cst_4 = arith.constant dense<0> : tensor<128x256xi32>
  %35 = arith.cmpi slt, %29, %cst_4 : tensor<128x256xi32>
  %36 = arith.extui %35 : tensor<128x256xi1> to tensor<128x256xi32>
  %cst_5 = arith.constant dense<1> : tensor<1x256xi32>
  %37 = arith.shrsi %32, %cst_5 : tensor<1x256xi32>
  %38 = tile.broadcast %37 : tensor<1x256xi32> -> tensor<128x256xi32>
  %39 = arith.addi %38, %36 : tensor<128x256xi32>
  %40 = arith.cmpi sgt, %34, %39 : tensor<128x256xi32>
  %41 = arith.extui %40 : tensor<128x256xi1> to tensor<128x256xi32>
  %42 = tile.broadcast %22 : tensor<1x256xi32> -> tensor<128x256xi32>
  %43 = arith.shrsi %29, %42 : tensor<128x256xi32>
  %44 = arith.addi %43, %41 : tensor<128x256xi32>
  %45 = tile.splat %arg5 : i32 -> tensor<128x256xi32>
  %46 = arith.addi %44, %45 : tensor<128x256xi32>
  %cst_6 = arith.constant dense<-128> : tensor<128x256xi32>
  %47 = arith.maxsi %46, %cst_6 : tensor<128x256xi32>
  %cst_7 = arith.constant dense<127> : tensor<128x256xi32>
  %48 = arith.minsi %47, %cst_7 : tensor<128x256xi32>
  %49 = arith.trunci %48 : tensor<128x256xi32> to tensor<128x256xi8>
  tile.store %49, %arg4[%1, %3 : i32, i32] : tensor<128x256xi8>, <2xi8>
  return
}
