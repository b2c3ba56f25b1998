// beside_cuda_blocks.cpp - bilateral, chol24, bsr, gemm_c32
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_blocks {
constexpr float kLog2e = 1.4426950408889634f;

// --- bilateral filter 11 x 11 of RGBA u8 (one word a pixel); weights exp(-ds |d|^2 - dr |colour|^2) times alpha; alpha
// stays; edges are clamped.
struct BilCfg {
  int BH = 8, BW = 64, warps = 4;
};
auto bilateral =
    kernel("user_bilateral", [](const BilCfg& c, Ptr<const uint32_t> I, Ptr<uint32_t> O, I32 W, I32 H, F32 ds, F32 dr) {
      num_warps(c.warps);
      const int R = 5;
      auto x = (program_id(0) * c.BW + arange(0, c.BW)).row(), y = (program_id(1) * c.BH + arange(0, c.BH)).col();
      auto inside = (x < W) & (y < H);
      auto channel = [](const Tile& p, int k) { return cast((p >> (8 * k)) & 255u, f32); };
      auto mid = load(I + (min(y, H - 1) * W + min(x, W - 1)));
      auto r0 = channel(mid, 0), g0 = channel(mid, 1), b0 = channel(mid, 2);
      Tile r = zeros({c.BH, c.BW}, f32), g = r, b = r, w = r;
      auto es = ds * -kLog2e, er = dr * -kLog2e;
      for (auto dy : range(-R, R + 1)) {
        auto line = I + clamp(y + dy, 0, H - 1) * W;
        for (int dx = -R; dx <= R; ++dx) {
          auto p = load(line + clamp(x + dx, 0, W - 1));
          auto pr = channel(p, 0), pg = channel(p, 1), pb = channel(p, 2);
          auto u = pr - r0, v = pg - g0, t = pb - b0;
          auto e = exp2(cast(dy * dy + dx * dx, f32) * es + (u * u + v * v + t * t) * er) * channel(p, 3);
          r += e * pr, g += e * pg, b += e * pb, w += e;
        }
      }
      auto some = w > 0.f;
      auto k = 1.f / where(some, w, 1.f);
      auto byte = [&](const Tile& s, const Tile& s0) { return cast(rint(where(some, s * k, s0)), u32); };
      store(O + (y * W + x), byte(r, r0) | byte(g, g0) << 8 | byte(b, b0) << 16 | (mid & 0xff000000u),
            {.mask = inside});
    }).grid([](const BilCfg& c, auto, auto, int W, int H, float, float) {
      return Grid{cdiv(W, c.BW), cdiv(H, c.BH)};
    });
Register r1("bilateral_eleven", [](Env& e) {
  const int W = e.big ? 1920 : 45, H = e.big ? 1080 : 19;
  const size_t n = size_t(W) * H;
  auto in = drawn<uint32_t>(e, n, [&] {
    uint32_t v = uint32_t(e.uniform() * 0x1p24);
    return v | (e.uniform() < .2 ? 0u : uint32_t(e.uniform() * 256) << 24);
  });
  auto out = constant<uint32_t>(e, n, 0);
  const float ds = 1 / 18.f, dr = 1 / (2 * 40.f * 40.f);
  Job j;
  j.mbytes = 8e-6 * double(n);
  j.add(bilateral, BilCfg{e.field("BH", 8), e.field("BW", e.big ? 64 : 32), e.field("warps", 4)}, in.p, out.p, W, H, ds,
        dr);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const uint32_t m = in.at(size_t(y) * W + x);
        double s[3] = {}, w = 0;
        for (int dy = -5; dy <= 5; ++dy)
          for (int dx = -5; dx <= 5; ++dx) {
            const uint32_t p = in.at(size_t(std::clamp(y + dy, 0, H - 1)) * W + std::clamp(x + dx, 0, W - 1));
            double d = 0;
            for (int k = 0; k < 3; ++k) {
              const double u = double(p >> 8 * k & 255) - double(m >> 8 * k & 255);
              d += u * u;
            }
            const double t = std::exp(-ds * double(dx * dx + dy * dy) - dr * d) * double(p >> 24);
            for (int k = 0; k < 3; ++k) s[k] += t * double(p >> 8 * k & 255);
            w += t;
          }
        const uint32_t v = got[size_t(y) * W + x];
        if (v >> 24 != m >> 24) return "alpha";
        for (int k = 0; k < 3; ++k) {
          const double want = w > 0 ? s[k] / w : double(m >> 8 * k & 255);
          if (std::abs(double(v >> 8 * k & 255) - want) > .51)
            return "pixel " + std::to_string(x) + " " + std::to_string(y) + ": " + std::to_string(v >> 8 * k & 255) +
                   " instead of " + std::to_string(want);
        }
      }
    return "";
  };
  return j;
});

