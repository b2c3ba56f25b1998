// written_products.cpp - products as people write them who know another language for tiles: strides and pointers,
// programs put in groups of rows by hand, rows past the end wrapped around, and nothing said of warps and stages.
#include "tests/users/use.h"
namespace users {
namespace written_products {

struct WrittenCfg {
  int BM = 128, BN = 128, BK = 64, G = 8;
};
WrittenCfg written_cfg(Env& e, WrittenCfg big, WrittenCfg small) {
  WrittenCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("G", c.G)};
}
/// Row and column of tiles, in groups of G rows, of the program's number: the tutorial's lines.
std::array<Tile, 2> grouped_order(const WrittenCfg& c, const Expr& M, const Expr& N) {
  auto pid = program_id(0);
  auto rows = cdiv(M, c.BM), columns = cdiv(N, c.BN), in_group = c.G * columns;
  auto first = pid / in_group * c.G;
  auto high = min(rows - first, c.G);
  return {first + pid % in_group % high, pid % in_group / high};
}
Grid flat_grid(const WrittenCfg& c, int M, int N) { return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)}; }

// --- numbers of 8 bits, a factor per token and per channel, a bias
auto token_channel_f8 = kernel("user_token_channel_f8", [](const WrittenCfg& c, Ptr<const fp8_e4m3> a, Ptr<const fp8_e4m3> b,
                                                           Ptr<const float> sa, Ptr<const float> sb, Ptr<const bfloat16> bias,
                                                           Ptr<bfloat16> y, I32 M, I32 N, I32 K, I32 am, I32 bn, I32 ym) {
                          auto [pm, pn] = grouped_order(c, M, N);
                          auto m = (pm * c.BM + arange(0, c.BM)) % M, n = (pn * c.BN + arange(0, c.BN)) % N;
                          auto k = arange(0, c.BK);
                          Tile ap = a + (m.col() * am + k.row()), bp = b + (k.col() + n.row() * bn);
                          Tile acc = zeros({c.BM, c.BN}, f32);
                          for (auto i : range(0, cdiv(K, c.BK))) {
                            auto x = load(ap, {.mask = k.row() < K - i * c.BK, .other = 0});
                            auto w = load(bp, {.mask = k.col() < K - i * c.BK, .other = 0});
                            acc = dot(x, w, acc);
                            ap += c.BK;
                            bp += c.BK;
                          }
                          acc = acc * load(sa + m).col() * load(sb + n).row() + cast(load(bias + n), f32).row();
                          auto ym_ = pm * c.BM + arange(0, c.BM), yn = pn * c.BN + arange(0, c.BN);
                          store(y + (ym_.col() * ym + yn.row()), cast(acc, bf16), {.mask = (ym_.col() < M) & (yn.row() < N)});
                        }).grid([](const WrittenCfg& c, auto, auto, auto, auto, auto, auto, int M, int N, auto...) {
  return flat_grid(c, M, N);
});
Register r1("token_channel_f8", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 128}, {64, 32, 32, 2});
  const int M = e.big ? 4096 : 70, N = e.big ? 7168 : 80, K = e.big ? 2048 : 96;
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(K) * N);
  auto sa = random<float>(e, M, .5, 1), sb = random<float>(e, N, .5, 1);
  auto bias = random<bfloat16>(e, N), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(token_channel_f8, c, a.p, b.p, sa.p, sb.p, bias.p, y.p, M, N, K, K, K, N);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return b[n * K + k]; },
                                  [&](double s, int m, int n) { return s * sa[m] * sb[n] + bias[n]; }), 3e-2, 1e-2);
  };
  return j;
});

