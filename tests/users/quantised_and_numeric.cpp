// quantised_and_numeric.cpp - inference and numerics of CUDA projects: quantised rows of llama.cpp (Q5_0, IQ4_NL, Q6_K)
// times vectors, all roots of polynomials (Aberth), jagged-diagonal sparse rows, forward rates (LIBOR), compressible
// fluxes of eighth order, walkers of a helium atom, backgrounds of a video, pyramids of shortest paths, a clean map of
// the sky (Hogbom).
#include <complex>
#include <cstring>

#include "tests/users/flat_fields.h"
namespace users {
namespace quantised_and_numeric {
float half_at(const std::vector<uint8_t>& b, size_t at) {
  uint16_t w = uint16_t(b[at] | b[at + 1] << 8);
  half h;
  std::memcpy(&h, &w, 2);
  return float(h);
}
void put_half(std::vector<uint8_t>& b, size_t at, float x) {
  half h(x);
  std::memcpy(&b[at], &h, 2);
}

// --- Q5_0 rows (blocks of 32 in 22 bytes: f16 scale, 32 high bits, 16 bytes of nibbles) times a vector of Q8 blocks
struct RowsCfg {
  int R = 4, G = 32, warps = 4;  // rows of a program, blocks at a time
};

auto q5_rows = kernel("user_q5_0", [](const RowsCfg& c, Ptr<const uint8_t> w, Ptr<const half> w16, Ptr<const int8_t> x,
                                      Ptr<const float> xs, Ptr<float> y, I32 M, I32 blocks) {
                 num_warps(c.warps);
                 auto r = program_id(0) * c.R + arange(0, c.R);
                 Tile acc = zeros({c.R, c.G}, f32);
                 for (auto g0 : range(0, blocks, c.G)) {
                   auto g = g0 + arange(0, c.G);
                   auto in = (r < M).col() & (g < blocks).row();
                   auto block = cast(r, i64).col() * cast(blocks, i64) + cast(g, i64).row();
                   auto d = cast(load(w16 + block * 11, {.mask = in}), f32);
                   auto high = cast(bitcast(load(w16 + (block * 11 + 1), {.mask = in}), u16), u32) |
                               (cast(bitcast(load(w16 + (block * 11 + 2), {.mask = in}), u16), u32) << 16);
                   auto k = expand_dims(expand_dims(arange(0, 16), 0), 0);
                   auto q = cast(load(w + (expand_dims(block * 22 + 6, 2) + cast(k, i64)),
                                      {.mask = broadcast_to(expand_dims(in, 2), {c.R, c.G, 16})}),
                                 u32);
                   auto h = expand_dims(high, 2);
                   auto bit = [&](const Tile& at) { return ((h >> cast(at, u32)) & 1) << 4; };
                   auto lo = cast((q & 15) | bit(k), i32) - 16, hi = cast((q >> 4) | bit(k + 16), i32) - 16;
                   auto gin = broadcast_to(expand_dims((g < blocks).row(), 2), {1, c.G, 16});
                   auto xp = x + (expand_dims(g.row(), 2) * 32 + k);
                   auto xl = cast(load(xp, {.mask = gin}), i32), xh = cast(load(xp + 16, {.mask = gin}), i32);
                   auto total = squeeze(sum(lo * xl + hi * xh, axis(2)), 2);
                   acc += cast(total, f32) * d * load(xs + g, {.mask = g < blocks}).row();
                 }
                 store(y + r, squeeze(sum(acc, axis(1)), 1), {.mask = r < M});
               }).grid([](const RowsCfg& c, auto, auto, auto, auto, auto, int M, int) { return Grid{cdiv(M, c.R)}; });
Register r1("q5_0", [](Env& e) {
  RowsCfg c;
  if (!e.big) c = {3, 4, 1};
  c.R = e.field("R", c.R), c.G = e.field("G", c.G), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 7, blocks = e.big ? 128 : 9;
  std::vector<uint8_t> b(size_t(M) * blocks * 22);
  for (auto& v : b) v = uint8_t(e.uniform() * 256);
  for (size_t i = 0; i < size_t(M) * blocks; ++i) put_half(b, i * 22, float(e.uniform() - .5));
  auto w = repeated<uint8_t>(e, b.size(), b);
  auto x = integers<int8_t>(e, blocks * 32, -127, 128);
  auto xs = random<float>(e, blocks, .5, 1);
  auto y = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * b.size();
  j.add(q5_rows, c, w.p, reinterpret_cast<const half*>(w.p), x.p, xs.p, y.p, M, blocks);
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int g = 0; g < blocks; ++g) {
        const uint8_t* p = &w.h[(size_t(m) * blocks + g) * 22];
        uint32_t h;
        std::memcpy(&h, p + 2, 4);
        double s = 0;
        for (int k = 0; k < 16; ++k)
          s += (int((p[6 + k] & 15) | (h >> k & 1) << 4) - 16) * x.h[g * 32 + k] +
               (int((p[6 + k] >> 4) | (h >> (k + 16) & 1) << 4) - 16) * x.h[g * 32 + 16 + k];
        want[m] += s * half_at(w.h, (size_t(m) * blocks + g) * 22) * xs[g];
      }
    return agree(y.now(), want, 1e-2, 1e-4);
  };
  return j;
});

