// RUN: %run %s
// As peel_causal, with column numbers that wrap around: the mask is what the program computes, not what it looks like.

func.func @wrap() attributes {tile.kernel, tile.grid = array<i32: 6, 5, 4>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c37 = arith.constant 37 : i32
  %c23 = arith.constant 23 : i32
  %c60 = arith.constant 60 : i32
  %step = arith.constant 9 : i32
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
  %far = arith.constant 2147483547 : i32
  %i = tile.iota : tensor<32xi32>
  %r = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %c = tile.reshape %i : tensor<32xi32> -> tensor<1x32xi32>
  %m0t = tile.splat %m0 : i32 -> tensor<32x1xi32>
  %query = arith.addi %m0t, %r : tensor<32x1xi32>
  %nt = tile.splat %n : i32 -> tensor<1x32xi32>
  %fart = tile.splat %far : i32 -> tensor<1x32xi32>
  %width = arith.constant dense<0> : tensor<32x32xi32>
  %q = tile.broadcast %query : tensor<32x1xi32> -> tensor<32x32xi32>
  %always = tile.dot %ones, %ones, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %got = scf.for %j = %lb to %n step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %s = tile.dot %ones, %ones, %zero : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    %jt = tile.splat %j : i32 -> tensor<1x32xi32>
    %key0 = arith.addi %jt, %fart : tensor<1x32xi32>
    %key1 = arith.addi %key0, %c : tensor<1x32xi32>
    %in1 = arith.cmpi sgt, %key1, %nt : tensor<1x32xi32>
    %mask = tile.broadcast %in1 : tensor<1x32xi1> -> tensor<32x32xi1>
    %w = arith.select %mask, %s, %hidden : tensor<32x32xi1>, tensor<32x32xf32>
    %twice = arith.addf %acc, %acc : tensor<32x32xf32>
    %next = arith.addf %twice, %w : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %want = scf.for %j = %lb to %n step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %jt = tile.splat %j : i32 -> tensor<1x32xi32>
    %key0 = arith.addi %jt, %fart : tensor<1x32xi32>
    %key1 = arith.addi %key0, %c : tensor<1x32xi32>
    %in1 = arith.cmpi sgt, %key1, %nt : tensor<1x32xi32>
    %mask = tile.broadcast %in1 : tensor<1x32xi1> -> tensor<32x32xi1>
    %w = arith.select %mask, %always, %hidden : tensor<32x32xi1>, tensor<32x32xf32>
    %twice = arith.addf %acc, %acc : tensor<32x32xf32>
    %next = arith.addf %twice, %w : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %same = arith.cmpf oeq, %got, %want : tensor<32x32xf32>
  tile.assert %same, "wrap" : tensor<32x32xi1>
  return
}
