// antennas.cpp - what arrays of antennas compute: channels from samples of 8 bits, products of all pairs of antennas;
// and vectors of Krylov methods, whose sums the next step needs at once.
#include "tests/users/use.h"
namespace users {
namespace antennas {

// --- a polyphase filter bank of 48 channels: eight taps a channel, then a transform of 3 x 16 points
struct BankCfg {
  int F = 16, warps = 4;
};
constexpr int kChannels = 48, kTaps = 8;
struct Complex {
  Tile re, im;
};
Complex operator*(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }

auto channelizer =
    kernel("user_channelizer", [](const BankCfg& c, Tensor<const int8_t, 3> samples, Tensor<const float, 2> taps,
                                  Tensor<const float, 3> wave16, Tensor<const float, 3> twist, Tensor<float, 4> out) {
      // samples [frames + 7, 48, 2]; taps [8, 48]; wave16 [2, 16, 16], twist [2, 3, 16] cosines, sines; out [48,
      // frames, 1, 2]
      num_warps(c.warps);
      const int F = c.F;
      auto frame = program_id(0) * F;
      Complex x{zeros({F, 3, 16}, f32), zeros({F, 3, 16}, f32)};
      for (auto tap : range(kTaps)) {
        auto h = reshape(taps.load({tap, 0}, {1, kChannels}), {1, 16, 3});
        auto [re, im] = split(samples.load({frame + tap, 0, 0}, {F, kChannels, 2}));
        auto weighed = [&](const Tile& s) { return permute(cast(reshape(s, {F, 16, 3}), f32) * h, {0, 2, 1}); };
        x.re += weighed(re), x.im += weighed(im);
      }
      // Sample 3 a + b, channel p + 16 q: sixteen points over a, a turn by p b, three points over b.
      auto table = [](const Tensor<const float, 3>& t, int part, int rows) {
        return reshape(t.load({part, 0, 0}, {1, rows, 16}), {rows, 16});
      };
      Complex w{table(wave16, 0, 16), table(wave16, 1, 16)};
      auto flat = [&](const Tile& v) { return reshape(v, {3 * F, 16}); };
      auto re = flat(x.re), im = flat(x.im);
      auto back = [&](const Tile& v) { return reshape(v, {F, 3, 16}); };
      Complex y{back(dot(re, w.re, Prec::tf32x3) - dot(im, w.im, Prec::tf32x3)),
                back(dot(re, w.im, Prec::tf32x3) + dot(im, w.re, Prec::tf32x3))};
      y = y * Complex{expand_dims(table(twist, 0, 3), 0), expand_dims(table(twist, 1, 3), 0)};
      auto part = [&](int b) {
        return Complex{extract(y.re, {0, b, 0}, {F, 1, 16}), extract(y.im, {0, b, 0}, {F, 1, 16})};
      };
      for (int q = 0; q < 3; ++q) {
        Complex sum = part(0);
        for (int b = 1; b < 3; ++b) {
          const double angle = -2 * M_PI * q * b / 3;
          const float cs = float(std::cos(angle)), sn = float(std::sin(angle));
          auto v = part(b);
          sum = sum + Complex{v.re * cs - v.im * sn, v.re * sn + v.im * cs};
        }
        auto turned = [&](const Tile& v) { return trans(reshape(v, {F, 16})); };
        out.store({16 * q, frame, 0, 0}, reshape(join(turned(sum.re), turned(sum.im)), {16, F, 1, 2}));
      }
    }).grid([](const BankCfg& c, const auto&, const auto&, const auto&, const auto&, const auto& out) {
      return Grid{cdiv(out.shape[1], c.F)};
    });
Register r1("channelizer", [](Env& e) {
  const int F = e.big ? 1 << 20 : 37, rows = F + kTaps - 1;
  auto samples = integers<int8_t>(e, size_t(rows) * 96, -128, 128);
  auto taps = random<float>(e, kTaps * kChannels);
  auto angle = [](double turns, size_t part) {
    return float(part ? -std::sin(2 * M_PI * turns) : std::cos(2 * M_PI * turns));
  };
  auto wave = filled<float>(e, 512, [&](size_t i) { return angle(double(i / 16 % 16 * (i % 16)) / 16, i / 256); });
  auto twist = filled<float>(e, 96, [&](size_t i) { return angle(double(i / 16 % 3 * (i % 16)) / 48, i / 48); });
  auto out = constant<float>(e, size_t(F) * 96, NAN);
  Job j;
  j.mbytes = 1e-6 * F * (96 + 384.);
  j.add(channelizer, BankCfg{e.field("F", e.big ? 32 : 16), e.field("warps", 4)}, samples.view(rows, 48, 2),
        taps.view(8, 48), wave.view(2, 16, 16), twist.view(2, 3, 16), out.view(48, F, 1, 2));
  j.check = [=] {
    std::vector<double> want(F * 96);
    for (int f = 0; f < F; ++f)
      for (int m = 0; m < 48; ++m) {
        double re = 0, im = 0;
        for (int t = 0; t < kTaps; ++t)
          re += taps[t * 48 + m] * samples[((f + t) * 48 + m) * 2],
              im += taps[t * 48 + m] * samples[((f + t) * 48 + m) * 2 + 1];
        for (int k = 0; k < 48; ++k) {
          const double a = -2 * M_PI * m * k / 48;
          want[(size_t(k) * F + f) * 2] += re * std::cos(a) - im * std::sin(a);
          want[(size_t(k) * F + f) * 2 + 1] += re * std::sin(a) + im * std::cos(a);
        }
      }
    return agree(out.now(), want, 2e-2, 1e-5);
  };
  return j;
});

// --- correlation of all pairs of antennas, exact: sums over time of a conj(b), samples of 8 + 8 bits
struct PairCfg {
  int B = 64, BT = 64, warps = 4, stages = 3;
};
auto visibilities =
    kernel("user_visibilities", [](const PairCfg& c, Tensor<const int8_t, 4> s, Tensor<int32_t, 4> out) {
      // s [channels, antennas, 2, time]; out [channels, 2, antennas, antennas], half of it
      num_warps(c.warps);
      auto channel = program_id(1), tile = program_id(0);
      Tile row = cast((sqrt(cast(8 * tile + 1, f32)) - 1.f) * 0.5f, i32);
      row = where(row * (row + 1) / 2 > tile, row - 1, row);
      row = where((row + 1) * (row + 2) / 2 <= tile, row + 1, row);
      auto a = row * c.B, b = (tile - row * (row + 1) / 2) * c.B;
      Tile real = zeros({c.B, c.B}, i32), positive = zeros_like(real), negative = zeros_like(real);
      for (auto t : range(0, s.dim(3), c.BT, {.stages = c.stages})) {
        auto at = [&](const Tile& antenna, int part) {
          return reshape(s.load({channel, antenna, part, t}, {1, c.B, 1, c.BT}), {c.B, c.BT});
        };
        auto ar = at(a, 0), ai = at(a, 1), br = trans(at(b, 0)), bi = trans(at(b, 1));
        real = dot(ar, br, dot(ai, bi, real));
        positive = dot(ai, br, positive), negative = dot(ar, bi, negative);
      }
      out.store({channel, 0, a, b}, real);
      out.store({channel, 1, a, b}, positive - negative);
    }).grid([](const PairCfg& c, const auto& s, const auto&) {
      const int64_t n = cdiv(s.shape[1], c.B);
      return Grid{n * (n + 1) / 2, s.shape[0]};
    });
Register r2("visibilities", [](Env& e) {
  const int C = e.big ? 64 : 2, T = e.big ? 4096 : 80, A = e.big ? 512 : 48;
  auto s = integers<int8_t>(e, size_t(C) * T * A * 2, -128, 128);
  auto out = filled<int32_t>(e, size_t(C) * 2 * A * A, [](size_t) { return 77; });
  Job j;
  j.gflop = 1e-9 * C * 4. * A * A * T;
  const PairCfg c{e.field("B", e.big ? 64 : 16), e.field("BT", e.big ? 128 : 32), e.field("warps", 4),
                  e.field("stages", 3)};
  j.add(visibilities, c, s.view(C, A, 2, T), out.view(C, 2, A, A));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int k = 0; k < C; ++k)
      for (int a = 0; a < A; ++a)
        for (int b = 0; b < A; ++b) {
          int64_t re = 0, im = 0;
          for (int t = 0; t < T; ++t) {
            auto x = [&](int antenna, int part) { return s.at(((size_t(k) * A + antenna) * 2 + part) * T + t); };
            re += x(a, 0) * x(b, 0) + x(a, 1) * x(b, 1), im += x(a, 1) * x(b, 0) - x(a, 0) * x(b, 1);
          }
          const bool there = a / c.B >= b / c.B;
          const size_t at = (size_t(k) * 2 * A + a) * A + b;
          if (got[at] != (there ? re : 77) || got[at + size_t(A) * A] != (there ? im : 77))
            return "pair " + std::to_string(a) + " " + std::to_string(b);
        }
    return "";
  };
  return j;
});

