// expectations.cpp - means over what may come: American options by regression, Sobol's points.
#include "tests/users/use.h"
namespace users {
namespace expectations {

// --- American options by regression (Longstaff and Schwartz): from the last date back, what holding on is worth is a
// parabola in the price, fitted to the paths that would be exercised; a program has the paths of one option
struct RegressCfg {
  int B = 1024, warps = 2;
};
auto early = kernel("user_early", [](const RegressCfg& c, Tensor<const float, 3> S, Ptr<const float> strikes,
                                     Ptr<double> prices, F32 discount) {
               // S [options, dates, paths]; put options
               num_warps(c.warps);
               auto o = program_id(0), dates = S.dim(1), paths = S.dim(2);
               auto K = load(strikes + o);
               auto counts = arange(0, c.B) < paths;
               Tile value = max(K - S.load({o, dates - 1, 0}, {c.B}), 0.f);
               for (auto back : range(1, dates)) {
                 value *= discount;
                 auto s = S.load({o, dates - 1 - back, 0}, {c.B}), now = max(K - s, 0.f);
                 auto fits = cast((now > 0.f) & counts, f32);
                 auto x = s / K - 1.f, x1 = x * fits, x2 = x1 * x;
                 auto [n, m1, m2, m3, m4, v0, v1, v2] =
                     reduce({fits, x1, x2, x2 * x, x2 * x * x, value * fits, value * x1, value * x2}, axis(0),
                            [](Tile a, Tile b, Tile c, Tile d, Tile e, Tile f, Tile g, Tile h, Tile a2, Tile b2,
                               Tile c2, Tile d2, Tile e2, Tile f2, Tile g2, Tile h2) {
                              return std::tuple(a + a2, b + b2, c + c2, d + d2, e + e2, f + f2, g + g2, h + h2);
                            });
                 // Cramer's rule in f64
                 auto w = [](const Tile& x) { return cast(to_scalar(x), f64); };
                 auto det = [](Tile a, Tile b, Tile c, Tile d, Tile e, Tile f, Tile g, Tile h, Tile i) {
                   return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
                 };
                 auto M0 = w(n), M1 = w(m1), M2 = w(m2), M3 = w(m3), M4 = w(m4), V0 = w(v0), V1 = w(v1), V2 = w(v2);
                 auto D = det(M0, M1, M2, M1, M2, M3, M2, M3, M4);
                 if_(abs(D) > 1e-9, [&] {
                   auto b0 = cast(det(V0, M1, M2, V1, M2, M3, V2, M3, M4) / D, f32);
                   auto b1 = cast(det(M0, V0, M2, M1, V1, M3, M2, V2, M4) / D, f32);
                   auto b2 = cast(det(M0, M1, V0, M1, M2, V1, M2, M3, V2) / D, f32);
                   value = where((fits > 0.f) & (now > b0 + x * (b1 + x * b2)), now, value);
                 });
               }
               store(prices + o, sum(where(counts, cast(value * discount, f64), 0.0)) / cast(paths, f64));
             }).grid([](const RegressCfg&, const auto& s, auto, auto, float) { return Grid{s.shape[0]}; });
Register r7("early_exercise", [](Env& e) {
  RegressCfg c;
  if (!e.big) c = {64, 2};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int O = e.big ? 2048 : 4, T = e.big ? 50 : 6, N = e.big ? c.B : 51;
  auto s = random<float>(e, size_t(O) * T * N, 60, 140);
  auto k = random<float>(e, O, 90, 110);
  auto out = constant<double>(e, O, NAN);
  Job j;
  j.mbytes = 4e-6 * s.n;
  j.add(early, c, s.view(O, T, N), k.p, out.p, .99f);
  j.check = [=] {
    std::vector<double> want;
    for (int o = 0; o < O; ++o) {
      auto at = [&](int t, int p) { return s[(size_t(o) * T + t) * N + p]; };
      const double K = k[o], discount = .99f;
      std::vector<double> v(N);
      for (int p = 0; p < N; ++p) v[p] = std::max(K - at(T - 1, p), 0.);
      for (int t = T - 2; t >= 0; --t) {
        double A[3][4] = {};
        for (int p = 0; p < N; ++p) {
          v[p] *= discount;
          if (K - at(t, p) <= 0) continue;
          const double x = at(t, p) / K - 1, b[3] = {1, x, x * x};
          for (int r = 0; r < 3; ++r) {
            for (int q = 0; q < 3; ++q) A[r][q] += b[r] * b[q];
            A[r][3] += b[r] * v[p];
          }
        }
        for (int r = 0; r < 3; ++r)
          for (int q = 0; q < 3; ++q)
            if (q != r) {
              const double f = A[q][r] / A[r][r];
              for (int i = 0; i < 4; ++i) A[q][i] -= f * A[r][i];
            }
        for (int p = 0; p < N; ++p) {
          const double now = K - at(t, p), x = at(t, p) / K - 1;
          if (now > 0 && now > A[0][3] / A[0][0] + x * (A[1][3] / A[1][1] + x * A[2][3] / A[2][2])) v[p] = now;
        }
      }
      double sum = 0;
      for (double x : v) sum += x * discount;
      want.push_back(sum / N);
    }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- Sobol's points, scrambled, and the mean of a function of normal variables made of them
struct SobolCfg {
  int B = 256, D = 8, warps = 4;
};
auto sobol = kernel("user_sobol", [](const SobolCfg& c, Ptr<const uint32_t> directions, Ptr<const uint32_t> scramble,
                                     Ptr<float> points, Ptr<double> total, I64 n) {
               // directions [D, 32]; points [n, D]
               num_warps(c.warps);
               auto i = cast(program_id(0), i64) * c.B + arange(0, c.B).to(i64);
               auto gray = cast(i ^ (i >> 1), u32);
               auto bit = arange(0, 32), d = arange(0, c.D);
               auto V = load(directions + d.col() * 32 + bit.row());
               auto set = (gray.col() >> cast(bit, u32).row()) & 1;  // [B, 32]
               auto x = xor_sum(expand_dims(set, 1) * expand_dims(V, 0), axis(2));
               auto word = squeeze(x, -1) ^ load(scramble + d).row();
               auto u = (cast(word >> 8, f32) + 0.5f) * 0x1p-24f;
               store(points + i.col() * c.D + cast(d, i64).row(), u, {.mask = i.col() < n});
               auto f = prod(1.f + 0.1f * normcdfinv(u), axis(1));
               atomic_add(total, sum(where(i.col() < n, cast(f, f64), 0.0)), {.order = Order::relaxed});
             }).grid([](const SobolCfg& c, auto, auto, auto, auto, int64_t n) { return Grid{cdiv(n, int64_t(c.B))}; });
Register r8("sobol", [](Env& e) {
  SobolCfg c;
  if (!e.big) c = {32, 3, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int64_t n = e.big ? 1 << 22 : 77;
  const int D = c.D;
  auto v = integers<uint32_t>(e, size_t(D) * 32, 0, 1ll << 32);
  auto s = integers<uint32_t>(e, D, 0, 1ll << 32);
  auto points = constant<float>(e, n * D, NAN);
  auto total = constant<double>(e, 1, 0);
  Job j;
  j.mbytes = 4e-6 * points.n;
  j.inTurn = true;
  j.add(sobol, c, v.p, s.p, points.p, total.p, n);
  j.check = [=] {
    std::vector<double> want, sums{0};
    const auto got = points.now();
    for (int64_t i = 0; i < n; ++i) {
      double f = 1;
      for (int d = 0; d < D; ++d) {
        uint32_t x = s.at(d);
        for (int b = 0; b < 32; ++b)
          if ((i ^ i >> 1) >> b & 1) x ^= v.at(d * 32 + b);
        want.push_back((double(x >> 8) + .5) * 0x1p-24);
        double low = -9, high = 9;  // the quantile by bisection
        for (int k = 0; k < 60; ++k) {
          const double m = (low + high) / 2;
          (.5 * std::erfc(-m / std::sqrt(2.)) < want.back() ? low : high) = m;
        }
        f *= 1 + .1 * low;
      }
      sums[0] += f;
    }
    if (auto wrong = agree(got, want, 1e-7, 1e-6); !wrong.empty()) return "points: " + wrong;
    return agree(total.now(), sums, 1e-3, 1e-5);
  };
  return j;
});

}  // namespace expectations
}  // namespace users
