// A loop in every step of which warps would wait for each other, for a sum over few elements, has one warp; of 256
// elements only in launches of many programs. A number of warps that the kernel gives stays.
// RUN: tilec report %s -t sm_90a --json | FileCheck %s -check-prefix=ONE
// RUN: sed 's/200x/800x/g; s/<200>/<800>/g' %s > %t.large.mlir && tilec report %t.large.mlir -t sm_90a --json | FileCheck %s -check-prefix=FOUR
// RUN: sed 's/tile.kernel/tile.kernel, tile.num_warps = 4 : i32/' %s > %t.given.mlir && tilec report %t.given.mlir -t sm_90a --json | FileCheck %s -check-prefix=FOUR
// REQUIRES: ptxas
// ONE: "threads": 32
// FOUR: "threads": 128
func.func @follow(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tile.iota : tensor<200xi32>
  %first = tile.gather %x offsets %at : tensor<200xi32> : !tile.ptr<f32> -> tensor<200xf32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%v = %first) -> (tensor<200xf32>) : i32 {
    %s = tile.reduce %v axis 0 : (tensor<200xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %all = tile.broadcast %s : tensor<1xf32> -> tensor<200xf32>
    %next = arith.divf %v, %all : tensor<200xf32>
    scf.yield %next : tensor<200xf32>
  }
  tile.scatter %last, %x offsets %at : tensor<200xi32> : tensor<200xf32>, !tile.ptr<f32>
  return
}
