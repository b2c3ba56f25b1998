// user_kernel.cpp - what a user's file looks like: compiled by compile_budget.cmake, which measures it and lists its
// includes.
#include "dsl/tile.h"

using namespace tile;

struct Cfg {
  int BM = 128, BN = 128, BK = 64, stages = 3;
};

auto gemm =
    kernel("gemm", [](const Cfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B, Tensor<half, 2> C, F32 alpha) {
      auto m0 = program_id(0) * c.BM, n0 = program_id(1) * c.BN;
      auto acc = zeros({c.BM, c.BN}, f32);
      for (auto k0 : range(0, A.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(A.load({m0, k0}, {c.BM, c.BK}), B.load({k0, n0}, {c.BK, c.BN}), acc);
      C.store({m0, n0}, cast(acc * alpha, f16));
    }).grid([](const Cfg& c, const auto& A, const auto& B, auto&&...) {
      return Grid{cdiv(A.shape[0], c.BM), cdiv(B.shape[1], c.BN)};
    });

void run(Stream& stream, TensorView<const half, 2> A, TensorView<const half, 2> B, TensorView<half, 2> C) {
  gemm(stream, A, B, C, 1.0f);
}
