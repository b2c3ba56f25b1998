// RUN: tilec compile %s -t sm_90a -e mlir:gpu | FileCheck %s
// A launch takes 16 tensor maps: two are for operands, 14 for results; threads store the other three by themselves.
// CHECK-COUNT-14: tile.tma_store
// CHECK-NOT: tile.tma_store
func.func @outputs(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32}, %m: i32,
                %n: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 16 : i32}, %y0: !tile.ptr<f16> {tile.align = 16 : i32}, %y1: !tile.ptr<f16> {tile.align = 16 : i32}, %y2: !tile.ptr<f16> {tile.align = 16 : i32}, %y3: !tile.ptr<f16> {tile.align = 16 : i32}, %y4: !tile.ptr<f16> {tile.align = 16 : i32}, %y5: !tile.ptr<f16> {tile.align = 16 : i32}, %y6: !tile.ptr<f16> {tile.align = 16 : i32}, %y7: !tile.ptr<f16> {tile.align = 16 : i32}, %y8: !tile.ptr<f16> {tile.align = 16 : i32}, %y9: !tile.ptr<f16> {tile.align = 16 : i32}, %y10: !tile.ptr<f16> {tile.align = 16 : i32}, %y11: !tile.ptr<f16> {tile.align = 16 : i32}, %y12: !tile.ptr<f16> {tile.align = 16 : i32}, %y13: !tile.ptr<f16> {tile.align = 16 : i32}, %y14: !tile.ptr<f16> {tile.align = 16 : i32}, %y15: !tile.ptr<f16> {tile.align = 16 : i32}, %y16: !tile.ptr<f16> {tile.align = 16 : i32}) attributes {tile.kernel} {
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
  %p0 = tile.ptr_add %b, %col64 : !tile.ptr<f16>, i64
  %c32l = arith.constant 32 : i64
  %advance = arith.muli %n64, %c32l : i64
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %p0) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %il = arith.extsi %i : i32 to i64
    %at = arith.addi %arow, %il : i64
    %pa = tile.ptr_add %a, %at : !tile.ptr<f16>, i64
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x32xi32>
    %in = arith.cmpi slt, %along, %ls : tensor<1x32xi32>
    %in2 = tile.broadcast %in : tensor<1x32xi1> -> tensor<64x32xi1>
    %amask = arith.andi %rin2, %in2 : tensor<64x32xi1>
    %x = tile.gather %pa offsets %aoff : tensor<64x32xi32> mask %amask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %ls2 = tile.splat %left : i32 -> tensor<32x1xi32>
    %bin = arith.cmpi slt, %down, %ls2 : tensor<32x1xi32>
    %bin2 = tile.broadcast %bin : tensor<32x1xi1> -> tensor<32x64xi1>
    %bmask = arith.andi %bin2, %cin2 : tensor<32x64xi1>
    %w = tile.gather %p offsets %boff : tensor<32x64xi32> mask %bmask : tensor<32x64xi1> : !tile.ptr<f16> -> tensor<32x64xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %advance : !tile.ptr<f16>, i64
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %nsr = tile.splat %n : i32 -> tensor<64x1xi32>
  %yo = arith.muli %rows, %nsr : tensor<64x1xi32>
  %yrow = arith.muli %row64, %n64 : i64
  %ybase = arith.addi %yrow, %col64 : i64
  %yo2 = tile.broadcast %yo : tensor<64x1xi32> -> tensor<64x64xi32>
  %c2 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %yoff = arith.addi %yo2, %c2 : tensor<64x64xi32>
  %rin3 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x64xi1>
  %cin3 = tile.broadcast %cin : tensor<1x64xi1> -> tensor<64x64xi1>
  %ymask = arith.andi %rin3, %cin3 : tensor<64x64xi1>
  %f0 = arith.constant dense<1.0> : tensor<64x64xf32>
  %m0 = arith.mulf %sum#0, %f0 : tensor<64x64xf32>
  %h0 = arith.truncf %m0 : tensor<64x64xf32> to tensor<64x64xf16>
  %z0 = tile.ptr_add %y0, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h0, %z0 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f1 = arith.constant dense<2.0> : tensor<64x64xf32>
  %m1 = arith.mulf %sum#0, %f1 : tensor<64x64xf32>
  %h1 = arith.truncf %m1 : tensor<64x64xf32> to tensor<64x64xf16>
  %z1 = tile.ptr_add %y1, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h1, %z1 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f2 = arith.constant dense<3.0> : tensor<64x64xf32>
  %m2 = arith.mulf %sum#0, %f2 : tensor<64x64xf32>
  %h2 = arith.truncf %m2 : tensor<64x64xf32> to tensor<64x64xf16>
  %z2 = tile.ptr_add %y2, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h2, %z2 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f3 = arith.constant dense<4.0> : tensor<64x64xf32>
  %m3 = arith.mulf %sum#0, %f3 : tensor<64x64xf32>
  %h3 = arith.truncf %m3 : tensor<64x64xf32> to tensor<64x64xf16>
  %z3 = tile.ptr_add %y3, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h3, %z3 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f4 = arith.constant dense<5.0> : tensor<64x64xf32>
  %m4 = arith.mulf %sum#0, %f4 : tensor<64x64xf32>
  %h4 = arith.truncf %m4 : tensor<64x64xf32> to tensor<64x64xf16>
  %z4 = tile.ptr_add %y4, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h4, %z4 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f5 = arith.constant dense<6.0> : tensor<64x64xf32>
  %m5 = arith.mulf %sum#0, %f5 : tensor<64x64xf32>
  %h5 = arith.truncf %m5 : tensor<64x64xf32> to tensor<64x64xf16>
  %z5 = tile.ptr_add %y5, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h5, %z5 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f6 = arith.constant dense<7.0> : tensor<64x64xf32>
  %m6 = arith.mulf %sum#0, %f6 : tensor<64x64xf32>
  %h6 = arith.truncf %m6 : tensor<64x64xf32> to tensor<64x64xf16>
  %z6 = tile.ptr_add %y6, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h6, %z6 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f7 = arith.constant dense<8.0> : tensor<64x64xf32>
  %m7 = arith.mulf %sum#0, %f7 : tensor<64x64xf32>
  %h7 = arith.truncf %m7 : tensor<64x64xf32> to tensor<64x64xf16>
  %z7 = tile.ptr_add %y7, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h7, %z7 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f8 = arith.constant dense<9.0> : tensor<64x64xf32>
  %m8 = arith.mulf %sum#0, %f8 : tensor<64x64xf32>
  %h8 = arith.truncf %m8 : tensor<64x64xf32> to tensor<64x64xf16>
  %z8 = tile.ptr_add %y8, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h8, %z8 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f9 = arith.constant dense<10.0> : tensor<64x64xf32>
  %m9 = arith.mulf %sum#0, %f9 : tensor<64x64xf32>
  %h9 = arith.truncf %m9 : tensor<64x64xf32> to tensor<64x64xf16>
  %z9 = tile.ptr_add %y9, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h9, %z9 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f10 = arith.constant dense<11.0> : tensor<64x64xf32>
  %m10 = arith.mulf %sum#0, %f10 : tensor<64x64xf32>
  %h10 = arith.truncf %m10 : tensor<64x64xf32> to tensor<64x64xf16>
  %z10 = tile.ptr_add %y10, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h10, %z10 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f11 = arith.constant dense<12.0> : tensor<64x64xf32>
  %m11 = arith.mulf %sum#0, %f11 : tensor<64x64xf32>
  %h11 = arith.truncf %m11 : tensor<64x64xf32> to tensor<64x64xf16>
  %z11 = tile.ptr_add %y11, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h11, %z11 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f12 = arith.constant dense<13.0> : tensor<64x64xf32>
  %m12 = arith.mulf %sum#0, %f12 : tensor<64x64xf32>
  %h12 = arith.truncf %m12 : tensor<64x64xf32> to tensor<64x64xf16>
  %z12 = tile.ptr_add %y12, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h12, %z12 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f13 = arith.constant dense<14.0> : tensor<64x64xf32>
  %m13 = arith.mulf %sum#0, %f13 : tensor<64x64xf32>
  %h13 = arith.truncf %m13 : tensor<64x64xf32> to tensor<64x64xf16>
  %z13 = tile.ptr_add %y13, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h13, %z13 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f14 = arith.constant dense<15.0> : tensor<64x64xf32>
  %m14 = arith.mulf %sum#0, %f14 : tensor<64x64xf32>
  %h14 = arith.truncf %m14 : tensor<64x64xf32> to tensor<64x64xf16>
  %z14 = tile.ptr_add %y14, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h14, %z14 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f15 = arith.constant dense<16.0> : tensor<64x64xf32>
  %m15 = arith.mulf %sum#0, %f15 : tensor<64x64xf32>
  %h15 = arith.truncf %m15 : tensor<64x64xf32> to tensor<64x64xf16>
  %z15 = tile.ptr_add %y15, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h15, %z15 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  %f16 = arith.constant dense<17.0> : tensor<64x64xf32>
  %m16 = arith.mulf %sum#0, %f16 : tensor<64x64xf32>
  %h16 = arith.truncf %m16 : tensor<64x64xf32> to tensor<64x64xf16>
  %z16 = tile.ptr_add %y16, %ybase : !tile.ptr<f16>, i64
  tile.scatter %h16, %z16 offsets %yoff : tensor<64x64xi32> mask %ymask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  return
}
