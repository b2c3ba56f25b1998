// spectra.cpp - transforms and sums that are products in disguise: FFT of 256 by two products with 16 x 16 matrices,
// Winograd convolution, the triangle update of structure models, distances.
#include <array>
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace spectra {

// --- FFT of 256 points in half precision: x[16 a + b] -> X[c + 16 d] = sum_b w256^(b c) w16^(b d) sum_a x w16^(a c)
struct SpectrumCfg {
  int BM = 8, warps = 4;
};
auto fft256 = kernel("user_fft256", [](const SpectrumCfg& c, Tensor<const half, 3> xr, Tensor<const half, 3> xi,
                                       Tensor<const half, 2> fr, Tensor<const half, 2> fi, Tensor<const float, 2> wr,
                                       Tensor<const float, 2> wi, Tensor<half, 3> yr, Tensor<half, 3> yi) {
                // x [N, 16 (a), 16 (b)], f = w16^(a c) [16, 16], w = w256^(b c) [16 (c), 16 (b)], y [N, 16 (d), 16 (c)]
                num_warps(c.warps);
                auto n = program_id(0) * c.BM;
                auto Fr = fr.load({0, 0}, {16, 16}), Fi = fi.load({0, 0}, {16, 16});
                auto Wr = expand_dims(wr.load({0, 0}, {16, 16}), 0), Wi = expand_dims(wi.load({0, 0}, {16, 16}), 0);
                auto times = [&](const Tile& r, const Tile& i) {  // rows of 16 times F
                  return std::pair(dot(r, Fr) - dot(i, Fi), dot(r, Fi) + dot(i, Fr));
                };
                auto rows = [&](const Tile& x) { return reshape(permute(x, {0, 2, 1}), {c.BM * 16, 16}); };
                auto boxes = [&](const Tile& x) { return permute(reshape(x, {c.BM, 16, 16}), {0, 2, 1}); };
                auto [ar, ai] = times(rows(xr.load({n, 0, 0}, {c.BM, 16, 16})),
                                      rows(xi.load({n, 0, 0}, {c.BM, 16, 16})));  // [n b, c]
                auto br = boxes(ar), bi = boxes(ai);                              // [n, c, b]
                auto tr = br * Wr - bi * Wi, ti = br * Wi + bi * Wr;
                auto flat = [&](const Tile& x) { return reshape(cast(x, f16), {c.BM * 16, 16}); };
                auto [cr, ci] = times(flat(tr), flat(ti));  // [n c, d]
                yr.store({n, 0, 0}, cast(boxes(cr), f16));
                yi.store({n, 0, 0}, cast(boxes(ci), f16));
              }).grid([](const SpectrumCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r1("fft256", [](Env& e) {
  int N = e.big ? 1 << 17 : 19;
  auto xr = random<half>(e, size_t(N) * 256), xi = random<half>(e, size_t(N) * 256);
  auto w = [](int k, int n) { return std::polar(1., -2 * M_PI * (k % n) / n); };
  auto fr = filled<half>(e, 256, [=](size_t i) { return half(float(w(int(i / 16 * (i % 16)), 16).real())); });
  auto fi = filled<half>(e, 256, [=](size_t i) { return half(float(w(int(i / 16 * (i % 16)), 16).imag())); });
  auto wr = filled<float>(e, 256, [=](size_t i) { return float(w(int(i / 16 * (i % 16)), 256).real()); });
  auto wi = filled<float>(e, 256, [=](size_t i) { return float(w(int(i / 16 * (i % 16)), 256).imag()); });
  auto yr = constant<half>(e, size_t(N) * 256, NAN), yi = constant<half>(e, size_t(N) * 256, NAN);
  Job j;
  j.mbytes = 2048e-6 * N;
  j.add(fft256, SpectrumCfg{}, xr.view(N, 16, 16), xi.view(N, 16, 16), fr.view(16, 16), fi.view(16, 16),
        wr.view(16, 16), wi.view(16, 16), yr.view(N, 16, 16), yi.view(N, 16, 16));
  j.check = [=] {
    std::vector<double> re(size_t(N) * 256), im(size_t(N) * 256);
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < 256; ++k) {
        std::complex<double> s = 0;
        for (int t = 0; t < 256; ++t) s += std::complex(xr[n * 256 + t], xi[n * 256 + t]) * w(k * t, 256);
        re[n * 256 + k] = s.real(), im[n * 256 + k] = s.imag();
      }
    auto wrong = agree(yr.now(), re, 4e-2, 4e-3);
    return wrong.empty() ? agree(yi.now(), im, 4e-2, 4e-3) : wrong;
  };
  return j;
});

// --- Winograd F(2x2, 3x3), fused: 16 products per tile of inputs, transformed on both sides
struct WinogradCfg {
  int BM = 32, BN = 32, BK = 16, stages = 2, warps = 4;
};
auto winograd = kernel("user_winograd", [](const WinogradCfg& c, Tensor<const half, 4> X, Tensor<const half, 3> U,
                                           Tensor<half, 4> Y) {
                  // X [N, H, W, C], U = G g G^T [16, C, K], Y [N, H, W, K]; H, W even, padding 1
                  num_warps(c.warps);
                  auto H = X.dim(1), W = X.dim(2), C = X.dim(3), K = Y.dim(3);
                  auto th = H / 2, tw = W / 2;
                  auto id = program_id(0) * c.BM + arange(0, c.BM);
                  auto n = id / (th * tw), h = id / tw % th * 2, w = id % tw * 2;
                  auto k0 = program_id(1) * c.BN;
                  std::array<Tile, 16> acc;
                  for (auto& a : acc) a = zeros({c.BM, c.BN}, f32);
                  for (auto ch : range(0, C, c.BK, {.stages = c.stages})) {
                    auto cc = ch + arange(0, c.BK);
                    std::array<Tile, 16> d;
                    for (int i = 0; i < 4; ++i)
                      for (int j = 0; j < 4; ++j) {
                        auto hh = h + (i - 1), ww = w + (j - 1);
                        auto inside = (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W) & (n < X.dim(0));
                        d[4 * i + j] = load(X.ptr() + (((n * H + hh) * W + ww) * C).col() + cc.row(),
                                            {.mask = inside.col() & (cc < C).row()});
                      }
                    std::array<Tile, 16> t;  // B^T d
                    for (int j = 0; j < 4; ++j) {
                      t[j] = d[j] - d[8 + j], t[4 + j] = d[4 + j] + d[8 + j];
                      t[8 + j] = d[8 + j] - d[4 + j], t[12 + j] = d[4 + j] - d[12 + j];
                    }
                    for (int i = 0; i < 4; ++i) {
                      const Tile row[] = {t[4 * i] - t[4 * i + 2], t[4 * i + 1] + t[4 * i + 2],
                                          t[4 * i + 2] - t[4 * i + 1], t[4 * i + 1] - t[4 * i + 3]};
                      for (int j = 0; j < 4; ++j)
                        acc[4 * i + j] = dot(row[j], U.load({4 * i + j, ch, k0}, {c.BK, c.BN}), acc[4 * i + j]);
                    }
                  }
                  std::array<Tile, 8> s;  // A^T acc
                  for (int j = 0; j < 4; ++j) {
                    s[j] = acc[j] + acc[4 + j] + acc[8 + j];
                    s[4 + j] = acc[4 + j] - acc[8 + j] - acc[12 + j];
                  }
                  auto kk = k0 + arange(0, c.BN);
                  auto ok = (n < X.dim(0)).col() & (kk < K).row();
                  for (int i = 0; i < 2; ++i)
                    for (int j = 0; j < 2; ++j) {
                      auto y = j ? s[4 * i + 1] - s[4 * i + 2] - s[4 * i + 3] : s[4 * i] + s[4 * i + 1] + s[4 * i + 2];
                      store(Y.ptr() + (((n * H + h + i) * W + w + j) * K).col() + kk.row(), cast(y, f16), {.mask = ok});
                    }
                }).grid([](const WinogradCfg& c, const auto& x, const auto&, const auto& y) {
  return Grid{cdiv(x.shape[0] * x.shape[1] / 2 * x.shape[2] / 2, c.BM), cdiv(y.shape[3], c.BN)};
});
Register r2("winograd", [](Env& e) {
  int N = e.big ? 32 : 2, H = e.big ? 56 : 6, W = e.big ? 56 : 10, C = e.big ? 128 : 24, K = e.big ? 256 : 40;
  auto x = random<half>(e, size_t(N) * H * W * C);
  const auto g = random<float>(e, size_t(9) * C * K, -.2, .2);
  auto u = filled<half>(e, size_t(16) * C * K, [&](size_t at) {
    static constexpr double G[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
    const size_t ij = at / (size_t(C) * K), ck = at % (size_t(C) * K);
    double s = 0;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) s += G[ij / 4][a] * G[ij % 4][b] * g[size_t(3 * a + b) * C * K + ck];
    return half(float(s));
  });
  auto y = constant<half>(e, size_t(N) * H * W * K, NAN);
  Job j;
  j.gflop = 18e-9 * N * H * W * double(C) * K;
  j.add(winograd, WinogradCfg{}, x.view(N, H, W, C), u.view(16, C, K), y.view(N, H, W, K));
  j.check = [=] {
    std::vector<double> want(size_t(N) * H * W * K);
    for (int n = 0; n < N; ++n)
      for (int h = 0; h < H; ++h)
        for (int w = 0; w < W; ++w)
          for (int k = 0; k < K; ++k)
            for (int a = 0; a < 3; ++a)
              for (int b = 0; b < 3; ++b) {
                const int hh = h + a - 1, ww = w + b - 1;
                if (hh < 0 || hh >= H || ww < 0 || ww >= W) continue;
                for (int ch = 0; ch < C; ++ch)
                  want[((size_t(n) * H + h) * W + w) * K + k] +=
                      x[((size_t(n) * H + hh) * W + ww) * C + ch] * g[(size_t(3 * a + b) * C + ch) * K + k];
              }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- triangle multiplication: z[d, i, j] = sum_k a[d, i, k] b[d, j, k], a = mask p sigmoid(g) and b likewise, then
// gated; channels first
struct TriangleCfg {
  int BM = 128, BN = 128, BK = 32, stages = 3, warps = 8;
};
auto triangle =
    kernel("user_triangle", [](const TriangleCfg& c, Tensor<const bfloat16, 3> A, Tensor<const bfloat16, 3> GA,
                               Tensor<const bfloat16, 3> B, Tensor<const bfloat16, 3> GB, Tensor<const float, 2> mask,
                               Tensor<const bfloat16, 3> GO, Tensor<bfloat16, 3> Z) {
      num_warps(c.warps);
      auto d = program_id(2), i = program_id(1) * c.BM, j = program_id(0) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(2), c.BK, {.stages = c.stages})) {
        auto gated = [&](auto& P, auto& G, const Tile& row, int rows) {
          auto p = cast(P.load({d, row, k}, {rows, c.BK}), f32), g = cast(G.load({d, row, k}, {rows, c.BK}), f32);
          return cast(p * sigmoid(g) * mask.load({row, k}, {rows, c.BK}), bf16);
        };
        acc = dot(gated(A, GA, i, c.BM), trans(gated(B, GB, j, c.BN)), acc);
      }
      auto gate = sigmoid(cast(GO.load({d, i, j}, {c.BM, c.BN}), f32));
      Z.store({d, i, j}, reshape(cast(acc * gate, bf16), {1, c.BM, c.BN}));
    }).grid([](const TriangleCfg& c, const auto& a, const auto&...) {
      return Grid{cdiv(a.shape[1], c.BN), cdiv(a.shape[1], c.BM), a.shape[0]};
    });
Register r3("triangle", [](Env& e) {
  int D = e.big ? 128 : 2, N = e.big ? 768 : 70;
  const size_t n = size_t(D) * N * N;
  auto a = random<bfloat16>(e, n), ga = random<bfloat16>(e, n, -2, 2), b = random<bfloat16>(e, n),
       gb = random<bfloat16>(e, n, -2, 2), go = random<bfloat16>(e, n, -2, 2);
  auto mask = filled<float>(e, size_t(N) * N, [=](size_t i) { return i % N < N - 7u && i / N < N - 7u ? 1.f : 0.f; });
  auto z = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 2e-9 * n * N;
  j.add(triangle, TriangleCfg{}, a.view(D, N, N), ga.view(D, N, N), b.view(D, N, N), gb.view(D, N, N), mask.view(N, N),
        go.view(D, N, N), z.view(D, N, N));
  j.check = [=] {
    auto sig = [](double x) { return 1 / (1 + std::exp(-x)); };
    std::vector<double> want;
    for (int d = 0; d < D; ++d) {
      const size_t first = size_t(d) * N * N;
      auto side = [&](const Array<bfloat16>& p, const Array<bfloat16>& g, int r, int k) {
        return p[first + r * N + k] * sig(g[first + r * N + k]) * mask[r * N + k];
      };
      auto one = product(
          N, N, N, [&](int i, int k) { return side(a, ga, i, k); }, [&](int k, int jj) { return side(b, gb, jj, k); },
          [&](double s, int i, int jj) { return s * sig(go[first + i * N + jj]); });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(z.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace spectra
}  // namespace users
