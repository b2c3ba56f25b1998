// simulations.cpp - n-body forces, lattice Boltzmann, Monte Carlo, a renderer, resampling, sequence alignment.
#include <algorithm>
#include <array>

#include "tests/users/use.h"

namespace users {
namespace simulations {

// --- n-body: a program moves BM bodies; all others pass by in tiles
struct BodyCfg {
  int BM = 128, BN = 64, warps = 4;
};
auto nbody = kernel("user_nbody", [](const BodyCfg& c, Tensor<const float, 2> P, Tensor<const float, 1> mass,
                                     Tensor<float, 2> A) {
               num_warps(c.warps);  // P, A [3, n]
               auto i = program_id(0) * c.BM;
               auto at = [&](int d, Tile from, int n) { return P.load({d, from}, {n}); };
               auto x = at(0, i, c.BM).col(), y = at(1, i, c.BM).col(), z = at(2, i, c.BM).col();
               Tile ax = zeros({c.BM, c.BN}, f32), ay = zeros({c.BM, c.BN}, f32), az = zeros({c.BM, c.BN}, f32);
               for (auto j : range(0, P.dim(1), c.BN)) {
                 auto dx = at(0, j, c.BN).row() - x, dy = at(1, j, c.BN).row() - y, dz = at(2, j, c.BN).row() - z;
                 auto inv = rsqrt(dx * dx + dy * dy + dz * dz + 1e-3f);
                 auto f = mass.load({j}, {c.BN}).row() * inv * inv * inv;
                 ax += f * dx, ay += f * dy, az += f * dz;
               }
               A.store({0, i}, squeeze(sum(ax, axis(1)), 1));
               A.store({1, i}, squeeze(sum(ay, axis(1)), 1));
               A.store({2, i}, squeeze(sum(az, axis(1)), 1));
             }).grid([](const BodyCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[1], c.BM)}; });
Register r1("nbody", [](Env& e) {
  int n = e.big ? 65536 : 150;
  auto p = random<float>(e, 3 * n), m = random<float>(e, n, 0, 1);
  auto a = constant<float>(e, 3 * n, NAN);
  Job j;
  j.gflop = 20e-9 * n * double(n);
  j.add(nbody, e.big ? BodyCfg{64, 64, 4} : BodyCfg{32, 32, 4}, p.view(3, n), m.view(n), a.view(3, n));
  j.check = [=] {
    std::vector<double> want(3 * n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) {
        double d[3], r = 1e-3;
        for (int x = 0; x < 3; ++x) d[x] = p[x * n + k] - p[x * n + i], r += d[x] * d[x];
        for (int x = 0; x < 3; ++x) want[x * n + i] += m[k] * d[x] / (r * std::sqrt(r));
      }
    return agree(a.now(), want, 1e-2, 1e-4);
  };
  return j;
});

