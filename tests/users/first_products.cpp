// first_products.cpp - products as somebody writes them who comes from a first tutorial: tiles of pointers made of
// strides, masks everywhere, a loop over K, and nothing said of warps and stages.
#include "tests/users/use.h"
namespace users {
namespace first_products {

struct ProductCfg {
  int BM = 128, BN = 128, BK = 32;
};
ProductCfg product_cfg(Env& e, ProductCfg big, ProductCfg small) {
  ProductCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK)};
}

// --- batches of products with bias, GELU and what was there before added
auto bmm_residual = kernel("user_bmm_residual", [](const ProductCfg& c, Ptr<const half> a, Ptr<const half> b,
                                                   Ptr<const half> bias, Ptr<const half> before, Ptr<half> y, I32, I32 M,
                                                   I32 N, I32 K, I32 ab, I32 am, I32 bb, I32 bk, I32 yb, I32 ym) {
                      auto z = program_id(2);
                      auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto i : range(0, K, c.BK)) {
                        auto k = i + arange(0, c.BK);
                        auto x = load(a + (z * ab + m * am + k.row()), {.mask = (m < M) & (k < K).row(), .other = 0});
                        auto w = load(b + (z * bb + k.col() * bk + n), {.mask = (k < K).col() & (n < N), .other = 0});
                        acc += dot(x, w);
                      }
                      auto in = (m < M) & (n < N);
                      acc += cast(load(bias + n, {.mask = n < N}), f32);
                      acc = .5f * acc * (1 + tanh(.79788456f * (acc + .044715f * acc * acc * acc)));
                      acc += cast(load(before + (z * yb + m * ym + n), {.mask = in}), f32);
                      store(y + (z * yb + m * ym + n), cast(acc, f16), {.mask = in});
                    }).grid([](const ProductCfg& c, auto, auto, auto, auto, auto, int B, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN), B};
});
Register r1("bmm_residual", [](Env& e) {
  const auto c = product_cfg(e, {}, {32, 16, 16});
  const int B = e.big ? 16 : 2, M = e.big ? 2048 : 37, N = e.big ? 2048 : 40, K = e.big ? 1024 : 24;
  auto a = random<half>(e, size_t(B) * M * K), b = random<half>(e, size_t(B) * K * N, -.1, .1), bias = random<half>(e, N);
  auto before = random<half>(e, size_t(B) * M * N), y = constant<half>(e, size_t(B) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * B * M * N * K;
  j.add(bmm_residual, c, a.p, b.p, bias.p, before.p, y.p, B, M, N, K, M * K, K, K * N, N, M * N, N);
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < B; ++z) {
      auto one = product(M, N, K, matrix(a, K, size_t(z) * M * K), matrix(b, N, size_t(z) * K * N), [&](double s, int m, int n) {
        s += bias[n];
        return .5 * s * (1 + std::tanh(.79788456 * (s + .044715 * s * s * s))) + before[(size_t(z) * M + m) * N + n];
      });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- both operands by columns: A as K x M, B as N x K, every stride an argument; sizes wrap around
auto mm_columns = kernel("user_mm_columns", [](const ProductCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<half> y,
                                               I32 M, I32 N, I32 K, I32 am, I32 ak, I32 bk, I32 bn, I32 ym, I32 yn) {
                    auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
                    auto k = arange(0, c.BK);
                    Tile ap = a + ((m % M).col() * am + k.row() * ak), bp = b + (k.col() * bk + (n % N).row() * bn);
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto i : range(0, K, c.BK)) {
                      acc += dot(load(ap, {.mask = (i + k < K).row()}), load(bp, {.mask = (i + k < K).col()}));
                      ap += c.BK * ak;
                      bp += c.BK * bk;
                    }
                    store(y + (m.col() * ym + n.row() * yn), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
                  }).grid([](const ProductCfg& c, auto, auto, auto, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r2("mm_columns", [](Env& e) {
  const auto c = product_cfg(e, {128, 128, 64}, {32, 16, 16});
  const int M = e.big ? 4096 : 40, N = e.big ? 4096 : 37, K = e.big ? 4096 : 29;
  const int layout = e.field("layout", 3);  // bit 0: A by columns, bit 1: B by columns
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N), y = constant<half>(e, size_t(M) * N, NAN);
  const int am = layout & 1 ? 1 : K, ak = layout & 1 ? M : 1, bk = layout & 2 ? 1 : N, bn = layout & 2 ? K : 1;
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(mm_columns, c, a.p, b.p, y.p, M, N, K, am, ak, bk, bn, N, 1);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, [&](int m, int k) { return a[m * am + k * ak]; },
                                  [&](int k, int n) { return b[k * bk + n * bn]; }), 5e-3, 2e-3);
  };
  return j;
});

// --- bytes, both by rows, with factors of rows and columns
auto int8_rows = kernel("user_int8_rows", [](const ProductCfg& c, Ptr<const int8_t> a, Ptr<const int8_t> b,
                                             Ptr<const float> sa, Ptr<const float> sb, Ptr<half> y, I32 M, I32 N, I32 K) {
                   auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                   Tile acc = zeros({c.BM, c.BN}, i32);
                   for (auto i : range(0, K, c.BK)) {
                     auto k = i + arange(0, c.BK);
                     auto x = load(a + (m * K + k.row()), {.mask = (m < M) & (k < K).row(), .other = 0});
                     auto w = load(b + (k.col() * N + n), {.mask = (k < K).col() & (n < N), .other = 0});
                     acc = dot(x, w, acc);
                   }
                   auto v = cast(acc, f32) * load(sa + m, {.mask = m < M}) * load(sb + n, {.mask = n < N});
                   store(y + (m * N + n), cast(v, f16), {.mask = (m < M) & (n < N)});
                 }).grid([](const ProductCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r3("int8_rows", [](Env& e) {
  const auto c = product_cfg(e, {128, 128, 64}, {32, 32, 32});
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 48, K = e.big ? 4096 : 80;
  auto a = integers<int8_t>(e, size_t(M) * K, -128, 128), b = integers<int8_t>(e, size_t(K) * N, -128, 128);
  auto sa = random<float>(e, M, 1e-3, 2e-3), sb = random<float>(e, N, 1e-3, 2e-3);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(int8_rows, c, a.p, b.p, sa.p, sb.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b, N),
                                  [&](double s, int m, int n) { return s * sa[m] * sb[n]; }), 2e-4, 2e-3);
  };
  return j;
});

