// On hosts one mask is worth a copy of the code without it, and tiles that only the branch reads are made inside of it.
// RUN: tile-opt %s -split-input-file --tile-peel-edges=host=true --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @one_mask
// CHECK-NOT: tensor<
// CHECK: scf.if
// CHECK-NOT: arith.cmpi slt
// CHECK-NOT: mask
// CHECK: } else {
// CHECK: %[[IN:.*]] = arith.cmpi slt
// CHECK: tile.gather {{.*}} mask %[[IN]]
// CHECK: tile.scatter {{.*}} mask %[[IN]]
// CHECK: }
// CHECK-NEXT: return
func.func @one_mask(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c1024 = arith.constant 1024 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c1024 : i32
  %s = tile.splat %start : i32 -> tensor<1024xi32>
  %i = tile.iota : tensor<1024xi32>
  %x = arith.addi %s, %i : tensor<1024xi32>
  %end = tile.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %x, %end : tensor<1024xi32>
  %v = tile.gather %p offsets %x : tensor<1024xi32> mask %in : tensor<1024xi1> : !tile.ptr<f32> -> tensor<1024xf32>
  %w = arith.addf %v, %v : tensor<1024xf32>
  tile.scatter %w, %q offsets %x : tensor<1024xi32> mask %in : tensor<1024xi1> : tensor<1024xf32>, !tile.ptr<f32>
  return
}

// -----

// A tile that is read behind the branch as well stays in front of it.
// CHECK-LABEL: func.func @read_behind
// CHECK: %[[PLACE:.*]] = arith.addi {{.*}} : tensor<64xi32>
// CHECK: scf.if
// CHECK: tile.gather %{{.*}} offsets %[[PLACE]]
// CHECK: } else {
// CHECK: tile.gather %{{.*}} offsets %[[PLACE]] {{.*}} mask
// CHECK: return
func.func @read_behind(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>, %n: i32, %c: i1) {
  %pid = tile.program_id 0
  %s = tile.splat %pid : i32 -> tensor<64xi32>
  %i = tile.iota : tensor<64xi32>
  %x = arith.addi %s, %i : tensor<64xi32>
  scf.if %c {
    %end = tile.splat %n : i32 -> tensor<64xi32>
    %in = arith.cmpi slt, %x, %end : tensor<64xi32>
    %v = tile.gather %p offsets %x : tensor<64xi32> mask %in : tensor<64xi1> : !tile.ptr<f32> -> tensor<64xf32>
    tile.scatter %v, %p offsets %x : tensor<64xi32> mask %in : tensor<64xi1> : tensor<64xf32>, !tile.ptr<f32>
  }
  tile.scatter %x, %q offsets %x : tensor<64xi32> : tensor<64xi32>, !tile.ptr<i32>
  return
}

// -----

// Three boxes are enough, wherever they are.
// CHECK-LABEL: func.func @three_boxes
// CHECK: scf.if
// CHECK-COUNT-3: tile.load {{.*}} {tile.inside}
// CHECK: tile.store {{.*}} {tile.inside}
// CHECK: } else {
// CHECK-NOT: tile.inside
// CHECK: return
func.func @three_boxes(%a: !tile.view<1xf32>, %b: !tile.view<1xf32>, %c: !tile.view<1xf32>, %d: !tile.view<1xf32>, %i: i32) {
  %x = tile.load %a[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %y = tile.load %b[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %z = tile.load %c[%i : i32] : !tile.view<1xf32> -> tensor<128xf32>
  %s = arith.addf %x, %y : tensor<128xf32>
  %t = arith.addf %s, %z : tensor<128xf32>
  tile.store %t, %d[%i : i32] : tensor<128xf32>, !tile.view<1xf32>
  return
}
