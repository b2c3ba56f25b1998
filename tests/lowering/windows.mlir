// Neighbours that are read through pointers: each thread reads the window of its elements once.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-gathers-together -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s

// A vector of four and an element on either side; near the edge six elements.
// CHECK-LABEL: .entry line(
// CHECK: ld.global.b32
// CHECK: ld.global.v4.b32
// CHECK: ld.global.b32
// CHECK-COUNT-6: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
// CHECK-LABEL: .entry unmasked(
// CHECK: ld.global.b32
// CHECK: ld.global.v4.b32
// CHECK: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @line(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %1 = arith.constant 1 : i32
  %m1 = arith.constant -1 : i32
  %at = tile.iota : tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %size = tile.splat %n : i32 -> tensor<512xi32>
  %low = arith.cmpi sgt, %at, %zero : tensor<512xi32>
  %last = arith.subi %size, %one : tensor<512xi32>
  %high = arith.cmpi slt, %at, %last : tensor<512xi32>
  %in = arith.andi %low, %high : tensor<512xi1>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<f32>, i32
  %xr = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %a = tile.gather %xl offsets %at : tensor<512xi32> mask %in : tensor<512xi1> : !tile.ptr<f32> -> tensor<512xf32>
  %b = tile.gather %x offsets %at : tensor<512xi32> mask %in : tensor<512xi1> : !tile.ptr<f32> -> tensor<512xf32>
  %c = tile.gather %xr offsets %at : tensor<512xi32> mask %in : tensor<512xi1> : !tile.ptr<f32> -> tensor<512xf32>
  %s = arith.addf %a, %b : tensor<512xf32>
  %t = arith.mulf %s, %c : tensor<512xf32>
  tile.scatter %t, %y offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}
