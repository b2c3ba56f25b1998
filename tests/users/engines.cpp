// engines.cpp - kernels of inference engines in their own idiom: tokens sorted by expert in padded blocks, products of
// experts over them in 8 bits with scales of blocks, decoding over a cache of single tokens in parts, scores convolved
// before the softmax.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace engines {

// --- tokens aligned to blocks of an expert (vLLM): counts per thread, their sums, places; padding names no token
struct AlignCfg {
  int E = 64, block = 16, threads = 64, warps = 2;
};
auto align_counts = kernel("user_align_counts", [](const AlignCfg& c, Ptr<const int32_t> experts, Ptr<int32_t> counts,
                                                   I32 n, I32 per) {
  // counts [threads + 1, E]: row t + 1 is thread t's
  num_warps(c.warps);
  auto t = program_id(0);
  Tile mine = zeros({c.E}, i32);
  for (auto i : range(t * per, min((t + 1) * per, n), 256)) {
    auto at = i + arange(0, 256);
    mine += histogram(load(experts + at, {.mask = at < min((t + 1) * per, n)}), c.E,
                      {.mask = at < min((t + 1) * per, n)});
  }
  store(counts + ((t + 1) * c.E + arange(0, c.E)), mine);
}).grid([](const AlignCfg& c, auto...) { return Grid{c.threads}; });
auto align_sums = kernel("user_align_sums", [](const AlignCfg& c, Ptr<int32_t> counts, Ptr<int32_t> starts,
                                               Ptr<int32_t> total) {
  // one program: counts become what stands in front of a thread's tokens, starts [E + 1] of padded blocks
  num_warps(c.warps);
  auto e = arange(0, c.E);
  Tile sum = zeros({c.E}, i32);
  for (auto t : range(0, c.threads + 1)) {
    auto p = counts + (t * c.E + e);
    sum += load(p);
    store(p, sum);
  }
  auto padded = cdiv(sum, c.block) * c.block;
  auto ends = cumsum(padded, axis(0));
  store(starts, 0);
  store(starts + (e + 1), ends);
  store(total, tile::sum(padded));
}).grid([](const AlignCfg&, auto...) { return Grid{1}; });
auto align_places = kernel("user_align_places", [](const AlignCfg& c, Ptr<const int32_t> experts,
                                                   Ptr<int32_t> counts, Ptr<const int32_t> starts,
                                                   Ptr<int32_t> sorted, Ptr<int32_t> owner, I32 n, I32 per) {
  // every thread walks over its tokens; programs fill in the owners of their expert's blocks
  num_warps(1);
  auto t = program_id(0);
  for (auto e : range(t, c.E, c.threads))
    for (auto i : range(load(starts + e), load(starts + e + 1), c.block)) store(owner + i / c.block, e);
  for (auto i : range(t * per, min((t + 1) * per, n))) {
    auto e = load(experts + i);
    auto p = counts + (t * c.E + e);
    auto rank = load(p);
    store(sorted + (load(starts + e) + rank), i);
    store(p, rank + 1);
  }
}).grid([](const AlignCfg& c, auto...) { return Grid{c.threads}; });
Register r1("moe_align", [](Env& e) {
  AlignCfg c;
  if (!e.big) c = {8, 4, 3, 1};
  const int n = e.big ? 65536 : 101, per = (n + c.threads - 1) / c.threads, most = n + c.E * (c.block - 1);
  auto experts = integers<int32_t>(e, n, 0, c.E);
  auto counts = constant<int32_t>(e, (c.threads + 1) * c.E, 0), starts = constant<int32_t>(e, c.E + 1, -1),
       total = constant<int32_t>(e, 1, -1), owner = constant<int32_t>(e, (most + c.block - 1) / c.block, -1);
  auto sorted = filled<int32_t>(e, most, [&](size_t) { return n; });
  Job j;
  j.inTurn = true;
  j.add(align_counts, c, experts.p, counts.p, n, per);
  j.add(align_sums, c, counts.p, starts.p, total.p);
  j.add(align_places, c, experts.p, counts.p, starts.p, sorted.p, owner.p, n, per);
  j.check = [=]() -> std::string {
    const auto got = sorted.now(), own = owner.now();
    size_t at = 0;
    for (int x = 0; x < c.E; ++x) {
      std::vector<int> mine;
      for (int i = 0; i < n; ++i)
        if (experts.at(i) == x) mine.push_back(i);
      for (size_t k = 0; k < (mine.size() + c.block - 1) / c.block * c.block; ++k, ++at) {
        if (got[at] != (k < mine.size() ? mine[k] : n)) return "place " + std::to_string(at);
        if (own[at / c.block] != x) return "block " + std::to_string(at / c.block);
      }
    }
    return total.now()[0] == int(at) ? "" : "total";
  };
  return j;
});

