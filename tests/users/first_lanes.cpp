// first_lanes.cpp - an element a lane, as people write it first: prices in closed form, stiff kinetics, cloth, photons
// in a slab, colours from harmonics.
#include <array>

#include "tests/users/use.h"
namespace users {
namespace first_lanes {

struct LaneCfg {
  int B = 256;
};

// --- European options, call and put
auto prices =
    kernel("user_prices", [](const LaneCfg& c, Ptr<const float> S, Ptr<const float> K, Ptr<const float> T,
                             Ptr<float> call, Ptr<float> put, F32 r, F32 sigma, I32 n) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      auto s = load(S + i, {.mask = in, .other = 1.f}), k = load(K + i, {.mask = in, .other = 1.f}),
           t = load(T + i, {.mask = in, .other = 1.f});
      auto root = sqrt(t);
      auto d1 = (log(s / k) + (r + .5f * sigma * sigma) * t) / (sigma * root), d2 = d1 - sigma * root;
      auto later = k * exp(-r * t);
      store(call + i, s * normcdf(d1) - later * normcdf(d2), {.mask = in});
      store(put + i, later * normcdf(-d2) - s * normcdf(-d1), {.mask = in});
    }).grid([](const LaneCfg& c, auto, auto, auto, float*, float*, float, float, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("prices", [](Env& e) {
  LaneCfg c;
  if (!e.big) c = {64};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 25 : 301;
  auto S = random<float>(e, n, 5, 30), K = random<float>(e, n, 1, 100), T = random<float>(e, n, .25, 10);
  auto call = constant<float>(e, n, NAN), put = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 20e-6 * n;
  j.add(prices, c, S.p, K.p, T.p, call.p, put.p, .02f, .3f, n);
  j.check = [=] {
    std::vector<double> a, b;
    const double r = .02f, v = .3f;
    for (int i = 0; i < n; ++i) {
      const double d1 = (std::log(S[i] / K[i]) + (r + v * v / 2) * T[i]) / (v * std::sqrt(T[i])),
                   d2 = d1 - v * std::sqrt(T[i]);
      auto N = [](double x) { return .5 * std::erfc(-x / std::sqrt(2.)); };
      const double later = K[i] * std::exp(-r * T[i]);
      a.push_back(S[i] * N(d1) - later * N(d2)), b.push_back(later * N(-d2) - S[i] * N(-d1));
    }
    const auto wrong = agree(call.now(), a, 1e-4, 1e-5);
    return wrong.empty() ? agree(put.now(), b, 1e-4, 1e-5) : wrong;
  };
  return j;
});

// --- Robertson's kinetics, a cell a lane: backward Euler, Newton's method with the 3 x 3 system solved in registers
auto kinetics =
    kernel("user_kinetics", [](const LaneCfg& c, Ptr<const double> y0, Ptr<double> y1, F64 h, I32 steps, I32 n) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      Tile a = load(y0 + i, {.mask = in, .other = 1.0}), b = load(y0 + n + i, {.mask = in, .other = 0.0}),
           s = load(y0 + 2 * n + i, {.mask = in, .other = 0.0});
      for (auto step : range(0, steps)) {
        Tile a0 = a, b0 = b, s0 = s;
        Tile going = in, count = zeros({c.B}, i32);
        while_([&] { return any(going); },
               [&] {
                 auto r1 = .04 * a, r2 = 1e4 * b * s, r3 = 3e7 * b * b;
                 auto fa = a - a0 - h * (r2 - r1), fb = b - b0 - h * (r1 - r2 - r3), fs = s - s0 - h * r3;
                 // rows of 1 - h J
                 auto m00 = full({c.B}, 1.0, f64) + h * .04, m01 = -h * 1e4 * s, m02 = -h * 1e4 * b;
                 auto m10 = full({c.B}, -.04, f64) * h, m11 = 1.0 + h * (1e4 * s + 6e7 * b), m12 = h * 1e4 * b;
                 auto m21 = -h * 6e7 * b;
                 auto l1 = m10 / m00;
                 auto p11 = m11 - l1 * m01, p12 = m12 - l1 * m02, g1 = fb - l1 * fa;
                 auto l2 = m21 / p11;
                 auto p22 = 1.0 - l2 * p12, g2 = fs - l2 * g1;
                 auto ds = g2 / p22, db = (g1 - p12 * ds) / p11, da = (fa - m01 * db - m02 * ds) / m00;
                 a = where(going, a - da, a), b = where(going, b - db, b), s = where(going, s - ds, s);
                 count += cast(going, i32);
                 going = going & (abs(da) + abs(db) * 1e4 + abs(ds) > 1e-12) & (count < 12);
               });
      }
      store(y1 + i, a, {.mask = in});
      store(y1 + n + i, b, {.mask = in});
      store(y1 + 2 * n + i, s, {.mask = in});
    }).grid([](const LaneCfg& c, auto, double*, double, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("kinetics", [](Env& e) {
  LaneCfg c{128};
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 18 : 75, steps = e.big ? 50 : 4;
  auto y0 = drawn<double>(e, size_t(n) * 3, [&] { return .3 + .3 * e.uniform(); });
  if (e.device && !e.big) {
    for (int i = 0; i < n; ++i) y0.h[n + i] = 3e-5 * y0.h[n + i];
    y0 = repeated(e, y0.n, y0.h);
  }
  auto y1 = constant<double>(e, y0.n, NAN);
  Job j;
  j.gflop = 250e-9 * n * steps;
  j.add(kinetics, c, y0.p, y1.p, .1, steps, n);
  j.check = [=] {
    std::vector<double> want(y0.n);
    const double h = .1;
    for (int i = 0; i < n; ++i) {
      double y[3] = {y0[i], y0[n + i], y0[2 * n + i]};
      for (int t = 0; t < steps; ++t) {
        double o[3] = {y[0], y[1], y[2]};
        for (int it = 0; it < 12; ++it) {
          const double a = y[0], b = y[1], s = y[2];
          const double f[3] = {a - o[0] - h * (1e4 * b * s - .04 * a),
                               b - o[1] - h * (.04 * a - 1e4 * b * s - 3e7 * b * b), s - o[2] - h * 3e7 * b * b};
          const double m[3][3] = {{1 + .04 * h, -h * 1e4 * s, -h * 1e4 * b},
                                  {-.04 * h, 1 + h * (1e4 * s + 6e7 * b), h * 1e4 * b},
                                  {0, -h * 6e7 * b, 1}};
          auto det = [](const double q[3][3]) {
            return q[0][0] * (q[1][1] * q[2][2] - q[1][2] * q[2][1]) -
                   q[0][1] * (q[1][0] * q[2][2] - q[1][2] * q[2][0]) +
                   q[0][2] * (q[1][0] * q[2][1] - q[1][1] * q[2][0]);
          };
          const double all = det(m);
          for (int k = 0; k < 3; ++k) {
            double q[3][3];
            for (int r = 0; r < 9; ++r) q[r / 3][r % 3] = r % 3 == k ? f[r / 3] : m[r / 3][r % 3];
            y[k] -= det(q) / all;
          }
        }
      }
      for (int k = 0; k < 3; ++k) want[size_t(k) * n + i] = y[k];
    }
    return agree(y1.now(), want, 1e-10, 1e-8);
  };
  return j;
});

// --- cloth: the length of every edge of one colour is restored, both ends move (extended position-based dynamics)
auto cloth = kernel("user_cloth", [](const LaneCfg& c, Ptr<float> x, Ptr<const float> weight, Ptr<const int32_t> edge,
                                     Ptr<const float> rest, Ptr<float> lambda, F32 compliance, I32 first, I32 last) {
               auto i = first + program_id(0) * c.B + arange(0, c.B);
               auto in = i < last;
               auto a = load(edge + i * 2, {.mask = in}), b = load(edge + i * 2 + 1, {.mask = in});
               std::array<Tile, 3> p, q, d;
               for (int k = 0; k < 3; ++k) {
                 p[k] = load(x + a * 3 + k, {.mask = in}), q[k] = load(x + b * 3 + k, {.mask = in});
                 d[k] = p[k] - q[k];
               }
               auto wa = load(weight + a, {.mask = in}), wb = load(weight + b, {.mask = in});
               auto l = load(lambda + i, {.mask = in});
               auto length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
               auto more = (load(rest + i, {.mask = in}) - length - compliance * l) / (wa + wb + compliance);
               auto scale = where(length > 1e-9f, more / length, 0.f);
               store(lambda + i, l + more, {.mask = in});
               for (int k = 0; k < 3; ++k) {
                 store(x + a * 3 + k, p[k] + wa * scale * d[k], {.mask = in});
                 store(x + b * 3 + k, q[k] - wb * scale * d[k], {.mask = in});
               }
             }).grid([](const LaneCfg& c, float*, auto, auto, auto, float*, float, int first, int last) {
  return Grid{cdiv(last - first, c.B)};
});
Register r5("cloth", [](Env& e) {
  LaneCfg c{128};
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int side = e.big ? 2048 : 12;
  std::vector<int32_t> edges;
  std::vector<int> starts{0};
  for (int colour = 0; colour < 4; ++colour) {  // along x or y, from even or odd places
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        const int at = y * side + x, to = colour < 2 ? x + 1 : y + 1;
        if ((colour < 2 ? x : y) % 2 == colour % 2 && to < side)
          edges.push_back(at), edges.push_back(colour < 2 ? at + 1 : at + side);
      }
    starts.push_back(int(edges.size() / 2));
  }
  const int n = starts.back();
  auto x = random<float>(e, size_t(side) * side * 3, 0, 3), w = random<float>(e, size_t(side) * side, .5, 1);
  auto edge = repeated(e, edges.size(), edges);
  auto rest = random<float>(e, n, .5, 1.5), lambda = constant<float>(e, n, 0);
  Job j;
  restore(e, j, x, lambda);
  j.mbytes = 76e-6 * n;
  for (int colour = 0; colour < 4; ++colour)
    j.add(cloth, c, x.p, w.p, edge.p, rest.p, lambda.p, .01f, starts[colour], starts[colour + 1]);
  j.check = [=] {
    std::vector<double> want;
    for (size_t i = 0; i < x.n; ++i) want.push_back(x[i]);
    for (int i = 0; i < n; ++i) {
      const int a = edges[i * 2], b = edges[i * 2 + 1];
      double d[3], l = 0;
      for (int k = 0; k < 3; ++k) d[k] = want[a * 3 + k] - want[b * 3 + k], l += d[k] * d[k];
      l = std::sqrt(l);
      const double more = (rest[i] - l) / (w[a] + w[b] + double(.01f));
      for (int k = 0; k < 3; ++k) want[a * 3 + k] += w[a] * more / l * d[k], want[b * 3 + k] -= w[b] * more / l * d[k];
    }
    return agree(x.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- photons through a slab, one a lane until it leaves or is absorbed: how many are reflected, absorbed, let through
auto photons =
    kernel("user_photons", [](const LaneCfg& c, Ptr<int32_t> counts, F32 thickness, F32 albedo, F32 g, U64 seed) {
      auto id = cast(program_id(0) * c.B + arange(0, c.B), u32);
      Tile z = zeros({c.B}, f32), mu = ones({c.B}, f32), fate = zeros({c.B}, i32), turn = zeros({c.B}, u32);
      Tile going = fate == 0;
      while_([&] { return any(going); },
             [&] {
               auto [a, b, d, unused] = rand4(seed, id * 64 + turn);
               auto to = z - mu * log(max(a, 1e-30f));
               auto absorbed = b > albedo;
               auto s = (1.f - g * g) / (1.f - g + 2.f * g * d);  // Henyey and Greenstein
               auto cosine = clamp((1.f + g * g - s * s) / (2.f * g), -1.f, 1.f);
               auto bent =
                   mu * cosine + sqrt(max((1.f - mu * mu) * (1.f - cosine * cosine), 0.f)) * cospi(2.f * unused);
               auto now = where(to < 0.f, 1, where(to > thickness, 3, where(absorbed, 2, 0)));
               z = where(going, to, z), mu = where(going, bent, mu), fate = where(going, now, fate);
               turn += 1;
               going = (fate == 0) & (turn < 64);
             });
      for (int k = 0; k < 4; ++k) atomic_add(counts + k, sum(cast(fate == k, i32)));
    }).grid([](const LaneCfg&, int32_t*, float, float, float, uint64_t) { return Grid{1 << 14}; });
Register r6("photons", [](Env& e) {
  LaneCfg c{128};
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  auto counts = constant<int32_t>(e, 4, 0);
  Job j;
  restore(e, j, counts);
  const float thickness = 3, albedo = .9f, g = .6f;
  j.gflop = 1e-9 * 16384 * c.B * 8 * 60;
  if (e.big) {
    j.add(photons, c, counts.p, thickness, albedo, g, uint64_t(7));
    return j;
  }
  j.steps.push_back(
      {"user_photons",
       [=](Stream& s) { return photons.try_launch(s, c, Grid{16}, counts.p, thickness, albedo, g, uint64_t(7)); },
       nullptr});
  j.check = [=] {
    const auto got = counts.now();
    std::vector<double> want(4);
    auto unit = [](uint32_t w) { return double(w) / 4294967296.; };
    for (uint32_t id = 0; id < uint32_t(16 * c.B); ++id) {
      double z = 0, mu = 1;
      int fate = 0;
      for (int t = 0; t < 64 && !fate; ++t) {
        const auto w = reference_philox(7, id * 64 + t);
        const double to = z - mu * std::log(std::max(unit(w[0]), 1e-30)),
                     s = (1 - g * g) / (1 - g + 2 * g * unit(w[2]));
        const double cosine = std::clamp((1 + g * g - s * s) / (2. * g), -1., 1.);
        fate = to < 0 ? 1 : to > thickness ? 3 : unit(w[1]) > albedo ? 2 : 0;
        mu = mu * cosine +
             std::sqrt(std::max((1 - mu * mu) * (1 - cosine * cosine), 0.)) * std::cos(2 * M_PI * unit(w[3]));
        z = to;
      }
      ++want[fate];
    }
    return agree(got, want, 2, .01);
  };
  return j;
});

// --- colours from spherical harmonics of degree three, 16 coefficients of three channels a point
auto harmonics = kernel("user_harmonics", [](const LaneCfg& c, Ptr<const float> coefficients,
                                             Ptr<const float> directions, Ptr<float> out, I32 n) {
                   // coefficients [n, 16, 3], directions, out [n, 3]
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   auto in = i < n;
                   auto x = load(directions + i * 3, {.mask = in}), y = load(directions + i * 3 + 1, {.mask = in}),
                        z = load(directions + i * 3 + 2, {.mask = in});
                   auto xx = x * x, yy = y * y, zz = z * z, xy = x * y, yz = y * z, xz = x * z;
                   const std::array<Tile, 16> basis{full({c.B}, .2820948f, f32),
                                                    -.4886025f * y,
                                                    .4886025f * z,
                                                    -.4886025f * x,
                                                    1.0925484f * xy,
                                                    -1.0925484f * yz,
                                                    .3153916f * (2.f * zz - xx - yy),
                                                    -1.0925484f * xz,
                                                    .5462742f * (xx - yy),
                                                    -.5900436f * y * (3.f * xx - yy),
                                                    2.8906114f * xy * z,
                                                    -.4570458f * y * (4.f * zz - xx - yy),
                                                    .3731763f * z * (2.f * zz - 3.f * xx - 3.f * yy),
                                                    -.4570458f * x * (4.f * zz - xx - yy),
                                                    1.4453057f * z * (xx - yy),
                                                    -.5900436f * x * (xx - 3.f * yy)};
                   for (int ch = 0; ch < 3; ++ch) {
                     Tile total = full({c.B}, .5f, f32);
                     for (int k = 0; k < 16; ++k)
                       total += basis[k] * load(coefficients + i * 48 + k * 3 + ch, {.mask = in});
                     store(out + i * 3 + ch, max(total, 0.f), {.mask = in});
                   }
                 }).grid([](const LaneCfg& c, auto, auto, float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("harmonics", [](Env& e) {
  LaneCfg c{128};
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 21 : 101;
  auto co = random<float>(e, size_t(n) * 48), dir = random<float>(e, size_t(n) * 3);
  auto out = constant<float>(e, size_t(n) * 3, NAN);
  Job j;
  j.mbytes = 216e-6 * n;
  j.add(harmonics, c, co.p, dir.p, out.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      const double x = dir[i * 3], y = dir[i * 3 + 1], z = dir[i * 3 + 2], xx = x * x, yy = y * y, zz = z * z;
      const double b[16] = {.2820948,
                            -.4886025 * y,
                            .4886025 * z,
                            -.4886025 * x,
                            1.0925484 * x * y,
                            -1.0925484 * y * z,
                            .3153916 * (2 * zz - xx - yy),
                            -1.0925484 * x * z,
                            .5462742 * (xx - yy),
                            -.5900436 * y * (3 * xx - yy),
                            2.8906114 * x * y * z,
                            -.4570458 * y * (4 * zz - xx - yy),
                            .3731763 * z * (2 * zz - 3 * xx - 3 * yy),
                            -.4570458 * x * (4 * zz - xx - yy),
                            1.4453057 * z * (xx - yy),
                            -.5900436 * x * (xx - 3 * yy)};
      for (int ch = 0; ch < 3; ++ch) {
        double s = .5;
        for (int k = 0; k < 16; ++k) s += b[k] * co[size_t(i) * 48 + k * 3 + ch];
        want.push_back(std::max(s, 0.));
      }
    }
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace first_lanes
}  // namespace users
