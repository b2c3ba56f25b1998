// serving.cpp - attention as servers run it: rotated while it is read, over pages in chunks, few drafted tokens at a
// time over an 8-bit cache, in parts that are merged.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace serving {

constexpr float kLog2e = 1.4426950408889634f;

/// Softmax attention of one query in float64 over keys 0 .. n - 1; `lse` (base 2) if wanted.
template <class Score, class Value>
void attend(int n, int width, Score score, Value value, double* out, double* lse = nullptr) {
  std::vector<double> s(n);
  double m = -1e300, t = 0;
  for (int i = 0; i < n; ++i) m = std::max(m, s[i] = score(i));
  for (auto& x : s) t += x = std::exp(x - m);
  for (int i = 0; i < n; ++i)
    for (int d = 0; d < width; ++d) out[d] += s[i] / t * value(i, d);
  if (lse) *lse = (m + std::log(t)) * 1.4426950408889634;
}

// --- causal attention that rotates queries and keys (halves, as Llama) while it reads them
struct RopeCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto rope_attention =
    kernel("user_rope_attention", [](const RopeCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                     Tensor<const half, 3> V, Tensor<const float, 2> cosine,
                                     Tensor<const float, 2> sine, Tensor<half, 3> O, F32 scale) {
      // Q, K, V, O [B H, S, D], cosine, sine [S, D / 2]
      num_warps(c.warps);
      auto bh = program_id(1), m0 = (num_programs(0) - 1 - program_id(0)) * c.BM;
      const int h = c.D / 2;
      auto rotate = [&](const Tensor<const half, 3>& X, const Tile& at, int rows) {
        auto x = cast(X.load({bh, at, 0}, {rows, h}), f32);
        auto y = cast(X.load({bh, at, h}, {rows, h}), f32);
        auto co = cosine.load({at, 0}, {rows, h}), si = sine.load({at, 0}, {rows, h});
        return std::pair(cast(x * co - y * si, f16), cast(y * co + x * si, f16));
      };
      auto [q1, q2] = rotate(Q, m0, c.BM);
      auto rows = (m0 + arange(0, c.BM)).col();
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      for (auto n : range(0, min(m0 + c.BM, K.dim(1)), c.BN, {.stages = c.stages})) {
        auto [k1, k2] = rotate(K, n, c.BN);
        auto s = dot(q2, trans(k2), dot(q1, trans(k1))) * (scale * kLog2e);
        s = where((n + arange(0, c.BN)).row() <= rows, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, f16), V.load({bh, n, 0}, {c.BN, c.D}), acc * alpha);
        m = m2;
      }
      O.store({bh, m0, 0}, reshape(cast(acc / l, f16), {1, c.BM, c.D}));
    }).grid([](const RopeCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("rope_attention", [](Env& e) {
  int B = e.big ? 64 : 2, S = e.big ? 4096 : 150, D = e.big ? 128 : 64, h = D / 2;
  auto q = random<half>(e, size_t(B) * S * D), k = random<half>(e, size_t(B) * S * D),
       v = random<half>(e, size_t(B) * S * D);
  auto angle = [=](size_t i) { return double(i / h) * std::pow(10000., -double(i % h) / h); };
  auto co = filled<float>(e, S * h, [=](size_t i) { return float(std::cos(angle(i))); });
  auto si = filled<float>(e, S * h, [=](size_t i) { return float(std::sin(angle(i))); });
  auto o = constant<half>(e, size_t(B) * S * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * B * double(S) * S * D;
  j.add(rope_attention, RopeCfg{128, 64, D, 2, 8}, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), co.view(S, h),
        si.view(S, h), o.view(B, S, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * S * D);
    auto rotated = [&](const Array<half>& x) {
      std::vector<double> y(size_t(B) * S * D);
      for (size_t r = 0; r < size_t(B) * S; ++r)
        for (int d = 0; d < h; ++d) {
          const double a = x[r * D + d], b = x[r * D + h + d], cs = co[r % S * h + d], sn = si[r % S * h + d];
          y[r * D + d] = in_half(a * cs - b * sn), y[r * D + h + d] = in_half(b * cs + a * sn);
        }
      return y;
    };
    const auto qr = rotated(q), kr = rotated(k);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i)
        attend(
            i + 1, D,
            [&](int n) {
              double s = 0;
              for (int d = 0; d < D; ++d) s += qr[(size_t(b) * S + i) * D + d] * kr[(size_t(b) * S + n) * D + d];
              return s * scale;
            },
            [&](int n, int d) { return v[(size_t(b) * S + n) * D + d]; }, &want[(size_t(b) * S + i) * D]);
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- chunked prefill: the last tokens of every sequence against its pages of 64 keys; the heads of a group are rows
struct PrefillCfg {
  int BM = 128, D = 128, G = 4, PAGE = 64, stages = 2, warps = 8;
};
auto prefill = kernel(
    "user_chunked_prefill", [](const PrefillCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 4> KC,
                               Tensor<const bfloat16, 4> VC, Tensor<const int32_t, 2> table, Ptr<const int32_t> starts,
                               Ptr<const int32_t> lengths, Tensor<bfloat16, 3> O, F32 scale) {
      // Q, O [tokens, H, D]: sequence b has tokens starts[b] .. starts[b + 1] - 1, the last of its lengths[b] keys;
      // caches [pages, PAGE, Hkv, D], table [B, pages of a sequence]
      num_warps(c.warps);
      auto hk = program_id(1), b = program_id(2);
      auto first = load(starts + b), news = load(starts + b + 1) - first, length = load(lengths + b);
      const int tokens = c.BM / c.G;
      auto t0 = program_id(0) * tokens;
      return_if(t0 >= news);
      auto r = arange(0, c.BM);
      auto token = t0 + r / c.G;
      auto where_at = (cast(first + token, i64) * Q.stride(0) + (hk * c.G + r % c.G) * cast(Q.stride(1), i32)).col() +
                      arange(0, c.D).row();
      auto mine = (token < news).col();
      auto q = load(Q.ptr() + where_at, {.mask = mine});
      auto seen = (length - news + token).col();  // the last key a row sees
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      auto pages = cdiv(min(length - news + t0 + tokens, length), c.PAGE);
      for (auto i : range(0, pages, {.stages = c.stages})) {
        auto page = table.load({b, i});
        auto k = reshape(KC.load({page, 0, hk, 0}, {1, c.PAGE, 1, c.D}), {c.PAGE, c.D});
        auto v = reshape(VC.load({page, 0, hk, 0}, {1, c.PAGE, 1, c.D}), {c.PAGE, c.D});
        auto s = dot(q, trans(k)) * (scale * kLog2e);
        s = where((i * c.PAGE + arange(0, c.PAGE)).row() <= seen, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      }
      store(O.ptr() + where_at, cast(acc / l, bf16), {.mask = mine});
    });
Register r2("chunked_prefill", [](Env& e) {
  int B = e.big ? 8 : 3, Hk = e.big ? 8 : 2, G = 4, D = e.big ? 128 : 64, P = 64, chunk = e.big ? 1024 : 40,
      longest = e.big ? 8192 : 200, H = Hk * G, per = cdiv(longest, P), pages = B * per;
  std::vector<int> at{0}, len;
  for (int b = 0; b < B; ++b) {
    at.push_back(at.back() + chunk - (b % 3) * (chunk / 3) + b);
    len.push_back(longest - b * 29);
  }
  auto starts = filled<int32_t>(e, B + 1, [&](size_t i) { return at[i]; });
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return len[i]; });
  std::vector<int> perm(pages);
  for (int i = 0; i < pages; ++i) perm[i] = i;
  for (int i = pages - 1; i > 0; --i) std::swap(perm[i], perm[int(e.uniform() * (i + 1))]);
  auto table = filled<int32_t>(e, pages, [&](size_t i) { return perm[i]; });
  int T = at.back();
  auto q = random<bfloat16>(e, size_t(T) * H * D), kc = random<bfloat16>(e, size_t(pages) * P * Hk * D),
       vc = random<bfloat16>(e, size_t(pages) * P * Hk * D);
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  PrefillCfg c{128, D, G, P, 2, 8};
  Job j;
  for (int b = 0; b < B; ++b) {
    const double news = at[b + 1] - at[b];
    j.gflop += 4e-9 * H * D * news * (len[b] - news / 2);
  }
  j.add(prefill.grid([=](const PrefillCfg& k, const auto&...) {
    return Grid{cdiv(chunk + B, k.BM / k.G), Hk, B};
  }),
        c, q.view(T, H, D), kc.view(pages, P, Hk, D), vc.view(pages, P, Hk, D), table.view(B, per), starts.p, lengths.p,
        o.view(T, H, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D);
    for (int b = 0; b < B; ++b)
      for (int t = at[b]; t < at[b + 1]; ++t)
        for (int hh = 0; hh < H; ++hh) {
          auto key = [&](int i) { return ((size_t(perm[b * per + i / P]) * P + i % P) * Hk + hh / G) * D; };
          attend(
              len[b] - (at[b + 1] - 1 - t), D,
              [&](int i) {
                double s = 0;
                for (int d = 0; d < D; ++d) s += q[(size_t(t) * H + hh) * D + d] * kc[key(i) + d];
                return s * scale;
              },
              [&](int i, int d) { return vc[key(i) + d]; }, &want[(size_t(t) * H + hh) * D]);
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- speculative decoding: a few drafted tokens of a group's heads as 16 rows, a part of an e4m3 cache per program
struct DraftCfg {
  int BN = 64, D = 128, G = 4, T = 4, stages = 3, warps = 4, producer = -1;
};
auto draft = kernel("user_draft_decode",
                    [](const DraftCfg& c, Tensor<const half, 4> Q, Tensor<const fp8_e4m3, 4> K,
                       Tensor<const fp8_e4m3, 4> V, Ptr<const float> k_scale, Ptr<const float> v_scale,
                       Ptr<const int32_t> lengths, Tensor<half, 5> O, Tensor<float, 4> L, F32 scale) {
                      // Q [B, T, H, D], caches [B, Hkv, S, D] with a scale per head, O [splits, B, T, H, D], L [splits,
                      // B, T, H]
                      num_warps(c.warps);
                      auto b = program_id(0), hk = program_id(1), part = program_id(2);
                      const int R = c.T * c.G;
                      auto length = load(lengths + b);
                      auto per = cdiv(cdiv(length, c.BN), num_programs(2)) * c.BN;
                      auto begin = part * per, end = min(begin + per, length);
                      auto q = reshape(Q.load({b, 0, hk * c.G, 0}, {1, c.T, c.G, c.D}), {R, c.D});
                      auto last = (length - c.T + arange(0, R) / c.G).col();
                      auto by = load(k_scale + hk) * scale * kLog2e;
                      Tile acc = zeros({R, c.D}, f32), m = full({R, 1}, -INFINITY, f32), l = zeros({R, 1}, f32);
                      for (auto n : range(begin, end, c.BN, {.stages = c.stages, .specialize = Choice(c.producer)})) {
                        auto k = reshape(K.load({b, hk, n, 0}, {1, 1, c.BN, c.D}), {c.BN, c.D});
                        auto v = reshape(V.load({b, hk, n, 0}, {1, 1, c.BN, c.D}), {c.BN, c.D});
                        auto s = dot(q, trans(cast(k, f16))) * by;
                        auto at = (n + arange(0, c.BN)).row();
                        s = where((at <= last) & (at < end), s, -INFINITY);
                        auto m2 = max(m, max(s, axis(1)));
                        auto safe = where(m2 == -INFINITY, 0.f, m2);
                        auto p = exp2(s - safe), alpha = exp2(m - safe);
                        l = l * alpha + sum(p, axis(1));
                        acc = dot(cast(p, f16), cast(v, f16), acc * alpha);
                        m = m2;
                      }
                      auto y = where(l > 0.f, acc / l, 0.f) * load(v_scale + hk);
                      O.store({part, b, 0, hk * c.G, 0}, reshape(cast(y, f16), {1, 1, c.T, c.G, c.D}));
                      L.store({part, b, 0, hk * c.G}, reshape(m + log2(l), {1, 1, c.T, c.G}));
                    })
                 .grid([](const DraftCfg& c, const auto& q, const auto& k, const auto&, auto*, auto*, auto*,
                          const auto& o, const auto&...) {
                   return Grid{q.shape[0], k.shape[1], o.shape[0]};
                 });
struct MergeCfg {
  int rows = 16, D = 128, parts = 8, warps = 4;
};
/// Partial results with their log-sum-exp (base 2), merged: Y = sum_i 2^(L_i - M) O_i / sum_i 2^(L_i - M).
auto merge = kernel("user_merge_states", [](const MergeCfg& c, Tensor<const half, 3> O, Tensor<const float, 2> L,
                                            Tensor<half, 2> Y) {
               num_warps(c.warps);
               auto r = program_id(0) * c.rows;
               auto l = L.load({0, r}, {c.parts, c.rows}, {.pad = -INFINITY});
               auto top = max(l, axis(0));
               auto w = exp2(l - where(top == -INFINITY, 0.f, top));
               w = w / sum(w, axis(0));
               auto o = cast(O.load({0, r, 0}, {c.parts, c.rows, c.D}), f32);
               auto y = sum(where(expand_dims(w, 2) > 0.f, o * expand_dims(w, 2), 0.f), axis(0));
               Y.store({r, 0}, cast(squeeze(y, 0), f16));
             }).grid([](const MergeCfg& c, const auto& o, const auto&...) { return Grid{cdiv(o.shape[1], c.rows)}; });
Register r3("draft_decode", [](Env& e) {
  int B = e.big ? 32 : 3, T = 4, Hk = e.big ? 8 : 2, G = 4, D = e.big ? 128 : 64, S = e.big ? 8192 : 300,
      parts = e.big ? 4 : 4, H = Hk * G;
  auto q = random<half>(e, B * T * H * D);
  auto k = random<fp8_e4m3>(e, size_t(B) * Hk * S * D), v = random<fp8_e4m3>(e, size_t(B) * Hk * S * D);
  auto ks = random<float>(e, Hk, .5, 2), vs = random<float>(e, Hk, .5, 2);
  auto len = filled<int32_t>(e, B, [&](size_t i) {
    return e.big ? S - int(e.uniform() * 1000) : std::vector<int>{300, 17, 129}[i];
  });
  auto o = constant<half>(e, size_t(parts) * B * T * H * D, NAN);
  auto l = constant<float>(e, size_t(parts) * B * T * H, NAN);
  auto y = constant<half>(e, size_t(B) * T * H * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 2e-6 * B * double(S) * Hk * D;
  j.add(draft, DraftCfg{e.field("BN", 64), D, G, T, e.field("stages", 3), e.field("warps", 4), e.field("producer", -1)},
        q.view(B, T, H, D), k.view(B, Hk, S, D), v.view(B, Hk, S, D), ks.p, vs.p,
        len.p, o.view(parts, B, T, H, D), l.view(parts, B, T, H), scale);
  j.add(merge, MergeCfg{16, D, 4, 4}, o.view(parts, B * T * H, D), l.view(parts, B * T * H), y.view(B * T * H, D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * H * D);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int hh = 0; hh < H; ++hh) {
          auto key = [&](int i) { return ((size_t(b) * Hk + hh / G) * S + i) * D; };
          const size_t row = ((size_t(b) * T + t) * H + hh) * D;
          attend(
              len.h[b] - T + t + 1, D,
              [&](int i) {
                double s = 0;
                for (int d = 0; d < D; ++d) s += q[row + d] * k[key(i) + d];
                return s * scale * ks[hh / G];
              },
              [&](int i, int d) { return v[key(i) + d] * vs[hh / G]; }, &want[row]);
        }
    return agree(y.now(), want, 4e-3, 4e-3);
  };
  return j;
});

}  // namespace serving
}  // namespace users
