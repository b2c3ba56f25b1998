// shapes_and_clouds.cpp - bodies and prices: distances to a mesh, boxes that overlap, a scan that is aligned with a
// model.
#include "tests/users/use.h"
namespace users {
namespace shapes_and_clouds {

using V3 = std::array<Tile, 3>;
V3 minus(const V3& a, const V3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
V3 times(const Tile& s, const V3& a) { return {s * a[0], s * a[1], s * a[2]}; }
Tile inner(const V3& a, const V3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
V3 cross(const V3& a, const V3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// --- distances of points to a mesh of triangles, every triangle tried
struct MeshCfg {
  int B = 256, warps = 4;
};
auto mesh_distance =
    kernel("user_mesh_distance", [](const MeshCfg& c, Ptr<const float> P, Tensor<const float, 2> mesh, Ptr<float> D,
                                    Ptr<int32_t> which, I32 n) {
      // P [n, 3]; mesh [triangles, 9]
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto mask = i < n;
      V3 p{load(P + i * 3, {.mask = mask}), load(P + (i * 3 + 1), {.mask = mask}),
           load(P + (i * 3 + 2), {.mask = mask})};
      Tile best = full({c.B}, INFINITY, f32), at = full({c.B}, -1, i32);
      for (auto t : range(mesh.dim(0))) {
        auto corner = [&](int k) {
          return V3{mesh.load({t, 3 * k}), mesh.load({t, 3 * k + 1}), mesh.load({t, 3 * k + 2})};
        };
        auto a = corner(0), b = corner(1), d = corner(2);
        auto ba = minus(b, a), cb = minus(d, b), ac = minus(a, d), normal = cross(ba, ac);
        auto pa = minus(p, a), pb = minus(p, b), pc = minus(p, d);
        auto beside = [&](const V3& edge, const V3& q) { return inner(cross(edge, normal), q) < 0.f; };
        auto edge = [&](const V3& e, const V3& q) {
          auto s = clamp(inner(e, q) / inner(e, e), 0.f, 1.f);
          auto r = minus(times(s, e), q);
          return inner(r, r);
        };
        auto height = inner(normal, pa);
        auto out = beside(ba, pa) | beside(cb, pb) | beside(ac, pc);
        auto d2 =
            where(out, min(edge(ba, pa), min(edge(cb, pb), edge(ac, pc))), height * height / inner(normal, normal));
        at = where(d2 < best, t, at), best = min(best, d2);
      }
      store(D + i, sqrt(best), {.mask = mask});
      store(which + i, at, {.mask = mask});
    }).grid([](const MeshCfg& c, const float*, const auto&, float*, int32_t*, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("mesh_distance", [](Env& e) {
  const int n = e.big ? 1 << 18 : 301, T = e.big ? 2048 : 57;
  auto p = random<float>(e, 3 * size_t(n)), mesh = random<float>(e, 9 * size_t(T));
  auto d = constant<float>(e, n, NAN);
  auto which = constant<int32_t>(e, n, -7);
  Job j;
  j.add(mesh_distance, MeshCfg{}, p.p, mesh.view(T, 9), d.p, which.p, n);
  j.check = [=] {
    // minimised over the barycentric coordinates by projections on the three edges and the plane, in float64
    using D3 = std::array<double, 3>;
    auto sub = [](D3 a, D3 b) { return D3{a[0] - b[0], a[1] - b[1], a[2] - b[2]}; };
    auto dot3 = [](D3 a, D3 b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      double best = INFINITY;
      const D3 q{p[3 * i], p[3 * i + 1], p[3 * i + 2]};
      for (int t = 0; t < T; ++t) {
        D3 v[3];
        for (int k = 0; k < 9; ++k) v[k / 3][k % 3] = mesh[9 * t + k];
        for (int k = 0; k < 3; ++k) {
          const D3 e1 = sub(v[(k + 1) % 3], v[k]), w = sub(q, v[k]);
          const double s = std::clamp(dot3(e1, w) / dot3(e1, e1), 0., 1.);
          const D3 r = sub(w, {s * e1[0], s * e1[1], s * e1[2]});
          best = std::min(best, dot3(r, r));
        }
        const D3 e1 = sub(v[1], v[0]), e2 = sub(v[2], v[0]), w = sub(q, v[0]);
        const double aa = dot3(e1, e1), ab = dot3(e1, e2), bb = dot3(e2, e2), x = dot3(e1, w), y = dot3(e2, w);
        const double det = aa * bb - ab * ab, s = (bb * x - ab * y) / det, u = (aa * y - ab * x) / det;
        if (s >= 0 && u >= 0 && s + u <= 1) best = std::min(best, dot3(w, w) - s * x - u * y);
      }
      want.push_back(std::sqrt(std::max(best, 0.)));
    }
    return agree(d.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- which pairs of turned boxes overlap: fifteen axes that might separate them
struct BoxesCfg {
  int B = 128, warps = 4;
};
auto obb =
    kernel("user_obb", [](const BoxesCfg& c, Tensor<const float, 2> boxes, Tensor<const int32_t, 2> pairs,
                          Tensor<uint8_t, 1> hit) {
      // boxes [n, 15]: centre, half sizes, three axes
      num_warps(c.warps);
      auto at = program_id(0) * c.B;
      auto index = pairs.load({at, 0}, {c.B, 2});
      auto box = [&](int k) { return boxes.gather(squeeze(extract(index, {0, k}, {c.B, 1}), 1), 0, 15); };
      auto a = box(0), b = box(1);
      auto three = [&](const Tile& x, int from) {
        V3 v;
        for (int k = 0; k < 3; ++k) v[k] = squeeze(extract(x, {0, from + k}, {c.B, 1}), 1);
        return v;
      };
      auto t = minus(three(b, 0), three(a, 0)), ea = three(a, 3), eb = three(b, 3);
      V3 ua[3] = {three(a, 6), three(a, 9), three(a, 12)}, ub[3] = {three(b, 6), three(b, 9), three(b, 12)};
      Tile R[3][3], Q[3][3], s[3];
      for (int i = 0; i < 3; ++i) {
        s[i] = inner(t, ua[i]);
        for (int k = 0; k < 3; ++k) R[i][k] = inner(ua[i], ub[k]), Q[i][k] = abs(R[i][k]) + 1e-6f;
      }
      Tile apart = zeros({c.B}, i1);
      for (int i = 0; i < 3; ++i) {
        apart = apart | (abs(s[i]) > ea[i] + eb[0] * Q[i][0] + eb[1] * Q[i][1] + eb[2] * Q[i][2]);
        apart = apart | (abs(s[0] * R[0][i] + s[1] * R[1][i] + s[2] * R[2][i]) >
                         eb[i] + ea[0] * Q[0][i] + ea[1] * Q[1][i] + ea[2] * Q[2][i]);
      }
      for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) {
          const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, k1 = (k + 1) % 3, k2 = (k + 2) % 3;
          apart = apart | (abs(s[i2] * R[i1][k] - s[i1] * R[i2][k]) >
                           ea[i1] * Q[i2][k] + ea[i2] * Q[i1][k] + eb[k1] * Q[i][k2] + eb[k2] * Q[i][k1]);
        }
      hit.store({at}, cast(~apart, u8));
    }).grid([](const BoxesCfg& c, const auto&, const auto&, const auto& h) { return Grid{cdiv(h.shape[0], c.B)}; });
Register r2("obb", [](Env& e) {
  const int n = e.big ? 1 << 20 : 907, N = e.big ? 1 << 16 : 100;
  std::vector<float> h;
  for (int i = 0; i < (e.big ? 1000 : N); ++i) {
    double q[4], len = 0;
    for (double& x : q) x = 2 * e.uniform() - 1, len += x * x;
    for (double& x : q) x /= std::sqrt(len);
    for (int k = 0; k < 3; ++k) h.push_back(float(3 * e.uniform()));
    for (int k = 0; k < 3; ++k) h.push_back(float(.2 + e.uniform()));
    auto [w, x, y, z] = q;
    for (double m : {1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 2 * (x * y - w * z),
                     1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 2 * (x * z + w * y), 2 * (y * z - w * x),
                     1 - 2 * (x * x + y * y)})
      h.push_back(float(m));
  }
  auto boxes = repeated<float>(e, 15 * size_t(N), h);
  auto pairs = integers<int32_t>(e, 2 * size_t(n), 0, N);
  auto hit = constant<uint8_t>(e, n, 7);
  Job j;
  j.mbytes = 129e-6 * n;
  j.add(obb, BoxesCfg{}, boxes.view(N, 15), pairs.view(n, 2), hit.view(n));
  j.check = [=]() -> std::string {
    const auto got = hit.now();
    int touching = 0;
    for (int i = 0; i < n; ++i) {
      // projections of all corners on all axes
      double axes[15][3], gap = -INFINITY;
      const float *a = &boxes.h[15 * pairs.h[2 * i]], *b = &boxes.h[15 * pairs.h[2 * i + 1]];
      for (int k = 0; k < 3; ++k)
        for (int d = 0; d < 3; ++d) {
          axes[k][d] = a[6 + 3 * k + d], axes[3 + k][d] = b[6 + 3 * k + d];
          for (int l = 0; l < 3; ++l)
            axes[6 + 3 * k + l][d] = double(a[6 + 3 * k + (d + 1) % 3]) * b[6 + 3 * l + (d + 2) % 3] -
                                     double(a[6 + 3 * k + (d + 2) % 3]) * b[6 + 3 * l + (d + 1) % 3];
        }
      for (auto& x : axes) {
        const double size = std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        if (size < 1e-3) continue;
        double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
        for (int corner = 0; corner < 16; ++corner) {
          const float* o = corner & 8 ? b : a;
          double s = 0;
          for (int d = 0; d < 3; ++d) {
            double at = o[d];
            for (int k = 0; k < 3; ++k) at += (corner >> k & 1 ? 1 : -1) * o[3 + k] * double(o[6 + 3 * k + d]);
            s += at * x[d] / size;
          }
          lo[corner >> 3] = std::min(lo[corner >> 3], s), hi[corner >> 3] = std::max(hi[corner >> 3], s);
        }
        gap = std::max({gap, lo[1] - hi[0], lo[0] - hi[1]});
      }
      touching += got[i];
      if (std::abs(gap) > 1e-4 && got[i] != (gap < 0)) return "pair " + std::to_string(i);
    }
    return touching > 0 && touching < n ? "" : "nothing to decide";
  };
  return j;
});

// --- a step of aligning points with a model: the nearest of its points, and sums of 6 x 6 equations of point to plane
struct IcpCfg {
  int B = 64, BJ = 128, warps = 4;
};
auto icp =
    kernel("user_icp", [](const IcpCfg& c, Ptr<const float> P, Ptr<const float> Q, Ptr<const float> N,
                          Ptr<float> equations, I32 n, I32 m, F32 far) {
      // P, Q, N [3, ..]; equations [28]: the lower half of a 6 x 6 matrix, the right-hand side, how many
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto mask = i < n;
      V3 p;
      for (int k = 0; k < 3; ++k) p[k] = load(P + (k * n + i), {.mask = mask});
      Tile best = full({c.B}, INFINITY, f32), at = zeros({c.B}, i32);
      for (auto start : range(0, m, c.BJ)) {
        auto j = start + arange(0, c.BJ);
        Tile d2 = zeros({c.B, c.BJ}, f32);
        for (int k = 0; k < 3; ++k) {
          auto d = p[k].col() - load(Q + (k * m + j), {.mask = j < m, .other = INFINITY}).row();
          d2 += d * d;
        }
        auto [near, where_] = min_with_index(d2, axis(1));
        auto better = squeeze(near, 1) < best;
        best = where(better, squeeze(near, 1), best), at = where(better, start + squeeze(where_, 1), at);
      }
      auto good = mask & (best < far * far);
      V3 q, normal;
      for (int k = 0; k < 3; ++k) {
        q[k] = load(Q + (k * m + at), {.mask = good});
        normal[k] = load(N + (k * m + at), {.mask = good});
      }
      auto turn = cross(p, normal);
      std::array<Tile, 7> row{turn[0], turn[1], turn[2], normal[0], normal[1], normal[2], inner(normal, minus(q, p))};
      int slot = 0;
      for (int a = 0; a < 6; ++a)
        for (int b = 0; b <= a; ++b) atomic_add(equations + slot++, sum(row[a] * row[b]));
      for (int a = 0; a < 6; ++a) atomic_add(equations + slot++, sum(row[a] * row[6]));
      atomic_add(equations + slot, sum(cast(good, f32)));
    }).grid([](const IcpCfg& c, const float*, const float*, const float*, float*, int n, int, float) {
      return Grid{cdiv(n, c.B)};
    });
Register r3("icp", [](Env& e) {
  const int n = e.big ? 1 << 15 : 201, m = e.big ? 1 << 14 : 333;
  auto p = random<float>(e, 3 * size_t(n)), q = random<float>(e, 3 * size_t(m)), N = random<float>(e, 3 * size_t(m));
  auto eq = constant<float>(e, 28, 0);
  Job j;
  restore(e, j, eq);
  j.inTurn = true;
  j.add(icp, IcpCfg{}, p.p, q.p, N.p, eq.p, n, m, .2f);
  j.check = [=] {
    std::vector<double> want(28);
    for (int i = 0; i < n; ++i) {
      double best = INFINITY;
      int at = 0;
      for (int k = 0; k < m; ++k) {
        const double x = p[i] - q[k], y = p[n + i] - q[m + k], z = p[2 * n + i] - q[2 * m + k];
        if (x * x + y * y + z * z < best) best = x * x + y * y + z * z, at = k;
      }
      if (best >= double(.2f) * .2f) continue;
      double a[3], b[3], row[7] = {};
      for (int d = 0; d < 3; ++d)
        a[d] = p[d * n + i], b[d] = N[d * m + at], row[3 + d] = b[d], row[6] += b[d] * (q[d * m + at] - a[d]);
      for (int d = 0; d < 3; ++d) row[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
      int slot = 0;
      for (int r = 0; r < 6; ++r)
        for (int s = 0; s <= r; ++s) want[slot++] += row[r] * row[s];
      for (int r = 0; r < 6; ++r) want[slot++] += row[r] * row[6];
      ++want[slot];
    }
    return agree(eq.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace shapes_and_clouds
}  // namespace users
