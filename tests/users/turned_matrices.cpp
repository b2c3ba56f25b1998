// turned_matrices.cpp - many small problems of linear algebra and signals: eigenvalues by rotations of all pairs at
// once, least squares by reflections, systems of six unknowns a lane, spectra of pictures and by lookups.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace turned_matrices {

struct MatrixCfg {
  int P = 4, N = 16, warps = 4;
};

// --- eigenvalues of symmetric 16 x 16 matrices (Jacobi): eight rotations at once, partners by a tournament
auto tournament =
    kernel("user_tournament", [](const MatrixCfg& c, Tensor<const float, 3> A, Tensor<float, 2> values,
                                 Tensor<int32_t, 1> sweeps) {
      num_warps(c.warps);
      const int N = c.N;
      auto b = program_id(0) * c.P;
      Tile a = A.load({b, 0, 0}, {c.P, N, N});
      auto i = arange(0, N);
      auto diagonal = expand_dims(i.col() == i.row(), 0);
      auto off = [&] { return sum(where(diagonal, 0.f, a * a)); };
      Tile sweep = 0;
      while_([&] { return (sweep < 15) & (off() > 1e-9f); },
             [&] {
               for (auto round : range(N - 1)) {
                 // player N - 1 stays; the others sit around: i plays (2 round - i) mod (N - 1)
                 auto other = (2 * round - i + 2 * (N - 1)) % (N - 1);
                 auto partner = where(i == N - 1, round, where(i == round, N - 1, other));
                 auto d = squeeze(sum(where(diagonal, a, 0.f), axis(2)), 2);  // P x N
                 auto meets = expand_dims(partner.col() == i.row(), 0);
                 auto apq = squeeze(sum(where(meets, a, 0.f), axis(2)), 2);
                 auto dq = take(d, broadcast_to(partner.row(), {c.P, N}), 1);
                 auto lower = (i < partner).row();
                 auto p = where(lower, d, dq), q = where(lower, dq, d);
                 auto theta = (q - p) / (2.f * where(apq == 0.f, 1.f, apq));
                 auto t = where(theta < 0.f, -1.f, 1.f) / (abs(theta) + sqrt(theta * theta + 1.f));
                 t = where(abs(apq) < 1e-20f, 0.f, t);
                 auto cosine = 1.f / sqrt(t * t + 1.f), sine = where(lower, -t, t) * cosine;
                 auto rows = take(a, broadcast_to(expand_dims(partner.col(), 0), {c.P, N, N}), 1);
                 a = expand_dims(cosine, 2) * a + expand_dims(sine, 2) * rows;
                 auto columns = take(a, broadcast_to(expand_dims(partner.row(), 0), {c.P, N, N}), 2);
                 a = expand_dims(cosine, 1) * a + expand_dims(sine, 1) * columns;
               }
               sweep += 1;
             });
      values.store({b, 0}, sort(squeeze(sum(where(diagonal, a, 0.f), axis(2)), 2), axis(1)));
      sweeps.store({program_id(0)}, full({1}, sweep, i32));
    }).grid([](const MatrixCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.P)}; });
Register r1("tournament", [](Env& e) {
  const int n = e.big ? 1 << 15 : 5, N = 16, P = e.field("P", e.big ? 4 : 2);
  auto g = random<float>(e, size_t(n) * 256);
  auto a = filled<float>(e, size_t(n) * 256, [&](size_t k) {
    const size_t m = k / 256 * 256, r = k % 256 / 16, q = k % 16;
    return float(g[m + std::min(r, q) * 16 + std::max(r, q)]);
  });
  auto values = constant<float>(e, size_t(n) * N, NAN);
  auto sweeps = constant<int32_t>(e, (n + P - 1) / P, -1);
  Job j;
  j.mbytes = 4e-6 * n * (N * N + N);
  j.add(tournament, MatrixCfg{P, N, e.field("warps", 4)}, a.view(n, N, N), values.view(n, N),
        sweeps.view((n + P - 1) / P));
  j.check = [=] {
    std::vector<double> want;
    for (int k = 0; k < n; ++k) {
      std::vector<double> m(256);
      for (int x = 0; x < 256; ++x) m[x] = a[size_t(k) * 256 + x];
      for (int sweep = 0; sweep < 30; ++sweep)
        for (int p = 0; p < N; ++p)
          for (int q = p + 1; q < N; ++q) {
            if (std::abs(m[p * 16 + q]) < 1e-300) continue;
            const double theta = (m[q * 17] - m[p * 17]) / (2 * m[p * 16 + q]);
            const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
            const double co = 1 / std::sqrt(t * t + 1), si = t * co;
            for (int x = 0; x < N; ++x) {
              const double u = m[p * 16 + x], v = m[q * 16 + x];
              m[p * 16 + x] = co * u - si * v, m[q * 16 + x] = si * u + co * v;
            }
            for (int x = 0; x < N; ++x) {
              const double u = m[x * 16 + p], v = m[x * 16 + q];
              m[x * 16 + p] = co * u - si * v, m[x * 16 + q] = si * u + co * v;
            }
          }
      std::vector<double> d;
      for (int x = 0; x < N; ++x) d.push_back(m[x * 17]);
      std::sort(d.begin(), d.end());
      want.insert(want.end(), d.begin(), d.end());
    }
    return agree(values.now(), want, 2e-4, 2e-5);
  };
  return j;
});

