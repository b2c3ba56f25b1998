func.func @gemm(%A: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 64, 32>}, %B: !tile.view<2 x f32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>, tile.dim_multiple_of = array<i32: 32, 64>}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %cm = arith.constant 64 : i32
  %cn = arith.constant 64 : i32
  %ck = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %m = arith.muli %pm, %cm : i32
  %n = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %K step %ck iter_args(%c = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f32> -> tensor<64x32xf32>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f32> -> tensor<32x64xf32>
    %d = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}

