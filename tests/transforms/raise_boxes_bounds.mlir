// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Rows of a chunk, `min(L, T - chunk * L)` of them, through pointers with all strides: T bounds the rows of all chunks,
// which the launch knows, and nobody looks at rows behind L.

// CHECK-LABEL: func.func @stored(
// CHECK-SAME: %[[A:[^:]*]]: !tile.ptr<bf16> {tile.align = 16 : i32}, %[[B:[^:]*]]: !tile.ptr<bf16> {tile.align = 16 : i32}
// CHECK-DAG: %[[ROWS:.*]] = arith.extsi %arg3 : i32 to i64
// CHECK-DAG: tile.make_view %[[A]], dims(%{{.*}}, %{{.*}}, %[[ROWS]], %{{.*}}), strides({{.*}}) {{.*}}tile.of_launch{{.*}} : <bf16> -> <4xbf16>
// CHECK-DAG: tile.make_view %[[B]], dims(%{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS]]), strides({{.*}}) {{.*}}tile.of_launch{{.*}} : <bf16> -> <4xbf16>
// CHECK: scf.for
// CHECK-COUNT-2: tile.load {{.*}} : <4xbf16> -> tensor<64x64xbf16>
// CHECK-NOT: tile.gather
func.func @stored(%a: !tile.ptr<bf16> {tile.align = 16 : i32}, %b: !tile.ptr<bf16> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %T: i32 {tile.multiple_of = 16 : i32}, %L: i32 {tile.multiple_of = 16 : i32}, %K: i32 {tile.multiple_of = 16 : i32}, %G: i32, %B: i32, %ab: i32 {tile.multiple_of = 16 : i32}, %as: i32 {tile.multiple_of = 16 : i32}, %ag: i32 {tile.multiple_of = 16 : i32}, %one0: i32 {tile.one}, %bb: i32 {tile.multiple_of = 16 : i32}, %bs: i32 {tile.multiple_of = 16 : i32}, %bg: i32 {tile.multiple_of = 16 : i32}, %one1: i32 {tile.one}, %yb: i32 {tile.multiple_of = 16 : i32}, %yc: i32 {tile.multiple_of = 16 : i32}, %yg: i32 {tile.multiple_of = 16 : i32}, %ym: i32 {tile.multiple_of = 16 : i32}, %one2: i32 {tile.one}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c64_i64 = arith.constant 64 : i64
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %c0_i32 = arith.constant 0 : i32
  %c64_i32 = arith.constant 64 : i32
  %c1_i32 = arith.constant 1 : i32
  %0 = tile.program_id 1
  %1 = tile.program_id 2
  %2 = arith.divsi %1, %G : i32
  %3 = arith.muli %2, %G : i32
  %4 = arith.subi %1, %3 : i32
  %5 = arith.maxsi %L, %c0_i32 : i32
  %6 = arith.ceildivui %5, %c64_i32 : i32
  %7 = tile.program_id 0
  %8 = arith.divsi %7, %6 : i32
  %9 = arith.remsi %7, %6 : i32
  %10 = arith.addi %8, %c1_i32 : i32
  %11 = arith.muli %10, %c64_i32 : i32
  %12 = arith.muli %9, %c64_i32 : i32
  %13 = arith.cmpi slt, %12, %11 : i32
  scf.if %13 {
    %14 = tile.iota : tensor<64xi32>
    %15 = arith.muli %8, %c64_i32 : i32
    %16 = tile.splat %15 : i32 -> tensor<64xi32>
    %17 = arith.addi %16, %14 : tensor<64xi32>
    %18 = tile.splat %12 : i32 -> tensor<64xi32>
    %19 = arith.addi %18, %14 : tensor<64xi32>
    %20 = arith.muli %2, %L : i32
    %21 = arith.subi %T, %20 : i32
    %22 = arith.minsi %L, %21 : i32
    %23 = tile.splat %as : i32 -> tensor<64x1xi32>
    %24 = arith.muli %4, %ag : i32
    %25 = arith.muli %20, %as : i32
    %26 = arith.muli %0, %ab : i32
    %27 = arith.addi %26, %25 : i32
    %28 = arith.addi %27, %24 : i32
    %29 = tile.ptr_add %a, %28 : !tile.ptr<bf16>, i32
    %30 = arith.extsi %15 : i32 to i64
    %31 = tile.reshape %14 : tensor<64xi32> -> tensor<64x1xi32>
    %32 = arith.extsi %as : i32 to i64
    %33 = arith.muli %30, %32 : i64
    %34 = arith.muli %31, %23 : tensor<64x1xi32>
    %35 = tile.broadcast %34 : tensor<64x1xi32> -> tensor<64x64xi32>
    %36 = tile.reshape %14 : tensor<64xi32> -> tensor<1x64xi32>
    %37 = tile.broadcast %36 : tensor<1x64xi32> -> tensor<64x64xi32>
    %38 = arith.addi %35, %37 : tensor<64x64xi32>
    %39 = tile.ptr_add %29, %33 : !tile.ptr<bf16>, i64
    %40 = tile.splat %bs : i32 -> tensor<1x64xi32>
    %41 = arith.muli %4, %bg : i32
    %42 = arith.muli %20, %bs : i32
    %43 = arith.muli %0, %bb : i32
    %44 = arith.addi %43, %42 : i32
    %45 = arith.addi %44, %41 : i32
    %46 = tile.ptr_add %b, %45 : !tile.ptr<bf16>, i32
    %47 = tile.broadcast %31 : tensor<64x1xi32> -> tensor<64x64xi32>
    %48 = arith.extsi %12 : i32 to i64
    %49 = arith.extsi %bs : i32 to i64
    %50 = arith.muli %48, %49 : i64
    %51 = arith.muli %36, %40 : tensor<1x64xi32>
    %52 = tile.broadcast %51 : tensor<1x64xi32> -> tensor<64x64xi32>
    %53 = arith.addi %47, %52 : tensor<64x64xi32>
    %54 = tile.ptr_add %46, %50 : !tile.ptr<bf16>, i64
    %55 = arith.maxsi %K, %c0_i32 : i32
    %56 = arith.ceildivui %55, %c64_i32 : i32
    %57 = tile.splat %22 : i32 -> tensor<64xi32>
    %58 = arith.cmpi slt, %17, %57 : tensor<64xi32>
    %59 = tile.reshape %58 : tensor<64xi1> -> tensor<64x1xi1>
    %60 = tile.broadcast %59 : tensor<64x1xi1> -> tensor<64x64xi1>
    %61 = arith.cmpi slt, %19, %57 : tensor<64xi32>
    %62 = tile.reshape %61 : tensor<64xi1> -> tensor<1x64xi1>
    %63 = tile.broadcast %62 : tensor<1x64xi1> -> tensor<64x64xi1>
    %64:3 = scf.for %i = %c0_i32 to %56 step %c1_i32 iter_args(%pa = %39, %pb = %54, %acc = %cst) -> (!tile.ptr<bf16>, !tile.ptr<bf16>, tensor<64x64xf32>)  : i32 {
      %87 = arith.muli %i, %c64_i32 : i32
      %88 = arith.subi %K, %87 : i32
      %89 = tile.splat %88 : i32 -> tensor<64xi32>
      %90 = arith.cmpi slt, %14, %89 : tensor<64xi32>
      %91 = tile.reshape %90 : tensor<64xi1> -> tensor<1x64xi1>
      %92 = tile.broadcast %91 : tensor<1x64xi1> -> tensor<64x64xi1>
      %93 = arith.andi %60, %92 : tensor<64x64xi1>
      %94 = tile.gather %pa offsets %38 : tensor<64x64xi32> mask %93 : tensor<64x64xi1> : !tile.ptr<bf16> -> tensor<64x64xbf16>
      %95 = tile.reshape %90 : tensor<64xi1> -> tensor<64x1xi1>
      %96 = tile.broadcast %95 : tensor<64x1xi1> -> tensor<64x64xi1>
      %97 = arith.andi %96, %63 : tensor<64x64xi1>
      %98 = tile.gather %pb offsets %53 : tensor<64x64xi32> mask %97 : tensor<64x64xi1> : !tile.ptr<bf16> -> tensor<64x64xbf16>
      %99 = tile.dot %94, %98, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %100 = tile.ptr_add %pa, %c64_i64 : !tile.ptr<bf16>, i64
      %101 = tile.ptr_add %pb, %c64_i64 : !tile.ptr<bf16>, i64
      scf.yield %100, %101, %99 : !tile.ptr<bf16>, !tile.ptr<bf16>, tensor<64x64xf32>
    } {tile.stages = 3 : i32}
    %65 = tile.splat %L : i32 -> tensor<64xi32>
    %66 = arith.cmpi slt, %19, %65 : tensor<64xi32>
    %67 = tile.reshape %66 : tensor<64xi1> -> tensor<1x64xi1>
    %68 = arith.cmpi slt, %17, %65 : tensor<64xi32>
    %69 = tile.reshape %68 : tensor<64xi1> -> tensor<64x1xi1>
    %70 = tile.broadcast %69 : tensor<64x1xi1> -> tensor<64x64xi1>
    %71 = tile.broadcast %67 : tensor<1x64xi1> -> tensor<64x64xi1>
    %72 = arith.andi %70, %71 : tensor<64x64xi1>
    %73 = tile.splat %ym : i32 -> tensor<64x1xi32>
    %74 = arith.muli %4, %yg : i32
    %75 = arith.muli %2, %yc : i32
    %76 = arith.muli %0, %yb : i32
    %77 = arith.addi %76, %75 : i32
    %78 = arith.addi %77, %74 : i32
    %79 = tile.ptr_add %y, %78 : !tile.ptr<f32>, i32
    %80 = arith.extsi %ym : i32 to i64
    %81 = arith.muli %30, %80 : i64
    %82 = arith.muli %31, %73 : tensor<64x1xi32>
    %83 = tile.broadcast %82 : tensor<64x1xi32> -> tensor<64x64xi32>
    %84 = arith.addi %81, %48 : i64
    %85 = arith.addi %83, %37 : tensor<64x64xi32>
    %86 = tile.ptr_add %79, %84 : !tile.ptr<f32>, i64
    tile.scatter %64#2, %86 offsets %85 : tensor<64x64xi32> mask %72 : tensor<64x64xi1> : tensor<64x64xf32>, !tile.ptr<f32>
  }
  return
}