// --- lattice Boltzmann, D2Q9, pull scheme with collision; the border reads as walls at rest
struct LbmCfg {
  int BY = 4, BX = 128, warps = 4;
};
constexpr int kDx[] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, kDy[] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr double kWeight[] = {4 / 9., 1 / 9., 1 / 9., 1 / 9., 1 / 9., 1 / 36., 1 / 36., 1 / 36., 1 / 36.};
auto lbm = kernel("user_lbm", [](const LbmCfg& c, Tensor<const float, 3> F, Tensor<float, 3> G, F32 omega) {
             num_warps(c.warps);  // F, G [9, Y, X]
             auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
             std::array<Tile, 9> f;
             for (int q = 0; q < 9; ++q) {
               f[q] = reshape(F.load({q, y - kDy[q], x - kDx[q]}, {1, c.BY, c.BX}, {.pad = kWeight[q]}), {c.BY, c.BX});
             }
             Tile rho = f[0], ux = zeros_like(rho), uy = zeros_like(rho);
             for (int q = 1; q < 9; ++q) {
               rho += f[q];
               if (kDx[q]) ux = kDx[q] > 0 ? ux + f[q] : ux - f[q];
               if (kDy[q]) uy = kDy[q] > 0 ? uy + f[q] : uy - f[q];
             }
             ux /= rho, uy /= rho;
             auto base = 1.f - 1.5f * (ux * ux + uy * uy);
             for (int q = 0; q < 9; ++q) {
               auto u = 3.f * (float(kDx[q]) * ux + float(kDy[q]) * uy);
               auto eq = float(kWeight[q]) * rho * (base + u + 0.5f * u * u);
               G.store({q, y, x}, f[q] + omega * (eq - f[q]));
             }
           }).grid([](const LbmCfg& c, const auto& f, const auto&, float) {
  return Grid{cdiv(f.shape[2], c.BX), cdiv(f.shape[1], c.BY)};
});
Register r2("lbm", [](Env& e) {
  int Y = e.big ? 4096 : 21, X = e.big ? 4096 : 70;
  auto f = filled<float>(e, size_t(9) * Y * X,
                         [&](size_t i) { return float(kWeight[i / (size_t(Y) * X)] * (.9 + .2 * e.uniform())); });
  auto g = constant<float>(e, size_t(9) * Y * X, NAN);
  Job j;
  j.mbytes = 72e-6 * Y * double(X);
  j.add(lbm, e.big ? LbmCfg{} : LbmCfg{4, 32, 4}, f.view(9, Y, X), g.view(9, Y, X), 1.2f);
  j.check = [=] {
    std::vector<double> want(size_t(9) * Y * X);
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x) {
        double in[9], rho = 0, ux = 0, uy = 0;
        for (int q = 0; q < 9; ++q) {
          int sy = y - kDy[q], sx = x - kDx[q];
          in[q] = sy < 0 || sx < 0 || sy >= Y || sx >= X ? kWeight[q] : f[(size_t(q) * Y + sy) * X + sx];
          rho += in[q], ux += kDx[q] * in[q], uy += kDy[q] * in[q];
        }
        ux /= rho, uy /= rho;
        for (int q = 0; q < 9; ++q) {
          double u = 3 * (kDx[q] * ux + kDy[q] * uy),
                 eq = kWeight[q] * rho * (1 + u + u * u / 2 - 1.5 * (ux * ux + uy * uy));
          want[(size_t(q) * Y + y) * X + x] = in[q] + 1.2 * (eq - in[q]);
        }
      }
    return agree(g.now(), want, 1e-6, 1e-5);
  };
  return j;
});

