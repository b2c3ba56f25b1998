// beside_triton_served.cpp - kernels of inference engines, by pointers, as their Triton originals have them:
// attention over pages for prompts and single tokens in one launch, causal convolutions of channels over chunks of
// tokens, a token drawn among the k best by bisection, the k best of long rows in two steps.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_served {

// --- vLLM's kernel_unified_attention_2d: blocks of queries find their sequence by bisection; the heads of a group are
// rows of one tile; keys of a tile are looked up token by token through the table of pages
struct UnifiedCfg {
  int BM = 64, TILE = 64, D = 128, PAGE = 16, stages = 0, warps = 4;
};
auto unified =
    kernel(
        "user_unified_2d",
        [](const UnifiedCfg& c, Ptr<bfloat16> out, Ptr<const bfloat16> query, Ptr<const bfloat16> key_cache,
           Ptr<const bfloat16> value_cache, Ptr<const int32_t> block_tables, Ptr<const int32_t> seq_lens,
           Ptr<const int32_t> query_start, F32 scale, I32 num_seqs, I64 table_stride, I64 query_stride0,
           I64 query_stride1, I64 cache_stride0, I64 cache_stride1, I64 cache_stride2, I32 group, I32, I32) {
          num_warps(c.warps);
          auto pid = program_id(0), kv_head = program_id(1);
          auto BQ = c.BM / group;
          Tile left = full({}, 0, i32), right = num_seqs + 0;
          while_([&] { return left < right; },
                 [&] {
                   auto mid = (left + right) / 2;
                   auto v = load(query_start + mid) / BQ + mid;
                   auto low = v <= pid;
                   left = where(low, mid + 1, left), right = where(low, right, mid);
                 });
          auto seq = left - 1;
          auto first = load(query_start + seq);
          auto local = pid - (first / BQ + seq), len = load(query_start + seq + 1) - first;
          return_if(local * BQ >= len);
          auto m = arange(0, c.BM), d = arange(0, c.D), t = arange(0, c.TILE);
          auto pos = local * BQ + m / group, head = kv_head * group + m % group;
          auto q_at = cast(first + pos, i64) * query_stride0 + cast(head, i64) * query_stride1;
          auto in_q = (pos < len) & (m / group < BQ);
          auto q = load(query + (q_at.col() + cast(d, i64).row()), {.mask = in_q.col(), .other = 0.f});
          auto seq_len = load(seq_lens + seq);
          auto context = seq_len - len;
          auto most = min(context + local * BQ + (c.BM - 1) / group + 1, seq_len);
          Tile top = full({c.BM, 1}, -INFINITY, f32), total = full({c.BM, 1}, 1.f, f32), acc = zeros({c.BM, c.D}, f32);
          for (auto j : range(0, cdiv(most, c.TILE), 1, {.stages = c.stages})) {
            auto at = j * c.TILE + t;
            auto inside = at < most;
            auto page = cast(load(block_tables + (cast(seq, i64) * table_stride + cast(at / c.PAGE, i64)),
                                  {.mask = inside, .other = 0}),
                             i64);
            auto row =
                page * cache_stride0 + cast(at % c.PAGE, i64) * cache_stride1 + cast(kv_head, i64) * cache_stride2;
            auto k = load(key_cache + (row.row() + cast(d, i64).col()), {.mask = inside.row(), .other = 0.f});
            auto v = load(value_cache + (row.col() + cast(d, i64).row()), {.mask = inside.col(), .other = 0.f});
            auto causal = at.row() < (context + pos + 1).col();
            auto s = where(in_q.col() & causal, dot(q, k) * (scale * 1.44269504f), -INFINITY);
            auto now = max(top, max(s, axis(1)));
            now = where(now > -INFINITY, now, 0.f);
            auto p = exp2(s - now), alpha = exp2(top - now);
            acc = dot(cast(p, bf16), v, acc * alpha);
            total = total * alpha + sum(p, axis(1));
            top = now;
          }
          store(out + (q_at.col() + cast(d, i64).row()), cast(acc / total, bf16), {.mask = in_q.col()});
        })
        .grid([](const UnifiedCfg& c, auto, auto, auto, auto, auto, auto, auto, float, int seqs, int64_t, int64_t,
                 int64_t, int64_t, int64_t, int64_t, int group, int tokens, int kv) {
          return Grid{tokens / (c.BM / group) + seqs, kv};
        });
