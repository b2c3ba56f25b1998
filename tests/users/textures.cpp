// textures.cpp - colours and texture: differences of colours, an edge-keeping filter, local patterns, oriented
// gradients, a threshold.
#include "tests/users/use.h"
namespace users {
namespace textures {

// --- CIEDE2000 between two images of interleaved bytes
struct DeltaCfg {
  int B = 512, warps = 4;
};
auto delta_e =
    kernel("user_delta_e", [](const DeltaCfg& c, Tensor<const uint8_t, 1> P, Tensor<const uint8_t, 1> Q,
                              Tensor<float, 1> D) {
      num_warps(c.warps);
      auto at = program_id(0) * c.B;
      auto linear = [](const Tile& s) { return where(s <= 0.04045f, s / 12.92f, pow((s + 0.055f) / 1.055f, 2.4f)); };
      auto f = [](const Tile& t) { return where(t > 0.008856452f, cbrt(t), t * 7.787037f + 16.f / 116); };
      auto lab = [&](Tensor<const uint8_t, 1> image) {
        Tile x = reshape(cast(image.load({at * 3}, {3 * c.B}), f32) / 255.f, {c.B, 3});
        x = linear(x);
        auto one = [&](int k) { return squeeze(extract(x, {0, k}, {c.B, 1}), 1); };
        auto r = one(0), g = one(1), b = one(2);
        auto X = f((r * 0.4124564f + g * 0.3575761f + b * 0.1804375f) / 0.95047f);
        auto Y = f(r * 0.2126729f + g * 0.7151522f + b * 0.0721750f);
        auto Z = f((r * 0.0193339f + g * 0.1191920f + b * 0.9503041f) / 1.08883f);
        return std::array<Tile, 3>{Y * 116.f - 16.f, (X - Y) * 500.f, (Y - Z) * 200.f};
      };
      auto [L1, a1, b1] = lab(P);
      auto [L2, a2, b2] = lab(Q);
      auto seventh = [](const Tile& x) {
        auto x2 = x * x, x4 = x2 * x2;
        auto x7 = x4 * x2 * x;
        return sqrt(x7 / (x7 + 6103515625.f));
      };
      auto mean = (sqrt(a1 * a1 + b1 * b1) + sqrt(a2 * a2 + b2 * b2)) * 0.5f;
      auto G = (1.f - seventh(mean)) * 0.5f + 1.f;
      auto A1 = a1 * G, A2 = a2 * G;
      auto C1 = sqrt(A1 * A1 + b1 * b1), C2 = sqrt(A2 * A2 + b2 * b2);
      const float pi = 3.14159265358979f;
      auto hue = [&](const Tile& b, const Tile& a) {
        auto h = atan2(b, a);
        return where((a == 0.f) & (b == 0.f), 0.f, where(h < 0.f, h + 2 * pi, h));
      };
      auto h1 = hue(b1, A1), h2 = hue(b2, A2);
      auto grey = C1 * C2 == 0.f;
      auto d = h2 - h1;
      d = where(grey, 0.f, where(d > pi, d - 2 * pi, where(d < -pi, d + 2 * pi, d)));
      auto dL = L2 - L1, dC = C2 - C1, dH = sqrt(C1 * C2) * sin(d * 0.5f) * 2.f;
      auto Lm = (L1 + L2) * 0.5f, Cm = (C1 + C2) * 0.5f, s = h1 + h2;
      auto hm = where(grey, s, where(abs(h1 - h2) <= pi, s * 0.5f, where(s < 2 * pi, s * 0.5f + pi, s * 0.5f - pi)));
      auto T = 1.f - cos(hm - pi / 6) * 0.17f + cos(hm * 2.f) * 0.24f + cos(hm * 3.f + pi / 30) * 0.32f -
               cos(hm * 4.f - 63 * pi / 180) * 0.2f;
      auto turn = (hm * (180 / pi) - 275.f) / 25.f;
      auto theta = exp(-turn * turn) * (pi / 6);
      auto l = (Lm - 50.f) * (Lm - 50.f);
      auto SL = l * 0.015f / sqrt(l + 20.f) + 1.f, SC = Cm * 0.045f + 1.f, SH = Cm * T * 0.015f + 1.f;
      auto RT = -sin(theta * 2.f) * seventh(Cm) * 2.f;
      auto u = dL / SL, v = dC / SC, w = dH / SH;
      D.store({at}, sqrt(max(u * u + v * v + w * w + RT * v * w, 0.f)));
    }).grid([](const DeltaCfg& c, const auto&, const auto&, const auto& d) { return Grid{cdiv(d.shape[0], c.B)}; });
double delta_e_of(const double* p, const double* q) {
  const double pi = M_PI;
  double lab[2][3];
  for (int k = 0; k < 2; ++k) {
    double rgb[3];
    for (int i = 0; i < 3; ++i) {
      const double s = (k ? q : p)[i] / 255;
      rgb[i] = s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
    }
    auto f = [](double t) { return t > 0.008856452 ? std::cbrt(t) : t * 7.787037 + 16. / 116; };
    const double X = f((rgb[0] * 0.4124564 + rgb[1] * 0.3575761 + rgb[2] * 0.1804375) / 0.95047);
    const double Y = f(rgb[0] * 0.2126729 + rgb[1] * 0.7151522 + rgb[2] * 0.0721750);
    const double Z = f((rgb[0] * 0.0193339 + rgb[1] * 0.1191920 + rgb[2] * 0.9503041) / 1.08883);
    lab[k][0] = 116 * Y - 16, lab[k][1] = 500 * (X - Y), lab[k][2] = 200 * (Y - Z);
  }
  auto seventh = [](double x) { return std::sqrt(std::pow(x, 7) / (std::pow(x, 7) + std::pow(25., 7))); };
  const double mean = (std::hypot(lab[0][1], lab[0][2]) + std::hypot(lab[1][1], lab[1][2])) / 2;
  const double G = 1 + (1 - seventh(mean)) / 2;
  const double A1 = lab[0][1] * G, A2 = lab[1][1] * G, b1 = lab[0][2], b2 = lab[1][2];
  const double C1 = std::hypot(A1, b1), C2 = std::hypot(A2, b2);
  auto hue = [&](double b, double a) {
    const double h = std::atan2(b, a);
    return h < 0 ? h + 2 * pi : h;
  };
  const double h1 = hue(b1, A1), h2 = hue(b2, A2);
  double d = h2 - h1;
  d = d > pi ? d - 2 * pi : d < -pi ? d + 2 * pi : d;
  const double dL = lab[1][0] - lab[0][0], dC = C2 - C1, dH = 2 * std::sqrt(C1 * C2) * std::sin(d / 2);
  const double Lm = (lab[0][0] + lab[1][0]) / 2, Cm = (C1 + C2) / 2, s = h1 + h2;
  const double hm = std::abs(h1 - h2) <= pi ? s / 2 : s < 2 * pi ? s / 2 + pi : s / 2 - pi;
  const double T = 1 - .17 * std::cos(hm - pi / 6) + .24 * std::cos(2 * hm) + .32 * std::cos(3 * hm + pi / 30) -
                   .2 * std::cos(4 * hm - 63 * pi / 180);
  const double turn = (hm * 180 / pi - 275) / 25, theta = pi / 6 * std::exp(-turn * turn), l = (Lm - 50) * (Lm - 50);
  const double u = dL / (1 + .015 * l / std::sqrt(20 + l)), v = dC / (1 + .045 * Cm), w = dH / (1 + .015 * Cm * T);
  return std::sqrt(std::max(u * u + v * v + w * w - 2 * std::sin(2 * theta) * seventh(Cm) * v * w, 0.));
}
Register r1("delta_e", [](Env& e) {
  const int n = e.big ? 3840 * 2160 : 1501;
  // Colours far from grey: hues of nearly grey ones, and hues half a turn apart, are ill-conditioned.
  auto p = drawn<uint8_t>(e, 3 * size_t(n),
                          [&, k = 0]() mutable { return uint8_t((k++ % 3 == 0 ? 150 : 20) + 60 * e.uniform()); });
  auto q = drawn<uint8_t>(e, 3 * size_t(n),
                          [&, k = 0]() mutable { return uint8_t((k++ % 3 == 1 ? 150 : 20) + 60 * e.uniform()); });
  auto d = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(delta_e, DeltaCfg{}, p.view(3 * n), q.view(3 * n), d.view(n));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      const double a[3] = {p[3 * i], p[3 * i + 1], p[3 * i + 2]}, b[3] = {q[3 * i], q[3 * i + 1], q[3 * i + 2]};
      want.push_back(delta_e_of(a, b));
    }
    return agree(d.now(), want, 2e-3, 2e-4);
  };
  return j;
});

