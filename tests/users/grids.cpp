// grids.cpp - kernels element by element of a grid: stencils, transposition, random numbers, control flow.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace grids {

// --- stencils
struct StencilCfg {
  int BM = 32, BN = 128, warps = 4;
};
auto stencil2 = kernel("user_stencil2d", [](const StencilCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, F32 a) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                  auto box = [&](int dm, int dn) { return X.load({m + dm, n + dn}, {c.BM, c.BN}); };
                  auto x = box(0, 0);
                  Y.store({m, n}, x + a * (box(-1, 0) + box(1, 0) + box(0, -1) + box(0, 1) - 4.f * x));
                }).grid([](const StencilCfg& c, const auto& x, const auto&, float) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
});
Register r10("stencil2d", [](Env& e) {
  int M = e.big ? 8192 : 50, N = e.big ? 8192 : 135;
  auto x = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 8;
  j.add(stencil2, StencilCfg{}, x.view(M, N), y.view(M, N), 0.1f);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    auto at = [&](int m, int n) { return m < 0 || n < 0 || m >= M || n >= N ? 0. : x[m * N + n]; };
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        want[m * N + n] = at(m, n) + .1 * (at(m - 1, n) + at(m + 1, n) + at(m, n - 1) + at(m, n + 1) - 4 * at(m, n));
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});
struct Stencil3Cfg {
  int BY = 16, BX = 64, warps = 4;
};
auto stencil3 = kernel("user_stencil3d", [](const Stencil3Cfg& c, Tensor<const float, 3> X, Tensor<float, 3> Y, F32 a) {
                  num_warps(c.warps);
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  auto plane = [&](Tile z, int dy, int dx) { return X.load({z, y + dy, x + dx}, {c.BY, c.BX}); };
                  Tile below = zeros({c.BY, c.BX}, f32), here = plane(0, 0, 0);
                  for (auto z : range(0, X.dim(0))) {
                    auto above = plane(z + 1, 0, 0);
                    auto s = below + above + plane(z, -1, 0) + plane(z, 1, 0) + plane(z, 0, -1) + plane(z, 0, 1);
                    Y.store({z, y, x}, reshape(here + a * (s - 6.f * here), {1, c.BY, c.BX}));
                    below = here;
                    here = above;
                  }
                }).grid([](const Stencil3Cfg& c, const auto& x, const auto&, float) {
  return Grid{cdiv(x.shape[2], c.BX), cdiv(x.shape[1], c.BY)};
});
Register r11("stencil3d", [](Env& e) {
  int Z = e.big ? 256 : 7, M = e.big ? 512 : 20, N = e.big ? 512 : 70;
  auto x = random<float>(e, size_t(Z) * M * N);
  auto y = constant<float>(e, size_t(Z) * M * N, NAN);
  Job j;
  j.mbytes = 1e-6 * Z * M * N * 8;
  j.add(stencil3, Stencil3Cfg{}, x.view(Z, M, N), y.view(Z, M, N), 0.1f);
  j.check = [=] {
    std::vector<double> want(size_t(Z) * M * N);
    auto at = [&](int z, int m, int n) {
      return z < 0 || m < 0 || n < 0 || z >= Z || m >= M || n >= N ? 0. : x[(z * M + m) * N + n];
    };
    for (int z = 0; z < Z; ++z)
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n)
          want[(z * M + m) * N + n] =
              at(z, m, n) + .1 * (at(z - 1, m, n) + at(z + 1, m, n) + at(z, m - 1, n) + at(z, m + 1, n) +
                                  at(z, m, n - 1) + at(z, m, n + 1) - 6 * at(z, m, n));
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- transposition
struct TransCfg {
  int BM = 64, BN = 64, warps = 4;
};
auto transpose = kernel("user_transpose", [](const TransCfg& c, Tensor<const half, 2> X, Tensor<half, 2> Y) {
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   Y.store({n, m}, trans(X.load({m, n}, {c.BM, c.BN})));
                 }).grid([](const TransCfg& c, const auto& x, const auto&) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
});
Register r12("transpose", [](Env& e) {
  int M = e.big ? 8192 : 70, N = e.big ? 8192 : 135;
  auto x = random<half>(e, size_t(M) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(transpose, TransCfg{}, x.view(M, N), y.view(N, M));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[n * M + m] = x[m * N + n];
    return agree(y.now(), want, 1e-9, 0);
  };
  return j;
});

// --- dropout: Philox written by hand with integer operations
struct DropCfg {
  int BLOCK = 1024, warps = 4;
};
auto dropout =
    kernel("user_dropout", [](const DropCfg& c, Ptr<const half> x, Ptr<half> y, I64 n, F32 p, U64 seed) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto u = cast(i, u64);
      Tile x0 = cast(u, u32), x1 = cast(u >> 32, u32), x2 = zeros_like(x0), x3 = x2;
      Tile k0 = cast(seed, u32), k1 = cast(seed >> 32, u32);
      for (int r = 0; r < 10; ++r) {
        auto p0 = cast(x0, u64) * 0xD2511F53u, p1 = cast(x2, u64) * 0xCD9E8D57u;
        auto h0 = cast(p0 >> 32, u32), l0 = cast(p0, u32), h1 = cast(p1 >> 32, u32), l1 = cast(p1, u32);
        auto y0 = h1 ^ x1 ^ k0, y2 = h0 ^ x3 ^ k1;
        x0 = y0, x1 = l1, x2 = y2, x3 = l0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
      }
      auto keep = cast(x0 >> 8, f32) * 0x1p-24f >= p;
      auto v = cast(load(x + i, {.mask = i < n}), f32);
      store(y + i, cast(where(keep, v / (1.f - p), 0.f), f16), {.mask = i < n});
    }).grid([](const DropCfg& c, auto*, auto*, int64_t n, float, uint64_t) { return Grid{cdiv(n, c.BLOCK)}; });
