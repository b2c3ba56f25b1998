// elastic_fields.cpp - seismic waves in solids on staggered grids, nine fields and walls that absorb; filters that run
// forwards and backwards over recordings.
#include "tests/users/use.h"
namespace users {
namespace elastic_fields {

struct SolidCfg {
  int BZ = 1, BY = 4, BX = 64, warps = 4;
};
constexpr float kNear = 9.f / 8, kFar = -1.f / 24;
using Field = Tensor<float, 4>;
using Material = Tensor<const float, 3>;
using Profile = Tensor<const float, 1>;

/// The box of a program, and what stands at it or beside it.
struct Place {
  Tile z, y, x;
  int BZ, BY, BX;
  Tile at(const Field& f, int part, std::array<int, 3> by = {}) const {
    return reshape(f.load({part, z + by[0], y + by[1], x + by[2]}, {1, BZ, BY, BX}), {BZ, BY, BX});
  }
  Tile at(const Material& m, std::array<int, 3> by, double outside) const {
    return m.load({z + by[0], y + by[1], x + by[2]}, {BZ, BY, BX}, {.pad = outside});
  }
  /// Fourth order, at the middle between `first` - 1 and `first` along an axis: first 1 looks forwards, 0 backwards.
  Tile slope(const Field& f, int part, int axis, int first) const {
    auto beside = [&](int by) {
      std::array<int, 3> shift{};
      shift[axis] = by;
      return at(f, part, shift);
    };
    return kNear * (beside(first) - beside(first - 1)) + kFar * (beside(first + 1) - beside(first - 2));
  }
  Tile damping(const std::array<Profile, 3>& p) const {
    return expand_dims(p[0].load({z}, {BZ}).col(), 2) * expand_dims(p[1].load({y}, {BY}).row(), 2) *
           expand_dims(p[2].load({x}, {BX}).row(), 0);
  }
};
Place place_of(const SolidCfg& c) {
  return {program_id(2) * c.BZ, program_id(1) * c.BY, program_id(0) * c.BX, c.BZ, c.BY, c.BX};
}
/// Parts of the stress: xx, yy, zz, xy, xz, yz. The axes of views are z, y, x.
constexpr int kStress[3][3] = {{2, 5, 4}, {5, 1, 3}, {4, 3, 0}};  // [axis][axis]
constexpr int kAxis[3] = {2, 1, 0};                               // of the velocities x, y, z

auto velocities =
    kernel("user_elastic_velocities", [](const SolidCfg& c, Field V, Field S, Material density, Profile wz, Profile wy,
                                         Profile wx, F32 dt) {
      num_warps(c.warps);
      const Place p = place_of(c);
      auto keep = p.damping({wz, wy, wx});
      for (int v = 0; v < 3; ++v) {
        const int own = kAxis[v];
        std::array<int, 3> next{};
        next[own] = 1;
        auto rho = (p.at(density, {}, 1) + p.at(density, next, 1)) * 0.5f;
        Tile force = p.slope(S, kStress[own][own], own, 1);
        for (int axis = 0; axis < 3; ++axis)
          if (axis != own) force += p.slope(S, kStress[own][axis], axis, 0);
        V.store({v, p.z, p.y, p.x}, reshape((p.at(V, v) + dt / rho * force) * keep, {1, c.BZ, c.BY, c.BX}));
      }
    }).grid([](const SolidCfg& c, const auto& v, const auto&...) {
      return Grid{cdiv(v.shape[3], c.BX), cdiv(v.shape[2], c.BY), cdiv(v.shape[1], c.BZ)};
    });
auto stresses =
    kernel("user_elastic_stresses", [](const SolidCfg& c, Field S, Field V, Material lambda, Material mu, Profile wz,
                                       Profile wy, Profile wx, F32 dt) {
      num_warps(c.warps);
      const Place p = place_of(c);
      auto keep = p.damping({wz, wy, wx});
      auto write = [&](int part, const Tile& change) {
        S.store({part, p.z, p.y, p.x}, reshape((p.at(S, part) + dt * change) * keep, {1, c.BZ, c.BY, c.BX}));
      };
      std::array<Tile, 3> d;  // along x, y, z
      for (int v = 0; v < 3; ++v) d[v] = p.slope(V, v, kAxis[v], 0);
      auto twice = 2.f * p.at(mu, {}, 1), all = p.at(lambda, {}, 1) * (d[0] + d[1] + d[2]);
      for (int v = 0; v < 3; ++v) write(v, all + twice * d[v]);
      for (int v = 0; v < 3; ++v)
        for (int w = v + 1; w < 3; ++w) {
          const int a = kAxis[v], b = kAxis[w];
          std::array<int, 3> da{}, db{}, both{};
          da[a] = db[b] = both[a] = both[b] = 1;
          auto mean =
              4.f / (1.f / p.at(mu, {}, 1) + 1.f / p.at(mu, da, 1) + 1.f / p.at(mu, db, 1) + 1.f / p.at(mu, both, 1));
          write(kStress[a][b], mean * (p.slope(V, v, b, 1) + p.slope(V, w, a, 1)));
        }
    }).grid([](const SolidCfg& c, const auto& s, const auto&...) {
      return Grid{cdiv(s.shape[3], c.BX), cdiv(s.shape[2], c.BY), cdiv(s.shape[1], c.BZ)};
    });
Register r1("elastic", [](Env& e) {
  const int Z = e.big ? 256 : 7, Y = e.big ? 256 : 9, X = e.big ? 320 : 35;
  const size_t n = size_t(Z) * Y * X;
  auto V = random<float>(e, 3 * n), S = random<float>(e, 6 * n);
  auto rho = random<float>(e, n, 1, 2), lambda = random<float>(e, n, 1, 3), mu = random<float>(e, n, .5, 2);
  auto profile = [&](int length) {
    return filled<float>(e, length, [=](size_t i) {
      const double wall = std::max(0., 4. - double(std::min<size_t>(i, length - 1 - i)));
      return float(std::exp(-.01 * wall * wall));
    });
  };
  auto wz = profile(Z), wy = profile(Y), wx = profile(X);
  const float dt = .125f;
  Job j;
  restore(e, j, V, S);
  j.mbytes = 4e-6 * double(n) * (6 + 6 + 1 + 3 + 12 + 2);
  const SolidCfg c = e.big ? SolidCfg{e.field("BZ", 1), e.field("BY", 4), e.field("BX", 64), e.field("warps", 4)}
                           : SolidCfg{2, 4, 16, 2};
  j.add(velocities, c, V.view(3, Z, Y, X), S.view(6, Z, Y, X), rho.view(Z, Y, X), wz.view(Z), wy.view(Y), wx.view(X),
        dt);
  j.add(stresses, c, S.view(6, Z, Y, X), V.view(3, Z, Y, X), lambda.view(Z, Y, X), mu.view(Z, Y, X), wz.view(Z),
        wy.view(Y), wx.view(X), dt);
  j.check = [=] {
    std::vector<double> v(3 * n), s(6 * n);
    for (size_t i = 0; i < v.size(); ++i) v[i] = V[i];
    for (size_t i = 0; i < s.size(); ++i) s[i] = S[i];
    using Index = std::array<int, 3>;
    const Index size{Z, Y, X};
    auto inside = [&](const Index& i) {
      for (int a = 0; a < 3; ++a)
        if (i[a] < 0 || i[a] >= size[a]) return false;
      return true;
    };
    auto flat = [&](const Index& i) { return (size_t(i[0]) * Y + i[1]) * X + i[2]; };
    auto moved = [](Index i, int axis, int by) { return i[axis] += by, i; };
    auto at = [&](const std::vector<double>& f, int part, const Index& i) {
      return inside(i) ? f[part * n + flat(i)] : 0;
    };
    auto of = [&](const Array<float>& m, const Index& i) { return inside(i) ? m[flat(i)] : 1; };
    auto slope = [&](const std::vector<double>& f, int part, const Index& i, int axis, int first) {
      auto g = [&](int by) { return at(f, part, moved(i, axis, by)); };
      return 9. / 8 * (g(first) - g(first - 1)) - 1. / 24 * (g(first + 1) - g(first - 2));
    };
    auto each = [&](auto&& body) {
      for (int z = 0; z < Z; ++z)
        for (int y = 0; y < Y; ++y)
          for (int x = 0; x < X; ++x) body(Index{z, y, x}, wz[z] * wy[y] * wx[x]);
    };
    const auto s0 = s, v0 = v;
    each([&](const Index& i, double keep) {
      for (int k = 0; k < 3; ++k) {
        const int own = kAxis[k];
        double force = slope(s0, kStress[own][own], i, own, 1);
        for (int a = 0; a < 3; ++a)
          if (a != own) force += slope(s0, kStress[own][a], i, a, 0);
        v[k * n + flat(i)] = (v0[k * n + flat(i)] + dt * 2 / (of(rho, i) + of(rho, moved(i, own, 1))) * force) * keep;
      }
    });
    each([&](const Index& i, double keep) {
      double d[3], sum = 0;
      for (int k = 0; k < 3; ++k) sum += d[k] = slope(v, k, i, kAxis[k], 0);
      for (int k = 0; k < 3; ++k) {
        double& to = s[k * n + flat(i)];
        to = (to + dt * (of(lambda, i) * sum + 2 * of(mu, i) * d[k])) * keep;
      }
      for (int k = 0; k < 3; ++k)
        for (int m = k + 1; m < 3; ++m) {
          const int a = kAxis[k], b = kAxis[m];
          const double mean = 4 / (1 / of(mu, i) + 1 / of(mu, moved(i, a, 1)) + 1 / of(mu, moved(i, b, 1)) +
                                   1 / of(mu, moved(moved(i, a, 1), b, 1)));
          double& to = s[kStress[a][b] * n + flat(i)];
          to = (to + dt * mean * (slope(v, k, i, b, 1) + slope(v, m, i, a, 1))) * keep;
        }
    });
    const std::string wrong = agree(V.now(), v, 1e-5, 1e-5);
    return wrong.empty() ? agree(S.now(), s, 1e-5, 1e-5) : "velocity " + wrong;
  };
  return j;
});

// --- a cascade of second-order sections over channels side by side, forwards; and again over a view that runs
// backwards
struct FilterCfg {
  int B = 64, warps = 2, sections = 3;
};
auto cascade = kernel("user_cascade", [](const FilterCfg& c, Tensor<const float, 2> x, Tensor<const double, 2> q,
                                         Tensor<float, 2> y) {
                 // x, y [time, channels]; q [sections, 5]: b0 b1 b2 a1 a2. States in f64: poles are near the circle
                 num_warps(c.warps);
                 auto channel = program_id(0) * c.B;
                 std::vector<Tile> s(2 * c.sections);
                 std::vector<std::array<Tile, 5>> f(c.sections);
                 for (int k = 0; k < c.sections; ++k) {
                   s[2 * k] = zeros({c.B}, f64), s[2 * k + 1] = zeros({c.B}, f64);
                   for (int i = 0; i < 5; ++i) f[k][i] = q.load({k, i});
                 }
                 for (auto t : range(x.dim(0))) {
                   Tile v = cast(x.load({t, channel}, {c.B}), f64);
                   for (int k = 0; k < c.sections; ++k) {
                     auto out = f[k][0] * v + s[2 * k];
                     s[2 * k] = f[k][1] * v - f[k][3] * out + s[2 * k + 1];
                     s[2 * k + 1] = f[k][2] * v - f[k][4] * out;
                     v = out;
                   }
                   y.store({t, channel}, cast(v, f32));
                 }
               }).grid([](const FilterCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.B)}; });
