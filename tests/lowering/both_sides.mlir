// A number or a tile from either of two places: both sides are done, each load under its condition, no branch between.
// RUN: tilec compile - -t sm_90a -e ptx < %s | FileCheck %s

// CHECK-LABEL: .entry either
// CHECK-NOT: bra
// CHECK: @%p{{[0-9]+}} ld.global.v4.b32
// CHECK-NOT: bra
// CHECK: @%p{{[0-9]+}} ld.global.v4.b32
// CHECK-NOT: bra
// CHECK: st.global
// CHECK: ret
func.func @either(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32> {tile.align = 16 : i32}, %o: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %i = tile.iota : tensor<128xi32>
  %first = arith.cmpi slt, %n, %c0 : i32
  %v = scf.if %first -> (tensor<128xf32>) {
    %a = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %b = arith.addf %a, %a : tensor<128xf32>
    scf.yield %b : tensor<128xf32>
  } else {
    %a = tile.gather %y offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    scf.yield %a : tensor<128xf32>
  }
  tile.scatter %v, %o offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// A side without loads may be there to skip the other one's.
// RUN: tilec compile %S/Inputs/guarded_load.mlir -t sm_90a -e ptx | FileCheck %s -check-prefix=GUARD
// GUARD-LABEL: .entry guarded
// GUARD: bra
// GUARD: ld.global
