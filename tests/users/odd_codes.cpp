// odd_codes.cpp - weights of 4 bits in odd forms and what trains beside them, as first written: halves of the rows in
// one byte (HQQ), a table with factors that are codes themselves (FP4 in two levels), optimisers with several states.
#include "tests/users/use.h"
namespace users {
namespace odd_codes {

// --- weights whose upper and lower half of rows share bytes (HQQ): zero and step per group of 64 along k, as floats
struct HalvesCfg {
  int BM = 128, BN = 128, BK = 64, G = 64, stages = 3, warps = 8;
};
auto hqq_halves =
    kernel("user_hqq", [](const HalvesCfg& c, Tensor<const half, 2> A, Tensor<const uint8_t, 2> W,
                          Tensor<const half, 2> Z, Tensor<const half, 2> S, Tensor<half, 3> C) {
      // A [M, K], W [N / 2, K]: rows n (upper bits) and n + N / 2, Z and S [N, K / G], C [M, 2, N / 2]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto other = n + W.dim(0);
      Tile first = zeros({c.BM, c.BN}, f32), second = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto a = A.load({m, k}, {c.BM, c.BK});
        auto w = W.load({n, k}, {c.BN, c.BK});
        auto make = [&](Tile codes, Tile row) {
          return (cast(codes, f16) - Z.load({row, k / c.G}, {c.BN, 1})) * S.load({row, k / c.G}, {c.BN, 1});
        };
        first = dot(a, trans(make(w >> 4, n)), first);
        second = dot(a, trans(make(w & 15, other)), second);
      }
      C.store({m, 0, n}, reshape(cast(first, f16), {c.BM, 1, c.BN}));
      C.store({m, 1, n}, reshape(cast(second, f16), {c.BM, 1, c.BN}));
    }).grid([](const HalvesCfg& c, const auto& a, const auto& w, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
    });
// --- the same for one row of A: a program some rows of bytes, sums of both halves
struct VectorCfg {
  int ROWS = 8, BK = 1024, G = 64, warps = 4;
};
auto hqq_vector =
    kernel("user_hqq_vector", [](const VectorCfg& c, Ptr<const half> x, Ptr<const uint8_t> w, Ptr<const half> z,
                                 Ptr<const half> s, Ptr<float> y, I32 N, I32 K) {
      num_warps(c.warps);
      auto row = program_id(0) * c.ROWS + arange(0, c.ROWS);
      auto half_ = N / 2;
      Tile up = zeros({c.ROWS, c.BK}, f32), low = up;
      for (auto k0 : range(0, K, c.BK)) {
        auto k = k0 + arange(0, c.BK);
        auto in = (row < half_).col() & (k < K).row();
        auto byte = load(w + row.col() * K + k.row(), {.mask = in, .other = 0});
        auto v = cast(load(x + k, {.mask = k < K, .other = 0}), f32).row();
        auto group = [&](auto& p, Tile r) {
          return cast(load(p + r.col() * (K / c.G) + (k / c.G).row(), {.mask = in, .other = 0}), f32);
        };
        up += v * (cast(byte >> 4, f32) - group(z, row)) * group(s, row);
        low += v * (cast(byte & 15, f32) - group(z, row + half_)) * group(s, row + half_);
      }
      store(y + row, squeeze(sum(up, axis(1)), 1), {.mask = row < half_});
      store(y + half_ + row, squeeze(sum(low, axis(1)), 1), {.mask = row < half_});
    }).grid([](const VectorCfg& c, const half*, const uint8_t*, const half*, const half*, float*, int N, int) {
      return Grid{cdiv(N / 2, c.ROWS)};
    });
Register r1("hqq", [](Env& e) {
  const int M = e.big ? e.field("M", 512) : 70, N = e.big ? 8192 : 272, K = e.big ? 8192 : 192, G = 64;
  auto a = random<half>(e, size_t(M) * K, -.3, .3);
  auto w = integers<uint8_t>(e, size_t(N / 2) * K, 0, 256);
  auto z = random<half>(e, size_t(N) * (K / G), 6, 9), s = random<half>(e, size_t(N) * (K / G), .01, .1);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  auto y = constant<float>(e, N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(hqq_halves, e.big ? HalvesCfg{e.field("BM", 128), e.field("BN", 128)} : HalvesCfg{64, 64, 64, 64, 3, 4},
        a.view(M, K), w.view(N / 2, K), z.view(N, K / G), s.view(N, K / G), c.view(M, 2, N / 2));
  j.add(hqq_vector, VectorCfg{e.field("ROWS", 8), e.big ? 1024 : 128}, a.p, w.p, z.p, s.p, y.p, N, K);
  j.check = [=] {
    auto weight = [&](int k, int n, bool rounded) {
      const int byte = w.at(size_t(n % (N / 2)) * K + k), code = n < N / 2 ? byte >> 4 : byte & 15;
      const double zero = z[size_t(n) * (K / G) + k / G], step = s[size_t(n) * (K / G) + k / G];
      return rounded ? in_half(in_half(code - zero) * step) : (code - zero) * step;
    };
    auto wrong =
        agree(c.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return weight(k, n, true); }), 6e-3, 2e-3);
    if (!wrong.empty()) return wrong;
    return agree(y.now(), product(1, N, K, matrix(a, K), [&](int k, int n) { return weight(k, n, false); }), 1e-3,
                 1e-3);
  };
  return j;
});

