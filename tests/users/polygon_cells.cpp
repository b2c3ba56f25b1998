// polygon_cells.cpp - triangles against cells and points: areas of triangles inside cells by cutting polygons whose
// corners lie along an axis, and winding numbers of a surface.
#include "tests/users/use.h"
namespace users {
namespace polygon_cells {

constexpr int kCorners = 8;  // a triangle cut four times has seven at most
struct Polygon {
  Tile x, y, count;  // [B, 8] corners, [B, 1] how many
};
/// What lies on the side of a x + b y <= c (Sutherland and Hodgman): corners inside stay, edges that cross add one.
Polygon cut(const Polygon& p, double a, double b, const Tile& c, int B) {
  Tile at = broadcast_to(arange(0, kCorners).row(), {B, kCorners});
  Tile there = at < p.count;
  Tile following = where(at + 1 < p.count, at + 1, 0);
  Tile nx = take(p.x, following, 1), ny = take(p.y, following, 1);
  Tile here = float(a) * p.x + float(b) * p.y - c, then = float(a) * nx + float(b) * ny - c;
  Tile inside = there & (here <= 0.f), crosses = there & ((here <= 0.f) != (then <= 0.f));
  Tile t = where(crosses, here / (here - then), 0.f);
  Tile cx = p.x + t * (nx - p.x), cy = p.y + t * (ny - p.y);
  // Corners and crossings by turns, sixteen places of which those that are kept move together.
  Tile keep = interleave(cast(inside, i32), cast(crosses, i32));
  Tile xs = interleave(p.x, cx), ys = interleave(p.y, cy);
  Tile up_to = cumsum(keep, axis(1));
  Tile order = expand_dims(arange(0, kCorners), 0);  // the j-th kept one stands behind as many as have up_to <= j
  Tile source = sum(cast(expand_dims(up_to, 1) <= expand_dims(order, 2), i32), axis(2));
  source = min(squeeze(source, 2), 2 * kCorners - 1);
  return {take(xs, source, 1), take(ys, source, 1), extract(up_to, {0, 2 * kCorners - 1}, {B, 1})};
}
struct Cells {
  int B = 64;
};
auto covered =
    kernel("user_covered", [](const Cells& c, Tensor<const float, 3> triangles, Ptr<const int32_t> which,
                              Tensor<const float, 2> corner, Ptr<float> area, Ptr<int32_t> sides, I32 n, F32 size) {
      Tile i = program_id(0) * c.B + arange(0, c.B);
      Tile in = i < n;
      Tile t = load(which + i, {.mask = in});
      Tile k = arange(0, kCorners);
      auto spot = triangles.ptr() + cast(t, i64).col() * triangles.stride(0) + cast(k, i64).row() * triangles.stride(1);
      Tile three = in.col() & (k < 3).row();
      Polygon p{load(spot, {.mask = three}), load(spot + triangles.stride(2), {.mask = three}), where(in, 3, 0).col()};
      Tile low = load(corner.ptr() + cast(i, i64) * 2, {.mask = in}).col(),
           left = load(corner.ptr() + cast(i, i64) * 2 + 1, {.mask = in}).col();
      p = cut(p, -1, 0, -low, c.B), p = cut(p, 1, 0, low + size, c.B);
      p = cut(p, 0, -1, -left, c.B), p = cut(p, 0, 1, left + size, c.B);
      Tile at = broadcast_to(k.row(), {c.B, kCorners});
      Tile following = where(at + 1 < p.count, at + 1, 0);
      Tile nx = take(p.x, following, 1), ny = take(p.y, following, 1);
      Tile twice = sum(where(at < p.count, (p.x - low) * (ny - left) - (nx - low) * (p.y - left), 0.f), axis(1));
      store(area + i, squeeze(twice, 1) * 0.5f, {.mask = in});
      store(sides + i, squeeze(p.count, 1), {.mask = in});
    }).grid([](const Cells& c, const auto&, const int32_t*, const auto&, float*, int32_t*, int n, float) {
      return Grid{cdiv(n, c.B)};
    });
Register q1("covered", [](Env& e) {
  const int T = e.big ? 100'000 : 40, n = e.big ? 4'000'000 : 333;
  auto tri = random<float>(e, size_t(T) * 8, -2, 2);  // [T, 2 coordinates, 4 with one to spare]: read as [T, 3, 2]
  auto which = integers<int32_t>(e, n, 0, T);
  auto corner = filled<float>(e, e.big ? 20'000 : size_t(n) * 2,
                              [&](size_t) { return float(std::floor(e.uniform() * 8) * 0.5 - 2); });
  if (e.big) corner = repeated<float>(e, size_t(n) * 2, corner.h);
  auto area = constant<float>(e, n, 9);
  auto sides = constant<int32_t>(e, n, 9);
  Job j;
  j.add(covered, Cells{e.field("B", 64)}, TensorView<const float, 3>(tri.p, {T, 3, 2}, {8, 1, 4}), which.p,
        corner.view(n, 2), area.p, sides.p, n, 0.5f);
  j.check = [=]() -> std::string {
    std::vector<double> want, counts;
    using P = std::vector<std::array<double, 2>>;
    for (int i = 0; i < n; ++i) {
      P p;
      for (int k = 0; k < 3; ++k) p.push_back({tri[which.h[i] * 8 + k], tri[which.h[i] * 8 + 4 + k]});
      const double low = corner[i * 2], left = corner[i * 2 + 1];
      auto side = [&](double a, double b, double c) {
        P out;
        for (size_t k = 0; k < p.size(); ++k) {
          const auto& u = p[k];
          const auto& v = p[(k + 1) % p.size()];
          const double h = a * u[0] + b * u[1] - c, t = a * v[0] + b * v[1] - c;
          if (h <= 0) out.push_back(u);
          if ((h <= 0) != (t <= 0))
            out.push_back({u[0] + h / (h - t) * (v[0] - u[0]), u[1] + h / (h - t) * (v[1] - u[1])});
        }
        p = out;
      };
      side(-1, 0, -low), side(1, 0, low + 0.5), side(0, -1, -left), side(0, 1, left + 0.5);
      double twice = 0;
      for (size_t k = 0; k < p.size(); ++k) {
        const auto& u = p[k];
        const auto& v = p[(k + 1) % p.size()];
        twice += (u[0] - low) * (v[1] - left) - (v[0] - low) * (u[1] - left);
      }
      want.push_back(twice / 2), counts.push_back(double(p.size()));
    }
    const auto got = sides.now();
    int apart = 0;  // a corner may fall on a cut, rounded
    for (int i = 0; i < n; ++i) apart += got[i] != int(counts[i]);
    if (apart > n / 50) return std::to_string(apart) + " polygons have other sides";
    return agree(area.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- how often a surface winds around points: solid angles of all triangles (van Oosterom and Strackee), summed in f64
// block by block. Points are rows of a view, corners three views of one array
struct Winding {
  int P = 128, T = 16;
};
struct Vec {
  Tile x, y, z;
};
Tile dot3(const Vec& a, const Vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
auto winding = kernel("user_winding", [](const Winding& c, Tensor<const float, 2> points, Tensor<const float, 2> a,
                                         Tensor<const float, 2> b, Tensor<const float, 2> d, Tensor<double, 1> turns) {
                 auto p = program_id(0) * c.P;
                 Vec at;
                 Tile* xyz[] = {&at.x, &at.y, &at.z};
                 for (int k = 0; k < 3; ++k) *xyz[k] = points.load({p, k}, {c.P, 1});
                 Tile total = zeros({c.P}, f64);
                 for (auto t : range(0, a.dim(1), c.T)) {
                   auto to = [&](const Tensor<const float, 2>& corner) {
                     return Vec{corner.load({0, t}, {1, c.T}) - at.x, corner.load({1, t}, {1, c.T}) - at.y,
                                corner.load({2, t}, {1, c.T}) - at.z};
                   };
                   Vec u = to(a), v = to(b), w = to(d);
                   Tile lu = sqrt(dot3(u, u)), lv = sqrt(dot3(v, v)), lw = sqrt(dot3(w, w));
                   Vec cross{v.y * w.z - v.z * w.y, v.z * w.x - v.x * w.z, v.x * w.y - v.y * w.x};
                   Tile det = dot3(u, cross);
                   Tile rest = lu * lv * lw + dot3(u, v) * lw + dot3(v, w) * lu + dot3(w, u) * lv;
                   Tile angle = where((t + arange(0, c.T)).row() < a.dim(1), 2.f * atan2(det, rest), 0.f);
                   total += cast(squeeze(sum(angle, axis(1)), 1), f64);
                 }
                 turns.store({p}, total / (4 * 3.14159265358979323846));
               }).grid([](const Winding& c, const auto& p, const auto&, const auto&, const auto&, const auto&) {
  return Grid{cdiv(p.shape[0], c.P)};
});
Register q2("winding", [](Env& e) {
  const int n = e.big ? 65536 : 139, R = e.big ? 50 : 5, T = R * R * 4;  // a torus of R x 2R quads
  auto corner = [=](int i, int j) {
    const double u = 6.283185307179586 * i / R, v = 6.283185307179586 * j / (2 * R), r = 1 + 0.4 * std::cos(u);
    return std::array{r * std::cos(v), r * std::sin(v), 0.4 * std::sin(u)};
  };
  auto vertex = [=](int t, int k) {
    const int q = t / 2, i = q % R, j = q / R;
    static constexpr int kI[2][3] = {{0, 1, 1}, {0, 1, 0}}, kJ[2][3] = {{0, 0, 1}, {0, 1, 1}};
    return corner(i + kI[t % 2][k], j + kJ[t % 2][k]);
  };
  auto mesh =
      filled<float>(e, size_t(9) * T, [&](size_t i) { return float(vertex(int(i % T), int(i / T / 3))[i / T % 3]); });
  auto points = random<float>(e, size_t(n) * 3, -1.6, 1.6);
  auto turns = constant<double>(e, n, 9);
  Job j;
  auto part = [&](int k) { return TensorView<const float, 2>(mesh.p + size_t(k) * 3 * T, {3, T}); };
  j.add(winding, Winding{e.field("P", 128), e.field("T", 16)}, points.view(n, 3), part(0), part(1), part(2),
        turns.view(n));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      double total = 0;
      for (int t = 0; t < T; ++t) {
        double v[3][3], l[3];
        for (int k = 0; k < 3; ++k) {
          for (int x = 0; x < 3; ++x) v[k][x] = mesh[size_t(k * 3 + x) * T + t] - points[i * 3 + x];
          l[k] = std::hypot(v[k][0], v[k][1], v[k][2]);
        }
        auto dot = [&](int a, int b) { return v[a][0] * v[b][0] + v[a][1] * v[b][1] + v[a][2] * v[b][2]; };
        const double det = v[0][0] * (v[1][1] * v[2][2] - v[1][2] * v[2][1]) +
                           v[0][1] * (v[1][2] * v[2][0] - v[1][0] * v[2][2]) +
                           v[0][2] * (v[1][0] * v[2][1] - v[1][1] * v[2][0]);
        total += 2 * std::atan2(det, l[0] * l[1] * l[2] + dot(0, 1) * l[2] + dot(1, 2) * l[0] + dot(2, 0) * l[1]);
      }
      want.push_back(total / (4 * 3.14159265358979323846));
    }
    return agree(turns.now(), want, 1e-4, 0);
  };
  return j;
});

}  // namespace polygon_cells
}  // namespace users
