// RUN: %run %s
// As peel_causal, for a band walked from its end to its beginning: masked at both ends.

func.func @band() attributes {tile.kernel, tile.grid = array<i32: 6, 5, 4>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c37 = arith.constant 37 : i32
  %c23 = arith.constant 23 : i32
  %c60 = arith.constant 60 : i32
  %step = arith.constant 5 : i32
  %ones = arith.constant dense<1.0> : tensor<32x32xf32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %hidden = arith.constant dense<-1.0> : tensor<32x32xf32>
  %x = tile.program_id 0
  %y = tile.program_id 1
  %z = tile.program_id 2
  %x37 = arith.muli %x, %c37 : i32
  %n = arith.subi %x37, %c7 : i32
  %y23 = arith.muli %y, %c23 : i32
  %m0 = arith.subi %y23, %c60 : i32
  %lb = arith.muli %z, %c7 : i32
  %far = arith.constant 0 : i32
  %i = tile.iota : tensor<32xi32>
  %r = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %c = tile.reshape %i : tensor<32xi32> -> tensor<1x32xi32>
  %m0t = tile.splat %m0 : i32 -> tensor<32x1xi32>
  %query = arith.addi %m0t, %r : tensor<32x1xi32>
  %nt = tile.splat %n : i32 -> tensor<1x32xi32>
  %fart = tile.splat %far : i32 -> tensor<1x32xi32>
  %width = arith.constant dense<60> : tensor<32x32xi32>
  %q = tile.broadcast %query : tensor<32x1xi32> -> tensor<32x32xi32>
  %always = tile.dot %ones, %ones, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %got = scf.for %j = %lb to %n step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %s = tile.dot %ones, %ones, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    %back = arith.subi %n, %j : i32
    %jt = tile.splat %back : i32 -> tensor<1x32xi32>
    %key1 = arith.addi %jt, %c : tensor<1x32xi32>
    %key = tile.broadcast %key1 : tensor<1x32xi32> -> tensor<32x32xi32>
    %from = arith.subi %q, %width : tensor<32x32xi32>
    %to = arith.addi %q, %width : tensor<32x32xi32>
    %left = arith.cmpi sge, %key, %from : tensor<32x32xi32>
    %right = arith.cmpi sgt, %to, %key : tensor<32x32xi32>
    %mask = arith.andi %left, %right : tensor<32x32xi1>
    %w = arith.select %mask, %s, %hidden : tensor<32x32xi1>, tensor<32x32xf32>
    %twice = arith.addf %acc, %acc : tensor<32x32xf32>
    %next = arith.addf %twice, %w : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %want = scf.for %j = %lb to %n step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %back = arith.subi %n, %j : i32
    %jt = tile.splat %back : i32 -> tensor<1x32xi32>
    %key1 = arith.addi %jt, %c : tensor<1x32xi32>
    %key = tile.broadcast %key1 : tensor<1x32xi32> -> tensor<32x32xi32>
    %from = arith.subi %q, %width : tensor<32x32xi32>
    %to = arith.addi %q, %width : tensor<32x32xi32>
    %left = arith.cmpi sge, %key, %from : tensor<32x32xi32>
    %right = arith.cmpi sgt, %to, %key : tensor<32x32xi32>
    %mask = arith.andi %left, %right : tensor<32x32xi1>
    %w = arith.select %mask, %always, %hidden : tensor<32x32xi1>, tensor<32x32xf32>
    %twice = arith.addf %acc, %acc : tensor<32x32xf32>
    %next = arith.addf %twice, %w : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %same = arith.cmpf oeq, %got, %want : tensor<32x32xf32>
  tile.assert %same, "band" : tensor<32x32xi1>
  return
}
