// exact_sums.cpp - sums whose last bits matter, or whose terms come from other sums: products of f64 by bytes, sums
// with their errors, recursions that read what they wrote backwards, convolutions by transforms.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace exact_sums {

// --- a product of f64 from products of bytes (Ozaki): rows are cut into slices of 7 bits below their largest power of
// two, products of slices are exact in i32, and are put together in f64
struct SliceCfg {
  int BM = 128, BN = 64, BK = 64, slices = 6, stages = 2, warps = 8;
};
auto cut_slices =
    kernel("user_cut_slices", [](const SliceCfg& c, Tensor<const double, 2> A, Tensor<int8_t, 3> S, Ptr<double> scale) {
      // A [M, K] -> S [slices, M, K], scale [M]
      auto m = program_id(0);
      Tile most = zeros({1, 256}, f64);
      for (auto k : range(0, A.dim(1), 256)) most = max(most, abs(A.load({m, k}, {1, 256})));
      auto s = exp2(ceil(log2(max(cast(max(most), f32), 1e-30f))) + 1.f);
      store(scale + m, cast(s, f64));
      for (auto k : range(0, A.dim(1), 256)) {
        Tile rest = A.load({m, k}, {1, 256}) / cast(s, f64);
        for (int i = 0; i < c.slices; ++i) {
          auto part = trunc(rest * 128.0);
          S.store({i, m, k}, cast(part, i8));
          rest = rest * 128.0 - part;
        }
      }
    }).grid([](const SliceCfg&, const auto& a, const auto&...) { return Grid{a.shape[0]}; });
auto ozaki = kernel("user_ozaki", [](const SliceCfg& c, Tensor<const int8_t, 3> A, Tensor<const int8_t, 3> B,
                                     Ptr<const double> sa, Ptr<const double> sb, Tensor<double, 2> C) {
               // A [slices, M, K], B [slices, N, K] (transposed), C [M, N]
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile total = zeros({c.BM, c.BN}, f64);
               for (int level = c.slices - 1; level >= 0; --level) {  // the smallest first
                 Tile acc = zeros({c.BM, c.BN}, i32);
                 for (int i = 0; i <= level; ++i)
                   for (auto k : range(0, A.dim(2), c.BK, {.stages = c.stages}))
                     acc = dot(squeeze(A.load({i, m, k}, {1, c.BM, c.BK}), 0),
                               trans(squeeze(B.load({level - i, n, k}, {1, c.BN, c.BK}), 0)), acc);
                 total += cast(acc, f64) * std::ldexp(1.0, -7 * (level + 2));
               }
               auto rows = m + arange(0, c.BM), columns = n + arange(0, c.BN);
               C.store({m, n}, total * load(sa + rows, {.mask = rows < C.dim(0)}).col() *
                                   load(sb + columns, {.mask = columns < C.dim(1)}).row());
             }).grid([](const SliceCfg& c, const auto&, const auto&, auto, auto, const auto& y) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
});
Register r1("ozaki", [](Env& e) {
  SliceCfg c;
  if (!e.big) c = {16, 16, 32, 6, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 20, N = e.big ? 4096 : 36, K = e.big ? 4096 : 64;
  auto number = [&] { return (e.uniform() - .5) * std::exp(4 * e.uniform()) + e.uniform() * 1e-8; };
  auto a = drawn<double>(e, size_t(M) * K, number), b = drawn<double>(e, size_t(N) * K, number);
  auto as = constant<int8_t>(e, size_t(c.slices) * M * K, 0), bs = constant<int8_t>(e, size_t(c.slices) * N * K, 0);
  auto sa = constant<double>(e, M, 0), sb = constant<double>(e, N, 0), y = constant<double>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K) * c.slices * (c.slices + 1) / 2;
  j.add(cut_slices, c, a.view(M, K), as.view(c.slices, M, K), sa.p);
  j.add(cut_slices, c, b.view(N, K), bs.view(c.slices, N, K), sb.p);
  j.add(ozaki, c, as.view(c.slices, M, K), bs.view(c.slices, N, K), sa.p, sb.p, y.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) { return b[size_t(n) * K + k]; });
    return agree(y.now(), want, 1e-8, 1e-8);
  };
  return j;
});

