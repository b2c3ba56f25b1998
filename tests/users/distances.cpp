// distances.cpp - how far things are from each other: sums of absolute differences, mixtures of Gaussians, divergences
// of distributions; f32 products by parts of 16 bits; numbers put into a code book.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace distances {

// --- the sum of absolute differences of every row of A and every row of B
struct CityCfg {
  int BM = 64, BN = 64, BD = 8, warps = 4;
};
auto city = kernel("user_city_block", [](const CityCfg& c, Tensor<const float, 2> A, Tensor<const float, 2> B,
                                         Tensor<float, 2> Y) {
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto d : range(0, A.dim(1), c.BD)) {
    auto a = expand_dims(A.load({m, d}, {c.BM, c.BD}), 1), b = expand_dims(B.load({n, d}, {c.BN, c.BD}), 0);
    acc += squeeze(sum(abs(a - b), axis(2)), 2);
  }
  Y.store({m, n}, acc);
}).grid([](const CityCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
});
Register r1("city_block", [](Env& e) {
  CityCfg c;
  if (!e.big) c = {16, 32, 4, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BD = e.field("BD", c.BD);
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8192 : 37, N = e.big ? 8192 : 45, D = e.big ? 128 : 19;
  auto a = random<float>(e, size_t(M) * D), b = random<float>(e, size_t(N) * D);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * D;
  j.add(city, c, a.view(M, D), b.view(N, D), y.view(M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += std::abs(a[size_t(m) * D + d] - b[size_t(n) * D + d]);
        want.push_back(s);
      }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- an f32 product of nearly f32's accuracy: both operands in two parts of bf16, three products (bf16x3)
struct PartsCfg {
  int BM = 128, BN = 128, BK = 32, stages = 3, warps = 8;
};
auto parts = kernel("user_parts", [](const PartsCfg& c, Tensor<const float, 2> A, Tensor<const float, 2> B,
                                     Tensor<float, 2> C) {
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  auto two = [](Tile x) {
    auto high = cast(x, bf16);
    return std::pair(high, cast(x - cast(high, f32), bf16));
  };
  for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
    auto [ah, al] = two(A.load({m, k}, {c.BM, c.BK}));
    auto [bh, bl] = two(B.load({k, n}, {c.BK, c.BN}));
    acc = dot(al, bh, acc);
    acc = dot(ah, bl, acc);
    acc = dot(ah, bh, acc);
  }
  C.store({m, n}, acc);
}).grid([](const PartsCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r2("parts", [](Env& e) {
  PartsCfg c;
  if (!e.big) c = {32, 32, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 52, K = e.big ? 4096 : 71;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(K) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(parts, c, a.view(M, K), b.view(K, N), y.view(M, N));
  j.check = [=] { return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 2e-4, 1e-4); };
  return j;
});

// --- a mixture of Gaussians: how much every component answers for every point, the likelihood of all points (f64), and
// the sums that the next step needs
struct MixtureCfg {
  int BP = 64, K = 24, D = 8, warps = 4;
};
auto mixture = kernel("user_mixture", [](const MixtureCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> mean,
                                         Tensor<const float, 2> precision, Tensor<const float, 1> weight,
                                         Tensor<float, 2> R, Tensor<float, 2> sums, Ptr<double> likelihood) {
  // X [N, D], mean, precision [K, D], weight [K]: log weight less the log of the norm, R [N, K], sums [K, D + 1]
  num_warps(c.warps);
  auto p = program_id(0) * c.BP;
  auto x = X.load({p, 0}, {c.BP, c.D});
  auto d = expand_dims(x, 1) - expand_dims(mean.load({0, 0}, {c.K, c.D}), 0);
  auto far = sum(d * d * expand_dims(precision.load({0, 0}, {c.K, c.D}), 0), axis(2));
  auto score = weight.load({0}, {c.K}).row() - .5f * squeeze(far, 2);
  auto top = max(score, axis(1));
  auto e = exp(score - top);
  auto total = sum(e, axis(1));
  auto there = (p + arange(0, c.BP) < X.dim(0)).col();
  auto r = where(there, e / total, 0.f);
  R.store({p, 0}, r);
  atomic_add(likelihood, sum(cast(where(there, top + log(total), 0.f), f64)), {.order = Order::relaxed});
  auto moments = sum(expand_dims(r, 2) * expand_dims(x, 1), axis(0));  // [1, K, D]
  sums.atomic_add({0, 0}, squeeze(moments, 0));
  sums.atomic_add({0, c.D}, trans(sum(r, axis(0))));
}).grid([](const MixtureCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BP)}; });
Register r3("mixture", [](Env& e) {
  MixtureCfg c;
  if (!e.big) c = {16, 6, 3, 1};
  c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 20 : 75, K = c.K, D = c.D;
  auto x = random<float>(e, size_t(N) * D), mean = random<float>(e, K * D), prec = random<float>(e, K * D, 1, 9);
  auto w = random<float>(e, K);
  auto r = constant<float>(e, size_t(N) * K, NAN), sums = constant<float>(e, K * (D + 1), 0);
  auto l = constant<double>(e, 1, 0);
  Job j;
  j.mbytes = 4e-6 * N * (D + K);
  j.add(mixture, c, x.view(N, D), mean.view(K, D), prec.view(K, D), w.view(K), r.view(N, K), sums.view(K, D + 1), l.p);
  j.check = [=] {
    std::vector<double> want, moments(sums.n), total(1);
    for (int n = 0; n < N; ++n) {
      std::vector<double> s;
      double sum = 0;
      for (int k = 0; k < K; ++k) {
        double far = 0;
        for (int d = 0; d < D; ++d) far += std::pow(x[size_t(n) * D + d] - mean[k * D + d], 2) * prec[k * D + d];
        s.push_back(std::exp(w[k] - .5 * far)), sum += s.back();
      }
      total[0] += std::log(sum);
      for (int k = 0; k < K; ++k) {
        want.push_back(s[k] / sum);
        for (int d = 0; d <= D; ++d) moments[k * (D + 1) + d] += s[k] / sum * (d < D ? x[size_t(n) * D + d] : 1);
      }
    }
    std::string wrong = agree(r.now(), want, 1e-5, 1e-4);
    if (wrong.empty()) wrong = agree(sums.now(), moments, 1e-3, 1e-4);
    return wrong.empty() ? agree(l.now(), total, 1e-3, 1e-5) : wrong;
  };
  return j;
});

// --- the generalised Jensen and Shannon divergence of rows of log probabilities, with gradients where the first were
// (Liger); rows whose label is the ignored one have none
struct DivergenceCfg {
  int BV = 1024, warps = 4;
};
auto divergence = kernel("user_divergence", [](const DivergenceCfg& c, Tensor<bfloat16, 2> X,
                                               Tensor<const bfloat16, 2> Y, Tensor<const int64_t, 1> labels,
                                               Tensor<float, 1> loss, F32 beta, F32 scale, I64 ignored) {
  num_warps(c.warps);  // X (the student's), Y [T, V]
  auto t = program_id(0);
  auto counted = labels.load({t}) != ignored;
  Tile total = zeros({c.BV}, f32);
  for (auto v : range(0, X.dim(1), c.BV)) {
    auto x = cast(X.load({t, v}, {c.BV}, {.pad = -INFINITY}), f32);
    auto y = cast(Y.load({t, v}, {c.BV}, {.pad = -INFINITY}), f32);
    auto q = exp(x), p = exp(y);
    auto m = beta * p + (1.f - beta) * q;
    auto log_m = log(max(m, 1e-38f));
    auto there = v + arange(0, c.BV) < X.dim(1);
    total += where(there, beta * p * (y - log_m) + (1.f - beta) * q * (x - log_m), 0.f);
    auto gradient = scale * (1.f - beta) * q * (x - log_m);
    X.store({t, v}, cast(where(counted & there, gradient, 0.f), bf16));
  }
  loss.store({t}, where(counted, sum(total) * scale, 0.f));
}).grid([](const DivergenceCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("divergence", [](Env& e) {
  DivergenceCfg c;
  if (!e.big) c = {128, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 5, V = e.big ? 32000 : 307;
  const float beta = .3f, scale = .25f;
  auto x = random<bfloat16>(e, size_t(T) * V, -9, -3), y = random<bfloat16>(e, x.n, -9, -3);
  auto labels = filled<int64_t>(e, T, [](size_t i) { return i % 4 == 2 ? -100 : int64_t(i); });
  auto loss = constant<float>(e, T, NAN);
  Job j;
  j.inTurn = true;
  j.mbytes = 6e-6 * x.n;
  j.add(divergence, c, x.view(T, V), y.view(T, V), labels.view(T), loss.view(T), beta, scale, int64_t(-100));
  j.check = [=] {
    std::vector<double> want(x.n), sums;
    for (int t = 0; t < T; ++t) {
      double sum = 0;
      for (size_t i = size_t(t) * V; i < size_t(t + 1) * V && t % 4 != 2; ++i) {
        const double q = std::exp(x[i]), p = std::exp(y[i]), m = std::log(beta * p + (1. - beta) * q);
        sum += beta * p * (y[i] - m) + (1. - beta) * q * (x[i] - m);
        want[i] = scale * (1. - beta) * q * (x[i] - m);
      }
      sums.push_back(sum * scale);
    }
    const auto wrong = agree(x.now(), want, 1e-5, 1e-2);
    return wrong.empty() ? agree(loss.now(), sums, 1e-5, 1e-4) : wrong;
  };
  return j;
});

// --- 8 bits by a code book (bitsandbytes' dynamic type): a block's largest magnitude, and for every number the nearest
// of 256 sorted codes, found by bisection in a tile; and back
struct BookCfg {
  int block = 1024, warps = 4;
};
auto book = kernel("user_code_book", [](const BookCfg& c, Ptr<const bfloat16> X, Tensor<const float, 1> codes,
                                        Ptr<uint8_t> Q, Ptr<float> largest, Ptr<float> back, I64 n) {
  num_warps(c.warps);
  auto i = cast(program_id(0), i64) * c.block + cast(arange(0, c.block), i64);
  auto in = i < n;
  auto x = cast(load(X + i, {.mask = in}), f32);
  auto most = max(abs(x));
  auto v = x * where(most > 0.f, 1.f / most, 0.f);
  auto table = codes.load({0}, {256});
  Tile at = zeros({c.block}, i32);  // the last code that is not above v; the first one at least
  for (int step = 128; step; step /= 2) at = where(take(table, at + step, 0) <= v, at + step, at);
  auto next = min(at + 1, 255);
  auto low = take(table, at, 0), high = take(table, next, 0);
  auto q = where(high - v < v - low, next, at);
  store(Q + i, cast(q, u8), {.mask = in});
  store(back + i, take(table, q, 0) * most, {.mask = in});
  store(largest + program_id(0), most);
}).grid([](const BookCfg& c, const auto*, const auto&, uint8_t*, float*, float*, int64_t n) {
  return Grid{cdiv(n, int64_t(c.block))};
});
Register r5("code_book", [](Env& e) {
  BookCfg c;
  if (!e.big) c = {256, 2};
  c.block = e.field("block", c.block), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? int64_t(1) << 26 : 901;
  std::vector<float> table;
  for (int i = 0; i < 255; ++i) table.push_back(float(std::pow((i - 127) / 127., 3)));
  table.push_back(1.f);
  table[254] = .98f;
  auto x = random<bfloat16>(e, n);
  auto codes = repeated(e, 256, table);
  auto q = constant<uint8_t>(e, n, 0);
  auto largest = constant<float>(e, cdiv(n, int64_t(c.block)), NAN), back = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 7e-6 * double(n);
  j.add(book, c, x.p, codes.view(256), q.p, largest.p, back.p, n);
  j.check = [=] {
    const auto codes_now = q.now();
    const auto most = largest.now(), values = back.now();
    for (int64_t i = 0; i < n; ++i) {
      double top = 0, nearest = INFINITY;
      const int64_t b = i / c.block * c.block;
      for (int64_t k = b; k < std::min(n, b + c.block); ++k) top = std::max(top, std::abs(x[k]));
      for (float t : table) nearest = std::min(nearest, std::abs(t - x[i] / top));
      if (most[i / c.block] != top) return "largest of block " + std::to_string(i / c.block);
      const double mine = table[codes_now[i]];
      if (std::abs(mine - x[i] / top) > nearest + 1e-6 || std::abs(values[i] - mine * top) > 1e-6)
        return "element " + std::to_string(i) + ": code " + std::to_string(codes_now[i]);
    }
    return std::string();
  };
  return j;
});

}  // namespace distances
}  // namespace users