// --- GMRES: a vector orthogonalised against up to 32 others, twice; coefficients and the norm in f64
struct BasisCfg {
  int B = 256, K = 30, warps = 4;
};
auto project = kernel("user_basis_project", [](const BasisCfg& c, Tensor<const double, 2> V, Tensor<double, 1> w,
                                               Ptr<const double> before, Ptr<double> after, Ptr<double> norm) {
                 // w -= V^T before; after += V w, norm += w.w
                 num_warps(c.warps);
                 auto k = arange(0, c.K);
                 auto known = k < V.dim(0);
                 Tile sums = zeros({c.K, c.B}, f64), squares = zeros({c.B}, f64);
                 for (auto i : range(program_id(0) * c.B, w.dim(0), num_programs(0) * c.B)) {
                   auto v = V.load({0, i}, {c.K, c.B});
                   Tile x = w.load({i}, {c.B});
                   auto h = load(before + k, {.mask = known}).col();
                   x -= squeeze(sum(v * h, axis(0)), 0);
                   w.store({i}, x);
                   sums += v * x.row();
                   squares += x * x;
                 }
                 atomic_add(after + k, squeeze(sum(sums, axis(1)), 1), {.mask = known, .order = Order::relaxed});
                 atomic_add(norm, sum(squares), {.order = Order::relaxed});
               }).grid([](const BasisCfg& c, const auto&, const auto& w, const auto&...) {
  return Grid{std::min<int64_t>(cdiv(w.shape[0], c.B), 528)};
});
Register r3("gmres_step", [](Env& e) {
  const int n = e.big ? 1 << 21 : 1009, K = e.big ? 30 : 7;
  auto V = random<double>(e, size_t(K) * n), w = random<double>(e, n);
  auto h0 = filled<double>(e, K, [](size_t) { return 0.; }), h1 = filled<double>(e, K, [](size_t) { return 0.; });
  auto h2 = filled<double>(e, K, [](size_t) { return 0.; }), norms = filled<double>(e, 3, [](size_t) { return 0.; });
  const BasisCfg c{e.field("B", e.big ? 128 : 32), e.big ? K : 11, e.field("warps", e.big ? 4 : 2)};
  Job j;
  restore(e, j, w, h1, h2, norms);
  j.mbytes = 8e-6 * n * (3. * K + 6);
  j.add(project, c, V.view(K, n), w.view(n), h0.p, h1.p, norms.p);
  j.add(project, c, V.view(K, n), w.view(n), h1.p, h2.p, norms.p + 1);
  j.check = [=] {
    std::vector<double> x(n), want;
    for (int i = 0; i < n; ++i) x[i] = w[i];
    std::vector<double> h(K), g(K), norm(2);
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < n; ++i) h[k] += V[size_t(k) * n + i] * x[i];
    for (int i = 0; i < n; ++i) norm[0] += x[i] * x[i];
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < n; ++i) x[i] -= V[size_t(k) * n + i] * h[k];
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < n; ++i) g[k] += V[size_t(k) * n + i] * x[i];
    for (int i = 0; i < n; ++i) norm[1] += x[i] * x[i];
    for (const std::string& wrong : {agree(w.now(), x, 1e-8, 1e-11), agree(h1.now(), h, 1e-8, 1e-11),
                                     agree(h2.now(), g, 1e-5, 1e-10), agree(norms.now(), norm, 1e-6, 1e-10)})
      if (!wrong.empty()) return wrong;
    return std::string();
  };
  return j;
});

}  // namespace antennas
}  // namespace users
