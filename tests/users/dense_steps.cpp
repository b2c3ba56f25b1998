// dense_steps.cpp - matrices and transforms: small indefinite systems, a symmetric product that reads half the matrix,
// complex products in float64, a transform of 240 points, a synthesis of Legendre functions, a knapsack.
#include "tests/users/use.h"
namespace users {
namespace dense_steps {

// --- L D L^T of many symmetric 12 x 12 matrices, and the solution of one right-hand side each
struct LdltCfg {
  int B = 16, N = 12, warps = 4;
};
auto ldlt =
    kernel("user_ldlt", [](const LdltCfg& c, Tensor<const float, 3> A, Tensor<const float, 2> b, Tensor<float, 2> X) {
      num_warps(c.warps);
      const int N = c.N;
      auto m = program_id(0) * c.B;
      Tile a = A.load({m, 0, 0}, {c.B, N, N}), x = expand_dims(b.load({m, 0}, {c.B, N}), 2);
      auto row = reshape(arange(0, N), {1, N, 1});
      a = where(m + reshape(arange(0, c.B), {c.B, 1, 1}) < A.dim(0), a, 1.f);
      for (int k = 0; k < N; ++k) {
        auto pivot = extract(a, {0, k, k}, {c.B, 1, 1});
        auto l = where(row > k, extract(a, {0, 0, k}, {c.B, N, 1}) / pivot, 0.f);
        a -= l * permute(l, {0, 2, 1}) * pivot;
        // the column of L stands where zeros would be
        a = where((row > k) & (reshape(arange(0, N), {1, 1, N}) == k), l, a);
        x -= l * extract(x, {0, k, 0}, {c.B, 1, 1});
      }
      for (int k = N - 1; k >= 0; --k) {
        auto done = extract(x, {0, k, 0}, {c.B, 1, 1}) / extract(a, {0, k, k}, {c.B, 1, 1});
        for (int i = k + 1; i < N; ++i) done -= extract(a, {0, i, k}, {c.B, 1, 1}) * extract(x, {0, i, 0}, {c.B, 1, 1});
        x = where(row == k, done, x);
      }
      X.store({m, 0}, squeeze(x, 2));
    }).grid([](const LdltCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r1("ldlt", [](Env& e) {
  const int n = e.big ? 1 << 17 : 53, N = 12;
  auto a = drawn<float>(e, size_t(n) * N * N, [] { return 0.f; });
  std::vector<float> h(e.big ? 0 : a.n);
  for (int m = 0; m < (e.big ? 0 : n); ++m)
    for (int i = 0; i < N; ++i)
      for (int k = 0; k <= i; ++k)
        h[(m * N + i) * N + k] = h[(m * N + k) * N + i] =
            float(i == k ? (i % 3 ? 8 : -8) + e.uniform() : e.uniform() - .5);
  a = e.big ? constant<float>(e, size_t(n) * N * N, 1) : repeated<float>(e, a.n, h);
  auto b = random<float>(e, size_t(n) * N), x = constant<float>(e, size_t(n) * N, NAN);
  Job j;
  j.mbytes = 4e-6 * n * N * (N + 2);
  j.add(ldlt, LdltCfg{}, a.view(n, N, N), b.view(n, N), x.view(n, N));
  j.check = [=] {
    const auto y = x.now();
    std::vector<double> got, want;
    for (int m = 0; m < n; ++m)
      for (int i = 0; i < N; ++i) {
        double s = 0;
        for (int k = 0; k < N; ++k) s += a[(size_t(m) * N + i) * N + k] * y[m * N + k];
        got.push_back(s), want.push_back(b[m * N + i]);
      }
    return agree(got, want, 1e-4, 1e-4);
  };
  return j;
});

// --- y += A x of a symmetric matrix of which the lower half is there: every block is read once and used twice
struct SymvCfg {
  int B = 64, warps = 4;
};
auto symv =
    kernel("user_symv", [](const SymvCfg& c, Tensor<const float, 2> A, Tensor<const float, 1> x, Tensor<float, 1> y) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B;
      auto lane = arange(0, c.B);
      auto xi = x.load({i}, {c.B});
      Tile own = zeros({c.B, 1}, f32);
      for (auto j : range(0, i, c.B)) {
        auto a = A.load({i, j}, {c.B, c.B});
        own += sum(a * x.load({j}, {c.B}).row(), axis(1));
        y.atomic_add({j}, squeeze(sum(a * xi.col(), axis(0)), 0));
      }
      auto a = A.load({i, i}, {c.B, c.B});
      own += sum(where(lane.col() >= lane.row(), a, 0.f) * xi.row(), axis(1));
      y.atomic_add({i}, squeeze(own, 1) + squeeze(sum(where(lane.col() > lane.row(), a, 0.f) * xi.col(), axis(0)), 0));
    }).grid([](const SymvCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r2("symv", [](Env& e) {
  const int n = e.big ? 16384 : 203;
  auto a = random<float>(e, size_t(n) * n), x = random<float>(e, n), y = constant<float>(e, n, 0);
  Job j;
  restore(e, j, y);
  j.mbytes = 2e-6 * n * n;
  j.inTurn = true;
  j.add(symv, SymvCfg{}, a.view(n, n), x.view(n), y.view(n));
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) want[i] += a[i >= k ? size_t(i) * n + k : size_t(k) * n + i] * x[k];
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- C = A B^H of complex float64, real and imaginary parts side by side in memory
struct ZgemmCfg {
  int BM = 64, BN = 32, BK = 16, warps = 4;
};
auto zgemm = kernel("user_zgemm", [](const ZgemmCfg& c, Tensor<const double, 2> A, Tensor<const double, 2> B,
                                     Tensor<double, 2> C) {
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile re = zeros({c.BM, c.BN}, f64), im = zeros({c.BM, c.BN}, f64);
               for (auto k : range(0, A.dim(1), 2 * c.BK)) {
                 auto [ar, ai] = split(reshape(A.load({m, k}, {c.BM, 2 * c.BK}), {c.BM, c.BK, 2}));
                 auto [br, bi] = split(reshape(B.load({n, k}, {c.BN, 2 * c.BK}), {c.BN, c.BK, 2}));
                 re = dot(ai, trans(bi), dot(ar, trans(br), re));
                 im = dot(ar, trans(-bi), dot(ai, trans(br), im));
               }
               C.store({m, n * 2}, interleave(re, im));
             }).grid([](const ZgemmCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
});
Register r3("zgemm", [](Env& e) {
  const int M = e.big ? 2048 : 75, N = e.big ? 2048 : 37, K = e.big ? 2048 : 45;
  auto a = random<double>(e, 2 * size_t(M) * K), b = random<double>(e, 2 * size_t(N) * K),
       c = constant<double>(e, 2 * size_t(M) * N, NAN);
  Job j;
  j.gflop = 8e-9 * M * N * K;
  j.add(zgemm, ZgemmCfg{}, a.view(M, 2 * K), b.view(N, 2 * K), c.view(M, 2 * N));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double re = 0, im = 0;
        for (int k = 0; k < K; ++k) {
          const double ar = a[2 * (size_t(m) * K + k)], ai = a[2 * (size_t(m) * K + k) + 1];
          const double br = b[2 * (size_t(n) * K + k)], bi = b[2 * (size_t(n) * K + k) + 1];
          re += ar * br + ai * bi, im += ai * br - ar * bi;
        }
        want.push_back(re), want.push_back(im);
      }
    return agree(c.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- Fourier transforms of 240 points as products by matrices of 16 and 15 and factors between
struct FftCfg {
  int R = 8, warps = 4;
};
auto fft240 =
    kernel("user_fft240", [](const FftCfg& c, Tensor<const float, 2> Re, Tensor<const float, 2> Im, Tensor<float, 2> Xr,
                             Tensor<float, 2> Xi) {
      num_warps(c.warps);
      auto r = program_id(0) * c.R;
      const int R = c.R;
      auto roots = [](int n, int rows, int columns) {  // exp(-2 pi i a b / n)
        auto turn = cast(arange(0, rows).col() * arange(0, columns).row() % n, f32) * (-2.f / n);
        return std::array<Tile, 2>{cospi(turn), sinpi(turn)};
      };
      auto by = [](const std::array<Tile, 2>& x, const std::array<Tile, 2>& w, int rows, int n) {
        Tile none = zeros({rows, n}, f32);
        return std::array<Tile, 2>{dot(x[0], w[0], none) - dot(x[1], w[1], none),
                                   dot(x[1], w[0], dot(x[0], w[1], none))};
      };
      auto lines = [&](const Tile& x) { return reshape(permute(reshape(x, {R, 16, 15}), {0, 2, 1}), {R * 15, 16}); };
      auto x = by({lines(Re.load({r, 0}, {R, 240})), lines(Im.load({r, 0}, {R, 240}))}, roots(16, 16, 16), R * 15, 16);
      auto [tr, ti] = roots(240, 15, 16);
      auto turned = [&](const Tile& a, const Tile& b, const Tile& s, const Tile& t) {
        auto y = reshape(a, {R, 15, 16}) * expand_dims(s, 0) + reshape(b, {R, 15, 16}) * expand_dims(t, 0);
        return reshape(permute(y, {0, 2, 1}), {R * 16, 15});
      };
      x = by({turned(x[0], x[1], tr, -ti), turned(x[0], x[1], ti, tr)}, roots(15, 15, 15), R * 16, 15);
      auto natural = [&](const Tile& y) { return reshape(permute(reshape(y, {R, 16, 15}), {0, 2, 1}), {R, 240}); };
      Xr.store({r, 0}, natural(x[0])), Xi.store({r, 0}, natural(x[1]));
    }).grid([](const FftCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.R)}; });
Register r4("fft240", [](Env& e) {
  const int n = e.big ? 1 << 15 : 21, N = 240;
  auto a = random<float>(e, size_t(n) * N), b = random<float>(e, size_t(n) * N);
  auto x = constant<float>(e, size_t(n) * N, NAN), y = constant<float>(e, size_t(n) * N, NAN);
  Job j;
  j.mbytes = 16e-6 * n * N;
  j.add(fft240, FftCfg{}, a.view(n, N), b.view(n, N), x.view(n, N), y.view(n, N));
  j.check = [=] {
    std::vector<double> re, im;
    for (int r = 0; r < n; ++r)
      for (int k = 0; k < N; ++k) {
        double s = 0, t = 0;
        for (int i = 0; i < N; ++i) {
          const double w = -2 * M_PI * (i * k % N) / N, c = std::cos(w), d = std::sin(w);
          s += a[r * N + i] * c - b[r * N + i] * d, t += a[r * N + i] * d + b[r * N + i] * c;
        }
        re.push_back(s), im.push_back(t);
      }
    const auto wrong = agree(x.now(), re, 2e-4, 2e-5);
    return wrong.empty() ? agree(y.now(), im, 2e-4, 2e-5) : wrong;
  };
  return j;
});

// --- sums over l of coefficients times normalised Legendre functions, for every order m and ring of latitude
struct RingCfg {
  int B = 128, warps = 4;
};
auto legendre = kernel("user_legendre", [](const RingCfg& c, Tensor<const float, 3> a, Tensor<const float, 1> latitude,
                                           Tensor<float, 3> F) {
                  // a [m, l, 2]; F [m, 2, rings]
                  num_warps(c.warps);
                  auto at = program_id(0) * c.B, m = program_id(1);
                  auto t = latitude.load({at}, {c.B});
                  auto x = cos(t), s = sin(t);
                  Tile p = full({c.B}, std::sqrt(1 / (4 * M_PI)), f32), before = zeros({c.B}, f32);
                  for (auto k : range(1, m + 1)) p = -p * s * sqrt(1.f + 0.5f / cast(k, f32));
                  Tile re = zeros({c.B}, f32), im = zeros({c.B}, f32);
                  auto m2 = cast(m * m, f32);
                  for (auto l : range(m, a.dim(1))) {
                    re += p * a.load({m, l, 0}), im += p * a.load({m, l, 1});
                    auto next = cast(l + 1, f32), now = cast(l, f32);
                    auto A = sqrt((4.f * next * next - 1.f) / (next * next - m2));
                    auto B = sqrt(max(now * now - m2, 0.f) / (4.f * now * now - 1.f));
                    auto q = A * (x * p - B * before);
                    before = p, p = q;
                  }
                  F.store({m, 0, at}, reshape(re, {1, 1, c.B})), F.store({m, 1, at}, reshape(im, {1, 1, c.B}));
                }).grid([](const RingCfg& c, const auto& a, const auto& t, const auto&) {
  return Grid{cdiv(t.shape[0], c.B), a.shape[0]};
});
Register r5("legendre", [](Env& e) {
  const int L = e.big ? 512 : 21, n = e.big ? 1024 : 139;
  auto a = random<float>(e, size_t(L) * L * 2), t = random<float>(e, n, .4, 2.7);
  auto f = constant<float>(e, size_t(L) * 2 * n, NAN);
  Job j;
  j.add(legendre, RingCfg{}, a.view(L, L, 2), t.view(n), f.view(L, 2, n));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < L; ++m)
      for (int part = 0; part < 2; ++part)
        for (int i = 0; i < n; ++i) {
          double s = 0;
          for (int l = m; l < L; ++l)
            s += a[(size_t(m) * L + l) * 2 + part] * std::sph_legendre(l, m, t[i]) * (m % 2 ? 1 : 1);
          want.push_back(s);
        }
    return agree(f.now(), want, 2e-4, 2e-4);
  };
  return j;
});

// --- the most that a knapsack holds, for every size of it at once: a row that every item passes over
struct SackCfg {
  int W = 1024, warps = 4;
};
auto knapsack = kernel("user_knapsack", [](const SackCfg& c, Tensor<const int32_t, 2> weight,
                                           Tensor<const int32_t, 2> value, Tensor<int32_t, 2> best) {
                  num_warps(c.warps);
                  auto r = program_id(0);
                  auto size = arange(0, c.W);
                  Tile row = zeros({c.W}, i32);
                  for (auto i : range(weight.dim(1))) {
                    auto w = weight.load({r, i}), v = value.load({r, i});
                    row = where(size >= w, max(row, take(row, max(size - w, 0), 0) + v), row);
                  }
                  best.store({r, 0}, row.row());
                }).grid([](const SackCfg&, const auto& w, const auto&...) { return Grid{w.shape[0]}; });
Register r6("knapsack", [](Env& e) {
  const int n = e.big ? 1024 : 5, items = e.big ? 512 : 39, W = e.big ? 1024 : 200;
  auto w = integers<int32_t>(e, size_t(n) * items, 0, 90), v = integers<int32_t>(e, size_t(n) * items, 1, 1000);
  auto best = constant<int32_t>(e, size_t(n) * W, -1);
  Job j;
  j.add(knapsack, SackCfg{W, 4}, w.view(n, items), v.view(n, items), best.view(n, W));
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < n; ++r) {
      std::vector<int> row(W);
      for (int i = 0; i < items; ++i)
        for (int s = W - 1; s >= w.h[r * items + i]; --s)
          row[s] = std::max(row[s], row[s - w.h[r * items + i]] + v.h[r * items + i]);
      want.insert(want.end(), row.begin(), row.end());
    }
    return agree(best.now(), want, .1, 0);
  };
  return j;
});

}  // namespace dense_steps
}  // namespace users
