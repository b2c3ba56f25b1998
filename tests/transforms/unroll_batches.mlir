// Products of several matrices become one product for each, but for small ones of computed tiles on GPUs: single warps
// multiply those.
// RUN: tile-opt %s -split-input-file --tile-unroll-batches | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-unroll-batches=host=true | FileCheck %s --check-prefix=HOST

// HOST-NOT: tile.batch_dot

// CHECK-LABEL: func.func @computed
// CHECK: tile.batch_dot
// CHECK-NOT: tile.dot
// HOST-LABEL: func.func @computed
// HOST-SAME: %[[X:[a-z0-9]+]]: tensor<4x16x32xf16>, %[[C:[a-z0-9]+]]: tensor<4x16x16xf32>
// HOST: %[[Y:.*]] = arith.addf
// HOST: %[[T:.*]] = tile.trans %[[Y]], [0, 2, 1]
// HOST: tile.extract %[[C]] [0, 0, 0]
// HOST: tile.extract %[[Y]] [0, 0, 0]
// HOST: tile.extract %[[T]] [0, 0, 0]
// HOST: tile.dot {{.*}} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
// HOST-COUNT-3: tile.dot
// HOST: tile.cat {{.*}} axis 0 {{.*}} -> tensor<4x16x16xf32>
func.func @computed(%x: tensor<4x16x32xf16>, %c: tensor<4x16x16xf32>) -> tensor<4x16x16xf32> {
  %y = arith.addf %x, %x : tensor<4x16x32xf16>
  %t = tile.trans %y, [0, 2, 1] : tensor<4x16x32xf16> -> tensor<4x32x16xf16>
  %d = tile.batch_dot %y, %t, %c : tensor<4x16x32xf16>, tensor<4x32x16xf16> -> tensor<4x16x16xf32>
  return %d : tensor<4x16x16xf32>
}

// -----
// One matrix: no cat.
// CHECK-LABEL: func.func @one
// CHECK: tile.dot
// CHECK-NOT: tile.cat
func.func @one(%x: tensor<1x16x16xf16>, %c: tensor<1x16x16xf32>) -> tensor<1x16x16xf32> {
  %d = tile.batch_dot %x, %x, %c : tensor<1x16x16xf16>, tensor<1x16x16xf16> -> tensor<1x16x16xf32>
  return %d : tensor<1x16x16xf32>
}

// -----
// More than a warp holds; an odd number of elements along k; IEEE f32, which no tensor core multiplies.
// CHECK-LABEL: func.func @unfit
// CHECK-COUNT-12: tile.dot
// CHECK-NOT: tile.batch_dot
func.func @unfit(%x: tensor<4x128x64xf16>, %y: tensor<4x64x128xf16>, %c: tensor<4x128x128xf32>,
                 %v: tensor<4x16x24xf16>, %w: tensor<4x24x16xf16>, %s: tensor<4x16x16xf32>) {
  %d = tile.batch_dot %x, %y, %c : tensor<4x128x64xf16>, tensor<4x64x128xf16> -> tensor<4x128x128xf32>
  %e = tile.batch_dot %v, %w, %s : tensor<4x16x24xf16>, tensor<4x24x16xf16> -> tensor<4x16x16xf32>
  %f = tile.batch_dot %s, %s, %s : tensor<4x16x16xf32>, tensor<4x16x16xf32> -> tensor<4x16x16xf32>
  return
}

// -----
// A loop's loads are copied ahead to shared memory, for all warps; where something is computed from them as well they
// are in registers anyway.
// CHECK-LABEL: func.func @loaded
// CHECK: scf.for
// CHECK-COUNT-4: tile.dot
// CHECK: scf.for
// CHECK: tile.batch_dot
func.func @loaded(%A: !tile.view<3xf16>, %B: !tile.view<3xf16>, %n: i32) -> tensor<4x16x16xf32> {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %plain = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<4x16x16xf32>) : i32 {
    %a = tile.load %A[%c0, %c0, %k : i32, i32, i32] : !tile.view<3xf16> -> tensor<4x16x16xf16>
    %b = tile.load %B[%c0, %k, %c0 : i32, i32, i32] : !tile.view<3xf16> -> tensor<4x16x16xf16>
    %d = tile.batch_dot %a, %b, %acc : tensor<4x16x16xf16>, tensor<4x16x16xf16> -> tensor<4x16x16xf32>
    scf.yield %d : tensor<4x16x16xf32>
  }
  %both = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %plain) -> (tensor<4x16x16xf32>) : i32 {
    %a = tile.load %A[%c0, %c0, %k : i32, i32, i32] : !tile.view<3xf16> -> tensor<4x16x16xf16>
    %wide = arith.extf %a : tensor<4x16x16xf16> to tensor<4x16x16xf32>
    %more = arith.addf %acc, %wide : tensor<4x16x16xf32>
    %d = tile.batch_dot %a, %a, %more : tensor<4x16x16xf16>, tensor<4x16x16xf16> -> tensor<4x16x16xf32>
    scf.yield %d : tensor<4x16x16xf32>
  }
  return %both : tensor<4x16x16xf32>
}
