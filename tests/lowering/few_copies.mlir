// Copies of numbers that become neighbours (two nibbles of a byte) lie where the numbers were loaded: words of bytes are
// neither exchanged nor read one by one.
// RUN: tile-opt %s --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @nibbles(
// CHECK: tile.gather {{.*}} -> tensor<64x64xi8, #tile.layout<64x64 regs [1:16*1
// CHECK-NOT: tile.convert
// CHECK: tile.broadcast {{.*}} -> tensor<64x64x2xi32, #tile.layout<64x64x2 regs [1:16*1, 0:2*32, 2:2*1]
// CHECK-NOT: tile.convert
// CHECK: tile.reduce
func.func @nibbles(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.ptr<i32>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %fifteen = arith.constant dense<15> : tensor<64x64x2xi32>
  %down = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %across = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %starts = arith.muli %down, %c64 : tensor<64x1xi32>
  %rows = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tile.broadcast %across : tensor<1x64xi32> -> tensor<64x64xi32>
  %places = arith.addi %rows, %columns : tensor<64x64xi32>
  %bytes = tile.gather %x offsets %places : tensor<64x64xi32> : !tile.ptr<i8> -> tensor<64x64xi8>
  %words = arith.extui %bytes : tensor<64x64xi8> to tensor<64x64xi32>
  %single = tile.reshape %words : tensor<64x64xi32> -> tensor<64x64x1xi32>
  %twice = tile.broadcast %single : tensor<64x64x1xi32> -> tensor<64x64x2xi32>
  %zero = tile.iota : tensor<2xi32>
  %four = arith.constant dense<4> : tensor<2xi32>
  %by = arith.muli %zero, %four : tensor<2xi32>
  %by3 = tile.reshape %by : tensor<2xi32> -> tensor<1x1x2xi32>
  %byAll = tile.broadcast %by3 : tensor<1x1x2xi32> -> tensor<64x64x2xi32>
  %moved = arith.shrui %twice, %byAll : tensor<64x64x2xi32>
  %nibbles = arith.andi %moved, %fifteen : tensor<64x64x2xi32>
  %flat = tile.reshape %nibbles : tensor<64x64x2xi32> -> tensor<64x128xi32>
  %sum = tile.reduce %flat axis 1 : (tensor<64x128xi32>) -> tensor<64x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  tile.scatter %sum, %y offsets %down : tensor<64x1xi32> : tensor<64x1xi32>, !tile.ptr<i32>
  return
}

// Bytes that a scalar chooses are bytes as well.
// CHECK-LABEL: func.func @chosen(
// CHECK: tile.broadcast {{.*}} -> tensor<64x64x2xi8, #tile.layout<64x64x2 regs [1:16*1, 0:2*32, 2:2*1]
// CHECK: tile.reduce
func.func @chosen(%x: !tile.ptr<i8> {tile.align = 16 : i32}, %z: !tile.ptr<i8> {tile.align = 16 : i32}, %is: i1,
                  %y: !tile.ptr<i8>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %down = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %across = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %starts = arith.muli %down, %c64 : tensor<64x1xi32>
  %rows = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tile.broadcast %across : tensor<1x64xi32> -> tensor<64x64xi32>
  %places = arith.addi %rows, %columns : tensor<64x64xi32>
  %one = tile.gather %x offsets %places : tensor<64x64xi32> : !tile.ptr<i8> -> tensor<64x64xi8>
  %other = tile.gather %z offsets %places : tensor<64x64xi32> : !tile.ptr<i8> -> tensor<64x64xi8>
  %bytes = arith.select %is, %one, %other : tensor<64x64xi8>
  %single = tile.reshape %bytes : tensor<64x64xi8> -> tensor<64x64x1xi8>
  %twice = tile.broadcast %single : tensor<64x64x1xi8> -> tensor<64x64x2xi8>
  %flat = tile.reshape %twice : tensor<64x64x2xi8> -> tensor<64x128xi8>
  %sum = tile.reduce %flat axis 1 : (tensor<64x128xi8>) -> tensor<64x1xi8> {
  ^bb0(%a: i8, %b: i8):
    %s = arith.addi %a, %b : i8
    tile.yield %s : i8
  }
  tile.scatter %sum, %y offsets %down : tensor<64x1xi32> : tensor<64x1xi8>, !tile.ptr<i8>
  return
}
