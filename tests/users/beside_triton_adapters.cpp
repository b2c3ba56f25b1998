// beside_triton_adapters.cpp - more of inference engines, by pointers: LoRA with tokens sorted by adapter, products
// of heads with a short K (absorbed MLA weights), one query a request over a latent cache of single tokens, running
// sums of long rows, depthwise convolutions.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_adapters {

// --- vLLM's lora_shrink and lora_expand kernels: rows of one adapter are named by a sorted list of tokens; shrink
// splits K and adds its parts by atomics, expand adds to what is there
struct LoraCfg {
  int BM = 32, BN = 16, BK = 128, SPLIT = 8, BM2 = 32, BN2 = 128, R = 16, stages = 0, warps = 4, warps2 = 4;
};
auto lora_shrink =
    kernel("user_lora_shrink_sorted",
           [](const LoraCfg& c, Ptr<const bfloat16> input, Ptr<const bfloat16> lora, Ptr<float> out, I32, I32 N, I32 K,
              Ptr<const int32_t> sorted, Ptr<const int32_t> counts, Ptr<const int32_t> starts, Ptr<const int32_t> ids,
              F32 scaling, I64 in_s, I64 lora_s0, I64 lora_s1, I64 out_s, I32) {
             num_warps(c.warps);
             auto pid = program_id(0), slot = program_id(1);
             auto id = load(ids + slot);
             return_if(id == -1);
             auto split = pid % c.SPLIT, m = pid / c.SPLIT;
             auto rows = load(counts + slot);
             return_if(m * c.BM >= rows);
             auto len = min(c.BM, rows - m * c.BM);
             auto first = load(starts + slot) + m * c.BM;
             auto offset = arange(0, c.BM);
             auto token = cast(load(sorted + (first + offset % len)), i64);
             auto n = arange(0, c.BN), k = split * c.BK + arange(0, c.BK);
             auto rank = n % N;
             auto a_p = input + (token * in_s).col() + cast(k, i64).row();
             auto b_p = lora + (cast(id, i64) * lora_s0 + (cast(rank, i64) * lora_s1).row() + cast(k, i64).col());
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto i : range(0, cdiv(K, c.BK * c.SPLIT), 1, {.stages = c.stages})) {
               auto left = K - i * (c.BK * c.SPLIT);
               auto a = load(a_p + i * (c.BK * c.SPLIT), {.mask = (k < left).row(), .other = 0.f});
               auto b = load(b_p + i * (c.BK * c.SPLIT), {.mask = (k < left).col(), .other = 0.f});
               acc = dot(a, b, acc);
             }
             atomic_add(out + ((token * out_s).col() + cast(n, i64).row()), acc * scaling,
                        {.mask = (offset < len).col() & (n < N).row()});
           })
        .grid([](const LoraCfg& c, auto, auto, auto, int M, int, int, auto, auto, auto, auto, float, int64_t, int64_t,
                 int64_t, int64_t, int slots) {
          return Grid{c.SPLIT * cdiv(M, c.BM), slots};
        });
auto lora_expand =
    kernel("user_lora_expand_sorted",
           [](const LoraCfg& c, Ptr<const float> input, Ptr<const bfloat16> lora, Ptr<bfloat16> out, I32, I32 N, I32 K,
              Ptr<const int32_t> sorted, Ptr<const int32_t> counts, Ptr<const int32_t> starts, Ptr<const int32_t> ids,
              I64 in_s, I64 lora_s0, I64 lora_s1, I64 out_s, I32) {
             num_warps(c.warps2);
             auto pid = program_id(0), slot = program_id(1), blocks = cdiv(N, c.BN2);
             auto id = load(ids + slot);
             return_if(id == -1);
             auto m = pid / blocks, nb = pid % blocks;
             auto rows = load(counts + slot);
             return_if(m * c.BM2 >= rows);
             auto len = min(c.BM2, rows - m * c.BM2);
             auto first = load(starts + slot) + m * c.BM2;
             auto offset = arange(0, c.BM2);
             auto token = cast(load(sorted + (first + offset % len)), i64);
             auto n = nb * c.BN2 + arange(0, c.BN2), k = arange(0, c.R);
             auto a = load(input + ((token * in_s).col() + cast(k, i64).row()), {.mask = (k < K).row(), .other = 0.f});
             auto b = load(lora + (cast(id, i64) * lora_s0 + (cast(n, i64) * lora_s1).row() + cast(k, i64).col()),
                           {.mask = (k < K).col() & (n < N).row(), .other = 0.f});
             auto t = dot(cast(a, bf16), b);
             auto to = out + ((token * out_s).col() + cast(n, i64).row());
             auto mask = (offset < len).col() & (n < N).row();
             store(to, cast(t, bf16) + load(to, {.mask = mask}), {.mask = mask});
           })
        .grid([](const LoraCfg& c, auto, auto, auto, int M, int N, int, auto, auto, auto, auto, int64_t, int64_t,
                 int64_t, int64_t, int slots) {
          return Grid{cdiv(M, c.BM2) * cdiv(N, c.BN2), slots};
        });
