// Sums of a word's bytes are one instruction, with what else is added; of two bytes they stay what they are.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry bytes(
// CHECK: mov.b32 [[REST:%r[0-9]+]], -510;
// CHECK: mov.b32 [[ALL:%r[0-9]+]], 16843009;
// CHECK: dp4a.u32.u32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[ALL]], [[REST]];
// CHECK: mov.b32 [[THREE:%r[0-9]+]], 65793;
// CHECK: dp4a.u32.u32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[THREE]],
// CHECK-NOT: dp4a
// CHECK: ret
func.func @bytes(%p: !tile.ptr<i32>, %y: !tile.ptr<i32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %byte = arith.constant dense<255> : tensor<128xi32>
  %c8 = arith.constant dense<8> : tensor<128xi32>
  %c16 = arith.constant dense<16> : tensor<128xi32>
  %c24 = arith.constant dense<24> : tensor<128xi32>
  %middle = arith.constant dense<510> : tensor<128xi32>
  %odd = arith.constant dense<77> : tensor<128xi32>
  %next = arith.constant dense<128> : tensor<128xi32>
  %i = tile.iota : tensor<128xi32>
  %x = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
  %b0 = arith.andi %x, %byte : tensor<128xi32>
  %x8 = arith.shrui %x, %c8 : tensor<128xi32>
  %b1 = arith.andi %x8, %byte : tensor<128xi32>
  %x16 = arith.shrui %x, %c16 : tensor<128xi32>
  %b2 = arith.andi %x16, %byte : tensor<128xi32>
  %b3 = arith.shrui %x, %c24 : tensor<128xi32>
  %s01 = arith.addi %b0, %b1 : tensor<128xi32>
  %s012 = arith.addi %s01, %b2 : tensor<128xi32>
  %all = arith.addi %s012, %b3 : tensor<128xi32>
  %centred = arith.subi %all, %middle : tensor<128xi32>
  tile.scatter %centred, %y offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  %z = arith.muli %x, %odd : tensor<128xi32>
  %d0 = arith.andi %z, %byte : tensor<128xi32>
  %z8 = arith.shrui %z, %c8 : tensor<128xi32>
  %d1 = arith.andi %z8, %byte : tensor<128xi32>
  %z16 = arith.shrui %z, %c16 : tensor<128xi32>
  %d2 = arith.andi %z16, %byte : tensor<128xi32>
  %t01 = arith.addi %d0, %d1 : tensor<128xi32>
  %t012 = arith.addi %t01, %d2 : tensor<128xi32>
  %at1 = arith.addi %i, %next : tensor<128xi32>
  tile.scatter %t012, %y offsets %at1 : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  %w = arith.muli %z, %odd : tensor<128xi32>
  %e0 = arith.andi %w, %byte : tensor<128xi32>
  %w8 = arith.shrui %w, %c8 : tensor<128xi32>
  %e1 = arith.andi %w8, %byte : tensor<128xi32>
  %u01 = arith.addi %e0, %e1 : tensor<128xi32>
  %at2 = arith.addi %at1, %next : tensor<128xi32>
  tile.scatter %u01, %y offsets %at2 : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
