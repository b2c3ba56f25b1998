// RUN: tilec compile %s --target host:x86-64-v4 --emit llvm | FileCheck %s

// What the first additions in memory read is made in front of them, though a tile made later could share its loop: an
// atomic whose result nobody reads does its work where it stands.
// CHECK-LABEL: define void @tile.deposit
// CHECK: call {{.*}}@llvm.floor.v
// CHECK: call {{.*}}@llvm.floor.v
// CHECK: cmpxchg
// CHECK-NOT: call {{.*}}@llvm.floor.v
// CHECK: ret void
func.func @deposit(%arg0: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %arg1: !tile.ptr<f32>, %arg2: i32, %arg3: i32) attributes {tile.kernel} {
  %cst = arith.constant dense<1.000000e+00> : tensor<64xf32>
  %cst_0 = arith.constant dense<0> : tensor<64xi32>
  %cst_1 = arith.constant dense<1> : tensor<64xi32>
  %c1_i32 = arith.constant 1 : i32
  %c0_i32 = arith.constant 0 : i32
  %c64_i32 = arith.constant 64 : i32
  %0 = tile.iota : tensor<64xi32>
  %1 = tile.program_id 0
  %2 = arith.muli %1, %c64_i32 : i32
  %3 = tile.splat %2 : i32 -> tensor<64xi32>
  %4 = arith.addi %3, %0 : tensor<64xi32>
  %5 = tile.view_dim %arg0, 1 : !tile.view<2xf32>
  %6 = arith.trunci %5 : i64 to i32
  %7 = tile.splat %6 : i32 -> tensor<64xi32>
  %8 = arith.cmpi slt, %4, %7 : tensor<64xi32>
  %9 = tile.load %arg0[%c0_i32, %2 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
  %10 = tile.load %arg0[%c1_i32, %2 : i32, i32] : !tile.view<2xf32> -> tensor<64xf32>
  %11 = math.floor %9 fastmath<contract> : tensor<64xf32>
  %12 = math.floor %10 fastmath<contract> : tensor<64xf32>
  %13 = arith.fptosi %11 : tensor<64xf32> to tensor<64xi32>
  %14 = arith.fptosi %12 : tensor<64xf32> to tensor<64xi32>
  %15 = arith.addi %13, %cst_1 : tensor<64xi32>
  %16 = tile.splat %arg2 : i32 -> tensor<64xi32>
  %17 = arith.cmpi eq, %15, %16 : tensor<64xi32>
  %18 = arith.select %17, %cst_0, %15 : tensor<64xi1>, tensor<64xi32>
  %19 = arith.addi %14, %cst_1 : tensor<64xi32>
  %20 = tile.splat %arg3 : i32 -> tensor<64xi32>
  %21 = arith.cmpi eq, %19, %20 : tensor<64xi32>
  %22 = arith.select %21, %cst_0, %19 : tensor<64xi1>, tensor<64xi32>
  %23 = arith.subf %9, %11 fastmath<contract> : tensor<64xf32>
  %24 = arith.subf %10, %12 fastmath<contract> : tensor<64xf32>
  %25 = arith.subf %cst, %23 fastmath<contract> : tensor<64xf32>
  %26 = arith.subf %cst, %24 fastmath<contract> : tensor<64xf32>
  %27 = arith.mulf %26, %25 fastmath<contract> : tensor<64xf32>
  %28 = arith.muli %14, %16 : tensor<64xi32>
  %29 = arith.extsi %28 : tensor<64xi32> to tensor<64xi64>
  %30 = arith.extsi %13 : tensor<64xi32> to tensor<64xi64>
  %31 = arith.addi %29, %30 : tensor<64xi64>
  %32 = tile.atomic_rmw  add  relaxed  gpu %arg1 offsets %31 : tensor<64xi64>, %27 mask %8 : tensor<64xi1> : !tile.ptr<f32>, tensor<64xf32> -> tensor<64xf32>
  %33 = arith.mulf %26, %23 fastmath<contract> : tensor<64xf32>
  %34 = arith.extsi %18 : tensor<64xi32> to tensor<64xi64>
  %35 = arith.addi %29, %34 : tensor<64xi64>
  %36 = tile.atomic_rmw  add  relaxed  gpu %arg1 offsets %35 : tensor<64xi64>, %33 mask %8 : tensor<64xi1> : !tile.ptr<f32>, tensor<64xf32> -> tensor<64xf32>
  %37 = arith.mulf %24, %25 fastmath<contract> : tensor<64xf32>
  %38 = arith.muli %22, %16 : tensor<64xi32>
  %39 = arith.extsi %38 : tensor<64xi32> to tensor<64xi64>
  %40 = arith.addi %39, %30 : tensor<64xi64>
  %41 = tile.atomic_rmw  add  relaxed  gpu %arg1 offsets %40 : tensor<64xi64>, %37 mask %8 : tensor<64xi1> : !tile.ptr<f32>, tensor<64xf32> -> tensor<64xf32>
  %42 = arith.mulf %24, %23 fastmath<contract> : tensor<64xf32>
  %43 = arith.addi %39, %34 : tensor<64xi64>
  %44 = tile.atomic_rmw  add  relaxed  gpu %arg1 offsets %43 : tensor<64xi64>, %42 mask %8 : tensor<64xi1> : !tile.ptr<f32>, tensor<64xf32> -> tensor<64xf32>
  return
}
