// dynamics.cpp - states over time: linear recurrent units, spiking neurons, a network as a differential equation.
#include "tests/users/use.h"
namespace users {
namespace dynamics {

// --- linear recurrent units (LRU): complex states h_t = l h_(t - 1) + g x_t as a scan of four real tiles
struct LruCfg {
  int T = 64, D = 32, warps = 4;
};
auto lru = kernel("user_lru", [](const LruCfg& c, Tensor<const float, 3> X, Ptr<const float> decay,
                                 Ptr<const float> angle, Tensor<float, 4> H) {
             // X [B, T, D], H [B, T, D, 2]
             num_warps(c.warps);
             auto b = program_id(1), d0 = program_id(0) * c.D, d = d0 + arange(0, c.D);
             auto in = d < X.dim(2);
             auto nu = exp(-exp(load(decay + d, {.mask = in}))), theta = exp(load(angle + d, {.mask = in}));
             auto gain = sqrt(1 - nu * nu);
             auto wide = [&](const Tile& x) { return broadcast_to(x.row(), {c.T, c.D}); };
             auto lr = wide(nu * cos(theta)), li = wide(nu * sin(theta));
             Tile hr = zeros({1, c.D}, f32), hi = zeros({1, c.D}, f32);
             for (auto t : range(0, X.dim(1), c.T)) {
               auto x = squeeze(X.load({b, t, d0}, {1, c.T, c.D}), 0) * gain.row();
               auto [ar, ai, sr, si] = scan({lr, li, x, zeros({c.T, c.D}, f32)}, axis(0),
                                            [](Tile ar, Tile ai, Tile sr, Tile si, Tile br, Tile bi, Tile tr, Tile ti) {
                                              return std::tuple(ar * br - ai * bi, ar * bi + ai * br,
                                                                tr + br * sr - bi * si, ti + br * si + bi * sr);
                                            });
               auto yr = sr + ar * hr - ai * hi, yi = si + ar * hi + ai * hr;
               H.store({b, t, d0, 0}, expand_dims(join(yr, yi), 0));
               hr = extract(yr, {c.T - 1, 0}, {1, c.D}), hi = extract(yi, {c.T - 1, 0}, {1, c.D});
             }
           }).grid([](const LruCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[2], c.D), x.shape[0]};
});
Register r4("lru", [](Env& e) {
  LruCfg c;
  if (!e.big) c = {16, 8, 1};
  c.T = e.field("T", c.T), c.D = e.field("D", c.D), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, T = e.big ? 4096 : 37, D = e.big ? 1024 : 11;
  auto x = random<float>(e, size_t(B) * T * D), decay = random<float>(e, D, -3, 0), angle = random<float>(e, D, -2, 1);
  auto h = constant<float>(e, 2 * x.n, NAN);
  Job j;
  j.mbytes = 12e-6 * x.n;
  j.add(lru, c, x.view(B, T, D), decay.p, angle.p, h.view(B, T, D, 2));
  j.check = [=] {
    std::vector<double> want(h.n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < D; ++d) {
        const double nu = std::exp(-std::exp(decay[d])), a = std::exp(angle[d]), g = std::sqrt(1 - nu * nu);
        double hr = 0, hi = 0;
        for (int t = 0; t < T; ++t) {
          const size_t i = (size_t(b) * T + t) * D + d;
          const double r = nu * (std::cos(a) * hr - std::sin(a) * hi) + g * x[i];
          hi = nu * (std::cos(a) * hi + std::sin(a) * hr), hr = r;
          want[2 * i] = hr, want[2 * i + 1] = hi;
        }
      }
    return agree(h.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- spiking neurons: leaky integrators over time, spikes as bits of words, 32 steps each; back through time with a
// triangle for the derivative of a step
struct SpikeCfg {
  int B = 256;
};
auto spikes_forward =
    kernel("user_spikes_forward", [](const SpikeCfg& c, Tensor<const half, 2> X, Tensor<uint32_t, 2> words,
                                     Tensor<half, 2> potentials, F32 leak) {
      auto n = program_id(0) * c.B;
      Tile v = zeros({c.B}, f32);
      for (auto t : range(0, X.dim(0), 32)) {
        Tile word = zeros({c.B}, u32);
        for (auto s : range(min(X.dim(0) - t, 32))) {
          v = v * leak + cast(X.load({t + s, n}, {c.B}), f32);
          potentials.store({t + s, n}, cast(v, f16));
          auto fires = v >= 1.f;
          word |= cast(fires, u32) << cast(s, u32);
          v = where(fires, 0.f, v);
        }
        words.store({t / 32, n}, word);
      }
    }).grid([](const SpikeCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.B)}; });
auto spikes_backward =
    kernel("user_spikes_backward", [](const SpikeCfg& c, Tensor<const half, 2> dY, Tensor<const half, 2> potentials,
                                      Tensor<half, 2> dX, F32 leak) {
      auto n = program_id(0) * c.B, T = dY.dim(0);
      Tile g = zeros({c.B}, f32);
      for (auto i : range(T)) {
        auto t = T - 1 - i;
        auto v = cast(potentials.load({t, n}, {c.B}), f32);
        auto surrogate = max(0.f, 1.f - abs(v - 1.f));
        // v' = (1 - spike) v: the gradient that comes from the next step passes where there was none.
        g = cast(dY.load({t, n}, {c.B}), f32) * surrogate + where(v >= 1.f, 0.f, g * leak);
        dX.store({t, n}, cast(g, f16));
      }
    }).grid([](const SpikeCfg& c, const auto& dy, const auto&...) { return Grid{cdiv(dy.shape[1], c.B)}; });
Register r5("spikes", [](Env& e) {
  SpikeCfg c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int T = e.big ? 512 : 45, N = e.big ? 1 << 17 : 70, W = cdiv(T, 32);
  auto x = random<half>(e, size_t(T) * N, -.2, .9), dy = random<half>(e, x.n);
  auto words = constant<uint32_t>(e, size_t(W) * N, 0);
  auto v = constant<half>(e, x.n, NAN), dx = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 10e-6 * x.n;
  j.inTurn = true;
  j.add(spikes_forward, c, x.view(T, N), words.view(W, N), v.view(T, N), .9f);
  j.add(spikes_backward, c, dy.view(T, N), v.view(T, N), dx.view(T, N), .9f);
  j.check = [=]() -> std::string {
    const auto got = words.now();
    const auto pots = v.now();
    std::vector<double> want(x.n), back(x.n);
    for (int n = 0; n < N; ++n) {
      double u = 0;
      for (int t = 0; t < T; ++t) {
        u = u * .9f + x[size_t(t) * N + n];
        want[size_t(t) * N + n] = u;
        const bool fires = got[size_t(t / 32) * N + n] >> t % 32 & 1;
        if (fires != (u >= 1) && std::abs(u - 1) > 1e-3) return "spike " + std::to_string(t);
        if (fires) u = 0;
      }
      double g = 0;
      for (int t = T; t--;) {
        const double p = float(pots[size_t(t) * N + n]);
        g = dy[size_t(t) * N + n] * std::max(0.0, 1 - std::abs(p - 1)) + (p >= 1 ? 0 : g * .9f);
        back[size_t(t) * N + n] = g;
      }
    }
    if (auto wrong = agree(pots, want, 2e-3, 2e-3); !wrong.empty()) return "potentials: " + wrong;
    return agree(dx.now(), back, 2e-3, 2e-3);
  };
  return j;
});

// --- a network as a differential equation: Runge and Kutta's four stages of tanh(h A + t a) B, many steps while the
// weights stay on chip
struct OdeCfg {
  int B = 64, D = 64, E = 128, warps = 4;
};
auto neural_ode =
    kernel("user_neural_ode", [](const OdeCfg& c, Tensor<const half, 2> H0, Tensor<const half, 2> A, Ptr<const float> a,
                                 Tensor<const half, 2> B, Tensor<half, 2> H, I32 steps, F32 length) {
      num_warps(c.warps);
      auto n = program_id(0) * c.B;
      auto w1 = A.load({0, 0}, {c.D, c.E}), w2 = B.load({0, 0}, {c.E, c.D});
      auto time = load(a + arange(0, c.E)).row();
      auto f = [&](const Tile& h, const Tile& t) { return dot(cast(tanh(dot(cast(h, f16), w1) + time * t), f16), w2); };
      Tile h = cast(H0.load({n, 0}, {c.B, c.D}), f32);
      auto dt = length / cast(steps, f32);
      Tile k = zeros({c.B, c.D}, f32), all = k;
      for (auto i : range(4 * steps)) {  // a stage an iteration: four of them side by side would want more registers
        auto stage = i % 4;
        auto ahead = where(stage == 0, 0.f, where(stage == 3, dt, dt / 2));
        k = f(h + k * ahead, cast(i / 4, f32) * dt + ahead);
        all += k * where((stage == 0) | (stage == 3), 1.f, 2.f);
        if_(stage == 3, [&] { h += all * (dt / 6), all = zeros({c.B, c.D}, f32); });
      }
      H.store({n, 0}, cast(h, f16));
    }).grid([](const OdeCfg& c, const auto& h, const auto&...) { return Grid{cdiv(h.shape[0], c.B)}; });
Register r6("neural_ode", [](Env& e) {
  OdeCfg c;
  if (!e.big) c = {16, 16, 32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 15 : 21, D = c.D, E = c.E, steps = e.big ? 100 : 3;
  auto h0 = random<half>(e, size_t(N) * D), w1 = random<half>(e, D * E, -.2, .2), w2 = random<half>(e, E * D, -.2, .2);
  auto a = random<float>(e, E);
  auto h = constant<half>(e, h0.n, NAN);
  Job j;
  j.gflop = 16e-9 * N * double(D) * E * steps;
  j.add(neural_ode, c, h0.view(N, D), w1.view(D, E), a.p, w2.view(E, D), h.view(N, D), steps, 1.f);
  j.check = [=] {
    std::vector<double> want(h.n);
    for (int n = 0; n < N; ++n) {
      std::vector<double> x(D);
      for (int d = 0; d < D; ++d) x[d] = h0[size_t(n) * D + d];
      auto f = [&](const std::vector<double>& in, double t) {
        std::vector<double> out(D);
        for (int k = 0; k < E; ++k) {
          double z = a[k] * t;
          for (int d = 0; d < D; ++d) z += in[d] * w1[d * E + k];
          for (int d = 0; d < D; ++d) out[d] += std::tanh(z) * w2[k * D + d];
        }
        return out;
      };
      auto moved = [&](const std::vector<double>& by, double s) {
        auto y = x;
        for (int d = 0; d < D; ++d) y[d] += s * by[d];
        return y;
      };
      const double dt = 1.0 / steps;
      for (int s = 0; s < steps; ++s) {
        const auto k1 = f(x, s * dt), k2 = f(moved(k1, dt / 2), s * dt + dt / 2);
        const auto k3 = f(moved(k2, dt / 2), s * dt + dt / 2), k4 = f(moved(k3, dt), s * dt + dt);
        for (int d = 0; d < D; ++d) x[d] += (k1[d] + 2 * k2[d] + 2 * k3[d] + k4[d]) * dt / 6;
      }
      for (int d = 0; d < D; ++d) want[size_t(n) * D + d] = x[d];
    }
    return agree(h.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace dynamics
}  // namespace users
