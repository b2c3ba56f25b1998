// RUN: tile-opt %s --pass-pipeline='builtin.module(func.func(tile-raise-boxes,canonicalize,cse))' --tile-target=sm_90a | FileCheck %s
// Matrices that a loop of products gathers are boxes of views: the pointer is taken apart into its root and a place.

// A [M, K] by an induction variable, B [K, N] by pointers that the loop advances by rows; programs in groups.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[A:[^:]*]]: !tile.ptr<f16> {tile.align = 16 : i32}, %[[B:[^:]*]]: !tile.ptr<f16> {tile.align = 16 : i32}, %[[M:[^:]*]]: i32, %[[N:[^:]*]]: i32 {{.*}}, %[[K:[^:]*]]: i32 {{.*}}
// CHECK: %[[VA:.*]] = tile.make_view %[[A]], dims(%[[M64:.*]], %[[K64:.*]]), strides(%[[K64]], %c1_i64)
// CHECK: %[[VB:.*]] = tile.make_view %[[B]], dims(%[[K64]], %[[N64:.*]]), strides(%[[N64]], %c1_i64)
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[K]] step %c32_i32 iter_args
// CHECK: tile.load %[[VA]][%{{.*}}, %[[I]] : i32, i32]
// CHECK: tile.load %[[VB]][%[[I]], %{{.*}} : i32, i32]
// CHECK-NOT: tile.gather
func.func @both(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32}, %m: i32,
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

