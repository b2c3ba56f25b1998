func.func @add(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %c256 = arith.constant 256 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c256 : i32
  %starts = tile.splat %start : i32 -> tensor<256xi32>
  %iota = tile.iota : tensor<256xi32>
  %offs = arith.addi %starts, %iota : tensor<256xi32>
  %ns = tile.splat %n : i32 -> tensor<256xi32>
  %mask = arith.cmpi slt, %offs, %ns : tensor<256xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %xp = tile.ptr_add %xs, %offs : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %yp = tile.ptr_add %ys, %offs : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %a = tile.gather %xp mask %mask : tensor<256xi1> : tensor<256x!tile.ptr<f32>> -> tensor<256xf32>
  %b = tile.gather %yp mask %mask : tensor<256xi1> : tensor<256x!tile.ptr<f32>> -> tensor<256xf32>
  %c = arith.addf %a, %b : tensor<256xf32>
  tile.scatter %c, %yp mask %mask : tensor<256xi1> : tensor<256xf32>, tensor<256x!tile.ptr<f32>>
  return
}
