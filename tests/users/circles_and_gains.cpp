// circles_and_gains.cpp - image and signal programs of benchmark suites: histograms of three channels, contours of
// cells (GICOV), a clean map of the sky (Hogbom), Bezier surfaces, gains of new centres (streamcluster), a multipole
// look-up (RSBench).
#include <complex>

#include "tests/users/flat_fields.h"
namespace users {
namespace circles_and_gains {
// --- histograms of the three colours of a picture
auto colours =
    kernel("user_colour_histogram", [](const FlatCfg& c, Tensor<const uint8_t, 2> pixels, Ptr<int32_t> counts) {
      num_warps(c.warps);  // pixels [n, 3] ; counts [3, 256]
      std::array<Tile, 3> h;
      for (auto& t : h) t = zeros({256}, i32);
      for (auto p : range(program_id(0) * c.B, pixels.dim(0), num_programs(0) * c.B)) {
        auto in = p + arange(0, c.B) < pixels.dim(0);
        for (int k = 0; k < 3; ++k)
          h[k] += histogram(cast(squeeze(pixels.load({p, k}, {c.B, 1}), 1), i32), 256, {.mask = in});
      }
      for (int k = 0; k < 3; ++k)
        atomic_add(counts + k * 256 + arange(0, 256), h[k], {.mask = h[k] > 0, .order = Order::relaxed});
    }).grid([](const FlatCfg& c, const auto& p, auto) { return Grid{std::min<int64_t>(cdiv(p.shape[0], c.B), 528)}; });
Register r1("colour_histogram", [](Env& e) {
  auto c = flat(e, {1024, 4}, {64, 1});
  const int n = e.big ? 3840 * 2160 : 333;
  auto px = integers<uint8_t>(e, size_t(n) * 3, 0, 256);
  auto counts = constant<int32_t>(e, 768, 0);
  Job j;
  restore(e, j, counts);
  j.inTurn = true;
  j.mbytes = 3e-6 * n;
  j.add(colours, c, px.view(n, 3), counts.p);
  j.check = [=] {
    std::vector<double> want(768);
    for (int i = 0; i < 3 * n; ++i) ++want[i % 3 * 256 + px.h[i]];
    return agree(counts.now(), want, .5, 0);
  };
  return j;
});
// --- leukocytes: the best circle around every pixel, by the mean and variance of gradients along it
struct CircleCfg {
  int BY = 4, BX = 32, points = 150, circles = 7, warps = 4;
};
auto gicov = kernel("user_gicov", [](const CircleCfg& c, Tensor<const float, 2> gx, Tensor<const float, 2> gy,
                                     Ptr<const float> angles, Ptr<float> out) {
               num_warps(c.warps);  // angles [2, points]: cosines and sines
               constexpr int margin = 22;
               auto y = program_id(1) * c.BY + arange(0, c.BY) + margin,
                    x = program_id(0) * c.BX + arange(0, c.BX) + margin;
               auto W = gx.dim(1);
               auto in = (y < gx.dim(0) - margin).col() & (x < W - margin).row();
               Tile best = zeros({c.BY, c.BX}, f32);
               for (auto k : range(c.circles)) {
                 Tile sum = zeros({c.BY, c.BX}, f32), square = zeros({c.BY, c.BX}, f32);
                 auto r = 4.f + 2.f * cast(k, f32);
                 for (auto n : range(c.points)) {
                   auto co = load(angles + n), si = load(angles + c.points + n);
                   auto dx = cast(r * co, i32), dy = cast(r * si, i32);
                   auto at = (y.col() + dy) * W + (x.row() + dx);
                   auto p = load(gx.ptr() + at, {.mask = in}) * co + load(gy.ptr() + at, {.mask = in}) * si;
                   sum += p, square += p * p;
                 }
                 auto mean = sum * (1.f / float(c.points));
                 auto var = (square - sum * mean) * (1.f / float(c.points - 1));
                 best = max(best, mean * mean / var);
               }
               store(out + (y.col() * W + x.row()), best, {.mask = in});
             }).grid([](const CircleCfg& c, const auto& g, const auto&, auto, auto) {
  return Grid{cdiv(g.shape[1] - 44, c.BX), cdiv(g.shape[0] - 44, c.BY)};
});
Register r2("gicov", [](Env& e) {
  CircleCfg c;
  if (!e.big) c = {2, 8, 9, 3, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 1080 : 51, W = e.big ? 1920 : 57;
  auto gx = random<float>(e, size_t(H) * W), gy = random<float>(e, size_t(H) * W);
  auto angles = filled<float>(e, 2 * c.points, [&](size_t i) {
    const double t = 6.2831853 * (i % c.points) / c.points;
    return float(i < size_t(c.points) ? std::cos(t) : std::sin(t));
  });
  auto out = constant<float>(e, size_t(H) * W, -1);
  Job j;
  j.gflop = 6e-9 * H * W * c.points * c.circles;
  j.add(gicov, c, gx.view(H, W), gy.view(H, W), angles.p, out.p);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W, -1);
    for (int y = 22; y < H - 22; ++y)
      for (int x = 22; x < W - 22; ++x) {
        double best = 0;
        for (int k = 0; k < c.circles; ++k) {
          double s = 0, q = 0;
          for (int n = 0; n < c.points; ++n) {
            const float co = angles.h[n], si = angles.h[c.points + n], r = 4 + 2 * k;
            const size_t at = size_t(y + int(r * si)) * W + x + int(r * co);
            const double p = gx[at] * co + gy[at] * si;
            s += p, q += p * p;
          }
          const double m = s / c.points, v = (q - s * m) / (c.points - 1);
          best = std::max(best, m * m / v);
        }
        want[size_t(y) * W + x] = best;
      }
    return agree(out.now(), want, 1e-4, 1e-3);
  };
  return j;
});
// --- Hogbom's CLEAN: the brightest pixel of the residual, a part of the beam around it taken away; two launches a step
auto peaks = kernel("user_hogbom_peak", [](const FlatCfg& c, Ptr<const float> residual, Ptr<float> best,
                                           Ptr<int32_t> where_, I32 n) {
               num_warps(c.warps);
               Tile high = full({c.B}, -1.f, f32), at = full({c.B}, 0x7fffffff, i32);
               for (auto i0 : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
                 auto i = i0 + arange(0, c.B);
                 auto v = abs(load(residual + i, {.mask = i < n}));
                 auto more = (v > high) & (i < n);
                 high = where(more, v, high), at = where(more, i, at);
               }
               auto [m, p] = reduce({high, at}, axis(0), [](Tile a, Tile ai, Tile b, Tile bi) {
                 auto first = (a > b) | ((a == b) & (ai < bi));
                 return std::tuple(where(first, a, b), where(first, ai, bi));
               });
               store(best + program_id(0), to_scalar(m)), store(where_ + program_id(0), to_scalar(p));
             }).grid([](const FlatCfg&, auto, auto, auto, int) { return Grid{32}; });
struct BeamCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto clean = kernel("user_hogbom_subtract", [](const BeamCfg& c, Tensor<float, 2> residual, Tensor<const float, 2> beam,
                                               Tensor<float, 2> model, Ptr<const float> best, Ptr<const int32_t> where_,
                                               F32 gain) {
               num_warps(c.warps);
               auto m = load(best + arange(0, 32));
               auto p = load(where_ + arange(0, 32));
               auto top = max(m);
               auto at = min(where(m == top, p, 0x7fffffff));
               auto W = residual.dim(1), py = at / W, px = at % W;
               auto value = load(residual.ptr() + at);
               // the old value is needed by all: it is taken from the peak's own place before anybody changes it
               auto by = beam.dim(0), bx = beam.dim(1);
               auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
               auto r = residual.load({y, x}, {c.BY, c.BX});
               auto b = beam.load({y - py + by / 2, x - px + bx / 2}, {c.BY, c.BX});
               residual.store({y, x}, r - gain * top * where(value < 0.f, -1.f, 1.f) * b);
               if_((program_id(0) == 0) & (program_id(1) == 0), [&] {
                 store(model.ptr() + at, load(model.ptr() + at) + gain * top * where(value < 0.f, -1.f, 1.f));
               });
             }).grid([](const BeamCfg& c, const auto& r, const auto&...) {
  return Grid{cdiv(r.shape[1], c.BX), cdiv(r.shape[0], c.BY)};
});
Register r3("hogbom", [](Env& e) {
  BeamCfg c;
  if (!e.big) c = {4, 16, 1};
  const int H = e.big ? 2048 : 23, W = e.big ? 2048 : 37, b = e.big ? 1024 : 15, steps = e.big ? 4 : 6;
  auto res = filled<float>(e, size_t(H) * W, [&](size_t) {
    return float(std::pow(e.uniform(), 9) + .05);
  });  // all positive: signs do not race
  auto beam = filled<float>(e, size_t(b) * b, [&](size_t i) {
    const double y = double(i / b) - b / 2, x = double(i % b) - b / 2;
    return float(std::exp(-(x * x + y * y) / 3));
  });
  auto model = constant<float>(e, size_t(H) * W, 0), best = constant<float>(e, 32, 0);
  auto at = constant<int32_t>(e, 32, 0);
  Job j;
  restore(e, j, res, model);
  j.inTurn = true;
  for (int s = 0; s < steps; ++s) {
    j.add(peaks, flat(e, {1024, 4}, {64, 1}), res.p, best.p, at.p, H * W);
    j.add(clean, c, res.view(H, W), beam.view(b, b), model.view(H, W), best.p, at.p, .1f);
  }
  j.check = [=] {
    std::vector<double> r(size_t(H) * W), m(size_t(H) * W);
    for (size_t i = 0; i < r.size(); ++i) r[i] = res[i];
    for (int s = 0; s < steps; ++s) {
      const size_t p =
          std::max_element(r.begin(), r.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
          r.begin();
      const double v = .1f * r[p];
      m[p] += v;
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          const int yy = y - int(p / W) + b / 2, xx = x - int(p % W) + b / 2;
          if (yy >= 0 && xx >= 0 && yy < b && xx < b) r[size_t(y) * W + x] -= v * beam[yy * b + xx];
        }
    }
    return agree(res.now(), r, 1e-5, 1e-5) + agree(model.now(), m, 1e-5, 1e-5);
  };
  return j;
});
// --- Bezier surfaces: control points weighed by Bernstein polynomials, degrees of the launch, float64
auto bezier = kernel("user_bezier", [](const BeamCfg& c, Ptr<const double> control, Ptr<double> out, I32 NI, I32 NJ,
                                       I32 RI, I32 RJ) {
                num_warps(c.warps);  // control [NI + 1, NJ + 1, 3], out [RI, RJ, 3]
                auto i = program_id(1) * c.BY + arange(0, c.BY), j = program_id(0) * c.BX + arange(0, c.BX);
                auto u = cast(i, f64) / cast(RI - 1, f64), v = cast(j, f64) / cast(RJ - 1, f64);
                auto bernstein = [](const Tile& k, const Tile& mu, const Tile& n) {
                  Tile blend = zeros_like(mu) + 1., nn = n, kn = k, nkn = n - k;
                  while_([&] { return nn >= 1; },
                         [&] {
                           blend *= cast(nn, f64);
                           nn -= 1;
                           if_(kn > 1, [&] {
                             blend /= cast(kn, f64);
                             kn -= 1;
                           });
                           if_(nkn > 1, [&] {
                             blend /= cast(nkn, f64);
                             nkn -= 1;
                           });
                         });
                  for (auto q : range(k)) blend *= mu;
                  for (auto q : range(n - k)) blend *= 1. - mu;
                  return blend;
                };
                std::array<Tile, 3> sum;
                for (auto& s : sum) s = zeros({c.BY, c.BX}, f64);
                for (auto ki : range(NI + 1)) {
                  auto bi = bernstein(ki, u, NI).col();
                  for (auto kj : range(NJ + 1)) {
                    auto b = bi * bernstein(kj, v, NJ).row();
                    auto p = (ki * (NJ + 1) + kj) * 3;
                    for (int d = 0; d < 3; ++d) sum[d] += b * load(control + p + d);
                  }
                }
                auto at = (i.col() * RJ + j.row()) * 3;
                for (int d = 0; d < 3; ++d) store(out + at + d, sum[d], {.mask = (i < RI).col() & (j < RJ).row()});
              }).grid([](const BeamCfg& c, auto, auto, int, int, int RI, int RJ) {
  return Grid{cdiv(RJ, c.BX), cdiv(RI, c.BY)};
});
Register r4("bezier", [](Env& e) {
  BeamCfg c;
  if (!e.big) c = {4, 8, 1};
  const int NI = e.big ? 20 : 3, NJ = e.big ? 20 : 5, RI = e.big ? 1024 : 7, RJ = e.big ? 1024 : 11;
  auto control = random<double>(e, (NI + 1) * (NJ + 1) * 3), out = constant<double>(e, size_t(RI) * RJ * 3, NAN);
  Job j;
  j.add(bezier, c, control.p, out.p, NI, NJ, RI, RJ);
  j.check = [=] {
    auto choose = [](int n, int k) {
      double r = 1;
      for (int i = 0; i < k; ++i) r = r * (n - i) / (i + 1);
      return r;
    };
    std::vector<double> want(out.n);
    for (int i = 0; i < RI; ++i)
      for (int q = 0; q < RJ; ++q)
        for (int a = 0; a <= NI; ++a)
          for (int b = 0; b <= NJ; ++b) {
            const double u = double(i) / (RI - 1), v = double(q) / (RJ - 1);
            const double w = choose(NI, a) * std::pow(u, a) * std::pow(1 - u, NI - a) * choose(NJ, b) * std::pow(v, b) *
                             std::pow(1 - v, NJ - b);
            for (int d = 0; d < 3; ++d) want[(size_t(i) * RJ + q) * 3 + d] += w * control[(a * (NJ + 1) + b) * 3 + d];
          }
    return agree(out.now(), want, 1e-12, 1e-12);
  };
  return j;
});
// --- streamcluster: what opening a centre would gain: points that would move, and what their old centres would lose
auto pgain = kernel("user_pgain", [](const FlatCfg& c, Tensor<const float, 2> coordinates, Ptr<const float> weight,
                                     Ptr<const float> cost, Ptr<const int32_t> centre, Ptr<float> lower,
                                     Ptr<float> total, Ptr<int8_t> moves, I32 x) {
               num_warps(c.warps);  // coordinates [D, n]
               auto n = coordinates.dim(1);
               auto i = program_id(0) * c.B;
               auto at = i + arange(0, c.B);
               auto in = at < n;
               Tile d2 = zeros({c.B}, f32);
               for (auto d : range(coordinates.dim(0))) {
                 auto diff = coordinates.load({d, i}, {c.B}) - load(coordinates.ptr() + (d * n + x));
                 d2 += diff * diff;
               }
               auto mine = load(cost + at, {.mask = in});
               auto xc = d2 * load(weight + at, {.mask = in});
               auto moved = in & (xc < mine);
               store(moves + at, cast(moved, i8), {.mask = in});
               atomic_add(lower + load(centre + at, {.mask = in}), mine - xc, {.mask = in & ~moved});
               atomic_add(total, sum(where(moved, xc - mine, 0.f)));
             }).grid([](const FlatCfg& c, const auto& p, auto...) { return Grid{cdiv(p.shape[1], c.B)}; });
Register r5("pgain", [](Env& e) {
  auto c = flat(e, {512, 4}, {32, 1});
  const int D = e.big ? 256 : 5, n = e.big ? 65536 : 101, K = e.big ? 100 : 7, x = 13;
  auto p = random<float>(e, size_t(D) * n), w = random<float>(e, n, .5, 2),
       cost = random<float>(e, n, 0, e.big ? 300 : 3);
  auto centre = integers<int32_t>(e, n, 0, K);
  auto lower = constant<float>(e, K, 0), total = constant<float>(e, 1, 0);
  auto moves = constant<int8_t>(e, n, 5);
  Job j;
  restore(e, j, lower, total);
  j.inTurn = true;
  j.mbytes = 4e-6 * D * n;
  j.add(pgain, c, p.view(D, n), w.p, cost.p, centre.p, lower.p, total.p, moves.p, x);
  j.check = [=] {
    std::vector<double> l(K), t(1), m(n);
    for (int i = 0; i < n; ++i) {
      double d = 0;
      for (int k = 0; k < D; ++k) d += std::pow(p[size_t(k) * n + i] - p[size_t(k) * n + x], 2);
      d *= w[i];
      m[i] = d < cost[i];
      (m[i] ? t[0] : l[centre.h[i]]) += m[i] ? d - cost[i] : cost[i] - d;
    }
    auto g = moves.now();
    return agree(std::vector<double>(g.begin(), g.end()), m, .5, 0) + agree(lower.now(), l, 1e-3, 1e-4) +
           agree(total.now(), t, 1e-3, 1e-4);
  };
  return j;
});
}  // namespace circles_and_gains
}  // namespace users
