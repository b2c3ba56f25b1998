// Pointer arithmetic and views.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @pointers(
func.func @pointers(%p: !tile.ptr<f32>, %t: tensor<4x!tile.ptr<f32>>, %o: tensor<4xi32>, %n: i64, %i: i32) {
  // CHECK: tile.ptr_add %{{.*}}, %{{.*}} : !tile.ptr<f32>, i32
  %0 = tile.ptr_add %p, %i : !tile.ptr<f32>, i32
  // CHECK: tile.ptr_add %{{.*}}, %{{.*}} : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  %1 = tile.ptr_add %t, %o : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  // CHECK: tile.ptr_to_int
  %2 = tile.ptr_to_int %p : !tile.ptr<f32>
  // CHECK: tile.int_to_ptr
  %3 = tile.int_to_ptr %2 : !tile.ptr<f16>
  // CHECK: tile.make_view %{{.*}}, dims(%{{.*}}, %{{.*}}), strides(%{{.*}}, %{{.*}})
  %4 = tile.make_view %p, dims(%n, %n), strides(%n, %2) : !tile.ptr<f32> -> !tile.view<2xf32>
  // CHECK: tile.view_ptr
  %5 = tile.view_ptr %4 : !tile.view<2xf32> -> !tile.ptr<f32>
  // CHECK: tile.view_dim %{{.*}}, 1 : <2xf32>
  %6 = tile.view_dim %4, 1 : !tile.view<2xf32>
  // CHECK: tile.view_stride %{{.*}}, 0 : <2xf32>
  %7 = tile.view_stride %4, 0 : !tile.view<2xf32>
  return
}

// -----

func.func @offset_shape(%t: tensor<4x!tile.ptr<f32>>, %o: tensor<8xi32>) {
  // expected-error @+1 {{offset must have the shape of 'tensor<4x!tile.ptr<f32>>', found 'tensor<8xi32>'}}
  %1 = tile.ptr_add %t, %o : tensor<4x!tile.ptr<f32>>, tensor<8xi32>
  return
}

// -----

func.func @offset_scalar(%t: tensor<4x!tile.ptr<f32>>, %o: i32) {
  // expected-error @+1 {{offset must have the shape of 'tensor<4x!tile.ptr<f32>>', found 'i32'}}
  %1 = tile.ptr_add %t, %o : tensor<4x!tile.ptr<f32>>, i32
  return
}

// -----

func.func @offset_type(%p: !tile.ptr<f32>, %o: f32) {
  // expected-error @+1 {{operand #1 must be integer}}
  %1 = tile.ptr_add %p, %o : !tile.ptr<f32>, f32
  return
}

// -----

func.func @view_element(%p: !tile.ptr<f32>, %n: i64) {
  // expected-error @+1 {{view must hold 'f32' as the pointer does, found '!tile.view<1xf16>'}}
  %0 = tile.make_view %p, dims(%n), strides(%n) : !tile.ptr<f32> -> !tile.view<1xf16>
  return
}

// -----

func.func @view_rank(%p: !tile.ptr<f32>, %n: i64) {
  // expected-error @+1 {{expects 2 dims and strides, found 2 and 1}}
  %0 = tile.make_view %p, dims(%n, %n), strides(%n) : !tile.ptr<f32> -> !tile.view<2xf32>
  return
}

// -----

func.func @view_ptr(%v: !tile.view<2xf32>) {
  // expected-error @+1 {{expects a pointer to 'f32', found '!tile.ptr<f16>'}}
  %0 = tile.view_ptr %v : !tile.view<2xf32> -> !tile.ptr<f16>
  return
}

// -----

func.func @view_dim(%v: !tile.view<2xf32>) {
  // expected-error @+1 {{dim must be between 0 and 1, found 2}}
  %0 = tile.view_dim %v, 2 : !tile.view<2xf32>
  return
}

// -----

func.func @view_stride(%v: !tile.view<2xf32>) {
  // expected-error @+1 {{dim must be between 0 and 1, found -1}}
  %0 = tile.view_stride %v, -1 : !tile.view<2xf32>
  return
}