Register r1("lora_sorted", [](Env& e) {
  LoraCfg c;
  if (!e.big) c = {16, 16, 32, 3, 16, 32, 16, 0, 4, 4};
  c.BM = e.field("BM", c.BM), c.BK = e.field("BK", c.BK), c.SPLIT = e.field("SPLIT", c.SPLIT);
  c.BM2 = e.field("BM2", c.BM2), c.BN2 = e.field("BN2", c.BN2), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps), c.warps2 = e.field("warps2", c.warps2);
  const int T = e.big ? 8192 : 53, L = e.big ? 8 : 3, K = e.big ? 4096 : 200, N = e.big ? 4096 : 72,
            R = e.big ? 16 : 13;
  // token t has adapter (t / 16 * 5) % (L + 1); the last slot (first in the list) has none
  auto own = [=](int t) { return t / (e.big ? 16 : 3) * 5 % (L + 1) - 1; };
  std::vector<int32_t> order, count, begin, id;
  for (int l = -1; l < L; ++l) {
    begin.push_back(int(order.size()));
    for (int t = 0; t < T; ++t)
      if (own(t) == l) order.push_back(t);
    count.push_back(int(order.size()) - begin.back()), id.push_back(l);
  }
  auto list = [&](const std::vector<int32_t>& v) {
    return filled<int32_t>(e, v.size(), [&](size_t i) { return v[i]; });
  };
  auto sorted = list(order), counts = list(count), starts = list(begin), ids = list(id);
  auto x = random<bfloat16>(e, size_t(T) * K), a = random<bfloat16>(e, size_t(L) * R * K),
       b = random<bfloat16>(e, size_t(L) * N * R), y = random<bfloat16>(e, size_t(T) * N);
  auto mid = constant<float>(e, size_t(T) * R, 0);
  Job j;
  j.mbytes = 2e-6 * T * (K + 2. * N);
  j.add(lora_shrink, c, x.p, a.p, mid.p, T, R, K, sorted.p, counts.p, starts.p, ids.p, .5f, K, int64_t(R) * K, K, R,
        L + 1);
  j.add(lora_expand, c, mid.p, b.p, y.p, T, N, R, sorted.p, counts.p, starts.p, ids.p, R, int64_t(N) * R, R, N, L + 1);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int t = 0; t < T; ++t) {
      const int l = own(t);
      std::vector<double> m(R);
      for (int r = 0; r < R && l >= 0; ++r)
        for (int k = 0; k < K; ++k) m[r] += .5 * x[size_t(t) * K + k] * a[(size_t(l) * R + r) * K + k];
      for (int n = 0; n < N; ++n) {
        double s = y[size_t(t) * N + n];
        for (int r = 0; r < R && l >= 0; ++r) s += m[r] * b[(size_t(l) * N + n) * R + r];
        want[size_t(t) * N + n] = s;
      }
    }
    return agree(y.now(), want, 6e-2, 2e-2);
  };
  return j;
});

// --- queries of MLA through the absorbed weights: for every head [T, 128] times [512, 128] transposed; K is two steps
struct AbsorbCfg {
  int BM = 128, BN = 128, BK = 64, stages = 0, warps = 8;
};
auto absorb = kernel("user_absorb_bmm",
                     [](const AbsorbCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<bfloat16> y, I32 M, I32 N,
                        I32 K, I64 xs_t, I64 xs_h, I64 ws_h, I64 ws_n, I64 ys_t, I64 ys_h, I32) {
                       num_warps(c.warps);
                       auto blocks = cdiv(N, c.BN);
                       auto m = program_id(0) / blocks * c.BM + arange(0, c.BM),
                            n = program_id(0) % blocks * c.BN + arange(0, c.BN);
                       auto h = cast(program_id(1), i64);
                       auto k = arange(0, c.BK);
                       auto a = x + (h * xs_h + (cast(m % M, i64) * xs_t).col() + cast(k, i64).row());
                       auto b = w + (h * ws_h + (cast(n % N, i64) * ws_n).row() + cast(k, i64).col());
                       Tile acc = zeros({c.BM, c.BN}, f32);
                       for (auto i : range(0, cdiv(K, c.BK), 1, {.stages = c.stages})) {
                         auto in = k < K - i * c.BK;
                         acc = dot(load(a + i * c.BK, {.mask = in.row()}), load(b + i * c.BK, {.mask = in.col()}), acc);
                       }
                       store(y + (h * ys_h + (cast(m, i64) * ys_t).col() + cast(n, i64).row()), cast(acc, bf16),
                             {.mask = (m < M).col() & (n < N).row()});
                     })
                  .grid([](const AbsorbCfg& c, auto, auto, auto, int M, int N, int, int64_t, int64_t, int64_t, int64_t,
                           int64_t, int64_t, int H) {
                    return Grid{cdiv(M, c.BM) * cdiv(N, c.BN), H};
                  });