// --- two products of one A, the one the gate of the other
auto gate_up_pair = kernel("user_gate_up_pair", [](const WrittenCfg& c, Ptr<const half> a, Ptr<const half> b1, Ptr<const half> b2,
                                                   Ptr<half> y, I32 M, I32 N, I32 K, I32 am, I32 bk, I32 ym) {
                      auto [pm, pn] = grouped_order(c, M, N);
                      auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                      Tile ap = a + ((m % M).col() * am + k.row());
                      auto at = k.col() * bk + (n % N).row();
                      Tile bp = b1 + at, bq = b2 + at;
                      Tile gate = zeros({c.BM, c.BN}, f32), up = zeros({c.BM, c.BN}, f32);
                      for (auto i : range(0, cdiv(K, c.BK))) {
                        auto left = K - i * c.BK;
                        auto x = load(ap, {.mask = k.row() < left, .other = 0});
                        gate += dot(x, load(bp, {.mask = k.col() < left, .other = 0}));
                        up += dot(x, load(bq, {.mask = k.col() < left, .other = 0}));
                        ap += c.BK;
                        bp += c.BK * bk;
                        bq += c.BK * bk;
                      }
                      auto v = gate * sigmoid(gate) * up;
                      store(y + (m.col() * ym + n.row()), cast(v, f16), {.mask = (m.col() < M) & (n.row() < N)});
                    }).grid([](const WrittenCfg& c, auto, auto, auto, auto, int M, int N, auto...) { return flat_grid(c, M, N); });
Register r2("gate_up_pair", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32, 2});
  const int M = e.big ? 4096 : 70, N = e.big ? 11008 : 48, K = e.big ? 4096 : 80;
  auto a = random<half>(e, size_t(M) * K), b1 = random<half>(e, size_t(K) * N), b2 = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * K;
  j.add(gate_up_pair, c, a.p, b1.p, b2.p, y.p, M, N, K, K, N, N);
  j.check = [=] {
    auto up = product(M, N, K, matrix(a, K), matrix(b2, N));
    return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b1, N),
                                  [&](double s, int m, int n) { return s / (1 + std::exp(-s)) * up[size_t(m) * N + n]; }), 1e-2, 5e-3);
  };
  return j;
});

// --- few tokens, many weights: K in parts, which a second kernel adds
auto parts_product = kernel("user_parts_product", [](const WrittenCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<float> part,
                                                     I32 M, I32 N, I32 K, I32 span) {
                       auto m = program_id(1) * c.BM + arange(0, c.BM), n = program_id(0) * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                       auto s = program_id(2);
                       Tile acc = zeros({c.BM, c.BN}, f32);
                       for (auto i : range(s * span, min(K, (s + 1) * span), c.BK)) {
                         auto a = load(x + (m.col() * K + (i + k).row()), {.mask = (m < M).col() & (i + k < K).row(), .other = 0});
                         auto b = load(w + (n.row() * K + (i + k).col()), {.mask = (n < N).row() & (i + k < K).col(), .other = 0});
                         acc = dot(a, b, acc);
                       }
                       store(part + (s * M * N + (m.col() * N + n.row())), acc, {.mask = (m < M).col() & (n < N).row()});
                     }).grid([](const WrittenCfg& c, auto, auto, auto, int M, int N, int K, int span) {
  return Grid{cdiv(N, c.BN), cdiv(M, c.BM), cdiv(K, span)};
});
auto parts_sum = kernel("user_parts_sum", [](const WrittenCfg&, Ptr<const float> part, Ptr<bfloat16> y, I32 all, I32 parts) {
                   auto i = program_id(0) * 1024 + arange(0, 1024);
                   Tile acc = zeros({1024}, f32);
                   for (auto s : range(0, parts)) acc += load(part + (s * all + i), {.mask = i < all});
                   store(y + i, cast(acc, bf16), {.mask = i < all});
                 }).grid([](const WrittenCfg&, auto, auto, int all, int) { return Grid{cdiv(all, 1024)}; });
Register r3("few_tokens", [](Env& e) {
  const auto c = written_cfg(e, {16, 64, 128}, {16, 64, 32});
  const int M = e.field("M", e.big ? 33 : 5), N = e.big ? 7168 : 70, K = e.big ? 7168 : 208, span = e.field("span", e.big ? 2048 : 64);
  const int parts = cdiv(K, span);
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(K) * N), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  auto part = constant<float>(e, size_t(parts) * M * N, NAN);
  Job j;
  j.mbytes = 2e-6 * w.n;
  j.add(parts_product, c, x.p, w.p, part.p, M, N, K, span);
  j.add(parts_sum, c, part.p, y.p, M * N, parts);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(x, K), [&](int k, int n) { return w[n * K + k]; }), 3e-2, 1e-2);
  };
  return j;
});

