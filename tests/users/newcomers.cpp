// newcomers.cpp - operators of benchmark suites as somebody writes them the first day: boxes or pointers, and nothing said
// of warps and stages.
#include "tests/users/use.h"
namespace users {
namespace newcomers {

// --- a layer: products with rows of weights, bias, GELU
struct PlainLinearCfg {
  int BM = 128, BN = 128, BK = 64;
};
auto plain_linear = kernel("user_plain_linear", [](const PlainLinearCfg& c, Tensor<const half, 2> X,
                                                   Tensor<const half, 2> W, Ptr<const half> b, Tensor<half, 2> Y) {
                      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto k : range(0, X.dim(1), c.BK))
                        acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
                      auto columns = n + arange(0, c.BN);
                      auto x = acc + cast(load(b + columns, {.mask = columns < W.dim(0)}), f32).row();
                      Y.store({m, n}, cast(.5f * x * (1 + erf(x * float(M_SQRT1_2))), f16));
                    }).grid([](const PlainLinearCfg& c, const auto& x, const auto& w, auto, const auto&) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r1("plain_linear", [](Env& e) {
  PlainLinearCfg c;
  if (!e.big) c = {32, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 8192 : 45, N = e.big ? 4096 : 50, K = e.big ? 4096 : 56;
  auto x = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(N) * K, -.1, .1), b = random<half>(e, N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(plain_linear, c, x.view(M, K), w.view(N, K), b.p, y.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * K + k]; },
                        [&](double s, int, int n) { return .5 * (s + b[n]) * (1 + std::erf((s + b[n]) * M_SQRT1_2)); });
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- lower triangles multiplied: rows m of the product need columns n to m
struct LowerCfg {
  int BM = 128, BN = 128, BK = 64;
};
auto lower_product = kernel("user_lower_product", [](const LowerCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                                     Tensor<half, 2> C) {
                       auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                       Tile acc = zeros({c.BM, c.BN}, f32);
                       for (auto k : range(n, min(m + c.BM, A.dim(1)), c.BK)) {
                         auto row = (m + arange(0, c.BM)).col(), in = k + arange(0, c.BK);
                         auto a = where(in.row() <= row, A.load({m, k}, {c.BM, c.BK}), half(0));
                         auto b = where((n + arange(0, c.BN)).row() <= in.col(), B.load({k, n}, {c.BK, c.BN}), half(0));
                         acc = dot(a, b, acc);
                       }
                       C.store({m, n}, cast(acc, f16));
                     }).grid([](const LowerCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r2("lower_product", [](Env& e) {
  LowerCfg c;
  if (!e.big) c = {16, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int N = e.big ? 4096 : 72;
  auto a = random<half>(e, size_t(N) * N), b = random<half>(e, size_t(N) * N);
  auto y = constant<half>(e, size_t(N) * N, NAN);
  Job j;
  j.gflop = 1e-9 / 3 * N * N * N;
  j.add(lower_product, c, a.view(N, N), b.view(N, N), y.view(N, N));
  j.check = [=] {
    return agree(y.now(), product(N, N, N, [&](int m, int k) { return k > m ? 0. : a[size_t(m) * N + k]; },
                                  [&](int k, int n) { return n > k ? 0. : b[size_t(k) * N + n]; }),
                 5e-3, 2e-3);
  };
  return j;
});

// --- max pooling of 3 x 3 with steps of 2: an element of the result its own nine reads
struct PoolCfg {
  int N = 1024;
};
auto max_pool = kernel("user_max_pool", [](const PoolCfg& c, Ptr<const float> x, Ptr<float> y, I32 H, I32 W, I32 OH,
                                           I32 OW, I32 all) {
                  auto i = program_id(0) * c.N + arange(0, c.N);
                  auto ow = i % OW, oh = i / OW % OH, plane = i / OW / OH;
                  Tile most = full({c.N}, -INFINITY, f32);
                  for (int a = 0; a < 3; ++a)
                    for (int b = 0; b < 3; ++b) {
                      auto h = oh * 2 - 1 + a, w = ow * 2 - 1 + b;
                      auto in = (i < all) & (h >= 0) & (h < H) & (w >= 0) & (w < W);
                      most = max(most, load(x + ((plane * H + h) * W + w), {.mask = in, .other = -INFINITY}));
                    }
                  store(y + i, most, {.mask = i < all});
                }).grid([](const PoolCfg& c, auto, auto, int, int, int, int, int all) { return Grid{cdiv(all, c.N)}; });
Register r3("max_pool", [](Env& e) {
  PoolCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int P = e.big ? 16 * 64 : 3, H = e.big ? 256 : 11, W = e.big ? 256 : 14, OH = (H - 1) / 2 + 1, OW = (W - 1) / 2 + 1;
  auto x = random<float>(e, size_t(P) * H * W);
  auto y = constant<float>(e, size_t(P) * OH * OW, NAN);
  Job j;
  j.mbytes = 4e-6 * (x.n + y.n);
  j.add(max_pool, c, x.p, y.p, H, W, OH, OW, int(y.n));
  j.check = [=] {
    std::vector<double> want(y.n, -INFINITY);
    for (size_t i = 0; i < y.n; ++i)
      for (int a = 0; a < 9; ++a) {
        const int h = int(i) / OW % OH * 2 - 1 + a / 3, w = int(i) % OW * 2 - 1 + a % 3, p = int(i) / OW / OH;
        if (h >= 0 && h < H && w >= 0 && w < W) want[i] = std::max(want[i], x[(size_t(p) * H + h) * W + w]);
      }
    return agree(y.now(), want, 1e-7, 0);
  };
  return j;
});

// --- running sums of what a mask keeps: a row a program, a thousand elements at a time
struct MaskedRunCfg {
  int N = 1024;
};
auto masked_run = kernel("user_masked_run", [](const MaskedRunCfg& c, Ptr<const float> x, Ptr<const int8_t> keep,
                                               Ptr<float> y, I32, I32 n) {
                    auto row = program_id(0) * n;
                    Tile before = zeros({1}, f32);
                    for (auto k : range(0, n, c.N)) {
                      auto i = k + arange(0, c.N);
                      auto v = where(load(keep + row + i, {.mask = i < n}) != 0, load(x + row + i, {.mask = i < n}), 0.f);
                      store(y + row + i, before + cumsum(v, axis(0)), {.mask = i < n});
                      before = before + sum(v, axis(0));
                    }
                  }).grid([](const MaskedRunCfg&, auto, auto, auto, int rows, int) { return Grid{rows}; });
Register r4("masked_run", [](Env& e) {
  MaskedRunCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int R = e.big ? 4096 : 3, n = e.big ? 16384 : 200;
  auto x = random<float>(e, size_t(R) * n);
  auto keep = filled<int8_t>(e, size_t(R) * n, [](size_t i) { return i % 3 != 0; });
  auto y = constant<float>(e, x.n, NAN);
  Job j;
  j.mbytes = 9e-6 * x.n;
  j.add(masked_run, c, x.p, keep.p, y.p, R, n);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (size_t i = 0; i < x.n; ++i)
      want[i] = (i % n ? want[i - 1] : 0) + (keep.at(i) ? x[i] : 0);
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- a matrix times a vector: products of a tile summed in the end
struct PlainMvCfg {
  int BM = 32, BN = 256;
};
auto plain_mv = kernel("user_plain_mv", [](const PlainMvCfg& c, Ptr<const half> A, Ptr<const half> x, Ptr<half> y, I32 M,
                                           I32 N) {
                  auto m = (program_id(0) * c.BM + arange(0, c.BM)).col();
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto k : range(0, N, c.BN)) {
                    auto n = (k + arange(0, c.BN)).row();
                    auto a = load(A + (m * N + n), {.mask = (m < M) & (n < N), .other = 0});
                    acc = acc + cast(a, f32) * cast(load(x + n, {.mask = n < N, .other = 0}), f32);
                  }
                  store(y + m, cast(sum(acc, axis(1)), f16), {.mask = m < M});
                }).grid([](const PlainMvCfg& c, auto, auto, auto, int M, int) { return Grid{cdiv(M, c.BM)}; });
Register r5("plain_mv", [](Env& e) {
  PlainMvCfg c;
  if (!e.big) c = {8, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  const int M = e.big ? 8192 : 45, N = e.big ? 8192 : 200;
  auto a = random<half>(e, size_t(M) * N), x = random<half>(e, N);
  auto y = constant<half>(e, M, NAN);
  Job j;
  j.mbytes = 2e-6 * a.n;
  j.add(plain_mv, c, a.p, x.p, y.p, M, N);
  j.check = [=] {
    return agree(y.now(), product(M, 1, N, matrix(a, N), [&](int k, int) { return x[k]; }), 5e-3, 2e-3);
  };
  return j;
});

// --- a convolution over planes (channels first): pixels in rows, gathered through pointers
struct PlanesConvCfg {
  int BP = 128, BO = 64, BI = 32, stages = 0, warps = 0;  // 0: what the compiler chooses
};
auto planes_conv = kernel("user_planes_conv", [](const PlanesConvCfg& c, Ptr<const half> x, Ptr<const half> w,
                                                 Ptr<half> y, I32 B, I32 C, I32 H, I32 W, I32 O) {
                     if (c.warps) num_warps(c.warps);
                     auto p = program_id(0) * c.BP + arange(0, c.BP), o = (program_id(1) * c.BO + arange(0, c.BO)).row();
                     auto b = p / (H * W), ph = p / W % H, pw = p % W;
                     auto channel = arange(0, c.BI);
                     Tile acc = zeros({c.BP, c.BO}, f32);
                     for (auto a : range(0, 3))
                       for (auto d : range(0, 3))
                         for (auto i : range(0, C, c.BI, {.stages = c.stages})) {
                           auto h = ph + a - 1, v = pw + d - 1, ci = i + channel;
                           auto in = (b < B) & (h >= 0) & (h < H) & (v >= 0) & (v < W);
                           auto xs = load(x + (((b * C).col() + ci.row()) * (H * W) + (h * W + v).col()),
                                          {.mask = in.col() & (ci < C).row(), .other = 0});
                           auto ws = load(w + (((o * C + ci.col()) * 3 + a) * 3 + d),
                                          {.mask = (ci < C).col() & (o < O), .other = 0});
                           acc = dot(xs, ws, acc);
                         }
                     store(y + ((b.col() * O + o) * (H * W) + (p % (H * W)).col()), cast(acc, f16),
                           {.mask = (b < B).col() & (o < O)});
                   }).grid([](const PlanesConvCfg& c, auto, auto, auto, int B, int, int H, int W, int O) {
  return Grid{cdiv(B * H * W, c.BP), cdiv(O, c.BO)};
});
Register r6("planes_conv", [](Env& e) {
  PlanesConvCfg c;
  if (!e.big) c = {32, 16, 16};
  c.BP = e.field("BP", c.BP), c.BO = e.field("BO", c.BO), c.BI = e.field("BI", c.BI);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 16 : 2, C = e.big ? 128 : 20, H = e.big ? 64 : 5, W = e.big ? 64 : 7, O = e.big ? 128 : 24;
  auto x = random<half>(e, size_t(B) * C * H * W), w = random<half>(e, size_t(O) * C * 9, -.1, .1);
  auto y = constant<half>(e, size_t(B) * O * H * W, NAN);
  Job j;
  j.gflop = 18e-9 * B * C * H * W * O;
  j.add(planes_conv, c, x.p, w.p, y.p, B, C, H, W, O);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i)
      for (int k = 0; k < C * 9; ++k) {
        const int h = int(i) / W % H + k / 3 % 3 - 1, v = int(i) % W + k % 3 - 1, o = int(i) / W / H % O, b = int(i) / W / H / O;
        if (h >= 0 && h < H && v >= 0 && v < W)
          want[i] += x[((size_t(b) * C + k / 9) * H + h) * W + v] * w[size_t(o) * C * 9 + k];
      }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- softmax of pieces of columns: a program one piece, once for the maximum and the sum, once for the result
struct JaggedCfg {
  int BL = 32, BD = 64;
};
auto jagged_softmax = kernel("user_jagged_softmax", [](const JaggedCfg& c, Ptr<const float> x, Ptr<const int64_t> offsets,
                                                       Ptr<float> y, I32, I32 D) {
                        auto b = program_id(0), d = (program_id(1) * c.BD + arange(0, c.BD)).row();
                        auto begin = load(offsets + b), end = load(offsets + b + 1);
                        Tile most = full({1, c.BD}, -INFINITY, f32), all = zeros({1, c.BD}, f32);
                        for (auto l : range(begin, end, c.BL)) {
                          auto i = (l + arange(0, c.BL)).col();
                          auto v = load(x + (i * D + d), {.mask = (i < end) & (d < D), .other = -INFINITY});
                          auto now = max(most, max(v, axis(0)));
                          all = all * exp(most - now) + sum(exp(v - now), axis(0));
                          most = now;
                        }
                        for (auto l : range(begin, end, c.BL)) {
                          auto i = (l + arange(0, c.BL)).col();
                          auto in = (i < end) & (d < D);
                          store(y + (i * D + d), exp(load(x + (i * D + d), {.mask = in}) - most) / all, {.mask = in});
                        }
                      }).grid([](const JaggedCfg& c, auto, auto, auto, int B, int D) { return Grid{B, cdiv(D, c.BD)}; });
Register r7("jagged_softmax", [](Env& e) {
  JaggedCfg c;
  if (!e.big) c = {8, 16};
  c.BL = e.field("BL", c.BL), c.BD = e.field("BD", c.BD);
  const int B = e.big ? 2048 : 5, D = e.big ? 128 : 16;
  std::vector<int64_t> at{0};
  for (int b = 0; b < B; ++b) at.push_back(at.back() + 1 + (b * 7919 + 5) % (e.big ? 1000 : 21));
  auto offsets = filled<int64_t>(e, B + 1, [&](size_t i) { return at[i]; });
  auto x = random<float>(e, size_t(at.back()) * D, -3, 3);
  auto y = constant<float>(e, x.n, NAN);
  Job j;
  j.mbytes = 12e-6 * x.n;
  j.add(jagged_softmax, c, x.p, offsets.p, y.p, B, D);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < D; ++d) {
        double s = 0;
        for (int64_t l = at[b]; l < at[b + 1]; ++l) s += std::exp(x[l * D + d]);
        for (int64_t l = at[b]; l < at[b + 1]; ++l) want[l * D + d] = std::exp(x[l * D + d]) / s;
      }
    return agree(y.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- weights of a norm of their own going back: rows of the weights in two walks
struct WeightNormCfg {
  int R = 8, N = 512;
};
auto weight_norm_bwd = kernel("user_weight_norm_bwd", [](const WeightNormCfg& c, Ptr<const float> dw, Ptr<const float> v,
                                                         Ptr<const float> g, Ptr<float> dv, Ptr<float> dg, I32 M, I32 N) {
                         auto m = (program_id(0) * c.R + arange(0, c.R)).col();
                         Tile vv = zeros({c.R, c.N}, f32), vw = zeros({c.R, c.N}, f32);
                         for (auto k : range(0, N, c.N)) {
                           auto n = (k + arange(0, c.N)).row();
                           auto in = (m < M) & (n < N);
                           auto x = load(v + (m * N + n), {.mask = in}), w = load(dw + (m * N + n), {.mask = in});
                           vv += x * x, vw += x * w;
                         }
                         auto norm = sqrt(sum(vv, axis(1))), both = sum(vw, axis(1));
                         auto scale = load(g + m, {.mask = m < M}) / norm;
                         store(dg + m, both / norm, {.mask = m < M});
                         for (auto k : range(0, N, c.N)) {
                           auto n = (k + arange(0, c.N)).row();
                           auto in = (m < M) & (n < N);
                           auto x = load(v + (m * N + n), {.mask = in}), w = load(dw + (m * N + n), {.mask = in});
                           store(dv + (m * N + n), scale * (w - x * both / (norm * norm)), {.mask = in});
                         }
                       }).grid([](const WeightNormCfg& c, auto, auto, auto, auto, auto, int M, int) {
  return Grid{cdiv(M, c.R)};
});
Register r8("weight_norm_bwd", [](Env& e) {
  WeightNormCfg c;
  if (!e.big) c = {4, 64};
  c.R = e.field("R", c.R), c.N = e.field("N", c.N);
  const int M = e.big ? 8192 : 11, N = e.big ? 8192 : 150;
  auto dw = random<float>(e, size_t(M) * N), v = random<float>(e, size_t(M) * N), g = random<float>(e, M, .5, 2);
  auto dv = constant<float>(e, v.n, NAN), dg = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 20e-6 * v.n;
  j.add(weight_norm_bwd, c, dw.p, v.p, g.p, dv.p, dg.p, M, N);
  j.check = [=] {
    std::vector<double> wv(v.n), wg(M);
    for (int m = 0; m < M; ++m) {
      double a = 0, b = 0;
      for (int n = 0; n < N; ++n) {
        const size_t i = size_t(m) * N + n;
        a += double(v[i]) * v[i], b += double(v[i]) * dw[i];
      }
      wg[m] = b / std::sqrt(a);
      for (int n = 0; n < N; ++n) {
        const size_t i = size_t(m) * N + n;
        wv[i] = g[m] / std::sqrt(a) * (dw[i] - v[i] * b / a);
      }
    }
    if (auto w = agree(dg.now(), wg, 1e-4, 1e-4); !w.empty()) return "gains: " + w;
    return agree(dv.now(), wv, 1e-4, 1e-3);
  };
  return j;
});

// --- sums over a middle dim, rows of an odd width
struct MiddleCfg {
  int BK = 16, BN = 128;
};
auto sum_middle = kernel("user_sum_middle", [](const MiddleCfg& c, Ptr<const float> x, Ptr<float> y, I32, I32 K, I32 N) {
                    auto b = program_id(1), n = program_id(0) * c.BN + arange(0, c.BN);
                    Tile acc = zeros({c.BK, c.BN}, f32);
                    for (auto k : range(0, K, c.BK)) {
                      auto r = (k + arange(0, c.BK)).col();
                      acc += load(x + (cast(b * K + r, i64) * N + n.row()), {.mask = (r < K) & (n < N).row()});
                    }
                    store(y + (b * N + n), squeeze(sum(acc, axis(0)), 0), {.mask = n < N});
                  }).grid([](const MiddleCfg& c, auto, auto, int B, int, int N) { return Grid{cdiv(N, c.BN), B}; });
Register r9("sum_middle", [](Env& e) {
  MiddleCfg c;
  if (!e.big) c = {8, 32};
  c.BK = e.field("BK", c.BK), c.BN = e.field("BN", c.BN);
  const int B = e.big ? 32 : 2, K = e.big ? 4096 : 21, N = e.big ? 4095 : 75;
  auto x = random<float>(e, size_t(B) * K * N);
  auto y = constant<float>(e, size_t(B) * N, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(sum_middle, c, x.p, y.p, B, K, N);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < x.n; ++i) want[i / N / K * N + i % N] += x[i];
    return agree(y.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- one row times weights of 4 bits, eight in a word down the columns; parts of the sum are added in memory
struct FewBitsCfg {
  int BK = 64, BN = 128, group = 128, warps = 0;  // 0: what the compiler chooses
};
auto row_w4 = kernel("user_row_w4", [](const FewBitsCfg& c, Ptr<const half> x, Ptr<const int32_t> w, Ptr<const half> scales,
                                       Ptr<const half> zeros_, Ptr<float> y, I32 K, I32 N) {
                if (c.warps) num_warps(c.warps);
                auto k = program_id(0) * c.BK + arange(0, c.BK), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                auto words = load(w + ((k / 8).col() * N + n), {.mask = (k < K).col() & (n < N)});
                auto code = (words >> ((k % 8) * 4).col()) & 15;
                auto g = program_id(0) * c.BK / c.group;
                auto scale = cast(load(scales + (g * N + n), {.mask = n < N}), f32);
                auto zero = cast(load(zeros_ + (g * N + n), {.mask = n < N}), f32);
                auto v = (cast(code, f32) - zero) * scale * cast(load(x + k, {.mask = k < K}), f32).col();
                atomic_add(y + n, sum(v, axis(0)), {.mask = n < N, .order = Order::relaxed});
              }).grid([](const FewBitsCfg& c, auto, auto, auto, auto, auto, int K, int N) {
  return Grid{cdiv(K, c.BK), cdiv(N, c.BN)};
});
Register r10("row_w4", [](Env& e) {
  FewBitsCfg c;
  if (!e.big) c = {16, 32, 32};
  c.BK = e.field("BK", c.BK), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int K = e.big ? 8192 : 96, N = e.big ? 8192 : 80;
  auto x = random<half>(e, K), s = random<half>(e, size_t(K / c.group) * N, .01, .1);
  auto z = filled<half>(e, s.n, [](size_t i) { return half(float(i % 16)); });
  auto w = filled<int32_t>(e, size_t(K / 8) * N, [](size_t i) { return int32_t(uint32_t(i) * 2654435761u); });
  auto y = constant<float>(e, N, 0);
  Job j;
  j.mbytes = 4e-6 * w.n;
  j.add(row_w4, c, x.p, w.p, s.p, z.p, y.p, K, N);
  j.check = [=] {
    return agree(y.now(), product(1, N, K, [&](int, int k) { return x[k]; }, [&](int k, int n) {
                   const size_t g = size_t(k / c.group) * N + n;
                   return (double(uint32_t(w.at(size_t(k / 8) * N + n)) >> k % 8 * 4 & 15) - z[g]) * s[g];
                 }), 1e-3, 1e-3);
  };
  return j;
});

// --- a recurrence with gates of channels, a step at a time: a program a block of the state
struct GatedStateCfg {
  int BK = 64, BV = 32;
};
auto gated_state = kernel("user_gated_state", [](const GatedStateCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                                 Ptr<const bfloat16> v, Ptr<const float> g, Ptr<float> o, I32, I32 T,
                                                 I32 V, F32 scale) {
                     // q, k, g [heads, T, BK], v, o [heads, T, V]
                     auto head = cast(program_id(1), i64) * T, i = arange(0, c.BK);
                     auto j = program_id(0) * c.BV + arange(0, c.BV);
                     Tile state = zeros({c.BV, c.BK}, f32);
                     for (auto t : range(0, T)) {
                       auto row = (head + t) * c.BK, out = (head + t) * V;
                       auto x = cast(load(q + row + i), f32) * scale, y = cast(load(k + row + i), f32);
                       auto z = cast(load(v + out + j, {.mask = j < V}), f32);
                       state = state * exp(load(g + row + i)).row() + z.col() * y.row();
                       store(o + out + j, squeeze(sum(state * x.row(), axis(1)), 1), {.mask = j < V});
                     }
                   }).grid([](const GatedStateCfg& c, auto, auto, auto, auto, auto, int heads, int, int V, auto) {
  return Grid{cdiv(V, c.BV), heads};
});
Register r11("gated_state", [](Env& e) {
  GatedStateCfg c;
  if (!e.big) c = {16, 8};
  c.BV = e.field("BV", c.BV);
  const int B = e.big ? 128 : 3, T = e.big ? 2048 : 20, V = e.big ? 128 : 16, K = c.BK;
  auto q = random<bfloat16>(e, size_t(B) * T * K), k = random<bfloat16>(e, q.n), v = random<bfloat16>(e, size_t(B) * T * V);
  auto g = random<float>(e, q.n, -.2, 0);
  auto o = constant<float>(e, v.n, NAN);
  const float scale = 1 / std::sqrt(float(K));
  Job j;
  j.mbytes = 1e-6 * (q.n * 8 + v.n * 6);
  j.add(gated_state, c, q.p, k.p, v.p, g.p, o.p, B, T, V, scale);
  j.check = [=] {
    std::vector<double> want(v.n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < V; ++d) {
        std::vector<double> s(K);
        for (int t = 0; t < T; ++t)
          for (int i = 0; i < K; ++i) {
            const size_t at = (size_t(b) * T + t) * K + i, out = (size_t(b) * T + t) * V + d;
            s[i] = s[i] * std::exp(g[at]) + k[at] * v[out];
            want[out] += s[i] * q[at] * scale;
          }
      }
    return agree(o.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- 1 - the cosine of pairs of rows, whole rows at once
struct CosineCfg {
  int D = 4096;
};
auto cosine_rows = kernel("user_cosine_rows", [](const CosineCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<float> z,
                                                 I32 R) {
                     (void)R;
                     auto r = program_id(0), i = r * c.D + arange(0, c.D);
                     auto a = load(x + i), b = load(y + i);
                     store(z + r, 1.f - sum(a * b) / max(sqrt(sum(a * a)) * sqrt(sum(b * b)), 1e-8f));
                   }).grid([](const CosineCfg&, auto, auto, auto, int R) { return Grid{R}; });
Register r12("cosine_rows", [](Env& e) {
  CosineCfg c;
  if (!e.big) c = {96};
  const int R = e.big ? 32768 : 7, D = c.D;
  auto x = random<float>(e, size_t(R) * D), y = random<float>(e, x.n);
  auto z = constant<float>(e, R, NAN);
  Job j;
  j.mbytes = 8e-6 * x.n;
  j.add(cosine_rows, c, x.p, y.p, z.p, R);
  j.check = [=] {
    std::vector<double> want(R);
    for (int r = 0; r < R; ++r) {
      double a = 0, b = 0, ab = 0;
      for (int i = 0; i < D; ++i) {
        const double u = x[size_t(r) * D + i], v = y[size_t(r) * D + i];
        a += u * u, b += v * v, ab += u * v;
      }
      want[r] = 1 - ab / std::sqrt(a * b);
    }
    return agree(z.now(), want, 1e-5, 1e-4);
  };
  return j;
});

}  // namespace newcomers
}  // namespace users
