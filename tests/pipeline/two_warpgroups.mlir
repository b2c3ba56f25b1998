// Threads of one warpgroup of consumers that hold so much that no second program has room beside theirs: of a kernel that
// does not say how many warps it has, and whose products have 128 rows, two warpgroups divide them.
// RUN: tilec compile %s -t sm_90a -e mlir:gpu | FileCheck %s -check-prefix=TWO
// TWO: tile.num_warps = 8 : i32
// TWO: warps(8, 1)
// One that says so keeps its warpgroup.
// RUN: sed 's/tile.kernel/tile.kernel, tile.num_warps = 4 : i32/' %s > %t.four.mlir
// RUN: tilec compile %t.four.mlir -t sm_90a -e mlir:gpu | FileCheck %s -check-prefix=ONE
// ONE: tile.num_warps = 4 : i32
// ONE: warps(4, 1)

// Heads that share keys, in rows of one tile: a window, and scores under a cap.
module {
  func.func @packed_queries(%arg0: !tile.view<3xbf16> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 16, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.unit_stride = 2 : i32}, %arg1: !tile.view<3xbf16> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 1, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.unit_stride = 2 : i32}, %arg2: !tile.view<3xbf16> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 1, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.unit_stride = 2 : i32}, %arg3: !tile.ptr<f32> {tile.align = 16 : i32}, %arg4: !tile.view<3xbf16> {tile.align = 16 : i32, tile.dim_multiple_of = array<i32: 16, 16, 16>, tile.stride_multiple_of = array<i32: 16, 16, 1>, tile.unit_stride = 2 : i32}, %arg5: i32 {tile.multiple_of = 16 : i32}, %arg6: f32, %arg7: f32) attributes {tile.kernel} {
    %c16_i32 = arith.constant 16 : i32
    %c8_i32 = arith.constant 8 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant dense<8> : tensor<128xi32>
    %cst_0 = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %c1_i32 = arith.constant 1 : i32
    %c64_i32 = arith.constant 64 : i32
    %cst_3 = arith.constant 1.44269502 : f32
    %cst_4 = arith.constant dense<0xFF800000> : tensor<128x64xf32>
    %cst_5 = arith.constant dense<1.44269502> : tensor<128x1xf32>
    %0 = tile.view_dim %arg2, 1 : <3xbf16>
    %1 = tile.view_stride %arg2, 1 : <3xbf16>
    %2 = tile.view_dim %arg2, 0 : <3xbf16>
    %3 = tile.view_stride %arg2, 0 : <3xbf16>
    %4 = tile.view_dim %arg2, 2 : <3xbf16>
    %5 = tile.view_stride %arg2, 2 : <3xbf16>
    %6 = tile.view_ptr %arg2 : <3xbf16> -> <bf16>
    %7 = tile.make_view %6, dims(%0, %2, %4), strides(%1, %3, %5) : <bf16> -> <3xbf16>
    %8 = tile.view_dim %arg1, 1 : <3xbf16>
    %9 = tile.view_stride %arg1, 1 : <3xbf16>
    %10 = tile.view_dim %arg1, 0 : <3xbf16>
    %11 = tile.view_stride %arg1, 0 : <3xbf16>
    %12 = tile.view_dim %arg1, 2 : <3xbf16>
    %13 = tile.view_stride %arg1, 2 : <3xbf16>
    %14 = tile.view_ptr %arg1 : <3xbf16> -> <bf16>
    %15 = tile.make_view %14, dims(%8, %10, %12), strides(%9, %11, %13) : <bf16> -> <3xbf16>
    %16 = tile.program_id 0
    %17 = arith.muli %16, %c16_i32 : i32
    %18 = tile.program_id 1
    %19 = arith.muli %18, %c8_i32 : i32
    %20 = tile.load %arg0[%17, %19, %c0_i32 : i32, i32, i32] : <3xbf16> -> tensor<16x8x64xbf16>
    %21 = tile.reshape %20 : tensor<16x8x64xbf16> -> tensor<128x64xbf16>
    %22 = tile.iota : tensor<128xi32>
    %23 = arith.divsi %22, %cst : tensor<128xi32>
    %24 = tile.splat %17 : i32 -> tensor<128xi32>
    %25 = arith.addi %24, %23 : tensor<128xi32>
    %26 = tile.reshape %25 : tensor<128xi32> -> tensor<128x1xi32>
    %27 = arith.subi %17, %arg5 : i32
    %28 = arith.addi %27, %c1_i32 : i32
    %29 = arith.maxsi %28, %c0_i32 : i32
    %30 = arith.divsi %29, %c64_i32 : i32
    %31 = arith.muli %30, %c64_i32 : i32
    %32 = arith.trunci %10 overflow<nsw> : i64 to i32
    %33 = arith.addi %17, %c16_i32 : i32
    %34 = arith.minsi %33, %32 : i32
    %35 = arith.mulf %arg7, %cst_3 fastmath<contract> : f32
    %36 = arith.divf %arg6, %arg7 fastmath<contract> : f32
    %37 = tile.splat %36 : f32 -> tensor<128x64xf32>
    %38 = tile.splat %35 : f32 -> tensor<128x64xf32>
    %39 = tile.iota : tensor<64xi32>
    %40 = tile.splat %arg5 : i32 -> tensor<128x1xi32>
    %41 = arith.subi %26, %40 : tensor<128x1xi32>
    %42 = tile.broadcast %41 : tensor<128x1xi32> -> tensor<128x64xi32>
    %43 = tile.broadcast %26 : tensor<128x1xi32> -> tensor<128x64xi32>
    %44:3 = scf.for %arg8 = %31 to %34 step %c64_i32 iter_args(%arg9 = %cst_0, %arg10 = %cst_1, %arg11 = %cst_2) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>)  : i32 {
      %63 = tile.load %15[%18, %arg8, %c0_i32 : i32, i32, i32] : <3xbf16> -> tensor<64x64xbf16>
      %64 = tile.load %7[%18, %arg8, %c0_i32 : i32, i32, i32] : <3xbf16> -> tensor<64x64xbf16>
      %65 = tile.trans %63, [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %66 = tile.dot %21, %65, %cst_2 : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
      %67 = arith.mulf %66, %37 fastmath<contract> : tensor<128x64xf32>
      %68 = math.tanh %67 fastmath<contract> : tensor<128x64xf32>
      %69 = arith.mulf %68, %38 fastmath<contract> : tensor<128x64xf32>
      %70 = tile.splat %arg8 : i32 -> tensor<64xi32>
      %71 = arith.addi %70, %39 : tensor<64xi32>
      %72 = tile.reshape %71 : tensor<64xi32> -> tensor<1x64xi32>
      %73 = tile.broadcast %72 : tensor<1x64xi32> -> tensor<128x64xi32>
      %74 = arith.cmpi sgt, %73, %42 : tensor<128x64xi32>
      %75 = arith.cmpi sle, %73, %43 : tensor<128x64xi32>
      %76 = arith.andi %75, %74 : tensor<128x64xi1>
      %77 = arith.select %76, %69, %cst_4 : tensor<128x64xi1>, tensor<128x64xf32>
      %78 = tile.reduce %77 axis 1 : (tensor<128x64xf32>) -> tensor<128x1xf32> {
      ^bb0(%arg12: f32, %arg13: f32):
        %94 = arith.maxnumf %arg12, %arg13 : f32
        tile.yield %94 : f32
      }
      %79 = arith.maximumf %arg9, %78 fastmath<contract> : tensor<128x1xf32>
      %80 = arith.cmpf oeq, %79, %cst_0 fastmath<contract> : tensor<128x1xf32>
      %81 = arith.select %80, %cst_1, %79 : tensor<128x1xi1>, tensor<128x1xf32>
      %82 = tile.broadcast %81 : tensor<128x1xf32> -> tensor<128x64xf32>
      %83 = arith.subf %77, %82 fastmath<contract> : tensor<128x64xf32>
      %84 = math.exp2 %83 fastmath<contract> : tensor<128x64xf32>
      %85 = arith.subf %arg9, %81 fastmath<contract> : tensor<128x1xf32>
      %86 = math.exp2 %85 fastmath<contract> : tensor<128x1xf32>
      %87 = tile.reduce %84 axis 1 : (tensor<128x64xf32>) -> tensor<128x1xf32> {
      ^bb0(%arg12: f32, %arg13: f32):
        %94 = arith.addf %arg12, %arg13 fastmath<contract> : f32
        tile.yield %94 : f32
      }
      %88 = arith.mulf %arg10, %86 fastmath<contract> : tensor<128x1xf32>
      %89 = arith.addf %88, %87 fastmath<contract> : tensor<128x1xf32>
      %90 = tile.broadcast %86 : tensor<128x1xf32> -> tensor<128x64xf32>
      %91 = arith.mulf %arg11, %90 fastmath<contract> : tensor<128x64xf32>
      %92 = arith.truncf %84 : tensor<128x64xf32> to tensor<128x64xbf16>
      %93 = tile.dot %92, %64, %91 : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
      scf.yield %79, %89, %93 : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x64xf32>
    }
    %45 = arith.remsi %22, %cst : tensor<128xi32>
    %46 = arith.extsi %19 : i32 to i64
    %47 = tile.ptr_add %arg3, %46 : !tile.ptr<f32>, i64
    %48 = tile.gather %47 offsets %45 : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %49 = tile.reshape %48 : tensor<128xf32> -> tensor<128x1xf32>
    %50 = arith.mulf %49, %cst_5 fastmath<contract> : tensor<128x1xf32>
    %51 = arith.maxnumf %44#0, %50 fastmath<contract> : tensor<128x1xf32>
    %52 = arith.subf %44#0, %51 fastmath<contract> : tensor<128x1xf32>
    %53 = math.exp2 %52 fastmath<contract> : tensor<128x1xf32>
    %54 = arith.subf %50, %51 fastmath<contract> : tensor<128x1xf32>
    %55 = math.exp2 %54 fastmath<contract> : tensor<128x1xf32>
    %56 = arith.mulf %44#1, %53 fastmath<contract> : tensor<128x1xf32>
    %57 = arith.addf %56, %55 fastmath<contract> : tensor<128x1xf32>
    %58 = arith.divf %53, %57 fastmath<contract> : tensor<128x1xf32>
    %59 = tile.broadcast %58 : tensor<128x1xf32> -> tensor<128x64xf32>
    %60 = arith.mulf %44#2, %59 fastmath<contract> : tensor<128x64xf32>
    %61 = arith.truncf %60 : tensor<128x64xf32> to tensor<128x64xbf16>
    %62 = tile.reshape %61 : tensor<128x64xbf16> -> tensor<16x8x64xbf16>
    tile.store %62, %arg4[%17, %19, %c0_i32 : i32, i32, i32] : tensor<16x8x64xbf16>, <3xbf16>
    return
  }
}
