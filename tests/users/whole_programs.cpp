// whole_programs.cpp - programs of several kernels outside of networks: conjugate gradients over sparse rows, a lattice
// with walls, a radix sort of 64-bit keys, barrier options, structural similarity with its gradient.
#include "tests/users/use.h"
namespace users {
namespace whole_programs {

// --- conjugate gradients (f64): sparse rows and p.Ap, then x and r with r.r, then p; the scalars stay on the device
struct CgCfg {
  int R = 32, L = 8, B = 1024;  // rows of a program, elements of a row at a time
};
auto cg_product = kernel("user_cg_product", [](const CgCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> columns, Ptr<const double> values,
                                               Ptr<const double> p, Ptr<double> q, Ptr<double> scalars, I32 n) {
                    auto r = program_id(0) * c.R + arange(0, c.R);
                    auto first = load(starts + r, {.mask = r < n}), end = load(starts + r + 1, {.mask = r < n});
                    auto longest = max(end - first);
                    Tile s = zeros({c.R, c.L}, f64);
                    for (auto i : range(0, longest, c.L)) {
                      auto at = first.col() + i + arange(0, c.L).row();
                      auto in = at < end.col();
                      s += load(values + at, {.mask = in}) * load(p + load(columns + at, {.mask = in}), {.mask = in});
                    }
                    auto row = squeeze(sum(s, axis(1)), 1);
                    store(q + r, row, {.mask = r < n});
                    atomic_add(scalars + 1, sum(row * load(p + r, {.mask = r < n})));  // p.Ap
                  }).grid([](const CgCfg& c, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.R)}; });
