// Masks only where they matter: at the first and last iterations.
// RUN: tile-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tile-peel-masks,canonicalize,cse))' | FileCheck %s

// The ragged end: iterations that start at n - 63 or later are masked. Where the column numbers might wrap, all are.
// CHECK-LABEL: func.func @ragged
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<64x64xf16>, %[[N:[a-z0-9]+]]: i32
// CHECK-DAG: %[[WIDE:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[COUNT:.*]] = arith.ceildivsi %[[WIDE]], %c64_i64
// CHECK: %[[LAST:.*]] = arith.floordivsi %{{.*}}, %c64_i64
// CHECK: arith.cmpi sle, %[[WIDE]], %c2147483584_i64
// CHECK: %[[WHOLE:.*]] = scf.for %{{.*}} = %c0_i32 to %[[HI:.*]] step %c64_i32
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK-NEXT: } {tile.stages = 2 : i32}
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c64_i32 iter_args(%{{.*}} = %[[WHOLE]])
// CHECK: tile.splat %[[J]]
// CHECK: arith.select
// CHECK: scf.yield
// CHECK-NEXT: } {tile.stages = 2 : i32}
// CHECK-NOT: scf.for
func.func @ragged(%a: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  } {tile.stages = 2 : i32}
  return %r : tensor<64x64xf32>
}

// -----