// A pointer that goes on by half of the loop's step (two numbers in a byte), or by three quarters of it.
// CHECK-LABEL: func.func @fractions(
// CHECK: %[[VA:.*]] = tile.make_view %arg0
// CHECK: %[[VB:.*]] = tile.make_view %arg1
// CHECK: scf.for %[[I:[^ ]*]] = %c0_i32 to %{{.*}} step %c64_i32
// CHECK-DAG: %[[HALF:.*]] = arith.divsi %[[I]], %c2_i32
// CHECK-DAG: %[[QUARTERS:.*]] = arith.divsi %[[I]], %c4_i32
// CHECK: tile.load %[[VA]][%{{.*}}, %[[HALF]] : i32, i32]
// CHECK: %[[THREE:.*]] = arith.muli %[[QUARTERS]], %c3_i32
// CHECK: tile.load %[[VB]][%{{.*}}, %[[THREE]] : i32, i32]
// CHECK-NOT: tile.gather
func.func @fractions(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32},
                %from: i32, %k: i32 {tile.multiple_of = 64 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c32l = arith.constant 32 : i64
  %c48l = arith.constant 48 : i64
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %off = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %sum:3 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %p = %a, %q = %b) -> (tensor<64x64xf32>, !tile.ptr<f16>, !tile.ptr<f16>) : i32 {
    %x = tile.gather %p offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> tensor<64x32xf16>
    %w = tile.gather %q offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> tensor<64x32xf16>
    %t = tile.trans %w, [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
    %d = tile.dot %x, %t, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %np = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    %nq = tile.ptr_add %q, %c48l : !tile.ptr<f16>, i64
    scf.yield %d, %np, %nq : tensor<64x64xf32>, !tile.ptr<f16>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// From a place that is none of the quotients' they stay.
// CHECK-LABEL: func.func @fractions_from(
// CHECK: tile.gather
func.func @fractions_from(%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32},
                %from: i32, %k: i32 {tile.multiple_of = 64 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c32l = arith.constant 32 : i64
  %c48l = arith.constant 48 : i64
  %i64 = tile.iota : tensor<64xi32>
  %i32 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x1xi32>
  %ao = arith.muli %rows, %ks : tensor<64x1xi32>
  %ao2 = tile.broadcast %ao : tensor<64x1xi32> -> tensor<64x32xi32>
  %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<64x32xi32>
  %off = arith.addi %ao2, %along2 : tensor<64x32xi32>
  %sum:3 = scf.for %i = %from to %k step %c64 iter_args(%acc = %zero, %p = %a, %q = %b) -> (tensor<64x64xf32>, !tile.ptr<f16>, !tile.ptr<f16>) : i32 {
    %x = tile.gather %p offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> tensor<64x32xf16>
    %w = tile.gather %q offsets %off : tensor<64x32xi32> : !tile.ptr<f16> -> tensor<64x32xf16>
    %t = tile.trans %w, [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
    %d = tile.dot %x, %t, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %np = tile.ptr_add %p, %c32l : !tile.ptr<f16>, i64
    %nq = tile.ptr_add %q, %c48l : !tile.ptr<f16>, i64
    scf.yield %d, %np, %nq : tensor<64x64xf32>, !tile.ptr<f16>, !tile.ptr<f16>
  }
  %ys = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  tile.scatter %sum#0, %y offsets %ys : tensor<64x64xi32> : tensor<64x64xf32>, !tile.ptr<f32>
  return
}

// Every program has a matrix of its own: the heads are a dim of the view, which the launch can describe. So is what is
// loaded in front of the loop, and what is stored behind it.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[Q:[^:]*]]: !tile.ptr<f16> {{.*}} %[[K:[^:]*]]: !tile.ptr<f16> {{.*}} %[[Y:[^:]*]]: !tile.ptr<f16> {{.*}} %[[T:[^:]*]]: i32) attributes {tile.kernel, tile.raised_boxes}
// CHECK-DAG: %[[ANY:.*]] = arith.constant 2147483632 : i64
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-DAG: %[[WIDE:.*]] = arith.constant 64 : i64
// CHECK: %[[HEAD:.*]] = tile.program_id 1
// CHECK: %[[T64:.*]] = arith.extsi %[[T]]
// CHECK: %[[FAR:.*]] = arith.muli %[[T64]], %[[WIDE]]
// CHECK: %[[VQ:.*]] = tile.make_view %[[Q]], dims(%[[ANY]], %[[T64]], %[[WIDE]]), strides(%[[FAR]], %[[WIDE]], %[[ONE]]) {tile.of_launch, tile.positive_arguments = array<i32: 3>}
// CHECK: tile.load %[[VQ]][%[[HEAD]], %{{.*}}, %c0_i32 : i32, i32, i32] : {{.*}} -> tensor<64x64xf16>
// CHECK: %[[VK:.*]] = tile.make_view %[[K]], dims(%[[ANY]], %[[T64]], %[[WIDE]]), strides(%[[FAR]], %[[WIDE]], %[[ONE]]) {tile.of_launch, tile.positive_arguments = array<i32: 3>}
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[T]]
// CHECK: tile.load %[[VK]][%[[HEAD]], %[[I]], %c0_i32 : i32, i32, i32]
// CHECK: %[[VY:.*]] = tile.make_view %[[Y]], dims(%[[ANY]], %[[T64]], %[[WIDE]]), strides(%[[FAR]], %[[WIDE]], %[[ONE]]) {tile.of_launch, tile.positive_arguments = array<i32: 3>}
// CHECK: tile.store %{{.*}}, %[[VY]][%[[HEAD]], %{{.*}}, %c0_i32 : i32, i32, i32]
// CHECK-NOT: tile.scatter
func.func @heads(%q: !tile.ptr<f16> {tile.align = 16 : i32}, %k: !tile.ptr<f16> {tile.align = 16 : i32},
                 %y: !tile.ptr<f16> {tile.align = 16 : i32}, %t: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %wide = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %head = tile.program_id 1
  %head64 = arith.extsi %head : i32 to i64
  %t64 = arith.extsi %t : i32 to i64
  %at = arith.muli %head64, %t64 : i64
  %base = arith.muli %at, %wide : i64
  %qp = tile.ptr_add %q, %base : !tile.ptr<f16>, i64
  %kp = tile.ptr_add %k, %base : !tile.ptr<f16>, i64
  %yp = tile.ptr_add %y, %base : !tile.ptr<f16>, i64
  %row = arith.muli %pid, %c64 : i32
  %first = arith.muli %row, %c64 : i32
  %qr = tile.ptr_add %qp, %first : !tile.ptr<f16>, i32
  %yr = tile.ptr_add %yp, %first : !tile.ptr<f16>, i32
  %i64 = tile.iota : tensor<64xi32>
  %rows = tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tile.reshape %i64 : tensor<64xi32> -> tensor<1x64xi32>
  %across = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %pitch = arith.constant dense<64> : tensor<64x1xi32>
  %ts = tile.splat %t : i32 -> tensor<64x1xi32>
  %rs = tile.splat %row : i32 -> tensor<64x1xi32>
  %m = arith.addi %rs, %rows : tensor<64x1xi32>
  %op = arith.muli %rows, %pitch : tensor<64x1xi32>
  %op2 = tile.broadcast %op : tensor<64x1xi32> -> tensor<64x64xi32>
  %off = arith.addi %op2, %across : tensor<64x64xi32>
  %min = arith.cmpi slt, %m, %ts : tensor<64x1xi32>
  %mmask = tile.broadcast %min : tensor<64x1xi1> -> tensor<64x64xi1>
  %x = tile.gather %qr offsets %off : tensor<64x64xi32> mask %mmask : tensor<64x64xi1> : !tile.ptr<f16> -> tensor<64x64xf16>
  %sum = scf.for %i = %c0 to %t step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %is = tile.splat %i : i32 -> tensor<64x1xi32>
    %n = arith.addi %is, %rows : tensor<64x1xi32>
    %down = arith.muli %i, %c64 : i32
    %kpi = tile.ptr_add %kp, %down : !tile.ptr<f16>, i32
    %nin = arith.cmpi slt, %n, %ts : tensor<64x1xi32>
    %nmask = tile.broadcast %nin : tensor<64x1xi1> -> tensor<64x64xi1>
    %w = tile.gather %kpi offsets %off : tensor<64x64xi32> mask %nmask : tensor<64x64xi1> : !tile.ptr<f16> -> tensor<64x64xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %h = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  tile.scatter %h, %yr offsets %off : tensor<64x64xi32> mask %mmask : tensor<64x64xi1> : tensor<64x64xf16>, !tile.ptr<f16>
  return
}
