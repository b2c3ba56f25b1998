// Elements of a row whose number and whose columns are read from memory, with 64 bits: the start of the row is one
// address, and every column one multiplication and addition from there (mul.wide and add.s64, which are one
// instruction).
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// CHECK-LABEL: .entry columns(
// CHECK: ld.global
// CHECK: add.s64 [[START:%rd[0-9]+]], {{%rd[0-9]+}}, {{%rd[0-9]+}};
// CHECK-COUNT-2: mul.wide.s32 {{%rd[0-9]+}}, {{%r[0-9]+}}, 4;
// CHECK-NOT: shl.b64
// CHECK: ret;
func.func @columns(%grid: !tile.ptr<f32>, %rows: !tile.ptr<i32>, %a: !tile.ptr<i32>, %b: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %row = tile.gather %rows offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %ca = tile.gather %a offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %cb = tile.gather %b offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %r = arith.extsi %row : tensor<128xi32> to tensor<128xi64>
  %x0 = arith.extsi %ca : tensor<128xi32> to tensor<128xi64>
  %x1 = arith.extsi %cb : tensor<128xi32> to tensor<128xi64>
  %at0 = arith.addi %r, %x0 : tensor<128xi64>
  %at1 = arith.addi %r, %x1 : tensor<128xi64>
  %v = tile.gather %grid offsets %at0 : tensor<128xi64> : !tile.ptr<f32> -> tensor<128xf32>
  %w = tile.gather %grid offsets %at1 : tensor<128xi64> : !tile.ptr<f32> -> tensor<128xf32>
  %s = arith.addf %v, %w : tensor<128xf32>
  tile.scatter %s, %y offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
