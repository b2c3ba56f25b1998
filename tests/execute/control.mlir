// RUN: %run %s
// Loops that never run, run once, run often; nested ones; a while; branches with tile results; exchanged tiles.

func.func @control() attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c5 = arith.constant 5 : i32
  %x = tile.iota : tensor<32xi32>
  %ones = arith.constant dense<1> : tensor<32xi32>

  %none = scf.for %i = %c5 to %c0 step %c1 iter_args(%v = %x) -> (tensor<32xi32>) : i32 {
    %w = arith.addi %v, %ones : tensor<32xi32>
    scf.yield %w : tensor<32xi32>
  }
  %same = arith.cmpi eq, %none, %x : tensor<32xi32>
  tile.assert %same, "a loop that never runs" : tensor<32xi1>

  // 0 + 1 + 2 + 3 + 4 additions of one, every second of them doubled before.
  %many = scf.for %i = %c0 to %c5 step %c1 iter_args(%v = %x) -> (tensor<32xi32>) : i32 {
    %inner = scf.for %j = %c0 to %i step %c1 iter_args(%u = %v) -> (tensor<32xi32>) : i32 {
      %w = arith.addi %u, %ones : tensor<32xi32>
      scf.yield %w : tensor<32xi32>
    }
    %r = arith.remsi %i, %c2 : i32
    %odd = arith.cmpi eq, %r, %c1 : i32
    %next = scf.if %odd -> (tensor<32xi32>) {
      %d = arith.addi %inner, %inner : tensor<32xi32>
      scf.yield %d : tensor<32xi32>
    } else {
      scf.yield %inner : tensor<32xi32>
    }
    scf.yield %next : tensor<32xi32>
  }
  // ((x + 1) * 2 + 2 + 3) * 2 + 4 = 4 x + 18
  %four = arith.constant dense<4> : tensor<32xi32>
  %eighteen = arith.constant dense<18> : tensor<32xi32>
  %x4 = arith.muli %x, %four : tensor<32xi32>
  %wantMany = arith.addi %x4, %eighteen : tensor<32xi32>
  %okMany = arith.cmpi eq, %many, %wantMany : tensor<32xi32>
  tile.assert %okMany, "nested loops and a branch" : tensor<32xi1>

  // Fibonacci of tiles: 5 steps from (x, 1) give (5 + 3 x) and (8 + 5 x).
  %p, %q = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b = %ones) -> (tensor<32xi32>, tensor<32xi32>) : i32 {
    %s = arith.addi %a, %b : tensor<32xi32>
    scf.yield %b, %s : tensor<32xi32>, tensor<32xi32>
  }
  %three = arith.constant dense<3> : tensor<32xi32>
  %five = arith.constant dense<5> : tensor<32xi32>
  %x3 = arith.muli %x, %three : tensor<32xi32>
  %wantP = arith.addi %x3, %five : tensor<32xi32>
  %okP = arith.cmpi eq, %p, %wantP : tensor<32xi32>
  tile.assert %okP, "tiles that change places" : tensor<32xi1>

  // Doubles until the first element passes 100: 1, 2, .. 128.
  %limit = arith.constant 100 : i32
  %grown, %steps = scf.while (%v = %ones, %n = %c0) : (tensor<32xi32>, i32) -> (tensor<32xi32>, i32) {
    %f = tile.extract %v[0] : tensor<32xi32> -> tensor<1xi32>
    %s = tile.item %f : tensor<1xi32> -> i32
    %more = arith.cmpi slt, %s, %limit : i32
    scf.condition(%more) %v, %n : tensor<32xi32>, i32
  } do {
  ^bb0(%v: tensor<32xi32>, %n: i32):
    %d = arith.addi %v, %v : tensor<32xi32>
    %m = arith.addi %n, %c1 : i32
    scf.yield %d, %m : tensor<32xi32>, i32
  }
  %c7 = arith.constant 7 : i32
  %okSteps = arith.cmpi eq, %steps, %c7 : i32
  tile.assert %okSteps, "steps of the while" : i1
  %c128 = arith.constant dense<128> : tensor<32xi32>
  %okGrown = arith.cmpi eq, %grown, %c128 : tensor<32xi32>
  tile.assert %okGrown, "tile of the while" : tensor<32xi1>
  return
}
