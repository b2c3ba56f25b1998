// RUN: %run %s
// A product with a matrix that moves every column one to the left, for f16 and for a transposed operand.

func.func @dot() attributes {tile.kernel} {
  %i = tile.iota : tensor<64xi32>
  %ic = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %jr = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %ib = tile.broadcast %ic : tensor<64x1xi32> -> tensor<64x64xi32>
  %jb = tile.broadcast %jr : tensor<1x64xi32> -> tensor<64x64xi32>
  %c64 = arith.constant dense<64> : tensor<64x64xi32>
  %c16 = arith.constant dense<16> : tensor<64x64xi32>
  %one = arith.constant dense<1> : tensor<64x64xi32>

  // a[i][j] = (i + 16 j) mod 64: exact in f16.
  %j16 = arith.muli %jb, %c16 : tensor<64x64xi32>
  %sum = arith.addi %ib, %j16 : tensor<64x64xi32>
  %ai = arith.remsi %sum, %c64 : tensor<64x64xi32>
  %a = arith.sitofp %ai : tensor<64x64xi32> to tensor<64x64xf16>

  // shift[i][j] = 1 where i = j + 1, so (a * shift)[i][j] = a[i][j + 1], and 0 in the last column.
  %j1 = arith.addi %jb, %one : tensor<64x64xi32>
  %at = arith.cmpi eq, %ib, %j1 : tensor<64x64xi32>
  %shift = arith.uitofp %at : tensor<64x64xi1> to tensor<64x64xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %moved = tile.dot %a, %shift, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>

  %j1of16 = arith.muli %j1, %c16 : tensor<64x64xi32>
  %sum1 = arith.addi %ib, %j1of16 : tensor<64x64xi32>
  %next = arith.remsi %sum1, %c64 : tensor<64x64xi32>
  %nextf = arith.sitofp %next : tensor<64x64xi32> to tensor<64x64xf32>
  %inside = arith.cmpi slt, %j1, %c64 : tensor<64x64xi32>
  %want = arith.select %inside, %nextf, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  %ok = arith.cmpf oeq, %moved, %want : tensor<64x64xf32>
  tile.assert %ok, "a * shift" : tensor<64x64xi1>

  // shift^T moves the other way; adding the product to its accumulator doubles it.
  %back = tile.trans %shift, [1, 0] : tensor<64x64xf16> -> tensor<64x64xf16>
  %left = tile.dot %a, %back, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %twice = tile.dot %a, %back, %left : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %doubled = arith.addf %left, %left : tensor<64x64xf32>
  %ok2 = arith.cmpf oeq, %twice, %doubled : tensor<64x64xf32>
  tile.assert %ok2, "accumulator" : tensor<64x64xi1>
  %c0 = arith.constant dense<0> : tensor<64x64xi32>
  %jm = arith.subi %jb, %one : tensor<64x64xi32>
  %jm16 = arith.muli %jm, %c16 : tensor<64x64xi32>
  %summ = arith.addi %ib, %jm16 : tensor<64x64xi32>
  %sump = arith.addi %summ, %c64 : tensor<64x64xi32>
  %previous = arith.remsi %sump, %c64 : tensor<64x64xi32>
  %previousf = arith.sitofp %previous : tensor<64x64xi32> to tensor<64x64xf32>
  %notFirst = arith.cmpi sgt, %jb, %c0 : tensor<64x64xi32>
  %want3 = arith.select %notFirst, %previousf, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  %ok3 = arith.cmpf oeq, %left, %want3 : tensor<64x64xf32>
  tile.assert %ok3, "a * shift^T" : tensor<64x64xi1>
  return
}
