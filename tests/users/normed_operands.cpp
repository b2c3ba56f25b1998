// normed_operands.cpp - operands whose rows are normed or rounded by their own largest on the way into a product of a
// loop.
#include "tests/users/use.h"
namespace users {
namespace normed_operands {
struct NormedCfg {
  int BM = 64, BN = 64, D = 64, warps = 4, stages = 2;
};
// --- attention that looks at keys of length one, normed as they come; through pointers, and through views
template <class LoadK, class LoadV>
void normed_loop(const NormedCfg& c, const Tile& q, const Tile& T, Tile& acc, LoadK load_k, LoadV load_v) {
  Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32);
  for (auto n : range(0, T, c.BN, {.stages = c.stages})) {
    auto k = cast(load_k(n), f32);
    k = k * rsqrt(sum(k * k, axis(1)) + 1e-6f);
    auto s = dot(q, trans(cast(k, bf16))) * 8.f;
    s = where((n + arange(0, c.BN)).row() < T, s, -INFINITY);
    auto now = max(top, max(s, axis(1)));
    auto p = exp2(s - now), keep = exp2(top - now);
    total = total * keep + sum(p, axis(1));
    acc = dot(cast(p, bf16), load_v(n), acc * keep);
    top = now;
  }
  acc = acc / total;
}
auto normed_pointers =
    kernel("user_normed_pointers", [](const NormedCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                      Ptr<const bfloat16> v, Ptr<bfloat16> o, I32 T) {
      num_warps(c.warps);
      auto base = cast(program_id(1), i64) * T * c.D;
      auto m = program_id(0) * c.BM + arange(0, c.BM), d = arange(0, c.D), n = arange(0, c.BN);
      auto at = m.col() * c.D + d.row();
      auto bq = load(q + base + at, {.mask = (m < T).col(), .other = 0});
      auto box = [&](const auto& p, const Tile& i) {
        return load(p + base + ((i + n).col() * c.D + d.row()), {.mask = (i + n < T).col(), .other = 0});
      };
      Tile acc = zeros({c.BM, c.D}, f32);
      normed_loop(
          c, bq, T, acc, [&](const Tile& i) { return box(k, i); }, [&](const Tile& i) { return box(v, i); });
      store(o + base + at, cast(acc, bf16), {.mask = (m < T).col()});
    }).grid([](const NormedCfg& c, auto, auto, auto, auto, int T) {
      return Grid{cdiv(T, c.BM), 64};
    });
auto normed_views =
    kernel("user_normed_views", [](const NormedCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Tensor<bfloat16, 3> O) {
      num_warps(c.warps);
      auto b = program_id(1), m = program_id(0) * c.BM;
      auto q = Q.load({b, m, 0}, {c.BM, c.D});
      Tile acc = zeros({c.BM, c.D}, f32);
      normed_loop(
          c, q, K.dim(1), acc,
          [&](const Tile& i) {
            return K.load({b, i, 0}, {c.BN, c.D});
          },
          [&](const Tile& i) {
            return V.load({b, i, 0}, {c.BN, c.D});
          });
      O.store({b, m, 0}, cast(acc, bf16));
    }).grid([](const NormedCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Job normed_job(Env& e, bool views) {
  NormedCfg c;
  if (!e.big) c = {32, 16, 32, 4, 2};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), e.field("D", c.D), e.field("warps", c.warps),
       e.field("stages", c.stages)};
  const int B = 64, T = e.field("T", e.big ? 4096 : 45), D = c.D;
  const size_t n = size_t(B) * T * D;
  auto q = random<bfloat16>(e, n, -.3, .3), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 4e-9 * n * T;
  if (views)
    j.add(normed_views, c, q.view(B, T, D), k.view(B, T, D), v.view(B, T, D), o.view(B, T, D));
  else
    j.add(normed_pointers, c, q.p, k.p, v.p, o.p, T);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int m = 0; m < T; ++m) {
        double total = 0;
        double* w = &want[(size_t(b) * T + m) * D];
        for (int s = 0; s < T; ++s) {
          double x = 0, kk = 0;
          for (int d = 0; d < D; ++d) {
            const double y = k[(size_t(b) * T + s) * D + d];
            x += q[(size_t(b) * T + m) * D + d] * y, kk += y * y;
          }
          const double p = std::exp2(x / std::sqrt(kk + 1e-6) * 8);
          total += p;
          for (int d = 0; d < D; ++d) w[d] += p * v[(size_t(b) * T + s) * D + d];
        }
        for (int d = 0; d < D; ++d) w[d] /= total;
      }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
}
Register r1("normed_pointers", [](Env& e) { return normed_job(e, false); });
Register r2("normed_views", [](Env& e) { return normed_job(e, true); });

// --- rows of a block rounded to 8 bits by their own largest number, block by block of K, times weights of 8 bits with
// a factor per block
struct RoundedCfg {
  int BM = 64, BN = 128, BK = 128, warps = 4, stages = 3;
};
auto rounded_rows =
    kernel("user_rounded_rows", [](const RoundedCfg& c, Tensor<const bfloat16, 2> X, Tensor<const fp8_e4m3, 2> W,
                                   Tensor<const float, 2> S, Tensor<bfloat16, 2> O) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
        auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
        auto s = max(max(abs(x), axis(1)) / 448.f, 1e-12f);
        auto f = S.load({program_id(1), k / c.BK}, {1});
        acc += dot(cast(x / s, f8e4m3), trans(W.load({n, k}, {c.BN, c.BK}))) * (s * to_scalar(f));
      }
      O.store({m, n}, cast(acc, bf16));
    }).grid([](const RoundedCfg& c, const auto& x, const auto& w, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
    });
Register r3("rounded_rows", [](Env& e) {
  RoundedCfg c;
  if (!e.big) c = {32, 16, 32, 4, 2};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("warps", c.warps),
       e.field("stages", c.stages)};
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 40, K = e.big ? 4096 : 80, KB = (K + c.BK - 1) / c.BK,
            NB = (N + c.BN - 1) / c.BN;
  auto x = random<bfloat16>(e, size_t(M) * K);
  auto w = random<fp8_e4m3>(e, size_t(N) * K);
  auto s = random<float>(e, size_t(NB) * KB, .5, 2);
  auto o = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(rounded_rows, c, x.view(M, K), w.view(N, K), s.view(NB, KB), o.view(M, N));
  j.check = [=] {
    return agree(o.now(),
                 product(M, N, K, matrix(x, K),
                         [&](int k, int n) { return w[size_t(n) * K + k] * s[n / c.BN * KB + k / c.BK]; }),
                 .6, 5e-2);
  };
  return j;
});
}  // namespace normed_operands
}  // namespace users