// A band (at most 300 columns back, none ahead), blocks from the last to the first: three loops.
// CHECK-LABEL: func.func @band
// CHECK: %[[FIRST:.*]] = scf.for
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: %[[MIDDLE:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[MIDDLE]])
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: return %[[LAST]]
func.func @band(%a: tensor<64x64xf16>, %last: i32, %count: i32, %m0: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %back = arith.constant dense<300> : tensor<64x64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %m = tile.splat %m0 : i32 -> tensor<64x1xi32>
  %queries = arith.addi %m, %column : tensor<64x1xi32>
  %q = tile.broadcast %queries : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = arith.subi %last, %k : i32
    %n0 = arith.muli %block, %c64 : i32
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %keys = arith.addi %j1, %row : tensor<1x64xi32>
    %n = tile.broadcast %keys : tensor<1x64xi32> -> tensor<64x64xi32>
    %right = arith.cmpi sle, %n, %q : tensor<64x64xi32>
    %from = arith.subi %q, %back : tensor<64x64xi32>
    %left = arith.cmpi sge, %n, %from : tensor<64x64xi32>
    %mask = arith.andi %left, %right : tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// A band of 100 columns has no more than one block without a mask: one loop.
// CHECK-LABEL: func.func @narrow
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @narrow(%a: tensor<64x64xf16>, %last: i32, %count: i32, %m0: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %back = arith.constant dense<100> : tensor<64x64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %m = tile.splat %m0 : i32 -> tensor<64x1xi32>
  %queries = arith.addi %m, %column : tensor<64x1xi32>
  %q = tile.broadcast %queries : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = arith.subi %last, %k : i32
    %n0 = arith.muli %block, %c64 : i32
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %keys = arith.addi %j1, %row : tensor<1x64xi32>
    %n = tile.broadcast %keys : tensor<1x64xi32> -> tensor<64x64xi32>
    %right = arith.cmpi sle, %n, %q : tensor<64x64xi32>
    %from = arith.subi %q, %back : tensor<64x64xi32>
    %left = arith.cmpi sge, %n, %from : tensor<64x64xi32>
    %mask = arith.andi %left, %right : tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Rows of eight heads each have one place: any small numbers do.
// CHECK-LABEL: func.func @packed
// CHECK: %[[FIRST:.*]] = scf.for
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: %[[MIDDLE:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[MIDDLE]])
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: return %[[LAST]]
func.func @packed(%a: tensor<64x64xf16>, %last: i32, %count: i32, %m0: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %back = arith.constant dense<300> : tensor<64x64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %m = tile.splat %m0 : i32 -> tensor<64x1xi32>
  %eight = arith.constant dense<8> : tensor<64x1xi32>
  %place = arith.divsi %column, %eight : tensor<64x1xi32>
  %queries = arith.addi %m, %place : tensor<64x1xi32>
  %q = tile.broadcast %queries : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = arith.subi %last, %k : i32
    %n0 = arith.muli %block, %c64 : i32
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %keys = arith.addi %j1, %row : tensor<1x64xi32>
    %n = tile.broadcast %keys : tensor<1x64xi32> -> tensor<64x64xi32>
    %right = arith.cmpi sle, %n, %q : tensor<64x64xi32>
    %from = arith.subi %q, %back : tensor<64x64xi32>
    %left = arith.cmpi sge, %n, %from : tensor<64x64xi32>
    %mask = arith.andi %left, %right : tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Places of which nothing is known do not.
// CHECK-LABEL: func.func @unknown
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @unknown(%a: tensor<64x64xf16>, %last: i32, %count: i32, %m0: i32, %places: tensor<64x1xi32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %back = arith.constant dense<300> : tensor<64x64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %m = tile.splat %m0 : i32 -> tensor<64x1xi32>
  %queries = arith.addi %m, %places : tensor<64x1xi32>
  %q = tile.broadcast %queries : tensor<64x1xi32> -> tensor<64x64xi32>
  %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %block = arith.subi %last, %k : i32
    %n0 = arith.muli %block, %c64 : i32
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %keys = arith.addi %j1, %row : tensor<1x64xi32>
    %n = tile.broadcast %keys : tensor<1x64xi32> -> tensor<64x64xi32>
    %right = arith.cmpi sle, %n, %q : tensor<64x64xi32>
    %from = arith.subi %q, %back : tensor<64x64xi32>
    %left = arith.cmpi sge, %n, %from : tensor<64x64xi32>
    %mask = arith.andi %left, %right : tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Not linear, not whole, not tiles, no products, or not more than two iterations: nothing is gained.
// CHECK-LABEL: func.func @data
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @no_product
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @short
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @data(%a: tensor<64x64xf16>, %given: tensor<64x64xi1>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %both = arith.andi %mask, %given : tensor<64x64xi1>
    %w = arith.select %both, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %sq = arith.muli %col, %col : tensor<1x64xi32>
    %odd = arith.cmpi slt, %sq, %end : tensor<1x64xi32>
    %m2 = tile.broadcast %odd : tensor<1x64xi1> -> tensor<64x64xi1>
    %w2 = arith.select %m2, %w, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %w3 = arith.select %mask, %w2, %acc : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %w3 : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @no_product(%a: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %a) -> (tensor<64x64xf32>) : i32 {
    %j1 = tile.splat %j : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %acc, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %w : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
func.func @short(%a: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = tile.splat %n : i32 -> tensor<1x64xi32>
  %r = scf.for %j = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %w : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// The unmasked part keeps a select that data decide, and bounds that are known make loops with known bounds: 0 and 64
// hold, 128 and 192 do not.
// CHECK-LABEL: func.func @known
// CHECK: scf.for %{{.*}} = %c0_i32 to %c128_i32 step %c64_i32
// CHECK-COUNT-1: arith.select
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %c128_i32 to %c256_i32 step %c64_i32
// CHECK-COUNT-2: arith.select
// CHECK: scf.yield
func.func @known(%a: tensor<64x64xf16>, %given: tensor<64x64xi1>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %end = arith.constant dense<130> : tensor<1x64xi32>
  %r = scf.for %j = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i32 -> tensor<1x64xi32>
    %col = arith.addi %j1, %row : tensor<1x64xi32>
    %in = arith.cmpi sgt, %end, %col : tensor<1x64xi32>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %w2 = arith.select %given, %w, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %w2 : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// The same in all iterations, and never true for all elements of a tile.
// CHECK-LABEL: func.func @fixed
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @fixed(%a: tensor<64x64xf16>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %column = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %rows = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %columns = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %end = tile.splat %n : i32 -> tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %s = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %lower = arith.cmpi sle, %rows, %columns : tensor<64x64xi32>
    %w = arith.select %lower, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %few = arith.cmpi sle, %rows, %end : tensor<64x64xi32>
    %w2 = arith.select %few, %w, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %w2 : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----
// One of two numbers by the place (a bucket) hides nothing: the loop stays whole.
// CHECK-LABEL: func.func @bucket
// CHECK: scf.for
// CHECK: arith.select
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK: return
func.func @bucket(%a: tensor<64x64xf16>, %m: i32, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0> : tensor<64x64xi32>
  %sixteen = arith.constant dense<16> : tensor<64x64xi32>
  %i = tile.iota : tensor<64xi32>
  %row = tile.splat %m : i32 -> tensor<64x64xi32>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %j1 = tile.splat %j : i32 -> tensor<64xi32>
    %col = arith.addi %j1, %i : tensor<64xi32>
    %line = tile.reshape %col : tensor<64xi32> -> tensor<1x64xi32>
    %cols = tile.broadcast %line : tensor<1x64xi32> -> tensor<64x64xi32>
    %behind = arith.cmpi sgt, %cols, %row : tensor<64x64xi32>
    %bucket = arith.select %behind, %sixteen, %none : tensor<64x64xi1>, tensor<64x64xi32>
    %bias = arith.sitofp %bucket : tensor<64x64xi32> to tensor<64x64xf32>
    %s = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %next = arith.addf %s, %bias : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Integers of 64 bits, of which nothing is known: where they are small (less than 2^44) only the last iterations are
// masked, else all.
// CHECK-LABEL: func.func @wide
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<64x64xf16>, %[[N:[a-z0-9]+]]: i64
// CHECK: %[[ABOVE:.*]] = arith.addi %[[N]], %c17592186044416_i64
// CHECK: %[[SMALL:.*]] = arith.cmpi ult, %[[ABOVE]], %c35184372088832_i64
// CHECK: %[[END:.*]] = arith.select %[[SMALL]], %{{.*}}, %c0_i64
// CHECK: %[[WHOLE:.*]] = scf.for %{{.*}} = %c0_i64 to %[[END]] step %c64_i64
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]] step %c64_i64 iter_args(%{{.*}} = %[[WHOLE]])
// CHECK: arith.select
// CHECK: scf.yield
// CHECK-NOT: scf.for
func.func @wide(%a: tensor<64x64xf16>, %n: i64) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %i1 = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
  %row = tile.reshape %i1 : tensor<64xi64> -> tensor<1x64xi64>
  %end = tile.splat %n : i64 -> tensor<1x64xi64>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i64 {
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i64 -> tensor<1x64xi64>
    %col = arith.addi %j1, %row : tensor<1x64xi64>
    %in = arith.cmpi slt, %col, %end : tensor<1x64xi64>
    %mask = tile.broadcast %in : tensor<1x64xi1> -> tensor<64x64xi1>
    %w = arith.select %mask, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.maximumf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// A window of a launch's size over rows of 64 bits: masks at both ends. One comparison each finds out whether the numbers
// are small.
// CHECK-LABEL: func.func @wide_window
// CHECK: arith.cmpi ult, {{.*}}%c35184372088832_i64
// CHECK: scf.for
// CHECK: arith.select
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: arith.select
// CHECK: return
func.func @wide_window(%a: tensor<64x64xf16>, %lo: i64, %m: i64, %window: i64) -> tensor<64x64xf32> {
  %c64 = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %i1 = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
  %row = tile.reshape %i1 : tensor<64xi64> -> tensor<1x64xi64>
  %column = tile.reshape %i1 : tensor<64xi64> -> tensor<64x1xi64>
  %m1 = tile.splat %m : i64 -> tensor<64x1xi64>
  %q = arith.addi %m1, %column : tensor<64x1xi64>
  %qs = tile.broadcast %q : tensor<64x1xi64> -> tensor<64x64xi64>
  %w1 = tile.splat %window : i64 -> tensor<64x64xi64>
  %r = scf.for %j = %lo to %m step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i64 {
    %s = tile.dot %a, %a, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %j1 = tile.splat %j : i64 -> tensor<1x64xi64>
    %col = arith.addi %j1, %row : tensor<1x64xi64>
    %cols = tile.broadcast %col : tensor<1x64xi64> -> tensor<64x64xi64>
    %causal = arith.cmpi sle, %cols, %qs : tensor<64x64xi64>
    %back = arith.subi %qs, %cols : tensor<64x64xi64>
    %near = arith.cmpi slt, %back, %w1 : tensor<64x64xi64>
    %both = arith.andi %causal, %near : tensor<64x64xi1>
    %w = arith.select %both, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.addf %acc, %w : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