// --- numbers of 8 bits, a factor per row and 128 columns of A, per 128 x 128 of B
auto f8_blocks_plain = kernel("user_f8_blocks_plain", [](const ProductCfg& c, Ptr<const fp8_e4m3> a, Ptr<const fp8_e4m3> b,
                                                         Ptr<const float> sa, Ptr<const float> sb, Ptr<bfloat16> y, I32 M,
                                                         I32 N, I32 K) {
                         auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
                         auto k = arange(0, c.BK);
                         auto groups = cdiv(K, c.BK);
                         Tile ap = a + ((m % M).col() * K + k.row()), bp = b + ((n % N).row() * K + k.col());
                         Tile sap = sa + (m % M) * groups, sbp = sb + (n % N) / 128 * groups;
                         Tile acc = zeros({c.BM, c.BN}, f32);
                         for (auto i : range(0, groups)) {
                           auto x = load(ap, {.mask = (k < K - i * c.BK).row(), .other = 0});
                           auto w = load(bp, {.mask = (k < K - i * c.BK).col(), .other = 0});
                           acc += dot(x, w) * load(sap).col() * load(sbp).row();
                           ap += c.BK;
                           bp += c.BK;
                           sap += 1;
                           sbp += 1;
                         }
                         store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
                       }).grid([](const ProductCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r4("f8_blocks_plain", [](Env& e) {
  const auto c = product_cfg(e, {64, 128, 128}, {32, 32, 32});
  const int M = e.big ? 4096 : 45, N = e.big ? 7168 : 48, K = e.big ? 4096 : 96, G = K / c.BK;
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(K) * N);
  auto sa = random<float>(e, size_t(M) * G, .5, 1), sb = random<float>(e, size_t(cdiv(N, 128)) * G, .5, 1);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(f8_blocks_plain, c, a.p, b.p, sa.p, sb.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, [&](int m, int k) { return a[m * K + k] * sa[m * G + k / c.BK]; },
                                  [&](int k, int n) { return b[n * K + k] * sb[n / 128 * G + k / c.BK]; }), 2e-2, 1e-2);
  };
  return j;
});