// --- X^T X of a tall matrix, rows split over programs that add what they have
auto tall_gram = kernel("user_tall_gram", [](const WrittenCfg& c, Ptr<const float> x, Ptr<float> y, I32 M, I32 N, I32 span) {
                   auto i = program_id(0) * c.BM + arange(0, c.BM), j = program_id(1) * c.BN + arange(0, c.BN);
                   auto first = program_id(2) * span;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto r : range(first, min(M, first + span), c.BK)) {
                     auto k = (r + arange(0, c.BK)).col();
                     auto u = load(x + (k * N + i.row()), {.mask = (k < M) & (i < N).row()});
                     auto v = load(x + (k * N + j.row()), {.mask = (k < M) & (j < N).row()});
                     acc = dot(trans(u), v, acc, Prec::tf32);
                   }
                   atomic_add(y + (i.col() * N + j.row()), acc, {.mask = (i < N).col() & (j < N).row()});
                 }).grid([](const WrittenCfg& c, auto, auto, int M, int N, int span) {
  return Grid{cdiv(N, c.BM), cdiv(N, c.BN), cdiv(M, span)};
});
Register r4("tall_gram", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 32}, {32, 16, 16});
  const int M = e.big ? 1 << 20 : 300, N = e.big ? 256 : 40, span = e.field("span", e.big ? 1 << 15 : 128);
  auto x = random<float>(e, size_t(M) * N), y = constant<float>(e, size_t(N) * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * N;
  j.add(tall_gram, c, x.p, y.p, M, N, span);
  j.check = [=] { return agree(y.now(), product(N, N, M, [&](int i, int m) { return x[m * N + i]; }, matrix(x, N)), 5e-2, 2e-3); };
  return j;
});

// --- logits of a vocabulary with an odd number of words
auto vocabulary = kernel("user_vocabulary", [](const WrittenCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<bfloat16> y,
                                               I32 M, I32 N, I32 K) {
                    auto [pm, pn] = grouped_order(c, M, N);
                    auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN);
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto i : range(0, K, c.BK)) {
                      auto k = i + arange(0, c.BK);
                      auto a = load(x + (m.col() * K + k.row()), {.mask = (m.col() < M) & (k.row() < K)});
                      auto b = load(w + (n.col() * K + k.row()), {.mask = (n.col() < N) & (k.row() < K)});
                      acc = dot(a, trans(b), acc);
                    }
                    store(y + (cast(m, i64).col() * N + n.row()), cast(acc, bf16), {.mask = (m.col() < M) & (n.row() < N)});
                  }).grid([](const WrittenCfg& c, auto, auto, auto, int M, int N, int) { return flat_grid(c, M, N); });
Register r5("vocabulary", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32, 2});
  const int M = e.big ? 8192 : 80, N = e.field("N", e.big ? 50257 : 81), K = e.big ? 768 : 48;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(K) * N), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(vocabulary, c, x.p, w.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(x, K), [&](int k, int n) { return w[n * K + k]; }), 3e-2, 1e-2);
  };
  return j;
});

// --- gradients of weights, added to sums of floats that stay from batch to batch
auto wgrad_add = kernel("user_wgrad_add", [](const WrittenCfg& c, Ptr<const bfloat16> dy, Ptr<const bfloat16> x, Ptr<float> dw,
                                             I32 T, I32 N, I32 K) {
                   auto n = program_id(0) * c.BM + arange(0, c.BM), k = program_id(1) * c.BN + arange(0, c.BN);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(0, T, c.BK)) {
                     auto t = (i + arange(0, c.BK)).col();
                     auto g = load(dy + (t * N + n.row()), {.mask = (t < T) & (n < N).row(), .other = 0});
                     auto v = load(x + (t * K + k.row()), {.mask = (t < T) & (k < K).row(), .other = 0});
                     acc += dot(trans(g), v);
                   }
                   auto at = n.col() * K + k.row();
                   auto in = (n < N).col() & (k < K).row();
                   store(dw + at, load(dw + at, {.mask = in}) + acc, {.mask = in});
                 }).grid([](const WrittenCfg& c, auto, auto, auto, int, int N, int K) { return Grid{cdiv(N, c.BM), cdiv(K, c.BN)}; });
