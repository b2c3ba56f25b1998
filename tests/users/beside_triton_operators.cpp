// beside_triton_operators.cpp - operators as FlagGems has them in Triton: convolutions of pictures channels first
// (products over one tap and a block of channels at a time), batch norm in training with one program a channel,
// gradients of embeddings by atomics; and LightLLM's attention of single tokens without tensor cores.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_operators {

// --- conv2d_forward_kernel: rows are pixels of all pictures, columns channels; taps and blocks of channels in one loop
struct NchwCfg {
  int BM = 128, BN = 64, BK = 32, R = 3, S = 3, stride = 1, pad = 1, stages = 0, warps = 4;
};
auto conv_nchw =
    kernel("user_conv_nchw", [](const NchwCfg& c, Ptr<const half> input, Ptr<const half> weight, Ptr<const half> bias,
                                Ptr<half> out, I32 in_n, I32 H, I32 W, I32 out_c, I32 OH, I32 OW, I32 channels,
                                I32 in_ns, I32 in_cs, I32 in_hs, I32 in_ws, I32 w_ns, I32 w_cs, I32 w_hs, I32 w_ws,
                                I32 out_ns, I32 out_cs, I32 out_hs, I32 out_ws) {
      num_warps(c.warps);
      auto r = program_id(0) * c.BM + arange(0, c.BM), co = program_id(1) * c.BN + arange(0, c.BN);
      auto n_ho = r / OW, n = n_ho / OH, ho = n_ho % OH, wo = r % OW;
      auto in_p = input + (in_ns * n).col(), w_p = weight + (w_ns * co).row();
      auto blocks = cdiv(channels, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto hwc : range(0, c.R * c.S * blocks, 1, {.stages = c.stages})) {
        auto ch = hwc % blocks * c.BK + arange(0, c.BK), hw = hwc / blocks;
        auto h = hw / c.S, w = hw % c.S;
        auto y = h - c.pad + c.stride * ho, x = w - c.pad + c.stride * wo;
        auto a = load(in_p + (in_cs * ch).row() + (in_hs * y).col() + (in_ws * x).col(),
                      {.mask = (n < in_n).col() & (ch < channels).row() & (y >= 0).col() & (y < H).col() &
                               (x >= 0).col() & (x < W).col()});
        auto b = load(w_p + (w_cs * ch).col() + (w_hs * h) + (w_ws * w),
                      {.mask = (ch < channels).col() & (co < out_c).row()});
        acc = dot(a, b, acc);
      }
      acc += cast(load(bias + co, {.mask = co < out_c}), f32).row();
      store(out + (out_ns * n).col() + (out_cs * co).row() + (out_hs * ho).col() + (out_ws * wo).col(), cast(acc, f16),
            {.mask = (n < in_n).col() & (co < out_c).row()});
    }).grid([](const NchwCfg& c, auto, auto, auto, auto, int n, int, int, int k, int oh, int ow, auto...) {
      return Grid{cdiv(n * oh * ow, c.BM), cdiv(k, c.BN)};
    });
