// Making and reshaping tiles.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @shapes(
func.func @shapes(%x: f32, %p: !tile.ptr<f32>, %a: tensor<6x1xf32>, %b: tensor<6x4xf32>, %i: tensor<2x4xi32>, %one: tensor<1x1xi32>) {
  // CHECK: tile.iota : tensor<96xi32>
  %0 = tile.iota : tensor<96xi32>
  // CHECK: tile.iota from -3 : tensor<5xi8>
  %1 = tile.iota from -3 : tensor<5xi8>
  // CHECK: tile.iota from 128 : tensor<128xi8>
  %2 = tile.iota from 128 : tensor<128xi8>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<3x5xf32>
  %3 = tile.splat %x : f32 -> tensor<3x5xf32>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<f32> -> tensor<7x!tile.ptr<f32>>
  %4 = tile.splat %p : !tile.ptr<f32> -> tensor<7x!tile.ptr<f32>>
  // CHECK: tile.broadcast %{{.*}} : tensor<6x1xf32> -> tensor<6x4xf32>
  %5 = tile.broadcast %a : tensor<6x1xf32> -> tensor<6x4xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<6x4xf32> -> tensor<2x1x12xf32>
  %6 = tile.reshape %b : tensor<6x4xf32> -> tensor<2x1x12xf32>
  // CHECK: tile.trans %{{.*}}, [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %7 = tile.trans %b, [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  // CHECK: tile.cat %{{.*}}, %{{.*}} axis 1 : tensor<6x1xf32>, tensor<6x4xf32> -> tensor<6x5xf32>
  %8 = tile.cat %a, %b axis 1 : tensor<6x1xf32>, tensor<6x4xf32> -> tensor<6x5xf32>
  // CHECK: tile.extract %{{.*}} [2, 1] : tensor<6x4xf32> -> tensor<4x3xf32>
  %9 = tile.extract %b [2, 1] : tensor<6x4xf32> -> tensor<4x3xf32>
  // CHECK: tile.take %{{.*}}, %{{.*}} axis 0 : tensor<6x4xf32>, tensor<2x4xi32> -> tensor<2x4xf32>
  %10 = tile.take %b, %i axis 0 : tensor<6x4xf32>, tensor<2x4xi32> -> tensor<2x4xf32>
  // CHECK: tile.put %{{.*}} at %{{.*}} into %{{.*}} axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %put = tile.put %10 at %i into %b axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  // CHECK: tile.histogram %{{.*}} : tensor<2x4xi32> -> tensor<7xi32>
  %counts = tile.histogram %i : tensor<2x4xi32> -> tensor<7xi32>
  // CHECK: tile.histogram %{{.*}} weights %{{.*}} : tensor<2x4xf32> : tensor<2x4xi32> -> tensor<7xf32>
  %weights = arith.constant dense<0.5> : tensor<2x4xf32>
  %sums = tile.histogram %i weights %weights : tensor<2x4xf32> : tensor<2x4xi32> -> tensor<7xf32>
  // CHECK: tile.item %{{.*}} : tensor<1x1xi32> -> i32
  %11 = tile.item %one : tensor<1x1xi32> -> i32
  return
}

// -----

func.func @iota_range() {
  // expected-error @+1 {{values 250 to 259 do not fit 'i8'}}
  %0 = tile.iota from 250 : tensor<10xi8>
  return
}

// -----

func.func @iota_wraps() {
  // expected-error @+1 {{values starting at 9223372036854775807 do not fit 'i64'}}
  %0 = tile.iota from 9223372036854775807 : tensor<2xi64>
  return
}

// -----

func.func @iota_rank() {
  // expected-error @+1 {{result #0 must be 1-D tile}}
  %0 = tile.iota : tensor<2x2xi32>
  return
}

// -----

func.func @splat_type(%x: f32) {
  // expected-error @+1 {{result must hold 'f32', found 'tensor<4xf16>'}}
  %0 = tile.splat %x : f32 -> tensor<4xf16>
  return
}

// -----

func.func @broadcast_dim(%a: tensor<6x2xf32>) {
  // expected-error @+1 {{dim 1 must be 1 or 4, found 2}}
  %0 = tile.broadcast %a : tensor<6x2xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @broadcast_rank(%a: tensor<6xf32>) {
  // expected-error @+1 {{keeps the rank (use tile.reshape to add dims); found 'tensor<6xf32>' and 'tensor<6x4xf32>'}}
  %0 = tile.broadcast %a : tensor<6xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @broadcast_type(%a: tensor<6x1xf32>) {
  // expected-error @+1 {{element types differ: 'tensor<6x1xf32>' and 'tensor<6x4xf16>'}}
  %0 = tile.broadcast %a : tensor<6x1xf32> -> tensor<6x4xf16>
  return
}

// -----

func.func @reshape_count(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{expects 24 elements, found 25 in 'tensor<5x5xf32>'}}
  %0 = tile.reshape %a : tensor<6x4xf32> -> tensor<5x5xf32>
  return
}

// -----

func.func @reshape_type(%a: tensor<4xf32>) {
  // expected-error @+1 {{element types differ: 'tensor<4xf32>' and 'tensor<4xi32>'}}
  %0 = tile.reshape %a : tensor<4xf32> -> tensor<4xi32>
  return
}

// -----

func.func @trans_twice(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{permutation must name each of 2 dims once}}
  %0 = tile.trans %a, [0, 0] : tensor<6x4xf32> -> tensor<6x6xf32>
  return
}