auto dropout2 =
    kernel("user_dropout_rand", [](const DropCfg& c, Ptr<const half> x, Ptr<half> y, I64 n, F32 p, U64 seed) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto v = cast(load(x + i, {.mask = i < n}), f32);
      store(y + i, cast(where(rand(seed, i) >= p, v / (1.f - p), 0.f), f16), {.mask = i < n});
    }).grid([](const DropCfg& c, auto*, auto*, int64_t n, float, uint64_t) { return Grid{cdiv(n, c.BLOCK)}; });
template <class K>
Job dropout_job(Env& e, const K& k) {
  int64_t n = e.big ? 1 << 26 : 3000;
  uint64_t seed = 0x123456789abcdefull;
  auto x = random<half>(e, n, .5, 1);
  auto y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 4;
  j.add(k, DropCfg{}, x.p, y.p, n, 0.3f, seed);
  j.check = [=] {
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i) {
      want[i] = float(reference_philox(seed, i)[0] >> 8) * 0x1p-24f >= .3f ? x[i] / .7 : 0;
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
}
Register r14("dropout", [](Env& e) { return dropout_job(e, dropout); });
Register r15("dropout_rand", [](Env& e) { return dropout_job(e, dropout2); });

// --- while loops, nested ifs, early exits: Mandelbrot counts; binary search in sorted rows; Newton's square root
struct ManCfg {
  int BLOCK = 256, warps = 4;
};
auto mandelbrot = kernel("user_mandelbrot", [](const ManCfg& c, Tensor<int32_t, 2> out, F32 scale, I32 most) {
                    num_warps(c.warps);
                    auto row = program_id(0), col = program_id(1) * c.BLOCK + arange(0, c.BLOCK);
                    return_if(row >= out.dim(0));
                    auto cy = cast(row, f32) * scale - 1.2f;
                    auto cx = cast(col, f32) * scale - 2.f;
                    Tile zx = zeros({c.BLOCK}, f32), zy = zx, count = zeros({c.BLOCK}, i32);
                    Tile n = 0;
                    while_([&] { return (n < most) & any(zx * zx + zy * zy <= 4.f); },
                           [&] {
                             auto live = zx * zx + zy * zy <= 4.f;
                             auto t = zx * zx - zy * zy + cx;
                             zy = where(live, 2.f * zx * zy + cy, zy);
                             zx = where(live, t, zx);
                             count += cast(live, i32);
                             n += 1;
                           });
                    if_(any(count == most), [&] {
                      if_(
                          row % 2 == 0, [&] { count = where(count == most, -1, count); },
                          [&] { count = where(count == most, -2, count); });
                    });
                    out.store({row, program_id(1) * c.BLOCK}, reshape(count, {1, c.BLOCK}));
                  }).grid([](const ManCfg& c, const auto& o, float, int) {
  return Grid{o.shape[0] + 2, cdiv(o.shape[1], c.BLOCK)};
});
Register r19("mandelbrot", [](Env& e) {
  int M = e.big ? 4096 : 12, N = e.big ? 4096 : 300, most = e.big ? 500 : 60;
  float scale = e.big ? .0006f : .01f;
  auto y = constant<int32_t>(e, size_t(M) * N, -9);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(mandelbrot, ManCfg{256, e.big ? 2 : 4}, y.view(M, N), scale, most);
  j.check = [=]() -> std::string {
    int bad = 0;
    auto got = y.now();
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double cy = m * double(scale) - 1.2f, cx = n * double(scale) - 2, x = 0, z = 0;
        int k = 0;
        for (; k < most && x * x + z * z <= 4; ++k) {
          double t = x * x - z * z + cx;
          z = 2 * x * z + cy, x = t;
        }
        bad += got[m * N + n] != (k == most ? (m % 2 ? -2 : -1) : k);
      }
    return bad > M * N / 200 ? std::to_string(bad) + " pixels differ" : "";  // the border is chaotic
  };
  return j;
});
struct FindCfg {
  int BLOCK = 128;
};
auto lower_bound = kernel("user_lower_bound", [](const FindCfg& c, Ptr<const float> sorted, I32 n, Ptr<const float> q,
                                                 Ptr<int32_t> out, I32 m) {
                     auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                     auto x = load(q + i, {.mask = i < m});
                     Tile lo = zeros({c.BLOCK}, i32), hi = full({c.BLOCK}, n, i32);
                     for (auto step : range(0, 32)) {
                       auto open = lo < hi;
                       break_if(!any(open));
                       auto mid = (lo + hi) / 2;
                       auto v = load(sorted + mid, {.mask = open});
                       lo = where(open & (v < x), mid + 1, lo);
                       hi = where(open & (v >= x), mid, hi);
                     }
                     store(out + i, lo, {.mask = i < m});
                   }).grid([](const FindCfg& c, auto*, int, auto*, auto*, int m) { return Grid{cdiv(m, c.BLOCK)}; });
Register r20("lower_bound", [](Env& e) {
  int N = e.big ? 1 << 20 : 1000, M = e.big ? 1 << 22 : 300;
  auto s = filled<float>(e, N, [&](size_t i) { return float(i) / N; });
  auto q = random<float>(e, M, -.1, 1.1);
  auto o = constant<int32_t>(e, M, -1);
  Job j;
  j.mbytes = 1e-6 * M * 8;
  j.add(lower_bound, FindCfg{}, s.p, N, q.p, o.p, M);
  j.check = [=] {
    std::vector<double> want;
    for (float x : q.h) want.push_back(double(std::lower_bound(s.h.begin(), s.h.end(), x) - s.h.begin()));
    return agree(o.now(), want, .1, 0);
  };
  return j;
});

}  // namespace grids
}  // namespace users
