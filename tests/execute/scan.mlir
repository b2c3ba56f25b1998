// RUN: %run %s
// Prefix sums of 1, 2, .. are triangular numbers; from the other end they are the total minus the prefix before.

func.func @scan() attributes {tile.kernel} {
  %i = tile.iota from 1 : tensor<64xi32>
  %up = tile.scan %i axis 0 : (tensor<64xi32>) -> tensor<64xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %one = arith.constant dense<1> : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %n1 = arith.addi %i, %one : tensor<64xi32>
  %nn = arith.muli %i, %n1 : tensor<64xi32>
  %triangle = arith.divsi %nn, %two : tensor<64xi32>
  %ok = arith.cmpi eq, %up, %triangle : tensor<64xi32>
  tile.assert %ok, "forward" : tensor<64xi1>

  %down = tile.scan %i axis 0 reverse : (tensor<64xi32>) -> tensor<64xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %total = arith.constant dense<2080> : tensor<64xi32>
  %left = arith.subi %total, %triangle : tensor<64xi32>
  %want = arith.addi %left, %i : tensor<64xi32>
  %okDown = arith.cmpi eq, %down, %want : tensor<64xi32>
  tile.assert %okDown, "reverse" : tensor<64xi1>
  return
}
