// beside_cuda_clouds.cpp - asian, splat, sph
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_clouds {

// --- Asian option by scrambled Sobol numbers: direction vectors [steps, 32], a digital shift per step, inverse normal;
// sums over paths of the arithmetic payoff, the geometric one (a control variate) and of their squared difference.
struct AsianCfg {
  int B = 256, steps = 64, bits = 20, P = 1;  // P paths a lane, a power of two: one word changes the next number
};
auto asian =
    kernel("user_asian", [](const AsianCfg& c, Ptr<const uint32_t> directions, Ptr<const uint32_t> scramble,
                            Ptr<double> sums, I32 paths, F32 spot, F32 strike, F32 drift, F32 vol) {
      auto i = (program_id(0) * c.B + arange(0, c.B)) * c.P;
      auto gray = i ^ (i >> 1);
      std::vector<Tile> logs, total, total_log;
      for (int p = 0; p < c.P; ++p)
        for (auto* v : {&logs, &total, &total_log}) v->push_back(zeros({c.B}, f32));
      for (auto d : range(0, c.steps)) {
        Tile x = broadcast_to(load(scramble + d), {c.B});
        for (int b = 0; b < c.bits; ++b) x = x ^ where(((gray >> b) & 1) != 0, load(directions + d * 32 + b), 0u);
        for (int p = 0; p < c.P; ++p) {
          if (p) x = x ^ load(directions + d * 32 + __builtin_ctz(p));
          auto u = (cast(x >> 8, f32) + .5f) * 0x1p-24f;
          logs[p] += drift + vol * normcdfinv(u);
          total[p] += exp(logs[p]), total_log[p] += logs[p];
        }
      }
      Tile s[3];
      for (auto& t : s) t = zeros({c.B}, f32);
      for (int k = 0; k < c.P; ++k) {
        auto in = i + k < paths;
        auto mean = spot * total[k] * (1.f / c.steps), geometric = spot * exp(total_log[k] * (1.f / c.steps));
        auto p = where(in, max(mean - strike, 0.f), 0.f), q = where(in, max(geometric - strike, 0.f), 0.f);
        s[0] += p, s[1] += q, s[2] += (p - q) * (p - q);
      }
      for (int k = 0; k < 3; ++k) atomic_add(sums + k, cast(sum(s[k]), f64));
    }).grid([](const AsianCfg& c, auto, auto, auto, int paths, auto...) { return Grid{cdiv(paths, c.B * c.P)}; });
Register r1("asian", [](Env& e) {
  const int P = e.big ? 1 << 20 : 777, S = e.big ? 64 : 16, bits = e.big ? 20 : 10;
  auto v = filled<uint32_t>(e, size_t(S) * 32, [&](size_t i) {
    const int b = int(i % 32);  // odd numbers below 2^(b + 1)
    const uint32_t m = (uint32_t(e.uniform() * 0x1p24) ^ uint32_t(e.uniform() * 0x1p24) << 8) & ((2ull << b) - 1);
    return (m | 1) << (31 - b);
  });
  auto sh = drawn<uint32_t>(e, S, [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); });
  auto sums = constant<double>(e, 3, 0);
  const float dt = 1.f / float(S), sigma = .3f, drift = (.05f - .5f * sigma * sigma) * dt, vol = sigma * std::sqrt(dt);
  Job j;
  restore(e, j, sums);
  j.add(asian, AsianCfg{e.field("B", e.big ? 256 : 64), S, bits, e.field("P", 1)}, v.p, sh.p, sums.p, P, 100.f, 102.f,
        drift, vol);
  j.check = [=] {
    std::vector<double> want(3, 0.);
    auto inverse = [](double p) {  // by bisection
      double lo = -8, hi = 8;
      for (int k = 0; k < 60; ++k) {
        const double m = (lo + hi) / 2;
        (.5 * std::erfc(-m / M_SQRT2) < p ? lo : hi) = m;
      }
      return lo;
    };
    for (int p = 0; p < P; ++p) {
      const uint32_t g = uint32_t(p) ^ uint32_t(p) >> 1;
      double l = 0, t = 0, tl = 0;
      for (int d = 0; d < S; ++d) {
        uint32_t x = sh.h[d];
        for (int b = 0; b < bits; ++b)
          if (g >> b & 1) x ^= v.h[d * 32 + b];
        l += double(drift) + double(vol) * inverse((double(x >> 8) + .5) * 0x1p-24);
        t += std::exp(l), tl += l;
      }
      const double a = std::max(100 * t / S - 102, 0.), q = std::max(100 * std::exp(tl / S) - 102, 0.);
      want[0] += a, want[1] += q, want[2] += (a - q) * (a - q);
    }
    return agree(sums.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- Gaussian splats, forward: a program a tile of 16 x 16 pixels, the tile's Gaussians from near to far
struct SplatCfg {
  int T = 16, warps = 8, batch = 0, hit = 0;  // hit: sums stay by where, not by adding 0; batch: so many Gaussians are
                                              // loaded at once, and looked up one by one
};
auto splat =
    kernel("user_splat", [](const SplatCfg& c, Ptr<const int> first, Ptr<const int> list, Ptr<const float> mean,
                            Ptr<const float> conic, Ptr<const float> colour, Ptr<float> image, Ptr<float> left,
                            Ptr<int> used, I32 W, I32 H) {
      // mean [n, 2], conic [n, 4]: a b c opacity, colour [n, 3], image [3, H, W]
      num_warps(c.warps);
      auto tile = program_id(1) * num_programs(0) + program_id(0);
      auto x = (program_id(0) * c.T + arange(0, c.T)).row(), y = (program_id(1) * c.T + arange(0, c.T)).col();
      auto inside = (x < W) & (y < H);
      auto px = cast(x, f32) + .5f, py = cast(y, f32) + .5f;
      Tile T = full({c.T, c.T}, 1.f, f32), r = zeros({c.T, c.T}, f32), g = r, b = r;
      Tile n = zeros({c.T, c.T}, i32), done = !inside;
      auto begin = load(first + tile), end = load(first + tile + 1);
      auto blend = [&](const Tile& j, auto field) {
        auto dx = field(0) - px, dy = field(1) - py;
        auto power = -.5f * (field(2) * dx * dx + field(4) * dy * dy) - field(3) * dx * dy;
        auto alpha = min(field(5) * exp(power), .99f);
        auto seen = ~done & (power <= 0.f) & (alpha >= 1 / 255.f);
        auto next = T * (1.f - alpha);
        done = done | (seen & (next < 1e-4f));
        auto w = where(seen & ~done, alpha * T, 0.f);
        auto add = [&](Tile& sum, const Tile& x) { sum = c.hit ? where(seen & ~done, sum + w * x, sum) : sum + w * x; };
        add(r, field(6)), add(g, field(7)), add(b, field(8));
        T = where(seen & ~done, next, T);
        n = where(seen & ~done, j - begin + 1, n);
      };
      auto from_memory = [&](const Tile& i, int f, const OptionalExpr& m) {
        return f < 2   ? load(mean + i * 2 + f, {.mask = m})
               : f < 6 ? load(conic + i * 4 + (f - 2), {.mask = m})
                       : load(colour + i * 3 + (f - 6), {.mask = m});
      };
      if (c.batch == 0) {
        for (auto j : range(begin, end)) {
          break_if(all(done));
          auto i = load(list + j);
          blend(j, [&](int f) { return from_memory(i, f, {}); });
        }
      } else {
        for (auto j0 : range(begin, end, c.batch)) {
          break_if(all(done));
          auto at = j0 + arange(0, c.batch);
          auto i = load(list + at, {.mask = at < end});
          std::vector<Tile> fields;
          for (int f = 0; f < 9; ++f) fields.push_back(from_memory(i, f, at < end));
          for (auto k : range(0, min(end - j0, c.batch)))
            blend(j0 + k, [&](int f) { return to_scalar(take(fields[f], broadcast_to(k, {1}), 0)); });
        }
      }
      auto at = y * W + x, plane = W * H;
      store(image + at, r, {.mask = inside});
      store(image + plane + at, g, {.mask = inside});
      store(image + plane * 2 + at, b, {.mask = inside});
      store(left + at, T, {.mask = inside});
      store(used + at, n, {.mask = inside});
    }).grid([](const SplatCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, int W, int H) {
      return Grid{cdiv(W, c.T), cdiv(H, c.T)};
    });
Register r2("splat_tiles", [](Env& e) {
  const int W = e.big ? 1920 : 45, H = e.big ? 1080 : 37, TX = (W + 15) / 16, TY = (H + 15) / 16, per = e.big ? 30 : 40;
  const int G = TX * TY * per;
  auto mean = filled<float>(e, size_t(G) * 2, [&](size_t i) {
    const int t = int(i / 2) / per;
    return float((i % 2 ? t / TX : t % TX) * 16 + 16 * e.uniform());
  });
  auto conic = filled<float>(e, size_t(G) * 4, [&](size_t i) {
    return float(i % 4 == 3 ? .1 + .85 * e.uniform() : i % 4 == 1 ? .02 * e.uniform() - .01 : .015 + .1 * e.uniform());
  });
  auto colour = random<float>(e, size_t(G) * 3, 0, 1);
  std::vector<int> ptr{0}, all;
  std::vector<float> depth(G);
  for (auto& d : depth) d = float(e.uniform());
  for (int t = 0; t < TX * TY; ++t) {
    for (int v = std::max(0, t / TX - 1); v <= std::min(TY - 1, t / TX + 1); ++v)
      for (int u = std::max(0, t % TX - 1); u <= std::min(TX - 1, t % TX + 1); ++u)
        for (int k = 0; k < per; ++k) all.push_back((v * TX + u) * per + k);
    std::sort(all.begin() + ptr.back(), all.end(), [&](int a, int b) { return depth[a] < depth[b]; });
    ptr.push_back(int(all.size()));
  }
  auto first = repeated<int>(e, ptr.size(), ptr), list = repeated<int>(e, all.size(), all);
  const size_t n = size_t(W) * H;
  auto im = constant<float>(e, n * 3, NAN), left = constant<float>(e, n, NAN);
  auto used = constant<int>(e, n, -1);
  Job j;
  j.gflop = 256 * 25e-9 * double(all.size());
  j.add(splat, SplatCfg{e.field("T", 16), e.field("warps", 8), e.field("batch", 0), e.field("hit", 0)}, first.p, list.p,
        mean.p, conic.p, colour.p, im.p, left.p, used.p, W, H);
  j.check = [=]() -> std::string {
    std::vector<double> wi(n * 3), wl(n);
    std::vector<double> wn(n);
    int borderline = 0, full = 0;
    const auto gi = im.now(), gl = left.now();
    const auto gn = used.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const int t = y / 16 * TX + x / 16;
        double T = 1, c[3] = {};
        int n1 = 0;
        bool close = false;  // to one of the limits: either way is right
        for (int k = ptr[t]; k < ptr[t + 1]; ++k) {
          const size_t i = all[k];
          const double dx = mean.h[2 * i] - (x + .5), dy = mean.h[2 * i + 1] - (y + .5);
          const double p =
              -.5 * (conic.h[4 * i] * dx * dx + conic.h[4 * i + 2] * dy * dy) - conic.h[4 * i + 1] * dx * dy;
          const double a = std::min(.99, conic.h[4 * i + 3] * std::exp(p));
          close |= std::abs(a * 255 - 1) < 1e-3;
          if (p > 0 || a < 1 / 255.) continue;
          const double next = T * (1 - a);
          close |= std::abs(next - 1e-4) < 1e-7;
          if (next < 1e-4) {
            ++full;
            break;
          }
          for (int q = 0; q < 3; ++q) c[q] += a * T * colour.h[3 * i + q];
          T = next, n1 = k - ptr[t] + 1;
        }
        const size_t o = size_t(y) * W + x;
        if (close) {
          ++borderline;
          continue;
        }
        if (gn[o] != n1) return "used of " + std::to_string(o);
        if (std::abs(gl[o] - T) > 1e-4) return "left of " + std::to_string(o);
        for (int q = 0; q < 3; ++q)
          if (std::abs(gi[q * n + o] - c[q]) > 2e-4) return "colour of " + std::to_string(o);
      }
    return borderline * 4 < int(n) ? full ? "" : "a poor test: nothing is opaque" : "a poor test";
  };
  return j;
});

// --- SPH density by cells (particles in their order, cells of one support radius, x fastest): cubic spline, Tait
// pressure
struct SphCfg {
  int B = 128, warps = 4, form = 0;  // form 1: a loop that elements leave
};
auto sph = kernel("user_sph", [](const SphCfg& c, Ptr<const float> body, Ptr<const int> first, Ptr<float> density,
                                 Ptr<float> pressure, I32 n, I32 NX, I32 NY, I32 NZ, F32 radius, F32 rest, F32 stiff) {
             // body [n, 4]: x y z mass; first [cells + 1]
             num_warps(c.warps);
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto in = i < n;
             auto field = [&](const Tile& k, int f, const Tile& m) { return load(body + k * 4 + f, {.mask = m}); };
             auto x = field(i, 0, in), y = field(i, 1, in), z = field(i, 2, in);
             auto per = 1.f / radius;
             auto cell = [&](const Tile& v, const Tile& N) { return clamp(cast(v * per, i32), 0, N - 1); };
             auto cx = cell(x, NX), cy = cell(y, NY), cz = cell(z, NZ);
             Tile rho = zeros({c.B}, f32);
             for (auto row : range(0, 9)) {  // three cells along x lie together
               auto ry = cy + row % 3 - 1, rz = cz + row / 3 - 1;
               auto there = in & (ry >= 0) & (ry < NY) & (rz >= 0) & (rz < NZ);
               auto base = (rz * NY + ry) * NX;
               auto begin = load(first + base + max(cx - 1, 0), {.mask = there});
               auto end = load(first + base + min(cx + 1, NX - 1) + 1, {.mask = there});
               auto near_by = [&](const Tile& j, const Tile& m) {
                 auto dx = field(j, 0, m) - x, dy = field(j, 1, m) - y, dz = field(j, 2, m) - z;
                 auto mass = field(j, 3, m);
                 auto q = 2.f * per * sqrt(dx * dx + dy * dy + dz * dz);  // support: q < 2
                 auto far = max(2.f - q, 0.f), near = max(1.f - q, 0.f);
                 return mass * (.25f * far * far * far - near * near * near);
               };
               if (c.form == 0) {
                 for (auto k : range(0, max(end - begin))) rho += near_by(begin + k, begin + k < end);
               } else {
                 Tile j = begin;
                 while_([&] { return any(j < end); },
                        [&] {
                          auto m = j < end;
                          rho = where(m, rho + near_by(j, m), rho);
                          j = where(m, j + 1, j);
                        });
               }
             }
             rho = rho * (8.f / float(M_PI)) * per * per * per;
             auto t = rho / rest, t2 = t * t;
             store(density + i, rho, {.mask = in});
             store(pressure + i, max(stiff * (t2 * t2 * t2 * t - 1.f), 0.f), {.mask = in});
           }).grid([](const SphCfg& c, auto, auto, auto, auto, int n, auto...) { return Grid{cdiv(n, c.B)}; });
Register r3("sph_cells", [](Env& e) {
  const int NX = e.big ? 40 : 5, NY = e.big ? 40 : 4, NZ = e.big ? 40 : 3, cells = NX * NY * NZ;
  std::vector<int> ptr{0};
  for (int k = 0; k < cells; ++k) ptr.push_back(ptr.back() + 4 + int(uint32_t(k) * 2654435761u >> 29));
  const int N = ptr.back();
  std::vector<float> all;
  const float h = .1f;
  for (int k = 0; k < cells; ++k)
    for (int p = ptr[k]; p < ptr[k + 1]; ++p) {
      const int c[3] = {k % NX, k / NX % NY, k / NX / NY};
      for (int d : c) all.push_back(float((d + .001 + .998 * e.uniform()) * h));
      all.push_back(float(1 + e.uniform()));
    }
  auto body = repeated<float>(e, all.size(), all);
  auto first = repeated<int>(e, ptr.size(), ptr);
  auto rho = constant<float>(e, N, NAN), p = constant<float>(e, N, NAN);
  const float rest = 9000, stiff = 2;
  Job j;
  j.add(sph, SphCfg{e.field("B", e.big ? 128 : 32), e.field("warps", 4), e.field("form", 0)}, body.p, first.p, rho.p,
        p.p, N, NX, NY, NZ, h, rest, stiff);
  j.check = [=] {
    std::vector<double> want(N), wp(N);
    for (int i = 0; i < N; ++i) {
      double s = 0;
      for (int k = 0; k < N; ++k) {
        double r2 = 0;
        for (int d = 0; d < 3; ++d) r2 += std::pow(double(all[4 * k + d]) - all[4 * i + d], 2);
        const double q = 2 * std::sqrt(r2) / h;
        s += all[4 * k + 3] * (q < 1 ? 1 - 1.5 * q * q + .75 * q * q * q : q < 2 ? .25 * std::pow(2 - q, 3) : 0.);
      }
      want[i] = s * 8 / M_PI / (double(h) * h * h);
      wp[i] = std::max(stiff * (std::pow(want[i] / rest, 7) - 1), 0.);
    }
    auto a = agree(rho.now(), want, 1e-2, 2e-5);
    return a.empty() ? agree(p.now(), wp, 1e-2, 3e-4) : a;
  };
  return j;
});
}  // namespace beside_cuda_clouds
}  // namespace users
