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

// Columns are sorted as rows are: each thread has whole ones, and lanes lie side by side along the rows.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-6: tile.take {{.*}} -> tensor<16x64xf32, #tile.layout<16x64 regs [0:16*1] lanes [1:32*1] warps [1:2*32]>>
func.func @columns(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 16, 64>}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %o = arith.constant 0 : i32
  %i = tile.iota : tensor<16xi32>
  %c1 = arith.constant dense<1> : tensor<16xi32>
  %c2 = arith.constant dense<2> : tensor<16xi32>
  %c4 = arith.constant dense<4> : tensor<16xi32>
  %c8 = arith.constant dense<8> : tensor<16xi32>
  %x1 = arith.xori %i, %c1 : tensor<16xi32>
  %l1 = tile.reshape %x1 : tensor<16xi32> -> tensor<16x1xi32>
  %p1 = tile.broadcast %l1 : tensor<16x1xi32> -> tensor<16x64xi32>
  %x2 = arith.xori %i, %c2 : tensor<16xi32>
  %l2 = tile.reshape %x2 : tensor<16xi32> -> tensor<16x1xi32>
  %p2 = tile.broadcast %l2 : tensor<16x1xi32> -> tensor<16x64xi32>
  %x4 = arith.xori %i, %c4 : tensor<16xi32>
  %l4 = tile.reshape %x4 : tensor<16xi32> -> tensor<16x1xi32>
  %p4 = tile.broadcast %l4 : tensor<16x1xi32> -> tensor<16x64xi32>
  %x8 = arith.xori %i, %c8 : tensor<16xi32>
  %l8 = tile.reshape %x8 : tensor<16xi32> -> tensor<16x1xi32>
  %p8 = tile.broadcast %l8 : tensor<16x1xi32> -> tensor<16x64xi32>
  %v0 = tile.load %x[%o, %o : i32, i32] : !tile.view<2xf32> -> tensor<16x64xf32>
  %t0 = tile.take %v0, %p1 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v1 = arith.minimumf %v0, %t0 : tensor<16x64xf32>
  %t1 = tile.take %v1, %p2 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v2 = arith.minimumf %v1, %t1 : tensor<16x64xf32>
  %t2 = tile.take %v2, %p1 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v3 = arith.minimumf %v2, %t2 : tensor<16x64xf32>
  %t3 = tile.take %v3, %p4 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v4 = arith.minimumf %v3, %t3 : tensor<16x64xf32>
  %t4 = tile.take %v4, %p2 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v5 = arith.minimumf %v4, %t4 : tensor<16x64xf32>
  %t5 = tile.take %v5, %p8 axis 0 : tensor<16x64xf32>, tensor<16x64xi32> -> tensor<16x64xf32>
  %v6 = arith.minimumf %v5, %t5 : tensor<16x64xf32>
  tile.store %v6, %x[%o, %o : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
  return
}

// Rows that threads have as many elements as lie in one thread whole, though longer runs than those of long rows.
// CHECK-LABEL: func.func @short_rows
// CHECK-COUNT-6: tile.take {{.*}} -> tensor<64x32xf32, #tile.layout<64x32 regs [1:32*1] lanes [0:32*1] warps [0:2*32]>>
func.func @short_rows(%x: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.dim_multiple_of = array<i32: 64, 32>}) attributes {tile.kernel, tile.num_warps = 2 : i32} {
  %o = arith.constant 0 : i32
  %i = tile.iota : tensor<32xi32>
  %c1 = arith.constant dense<1> : tensor<32xi32>
  %c2 = arith.constant dense<2> : tensor<32xi32>
  %c4 = arith.constant dense<4> : tensor<32xi32>
  %c16 = arith.constant dense<16> : tensor<32xi32>
  %x1 = arith.xori %i, %c1 : tensor<32xi32>
  %l1 = tile.reshape %x1 : tensor<32xi32> -> tensor<1x32xi32>
  %p1 = tile.broadcast %l1 : tensor<1x32xi32> -> tensor<64x32xi32>
  %x2 = arith.xori %i, %c2 : tensor<32xi32>
  %l2 = tile.reshape %x2 : tensor<32xi32> -> tensor<1x32xi32>
  %p2 = tile.broadcast %l2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %x4 = arith.xori %i, %c4 : tensor<32xi32>
  %l4 = tile.reshape %x4 : tensor<32xi32> -> tensor<1x32xi32>
  %p4 = tile.broadcast %l4 : tensor<1x32xi32> -> tensor<64x32xi32>
  %x16 = arith.xori %i, %c16 : tensor<32xi32>
  %l16 = tile.reshape %x16 : tensor<32xi32> -> tensor<1x32xi32>
  %p16 = tile.broadcast %l16 : tensor<1x32xi32> -> tensor<64x32xi32>
  %v0 = tile.load %x[%o, %o : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32>
  %t0 = tile.take %v0, %p1 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v1 = arith.minimumf %v0, %t0 : tensor<64x32xf32>
  %t1 = tile.take %v1, %p2 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v2 = arith.minimumf %v1, %t1 : tensor<64x32xf32>
  %t2 = tile.take %v2, %p1 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v3 = arith.minimumf %v2, %t2 : tensor<64x32xf32>
  %t3 = tile.take %v3, %p4 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v4 = arith.minimumf %v3, %t3 : tensor<64x32xf32>
  %t4 = tile.take %v4, %p2 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v5 = arith.minimumf %v4, %t4 : tensor<64x32xf32>
  %t5 = tile.take %v5, %p16 axis 1 : tensor<64x32xf32>, tensor<64x32xi32> -> tensor<64x32xf32>
  %v6 = arith.minimumf %v5, %t5 : tensor<64x32xf32>
  tile.store %v6, %x[%o, %o : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
  return
}
