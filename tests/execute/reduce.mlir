// RUN: %run %s
// Sums of 0..n-1 along each axis of a tile made of indices, and the position of the largest element.

func.func @reduce() attributes {tile.kernel} {
  %i = tile.iota : tensor<16xi32>
  %j = tile.iota : tensor<32xi32>
  %ic = tile.reshape %i : tensor<16xi32> -> tensor<16x1xi32>
  %jr = tile.reshape %j : tensor<32xi32> -> tensor<1x32xi32>
  %ib = tile.broadcast %ic : tensor<16x1xi32> -> tensor<16x32xi32>
  %jb = tile.broadcast %jr : tensor<1x32xi32> -> tensor<16x32xi32>
  %hundred = arith.constant dense<100> : tensor<16x32xi32>
  %h = arith.muli %ib, %hundred : tensor<16x32xi32>
  %x = arith.addi %h, %jb : tensor<16x32xi32>

  // Row i sums to 32 * 100 i + 496.
  %rows = tile.reduce %x axis 1 : (tensor<16x32xi32>) -> tensor<16x1xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %c3200 = arith.constant dense<3200> : tensor<16x1xi32>
  %c496 = arith.constant dense<496> : tensor<16x1xi32>
  %w0 = arith.muli %ic, %c3200 : tensor<16x1xi32>
  %wantRows = arith.addi %w0, %c496 : tensor<16x1xi32>
  %okRows = arith.cmpi eq, %rows, %wantRows : tensor<16x1xi32>
  tile.assert %okRows, "sum along axis 1" : tensor<16x1xi1>

  // Column j sums to 100 * 120 + 16 j.
  %columns = tile.reduce %x axis 0 : (tensor<16x32xi32>) -> tensor<1x32xi32> {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tile.yield %s : i32
  }
  %c16 = arith.constant dense<16> : tensor<1x32xi32>
  %c12000 = arith.constant dense<12000> : tensor<1x32xi32>
  %v0 = arith.muli %jr, %c16 : tensor<1x32xi32>
  %wantColumns = arith.addi %v0, %c12000 : tensor<1x32xi32>
  %okColumns = arith.cmpi eq, %columns, %wantColumns : tensor<1x32xi32>
  tile.assert %okColumns, "sum along axis 0" : tensor<1x32xi1>

  // (j * 7) mod 32 is largest, 31, at j = 9 (63 mod 32).
  %seven = arith.constant dense<7> : tensor<32xi32>
  %mask = arith.constant dense<31> : tensor<32xi32>
  %p = arith.muli %j, %seven : tensor<32xi32>
  %q = arith.andi %p, %mask : tensor<32xi32>
  %best, %where = tile.reduce %q, %j axis 0 : (tensor<32xi32>, tensor<32xi32>) -> (tensor<1xi32>, tensor<1xi32>) {
  ^bb0(%a: i32, %ai: i32, %b: i32, %bi: i32):
    %gt = arith.cmpi sgt, %b, %a : i32
    %v = arith.select %gt, %b, %a : i32
    %k = arith.select %gt, %bi, %ai : i32
    tile.yield %v, %k : i32, i32
  }
  %at = tile.item %where : tensor<1xi32> -> i32
  %nine = arith.constant 9 : i32
  %okArg = arith.cmpi eq, %at, %nine : i32
  tile.assert %okArg, "argmax" : i1
  return
}
