// level_grids.cpp - grids as first written: residuals and corrections between levels in three dimensions, advection that
// looks back, mixtures that part.
#include "tests/users/use.h"
namespace users {
namespace level_grids {

struct GridCfg {
  int BY = 4, BX = 128;
};
// --- multigrid, 3-D, cells: residual of 7 points and its mean over 2 x 2 x 2 in one go; walls are zero
auto restrict3 =
    kernel("user_restrict3", [](const GridCfg& c, Tensor<const float, 3> U, Tensor<const float, 3> F,
                                Tensor<float, 3> coarse, F32 h2) {
      auto z = program_id(2), y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto n = U.dim(0);
      Tile sum = zeros({c.BY, c.BX}, f32);
      for (int dz = 0; dz < 2; ++dz)
        for (int dy = 0; dy < 2; ++dy)
          for (int dx = 0; dx < 2; ++dx) {
            auto k = 2 * z + dz;
            auto j = (2 * y + dy).col(), i = (2 * x + dx).row();
            auto in = (j < n) & (i < n);
            auto at = (k * n + j) * n + i;
            auto u = U.ptr();
            auto near = load(u + at - 1, {.mask = in & (i > 0)}) + load(u + at + 1, {.mask = in & (i < n - 1)}) +
                        load(u + at - n, {.mask = in & (j > 0)}) + load(u + at + n, {.mask = in & (j < n - 1)}) +
                        load(u + at - n * n, {.mask = in & (k > 0)}) + load(u + at + n * n, {.mask = in & (k < n - 1)});
            sum += load(F.ptr() + at, {.mask = in}) - (6.f * load(u + at, {.mask = in}) - near) / h2;
          }
      coarse.store({z, program_id(1) * c.BY, program_id(0) * c.BX}, reshape(sum * .125f, {1, c.BY, c.BX}));
    }).grid([](const GridCfg& c, const auto&, const auto&, const auto& o, float) {
      return Grid{cdiv(o.shape[2], c.BX), cdiv(o.shape[1], c.BY), o.shape[0]};
    });
// --- and back: the correction of every fine cell, trilinear between coarse cells (weights 3/4 and 1/4), added
auto prolong3 =
    kernel("user_prolong3", [](const GridCfg& c, Tensor<const float, 3> coarse, Tensor<float, 3> U) {
      auto z = program_id(2), y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto m = coarse.dim(0);
      auto near = [&](auto v) { return min(max(v / 2 + v % 2 * 2 - 1, 0), m - 1); };
      auto z0 = z / 2, z1 = near(z);
      auto y0 = (y / 2).col(), y1 = near(y).col(), x0 = (x / 2).row(), x1 = near(x).row();
      auto in = (y < U.dim(1)).col() & (x < U.dim(2)).row();
      auto at = [&](auto k, auto j, auto i) { return load(coarse.ptr() + (k * m + j) * m + i, {.mask = in}); };
      auto row = [&](auto k, auto j) { return .75f * at(k, j, x0) + .25f * at(k, j, x1); };
      auto plane = [&](auto k) { return .75f * row(k, y0) + .25f * row(k, y1); };
      auto v = .75f * plane(z0) + .25f * plane(z1);
      auto place = U.ptr() + ((z * U.dim(1) + y.col()) * U.dim(2) + x.row());
      store(place, load(place, {.mask = in}) + v, {.mask = in});
    }).grid([](const GridCfg& c, const auto&, const auto& u) {
      return Grid{cdiv(u.shape[2], c.BX), cdiv(u.shape[1], c.BY), u.shape[0]};
    });
Register r1("levels3", [](Env& e) {
  const int n = e.big ? 512 : 18, m = n / 2;
  auto u = random<float>(e, size_t(n) * n * n), f = random<float>(e, size_t(n) * n * n);
  auto low = constant<float>(e, size_t(m) * m * m, NAN);
  const GridCfg c{e.field("BY", 4), e.field("BX", 128)};
  Job j;
  j.mbytes = 4e-6 * n * n * n * 2.125;
  j.add(restrict3, c, u.view(n, n, n), f.view(n, n, n), low.view(m, m, m), .25f);
  j.add(prolong3, c, low.view(m, m, m), u.view(n, n, n));
  j.check = [=] {
    std::vector<double> r(size_t(m) * m * m), want(size_t(n) * n * n);
    auto at = [&](int z, int y, int x) {
      return z < 0 || y < 0 || x < 0 || z >= n || y >= n || x >= n ? 0. : u[(size_t(z) * n + y) * n + x];
    };
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          r[(size_t(z / 2) * m + y / 2) * m + x / 2] +=
              .125 *
              (f[(size_t(z) * n + y) * n + x] - (6 * at(z, y, x) - at(z - 1, y, x) - at(z + 1, y, x) - at(z, y - 1, x) -
                                                 at(z, y + 1, x) - at(z, y, x - 1) - at(z, y, x + 1)) /
                                                    .25);
    auto near = [&](int v) { return std::clamp(v / 2 + v % 2 * 2 - 1, 0, m - 1); };
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
          double sum = at(z, y, x);
          for (int a = 0; a < 2; ++a)
            for (int b = 0; b < 2; ++b)
              for (int d = 0; d < 2; ++d)
                sum += (a ? .25 : .75) * (b ? .25 : .75) * (d ? .25 : .75) *
                       r[(size_t(a ? near(z) : z / 2) * m + (b ? near(y) : y / 2)) * m + (d ? near(x) : x / 2)];
          want[(size_t(z) * n + y) * n + x] = sum;
        }
    auto wrong = agree(low.now(), r, 1e-4, 1e-4);
    return wrong.empty() ? agree(u.now(), want, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- semi-Lagrangian advection with the middle point of the path, cubic (Catmull-Rom) at the end, walls clamped
auto advect = kernel("user_advect", [](const GridCfg& c, Tensor<const float, 2> Q, Tensor<const float, 2> U,
                                       Tensor<const float, 2> V, Tensor<float, 2> out, F32 dt) {
                auto h = Q.dim(0), w = Q.dim(1);
                auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(),
                     x = (program_id(0) * c.BX + arange(0, c.BX)).row();
                auto in = (y < h) & (x < w);
                auto bilinear = [&](const auto& T, Tile py, Tile px) {
                  py = clamp(py, 0.f, cast(h - 1, f32)), px = clamp(px, 0.f, cast(w - 1, f32));
                  auto iy = min(cast(py, i32), h - 2), ix = min(cast(px, i32), w - 2);
                  auto fy = py - cast(iy, f32), fx = px - cast(ix, f32);
                  auto p = T.ptr() + (iy * w + ix);
                  auto a = load(p, {.mask = in}), b = load(p + 1, {.mask = in}), d = load(p + w, {.mask = in}),
                       g = load(p + w + 1, {.mask = in});
                  auto top = a + (b - a) * fx, low = d + (g - d) * fx;
                  return top + (low - top) * fy;
                };
                auto u = load(U.ptr() + (y * w + x), {.mask = in}), v = load(V.ptr() + (y * w + x), {.mask = in});
                auto fy = broadcast_to(cast(y, f32), {c.BY, c.BX}), fx = broadcast_to(cast(x, f32), {c.BY, c.BX});
                auto my = fy - .5f * dt * v, mx = fx - .5f * dt * u;
                auto py = clamp(fy - dt * bilinear(V, my, mx), 0.f, cast(h - 1, f32)),
                     px = clamp(fx - dt * bilinear(U, my, mx), 0.f, cast(w - 1, f32));
                auto iy = cast(py, i32), ix = cast(px, i32);
                auto weights = [](Tile t) {
                  return std::array<Tile, 4>{((-.5f * t + 1.f) * t - .5f) * t, (1.5f * t - 2.5f) * t * t + 1.f,
                                             ((-1.5f * t + 2.f) * t + .5f) * t, (.5f * t - .5f) * t * t};
                };
                auto wy = weights(py - cast(iy, f32)), wx = weights(px - cast(ix, f32));
                Tile sum = zeros({c.BY, c.BX}, f32);
                for (int a = 0; a < 4; ++a) {
                  Tile line = zeros({c.BY, c.BX}, f32);
                  auto row = clamp(iy + (a - 1), 0, h - 1) * w;
                  for (int b = 0; b < 4; ++b)
                    line += wx[b] * load(Q.ptr() + (row + clamp(ix + (b - 1), 0, w - 1)), {.mask = in});
                  sum += wy[a] * line;
                }
                out.store({program_id(1) * c.BY, program_id(0) * c.BX}, sum);
              }).grid([](const GridCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BX), cdiv(q.shape[0], c.BY)};
});
Register r2("advect", [](Env& e) {
  const int H = e.big ? 4096 : 37, W = e.big ? 4096 : 150;
  auto q = random<float>(e, size_t(H) * W);
  auto smooth = [&](double f) {
    return filled<float>(e, e.device ? size_t(H) * W : 0, [=](size_t i) { return float(3 * std::sin(f * double(i))); });
  };
  auto u = smooth(.001), v = smooth(.0007);
  if (!e.device) u = random<float>(e, size_t(H) * W), v = random<float>(e, size_t(H) * W);
  auto out = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(advect, GridCfg{e.field("BY", 4), e.field("BX", 128)}, q.view(H, W), u.view(H, W), v.view(H, W), out.view(H, W),
        1.3f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    auto bilinear = [&](const Array<float>& t, double py, double px) {
      py = std::clamp<double>(py, 0, H - 1), px = std::clamp<double>(px, 0, W - 1);
      const int iy = std::min(int(py), H - 2), ix = std::min(int(px), W - 2);
      const size_t p = size_t(iy) * W + ix;
      const double top = t[p] + (t[p + 1] - t[p]) * (px - ix), low = t[p + W] + (t[p + W + 1] - t[p + W]) * (px - ix);
      return top + (low - top) * (py - iy);
    };
    auto w = [](double t, int k) {
      t = std::abs(t - (k - 1));
      return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : ((-.5 * t + 2.5) * t - 4) * t + 2;
    };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double my = y - .65 * v[size_t(y) * W + x], mx = x - .65 * u[size_t(y) * W + x];
        const double py = std::clamp<double>(y - 1.3 * bilinear(v, my, mx), 0, H - 1),
                     px = std::clamp<double>(x - 1.3 * bilinear(u, my, mx), 0, W - 1);
        double sum = 0;
        for (int a = 0; a < 4; ++a)
          for (int b = 0; b < 4; ++b)
            sum += w(py - int(py), a) * w(px - int(px), b) *
                   q[size_t(std::clamp(int(py) + a - 1, 0, H - 1)) * W + std::clamp(int(px) + b - 1, 0, W - 1)];
        want[size_t(y) * W + x] = sum;
      }
    return agree(out.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- Cahn-Hilliard: the Laplacian of a potential that holds a Laplacian, 13 points on a torus
auto spinodal =
    kernel("user_spinodal", [](const GridCfg& c, Tensor<const float, 2> C, Tensor<float, 2> out, F32 kappa, F32 step) {
      auto n = C.dim(0), m = C.dim(1);
      auto y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto at = [&](int dy, int dx) {
        return load(C.ptr() + (((y + (n + dy)) % n).col() * m + ((x + (m + dx)) % m).row()));
      };
      auto mu = [&](int dy, int dx) {
        auto v = at(dy, dx);
        auto lap = at(dy - 1, dx) + at(dy + 1, dx) + at(dy, dx - 1) + at(dy, dx + 1) - 4.f * v;
        return v * v * v - v - kappa * lap;
      };
      auto next = at(0, 0) + step * (mu(-1, 0) + mu(1, 0) + mu(0, -1) + mu(0, 1) - 4.f * mu(0, 0));
      out.store({program_id(1) * c.BY, program_id(0) * c.BX}, next);
    }).grid([](const GridCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BX), cdiv(q.shape[0], c.BY)};
    });
Register r3("spinodal", [](Env& e) {
  const int H = e.big ? 8192 : 21, W = e.big ? 8192 : 150;
  auto a = random<float>(e, size_t(H) * W);
  auto out = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(spinodal, GridCfg{e.field("BY", 4), e.field("BX", 128)}, a.view(H, W), out.view(H, W), .5f, .01f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W), mu(size_t(H) * W);
    auto lap = [&](const auto& f, int y, int x) {
      auto at = [&](int v, int w) { return double(f[size_t((v + H) % H) * W + (w + W) % W]); };
      return at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1) - 4 * at(y, x);
    };
    for (int i = 0; i < H * W; ++i) mu[i] = a[i] * a[i] * a[i] - a[i] - .5 * lap(a, i / W, i % W);
    for (int i = 0; i < H * W; ++i) want[i] = a[i] + .01 * lap(mu, i / W, i % W);
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace level_grids
}  // namespace users