// --- Cholesky of 24 x 24 in f64, (A + ridge) = L L', then x = A^-1 b. info: 0, or the first pivot that is not
// positive.
struct CholCfg {
  int B = 1, warps = 1;
};
auto chol24 = kernel("user_chol24", [](const CholCfg& c, Tensor<const double, 3> A, Tensor<const double, 2> R,
                                       Tensor<double, 3> Lo, Tensor<double, 2> X, Tensor<int, 1> info, F64 ridge) {
                num_warps(c.warps);
                constexpr int N = 24;
                auto m = program_id(0) * c.B;
                auto i = reshape(arange(0, N), {1, N, 1}), j = reshape(arange(0, N), {1, 1, N});
                Tile a = A.load({m, 0, 0}, {c.B, N, N});
                a = where(i == j, a + ridge, a);
                Tile l = zeros({c.B, N, N}, f64);
                Tile b = reshape(R.load({m, 0}, {c.B, N}), {c.B, N, 1});
                Tile y = zeros({c.B, N, 1}, f64), bad = zeros({c.B, 1, 1}, i32);
                for (int k = 0; k < N; ++k) {
                  auto pivot = extract(a, {0, k, k}, {c.B, 1, 1});
                  bad = where((bad == 0) & !(pivot > 0.0), k + 1, bad);
                  auto d = rsqrt(where(pivot > 0.0, pivot, 1.0));
                  auto column = where(i >= k, extract(a, {0, 0, k}, {c.B, N, 1}) * d, 0.0);
                  a -= column * trans(column);
                  l = where(j == k, column, l);
                  auto yk = extract(b, {0, k, 0}, {c.B, 1, 1}) * d;
                  b -= column * yk;
                  y = where(i == k, yk, y);
                }
                Tile x = zeros({c.B, N, 1}, f64);
                for (int k = N - 1; k >= 0; --k) {
                  auto xk = extract(y, {0, k, 0}, {c.B, 1, 1}) / extract(l, {0, k, k}, {c.B, 1, 1});
                  x = where(i == k, xk, x);
                  y -= trans(extract(l, {0, k, 0}, {c.B, 1, N})) * xk;
                }
                Lo.store({m, 0, 0}, l);
                X.store({m, 0}, reshape(x, {c.B, N}));
                info.store({m}, reshape(bad, {c.B}));
              }).grid([](const CholCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r2("chol24", [](Env& e) {
  const int M = e.big ? 40000 : 13, N = 24, B = e.field("B", 1);
  // a symmetric matrix with a large diagonal
  const int distinct = e.big ? 1000 : M;
  std::vector<double> all(size_t(distinct) * N * N);
  if (e.device)
    for (int m = 0; m < distinct; ++m)
      for (int i = 0; i < N; ++i)
        for (int k = 0; k <= i; ++k)
          all[(size_t(m) * N + i) * N + k] = all[(size_t(m) * N + k) * N + i] =
              (i == k ? (m == 5 && i == 9 ? -30. : 12.) : 0.) + 2 * e.uniform() - 1;
  auto a = repeated<double>(e, size_t(M) * N * N, all);
  auto r = random<double>(e, size_t(M) * N);
  auto l = constant<double>(e, size_t(M) * N * N, NAN), x = constant<double>(e, size_t(M) * N, NAN);
  auto info = constant<int>(e, M, -1);
  Job j;
  j.mbytes = 16e-6 * M * N * N;
  j.add(chol24, CholCfg{B, e.field("warps", 1)}, a.view(M, N, N), r.view(M, N), l.view(M, N, N), x.view(M, N),
        info.view(M), 0.25);
  j.check = [=]() -> std::string {
    const auto gl = l.now(), gx = x.now();
    const auto gi = info.now();
    for (int m = 0; m < M; ++m) {
      std::vector<double> w(N * N), v(N);
      int bad = 0;
      for (int i = 0; i < N; ++i)
        for (int k = 0; k <= i; ++k) {
          double s = a[(size_t(m) * N + i) * N + k] + (i == k ? .25 : 0);
          for (int t = 0; t < k; ++t) s -= w[i * N + t] * w[k * N + t];
          if (i == k && !(s > 0) && !bad) bad = i + 1;
          w[i * N + k] = i == k ? std::sqrt(s) : s / w[k * N + k];
        }
      if (gi[m] != bad) return "info of " + std::to_string(m) + " is " + std::to_string(gi[m]);
      if (bad) continue;
      for (int i = 0; i < N; ++i) {
        double s = r[size_t(m) * N + i];
        for (int t = 0; t < i; ++t) s -= w[i * N + t] * v[t];
        v[i] = s / w[i * N + i];
      }
      for (int i = N - 1; i >= 0; --i) {
        double s = v[i];
        for (int t = i + 1; t < N; ++t) s -= w[t * N + i] * v[t];
        v[i] = s / w[i * N + i];
      }
      auto s = agree(std::vector<double>(gl.begin() + m * N * N, gl.begin() + (m + 1) * N * N), w, 1e-12, 1e-12);
      if (s.empty()) s = agree(std::vector<double>(gx.begin() + m * N, gx.begin() + (m + 1) * N), v, 1e-12, 1e-12);
      if (!s.empty()) return "matrix " + std::to_string(m) + " " + s;
    }
    return "";
  };
  return j;
});

// --- z = alpha A x + beta y, A of 4 x 4 blocks by block rows (BSR)
struct BsrCfg {
  int R = 8, NB = 8, warps = 4;
};
auto bsr = kernel("user_bsr", [](const BsrCfg& c, Ptr<const int> first, Ptr<const int> cols, Ptr<const float> V,
                                 Ptr<const float> x, Ptr<const float> y, Ptr<float> z, I32 rows, F32 alpha, F32 beta) {
             num_warps(c.warps);
             auto r = program_id(0) * c.R + arange(0, c.R);
             auto begin = load(first + r, {.mask = r < rows}), end = load(first + r + 1, {.mask = r < rows});
             auto e = reshape(arange(0, 16), {1, 1, 16});
             Tile acc = zeros({c.R, c.NB, 16}, f32);
             for (auto i : range(0, max(end - begin), c.NB)) {
               auto b = begin.col() + i + arange(0, c.NB).row();
               auto m = b < end.col();
               auto col = expand_dims(load(cols + b, {.mask = m}), 2), mm = expand_dims(m, 2);
               auto v = load(V + (cast(expand_dims(b, 2), i64) * 16 + e), {.mask = mm, .cache = Cache::streaming});
               acc += v * load(x + (col * 4 + e % 4), {.mask = mm});
             }
             auto s = reshape(sum(reshape(sum(acc, axis(1)), {c.R, 4, 4}), axis(2)), {c.R * 4});
             auto at = program_id(0) * (c.R * 4) + arange(0, c.R * 4);
             auto in = at < rows * 4;
             store(z + at, alpha * s + beta * load(y + at, {.mask = in}), {.mask = in});
           }).grid([](const BsrCfg& c, auto, auto, auto, auto, auto, auto, int rows, float, float) {
  return Grid{cdiv(rows, c.R)};
});
Register r3("bsr", [](Env& e) {
  const int M = e.big ? 200000 : 53, C = e.big ? 200000 : 41;
  std::vector<int> ptr{0};
  for (int i = 0; i < M; ++i) ptr.push_back(ptr.back() + (i % 17 == 3 ? 0 : 8 + int(uint32_t(i) * 2654435761u >> 27)));
  const size_t nb = ptr.back();
  // near the diagonal, as in meshes
  auto cols = filled<int>(e, nb, [&](size_t) { return 0; });
  if (e.device) {
    size_t k = 0;
    for (int i = 0; i < M; ++i)
      for (int t = ptr[i]; t < ptr[i + 1]; ++t, ++k)
        cols.h[k] = int((int64_t(i) * C / M + int64_t(e.uniform() * 2000) + 1000LL * C - 1000) % C);
    cols = repeated<int>(e, nb, cols.h);
  }
  auto first = repeated<int>(e, ptr.size(), ptr);
  auto v = random<float>(e, nb * 16), x = random<float>(e, size_t(C) * 4), y = random<float>(e, size_t(M) * 4);
  auto z = constant<float>(e, size_t(M) * 4, NAN);
  Job j;
  j.mbytes = 68e-6 * double(nb);
  j.add(bsr, BsrCfg{e.field("R", 8), e.field("NB", 8), e.field("warps", 4)}, first.p, cols.p, v.p, x.p, y.p, z.p, M,
        1.5f, -.5f);
  j.check = [=] {
    std::vector<double> want(size_t(M) * 4);
    for (int i = 0; i < M; ++i)
      for (int r = 0; r < 4; ++r) {
        double s = 0;
        for (int b = ptr[i]; b < ptr[i + 1]; ++b)
          for (int k = 0; k < 4; ++k) s += v[size_t(b) * 16 + r * 4 + k] * x[size_t(cols.h[b]) * 4 + k];
        want[size_t(i) * 4 + r] = 1.5 * s - .5 * y[size_t(i) * 4 + r];
      }
    return agree(z.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- C = alpha A B^H of 32 x 32 complex matrices, interleaved, alpha complex
struct C32Cfg {
  int B = 1, warps = 4;
};
auto gemm_c32 = kernel("user_gemm_c32", [](const C32Cfg& c, Tensor<const float, 4> A, Tensor<const float, 4> B,
                                           Tensor<float, 4> C, F32 alpha_re, F32 alpha_im) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.B;
                  auto [ar, ai] = split(A.load({m, 0, 0, 0}, {c.B, 32, 32, 2}));
                  auto [br, bi] = split(B.load({m, 0, 0, 0}, {c.B, 32, 32, 2}));
                  auto tr = trans(br), ti = trans(bi);
                  auto re = dot(ai, ti, dot(ar, tr));
                  auto im = dot(ai, tr) - dot(ar, ti);
                  C.store({m, 0, 0, 0}, join(re * alpha_re - im * alpha_im, re * alpha_im + im * alpha_re));
                }).grid([](const C32Cfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r4("gemm_c32", [](Env& e) {
  const int M = e.big ? 20000 : 5;
  const size_t n = size_t(M) * 2048;
  auto a = random<float>(e, n), b = random<float>(e, n);
  auto c = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 12e-6 * double(n), j.gflop = 8e-9 * M * 32768.;
  j.add(gemm_c32, C32Cfg{e.field("B", 1), e.field("warps", 4)}, a.view(M, 32, 32, 2), b.view(M, 32, 32, 2),
        c.view(M, 32, 32, 2), .75f, -.5f);
  j.check = [=] {
    std::vector<double> want(n);
    for (int m = 0; m < M; ++m)
      for (int i = 0; i < 32; ++i)
        for (int k = 0; k < 32; ++k) {
          double re = 0, im = 0;
          for (int t = 0; t < 32; ++t) {
            const size_t p = ((size_t(m) * 32 + i) * 32 + t) * 2, q = ((size_t(m) * 32 + k) * 32 + t) * 2;
            re += a[p] * b[q] + a[p + 1] * b[q + 1], im += a[p + 1] * b[q] - a[p] * b[q + 1];
          }
          const size_t o = ((size_t(m) * 32 + i) * 32 + k) * 2;
          want[o] = re * .75 + im * .5, want[o + 1] = im * .75 - re * .5;
        }
    return agree(c.now(), want, 1e-5, 1e-5);
  };
  return j;
});
}  // namespace beside_cuda_blocks
}  // namespace users
