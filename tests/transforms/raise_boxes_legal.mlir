// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// What looks like a box of a view, and when it is none.

// What the view is made of may stand in the loop: it is no box then (invariants have moved out before).
// CHECK-LABEL: func.func @in_the_loop(
// CHECK: tile.gather
func.func @in_the_loop(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>

  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %stride = arith.muli %k, %c2 : i32
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Nothing but 0 fills what a mask leaves out: not -0.
// CHECK-LABEL: func.func @minus_zero(
// CHECK: tile.gather
func.func @minus_zero(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<-0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// The same with 0 is one.
// CHECK-LABEL: func.func @plus_zero(
// CHECK: tile.make_view
// CHECK-NOT: tile.gather
func.func @plus_zero(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Volatile reads stay where they are.
// CHECK-LABEL: func.func @volatile(
// CHECK: tile.gather
func.func @volatile(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> cache volatile : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// A pointer behind a loop that it advances is where the bounds say if the loop runs forward: launches look at `n`.
// CHECK-LABEL: func.func @behind(
// CHECK: tile.make_view {{.*}}tile.positive_arguments = array<i32: 2>
// CHECK-NOT: tile.gather
func.func @behind(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %behind = scf.for %i = %c0 to %n step %c32 iter_args(%p = %a) -> (!tile.ptr<f16>) : i32 {
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %next : !tile.ptr<f16>
  }
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %behind) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Nobody can look at a number that comes from memory: from a negative one the loop does nothing.
// CHECK-LABEL: func.func @behind_any(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.gather
func.func @behind_any(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %read = tile.gather %number : !tile.ptr<i32> -> i32
  %end = tile.assume %read multiple_of 32 : i32
  %behind = scf.for %i = %c0 to %end step %c32 iter_args(%p = %a) -> (!tile.ptr<f16>) : i32 {
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %next : !tile.ptr<f16>
  }
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %behind) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// A box may begin at a quotient of a program id,
// CHECK-LABEL: func.func @at_a_part(
// CHECK: tile.load %{{.*}}[%{{[0-9]+}}, %{{.*}} : i32, i32] {{.*}}tensor<64x32xf16>
func.func @at_a_part(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32}, %m: i32,
                %n: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %across = tile.program_id 1
  %by = arith.constant 4 : i32
  %part = arith.divsi %pid, %by : i32
  %row = arith.muli %part, %c64 : i32
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
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// but not at one by a negative number: a box would fill what lies in front of the pointer, and the kernel reads it. The
// view begins there.
// CHECK-LABEL: func.func @in_front(
// CHECK: tile.load %{{.*}}[%c0_i32, %{{.*}} : i32, i32] {{.*}}tensor<64x32xf16>
func.func @in_front(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32}, %m: i32,
                %n: i32 {tile.multiple_of = 16 : i32}, %k: i32 {tile.multiple_of = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %across = tile.program_id 1
  %by = arith.constant -4 : i32
  %part = arith.divsi %pid, %by : i32
  %row = arith.muli %part, %c64 : i32
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
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// What is squared again and again is used by more and more ways; each tile is looked at once.
// CHECK-LABEL: func.func @squares(
// CHECK: tile.dot
func.func @squares(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %w: tensor<32x64xf16>, %n: i32 {tile.multiple_of = 32 : i32},
    %k: i32 {tile.multiple_of = 32 : i32}, %number: !tile.ptr<i32>, %y: !tile.ptr<f32>, %squares: !tile.ptr<f16>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %ones = arith.constant dense<1.0> : tensor<64x32xf16>
  %minus = arith.constant dense<0.0> : tensor<64x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %in = arith.constant dense<true> : tensor<64x32xi1>
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %stride = arith.muli %k, %c2 : i32
  %sum:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %p = %a) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    
    %ks = tile.splat %stride : i32 -> tensor<64x1xi32>
    %ao = arith.muli %rows, %ks : tensor<64x1xi32>
    %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %ao2, %along2 : tensor<64x32xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %rin = arith.cmpi slt, %rows, %ns : tensor<64x1xi32>
    %rin2 = tile.broadcast %rin : tensor<64x1xi1> -> tensor<64x32xi1>
    %x = tile.gather %p offsets %aoff : tensor<64x32xi32> mask %rin2 : tensor<64x32xi1> other %minus : tensor<64x32xf16> : !tile.ptr<f16> -> tensor<64x32xf16>
    %s0 = arith.mulf %x, %x : tensor<64x32xf16>
    %s1 = arith.mulf %s0, %s0 : tensor<64x32xf16>
    %s2 = arith.mulf %s1, %s1 : tensor<64x32xf16>
    %s3 = arith.mulf %s2, %s2 : tensor<64x32xf16>
    %s4 = arith.mulf %s3, %s3 : tensor<64x32xf16>
    %s5 = arith.mulf %s4, %s4 : tensor<64x32xf16>
    %s6 = arith.mulf %s5, %s5 : tensor<64x32xf16>
    %s7 = arith.mulf %s6, %s6 : tensor<64x32xf16>
    %s8 = arith.mulf %s7, %s7 : tensor<64x32xf16>
    %s9 = arith.mulf %s8, %s8 : tensor<64x32xf16>
    %s10 = arith.mulf %s9, %s9 : tensor<64x32xf16>
    %s11 = arith.mulf %s10, %s10 : tensor<64x32xf16>
    %s12 = arith.mulf %s11, %s11 : tensor<64x32xf16>
    %s13 = arith.mulf %s12, %s12 : tensor<64x32xf16>
    %s14 = arith.mulf %s13, %s13 : tensor<64x32xf16>
    %s15 = arith.mulf %s14, %s14 : tensor<64x32xf16>
    %s16 = arith.mulf %s15, %s15 : tensor<64x32xf16>
    %s17 = arith.mulf %s16, %s16 : tensor<64x32xf16>
    %s18 = arith.mulf %s17, %s17 : tensor<64x32xf16>
    %s19 = arith.mulf %s18, %s18 : tensor<64x32xf16>
    %s20 = arith.mulf %s19, %s19 : tensor<64x32xf16>
    %s21 = arith.mulf %s20, %s20 : tensor<64x32xf16>
    %s22 = arith.mulf %s21, %s21 : tensor<64x32xf16>
    %s23 = arith.mulf %s22, %s22 : tensor<64x32xf16>
    %s24 = arith.mulf %s23, %s23 : tensor<64x32xf16>
    %s25 = arith.mulf %s24, %s24 : tensor<64x32xf16>
    %s26 = arith.mulf %s25, %s25 : tensor<64x32xf16>
    %s27 = arith.mulf %s26, %s26 : tensor<64x32xf16>
    %s28 = arith.mulf %s27, %s27 : tensor<64x32xf16>
    %s29 = arith.mulf %s28, %s28 : tensor<64x32xf16>
    %s30 = arith.mulf %s29, %s29 : tensor<64x32xf16>
    %s31 = arith.mulf %s30, %s30 : tensor<64x32xf16>
    %s32 = arith.mulf %s31, %s31 : tensor<64x32xf16>
    %s33 = arith.mulf %s32, %s32 : tensor<64x32xf16>
    %s34 = arith.mulf %s33, %s33 : tensor<64x32xf16>
    %s35 = arith.mulf %s34, %s34 : tensor<64x32xf16>
    %s36 = arith.mulf %s35, %s35 : tensor<64x32xf16>
    %s37 = arith.mulf %s36, %s36 : tensor<64x32xf16>
    %s38 = arith.mulf %s37, %s37 : tensor<64x32xf16>
    %s39 = arith.mulf %s38, %s38 : tensor<64x32xf16>
    %s40 = arith.mulf %s39, %s39 : tensor<64x32xf16>
    tile.scatter %s40, %squares offsets %aoff : tensor<64x32xi32> : tensor<64x32xf16>, !tile.ptr<f16>
    %d = tile.dot %ones, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tile.ptr_add %p, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}
