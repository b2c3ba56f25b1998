// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-place-operands))' --tile-target=sm_80 | FileCheck %s

// Loads that only products read go straight to shared memory; the grid is as square as 4 warps allow.
// CHECK-LABEL: func.func @plain
// CHECK-SAME: tile.num_warps = 4
// CHECK: %[[A:.*]] = tile.load_shared %arg0[{{.*}}] box [64, 32] : {{.*}} -> <64x32xf16, minor = 1>
// CHECK: %[[B:.*]] = tile.load_shared %arg1[{{.*}}] box [32, 64] : {{.*}} -> <32x64xf16, minor = 1>
// CHECK: tile.mma m16n8k16_f16 k 32 warps(2, 2) %[[A]], %[[B]],
// CHECK-NOT: tile.load %
func.func @plain(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A transpose of a load is the same buffer read the other way; the memory order follows the view's unit stride.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[A:.*]] = tile.load_shared %arg0[{{.*}}] box [64, 32] : {{.*}} -> <64x32xf16, minor = 0>
// CHECK: %[[B:.*]] = tile.load_shared %arg1[{{.*}}] box [64, 32] : {{.*}} -> <64x32xf16, minor = 1>
// CHECK: %[[T:.*]] = tile.smem_trans %[[B]] : <64x32xf16, minor = 1> -> <32x64xf16, minor = 0>
// CHECK: tile.mma m16n8k16_f16 k 32 warps(2, 2) %[[A]], %[[T]],
// CHECK-NOT: tile.trans
func.func @transposed(%A: !tile.view<2 x f16> {tile.unit_stride = 0 : i32}, %B: !tile.view<2 x f16> {tile.unit_stride = 1 : i32},
                      %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %t = tile.trans %b, [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
  %d = tile.dot %a, %t, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// The accumulator of one product feeds the next: all warps along M, the operand stays in registers.
// CHECK-LABEL: func.func @chained
// CHECK: %[[S:.*]] = tile.mma m16n8k16_f16 k 32 warps(4, 1)
// CHECK: %[[P:.*]] = arith.truncf %[[S]]
// CHECK-NOT: tile.share
// CHECK: tile.mma m16n8k16_f16 k 32 warps(4, 1) %[[P]], %{{.*}}, %{{.*}} : tensor<64x32xf16>, <32x64xf16, minor = 1>
func.func @chained(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %V: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zs = arith.constant dense<0.0> : tensor<64x32xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %s = tile.dot %a, %b, %zs : tensor<64x32xf16>, tensor<32x32xf16> -> tensor<64x32xf32>
  %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
  %v = tile.load %V[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
  %d = tile.dot %p, %v, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Too few rows for all warps to stand along M: the operand goes through shared memory instead.
// CHECK-LABEL: func.func @chained_short
// CHECK: %[[S:.*]] = tile.mma m16n8k16_f16 k 32 warps(1, 4)
// CHECK: %[[P:.*]] = arith.truncf %[[S]]
// CHECK: %[[H:.*]] = tile.share %[[P]] : tensor<16x32xf16> -> <16x32xf16, minor = 1>
// CHECK: tile.mma m16n8k16_f16 k 32 warps(1, 4) %[[H]],
func.func @chained_short(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %V: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zs = arith.constant dense<0.0> : tensor<16x32xf32>
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x32xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x32xf16>
  %s = tile.dot %a, %b, %zs : tensor<16x32xf16>, tensor<32x32xf16> -> tensor<16x32xf32>
  %p = arith.truncf %s : tensor<16x32xf32> to tensor<16x32xf16>
  %v = tile.load %V[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
  %d = tile.dot %p, %v, %zero : tensor<16x32xf16>, tensor<32x64xf16> -> tensor<16x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<16x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Odd shapes: buffers reach to the warps' cover (rows 40 -> 64, k 20 -> 32), the tile does not;
// the grid is the one that wastes least.
// CHECK-LABEL: func.func @odd
// CHECK: tile.load_shared %arg0[{{.*}}] box [40, 20] : {{.*}} -> <64x32xf16, minor = 1>
// CHECK: tile.load_shared %arg1[{{.*}}] box [20, 24] : {{.*}} -> <32x24xf16, minor = 1>
// CHECK: tile.mma m16n8k16_f16 k 20 warps(4, 1) {{.*}} -> tensor<40x24xf32>
func.func @odd(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<40x24xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<40x20xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<20x24xf16>
  %d = tile.dot %a, %b, %zero : tensor<40x20xf16>, tensor<20x24xf16> -> tensor<40x24xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<40x24xf32>, !tile.view<2 x f32>
  return
}

// -----

// A tile that others read too is fetched once and read back; one that is converted on the way is shared after conversion.
// CHECK-LABEL: func.func @other_users
// CHECK: %[[A:.*]] = tile.load_shared %arg0
// CHECK: %[[Q:.*]] = tile.load %arg1
// CHECK: %[[F:.*]] = arith.sitofp %[[Q]]
// CHECK: %[[B:.*]] = tile.share %[[F]] : tensor<32x64xf16> -> <32x64xf16, minor = 1>
// CHECK: tile.mma m16n8k16_f16 k 32 warps(2, 2) %[[A]], %[[B]],
// CHECK: %[[R:.*]] = tile.smem_load %[[A]] : <64x32xf16, minor = 1> -> tensor<64x32xf16>
// CHECK: tile.store %[[R]]
func.func @other_users(%A: !tile.view<2 x f16>, %B: !tile.view<2 x i8>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
  %q = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x i8> -> tensor<32x64xi8>
  %b = arith.sitofp %q : tensor<32x64xi8> to tensor<32x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %a, %A[%i, %i : i32, i32] : tensor<64x32xf16>, !tile.view<2 x f16>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// A pad that is not zero, and a mask's `other` that is not zero, cannot come from an asynchronous copy.
// CHECK-LABEL: func.func @padded_with_one
// CHECK: %[[A:.*]] = tile.load %arg0{{.*}}pad 1.0
// CHECK: tile.share %[[A]]
func.func @padded_with_one(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] pad 1.0 : !tile.view<2 x f16> -> tensor<64x32xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Pointer accesses: scalar base and offsets copy asynchronously as well; the mask goes along.
// CHECK-LABEL: func.func @gathered
// CHECK: tile.gather_shared %arg0 offsets %{{.*}} : tensor<32x16xi32> mask %{{.*}} : tensor<32x16xi1> : {{.*}} -> <32x16xf16, minor = 1>
// CHECK: tile.mma
func.func @gathered(%p: !tile.ptr<f16>, %o: !tile.view<2 x i32>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %none = arith.constant dense<0> : tensor<32x16xi32>
  %off = tile.load %o[%i, %i : i32, i32] : !tile.view<2 x i32> -> tensor<32x16xi32>
  %m = arith.cmpi sge, %off, %none : tensor<32x16xi32>
  %a = tile.gather %p offsets %off : tensor<32x16xi32> mask %m : tensor<32x16xi1> : !tile.ptr<f16> -> tensor<32x16xf16>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x16xf16>
  %d = tile.dot %a, %b, %zero : tensor<32x16xf16>, tensor<16x16xf16> -> tensor<32x16xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<32x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Engines: f32 is IEEE multiply-adds unless asked otherwise; bytes want k contiguous, so a row-major B turns in registers;
// fp8 widens to f16.
// CHECK-LABEL: func.func @engines
// CHECK: tile.mma fma k 32
// CHECK: tile.mma m16n8k8_tf32 k 32
// CHECK: tile.mma m16n8k8_tf32x3 k 32
func.func @engines(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
  %d = tile.dot %a, %b, %zero : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %e = tile.dot %a, %b, %zero precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %f = tile.dot %a, %b, %zero precision tf32x3 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  tile.store %f, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// Operands of multiply-adds lie as they do in memory, first and second ones: a box that products read as its transpose is
// there once, for all of them.
// CHECK-LABEL: func.func @as_it_lies
// CHECK-DAG: tile.load_shared %arg0{{.*}} -> <64x32xf32, minor = 1>
// CHECK-DAG: tile.load_shared %arg1{{.*}} -> <64x32xf32, minor = 1>
// CHECK-DAG: tile.load_shared %arg2{{.*}} -> <64x32xf32, minor = 1>
func.func @as_it_lies(%A: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %Q: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %p = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %q = tile.load %Q[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
  %bt = tile.trans %b, [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %qt = tile.trans %q, [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %d = tile.dot %a, %bt, %zero : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %e = tile.dot %a, %qt, %d : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %f = tile.dot %p, %qt, %e precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tile.store %f, %C[%i, %i : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

// -----

// Lanes of multiply-adds read on their own: 8 rows and 8 columns each, of warps of 32 x 64, not 16 and 4.
// CHECK-LABEL: func.func @squares
// CHECK: tile.mma fma k 32 warps(4, 2)
func.func @squares(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<128x32xf32>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<32x128xf32>
  %d = tile.dot %a, %b, %zero : tensor<128x32xf32>, tensor<32x128xf32> -> tensor<128x128xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<128x128xf32>, !tile.view<2 x f32>
  return
}

// -----

// CHECK-LABEL: func.func @bytes
// CHECK: tile.load_shared %arg0{{.*}} -> <64x64xi8, minor = 1>
// CHECK: %[[B:.*]] = tile.load %arg1
// CHECK: tile.share %[[B]] : tensor<64x64xi8> -> <64x64xi8, minor = 0>
// CHECK: tile.mma m16n8k32_s8 k 64
func.func @bytes(%A: !tile.view<2 x i8>, %B: !tile.view<2 x i8>, %C: !tile.view<2 x i32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x i8> -> tensor<64x64xi8>
  %d = tile.dot %a, %b, %zero : tensor<64x64xi8>, tensor<64x64xi8> -> tensor<64x64xi32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<64x64xi32>, !tile.view<2 x i32>
  return
}

// Blocks of 16 x 16 x 8 for every warp, whatever way operands lie.
// CHECK-LABEL: func.func @doubles
// CHECK: tile.mma m8n8k4_f64 k 12 warps(4, 1) %{{.*}}, %{{.*}}, %{{.*}} : !tile.smem<64x16xf64, minor = 0>, <16x48xf64, minor = 1>
func.func @doubles(%A: !tile.view<2 x f64> {tile.unit_stride = 0 : i32}, %B: !tile.view<2 x f64>, %C: !tile.view<2 x f64>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<50x40xf64>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f64> -> tensor<50x12xf64>
  %b = tile.load %B[%i, %i : i32, i32] : !tile.view<2 x f64> -> tensor<12x40xf64>
  %d = tile.dot %a, %b, %zero : tensor<50x12xf64>, tensor<12x40xf64> -> tensor<50x40xf64>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<50x40xf64>, !tile.view<2 x f64>
  return
}

// CHECK-LABEL: func.func @fp8
// CHECK: arith.extf {{.*}} to tensor<32x32xf16>
// CHECK: tile.mma m16n8k16_f16 k 32
func.func @fp8(%A: !tile.view<2 x f8E4M3FN>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f8E4M3FN> -> tensor<32x32xf8E4M3FN>
  %d = tile.dot %a, %a, %zero : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E4M3FN> -> tensor<32x32xf32>
  tile.store %d, %C[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2 x f32>
  return
}

// The result of an f32 product is an operand of the next as it is, here on both sides.
// CHECK-LABEL: func.func @product_of_product
// CHECK: %[[D:.*]] = tile.mma
// CHECK: %[[S:.*]] = tile.share %[[D]]
// CHECK: tile.mma {{.*}}, {{.*}}%[[S]]
func.func @product_of_product(%A: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f32> -> tensor<32x32xf32>
  %d = tile.dot %a, %a, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %e = tile.dot %a, %d, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  tile.store %e, %C[%i, %i : i32, i32] : tensor<32x32xf32>, !tile.view<2 x f32>
  return
}

// -----

// Neighbours along the rows lie in one page of a table, but for the mask that hides what is past the end: they shall be
// neighbours in shared memory, too.
// CHECK-LABEL: func.func @paged
// CHECK: tile.gather_shared %arg1 {{.*}} -> <32x32xf16, minor = 0>
func.func @paged(%pages: !tile.ptr<i32>, %p: !tile.ptr<f16>, %A: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %i: i32, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c8 = arith.constant dense<8> : tensor<32xi32>
  %c128 = arith.constant dense<128> : tensor<32xi32>
  %row = tile.iota : tensor<32xi32>
  %end = tile.splat %n : i32 -> tensor<32xi32>
  %in = arith.cmpi slt, %row, %end : tensor<32xi32>
  %place = arith.divsi %row, %c8 : tensor<32xi32>
  %page = tile.gather %pages offsets %place : tensor<32xi32> mask %in : tensor<32xi1> : !tile.ptr<i32> -> tensor<32xi32>
  %first = arith.muli %page, %c128 : tensor<32xi32>
  %slot = arith.remsi %row, %c8 : tensor<32xi32>
  %key = arith.addi %first, %slot : tensor<32xi32>
  %k1 = tile.reshape %key : tensor<32xi32> -> tensor<32x1xi32>
  %k2 = tile.broadcast %k1 : tensor<32x1xi32> -> tensor<32x16xi32>
  %d = tile.iota : tensor<16xi32>
  %c8d = arith.constant dense<8> : tensor<16xi32>
  %column = arith.muli %d, %c8d : tensor<16xi32>
  %d1 = tile.reshape %column : tensor<16xi32> -> tensor<1x16xi32>
  %d2 = tile.broadcast %d1 : tensor<1x16xi32> -> tensor<32x16xi32>
  %off = arith.addi %k2, %d2 : tensor<32x16xi32>
  %m1 = tile.reshape %in : tensor<32xi1> -> tensor<32x1xi1>
  %m = tile.broadcast %m1 : tensor<32x1xi1> -> tensor<32x16xi1>
  %v = tile.gather %p offsets %off : tensor<32x16xi32> mask %m : tensor<32x16xi1> : !tile.ptr<f16> -> tensor<32x16xf16>
  %a = tile.load %A[%i, %i : i32, i32] : !tile.view<2 x f16> -> tensor<16x32xf16>
  %r = tile.dot %a, %v, %zero : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
  tile.store %r, %C[%i, %i : i32, i32] : tensor<16x16xf32>, !tile.view<2 x f32>
  return
}

// -----

// Gathers of elements no two of which are known to be neighbours: a buffer lies along the dim in which they are
// nearest. Pixels of an image whose width is not known are neighbours but for the ends of its rows: p / W * W + p % W.
// CHECK-LABEL: func.func @product
// CHECK-DAG: tile.gather_shared %arg0 {{.*}} -> <64x32xf16, minor = 0>
// CHECK-DAG: tile.gather_shared %arg1 {{.*}} -> <32x64xf16, minor = 0>
func.func @product(%x: !tile.ptr<f16>, %w: !tile.ptr<f16>, %y: !tile.view<2 x f32>, %C: i32, %W: i32, %HW: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %nine = arith.constant dense<9> : tensor<32x64xi32>
  %p = tile.iota : tensor<64xi32>
  %c = tile.iota : tensor<32xi32>
  %Ws = tile.splat %W : i32 -> tensor<64xi32>
  %line = arith.divsi %p, %Ws : tensor<64xi32>
  %place = arith.remsi %p, %Ws : tensor<64xi32>
  %start = arith.muli %line, %Ws : tensor<64xi32>
  %pixel = arith.addi %start, %place : tensor<64xi32>
  %pixel2 = tile.reshape %pixel : tensor<64xi32> -> tensor<64x1xi32>
  %pixels = tile.broadcast %pixel2 : tensor<64x1xi32> -> tensor<64x32xi32>
  %HWs = tile.splat %HW : i32 -> tensor<32xi32>
  %plane = arith.muli %c, %HWs : tensor<32xi32>
  %plane2 = tile.reshape %plane : tensor<32xi32> -> tensor<1x32xi32>
  %planes = tile.broadcast %plane2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %from = arith.addi %pixels, %planes : tensor<64x32xi32>
  %a = tile.gather %x offsets %from : tensor<64x32xi32> : !tile.ptr<f16> -> tensor<64x32xf16>
  %Cs = tile.splat %C : i32 -> tensor<64xi32>
  %oC = arith.muli %p, %Cs : tensor<64xi32>
  %row = tile.reshape %oC : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tile.broadcast %row : tensor<1x64xi32> -> tensor<32x64xi32>
  %column = tile.reshape %c : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.broadcast %column : tensor<32x1xi32> -> tensor<32x64xi32>
  %both = arith.addi %rows, %columns : tensor<32x64xi32>
  %at = arith.muli %both, %nine : tensor<32x64xi32>
  %b = tile.gather %w offsets %at : tensor<32x64xi32> : !tile.ptr<f16> -> tensor<32x64xf16>
  %d = tile.dot %a, %b, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %y[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
