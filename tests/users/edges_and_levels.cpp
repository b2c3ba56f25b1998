// edges_and_levels.cpp - what happens at the edges: a lid-driven flow on staggered grids with walls by branches,
// textures with levels and three ways to go on outside, Hessenberg forms of matrices in a tile, axes of four dims
// turned around.
#include "tests/users/use.h"
namespace users {
namespace edges_and_levels {

// --- a lid-driven cavity: one explicit step of both velocities on a staggered grid. Programs at a wall put in its
// mirror images, others take no notice
struct CavityCfg {
  int BM = 12, BN = 48, warps = 4;
};
auto cavity =
    kernel("user_cavity", [](const CavityCfg& c, Tensor<const float, 2> U, Tensor<const float, 2> V,
                             Tensor<float, 2> U1, Tensor<float, 2> V1, F32 h, F32 dt, F32 viscosity, F32 lid) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto H = U.dim(0), W = V.dim(1);  // cells; U is H x (W + 1), V is (H + 1) x W
      auto row = (m + arange(0, c.BM)).col(), column = (n + arange(0, c.BN)).row();
      auto u = [&](int i, int j) { return U.load({m + i, n + j}, {c.BM, c.BN}); };
      auto v = [&](int i, int j) { return V.load({m + i, n + j}, {c.BM, c.BN}); };
      Tile u00 = u(0, 0), uBelow = u(-1, 0), uAbove = u(1, 0), v00 = v(0, 0), vLeft = v(0, -1), vRight = v(0, 1);
      if_(m == 0, [&] { uBelow = where(row == 0, -u00, uBelow); });
      if_(m + c.BM >= H, [&] { uAbove = where(row == H - 1, 2 * lid - u00, uAbove); });
      if_(n == 0, [&] { vLeft = where(column == 0, -v00, vLeft); });
      if_(n + c.BN >= W, [&] { vRight = where(column == W - 1, -v00, vRight); });
      auto mean = [](const Tile& a, const Tile& b) { return 0.5f * (a + b); };
      auto square = [](const Tile& a) { return a * a; };
      // Of velocities along the row at u, and across it at v: the flux that leaves less the one that comes.
      Tile uLeft = u(0, -1), uRight = u(0, 1), vBelow = v(-1, 0), vAbove = v(1, 0);
      auto uFlux = square(mean(u00, uRight)) - square(mean(uLeft, u00)) + mean(u00, uAbove) * mean(v(1, -1), vAbove) -
                   mean(uBelow, u00) * mean(v(0, -1), v00);
      auto vFlux = square(mean(v00, vAbove)) - square(mean(vBelow, v00)) + mean(v00, vRight) * mean(u(-1, 1), uRight) -
                   mean(vLeft, v00) * mean(u(-1, 0), u00);
      auto uLap = uLeft + uRight + uBelow + uAbove - 4 * u00, vLap = vLeft + vRight + vBelow + vAbove - 4 * v00;
      auto step = [&](const Tile& x, const Tile& flux, const Tile& laplace) {
        return x + dt * (viscosity / (h * h) * laplace - flux / h);
      };
      U1.store({m, n}, where((column > 0) & (column < W), step(u00, uFlux, uLap), u00));
      V1.store({m, n}, where((row > 0) & (row < H), step(v00, vFlux, vLap), v00));
    }).grid([](const CavityCfg& c, const auto& u, const auto& v, const auto&, const auto&, auto...) {
      return Grid{cdiv(v.shape[0], c.BM), cdiv(u.shape[1], c.BN)};
    });
Register r1("cavity", [](Env& e) {
  const int H = e.big ? 4000 : 30, W = e.big ? 6000 : 100;
  auto u = filled<float>(e, size_t(H) * (W + 1), [&](size_t i) {
    return i % (W + 1) == 0 || i % (W + 1) == size_t(W) ? 0.f : float(e.uniform() - 0.5);
  });
  auto v = filled<float>(e, size_t(H + 1) * W, [&](size_t i) {
    return i < size_t(W) || i >= size_t(H) * W ? 0.f : float(e.uniform() - 0.5);
  });
  auto u1 = constant<float>(e, u.n, NAN), v1 = constant<float>(e, v.n, NAN);
  const float h = 0.1f, dt = 0.02f, nu = 0.05f, lid = 1;
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(cavity, CavityCfg{}, u.view(H, W + 1), v.view(H + 1, W), u1.view(H, W + 1), v1.view(H + 1, W), h, dt, nu, lid);
  j.check = [=] {
    auto U = [&](int y, int x) {
      return y < 0 ? -u[x] : y == H ? 2 * lid - u[size_t(H - 1) * (W + 1) + x] : u[size_t(y) * (W + 1) + x];
    };
    auto V = [&](int y, int x) {
      const size_t r = size_t(y) * W;
      return x < 0 ? -v[r] : x == W ? -v[r + W - 1] : v[r + x];
    };
    auto sq = [](double a) { return a * a; };
    std::vector<double> wantU(u.n), wantV(v.n);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x <= W; ++x) {
        const double o = u[size_t(y) * (W + 1) + x];
        wantU[size_t(y) * (W + 1) + x] = o;
        if (x == 0 || x == W) continue;
        const double flux = sq((o + U(y, x + 1)) / 2) - sq((o + U(y, x - 1)) / 2) +
                            (o + U(y + 1, x)) * (V(y + 1, x - 1) + V(y + 1, x)) / 4 -
                            (o + U(y - 1, x)) * (V(y, x - 1) + V(y, x)) / 4;
        const double laplace = U(y, x - 1) + U(y, x + 1) + U(y - 1, x) + U(y + 1, x) - 4 * o;
        wantU[size_t(y) * (W + 1) + x] += dt * (nu / h / h * laplace - flux / h);
      }
    for (int y = 0; y <= H; ++y)
      for (int x = 0; x < W; ++x) {
        const double o = v[size_t(y) * W + x];
        wantV[size_t(y) * W + x] = o;
        if (y == 0 || y == H) continue;
        const double flux = sq((o + V(y + 1, x)) / 2) - sq((o + V(y - 1, x)) / 2) +
                            (o + V(y, x + 1)) * (U(y - 1, x + 1) + U(y, x + 1)) / 4 -
                            (o + V(y, x - 1)) * (U(y - 1, x) + U(y, x)) / 4;
        const double laplace = V(y, x - 1) + V(y, x + 1) + V(y - 1, x) + V(y + 1, x) - 4 * o;
        wantV[size_t(y) * W + x] += dt * (nu / h / h * laplace - flux / h);
      }
    const auto wrong = agree(u1.now(), wantU, 2e-6, 2e-6);
    return wrong.empty() ? agree(v1.now(), wantV, 2e-6, 2e-6) : wrong;
  };
  return j;
});

