// Where a thread would hold more values at a time than it has registers, each is computed in front of its use, element
// by element; where it does not, operations stay in the order of the tiles.
// RUN: tilec compile %s -t sm_80 -e ptx | FileCheck %s

// CHECK-LABEL: .entry orders(
// CHECK: mul.lo.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, 1000001;
// CHECK-NEXT: mul.lo.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, 1000001;
// CHECK: mul.lo.s32 %r{{[0-9]+}}, [[X:%r[0-9]+]], 1000003;
// CHECK-NEXT: mul.lo.s32 %r{{[0-9]+}}, [[X]], 1000033;
// CHECK-NEXT: xor.b32
// CHECK-NEXT: mul.lo.s32 %r{{[0-9]+}}, [[X]], 1000037;
func.func @orders(%x: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8192>},
                %z: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8192>})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %o = arith.constant 0 : i32
  %p = arith.constant dense<1000003> : tensor<8192xi32>
  %q = arith.constant dense<1000033> : tensor<8192xi32>
  %r = arith.constant dense<1000037> : tensor<8192xi32>
  %s = arith.constant dense<1000039> : tensor<8192xi32>
  %n = arith.constant dense<1000001> : tensor<1024xi32>
  %few = tile.load %x[%o : i32] : !tile.view<1xi32> -> tensor<1024xi32>
  %e = arith.muli %few, %n : tensor<1024xi32>
  %f = arith.xori %few, %e : tensor<1024xi32>
  tile.store %f, %z[%o : i32] : tensor<1024xi32>, !tile.view<1xi32>
  %v = tile.load %x[%o : i32] : !tile.view<1xi32> -> tensor<8192xi32>
  %a = arith.muli %v, %p : tensor<8192xi32>
  %b = arith.muli %v, %q : tensor<8192xi32>
  %c = arith.muli %v, %r : tensor<8192xi32>
  %d = arith.muli %v, %s : tensor<8192xi32>
  %ab = arith.xori %a, %b : tensor<8192xi32>
  %cd = arith.xori %c, %d : tensor<8192xi32>
  %m = arith.andi %ab, %cd : tensor<8192xi32>
  tile.store %m, %z[%o : i32] : tensor<8192xi32>, !tile.view<1xi32>
  return
}
