// turned_samples.cpp - a transform written with reshapes, extracts and concatenations: an FFT of radix 4, there and
// back.
#include "tests/users/use.h"
namespace users {
namespace turned_samples {

// --- overlap-save: blocks of 1024 samples turned by radix 4, multiplied by a spectrum, turned back; half is kept
struct SaveCfg {
  int N = 1024;
};
std::array<Tile, 2> turn4(Tile re, Tile im, int n, float sign) {  // Stockham: n = 4^k, in order
  for (int length = 1; length < n; length *= 4) {
    const int m = n / 4;
    auto quarter = [&](const Tile& x, int q) { return extract(x, {q * m}, {m}); };
    auto k = arange(0, m) % length;
    auto angle = cast(k, f32) * (sign * 6.2831853f / float(4 * length));
    std::array<Tile, 4> r, i;
    for (int q = 0; q < 4; ++q) {
      auto c = cos(angle * float(q)), s = sin(angle * float(q));
      auto a = quarter(re, q), b = quarter(im, q);
      r[q] = a * c - b * s, i[q] = a * s + b * c;
    }
    auto pr = r[0] + r[2], pi = i[0] + i[2], mr = r[0] - r[2], mi = i[0] - i[2];
    auto qr = r[1] + r[3], qi = i[1] + i[3], dr = (i[3] - i[1]) * sign, di = (r[1] - r[3]) * sign;
    // element j of a group of `length`, part q: place group * 4 * length + q * length + j
    auto weave = [&](const Tile& a, const Tile& b, const Tile& c, const Tile& d) {
      auto rows = [&](const Tile& x) { return reshape(x, {m / length, 1, length}); };
      return reshape(cat(cat(rows(a), rows(b), 1), cat(rows(c), rows(d), 1), 1), {n});
    };
    re = weave(pr + qr, mr + dr, pr - qr, mr - dr);
    im = weave(pi + qi, mi + di, pi - qi, mi - di);
  }
  return {re, im};
}
auto save = kernel("user_overlap_save",
                   [](const SaveCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> H,
                      Tensor<float, 2> Y) {  // H [2, N]: the filter's spectrum
                     auto t = program_id(0) * (c.N / 2), s = program_id(1);
                     auto x = X.load({s, t - c.N / 2}, {c.N});
                     auto f = turn4(x, zeros({c.N}, f32), c.N, -1);
                     auto hr = H.load({0, 0}, {c.N}), hi = H.load({1, 0}, {c.N});
                     auto y = turn4(f[0] * hr - f[1] * hi, f[0] * hi + f[1] * hr, c.N, 1);
                     Y.store({s, t}, extract(y[0], {c.N / 2}, {c.N / 2}) * (1.f / float(c.N)));
                   })
                .grid([](const SaveCfg& c, const auto& x, const auto&...) {
                  return Grid{cdiv(x.shape[1], c.N / 2), x.shape[0]};
                });
Register r1("overlap_save", [](Env& e) {
  const int S = e.big ? 256 : 2, T = e.big ? 65536 : 700, N = e.big ? 1024 : 256, K = N / 2;
  auto x = random<float>(e, size_t(S) * T), h = random<float>(e, K, -.1, .1);
  auto spectrum = filled<float>(e, 2 * N, [&](size_t i) {
    double sum = 0;
    for (int k = 0; k < K; ++k) {
      const double a = -2 * M_PI * double(i % N) * k / N;
      sum += h[k] * (i < size_t(N) ? std::cos(a) : std::sin(a));
    }
    return float(sum);
  });
  auto y = constant<float>(e, size_t(S) * T, NAN);
  Job j;
  j.mbytes = 8e-6 * S * T;
  j.add(save, SaveCfg{N}, x.view(S, T), spectrum.view(2, N), y.view(S, T));
  j.check = [=] {
    std::vector<double> want(size_t(S) * T);
    for (int s = 0; s < S; ++s)
      for (int t = 0; t < T; ++t)
        for (int k = 0; k < K && k <= t; ++k) want[size_t(s) * T + t] += h[k] * x[size_t(s) * T + t - k];
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace turned_samples
}  // namespace users
