// Records of one array, read and written field by field: every field's reads come before the first write, as vectors.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-gathers-together -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// box[8 to + k] = min(box[8 from + k], leaf[8 from + k]), k = 0, 1, 2: x, y and z are one access of each.
// CHECK-LABEL: .entry boxes(
// CHECK: ld.global.v4.b32
// CHECK: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: bar.sync
// CHECK: st.global
// CHECK-NOT: bar.sync
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @boxes(%box: !tile.ptr<f32> {tile.align = 16 : i32}, %leaf: !tile.ptr<f32> {tile.align = 16 : i32}, %from: i32, %to: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %eight = arith.constant dense<8> : tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %f = tile.splat %from : i32 -> tensor<128xi32>
  %t = tile.splat %to : i32 -> tensor<128xi32>
  %a = arith.addi %i, %f : tensor<128xi32>
  %b = arith.addi %i, %t : tensor<128xi32>
  %src = arith.muli %a, %eight : tensor<128xi32>
  %dst = arith.muli %b, %eight : tensor<128xi32>
  %x = tile.gather %box offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %lx = tile.gather %leaf offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %mx = arith.minnumf %x, %lx : tensor<128xf32>
  tile.scatter %mx, %box offsets %dst : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %box1 = tile.ptr_add %box, %one : !tile.ptr<f32>, i64
  %leaf1 = tile.ptr_add %leaf, %one : !tile.ptr<f32>, i64
  %y = tile.gather %box1 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %ly = tile.gather %leaf1 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %my = arith.minnumf %y, %ly : tensor<128xf32>
  tile.scatter %my, %box1 offsets %dst : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %box2 = tile.ptr_add %box, %two : !tile.ptr<f32>, i64
  %leaf2 = tile.ptr_add %leaf, %two : !tile.ptr<f32>, i64
  %z = tile.gather %box2 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %lz = tile.gather %leaf2 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %mz = arith.minnumf %z, %lz : tensor<128xf32>
  tile.scatter %mz, %box2 offsets %dst : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Records of three: field 1 of one is where field 0 of another may have been written.
// CHECK-LABEL: .entry odd(
// CHECK: ld.global.b32
// CHECK: st.global.b32
// CHECK: ld.global.b32
// CHECK: ret;
func.func @odd(%box: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %one = arith.constant 1 : i64
  %i = tile.iota : tensor<128xi32>
  %by = tile.splat %n : i32 -> tensor<128xi32>
  %src = arith.muli %i, %by : tensor<128xi32>
  %x = tile.gather %box offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %mx = arith.addf %x, %x : tensor<128xf32>
  tile.scatter %mx, %box offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %box1 = tile.ptr_add %box, %one : !tile.ptr<f32>, i64
  %y = tile.gather %box1 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %y, %box1 offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// What a field's address is made of stands right behind the field that is read first.
// CHECK-LABEL: .entry beside(
// CHECK: ld.global.v2.b32
// CHECK-NOT: ld.global
// CHECK: st.global
// CHECK: ret;
func.func @beside(%box: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32, %k: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %one = arith.constant 1 : i32
  %two = arith.constant dense<2> : tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %by = tile.splat %n : i32 -> tensor<128xi32>
  %src = arith.muli %i, %two : tensor<128xi32>
  %at = arith.addi %i, %by : tensor<128xi32>
  %dst = arith.muli %at, %two : tensor<128xi32>
  %x = tile.gather %box offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %box1 = tile.ptr_add %box, %one : !tile.ptr<f32>, i32
  %mx = arith.addf %x, %x : tensor<128xf32>
  tile.scatter %mx, %box offsets %dst : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %y = tile.gather %box1 offsets %src : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %y, %box1 offsets %dst : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