// --- the products of experts over sorted tokens (vLLM): operands of 8 bits, scales for 128 columns of a token and for
// 128 x 128 of a weight, routed weight behind it
struct MoeFp8Cfg {
  int BM = 64, BN = 128, BK = 128, group = 8, stages = 3, warps = 4;
};
auto moe_fp8 = kernel("user_moe_fp8", [](const MoeFp8Cfg& c, Ptr<const fp8_e4m3> A, Ptr<const fp8_e4m3> B,
                                         Ptr<bfloat16> C, Ptr<const float> as, Ptr<const float> bs,
                                         Ptr<const float> routed, Ptr<const int32_t> sorted, Ptr<const int32_t> owner,
                                         Ptr<const int32_t> total, I32 N, I32 K, I32 EM, I32 n, I32 top_k, I64 am,
                                         I64 be, I64 bn, I64 cm) {
  // A [n / top_k, K], B [E, N, K], C [n, N], as [n / top_k, K / 128], bs [E, N / 128, K / 128], routed [n]
  num_warps(c.warps);
  auto pid = program_id(0);
  auto pids_m = cdiv(EM, c.BM), pids_n = cdiv(N, c.BN);
  auto in_group = c.group * pids_n;
  auto first = pid / in_group * c.group, size = min(pids_m - first, c.group);
  auto pid_m = first + pid % in_group % size, pid_n = pid % in_group / size;
  return_if(pid_m * c.BM >= load(total));
  auto token = load(sorted + pid_m * c.BM + arange(0, c.BM));
  auto real = token < n;
  auto expert = cast(load(owner + pid_m), i64);
  auto row = cast(token / top_k, i64);
  auto columns = (pid_n * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
  Tile ap = A + (row.col() * am + cast(k.row(), i64));
  Tile bp = B + expert * be + (cast(k.col(), i64) + cast(columns.row(), i64) * bn);
  auto blocks = cdiv(K, 128);
  auto asp = as + row * cast(blocks, i64);
  auto bsp = bs + expert * cast(cdiv(N, 128) * blocks, i64) + pid_n * c.BN / 128 * blocks;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto at : range(0, blocks, {.stages = c.stages})) {
    auto a = load(ap, {.mask = real.col() & (k.row() < K - at * c.BK)});
    auto b = load(bp, {.mask = k.col() < K - at * c.BK});
    auto sa = load(asp + at, {.mask = real}), sb = load(bsp + at);
    acc += dot(a, b) * sa.col() * sb;
    ap += c.BK;
    bp += c.BK;
  }
  acc = acc * load(routed + token, {.mask = real}).col();
  auto n_at = pid_n * c.BN + arange(0, c.BN);
  store(C + (cast(token.col(), i64) * cm + cast(n_at.row(), i64)), cast(acc, bf16),
        {.mask = real.col() & (n_at.row() < N)});
}).grid([](const MoeFp8Cfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int N, int, int EM, auto...) {
  return Grid{cdiv(EM, c.BM) * cdiv(N, c.BN)};
});
Register r2("moe_fp8", [](Env& e) {
  MoeFp8Cfg c;
  if (!e.big) c.BM = 16, c.stages = 2, c.warps = 4;
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int E = e.big ? 64 : 3, K = e.big ? 2048 : 256, N = e.big ? 2816 : 128, T = e.big ? 8192 : 19, top = e.big ? 6 : 2;
  const int n = T * top;
  std::vector<int32_t> sorted, owner;
  auto expert = [E](int i) { return (i * 7 + i / 3) % E; };
  for (int x = 0; x < E; ++x) {
    for (int i = 0; i < n; ++i)
      if (expert(i) == x) sorted.push_back(i);
    while (sorted.size() % c.BM) sorted.push_back(n);
    owner.resize(sorted.size() / c.BM, x);
  }
  const int EM = int(sorted.size());
  auto sort = filled<int32_t>(e, EM, [&](size_t i) { return sorted[i]; });
  auto own = filled<int32_t>(e, owner.size(), [&](size_t i) { return owner[i]; });
  auto total = constant<int32_t>(e, 1, EM);
  if (e.device) total = filled<int32_t>(e, 1, [&](size_t) { return EM; });
  auto a = random<fp8_e4m3>(e, size_t(T) * K), b = random<fp8_e4m3>(e, size_t(E) * N * K);
  auto as = random<float>(e, size_t(T) * K / 128, .5, 2), bs = random<float>(e, size_t(E) * (N / 128) * (K / 128), .5, 2),
       routed = random<float>(e, n, 0, 1);
  auto out = constant<bfloat16>(e, size_t(n) * N, NAN);
  Job j;
  j.gflop = 2e-9 * n * double(N) * K;
  j.add(moe_fp8, c, a.p, b.p, out.p, as.p, bs.p, routed.p, sort.p, own.p, total.p, N, K, EM, n, top, int64_t(K),
        int64_t(N) * K, int64_t(K), int64_t(N));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i)
      for (int y = 0; y < N; ++y) {
        double s = 0;
        const int x = expert(i), t = i / top;
        for (int k = 0; k < K; ++k)
          s += a[size_t(t) * K + k] * b[(size_t(x) * N + y) * K + k] * as[size_t(t) * (K / 128) + k / 128] *
               bs[(size_t(x) * (N / 128) + y / 128) * (K / 128) + k / 128];
        want.push_back(s * routed[i]);
      }
    return agree(out.now(), want, 5e-2, 2e-2);
  };
  return j;
});