// --- few rows and columns, a long K: parts of the sum are added in memory
auto splitk_atomics = kernel("user_splitk_atomics", [](const ProductCfg& c, Ptr<const half> a, Ptr<const half> b,
                                                       Ptr<float> y, I32 M, I32 N, I32 K, I32 parts) {
                        auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                        auto k = program_id(2) * c.BK + arange(0, c.BK);
                        Tile ap = a + (m * K + k.row()), bp = b + (k.col() * N + n);
                        Tile acc = zeros({c.BM, c.BN}, f32);
                        for (auto i : range(0, cdiv(K, c.BK * parts))) {
                          auto left = K - i * (c.BK * parts);
                          auto x = load(ap, {.mask = (m < M) & (k < left).row(), .other = 0});
                          auto w = load(bp, {.mask = (k < left).col() & (n < N), .other = 0});
                          acc += dot(x, w);
                          ap += c.BK * parts;
                          bp += c.BK * parts * N;
                        }
                        atomic_add(y + (m * N + n), acc, {.mask = (m < M) & (n < N)});
                      }).grid([](const ProductCfg& c, auto, auto, auto, int M, int N, int, int parts) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN), parts};
});
Register r5("splitk_atomics", [](Env& e) {
  const auto c = product_cfg(e, {64, 64, 64}, {16, 16, 16});
  const int M = e.big ? 256 : 20, N = e.big ? 1024 : 37, K = e.big ? 32768 : 200, parts = e.field("parts", e.big ? 16 : 3);
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto y = constant<float>(e, size_t(M) * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(splitk_atomics, c, a.p, b.p, y.p, M, N, K, parts);
  j.check = [=] { return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 1e-2, 1e-3); };
  return j;
});

// --- floats through tensor cores, both by rows
auto tf32_rows = kernel("user_tf32_rows", [](const ProductCfg& c, Ptr<const float> a, Ptr<const float> b, Ptr<float> y,
                                             I32 M, I32 N, I32 K) {
                   auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(0, K, c.BK)) {
                     auto k = i + arange(0, c.BK);
                     auto x = load(a + (m * K + k.row()), {.mask = (m < M) & (k < K).row(), .other = 0});
                     auto w = load(b + (k.col() * N + n), {.mask = (k < K).col() & (n < N), .other = 0});
                     acc = dot(x, w, acc, Prec::tf32);
                   }
                   store(y + (m * N + n), acc, {.mask = (m < M) & (n < N)});
                 }).grid([](const ProductCfg& c, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r6("tf32_rows", [](Env& e) {
  const auto c = product_cfg(e, {}, {32, 16, 16});
  const bool tall = e.field("tall", 0);  // many rows, few columns
  const int M = e.big ? tall ? 1 << 18 : 2048 : 37, N = e.big ? tall ? 64 : 4096 : 40, K = e.big ? tall ? 256 : 8192 : 24;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(K) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(tf32_rows, c, a.p, b.p, y.p, M, N, K);
  j.check = [=] { return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 2e-2, 2e-3); };
  return j;
});

// --- experts: rows sorted by expert and padded to whole tiles, an expert per tile, by numbers in memory
auto fused_moe = kernel("user_fused_moe", [](const ProductCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> w,
                                             Ptr<const float> weights, Ptr<const int32_t> ids, Ptr<const int32_t> experts,
                                             Ptr<const int32_t> padded, Ptr<bfloat16> y, I32, I32 tokens, I32 N, I32 K,
                                             I32 topk, I32 we) {
                   auto first = program_id(1) * c.BM;
                   return_if(first >= load(padded));
                   auto token = load(ids + first + arange(0, c.BM));
                   auto in = (token < tokens * topk).col();
                   auto n = program_id(0) * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                   auto expert = load(experts + program_id(1));
                   Tile ap = a + ((token / topk).col() * K + k.row());
                   Tile bp = w + cast(expert, i64) * we + (k.col() + (n % N).row() * K);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(0, cdiv(K, c.BK))) {
                     auto x = load(ap, {.mask = in & (k < K - i * c.BK).row(), .other = 0});
                     auto v = load(bp, {.mask = (k < K - i * c.BK).col(), .other = 0});
                     acc += dot(x, v);
                     ap += c.BK;
                     bp += c.BK;
                   }
                   acc = acc * load(weights + token.col(), {.mask = in, .other = 0});
                   store(y + (token.col() * N + n.row()), cast(acc, bf16), {.mask = in & (n < N).row()});
                 }).grid([](const ProductCfg& c, auto, auto, auto, auto, auto, auto, auto, int rows, int, int N, auto...) {
  return Grid{cdiv(N, c.BN), cdiv(rows, c.BM)};
});
Register r7("fused_moe", [](Env& e) {
  const auto c = product_cfg(e, {64, 128, 64}, {16, 32, 16});
  const int T = e.big ? 4096 : 21, E = e.big ? 32 : 3, top = 2, N = e.big ? 4096 : 45, K = e.big ? 2048 : 40;
  std::vector<int32_t> ids, experts;
  for (int x = 0; x < E; ++x) {
    for (int t = 0; t < T * top; ++t)
      if ((t % top + t / top * 7 + t / 5) % E == x) ids.push_back(t);
    while (ids.size() % c.BM) ids.push_back(T * top);
    while (experts.size() < ids.size() / c.BM) experts.push_back(x);
  }
  const int rows = int(ids.size());
  auto a = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * N * K, -.1, .1);
  auto g = random<float>(e, T * top, 0, 1);
  auto sorted = repeated<int32_t>(e, rows, ids), of = repeated<int32_t>(e, experts.size(), experts);
  auto padded = filled<int32_t>(e, 1, [&](size_t) { return rows; });
  auto y = constant<bfloat16>(e, size_t(T) * top * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * top * N * K;
  j.add(fused_moe, c, a.p, w.p, g.p, sorted.p, of.p, padded.p, y.p, rows + c.BM, T, N, K, top, N * K);
  j.check = [=] {
    return agree(y.now(), product(T * top, N, K, [&](int t, int k) { return a[t / top * K + k] * g[t]; }, [&](int, int) { return 0.; }, [&](double, int t, int n) {
                   const int x = (t % top + t / top * 7 + t / 5) % E;
                   double s = 0;
                   for (int k = 0; k < K; ++k) s += a[t / top * K + k] * w[(size_t(x) * N + n) * K + k];
                   return s * g[t];
                 }), 1e-2, 1e-2);
  };
  return j;
});