Register r1("unified_2d", [](Env& e) {
  UnifiedCfg c;
  if (!e.big) c = {16, 32, 32, 16, 0, 4};
  c.BM = e.field("BM", c.BM), c.TILE = e.field("TILE", c.TILE), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int S = e.big ? 16 : 5, G = e.big ? 4 : 3, KV = e.big ? 8 : 2, H = G * KV, D = c.D, P = c.PAGE;
  std::vector<int32_t> starts{0}, lens;
  for (int s = 0; s < S; ++s) {
    const int fresh = e.big ? (s % 4 ? 1 : 1024) : std::array{7, 1, 1, 19, 1}[s];
    starts.push_back(starts.back() + fresh);
    lens.push_back(e.big ? 2048 + fresh + 37 * s : fresh + std::array{40, 0, 37, 16, 90}[s]);
  }
  const int T = starts.back(), most = cdiv(e.big ? 3840 : 128, P), pages = S * most;
  auto start = filled<int32_t>(e, S + 1, [&](size_t i) { return starts[i]; });
  auto len = filled<int32_t>(e, S, [&](size_t i) { return lens[i]; });
  auto table = filled<int32_t>(e, size_t(S) * most, [&](size_t i) { return int32_t(i * 7919 % pages); });
  auto q = random<bfloat16>(e, size_t(T) * H * D), k = random<bfloat16>(e, size_t(pages) * P * KV * D),
       v = random<bfloat16>(e, size_t(pages) * P * KV * D), o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  for (int s = 0; s < S; ++s) j.gflop += 4e-9 * (starts[s + 1] - starts[s]) * double(lens[s]) * H * D;
  j.add(unified, c, o.p, q.p, k.p, v.p, table.p, len.p, start.p, scale, S, most, int64_t(H) * D, int64_t(D),
        int64_t(P) * KV * D, int64_t(KV) * D, int64_t(D), G, T, KV);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D);
    for (int s = 0; s < S; ++s)
      for (int t = starts[s]; t < starts[s + 1]; ++t)
        for (int h = 0; h < H; ++h) {
          const int n = lens[s] - (starts[s + 1] - starts[s]) + (t - starts[s]) + 1;
          std::vector<double> p(n);
          auto at = [&](int i, int x) {
            return ((size_t(table.at(size_t(s) * most + i / P)) * P + i % P) * KV + h / G) * D + x;
          };
          double sum = 0;
          for (int i = 0; i < n; ++i) {
            for (int x = 0; x < D; ++x) p[i] += q[(size_t(t) * H + h) * D + x] * k[at(i, x)] * scale;
            sum += p[i] = std::exp(p[i]);
          }
          for (int i = 0; i < n; ++i)
            for (int x = 0; x < D; ++x) want[(size_t(t) * H + h) * D + x] += p[i] / sum * v[at(i, x)];
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- vLLM's _causal_conv1d_fwd_kernel: a program has BM tokens of a sequence and BN channels, walks over the tokens
// and keeps the last three in registers; the first chunk of a sequence starts from the state kept for it and writes the
// new
struct ConvTokensCfg {
  int BM = 8, BN = 256, warps = 4, stages = 0, unroll = 0;
};
auto conv_tokens =
    kernel("user_conv_tokens",
           [](const ConvTokensCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<const bfloat16> bias,
              Ptr<bfloat16> states, Ptr<const int32_t> state_of, Ptr<const int32_t> has_state,
              Ptr<const int32_t> query_start, Ptr<const int32_t> chunk_seq, Ptr<const int32_t> chunk_at,
              Ptr<bfloat16> out, I32 dim, I64 stride_x, I64 stride_o, I64 stride_state, I32) {
             // x, out [T, dim]; w [dim, 4]; states [slots, 3, dim]
             num_warps(c.warps);
             auto seq = load(chunk_seq + program_id(0)), chunk = load(chunk_at + program_id(0));
             auto f = program_id(1) * c.BN + arange(0, c.BN);
             auto in = f < dim;
             auto begin = load(query_start + seq), length = load(query_start + seq + 1) - begin;
             auto offset = chunk * c.BM;
             auto count = min(c.BM, length - offset);
             auto state = states + (cast(load(state_of + seq), i64) * stride_state + cast(f, i64));
             auto base = x + (cast(begin + offset, i64) * stride_x + cast(f, i64));
             Tile c0 = zeros({c.BN}, bf16), c1 = zeros({c.BN}, bf16), c2 = zeros({c.BN}, bf16);
             if_(
                 chunk == 0,
                 [&] {
                   auto kept = in & (load(has_state + seq) != 0);
                   c0 = load(state, {.mask = kept}), c1 = load(state + dim, {.mask = kept});
                   c2 = load(state + 2 * dim, {.mask = kept});
                   // the last three tokens, or what is left of the state in front of them
                   auto last = x + (cast(begin + length, i64) * stride_x + cast(f, i64));
                   auto n0 = where(length >= 3, load(last - 3 * stride_x, {.mask = in & (length >= 3)}),
                                   where(length == 2, c2, c1));
                   auto n1 = where(length >= 2, load(last - 2 * stride_x, {.mask = in & (length >= 2)}), c2);
                   auto n2 = load(last - stride_x, {.mask = in});
                   store(state, n0, {.mask = in}), store(state + dim, n1, {.mask = in});
                   store(state + 2 * dim, n2, {.mask = in});
                 },
                 [&] {
                   c0 = load(base - 3 * stride_x, {.mask = in}), c1 = load(base - 2 * stride_x, {.mask = in});
                   c2 = load(base - stride_x, {.mask = in});
                 });
             Tile W[4];
             for (int i = 0; i < 4; ++i) W[i] = cast(load(w + (f * 4 + i), {.mask = in}), f32);
             auto b = cast(load(bias + f, {.mask = in}), f32);
             for (auto t : range(0, count, 1, {.stages = c.stages, .unroll = c.unroll})) {
               auto now = load(base + cast(t, i64) * stride_x, {.mask = in});
               Tile acc = b + cast(c0, f32) * W[0];
               acc += cast(c1, f32) * W[1];
               acc += cast(c2, f32) * W[2];
               acc += cast(now, f32) * W[3];
               c0 = c1, c1 = c2, c2 = now;
               acc = acc / (1.f + exp(-acc));
               store(out + (cast(begin + offset + t, i64) * stride_o + cast(f, i64)), cast(acc, bf16), {.mask = in});
             }
           })
        .grid([](const ConvTokensCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int dim, int64_t,
                 int64_t, int64_t, int chunks) {
          return Grid{chunks, cdiv(dim, c.BN)};
        });
Register r2("conv_tokens", [](Env& e) {
  ConvTokensCfg c;
  if (!e.big) c = {4, 64, 4, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages), c.unroll = e.field("unroll", c.unroll);
  const int S = e.big ? 16 : 6, dim = e.big ? 8192 : 100;
  std::vector<int32_t> starts{0}, seqs, chunks;
  for (int s = 0; s < S; ++s) {
    starts.push_back(starts.back() + (e.big ? 1000 + 3 * s : std::array{9, 1, 4, 2, 13, 3}[s]));
    for (int i = 0; i * c.BM < starts[s + 1] - starts[s]; ++i) seqs.push_back(s), chunks.push_back(i);
  }
  const int T = starts.back(), n = int(seqs.size());
  auto start = filled<int32_t>(e, S + 1, [&](size_t i) { return starts[i]; });
  auto chunk_seq = filled<int32_t>(e, n, [&](size_t i) { return seqs[i]; });
  auto chunk_at = filled<int32_t>(e, n, [&](size_t i) { return chunks[i]; });
  auto state_of = filled<int32_t>(e, S, [&](size_t i) { return int32_t((i * 5 + 2) % (S + 3)); });
  if (S == 6) state_of = filled<int32_t>(e, S, [&](size_t i) { return int32_t((i * 5 + 2) % (S + 5)); });
  auto has = filled<int32_t>(e, S, [&](size_t i) { return int32_t(i % 3 != 1); });
  auto x = random<bfloat16>(e, size_t(T) * dim), w = random<bfloat16>(e, size_t(dim) * 4), b = random<bfloat16>(e, dim);
  auto state = random<bfloat16>(e, size_t(S + 5) * 3 * dim);
  auto out = constant<bfloat16>(e, size_t(T) * dim, NAN);
  Job j;
  j.mbytes = 4e-6 * T * dim;
  j.add(conv_tokens, c, x.p, w.p, b.p, state.p, state_of.p, has.p, start.p, chunk_seq.p, chunk_at.p, out.p, dim, dim,
        dim, int64_t(3) * dim, n);
  j.check = [=] {
    std::vector<double> want(size_t(T) * dim), kept(state.n);
    for (size_t i = 0; i < state.n; ++i) kept[i] = state[i];
    for (int s = 0; s < S; ++s)
      for (int f = 0; f < dim; ++f) {
        std::vector<double> row(3);
        for (int i = 0; i < 3; ++i) row[i] = has.at(s) ? state[(size_t(state_of.at(s)) * 3 + i) * dim + f] : 0;
        for (int t = starts[s]; t < starts[s + 1]; ++t) row.push_back(x[size_t(t) * dim + f]);
        for (int t = starts[s]; t < starts[s + 1]; ++t) {
          double sum = b[f];
          for (int i = 0; i < 4; ++i) sum += row[t - starts[s] + i] * w[f * 4 + i];
          want[size_t(t) * dim + f] = sum / (1 + std::exp(-sum));
        }
        for (int i = 0; i < 3; ++i) kept[(size_t(state_of.at(s)) * 3 + i) * dim + f] = row[row.size() - 3 + i];
      }
    const auto wrong = agree(out.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(state.now(), kept, 1e-6, 1e-6) : wrong;
  };
  return j;
});

// --- a token among the k best, in proportion to its probability (vLLM's exponential race): the threshold of a row by
// bisection, every step counts over the row
struct PivotCfg {
  int BLOCK = 4096, warps = 8;
};
auto pivot =
    kernel("user_pivot_sample", [](const PivotCfg& c, Ptr<const float> logits, Ptr<const float> noise,
                                   Ptr<const int32_t> ks, Ptr<int32_t> token, Ptr<float> threshold, I32 V, I32) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto x = logits + cast(row, i64) * cast(V, i64), q = noise + cast(row, i64) * cast(V, i64);
      auto at = arange(0, c.BLOCK);
      Tile most = full({c.BLOCK}, -INFINITY, f32), least = full({c.BLOCK}, INFINITY, f32);
      for (auto i : range(0, V, c.BLOCK)) {
        auto in = i + at < V;
        auto v = load(x + (i + at), {.mask = in});
        most = max(most, where(in, v, -INFINITY)), least = min(least, where(in, v, INFINITY));
      }
      auto top = max(most);
      Tile lo = min(least), hi = top;
      auto k = load(ks + row), eps = (top - lo) * 1e-6f;
      while_([&] { return hi - lo > eps; },
             [&] {
               auto mid = (lo + hi) * .5f;
               Tile n = zeros({c.BLOCK}, i32);
               for (auto i : range(0, V, c.BLOCK)) {
                 auto v = load(x + (i + at), {.mask = i + at < V, .other = -INFINITY});
                 n += cast(v >= mid, i32);
               }
               auto enough = sum(n) >= k;
               lo = where(enough, mid, lo), hi = where(enough, hi, mid);
             });
      Tile best = full({c.BLOCK}, -1.f, f32), where_best = zeros({c.BLOCK}, i32);
      for (auto i : range(0, V, c.BLOCK)) {
        auto in = i + at < V;
        auto v = load(x + (i + at), {.mask = in, .other = -INFINITY});
        auto r = where(v >= lo, exp(v - top) / load(q + (i + at), {.mask = in, .other = 1.f}), -1.f);
        where_best = where(r > best, i + at, where_best), best = max(best, r);
      }
      auto [value, lane] = max_with_index(best, axis(0));
      store(token + row, to_scalar(take(where_best, lane, 0)));
      store(threshold + row, lo);
    }).grid([](const PivotCfg&, auto, auto, auto, auto, auto, int, int rows) { return Grid{rows}; });
Register r3("pivot_sample", [](Env& e) {
  PivotCfg c;
  if (!e.big) c = {256, 4};
  c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 5, V = e.big ? 128256 : 1003;
  auto x = random<float>(e, size_t(B) * V, -10, 10), q = random<float>(e, size_t(B) * V, .01, 4);
  auto ks = filled<int32_t>(e, B, [&](size_t i) { return int32_t(1 + i * 17 % 90); });
  auto token = constant<int32_t>(e, B, 0);
  auto low = constant<float>(e, B, 0);
  Job j;
  j.mbytes = 8e-6 * B * V;
  j.add(pivot, c, x.p, q.p, ks.p, token.p, low.p, V, B);
  j.check = [=]() -> std::string {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> row;
      for (int i = 0; i < V; ++i) row.push_back(x[size_t(b) * V + i]);
      std::sort(row.rbegin(), row.rend());
      int best = -1;
      double most = -1;
      for (int i = 0; i < V; ++i) {
        const double v = x[size_t(b) * V + i], r = std::exp(v - row[0]) / q[size_t(b) * V + i];
        if (v >= row[ks.at(b) - 1] && r > most) most = r, best = i;
      }
      want.push_back(best);
    }
    return agree(token.now(), want, 0.1, 0);
  };
  return j;
});

// --- the k best of long rows, with their places: first of chunks, then of what the chunks left (FlagGems)
struct TopCfg {
  int CHUNK = 1024, K = 16, BC = 1024, warps = 4, warps2 = 4;
};
auto top_chunks = kernel("user_top_chunks", [](const TopCfg& c, Ptr<const float> x, Ptr<float> value,
                                               Ptr<int32_t> place, I32 N, I32 chunks, I32) {
                    num_warps(c.warps);
                    auto row = program_id(1), chunk = program_id(0);
                    auto i = chunk * c.CHUNK + arange(0, c.CHUNK);
                    auto v =
                        load(x + (cast(row, i64) * cast(N, i64) + cast(i, i64)), {.mask = i < N, .other = -INFINITY});
                    auto [best, at] = topk(v, c.K, axis(0));
                    auto to = (row * chunks + chunk) * c.K + arange(0, c.K);
                    store(value + to, best);
                    store(place + to, chunk * c.CHUNK + at);
                  }).grid([](const TopCfg&, auto, auto, auto, int, int chunks, int rows) {
  return Grid{chunks, rows};
});
auto top_join = kernel("user_top_join", [](const TopCfg& c, Ptr<const float> value, Ptr<const int32_t> place,
                                           Ptr<float> out, Ptr<int64_t> index, I32 n, I32) {
                  num_warps(c.warps2);
                  auto row = program_id(0);
                  auto i = arange(0, c.BC);
                  auto v = load(value + (row * n + i), {.mask = i < n, .other = -INFINITY});
                  auto p = load(place + (row * n + i), {.mask = i < n});
                  auto [best, at] = topk(v, c.K, axis(0));
                  store(out + (row * c.K + arange(0, c.K)), best);
                  store(index + (row * c.K + arange(0, c.K)), cast(take(p, at, 0), i64));
                }).grid([](const TopCfg&, auto, auto, auto, auto, int, int rows) { return Grid{rows}; });
Register r4("topk_two", [](Env& e) {
  TopCfg c;
  if (!e.big) c = {128, 4, 32, 4, 4};
  c.CHUNK = e.field("CHUNK", c.CHUNK), c.warps = e.field("warps", c.warps), c.warps2 = e.field("warps2", c.warps2);
  const int B = e.big ? 256 : 5, N = e.big ? 131072 : 1003, chunks = cdiv(N, c.CHUNK), K = c.K;
  c.BC = 1;
  while (c.BC < chunks * K) c.BC *= 2;
  auto x = random<float>(e, size_t(B) * N, -10, 10);
  auto v = constant<float>(e, size_t(B) * chunks * K, NAN);
  auto p = constant<int32_t>(e, size_t(B) * chunks * K, -1);
  auto out = constant<float>(e, size_t(B) * K, NAN);
  auto index = constant<int64_t>(e, size_t(B) * K, -1);
  Job j;
  j.mbytes = 4e-6 * B * N;
  j.add(top_chunks, c, x.p, v.p, p.p, N, chunks, B);
  j.add(top_join, c, v.p, p.p, out.p, index.p, chunks * K, B);
  j.check = [=] {
    std::vector<double> values, places;
    for (int b = 0; b < B; ++b) {
      std::vector<int> order(N);
      for (int i = 0; i < N; ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](int l, int r) { return x[size_t(b) * N + l] > x[size_t(b) * N + r]; });
      for (int i = 0; i < K; ++i) values.push_back(x[size_t(b) * N + order[i]]), places.push_back(order[i]);
    }
    const auto wrong = agree(out.now(), values, 0, 1e-7);
    return wrong.empty() ? agree(index.now(), places, .1, 0) : wrong;
  };
  return j;
});

}  // namespace beside_triton_served
}  // namespace users