// --- codes of 4 bits through a table (FP4: sign, then 0 1/192 2/3 1 1/3 1/2 1/6 1/4), a factor of every 64 that is a
// code of 8 bits itself: a factor of every 256 of those and an offset; flat, two elements a byte, upper bits first
struct FlatCfg {
  int BLOCK = 2048;
};
auto fp4_flat =
    kernel("user_fp4_flat",
           [](const FlatCfg& c, Ptr<const uint8_t> q, Ptr<const uint8_t> factor, Ptr<const float> code,
              Ptr<const float> second, Ptr<bfloat16> y, I64 n, F32 offset) {
             auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
             auto in = i < n;
             auto byte = cast(load(q + i / 2, {.mask = in}), i32);
             auto four = where(i % 2 == 0, byte >> 4, byte & 15);
             auto m = four & 7;
             auto v = where(
                 m == 0, 0.f,
                 where(m == 1, 0.0052083333f,
                       where(m == 2, 0.6666667f,
                             where(m == 3, 1.f,
                                   where(m == 4, 0.33333334f, where(m == 5, .5f, where(m == 6, 0.16666667f, .25f)))))));
             auto a = load(code + cast(load(factor + i / 64, {.mask = in}), i32), {.mask = in}) *
                          load(second + i / (64 * 256), {.mask = in}) +
                      offset;
             store(y + i, cast(where(four >= 8, -v, v) * a, bf16), {.mask = in});
           })
        .grid([](const FlatCfg& c, const uint8_t*, const uint8_t*, const float*, const float*, bfloat16*, int64_t n,
                 float) { return Grid{cdiv(n, int64_t(c.BLOCK))}; });
Register r2("fp4_flat", [](Env& e) {
  const int64_t n = e.big ? 1 << 27 : 40'003;
  auto q = integers<uint8_t>(e, (n + 1) / 2, 0, 256), f = integers<uint8_t>(e, cdiv(n, 64), 0, 256);
  auto code = random<float>(e, 256), second = random<float>(e, cdiv(n, 64 * 256), .5, 1);
  auto y = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 2.53e-6 * double(n);
  j.add(fp4_flat, FlatCfg{e.field("BLOCK", 2048)}, q.p, f.p, code.p, second.p, y.p, n, .03f);
  j.check = [=] {
    const double table[8] = {0, 1. / 192, 2. / 3, 1, 1. / 3, .5, 1. / 6, .25};
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i) {
      const int c = i % 2 ? q.at(i / 2) & 15 : q.at(i / 2) >> 4;
      want[i] = (c >= 8 ? -1 : 1) * table[c & 7] * (code[f.at(i / 64)] * second[i / (64 * 256)] + .03f);
    }
    return agree(y.now(), want, 1e-6, 6e-3);
  };
  return j;
});

// --- Adan: three averages and the last gradient, weight decay, everything flat, with an index of 64 bits
auto adan = kernel("user_adan",
                   [](const FlatCfg& c, Ptr<float> p, Ptr<const bfloat16> g, Ptr<float> m, Ptr<float> v, Ptr<float> s,
                      Ptr<bfloat16> last, I64 n, F32 rate, F32 b1, F32 b2, F32 b3, F32 eps, F32 decay, I32 step) {
                     auto i = cast(program_id(0), i64) * c.BLOCK + cast(arange(0, c.BLOCK), i64);
                     auto in = i < n;
                     auto now = cast(load(g + i, {.mask = in}), f32);
                     auto diff = where(step == 1, 0.f, now - cast(load(last + i, {.mask = in}), f32));
                     auto both = now + b2 * diff;
                     auto m2 = b1 * load(m + i, {.mask = in}) + (1.f - b1) * now;
                     auto v2 = b2 * load(v + i, {.mask = in}) + (1.f - b2) * diff;
                     auto s2 = b3 * load(s + i, {.mask = in}) + (1.f - b3) * both * both;
                     auto t = cast(step, f32);
                     auto f1 = 1.f - pow(b1, t), f2 = 1.f - pow(b2, t), f3 = sqrt(1.f - pow(b3, t));
                     auto x = load(p + i, {.mask = in});
                     auto denominator = sqrt(s2) / f3 + eps;
                     x = (x - rate * (m2 / f1 / denominator + b2 * v2 / f2 / denominator)) / (1.f + rate * decay);
                     store(p + i, x, {.mask = in});
                     store(m + i, m2, {.mask = in});
                     store(v + i, v2, {.mask = in});
                     store(s + i, s2, {.mask = in});
                     store(last + i, cast(now, bf16), {.mask = in});
                   })
                .grid([](const FlatCfg& c, float*, const bfloat16*, float*, float*, float*, bfloat16*, int64_t n,
                         const auto&...) { return Grid{cdiv(n, int64_t(c.BLOCK))}; });
