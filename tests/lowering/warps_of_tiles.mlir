// A kernel that does not say how many warps it has gets 4; one where its largest tile has at most two elements for each
// thread of a warp, or, in a kernel without loops, where a warp reads or writes it with one access of 16 bytes for each
// thread; more where a thread would hold too much of its tiles, however large these are.
// RUN: split-file %s %t
// RUN: sed 's/SIZE/64/g' %t/one.mlir | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=ONE
// RUN: sed 's/SIZE/128/g' %t/one.mlir | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=ONE
// RUN: sed 's/SIZE/256/g' %t/one.mlir | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/SIZE/8192/g' %t/one.mlir | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// RUN: sed 's/SIZE/128/g; s/{tile.align = 16 : i32}//' %t/one.mlir | tilec report - -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// RUN: tilec report %t/held.mlir -t sm_80 --json | FileCheck %s --check-prefix=EIGHT
// RUN: tilec report %t/sums.mlir -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// RUN: tilec report %t/loop.mlir -t sm_80 --json | FileCheck %s --check-prefix=FOUR
// ONE: "threads": 32,
// FOUR: "threads": 128,
// EIGHT: "threads": 256,

//--- one.mlir
func.func @k(%p: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel} {
  %i = tile.iota : tensor<SIZExi32>
  %x = arith.sitofp %i : tensor<SIZExi32> to tensor<SIZExf32>
  tile.scatter %x, %p offsets %i : tensor<SIZExi32> : tensor<SIZExf32>, !tile.ptr<f32>
  return
}

//--- held.mlir
func.func @k(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  %i = tile.iota : tensor<16384xi32>
  %x = tile.gather %p offsets %i : tensor<16384xi32> : !tile.ptr<f32> -> tensor<16384xf32>
  %m = tile.reduce %x axis 0 : (tensor<16384xf32>) -> tensor<1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.maxnumf %u, %v : f32
    tile.yield %w : f32
  }
  %all = tile.broadcast %m : tensor<1xf32> -> tensor<16384xf32>
  %y = arith.subf %x, %all : tensor<16384xf32>
  tile.scatter %y, %p offsets %i : tensor<16384xi32> : tensor<16384xf32>, !tile.ptr<f32>
  return
}

//--- sums.mlir
func.func @k(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  %i = tile.iota : tensor<128xi32>
  %x = arith.sitofp %i : tensor<128xi32> to tensor<128xf32>
  %j = tile.iota : tensor<64xi32>
  %y = arith.sitofp %j : tensor<64xi32> to tensor<64xf32>
  %row = tile.reshape %y : tensor<64xf32> -> tensor<1x64xf32>
  %col = tile.reshape %x : tensor<128xf32> -> tensor<128x1xf32>
  %a = tile.broadcast %row : tensor<1x64xf32> -> tensor<128x64xf32>
  %b = tile.broadcast %col : tensor<128x1xf32> -> tensor<128x64xf32>
  %d = arith.subf %a, %b : tensor<128x64xf32>
  %e = arith.mulf %d, %d : tensor<128x64xf32>
  %t = tile.reduce %e axis 1 : (tensor<128x64xf32>) -> tensor<128x1xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.yield %w : f32
  }
  %s = tile.reshape %t : tensor<128x1xf32> -> tensor<128xf32>
  tile.scatter %s, %p offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

//--- loop.mlir
func.func @k(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %i = tile.iota : tensor<128xi32>
  %x = arith.sitofp %i : tensor<128xi32> to tensor<128xf32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128xf32>) : i32 {
    %at = arith.muli %k, %c128 : i32
    %q = tile.ptr_add %p, %at : !tile.ptr<f32>, i32
    %y = tile.gather %q offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    %t = arith.addf %s, %y : tensor<128xf32>
    scf.yield %t : tensor<128xf32>
  }
  tile.scatter %sum, %p offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