// --- decoding over a cache of single tokens (lightllm): a table row per request names the tokens' slots; parts of the
// sequence by several programs, then together. The queries of a head of keys are one tile
struct TokenAttentionCfg {
  int BH = 16, BN = 64, D = 128, part = 512, stages = 2, warps = 4;
};
auto token_parts = kernel("user_token_parts", [](const TokenAttentionCfg& c, Ptr<const half> Q, Ptr<const half> K,
                                                 Ptr<const half> V, Ptr<const int32_t> table, Ptr<const int32_t> lengths,
                                                 Ptr<float> mid, Ptr<float> lse, F32 scale, I32 heads, I32 kv_heads,
                                                 I32 most, I32 parts, I32 /*batch*/) {
  // Q [B, heads, D], K, V [slots, kv_heads, D], table [B, most], mid [B, heads, parts, D], lse [B, heads, parts]
  num_warps(c.warps);
  auto b = program_id(0), g = program_id(1), s = program_id(2);
  auto length = load(lengths + b), shared = heads / kv_heads;
  auto first = s * c.part, end = min(first + c.part, length);
  return_if(first >= length);
  auto h = g * shared + arange(0, c.BH), d = arange(0, c.D), n = arange(0, c.BN);
  auto has = arange(0, c.BH) < shared;
  auto q = load(Q + ((b * heads + h).col() * c.D + d.row()), {.mask = has.col()});
  Tile top = full({c.BH, 1}, -INFINITY, f32), total = zeros({c.BH, 1}, f32), acc = zeros({c.BH, c.D}, f32);
  for (auto at : range(first, end, c.BN, {.stages = c.stages})) {
    auto inside = at + n < end;
    auto slot = cast(load(table + (b * most + at + n), {.mask = inside}), i64);
    auto k = load(K + ((slot.row() * cast(kv_heads, i64) + cast(g, i64)) * c.D + d.col()), {.mask = inside.row()});
    auto qk = where(inside.row(), dot(q, k) * (scale * 1.44269504f), -INFINITY);
    auto now = max(top, max(qk, axis(1)));
    auto p = exp2(qk - now), alpha = exp2(top - now);
    auto v = load(V + ((slot.col() * cast(kv_heads, i64) + cast(g, i64)) * c.D + d.row()), {.mask = inside.col()});
    acc = dot(cast(p, f16), v, acc * alpha);
    total = total * alpha + sum(p, axis(1));
    top = now;
  }
  auto at = (b * heads + h) * parts + s;
  store(mid + (at.col() * c.D + d.row()), acc / total, {.mask = has.col()});
  store(lse + at, squeeze(top + log2(total), 1), {.mask = has});
}).grid([](const TokenAttentionCfg&, auto, auto, auto, auto, auto, auto, auto, float, int, int kv, int, int parts,
           int batch) {
  return Grid{batch, kv, parts};
});
auto token_merge = kernel("user_token_merge", [](const TokenAttentionCfg& c, Ptr<const float> mid, Ptr<const float> lse,
                                                 Ptr<const int32_t> lengths, Ptr<half> O, I32 heads, I32 parts,
                                                 I32 /*batch*/) {
  num_warps(1);
  auto b = program_id(0), h = program_id(1), d = arange(0, c.D);
  auto row = b * heads + h;
  Tile top = full({}, -INFINITY, f32), total = zeros({}, f32), acc = zeros({c.D}, f32);
  for (auto s : range(0, cdiv(load(lengths + b), c.part))) {
    auto v = load(mid + (cast(row * parts + s, i64) * c.D + d)), l = load(lse + (row * parts + s));
    auto now = max(top, l);
    auto old = exp2(top - now), fresh = exp2(l - now);
    acc = acc * old + fresh * v;
    total = total * old + fresh;
    top = now;
  }
  store(O + (row * c.D + d), cast(acc / total, f16));
}).grid([](const TokenAttentionCfg&, auto, auto, auto, auto, int heads, int, int batch) { return Grid{batch, heads}; });
Register r3("token_attention", [](Env& e) {
  TokenAttentionCfg c;
  if (!e.big) c = {16, 16, 32, 32, 2, 1};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 64 : 3, heads = e.big ? 32 : 6, kv = e.big ? 8 : 2, most = e.big ? 4096 : 97, D = c.D;
  const int parts = (most + c.part - 1) / c.part, slots = B * most;
  auto length = filled<int32_t>(e, B, [&](size_t b) { return e.big ? 3000 + int(b) * 17 : 1 + int(b) * 40; });
  auto table = filled<int32_t>(e, size_t(B) * most, [&](size_t i) { return int32_t(i * 7919 % slots); });
  auto q = random<half>(e, size_t(B) * heads * D), k = random<half>(e, size_t(slots) * kv * D),
       v = random<half>(e, size_t(slots) * kv * D), o = constant<half>(e, size_t(B) * heads * D, NAN);
  auto mid = constant<float>(e, size_t(B) * heads * parts * D, NAN), lse = constant<float>(e, size_t(B) * heads * parts, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = e.big ? 4e-6 * kv * D * (3000. * B + 17. * B * (B - 1) / 2) : 0;
  j.add(token_parts, c, q.p, k.p, v.p, table.p, length.p, mid.p, lse.p, scale, heads, kv, most, parts, B);
  j.add(token_merge, c, mid.p, lse.p, length.p, o.p, heads, parts, B);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < heads; ++h) {
        const int g = h / (heads / kv), n = length.at(b);
        std::vector<double> s(n), out(D);
        double sum = 0;
        auto at = [&](int i, int d) { return (size_t(table.at(size_t(b) * most + i)) * kv + g) * D + d; };
        for (int i = 0; i < n; ++i) {
          for (int d = 0; d < D; ++d) s[i] += q[(size_t(b) * heads + h) * D + d] * k[at(i, d)] * scale;
          sum += s[i] = std::exp(s[i]);
        }
        for (int i = 0; i < n; ++i)
          for (int d = 0; d < D; ++d) out[d] += s[i] / sum * v[at(i, d)];
        want.insert(want.end(), out.begin(), out.end());
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

}  // namespace engines
}  // namespace users
