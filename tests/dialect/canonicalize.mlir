// Rewrites that keep the kernel and make it smaller.
// RUN: tile-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @true_masks(
// CHECK-NOT: mask
// CHECK: return
func.func @true_masks(%p: !tile.ptr<i32>, %o: tensor<8xi32>, %x: tensor<8xi32>) {
  %t = arith.constant dense<true> : tensor<8xi1>
  %0 = tile.gather %p offsets %o : tensor<8xi32> mask %t : tensor<8xi1> other %x : tensor<8xi32> : !tile.ptr<i32> -> tensor<8xi32>
  tile.scatter %0, %p offsets %o : tensor<8xi32> mask %t : tensor<8xi1> : tensor<8xi32>, !tile.ptr<i32>
  %1 = tile.atomic_rmw add relaxed gpu %p offsets %o : tensor<8xi32>, %x mask %t : tensor<8xi1> : !tile.ptr<i32>, tensor<8xi32> -> tensor<8xi32>
  %2 = tile.atomic_cas relaxed gpu %p offsets %o : tensor<8xi32>, %x, %1 mask %t : tensor<8xi1> : !tile.ptr<i32>, tensor<8xi32>, tensor<8xi32> -> tensor<8xi32>
  return
}

// -----

// A load that touches nothing is its `other`; a store that touches nothing goes.
// CHECK-LABEL: func.func @false_masks(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xi32>)
// CHECK-NOT: tile.
// CHECK: return %[[X]], %{{.*}} : tensor<8xi32>, i32
func.func @false_masks(%p: !tile.ptr<i32>, %o: tensor<8xi32>, %x: tensor<8xi32>) -> (tensor<8xi32>, i32) {
  %f = arith.constant dense<false> : tensor<8xi1>
  %0 = tile.gather %p offsets %o : tensor<8xi32> mask %f : tensor<8xi1> other %x : tensor<8xi32> : !tile.ptr<i32> -> tensor<8xi32>
  tile.scatter %x, %p offsets %o : tensor<8xi32> mask %f : tensor<8xi1> : tensor<8xi32>, !tile.ptr<i32>
  %1 = tile.atomic_rmw add relaxed gpu %p offsets %o : tensor<8xi32>, %x mask %f : tensor<8xi1> : !tile.ptr<i32>, tensor<8xi32> -> tensor<8xi32>
  %no = arith.constant false
  %2 = tile.gather %p mask %no : i1 : !tile.ptr<i32> -> i32
  return %0, %2 : tensor<8xi32>, i32
}

// -----

