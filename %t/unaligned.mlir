func.func @gemm(%A: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %B: !tile.view<2 x f16> {tile.unit_stride = 1 : i32}, %C: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, %K: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
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
    %a = tile.load %A[%m, %k : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>
    %b = tile.load %B[%k, %n : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>
    %d = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %C[%m, %n : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
  return
}
