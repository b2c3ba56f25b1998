// Threads meet between a store and a load of the same memory; those of a program of one warp do so as a warp, which
// costs next to nothing.
// RUN: sed 's/WARPS/1/' %s | tilec compile - -t sm_80 -e ptx | FileCheck %s --check-prefix=ONE
// RUN: sed 's/WARPS/2/' %s | tilec compile - -t sm_80 -e ptx | FileCheck %s --check-prefix=TWO

// ONE-NOT: bar.sync
// ONE: st.global
// ONE: bar.warp.sync
// ONE: ld.global
// ONE-NOT: bar.sync

// TWO-NOT: bar.warp.sync
// TWO: st.global
// TWO: bar.sync
// TWO: ld.global
func.func @k(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = WARPS : i32} {
  %i = tile.iota : tensor<128xi32>
  %mirror = arith.constant dense<127> : tensor<128xi32>
  %j = arith.subi %mirror, %i : tensor<128xi32>
  %x = arith.sitofp %i : tensor<128xi32> to tensor<128xf32>
  tile.scatter %x, %p offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  %y = tile.gather %p offsets %j : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  tile.scatter %y, %o offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