// --- Monte Carlo: the price of an Asian option, paths in tiles, random numbers from counters
struct McCfg {
  int B = 512, rounds = 8, steps = 16, warps = 4;
};
auto asian = kernel("user_asian_option", [](const McCfg& c, Ptr<float> sums, I64 seed, F32 drift, F32 vol, F32 strike) {
  num_warps(c.warps);
  Tile payoff = zeros({c.B}, f32);
  for (auto r : range(c.rounds)) {
    auto path = (program_id(0) * c.rounds + r) * c.B + arange(0, c.B);
    Tile price = full({c.B}, 1.f, f32), mean = zeros({c.B}, f32);
    for (auto s : range(c.steps)) {
      price = price * exp(drift + vol * randn(seed, path * c.steps + s));
      mean += price;
    }
    payoff += max(mean / float(c.steps) - strike, 0.f);
  }
  store(sums + program_id(0), sum(payoff));
});
Register r3("asian_option", [](Env& e) {
  int programs = e.big ? 4096 : 3;
  McCfg c = e.big ? McCfg{} : McCfg{64, 2, 4, 2};
  auto sums = constant<float>(e, programs, NAN);
  Job j;
  j.gflop = 1e-9 * programs * double(c.B) * c.rounds * c.steps;  // billions of steps
  j.add(asian.grid([=](const auto&...) { return Grid{programs}; }), c, sums.p, 1234, -.001f, .1f, 1.f);
  j.check = [=] {
    // Box-Muller in float64.
    auto normal = [](uint64_t seed, uint32_t offset) {
      const auto x = reference_philox(seed, offset);
      return std::sqrt(-2 * std::log(1 - (x[0] >> 8) * 0x1p-24)) * std::cos(2 * M_PI * (x[1] >> 8) * 0x1p-24);
    };
    std::vector<double> want(programs);
    for (int path = 0; path < programs * c.rounds * c.B; ++path) {
      double price = 1, mean = 0;
      for (int s = 0; s < c.steps; ++s) mean += price *= std::exp(-.001 + .1 * normal(1234, path * c.steps + s));
      want[path / (c.rounds * c.B)] += std::max(mean / c.steps - 1, 0.);
    }
    return agree(sums.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- a renderer: nearest sphere along the ray of each pixel, shaded by its normal
struct RayCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto rays = kernel("user_spheres", [](const RayCfg& c, Tensor<const float, 2> S, Tensor<float, 2> image) {
              num_warps(c.warps);  // S [n, 4]: centre and radius; image [Y, X]; camera at 0, looking along z
              auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
              auto unit = [](Tile at, Tile size) { return (cast(at, f32) + 0.5f) / cast(size, f32) * 2.f - 1.f; };
              auto dx = unit(x0 + arange(0, c.BX), image.dim(1)).row(),
                   dy = unit(y0 + arange(0, c.BY), image.dim(0)).col();
              auto inv = rsqrt(dx * dx + dy * dy + 1.f);
              Tile nearest = full({c.BY, c.BX}, INFINITY, f32), shade = zeros({c.BY, c.BX}, f32);
              for (auto i : range(S.dim(0))) {
                auto cx = S.load({i, 0}), cy = S.load({i, 1}), cz = S.load({i, 2}), r = S.load({i, 3});
                auto b = (dx * cx + dy * cy + cz) * inv;
                auto d = b * b - (cx * cx + cy * cy + cz * cz - r * r);
                auto t = b - sqrt(max(d, 0.f));
                auto hit = (d > 0.f) & (t > 0.f) & (t < nearest);
                nearest = where(hit, t, nearest);
                shade = where(hit, (cz - t * inv) / r, shade);
              }
              image.store({y0, x0}, shade);
            }).grid([](const RayCfg& c, const auto&, const auto& image) {
  return Grid{cdiv(image.shape[1], c.BX), cdiv(image.shape[0], c.BY)};
});
Register r4("spheres", [](Env& e) {
  int n = e.big ? 256 : 9, Y = e.big ? 2160 : 30, X = e.big ? 3840 : 50;
  auto s = filled<float>(e, 4 * n, [&](size_t i) {
    return float(i % 4 == 3 ? .2 + e.uniform() : i % 4 == 2 ? 4 + 4 * e.uniform() : 6 * e.uniform() - 3);
  });
  auto image = constant<float>(e, size_t(Y) * X, NAN);
  Job j;
  j.gflop = 18e-9 * n * double(Y) * X;
  j.add(rays, RayCfg{}, s.view(n, 4), image.view(Y, X));
  j.check = [=] {
    int wrong = 0;  // pixels at the very edge of a sphere may go either way
    auto got = image.now();
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x) {
        double dx = (x + .5) / X * 2 - 1, dy = (y + .5) / Y * 2 - 1, inv = 1 / std::sqrt(dx * dx + dy * dy + 1);
        double near = INFINITY, shade = 0;
        for (int i = 0; i < n; ++i) {
          double cx = s[4 * i], cy = s[4 * i + 1], cz = s[4 * i + 2], r = s[4 * i + 3];
          double b = (dx * cx + dy * cy + cz) * inv, d = b * b - (cx * cx + cy * cy + cz * cz - r * r);
          if (d <= 0) continue;
          double t = b - std::sqrt(d);
          if (t > 0 && t < near) near = t, shade = (cz - t * inv) / r;
        }
        wrong += !(std::abs(got[y * X + x] - shade) < 1e-3);
      }
    return wrong > 2 ? std::to_string(wrong) + " pixels differ" : "";
  };
  return j;
});

// --- bilinear resampling of images [N, H, W, C], C channels at once
struct ZoomCfg {
  int B = 64, C = 16, warps = 4;
};
auto zoom = kernel("user_bilinear", [](const ZoomCfg& c, Tensor<const half, 4> X, Tensor<half, 4> Y) {
              num_warps(c.warps);
              auto x0 = program_id(0) * c.B, y = program_id(1), n = program_id(2);
              auto place = [](Tile at, Tile from, Tile to) {  // left neighbour and the right one's share
                auto s = (cast(at, f32) + 0.5f) * cast(from, f32) / cast(to, f32) - 0.5f;
                s = clamp(s, 0.f, cast(from - 1, f32));
                auto low = min(cast(s, i32), from - 2);
                return std::pair(low, s - cast(low, f32));
              };
              auto [ys, fy] = place(y, X.dim(1), Y.dim(1));
              auto [xs, fx] = place(x0 + arange(0, c.B), X.dim(2), Y.dim(2));
              auto ch = arange(0, c.C).row();
              auto pixel = [&](Tile yy, Tile xx) {
                auto offset = cast(n, i64) * X.stride(0) + cast(yy, i64) * X.stride(1) + cast(xx, i64) * X.stride(2);
                return cast(load(X.ptr() + offset.col() + ch, {.mask = ch < X.dim(3)}), f32);
              };
              auto f = fx.col();
              auto top = pixel(ys, xs) * (1.f - f) + pixel(ys, xs + 1) * f;
              auto low = pixel(ys + 1, xs) * (1.f - f) + pixel(ys + 1, xs + 1) * f;
              Y.store({n, y, x0, 0}, reshape(cast(top * (1.f - fy) + low * fy, f16), {1, 1, c.B, c.C}));
            }).grid([](const ZoomCfg& c, const auto&, const auto& y) {
  return Grid{cdiv(y.shape[2], c.B), y.shape[1], y.shape[0]};
});
Register r5("bilinear", [](Env& e) {
  int N = e.big ? 8 : 2, H = e.big ? 512 : 9, W = e.big ? 512 : 20, C = 16, H2 = e.big ? 1024 : 13,
      W2 = e.big ? 1024 : 35;
  auto x = random<half>(e, size_t(N) * H * W * C);
  auto y = constant<half>(e, size_t(N) * H2 * W2 * C, NAN);
  Job j;
  j.mbytes = 2e-6 * N * C * (double(H) * W + double(H2) * W2);
  j.add(zoom, ZoomCfg{}, x.view(N, H, W, C), y.view(N, H2, W2, C));
  j.check = [=] {
    std::vector<double> want(size_t(N) * H2 * W2 * C);
    for (size_t i = 0; i < want.size(); ++i) {
      int ch = i % C, w = i / C % W2, h = i / C / W2 % H2, n = i / C / W2 / H2;
      double sy = std::clamp((h + .5) * H / H2 - .5, 0., H - 1.), sx = std::clamp((w + .5) * W / W2 - .5, 0., W - 1.);
      int a = std::min(int(sy), H - 2), b = std::min(int(sx), W - 2);
      auto at = [&](int yy, int xx) { return x[((size_t(n) * H + yy) * W + xx) * C + ch]; };
      want[i] = (at(a, b) * (1 - sx + b) + at(a, b + 1) * (sx - b)) * (1 - sy + a) +
                (at(a + 1, b) * (1 - sx + b) + at(a + 1, b + 1) * (sx - b)) * (sy - a);
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- Smith-Waterman: best local alignment of pairs of sequences, one anti-diagonal after the other, a pair per program
struct AlignCfg {
  int L = 128, warps = 4;
};
auto align = kernel("user_smith_waterman", [](const AlignCfg& c, Tensor<const uint8_t, 2> A, Tensor<const uint8_t, 2> B,
                                              Ptr<int32_t> score) {
               num_warps(c.warps);
               auto r = program_id(0);
               auto i = arange(0, c.L);
               auto a = cast(A.load({r, 0}, {c.L}), i32);
               Tile older = zeros({c.L}, i32), last = zeros({c.L}, i32), best = zeros({c.L}, i32);
               auto up = [&](Tile x) { return where(i > 0, take(x, max(i - 1, 0), 0), 0); };
               for (auto d : range(2 * c.L - 1)) {
                 auto k = d - i;
                 auto inside = (k >= 0) & (k < c.L);
                 auto b = cast(load(B.ptr() + cast(r, i64) * B.stride(0) + k, {.mask = inside}), i32);
                 auto s = where(a == b, 3, -2);
                 auto h = max(max(up(older) + s, 0), max(up(last), last) - 1);
                 h = where(inside, h, 0);
                 best = max(best, h);
                 older = last, last = h;
               }
               store(score + r, max(best));
             }).grid([](const AlignCfg&, const auto& a, const auto&, int32_t*) { return Grid{a.shape[0]}; });
Register r6("smith_waterman", [](Env& e) {
  int N = e.big ? 20000 : 5, L = e.big ? 256 : 64;
  auto a = integers<uint8_t>(e, size_t(N) * L, 0, 4), b = integers<uint8_t>(e, size_t(N) * L, 0, 4);
  auto s = constant<int32_t>(e, N, -1);
  Job j;
  j.gflop = 1e-9 * N * double(L) * L;  // billions of cells
  j.add(align, AlignCfg{L, e.big ? 4 : 2}, a.view(N, L), b.view(N, L), s.p);
  j.check = [=] {
    std::vector<double> want(N);
    for (int n = 0; n < N; ++n) {
      std::vector<int> h((L + 1) * (L + 1));
      for (int x = 1; x <= L; ++x)
        for (int y = 1; y <= L; ++y) {
          int& v = h[x * (L + 1) + y];
          v = std::max({0, h[(x - 1) * (L + 1) + y - 1] + (a.h[n * L + x - 1] == b.h[n * L + y - 1] ? 3 : -2),
                        h[(x - 1) * (L + 1) + y] - 1, h[x * (L + 1) + y - 1] - 1});
          want[n] = std::max(want[n], double(v));
        }
    }
    return agree(s.now(), want, .1, 0);
  };
  return j;
});

}  // namespace simulations
}  // namespace users
