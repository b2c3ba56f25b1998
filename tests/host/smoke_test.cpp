// smoke_test.cpp - the two kernels everything else is built from: a masked elementwise kernel and a GEMM loop.
#include "host_kernel.h"

namespace tile::test {
namespace {

TEST(HostSmoke, VectorAddThroughPointersAndMask) {
  HostKernel kernel(R"(
    func.func @add(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
      %c = arith.constant 128 : i32
      %pid = tile.program_id 0
      %start = arith.muli %pid, %c : i32
      %iota = tile.iota : tensor<128xi32>
      %s = tile.splat %start : i32 -> tensor<128xi32>
      %off = arith.addi %iota, %s : tensor<128xi32>
      %nn = tile.splat %n : i32 -> tensor<128xi32>
      %mask = arith.cmpi slt, %off, %nn : tensor<128xi32>
      %a = tile.gather %x offsets %off : tensor<128xi32> mask %mask : tensor<128xi1> : !tile.ptr<f32> -> tensor<128xf32>
      %b = tile.gather %y offsets %off : tensor<128xi32> mask %mask : tensor<128xi1> : !tile.ptr<f32> -> tensor<128xf32>
      %r = arith.addf %a, %b : tensor<128xf32>
      tile.scatter %r, %out offsets %off : tensor<128xi32> mask %mask : tensor<128xi1> : tensor<128xf32>, !tile.ptr<f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  for (int n : {1, 127, 128, 129, 1000}) {
    auto x = smallNumbers(n, 1), y = smallNumbers(n, 2);
    std::vector<float> out(n + 1, -77.0f);
    kernel.run(Args().pointer(x.data()).pointer(y.data()).pointer(out.data()).scalar(n), {(n + 127) / 128, 1, 1});
    for (int i = 0; i < n; ++i) ASSERT_EQ(out[i], x[i] + y[i]) << "n=" << n << " i=" << i;
    EXPECT_EQ(out[n], -77.0f) << "wrote past the end";
  }
}

TEST(HostSmoke, GemmLoopOverRaggedViews) {
  HostKernel kernel(R"(
    func.func @gemm(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>) attributes {tile.kernel} {
      %zero = arith.constant dense<0.0> : tensor<32x48xf32>
      %c0 = arith.constant 0 : i64
      %bm = arith.constant 32 : i32
      %bn = arith.constant 48 : i32
      %bk = arith.constant 16 : i64
      %pm = tile.program_id 0
      %pn = tile.program_id 1
      %m = arith.muli %pm, %bm : i32
      %n = arith.muli %pn, %bn : i32
      %K = tile.view_dim %A, 1 : !tile.view<2 x f32>
      %acc = scf.for %k = %c0 to %K step %bk iter_args(%sum = %zero) -> (tensor<32x48xf32>) : i64 {
        %a = tile.load %A[%m, %k : i32, i64] : !tile.view<2 x f32> -> tensor<32x16xf32>
        %b = tile.load %B[%k, %n : i64, i32] : !tile.view<2 x f32> -> tensor<16x48xf32>
        %next = tile.dot %a, %b, %sum : tensor<32x16xf32>, tensor<16x48xf32> -> tensor<32x48xf32>
        scf.yield %next : tensor<32x48xf32>
      }
      tile.store %acc, %C[%m, %n : i32, i32] : tensor<32x48xf32>, !tile.view<2 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  for (auto [M, N, K] : {std::array{32, 48, 16}, {33, 49, 17}, {1, 1, 1}, {100, 130, 50}, {5, 7, 0}}) {
    auto a = smallNumbers(M * K + 1, 3), b = smallNumbers(K * N + 1, 4);
    std::vector<float> c(M * N, -1.0f);
    kernel.run(Args().view(a.data(), {M, K}).view(b.data(), {K, N}).view(c.data(), {M, N}),
               {(M + 31) / 32, (N + 47) / 48, 1});
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
        ASSERT_EQ(c[i * N + j], sum) << M << "x" << N << "x" << K << " at " << i << "," << j;
      }
  }
}

}  // namespace
}  // namespace tile::test
