// points_and_light.cpp - geometry and pictures: the side of a line that a point lies on, exact whatever the rounding;
// paths of light that end by chance; vertices moved by blended dual quaternions.
#include <numbers>

#include "tests/users/use.h"
namespace users {
namespace points_and_light {

struct PointCfg {
  int B = 256, warps = 4;
};

// --- orientation of three points (Shewchuk's predicate): a determinant in f64 where its error bound tells the sign,
// else the sum of six exact products as an expansion of twelve parts
struct Points {
  Ptr<const double> x, y;
};
struct Two {
  Tile high, low;
};
Two two_sum(const Tile& a, const Tile& b) {
  auto s = add_rn(a, b), v = add_rn(s, -a);
  return {s, add_rn(add_rn(a, -add_rn(s, -v)), add_rn(b, -v))};
}
Two two_product(const Tile& a, const Tile& b) {
  auto p = mul_rn(a, b);
  return {p, fma(a, b, -p)};
}
auto orient = kernel("user_orient2d", [](const PointCfg& c, Ptr<const double> px, Ptr<const double> py,
                                         Ptr<const int32_t> corners, Ptr<int8_t> sides, Ptr<uint64_t> doubtful, I32 n) {
                // corners [3, n]
                num_warps(c.warps);
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto live = i < n;
                Points points{px, py};
                std::array<Tile, 3> x, y;
                for (int k = 0; k < 3; ++k) {
                  auto p = load(corners + k * n + i, {.mask = live});
                  x[k] = load(points.x + p, {.mask = live}), y[k] = load(points.y + p, {.mask = live});
                }
                auto l = mul_rn(x[0] - x[2], y[1] - y[2]), r = mul_rn(y[0] - y[2], x[1] - x[2]);
                Tile det = l - r;
                constexpr double kHalfUlp = 0x1p-53, kBound = (3 + 16 * kHalfUlp) * kHalfUlp;
                auto doubt = live & (abs(det) <= kBound * (abs(l) + abs(r)));
                if_(any(doubt), [&] {
                  std::vector<Tile> parts;
                  auto add = [&](const Tile& part) {  // grow-expansion: from the smallest part on
                    Tile q = part;
                    for (Tile& e : parts) {
                      auto [high, low] = two_sum(q, e);
                      q = high, e = low;
                    }
                    parts.push_back(q);
                  };
                  for (int k = 0; k < 3; ++k) {
                    auto [p, pe] = two_product(x[k], y[(k + 1) % 3]);
                    auto [q, qe] = two_product(y[k], x[(k + 1) % 3]);
                    add(pe), add(p), add(-qe), add(-q);
                  }
                  Tile exact = parts.back();
                  for (int k = int(parts.size()) - 2; k >= 0; --k) exact = where(exact == 0., parts[k], exact);
                  det = where(doubt, exact, det);
                });
                store(sides + i, cast(det > 0., i8) - cast(det < 0., i8), {.mask = live});
                atomic_add(doubtful, cast(sum(doubt), u64), {.order = Order::relaxed});
              }).grid([](const PointCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("orient2d", [](Env& e) {
  PointCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int points = e.big ? 1 << 20 : 500, n = e.big ? 1 << 24 : 3001;
  // Most lie within a few steps of the last place of a line through all of them; small ones are nowhere near it.
  auto coordinate = [&](int i) {
    return i % 5 == 4 ? std::floor(e.uniform() * 1e6) * 0x1p-17
                      : i % 5 * 6 + .5 + double(int(e.uniform() * 64)) * 0x1p-53;
  };
  std::vector<double> xs, ys;
  for (int i = 0; i < (e.device ? points : 0); ++i) {
    xs.push_back(coordinate(i)), ys.push_back(i % 5 == 3 ? xs.back() : coordinate(i));
    if (i % 5 > 0 && i % 5 < 3) xs.back() = std::floor(xs.back()), ys.back() = xs.back();
  }
  auto x = repeated<double>(e, points, xs), y = repeated<double>(e, points, ys);
  auto corners = integers<int32_t>(e, 3 * size_t(n), 0, points);
  auto sides = constant<int8_t>(e, n, 9);
  auto doubtful = repeated<uint64_t>(e, 1, {0});
  Job j;
  j.mbytes = 1e-6 * n * (12 + 48 + 1.);
  j.inTurn = true;
  restore(e, j, doubtful);
  j.add(orient, c, x.p, y.p, corners.p, sides.p, doubtful.p, n);
  j.check = [=]() -> std::string {
    const auto got = sides.now();
    auto whole = [](double v) { return static_cast<__int128>(std::ldexp(v, 53)); };
    int zeros = 0, changed = 0;
    for (int i = 0; i < n; ++i) {
      const int a = corners.h[i], b = corners.h[n + i], o = corners.h[2 * n + i];
      const auto exact = (whole(xs[a]) - whole(xs[o])) * (whole(ys[b]) - whole(ys[o])) -
                         (whole(ys[a]) - whole(ys[o])) * (whole(xs[b]) - whole(xs[o]));
      const double rounded = (xs[a] - xs[o]) * (ys[b] - ys[o]) - (ys[a] - ys[o]) * (xs[b] - xs[o]);
      const int want = exact > 0 ? 1 : exact < 0 ? -1 : 0;
      zeros += want == 0, changed += want != (rounded > 0 ? 1 : rounded < 0 ? -1 : 0);
      if (got[i] != want) return "triple " + std::to_string(i) + ": " + std::to_string(got[i]);
    }
    const auto asked = doubtful.now()[0];
    if (asked < uint64_t(changed) || asked == uint64_t(n))
      return "the bound lets " + std::to_string(asked) + " through";
    return zeros && changed ? "" : "data tests nothing";
  };
  return j;
});

// --- a path tracer: spheres that scatter or shine, a path ends at nothing, at a light, or by Russian roulette from the
// third bounce on
struct PathCfg {
  int B = 128, warps = 4;
};
struct Vec {
  Tile x, y, z;
};
Vec operator+(const Vec& a, const Vec& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vec operator-(const Vec& a, const Vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vec operator*(const Vec& a, Expr s) { return {a.x * s, a.y * s, a.z * s}; }
Vec operator*(const Vec& a, const Vec& b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
Tile inner(const Vec& a, const Vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vec select(const Tile& c, const Vec& a, const Vec& b) {
  return {where(c, a.x, b.x), where(c, a.y, b.y), where(c, a.z, b.z)};
}
Vec unit(const Vec& a) { return a * rsqrt(inner(a, a)); }
constexpr int kBounces = 24;
auto paths = kernel("user_roulette", [](const PathCfg& c, Ptr<const float> spheres, I32 count, Tensor<float, 3> picture,
                                        I32 samples, I64 seed) {
               // spheres [count, 8]: centre, radius, reflected colour, light; picture [3, height, width]
               num_warps(c.warps);
               auto column = program_id(0) * c.B + arange(0, c.B), row = program_id(1);
               auto width = picture.dim(2), height = picture.dim(1);
               auto pixel = cast(row, i64) * cast(width, i64) + cast(column, i64);
               auto fill = [&](float v) { return full({c.B}, v, f32); };
               Vec total{fill(0), fill(0), fill(0)};
               for (auto s : range(samples)) {
                 auto draws = (pixel * samples + s) * kBounces;
                 auto lens = rand4(seed, draws);
                 Vec from{fill(0), fill(0), fill(-8)};
                 Vec way = unit({(cast(column, f32) + lens[0]) / cast(width, f32) - .5f,
                                 (cast(row, f32) + lens[1]) / cast(height, f32) - .5f, fill(1)});
                 Vec carried{fill(1), fill(1), fill(1)};
                 Tile alive = column < width, bounce = cast(1, i32);
                 while_([&] { return any(alive) & (bounce < kBounces); },
                        [&] {
                          Tile nearest = fill(1e30f), which = full({c.B}, 0, i32);
                          for (auto k : range(count)) {
                            Vec centre{load(spheres + k * 8), load(spheres + k * 8 + 1), load(spheres + k * 8 + 2)};
                            auto r = load(spheres + k * 8 + 3);
                            auto o = from - centre;
                            auto b = inner(o, way), root = b * b - inner(o, o) + r * r;
                            auto q = sqrt(max(root, 0.f));
                            auto t = where(-b - q > 2e-3f, -b - q, -b + q);
                            auto hit = (root > 0.f) & (t > 2e-3f) & (t < nearest);
                            nearest = where(hit, t, nearest), which = where(hit, k, which);
                          }
                          auto hit = alive & (nearest < 1e30f);
                          auto of = [&](int k) { return load(spheres + which * 8 + k, {.mask = hit}); };
                          auto light = of(7);
                          total = select(hit, total + carried * light, total);
                          auto where_hit = from + way * nearest;
                          auto normal = unit(where_hit - Vec{of(0), of(1), of(2)});
                          normal = select(inner(normal, way) > 0.f, normal * -1.f, normal);
                          auto draw = rand4(seed, draws + cast(bounce, i64));
                          auto z = 1.f - 2.f * draw[0], ring = sqrt(max(1.f - z * z, 0.f));
                          auto angle = 2.f * draw[1];
                          auto next = unit(normal + Vec{ring * cospi(angle), ring * sinpi(angle), z});
                          auto dimmed = carried * Vec{of(4), of(5), of(6)};
                          auto chance = where(bounce < 3, 1.f, min(max(max(dimmed.x, dimmed.y), dimmed.z), .95f));
                          alive = hit & (light == 0.f) & (draw[2] < chance);
                          carried = select(alive, dimmed * (1.f / chance), carried);
                          from = select(alive, where_hit, from), way = select(alive, next, way);
                          bounce += 1;
                        });
               }
               auto scale = 1.f / cast(samples, f32);
               picture.store({0, row, program_id(0) * c.B}, total.x * scale);
               picture.store({1, row, program_id(0) * c.B}, total.y * scale);
               picture.store({2, row, program_id(0) * c.B}, total.z * scale);
             }).grid([](const PathCfg& c, auto, int, const auto& p, int, int64_t) {
  return Grid{cdiv(p.shape[2], c.B), p.shape[1]};
});
Register r2("roulette", [](Env& e) {
  PathCfg c;
  if (!e.big) c = {16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int W = e.big ? 1024 : 25, H = e.big ? 1024 : 14, samples = e.big ? 16 : 3;
  const std::vector<float> scene{0,   0,   0,   10, .75f, .75f, .75f, 0,   0,    -7,  1,    3,    0,    0,
                                 0,   5,   2,   1,  1,    1.5f, .9f,  .2f, .2f,  0,   -2,   1.5f, 2,    1.2f,
                                 .2f, .9f, .3f, 0,  0,    3,    -1,   1,   .3f,  .3f, .95f, 0,    -3,   -1,
                                 -1,  .6f, 0,   0,  0,    2,    1,    -2,  2.5f, 1,   .99f, .99f, .99f, 0};
  const int count = int(scene.size()) / 8;
  auto spheres = repeated<float>(e, scene.size(), scene);
  auto picture = constant<float>(e, size_t(3) * W * H, NAN);
  const int64_t seed = 0x123456789abcdef;
  Job j;
  j.add(paths, c, spheres.p, count, picture.view(3, H, W), samples, seed);
  j.check = [=]() -> std::string {
    using V = std::array<double, 3>;
    auto inner = [](const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
    auto plus = [](const V& a, const V& b, double s) { return V{a[0] + b[0] * s, a[1] + b[1] * s, a[2] + b[2] * s}; };
    auto unit = [&](const V& a) { return plus({}, a, 1 / std::sqrt(inner(a, a))); };
    const auto got = picture.now();
    int far = 0, late = 0;
    for (int p = 0; p < W * H; ++p) {
      V total{};
      for (int s = 0; s < samples; ++s) {
        auto draw = [&](int bounce) {
          const auto w = reference_philox(uint64_t(seed), (uint64_t(p) * samples + s) * kBounces + bounce);
          return V{(w[0] >> 8) * 0x1p-24, (w[1] >> 8) * 0x1p-24, (w[2] >> 8) * 0x1p-24};
        };
        const V lens = draw(0);
        V from{0, 0, -8}, carried{1, 1, 1};
        V way = unit({(p % W + lens[0]) / W - .5, (p / W + lens[1]) / H - .5, 1});
        for (int bounce = 1; bounce < kBounces; ++bounce) {
          double nearest = 1e30;
          const float* hit = nullptr;
          for (int k = 0; k < count; ++k) {
            const float* q = &scene[8 * k];
            const V o = plus(from, {q[0], q[1], q[2]}, -1);
            const double b = inner(o, way), root = b * b - inner(o, o) + q[3] * q[3];
            if (root <= 0) continue;
            const double t = -b - std::sqrt(root) > 2e-3 ? -b - std::sqrt(root) : -b + std::sqrt(root);
            if (t > 2e-3 && t < nearest) nearest = t, hit = q;
          }
          if (!hit) break;
          total = plus(total, carried, hit[7]);
          if (hit[7] > 0) break;
          late += bounce > 3;
          from = plus(from, way, nearest);
          V normal = unit(plus(from, {hit[0], hit[1], hit[2]}, -1));
          if (inner(normal, way) > 0) normal = plus({}, normal, -1);
          const V u = draw(bounce);
          const double z = 1 - 2 * u[0], ring = std::sqrt(1 - z * z), angle = 2 * std::numbers::pi * u[1];
          way = unit(plus(normal, {ring * std::cos(angle), ring * std::sin(angle), z}, 1));
          for (int k = 0; k < 3; ++k) carried[k] *= hit[4 + k];
          const double chance =
              bounce < 3 ? 1 : std::min(*std::max_element(carried.begin(), carried.end()), double(.95f));
          if (u[2] >= chance) break;
          for (double& x : carried) x /= chance;
        }
      }
      bool close = true;
      for (int k = 0; k < 3; ++k) {
        const double g = got[size_t(k) * W * H + p], w = total[k] / samples;
        close = close && std::abs(g - w) <= 1e-2 * (std::abs(w) + .1);
      }
      far += !close;  // a path at the edge of a sphere may go the other way
    }
    return far * 20 > W * H ? std::to_string(far) + " pixels differ" : late * 2 < W * H ? "data tests nothing" : "";
  };
  return j;
});

// --- skinning by dual quaternions: up to four bones of eight numbers a vertex, weights and numbers of bones in bytes,
// normals of 16 bits
auto dual_skin =
    kernel("user_dual_skin", [](const PointCfg& c, Ptr<const float> positions, Ptr<const int16_t> normals,
                                Ptr<const uint8_t> bones, Ptr<const uint8_t> weights, Ptr<const float> palette,
                                Ptr<float> moved, Ptr<int16_t> turned, I32 n) {
      // positions, moved [n, 3], normals, turned [n, 4], bones, weights [n, 4], palette [bones, 8]: the
      // rotation (w, x, y, z), then half the translation times it
      num_warps(c.warps);
      auto v = program_id(0) * c.B + arange(0, c.B);
      auto live = v < n;
      std::array<Tile, 8> q, first;
      for (int b = 0; b < 4; ++b) {
        auto bone = cast(load(bones + v * 4 + b, {.mask = live}), i32);
        Tile w = cast(load(weights + v * 4 + b, {.mask = live}), f32) / 255.f;
        std::array<Tile, 8> x;
        for (int k = 0; k < 8; ++k) x[k] = load(palette + bone * 8 + k, {.mask = live});
        if (b == 0)
          first = x;
        else  // of the two numbers for one rotation the one on the first one's side
          w = where(x[0] * first[0] + x[1] * first[1] + x[2] * first[2] + x[3] * first[3] < 0.f, -w, w);
        for (int k = 0; k < 8; ++k) q[k] = b ? q[k] + w * x[k] : w * x[k];
      }
      auto size = rsqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      size = where(live, size, 0.f);
      for (Tile& x : q) x *= size;
      Vec axis{q[1], q[2], q[3]}, dual{q[5], q[6], q[7]};
      auto cross = [](const Vec& a, const Vec& b) {
        return Vec{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
      };
      auto rotate = [&](const Vec& p) { return p + cross(axis, cross(axis, p) + p * q[0]) * 2.f; };
      auto at = [&](auto p, int stride, int k) { return load(p + v * stride + k, {.mask = live}); };
      auto p = rotate({at(positions, 3, 0), at(positions, 3, 1), at(positions, 3, 2)});
      auto shift = dual * q[0] - axis * q[4] + cross(axis, dual);
      p = p + shift + shift;
      store(moved + v * 3, p.x, {.mask = live});
      store(moved + v * 3 + 1, p.y, {.mask = live});
      store(moved + v * 3 + 2, p.z, {.mask = live});
      auto number = [&](int k) { return cast(at(normals, 4, k), f32); };
      auto m = rotate({number(0), number(1), number(2)});
      store(turned + v * 4, saturate(rint(m.x), i16), {.mask = live});
      store(turned + v * 4 + 1, saturate(rint(m.y), i16), {.mask = live});
      store(turned + v * 4 + 2, saturate(rint(m.z), i16), {.mask = live});
      store(turned + v * 4 + 3, at(normals, 4, 3), {.mask = live});
    }).grid([](const PointCfg& c, auto, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("dual_skin", [](Env& e) {
  PointCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 22 : 301, count = e.big ? 200 : 11;
  auto positions = random<float>(e, size_t(n) * 3);
  auto normals = integers<int16_t>(e, size_t(n) * 4, -18000, 18000);
  auto bones = integers<uint8_t>(e, size_t(n) * 4, 0, count);
  auto weights = filled<uint8_t>(e, size_t(n) * 4, [&](size_t i) { return i % 4 == 0 ? 200 : int(e.uniform() * 30); });
  std::vector<float> table;
  for (int b = 0; b < count; ++b) {
    double q[4], t[3], size = 0;
    for (double& x : q) x = 2 * e.uniform() - 1, size += x * x;
    for (double& x : q) x /= std::sqrt(size);
    for (double& x : t) x = 4 * e.uniform() - 2;
    for (double x : q) table.push_back(float(x));
    table.push_back(float(-.5 * (t[0] * q[1] + t[1] * q[2] + t[2] * q[3])));
    table.push_back(float(.5 * (t[0] * q[0] + t[1] * q[3] - t[2] * q[2])));
    table.push_back(float(.5 * (t[1] * q[0] + t[2] * q[1] - t[0] * q[3])));
    table.push_back(float(.5 * (t[2] * q[0] + t[0] * q[2] - t[1] * q[1])));
  }
  auto palette = repeated<float>(e, table.size(), table);
  auto moved = constant<float>(e, size_t(n) * 3, NAN);
  auto turned = constant<int16_t>(e, size_t(n) * 4, 7);
  Job j;
  j.mbytes = 48e-6 * n;
  j.add(dual_skin, c, positions.p, normals.p, bones.p, weights.p, palette.p, moved.p, turned.p, n);
  j.check = [=] {
    std::vector<double> want, side;
    for (int v = 0; v < n; ++v) {
      double q[8] = {};
      for (int b = 0; b < 4; ++b) {
        const float *x = &table[8 * bones.h[v * 4 + b]], *first = &table[8 * bones.h[v * 4]];
        double along = 0;
        for (int k = 0; k < 4; ++k) along += double(x[k]) * first[k];
        for (int k = 0; k < 8; ++k) q[k] += (along < 0 ? -1 : 1) * weights[v * 4 + b] / 255 * x[k];
      }
      const double size = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      for (double& x : q) x /= size;
      const double w = q[0], x = q[1], y = q[2], z = q[3];
      const double r[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                              {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                              {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
      const double t[3] = {2 * (-q[4] * x + q[5] * w - q[6] * z + q[7] * y),
                           2 * (-q[4] * y + q[5] * z + q[6] * w - q[7] * x),
                           2 * (-q[4] * z - q[5] * y + q[6] * x + q[7] * w)};
      for (int i = 0; i < 3; ++i) {
        double p = t[i], m = 0;
        for (int k = 0; k < 3; ++k) p += r[i][k] * positions[v * 3 + k], m += r[i][k] * normals[v * 4 + k];
        want.push_back(p), side.push_back(std::clamp(m, -32768., 32767.));
      }
      side.push_back(normals[v * 4 + 3]);
    }
    if (auto wrong = agree(turned.now(), side, 1.01, 1e-5); !wrong.empty()) return "normals: " + wrong;
    return agree(moved.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace points_and_light
}  // namespace users
