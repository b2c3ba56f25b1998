// lookups.cpp - numbers in few bits that overlap, cross words or are looked up, and what is kept of many: trellis
// codes, residual codes, keys made of two halves, masks of both orders, signs, strongest frequencies, hashed n-grams.
#include "tests/users/use.h"
namespace users {
namespace lookups {

// --- trellis codes (QTIP): a weight is a hash of 16 bits that begin 2 bits behind the weight before's: the bits of a
// row are one ring. The sum of the hash's four bytes is nearly normal
struct TrellisCfg {
  int BM = 16, BN = 16, BK = 128, warps = 2, stages = 3;
};
Tile trellis_weight(const Tile& state) {
  auto x = state * 34038481u + 76625530u;
  Tile sum = x & 255;
  for (int i = 8; i < 32; i += 8) sum += x >> i & 255;
  return (cast(cast(sum, i32), f32) - 510.f) / 147.8f;
}
auto trellis = kernel("user_trellis", [](const TrellisCfg& c, Tensor<const half, 2> X, Ptr<const uint32_t> codes,
                                         Ptr<const float> scale, Tensor<half, 2> Y) {
                 // Y [M, N] = X [M, K] W^T, row n of W in K / 16 words
                 num_warps(c.warps);
                 auto m = program_id(1) * c.BM, n = program_id(0) * c.BN, K = X.dim(1);
                 auto rows = codes + (n + arange(0, c.BN)) * (K / 16);
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                   auto at = (k + arange(0, c.BK)).row();
                   auto word = at / 16;
                   auto low = load(rows.col() + word), high = load(rows.col() + (word + 1) % (K / 16));
                   auto both = cast(high, u64) << 32 | cast(low, u64);
                   auto state = cast(both >> cast(at % 16 * 2, u64), u32) & 0xFFFF;
                   acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(cast(trellis_weight(state), f16)), acc);
                 }
                 Y.store({m, n}, cast(acc * load(scale + n + arange(0, c.BN)).row(), f16));
               }).grid([](const TrellisCfg& c, const auto& x, auto, auto, const auto& y) {
  return Grid{cdiv(y.shape[1], c.BN), cdiv(x.shape[0], c.BM)};
});
Register r1("trellis", [](Env& e) {
  TrellisCfg c;
  if (!e.big) c = {16, 16, 32, 1, 2};
  c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16 : 13, N = e.big ? 4096 : 48, K = e.big ? 4096 : 96;
  auto x = random<half>(e, size_t(M) * K);
  auto codes = drawn<uint32_t>(e, size_t(N) * K / 16, [&] { return uint32_t(e.uniform() * 4294967296.0); });
  auto scale = random<float>(e, N, .5, 2);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 4e-6 * codes.n;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(trellis, c, x.view(M, K), codes.p, scale.p, y.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      uint32_t state = 0;
      for (int b = 0; b < 16; ++b) {
        const int bit = (2 * k + b) % (2 * K);
        state |= (codes.at(size_t(n) * (K / 16) + bit / 32) >> bit % 32 & 1) << b;
      }
      const uint32_t h = state * 34038481u + 76625530u;
      return in_half(((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24) - 510.0) / 147.8);
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight, [&](double s, int, int n) { return s * scale[n]; }),
                 2e-2, 2e-3);
  };
  return j;
});