// --- weights of 4 bits along K, two in a byte, unpacked where they are loaded
struct NibbleCfg {
  int BM = 64, BN = 128, BK = 64, group = 128;
};
auto nibble_rows = kernel("user_nibble_rows", [](const NibbleCfg& c, Ptr<const half> x, Ptr<const uint8_t> w,
                                                 Ptr<const half> scales, Ptr<half> y, I32 M, I32 N, I32 K) {
                     auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
                     Tile acc = zeros({c.BM, c.BN}, f32);
                     for (auto i : range(0, K, c.BK)) {
                       auto k = i + arange(0, c.BK);
                       auto a = load(x + (m * K + k.row()), {.mask = (m < M) & (k < K).row(), .other = 0});
                       auto in = (k < K).col() & (n < N);
                       auto byte = cast(load(w + (n * (K / 2) + (k / 2).col()), {.mask = in, .other = 0}), i32);
                       auto code = (byte >> ((k % 2) * 4).col()) & 15;
                       auto s = load(scales + (n * (K / c.group) + (k / c.group).col()), {.mask = in, .other = 0});
                       acc = dot(a, cast(code - 8, f16) * s, acc);
                     }
                     store(y + (m * N + n), cast(acc, f16), {.mask = (m < M) & (n < N)});
                   }).grid([](const NibbleCfg& c, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r8("nibble_rows", [](Env& e) {
  NibbleCfg c;
  if (!e.big) c = {16, 32, 16, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 64 : 20, N = e.big ? 8192 : 45, K = e.big ? 8192 : 64, G = c.group;
  auto x = random<half>(e, size_t(M) * K), s = random<half>(e, size_t(N) * (K / G), .01, .1);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.mbytes = 1e-6 * w.n;
  j.add(nibble_rows, c, x.p, w.p, s.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(x, K), [&](int k, int n) {
                   return double((w.at((size_t(n) * K + k) / 2) >> k % 2 * 4 & 15) - 8) * s[n * (K / G) + k / G];
                 }), 2e-2, 5e-3);
  };
  return j;
});

}  // namespace first_products
}  // namespace users
