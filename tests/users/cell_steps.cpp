// cell_steps.cpp - fields on grids and pictures, written with flat places: magnetohydrodynamics, distances made right
// again, blobs found among blurs, an edge-keeping filter out of sums of rectangles, shadows looked up in a depth map.
#include "tests/users/use.h"
namespace users {
namespace cell_steps {

struct LaneCfg {
  int B = 128, warps = 4;
};

// --- ideal MHD, 2-D torus, eight fields: Rusanov fluxes of both directions, first order; the fastest wave
auto mhd = kernel("user_mhd", [](const LaneCfg& c, Ptr<const double> U, Ptr<double> out, Ptr<double> fastest, I32 nx,
                                 I32 ny, F64 dt_dx) {
             num_warps(c.warps);
             const double gamma = 5.0 / 3.0;
             auto at = program_id(0) * c.B + arange(0, c.B);
             auto live = at < nx * ny;
             auto ix = at % nx, iy = at / nx;
             auto n = nx * ny;
             using State = std::array<Tile, 8>;  // density, momentum 3, energy, field 3
             auto read = [&](const Tile& x, const Tile& y) {
               State s;
               for (int f = 0; f < 8; ++f) s[f] = load(U + (f * n + y * nx + x), {.mask = live, .other = 1.0});
               return s;
             };
             auto flux = [&](const State& s, int d, Tile& speed) {
               auto rho = s[0], u = s[1] / rho, v = s[2] / rho, w = s[3] / rho;
               auto b2 = s[5] * s[5] + s[6] * s[6] + s[7] * s[7];
               auto p = (gamma - 1.0) * (s[4] - 0.5 * rho * (u * u + v * v + w * w) - 0.5 * b2);
               auto total = p + 0.5 * b2;
               auto un = d == 0 ? u : v, bn = d == 0 ? s[5] : s[6];
               auto ub = u * s[5] + v * s[6] + w * s[7];
               State f;
               f[0] = rho * un;
               f[1] = s[1] * un - bn * s[5];
               f[2] = s[2] * un - bn * s[6];
               f[3] = s[3] * un - bn * s[7];
               f[1 + d] += total;
               f[4] = (s[4] + total) * un - bn * ub;
               f[5] = s[5] * un - bn * u;
               f[6] = s[6] * un - bn * v;
               f[7] = s[7] * un - bn * w;
               auto a2 = gamma * p / rho, c2 = a2 + b2 / rho;
               auto fast = sqrt(0.5 * (c2 + sqrt(max(c2 * c2 - 4.0 * a2 * bn * bn / rho, 0.0))));
               speed = abs(un) + fast;
               return f;
             };
             auto here = read(ix, iy);
             State next = here;
             Tile most = zeros({c.B}, f64);
             for (int d = 0; d < 2; ++d) {
               auto before = d == 0 ? read((ix + nx - 1) % nx, iy) : read(ix, (iy + ny - 1) % ny);
               auto behind = d == 0 ? read((ix + 1) % nx, iy) : read(ix, (iy + 1) % ny);
               Tile s0, s1, s2;
               auto f0 = flux(before, d, s0), f1 = flux(here, d, s1), f2 = flux(behind, d, s2);
               auto low = max(s0, s1), high = max(s1, s2);
               for (int f = 0; f < 8; ++f) {
                 auto left = 0.5 * (f0[f] + f1[f] - low * (here[f] - before[f]));
                 auto right = 0.5 * (f1[f] + f2[f] - high * (behind[f] - here[f]));
                 next[f] -= dt_dx * (right - left);
               }
               most = max(most, high);
             }
             for (int f = 0; f < 8; ++f) store(out + (f * n + at), next[f], {.mask = live});
             atomic_max(fastest, max(where(live, most, 0.0)));
           }).grid([](const LaneCfg& c, const double*, double*, double*, int nx, int ny, double) {
  return Grid{cdiv(nx * ny, c.B)};
});
Register r1("mhd", [](Env& e) {
  const int nx = e.big ? 2048 : 9, ny = e.big ? 1024 : 7, n = nx * ny;
  std::vector<double> u(size_t(n) * 8);
  if (e.device)
    for (int i = 0; i < n; ++i) {
      const double low[8] = {.5, -.4, -.4, -.4, 3, -.5, -.5, -.5}, high[8] = {1.5, .4, .4, .4, 5, .5, .5, .5};
      for (int f = 0; f < 8; ++f) u[size_t(f) * n + i] = low[f] + (high[f] - low[f]) * e.uniform();
    }
  auto U = repeated(e, u.size(), u);
  auto out = constant<double>(e, u.size(), NAN), fastest = constant<double>(e, 1, 0);
  const double step = .1;
  Job j;
  j.mbytes = 128e-6 * n;
  j.add(mhd, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, U.p, out.p, fastest.p, nx, ny,
        step);
  j.check = [=] {
    const double gamma = 5. / 3;
    auto flux = [&](const double* s, int d, double* f) {
      const double rho = s[0], v[3] = {s[1] / rho, s[2] / rho, s[3] / rho}, *B = s + 5;
      double b2 = 0, v2 = 0, vb = 0;
      for (int k = 0; k < 3; ++k) b2 += B[k] * B[k], v2 += v[k] * v[k], vb += v[k] * B[k];
      const double p = (gamma - 1) * (s[4] - .5 * rho * v2 - .5 * b2), total = p + .5 * b2;
      f[0] = rho * v[d];
      for (int k = 0; k < 3; ++k) f[1 + k] = s[1 + k] * v[d] - B[d] * B[k] + (k == d ? total : 0);
      f[4] = (s[4] + total) * v[d] - B[d] * vb;
      for (int k = 0; k < 3; ++k) f[5 + k] = B[k] * v[d] - B[d] * v[k];
      const double a2 = gamma * p / rho, c2 = a2 + b2 / rho;
      return std::abs(v[d]) + std::sqrt(.5 * (c2 + std::sqrt(std::max(c2 * c2 - 4 * a2 * B[d] * B[d] / rho, 0.))));
    };
    std::vector<double> want = u, most(1);
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x)
        for (int d = 0; d < 2; ++d) {
          const int x1 = d == 0 ? (x + 1) % nx : x, y1 = d == 1 ? (y + 1) % ny : y;
          double a[8], b[8], fa[8], fb[8];
          for (int f = 0; f < 8; ++f) a[f] = u[size_t(f) * n + y * nx + x], b[f] = u[size_t(f) * n + y1 * nx + x1];
          const double s0 = flux(a, d, fa), s1 = flux(b, d, fb), s = std::max(s0, s1);
          most[0] = std::max(most[0], s);
          for (int f = 0; f < 8; ++f) {
            const double flow = step * .5 * (fa[f] + fb[f] - s * (b[f] - a[f]));
            want[size_t(f) * n + y * nx + x] -= flow, want[size_t(f) * n + y1 * nx + x1] += flow;
          }
        }
    auto wrong = agree(out.now(), want, 1e-12, 1e-12);
    return wrong.empty() ? agree(fastest.now(), most, 0, 1e-12) : wrong;
  };
  return j;
});

// --- a level set made a distance again (Sussman), one step of Godunov's scheme in 3-D; edges repeat
auto redistance =
    kernel("user_redistance", [](const LaneCfg& c, Ptr<const float> phi, Ptr<const float> phi0, Ptr<float> out, I32 nx,
                                 I32 ny, I32 nz, F32 h, F32 dt) {
      num_warps(c.warps);
      auto id = program_id(0) * c.B + arange(0, c.B);
      auto z = id / (nx * ny), y = (id - z * (nx * ny)) / nx, x = id - z * (nx * ny) - y * nx;
      auto in = z < nz;
      auto get = [&](const Tile& i, const Tile& j, const Tile& k) {
        return load(phi + ((k * ny + j) * nx + i), {.mask = in});
      };
      auto p = get(x, y, z);
      auto a = (p - get(where(x > 0, x - 1, x), y, z)) / h, b = (get(where(x < nx - 1, x + 1, x), y, z) - p) / h;
      auto d = (p - get(x, where(y > 0, y - 1, y), z)) / h, f = (get(x, where(y < ny - 1, y + 1, y), z) - p) / h;
      auto g = (p - get(x, y, where(z > 0, z - 1, z))) / h, q = (get(x, y, where(z < nz - 1, z + 1, z)) - p) / h;
      auto pos = [](const Tile& v) { return where(v > 0.f, v, 0.f); };
      auto neg = [](const Tile& v) { return where(v < 0.f, v, 0.f); };
      auto sq = [](const Tile& v) { return v * v; };
      auto outside =
          sqrt(max(sq(pos(a)), sq(neg(b))) + max(sq(pos(d)), sq(neg(f))) + max(sq(pos(g)), sq(neg(q)))) - 1.f;
      auto inside = sqrt(max(sq(neg(a)), sq(pos(b))) + max(sq(neg(d)), sq(pos(f))) + max(sq(neg(g)), sq(pos(q)))) - 1.f;
      auto s0 = load(phi0 + id, {.mask = in});
      auto s = s0 / sqrt(s0 * s0 + h * h);
      auto G = where(s0 > 0.f, outside, where(s0 < 0.f, inside, 0.f));
      store(out + id, p - dt * s * G, {.mask = in});
    }).grid([](const LaneCfg& c, const float*, const float*, float*, int nx, int ny, int nz, float, float) {
      return Grid{cdiv(int64_t(nx) * ny * nz, c.B)};
    });
Register r2("redistance", [](Env& e) {
  const int nx = e.big ? 256 : 11, ny = e.big ? 256 : 5, nz = e.big ? 256 : 6, n = nx * ny * nz;
  auto phi = random<float>(e, n, -2, 2), phi0 = random<float>(e, n, -2, 2), out = constant<float>(e, n, NAN);
  const float h = .5f, dt = .1f;
  Job j;
  j.mbytes = 12e-6 * n;
  j.add(redistance, LaneCfg{e.field("B", e.big ? 256 : 32), e.field("warps", e.big ? 4 : 1)}, phi.p, phi0.p, out.p, nx,
        ny, nz, h, dt);
  j.check = [=] {
    std::vector<double> want(n);
    for (int k = 0; k < n; ++k) {
      const int at[3] = {k % nx, k / nx % ny, k / nx / ny}, size[3] = {nx, ny, nz}, step[3] = {1, nx, nx * ny};
      double up = 0, down = 0;
      for (int d = 0; d < 3; ++d) {
        const double l = at[d] > 0 ? (phi[k] - phi[k - step[d]]) / h : 0;
        const double r = at[d] < size[d] - 1 ? (phi[k + step[d]] - phi[k]) / h : 0;
        up += std::max(std::pow(std::max(l, 0.), 2), std::pow(std::min(r, 0.), 2));
        down += std::max(std::pow(std::min(l, 0.), 2), std::pow(std::max(r, 0.), 2));
      }
      const double s = phi0[k] / std::sqrt(phi0[k] * phi0[k] + h * h);
      want[k] = phi[k] - dt * s * (phi0[k] > 0 ? std::sqrt(up) - 1 : phi0[k] < 0 ? std::sqrt(down) - 1 : 0);
    }
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- blobs (SIFT): places of a stack of differences of blurs that are above or below all 26 around them; how many
auto blobs = kernel("user_blobs", [](const LaneCfg& c, Tensor<const float, 3> dog, Tensor<uint8_t, 2> found,
                                     Ptr<int32_t> count, F32 threshold) {
               // dog [3, h, w]
               num_warps(c.warps);
               auto y = program_id(1), x = program_id(0) * c.B;
               auto mid = squeeze(dog.load({1, y, x}, {1, 1, c.B}), 0);
               mid = squeeze(mid, 0);
               Tile is_max = mid > threshold, is_min = mid < -threshold;
               for (auto s : range(3))
                 for (auto dy : range(-1, 2))
                   for (auto dx : range(-1, 2)) {
                     auto other = squeeze(squeeze(dog.load({s, y + dy, x + dx}, {1, 1, c.B}), 0), 0);
                     auto self = (s == 1) & (dy == 0) & (dx == 0);
                     is_max = is_max & (self | (mid > other));
                     is_min = is_min & (self | (mid < other));
                   }
               auto at = x + arange(0, c.B);
               auto w = dog.dim(2), h = dog.dim(1);
               auto interior = (at >= 1) & (at < w - 1) & (y >= 1) & (y < h - 1);
               auto hit = interior & (is_max | is_min);
               found.store({y, x}, expand_dims(where(hit, where(is_max, cast(1, u8), cast(2, u8)), cast(0, u8)), 0));
               auto hits = sum(where(hit, 1, 0));
               for (auto _ : when(hits > 0)) atomic_add(count, hits, {.order = Order::relaxed});
             }).grid([](const LaneCfg& c, const auto& d, const auto&...) {
  return Grid{cdiv(d.shape[2], c.B), d.shape[1]};
});
Register r3("blobs", [](Env& e) {
  const int h = e.big ? 2160 : 7, w = e.big ? 3840 : 45;
  auto dog = random<float>(e, size_t(3) * h * w);
  auto found = constant<uint8_t>(e, size_t(h) * w, 9);
  auto count = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 13e-6 * h * w;
  j.add(blobs, LaneCfg{e.field("B", e.big ? 256 : 32), e.field("warps", e.big ? 4 : 1)}, dog.view(3, h, w),
        found.view(h, w), count.p, .3f);
  j.check = [=] {
    std::vector<double> want(size_t(h) * w), hits(1);
    for (int y = 1; y < h - 1; ++y)
      for (int x = 1; x < w - 1; ++x) {
        const double mid = dog[(size_t(h) + y) * w + x];
        bool more = mid > .3f, less = mid < -.3f;
        for (int k = 0; k < 27; ++k)
          if (k != 13) {
            const double other = dog[(size_t(k / 9) * h + y + k / 3 % 3 - 1) * w + x + k % 3 - 1];
            more &= mid > other, less &= mid < other;
          }
        want[size_t(y) * w + x] = more ? 1 : less ? 2 : 0, hits[0] += more || less;
      }
    auto wrong = agree(found.now(), want, .5, 0);
    return wrong.empty() ? agree(count.now(), hits, .5, 0) : wrong;
  };
  return j;
});

// --- the guided filter's last step: means of a and b over (2 r + 1)^2 from sums of rectangles, then a I + b
auto guided = kernel("user_guided", [](const LaneCfg& c, Ptr<const double> sum_a, Ptr<const double> sum_b,
                                       Ptr<const uint8_t> image, Ptr<uint8_t> out, I32 h, I32 w, I32 r) {
                // sums [h + 1, w + 1] of everything above and left
                num_warps(c.warps);
                auto flat = program_id(0) * c.B + arange(0, c.B);
                auto ok = flat < h * w;
                auto y = flat / w, x = flat % w;
                auto y0 = max(y - r, 0), y1 = min(y + r + 1, h), x0 = max(x - r, 0), x1 = min(x + r + 1, w);
                auto pitch = w + 1;
                auto box = [&](const Ptr<const double>& s) {
                  auto corner = [&](const Tile& i, const Tile& j) { return load(s + (i * pitch + j), {.mask = ok}); };
                  return corner(y1, x1) - corner(y0, x1) - corner(y1, x0) + corner(y0, x0);
                };
                auto area = cast((y1 - y0) * (x1 - x0), f64);
                auto value =
                    box(sum_a) / area * (cast(load(image + flat, {.mask = ok}), f64) / 255.0) + box(sum_b) / area;
                store(out + flat, cast(clamp(round(value * 255.0), 0.0, 255.0), u8), {.mask = ok});
              }).grid([](const LaneCfg& c, const double*, const double*, const uint8_t*, uint8_t*, int h, int w, int) {
  return Grid{cdiv(h * w, c.B)};
});
Register r4("guided", [](Env& e) {
  const int h = e.big ? 2160 : 13, w = e.big ? 3840 : 17, r = e.big ? 8 : 3;
  std::vector<double> a(size_t(h) * w), b(a.size());
  for (size_t i = 0; i < a.size() && e.device; ++i) a[i] = e.uniform(), b[i] = .3 * e.uniform() - .05;
  auto sums = [&](const std::vector<double>& of) {
    std::vector<double> s(size_t(h + 1) * (w + 1));
    for (int y = 0; y < h && e.device; ++y)
      for (int x = 0; x < w; ++x)
        s[size_t(y + 1) * (w + 1) + x + 1] = of[size_t(y) * w + x] + s[size_t(y) * (w + 1) + x + 1] +
                                             s[size_t(y + 1) * (w + 1) + x] - s[size_t(y) * (w + 1) + x];
    return s;
  };
  const size_t n = size_t(h + 1) * (w + 1);
  auto sa = repeated(e, n, sums(a)), sb = repeated(e, n, sums(b));
  auto image = integers<uint8_t>(e, size_t(h) * w, 0, 256);
  auto out = constant<uint8_t>(e, size_t(h) * w, 77);
  Job j;
  j.mbytes = 18e-6 * h * w;
  j.add(guided, LaneCfg{e.field("B", e.big ? 256 : 32), e.field("warps", e.big ? 4 : 1)}, sa.p, sb.p, image.p, out.p, h,
        w, r);
  j.check = [=] {
    std::vector<double> want(size_t(h) * w);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        double ma = 0, mb = 0;
        int area = 0;
        for (int i = std::max(y - r, 0); i <= std::min(y + r, h - 1); ++i)
          for (int k = std::max(x - r, 0); k <= std::min(x + r, w - 1); ++k)
            ma += a[size_t(i) * w + k], mb += b[size_t(i) * w + k], ++area;
        const double v = ma / area * (image[size_t(y) * w + x] / 255) + mb / area;
        want[size_t(y) * w + x] = std::clamp(std::round(v * 255), 0., 255.);
      }
    return agree(out.now(), want, 1.01, 0);
  };
  return j;
});

}  // namespace cell_steps
}  // namespace users