Register r2("absorb_bmm", [](Env& e) {
  AbsorbCfg c;
  if (!e.big) c = {32, 32, 16, 0, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1024 : 37, H = e.big ? 128 : 3, K = e.big ? 128 : 40, N = e.big ? 512 : 72;
  auto x = random<bfloat16>(e, size_t(T) * H * K), w = random<bfloat16>(e, size_t(H) * N * K);
  auto y = constant<bfloat16>(e, size_t(T) * H * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * H * double(K) * N;
  j.mbytes = 2e-6 * (x.n + w.n + y.n);
  j.add(absorb, c, x.p, w.p, y.p, T, N, K, int64_t(H) * K, K, int64_t(N) * K, K, int64_t(H) * N, N, H);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t)
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int k = 0; k < K; ++k) s += x[(size_t(t) * H + h) * K + k] * w[(size_t(h) * N + n) * K + k];
          want[(size_t(t) * H + h) * N + n] = s;
        }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- SGLang's _fwd_grouped_kernel_stage1 and stage2 for MLA: 512 + 64 numbers a token, one head of keys, tokens named
// one by one; values are read again from the first 512
struct MlaCfg {
  int BH = 16, BN = 32, DV = 512, DPE = 64, SPLITS = 8, stages = 0, warps = 4;
};
auto mla_stage1 =
    kernel("user_mla_tokens",
           [](const MlaCfg& c, Ptr<const bfloat16> Q, Ptr<const bfloat16> KV, Ptr<const int32_t> indptr,
              Ptr<const int32_t> indices, Ptr<float> att, Ptr<float> lse, F32 scale, I32 heads, I64 qs_b, I64 qs_h,
              I64 kv_s, I32) {
             num_warps(c.warps);
             auto b = program_id(0), split = program_id(2);
             auto h = program_id(1) * c.BH + arange(0, c.BH);
             auto in_h = h < heads;
             auto d = arange(0, c.DV), dpe = c.DV + arange(0, c.DPE);
             auto start = load(indptr + b), len = load(indptr + b + 1) - start;
             auto per = cdiv(cdiv(len, c.SPLITS), 32) * 32;
             auto begin = per * split, end = min(begin + per, len);
             return_if(end <= begin);
             auto q_at = cast(b, i64) * qs_b + cast(h, i64) * qs_h;
             auto q = load(Q + (q_at.col() + cast(d, i64).row()), {.mask = in_h.col()});
             auto qpe = load(Q + (q_at.col() + cast(dpe, i64).row()), {.mask = in_h.col()});
             Tile top = full({c.BH, 1}, -INFINITY, f32), total = zeros({c.BH, 1}, f32), acc = zeros({c.BH, c.DV}, f32);
             for (auto at : range(begin, end, c.BN, {.stages = c.stages})) {
               auto n = at + arange(0, c.BN);
               auto in = n < end;
               auto loc = cast(load(indices + (start + n), {.mask = in, .other = 0}), i64) * kv_s;
               auto k = load(KV + (loc.row() + cast(d, i64).col()), {.mask = in.row()});
               auto kpe = load(KV + (loc.row() + cast(dpe, i64).col()), {.mask = in.row()});
               auto s = dot(qpe, kpe, dot(q, k)) * (scale * 1.44269504f);
               s = where(in_h.col() & in.row(), s, -INFINITY);
               auto v = load(KV + (loc.col() + cast(d, i64).row()), {.mask = in.col()});
               auto now = max(max(s, axis(1)), top);
               auto old = exp2(top - now), p = exp2(s - now);
               acc = dot(cast(p, bf16), v, acc * old);
               total = total * old + sum(p, axis(1));
               top = now;
             }
             auto to = (b * heads + h) * c.SPLITS + split;
             store(att + ((cast(to, i64) * c.DV).col() + cast(d, i64).row()), acc / total, {.mask = in_h.col()});
             store(lse + to, squeeze(top + log2(total), 1), {.mask = in_h});
           })
        .grid([](const MlaCfg& c, auto, auto, auto, auto, auto, auto, float, int heads, int64_t, int64_t, int64_t,
                 int B) {
          return Grid{B, cdiv(heads, c.BH), c.SPLITS};
        });
auto mla_stage2 = kernel("user_mla_tokens_join", [](const MlaCfg& c, Ptr<const float> att, Ptr<const float> lse,
                                                    Ptr<const int32_t> indptr, Ptr<bfloat16> out, I32 heads, I32) {
                    num_warps(4);
                    auto b = program_id(0), h = program_id(1), d = arange(0, c.DV);
                    auto len = load(indptr + b + 1) - load(indptr + b);
                    auto per = cdiv(cdiv(len, c.SPLITS), 32) * 32;
                    Tile top = full({}, -INFINITY, f32), total = zeros({}, f32), acc = zeros({c.DV}, f32);
                    for (auto split : range(0, c.SPLITS)) {
                      if_(per * split < len, [&] {
                        auto at = (b * heads + h) * c.SPLITS + split;
                        auto v = load(att + (cast(at, i64) * c.DV + cast(d, i64)));
                        auto l = load(lse + at);
                        auto now = max(l, top);
                        auto old = exp2(top - now), mine = exp2(l - now);
                        acc = acc * old + mine * v, total = total * old + mine, top = now;
                      });
                    }
                    store(out + ((b * heads + h) * c.DV + d), cast(acc / total, bf16));
                  }).grid([](const MlaCfg&, auto, auto, auto, auto, int heads, int B) {
  return Grid{B, heads};
});
Register r3("mla_tokens", [](Env& e) {
  MlaCfg c;
  if (!e.big) c = {16, 16, 64, 16, 3, 0, 4};
  c.BH = e.field("BH", c.BH), c.BN = e.field("BN", c.BN), c.SPLITS = e.field("SPLITS", c.SPLITS);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 3, H = e.big ? 32 : 5, W = c.DV + c.DPE;
  std::vector<int32_t> begins{0};
  for (int b = 0; b < B; ++b)
    begins.push_back(begins.back() + (e.big ? 4096 - 37 * (b % 16) : std::array{50, 1, 97}[b]));
  const int total = begins.back(), slots = total + 11;
  auto indptr = filled<int32_t>(e, B + 1, [&](size_t i) { return begins[i]; });
  auto indices = filled<int32_t>(e, total, [&](size_t i) { return int32_t(i * 7919 % slots); });
  auto q = random<bfloat16>(e, size_t(B) * H * W), kv = random<bfloat16>(e, size_t(slots) * W);
  auto att = constant<float>(e, size_t(B) * H * c.SPLITS * c.DV, NAN),
       lse = constant<float>(e, size_t(B) * H * c.SPLITS, NAN);
  auto out = constant<bfloat16>(e, size_t(B) * H * c.DV, NAN);
  const float scale = 1 / std::sqrt(float(W));
  Job j;
  j.gflop = 2e-9 * total * H * double(W + c.DV);
  j.mbytes = 2e-6 * total * W;
  j.add(mla_stage1, c, q.p, kv.p, indptr.p, indices.p, att.p, lse.p, scale, H, int64_t(H) * W, W, W, B);
  j.add(mla_stage2, c, att.p, lse.p, indptr.p, out.p, H, B);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        const int n = begins[b + 1] - begins[b];
        std::vector<double> p(n);
        double sum = 0;
        auto row = [&](int i) { return size_t(indices.at(begins[b] + i)) * W; };
        for (int i = 0; i < n; ++i) {
          for (int x = 0; x < W; ++x) p[i] += q[(size_t(b) * H + h) * W + x] * kv[row(i) + x] * scale;
          sum += p[i] = std::exp(p[i]);
        }
        for (int i = 0; i < n; ++i)
          for (int x = 0; x < c.DV; ++x) want[(size_t(b) * H + h) * c.DV + x] += p[i] / sum * kv[row(i) + x];
      }
    return agree(out.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- running sums of long rows: a program has a few rows and carries their sums from block to block
struct CumsumCfg {
  int BR = 1, BLOCK = 2048, warps = 4;
};
auto cumsum_rows = kernel("user_cumsum_rows", [](const CumsumCfg& c, Ptr<const half> x, Ptr<float> y, I32 rows, I32 n) {
                     num_warps(c.warps);
                     auto r = program_id(0) * c.BR + arange(0, c.BR);
                     auto base = cast(r, i64) * cast(n, i64);
                     Tile carry = zeros({c.BR, 1}, f32);
                     for (auto j : range(0, n, c.BLOCK)) {
                       auto i = j + arange(0, c.BLOCK);
                       auto mask = (r < rows).col() & (i < n).row();
                       auto v = cast(load(x + (base.col() + cast(i, i64).row()), {.mask = mask}), f32);
                       store(y + (base.col() + cast(i, i64).row()), cumsum(v, axis(1)) + carry, {.mask = mask});
                       carry += sum(v, axis(1));
                     }
                   }).grid([](const CumsumCfg& c, auto, auto, int rows, int) { return Grid{cdiv(rows, c.BR)}; });
Register r4("cumsum_rows", [](Env& e) {
  CumsumCfg c;
  if (!e.big) c = {2, 64, 4};
  c.BR = e.field("BR", c.BR), c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 2048 : 7, N = e.big ? 32768 : 501;
  auto x = random<half>(e, size_t(B) * N);
  auto y = constant<float>(e, size_t(B) * N, NAN);
  Job j;
  j.mbytes = 6e-6 * B * N;
  j.add(cumsum_rows, c, x.p, y.p, B, N);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int b = 0; b < B; ++b) {
      double s = 0;
      for (int i = 0; i < N; ++i) want[size_t(b) * N + i] = s += x[size_t(b) * N + i];
    }
    return agree(y.now(), want, 1e-3, 1e-5);
  };
  return j;
});

// --- a depthwise convolution channels first, taps unrolled, a tile of outputs of one plane
struct DepthCfg {
  int BH = 8, BW = 64, R = 5, warps = 4;
};
auto depth_planes = kernel("user_depth_planes", [](const DepthCfg& c, Ptr<const half> x, Ptr<const half> w,
                                                   Ptr<const half> bias, Ptr<half> y, I32 C, I32 H, I32 W, I32) {
                      num_warps(c.warps);
                      auto plane = program_id(2), ch = plane % C;
                      auto h = program_id(1) * c.BH + arange(0, c.BH), v = program_id(0) * c.BW + arange(0, c.BW);
                      auto from = x + cast(plane, i64) * cast(H * W, i64), to = y + cast(plane, i64) * cast(H * W, i64);
                      Tile acc = zeros({c.BH, c.BW}, f32);
                      for (int r = 0; r < c.R; ++r)
                        for (int s = 0; s < c.R; ++s) {
                          auto hh = h + (r - c.R / 2), vv = v + (s - c.R / 2);
                          auto mask = ((hh >= 0) & (hh < H)).col() & ((vv >= 0) & (vv < W)).row();
                          auto a = load(from + ((hh * W).col() + vv.row()), {.mask = mask});
                          acc += cast(a, f32) * cast(load(w + (ch * (c.R * c.R) + (r * c.R + s))), f32);
                        }
                      acc += cast(load(bias + ch), f32);
                      store(to + ((h * W).col() + v.row()), cast(acc, f16), {.mask = (h < H).col() & (v < W).row()});
                    }).grid([](const DepthCfg& c, auto, auto, auto, auto, int, int H, int W, int planes) {
  return Grid{cdiv(W, c.BW), cdiv(H, c.BH), planes};
});
Register r5("depth_planes", [](Env& e) {
  DepthCfg c;
  if (!e.big) c = {4, 16, 3, 4};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 16 : 2, C = e.big ? 256 : 3, H = e.big ? 112 : 9, W = e.big ? 112 : 21;
  auto x = random<half>(e, size_t(N) * C * H * W), w = random<half>(e, size_t(C) * c.R * c.R), b = random<half>(e, C);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(depth_planes, c, x.p, w.p, b.p, y.p, C, H, W, N * C);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int p = 0; p < N * C; ++p)
      for (int h = 0; h < H; ++h)
        for (int v = 0; v < W; ++v) {
          double s = b[p % C];
          for (int r = 0; r < c.R; ++r)
            for (int t = 0; t < c.R; ++t) {
              const int hh = h + r - c.R / 2, vv = v + t - c.R / 2;
              if (hh >= 0 && hh < H && vv >= 0 && vv < W)
                s += x[(size_t(p) * H + hh) * W + vv] * w[(p % C) * c.R * c.R + r * c.R + t];
            }
          want[(size_t(p) * H + h) * W + v] = s;
        }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

}  // namespace beside_triton_adapters
}  // namespace users
