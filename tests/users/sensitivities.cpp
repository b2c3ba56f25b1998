// sensitivities.cpp - prices of options with their slopes, and means of samples drawn again and again.
#include "tests/users/use.h"
namespace users {
namespace sensitivities {

// --- prices of options after Black and Scholes, calls and puts, with delta, gamma, vega and theta
struct GreeksCfg {
  int B = 512, warps = 4;
};
auto greeks =
    kernel("user_greeks",
           [](const GreeksCfg& c, Ptr<const float> spot, Ptr<const float> strike, Ptr<const float> years,
              Ptr<float> call, Ptr<float> put, Ptr<float> delta, Ptr<float> gamma, Ptr<float> vega, Ptr<float> theta,
              I32 n, F32 rate, F32 vol) {
             num_warps(c.warps);
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto mask = i < n;
             auto S = load(spot + i, {.mask = mask, .other = 1}), K = load(strike + i, {.mask = mask, .other = 1}),
                  T = load(years + i, {.mask = mask, .other = 1});
             auto root = sqrt(T), d1 = (log(S / K) + (rate + 0.5f * vol * vol) * T) / (vol * root),
                  d2 = d1 - vol * root;
             auto now = K * exp(-rate * T), N1 = normcdf(d1), N2 = normcdf(d2);
             auto density = exp(d1 * d1 * -0.5f) * 0.3989422804f;
             auto out = [&](const Ptr<float>& p, const Tile& x) { store(p + i, x, {.mask = mask}); };
             auto price = S * N1 - now * N2;
             out(call, price), out(put, price - S + now), out(delta, N1), out(gamma, density / (S * vol * root));
             out(vega, S * density * root), out(theta, -S * density * vol / (2.f * root) - rate * now * N2);
           })
        .grid([](const GreeksCfg& c, const float*, const float*, const float*, float*, float*, float*, float*, float*,
                 float*, int n, float, float) { return Grid{cdiv(n, c.B)}; });
Register r1("greeks", [](Env& e) {
  const int n = e.big ? 1 << 24 : 1001;
  auto s = random<float>(e, n, 5, 30), k = random<float>(e, n, 5, 30), t = random<float>(e, n, .25, 10);
  std::vector<Array<float>> out;
  for (int o = 0; o < 6; ++o) out.push_back(constant<float>(e, n, NAN));
  Job j;
  j.mbytes = 36e-6 * n;
  const float r = .02f, v = .3f;
  j.add(greeks, GreeksCfg{}, s.p, k.p, t.p, out[0].p, out[1].p, out[2].p, out[3].p, out[4].p, out[5].p, n, r, v);
  j.check = [=] {
    std::vector<double> want[6];
    for (int i = 0; i < n; ++i) {
      const double root = std::sqrt(t[i]), d1 = (std::log(s[i] / k[i]) + (r + .5 * v * v) * t[i]) / (v * root);
      auto cdf = [](double x) { return .5 * std::erfc(-x / std::sqrt(2.)); };
      const double now = k[i] * std::exp(-double(r) * t[i]), d2 = d1 - v * root, N2 = cdf(d2);
      const double density = std::exp(-.5 * d1 * d1) / std::sqrt(2 * M_PI), price = s[i] * cdf(d1) - now * N2;
      const double all[6] = {price,
                             price - s[i] + now,
                             cdf(d1),
                             density / (s[i] * v * root),
                             s[i] * density * root,
                             -s[i] * density * v / (2 * root) - r * now * N2};
      for (int o = 0; o < 6; ++o) want[o].push_back(all[o]);
    }
    std::string wrong;
    for (int o = 0; o < 6 && wrong.empty(); ++o) wrong = agree(out[o].now(), want[o], 2e-5, 2e-5);
    return wrong;
  };
  return j;
});

// --- means of samples drawn with replacement, and what 2.5 and 97.5 percent of them are below
struct BootCfg {
  int B = 256, R = 1024, warps = 4;
};
auto boot_means =
    kernel("user_boot_means", [](const BootCfg& c, Ptr<const float> x, Ptr<float> means, I32 n, U64 seed) {
      num_warps(c.warps);
      auto r = program_id(0);
      Tile total = zeros({c.B}, f32);
      for (auto at : range(0, n, c.B)) {
        auto i = at + arange(0, c.B);
        auto which = cast(mulhi(randint(seed, r * n + i), cast(n, u32)), i32);
        total += load(x + which, {.mask = i < n});
      }
      store(means + r, sum(total) / cast(n, f32));
    }).grid([](const BootCfg& c, const float*, float*, int, uint64_t) { return Grid{c.R}; });
auto boot_ends = kernel("user_boot_ends", [](const BootCfg& c, Tensor<const float, 1> means, Tensor<float, 1> ends) {
                   num_warps(c.warps);
                   auto sorted = sort(means.load({0}, {c.R}), axis(0));
                   auto i = arange(0, c.R);
                   auto at = [&](int k) { return sum(where(i == k, sorted, 0.f)); };
                   ends.store({0}, reshape(at(c.R / 40), {1}));
                   ends.store({1}, reshape(at(c.R - 1 - c.R / 40), {1}));
                 }).grid([](const BootCfg&, const auto&...) { return Grid{1}; });
Register r2("boot", [](Env& e) {
  const int n = e.big ? 10000 : 301;
  BootCfg c{256, e.big ? 4096 : 120, 4};
  auto x = random<float>(e, n), means = constant<float>(e, c.R, NAN), ends = constant<float>(e, 2, NAN);
  Job j;
  j.add(boot_means, c, x.p, means.p, n, 99ull);
  j.add(boot_ends, c, means.view(c.R), ends.view(2));
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < c.R; ++r) {
      double s = 0;
      for (int i = 0; i < n; ++i) s += x[size_t(uint64_t(reference_philox(99, r * n + i)[0]) * n >> 32)];
      want.push_back(s / n);
    }
    auto wrong = agree(means.now(), want, 1e-5, 1e-5);
    if (!wrong.empty()) return wrong;
    std::sort(want.begin(), want.end());
    return agree(ends.now(), {want[c.R / 40], want[c.R - 1 - c.R / 40]}, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace sensitivities
}  // namespace users
