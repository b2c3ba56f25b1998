// What neighbours along a dim of a gather share is gathered once, and repeated.
// RUN: tile-opt %s --tile-narrow-gathers | FileCheck %s

// Bytes of two numbers each, along k, and a factor for every 128 of them: bytes lie next to each other then, and whole
// words of them are in bounds together.
// CHECK-LABEL: func.func @nibbles
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[HALF:.*]] = arith.divsi %[[K]], %{{.*}} : i32
// CHECK: %[[START:.*]] = tile.splat %[[HALF]] : i32 -> tensor<32xi32>
// CHECK: arith.addi %[[START]], %{{.*}} : tensor<32xi32>
// CHECK: arith.divsi %arg3, %{{.*}} : i32
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<32x1xi32>
// CHECK: %[[BYTES:.*]] = tile.gather %arg0 offsets %{{.*}} : tensor<32x128xi32> mask %{{.*}} : tensor<32x128xi1>
// CHECK: tile.reshape %[[BYTES]] : tensor<32x128xi8> -> tensor<32x1x128xi8>
// CHECK: tile.broadcast %{{.*}} -> tensor<32x2x128xi8>
// CHECK: tile.reshape %{{.*}} -> tensor<64x128xi8>
// CHECK: tile.gather %arg1 offsets %{{.*}} : tensor<{{[0-9]+}}x128xi32> : !tile.ptr<f16> ->
func.func @nibbles(%w: !tile.ptr<i8> {tile.align = 16 : i32}, %s: !tile.ptr<f16> {tile.align = 16 : i32}, %y: !tile.view<2xi8>,
                   %n: i32 {tile.multiple_of = 16 : i32}, %row: i32 {tile.multiple_of = 16 : i32}, %z: !tile.view<2xf16>)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %two = arith.constant dense<2> : tensor<64x1xi32>
  %group = arith.constant dense<128> : tensor<64x1xi32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<128xi32>
  %columns = tile.reshape %j : tensor<128xi32> -> tensor<1x128xi32>
  %length = tile.splat %row : i32 -> tensor<1x128xi32>
  %starts = arith.muli %columns, %length : tensor<1x128xi32>
  %base = tile.broadcast %starts : tensor<1x128xi32> -> tensor<64x128xi32>
  %end = tile.splat %n : i32 -> tensor<64x1xi32>
  scf.for %k = %c0 to %n step %c64 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %start, %i : tensor<64xi32>
    %rows = tile.reshape %at : tensor<64xi32> -> tensor<64x1xi32>
    %byte = arith.divsi %rows, %two : tensor<64x1xi32>
    %bytes = tile.broadcast %byte : tensor<64x1xi32> -> tensor<64x128xi32>
    %place = arith.addi %base, %bytes : tensor<64x128xi32>
    %in = arith.cmpi slt, %rows, %end : tensor<64x1xi32>
    %mask = tile.broadcast %in : tensor<64x1xi1> -> tensor<64x128xi1>
    %x = tile.gather %w offsets %place : tensor<64x128xi32> mask %mask : tensor<64x128xi1> : !tile.ptr<i8> -> tensor<64x128xi8>
    %g = arith.divsi %rows, %group : tensor<64x1xi32>
    %groups = tile.broadcast %g : tensor<64x1xi32> -> tensor<64x128xi32>
    %factor = arith.addi %base, %groups : tensor<64x128xi32>
    %f = tile.gather %s offsets %factor : tensor<64x128xi32> : !tile.ptr<f16> -> tensor<64x128xf16>
    tile.store %x, %y[%k, %c0 : i32, i32] : tensor<64x128xi8>, !tile.view<2xi8>
    tile.store %f, %z[%k, %c0 : i32, i32] : tensor<64x128xf16>, !tile.view<2xf16>
  }
  return
}