Register r1("conv_nchw", [](Env& e) {
  NchwCfg c;
  if (!e.big) c = {32, 16, 16, 3, 2, 2, 1, 0, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 16 : 3, C = e.big ? 128 : 19, K = e.big ? 128 : 21, H = e.big ? 56 : 9, W = e.big ? 56 : 11;
  const int OH = (H + 2 * c.pad - c.R) / c.stride + 1, OW = (W + 2 * c.pad - c.S) / c.stride + 1;
  auto x = random<half>(e, size_t(N) * C * H * W), w = random<half>(e, size_t(K) * C * c.R * c.S, -.2, .2),
       b = random<half>(e, K), y = constant<half>(e, size_t(N) * K * OH * OW, NAN);
  Job j;
  j.gflop = 2e-9 * N * OH * OW * double(K) * C * c.R * c.S;
  j.add(conv_nchw, c, x.p, w.p, b.p, y.p, N, H, W, K, OH, OW, C, C * H * W, H * W, W, 1, C * c.R * c.S, c.R * c.S, c.S,
        1, K * OH * OW, OH * OW, OW, 1);
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < K; ++k)
        for (int p = 0; p < OH; ++p)
          for (int q = 0; q < OW; ++q) {
            double s = b[k];
            for (int ch = 0; ch < C; ++ch)
              for (int r = 0; r < c.R; ++r)
                for (int t = 0; t < c.S; ++t) {
                  const int h = p * c.stride + r - c.pad, v = q * c.stride + t - c.pad;
                  if (h >= 0 && h < H && v >= 0 && v < W)
                    s += x[((size_t(n) * C + ch) * H + h) * W + v] * w[((size_t(k) * C + ch) * c.R + r) * c.S + t];
                }
            want.push_back(s);
          }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- batch_norm_forward_kernel: a program a channel, Welford's means of each lane, then together; a second walk
struct BnCfg {
  int BM = 4, BN = 1024, warps = 8;
};
auto bn_train =
    kernel("user_bn_train", [](const BnCfg& c, Ptr<const bfloat16> input, Ptr<const float> weight,
                               Ptr<const float> bias, Ptr<float> mean_out, Ptr<float> inv_out, Ptr<bfloat16> output,
                               Ptr<float> running_mean, Ptr<float> running_var, I32 batch, I32 spatial, I32 s_batch,
                               I32 s_feat, F32 momentum, F32 eps, I32) {
      num_warps(c.warps);
      auto feat = program_id(0);
      Tile mean = zeros({c.BM, c.BN}, f32), m2 = zeros({c.BM, c.BN}, f32), count = zeros({c.BM, c.BN}, f32);
      auto from = input + s_feat * feat;
      auto to = output + s_feat * feat;
      auto rows = arange(0, c.BM), columns = arange(0, c.BN);
      for (auto m : range(0, cdiv(batch, c.BM)))
        for (auto n : range(0, cdiv(spatial, c.BN))) {
          auto b = m * c.BM + rows, s = n * c.BN + columns;
          auto mask = (b < batch).col() & (s < spatial).row();
          auto x = cast(load(from + (s_batch * b).col() + s.row(), {.mask = mask}), f32);
          count += cast(mask, f32);
          auto next = where(mask, mean + (x - mean) / count, mean);
          m2 += where(mask, (x - next) * (x - mean), 0.f);
          mean = next;
        }
      auto all = cast(batch, f32) * cast(spatial, f32);
      auto final_mean = sum(mean * count) / all;
      auto away = mean - final_mean;
      auto var = sum(m2 + count * away * away) / all;
      auto inv = rsqrt(var + eps);
      store(mean_out + feat, final_mean), store(inv_out + feat, inv);
      store(running_mean + feat, (1.f - momentum) * load(running_mean + feat) + momentum * final_mean);
      store(running_var + feat, (1.f - momentum) * load(running_var + feat) + momentum * var * all / (all - 1.f));
      auto g = load(weight + feat), h = load(bias + feat);
      for (auto m : range(0, cdiv(batch, c.BM)))
        for (auto n : range(0, cdiv(spatial, c.BN))) {
          auto b = m * c.BM + rows, s = n * c.BN + columns;
          auto mask = (b < batch).col() & (s < spatial).row();
          auto x = cast(load(from + (s_batch * b).col() + s.row(), {.mask = mask}), f32);
          store(to + (s_batch * b).col() + s.row(), cast(g * (x - final_mean) * inv + h, bf16), {.mask = mask});
        }
    }).grid([](const BnCfg&, auto, auto, auto, auto, auto, auto, auto, auto, int, int, int, int, float, float, int C) {
      return Grid{C};
    });
Register r2("bn_train", [](Env& e) {
  BnCfg c;
  if (!e.big) c = {2, 16, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 32 : 5, C = e.big ? 512 : 7, P = e.big ? 56 * 56 : 37;
  auto x = random<bfloat16>(e, size_t(N) * C * P, -2, 3);
  auto w = random<float>(e, C), b = random<float>(e, C), rm = random<float>(e, C), rv = random<float>(e, C, .5, 2);
  auto mean = constant<float>(e, C, NAN), inv = constant<float>(e, C, NAN);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 6e-6 * x.n;
  j.add(bn_train, c, x.p, w.p, b.p, mean.p, inv.p, y.p, rm.p, rv.p, N, P, C * P, P, .1f, 1e-5f, C);
  j.check = [=] {
    std::vector<double> want(x.n), means, vars;
    for (int f = 0; f < C; ++f) {
      double s = 0, q = 0;
      const double all = double(N) * P;
      for (int n = 0; n < N; ++n)
        for (int p = 0; p < P; ++p) s += x[(size_t(n) * C + f) * P + p] / all;
      for (int n = 0; n < N; ++n)
        for (int p = 0; p < P; ++p) q += std::pow(x[(size_t(n) * C + f) * P + p] - s, 2) / all;
      means.push_back(.9 * rm[f] + .1 * s), vars.push_back(.9 * rv[f] + .1 * q * all / (all - 1));
      for (int n = 0; n < N; ++n)
        for (int p = 0; p < P; ++p) {
          const size_t at = (size_t(n) * C + f) * P + p;
          want[at] = w[f] * (x[at] - s) / std::sqrt(q + 1e-5) + b[f];
        }
    }
    auto wrong = agree(y.now(), want, 1e-2, 1e-2);
    if (wrong.empty()) wrong = agree(rm.now(), means, 1e-4, 1e-4);
    return wrong.empty() ? agree(rv.now(), vars, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- embedding_backward_kernel: rows of gradients are added to the rows that indices name, in f32; a padding row is
// not
struct EmbedCfg {
  int BLOCK = 1024, warps = 4;
};
auto embed_grad = kernel("user_embed_grad", [](const EmbedCfg& c, Ptr<float> grad_in, Ptr<const bfloat16> grad_out,
                                               Ptr<const int64_t> indices, I64 padding, I32 D, I32) {
                    num_warps(c.warps);
                    auto row = program_id(0);
                    auto at = load(indices + row);
                    return_if(at == padding);
                    auto to = grad_in + at * cast(D, i64), from = grad_out + cast(row, i64) * cast(D, i64);
                    for (auto d : range(0, D, c.BLOCK)) {
                      auto i = d + arange(0, c.BLOCK);
                      atomic_add(to + i, cast(load(from + i, {.mask = i < D}), f32), {.mask = i < D});
                    }
                  }).grid([](const EmbedCfg&, auto, auto, auto, int64_t, int, int M) { return Grid{M}; });
Register r3("embed_grad", [](Env& e) {
  EmbedCfg c;
  if (!e.big) c = {64, 4};
  c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 32768 : 41, V = e.big ? 65536 : 17, D = e.big ? 2048 : 100;
  auto g = random<bfloat16>(e, size_t(M) * D);
  auto index = filled<int64_t>(e, M, [&](size_t i) { return int64_t(i * i * 31 % V); });
  auto out = constant<float>(e, size_t(V) * D, 0);
  Job j;
  j.mbytes = 10e-6 * M * D;
  j.add(embed_grad, c, out.p, g.p, index.p, int64_t(4), D, M);
  j.check = [=] {
    std::vector<double> want(size_t(V) * D);
    for (int m = 0; m < M; ++m)
      for (int d = 0; d < D && index.at(m) != 4; ++d) want[size_t(index.at(m)) * D + d] += g[size_t(m) * D + d];
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- LightLLM's token_att1 and token_softmax_reducev: one query a head against the tokens that a table names, by sums
struct TokenCfg {
  int BN = 32, BV = 64, D = 128, warps = 4, warps2 = 4;
};
auto token_att1 =
    kernel("user_token_att1", [](const TokenCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const int32_t> table,
                                 Ptr<const int32_t> lens, Ptr<const int32_t> start, Ptr<float> att, F32 scale,
                                 I32 heads, I32 stride_table, I64 stride_att, I32, I32) {
      num_warps(c.warps);
      auto b = program_id(0), h = program_id(1), first = program_id(2) * c.BN;
      auto len = load(lens + b);
      return_if(first >= len);
      auto d = arange(0, c.D), n = first + arange(0, c.BN);
      auto q = load(Q + ((b * heads + h) * c.D + d));
      auto loc = load(table + (b * stride_table + n), {.mask = n < len});
      auto k = load(K + ((cast(loc, i64) * cast(heads, i64) + cast(h, i64)) * c.D).col() + d.row(),
                    {.mask = (n < len).col()});
      auto s = squeeze(sum(cast(q, f32).row() * cast(k, f32), axis(1)), 1) * scale;
      store(att + (cast(h, i64) * stride_att + cast(load(start + b) + n, i64)), s, {.mask = n < len});
    }).grid([](const TokenCfg& c, auto, auto, auto, auto, auto, auto, float, int heads, int, int64_t, int most, int B) {
      return Grid{B, heads, cdiv(most, c.BN)};
    });
auto token_reducev =
    kernel("user_token_reducev", [](const TokenCfg& c, Ptr<const float> att, Ptr<const half> V,
                                    Ptr<const int32_t> table, Ptr<const int32_t> lens, Ptr<const int32_t> start,
                                    Ptr<half> out, I32 heads, I32 stride_table, I64 stride_att, I32) {
      num_warps(c.warps2);
      auto b = program_id(0), h = program_id(1);
      auto len = load(lens + b), begin = load(start + b);
      auto d = arange(0, c.D), n = arange(0, c.BV);
      Tile top = full({}, -INFINITY, f32), total = zeros({}, f32), acc = zeros({c.D}, f32);
      for (auto first : range(0, len, c.BV)) {
        auto at = first + n;
        auto in = at < len;
        auto loc = load(table + (b * stride_table + at), {.mask = in});
        auto s = load(att + (cast(h, i64) * stride_att + cast(begin + at, i64)), {.mask = in, .other = -INFINITY});
        auto now = max(max(s), top);
        auto old = exp(top - now);
        auto p = exp(s - now);
        auto v =
            load(V + ((cast(loc, i64) * cast(heads, i64) + cast(h, i64)) * c.D).col() + d.row(), {.mask = in.col()});
        acc = acc * old + squeeze(sum(p.col() * cast(v, f32), axis(0)), 0);
        total = total * old + sum(p);
        top = now;
      }
      store(out + ((b * heads + h) * c.D + d), cast(acc / total, f16));
    }).grid([](const TokenCfg&, auto, auto, auto, auto, auto, auto, int heads, int, int64_t, int B) {
      return Grid{B, heads};
    });
Register r4("token_att", [](Env& e) {
  TokenCfg c;
  if (!e.big) c = {16, 8, 32, 4, 4};
  c.BN = e.field("BN", c.BN), c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  c.warps2 = e.field("warps2", c.warps2);
  const int B = e.big ? 32 : 4, H = e.big ? 32 : 3, most = e.big ? 2048 : 53, D = c.D, slots = B * most;
  std::vector<int32_t> length, begins{0};
  for (int b = 0; b < B; ++b) {
    length.push_back(e.big ? 1550 + 16 * b : std::array{53, 1, 20, 33}[b]);
    begins.push_back(begins.back() + length[b]);
  }
  auto lens = filled<int32_t>(e, B, [&](size_t b) { return length[b]; });
  auto start = filled<int32_t>(e, B, [&](size_t b) { return begins[b]; });
  auto table = filled<int32_t>(e, size_t(slots), [&](size_t i) { return int32_t(i * 7919 % slots); });
  auto q = random<half>(e, size_t(B) * H * D), k = random<half>(e, size_t(slots) * H * D),
       v = random<half>(e, size_t(slots) * H * D), o = constant<half>(e, size_t(B) * H * D, NAN);
  auto att = constant<float>(e, size_t(H) * begins.back(), NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 2e-6 * begins.back() * H * D;
  j.add(token_att1, c, q.p, k.p, table.p, lens.p, start.p, att.p, scale, H, most, begins.back(), most, B);
  j.add(token_reducev, c, att.p, v.p, table.p, lens.p, start.p, o.p, H, most, begins.back(), B);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> s(length[b]), out(D);
        double sum = 0;
        auto at = [&](int i, int d) { return (size_t(table.at(size_t(b) * most + i)) * H + h) * D + d; };
        for (int i = 0; i < length[b]; ++i) {
          for (int d = 0; d < D; ++d) s[i] += q[(size_t(b) * H + h) * D + d] * k[at(i, d)] * scale;
          sum += s[i] = std::exp(s[i]);
        }
        for (int i = 0; i < length[b]; ++i)
          for (int d = 0; d < D; ++d) out[d] += s[i] / sum * v[at(i, d)];
        want.insert(want.end(), out.begin(), out.end());
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

}  // namespace beside_triton_operators
}  // namespace users