// --- inner products of rows in two floats each (Ogita, Rump and Oishi): errors of products and sums are kept, and
// parts are put together as pairs
struct PairCfg {
  int B = 2048;
};
auto two_sum(const Tile& a, const Tile& b) {
  auto s = add_rn(a, b);
  auto t = add_rn(s, -a);
  return std::pair{s, add_rn(add_rn(a, -add_rn(s, -t)), add_rn(b, -t))};
}
auto pair_dot = kernel("user_pair_dot", [](const PairCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<float> out,
                                           I32 n, I32 /*rows*/) {
                  auto r = program_id(0);
                  Tile high = zeros({c.B}, f32), low = zeros({c.B}, f32);
                  for (auto k : range(0, n, c.B)) {
                    auto i = k + arange(0, c.B);
                    auto a = load(x + cast(r, i64) * n + i, {.mask = i < n}),
                         b = load(y + cast(r, i64) * n + i, {.mask = i < n});
                    auto p = mul_rn(a, b);
                    auto e = fma(a, b, -p);
                    auto [s, f] = two_sum(high, p);
                    high = s, low += f + e;
                  }
                  auto sums = reduce({high, low}, axis(0), [](Tile a, Tile below_a, Tile b, Tile below_b) {
                    auto [s, f] = two_sum(a, b);
                    return std::pair{s, below_a + below_b + f};
                  });
                  store(out + r * 2, to_scalar(sums[0]));
                  store(out + r * 2 + 1, to_scalar(sums[1]));
                }).grid([](const PairCfg&, auto, auto, auto, int, int rows) { return Grid{rows}; });
Register r2("pair_dot", [](Env& e) {
  PairCfg c;
  if (!e.big) c.B = 64;
  c.B = e.field("B", c.B);
  const int R = e.big ? 4096 : 5, n = e.big ? 16384 : 300;
  // Large terms that cancel in pairs, small ones that stay.
  auto x = filled<float>(e, size_t(R) * n, [&](size_t i) {
    const size_t at = i % n, half = n / 2;
    return float((at < half ? 1 : -1) * std::exp2(double(at % half % 20)) * 1.25f + (at % 7) * .01f);
  });
  auto y = filled<float>(e, size_t(R) * n, [&](size_t i) { return 1 + float(i % n % (n / 2)) * 0x1p-12f; });
  auto out = constant<float>(e, size_t(R) * 2, NAN);
  Job j;
  j.mbytes = 8e-6 * x.n;
  j.add(pair_dot, c, x.p, y.p, out.p, n, R);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int r = 0; r < R; ++r) {
      long double want = 0;
      for (int i = 0; i < n; ++i) want += (long double)x[size_t(r) * n + i] * y[size_t(r) * n + i];
      const double sum = double(got[2 * r]) + got[2 * r + 1];
      if (!(std::abs(sum - double(want)) < 1e-6 * std::abs(double(want)) + 1e-6))
        return "row " + std::to_string(r) + ": " + std::to_string(sum) + " instead of " + std::to_string(double(want));
    }
    return "";
  };
  return j;
});

// --- linear prediction (Levinson and Durbin): the coefficients of every order from those of the order before and
// themselves backwards; a frame a row
struct PredictCfg {
  int B = 16, P = 16, W = 512;
};
auto predict = kernel("user_predict", [](const PredictCfg& c, Ptr<const float> signal, Ptr<float> coefficients,
                                         Ptr<float> errors, I32 hop, I32 frames) {
                 // frame f: signal[f hop .. f hop + W]; coefficients [frames, P]
                 auto f = program_id(0) * c.B + arange(0, c.B);
                 auto inside = (f < frames).col();
                 auto t = arange(0, c.W).row();
                 auto window = 0.5f - 0.5f * cos(cast(t, f32) * float(2 * M_PI / c.W));
                 auto at = signal + (f * hop).col() + t;
                 auto x = load(at, {.mask = inside}) * window;
                 auto p = arange(0, c.P).row();
                 Tile r = zeros({c.B, c.P}, f32);  // lags 1 .. P
                 for (int lag = 1; lag <= c.P; ++lag) {
                   auto late = load(at + lag, {.mask = inside & (t + lag < c.W)}) *
                               (0.5f - 0.5f * cos(cast(t + lag, f32) * float(2 * M_PI / c.W)));
                   r = where(p == lag - 1, sum(x * late, axis(1)), r);
                 }
                 Tile error = sum(x * x, axis(1)) + 1e-9f, a = zeros({c.B, c.P}, f32);
                 for (int i = 0; i < c.P; ++i) {
                   auto backwards = take(a, broadcast_to(max(i - 1 - p, 0), {c.B, c.P}), 1);
                   auto lagged = take(r, broadcast_to(max(i - 1 - p, 0), {c.B, c.P}), 1);
                   auto want = sum(where(p == i, r, 0.f), axis(1)) - sum(where(p < i, a * lagged, 0.f), axis(1));
                   auto k = want / error;
                   a = where(p < i, a - k * backwards, where(p == i, k, 0.f));
                   error = error * (1.f - k * k);
                 }
                 store(coefficients + f.col() * c.P + p, a, {.mask = inside});
                 store(errors + f, squeeze(error, 1), {.mask = f < frames});
               }).grid([](const PredictCfg& c, auto, auto, auto, int, int frames) { return Grid{cdiv(frames, c.B)}; });