Register r2("zero_phase", [](Env& e) {
  const int T = e.big ? 4096 : 75, C = e.big ? 16384 : 50, K = 3;
  auto x = random<float>(e, size_t(T) * C), between = constant<float>(e, size_t(T) * C, NAN),
       y = constant<float>(e, size_t(T) * C, NAN);
  auto q = filled<double>(e, 5 * K, [](size_t i) {
    const double w = .2 + .3 * double(i / 5), alpha = std::sin(w) / 4, a0 = 1 + alpha, c = std::cos(w);
    return std::array{(1 - c) / 2 / a0, (1 - c) / a0, (1 - c) / 2 / a0, -2 * c / a0, (1 - alpha) / a0}[i % 5];
  });
  auto backwards = [=](const Array<float>& a) {
    return TensorView<float, 2>(a.p + size_t(T - 1) * C, {T, C}, {-C, 1});
  };
  Job j;
  j.mbytes = 16e-6 * T * double(C);
  const FilterCfg c{e.field("B", e.big ? 64 : 32), e.field("warps", e.big ? 2 : 1), K};
  j.add(cascade, c, x.view(T, C), q.view(K, 5), between.view(T, C));
  j.add(cascade, c, backwards(between), q.view(K, 5), backwards(y));
  j.check = [=] {
    std::vector<double> want(T * C);
    for (int i = 0; i < T * C; ++i) want[i] = x[i];
    for (int pass = 0; pass < 2; ++pass)
      for (int c = 0; c < C; ++c)
        for (int k = 0; k < K; ++k)
          for (double t = 0, s1 = 0, s2 = 0; t < T; ++t) {
            double& v = want[size_t(pass ? T - 1 - t : t) * C + c];
            const double out = q[5 * k] * v + s1;
            s1 = q[5 * k + 1] * v - q[5 * k + 3] * out + s2, s2 = q[5 * k + 2] * v - q[5 * k + 4] * out;
            v = out;
          }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace elastic_fields
}  // namespace users