// Where words of 32 bits lie next to each other along the other dim, they are shared as they are.
// CHECK-LABEL: func.func @rows_of_words
// CHECK: tile.gather %arg0 offsets %{{.*}} : tensor<64x128xi32> : !tile.ptr<i32> -> tensor<64x128xi32>
func.func @rows_of_words(%w: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.view<2xi32>, %row: i32 {tile.multiple_of = 16 : i32})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %eight = arith.constant dense<8> : tensor<64x1xi32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<128xi32>
  %rows = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %word = arith.divsi %rows, %eight : tensor<64x1xi32>
  %length = tile.splat %row : i32 -> tensor<64x1xi32>
  %starts = arith.muli %word, %length : tensor<64x1xi32>
  %down = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x128xi32>
  %columns = tile.reshape %j : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
  %place = arith.addi %down, %across : tensor<64x128xi32>
  %x = tile.gather %w offsets %place : tensor<64x128xi32> : !tile.ptr<i32> -> tensor<64x128xi32>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<64x128xi32>, !tile.view<2xi32>
  return
}

// Rows that k share are read once where elements of a row lie next to each other, too.
// CHECK-LABEL: func.func @rows_of_bytes
// CHECK: %[[BYTES:.*]] = tile.gather %arg0 offsets %{{.*}} : tensor<8x128xi32> : !tile.ptr<i8> -> tensor<8x128xi8>
// CHECK: tile.reshape %[[BYTES]] : tensor<8x128xi8> -> tensor<8x1x128xi8>
// CHECK: tile.broadcast %{{.*}} -> tensor<8x8x128xi8>
func.func @rows_of_bytes(%w: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.view<2xi8>, %row: i32 {tile.multiple_of = 16 : i32})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %eight = arith.constant dense<8> : tensor<64x1xi32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<128xi32>
  %rows = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %word = arith.divsi %rows, %eight : tensor<64x1xi32>
  %length = tile.splat %row : i32 -> tensor<64x1xi32>
  %starts = arith.muli %word, %length : tensor<64x1xi32>
  %down = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x128xi32>
  %columns = tile.reshape %j : tensor<128xi32> -> tensor<1x128xi32>
  %across = tile.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
  %place = arith.addi %down, %across : tensor<64x128xi32>
  %x = tile.gather %w offsets %place : tensor<64x128xi32> : !tile.ptr<i8> -> tensor<64x128xi8>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<64x128xi8>, !tile.view<2xi8>
  return
}

// The condition of a choice is a scalar. Quotients without a sign are not made of parts that may have one.
// CHECK-LABEL: func.func @chosen
// CHECK: arith.divui %{{.*}} : tensor<32x1xi32>
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x1xi32>
// CHECK: tile.gather %arg0 offsets %{{.*}} : tensor<32x128xi32> : !tile.ptr<i8> -> tensor<32x128xi8>
func.func @chosen(%w: !tile.ptr<i8> {tile.align = 16 : i32}, %y: !tile.view<2xi8>,
                  %s: i32 {tile.multiple_of = 16 : i32}, %row: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %two = arith.constant dense<2> : tensor<64x1xi32>
  %four = arith.constant dense<4> : tensor<64x1xi32>
  %i = tile.iota : tensor<64xi32>
  %j = tile.iota : tensor<128xi32>
  %columns = tile.reshape %j : tensor<128xi32> -> tensor<1x128xi32>
  %length = tile.splat %row : i32 -> tensor<1x128xi32>
  %starts = arith.muli %columns, %length : tensor<1x128xi32>
  %base = tile.broadcast %starts : tensor<1x128xi32> -> tensor<64x128xi32>
  %rows = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %byte = arith.divsi %rows, %two : tensor<64x1xi32>
  %start = tile.splat %s : i32 -> tensor<64x1xi32>
  %half = arith.divui %start, %two : tensor<64x1xi32>
  %near = arith.addi %byte, %half : tensor<64x1xi32>
  %far = arith.divsi %rows, %four : tensor<64x1xi32>
  %is_near = arith.cmpi sgt, %row, %c0 : i32
  %at = arith.select %is_near, %near, %far : tensor<64x1xi32>
  %bytes = tile.broadcast %at : tensor<64x1xi32> -> tensor<64x128xi32>
  %place = arith.addi %base, %bytes : tensor<64x128xi32>
  %x = tile.gather %w offsets %place : tensor<64x128xi32> : !tile.ptr<i8> -> tensor<64x128xi8>
  tile.store %x, %y[%c0, %c0 : i32, i32] : tensor<64x128xi8>, !tile.view<2xi8>
  return
}