Register r3("predict", [](Env& e) {
  PredictCfg c;
  if (!e.big) c = {4, 8, 64};
  c.B = e.field("B", c.B);
  const int F = e.big ? 1 << 16 : 10, hop = c.W / 4, P = c.P, W = c.W;
  auto signal = filled<float>(e, size_t(F) * hop + W, [&](size_t i) {
    return float(std::sin(i * .3) + .5 * std::sin(i * .071) + .3 * (e.uniform() - .5));
  });
  auto a = constant<float>(e, size_t(F) * P, NAN), errors = constant<float>(e, F, NAN);
  Job j;
  j.mbytes = 4e-6 * (signal.n + a.n);
  j.gflop = 2e-9 * F * W * P;
  j.add(predict, c, signal.p, a.p, errors.p, hop, F);
  j.check = [=]() -> std::string {
    std::vector<double> want(a.n), left(F);
    for (int f = 0; f < F; ++f) {
      std::vector<double> r(P + 1);
      auto x = [&](int t) { return signal[size_t(f) * hop + t] * (.5 - .5 * std::cos(2 * M_PI * t / W)); };
      for (int lag = 0; lag <= P; ++lag)
        for (int t = 0; t + lag < W; ++t) r[lag] += x(t) * x(t + lag);
      // The normal equations by elimination.
      std::vector<std::vector<double>> m(P, std::vector<double>(P + 1));
      for (int i = 0; i < P; ++i) {
        for (int k = 0; k < P; ++k) m[i][k] = r[std::abs(i - k)] + (i == k) * 1e-9;
        m[i][P] = r[i + 1];
      }
      for (int i = 0; i < P; ++i)
        for (int k = i + 1; k < P; ++k) {
          const double by = m[k][i] / m[i][i];
          for (int l = i; l <= P; ++l) m[k][l] -= by * m[i][l];
        }
      left[f] = r[0];
      for (int i = P - 1; i >= 0; --i) {
        double v = m[i][P];
        for (int k = i + 1; k < P; ++k) v -= m[i][k] * want[f * P + k];
        want[f * P + i] = v / m[i][i];
      }
      for (int i = 0; i < P; ++i) left[f] -= want[f * P + i] * r[i + 1];
    }
    auto bad = agree(errors.now(), left, 2e-3, 2e-3);
    return bad.empty() ? agree(a.now(), want, 1e-2, 1e-2) : bad;
  };
  return j;
});