Register r6("wgrad_add", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32});
  const int T = e.big ? 8192 : 70, N = e.big ? 4096 : 80, K = e.big ? 4096 : 48;
  auto dy = random<bfloat16>(e, size_t(T) * N), x = random<bfloat16>(e, size_t(T) * K);
  auto dw = random<float>(e, size_t(N) * K);
  Job j;
  j.gflop = 2e-9 * T * N * K;
  restore(e, j, dw);
  j.add(wgrad_add, c, dy.p, x.p, dw.p, T, N, K);
  j.check = [=] {
    return agree(dw.now(), product(N, K, T, [&](int n, int t) { return dy[t * N + n]; }, matrix(x, K),
                                   [&](double s, int n, int k) { return s + dw[n * K + k]; }), 1e-2, 1e-3);
  };
  return j;
});

// --- gate and value in alternating columns of one product; clamped, as open models have it
auto turns_glu = kernel("user_turns_glu", [](const WrittenCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<const bfloat16> bias,
                                             Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
                   auto [pm, pn] = grouped_order(c, M, N);
                   auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                   Tile xp = x + (m.col() * K + k.row()), wp = w + (n.row() * K + k.col());
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(0, K, c.BK)) {
                     auto a = load(xp, {.mask = (m.col() < M) & (k.row() < K - i), .other = 0});
                     auto b = load(wp, {.mask = (n.row() < N) & (k.col() < K - i), .other = 0});
                     acc = dot(a, b, acc);
                     xp += c.BK;
                     wp += c.BK;
                   }
                   acc += cast(load(bias + n, {.mask = n < N}), f32).row();
                   auto [gate, up] = split(reshape(acc, {c.BM, c.BN / 2, 2}));
                   gate = min(gate, 7.f);
                   up = clamp(up, -7.f, 7.f);
                   auto v = gate * sigmoid(1.702f * gate) * (up + 1);
                   auto h = pn * (c.BN / 2) + arange(0, c.BN / 2);
                   store(y + (m.col() * (N / 2) + h.row()), cast(v, bf16), {.mask = (m.col() < M) & (h.row() < N / 2)});
                 }).grid([](const WrittenCfg& c, auto, auto, auto, auto, int M, int N, int) { return flat_grid(c, M, N); });
Register r7("turns_glu", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32, 2});
  const int M = e.big ? 8192 : 80, N = e.big ? 5760 : 96, K = e.big ? 2880 : 48;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(K) * N), bias = random<bfloat16>(e, N);
  auto y = constant<bfloat16>(e, size_t(M) * N / 2, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(turns_glu, c, x.p, w.p, bias.p, y.p, M, N, K);
  j.check = [=] {
    auto s = product(M, N, K, matrix(x, K), [&](int k, int n) { return w[n * K + k]; }, [&](double s, int, int n) { return s + bias[n]; });
    std::vector<double> want;
    for (size_t i = 0; i < s.size(); i += 2) {
      const double g = std::min(s[i], 7.), u = std::clamp(s[i + 1], -7., 7.);
      want.push_back(g / (1 + std::exp(-1.702 * g)) * (u + 1));
    }
    return agree(y.now(), want, 3e-2, 1e-2);
  };
  return j;
});

