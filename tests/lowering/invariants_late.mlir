// Code of a persistent kernel that spills computes what is the same for all programs next to where it is used.
// RUN: tilec compile %s -t sm_90a -e json | FileCheck %s
// CHECK-LABEL: "kernel": "rows"
// CHECK: "spill_store_bytes": 0
module {
  func.func @rows(%arg0: !tile.ptr<f32> {tile.align = 16 : i32}, %arg1: !tile.ptr<f32> {tile.align = 16 : i32}, %arg2: !tile.ptr<f32> {tile.align = 16 : i32}, %arg3: i32 {tile.multiple_of = 16 : i32}, %arg4: i32 {tile.multiple_of = 16 : i32}, %arg5: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel} {
    %c32_i32 = arith.constant 32 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %c128_i32 = arith.constant 128 : i32
    %0 = tile.iota : tensor<128xi32>
    %1 = tile.program_id 0
    %2 = arith.muli %1, %c128_i32 : i32
    %3 = tile.splat %2 : i32 -> tensor<128xi32>
    %4 = arith.addi %3, %0 : tensor<128xi32>
    %5 = tile.reshape %4 : tensor<128xi32> -> tensor<128x1xi32>
    %6 = tile.program_id 1
    %7 = arith.muli %6, %c128_i32 : i32
    %8 = tile.splat %7 : i32 -> tensor<128xi32>
    %9 = arith.addi %8, %0 : tensor<128xi32>
    %10 = tile.reshape %9 : tensor<128xi32> -> tensor<1x128xi32>
    %11 = tile.iota : tensor<32xi32>
    %12 = tile.splat %arg5 : i32 -> tensor<32xi32>
    %13 = tile.splat %arg3 : i32 -> tensor<128x1xi32>
    %14 = arith.cmpi slt, %5, %13 : tensor<128x1xi32>
    %15 = tile.broadcast %14 : tensor<128x1xi1> -> tensor<128x32xi1>
    %16 = tile.splat %arg5 : i32 -> tensor<128x1xi32>
    %17 = arith.extsi %2 : i32 to i64
    %18 = tile.reshape %0 : tensor<128xi32> -> tensor<128x1xi32>
    %19 = arith.extsi %arg5 : i32 to i64
    %20 = arith.muli %17, %19 : i64
    %21 = arith.muli %18, %16 : tensor<128x1xi32>
    %22 = tile.broadcast %21 : tensor<128x1xi32> -> tensor<128x32xi32>
    %23 = tile.reshape %11 : tensor<32xi32> -> tensor<1x32xi32>
    %24 = tile.broadcast %23 : tensor<1x32xi32> -> tensor<128x32xi32>
    %25 = arith.addi %22, %24 : tensor<128x32xi32>
    %26 = tile.splat %arg4 : i32 -> tensor<1x128xi32>
    %27 = arith.cmpi slt, %10, %26 : tensor<1x128xi32>
    %28 = tile.broadcast %27 : tensor<1x128xi1> -> tensor<32x128xi1>
    %29 = tile.splat %arg4 : i32 -> tensor<32x1xi32>
    %30 = tile.reshape %11 : tensor<32xi32> -> tensor<32x1xi32>
    %31 = arith.extsi %arg4 : i32 to i64
    %32 = arith.muli %30, %29 : tensor<32x1xi32>
    %33 = tile.broadcast %32 : tensor<32x1xi32> -> tensor<32x128xi32>
    %34 = arith.extsi %7 : i32 to i64
    %35 = tile.reshape %0 : tensor<128xi32> -> tensor<1x128xi32>
    %36 = tile.broadcast %35 : tensor<1x128xi32> -> tensor<32x128xi32>
    %37 = arith.addi %33, %36 : tensor<32x128xi32>
    %38 = scf.for %arg6 = %c0_i32 to %arg5 step %c32_i32 iter_args(%arg7 = %cst) -> (tensor<128x128xf32>)  : i32 {
      %50 = tile.splat %arg6 : i32 -> tensor<32xi32>
      %51 = arith.addi %50, %11 : tensor<32xi32>
      %52 = arith.cmpi slt, %51, %12 : tensor<32xi32>
      %53 = tile.reshape %52 : tensor<32xi1> -> tensor<1x32xi1>
      %54 = tile.broadcast %53 : tensor<1x32xi1> -> tensor<128x32xi1>
      %55 = arith.andi %15, %54 : tensor<128x32xi1>
      %56 = arith.extsi %arg6 : i32 to i64
      %57 = arith.addi %20, %56 : i64
      %58 = tile.ptr_add %arg0, %57 : !tile.ptr<f32>, i64
      %59 = tile.gather %58 offsets %25 : tensor<128x32xi32> mask %55 : tensor<128x32xi1> : !tile.ptr<f32> -> tensor<128x32xf32>
      %60 = tile.reshape %52 : tensor<32xi1> -> tensor<32x1xi1>
      %61 = tile.broadcast %60 : tensor<32x1xi1> -> tensor<32x128xi1>
      %62 = arith.andi %61, %28 : tensor<32x128xi1>
      %63 = arith.muli %56, %31 : i64
      %64 = arith.addi %63, %34 : i64
      %65 = tile.ptr_add %arg1, %64 : !tile.ptr<f32>, i64
      %66 = tile.gather %65 offsets %37 : tensor<32x128xi32> mask %62 : tensor<32x128xi1> : !tile.ptr<f32> -> tensor<32x128xf32>
      %67 = tile.dot %59, %66, %arg7 precision  tf32 : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
      scf.yield %67 : tensor<128x128xf32>
    }
    %39 = tile.broadcast %14 : tensor<128x1xi1> -> tensor<128x128xi1>
    %40 = tile.broadcast %27 : tensor<1x128xi1> -> tensor<128x128xi1>
    %41 = arith.andi %39, %40 : tensor<128x128xi1>
    %42 = tile.splat %arg4 : i32 -> tensor<128x1xi32>
    %43 = arith.muli %17, %31 : i64
    %44 = arith.muli %18, %42 : tensor<128x1xi32>
    %45 = tile.broadcast %44 : tensor<128x1xi32> -> tensor<128x128xi32>
    %46 = tile.broadcast %35 : tensor<1x128xi32> -> tensor<128x128xi32>
    %47 = arith.addi %43, %34 : i64
    %48 = arith.addi %45, %46 : tensor<128x128xi32>
    %49 = tile.ptr_add %arg2, %47 : !tile.ptr<f32>, i64
    tile.scatter %38, %49 offsets %48 : tensor<128x128xi32> mask %41 : tensor<128x128xi1> : tensor<128x128xf32>, !tile.ptr<f32>
    return
  }
}