func.func @unmasked(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %1 = arith.constant 1 : i32
  %m1 = arith.constant -1 : i32
  %at = tile.iota : tensor<512xi32>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<f32>, i32
  %xr = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %a = tile.gather %xl offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %c = tile.gather %xr offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %b = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %r = arith.addf %a, %c : tensor<512xf32>
  %s = arith.mulf %r, %b : tensor<512xf32>
  tile.scatter %s, %y offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// Each gather has its own mask, and what is made of them is written everywhere: no window.
// CHECK-LABEL: .entry padded(
// CHECK-NOT: bra
// CHECK-COUNT-9: ld.global
// CHECK: ret;
func.func @padded(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %1 = arith.constant 1 : i32
  %m1 = arith.constant -1 : i32
  %at = tile.iota : tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %none = arith.constant dense<0.0> : tensor<512xf32>
  %size = tile.splat %n : i32 -> tensor<512xi32>
  %low = arith.cmpi sgt, %at, %zero : tensor<512xi32>
  %last = arith.subi %size, %one : tensor<512xi32>
  %high = arith.cmpi slt, %at, %last : tensor<512xi32>
  %in = arith.cmpi slt, %at, %size : tensor<512xi32>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<f32>, i32
  %xr = tile.ptr_add %x, %1 : !tile.ptr<f32>, i32
  %a = tile.gather %xl offsets %at : tensor<512xi32> mask %low : tensor<512xi1> other %none : tensor<512xf32> : !tile.ptr<f32> -> tensor<512xf32>
  %b = tile.gather %x offsets %at : tensor<512xi32> mask %in : tensor<512xi1> other %none : tensor<512xf32> : !tile.ptr<f32> -> tensor<512xf32>
  %c = tile.gather %xr offsets %at : tensor<512xi32> mask %high : tensor<512xi1> other %none : tensor<512xf32> : !tile.ptr<f32> -> tensor<512xf32>
  %s = arith.addf %a, %b : tensor<512xf32>
  %t = arith.mulf %s, %c : tensor<512xf32>
  tile.scatter %t, %y offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// A thread has sixteen in a row (a scan of pairs wants them so): one window, four vectors and the element in front.
// CHECK-LABEL: .entry heads(
// CHECK: ld.global.b32
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @heads(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %m1 = arith.constant -1 : i32
  %at = tile.iota : tensor<2048xi32>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<i32>, i32
  %b = tile.gather %x offsets %at : tensor<2048xi32> : !tile.ptr<i32> -> tensor<2048xi32>
  %a = tile.gather %xl offsets %at : tensor<2048xi32> : !tile.ptr<i32> -> tensor<2048xi32>
  %is = arith.cmpi ne, %a, %b : tensor<2048xi32>
  %head = arith.extui %is : tensor<2048xi1> to tensor<2048xi32>
  %v = arith.sitofp %b : tensor<2048xi32> to tensor<2048xf32>
  %r:2 = tile.scan %head, %v axis 0 : (tensor<2048xi32>, tensor<2048xf32>) -> (tensor<2048xi32>, tensor<2048xf32>) {
  ^bb0(%h0: i32, %v0: f32, %h1: i32, %v1: f32):
    %zero = arith.constant 0 : i32
    %sum = arith.addf %v0, %v1 : f32
    %begins = arith.cmpi ne, %h1, %zero : i32
    %s = arith.select %begins, %v1, %sum : f32
    %h = arith.ori %h0, %h1 : i32
    tile.yield %h, %s : i32, f32
  }
  tile.scatter %r#1, %y offsets %at : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}

// -----

// The same under masks of their own: what they leave out is chosen where some element is not wanted, nowhere else.
// CHECK-LABEL: .entry masked_heads(
// CHECK: bra
// CHECK-NOT: selp
// CHECK: ld.global.b32
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: selp
// CHECK: bra
// CHECK-COUNT-17: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @masked_heads(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %m1 = arith.constant -1 : i32
  %at = tile.iota : tensor<2048xi32>
  %zeros = arith.constant dense<0> : tensor<2048xi32>
  %none = arith.constant dense<-1> : tensor<2048xi32>
  %size = tile.splat %n : i32 -> tensor<2048xi32>
  %in = arith.cmpi slt, %at, %size : tensor<2048xi32>
  %some = arith.cmpi sgt, %at, %zeros : tensor<2048xi32>
  %behind = arith.andi %in, %some : tensor<2048xi1>
  %xl = tile.ptr_add %x, %m1 : !tile.ptr<i32>, i32
  %b = tile.gather %x offsets %at : tensor<2048xi32> mask %in : tensor<2048xi1> other %none : tensor<2048xi32> : !tile.ptr<i32> -> tensor<2048xi32>
  %a = tile.gather %xl offsets %at : tensor<2048xi32> mask %behind : tensor<2048xi1> other %none : tensor<2048xi32> : !tile.ptr<i32> -> tensor<2048xi32>
  %is = arith.cmpi ne, %a, %b : tensor<2048xi32>
  %head = arith.extui %is : tensor<2048xi1> to tensor<2048xi32>
  %v = arith.sitofp %b : tensor<2048xi32> to tensor<2048xf32>
  %r:2 = tile.scan %head, %v axis 0 : (tensor<2048xi32>, tensor<2048xf32>) -> (tensor<2048xi32>, tensor<2048xf32>) {
  ^bb0(%h0: i32, %v0: f32, %h1: i32, %v1: f32):
    %zero = arith.constant 0 : i32
    %sum = arith.addf %v0, %v1 : f32
    %begins = arith.cmpi ne, %h1, %zero : i32
    %s = arith.select %begins, %v1, %sum : f32
    %h = arith.ori %h0, %h1 : i32
    tile.yield %h, %s : i32, f32
  }
  tile.scatter %r#1, %y offsets %at : tensor<2048xi32> : tensor<2048xf32>, !tile.ptr<f32>
  return
}

// -----

// Places that a loop moves on, less a constant: a neighbour in the same window.
// CHECK-LABEL: .entry behind(
// CHECK: ld.global.b32
// CHECK: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @behind(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %1 = arith.constant 1 : i64
  %at = tile.iota : tensor<512xi32>
  %start = arith.extsi %n : i32 to i64
  %before = arith.subi %start, %1 : i64
  %x0 = tile.ptr_add %x, %start : !tile.ptr<f32>, i64
  %xl = tile.ptr_add %x, %before : !tile.ptr<f32>, i64
  %a = tile.gather %x0 offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %b = tile.gather %xl offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %s = arith.subf %a, %b : tensor<512xf32>
  tile.scatter %s, %y offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// Bytes of a text and the three in front of each, from anywhere: a thread has four in a row and reads seven, each under
// the masks of those that want it.
// CHECK-LABEL: .entry text(
// CHECK-COUNT-7: @%p{{.*}} ld.global.b8
// CHECK-NOT: ld.global
// CHECK: ret;
func.func @text(%x: !tile.ptr<i8>, %y: !tile.ptr<i32> {tile.align = 16 : i32}, %first: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %m1 = arith.constant -1 : i32
  %m2 = arith.constant -2 : i32
  %m3 = arith.constant -3 : i32
  %one = arith.constant dense<1> : tensor<512xi32>
  %two = arith.constant dense<2> : tensor<512xi32>
  %three = arith.constant dense<3> : tensor<512xi32>
  %i = tile.iota : tensor<512xi32>
  %begin = tile.splat %first : i32 -> tensor<512xi32>
  %at = arith.addi %begin, %i : tensor<512xi32>
  %size = tile.splat %n : i32 -> tensor<512xi32>
  %in0 = arith.cmpi ult, %at, %size : tensor<512xi32>
  %at1 = arith.subi %at, %one : tensor<512xi32>
  %in1 = arith.cmpi ult, %at1, %size : tensor<512xi32>
  %at2 = arith.subi %at, %two : tensor<512xi32>
  %in2 = arith.cmpi ult, %at2, %size : tensor<512xi32>
  %at3 = arith.subi %at, %three : tensor<512xi32>
  %in3 = arith.cmpi ult, %at3, %size : tensor<512xi32>
  %x1 = tile.ptr_add %x, %m1 : !tile.ptr<i8>, i32
  %x2 = tile.ptr_add %x, %m2 : !tile.ptr<i8>, i32
  %x3 = tile.ptr_add %x, %m3 : !tile.ptr<i8>, i32
  %a = tile.gather %x offsets %at : tensor<512xi32> mask %in0 : tensor<512xi1> : !tile.ptr<i8> -> tensor<512xi8>
  %b = tile.gather %x1 offsets %at : tensor<512xi32> mask %in1 : tensor<512xi1> : !tile.ptr<i8> -> tensor<512xi8>
  %c = tile.gather %x2 offsets %at : tensor<512xi32> mask %in2 : tensor<512xi1> : !tile.ptr<i8> -> tensor<512xi8>
  %d = tile.gather %x3 offsets %at : tensor<512xi32> mask %in3 : tensor<512xi1> : !tile.ptr<i8> -> tensor<512xi8>
  %ab = arith.ori %a, %b : tensor<512xi8>
  %cd = arith.ori %c, %d : tensor<512xi8>
  %all = arith.ori %ab, %cd : tensor<512xi8>
  %wide = arith.extui %all : tensor<512xi8> to tensor<512xi32>
  tile.scatter %wide, %y offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
