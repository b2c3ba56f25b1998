// Small whole powers are products.
// RUN: tile-opt %s -split-input-file -tile-whole-powers | FileCheck %s

// CHECK-LABEL: @square
// CHECK: %[[Y:.*]] = arith.mulf %arg0, %arg0
// CHECK: return %[[Y]]
func.func @square(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %y = math.powf %x, %two : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CHECK-LABEL: @cube_of_halves
// CHECK: %[[X:.*]] = arith.extf %arg0 : tensor<8xf16> to tensor<8xf32>
// CHECK: %[[S:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[C:.*]] = arith.mulf %[[S]], %[[X]]
// CHECK: %[[Y:.*]] = arith.truncf %[[C]] : tensor<8xf32> to tensor<8xf16>
// CHECK: return %[[Y]]
func.func @cube_of_halves(%x: tensor<8xf16>) -> tensor<8xf16> {
  %three = arith.constant dense<3.0> : tensor<8xf16>
  %y = math.powf %x, %three : tensor<8xf16>
  return %y : tensor<8xf16>
}

// -----
// CHECK-LABEL: @below_zero
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[R:.*]] = arith.divf %[[ONE]], %arg0
// CHECK: %[[Y:.*]] = arith.mulf %[[R]], %[[R]]
// CHECK: return %[[Y]]
func.func @below_zero(%x: f64) -> f64 {
  %n = arith.constant -2.0 : f64
  %y = math.powf %x, %n : f64
  return %y : f64
}

// -----
// CHECK-LABEL: @none
// CHECK-NOT: math.powf
// CHECK: return %cst{{.*}}, %arg0
func.func @none(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %n = arith.constant dense<0.0> : tensor<8xf32>
  %m = arith.constant dense<1.0> : tensor<8xf32>
  %y = math.powf %x, %n : tensor<8xf32>
  %z = math.powf %x, %m : tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}

// -----
// Of -0 and -inf the powers of 0 and inf.
// CHECK-LABEL: @roots
// CHECK: %[[S:.*]] = math.sqrt %arg0
// CHECK: %[[A:.*]] = math.absf %[[S]]
// CHECK: %[[END:.*]] = arith.cmpf oeq, %arg0, %{{.*}}
// CHECK: %[[X:.*]] = arith.select %[[END]], %{{.*}}, %[[A]]
// CHECK: %[[T:.*]] = math.sqrt %arg0
// CHECK: %[[P:.*]] = arith.mulf %arg0, %[[T]]
// CHECK: math.absf %[[P]]
// CHECK: %[[R:.*]] = math.rsqrt %arg0
// CHECK: math.absf %[[R]]
// CHECK: return %[[X]]
func.func @roots(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense<0.5> : tensor<2xf32>
  %b = arith.constant dense<1.5> : tensor<2xf32>
  %c = arith.constant dense<-0.5> : tensor<2xf32>
  %y = math.powf %x, %a : tensor<2xf32>
  %z = math.powf %x, %b : tensor<2xf32>
  %w = math.powf %x, %c : tensor<2xf32>
  return %y, %z, %w : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----
// Neither whole ones nor small: as they are.
// CHECK-LABEL: @others
// CHECK-COUNT-3: math.powf
func.func @others(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = arith.constant dense<2.5> : tensor<2xf32>
  %b = arith.constant dense<5.0> : tensor<2xf32>
  %c = arith.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %y = math.powf %x, %a : tensor<2xf32>
  %z = math.powf %x, %b : tensor<2xf32>
  %w = math.powf %x, %c : tensor<2xf32>
  return %y, %z, %w : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