// --- Kuwahara's filter of 5 x 5: the mean of that quarter (3 x 3) which varies least
struct KuwaharaCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto kuwahara = kernel("user_kuwahara", [](const KuwaharaCfg& c, Tensor<const float, 2> A, Tensor<float, 2> B) {
                  num_warps(c.warps);
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  Tile best = full({c.BY, c.BX}, INFINITY, f32), result = zeros({c.BY, c.BX}, f32);
                  for (int qy = -2; qy <= 0; qy += 2)
                    for (int qx = -2; qx <= 0; qx += 2) {
                      Tile s = zeros({c.BY, c.BX}, f32), t = zeros({c.BY, c.BX}, f32);
                      for (int dy = 0; dy < 3; ++dy)
                        for (int dx = 0; dx < 3; ++dx) {
                          auto v = A.load({y + (qy + dy), x + (qx + dx)}, {c.BY, c.BX});
                          s += v, t += v * v;
                        }
                      auto mean = s * (1.f / 9), variance = t * (1.f / 9) - mean * mean;
                      auto better = variance < best;
                      best = where(better, variance, best), result = where(better, mean, result);
                    }
                  B.store({y, x}, result);
                }).grid([](const KuwaharaCfg& c, const auto& a, const auto&) {
  return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
});
Register r2("kuwahara", [](Env& e) {
  const int H = e.big ? 4096 : 37, W = e.big ? 4096 : 141;
  auto a = random<float>(e, size_t(H) * W), b = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(kuwahara, KuwaharaCfg{}, a.view(H, W), b.view(H, W));
  j.check = [=] {
    auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= H || x >= W ? 0. : a[size_t(y) * W + x]; };
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double best = INFINITY, result = 0;
        for (int q = 0; q < 4; ++q) {
          double s = 0, t = 0;
          for (int k = 0; k < 9; ++k) {
            const double v = at(y - 2 + q / 2 * 2 + k / 3, x - 2 + q % 2 * 2 + k % 3);
            s += v, t += v * v;
          }
          const double variance = t / 9 - s / 9 * s / 9;
          if (variance < best - 1e-12) best = variance, result = s / 9;
        }
        want.push_back(result);
      }
    // where two quarters vary equally to the last bits, either is right
    auto got = b.now();
    int off = 0;
    for (size_t i = 0; i < want.size(); ++i)
      if (std::abs(got[i] - want[i]) > 1e-5) ++off, got[i] = float(want[i]);
    return off > 2 ? std::to_string(off) + " differ" : agree(got, want, 1e-5, 1e-5);
  };
  return j;
});