// --- samples of a texture with levels: linear within two levels and between them; outside it repeats, is mirrored, or
// goes on as its edge, by axis. Four channels of 8 bits in a word
struct SampleCfg {
  int B = 256, warps = 4;
};
enum { kRepeat, kMirror, kClamp };
auto mip_sample = kernel("user_mip_sample", [](const SampleCfg& c, Ptr<const uint32_t> texels, Ptr<const int> first,
                                               I32 width, I32 height, I32 levels, I32 wrapX, I32 wrapY,
                                               Tensor<const float, 2> places, Ptr<uint32_t> colours, I32 n) {
                    num_warps(c.warps);
                    auto i = program_id(0) * c.B + arange(0, c.B);
                    auto field = [&](int k) { return load(places.ptr() + (i * 3 + k), {.mask = i < n}); };
                    auto u = field(0), v = field(1), lod = clamp(field(2), 0, cast(levels - 1, f32));
                    auto wrapped = [&](const Tile& x, const Tile& size, const Tile& mode) {
                      Tile at = clamp(x, 0, size - 1);
                      if_(mode == kRepeat, [&] { at = floor_mod(x, size); });
                      if_(mode == kMirror, [&] {
                        auto twice = floor_mod(x, 2 * size);
                        at = min(twice, 2 * size - 1 - twice);
                      });
                      return at;
                    };
                    Tile sums[4];
                    for (int k = 0; k < 4; ++k) sums[k] = zeros({c.B}, f32);
                    auto base = cast(floor(lod), i32);
                    for (int l = 0; l < 2; ++l) {
                      auto level = min(base + l, levels - 1);
                      auto share = l ? lod - floor(lod) : 1 - (lod - floor(lod));
                      auto w = max(width >> level, 1), h = max(height >> level, 1);
                      auto x = u * cast(w, f32) - 0.5f, y = v * cast(h, f32) - 0.5f;
                      auto x0 = floor(x), y0 = floor(y);
                      auto start = load(first + level);
                      for (int dy = 0; dy < 2; ++dy)
                        for (int dx = 0; dx < 2; ++dx) {
                          auto column = wrapped(cast(x0, i32) + dx, w, wrapX),
                               row = wrapped(cast(y0, i32) + dy, h, wrapY);
                          auto texel = load(texels + (start + row * w + column), {.mask = i < n});
                          auto weight = share * (dx ? x - x0 : 1 - (x - x0)) * (dy ? y - y0 : 1 - (y - y0));
                          for (int k = 0; k < 4; ++k) sums[k] += weight * cast((texel >> (8 * k)) & 255, f32);
                        }
                    }
                    Tile packed = zeros({c.B}, u32);
                    for (int k = 0; k < 4; ++k) packed = packed | cast(saturate(rint(sums[k]), u8), u32) << (8 * k);
                    store(colours + i, packed, {.mask = i < n});
                  }).grid([](const SampleCfg& c, auto, auto, int, int, int, int, int, const auto&, auto, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r2("mip_sample", [](Env& e) {
  const int W = e.big ? 3000 : 100, H = e.big ? 2000 : 60, L = 6, n = e.big ? 1 << 22 : 700;
  std::vector<int> starts(L + 1);
  for (int l = 0; l < L; ++l) starts[l + 1] = starts[l] + (W >> l) * (H >> l);
  auto texels = drawn<uint32_t>(e, starts[L],
                                [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto first = repeated<int>(e, L + 1, starts);
  auto places = drawn<float>(e, size_t(n) * 3, [&, i = 0]() mutable {
    return float(i++ % 3 == 2 ? 7 * e.uniform() - 1 : 4 * e.uniform() - 1.5);
  });
  auto colours = constant<uint32_t>(e, size_t(n) * 3, 0);
  Job j;
  j.mbytes = 48e-6 * n;
  const int modes[3][2] = {{kRepeat, kMirror}, {kClamp, kRepeat}, {kMirror, kClamp}};
  for (int k = 0; k < 3; ++k)
    j.add(mip_sample, SampleCfg{}, texels.p, first.p, W, H, L, modes[k][0], modes[k][1], places.view(n, 3),
          colours.p + size_t(k) * n, n);
  j.check = [=] {
    auto wrapped = [](int x, int size, int mode) {
      if (mode == kClamp) return std::clamp(x, 0, size - 1);
      const int period = mode == kMirror ? 2 * size : size, at = (x % period + period) % period;
      return std::min(at, period - 1 - at + (mode == kRepeat ? period : 0));
    };
    std::vector<double> want, got;
    const auto all = colours.now();
    for (int k = 0; k < 3; ++k)
      for (int i = 0; i < n; ++i) {
        const double u = places[size_t(i) * 3], v = places[size_t(i) * 3 + 1];
        const double lod = std::clamp(places[size_t(i) * 3 + 2], 0., L - 1.);
        double sums[4] = {0, 0, 0, 0};
        for (int l = int(lod); l <= std::min(int(lod) + 1, L - 1); ++l) {
          const int w = W >> l, h = H >> l;
          // Places are floats: a texel's edge must be the same here and there.
          const double x = float(float(u) * float(w) - 0.5f), y = float(float(v) * float(h) - 0.5f);
          for (int t = 0; t < 4; ++t) {
            const int c = wrapped(int(std::floor(x)) + t % 2, w, modes[k][0]);
            const int r = wrapped(int(std::floor(y)) + t / 2, h, modes[k][1]);
            const double fx = x - std::floor(x), fy = y - std::floor(y), share = 1 - std::abs(lod - l);
            for (int ch = 0; ch < 4; ++ch)
              sums[ch] += share * (t % 2 ? fx : 1 - fx) * (t / 2 ? fy : 1 - fy) *
                          (texels.at(size_t(starts[l]) + size_t(r) * w + c) >> (8 * ch) & 255);
          }
        }
        for (int ch = 0; ch < 4; ++ch)
          want.push_back(sums[ch]), got.push_back(all[size_t(k) * n + i] >> (8 * ch) & 255);
      }
    return agree(got, want, 0.51, 0);
  };
  return j;
});

// --- similar matrices in Hessenberg form, by reflections from both sides. A matrix a program, 20 x 20
struct HessenbergCfg {
  int N = 20, warps = 1;
};
auto hessenberg = kernel("user_hessenberg", [](const HessenbergCfg& c, Tensor<const double, 3> A, Tensor<double, 3> H) {
                    num_warps(c.warps);
                    auto b = program_id(0);
                    auto i = arange(0, c.N).col(), k = arange(0, c.N).row();
                    Tile a = A.load({b, 0, 0}, {c.N, c.N});
                    for (auto j : range(c.N - 2)) {
                      auto x = sum(where((k == j) & (i > j), a, 0.0), axis(1));  // of the column, what is below
                      auto head = sum(where(i == j + 1, x, 0.0), axis(0));
                      auto length = sqrt(sum(x * x, axis(0)));
                      auto v = where(i == j + 1, x + copysign(length, head), x);
                      auto size = sum(v * v, axis(0));
                      auto scale = where(size > 0, 2 / where(size > 0, size, 1), 0.0);
                      a = a - scale * v * sum(v * a, axis(0));
                      a = a - scale * sum(a * trans(v), axis(1)) * trans(v);
                    }
                    H.store({b, 0, 0}, where(i > k + 1, 0.0, a));
                  }).grid([](const HessenbergCfg&, const auto& a, const auto&) { return Grid{a.shape[0]}; });
Register r3("hessenberg", [](Env& e) {
  const int B = e.big ? 1 << 16 : 4, N = 20;
  auto a = random<double>(e, size_t(B) * N * N);
  auto h = constant<double>(e, size_t(B) * N * N, NAN);
  Job j;
  j.mbytes = 16e-6 * B * N * N;
  j.add(hessenberg, HessenbergCfg{}, a.view(B, N, N), h.view(B, N, N));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      double m[20][20], v[20];
      for (int i = 0; i < N * N; ++i) m[i / N][i % N] = a[size_t(b) * N * N + i];
      for (int j = 0; j + 2 < N; ++j) {
        double length = 0, size = 0;
        for (int i = 0; i < N; ++i) v[i] = i > j ? m[i][j] : 0, length += v[i] * v[i];
        v[j + 1] += std::copysign(std::sqrt(length), v[j + 1]);
        for (double x : v) size += x * x;
        for (int side = 0; side < 2; ++side)
          for (int k = 0; k < N; ++k) {
            auto at = [&](int i) -> double& { return side ? m[k][i] : m[i][k]; };
            double s = 0;
            for (int i = 0; i < N; ++i) s += v[i] * at(i);
            for (int i = 0; i < N; ++i) at(i) -= 2 / size * s * v[i];
          }
      }
      for (int i = 0; i < N * N; ++i) want.push_back(i / N > i % N + 1 ? 0 : m[i / N][i % N]);
    }
    return agree(h.now(), want, 1e-11, 1e-11);
  };
  return j;
});

// --- [A, B, C, D] to [D, B, A, C] of 16 bits, where flags of [A, C] say so; elsewhere the negative
struct TurnCfg {
  int A = 5, C = 24, D = 40, warps = 8;
};
auto turn4 = kernel("user_turn4", [](const TurnCfg& c, Tensor<const int16_t, 4> X, Tensor<const bool, 2> flags,
                                     Tensor<int16_t, 4> Y) {
               num_warps(c.warps);
               auto a = program_id(0) * c.A, b = program_id(1);
               for (auto k : range(0, X.dim(2), c.C))
                 for (auto d : range(0, X.dim(3), c.D)) {
                   Tile x = X.load({a, b, k, d}, {c.A, 1, c.C, c.D});
                   auto f = expand_dims(expand_dims(flags.load({a, k}, {c.A, c.C}), 1), 3);
                   Y.store({d, b, a, k}, permute(where(f, x, -x), {3, 1, 0, 2}));
                 }
             }).grid([](const TurnCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[0], c.A), x.shape[1]};
});
Register r4("turn4", [](Env& e) {
  const int A = e.big ? 100 : 7, B = e.big ? 60 : 3, C = e.big ? 240 : 50, D = e.big ? 200 : 56;
  auto x = integers<int16_t>(e, size_t(A) * B * C * D, -3000, 3000);
  auto flags = integers<uint8_t>(e, size_t(A) * C, 0, 2);
  auto y = constant<int16_t>(e, x.n, 0);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(turn4, TurnCfg{}, x.view(A, B, C, D), TensorView<const bool, 2>(reinterpret_cast<bool*>(flags.p), {A, C}),
        y.view(D, B, A, C));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (size_t i = 0; i < x.n; ++i) {
      const size_t d = i % D, c = i / D % C, b = i / D / C % B, a = i / D / C / B;
      want[((d * B + b) * A + a) * C + c] = flags.at(a * C + c) ? x[i] : -x[i];
    }
    return agree(y.now(), want, 0.1, 0);
  };
  return j;
});

}  // namespace edges_and_levels
}  // namespace users
