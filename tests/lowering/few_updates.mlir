// Updates without results of the elements that what was loaded chose (outliers of rows that are quantised): they are
// made by the threads that loaded them, and nothing is exchanged. Updates of all elements are made in whole lines.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @outliers
// CHECK-NOT: tile.convert
// CHECK: tile.gather {{.*}} -> tensor<4096xf16, {{.*}} regs [0:8*1,
// CHECK-NOT: tile.convert
// CHECK: tile.atomic_rmw max
// CHECK-NOT: tile.convert
// CHECK: return
func.func @outliers(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %out: !tile.ptr<i8> {tile.align = 16 : i32}, %flags: !tile.ptr<i32> {tile.align = 16 : i32}, %threshold: f16)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<4096xi32>
  %t = tile.splat %threshold : f16 -> tensor<4096xf16>
  %a = tile.gather %x offsets %i : tensor<4096xi32> : !tile.ptr<f16> -> tensor<4096xf16>
  %chosen = arith.cmpf oge, %a, %t : tensor<4096xf16>
  %flag = arith.extui %chosen : tensor<4096xi1> to tensor<4096xi32>
  %q = arith.fptosi %a : tensor<4096xf16> to tensor<4096xi8>
  tile.scatter %q, %out offsets %i : tensor<4096xi32> : tensor<4096xi8>, !tile.ptr<i8>
  %old = tile.atomic_rmw max relaxed gpu %flags offsets %i : tensor<4096xi32>, %flag mask %chosen : tensor<4096xi1> : !tile.ptr<i32>, tensor<4096xi32> -> tensor<4096xi32>
  return
}

// -----

// CHECK-LABEL: func.func @all
// CHECK: tile.atomic_rmw max {{.*}} -> tensor<4096xi32, {{.*}} regs [0:32*128] lanes [0:32*1]
func.func @all(%x: !tile.ptr<f16> {tile.align = 16 : i32}, %flags: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<4096xi32>
  %ns = tile.splat %n : i32 -> tensor<4096xi32>
  %inside = arith.cmpi slt, %i, %ns : tensor<4096xi32>
  %a = tile.gather %x offsets %i : tensor<4096xi32> : !tile.ptr<f16> -> tensor<4096xf16>
  %q = arith.fptosi %a : tensor<4096xf16> to tensor<4096xi32>
  %old = tile.atomic_rmw max relaxed gpu %flags offsets %i : tensor<4096xi32>, %q mask %inside : tensor<4096xi1> : !tile.ptr<i32>, tensor<4096xi32> -> tensor<4096xi32>
  return
}