// --- a bilinear layer: sums of x_i z_j W_oij; rows of A are made of both inputs
auto bilinear_layer = kernel("user_bilinear_layer", [](const WrittenCfg& c, Ptr<const half> x, Ptr<const half> z, Ptr<const half> w,
                                                       Ptr<half> y, I32 B, I32 O, I32 I, I32 J) {
                        auto b = program_id(0) * c.BM + arange(0, c.BM), o = program_id(1) * c.BN + arange(0, c.BN);
                        auto j = arange(0, c.BK);
                        auto zs = load(z + (b.col() * J + j.row()), {.mask = (b < B).col() & (j < J).row(), .other = 0});
                        Tile acc = zeros({c.BM, c.BN}, f32);
                        for (auto i : range(0, I)) {
                          auto xs = load(x + (b * I + i), {.mask = b < B, .other = 0});
                          auto ws = load(w + (o.row() * (I * J) + (i * J + j.col())), {.mask = (o < O).row() & (j < J).col(), .other = 0});
                          acc += dot(xs.col() * zs, ws);
                        }
                        store(y + (b.col() * O + o.row()), cast(acc, f16), {.mask = (b < B).col() & (o < O).row()});
                      }).grid([](const WrittenCfg& c, auto, auto, auto, auto, int B, int O, int, int) {
  return Grid{cdiv(B, c.BM), cdiv(O, c.BN)};
});
Register r8("bilinear_layer", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {32, 16, 32});
  const int B = e.big ? 8192 : 40, O = e.big ? 256 : 24, I = e.big ? 256 : 20, J = e.big ? 64 : 24;
  auto x = random<half>(e, size_t(B) * I), z = random<half>(e, size_t(B) * J), w = random<half>(e, size_t(O) * I * J);
  auto y = constant<half>(e, size_t(B) * O, NAN);
  Job j;
  j.gflop = 2e-9 * B * O * I * J;
  j.add(bilinear_layer, c, x.p, z.p, w.p, y.p, B, O, I, J);
  j.check = [=] {
    return agree(y.now(), product(B, O, I * J, [&](int b, int k) { return x[b * I + k / J] * z[b * J + k % J]; },
                                  [&](int k, int o) { return w[size_t(o) * I * J + k]; }), 2e-2, 1e-2);
  };
  return j;
});

// --- the product behind a gate, which is applied as the rows are read
auto act_down = kernel("user_act_down", [](const WrittenCfg& c, Ptr<const bfloat16> g, Ptr<const bfloat16> u, Ptr<const bfloat16> w,
                                           Ptr<const bfloat16> before, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
                  auto [pm, pn] = grouped_order(c, M, N);
                  auto m = (pm * c.BM + arange(0, c.BM)) % M, n = (pn * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
                  auto at = m.col() * K + k.row();
                  Tile gp = g + at, up = u + at, wp = w + (n.row() * K + k.col());
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto i : range(0, K, c.BK)) {
                    auto gate = cast(load(gp, {.mask = k.row() < K - i, .other = 0}), f32);
                    auto value = cast(load(up, {.mask = k.row() < K - i, .other = 0}), f32);
                    auto b = load(wp, {.mask = k.col() < K - i, .other = 0});
                    acc = dot(cast(gate * sigmoid(gate) * value, bf16), b, acc);
                    gp += c.BK, up += c.BK, wp += c.BK;
                  }
                  auto ym = pm * c.BM + arange(0, c.BM), yn = pn * c.BN + arange(0, c.BN);
                  auto in = (ym.col() < M) & (yn.row() < N);
                  auto to = ym.col() * N + yn.row();
                  acc += cast(load(before + to, {.mask = in}), f32);
                  store(y + to, cast(acc, bf16), {.mask = in});
                }).grid([](const WrittenCfg& c, auto, auto, auto, auto, auto, int M, int N, int) { return flat_grid(c, M, N); });
Register r9("act_down", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32, 2});
  const int M = e.big ? 4096 : 80, N = e.big ? 4096 : 48, K = e.big ? 11008 : 80;
  auto g = random<bfloat16>(e, size_t(M) * K, -3, 3), u = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(N) * K);
  auto before = random<bfloat16>(e, size_t(M) * N), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(act_down, c, g.p, u.p, w.p, before.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, [&](int m, int k) { const double v = g[m * K + k]; return v / (1 + std::exp(-v)) * u[m * K + k]; },
                                  [&](int k, int n) { return w[n * K + k]; },
                                  [&](double s, int m, int n) { return s + before[m * N + n]; }), 5e-2, 1e-2);
  };
  return j;
});