// --- long convolutions by transforms (FlashFFTConv): 1024 = 32 x 32 points as products with tables on both sides, the
// filter's spectrum, and back; two real sequences make one complex one
struct FftConvCfg {
  int N = 32, warps = 4;
};
struct Complex {
  Tile re, im;
};
Complex times(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
/// Products of matrices in f16, sums in f32.
Complex product_of(const Complex& a, const Complex& b) {
  auto ar = cast(a.re, f16), ai = cast(a.im, f16), br = cast(b.re, f16), bi = cast(b.im, f16);
  return {dot(ar, br) - dot(ai, bi), dot(ar, bi) + dot(ai, br)};
}
auto fft_conv =
    kernel("user_fft_conv", [](const FftConvCfg& c, Tensor<const half, 3> X, Tensor<const float, 3> H,
                               Tensor<const float, 3> F, Tensor<const float, 3> T, Tensor<half, 3> Y) {
      // X, Y [pairs, 2, N N], H [2, channels.., N N] as [channels, 2, N N] spectra in transposed order, F [2, N, N] the
      // table of w^(i k), T [2, N, N] of twiddles w^(i k / N)
      num_warps(c.warps);
      auto p = program_id(0);
      auto square = [&](Tile x) { return reshape(x, {c.N, c.N}); };
      auto table = [&](const Tensor<const float, 3>& t) {
        return Complex{squeeze(t.load({0, 0, 0}, {1, c.N, c.N}), 0), squeeze(t.load({1, 0, 0}, {1, c.N, c.N}), 0)};
      };
      Complex f = table(F), t = table(T);
      Complex x{cast(square(X.load({p, 0, 0}, {c.N * c.N})), f32), cast(square(X.load({p, 1, 0}, {c.N * c.N})), f32)};
      Complex h{square(H.load({p % H.dim(0), 0, 0}, {c.N * c.N})), square(H.load({p % H.dim(0), 1, 0}, {c.N * c.N}))};
      Complex back{f.re, -f.im}, untwist{t.re, -t.im};
      const float down = 1.f / float(c.N);
      auto y = times(product_of(f, x), t);                      // columns, twiddles
      y = times(product_of({y.re * down, y.im * down}, f), h);  // rows: the spectrum, transposed
      y = times(product_of(y, back), untwist);
      y = product_of(back, {y.re * down, y.im * down});
      Y.store({p, 0, 0}, reshape(cast(y.re, f16), {1, 1, c.N * c.N}));
      Y.store({p, 1, 0}, reshape(cast(y.im, f16), {1, 1, c.N * c.N}));
    }).grid([](const FftConvCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("fft_conv", [](Env& e) {
  FftConvCfg c;
  if (!e.big) c = {16, 4};
  c.warps = e.field("warps", c.warps);
  const int N = c.N, L = N * N, P = e.big ? 1 << 15 : 3, channels = e.big ? 1024 : 2;
  auto x = random<half>(e, size_t(P) * 2 * L);
  std::vector<double> filter(e.device ? size_t(channels) * L : 0);
  for (double& v : filter) v = (e.uniform() - .5) * .1;
  auto root = [&](double i) { return std::polar(1., -2 * M_PI * i / L); };
  std::vector<std::complex<double>> spectrum(filter.size()), w(L);
  for (int i = 0; i < L; ++i) w[i] = root(i);
  for (int ch = 0; ch < (e.big ? 0 : channels); ++ch)
    for (int k = 0; k < L; ++k)
      for (int i = 0; i < L; ++i) spectrum[size_t(ch) * L + k] += filter[size_t(ch) * L + i] * w[size_t(i) * k % L];
  auto h = filled<float>(e, size_t(channels) * 2 * L, [&](size_t i) {
    // place [a, b] of the transform of x[N n1 + n2] holds frequency a + N b
    const size_t at = i % L, k = at / N + at % N * N, ch = i / L / 2;
    const auto s = spectrum[ch * L + k];
    return float(i / L % 2 ? s.imag() : s.real());
  });
  auto tables = [&](bool twiddles) {
    return filled<float>(e, 2 * L, [&, twiddles](size_t i) {
      const auto v = root(double(i % L / N) * double(i % N) * (twiddles ? 1 : N));
      return float(i / L ? v.imag() : v.real());
    });
  };
  auto f = tables(false), t = tables(true);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.gflop = 1e-9 * P * 16 * 2 * double(L) * N;
  j.add(fft_conv, c, x.view(P, 2, L), h.view(channels, 2, L), f.view(2, N, N), t.view(2, N, N), y.view(P, 2, L));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int p = 0; p < P; ++p)
      for (int s = 0; s < 2; ++s)
        for (int i = 0; i < L; ++i)
          for (int k = 0; k < L; ++k)
            want[(size_t(p) * 2 + s) * L + i] +=
                filter[size_t(p % channels) * L + k] * x[(size_t(p) * 2 + s) * L + (i - k + L) % L];
    return agree(y.now(), want, 4e-3, 1e-2);
  };
  return j;
});

// --- Hamiltonian Monte Carlo for logistic regression: a program leads 16 chains; every gradient is two products with
// all data
struct HmcCfg {
  int chains = 16, D = 32, BN = 128, leaps = 8, stages = 2, warps = 4;
};
auto hmc = kernel("user_hmc", [](const HmcCfg& c, Tensor<const half, 2> X, Ptr<const float> label, Ptr<float> beta,
                                 Ptr<float> energies, I32 steps, F32 epsilon, U64 seed, I32 /*groups*/) {
             // X [N, D], label [N] of -1, 1; beta [groups chains, D] in place; energies [groups chains]
             num_warps(c.warps);
             auto chain = program_id(0) * c.chains + arange(0, c.chains);
             auto N = X.dim(0);
             auto at = beta + chain.col() * c.D + arange(0, c.D).row();
             Tile b = load(at), energy = zeros({c.chains, 1}, f32), slope = zeros({c.chains, c.D}, f32);
             auto look = [&](const Tile& where_at) {  // potential and gradient there
               Tile u = zeros({c.chains, 1}, f32), g = zeros({c.chains, c.D}, f32);
               for (auto n : range(0, N, c.BN, {.stages = c.stages})) {
                 auto x = X.load({n, 0}, {c.BN, c.D});
                 auto row = n + arange(0, c.BN);
                 auto y = load(label + row, {.mask = row < N}).row();
                 auto z = dot(cast(where_at, f16), trans(x)) * y;
                 u += sum(where((row < N).row(), log1p(exp(-abs(z))) + max(-z, 0.f), 0.f), axis(1));
                 g = dot(cast(-y * sigmoid(-z), f16), x, g);
               }
               energy = u + 0.5f * sum(where_at * where_at, axis(1));
               slope = g + where_at;
             };
             look(b);
             for (auto step : range(0, steps)) {
               auto place = (chain.col() * c.D + arange(0, c.D).row()) + step * (num_programs(0) * c.chains * c.D);
               Tile p = randn(seed, place), q = b, before = energy, old = slope;
               auto h0 = energy + 0.5f * sum(p * p, axis(1));
               for (auto leap : range(0, c.leaps)) {
                 (void)leap;
                 p = p - slope * (0.5f * epsilon);
                 q = q + p * epsilon;
                 look(q);
                 p = p - slope * (0.5f * epsilon);
               }
               auto h1 = energy + 0.5f * sum(p * p, axis(1));
               auto taken = rand(seed + 1, chain + step * (num_programs(0) * c.chains)).col() < exp(h0 - h1);
               b = where(taken, q, b), energy = where(taken, energy, before), slope = where(taken, slope, old);
             }
             store(at, b);
             store(energies + chain, squeeze(energy, 1));
           }).grid([](const HmcCfg&, const auto&, auto, auto, auto, int, float, uint64_t, int groups) {
  return Grid{groups};
});
Register r5("hmc", [](Env& e) {
  HmcCfg c;
  if (!e.big) c = {16, 16, 32, 4, 2, 4};
  c.warps = e.field("warps", c.warps), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  const int N = e.big ? 8192 : 80, G = e.big ? 264 : 2, D = c.D, steps = e.big ? 8 : 5;
  const float epsilon = e.big ? .005f : .05f;
  auto x = random<half>(e, size_t(N) * D);
  auto label = filled<float>(e, N, [&](size_t i) { return x.h[i * D] + .3 * (e.uniform() - .5) > 0 ? 1.f : -1.f; });
  auto beta = constant<float>(e, size_t(G) * c.chains * D, 0);
  auto energies = constant<float>(e, size_t(G) * c.chains, NAN);
  Job j;
  j.gflop = 4e-9 * G * c.chains * double(N) * D * (1 + steps * c.leaps);
  j.inTurn = true;
  j.add(hmc, c, x.view(N, D), label.p, beta.p, energies.p, steps, epsilon, uint64_t(7), G);
  j.check = [=]() -> std::string {
    // Chains that start alike part by their noise; what is said of the energy must hold where they are.
    const auto b = beta.now(), u = energies.now();
    std::vector<double> want(u.size());
    double moved = 0;
    for (size_t ch = 0; ch < u.size(); ++ch) {
      for (int d = 0; d < D; ++d)
        want[ch] += .5 * double(b[ch * D + d]) * b[ch * D + d], moved += std::abs(b[ch * D + d]);
      for (int n = 0; n < N; ++n) {
        double z = 0;
        for (int d = 0; d < D; ++d) z += b[ch * D + d] * x[size_t(n) * D + d];
        want[ch] += std::log1p(std::exp(-z * label[n]));
      }
      if (want[ch] > N * std::log(2.) + D) return "chain " + std::to_string(ch) + " climbed";
    }
    if (moved / double(b.size()) < .05) return "chains do not move";
    return agree(u, want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace exact_sums
}  // namespace users