// -----

// Where rows behind L are stored, too, both bounds count: views of the programs' own.
// CHECK-LABEL: func.func @seen(
// CHECK-NOT: tile.of_launch
// CHECK-COUNT-2: tile.load {{.*}} : <2xbf16> -> tensor<64x64xbf16>
func.func @seen(%a: !tile.ptr<bf16> {tile.align = 16 : i32}, %b: !tile.ptr<bf16> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %T: i32 {tile.multiple_of = 16 : i32}, %L: i32 {tile.multiple_of = 16 : i32}, %K: i32 {tile.multiple_of = 16 : i32}, %G: i32, %B: i32, %ab: i32 {tile.multiple_of = 16 : i32}, %as: i32 {tile.multiple_of = 16 : i32}, %ag: i32 {tile.multiple_of = 16 : i32}, %one0: i32 {tile.one}, %bb: i32 {tile.multiple_of = 16 : i32}, %bs: i32 {tile.multiple_of = 16 : i32}, %bg: i32 {tile.multiple_of = 16 : i32}, %one1: i32 {tile.one}, %yb: i32 {tile.multiple_of = 16 : i32}, %yc: i32 {tile.multiple_of = 16 : i32}, %yg: i32 {tile.multiple_of = 16 : i32}, %ym: i32 {tile.multiple_of = 16 : i32}, %one2: i32 {tile.one}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c64_i64 = arith.constant 64 : i64
  %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %c0_i32 = arith.constant 0 : i32
  %c64_i32 = arith.constant 64 : i32
  %c1_i32 = arith.constant 1 : i32
  %0 = tile.program_id 1
  %1 = tile.program_id 2
  %2 = arith.divsi %1, %G : i32
  %3 = arith.muli %2, %G : i32
  %4 = arith.subi %1, %3 : i32
  %5 = arith.maxsi %L, %c0_i32 : i32
  %6 = arith.ceildivui %5, %c64_i32 : i32
  %7 = tile.program_id 0
  %8 = arith.divsi %7, %6 : i32
  %9 = arith.remsi %7, %6 : i32
  %10 = arith.addi %8, %c1_i32 : i32
  %11 = arith.muli %10, %c64_i32 : i32
  %12 = arith.muli %9, %c64_i32 : i32
  %13 = arith.cmpi slt, %12, %11 : i32
  scf.if %13 {
    %14 = tile.iota : tensor<64xi32>
    %15 = arith.muli %8, %c64_i32 : i32
    %16 = tile.splat %15 : i32 -> tensor<64xi32>
    %17 = arith.addi %16, %14 : tensor<64xi32>
    %18 = tile.splat %12 : i32 -> tensor<64xi32>
    %19 = arith.addi %18, %14 : tensor<64xi32>
    %20 = arith.muli %2, %L : i32
    %21 = arith.subi %T, %20 : i32
    %22 = arith.minsi %L, %21 : i32
    %23 = tile.splat %as : i32 -> tensor<64x1xi32>
    %24 = arith.muli %4, %ag : i32
    %25 = arith.muli %20, %as : i32
    %26 = arith.muli %0, %ab : i32
    %27 = arith.addi %26, %25 : i32
    %28 = arith.addi %27, %24 : i32
    %29 = tile.ptr_add %a, %28 : !tile.ptr<bf16>, i32
    %30 = arith.extsi %15 : i32 to i64
    %31 = tile.reshape %14 : tensor<64xi32> -> tensor<64x1xi32>
    %32 = arith.extsi %as : i32 to i64
    %33 = arith.muli %30, %32 : i64
    %34 = arith.muli %31, %23 : tensor<64x1xi32>
    %35 = tile.broadcast %34 : tensor<64x1xi32> -> tensor<64x64xi32>
    %36 = tile.reshape %14 : tensor<64xi32> -> tensor<1x64xi32>
    %37 = tile.broadcast %36 : tensor<1x64xi32> -> tensor<64x64xi32>
    %38 = arith.addi %35, %37 : tensor<64x64xi32>
    %39 = tile.ptr_add %29, %33 : !tile.ptr<bf16>, i64
    %40 = tile.splat %bs : i32 -> tensor<1x64xi32>
    %41 = arith.muli %4, %bg : i32
    %42 = arith.muli %20, %bs : i32
    %43 = arith.muli %0, %bb : i32
    %44 = arith.addi %43, %42 : i32
    %45 = arith.addi %44, %41 : i32
    %46 = tile.ptr_add %b, %45 : !tile.ptr<bf16>, i32
    %47 = tile.broadcast %31 : tensor<64x1xi32> -> tensor<64x64xi32>
    %48 = arith.extsi %12 : i32 to i64
    %49 = arith.extsi %bs : i32 to i64
    %50 = arith.muli %48, %49 : i64
    %51 = arith.muli %36, %40 : tensor<1x64xi32>
    %52 = tile.broadcast %51 : tensor<1x64xi32> -> tensor<64x64xi32>
    %53 = arith.addi %47, %52 : tensor<64x64xi32>
    %54 = tile.ptr_add %46, %50 : !tile.ptr<bf16>, i64
    %55 = arith.maxsi %K, %c0_i32 : i32
    %56 = arith.ceildivui %55, %c64_i32 : i32
    %57 = tile.splat %22 : i32 -> tensor<64xi32>
    %58 = arith.cmpi slt, %17, %57 : tensor<64xi32>
    %59 = tile.reshape %58 : tensor<64xi1> -> tensor<64x1xi1>
    %60 = tile.broadcast %59 : tensor<64x1xi1> -> tensor<64x64xi1>
    %61 = arith.cmpi slt, %19, %57 : tensor<64xi32>
    %62 = tile.reshape %61 : tensor<64xi1> -> tensor<1x64xi1>
    %63 = tile.broadcast %62 : tensor<1x64xi1> -> tensor<64x64xi1>
    %64:3 = scf.for %i = %c0_i32 to %56 step %c1_i32 iter_args(%pa = %39, %pb = %54, %acc = %cst) -> (!tile.ptr<bf16>, !tile.ptr<bf16>, tensor<64x64xf32>)  : i32 {
      %87 = arith.muli %i, %c64_i32 : i32
      %88 = arith.subi %K, %87 : i32
      %89 = tile.splat %88 : i32 -> tensor<64xi32>
      %90 = arith.cmpi slt, %14, %89 : tensor<64xi32>
      %91 = tile.reshape %90 : tensor<64xi1> -> tensor<1x64xi1>
      %92 = tile.broadcast %91 : tensor<1x64xi1> -> tensor<64x64xi1>
      %93 = arith.andi %60, %92 : tensor<64x64xi1>
      %94 = tile.gather %pa offsets %38 : tensor<64x64xi32> mask %93 : tensor<64x64xi1> : !tile.ptr<bf16> -> tensor<64x64xbf16>
      %95 = tile.reshape %90 : tensor<64xi1> -> tensor<64x1xi1>
      %96 = tile.broadcast %95 : tensor<64x1xi1> -> tensor<64x64xi1>
      %97 = arith.andi %96, %63 : tensor<64x64xi1>
      %98 = tile.gather %pb offsets %53 : tensor<64x64xi32> mask %97 : tensor<64x64xi1> : !tile.ptr<bf16> -> tensor<64x64xbf16>
      %99 = tile.dot %94, %98, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %100 = tile.ptr_add %pa, %c64_i64 : !tile.ptr<bf16>, i64
      %101 = tile.ptr_add %pb, %c64_i64 : !tile.ptr<bf16>, i64
      scf.yield %100, %101, %99 : !tile.ptr<bf16>, !tile.ptr<bf16>, tensor<64x64xf32>
    } {tile.stages = 3 : i32}
    %65 = tile.splat %L : i32 -> tensor<64xi32>
    %66 = arith.cmpi slt, %19, %65 : tensor<64xi32>
    %67 = tile.reshape %66 : tensor<64xi1> -> tensor<1x64xi1>
    %68 = arith.cmpi slt, %17, %65 : tensor<64xi32>
    %69 = tile.reshape %68 : tensor<64xi1> -> tensor<64x1xi1>
    %70 = tile.broadcast %69 : tensor<64x1xi1> -> tensor<64x64xi1>
    %71 = tile.broadcast %67 : tensor<1x64xi1> -> tensor<64x64xi1>
    %72 = arith.andi %70, %71 : tensor<64x64xi1>
    %73 = tile.splat %ym : i32 -> tensor<64x1xi32>
    %74 = arith.muli %4, %yg : i32
    %75 = arith.muli %2, %yc : i32
    %76 = arith.muli %0, %yb : i32
    %77 = arith.addi %76, %75 : i32
    %78 = arith.addi %77, %74 : i32
    %79 = tile.ptr_add %y, %78 : !tile.ptr<f32>, i32
    %80 = arith.extsi %ym : i32 to i64
    %81 = arith.muli %30, %80 : i64
    %82 = arith.muli %31, %73 : tensor<64x1xi32>
    %83 = tile.broadcast %82 : tensor<64x1xi32> -> tensor<64x64xi32>
    %84 = arith.addi %81, %48 : i64
    %85 = arith.addi %83, %37 : tensor<64x64xi32>
    %86 = tile.ptr_add %79, %84 : !tile.ptr<f32>, i64
    tile.scatter %64#2, %86 offsets %85 : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  }
  return
}
