// swept_caches.cpp - attention of models that serve, with block sizes, heads and pages as fields: paged decode, packed
// prefill, windows with sinks, additive biases.
#include "tests/users/swept_attention.h"
namespace users {
namespace swept_caches {
using swept_attention::attend, swept_attention::kLog2e;

// --- 1. decode over pages: a group of G query heads per key head, keys split over programs, then combined
struct DecodeCfg {
  int PS = 16, G = 4, D = 128, BN = 64, splits = 8, warps = 4, stages = 0;
};
auto decode =
    kernel("user_decode_gqa", [](const DecodeCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                 Tensor<const bfloat16, 4> V, Tensor<const int, 2> table, Tensor<const int, 1> length,
                                 Tensor<float, 5> part, Tensor<float, 4> lse, F32 scale) {
      // Q [B, Hk, G, D]; K, V [pages, PS, Hk, D]; part [B, Hk, splits, G, D]
      if (c.warps) num_warps(c.warps);
      auto b = program_id(0), h = program_id(1), s = program_id(2);
      auto n = length.load({b});
      auto per = cdiv(cdiv(n, c.splits), c.BN) * c.BN;
      auto begin = s * per, end = min(begin + per, n);
      auto q = Q.load({b, h, 0, 0}, {16, c.D});
      Tile m = full({16, 1}, -1e30f, f32), l = zeros({16, 1}, f32), acc = zeros({16, c.D}, f32);
      for (auto i : range(begin, end, c.BN, {.stages = c.stages})) {
        auto at = i + arange(0, c.BN);
        Tile k, v;
        if (c.BN <= c.PS) {  // inside of one page
          auto page = table.load({b, i / c.PS});
          k = K.load({page, i % c.PS, only(h), 0}, {c.BN, c.D});
          v = V.load({page, i % c.PS, only(h), 0}, {c.BN, c.D});
        } else {
          auto page = load(table.ptr() + b * table.stride(0) + at / c.PS, {.mask = at < end});
          auto row = cast(page, i64) * K.stride(0) + cast(at % c.PS, i64) * K.stride(1) + h * K.stride(2);
          auto box = row.col() + cast(arange(0, c.D), i64).row();
          k = load(K.ptr() + box, {.mask = (at < end).col()});
          v = load(V.ptr() + box, {.mask = (at < end).col()});
        }
        auto x = where((at < end).row(), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto m2 = max(m, max(x, axis(1)));
        auto p = exp2(x - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      }
      part.store({b, h, s, 0, 0}, acc / where(l == 0.f, 1.f, l));
      lse.store({b, h, s, 0}, squeeze(where(l == 0.f, -INFINITY, m + log2(l)), 1));
    }).grid([](const DecodeCfg& c, const auto& q, const auto&...) {
      return Grid{q.shape[0], q.shape[1], c.splits};
    });
auto combine = kernel("user_decode_gqa_combine", [](const DecodeCfg& c, Tensor<const float, 5> part,
                                                    Tensor<const float, 4> lse, Tensor<bfloat16, 4> O) {
                 auto b = program_id(0), h = program_id(1), g = program_id(2);
                 auto x = lse.load({b, h, 0, only(g)}, {c.splits}).col();
                 auto w = exp2(x - max(x));
                 auto o = part.load({b, h, 0, only(g), 0}, {c.splits, c.D});
                 O.store({b, h, g, 0}, cast(squeeze(sum(o * w, axis(0)), 0) / sum(w), bf16));
               }).grid([](const DecodeCfg&, const auto&, const auto&, const auto& o) {
  return Grid{o.shape[0], o.shape[1], o.shape[2]};
});
Job decode_gqa(Env& e) {
  const DecodeCfg c{
      e.field("PS", 16),   e.field("G", 4),     e.field("D", 128), e.field("BN", 64), e.field("splits", e.big ? 8 : 3),
      e.field("warps", 4), e.field("stages", 0)};
  const int B = e.big ? 32 : 3, H = e.big ? 8 : 2, T = e.big ? 8192 : 3 * c.BN + 41, S = c.splits;
  const int per = (T + c.PS - 1) / c.PS, pages = B * per;
  const float scale = 1 / std::sqrt(float(c.D));
  auto q = random<bfloat16>(e, size_t(B) * H * c.G * c.D, -2, 2);
  auto k = random<bfloat16>(e, size_t(pages) * c.PS * H * c.D), v = random<bfloat16>(e, size_t(pages) * c.PS * H * c.D);
  auto table = filled<int>(e, pages, [&](size_t i) { return int((i * 7919 + 13) % pages); });
  auto length = filled<int>(e, B, [&](size_t i) { return e.big ? T - int(i) * 37 : i == 0 ? T : i == 1 ? 1 : T / 2; });
  auto part = constant<float>(e, size_t(B) * H * S * c.G * c.D, NAN),
       lse = constant<float>(e, size_t(B) * H * S * c.G, NAN);
  auto o = constant<bfloat16>(e, size_t(B) * H * c.G * c.D, NAN);
  Job j;
  j.mbytes = 4e-6 * B * T * H * c.D;
  j.add(decode, c, q.view(B, H, c.G, c.D), k.view(pages, c.PS, H, c.D), v.view(pages, c.PS, H, c.D), table.view(B, per),
        length.view(B), part.view(B, H, S, c.G, c.D), lse.view(B, H, S, c.G), scale);
  j.add(combine, c, part.view(B, H, S, c.G, c.D), lse.view(B, H, S, c.G), o.view(B, H, c.G, c.D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * c.G * c.D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int g = 0; g < c.G; ++g) {
          const size_t r = ((size_t(b) * H + h) * c.G + g) * c.D;
          auto at = [&](int t) {
            return ((size_t(table.at(size_t(b) * per + t / c.PS)) * c.PS + t % c.PS) * H + h) * c.D;
          };
          attend(
              0, length.at(b),
              [&](int t) {
                double s = 0;
                for (int d = 0; d < c.D; ++d) s += q[r + d] * k[at(t) + d];
                return s * scale;
              },
              [&](int t, int d) { return v[at(t) + d]; }, c.D, &want[r]);
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r1("decode_gqa", decode_gqa);

// --- 2. prefill of packed sequences, causal; four query heads per key head
struct PrefillCfg {
  int D = 128, BM = 128, BN = 64, G = 4, warps = 8, stages = 0;
};
auto prefill = kernel("user_prefill_varlen",
                      [](const PrefillCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
                         Tensor<const int, 1> cu, Tensor<half, 3> O, I32 longest, F32 scale) {  // [tokens, heads, D]
                        if (c.warps) num_warps(c.warps);
                        auto m0 = (num_programs(0) - 1 - program_id(0)) * c.BM, h = program_id(1), b = program_id(2);
                        auto first = cu.load({b}), n = cu.load({b + 1}) - first;
                        return_if(m0 >= n);
                        auto q = Q.narrow(0, first, n).load({m0, only(h), 0}, {c.BM, c.D});
                        auto keys = K.narrow(0, first, n), values = V.narrow(0, first, n);
                        auto query = (m0 + arange(0, c.BM)).col();
                        Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
                        for (auto i : range(0, min(m0 + c.BM, n), c.BN, {.stages = c.stages})) {
                          auto k = keys.load({i, only(h / c.G), 0}, {c.BN, c.D});
                          auto v = values.load({i, only(h / c.G), 0}, {c.BN, c.D});
                          auto s = dot(q, trans(k)) * (scale * kLog2e);
                          s = where((i + arange(0, c.BN)).row() <= query, s, -INFINITY);
                          auto m2 = max(m, max(s, axis(1)));
                          auto p = exp2(s - m2), alpha = exp2(m - m2);
                          l = l * alpha + sum(p, axis(1));
                          acc = dot(cast(p, f16), v, acc * alpha);
                          m = m2;
                        }
                        O.narrow(0, first, n).store({m0, only(h), 0}, cast(acc / l, f16));
                      })
                   .grid([](const PrefillCfg& c, const auto& q, const auto&, const auto&, const auto& cu, const auto&,
                            int longest, float) {
                     return Grid{cdiv(longest, c.BM), q.shape[1], cu.shape[0] - 1};
                   });
Job prefill_varlen(Env& e) {
  const PrefillCfg c{e.field("D", 128),   e.field("BM", 128),  e.field("BN", 64), 4,
                     e.field("warps", 8), e.field("stages", 0)};
  const std::vector<int> lengths =
      e.big ? std::vector<int>{4096, 1000, 2048, 333, 3001, 1536, 2777, 1593} : std::vector<int>{37, 1, c.BM + 19};
  const int B = int(lengths.size()), H = e.big ? 16 : 4;
  std::vector<int> starts{0};
  for (int n : lengths) starts.push_back(starts.back() + n);
  const int T = starts.back(), longest = *std::max_element(lengths.begin(), lengths.end());
  const float scale = 1 / std::sqrt(float(c.D));
  auto q = random<half>(e, size_t(T) * H * c.D, -2, 2), k = random<half>(e, size_t(T) * H / 4 * c.D),
       v = random<half>(e, size_t(T) * H / 4 * c.D);
  auto cu = repeated<int>(e, starts.size(), starts);
  auto o = constant<half>(e, size_t(T) * H * c.D, NAN);
  Job j;
  for (int n : lengths) j.gflop += 2e-9 * H * c.D * double(n) * n;
  j.add(prefill, c, q.view(T, H, c.D), k.view(T, H / 4, c.D), v.view(T, H / 4, c.D), cu.view(B + 1), o.view(T, H, c.D),
        longest, scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * c.D);
    for (int b = 0; b < B; ++b)
      for (int t = starts[b]; t < starts[b + 1]; ++t)
        for (int h = 0; h < H; ++h) {
          const size_t r = (size_t(t) * H + h) * c.D;
          auto at = [&](int n) { return (size_t(n) * (H / 4) + h / 4) * c.D; };
          attend(
              starts[b], t + 1,
              [&](int n) {
                double s = 0;
                for (int d = 0; d < c.D; ++d) s += q[r + d] * k[at(n) + d];
                return s * scale;
              },
              [&](int n, int d) { return v[at(n) + d]; }, c.D, &want[r]);
        }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
}
Register r2("prefill_varlen", prefill_varlen);

// --- 3. sliding window, with a learned logit per head that takes part in the softmax
struct WindowCfg {
  int W = 128, D = 64, BM = 128, BN = 64, G = 8, warps = 4, stages = 0;
};
auto window =
    kernel("user_window_sinks",
           [](const WindowCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
              Tensor<const float, 1> sinks, Tensor<bfloat16, 3> O, F32 scale) {  // [T, heads, D]
             if (c.warps) num_warps(c.warps);
             auto m0 = program_id(0) * c.BM, h = program_id(1);
             auto q = Q.load({m0, only(h), 0}, {c.BM, c.D});
             auto query = (m0 + arange(0, c.BM)).col();
             Tile m = broadcast_to(sinks.load({h}) * kLog2e, {c.BM, 1});
             Tile l = ones({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
             auto begin = max(m0 - (c.W - 1), 0) / c.BN * c.BN, end = min(m0 + c.BM, K.dim(0));
             for (auto i : range(begin, end, c.BN, {.stages = c.stages})) {
               auto k = K.load({i, only(h / c.G), 0}, {c.BN, c.D}), v = V.load({i, only(h / c.G), 0}, {c.BN, c.D});
               auto s = dot(q, trans(k)) * (scale * kLog2e);
               auto key = (i + arange(0, c.BN)).row();
               s = where((key <= query) & (query - key < c.W), s, -INFINITY);
               auto m2 = max(m, max(s, axis(1)));
               auto p = exp2(s - m2), alpha = exp2(m - m2);
               l = l * alpha + sum(p, axis(1));
               acc = dot(cast(p, bf16), v, acc * alpha);
               m = m2;
             }
             O.store({m0, only(h), 0}, cast(acc / l, bf16));
           })
        .grid([](const WindowCfg& c, const auto& q, const auto&...) {
          return Grid{cdiv(q.shape[0], c.BM), q.shape[1]};
        });
Job window_sinks(Env& e) {
  const WindowCfg c{e.field("W", e.big ? 128 : 50),
                    e.field("D", 64),
                    e.field("BM", 128),
                    e.field("BN", 64),
                    e.big ? 8 : 2,
                    e.field("warps", 4),
                    e.field("stages", 0)};
  const int H = !e.big ? 4 : c.W > 2048 ? 16 : 32, Hk = H / c.G, T = e.big ? 8192 : 2 * c.BM + 21;
  const float scale = 1 / std::sqrt(float(c.D));
  auto q = random<bfloat16>(e, size_t(T) * H * c.D, -2, 2), k = random<bfloat16>(e, size_t(T) * Hk * c.D),
       v = random<bfloat16>(e, size_t(T) * Hk * c.D);
  auto sinks = random<float>(e, H, -1, 3);
  auto o = constant<bfloat16>(e, size_t(T) * H * c.D, NAN);
  Job j;
  j.gflop = 4e-9 * H * c.D * double(T) * std::min(c.W, T);
  j.add(window, c, q.view(T, H, c.D), k.view(T, Hk, c.D), v.view(T, Hk, c.D), sinks.view(H), o.view(T, H, c.D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * c.D);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h) {
        const size_t r = (size_t(t) * H + h) * c.D;
        auto at = [&](int n) { return (size_t(n) * Hk + h / c.G) * c.D; };
        attend(
            std::max(0, t - c.W + 1), t + 1,
            [&](int n) {
              double s = 0;
              for (int d = 0; d < c.D; ++d) s += q[r + d] * k[at(n) + d];
              return s * scale;
            },
            [&](int n, int d) { return v[at(n) + d]; }, c.D, &want[r], sinks[h]);
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r3("window_sinks", window_sinks);

// --- 4. attention with a bias per pair of positions, and a mask of keys
struct BiasCfg {
  int D = 64, BM = 128, BN = 64, warps = 4, stages = 0;
};
auto biased =
    kernel("user_bias_attention", [](const BiasCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                     Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 3> bias,
                                     Tensor<const bool, 2> mask, Tensor<bfloat16, 4> O, F32 scale) {
      // [B, H, N, D], bias [H, N, N], mask [B, N]
      if (c.warps) num_warps(c.warps);
      auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
      auto q = Q.load({b, h, m0, 0}, {c.BM, c.D});
      Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      for (auto i : range(0, K.dim(2), c.BN, {.stages = c.stages})) {
        auto k = K.load({b, h, i, 0}, {c.BN, c.D}), v = V.load({b, h, i, 0}, {c.BN, c.D});
        auto add = cast(bias.load({h, m0, i}, {c.BM, c.BN}), f32);
        auto s = (dot(q, trans(k)) * scale + add) * kLog2e;
        s = where(mask.load({b, i}, {c.BN}).row(), s, -INFINITY);  // past the end: false
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      }
      O.store({b, h, m0, 0}, cast(acc / l, bf16));
    }).grid([](const BiasCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
    });
Job bias_attention(Env& e) {
  const BiasCfg c{e.field("D", 64), e.field("BM", 128), e.field("BN", 64), e.field("warps", 4), e.field("stages", 0)};
  const int B = e.big ? 16 : 2, H = e.big ? 16 : 2, N = e.field("N", e.big ? 1000 : c.BM + 37);
  const float scale = 1 / std::sqrt(float(c.D));
  auto q = random<bfloat16>(e, size_t(B) * H * N * c.D, -2, 2), k = random<bfloat16>(e, size_t(B) * H * N * c.D),
       v = random<bfloat16>(e, size_t(B) * H * N * c.D), bias = random<bfloat16>(e, size_t(H) * N * N);
  auto mask = filled<uint8_t>(  // bool, of which std::vector has no array
      e, size_t(B) * N, [&](size_t i) { return i % 7 != 3 && (i / N != 1 || int(i % N) < N - N / 4); });
  auto o = constant<bfloat16>(e, size_t(B) * H * N * c.D, NAN);
  Job j;
  j.gflop = 4e-9 * B * H * c.D * double(N) * N;
  j.add(biased, c, q.view(B, H, N, c.D), k.view(B, H, N, c.D), v.view(B, H, N, c.D), bias.view(H, N, N),
        TensorView<const bool, 2>(reinterpret_cast<const bool*>(mask.p), {B, N}), o.view(B, H, N, c.D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * N * c.D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < N; ++t) {
          const size_t all = (size_t(b) * H + h) * N, r = (all + t) * c.D;
          attend(
              0, N,
              [&](int n) {
                if (!mask.at(size_t(b) * N + n)) return double(-INFINITY);
                double s = 0;
                for (int d = 0; d < c.D; ++d) s += q[r + d] * k[(all + n) * c.D + d];
                return s * scale + bias[(size_t(h) * N + t) * N + n];
              },
              [&](int n, int d) { return v[(all + n) * c.D + d]; }, c.D, &want[r]);
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r4("bias_attention", bias_attention);

}  // namespace swept_caches
}  // namespace users
