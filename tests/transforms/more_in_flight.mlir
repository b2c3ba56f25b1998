// Loops whose loads are too few to keep memory busy do several iterations at a time, with their loads at the top: of one
// program per multiprocessor, and, if threads load less than their share, of many.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-assign-layouts,canonicalize,cse,tile-more-in-flight))' --tile-target=sm_90a | FileCheck %s --check-prefixes=ALL,MANY
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-assign-layouts,canonicalize,cse,tile-more-in-flight))' --tile-target=sm_90a --tile-few-programs | FileCheck %s --check-prefixes=ALL,FEW

// 8 KB an iteration, 64 KB wanted: eight bodies, all of whose loads come first; sums keep their order. Loops
// of four, two and one do what remains. Among many programs 32 bytes of each thread are wanted, which has 16: twice as
// many are not worth it.
// ALL-LABEL: func.func @sums
// ALL-SAME: tile.varies_with_grid
// MANY: scf.for
// MANY-COUNT-1: tile.load
// MANY-NOT: tile.load
// FEW: scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] =
// FEW-COUNT-7: tile.load
// FEW: %[[X:[a-z0-9_]+]] = tile.load
// FEW-NOT: tile.load
// FEW: %[[S0:[a-z0-9_]+]] = arith.addf %[[A]],
// FEW: %[[S1:[a-z0-9_]+]] = arith.addf %[[S0]],
// FEW-COUNT-5: arith.addf %
// FEW: arith.addf %{{.*}}, %[[X]]
// FEW: scf.for
// FEW-COUNT-4: tile.load
// FEW-NOT: tile.load
// FEW: scf.for
// FEW-COUNT-2: tile.load
// FEW-NOT: tile.load
// FEW: scf.for
// FEW-COUNT-1: tile.load
// FEW-NOT: tile.load
// ALL: return
func.func @sums(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 16 : i32} {
  %c0 = arith.constant 0 : i32
  %c2048 = arith.constant 2048 : i32
  %zero = arith.constant dense<0.0> : tensor<2048xf32>
  %r = scf.for %i = %c0 to %n step %c2048 iter_args(%a = %zero) -> (tensor<2048xf32>) : i32 {
    %u = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<2048xf32>
    %s = arith.addf %a, %u : tensor<2048xf32>
    scf.yield %s : tensor<2048xf32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<2048xf32>, !tile.view<1xf32>
  return
}

// -----
// At places that are read from memory: first the places of all bodies, then what is there. A step of the launch, too.
// ALL-LABEL: func.func @places
// FEW: scf.for
// FEW-COUNT-4: tile.load
// FEW-COUNT-4: tile.gather
// FEW-COUNT-4: arith.addf
// FEW: scf.for
func.func @places(%x: !tile.ptr<f32>, %at: !tile.view<1xi32>, %y: !tile.view<1xf32>, %n: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<2048xf32>
  %r = scf.for %i = %c0 to %n step %step iter_args(%a = %zero) -> (tensor<2048xf32>) : i32 {
    %p = tile.load %at[%i : i32] : !tile.view<1xi32> -> tensor<2048xi32>
    %u = tile.gather %x offsets %p : tensor<2048xi32> : !tile.ptr<f32> -> tensor<2048xf32>
    %s = arith.addf %a, %u : tensor<2048xf32>
    scf.yield %s : tensor<2048xf32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<2048xf32>, !tile.view<1xf32>
  return
}

// -----
// An element of each thread, at places that are read: bytes that are waited for one behind the other are not on their way
// together. Four bodies for many programs, however few bytes.
// ALL-LABEL: func.func @elements
// MANY: scf.for
// MANY-COUNT-4: tile.gather %arg1
// MANY-COUNT-4: tile.gather %arg0
// MANY-NOT: tile.gather
// MANY: scf.for
// MANY-COUNT-2: tile.gather %arg1
// MANY: scf.for
// ALL: return
func.func @elements(%x: !tile.ptr<f32>, %at: !tile.ptr<i32>, %y: !tile.ptr<f32>, %n: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %lane = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = scf.for %i = %c0 to %n step %step iter_args(%a = %zero) -> (tensor<128xf32>) : i32 {
    %is = tile.splat %i : i32 -> tensor<128xi32>
    %o = arith.addi %is, %lane : tensor<128xi32>
    %p = tile.gather %at offsets %o : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    %u = tile.gather %x offsets %p : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %s = arith.addf %a, %u : tensor<128xf32>
    scf.yield %s : tensor<128xf32>
  }
  tile.scatter %r, %y offsets %lane : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// What is left of a loop that asked for a number of bodies has them.
// ALL-LABEL: func.func @as_asked
// ALL: scf.for
// ALL-COUNT-1: tile.gather
// ALL-NOT: tile.gather
// ALL: return
func.func @as_asked(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %lane = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = scf.for %i = %c0 to %n step %step iter_args(%a = %zero) -> (tensor<128xf32>) : i32 {
    %is = tile.splat %i : i32 -> tensor<128xi32>
    %o = arith.addi %is, %lane : tensor<128xi32>
    %u = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %s = arith.addf %a, %u : tensor<128xf32>
    scf.yield %s : tensor<128xf32>
  } {tile.as_asked}
  tile.scatter %r, %y offsets %lane : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

// -----
// Among many programs inner loops stay, which begin and end often, and those whose iterations compute for long.
// ALL-LABEL: func.func @inner
// MANY: scf.for
// MANY: scf.for
// MANY-COUNT-1: tile.gather
// MANY-NOT: tile.gather
// MANY: scf.for
// MANY-COUNT-1: tile.gather
// MANY-NOT: tile.gather
// ALL: return
func.func @inner(%x: !tile.ptr<f32>, %d: !tile.ptr<f64>, %y: !tile.ptr<f32>, %z: !tile.ptr<f64>, %n: i32, %step: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %lane = tile.iota : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %one = arith.constant dense<1.0> : tensor<128xf64>
  %r = scf.for %k = %c0 to %n step %step iter_args(%b = %zero) -> (tensor<128xf32>) : i32 {
    %t = scf.for %i = %c0 to %k step %step iter_args(%a = %b) -> (tensor<128xf32>) : i32 {
      %is = tile.splat %i : i32 -> tensor<128xi32>
      %o = arith.addi %is, %lane : tensor<128xi32>
      %u = tile.gather %x offsets %o : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
      %s = arith.addf %a, %u : tensor<128xf32>
      scf.yield %s : tensor<128xf32>
    }
    scf.yield %t : tensor<128xf32>
  }
  %q = scf.for %i = %c0 to %n step %step iter_args(%a = %one) -> (tensor<128xf64>) : i32 {
    %is = tile.splat %i : i32 -> tensor<128xi32>
    %o = arith.addi %is, %lane : tensor<128xi32>
    %u = tile.gather %d offsets %o : tensor<128xi32> : !tile.ptr<f64> -> tensor<128xf64>
    %s = arith.divf %a, %u : tensor<128xf64>
    scf.yield %s : tensor<128xf64>
  }
  tile.scatter %r, %y offsets %lane : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  tile.scatter %q, %z offsets %lane : tensor<128xi32> : tensor<128xf64>, !tile.ptr<f64>
  return
}

// -----
// Not where the loop writes what it reads, where each address comes from the load before, where a load is enough, or
// where the kernel wants several programs on a multiprocessor.
// ALL-LABEL: func.func @written
// ALL-NOT: varies_with_grid
// ALL: scf.for
// ALL: tile.load
// ALL-NOT: tile.load
// ALL: return
func.func @written(%x: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 16 : i32} {
  %c0 = arith.constant 0 : i32
  %c2048 = arith.constant 2048 : i32
  scf.for %i = %c0 to %n step %c2048 : i32 {
    %u = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<2048xf32>
    %v = arith.addf %u, %u : tensor<2048xf32>
    tile.store %v, %x[%i : i32] : tensor<2048xf32>, !tile.view<1xf32>
  }
  return
}

// -----
// ALL-LABEL: func.func @chain
// ALL-NOT: varies_with_grid
// ALL: scf.for
// ALL: tile.gather
// ALL-NOT: tile.gather
// ALL: return
func.func @chain(%next: !tile.ptr<i32>, %y: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<512xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<512xi32>) : i32 {
    %u = tile.gather %next offsets %a : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    scf.yield %u : tensor<512xi32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<512xi32>, !tile.view<1xi32>
  return
}

// -----
// ALL-LABEL: func.func @enough
// ALL-NOT: varies_with_grid
// ALL: scf.for
// ALL: tile.load
// ALL-NOT: tile.load
// ALL: return
func.func @enough(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 16 : i32} {
  %c0 = arith.constant 0 : i32
  %c16384 = arith.constant 16384 : i32
  %zero = arith.constant dense<0.0> : tensor<16384xf32>
  %r = scf.for %i = %c0 to %n step %c16384 iter_args(%a = %zero) -> (tensor<16384xf32>) : i32 {
    %u = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<16384xf32>
    %s = arith.addf %a, %u : tensor<16384xf32>
    scf.yield %s : tensor<16384xf32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<16384xf32>, !tile.view<1xf32>
  return
}

// -----
// ALL-LABEL: func.func @shared
// ALL-NOT: varies_with_grid
// ALL: scf.for
// ALL: tile.load
// ALL-NOT: tile.load
// ALL: return
func.func @shared(%x: !tile.view<1xf32>, %y: !tile.view<1xf32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.programs = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %r = scf.for %i = %c0 to %n step %c512 iter_args(%a = %zero) -> (tensor<512xf32>) : i32 {
    %u = tile.load %x[%i : i32] : !tile.view<1xf32> -> tensor<512xf32>
    %s = arith.addf %a, %u : tensor<512xf32>
    scf.yield %s : tensor<512xf32>
  }
  tile.store %r, %y[%c0 : i32] : tensor<512xf32>, !tile.view<1xf32>
  return
}

// -----
// Counting in a table in shared memory has no order either.
// ALL-LABEL: func.func @counts
// FEW: scf.for
// FEW-COUNT-8: tile.gather
// FEW-COUNT-8: tile.smem_count
func.func @counts(%X: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %at = tile.iota : tensor<512xi32>
  %table = tile.smem_alloc : !tile.smem<1x256xi32, minor = 1>
  scf.for %i = %c0 to %n step %c512 : i32 {
    %p = tile.ptr_add %X, %i : !tile.ptr<i32>, i32
    %v = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
    tile.smem_count %v in %table : tensor<512xi32>, !tile.smem<1x256xi32, minor = 1>
  }
  return
}
