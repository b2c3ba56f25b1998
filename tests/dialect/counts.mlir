// Counting in a table that stays in shared memory.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @count
func.func @count(%x: tensor<512xi32>) {
  %s = tile.smem_alloc : !tile.smem<1x100xi32, minor = 1>
  // CHECK: tile.smem_count %{{.*}} in %{{.*}} : tensor<512xi32>, <1x100xi32, minor = 1>
  tile.smem_count %x in %s : tensor<512xi32>, !tile.smem<1x100xi32, minor = 1>
  return
}

// CHECK-LABEL: func.func @add
func.func @add(%x: tensor<512xi32>, %w: tensor<512xf32>) {
  %s = tile.smem_alloc : !tile.smem<1x96xf32, minor = 1>
  // CHECK: tile.smem_count %{{.*}} weights %{{.*}} : tensor<512xf32> in %{{.*}} copies 8 : tensor<512xi32>, <1x96xf32, minor = 1>
  tile.smem_count %x weights %w : tensor<512xf32> in %s copies 8 : tensor<512xi32>, !tile.smem<1x96xf32, minor = 1>
  return
}

// -----

func.func @rows(%x: tensor<512xi32>) {
  %s = tile.smem_alloc : !tile.smem<2x128xi32, minor = 1>
  // expected-error @+1 {{expects one row of numbers, 1 of each, found '!tile.smem<2x128xi32, minor = 1>'}}
  tile.smem_count %x in %s : tensor<512xi32>, !tile.smem<2x128xi32, minor = 1>
  return
}

// -----

func.func @copies(%x: tensor<512xi32>) {
  %s = tile.smem_alloc : !tile.smem<1x100xi32, minor = 1>
  // expected-error @+1 {{expects one row of numbers, 8 of each, found '!tile.smem<1x100xi32, minor = 1>'}}
  tile.smem_count %x in %s copies 8 : tensor<512xi32>, !tile.smem<1x100xi32, minor = 1>
  return
}

// -----

func.func @floats(%x: tensor<512xi32>) {
  %s = tile.smem_alloc : !tile.smem<1x100xf32, minor = 1>
  // expected-error @+1 {{counts in i32, found 'f32'}}
  tile.smem_count %x in %s : tensor<512xi32>, !tile.smem<1x100xf32, minor = 1>
  return
}