// -----

func.func @trans_range(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{permutation must name each of 2 dims once}}
  %0 = tile.trans %a, [0, 7] : tensor<6x4xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @trans_shape(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{result dim 0 must be 4, found 6}}
  %0 = tile.trans %a, [1, 0] : tensor<6x4xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @cat_none() {
  // expected-error @+1 {{needs at least one operand}}
  %0 = "tile.cat"() <{axis = 0 : i32}> : () -> tensor<4xf32>
  return
}

// -----

func.func @cat_axis(%a: tensor<4xf32>) {
  // expected-error @+1 {{axis must be between 0 and 0, found -1}}
  %0 = tile.cat %a, %a axis -1 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @cat_sum(%a: tensor<4xf32>) {
  // expected-error @+1 {{operands add up to 8 along the axis, result has 9}}
  %0 = tile.cat %a, %a axis 0 : tensor<4xf32>, tensor<4xf32> -> tensor<9xf32>
  return
}

// -----

func.func @cat_other(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+1 {{operands must agree with the result outside the axis: expected 2 along dim 1, found 'tensor<4x3xf32>'}}
  %0 = tile.cat %a, %b axis 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @extract_box(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{box [2, 5) leaves dim 1 of size 4}}
  %0 = tile.extract %a [0, 2] : tensor<6x4xf32> -> tensor<6x3xf32>
  return
}

// -----

func.func @extract_rank(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{keeps rank and element type and takes one offset per dim; found 'tensor<6x4xf32>' to 'tensor<4xf32>'}}
  %0 = tile.extract %a [0] : tensor<6x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @take_axis(%a: tensor<6x4xf32>, %i: tensor<6x4xi32>) {
  // expected-error @+1 {{axis must be between 0 and 1, found 2}}
  %0 = tile.take %a, %i axis 2 : tensor<6x4xf32>, tensor<6x4xi32> -> tensor<6x4xf32>
  return
}

// -----

func.func @put_shape(%a: tensor<6x4xf32>, %i: tensor<2x3xi32>, %v: tensor<2x3xf32>) {
  // expected-error @+1 {{indices must agree with the result outside the axis: expected 4 along dim 1, found 3}}
  %0 = tile.put %v at %i into %a axis 0 : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @put_values(%a: tensor<6x4xf32>, %i: tensor<2x4xi32>, %v: tensor<2x4xf16>) {
  // expected-error @+1 {{values must have the indices' shape and the element type of what they are put into}}
  %0 = tile.put %v at %i into %a axis 0 : (tensor<2x4xf16>, tensor<2x4xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @put_result(%a: tensor<6x4xf32>, %i: tensor<2x4xi32>, %v: tensor<2x4xf32>) {
  // expected-error @+1 {{result must have the shape and element type of what is put into}}
  %0 = tile.put %v at %i into %a axis 0 : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<6x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @take_shape(%a: tensor<6x4xf32>, %i: tensor<6x4xi32>) {
  // expected-error @+1 {{result must have the indices' shape and the source's element type}}
  %0 = tile.take %a, %i axis 0 : tensor<6x4xf32>, tensor<6x4xi32> -> tensor<5x4xf32>
  return
}

// -----

func.func @take_outside(%a: tensor<6x4xf32>, %i: tensor<2x3xi32>) {
  // expected-error @+1 {{indices must agree with the source outside the axis: expected 4 along dim 1, found 3}}
  %0 = tile.take %a, %i axis 0 : tensor<6x4xf32>, tensor<2x3xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @histogram_bins(%i: tensor<6x4xi32>) {
  // expected-error @+1 {{result must have one dim, the values counted}}
  %0 = tile.histogram %i : tensor<6x4xi32> -> tensor<6x4xi32>
  return
}

// -----

func.func @histogram_of_floats(%i: tensor<6x4xi32>) {
  // expected-error @+1 {{counts in i32, found 'f32'}}
  %0 = tile.histogram %i : tensor<6x4xi32> -> tensor<6xf32>
  return
}

// -----

func.func @histogram_weights(%i: tensor<6x4xi32>, %w: tensor<6x1xf32>) {
  // expected-error @+1 {{expects a weight of 'f32' for each element of 'tensor<6x4xi32>', found 'tensor<6x1xf32>'}}
  %0 = tile.histogram %i weights %w : tensor<6x1xf32> : tensor<6x4xi32> -> tensor<6xf32>
  return
}

// -----

func.func @histogram_sums(%i: tensor<6x4xi32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{expects a weight of 'f64' for each element of 'tensor<6x4xi32>', found 'tensor<6x4xf32>'}}
  %0 = tile.histogram %i weights %w : tensor<6x4xf32> : tensor<6x4xi32> -> tensor<6xf64>
  return
}

// -----

func.func @item_many(%a: tensor<2xf32>) {
  // expected-error @+1 {{expects a tile of one element, found 'tensor<2xf32>'}}
  %0 = tile.item %a : tensor<2xf32> -> f32
  return
}

// -----

func.func @item_type(%a: tensor<1xf32>) {
  // expected-error @+1 {{result must be 'f32', found 'f16'}}
  %0 = tile.item %a : tensor<1xf32> -> f16
  return
}
