// swept_weights.cpp - products with weights of few bits, experts and convolutions in the forms that people autotune,
// with every tile size, the number of warps and of stages as a field.
#include "tests/users/use.h"
namespace users {
namespace swept_weights {

struct WeightsCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
WeightsCfg weights_cfg(Env& e, WeightsCfg c) {
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("stages", c.stages),
          e.field("warps", c.warps)};
}

// --- GPTQ: eight numbers of 4 bits of a column along K in a word, read once for each of them; zero points in words,
// too, eight columns each; a row of scales and one of zero points for 128 rows
constexpr int kGroup = 128;
auto swept_gptq =
    kernel("user_swept_gptq", [](const WeightsCfg& c, Ptr<const half> x, Ptr<const int32_t> w, Ptr<const half> scales,
                                 Ptr<const int32_t> zeros_, Ptr<half> y, I32 M, I32 N, I32 K) {
      num_warps(c.warps);
      auto across = cdiv(N, c.BN);
      auto pid = program_id(0);
      auto m = pid / across * c.BM + arange(0, c.BM), n = pid % across * c.BN + arange(0, c.BN), k = arange(0, c.BK);
      Tile xp = x + (m.col() * K + k.row()), wp = w + ((k / 8).col() * N + n.row());
      auto by_row = (k % 8 * 4).col(), by_column = (n % 8 * 4).row();
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
        auto a = load(xp, {.mask = (m < M).col(), .other = 0.f});
        auto b = load(wp);
        auto g = i * c.BK / kGroup;
        auto s = load(scales + (g * N + n.row()));
        auto z = (load(zeros_ + (g * (N / 8) + (n / 8).row())) >> by_column) & 15;
        b = (b >> by_row) & 15;
        acc = dot(a, cast(b - z, f16) * s, acc);
        xp += c.BK;
        wp += c.BK / 8 * N;
      }
      store(y + (m.col() * N + n.row()), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const WeightsCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
Register r1("swept_gptq", [](Env& e) {
  const auto c = weights_cfg(e, e.big ? WeightsCfg{16, 64, 128, 3, 4} : WeightsCfg{16, 32, 32, 4, 2});
  const int M = e.field("M", e.big ? 16 : 21), N = e.big ? 8192 : 2 * c.BN, K = e.big ? 8192 : 2 * kGroup,
            G = K / kGroup;
  auto x = random<half>(e, size_t(M) * K), s = random<half>(e, size_t(G) * N, .01, .1);
  auto w = integers<int32_t>(e, size_t(K / 8) * N, INT32_MIN, INT32_MAX),
       z = integers<int32_t>(e, size_t(G) * N / 8, INT32_MIN, INT32_MAX);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K, j.mbytes = .5e-6 * N * K;
  j.add(swept_gptq, c, x.p, w.p, s.p, z.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(),
                 product(M, N, K, matrix(x, K),
                         [&](int k, int n) {
                           const int q = w.at(size_t(k / 8) * N + n) >> k % 8 * 4 & 15;
                           const int zero = z.at(size_t(k / kGroup) * (N / 8) + n / 8) >> n % 8 * 4 & 15;
                           return (q - zero) * s[size_t(k / kGroup) * N + n];
                         }),
                 3e-2, 5e-3);
  };
  return j;
});

// --- bytes widened in the loop, a factor for every column behind it
auto swept_w8 = kernel("user_swept_w8", [](const WeightsCfg& c, Ptr<const bfloat16> x, Ptr<const int8_t> w,
                                           Ptr<const float> scales, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
                  num_warps(c.warps);
                  auto across = cdiv(N, c.BN);
                  auto pid = program_id(0);
                  auto m = pid / across * c.BM + arange(0, c.BM), n = pid % across * c.BN + arange(0, c.BN),
                       k = arange(0, c.BK);
                  Tile xp = x + ((m % M).col() * K + k.row()), wp = w + (k.col() + (n % N).row() * K);
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
                    auto a = load(xp, {.mask = (k < K - i * c.BK).row(), .other = 0.f});
                    auto b = load(wp, {.mask = (k < K - i * c.BK).col(), .other = 0});
                    acc = dot(a, cast(b, bf16), acc);
                    xp += c.BK;
                    wp += c.BK;
                  }
                  acc = acc * load(scales + n, {.mask = n < N}).row();
                  store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
                }).grid([](const WeightsCfg& c, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
});
Register r2("swept_w8", [](Env& e) {
  const auto c = weights_cfg(e, e.big ? WeightsCfg{} : WeightsCfg{16, 32, 32, 2, 2});
  const int M = e.field("M", e.big ? 16 : 21), N = e.big ? 8192 : 45, K = e.big ? 8192 : 80;
  auto x = random<bfloat16>(e, size_t(M) * K);
  auto w = integers<int8_t>(e, size_t(N) * K, -128, 128);
  auto s = random<float>(e, N, 1e-3, 1e-2);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K, j.mbytes = 1e-6 * N * K;
  j.add(swept_w8, c, x.p, w.p, s.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(),
                 product(
                     M, N, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * K + k]; },
                     [&](double v, int, int n) { return v * s[n]; }),
                 1e-2, 1e-2);
  };
  return j;
});

