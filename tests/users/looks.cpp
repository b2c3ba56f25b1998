// looks.cpp - what is looked up or solved element by element: soft shadows in a depth map, the nearest city of every
// ship on the globe, the volatility that a price implies, a path table behind a joystick's long chain of choices.
#include "tests/users/use.h"
namespace users {
namespace looks {

struct LaneCfg {
  int B = 128, warps = 4;
};

// --- shadows: points of the camera's picture seen from the lamp, 5 x 5 comparisons in its depth map (PCF)
auto shadow = kernel("user_shadow", [](const LaneCfg& c, Tensor<const float, 3> point, Ptr<const float> lamp,
                                       Tensor<const float, 2> depth, Tensor<uint8_t, 2> lit, F32 bias) {
                // point [3, h, w]; lamp: a 4 x 4 matrix, row by row; depth [s, s]
                num_warps(c.warps);
                auto y = program_id(1), x = program_id(0) * c.B;
                auto get = [&](int d) { return squeeze(squeeze(point.load({d, y, x}, {1, 1, c.B}), 0), 0); };
                auto px = get(0), py = get(1), pz = get(2);
                auto row = [&](int r) {
                  return load(lamp + 4 * r) * px + load(lamp + (4 * r + 1)) * py + load(lamp + (4 * r + 2)) * pz +
                         load(lamp + (4 * r + 3));
                };
                auto w = row(3);
                auto s = depth.dim(0);
                auto u = (row(0) / w * 0.5f + 0.5f) * cast(s, f32), v = (row(1) / w * 0.5f + 0.5f) * cast(s, f32);
                auto z = row(2) / w - bias;
                auto iu = cast(floor(u), i32), iv = cast(floor(v), i32);
                Tile open = zeros({c.B}, f32);
                for (auto dy : range(-2, 3))
                  for (auto dx : range(-2, 3)) {
                    auto cx = iu + dx, cy = iv + dy;
                    auto inside = (cx >= 0) & (cy >= 0) & (cx < s) & (cy < s) & (w > 0.f);
                    auto seen = load(depth.ptr() + (cy * s + cx), {.mask = inside, .other = 1.f});
                    open += where(z <= seen, 1.f, 0.f);
                  }
                lit.store({y, x}, cast(open * (255.f / 25.f) + 0.5f, u8).row());
              }).grid([](const LaneCfg& c, const auto& p, const auto&...) {
  return Grid{cdiv(p.shape[2], c.B), p.shape[1]};
});
Register r1("shadow", [](Env& e) {
  const int h = e.big ? 1080 : 5, w = e.big ? 1920 : 43, s = e.big ? 2048 : 16;
  auto point = filled<float>(e, size_t(3) * h * w, [&](size_t i) {
    const int d = int(i / w / h), y = int(i / w % h), x = int(i % w);
    return float(d == 0   ? 2. * x / w - 1
                 : d == 1 ? 2. * y / h - 1
                          : 2 + .5 * std::sin(9. * x / w) + .001 * e.uniform());
  });
  const std::vector<float> matrix{.8f, .1f, 0, .05f, -.1f, .9f, .02f, 0, 0, .05f, .4f, -.4f, .05f, 0, .1f, .9f};
  auto lamp = repeated(e, 16, matrix);
  auto depth = random<float>(e, size_t(s) * s, .2, .8);
  auto lit = constant<uint8_t>(e, size_t(h) * w, 1);
  Job j;
  j.mbytes = 1e-6 * h * w * 13;
  j.add(shadow, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, point.view(3, h, w), lamp.p,
        depth.view(s, s), lit.view(h, w), .002f);
  j.check = [=] {
    const auto got = lit.now();
    int off = 0;
    for (int i = 0; i < h * w; ++i) {
      double to[4];
      for (int r = 0; r < 4; ++r) {
        to[r] = matrix[r * 4 + 3];
        for (int d = 0; d < 3; ++d) to[r] += double(matrix[r * 4 + d]) * point[size_t(d) * h * w + i];
      }
      const double u = (to[0] / to[3] * .5 + .5) * s, v = (to[1] / to[3] * .5 + .5) * s, z = to[2] / to[3] - .002f;
      int open = 0;
      for (int dy = -2; dy < 3; ++dy)
        for (int dx = -2; dx < 3; ++dx) {
          const int cx = int(std::floor(u)) + dx, cy = int(std::floor(v)) + dy;
          open += cx < 0 || cy < 0 || cx >= s || cy >= s || z <= depth[size_t(cy) * s + cx];
        }
      const int want = int(open * 255. / 25 + .5);
      if (std::abs(got[i] - want) > 60) return "pixel " + std::to_string(i);
      off += std::abs(got[i] - want) > 1;
    }
    return off <= h * w / 50 ? std::string() : std::to_string(off) + " pixels";
  };
  return j;
});

// --- the nearest of many cities for every ship, along great circles; degrees in double precision, i64 numbers
auto nearest_city = kernel("user_nearest_city", [](const LaneCfg& c, Ptr<const double> ships, Ptr<const double> cities,
                                                   Ptr<int64_t> which, Ptr<double> km, I64 n, I64 m) {
                      num_warps(c.warps);
                      const double rad = M_PI / 180;
                      auto i = cast(program_id(0), i64) * int64_t(c.B) + cast(arange(0, c.B), i64);
                      auto ok = i < n;
                      auto lat = load(ships + i * 2, {.mask = ok}) * rad,
                           lon = load(ships + (i * 2 + 1), {.mask = ok}) * rad;
                      Tile best = full({c.B}, INFINITY, f64), at = full({c.B}, -1, i64);
                      for (auto k : range(0, m)) {
                        auto la = load(cities + k * 2) * rad, lo = load(cities + (k * 2 + 1)) * rad;
                        auto s = sin((la - lat) / 2.0), t = sin((lo - lon) / 2.0);
                        auto a = s * s + cos(lat) * cos(la) * t * t;
                        auto closer = a < best;
                        best = where(closer, a, best);
                        at = where(closer, k, at);
                      }
                      store(which + i, at, {.mask = ok});
                      store(km + i, 2.0 * 6371.0 * asin(sqrt(min(best, 1.0))), {.mask = ok});
                    }).grid([](const LaneCfg& c, const double*, const double*, int64_t*, double*, int64_t n, int64_t) {
  return Grid{cdiv(n, c.B)};
});
Register r2("nearest_city", [](Env& e) {
  const int64_t n = e.big ? 1 << 16 : 77, m = e.big ? 256 : 19;
  auto ships = drawn<double>(e, 2 * n, [&] { return e.uniform() * 180 - 90; });
  auto cities = drawn<double>(e, 2 * m, [&] { return e.uniform() * 170 - 85; });
  auto which = constant<int64_t>(e, n, -9);
  auto km = constant<double>(e, n, NAN);
  Job j;
  j.gflop = 1e-9 * double(n) * double(m) * 60;
  j.add(nearest_city, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, ships.p, cities.p,
        which.p, km.p, n, m);
  j.check = [=] {
    std::vector<double> near(n), far(n);
    for (int64_t i = 0; i < n; ++i) {
      double best = INFINITY;
      for (int64_t k = 0; k < m; ++k) {
        const double r = M_PI / 180, la = ships[2 * i] * r, lb = cities[2 * k] * r;
        const double s = std::sin((lb - la) / 2), t = std::sin((cities[2 * k + 1] - ships[2 * i + 1]) * r / 2);
        const double a = s * s + std::cos(la) * std::cos(lb) * t * t;
        if (a < best) best = a, near[i] = double(k);
      }
      far[i] = 2 * 6371 * std::asin(std::sqrt(best));
    }
    auto wrong = agree(which.now(), near, .5, 0);
    return wrong.empty() ? agree(km.now(), far, 1e-8, 1e-10) : wrong;
  };
  return j;
});

// --- implied volatility of calls and puts by Newton's steps, kept between bounds by bisection; a lane an option
auto implied =
    kernel("user_implied", [](const LaneCfg& c, Tensor<const float, 1> spot, Tensor<const float, 1> strike,
                              Tensor<const float, 1> years, Tensor<const float, 1> price, Tensor<const uint8_t, 1> call,
                              F32 rate, Tensor<float, 1> sigma, Tensor<int32_t, 1> steps) {
      num_warps(c.warps);
      auto at = program_id(0) * c.B;
      auto live = at + arange(0, c.B) < spot.dim(0);
      auto S = where(live, spot.load({at}, {c.B}), 1.f), K = where(live, strike.load({at}, {c.B}), 1.f);
      auto T = where(live, years.load({at}, {c.B}), 1.f), P = price.load({at}, {c.B});
      auto is_call = call.load({at}, {c.B}) != 0;
      auto discount = exp(-rate * T);
      Tile lo = full({c.B}, 1e-3f, f32), hi = full({c.B}, 4.f, f32), v = full({c.B}, 0.3f, f32);
      Tile done = ~live, count = zeros({c.B}, i32);
      for (auto step : range(40)) {
        break_if(all(done));
        auto root = v * sqrt(T);
        auto d1 = (log(S / K) + (rate + 0.5f * v * v) * T) / root, d2 = d1 - root;
        auto sign = where(is_call, 1.f, -1.f);
        auto value = sign * (S * normcdf(sign * d1) - K * discount * normcdf(sign * d2));
        auto vega = S * sqrt(T) * exp(-0.5f * d1 * d1) * 0.3989422804f;
        auto miss = value - P;
        hi = where(miss > 0.f, min(hi, v), hi);
        lo = where(miss > 0.f, lo, max(lo, v));
        auto newton = v - miss / max(vega, 1e-8f);
        auto next = where((newton > lo) & (newton < hi), newton, 0.5f * (lo + hi));
        auto good = (abs(miss) < 1e-4f * S) | (abs(next - v) < 1e-6f);
        v = where(done | good, v, next);
        count += where(done, 0, 1);
        done = done | good;
      }
      sigma.store({at}, v);
      steps.store({at}, count);
    }).grid([](const LaneCfg& c, const auto& s, const auto&...) { return Grid{cdiv(s.shape[0], c.B)}; });
Register r3("implied", [](Env& e) {
  const int n = e.big ? 1 << 22 : 203;
  auto cdf = [](double x) { return .5 * std::erfc(-x / std::sqrt(2.)); };
  const double rate = .02;
  auto value = [=](double S, double K, double T, double v, bool call) {
    const double root = v * std::sqrt(T), d1 = (std::log(S / K) + (rate + .5 * v * v) * T) / root, d2 = d1 - root;
    const double s = call ? 1 : -1;
    return s * (S * cdf(s * d1) - K * std::exp(-rate * T) * cdf(s * d2));
  };
  auto spot = random<float>(e, n, 80, 120), strike = random<float>(e, n, 85, 115), years = random<float>(e, n, .2, 2);
  auto vol = random<float>(e, n, .1, .9);
  auto call = filled<uint8_t>(e, n, [](size_t i) { return i % 3 != 0; });
  auto price =
      filled<float>(e, n, [&](size_t i) { return float(value(spot[i], strike[i], years[i], vol[i], i % 3 != 0)); });
  auto sigma = constant<float>(e, n, NAN);
  auto steps = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 25e-6 * n;
  j.add(implied, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, spot.view(n), strike.view(n),
        years.view(n), price.view(n), call.view(n), float(rate), sigma.view(n), steps.view(n));
  j.check = [=] {
    const auto got = sigma.now();
    const auto count = steps.now();
    for (int i = 0; i < n; ++i) {
      const double miss = value(spot[i], strike[i], years[i], got[i], i % 3 != 0) - price[i];
      if (!(std::abs(miss) < 2e-4 * spot[i]) || count[i] < 1 || count[i] > 30) return "option " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

// --- the nearest point of a cloud sorted into square cells, for queries that look into the 3 x 3 cells around theirs;
// the points of three cells of a line lie together, and a second kernel walks as far as the longest of its lines
auto near_cells =
    kernel("user_near_cells", [](const LaneCfg& c, Ptr<const float> cloud, Ptr<const int32_t> start,
                                 Ptr<const float> query, Ptr<float> distance, Ptr<int32_t> which, I32 n, I32 side) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto ok = i < n;
      auto x = load(query + 2 * i, {.mask = ok}), y = load(query + (2 * i + 1), {.mask = ok});
      auto cx = cast(floor(x), i32), cy = cast(floor(y), i32);
      Tile best = full({c.B}, INFINITY, f32), at = full({c.B}, -1, i32);
      for (auto dy : range(-1, 2)) {
        auto row = cy + dy;
        auto in = ok & (row >= 0) & (row < side);
        Tile j = load(start + (row * side + max(cx - 1, 0)), {.mask = in});
        auto end = load(start + (row * side + min(cx + 2, side)), {.mask = in});
        while_([&] { return any(j < end); },
               [&] {
                 auto there = j < end;
                 auto u = load(cloud + 2 * j, {.mask = there}) - x, v = load(cloud + (2 * j + 1), {.mask = there}) - y;
                 auto d = where(there, u * u + v * v, INFINITY);
                 auto closer = d < best;
                 best = where(closer, d, best);
                 at = where(closer, j, at);
                 j += 1;
               });
      }
      store(distance + i, sqrt(best), {.mask = ok});
      store(which + i, at, {.mask = ok});
    }).grid([](const LaneCfg& c, const float*, const int32_t*, const float*, float*, int32_t*, int n, int) {
      return Grid{cdiv(n, c.B)};
    });
auto near_longest = kernel("user_near_longest", [](const LaneCfg& c, Ptr<const float> cloud, Ptr<const int32_t> start,
                                                   Ptr<const float> query, Ptr<float> distance, I32 n, I32 side) {
                      num_warps(c.warps);
                      auto i = program_id(0) * c.B + arange(0, c.B);
                      auto ok = i < n;
                      auto x = load(query + 2 * i, {.mask = ok}), y = load(query + (2 * i + 1), {.mask = ok});
                      auto cx = cast(floor(x), i32), cy = cast(floor(y), i32);
                      Tile best = full({c.B}, INFINITY, f32);
                      for (int dy = -1; dy < 2; ++dy) {
                        auto in = ok & (cy + dy >= 0) & (cy + dy < side);
                        auto first = load(start + ((cy + dy) * side + max(cx - 1, 0)), {.mask = in});
                        auto count = load(start + ((cy + dy) * side + min(cx + 2, side)), {.mask = in}) - first;
                        for (auto k : range(max(count))) {
                          auto there = k < count;
                          auto u = load(cloud + 2 * (first + k), {.mask = there}) - x;
                          auto v = load(cloud + (2 * (first + k) + 1), {.mask = there}) - y;
                          best = min(best, where(there, u * u + v * v, INFINITY));
                        }
                      }
                      store(distance + i, sqrt(best), {.mask = ok});
                    }).grid([](const LaneCfg& c, const float*, const int32_t*, const float*, float*, int n, int) {
  return Grid{cdiv(n, c.B)};
});
Register r4("near_cells", [](Env& e) {
  const int side = e.big ? 512 : 6, n = e.big ? 1 << 20 : 83;
  std::vector<float> cloud;
  std::vector<int32_t> start(1);
  for (int k = 0; k < side * side; ++k) {
    for (int i = 0, count = int(e.uniform() * e.uniform() * 12); i < count; ++i)
      cloud.push_back(float(k % side + e.uniform())), cloud.push_back(float(k / side + e.uniform()));
    start.push_back(int(cloud.size() / 2));
  }
  auto points = repeated(e, cloud.size(), cloud);
  auto starts = repeated(e, start.size(), start);
  auto query = drawn<float>(e, size_t(n) * 2, [&] { return float(e.uniform() * side); });
  auto distance = constant<float>(e, n, NAN), again = constant<float>(e, n, NAN);
  auto which = constant<int32_t>(e, n, -7);
  const LaneCfg c{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)};
  Job j;
  j.mbytes = 1e-6 * n * 16;
  j.add(near_cells, c, points.p, starts.p, query.p, distance.p, which.p, n, side);
  j.add(near_longest, c, points.p, starts.p, query.p, again.p, n, side);
  j.check = [=] {
    std::vector<double> near(n, INFINITY), number(n, -1);
    for (int i = 0; i < n; ++i) {
      const int cx = int(query[2 * i]), cy = int(query[2 * i + 1]);
      for (int y = std::max(cy - 1, 0); y <= std::min(cy + 1, side - 1); ++y)
        for (int k = start[y * side + std::max(cx - 1, 0)]; k < start[y * side + std::min(cx + 2, side)]; ++k) {
          const double d = std::hypot(cloud[2 * k] - query[2 * i], cloud[2 * k + 1] - query[2 * i + 1]);
          if (d < near[i]) near[i] = d, number[i] = k;
        }
    }
    auto wrong = agree(distance.now(), near, 1e-6, 1e-5);
    if (wrong.empty()) wrong = agree(again.now(), near, 1e-6, 1e-5);
    return wrong.empty() ? agree(which.now(), number, .5, 0) : wrong;
  };
  return j;
});

}  // namespace looks
}  // namespace users