// --- IQ4_NL: nibbles name entries of a table of 16; rows become f16 for a product
constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
struct WeightCfg {
  int BM = 64, BN = 64, BK = 64, warps = 4;
};
auto iq4 =
    kernel("user_iq4_nl", [](const WeightCfg& c, Ptr<const uint8_t> w, Ptr<const half> w16, Ptr<const int8_t> table,
                             Tensor<const half, 2> X, Tensor<float, 2> Y, I32 N, I32 K) {
      // w: N rows of K / 32 blocks of 18 bytes; Y = X W^T
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n0 = program_id(1) * c.BN;
      auto n = min(n0 + arange(0, c.BN), N - 1);
      auto lookup = load(table + arange(0, 16));
      const int G = c.BK / 32;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k0 : range(0, K, c.BK)) {
        auto g = k0 / 32 + arange(0, G);
        auto in = broadcast_to((g < K / 32).row(), {c.BN, G});
        auto block = n.col() * (K / 32) + g.row();
        auto d = cast(load(w16 + block * 9, {.mask = in}), f32);
        auto bytes = load(w + (expand_dims(block * 18 + 2, 2) + expand_dims(expand_dims(arange(0, 16), 0), 0)),
                          {.mask = broadcast_to(expand_dims(in, 2), {c.BN, G, 16})});
        auto entry = [&](const Tile& i) {
          return reshape(take(lookup, reshape(cast(i, i32), {c.BN * G * 16}), 0), {c.BN, G, 16});
        };
        auto q = cat(entry(bytes & 15), entry(bytes >> 4), 2);  // [BN, G, 32]
        auto f = cast(cast(q, f32) * expand_dims(d, 2), f16);
        acc = dot(X.load({m, k0}, {c.BM, c.BK}), trans(reshape(f, {c.BN, c.BK})), acc);
      }
      Y.store({m, n0}, acc);
    }).grid([](const WeightCfg& c, auto, auto, auto, const auto& x, const auto&, int N, int) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(N, c.BN)};
    });
Register r2("iq4_nl", [](Env& e) {
  WeightCfg c;
  if (!e.big) c = {16, 16, 64, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 64 : 5, N = e.big ? 4096 : 19, K = e.big ? 4096 : 96, blocks = N * K / 32;
  std::vector<uint8_t> b(size_t(blocks) * 18);
  for (auto& v : b) v = uint8_t(e.uniform() * 256);
  for (int i = 0; i < blocks; ++i) put_half(b, size_t(i) * 18, float(e.uniform() - .5) / 64);
  auto w = repeated<uint8_t>(e, b.size(), b);
  auto table = repeated<int8_t>(e, 16, {kValues, kValues + 16});
  auto X = random<half>(e, size_t(M) * K);
  auto Y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * b.size();
  j.add(iq4, c, w.p, reinterpret_cast<const half*>(w.p), table.p, X.view(M, K), Y.view(M, N), N, K);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const size_t at = (size_t(n) * K + k) / 32 * 18;
      const int i = k % 32, q = i < 16 ? w.h[at + 2 + i] & 15 : w.h[at + 2 + i - 16] >> 4;
      return in_half(kValues[q] * double(half_at(w.h, at)));
    };
    return agree(Y.now(), product(M, N, K, matrix(X, K), weight), 1e-3, 1e-3);
  };
  return j;
});

