// column_physics.cpp - columns and histories, each computed from end to end by one lane: fluxes of two-stream radiation
// by adding layers, rainflow counts of load histories with a stack per lane, small sparse systems by BiCGSTAB.
#include "tests/users/use.h"
namespace users {
namespace column_physics {

// --- shortwave fluxes of an atmosphere by the adding method (two-stream, Zdunkowski): reflectance and transmittance of
// every layer, from the ground up what lies below reflects, from the top down the fluxes
struct RadiationCfg {
  int B = 128, warps = 4;
};
struct Layer {
  Tile reflect, pass;
};
Layer layer_of(const Tile& depth, const Tile& albedo, const Tile& asymmetry) {
  auto gamma1 = (8.f - albedo * (5.f + 3.f * asymmetry)) * .25f;
  auto gamma2 = 3.f * (albedo * (1.f - asymmetry)) * .25f;
  auto k = sqrt(max((gamma1 - gamma2) * (gamma1 + gamma2), 1e-6f));
  auto e1 = exp(-depth * k), e2 = e1 * e1;
  auto below = 1.f / (k * (1.f + e2) + gamma1 * (1.f - e2));
  return Layer{gamma2 * (1.f - e2) * below, 2.f * k * e1 * below};
}
auto radiation =
    kernel("user_radiation", [](const RadiationCfg& c, Tensor<const float, 2> depth, Tensor<const float, 2> albedo,
                                Tensor<const float, 2> asymmetry, Ptr<const float> ground, Ptr<float> below,
                                Ptr<float> up, Ptr<float> down, F32 sun) {
      // optical properties [layers, columns], layer 0 on top; fluxes [layers + 1, columns]
      num_warps(c.warps);
      auto col = program_id(0) * c.B + arange(0, c.B);
      auto n = depth.dim(1), layers = depth.dim(0);
      auto in = col < n;
      auto level = [&](const Tile& l) { return cast(l, i64) * cast(n, i64) + cast(col, i64); };
      auto layer = [&](const Tile& l) {
        auto box = [&](const Tensor<const float, 2>& t) {
          return reshape(t.load({l, program_id(0) * c.B}, {1, c.B}), {c.B});
        };
        return layer_of(box(depth), box(albedo), box(asymmetry));
      };
      Tile under = load(ground + col, {.mask = in});
      store(below + level(layers), under, {.mask = in});
      for (auto l : range(layers - 1, -1, -1)) {
        auto x = layer(l);
        under = x.reflect + x.pass * x.pass * under / (1.f - under * x.reflect);
        store(below + level(l), under, {.mask = in});
      }
      Tile falling = zeros({c.B}, f32) + sun;
      store(down + col, falling, {.mask = in});
      store(up + col, falling * under, {.mask = in});
      for (auto l : range(layers)) {
        // what comes from above, bounced between this layer and those below it
        auto x = layer(l);
        auto next = load(below + level(l + 1), {.mask = in});
        falling = falling * x.pass / (1.f - x.reflect * next);
        store(down + level(l + 1), falling, {.mask = in});
        store(up + level(l + 1), falling * next, {.mask = in});
      }
    }).grid([](const RadiationCfg& c, const auto& depth, const auto&...) { return Grid{cdiv(depth.shape[1], c.B)}; });
Register r1("radiation", [](Env& e) {
  RadiationCfg c;
  if (!e.big) c = {40, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int L = e.big ? 72 : 11, N = e.big ? 1 << 18 : 173;
  const size_t all = size_t(L) * N;
  auto depth = random<float>(e, all, 0, 2), albedo = random<float>(e, all, .3, .99),
       asym = random<float>(e, all, 0, .9);
  auto ground = random<float>(e, N, 0, .8);
  auto below = constant<float>(e, all + N, NAN), up = below, down = below;
  up = constant<float>(e, all + N, NAN), down = constant<float>(e, all + N, NAN);
  Job j;
  j.mbytes = 1e-6 * 4 * double(all) * 10;
  j.add(radiation, c, depth.view(L, N), albedo.view(L, N), asym.view(L, N), ground.p, below.p, up.p, down.p, 1361.f);
  j.check = [=] {
    std::vector<double> wu(all + N), wd(all + N);
    for (int col = 0; col < N; ++col) {
      std::vector<double> r(L), t(L), a(L + 1);
      a[L] = ground[col];
      for (int l = L - 1; l >= 0; --l) {
        const size_t at = size_t(l) * N + col;
        const double w = albedo[at], g = asym[at];
        const double g1 = (8 - w * (5 + 3 * g)) / 4, g2 = 3 * w * (1 - g) / 4, k = std::sqrt(g1 * g1 - g2 * g2);
        const double s = std::sinh(k * depth[at]), ch = std::cosh(k * depth[at]);
        r[l] = g2 * s / (k * ch + g1 * s), t[l] = k / (k * ch + g1 * s);
        a[l] = r[l] + t[l] * t[l] * a[l + 1] / (1 - a[l + 1] * r[l]);
      }
      wd[col] = 1361, wu[col] = 1361 * a[0];
      for (int l = 0; l < L; ++l) {
        const size_t at = size_t(l + 1) * N + col;
        wd[at] = wd[at - N] * t[l] / (1 - r[l] * a[l + 1]), wu[at] = wd[at] * a[l + 1];
      }
    }
    return agree(up.now(), wu, 1e-4, 1e-4) + agree(down.now(), wd, 1e-4, 1e-4);
  };
  return j;
});

// --- rainflow counting (ASTM E1049): turning points on a stack, whole cycles leave it as soon as they are closed
struct RainflowCfg {
  int B = 64, warps = 2, bins = 32;
};
auto rainflow =
    kernel("user_rainflow", [](const RainflowCfg& c, Ptr<const float> loads, Ptr<float> stack, Ptr<int32_t> half_cycles,
                               Ptr<float> damage, I32 series, I32 T, F32 width, F32 exponent) {
      // loads [T, series], stack [T, series], half_cycles [series, bins]
      num_warps(c.warps);
      auto s = program_id(0) * c.B + arange(0, c.B);
      auto in = s < series;
      auto at = [&](const Tile& level) { return cast(level, i64) * cast(series, i64) + cast(s, i64); };
      Tile harm = zeros({c.B}, f32), bottom = zeros({c.B}, i32), top = zeros({c.B}, i32);
      auto count = [&](const Tile& size, const Tile& halves, const Tile& which) {
        auto bin = min(cast(size / width, i32), c.bins - 1);
        atomic_add(half_cycles + s * c.bins + bin, halves, {.mask = which});
        harm += where(which, cast(halves, f32) * .5f * pow(size, exponent), 0.f);
      };
      auto entry = [&](const Tile& below_top, const Tile& which) {
        return load(stack + at(top - below_top), {.mask = which});
      };
      auto push = [&](const Tile& x, const Tile& which) {
        store(stack + at(top), x, {.mask = which});
        top += cast(which, i32);
        Tile active = which & (top - bottom >= 3);
        while_([&] { return any(active); },
               [&] {
                 auto one = full({c.B}, 1, i32);
                 auto a = entry(one * 3, active), b = entry(one * 2, active), x = entry(one, active);
                 auto inner = abs(b - a), outer = abs(x - b);
                 active = active & (outer >= inner);
                 auto starts = active & (top - bottom == 3);
                 count(inner, where(starts, 1, 2), active);
                 // a half cycle loses its first point; of a whole one both go
                 bottom += cast(starts, i32);
                 auto closed = active & ~starts;
                 store(stack + at(top - 3), x, {.mask = closed});
                 top = top - where(closed, 2, 0);
                 active = closed & (top - bottom >= 3);
               });
      };
      Tile last = load(loads + s, {.mask = in}), slope = zeros({c.B}, f32);
      push(last, in);
      for (auto t : range(1, T)) {
        auto now = load(loads + at(t), {.mask = in});
        auto moves = now - last;
        push(last, in & (moves * slope < 0.f));
        slope = where(moves != 0.f, moves, slope);
        last = now;
      }
      push(last, in & (slope != 0.f));
      // what remains are half cycles
      while_([&] { return any(in & (top - bottom >= 2)); },
             [&] {
               auto which = in & (top - bottom >= 2);
               auto a = load(stack + at(bottom), {.mask = which}), b = load(stack + at(bottom + 1), {.mask = which});
               count(abs(b - a), full({c.B}, 1, i32), which);
               bottom += cast(which, i32);
             });
      store(damage + s, harm, {.mask = in});
    }).grid([](const RainflowCfg& c, auto, auto, auto, auto, int series, int, float, float) {
      return Grid{cdiv(series, c.B)};
    });
Register r2("rainflow", [](Env& e) {
  RainflowCfg c;
  if (!e.big) c = {24, 1, 8};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 16384 : 41, T = e.big ? 2048 : 67, bins = c.bins;
  const size_t all = size_t(S) * T;
  // steps of a quarter: equal neighbours and ranges happen; every ninth history does not move
  auto loads = drawn<float>(e, all, [&] { return float(std::floor(e.uniform() * 32) / 4); });
  if (!e.big) {
    auto h = loads.h;
    for (size_t i = 0; i < all; ++i)
      if (i % S % 9 == 4) h[i] = 2;
    loads = repeated(e, all, h);
  }
  auto stack = constant<float>(e, all, NAN);
  auto cycles = constant<int32_t>(e, size_t(S) * bins, 0);
  auto damage = constant<float>(e, S, NAN);
  const float width = 8.f / bins;
  Job j;
  restore(e, j, cycles);
  j.mbytes = 1e-6 * 4 * double(all);
  j.add(rainflow, c, loads.p, stack.p, cycles.p, damage.p, S, T, width, 3.f);
  j.check = [=] {
    std::vector<double> counts(size_t(S) * bins), harm(S);
    for (int s = 0; s < S; ++s) {
      std::vector<double> points{loads[s]};  // turning points
      for (int t = 1; t < T; ++t) {
        const double x = loads[size_t(t) * S + s];
        if (x == points.back()) continue;
        const size_t n = points.size();
        if (n > 1 && (points[n - 1] - points[n - 2]) * (x - points[n - 1]) > 0)
          points.back() = x;
        else
          points.push_back(x);
      }
      auto count = [&](double size, int halves) {
        counts[size_t(s) * bins + std::min(int(size / width), bins - 1)] += halves;
        harm[s] += .5 * halves * size * size * size;
      };
      std::vector<double> open;
      for (double p : points) {
        open.push_back(p);
        while (open.size() >= 3) {
          const size_t n = open.size();
          const double x = std::abs(open[n - 1] - open[n - 2]), y = std::abs(open[n - 2] - open[n - 3]);
          if (x < y) break;
          count(y, n == 3 ? 1 : 2);
          if (n == 3)
            open.erase(open.begin());
          else
            open.erase(open.end() - 3, open.end() - 1);
        }
      }
      for (size_t i = 1; i < open.size(); ++i) count(std::abs(open[i] - open[i - 1]), 1);
    }
    return agree(cycles.now(), counts, .1, 0) + agree(damage.now(), harm, 1e-2, 1e-4);
  };
  return j;
});

// --- batches of small sparse systems with one pattern (Ginkgo): BiCGSTAB, a program each, until each has converged
struct BatchCfg {
  int N = 64, warps = 2;  // no system has more rows than N
};
auto batch_bicgstab =
    kernel("user_batch_bicgstab", [](const BatchCfg& c, Ptr<const int32_t> row_start, Ptr<const int32_t> columns,
                                     Tensor<const double, 2> values, Tensor<const double, 2> rhs,
                                     Tensor<double, 2> x_out, Ptr<int32_t> iterations, I32 longest, F64 tolerance,
                                     I32 most) {
      num_warps(c.warps);
      auto b = program_id(0);
      auto i = arange(0, c.N);
      auto in = i < rhs.dim(1);
      auto first = load(row_start + i, {.mask = in}), end = load(row_start + i + 1, {.mask = in});
      auto system = values.ptr() + cast(b, i64) * values.stride(0);
      auto times = [&](const Tile& v) {
        Tile y = zeros({c.N}, f64);
        for (auto k : range(longest)) {
          auto at = first + k;
          auto here = at < end;
          y += load(system + at, {.mask = here}) * take(v, load(columns + at, {.mask = here}), 0);
        }
        return y;
      };
      auto inner = [](const Tile& p, const Tile& q) { return sum(p * q); };
      Tile r = squeeze(rhs.load({b, 0}, {1, c.N}), 0);
      auto shadow = r;
      auto limit = inner(r, r) * tolerance * tolerance;
      Tile x = zeros({c.N}, f64), p = zeros({c.N}, f64), v = zeros({c.N}, f64);
      Tile rho = full({}, 1., f64), alpha = full({}, 1., f64), omega = full({}, 1., f64), n = full({}, 0, i32);
      Tile left = inner(r, r);
      while_([&] { return (left > limit) & (n < most); },
             [&] {
               auto next = inner(shadow, r);
               auto beta = next / rho * (alpha / omega);
               rho = next;
               p = r + beta * (p - omega * v);
               v = times(p);
               alpha = rho / inner(shadow, v);
               auto s = r - alpha * v;
               auto t = times(s);
               auto tt = inner(t, t);
               omega = where(tt > 0., inner(t, s) / tt, 0.);
               x += alpha * p + omega * s;
               r = s - omega * t;
               left = inner(r, r);
               n += 1;
             });
      x_out.store({b, 0}, expand_dims(x, 0));
      store(iterations + b, n);
    }).grid([](const BatchCfg&, auto, auto, const auto& values, const auto&...) { return Grid{values.shape[0]}; });
Register r3("batch_bicgstab", [](Env& e) {
  BatchCfg c;
  if (!e.big) c = {40, 1};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 32768 : 5, N = e.big ? 64 : 33;
  std::vector<int32_t> start{0}, column;
  for (int i = 0; i < N; ++i) {  // a band, and one far away; some rows have their diagonal only
    for (int k : {i - 8, i - 1, i, i + 1, i + 8})
      if (k == i || (k >= 0 && k < N && i % 7 != 3)) column.push_back(k);
    start.push_back(int(column.size()));
  }
  const int nnz = int(column.size());
  std::vector<double> all;
  for (int s = 0; s < (e.big ? 16 : S); ++s)
    for (int i = 0; i < N; ++i)
      for (int k = start[i]; k < start[i + 1]; ++k) all.push_back(column[k] == i ? 4.5 + e.uniform() : -e.uniform());
  auto values = repeated(e, size_t(S) * nnz, all);
  auto rhs = random<double>(e, size_t(S) * N);
  if (!e.big)
    for (int i = 0; i < N; ++i) rhs.h[i] = 0;  // nothing to solve
  rhs = repeated(e, size_t(S) * N, rhs.h);
  auto starts = repeated(e, start.size(), start), columns = repeated(e, column.size(), column);
  auto x = constant<double>(e, size_t(S) * N, NAN);
  auto iterations = constant<int32_t>(e, S, -1);
  Job j;
  j.mbytes = 1e-6 * 8 * double(S) * (nnz + 2 * N);
  j.add(batch_bicgstab, c, starts.p, columns.p, values.view(S, nnz), rhs.view(S, N), x.view(S, N), iterations.p, 5,
        1e-10, 200);
  j.check = [=] {
    const auto got = x.now();
    std::vector<double> residual(size_t(S) * N);
    for (int s = 0; s < S; ++s)
      for (int i = 0; i < N; ++i) {
        double& sum = residual[size_t(s) * N + i] = -rhs[size_t(s) * N + i];
        for (int k = start[i]; k < start[i + 1]; ++k)
          sum += values[size_t(s) * nnz + k] * got[size_t(s) * N + column[k]];
      }
    const auto often = iterations.now();
    if (often[0] != 0 || often[1] < 3 || often[1] > 60) return "iterations: " + std::to_string(often[1]);
    return agree(residual, std::vector<double>(residual.size()), 1e-8, 0);
  };
  return j;
});

}  // namespace column_physics
}  // namespace users
