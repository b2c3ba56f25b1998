// Elements that write several times to where a scan says that they go lie in neighbouring lanes, one in a thread and
// 128 further the next: what a warp writes at a time is near each other. For few writes the wide load is kept.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @several
// CHECK: tile.gather {{.*}} -> tensor<256xi32, #tile.layout<256 regs [0:2*128] lanes [0:32*1] warps [0:4*32]>>
// CHECK-NOT: tile.convert
// CHECK: return
func.func @several(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<256xi32>
  %few = arith.constant dense<15> : tensor<256xi32>
  %v = tile.gather %x offsets %i : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %lengths = arith.andi %v, %few : tensor<256xi32>
  %bytes = arith.trunci %v : tensor<256xi32> to tensor<256xi8>
  %ends = tile.scan %lengths axis 0 : (tensor<256xi32>) -> tensor<256xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<256xi32>
  %k0 = arith.constant dense<0> : tensor<256xi32>
  %is0 = arith.cmpi sgt, %lengths, %k0 : tensor<256xi32>
  %at0 = arith.addi %starts, %k0 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at0 : tensor<256xi32> mask %is0 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  %k1 = arith.constant dense<1> : tensor<256xi32>
  %is1 = arith.cmpi sgt, %lengths, %k1 : tensor<256xi32>
  %at1 = arith.addi %starts, %k1 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at1 : tensor<256xi32> mask %is1 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  %k2 = arith.constant dense<2> : tensor<256xi32>
  %is2 = arith.cmpi sgt, %lengths, %k2 : tensor<256xi32>
  %at2 = arith.addi %starts, %k2 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at2 : tensor<256xi32> mask %is2 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  %k3 = arith.constant dense<3> : tensor<256xi32>
  %is3 = arith.cmpi sgt, %lengths, %k3 : tensor<256xi32>
  %at3 = arith.addi %starts, %k3 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at3 : tensor<256xi32> mask %is3 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  return
}

// -----
// CHECK-LABEL: func.func @few
// CHECK: tile.gather {{.*}} -> tensor<256xi32, #tile.layout<256 regs [0:2*1] lanes [0:32*2] warps [0:4*64]>>
// CHECK-NOT: tile.convert
// CHECK: return
func.func @few(%x: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<256xi32>
  %few = arith.constant dense<15> : tensor<256xi32>
  %v = tile.gather %x offsets %i : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
  %lengths = arith.andi %v, %few : tensor<256xi32>
  %bytes = arith.trunci %v : tensor<256xi32> to tensor<256xi8>
  %ends = tile.scan %lengths axis 0 : (tensor<256xi32>) -> tensor<256xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %lengths : tensor<256xi32>
  %k0 = arith.constant dense<0> : tensor<256xi32>
  %is0 = arith.cmpi sgt, %lengths, %k0 : tensor<256xi32>
  %at0 = arith.addi %starts, %k0 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at0 : tensor<256xi32> mask %is0 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  %k1 = arith.constant dense<1> : tensor<256xi32>
  %is1 = arith.cmpi sgt, %lengths, %k1 : tensor<256xi32>
  %at1 = arith.addi %starts, %k1 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at1 : tensor<256xi32> mask %is1 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  %k2 = arith.constant dense<2> : tensor<256xi32>
  %is2 = arith.cmpi sgt, %lengths, %k2 : tensor<256xi32>
  %at2 = arith.addi %starts, %k2 : tensor<256xi32>
  tile.scatter %bytes, %p offsets %at2 : tensor<256xi32> mask %is2 : tensor<256xi1> : tensor<256xi8>, !tile.ptr<i8>
  return
}