// --- residual codes (EnCodec): the nearest of 1024 vectors, then the nearest to what it leaves, eight times
struct ResidualCfg {
  int BM = 64, BN = 128, D = 128, warps = 4;
};
auto residual_codes =
    kernel("user_residual_codes", [](const ResidualCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> books,
                                     Tensor<const float, 2> norms, Tensor<int32_t, 2> codes, Tensor<float, 2> rest) {
      // X [T, D], books [Q, N, D], norms [Q, N]: half the squared lengths; codes [Q, T], rest [T, D]
      num_warps(c.warps);
      auto t = program_id(0) * c.BM, N = books.dim(1);
      Tile r = cast(X.load({t, 0}, {c.BM, c.D}), f32);
      auto table = make_view<const half>(books.ptr(), {books.dim(0) * N, books.dim(2)}, {books.stride(1), 1});
      for (auto q : range(books.dim(0))) {
        Tile best = full({c.BM, 1}, -INFINITY, f32), code = zeros({c.BM, 1}, i32);
        auto x = cast(r, f16);
        for (auto n : range(0, N, c.BN)) {
          auto s =
              dot(x, trans(books.load({q, n, 0}, {c.BN, c.D}))) - norms.load({q, n}, {c.BN}, {.pad = INFINITY}).row();
          auto [value, at] = max_with_index(s, axis(1));
          code = where(value > best, n + at, code), best = max(best, value);
        }
        auto flat = squeeze(code, 1);
        codes.store({q, t}, flat);
        r -= cast(table.gather(q * N + flat, 0, c.D), f32);
      }
      rest.store({t, 0}, r);
    }).grid([](const ResidualCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("residual_codes", [](Env& e) {
  ResidualCfg c;
  if (!e.big) c = {16, 16, 16, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1 << 17 : 37, D = c.D, Q = e.big ? 8 : 3, N = e.big ? 1024 : 40;
  auto x = random<half>(e, size_t(T) * D), books = random<half>(e, size_t(Q) * N * D);
  auto norms = filled<float>(e, size_t(Q) * N, [&](size_t i) {
    double s = 0;
    for (int d = 0; d < D; ++d) s += books[i * D + d] * books[i * D + d];
    return float(s / 2);
  });
  auto codes = constant<int32_t>(e, size_t(Q) * T, -1);
  auto rest = constant<float>(e, size_t(T) * D, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(D) * Q * N;
  j.add(residual_codes, c, x.view(T, D), books.view(Q, N, D), norms.view(Q, N), codes.view(Q, T), rest.view(T, D));
  j.check = [=]() -> std::string {
    const auto got = codes.now();
    std::vector<double> want(rest.n);
    for (int t = 0; t < T; ++t) {
      std::vector<double> r(D);
      for (int d = 0; d < D; ++d) r[d] = x[size_t(t) * D + d];
      for (int q = 0; q < Q; ++q) {
        auto score = [&](int n) {
          double s = -norms[size_t(q) * N + n];
          for (int d = 0; d < D; ++d) s += r[d] * books[(size_t(q) * N + n) * D + d];
          return s;
        };
        const int mine = got[size_t(q) * T + t];
        if (mine < 0 || mine >= N) return "code of " + std::to_string(t);
        double best = -1e9;
        for (int n = 0; n < N; ++n) best = std::max(best, score(n));
        if (score(mine) < best - 2e-2) return "token " + std::to_string(t) + " book " + std::to_string(q);
        for (int d = 0; d < D; ++d) r[d] -= books[(size_t(q) * N + mine) * D + d];
      }
      for (int d = 0; d < D; ++d) want[size_t(t) * D + d] = r[d];
    }
    return agree(rest.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a memory with product keys: a query's halves name their K best of n half keys each, the K best sums of two are
// the rows of the table whose weighted sum is the answer
struct ProductKeysCfg {
  int B = 16, N = 512, D = 128, K = 16, V = 512, warps = 8;
};
auto product_keys =
    kernel("user_product_keys", [](const ProductKeysCfg& c, Tensor<const half, 2> Q, Tensor<const half, 3> keys,
                                   Tensor<int32_t, 2> rows, Tensor<float, 2> weights) {
      // Q [T, 2 D], keys [2, N, D]
      num_warps(c.warps);
      auto t = program_id(0) * c.B;
      auto half_best = [&](int h) {
        auto s = dot(Q.load({t, h * c.D}, {c.B, c.D}), trans(keys.load({h, 0, 0}, {c.N, c.D})));
        return topk(s, c.K, axis(1));
      };
      auto [a, ai] = half_best(0);
      auto [b, bi] = half_best(1);
      auto sums = reshape(expand_dims(a, 2) + expand_dims(b, 1), {c.B, c.K * c.K});
      auto [s, at] = topk(sums, c.K, axis(1));
      rows.store({t, 0}, take(ai, at / c.K, 1) * c.N + take(bi, at % c.K, 1));
      weights.store({t, 0}, softmax(s, axis(1)));
    }).grid([](const ProductKeysCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.B)}; });
auto memory_read =
    kernel("user_memory_read", [](const ProductKeysCfg& c, Tensor<const int32_t, 2> rows,
                                  Tensor<const float, 2> weights, Tensor<const half, 2> table, Tensor<half, 2> Y) {
      auto t = program_id(0);
      auto values = cast(table.gather(rows.load({t, 0}, {c.K}), 0, c.V), f32);
      Y.store({t, 0}, cast(sum(values * weights.load({t, 0}, {c.K}).col(), axis(0)), f16));
    }).grid([](const ProductKeysCfg&, const auto& rows, const auto&...) { return Grid{rows.shape[0]}; });
Register r3("product_keys", [](Env& e) {
  ProductKeysCfg c;
  if (!e.big) c = {8, 24, 16, 4, 48, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1 << 16 : 21, N = c.N, D = c.D, K = c.K, V = c.V;
  auto q = random<half>(e, size_t(T) * 2 * D), keys = random<half>(e, size_t(2) * N * D);
  auto table = random<half>(e, size_t(N) * N * V);
  auto rows = constant<int32_t>(e, size_t(T) * K, -1);
  auto weights = constant<float>(e, rows.n, NAN);
  auto y = constant<half>(e, size_t(T) * V, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(N) * 2 * D;
  j.mbytes = 2e-6 * T * double(K) * V;
  j.inTurn = true;
  j.add(product_keys, c, q.view(T, 2 * D), keys.view(2, N, D), rows.view(T, K), weights.view(T, K));
  j.add(memory_read, c, rows.view(T, K), weights.view(T, K), table.view(N * N, V), y.view(T, V));
  j.check = [=]() -> std::string {
    std::vector<double> want(y.n);
    for (int t = 0; t < T; ++t) {
      std::vector<std::pair<double, int>> all;
      std::vector<double> half[2];
      for (int h = 0; h < 2; ++h)
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[size_t(t) * 2 * D + h * D + d] * keys[(size_t(h) * N + n) * D + d];
          half[h].push_back(s);
        }
      for (int x = 0; x < N; ++x)
        for (int z = 0; z < N; ++z) all.push_back({-(half[0][x] + half[1][z]), x * N + z});
      std::sort(all.begin(), all.end());
      double total = 0;
      for (int i = 0; i < K; ++i) total += std::exp(-all[i].first);
      for (int i = 0; i < K; ++i)
        for (int v = 0; v < V; ++v)
          want[size_t(t) * V + v] += std::exp(-all[i].first) / total * table[size_t(all[i].second) * V + v];
    }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- 2:4 for both orders: of every 4 x 4 weights the best of the 90 masks with two in every row and column
struct BothOrdersCfg {
  int B = 64, warps = 4;
};
auto both_orders =
    kernel("user_both_orders", [](const BothOrdersCfg& c, Tensor<const half, 2> W, Tensor<const half, 2> patterns,
                                  Ptr<const int32_t> bits, Tensor<half, 2> sparse, Tensor<uint16_t, 2> masks) {
      // patterns [96, 16] of 0 and 1 (the last 6 never win), bits [96]: the same as bits
      num_warps(c.warps);
      auto r = program_id(0) * 4, at = program_id(1) * c.B;
      auto w = W.load({r, at * 4}, {4, c.B * 4});
      // [row, block, column] -> [block, row and column]
      auto blocks = reshape(permute(reshape(w, {4, c.B, 4}), {1, 0, 2}), {c.B, 16});
      auto score = dot(abs(blocks), trans(patterns.load({0, 0}, {96, 16})));
      auto inside = arange(0, 96).row() < 90;
      auto best = argmax(where(inside, score, -1.f), axis(1));
      auto mask = load(bits + best);
      auto kept = (mask >> arange(0, 16).row() & 1) != 0;
      auto back = permute(reshape(where(kept, blocks, 0), {c.B, 4, 4}), {1, 0, 2});
      sparse.store({r, at * 4}, reshape(back, {4, c.B * 4}));
      masks.store({program_id(0), at}, squeeze(cast(cast(mask, u32), u16), 1));
    }).grid([](const BothOrdersCfg& c, const auto& w, const auto&...) {
      return Grid{w.shape[0] / 4, cdiv(w.shape[1] / 4, c.B)};
    });
Register r4("both_orders", [](Env& e) {
  BothOrdersCfg c;
  if (!e.big) c = {16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 8192 : 12, C = e.big ? 8192 : 76;
  auto w = random<half>(e, size_t(R) * C);
  std::vector<int> all;
  for (int m = 0; m < 1 << 16; ++m) {
    bool two = true;
    for (int i = 0; i < 4; ++i)
      two = two && __builtin_popcount(m >> (4 * i) & 15) == 2 && __builtin_popcount(m >> i & 0x1111) == 2;
    if (two) all.push_back(m);
  }
  all.resize(96);
  auto patterns = filled<half>(e, 96 * 16, [&](size_t i) { return half(float(all[i / 16] >> i % 16 & 1)); });
  auto bits = filled<int32_t>(e, 96, [&](size_t i) { return all[i]; });
  auto sparse = constant<half>(e, w.n, NAN);
  auto masks = constant<uint16_t>(e, w.n / 16, 0);
  Job j;
  j.mbytes = 4e-6 * w.n;
  j.add(both_orders, c, w.view(R, C), patterns.view(96, 16), bits.p, sparse.view(R, C), masks.view(R / 4, C / 4));
  j.check = [=]() -> std::string {
    const auto got = masks.now();
    std::vector<double> want(w.n);
    for (int r = 0; r < R; r += 4)
      for (int x = 0; x < C; x += 4) {
        auto sum = [&](int m) {
          double s = 0;
          for (int i = 0; i < 16; ++i) s += (m >> i & 1) * std::abs(w[size_t(r + i / 4) * C + x + i % 4]);
          return s;
        };
        double best = 0;
        for (int i = 0; i < 90; ++i) best = std::max(best, sum(all[i]));
        const int mine = got[size_t(r / 4) * (C / 4) + x / 4];
        if (std::find(all.begin(), all.begin() + 90, mine) == all.begin() + 90 || sum(mine) < best - 1e-3)
          return "mask of " + std::to_string(r) + ", " + std::to_string(x);
        for (int i = 0; i < 16; ++i)
          want[size_t(r + i / 4) * C + x + i % 4] = mine >> i & 1 ? w[size_t(r + i / 4) * C + x + i % 4] : 0;
      }
    return agree(sparse.now(), want, 1e-9, 0);
  };
  return j;
});

// --- 3-bit weights from a table of 8 numbers per row (SqueezeLLM), 32 of them in three words, and a few weights that
// are kept as they are (by rows: column, value), times one vector
struct ThreeBitsCfg {
  int R = 16, B = 256, warps = 4;
};
auto three_bits =
    kernel("user_three_bits", [](const ThreeBitsCfg& c, Ptr<const uint32_t> W, Tensor<const half, 2> tables,
                                 Ptr<const half> x, Ptr<const int32_t> starts, Ptr<const int32_t> columns,
                                 Ptr<const half> values, Ptr<float> y, I32 N, I32 K) {
      num_warps(c.warps);
      auto r = program_id(0) * c.R + arange(0, c.R);
      auto inside = r < N;
      auto words = W + (cast(r, i64) * (K / 32 * 3)).col();
      auto table = tables.load({program_id(0) * c.R, 0}, {c.R, 8});
      Tile acc = zeros({c.R, c.B}, f32);
      for (auto k0 : range(0, K, c.B)) {
        // Of the 32 codes of a group the first 16 lie in two words, the others in the last two.
        auto group = (k0 / 32 + arange(0, c.B / 32)).row();
        auto there = inside.col() & (group < K / 32);
        auto word = [&](int i) { return cast(load(words + group * 3 + i, {.mask = there}), u64); };
        auto w0 = word(0), w1 = word(1), w2 = word(2);
        auto i = reshape(arange(0, 32), {1, 1, 32});
        auto both = where(i < 16, expand_dims(w1 << 32 | w0, 2), expand_dims(w2 << 32 | w1, 2));
        auto code = cast(reshape(both >> cast(where(i < 16, i * 3, i * 3 - 32), u64), {c.R, c.B}), i32) & 7;
        auto k = (k0 + arange(0, c.B)).row();
        auto w = take(table, code, 1);
        acc += cast(w, f32) * cast(load(x + k, {.mask = k < K}), f32);
      }
      Tile total = squeeze(sum(acc, axis(1)), 1);
      auto end = load(starts + r + 1, {.mask = inside});
      Tile at = load(starts + r, {.mask = inside});
      while_([&] { return any(at < end); },
             [&] {
               auto here = at < end;
               auto column = load(columns + at, {.mask = here});
               total += cast(load(values + at, {.mask = here}), f32) * cast(load(x + column, {.mask = here}), f32);
               at += 1;
             });
      store(y + r, total, {.mask = inside});
    }).grid([](const ThreeBitsCfg& c, auto, const auto&, auto, auto, auto, auto, auto, int n, int) {
      return Grid{cdiv(n, c.R)};
    });
Register r5("three_bits", [](Env& e) {
  ThreeBitsCfg c;
  if (!e.big) c = {8, 32, 1};
  c.R = e.field("R", c.R), c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 8192 : 21, K = e.big ? 8192 : 160;
  auto codes = integers<int32_t>(e, e.big ? 1 << 20 : size_t(N) * K, 0, 8);
  auto words = filled<uint32_t>(e, size_t(N) * K / 32 * 3, [&](size_t i) {
    uint32_t w = 0;
    for (int b = 0; b < 32; ++b) {
      const size_t bit = i % 3 * 32 + b;
      w |= uint32_t(codes.at(i / 3 * 32 + bit / 3) >> bit % 3 & 1) << b;
    }
    return w;
  });
  auto tables = random<half>(e, size_t(N) * 8), x = random<half>(e, K);
  std::vector<int> start{0};
  for (int n = 0; n < N; ++n) start.push_back(start.back() + int(e.uniform() * (n % 5 ? 8 : 40)));
  auto starts = filled<int32_t>(e, N + 1, [&](size_t i) { return start[i]; });
  auto columns = integers<int32_t>(e, start.back(), 0, K);
  auto values = random<half>(e, start.back(), -4, 4);
  auto y = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 4e-6 * words.n;
  j.add(three_bits, c, words.p, tables.view(N, 8), x.p, starts.p, columns.p, values.p, y.p, N, K);
  j.check = [=] {
    std::vector<double> want(N);
    for (int n = 0; n < N; ++n) {
      for (int k = 0; k < K; ++k) want[n] += tables[size_t(n) * 8 + codes.at(size_t(n) * K + k)] * x[k];
      for (int i = starts.at(n); i < starts.at(n + 1); ++i) want[n] += values[i] * x[columns.at(i)];
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- gradients of one bit (1-bit Adam): signs in words, a mean magnitude per block, and what is lost is kept for the
// next time
struct SignsCfg {
  int B = 4096;
};
auto sign_pack =
    kernel("user_sign_pack", [](const SignsCfg& c, Ptr<const bfloat16> g, Ptr<float> rest, Ptr<uint32_t> words,
                                Ptr<float> scales, I64 n) {
      auto block = program_id(0);
      auto i = cast(block, i64) * c.B + arange(0, c.B);
      auto x = cast(load(g + i, {.mask = i < n}), f32) + load(rest + i, {.mask = i < n});
      auto scale = sum(abs(x)) / cast(min(n - cast(block, i64) * c.B, c.B), f32);
      auto positive = x >= 0.f;
      auto bits = cast(reshape(positive, {c.B / 32, 32}), u32) << cast(arange(0, 32), u32).row();
      store(words + block * (c.B / 32) + arange(0, c.B / 32), squeeze(sum(bits, axis(1)), 1));
      store(scales + block, scale);
      store(rest + i, x - where(positive, scale, -scale), {.mask = i < n});
    }).grid([](const SignsCfg& c, auto, auto, auto, auto, int64_t n) { return Grid{int64_t(cdiv(n, int64_t(c.B)))}; });
auto sign_unpack =
    kernel("user_sign_unpack", [](const SignsCfg& c, Ptr<const uint32_t> words, Ptr<const float> scales,
                                  Ptr<float> sums, I32 workers, I64 n) {
      // words [workers, blocks, B / 32]: the mean of all
      auto block = program_id(0);
      Tile total = zeros({c.B}, f32);
      for (auto w : range(workers)) {
        auto at = cast(w, i64) * num_programs(0) + block;
        auto word = load(words + at * (c.B / 32) + arange(0, c.B / 32));
        auto bit = ravel(word.col() >> cast(arange(0, 32), u32).row() & 1);
        total += where(bit == 1, load(scales + at), -load(scales + at));
      }
      auto i = cast(block, i64) * c.B + arange(0, c.B);
      store(sums + i, total / cast(workers, f32), {.mask = i < n});
    }).grid([](const SignsCfg& c, auto, auto, auto, int, int64_t n) { return Grid{int64_t(cdiv(n, int64_t(c.B)))}; });
Register r6("sign_pack", [](Env& e) {
  SignsCfg c;
  if (!e.big) c.B = 128;
  c.B = e.field("B", c.B);
  const int64_t n = e.big ? 1 << 26 : 1000, blocks = cdiv(n, int64_t(c.B));
  const int workers = 4;
  auto g = random<bfloat16>(e, n);
  auto rest = random<float>(e, n, -.1, .1);
  auto words = constant<uint32_t>(e, workers * blocks * (c.B / 32), 0);
  auto scales = constant<float>(e, workers * blocks, 0);
  auto sums = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * (2 + 8 + 4);
  j.inTurn = true;
  j.add(sign_pack, c, g.p, rest.p, words.p, scales.p, n);
  j.add(sign_unpack, c, words.p, scales.p, sums.p, workers, n);
  j.check = [=] {
    std::vector<double> left(n), mean(n);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = b * c.B, end = std::min<int64_t>(n, first + c.B);
      double scale = 0;
      for (int64_t i = first; i < end; ++i) scale += std::abs(g[i] + rest[i]) / double(end - first);
      for (int64_t i = first; i < end; ++i) {
        const double x = g[i] + rest[i], s = x >= 0 ? scale : -scale;
        left[i] = x - s, mean[i] = s / workers;  // the others sent nothing: words and scales of 0
      }
    }
    if (auto wrong = agree(rest.now(), left, 1e-4, 1e-4); !wrong.empty()) return "rest: " + wrong;
    return agree(sums.now(), mean, 1e-4, 1e-4);
  };
  return j;
});

// --- strongest frequencies of a momentum (DeMo): chunks of 64 x 64 are transformed by cosines on both sides, the K
// largest numbers leave with their places and are taken out of the momentum
struct FrequenciesCfg {
  int S = 64, K = 32, warps = 4;
};
auto frequencies = kernel("user_frequencies", [](const FrequenciesCfg& c, Tensor<const float, 2> G, Tensor<float, 2> M,
                                                 Tensor<const float, 2> T, Tensor<float, 3> values,
                                                 Tensor<int32_t, 3> places, F32 beta) {
                     num_warps(c.warps);
                     auto i = program_id(0), j = program_id(1), r = i * c.S, k = j * c.S;
                     auto m = M.load({r, k}, {c.S, c.S}) * beta + G.load({r, k}, {c.S, c.S});
                     auto t = T.load({0, 0}, {c.S, c.S});
                     auto f = dot(dot(t, m, Prec::tf32x3), trans(t), Prec::tf32x3);
                     auto flat = ravel(f);
                     auto [size, at] = topk(abs(flat), c.K, axis(0));
                     auto kept = take(flat, at, 0);
                     values.store({i, j, 0}, kept), places.store({i, j, 0}, at);
                     // What is at least as large as the smallest that left (no two are equal).
                     auto gone = where(abs(f) >= min(size), f, 0.f);
                     M.store({r, k}, m - dot(dot(trans(t), gone, Prec::tf32x3), t, Prec::tf32x3));
                   }).grid([](const FrequenciesCfg& c, const auto& g, const auto&...) {
  return Grid{g.shape[0] / c.S, g.shape[1] / c.S};
});
Register r7("frequencies", [](Env& e) {
  FrequenciesCfg c;
  if (!e.big) c = {16, 8, 1};
  c.K = e.field("K", c.K), c.warps = e.field("warps", c.warps);
  const int S = c.S, R = e.big ? 4096 : 2 * S, C = e.big ? 4096 : 3 * S, K = c.K;
  auto g = random<float>(e, size_t(R) * C), m = random<float>(e, size_t(R) * C);
  auto t = filled<float>(e, S * S, [&](size_t i) {
    const int k = int(i) / S, x = int(i) % S;
    return float(std::sqrt((k ? 2.0 : 1.0) / S) * std::cos(M_PI * (x + .5) * k / S));
  });
  auto values = constant<float>(e, size_t(R / S) * (C / S) * K, NAN);
  auto places = constant<int32_t>(e, values.n, -1);
  Job j;
  j.mbytes = 12e-6 * g.n;
  j.add(frequencies, c, g.view(R, C), m.view(R, C), t.view(S, S), values.view(R / S, C / S, K),
        places.view(R / S, C / S, K), .9f);
  j.check = [=]() -> std::string {
    const auto got = values.now();
    const auto where_ = places.now();
    std::vector<double> want(m.n);
    for (int b = 0; b < R / S * (C / S); ++b) {
      const int r = b / (C / S) * S, k = b % (C / S) * S;
      std::vector<double> x(S * S), half_(S * S), f(S * S);
      for (int i = 0; i < S * S; ++i) {
        const size_t at = size_t(r + i / S) * C + k + i % S;
        x[i] = m[at] * .9f + g[at];
      }
      auto sandwich = [&](const std::vector<double>& in, std::vector<double>& out, bool turned) {
        auto T = [&](int u, int v) { return turned ? t[v * S + u] : t[u * S + v]; };
        std::fill(half_.begin(), half_.end(), 0), std::fill(out.begin(), out.end(), 0);
        for (int u = 0; u < S; ++u)
          for (int v = 0; v < S; ++v)
            for (int y = 0; y < S; ++y) half_[u * S + y] += T(u, v) * in[v * S + y];
        for (int u = 0; u < S; ++u)
          for (int v = 0; v < S; ++v)
            for (int y = 0; y < S; ++y) out[u * S + v] += half_[u * S + y] * T(v, y);
      };
      sandwich(x, f, false);
      std::vector<double> sizes, gone(S * S), back(S * S);
      for (double v : f) sizes.push_back(-std::abs(v));
      std::sort(sizes.begin(), sizes.end());
      for (int i = 0; i < K; ++i) {
        const int at = where_[size_t(b) * K + i];
        if (at < 0 || at >= S * S || !(std::abs(f[at] - got[size_t(b) * K + i]) < 1e-4)) return "value";
        if (std::abs(std::abs(f[at]) + sizes[i]) > 1e-4) return "order of block " + std::to_string(b);
        gone[at] = f[at];
      }
      sandwich(gone, back, true);
      for (int i = 0; i < S * S; ++i) want[size_t(r + i / S) * C + k + i % S] = x[i] - back[i];
    }
    return agree(m.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- embeddings of n-grams by hashing (Engram): the last 2 and 3 tokens of a position, H hash heads each, modulo a
// prime of its own; the rows found stand side by side, and a gate says how well they fit the hidden state
struct NgramCfg {
  int B = 4, H = 4, D = 64, warps = 4;
};
auto ngram_memory =
    kernel("user_ngram_memory", [](const NgramCfg& c, Tensor<const int32_t, 2> tokens, Ptr<const uint64_t> factors,
                                   Ptr<const int64_t> primes, Ptr<const int64_t> offsets, Tensor<const half, 2> table,
                                   Tensor<const half, 3> hidden, Tensor<half, 3> out) {
      // tokens [B, T]; factors [3]; primes, offsets [2 H]; out [B, T, 2 H D]
      num_warps(c.warps);
      auto b = program_id(1), t = program_id(0) * c.B;
      auto h = squeeze(hidden.load({b, t, 0}, {1, c.B, 2 * c.H * c.D}), 0);
      auto word = [&](int back) {
        return cast(cast(tokens.load({b, t - back}, {c.B}), i64) + 1, u64) * load(factors + back);
      };
      auto pair = word(0) ^ word(1), three = pair ^ word(2);
      auto head = arange(0, 2 * c.H);
      auto mix = where((head < c.H).row(), pair.col(), three.col());
      auto place = cast(mix % cast(load(primes + head), u64).row(), i64) + load(offsets + head).row();
      auto all = [&](Tile x) { return reshape(x, {c.B, 2 * c.H * c.D}); };
      auto found = all(table.gather(ravel(place), 0, c.D));
      auto dots = sum(cast(found, f32) * cast(h, f32), axis(1));
      auto gate = sigmoid(dots / std::sqrt(float(2 * c.H * c.D)));
      out.store({b, t, 0}, expand_dims(cast(cast(found, f32) * gate, f16), 0));
    }).grid([](const NgramCfg& c, const auto& tokens, const auto&...) {
      return Grid{cdiv(tokens.shape[1], c.B), tokens.shape[0]};
    });
Register r8("ngram_memory", [](Env& e) {
  NgramCfg c;
  if (!e.big) c = {8, 2, 16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 29, H = c.H, D = c.D, width = 2 * H * D;
  auto tokens = integers<int32_t>(e, size_t(B) * T, 0, e.big ? 128000 : 50);
  const std::vector<uint64_t> odd{0x9E3779B97F4A7C15ull, 0xC2B2AE3D27D4EB4Full, 0x165667B19E3779F9ull};
  auto factors = filled<uint64_t>(e, 3, [&](size_t i) { return odd[i]; });
  const std::vector<int64_t> p =
      e.big ? std::vector<int64_t>{1000003, 1000033, 1000037, 1000039, 999983, 999979, 999961, 999959}
            : std::vector<int64_t>{97, 101, 103, 107};
  std::vector<int64_t> first{0};
  for (int64_t x : p) first.push_back(first.back() + x);
  auto primes = filled<int64_t>(e, 2 * H, [&](size_t i) { return p[i]; });
  auto offsets = filled<int64_t>(e, 2 * H, [&](size_t i) { return first[i]; });
  const int rows = int(first.back());
  auto table = random<half>(e, size_t(rows) * D), hidden = random<half>(e, size_t(B) * T * width);
  auto out = constant<half>(e, hidden.n, NAN);
  Job j;
  j.mbytes = 6e-6 * hidden.n;
  j.add(ngram_memory, c, tokens.view(B, T), factors.p, primes.p, offsets.p, table.view(rows, D),
        hidden.view(B, T, width), out.view(B, T, width));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t) {
        auto word = [&](int back) {
          return uint64_t(t >= back ? tokens.at(size_t(b) * T + t - back) + 1 : 1) * odd[back];
        };
        std::vector<size_t> row;
        double s = 0;
        for (int h = 0; h < 2 * H; ++h) {
          const uint64_t mix = word(0) ^ word(1) ^ (h < H ? 0 : word(2));
          row.push_back(size_t(mix % uint64_t(p[h])) + first[h]);
          for (int d = 0; d < D; ++d) s += table[row[h] * D + d] * hidden[(size_t(b) * T + t) * width + h * D + d];
        }
        const double gate = 1 / (1 + std::exp(-s / std::sqrt(double(width))));
        for (int h = 0; h < 2 * H; ++h)
          for (int d = 0; d < D; ++d) want[(size_t(b) * T + t) * width + h * D + d] = gate * table[row[h] * D + d];
      }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

}  // namespace lookups
}  // namespace users
