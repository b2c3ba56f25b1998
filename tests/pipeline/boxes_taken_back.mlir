// Products of f32 in threads have no producer: their matrices, boxes though they are, stay gathered through pointers.
// RUN: tilec compile %s -t sm_90a -e mlir:gpu | FileCheck %s
// RUN: tilec compile %s -t sm_90a -e mlir:gpu --remarks -o %t 2>&1 | FileCheck %s -check-prefix=SAID

// CHECK: func.func @sums
// CHECK-NOT: tile.make_view
// CHECK: tile.async_gather
// CHECK-NOT: tile.make_view
// SAID: remark: matrices stay gathered through pointers: without producer warps boxes of views are no better
func.func @sums(%a: !tile.ptr<f32> {tile.align = 16 : i32}, %b: !tile.ptr<f32> {tile.align = 16 : i32}, %m: i32,
                %n: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %pid, %c64 : i32
  %col = arith.muli %across, %c64 : i32
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tile.reshape %i64 : tensor<64xi32> -> tensor<1x64xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %down = tile.reshape %i32 : tensor<32xi32> -> tensor<32x1xi32>
  %k64 = arith.extsi %k : i32 to i64
  %n64 = arith.extsi %n : i32 to i64
  %row64 = arith.extsi %row : i32 to i64
  %col64 = arith.extsi %col : i32 to i64
  %arow = arith.muli %row64, %k64 : i64
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %ns = tile.splat %n : i32 -> tensor<32x1xi32>
  %bo = arith.muli %down, %ns : tensor<32x1xi32>
  %bo2 = tile.broadcast %bo : tensor<32x1xi32> -> tensor<32x64xi32>
  %columns2 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<32x64xi32>
  %boff = arith.addi %bo2, %columns2 : tensor<32x64xi32>
  %rs = tile.splat %row : i32 -> tensor<64x1xi32>
  %r = arith.addi %rs, %rows : tensor<64x1xi32>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32>
  %rin = arith.cmpi slt, %r, %ms : tensor<64x1xi32>
  %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
  %cs = tile.splat %col : i32 -> tensor<1x64xi32>
  %c = arith.addi %cs, %columns : tensor<1x64xi32>
  %ns1 = tile.splat %n : i32 -> tensor<1x64xi32>
  %cin = arith.cmpi slt, %c, %ns1 : tensor<1x64xi32>
  %cin2 = tile.broadcast %cin : tensor<1x64xi1> -> tensor<32x64xi1>
  %p0 = tile.ptr_add %b, %col64 : !tile.ptr<f32>, i64
  %c32l = arith.constant 32 : i64
  %advance = arith.muli %n64, %c32l : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %p0) -> (tensor<64x64xf32>, !tile.ptr<f32>) : i32 {
    %il = arith.extsi %i : i32 to i64
    %at = arith.addi %arow, %il : i64
    %pa = tile.ptr_add %a, %at : !tile.ptr<f32>, i64
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %in2 = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %amask = arith.andi %rin2, %in2 : tensor<64x32xi1>
    %x = tile.gather %pa offsets %aoff : tensor<64x32xi32> mask %amask : tensor<64x32xi1> : !tile.ptr<f32> -> tensor<64x32xf32>
    %ls2 = tile.splat %left : i32 -> tensor<32x1xi32>
    %bin = arith.cmpi slt, %down, %ls2 : tensor<32x1xi32>
    %bin2 = tile.broadcast %bin : tensor<32x1xi1> -> tensor<32x64xi1>
    %bmask = arith.andi %bin2, %cin2 : tensor<32x64xi1>
    %w = tile.gather %p offsets %boff : tensor<32x64xi32> mask %bmask : tensor<32x64xi1> : !tile.ptr<f32> -> tensor<32x64xf32>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %advance : !tile.ptr<f32>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f32>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}
