// Weights are added where they were loaded, by one reduction each: lanes of a warp to copies of their own, which a loop
// makes once. What threads hold twice is added once.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry weights(
// CHECK: st.shared.v4
// CHECK: bar.sync
// CHECK: $L__BB0_{{.*}}:
// CHECK-NOT: {{(bar.sync|(ld|st).shared|shfl)}}
// CHECK-COUNT-4: red.relaxed.cta.shared.add.f32
// CHECK-NOT: {{(bar.sync|(ld|st).shared|shfl|red)}}
// CHECK: bra
// CHECK: bar.sync
// CHECK: ld.shared.v4
// CHECK: st.global
// CHECK: bar.sync
// CHECK: red.relaxed.cta.shared.add.f64
// CHECK-NOT: red.
// CHECK: bar.sync
// CHECK: st.global
func.func @weights(%x: !tile.ptr<f32>, %k: !tile.ptr<i32>, %out: !tile.ptr<f32>, %few: !tile.ptr<f64>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %to = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<256xf32>) : i32 {
    %p = tile.ptr_add %x, %i : !tile.ptr<f32>, i32
    %q = tile.ptr_add %k, %i : !tile.ptr<i32>, i32
    %w = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
    %v = tile.gather %q offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    %h = tile.histogram %v weights %w : tensor<512xf32> : tensor<512xi32> -> tensor<256xf32>
    %s = arith.addf %sum, %h : tensor<256xf32>
    scf.yield %s : tensor<256xf32>
  }
  tile.scatter %r, %out offsets %to : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  %line = tile.iota : tensor<32xi32>
  %w = tile.gather %few offsets %line : tensor<32xi32> : !tile.ptr<f64> -> tensor<32xf64>
  %h = tile.histogram %line weights %w : tensor<32xf64> : tensor<32xi32> -> tensor<16xf64>
  %small = tile.iota : tensor<16xi32>
  tile.scatter %h, %few offsets %small : tensor<16xi32> : tensor<16xf64>, !tile.ptr<f64>
  return
}
