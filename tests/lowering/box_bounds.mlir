// Places of 32 bits are compared with sizes in 32 bits, exactly: sizes beyond are cut to what no place reaches.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=llvm -o /dev/null | FileCheck %s

// Maybe negative: as good as two tiles below.
// CHECK-LABEL: @box(
// CHECK-DAG: %[[PLACE:.*]] = {{.*}}call i32 @llvm.smax.i32(i32 %{{.*}}, i32 -1024)
// CHECK-DAG: call i64 @llvm.{{[su]}}min.i64(i64 %{{.*}}, i64 4294965760)
// CHECK-DAG: icmp ult i32
// CHECK-NOT: icmp sl
func.func @box(%x: !tile.view<1xf32>, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %at: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %v = tile.load %x[%at : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  tile.scatter %v, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// Inside of its view nothing is compared, and neighbours come together whatever the view's size is.
// CHECK-LABEL: @inside(
// CHECK-NOT: icmp ult
// CHECK: load <4 x float>
// CHECK-NOT: icmp ult
// CHECK: ret void
func.func @inside(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %at: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %v = tile.load %x[%at : i32] {tile.inside} : !tile.view<1xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  tile.scatter %v, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// So are places of single rows and of scalars; sizes that are no number of places have none.
// CHECK-LABEL: @rows(
// CHECK: %[[NONE:.*]] = {{.*}}call i64 @llvm.smax.i64(i64 %{{.*}}, i64 0)
// CHECK: %[[SIZE:.*]] = {{.*}}call i64 @llvm.smin.i64(i64 %[[NONE]], i64 2147483648)
// CHECK: %[[LIMIT:.*]] = trunc {{.*}}i64 %[[SIZE]] to i32
// CHECK: icmp ult i32 %{{.*}}, %[[LIMIT]]
// CHECK-NOT: icmp {{.*}} i64
// CHECK: ret void
func.func @rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %row: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = tile.load %x[%row, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<512xf32>
  %s = tile.load %x[%row, %row : i32, i32] : !tile.view<2xf32> -> f32
  %t = tile.splat %s : f32 -> tensor<512xf32>
  %w = arith.addf %v, %t : tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  tile.scatter %w, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// A row before another one: addresses do not wrap, so that a place that would is none.
// CHECK-LABEL: @before(
// CHECK: %[[FROM:.*]] = {{.*}}call i32 @llvm.smax.i32(i32 %{{.*}}, i32 0)
// CHECK: %[[AT:.*]] = add i32 %[[FROM]], -3
// CHECK: icmp ult i32 %[[AT]],
// CHECK: ret void
func.func @before(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %row: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant -3 : i32
  %before = arith.addi %row, %c3 : i32
  %v = tile.load %x[%before, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<512xf32>
  %i = tile.iota : tensor<512xi32>
  tile.scatter %v, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}