// Lanes without `other` read zero; negative zero is another number.
// CHECK-LABEL: func.func @zero_other(
// CHECK: tile.gather %{{.*}} mask %{{.*}} : tensor<8xi1> : !tile.ptr<f32>
// CHECK: tile.gather %{{.*}} other
func.func @zero_other(%p: !tile.ptr<f32>, %o: tensor<8xi32>, %m: tensor<8xi1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %n = arith.constant dense<-0.0> : tensor<8xf32>
  %0 = tile.gather %p offsets %o : tensor<8xi32> mask %m : tensor<8xi1> other %z : tensor<8xf32> : !tile.ptr<f32> -> tensor<8xf32>
  %1 = tile.gather %p offsets %o : tensor<8xi32> mask %m : tensor<8xi1> other %n : tensor<8xf32> : !tile.ptr<f32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @splats(
// CHECK-NEXT: %[[S:.*]] = tile.splat %{{.*}} : f32 -> tensor<4x2xf32>
// CHECK-NEXT: return %[[S]]
func.func @splats(%x: f32) -> tensor<4x2xf32> {
  %0 = tile.splat %x : f32 -> tensor<1x4xf32>
  %1 = tile.broadcast %0 : tensor<1x4xf32> -> tensor<3x4xf32>
  %2 = tile.trans %1, [1, 0] : tensor<3x4xf32> -> tensor<4x3xf32>
  %3 = tile.extract %2 [0, 1] : tensor<4x3xf32> -> tensor<4x2xf32>
  %4 = tile.reshape %3 : tensor<4x2xf32> -> tensor<8xf32>
  %5 = tile.reshape %4 : tensor<8xf32> -> tensor<4x2xf32>
  return %5 : tensor<4x2xf32>
}

// -----

// So are those of constants.
// CHECK-LABEL: func.func @constants(
// CHECK-DAG: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
// CHECK-DAG: %[[S:.*]] = arith.constant dense<7> : tensor<4x8xi32>
// CHECK-NEXT: return %[[Z]], %[[S]]
func.func @constants() -> (tensor<1x64xf32>, tensor<4x8xi32>) {
  %c7 = arith.constant 7 : i32
  %z = arith.constant dense<0.0> : tensor<4x64xf32>
  %line = tile.extract %z [1, 0] : tensor<4x64xf32> -> tensor<1x64xf32>
  %s = tile.splat %c7 : i32 -> tensor<1x4xi32>
  %t = tile.trans %s, [1, 0] : tensor<1x4xi32> -> tensor<4x1xi32>
  %b = tile.broadcast %t : tensor<4x1xi32> -> tensor<4x8xi32>
  return %line, %b : tensor<1x64xf32>, tensor<4x8xi32>
}

// -----

// CHECK-LABEL: func.func @nothing_to_do(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x8xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @nothing_to_do(%x: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) {
  %0 = tile.reduce %x axis 0 : (tensor<1x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %1 = tile.trans %x, [0, 1] : tensor<1x8xf32> -> tensor<1x8xf32>
  %2 = tile.extract %x [0, 0] : tensor<1x8xf32> -> tensor<1x8xf32>
  %3 = tile.cat %x axis 0 : tensor<1x8xf32> -> tensor<1x8xf32>
  return %0, %1, %2, %3 : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !tile.ptr<f32>, %[[N:[a-z0-9]+]]: i64, %[[S:[a-z0-9]+]]: i64
// CHECK-NEXT: return %[[P]], %[[N]], %[[S]]
func.func @views(%p: !tile.ptr<f32>, %n: i64, %s: i64) -> (!tile.ptr<f32>, i64, i64) {
  %v = tile.make_view %p, dims(%n), strides(%s) : !tile.ptr<f32> -> !tile.view<1xf32>
  %0 = tile.view_ptr %v : !tile.view<1xf32> -> !tile.ptr<f32>
  %1 = tile.view_dim %v, 0 : !tile.view<1xf32>
  %2 = tile.view_stride %v, 0 : !tile.view<1xf32>
  return %0, %1, %2 : !tile.ptr<f32>, i64, i64
}

// -----

// The leading dims of a box have extent 1: a reshape that drops or adds them says nothing.
// CHECK-LABEL: func.func @units_of_boxes(
// CHECK: %[[X:.*]] = tile.load %{{.*}} : <3xf32> -> tensor<4x8xf32>
// CHECK-NEXT: tile.store %[[X]], %{{.*}} : tensor<4x8xf32>, <3xf32>
// CHECK-NEXT: return
func.func @units_of_boxes(%v: !tile.view<3xf32>, %w: !tile.view<3xf32>, %i: i32) {
  %0 = tile.load %v[%i, %i, %i : i32, i32, i32] : <3xf32> -> tensor<1x4x8xf32>
  %1 = tile.reshape %0 : tensor<1x4x8xf32> -> tensor<4x8xf32>
  %2 = tile.reshape %1 : tensor<4x8xf32> -> tensor<1x4x8xf32>
  tile.store %2, %w[%i, %i, %i : i32, i32, i32] : tensor<1x4x8xf32>, <3xf32>
  return
}

// -----

// Those between other dims go as well: the box is one of the view whose dims have changed places.
// CHECK-LABEL: func.func @units_inside(
// CHECK-SAME: %[[V:.*]]: !tile.view<4xf32>, %[[W:.*]]: !tile.view<4xf32>, %[[B:.*]]: i32, %[[M:.*]]: i32, %[[H:.*]]: i32
// CHECK-DAG: %[[COLUMNS:.*]] = tile.view_dim %[[V]], 2
// CHECK-DAG: %[[COLUMN:.*]] = tile.view_stride %[[V]], 2
// CHECK-DAG: %[[ROWS:.*]] = tile.view_dim %[[V]], 1
// CHECK-DAG: %[[ROW:.*]] = tile.view_stride %[[V]], 1
// CHECK-DAG: %[[TURNED:.*]] = tile.make_view %{{.*}}, dims(%{{.*}}, %[[COLUMNS]], %[[ROWS]], %{{.*}}), strides(%{{.*}}, %[[COLUMN]], %[[ROW]], %{{.*}})
// CHECK: %[[TILE:.*]] = tile.load %[[TURNED]][%[[B]], %[[H]], %[[M]], %{{.*}} : {{.*}}] pad 3.000000e+00 : <4xf32> -> tensor<8x4xf32>
// CHECK-NOT: tile.reshape
// CHECK: tile.store %[[TILE]], %{{.*}}[%[[B]], %[[H]], %[[M]], %{{.*}} : {{.*}}] : tensor<8x4xf32>, <4xf32>
func.func @units_inside(%v: !tile.view<4xf32>, %w: !tile.view<4xf32>, %b: i32, %m: i32, %h: i32) {
  %c0 = arith.constant 0 : i32
  %0 = tile.load %v[%b, %m, %h, %c0 : i32, i32, i32, i32] pad 3.0 : !tile.view<4xf32> -> tensor<1x8x1x4xf32>
  %1 = tile.reshape %0 : tensor<1x8x1x4xf32> -> tensor<8x4xf32>
  %2 = tile.reshape %1 : tensor<8x4xf32> -> tensor<1x8x1x4xf32>
  tile.store %2, %w[%b, %m, %h, %c0 : i32, i32, i32, i32] : tensor<1x8x1x4xf32>, !tile.view<4xf32>
  return
}

// -----

// Other reshapes stay, and so does a load with another reader.
// CHECK-LABEL: func.func @other_reshapes(
// CHECK: tile.load %{{.*}} -> tensor<1x4x8xf32>
// CHECK: tile.reshape %{{.*}} : tensor<1x4x8xf32> -> tensor<4x8xf32>
// CHECK: tile.load %{{.*}} -> tensor<4x1x8xf32>
// CHECK: tile.reshape %{{.*}} : tensor<4x1x8xf32> -> tensor<2x16xf32>
func.func @other_reshapes(%v: !tile.view<3xf32>, %w: !tile.view<3xf32>, %i: i32) -> (tensor<4x8xf32>, tensor<2x16xf32>) {
  %0 = tile.load %v[%i, %i, %i : i32, i32, i32] : <3xf32> -> tensor<1x4x8xf32>
  %1 = tile.reshape %0 : tensor<1x4x8xf32> -> tensor<4x8xf32>
  tile.store %0, %w[%i, %i, %i : i32, i32, i32] : tensor<1x4x8xf32>, <3xf32>
  %2 = tile.load %v[%i, %i, %i : i32, i32, i32] : <3xf32> -> tensor<4x1x8xf32>
  %3 = tile.reshape %2 : tensor<4x1x8xf32> -> tensor<2x16xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<2x16xf32>
}

// -----

// What lies between one put and the next is not read; other readers and other axes keep them apart.
// CHECK-LABEL: func.func @puts(
// CHECK-SAME: %[[A:.*]]: tensor<8x4xf32>, %[[I:.*]]: tensor<2x4xi32>, %[[J:.*]]: tensor<2x4xi32>, %[[V:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<2x4xf32>
// CHECK: %[[R:.*]] = tile.put %[[V]], %[[W]] at %[[I]], %[[J]] into %[[A]] axis 0
// CHECK-NEXT: return %[[R]]
func.func @puts(%a: tensor<8x4xf32>, %i: tensor<2x4xi32>, %j: tensor<2x4xi32>, %v: tensor<2x4xf32>, %w: tensor<2x4xf32>) -> tensor<8x4xf32> {
  %0 = tile.put %v at %i into %a axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = tile.put %w at %j into %0 axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// Nothing of what a whole tile is put into stays: it need not be computed.
// CHECK-LABEL: func.func @puts_whole(
// CHECK-SAME: %[[I:.*]]: tensor<8x4xi32>, %[[V:.*]]: tensor<8x4xf32>
// CHECK-NEXT: %[[R:.*]] = tile.put %[[V]] at %[[I]] into %[[V]] axis 0 {whole}
// CHECK-NEXT: return %[[R]]
func.func @puts_whole(%i: tensor<8x4xi32>, %v: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = arith.addf %v, %v : tensor<8x4xf32>
  %0 = tile.put %a at %i into %v axis 0 : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = tile.put %v at %i into %0 axis 0 {whole} : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func.func @puts_apart(
// CHECK-COUNT-2: tile.put
func.func @puts_apart(%a: tensor<8x4xf32>, %i: tensor<2x4xi32>, %v: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = tile.put %v at %i into %a axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = tile.put %v at %i into %0 axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