// --- least squares: reflections (Householder) of 64 x 16 matrices with a right side, then back substitution
auto least_squares = kernel("user_least_squares", [](const MatrixCfg& c, Tensor<const float, 3> A,
                                                     Tensor<const float, 2> rhs, Tensor<float, 2> x) {
                       num_warps(c.warps);
                       const int M = 64, N = c.N;
                       auto b = program_id(0);
                       Tile a = squeeze(A.load({b, 0, 0}, {1, M, N}), 0);
                       Tile y = squeeze(rhs.load({b, 0}, {1, M}), 0).col();
                       auto row = arange(0, M).col(), col = arange(0, N).row();
                       Tile diagonal = zeros({1, N}, f32);
                       for (auto k : range(N)) {
                         auto column = sum(where(col == k, a, 0.f), axis(1));  // M x 1
                         auto below = where(row >= k, column, 0.f);
                         auto norm = sqrt(sum(below * below));
                         auto head = sum(where(row == k, column, 0.f));
                         auto alpha = where(head > 0.f, -norm, norm);
                         auto v = where(row == k, column - alpha, below);
                         auto beta = 2.f / max(sum(v * v), 1e-30f);
                         a -= beta * v * sum(v * a, axis(0));
                         y -= beta * v * sum(v * y);
                         diagonal = where(col == k, alpha, diagonal);
                       }
                       Tile solution = zeros({1, N}, f32);
                       for (auto k : range(N - 1, -1, -1)) {
                         auto line = sum(where(row == k, a, 0.f), axis(0));  // 1 x N
                         auto rest = sum(where(row == k, y, 0.f)) - sum(where(col > k, line * solution, 0.f));
                         solution = where(col == k, rest / sum(where(col == k, diagonal, 0.f)), solution);
                       }
                       x.store({b, 0}, solution);
                     }).grid([](const MatrixCfg&, const auto& a, const auto&...) { return Grid{a.shape[0]}; });