// --- weights kept in floats, narrowed as they are read
auto float_weights = kernel("user_float_weights", [](const WrittenCfg& c, Ptr<const bfloat16> x, Ptr<const float> w, Ptr<bfloat16> y,
                                                     I32 M, I32 N, I32 K) {
                       auto [pm, pn] = grouped_order(c, M, N);
                       auto m = (pm * c.BM + arange(0, c.BM)) % M, n = (pn * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
                       Tile xp = x + (m.col() * K + k.row()), wp = w + (n.row() * K + k.col());
                       Tile acc = zeros({c.BM, c.BN}, f32);
                       for (auto i : range(0, K, c.BK)) {
                         auto a = load(xp, {.mask = k.row() < K - i, .other = 0});
                         auto b = load(wp, {.mask = k.col() < K - i, .other = 0});
                         acc = dot(a, cast(b, bf16), acc);
                         xp += c.BK, wp += c.BK;
                       }
                       auto ym = pm * c.BM + arange(0, c.BM), yn = pn * c.BN + arange(0, c.BN);
                       store(y + (ym.col() * N + yn.row()), cast(acc, bf16), {.mask = (ym.col() < M) & (yn.row() < N)});
                     }).grid([](const WrittenCfg& c, auto, auto, auto, int M, int N, int) { return flat_grid(c, M, N); });
Register r10("float_weights", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32, 2});
  const int M = e.big ? 4096 : 80, N = e.big ? 4096 : 48, K = e.big ? 4096 : 80;
  auto x = random<bfloat16>(e, size_t(M) * K);
  auto w = random<float>(e, size_t(N) * K);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(float_weights, c, x.p, w.p, y.p, M, N, K);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(x, K), [&](int k, int n) { return w[n * K + k]; }), 5e-2, 1e-2);
  };
  return j;
});

// --- (A B) C, rows of the first product stay where they are
auto low_rank_pair = kernel("user_low_rank_pair", [](const WrittenCfg& c, Ptr<const half> x, Ptr<const half> down, Ptr<const half> up,
                                                     Ptr<half> y, I32 M, I32 N, I32 K) {
                       // down [K, BN], up [BN, N]: the rank is a tile
                       auto m = (program_id(0) * c.BM + arange(0, c.BM)).col(), r = arange(0, c.BN);
                       Tile mid = zeros({c.BM, c.BN}, f32);
                       for (auto i : range(0, K, c.BK)) {
                         auto k = i + arange(0, c.BK);
                         auto a = load(x + (m * K + k.row()), {.mask = (m < M) & (k < K).row(), .other = 0});
                         auto b = load(down + (k.col() * c.BN + r.row()), {.mask = (k < K).col(), .other = 0});
                         mid = dot(a, b, mid);
                       }
                       auto t = cast(mid, f16);
                       for (auto i : range(0, N, c.BK)) {
                         auto n = i + arange(0, c.BK);
                         auto b = load(up + (r.col() * N + n.row()), {.mask = (n < N).row(), .other = 0});
                         store(y + (m * N + n.row()), cast(dot(t, b), f16), {.mask = (m < M) & (n < N).row()});
                       }
                     }).grid([](const WrittenCfg& c, auto, auto, auto, auto, int M, int, int) { return Grid{cdiv(M, c.BM)}; });
Register r11("low_rank_pair", [](Env& e) {
  const auto c = written_cfg(e, {64, 128, 64}, {64, 32, 32});
  const int M = e.big ? 16384 : 80, N = e.big ? 4096 : 48, K = e.big ? 4096 : 80, R = c.BN;
  auto x = random<half>(e, size_t(M) * K), down = random<half>(e, size_t(K) * R, -.1, .1), up = random<half>(e, size_t(R) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * R * (double(N) + K);
  j.add(low_rank_pair, c, x.p, down.p, up.p, y.p, M, N, K);
  j.check = [=] {
    auto mid = product(M, R, K, matrix(x, K), matrix(down, R));
    return agree(y.now(), product(M, N, R, [&](int m, int r) { return mid[m * R + r]; }, matrix(up, N)), 1e-2, 1e-2);
  };
  return j;
});

// --- experts whose rows follow one another: as many programs as multiprocessors go over all tiles of all experts
auto expert_tiles = kernel("user_expert_tiles", [](const WrittenCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w,
                                                   Ptr<const int32_t> starts, Ptr<bfloat16> y, I32 E, I32 N, I32 K, I32 programs) {
                      Tile tile = program_id(0), done = program_id(0) * 0;
                      for (auto e : range(0, E)) {
                        auto first = load(starts + e), end = load(starts + e + 1);
                        auto columns = cdiv(N, c.BN), tiles = cdiv(end - first, c.BM) * columns;
                        while_([&] { return tile < done + tiles; }, [&] {
                          auto t = tile - done;
                          auto m = first + t / columns * c.BM + arange(0, c.BM), n = t % columns * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                          Tile xp = x + (m.col() * K + k.row()), wp = w + cast(e, i64) * N * K + (n.row() * K + k.col());
                          Tile acc = zeros({c.BM, c.BN}, f32);
                          for (auto i : range(0, K, c.BK)) {
                            auto a = load(xp, {.mask = (m.col() < end) & (k.row() < K - i), .other = 0});
                            auto b = load(wp, {.mask = (n.row() < N) & (k.col() < K - i), .other = 0});
                            acc = dot(a, b, acc);
                            xp += c.BK, wp += c.BK;
                          }
                          store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m.col() < end) & (n.row() < N)});
                          tile += programs;
                        });
                        done += tiles;
                      }
                    }).grid([](const WrittenCfg&, auto, auto, auto, auto, int, int, int, int programs) { return Grid{programs}; });