// --- numbers of 8 bits with a factor for a row and 128 columns of A and for 128 x 128 of B, multiplied in the loop
auto swept_f8 =
    kernel("user_swept_f8", [](const WeightsCfg& c, Ptr<const fp8_e4m3> a, Ptr<const fp8_e4m3> b, Ptr<const float> sa,
                               Ptr<const float> sb, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
      num_warps(c.warps);
      auto across = cdiv(N, c.BN);
      auto pid = program_id(0);
      auto m = (pid / across * c.BM + arange(0, c.BM)) % M, n = (pid % across * c.BN + arange(0, c.BN)) % N;
      auto k = arange(0, c.BK);
      auto groups = cdiv(K, kGroup);
      Tile ap = a + (m.col() * K + k.row()), bp = b + (k.col() + n.row() * K);
      auto sap = sa + m * groups, sbp = sb + n / kGroup * groups;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
        auto x = load(ap, {.mask = (k < K - i * c.BK).row(), .other = 0.f});
        auto w = load(bp, {.mask = (k < K - i * c.BK).col(), .other = 0.f});
        auto g = i * c.BK / kGroup;
        acc += dot(x, w) * load(sap + g).col() * load(sbp + g).row();
        ap += c.BK;
        bp += c.BK;
      }
      auto r = pid / across * c.BM + arange(0, c.BM), q = pid % across * c.BN + arange(0, c.BN);
      store(y + (r.col() * N + q.row()), cast(acc, bf16), {.mask = (r < M).col() & (q < N).row()});
    }).grid([](const WeightsCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
Register r3("swept_f8", [](Env& e) {
  const auto c = weights_cfg(e, e.big ? WeightsCfg{64, 128, 128, 3, 4} : WeightsCfg{16, 32, 32, 2, 2});
  const int M = e.field("M", e.big ? 2048 : 21), N = e.big ? 7168 : 140, K = e.big ? 4096 : 200, G = cdiv(K, kGroup);
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto sa = random<float>(e, size_t(M) * G, .5, 1), sb = random<float>(e, size_t(cdiv(N, kGroup)) * G, .5, 1);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(swept_f8, c, a.p, b.p, sa.p, sb.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(),
                 product(
                     M, N, K, [&](int m, int k) { return a[size_t(m) * K + k] * sa[size_t(m) * G + k / kGroup]; },
                     [&](int k, int n) { return b[size_t(n) * K + k] * sb[size_t(n / kGroup) * G + k / kGroup]; }),
                 5e-2, 1e-2);
  };
  return j;
});

// --- a convolution of 3 x 3 with channels last as a product: a loop over taps and blocks of channels in one
auto swept_conv =
    kernel("user_swept_conv", [](const WeightsCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<half> y, I32 images,
                                 I32 H, I32 W, I32 C, I32 O) {
      // x [images, H, W, C], w [O, 3, 3, C], y [images, H, W, O]; a border of zeros
      num_warps(c.warps);
      auto pixel = program_id(0) * c.BM + arange(0, c.BM), o = program_id(1) * c.BN + arange(0, c.BN);
      auto column = pixel % W, row = pixel / W % H, image = pixel / W / H;
      Tile acc = zeros({c.BM, c.BN}, f32);
      auto blocks = cdiv(C, c.BK);
      for (auto t : range(0, blocks * 9, {.stages = c.stages})) {
        auto k = t % blocks * c.BK, tap = t / blocks, i = tap / 3, j = tap % 3;
        auto channel = k + arange(0, c.BK);
        auto r = row + i - 1, q = column + j - 1;
        auto in = (image < images) & (r >= 0) & (r < H) & (q >= 0) & (q < W);
        auto a = load(x + (((image * H + r) * W + q) * C).col() + channel.row(),
                      {.mask = in.col() & (channel < C).row(), .other = 0.f});
        auto b = load(w + ((o * 9 + tap) * C).row() + channel.col(),
                      {.mask = (channel < C).col() & (o < O).row(), .other = 0.f});
        acc += dot(a, b);
      }
      store(y + (pixel.col() * O + o.row()), cast(acc, f16), {.mask = (image < images).col() & (o < O).row()});
    }).grid([](const WeightsCfg& c, auto, auto, auto, int images, int H, int W, int, int O) {
      return Grid{cdiv(images * H * W, c.BM), cdiv(O, c.BN)};
    });
Register r4("swept_conv", [](Env& e) {
  const auto c = weights_cfg(e, e.big ? WeightsCfg{128, 128, 32, 3, 8} : WeightsCfg{32, 16, 16, 2, 2});
  const int B = e.big ? 32 : 2, H = e.big ? 56 : 5, W = e.big ? 56 : 7, C = e.big ? 128 : 24, O = e.big ? 256 : 19;
  auto x = random<half>(e, size_t(B) * H * W * C), w = random<half>(e, size_t(O) * 9 * C);
  auto y = constant<half>(e, size_t(B) * H * W * O, NAN);
  Job j;
  j.gflop = 18e-9 * B * H * W * C * O;
  j.add(swept_conv, c, x.p, w.p, y.p, B, H, W, C, O);
  j.check = [=] {
    return agree(y.now(),
                 product(
                     B * H * W, O, 9 * C,
                     [&](int p, int k) {
                       const int r = p / W % H + k / C / 3 - 1, q = p % W + k / C % 3 - 1;
                       if (r < 0 || r >= H || q < 0 || q >= W) return 0.;
                       return x[(size_t(p / W / H * H + r) * W + q) * C + k % C];
                     },
                     [&](int k, int o) { return w[size_t(o) * 9 * C + k]; }),
                 1e-2, 2e-3);
  };
  return j;
});

// --- experts: rows sorted by expert and padded to whole tiles, an expert for every tile, programs in groups of rows
auto swept_moe =
    kernel("user_swept_moe", [](const WeightsCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> w,
                                Ptr<const float> weights, Ptr<const int32_t> ids, Ptr<const int32_t> experts,
                                Ptr<const int32_t> padded, Ptr<bfloat16> y, I32 rows, I32 valid, I32 N, I32 K,
                                I32 top) {
      num_warps(c.warps);
      auto pid = program_id(0);
      auto tall = cdiv(rows, c.BM), wide = 8 * cdiv(N, c.BN);
      auto first = pid / wide * 8;
      auto size = min(tall - first, 8);
      auto pm = first + pid % wide % size, pn = pid % wide / size;
      return_if(pm * c.BM >= load(padded));
      auto token = load(ids + pm * c.BM + arange(0, c.BM));
      auto in = (token < valid).col();
      auto n = (pn * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
      auto expert = cast(load(experts + pm), i64);
      Tile ap = a + ((token / top).col() * K + k.row()), bp = w + expert * N * K + (k.col() + n.row() * K);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
        auto x = load(ap, {.mask = in & (k < K - i * c.BK).row(), .other = 0.f});
        auto v = load(bp, {.mask = (k < K - i * c.BK).col(), .other = 0.f});
        acc += dot(x, v);
        ap += c.BK;
        bp += c.BK;
      }
      acc = acc * load(weights + token.col(), {.mask = in, .other = 0.f});
      auto q = pn * c.BN + arange(0, c.BN);
      store(y + (token.col() * N + q.row()), cast(acc, bf16), {.mask = in & (q < N).row()});
    }).grid([](const WeightsCfg& c, auto, auto, auto, auto, auto, auto, auto, int rows, int, int N, auto...) {
      return Grid{cdiv(rows, c.BM) * cdiv(N, c.BN)};
    });
Register r5("swept_moe", [](Env& e) {
  const auto c = weights_cfg(e, e.big ? WeightsCfg{} : WeightsCfg{16, 32, 16, 2, 2});
  const int T = e.field("M", e.big ? 4096 : 21), E = e.big ? 32 : 3, top = 2, N = e.big ? 4096 : 45,
            K = e.big ? 2048 : 40;
  auto expert_of = [=](int t) { return (t % top + t / top * 7 + t / 5) % E; };
  std::vector<int32_t> ids, experts;
  for (int x = 0; x < E; ++x) {
    for (int t = 0; t < T * top; ++t)
      if (expert_of(t) == x) ids.push_back(t);
    while (ids.size() % c.BM) ids.push_back(T * top);
    while (experts.size() < ids.size() / c.BM) experts.push_back(x);
  }
  const int rows = int(ids.size());
  auto a = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * N * K, -.1, .1);
  auto g = random<float>(e, T * top, 0, 1);
  ids.resize(rows + c.BM, T * top), experts.push_back(0);  // a tile more than there are
  auto sorted = repeated<int32_t>(e, ids.size(), ids), of = repeated<int32_t>(e, experts.size(), experts);
  auto padded = filled<int32_t>(e, 1, [&](size_t) { return rows; });
  auto y = constant<bfloat16>(e, size_t(T) * top * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * top * N * K;
  j.add(swept_moe, c, a.p, w.p, g.p, sorted.p, of.p, padded.p, y.p, rows + c.BM, T * top, N, K, top);
  j.check = [=] {
    return agree(y.now(),
                 product(
                     T * top, N, 1, [](int, int) { return 0.; }, [](int, int) { return 0.; },
                     [&](double, int t, int n) {
                       double s = 0;
                       for (int k = 0; k < K; ++k) s += a[t / top * K + k] * w[(size_t(expert_of(t)) * N + n) * K + k];
                       return s * g[t];
                     }),
                 1e-2, 1e-2);
  };
  return j;
});

}  // namespace swept_weights
}  // namespace users