Register r2("least_squares", [](Env& e) {
  const int n = e.big ? 1 << 15 : 4, M = 64, N = 16;
  auto a = random<float>(e, size_t(n) * M * N), y = random<float>(e, size_t(n) * M);
  auto x = constant<float>(e, size_t(n) * N, NAN);
  Job j;
  j.mbytes = 4e-6 * n * (M * N + M + N);
  j.add(least_squares, MatrixCfg{1, N, e.field("warps", e.big ? 1 : 2)}, a.view(n, M, N), y.view(n, M), x.view(n, N));
  j.check = [=] {
    std::vector<double> want(size_t(n) * N);
    for (int k = 0; k < n; ++k) {  // normal equations, float64
      std::vector<double> g(N * (N + 1));
      for (int r = 0; r < N; ++r)
        for (int q = 0; q <= N; ++q)
          for (int m = 0; m < M; ++m)
            g[r * (N + 1) + q] +=
                a[(size_t(k) * M + m) * N + r] * (q == N ? y[size_t(k) * M + m] : a[(size_t(k) * M + m) * N + q]);
      for (int p = 0; p < N; ++p)
        for (int r = 0; r < N; ++r)
          if (r != p)
            for (int q = N; q >= p; --q)
              g[r * (N + 1) + q] -= g[r * (N + 1) + p] / g[p * (N + 1) + p] * g[p * (N + 1) + q];
      for (int r = 0; r < N; ++r) want[size_t(k) * N + r] = g[r * (N + 1) + N] / g[r * (N + 1) + r];
    }
    return agree(x.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- six unknowns a lane (rigid bodies, calibrations): Cholesky and both substitutions in variables of the lane
auto six = kernel("user_six", [](const MatrixCfg& c, Ptr<const double> A, Ptr<const double> b, Ptr<double> x, I32 n) {
             num_warps(c.warps);
             auto i = program_id(0) * c.P + arange(0, c.P);
             auto live = i < n;
             std::array<std::array<Tile, 6>, 6> l;
             std::array<Tile, 6> y;
             for (int r = 0; r < 6; ++r)
               for (int q = 0; q <= r; ++q)
                 l[r][q] = load(A + (i * 36 + r * 6 + q), {.mask = live, .other = r == q ? 1.0 : 0.0});
             for (int r = 0; r < 6; ++r) y[r] = load(b + (i * 6 + r), {.mask = live});
             for (int q = 0; q < 6; ++q) {
               for (int k = 0; k < q; ++k) l[q][q] -= l[q][k] * l[q][k];
               l[q][q] = 1.0 / sqrt(l[q][q]);
               for (int r = q + 1; r < 6; ++r) {
                 for (int k = 0; k < q; ++k) l[r][q] -= l[r][k] * l[q][k];
                 l[r][q] *= l[q][q];
               }
             }
             for (int r = 0; r < 6; ++r) {
               for (int k = 0; k < r; ++k) y[r] -= l[r][k] * y[k];
               y[r] *= l[r][r];
             }
             for (int r = 5; r >= 0; --r) {
               for (int k = r + 1; k < 6; ++k) y[r] -= l[k][r] * y[k];
               y[r] *= l[r][r];
             }
             for (int r = 0; r < 6; ++r) store(x + (i * 6 + r), y[r], {.mask = live});
           }).grid([](const MatrixCfg& c, const double*, const double*, double*, int n) { return Grid{cdiv(n, c.P)}; });
Register r3("six", [](Env& e) {
  const int n = e.big ? 1 << 19 : 75;
  std::vector<double> m;
  for (int k = 0; k < std::min(n, 4096); ++k) {
    double g[36];
    for (double& v : g) v = 2 * e.uniform() - 1;
    for (int r = 0; r < 6; ++r)
      for (int q = 0; q < 6; ++q) {
        double s = r == q ? .3 : 0;
        for (int t = 0; t < 6; ++t) s += g[r * 6 + t] * g[q * 6 + t];
        m.push_back(s);
      }
  }
  auto A = repeated(e, size_t(n) * 36, m);
  auto b = random<double>(e, size_t(n) * 6);
  auto x = constant<double>(e, size_t(n) * 6, NAN);
  Job j;
  j.mbytes = 8e-6 * n * 48;
  j.add(six, MatrixCfg{e.field("P", e.big ? 128 : 32), 6, e.field("warps", e.big ? 4 : 1)}, A.p, b.p, x.p, n);
  j.check = [=] {
    std::vector<double> want(size_t(n) * 6);
    const auto got = x.now();
    for (int k = 0; k < n; ++k)
      for (int r = 0; r < 6; ++r) {
        double s = -b[size_t(k) * 6 + r];
        for (int q = 0; q < 6; ++q) s += A[size_t(k) * 36 + r * 6 + q] * got[size_t(k) * 6 + q];
        if (!(std::abs(s) < 1e-10)) return "system " + std::to_string(k);
      }
    return std::string();
  };
  return j;
});

// --- spectra of 1024 real samples a row: two rows are one complex signal, radix 2 by reading from places (Stockham)
auto real_pair = kernel("user_real_pair", [](const MatrixCfg& c, Tensor<const float, 2> x, Tensor<float, 2> re,
                                             Tensor<float, 2> im) {
                   num_warps(c.warps);
                   const int N = c.N;
                   int bits = 0;
                   while ((1 << bits) < N) ++bits;
                   auto row = program_id(0) * 2;
                   Tile r = squeeze(x.load({row, 0}, {1, N}), 0), i = squeeze(x.load({row + 1, 0}, {1, N}), 0);
                   auto at = arange(0, N);
                   for (int s = 0; s < bits; ++s) {  // blocks of 2^s are ready; their partners lie N / 2 away
                     const int done = 1 << s;
                     auto k = at % done, block = at / done;  // place (block, k) of the result: blocks of 2 done
                     auto from = block / 2 * done + k;
                     auto angle = cast(at % (2 * done), f32) * float(-M_PI / done);
                     auto ar = take(r, from, 0), ai = take(i, from, 0);
                     auto br = take(r, from + N / 2, 0), bi = take(i, from + N / 2, 0);
                     auto wr = cos(angle), wi = sin(angle);
                     r = ar + wr * br - wi * bi;
                     i = ai + wr * bi + wi * br;
                   }
                   auto mirror = (N - at) % N;
                   auto mr = take(r, mirror, 0), mi = take(i, mirror, 0);
                   re.store({row, 0}, (0.5f * (r + mr)).row());
                   im.store({row, 0}, (0.5f * (i - mi)).row());
                   re.store({row + 1, 0}, (0.5f * (i + mi)).row());
                   im.store({row + 1, 0}, (0.5f * (mr - r)).row());
                 }).grid([](const MatrixCfg&, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], 2)}; });
Register r4("real_pair", [](Env& e) {
  const int rows = e.big ? 1 << 15 : 5, N = e.big ? 1024 : 64;
  auto x = random<float>(e, size_t(rows) * N);
  auto re = constant<float>(e, size_t(rows) * N, NAN), im = constant<float>(e, size_t(rows) * N, NAN);
  Job j;
  j.mbytes = 12e-6 * rows * N;
  j.add(real_pair, MatrixCfg{1, N, e.field("warps", e.big ? 4 : 1)}, x.view(rows, N), re.view(rows, N),
        im.view(rows, N));
  j.check = [=] {
    std::vector<double> a, b;
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < N; ++k) {
        std::complex<double> s = 0;
        for (int t = 0; t < N; ++t) s += x[size_t(r) * N + t] * std::polar(1., -2 * M_PI * (k * t % N) / N);
        a.push_back(s.real()), b.push_back(s.imag());
      }
    auto wrong = agree(re.now(), a, 1e-4, 1e-4);
    return wrong.empty() ? agree(im.now(), b, 1e-4, 1e-4) : wrong;
  };
  return j;
});

}  // namespace turned_matrices
}  // namespace users