Register r3("adan", [](Env& e) {
  const int64_t n = e.big ? 100'000'000 : 30'001;
  auto p = random<float>(e, n), m = random<float>(e, n), v = random<float>(e, n), s = random<float>(e, n, .1, 1);
  auto g = random<bfloat16>(e, n), last = random<bfloat16>(e, n);
  Job j;
  j.mbytes = 38e-6 * double(n);
  restore(e, j, p, m, v, s, last);
  j.add(adan, FlatCfg{e.field("BLOCK", 1024)}, p.p, g.p, m.p, v.p, s.p, last.p, n, .1f, .98f, .92f, .99f, 1e-8f, .02f,
        3);
  j.check = [=] {
    std::vector<double> want(n), wv(n);
    for (int64_t i = 0; i < n; ++i) {
      const double diff = g[i] - last[i], m2 = .98 * m[i] + .02 * g[i], both = g[i] + .92 * diff;
      wv[i] = .92 * v[i] + .08 * diff;
      const double s2 = .99 * s[i] + .01 * both * both, d = std::sqrt(s2) / std::sqrt(1 - std::pow(.99, 3)) + 1e-8;
      const double step = m2 / (1 - std::pow(.98, 3)) + .92 * wv[i] / (1 - std::pow(.92, 3));
      want[i] = (p[i] - .1 * step / d) / (1 + .1 * .02);
    }
    auto wrong = agree(p.now(), want, 1e-4, 1e-4);
    if (wrong.empty()) wrong = agree(v.now(), wv, 1e-5, 1e-5);
    return wrong;
  };
  return j;
});

// --- positions in a picture (rope over two axes), in place: the first half of a head turns with the row, the second
// with the column, neighbours are pairs; where-chains instead of two loads
struct TurnCfg {
  int BLOCK = 2048;
};
auto rope_2d = kernel("user_rope_2d", [](const TurnCfg& c, Ptr<const half> x, Ptr<half> y, I64 tokens, I64 H, I64 D,
                                         I64 width, F32 base) {
                 auto i = cast(program_id(0), i64) * c.BLOCK + cast(arange(0, c.BLOCK), i64);
                 auto in = i < tokens * H * D;
                 auto d = i % D, t = i / (H * D);
                 auto row = t / width, column = t % width;
                 auto first = d < D / 2;
                 auto place = where(first, row, column);
                 auto pair = where(first, d, d - D / 2) / 2;  // of D / 4
                 auto angle = cast(place, f32) * exp2(-cast(pair, f32) * log2(base) / cast(D / 4, f32));
                 auto even = d % 2 == 0;
                 auto mine = cast(load(x + i, {.mask = in}), f32);
                 auto other = cast(load(x + where(even, i + 1, i - 1), {.mask = in}), f32);
                 auto r = where(even, mine * cos(angle) - other * sin(angle), mine * cos(angle) + other * sin(angle));
                 store(y + i, cast(r, f16), {.mask = in});
               }).grid([](const TurnCfg& c, const half*, half*, int64_t t, int64_t h, int64_t d, int64_t, float) {
  return Grid{cdiv(t * h * d, int64_t(c.BLOCK))};
});
Register r4("rope_2d", [](Env& e) {
  const int64_t W = e.big ? 64 : 5, T = e.big ? 64 * 64 * 4 : 5 * 7, H = e.big ? 16 : 3, D = e.big ? 64 : 24;
  auto x = random<half>(e, T * H * D);
  auto y = constant<half>(e, T * H * D, NAN);
  Job j;
  j.mbytes = 4e-6 * double(T * H * D);
  j.add(rope_2d, TurnCfg{e.field("BLOCK", 2048)}, x.p, y.p, T, H, D, W, 100.f);
  j.check = [=] {
    std::vector<double> want(T * H * D);
    for (int64_t i = 0; i < T * H * D; i += 2) {
      const int64_t d = i % D, t = i / (H * D), place = d < D / 2 ? t / W : t % W, pair = d % (D / 2) / 2;
      const double a = double(place) * std::pow(100., -double(pair) / double(D / 4));
      want[i] = x[i] * std::cos(a) - x[i + 1] * std::sin(a);
      want[i + 1] = x[i + 1] * std::cos(a) + x[i] * std::sin(a);
    }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

}  // namespace odd_codes
}  // namespace users
