// Tiles beside gathers from places that were computed as floats: lanes next to each other are neighbours, whose places
// mostly lie in the same lines. Places that were loaded as integers tell nothing.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts | FileCheck %s

// CHECK-LABEL: func.func @along_a_flow
// CHECK: tile.gather {{.*}} -> tensor<512xf32, #tile.layout<512 regs [0:4*128] lanes [0:32*1] warps [0:4*32]>>
func.func @along_a_flow(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %q: !tile.ptr<f32>, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %f = arith.sitofp %i : tensor<512xi32> to tensor<512xf32>
  %g = arith.addf %f, %x : tensor<512xf32>
  %at = arith.fptosi %g : tensor<512xf32> to tensor<512xi32>
  %v = tile.gather %q offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  tile.scatter %v, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----

// CHECK-LABEL: func.func @by_a_table
// CHECK: tile.gather {{.*}} -> tensor<512xi32, #tile.layout<512 regs [0:4*1] lanes [0:32*4] warps [0:4*128]>>
func.func @by_a_table(%p: !tile.ptr<i32> {tile.align = 16 : i32}, %q: !tile.ptr<f32>, %y: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %at = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %v = tile.gather %q offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  tile.scatter %v, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}
