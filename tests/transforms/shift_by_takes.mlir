// RUN: tile-opt %s -split-input-file --tile-shift-by-takes | FileCheck %s

// Columns one further right, zeros from the left.
// CHECK-LABEL: func.func @right
// CHECK: %[[I:.*]] = tile.iota : tensor<64xi32>
// CHECK: %[[AT:.*]] = tile.reshape %[[I]] : tensor<64xi32> -> tensor<1x64xi32>
// CHECK: %[[J:.*]] = arith.addi %[[AT]], %{{.*}} : tensor<1x64xi32>
// CHECK: %[[IX:.*]] = tile.broadcast %{{.*}} : tensor<1x64xi32> -> tensor<32x64xi32>
// CHECK: %[[T:.*]] = tile.take %arg0, %[[IX]] axis 1
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %[[AT]], %{{.*}} : tensor<1x64xi32>
// CHECK: %[[M:.*]] = tile.broadcast %[[BEHIND]] : tensor<1x64xi1> -> tensor<32x64xi1>
// CHECK: %[[R:.*]] = arith.select %[[M]], %[[T]], %[[Z]]
// CHECK: return %[[R]]
func.func @right(%a: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %z = arith.constant dense<0.0> : tensor<32x1xf32>
  %p = tile.extract %a [0, 0] : tensor<32x64xf32> -> tensor<32x63xf32>
  %r = tile.cat %z, %p axis 1 : tensor<32x1xf32>, tensor<32x63xf32> -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}

// -----

// Rows that wrap around are one lookup; a tile between fillings, of which one is a line, is one, too, whatever cats it
// took.
// CHECK-LABEL: func.func @wrapped
// CHECK: %[[T:.*]] = tile.take %arg0, %{{.*}} axis 0
// CHECK-NOT: arith.select %{{.*}} : tensor<32x64xi1>
// CHECK: return %[[T]]
// CHECK-LABEL: func.func @between
// CHECK: %[[T:.*]] = tile.take %arg0, %{{.*}} axis 0 : tensor<5x8xi32>, tensor<9x8xi32> -> tensor<9x8xi32>
// CHECK: %[[L:.*]] = tile.broadcast %arg1 : tensor<1x8xi32> -> tensor<9x8xi32>
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[T]], %[[L]]
// CHECK: %[[R:.*]] = arith.select %{{.*}}, %[[S]], %{{.*}}
// CHECK: return %[[R]]
func.func @wrapped(%a: tensor<32x64xf16>) -> tensor<32x64xf16> {
  %last = tile.extract %a [31, 0] : tensor<32x64xf16> -> tensor<1x64xf16>
  %p = tile.extract %a [0, 0] : tensor<32x64xf16> -> tensor<31x64xf16>
  %r = tile.cat %last, %p axis 0 : tensor<1x64xf16>, tensor<31x64xf16> -> tensor<32x64xf16>
  return %r : tensor<32x64xf16>
}
func.func @between(%a: tensor<5x8xi32>, %line: tensor<1x8xi32>) -> tensor<9x8xi32> {
  %c = arith.constant dense<1> : tensor<3x8xi32>
  %b = tile.cat %line, %a axis 0 : tensor<1x8xi32>, tensor<5x8xi32> -> tensor<6x8xi32>
  %r = tile.cat %b, %c axis 0 : tensor<6x8xi32>, tensor<3x8xi32> -> tensor<9x8xi32>
  return %r : tensor<9x8xi32>
}

// -----

// Two halves are parts of the registers; two tiles are no pieces of one; pieces that are cut along another axis, too.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: tile.take
// CHECK-LABEL: func.func @tiles
// CHECK-NOT: tile.take
// CHECK-LABEL: func.func @corners
// CHECK: tile.take %{{.*}} : tensor<16x30xf32>
func.func @halves(%a: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %l = tile.extract %a [0, 0] : tensor<32x64xf32> -> tensor<32x32xf32>
  %h = tile.extract %a [0, 32] : tensor<32x64xf32> -> tensor<32x32xf32>
  %r = tile.cat %h, %l axis 1 : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}
func.func @tiles(%a: tensor<32x64xf32>, %b: tensor<32x2xf32>) -> tensor<32x66xf32> {
  %r = tile.cat %a, %b axis 1 : tensor<32x64xf32>, tensor<32x2xf32> -> tensor<32x66xf32>
  return %r : tensor<32x66xf32>
}
func.func @corners(%a: tensor<32x64xf32>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x2xf32>
  %p = tile.extract %a [8, 0] : tensor<32x64xf32> -> tensor<16x30xf32>
  %r = tile.cat %z, %p axis 1 : tensor<16x2xf32>, tensor<16x30xf32> -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
