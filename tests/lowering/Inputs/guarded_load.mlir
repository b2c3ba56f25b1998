func.func @guarded(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %o: !tile.ptr<f32> {tile.align = 16 : i32}, %n: i32) attributes {tile.kernel, tile.num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %i = tile.iota : tensor<128xi32>
  %first = arith.cmpi slt, %n, %c0 : i32
  %v = scf.if %first -> (tensor<128xf32>) {
    %a = tile.gather %x offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
    scf.yield %a : tensor<128xf32>
  } else {
    scf.yield %zero : tensor<128xf32>
  }
  tile.scatter %v, %o offsets %i : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}