// --- local binary patterns: how often each of the 256 occurs in cells of 16 x 16
struct LbpCfg {
  int S = 16, warps = 1;
};
auto lbp = kernel("user_lbp", [](const LbpCfg& c, Tensor<const uint8_t, 2> A, Tensor<int32_t, 3> H) {
             num_warps(c.warps);
             auto cy = program_id(1), cx = program_id(0), y = cy * c.S, x = cx * c.S;
             auto middle = A.load({y, x}, {c.S, c.S});
             const int dy[8] = {-1, -1, -1, 0, 1, 1, 1, 0}, dx[8] = {-1, 0, 1, 1, 1, 0, -1, -1};
             Tile code = zeros({c.S, c.S}, i32);
             for (int k = 0; k < 8; ++k)
               code = code | cast(A.load({y + dy[k], x + dx[k]}, {c.S, c.S}) >= middle, i32) << k;
             H.store({cy, cx, 0}, reshape(histogram(ravel(code), 256), {1, 1, 256}));
           }).grid([](const LbpCfg&, const auto&, const auto& h) {
  return Grid{h.shape[1], h.shape[0]};
});
Register r3("lbp", [](Env& e) {
  const int Y = e.big ? 135 : 3, X = e.big ? 240 : 5, S = 16, H = Y * S, W = X * S;
  auto a = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto h = constant<int32_t>(e, size_t(Y) * X * 256, -1);
  Job j;
  j.mbytes = 1e-6 * H * W + 4e-6 * Y * X * 256;
  j.add(lbp, LbpCfg{}, a.view(H, W), h.view(Y, X, 256));
  j.check = [=] {
    auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= H || x >= W ? 0 : int(a.h[size_t(y) * W + x]); };
    const int dy[8] = {-1, -1, -1, 0, 1, 1, 1, 0}, dx[8] = {-1, 0, 1, 1, 1, 0, -1, -1};
    std::vector<double> want(size_t(Y) * X * 256);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        int code = 0;
        for (int k = 0; k < 8; ++k) code |= (at(y + dy[k], x + dx[k]) >= at(y, x)) << k;
        ++want[(size_t(y / S) * X + x / S) * 256 + code];
      }
    return agree(h.now(), want, .1, 0);
  };
  return j;
});

