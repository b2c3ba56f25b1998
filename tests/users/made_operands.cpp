// made_operands.cpp - operands of a loop's product that are made in other ways: sums along the keys, one of two
// matrices per element, rows in another order, under a condition, in a loop without a counter.
#include "tests/users/use.h"
namespace users {
namespace made_operands {
struct MadeCfg {
  int BM = 64, BN = 64, BK = 64, warps = 4, stages = 3, how = 0;
};
auto made = kernel("user_made", [](const MadeCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> A2,
                                   Tensor<const half, 2> B, Ptr<const int32_t> flags, Tensor<float, 2> O) {
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              Tile acc = zeros({c.BM, c.BN}, f32);
              auto step = [&](const Tile& k) {
                auto b = [&] { return B.load({k, n}, {c.BK, c.BN}); };
                auto a = [&] { return A.load({m, k}, {c.BM, c.BK}); };
                if (c.how == 0) acc = dot(cast(cumsum(cast(a(), f32), axis(1)), f16), b(), acc);
                if (c.how == 1) {
                  auto x = a(), y = A2.load({m, k}, {c.BM, c.BK});
                  acc = dot(where(x > 0.f, x, y), b(), acc);
                }
                if (c.how == 2) acc = dot(flip(a(), axis(1)), b(), acc);
                if (c.how == 3)
                  if_(
                      load(flags + k / c.BK) != 0, [&] { acc = dot(a(), b(), acc); },
                      [&] {
                        acc = dot(A2.load({m, k}, {c.BM, c.BK}), b(), acc);
                      });
                if (c.how == 4 || c.how == 7) acc = dot(a(), b(), acc);
                if (c.how == 5) {
                  auto x = cast(a(), f32);
                  acc = dot(cast(x - max(x, axis(1)), f16), b(), acc);
                }
                if (c.how == 6) {  // the product of two loaded tiles feeds another
                  auto x = dot(a(), trans(A2.load({m, k}, {c.BM, c.BK})));  // BM x BM
                  acc = dot(cast(x, f16), B.load({k, n}, {c.BM, c.BN}), acc);
                }
                if (c.how == 8) acc = dot(cast(where(cast(a(), f32) > 0.f, 1.f, 0.f), f16), b(), acc);
              };
              if (c.how == 4) {
                Tile k = n * 0;
                while_([&] { return k < A.dim(1); },
                       [&] {
                         step(k);
                         k += where(load(flags + k / c.BK) < 0, 2 * c.BK, c.BK);
                       });
              } else if (c.how == 7) {
                for (auto k : range((cdiv(A.dim(1), c.BK) - 1) * c.BK, -1, -c.BK, {.stages = c.stages})) step(k);
              } else
                for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) step(k);
              O.store({m, n}, acc);
            }).grid([](const MadeCfg& c, const auto& a, const auto&, const auto& b, auto...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Job made_job(Env& e, int how) {
  MadeCfg c;
  if (!e.big) c = {32, 32, 32, 4, 2};
  c = {e.field("BM", c.BM),       e.field("BN", c.BN),         e.field("BK", c.BK),
       e.field("warps", c.warps), e.field("stages", c.stages), how};
  const int M = e.big ? 4096 : 50, N = e.big ? 4096 : 40, K = e.field("K", e.big ? 4096 : 96);
  auto a = random<half>(e, size_t(M) * K), a2 = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto flags = integers<int32_t>(e, K / c.BK + 1, 0, 2);
  auto o = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(made, c, a.view(M, K), a2.view(M, K), b.view(K, N), flags.p, o.view(M, N));
  j.check = [=] {
    auto left = [&](int m, int k) -> double {
      const double x = a[size_t(m) * K + k], y = a2[size_t(m) * K + k];
      const int k0 = k / c.BK * c.BK;
      double s = 0;
      switch (how) {
        case 0:
          for (int i = k0; i <= k; ++i) s += a[size_t(m) * K + i];
          return s;
        case 1:
          return x > 0 ? x : y;
        case 2: {
          const int at = k0 + c.BK - 1 - (k - k0);
          return at < K ? double(a[size_t(m) * K + at]) : 0.;
        }
        case 3:
          return flags.h[k / c.BK] ? x : y;
        case 5: {
          double top = k0 + c.BK > K ? 0 : -INFINITY;
          for (int i = k0; i < std::min(K, k0 + c.BK); ++i) top = std::max(top, double(a[size_t(m) * K + i]));
          return x - top;
        }
        case 8:
          return x > 0;
        default:
          return x;
      }
    };
    if (how == 6) {
      std::vector<double> want(size_t(M) * N);
      for (int m = 0; m < M; ++m)
        for (int k0 = 0; k0 < K; k0 += c.BK)
          for (int r = 0; r < c.BM; ++r) {
            const int row = m / c.BM * c.BM + r;
            if (row >= M || k0 + r >= K) continue;
            double x = 0;
            for (int k = k0; k < std::min(K, k0 + c.BK); ++k) x += a[size_t(m) * K + k] * a2[size_t(row) * K + k];
            for (int n = 0; n < N; ++n) want[size_t(m) * N + n] += in_half(x) * b[size_t(k0 + r) * N + n];
          }
      return agree(o.now(), want, 5e-2, 2e-2);
    }
    return agree(o.now(), product(M, N, K, left, matrix(b, N)), 5e-2, 2e-2);
  };
  return j;
}
Register r0("made_sums", [](Env& e) { return made_job(e, 0); });
Register r1("made_choice", [](Env& e) { return made_job(e, 1); });
Register r2("made_flip", [](Env& e) { return made_job(e, 2); });
Register r3("made_branch", [](Env& e) { return made_job(e, 3); });
Register r4("made_while", [](Env& e) { return made_job(e, 4); });
Register r5("made_less_max", [](Env& e) { return made_job(e, 5); });
Register r6("made_product", [](Env& e) { return made_job(e, 6); });
Register r7("made_down", [](Env& e) { return made_job(e, 7); });
Register r8("made_signs", [](Env& e) { return made_job(e, 8); });
}  // namespace made_operands
}  // namespace users