Register r12("expert_tiles", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 32}, {64, 32, 32});
  const int E = e.big ? 32 : 4, T = e.big ? 8192 : 200, N = e.big ? 4096 : 48, K = e.big ? 2048 : 48;
  auto x = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * N * K), y = constant<bfloat16>(e, size_t(T) * N, NAN);
  auto starts = filled<int32_t>(e, E + 1, [&](size_t i) { return i == size_t(E) ? T : int32_t(i * T / E + (i % 3 == 1 ? 9 : 0)); });
  Job j;
  j.gflop = 2e-9 * T * N * K;
  j.add(expert_tiles, c, x.p, w.p, starts.p, y.p, E, N, K, e.field("programs", e.big ? 132 : 3));
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < E; ++z) {
      auto one = product(starts.h[z + 1] - starts.h[z], N, K, matrix(x, K, size_t(starts.h[z]) * K),
                         [&](int k, int n) { return w[(size_t(z) * N + n) * K + k]; });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(y.now(), want, 3e-2, 1e-2);
  };
  return j;
});

// --- strides as they come: rows in order, the same row again and again, rows backwards
auto any_stride = kernel("user_any_stride", [](const WrittenCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<float> y, I32 M, I32 N,
                                               I32 K, I32 am, I32 bk) {
                    auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                    Tile ap = a + ((m % M).col() * am + k.row()), bp = b + (k.col() * bk + (n % N).row());
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto i : range(0, cdiv(K, c.BK))) {
                      auto x = load(ap, {.mask = k.row() < K - i * c.BK, .other = 0});
                      auto w = load(bp, {.mask = k.col() < K - i * c.BK, .other = 0});
                      acc = dot(x, w, acc);
                      ap += c.BK;
                      bp += c.BK * bk;
                    }
                    store(y + (m.col() * N + n.row()), acc, {.mask = (m.col() < M) & (n.row() < N)});
                  }).grid([](const WrittenCfg& c, auto, auto, auto, int M, int N, auto...) { return Grid{cdiv(M, c.BM), cdiv(N, c.BN)}; });
Register r13("any_stride", [](Env& e) {
  const auto c = written_cfg(e, {128, 128, 64}, {64, 32, 32});
  const int M = e.big ? 4096 : 80, N = e.big ? 4096 : 48, K = e.big ? 4096 : 80;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  std::array<Array<float>, 3> y;
  for (auto& one : y) one = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  for (int way = 0; way < 3; ++way)
    j.add(any_stride, c, way < 2 ? a.p : a.p + size_t(M - 1) * K, b.p, y[way].p, M, N, K, way == 0 ? K : way == 1 ? 0 : -K, N);
  j.check = [=] {
    for (int way = 0; way < 3; ++way) {
      const auto wrong = agree(y[way].now(), product(M, N, K, [&](int m, int k) { return a[(way == 0 ? m : way == 1 ? 0 : M - 1 - m) * K + k]; },
                                                     matrix(b, N)), 1e-2, 1e-3);
      if (!wrong.empty()) return "stride " + std::to_string(1 - way) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

}  // namespace written_products
}  // namespace users