// --- histograms of oriented gradients: nine directions in cells of 8 x 8, shared between neighbouring directions
struct HogCfg {
  int cells = 16, warps = 4;
};
auto hog = kernel("user_hog", [](const HogCfg& c, Tensor<const uint8_t, 2> A, Tensor<float, 3> H) {
             num_warps(c.warps);
             auto cy = program_id(1), cx = program_id(0) * c.cells, y = cy * 8, x = cx * 8;
             const int W = c.cells * 8;
             auto at = [&](int dy, int dx) { return cast(A.load({y + dy, x + dx}, {8, W}), f32); };
             auto gx = at(0, 1) - at(0, -1), gy = at(1, 0) - at(-1, 0);
             auto size = sqrt(gx * gx + gy * gy);
             auto turn = atan2(gy, gx) * (9 / 3.14159265f);
             turn = where(turn < 0.f, turn + 9.f, turn);
             auto low = floor(turn), share = turn - low;
             auto bin = cast(low, i32) % 9, next = (bin + 1) % 9;
             Tile cells = zeros({c.cells, 9}, f32);
             for (int k = 0; k < 9; ++k) {
               auto w = where(bin == k, size * (1.f - share), 0.f) + where(next == k, size * share, 0.f);
               auto one = sum(sum(reshape(w, {8, c.cells, 8}), axis(2)), axis(0));
               cells = where(arange(0, 9).row() == k, reshape(one, {c.cells, 1}), cells);
             }
             auto norm = rsqrt(sum(cells * cells, axis(1)) + 1e-4f);
             H.store({cy, cx, 0}, reshape(cells * norm, {1, c.cells, 9}));
           }).grid([](const HogCfg& c, const auto&, const auto& h) {
  return Grid{cdiv(h.shape[1], c.cells), h.shape[0]};
});
Register r4("hog", [](Env& e) {
  const int Y = e.big ? 270 : 3, X = e.big ? 480 : 21, H = Y * 8, W = X * 8;
  auto a = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto h = constant<float>(e, size_t(Y) * X * 9, NAN);
  Job j;
  j.mbytes = 1e-6 * H * W + 4e-6 * Y * X * 9;
  j.add(hog, HogCfg{}, a.view(H, W), h.view(Y, X, 9));
  j.check = [=] {
    auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= H || x >= W ? 0. : double(a.h[size_t(y) * W + x]); };
    std::vector<double> want(size_t(Y) * X * 9);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double gx = at(y, x + 1) - at(y, x - 1), gy = at(y + 1, x) - at(y - 1, x);
        double turn = std::atan2(gy, gx) * 9 / M_PI;
        if (turn < 0) turn += 9;
        const int low = int(turn);
        double* cell = &want[(size_t(y / 8) * X + x / 8) * 9];
        cell[low % 9] += std::hypot(gx, gy) * (1 - turn + low);
        cell[(low + 1) % 9] += std::hypot(gx, gy) * (turn - low);
      }
    for (size_t i = 0; i < want.size(); i += 9) {
      double s = 1e-4;
      for (int k = 0; k < 9; ++k) s += want[i + k] * want[i + k];
      for (int k = 0; k < 9; ++k) want[i + k] /= std::sqrt(s);
    }
    return agree(h.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace textures
}  // namespace users