// --- all roots of polynomials of degree 7 at once (Aberth): complex float64, until every one has settled
constexpr int kDegree = 7;
struct Z {
  Tile re, im;
};
Z operator+(const Z& a, const Z& b) { return {a.re + b.re, a.im + b.im}; }
Z operator-(const Z& a, const Z& b) { return {a.re - b.re, a.im - b.im}; }
Z operator*(const Z& a, const Z& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Z operator/(const Z& a, const Z& b) {
  auto n = 1. / (b.re * b.re + b.im * b.im);
  return {(a.re * b.re + a.im * b.im) * n, (a.im * b.re - a.re * b.im) * n};
}
auto aberth = kernel("user_aberth", [](const FlatCfg& c, Ptr<const double> coefficients, Ptr<double> roots,
                                       Ptr<int32_t> steps, I32 n) {
                num_warps(c.warps);  // coefficients [degree + 1, n]; roots [degree, 2, n]
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto in = i < n;
                std::array<Tile, kDegree + 1> a;
                for (int k = 0; k <= kDegree; ++k)
                  a[k] = load(coefficients + k * n + i, {.mask = in, .other = k == kDegree ? 1 : 0});
                std::array<Z, kDegree> z;
                for (int k = 0; k < kDegree; ++k) {
                  const double angle = 6.283185307179586 * k / kDegree + .4;
                  z[k] = {full({c.B}, 1.1 * std::cos(angle), f64), full({c.B}, 1.1 * std::sin(angle), f64)};
                }
                Tile going = in, count = zeros({c.B}, i32);
                while_([&] { return any(going); },
                       [&] {
                         Tile far = zeros({c.B}, f64);
                         for (int k = 0; k < kDegree; ++k) {
                           Z p{a[kDegree], zeros({c.B}, f64)}, d{zeros({c.B}, f64), zeros({c.B}, f64)};
                           for (int l = kDegree - 1; l >= 0; --l) {
                             d = d * z[k] + p;
                             p = p * z[k];
                             p.re += a[l];
                           }
                           Z newton = p / d, push{zeros({c.B}, f64), zeros({c.B}, f64)};
                           for (int l = 0; l < kDegree; ++l)
                             if (l != k) push = push + Z{ones({c.B}, f64), zeros({c.B}, f64)} / (z[k] - z[l]);
                           Z step = newton / (Z{ones({c.B}, f64), zeros({c.B}, f64)} - newton * push);
                           z[k] = {where(going, z[k].re - step.re, z[k].re), where(going, z[k].im - step.im, z[k].im)};
                           far = max(far, abs(step.re) + abs(step.im));
                         }
                         count += cast(going, i32);
                         going = going & (far > 1e-13) & (count < 60);
                       });
                for (int k = 0; k < kDegree; ++k) {
                  store(roots + 2 * k * n + i, z[k].re, {.mask = in});
                  store(roots + (2 * k + 1) * n + i, z[k].im, {.mask = in});
                }
                store(steps + i, count, {.mask = in});
              }).grid([](const FlatCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("aberth", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 20 : 45;
  auto a = random<double>(e, size_t(kDegree + 1) * n);
  if (e.device && !e.big)
    for (int i = 0; i < n; ++i) a.h[kDegree * n + i] = 1;
  a = repeated<double>(e, a.n, a.h);
  auto roots = constant<double>(e, size_t(2) * kDegree * n, NAN);
  auto steps = constant<int32_t>(e, n, 0);
  Job j;
  j.add(aberth, c, a.p, roots.p, steps.p, n);
  j.check = [=] {  // the product of (x - root) is the polynomial
    auto r = roots.now();
    std::vector<double> got, want;
    for (int i = 0; i < n; ++i) {
      std::vector<std::complex<double>> p{1};
      for (int k = 0; k < kDegree; ++k) {
        std::complex<double> z(r[size_t(2 * k) * n + i], r[size_t(2 * k + 1) * n + i]);
        p.push_back(0);
        for (size_t l = p.size() - 1; l > 0; --l) p[l] -= z * p[l - 1];
      }
      for (int k = 0; k <= kDegree; ++k) got.push_back(p[kDegree - k].real()), want.push_back(a[size_t(k) * n + i]);
    }
    return agree(got, want, 1e-9, 1e-9);
  };
  return j;
});

// --- sparse rows in jagged diagonals (JDS): rows sorted by length, diagonal by diagonal; then back by a permutation
auto jds =
    kernel("user_jds", [](const FlatCfg& c, Ptr<const double> values, Ptr<const int32_t> columns,
                          Ptr<const int32_t> diagonals, Ptr<const int32_t> lengths, Ptr<const int32_t> order,
                          Ptr<const double> x, Ptr<double> y, I32 n) {
      num_warps(c.warps);
      auto r = program_id(0) * c.B + arange(0, c.B);
      auto in = r < n;
      auto length = load(lengths + r, {.mask = in});
      Tile sum = zeros({c.B}, f64);
      for (auto d : range(max(length))) {
        auto at = load(diagonals + d) + r;
        auto on = d < length;
        sum += load(values + at, {.mask = on}) * load(x + load(columns + at, {.mask = on}), {.mask = on});
      }
      store(y + load(order + r, {.mask = in}), sum, {.mask = in});
    }).grid([](const FlatCfg& c, auto, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("jds", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 19 : 83, most = e.big ? 40 : 11;
  std::vector<int> len(n), order(n);
  for (int i = 0; i < n; ++i) len[i] = int(e.uniform() * e.uniform() * (most + 1)), order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return len[a] > len[b]; });
  std::vector<int32_t> sorted(n), start{0};
  for (int i = 0; i < n; ++i) sorted[i] = len[order[i]];
  for (int d = 0; d < std::max(sorted[0], 1); ++d)
    start.push_back(
        start.back() +
        int(std::partition_point(sorted.begin(), sorted.end(), [&](int l) { return l > d; }) - sorted.begin()));
  const int nnz = start.back();
  auto values = random<double>(e, nnz), x = random<double>(e, n);
  auto columns = integers<int32_t>(e, nnz, 0, n);
  auto diagonals = repeated<int32_t>(e, start.size(), start), lengths = repeated<int32_t>(e, n, sorted),
       perm = repeated<int32_t>(e, n, order);
  auto y = constant<double>(e, n, NAN);
  Job j;
  j.mbytes = 12e-6 * nnz;
  j.add(jds, c, values.p, columns.p, diagonals.p, lengths.p, perm.p, x.p, y.p, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int r = 0; r < n; ++r)
      for (int d = 0; d < sorted[r]; ++d) want[order[r]] += values[start[d] + r] * x[columns.h[start[d] + r]];
    return agree(y.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- LIBOR market model: 40 forward rates of a path in registers, 40 steps, swaptions at the end
constexpr int kRates = 40, kOptions = 5;
constexpr int kMaturity[kOptions] = {4, 8, 20, 28, 40};
auto libor =
    kernel("user_libor", [](const FlatCfg& c, Ptr<const float> z, Ptr<const float> lambda, Ptr<const float> rates,
                            Ptr<const float> strikes, Ptr<float> value, F32 delta, I32 paths) {
      num_warps(c.warps);
      auto p = program_id(0) * c.B + arange(0, c.B);
      auto in = p < paths;
      std::array<Tile, kRates> L;
      for (int i = 0; i < kRates; ++i) L[i] = broadcast_to(load(rates + i), {c.B});
      for (int n = 0; n < kRates / 4; ++n) {  // the first ten dates pass
        auto sqez = sqrt(delta) * load(z + cast(paths, i64) * n + p, {.mask = in});
        Tile v = zeros({c.B}, f32);
        for (int i = n + 1; i < kRates; ++i) {
          auto lam = load(lambda + (i - n - 1)), con = delta * lam;
          v += con * L[i] / (1.f + delta * L[i]);
          L[i] *= exp(con * v + lam * (sqez - .5f * con));
        }
      }
      Tile b = ones({c.B}, f32), s = zeros({c.B}, f32), payoff = zeros({c.B}, f32);
      for (int i = kRates / 4; i < kRates; ++i) {
        b /= 1.f + delta * L[i], s += delta * b;
        for (int o = 0; o < kOptions; ++o)
          if (kMaturity[o] == i + 1) {
            auto swap = b + load(strikes + o) * s - 1.f;
            payoff += where(swap < 0.f, -100.f * swap, 0.f);
          }
      }
      for (int n = 0; n < kRates / 4; ++n) payoff /= 1.f + delta * L[n];
      store(value + p, payoff, {.mask = in});
    }).grid([](const FlatCfg& c, auto, auto, auto, auto, auto, float, int paths) { return Grid{cdiv(paths, c.B)}; });
Register r5("libor", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int paths = e.big ? 1 << 18 : 41;
  auto z = random<float>(e, size_t(kRates / 4) * paths), lambda = constant<float>(e, kRates, .2),
       rates = constant<float>(e, kRates, .051);
  auto strikes = random<float>(e, kOptions, .045, .06);
  auto value = constant<float>(e, paths, NAN);
  Job j;
  j.add(libor, c, z.p, lambda.p, rates.p, strikes.p, value.p, .25f, paths);
  j.check = [=] {
    std::vector<double> want(paths);
    for (int p = 0; p < paths; ++p) {
      std::vector<double> L(kRates, rates[0]);
      const double d = .25, lam = lambda[0];
      for (int n = 0; n < kRates / 4; ++n) {
        double v = 0, q = std::sqrt(d) * z[size_t(n) * paths + p];
        for (int i = n + 1; i < kRates; ++i)
          v += d * lam * L[i] / (1 + d * L[i]), L[i] *= std::exp(d * lam * v + lam * (q - .5 * d * lam));
      }
      double b = 1, s = 0, pay = 0;
      for (int i = kRates / 4; i < kRates; ++i) {
        b /= 1 + d * L[i], s += d * b;
        for (int o = 0; o < kOptions; ++o)
          if (kMaturity[o] == i + 1) pay += std::max(0., -100 * (b + strikes[o] * s - 1));
      }
      for (int n = 0; n < kRates / 4; ++n) pay /= 1 + d * L[n];
      want[p] = pay;
    }
    return agree(value.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- compressible fluxes (hypterm): derivatives of eighth order along three axes, five fields and four unknowns, f64
struct BlockCfg {
  int BY = 4, BX = 32, warps = 4;
};
constexpr double kD[4] = {.8, -.2, .038095238095238, -.003571428571428};
auto hypterm = kernel("user_hypterm", [](const BlockCfg& c, Tensor<const double, 4> cons, Tensor<const double, 4> q,
                                         Tensor<double, 4> flux, F64 dx, F64 dy, F64 dz) {
                 // cons [5, Z, Y, X], q [4, Z, Y, X]: velocity and pressure; ghosts of 4; flux [5, nz, ny, nx]
                 num_warps(c.warps);
                 auto z = program_id(2), y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                 std::array<Tile, 5> f;
                 for (auto& t : f) t = zeros({c.BY, c.BX}, f64);
                 auto box = [&](const auto& t, int k, int az, int ay, int ax) {
                   return t.load({k, z + 4 + az, y + 4 + ay, x + 4 + ax}, {c.BY, c.BX});
                 };
                 F64 inverse[3] = {dx, dy, dz};
                 for (int a = 0; a < 3; ++a)
                   for (int k = 1; k <= 4; ++k) {
                     const int sx = a == 0 ? k : 0, sy = a == 1 ? k : 0, sz = a == 2 ? k : 0;
                     auto w = kD[k - 1] * inverse[a];
                     auto up = box(q, a, sz, sy, sx), um = box(q, a, -sz, -sy, -sx);
                     auto pp = box(q, 3, sz, sy, sx), pm = box(q, 3, -sz, -sy, -sx);
                     for (int v = 0; v < 5; ++v) {
                       auto cp = box(cons, v, sz, sy, sx), cm = box(cons, v, -sz, -sy, -sx);
                       auto d = v == 0 ? Tile(zeros({c.BY, c.BX}, f64)) : cp * up - cm * um;
                       if (v == 0) d = box(cons, 1 + a, sz, sy, sx) - box(cons, 1 + a, -sz, -sy, -sx);
                       if (v == 1 + a) d += pp - pm;
                       if (v == 4) d += pp * up - pm * um;
                       f[v] -= w * d;
                     }
                   }
                 for (int v = 0; v < 5; ++v) flux.store({v, z, y, x}, f[v]);
               }).grid([](const BlockCfg& c, const auto&, const auto&, const auto& f, double, double, double) {
  return Grid{cdiv(f.shape[3], c.BX), cdiv(f.shape[2], c.BY), f.shape[1]};
});
Register r6("hypterm", [](Env& e) {
  BlockCfg c;
  if (!e.big) c = {2, 8, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int nz = e.big ? 192 : 3, ny = e.big ? 192 : 5, nx = e.big ? 192 : 11, Z = nz + 8, Y = ny + 8, X = nx + 8;
  auto cons = random<double>(e, size_t(5) * Z * Y * X), q = random<double>(e, size_t(4) * Z * Y * X);
  auto flux = constant<double>(e, size_t(5) * nz * ny * nx, NAN);
  Job j;
  j.mbytes = 8e-6 * 14 * nz * double(ny) * nx;
  j.add(hypterm, c, cons.view(5, Z, Y, X), q.view(4, Z, Y, X), flux.view(5, nz, ny, nx), 1.5, 2.5, .5);
  j.check = [=] {
    std::vector<double> want(flux.n);
    const double inv[3] = {1.5, 2.5, .5};
    for (int z = 0; z < nz; ++z)
      for (int y = 0; y < ny; ++y)
        for (int x = 0; x < nx; ++x)
          for (int a = 0; a < 3; ++a)
            for (int k = 1; k <= 4; ++k)
              for (int v = 0; v < 5; ++v) {
                double d[2];
                for (int s = 0; s < 2; ++s) {
                  const int o = s ? -k : k;
                  const size_t at = (size_t(z + 4 + (a == 2 ? o : 0)) * Y + y + 4 + (a == 1 ? o : 0)) * X + x + 4 +
                                    (a == 0 ? o : 0),
                               n = size_t(Z) * Y * X;
                  const double u = q[a * n + at], p = q[3 * n + at];
                  d[s] = v == 0 ? cons[(1 + a) * n + at]
                                : cons[v * n + at] * u + (v == 1 + a ? p : 0) + (v == 4 ? p * u : 0);
                }
                want[((size_t(v) * nz + z) * ny + y) * nx + x] -= kD[k - 1] * inv[a] * (d[0] - d[1]);
              }
    return agree(flux.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- variational Monte Carlo of helium: two electrons a lane, Metropolis steps, energies; blocks of sums
auto helium = kernel("user_vmc", [](const FlatCfg& c, Ptr<double> sums, Ptr<uint32_t> accepted, F64 alpha, I32 steps,
                                    U64 seed, I32 n) {
                num_warps(c.warps);
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto in = i < n;
                std::array<Tile, 6> r;
                auto [g0, g1, g2, g3] = randn4(seed, i);
                auto [h0, h1, h2, h3] = randn4(seed, i + n);
                r = {cast(g0, f64), cast(g1, f64), cast(g2, f64), cast(g3, f64), cast(h0, f64), cast(h1, f64)};
                auto norm = [](const Tile& a, const Tile& b, const Tile& c) { return sqrt(a * a + b * b + c * c); };
                auto psi = [&](const std::array<Tile, 6>& r) {
                  auto r1 = norm(r[0], r[1], r[2]), r2 = norm(r[3], r[4], r[5]);
                  auto r12 = norm(r[0] - r[3], r[1] - r[4], r[2] - r[5]);
                  return exp(-2. * (r1 + r2) + .5 * r12 / (1. + alpha * r12));
                };
                Tile p = psi(r), energy = zeros({c.B}, f64), took = zeros({c.B}, i32);
                for (auto s : range(steps)) {
                  std::array<Tile, 6> t;
                  auto at = (s + 1) * n + i;
                  auto [a0, a1, a2, a3] = rand4(seed + 1, at);
                  auto [b0, b1, b2, b3] = rand4(seed + 2, at);
                  const Tile moves[6] = {a0, a1, a2, a3, b0, b1};
                  for (int k = 0; k < 6; ++k) t[k] = r[k] + cast(moves[k] - .5f, f64);
                  auto pt = psi(t);
                  auto yes = cast(b2, f64) < (pt * pt) / (p * p);
                  for (int k = 0; k < 6; ++k) r[k] = where(yes, t[k], r[k]);
                  p = where(yes, pt, p);
                  took += cast(yes, i32);
                  auto r1 = norm(r[0], r[1], r[2]), r2 = norm(r[3], r[4], r[5]);
                  auto r12 = norm(r[0] - r[3], r[1] - r[4], r[2] - r[5]), w = 1. / (1. + alpha * r12);
                  auto cosine = Tile(zeros({c.B}, f64));
                  for (int k = 0; k < 3; ++k) cosine += (r[k] / r1 - r[k + 3] / r2) * (r[k] - r[k + 3]) / r12;
                  energy +=
                      -4. + cosine * w * w - w * w * w * w / 4. - w * w / r12 + 2. * alpha * w * w * w / 2. + 1. / r12;
                }
                atomic_add(sums, sum(where(in, energy, 0.)));
                atomic_add(sums + 1, sum(where(in, energy * energy, 0.)));
                atomic_add(accepted, cast(sum(where(in, took, 0)), u32));
              }).grid([](const FlatCfg& c, auto, auto, double, int, uint64_t, int n) { return Grid{cdiv(n, c.B)}; });
Register r7("vmc", [](Env& e) {
  auto c = flat(e, {128, 4}, {64, 1});
  const int n = e.big ? 1 << 18 : 500, steps = e.big ? 100 : 60;
  auto sums = constant<double>(e, 2, 0);
  auto accepted = constant<uint32_t>(e, 1, 0);
  Job j;
  restore(e, j, sums, accepted);
  j.inTurn = true;
  j.add(helium, c, sums.p, accepted.p, .15, steps, uint64_t(5), n);
  j.check = [=] {
    const double mean = sums.now()[0] / n / steps, rate = double(accepted.now()[0]) / n / steps;
    char t[99];
    std::snprintf(t, sizeof t, "energy %g, rate %g", mean, rate);
    return std::abs(mean + 2.9) < .15 && rate > .4 && rate < .9 ? "" : std::string(t);
  };
  return j;
});

// --- backgrounds of a video: K Gaussians a pixel kept in order of weight, swapped up when they gain
struct PixelCfg {
  int B = 512, K = 3, warps = 4;
};
auto mog = kernel("user_mog", [](const PixelCfg& c, Ptr<const uint8_t> frame, Ptr<uint8_t> mask, Ptr<float> weight,
                                 Ptr<float> mean, Ptr<float> var, F32 rate, I32 n) {
             num_warps(c.warps);
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto in = i < n;
             std::array<Tile, 3> x;
             for (int k = 0; k < 3; ++k) x[k] = cast(load(frame + 3 * i + k, {.mask = in}), f32);
             struct Mode {
               Tile w, v;
               std::array<Tile, 3> m;
             };
             std::vector<Mode> modes(c.K);
             for (int k = 0; k < c.K; ++k) {
               modes[k].w = load(weight + k * n + i, {.mask = in}),
               modes[k].v = load(var + k * n + i, {.mask = in, .other = 1});
               for (int d = 0; d < 3; ++d) modes[k].m[d] = load(mean + (k * 3 + d) * n + i, {.mask = in});
             }
             auto never = (i < 0);
             Tile found = never, behind = never, total = zeros({c.B}, f32);
             for (int k = 0; k < c.K; ++k) {
               Tile d2 = zeros({c.B}, f32);
               for (int d = 0; d < 3; ++d) d2 += (x[d] - modes[k].m[d]) * (x[d] - modes[k].m[d]);
               auto fits = ~found & (d2 < 9.f * modes[k].v) & (modes[k].w > 0.f);
               behind = behind | (fits & (total < .7f));
               total += modes[k].w;
               modes[k].w = modes[k].w * (1.f - rate) + where(fits, rate, 0.f);
               auto r = where(fits, rate / max(modes[k].w, 1e-6f), 0.f);
               for (int d = 0; d < 3; ++d) modes[k].m[d] += r * (x[d] - modes[k].m[d]);
               modes[k].v = clamp(modes[k].v + r * (d2 - modes[k].v), 4.f, 75.f);
               found = found | fits;
             }
             auto& last = modes.back();
             last.w = where(found, last.w, rate), last.v = where(found, last.v, 15.f);
             for (int d = 0; d < 3; ++d) last.m[d] = where(found, last.m[d], x[d]);
             for (int k = c.K - 1; k > 0; --k) {  // one pass of bubbles
               auto up = modes[k].w > modes[k - 1].w;
               auto swap = [&](Tile& a, Tile& b) {
                 Tile t = a;
                 a = where(up, b, a), b = where(up, t, b);
               };
               swap(modes[k].w, modes[k - 1].w), swap(modes[k].v, modes[k - 1].v);
               for (int d = 0; d < 3; ++d) swap(modes[k].m[d], modes[k - 1].m[d]);
             }
             for (int k = 0; k < c.K; ++k) {
               store(weight + k * n + i, modes[k].w, {.mask = in}), store(var + k * n + i, modes[k].v, {.mask = in});
               for (int d = 0; d < 3; ++d) store(mean + (k * 3 + d) * n + i, modes[k].m[d], {.mask = in});
             }
             store(mask + i, cast(where(behind, 0, 255), u8), {.mask = in});
           }).grid([](const PixelCfg& c, auto, auto, auto, auto, auto, float, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("mog", [](Env& e) {
  PixelCfg c;
  if (!e.big) c = {64, 4, 1};
  c.B = e.field("B", c.B), c.K = e.field("K", c.K), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1920 * 1080 : 211, K = c.K, frames = e.big ? 1 : 4;
  auto weight = constant<float>(e, size_t(K) * n, 0), mean = constant<float>(e, size_t(3) * K * n, 0),
       var = constant<float>(e, size_t(K) * n, 15);
  std::vector<Array<uint8_t>> f;
  for (int t = 0; t < frames; ++t)
    f.push_back(
        drawn<uint8_t>(e, size_t(n) * 3, [&] { return uint8_t(100 + 40 * int(e.uniform() * 2.2) + e.uniform() * 4); }));
  auto mask = constant<uint8_t>(e, n, 9);
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * n * (4 + 40 * K);
  for (int t = 0; t < frames; ++t) j.add(mog, c, f[t].p, mask.p, weight.p, mean.p, var.p, .05f, n);
  j.check = [=] {
    std::vector<double> w(K * n), m(3 * K * n), v(K * n, 15), out(n);
    for (auto& fr : f)
      for (int i = 0; i < n; ++i) {
        bool found = false, behind = false;
        double total = 0, a = .05f, x[3] = {fr[3 * i], fr[3 * i + 1], fr[3 * i + 2]};
        for (int k = 0; k < K; ++k) {
          double d2 = 0;
          for (int d = 0; d < 3; ++d) d2 += std::pow(x[d] - m[(k * 3 + d) * n + i], 2);
          double &W = w[k * n + i], &V = v[k * n + i];
          const bool fits = !found && d2 < 9 * V && W > 0;
          behind |= fits && total < .7;
          total += W, W = W * (1 - a) + (fits ? a : 0);
          const double r = fits ? a / std::max(W, 1e-6) : 0;
          for (int d = 0; d < 3; ++d) m[(k * 3 + d) * n + i] += r * (x[d] - m[(k * 3 + d) * n + i]);
          V = std::clamp(V + r * (d2 - V), 4., 75.), found |= fits;
        }
        if (!found) {
          w[(K - 1) * n + i] = a, v[(K - 1) * n + i] = 15;
          for (int d = 0; d < 3; ++d) m[((K - 1) * 3 + d) * n + i] = x[d];
        }
        for (int k = K - 1; k > 0; --k)
          if (float(w[k * n + i]) > float(w[(k - 1) * n + i])) {
            std::swap(w[k * n + i], w[(k - 1) * n + i]), std::swap(v[k * n + i], v[(k - 1) * n + i]);
            for (int d = 0; d < 3; ++d) std::swap(m[(k * 3 + d) * n + i], m[((k - 1) * 3 + d) * n + i]);
          }
        out[i] = behind ? 0 : 255;
      }
    auto a = agree(weight.now(), w, 1e-4, 1e-4);
    auto g = mask.now();
    return a.empty() ? agree(std::vector<double>(g.begin(), g.end()), out, .5, 0) : a;
  };
  return j;
});

}  // namespace quantised_and_numeric
}  // namespace users
