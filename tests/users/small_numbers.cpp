// small_numbers.cpp - many small problems and short numbers: number theoretic transforms, products of 8-bit by 4-bit
// numbers, filters of states of six numbers.
#include "tests/users/use.h"
namespace users {
namespace small_numbers {

// --- number theoretic transforms of N numbers modulo 998244353, one program each
constexpr uint32_t kPrime = 998244353;
struct NttCfg {
  int N = 1024, warps = 4;
};
auto ntt = kernel("user_ntt", [](const NttCfg& c, Tensor<const uint32_t, 2> X, Ptr<const uint32_t> roots,
                                 Tensor<uint32_t, 2> Y) {
  // X, Y [B, N], roots [N / 2]: powers of the N-th root of one
  num_warps(c.warps);
  auto b = program_id(0);
  auto i = arange(0, c.N);
  Tile order = zeros({c.N}, i32);
  for (int bit = 1; bit < c.N; bit *= 2) order = order * 2 | cast((i & bit) != 0, i32);
  Tile v = load(X.ptr() + cast(b, i64) * X.stride(0) + order);
  for (int m = 1; m < c.N; m *= 2) {
    auto [lo, hi] = split(permute(reshape(v, {c.N / (2 * m), 2, m}), {0, 2, 1}));
    auto w = load(roots + arange(0, m) * (c.N / (2 * m))).row();
    auto t = cast(cast(hi, u64) * cast(w, u64) % uint64_t(kPrime), u32);
    auto s = lo + t, d = lo + (kPrime - t);
    s = where(s >= kPrime, s - kPrime, s), d = where(d >= kPrime, d - kPrime, d);
    v = reshape(permute(join(s, d), {0, 2, 1}), {c.N});
  }
  Y.store({b, 0}, v);
}).grid([](const NttCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r1("ntt", [](Env& e) {
  NttCfg c;
  if (!e.big) c = {64, 1};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 16384 : 3, N = c.N;
  auto power = [](uint64_t a, uint64_t n) {
    uint64_t r = 1;
    for (; n; n /= 2, a = a * a % kPrime)
      if (n % 2) r = r * a % kPrime;
    return r;
  };
  const uint64_t root = power(3, (kPrime - 1) / N);
  auto x = drawn<uint32_t>(e, size_t(B) * N, [&] { return uint32_t(e.uniform() * kPrime); });
  auto roots = filled<uint32_t>(e, N / 2, [&](size_t i) { return uint32_t(power(root, i)); });
  auto y = constant<uint32_t>(e, x.n, 0);
  Job j;
  j.mbytes = 8e-6 * B * N;
  j.add(ntt, c, x.view(B, N), roots.p, y.view(B, N));
  j.check = [=] {
    const auto got = y.now();
    for (int b = 0; b < B; ++b)
      for (int k = 0; k < N; ++k) {
        uint64_t sum = 0;
        for (int n = 0; n < N; ++n) sum = (sum + x.at(size_t(b) * N + n) * power(root, uint64_t(n) * k)) % kPrime;
        if (got[size_t(b) * N + k] != sum) return "row " + std::to_string(b) + ", " + std::to_string(k);
      }
    return std::string();
  };
  return j;
});

// --- 8-bit activations by 4-bit weights, a scale for each group of 128 of k and column (W4A8)
struct W4A8Cfg {
  int BM = 128, BN = 128, G = 128, stages = 3, warps = 8;
};
auto w4a8 = kernel("user_w4a8", [](const W4A8Cfg& c, Tensor<const int8_t, 2> X, Tensor<const uint8_t, 2> W,
                                   Tensor<const half, 2> scales, Tensor<const float, 1> x_scale, Tensor<half, 2> Y) {
  // X [M, K], W [N, K / 2] (two of k in a byte, the even one low; stored plus 8), scales [K / G, N], x_scale [M],
  // Y [M, N]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto g : range(0, scales.dim(0), {.stages = c.stages})) {
    auto x = X.load({m, g * c.G}, {c.BM, c.G});
    auto both = W.load({n, g * (c.G / 2)}, {c.BN, c.G / 2});
    auto w = cast(reshape(join(both & 15, both >> 4), {c.BN, c.G}), i8) - 8;
    auto s = cast(scales.load({g, n}, {c.BN}), f32);
    acc += cast(dot(x, trans(w)), f32) * s.row();
  }
  Y.store({m, n}, cast(acc * x_scale.load({m}, {c.BM}).col(), f16));
}).grid([](const W4A8Cfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r2("w4a8", [](Env& e) {
  W4A8Cfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 37, N = e.big ? 4096 : 45, K = e.big ? 4096 : 96, G = c.G;
  auto x = integers<int8_t>(e, size_t(M) * K, -127, 128);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto s = random<half>(e, size_t(K / G) * N, .001, .01);
  auto xs = random<float>(e, M, .001, .01);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(w4a8, c, x.view(M, K), w.view(N, K / 2), s.view(K / G, N), xs.view(M), y.view(M, N));
  j.check = [=] {
    return agree(y.now(),
                 product(M, N, K, [&](int m, int k) { return x.at(size_t(m) * K + k) * xs[m]; },
                         [&](int k, int n) {
                           return ((w.at((size_t(n) * K + k) / 2) >> k % 2 * 4 & 15) - 8) * s[size_t(k / G) * N + n];
                         }),
                 1e-3, 2e-3);
  };
  return j;
});

// --- a step of many Kalman filters: states of six numbers, measurements of three
struct KalmanCfg {
  int B = 4, warps = 4;
};
auto kalman = kernel("user_kalman", [](const KalmanCfg& c, Tensor<double, 2> state, Tensor<double, 3> cov,
                                       Tensor<const double, 2> A_, Tensor<const double, 2> Q_,
                                       Tensor<const double, 2> seen, F64 noise) {
  // state [N, 6], cov [N, 6, 6], A, Q [6, 6], seen [N, 3]: the first three of the state plus noise
  num_warps(c.warps);
  auto n = program_id(0) * c.B;
  auto mul = [](Tile a, Tile b) { return squeeze(sum(expand_dims(a, 3) * expand_dims(b, 1), axis(2)), 2); };
  auto A = A_.load({0, 0}, {6, 6}), Q = Q_.load({0, 0}, {6, 6});
  auto many = [&](Tile t) { return broadcast_to(expand_dims(t, 0), {c.B, 6, 6}); };
  auto x = sum(expand_dims(A, 0) * expand_dims(state.load({n, 0}, {c.B, 6}), 1), axis(2));  // [B, 6, 1]
  auto P = mul(mul(many(A), cov.load({n, 0, 0}, {c.B, 6, 6})), many(trans(A))) + expand_dims(Q, 0);
  auto z = expand_dims(seen.load({n, 0}, {c.B, 3}), 2) - extract(x, {0, 0, 0}, {c.B, 3, 1});
  auto s = [&](int i, int k) {
    auto v = extract(P, {0, i, k}, {c.B, 1, 1});
    return i == k ? v + noise : v;
  };
  auto cofactor = [&](int i, int k) {
    int a = (i + 1) % 3, b = (i + 2) % 3, d = (k + 1) % 3, e = (k + 2) % 3;
    return s(a, d) * s(b, e) - s(a, e) * s(b, d);
  };
  auto det = s(0, 0) * cofactor(0, 0) + s(0, 1) * cofactor(0, 1) + s(0, 2) * cofactor(0, 2);
  auto i = reshape(arange(0, 3), {1, 3, 1}), k = reshape(arange(0, 3), {1, 1, 3});
  Tile inverse = zeros({c.B, 3, 3}, f64);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) inverse = where((i == a) & (k == b), cofactor(b, a) / det, inverse);
  auto left = extract(P, {0, 0, 0}, {c.B, 6, 3});
  auto gain = mul(left, inverse);  // [B, 6, 3]
  x = x + mul(gain, z);
  P = P - mul(gain, permute(left, {0, 2, 1}));
  state.store({n, 0}, squeeze(x, 2));
  cov.store({n, 0, 0}, P);
}).grid([](const KalmanCfg& c, const auto& s, const auto&...) { return Grid{cdiv(s.shape[0], c.B)}; });
Register r3("kalman", [](Env& e) {
  KalmanCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 18 : 11;
  auto x = drawn<double>(e, size_t(N) * 6, [&] { return 2 * e.uniform() - 1; });
  auto p = filled<double>(e, size_t(N) * 36, [&](size_t i) { return i % 36 % 7 == 0 ? 1 + e.uniform() : .1; });
  auto a = filled<double>(e, 36, [](size_t i) { return i % 7 == 0 ? 1. : i / 6 + 3 == i % 6 ? .1 : 0.; });
  auto q = filled<double>(e, 36, [](size_t i) { return i % 7 == 0 ? .01 : 0.; });
  auto z = drawn<double>(e, size_t(N) * 3, [&] { return 2 * e.uniform() - 1; });
  Job j;
  j.inTurn = true;
  j.mbytes = 8e-6 * N * (84. + 3);
  j.add(kalman, c, x.view(N, 6), p.view(N, 6, 6), a.view(6, 6), q.view(6, 6), z.view(N, 3), .05);
  j.check = [=] {
    std::vector<double> wx, wp;
    for (int n = 0; n < N; ++n) {
      using M = std::array<std::array<double, 6>, 6>;
      M A, P, S{}, I{};
      std::array<double, 6> s{};
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 6; ++k) A[i][k] = a[i * 6 + k], s[i] += A[i][k] * x[n * 6 + k];
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 6; ++k) {
          P[i][k] = q[i * 6 + k];
          for (int u = 0; u < 6; ++u)
            for (int w = 0; w < 6; ++w) P[i][k] += A[i][u] * p[n * 36 + u * 6 + w] * A[k][w];
        }
      for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) S[i][k] = P[i][k] + (i == k) * .05, I[i][k] = i == k;
      for (int i = 0; i < 3; ++i) {  // Gauss and Jordan; S is positive definite
        const double d = S[i][i];
        for (int k = 0; k < 3; ++k) S[i][k] /= d, I[i][k] /= d;
        for (int r = 0; r < 3; ++r) {
          const double by = S[r][i];
          for (int k = 0; k < 3 && r != i; ++k) S[r][k] -= by * S[i][k], I[r][k] -= by * I[i][k];
        }
      }
      double gain[6][3] = {};
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 3; ++k)
          for (int u = 0; u < 3; ++u) gain[i][k] += P[i][u] * I[u][k];
      for (int i = 0; i < 6; ++i) {
        double v = s[i];
        for (int k = 0; k < 3; ++k) v += gain[i][k] * (z[n * 3 + k] - s[k]);
        wx.push_back(v);
        for (int k = 0; k < 6; ++k) {
          double v = P[i][k];
          for (int u = 0; u < 3; ++u) v -= gain[i][u] * P[k][u];
          wp.push_back(v);
        }
      }
    }
    const auto wrong = agree(x.now(), wx, 1e-12, 1e-11);
    return wrong.empty() ? agree(p.now(), wp, 1e-12, 1e-11) : wrong;
  };
  return j;
});

}  // namespace small_numbers
}  // namespace users
