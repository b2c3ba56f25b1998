// RUN: %run %s
// Element (i, j) of each rearranged tile carries the number that says where it came from.

func.func @shapes() attributes {tile.kernel} {
  %n = tile.iota : tensor<512xi32>
  %x = tile.reshape %n : tensor<512xi32> -> tensor<16x32xi32>
  %t = tile.trans %x, [1, 0] : tensor<16x32xi32> -> tensor<32x16xi32>

  // t[j][i] = 32 i + j
  %i = tile.iota : tensor<16xi32>
  %j = tile.iota : tensor<32xi32>
  %ir = tile.reshape %i : tensor<16xi32> -> tensor<1x16xi32>
  %jc = tile.reshape %j : tensor<32xi32> -> tensor<32x1xi32>
  %ib = tile.broadcast %ir : tensor<1x16xi32> -> tensor<32x16xi32>
  %jb = tile.broadcast %jc : tensor<32x1xi32> -> tensor<32x16xi32>
  %c32 = arith.constant dense<32> : tensor<32x16xi32>
  %i32 = arith.muli %ib, %c32 : tensor<32x16xi32>
  %want = arith.addi %i32, %jb : tensor<32x16xi32>
  %ok = arith.cmpi eq, %t, %want : tensor<32x16xi32>
  tile.assert %ok, "transpose" : tensor<32x16xi1>

  // The lower half of the transpose, then the upper: rows 16.. and 0..15 exchanged.
  %low = tile.extract %t[0, 0] : tensor<32x16xi32> -> tensor<16x16xi32>
  %high = tile.extract %t[16, 0] : tensor<32x16xi32> -> tensor<16x16xi32>
  %swapped = tile.cat %high, %low axis 0 : tensor<16x16xi32>, tensor<16x16xi32> -> tensor<32x16xi32>
  %c16 = arith.constant dense<16> : tensor<32x16xi32>
  %row = arith.xori %jb, %c16 : tensor<32x16xi32>
  %wantSwapped = arith.addi %i32, %row : tensor<32x16xi32>
  %okSwapped = arith.cmpi eq, %swapped, %wantSwapped : tensor<32x16xi32>
  tile.assert %okSwapped, "cat of extracts" : tensor<32x16xi1>

  // take by (7 i) mod 32 along a line of squares
  %sq = arith.muli %j, %j : tensor<32xi32>
  %seven = arith.constant dense<7> : tensor<32xi32>
  %c31 = arith.constant dense<31> : tensor<32xi32>
  %j7 = arith.muli %j, %seven : tensor<32xi32>
  %idx = arith.andi %j7, %c31 : tensor<32xi32>
  %taken = tile.take %sq, %idx axis 0 : tensor<32xi32>, tensor<32xi32> -> tensor<32xi32>
  %wantTaken = arith.muli %idx, %idx : tensor<32xi32>
  %okTaken = arith.cmpi eq, %taken, %wantTaken : tensor<32xi32>
  tile.assert %okTaken, "take" : tensor<32xi1>
  return
}
