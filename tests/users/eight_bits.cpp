// eight_bits.cpp - products of 8-bit floats as training and serving have them: gradients in e5m2 against weights in
// e4m3, a few tokens against many weights.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace eight_bits {

// --- gradient of a linear layer's input: dX = dY W, dY in e5m2 for its range, W in e4m3 for its precision; a scale for
// each tensor, and the largest result for the next step's
struct GradCfg {
  int BM = 128, BN = 128, BK = 128, stages = 4, warps = 8;
};
auto f8_input_grad =
    kernel("user_f8_input_grad", [](const GradCfg& c, Tensor<const fp8_e5m2, 2> G, Tensor<const fp8_e4m3, 2> W,
                                    Ptr<const float> scales, Tensor<bfloat16, 2> X, Ptr<float> largest) {
      // G [M, N], W [K, N] (stored along what is summed), X [M, K]; scales: of G, of W
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, k = program_id(0) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto n : range(0, G.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(G.load({m, n}, {c.BM, c.BK}), trans(W.load({k, n}, {c.BN, c.BK})), acc);
      acc *= load(scales) * load(scales + 1);
      atomic_max(largest, max(abs(acc)));
      X.store({m, k}, cast(acc, bf16));
    }).grid([](const GradCfg& c, const auto& g, const auto& w, auto...) {
      return Grid{cdiv(w.shape[0], c.BN), cdiv(g.shape[0], c.BM)};
    });
Register r1("f8_input_grad", [](Env& e) {
  const int M = e.big ? 4096 : 70, N = e.big ? 4096 : 200, K = e.big ? 4096 : 90;
  auto g = random<fp8_e5m2>(e, size_t(M) * N);
  auto w = random<fp8_e4m3>(e, size_t(K) * N);
  auto scales = drawn<float>(e, 2, [i = 0]() mutable { return i++ ? 2.f : .5f; });
  auto x = constant<bfloat16>(e, size_t(M) * K, NAN);
  auto largest = constant<float>(e, 1, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(f8_input_grad,
        GradCfg{e.field("BM", e.big ? 128 : 64), e.field("BN", e.big ? 128 : 64), e.field("BK", e.big ? 128 : 64),
                e.field("stages", 4), e.field("warps", e.big ? 8 : 4)},
        g.view(M, N), w.view(K, N), scales.p, x.view(M, K), largest.p);
  j.check = [=]() -> std::string {
    auto want = product(
        M, K, N, [&](int m, int n) { return double(g[m * N + n]); }, [&](int n, int k) { return w[k * N + n]; });
    double top = 0;
    for (double v : want) top = std::max(top, std::abs(v));
    if (const double found = largest.now()[0]; std::abs(found - top) > .02 * top)
      return "the largest result is " + std::to_string(found) + ", expected " + std::to_string(top);
    return agree(x.now(), want, .1, 1e-2);
  };
  return j;
});

// --- a few tokens against the weights of a linear layer, both e4m3, scales by token and by output
struct FewCfg {
  int BM = 16, BN = 64, BK = 256, stages = 4, warps = 4;
};
auto f8_few = kernel("user_f8_few", [](const FewCfg& c, Tensor<const fp8_e4m3, 2> X, Tensor<const fp8_e4m3, 2> W,
                                       Ptr<const float> rows, Ptr<const float> columns, Tensor<half, 2> Y) {
                num_warps(c.warps);
                auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                Tile acc = zeros({c.BM, c.BN}, f32);
                for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                  acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
                auto i = m + arange(0, c.BM), j = n + arange(0, c.BN);
                acc *= load(rows + i, {.mask = i < Y.dim(0)}).col() * load(columns + j, {.mask = j < Y.dim(1)}).row();
                Y.store({m, n}, cast(acc, f16));
              }).grid([](const FewCfg& c, const auto& x, const auto& w, auto...) {
  return Grid{cdiv(w.shape[0], c.BN), cdiv(x.shape[0], c.BM)};
});
Register r2("f8_few", [](Env& e) {
  const int M = e.big ? 16 : 13, N = e.big ? 28672 : 90, K = e.big ? 8192 : 520;
  auto x = random<fp8_e4m3>(e, size_t(M) * K), w = random<fp8_e4m3>(e, size_t(N) * K);
  auto rows = random<float>(e, M, .5, 2), columns = random<float>(e, N, .01, .1);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * N * double(K);
  j.add(f8_few,
        FewCfg{16, e.field("BN", 64), e.field("BK", e.big ? 256 : 64), e.field("stages", 4), e.field("warps", 4)},
        x.view(M, K), w.view(N, K), rows.p, columns.p, y.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return double(x[m * K + k]) * rows[m]; },
        [&](int k, int n) { return double(w[n * K + k]) * columns[n]; });
    return agree(y.now(), want, .02, 5e-3);
  };
  return j;
});

}  // namespace eight_bits
}  // namespace users