auto cg_forward = kernel("user_cg_forward", [](const CgCfg& c, Ptr<const double> p, Ptr<const double> q, Ptr<double> x, Ptr<double> r, Ptr<double> scalars, I32 n) {
                    auto i = program_id(0) * c.B + arange(0, c.B);
                    auto in = i < n;
                    auto alpha = load(scalars) / load(scalars + 1);
                    store(x + i, load(x + i, {.mask = in}) + alpha * load(p + i, {.mask = in}), {.mask = in});
                    auto left = load(r + i, {.mask = in}) - alpha * load(q + i, {.mask = in});
                    store(r + i, left, {.mask = in});
                    atomic_add(scalars + 2, sum(left * left));
                  }).grid([](const CgCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto cg_turn = kernel("user_cg_turn", [](const CgCfg& c, Ptr<const double> r, Ptr<double> p, Ptr<const double> scalars, I32 n) {
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < n;
                 store(p + i, load(r + i, {.mask = in}) + load(scalars + 2) / load(scalars) * load(p + i, {.mask = in}), {.mask = in});
               }).grid([](const CgCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto cg_next = kernel("user_cg_next", [](Ptr<double> scalars) {
                 store(scalars, load(scalars + 2));
                 store(scalars + 1, 0.);
                 store(scalars + 2, 0.);
               }).grid([](const NoConfig&, auto) { return Grid{1}; });
Register r1("cg_rows", [](Env& e) {
  CgCfg c;
  if (!e.big) c = {8, 4, 64};
  c.R = e.field("R", c.R), c.L = e.field("L", c.L), c.B = e.field("B", c.B);
  const int side = e.big ? 1024 : 12, n = side * side, rounds = e.big ? 1 : 10;
  std::vector<int32_t> starts{0}, columns;
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    const int y = i / side, x = i % side;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        if (y + dy < 0 || y + dy >= side || x + dx < 0 || x + dx >= side) continue;
        columns.push_back(i + dy * side + dx), values.push_back(dy || dx ? -1 : 8.5);
      }
    starts.push_back(int(columns.size()));
  }
  auto s = repeated(e, starts.size(), starts);
  auto col = repeated(e, columns.size(), columns);
  auto val = repeated(e, values.size(), values);
  auto b = random<double>(e, n);
  auto r = repeated(e, n, b.h), p = repeated(e, n, b.h);
  auto x = constant<double>(e, n, 0), q = constant<double>(e, n, NAN);
  double rr = 0;
  for (double v : b.h) rr += v * v;
  auto scalars = repeated(e, 3, std::vector<double>{e.big ? rr * n / double(b.h.size() + 1) : rr, e.big ? 1. : 0., 0});
  Job j;
  j.mbytes = 1e-6 * (12. * columns.size() + 4. * n + 16. * n);
  j.inTurn = !e.big;
  for (int i = 0; i < rounds; ++i) {
    j.add(cg_product, c, s.p, col.p, val.p, p.p, q.p, scalars.p, n);
    j.add(cg_forward, c, p.p, q.p, x.p, r.p, scalars.p, n);
    j.add(cg_turn, c, r.p, p.p, scalars.p, n);
    j.add(cg_next, {}, scalars.p);
  }
  j.check = [=] {
    std::vector<double> X(n), R(b.h), P(b.h), Q(n);
    double rho = rr;
    for (int i = 0; i < rounds; ++i) {
      double pq = 0, next = 0;
      for (int k = 0; k < n; ++k) {
        Q[k] = 0;
        for (int at = starts[k]; at < starts[k + 1]; ++at) Q[k] += values[at] * P[columns[at]];
        pq += P[k] * Q[k];
      }
      for (int k = 0; k < n; ++k) X[k] += rho / pq * P[k], R[k] -= rho / pq * Q[k], next += R[k] * R[k];
      for (int k = 0; k < n; ++k) P[k] = R[k] + next / rho * P[k];
      rho = next;
    }
    return agree(x.now(), X, 1e-10, 1e-10);
  };
  return j;
});

// --- a lattice of 19 speeds with walls: what would come from a wall comes back from where it went; a pulled step
struct WallCfg {
  int B = 256;
};
constexpr int kSpeeds[19][3] = {{0, 0, 0}, {1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}, {1, 1, 0}, {-1, -1, 0}, {1, -1, 0},
                                {-1, 1, 0}, {1, 0, 1}, {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};
constexpr double weight19(int i) { return i == 0 ? 1. / 3 : i < 7 ? 1. / 18 : 1. / 36; }
constexpr int back19(int i) { return i == 0 ? 0 : i % 2 ? i + 1 : i - 1; }
auto walls19 = kernel("user_walls19", [](const WallCfg& c, Ptr<const float> f, Ptr<const uint8_t> wall, Ptr<float> g, I32 X, I32 Y, I32 Z, F32 omega) {
                 auto N = X * Y * Z;
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < N;
                 auto x = i % X, y = i / X % Y, z = i / (X * Y);
                 auto solid = load(wall + i, {.mask = in, .other = 1});
                 std::array<Tile, 19> v;
                 Tile rho = zeros({c.B}, f32), ux = rho, uy = rho, uz = rho;
                 auto wrapped = [](const Tile& at, int by, const I32& n) { return by == 0 ? Tile(at) : by > 0 ? Tile(where(at == 0, n - 1, at - 1)) : Tile(where(at == n - 1, 0, at + 1)); };
                 for (int s = 0; s < 19; ++s) {
                   const int* e = kSpeeds[s];
                   auto from = (wrapped(z, e[2], Z) * Y + wrapped(y, e[1], Y)) * X + wrapped(x, e[0], X);
                   auto blocked = load(wall + from, {.mask = in}) != 0;
                   v[s] = where(blocked, load(f + (back19(s) * N + i), {.mask = in & blocked}), load(f + (s * N + from), {.mask = in & ~blocked}));
                   rho += v[s];
                   ux += float(e[0]) * v[s], uy += float(e[1]) * v[s], uz += float(e[2]) * v[s];
                 }
                 ux /= rho, uy /= rho, uz /= rho;
                 auto uu = 1.5f * (ux * ux + uy * uy + uz * uz);
                 for (int s = 0; s < 19; ++s) {
                   const int* e = kSpeeds[s];
                   auto eu = 3.f * (float(e[0]) * ux + float(e[1]) * uy + float(e[2]) * uz);
                   auto rest = float(weight19(s)) * rho * (1 + eu + .5f * eu * eu - uu);
                   store(g + (s * N + i), v[s] + omega * (rest - v[s]), {.mask = in & (solid == 0)});
                 }
               }).grid([](const WallCfg& c, auto, auto, auto, int X, int Y, int Z, float) { return Grid{cdiv(X * Y * Z, c.B)}; });
Register r2("walls19", [](Env& e) {
  WallCfg c;
  if (!e.big) c = {64};
  c.B = e.field("B", c.B);
  const int X = e.big ? 256 : 7, Y = e.big ? 192 : 6, Z = e.big ? 128 : 5, N = X * Y * Z;
  auto f = random<float>(e, size_t(19) * N, .02, .06);
  auto wall = filled<uint8_t>(e, N, [&](size_t i) { return uint8_t(int(i) / X % Y == 0 || (i % 37) == 5); });
  auto g = constant<float>(e, f.n, 0);
  Job j;
  j.mbytes = 1e-6 * (152. + 1) * N;
  j.add(walls19, c, f.p, wall.p, g.p, X, Y, Z, 1.6f);
  j.check = [=] {
    std::vector<double> want(f.n);
    for (int i = 0; i < N; ++i) {
      if (wall.h[i]) continue;
      double v[19], rho = 0, u[3] = {};
      for (int s = 0; s < 19; ++s) {
        const int* d = kSpeeds[s];
        const int from = ((i / X / Y - d[2] + Z) % Z * Y + (i / X % Y - d[1] + Y) % Y) * X + (i % X - d[0] + X) % X;
        v[s] = wall.h[from] ? f[size_t(back19(s)) * N + i] : f[size_t(s) * N + from];
        rho += v[s];
        for (int k = 0; k < 3; ++k) u[k] += d[k] * v[s];
      }
      for (double& k : u) k /= rho;
      const double uu = 1.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
      for (int s = 0; s < 19; ++s) {
        const double eu = 3 * (kSpeeds[s][0] * u[0] + kSpeeds[s][1] * u[1] + kSpeeds[s][2] * u[2]);
        want[size_t(s) * N + i] = v[s] + 1.6f * (weight19(s) * rho * (1 + eu + eu * eu / 2 - uu) - v[s]);
      }
    }
    return agree(g.now(), want, 1e-6, 1e-5);
  };
  return j;
});

// --- a radix sort of 64-bit keys with payloads, a pass: digits of 4 bits counted by blocks, starts, moves
struct RadixCfg {
  int B = 1024;
};
auto digit_counts = kernel("user_digit_counts", [](const RadixCfg& c, Ptr<const uint64_t> keys, Ptr<int32_t> counts, I32 shift, I32 n) {
                      auto i = program_id(0) * c.B + arange(0, c.B);
                      auto digit = cast(load(keys + i, {.mask = i < n}) >> cast(shift, u64) & 15, i32);
                      store(counts + (arange(0, 16) * num_programs(0) + program_id(0)), histogram(digit, 16, {.mask = i < n}));
                    }).grid([](const RadixCfg& c, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
auto digit_starts = kernel("user_digit_starts", [](Ptr<int32_t> counts, I32 m) {
                      constexpr int B = 4096;  // one program walks over all of them
                      Tile before = 0;
                      for (auto i0 : range(0, m, B)) {
                        auto i = i0 + arange(0, B);
                        auto x = load(counts + i, {.mask = i < m});
                        store(counts + i, cumsum(x, axis(0)) - x + before, {.mask = i < m});
                        before += sum(x);
                      }
                    }).grid([](const NoConfig&, auto, int) { return Grid{1}; });
auto digit_moves = kernel("user_digit_moves", [](const RadixCfg& c, Ptr<const uint64_t> keys, Ptr<const uint32_t> payload, Ptr<const int32_t> starts,
                                                 Ptr<uint64_t> keys_out, Ptr<uint32_t> payload_out, I32 shift, I32 n) {
                     auto i = program_id(0) * c.B + arange(0, c.B);
                     auto in = i < n;
                     auto key = load(keys + i, {.mask = in});
                     auto digit = where(in, cast(key >> cast(shift, u64) & 15, i32), -1);
                     auto is = digit.col() == arange(0, 16).row();
                     auto rank = cumsum(cast(is, i32), axis(0));
                     auto base = load(starts + (arange(0, 16) * num_programs(0) + program_id(0)));
                     auto to = squeeze(sum(where(is, rank - 1 + base.row(), 0), axis(1)), 1);
                     store(keys_out + to, key, {.mask = in});
                     store(payload_out + to, load(payload + i, {.mask = in}), {.mask = in});
                   }).grid([](const RadixCfg& c, auto, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("radix64", [](Env& e) {
  RadixCfg c;
  if (!e.big) c = {64};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 24 : 1000, blocks = cdiv(n, c.B), passes = e.big ? 1 : 16;
  auto word = [&] { return uint64_t(e.uniform() * 0x1p24) << 40 ^ uint64_t(e.uniform() * 0x1p24) << 20 ^ uint64_t(e.uniform() * 0x1p24); };
  auto keys = drawn<uint64_t>(e, n, [&] { return word(); });
  auto payload = filled<uint32_t>(e, n, [&](size_t i) { return uint32_t(i); });
  auto k2 = repeated(e, n, std::vector<uint64_t>{0}), k3 = repeated(e, n, std::vector<uint64_t>{0});
  auto p2 = repeated(e, n, std::vector<uint32_t>{0}), p3 = repeated(e, n, std::vector<uint32_t>{0});
  auto counts = constant<int32_t>(e, 16 * blocks, 0);
  Job j;
  j.mbytes = 1e-6 * n * 24.;
  j.inTurn = true;
  auto from = keys;
  auto fp = payload;
  for (int i = 0; i < passes; ++i) {
    auto& to = i % 2 ? k3 : k2;
    auto& tp = i % 2 ? p3 : p2;
    j.add(digit_counts, c, from.p, counts.p, i * 4, n);
    j.add(digit_starts, {}, counts.p, 16 * blocks);
    j.add(digit_moves, c, from.p, fp.p, counts.p, to.p, tp.p, i * 4, n);
    from = to, fp = tp;
  }
  j.check = [=] {
    std::vector<uint32_t> order(n);
    for (int i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys.at(a) < keys.at(b); });
    const auto got = fp.now();
    const auto sorted = from.now();
    for (int i = 0; i < n; ++i)
      if (got[i] != order[i] || sorted[i] != keys.at(order[i])) return "place " + std::to_string(i);
    return std::string();
  };
  return j;
});

// --- an up-and-out option: pairs of mirrored paths, seen at every step; sums of payoffs and of their squares
struct BarrierCfg {
  int B = 512;
};
auto barrier = kernel("user_barrier", [](const BarrierCfg& c, Ptr<double> sums, F32 s0, F32 strike, F32 top, F32 drift, F32 vol, I32 steps, I32 n, I32 seed) {
                 auto path = program_id(0) * c.B + arange(0, c.B);
                 auto in = path < n;
                 Tile up = full({c.B}, 0.f, f32), down = up, alive_up = in, alive_down = in;
                 auto edge = log(top / s0);
                 for (auto t : range(0, steps, 4)) {
                   auto [a, b, d, g] = randn4(seed, path * (steps / 4) + t / 4);
                   for (auto z : {a, b, d, g}) {
                     up += drift + vol * z, down += drift - vol * z;
                     alive_up = alive_up & (up < edge), alive_down = alive_down & (down < edge);
                   }
                 }
                 auto pay = .5f * (where(alive_up, max(s0 * exp(up) - strike, 0.f), 0.f) + where(alive_down, max(s0 * exp(down) - strike, 0.f), 0.f));
                 atomic_add(sums, cast(sum(pay), f64));
                 atomic_add(sums + 1, cast(sum(pay * pay), f64));
               }).grid([](const BarrierCfg& c, auto, float, float, float, float, float, int, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r4("barrier", [](Env& e) {
  BarrierCfg c;
  if (!e.big) c = {128};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 20 : 20000, steps = e.big ? 252 : 12;
  auto sums = constant<double>(e, 2, 0);
  const float vol = .2f / std::sqrt(float(steps)), drift = -.5f * vol * vol;
  Job j;
  j.gflop = 1e-9 * n * double(steps);
  j.add(barrier, c, sums.p, 100.f, 100.f, 125.f, drift, vol, steps, n, 7);
  j.check = [=]() -> std::string {  // another generator's paths: within what so many of them scatter
    double s = 0, s2 = 0;
    Env other;
    auto normal = [&] { return std::sqrt(-2 * std::log(1 - other.uniform())) * std::cos(2 * M_PI * other.uniform()); };
    const int m = 200000;
    for (int i = 0; i < m; ++i) {
      double x[2] = {}, pay = 0;
      bool out[2] = {};
      for (int t = 0; t < steps; ++t) {
        const double z = normal();
        for (int k = 0; k < 2; ++k) x[k] += drift + (k ? -vol : vol) * z, out[k] |= x[k] >= std::log(1.25);
      }
      for (int k = 0; k < 2; ++k) pay += out[k] ? 0 : std::max(100 * std::exp(x[k]) - 100, 0.) / 2;
      s += pay, s2 += pay * pay;
    }
    const auto got = sums.now();
    const double mean = s / m, error = std::sqrt((s2 / m - mean * mean) * (1. / n + 1. / m));
    if (std::abs(got[0] / n - mean) > 4 * error || std::abs(got[1] / n - s2 / m) > .1 * s2 / m)
      return std::to_string(got[0] / n) + " instead of " + std::to_string(mean);
    return "";
  };
  return j;
});

// --- structural similarity (windows of 7 x 7, all alike) of planes, and the gradient of its mean by the first picture:
// maps of what every window passes back, then their sums over the windows of a pixel
struct SsimCfg {
  int BH = 4, BW = 64;
};
auto ssim_maps = kernel("user_ssim_maps", [](const SsimCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<float> loss, Ptr<float> by_mean, Ptr<float> by_square,
                                             Ptr<float> by_product, I32, I32 H, I32 W) {
                   auto plane = cast(program_id(2), i64) * H * W;
                   auto h = (program_id(1) * c.BH + arange(0, c.BH)).col(), w = (program_id(0) * c.BW + arange(0, c.BW)).row();
                   Tile sx = zeros({c.BH, c.BW}, f32), sy = sx, sxx = sx, syy = sx, sxy = sx;
                   for (int r = -3; r <= 3; ++r)
                     for (int s = -3; s <= 3; ++s) {
                       auto in = (h + r >= 0) & (h + r < H) & (w + s >= 0) & (w + s < W);
                       auto at = plane + ((h + r) * W + (w + s));
                       auto a = load(x + at, {.mask = in}), b = load(y + at, {.mask = in});
                       sx += a, sy += b, sxx += a * a, syy += b * b, sxy += a * b;
                     }
                   const float k = 1 / 49.f, c1 = 1e-4f, c2 = 9e-4f;
                   auto mx = sx * k, my = sy * k, vx = sxx * k - mx * mx, vy = syy * k - my * my, vxy = sxy * k - mx * my;
                   auto A = 2 * mx * my + c1, B = 2 * vxy + c2, C = mx * mx + my * my + c1, D = vx + vy + c2;
                   auto value = A * B / (C * D);
                   auto in = (h < H) & (w < W);
                   auto at = plane + (h * W + w);
                   // d value / d (mean of x), with variance and covariance made of means of squares and products
                   auto dv = -value / D, dc = 2 * A / (C * D);
                   auto dm = 2 * my * B / (C * D) - 2 * mx * value / C - 2 * mx * dv - my * dc;
                   store(by_mean + at, dm, {.mask = in});
                   store(by_square + at, dv, {.mask = in});
                   store(by_product + at, dc, {.mask = in});
                   atomic_add(loss, sum(where(in, value, 0.f)));
                 }).grid([](const SsimCfg& c, auto, auto, auto, auto, auto, auto, int planes, int H, int W) { return Grid{cdiv(W, c.BW), cdiv(H, c.BH), planes}; });
auto ssim_grad = kernel("user_ssim_grad", [](const SsimCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<const float> by_mean, Ptr<const float> by_square,
                                             Ptr<const float> by_product, Ptr<float> dx, I32 planes, I32 H, I32 W) {
                   auto plane = cast(program_id(2), i64) * H * W;
                   auto h = (program_id(1) * c.BH + arange(0, c.BH)).col(), w = (program_id(0) * c.BW + arange(0, c.BW)).row();
                   Tile m = zeros({c.BH, c.BW}, f32), q = m, p = m;
                   for (int r = -3; r <= 3; ++r)
                     for (int s = -3; s <= 3; ++s) {
                       auto in = (h + r >= 0) & (h + r < H) & (w + s >= 0) & (w + s < W);
                       auto at = plane + ((h + r) * W + (w + s));
                       m += load(by_mean + at, {.mask = in}), q += load(by_square + at, {.mask = in}), p += load(by_product + at, {.mask = in});
                     }
                   auto in = (h < H) & (w < W);
                   auto at = plane + (h * W + w);
                   auto a = load(x + at, {.mask = in}), b = load(y + at, {.mask = in});
                   auto scale = 1.f / (49.f * cast(planes, f32) * cast(H * W, f32));
                   store(dx + at, (m + 2 * a * q + b * p) * scale, {.mask = in});
                 }).grid([](const SsimCfg& c, auto, auto, auto, auto, auto, auto, int planes, int H, int W) { return Grid{cdiv(W, c.BW), cdiv(H, c.BH), planes}; });
Register r5("ssim_both", [](Env& e) {
  SsimCfg c;
  if (!e.big) c = {4, 16};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW);
  const int planes = e.big ? 24 : 2, H = e.big ? 1080 : 13, W = e.big ? 1920 : 21;
  auto x = random<float>(e, size_t(planes) * H * W, 0, 1), y = random<float>(e, x.n, 0, 1);
  auto m = constant<float>(e, x.n, NAN), q = constant<float>(e, x.n, NAN), p = constant<float>(e, x.n, NAN), dx = constant<float>(e, x.n, NAN), loss = constant<float>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * 20. * x.n;
  j.add(ssim_maps, c, x.p, y.p, loss.p, m.p, q.p, p.p, planes, H, W);
  j.add(ssim_grad, c, x.p, y.p, m.p, q.p, p.p, dx.p, planes, H, W);
  j.check = [=]() -> std::string {
    std::vector<double> X(x.n);
    for (size_t i = 0; i < x.n; ++i) X[i] = x[i];
    auto window = [&](int plane, int h, int w) {
      double s[5] = {};
      for (int r = -3; r <= 3; ++r)
        for (int t = -3; t <= 3; ++t) {
          if (h + r < 0 || h + r >= H || w + t < 0 || w + t >= W) continue;
          const size_t at = (size_t(plane) * H + h + r) * W + w + t;
          const double a = X[at], b = y[at];
          s[0] += a / 49, s[1] += b / 49, s[2] += a * a / 49, s[3] += b * b / 49, s[4] += a * b / 49;
        }
      return (2 * s[0] * s[1] + 1e-4) * (2 * (s[4] - s[0] * s[1]) + 9e-4) / ((s[0] * s[0] + s[1] * s[1] + 1e-4) * (s[2] - s[0] * s[0] + s[3] - s[1] * s[1] + 9e-4));
    };
    double all = 0;
    std::vector<double> want(x.n);
    for (size_t i = 0; i < x.n; ++i) {
      const int w = int(i) % W, h = int(i) / W % H, plane = int(i) / W / H;
      all += window(plane, h, w);
      for (double d : {1e-4, -1e-4}) {
        X[i] += d;
        for (int r = std::max(0, h - 3); r <= std::min(H - 1, h + 3); ++r)
          for (int t = std::max(0, w - 3); t <= std::min(W - 1, w + 3); ++t) want[i] += window(plane, r, t) / (2 * d) / double(x.n);
        X[i] -= d;
      }
    }
    if (auto bad = agree(loss.now(), {all}, 1e-2, 1e-4); !bad.empty()) return "value: " + bad;
    return agree(dx.now(), want, 2e-6, 2e-3);
  };
  return j;
});

}  // namespace whole_programs
}  // namespace users
