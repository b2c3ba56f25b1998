// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s
// Where elements change places with partners, step after step, near partners meet in one thread, those further apart in
// one warp; a few steps are not worth moving what is read.

// CHECK-LABEL: func.func @sorted
// CHECK-COUNT-6: tile.take {{.*}} -> tensor<1024xi32, #tile.layout<1024 regs [0:16*1] lanes [0:32*16] warps [0:2*512]>>
func.func @sorted(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %o = arith.constant 0 : i32
  %i = tile.iota : tensor<1024xi32>
  %one = arith.constant dense<1> : tensor<1024xi32>
  %two = arith.constant dense<2> : tensor<1024xi32>
  %four = arith.constant dense<4> : tensor<1024xi32>
  %far = arith.constant dense<512> : tensor<1024xi32>
  %p1 = arith.xori %i, %one : tensor<1024xi32>
  %p2 = arith.xori %i, %two : tensor<1024xi32>
  %p4 = arith.xori %i, %four : tensor<1024xi32>
  %pf = arith.xori %i, %far : tensor<1024xi32>
  %a = tile.load %x[%o : i32] : !tile.view<1xi32> -> tensor<1024xi32>
  %b = tile.take %a, %p1 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %c = arith.minsi %a, %b : tensor<1024xi32>
  %d = tile.take %c, %p2 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %e = arith.minsi %c, %d : tensor<1024xi32>
  %f = tile.take %e, %p1 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %g = arith.minsi %e, %f : tensor<1024xi32>
  %h = tile.take %g, %p4 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %j = arith.minsi %g, %h : tensor<1024xi32>
  %k = tile.take %j, %p2 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %l = arith.minsi %j, %k : tensor<1024xi32>
  %m = tile.take %l, %pf axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %n = arith.minsi %l, %m : tensor<1024xi32>
  tile.store %n, %x[%o : i32] : tensor<1024xi32>, !tile.view<1xi32>
  return
}

// CHECK-LABEL: func.func @shuffled
// CHECK: tile.take {{.*}} -> tensor<1024xi32, #tile.layout<1024 regs [0:4*1, 0:4*256] lanes [0:32*4] warps [0:2*128]>>
func.func @shuffled(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 1024>}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %o = arith.constant 0 : i32
  %i = tile.iota : tensor<1024xi32>
  %one = arith.constant dense<1> : tensor<1024xi32>
  %p1 = arith.xori %i, %one : tensor<1024xi32>
  %a = tile.load %x[%o : i32] : !tile.view<1xi32> -> tensor<1024xi32>
  %b = tile.take %a, %p1 axis 0 : tensor<1024xi32>, tensor<1024xi32> -> tensor<1024xi32>
  %c = arith.minsi %a, %b : tensor<1024xi32>
  tile.store %c, %x[%o : i32] : tensor<1024xi32>, !tile.view<1xi32>
  return
}
