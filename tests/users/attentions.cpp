// attentions.cpp - attention in the forms serving code needs.
#include "tests/users/use.h"
namespace users {
namespace attentions {

constexpr float kLog2e = 1.4426950408889634f;

// --- decoding over a paged cache: KV split over programs, then combined
struct DecodeCfg {
  int BN = 64, D = 128, G = 8, PAGE = 16, stages = 2, warps = 4;
};
auto decode = kernel("user_paged_decode", [](const DecodeCfg& c, Tensor<const half, 3> Q, Tensor<const half, 4> KC,
                                             Tensor<const half, 4> VC, Tensor<const int32_t, 2> table,
                                             Ptr<const int32_t> lengths, Tensor<float, 4> O, Tensor<float, 3> L,
                                             F32 scale) {
  // Q [B, Hkv * G, D], caches [pages, PAGE, Hkv, D], table [B, pages per sequence], O [B, H, splits, D], L [B, H,
  // splits]
  num_warps(c.warps);
  auto b = program_id(0), hk = program_id(1), split = program_id(2), splits = num_programs(2);
  auto length = load(lengths + b);
  auto per = cdiv(cdiv(length, c.BN), splits) * c.BN;
  auto begin = split * per, end = min(begin + per, length);
  constexpr int kRows = 16;  // queries of a group, padded to what a tensor core takes
  auto rows = arange(0, kRows), cols = arange(0, c.BN), dd = arange(0, c.D);
  auto q = Q.load({b, hk * c.G, 0}, {kRows, c.D});
  Tile acc = zeros({kRows, c.D}, f32), m = full({kRows, 1}, -INFINITY, f32), l = zeros({kRows, 1}, f32);
  for (auto n : range(begin, end, c.BN, {.stages = c.stages})) {
    auto at = n + cols;
    auto page = load(table.ptr() + cast(b, i64) * table.stride(0) + at / c.PAGE, {.mask = at < end});
    auto offset = cast(page, i64) * KC.stride(0) + cast(at % c.PAGE, i64) * KC.stride(1) + cast(hk, i64) * KC.stride(2);
    auto live = (at < end).col();
    auto k = load(KC.ptr() + offset.col() + dd.row(), {.mask = live});
    auto s = dot(q, trans(k)) * (scale * kLog2e);
    s = where((at < end).row(), s, -INFINITY);
    auto m2 = max(m, max(s, axis(1)));
    auto p = exp2(s - m2);
    auto alpha = exp2(m - m2);
    l = l * alpha + sum(p, axis(1));
    auto v = load(VC.ptr() + offset.col() + dd.row(), {.mask = live});
    acc = dot(cast(p, f16), v, acc * alpha);
    m = m2;
  }
  auto h = hk * c.G + rows;
  auto mine = rows < c.G;
  auto safe = where(l == 0.f, 1.f, l);
  store(O.ptr() + ((b * O.dim(1) + h) * splits + split).col() * c.D + dd.row(), acc / safe, {.mask = mine.col()});
  store(L.ptr() + (b * O.dim(1) + h) * splits + split, squeeze(m + log2(safe), 1), {.mask = mine});
});
auto combine = kernel("user_decode_combine", [](const DecodeCfg& c, Tensor<const float, 4> O, Tensor<const float, 3> L,
                                                Tensor<half, 3> Y) {
                 num_warps(c.warps);
                 auto b = program_id(0), h = program_id(1);
                 Tile m = -INFINITY, l = 0.f, acc = zeros({c.D}, f32);
                 for (auto s : range(0, L.dim(2))) {
                   auto x = L.load({b, h, s});
                   auto m2 = max(m, x);
                   auto safe = where(m2 == -INFINITY, 0.f, m2);
                   auto a = exp2(m - safe), w = exp2(x - safe);
                   acc = acc * a + O.load({b, h, s, 0}, {c.D}) * w;
                   l = l * a + w;
                   m = m2;
                 }
                 Y.store({b, h, 0}, reshape(cast(acc / l, f16), {1, 1, c.D}));
               }).grid([](const DecodeCfg&, const auto&, const auto&, const auto& y) {
  return Grid{y.shape[0], y.shape[1]};
});
Register r1("paged_decode", [](Env& e) {
  int B = e.big ? 32 : 3, Hk = e.big ? 8 : 2, G = e.big ? 4 : 4, D = e.big ? 128 : 64, P = 16,
      longest = e.big ? 8192 : 300, splits = e.big ? 4 : 3;
  int per = cdiv(longest, P), pages = B * per, H = Hk * G;
  auto q = random<half>(e, B * H * D);
  auto kc = random<half>(e, size_t(pages) * P * Hk * D), vc = random<half>(e, size_t(pages) * P * Hk * D);
  std::vector<int> perm(pages);
  for (int i = 0; i < pages; ++i) perm[i] = i;
  for (int i = pages - 1; i > 0; --i) std::swap(perm[i], perm[int(e.uniform() * (i + 1))]);
  auto table = filled<int32_t>(e, pages, [&](size_t i) { return perm[i]; });
  auto len = filled<int32_t>(e, B, [&](size_t i) {
    return e.big ? longest - int(e.uniform() * 1000) : std::vector<int>{300, 17, 129}[i];
  });
  auto o = constant<float>(e, B * H * splits * D, NAN), l = constant<float>(e, B * H * splits, NAN);
  auto y = constant<half>(e, B * H * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 1e-6 * B * double(longest) * Hk * D * 4;
  auto k = decode.grid([=](const DecodeCfg&, const auto&...) { return Grid{B, Hk, splits}; });
  DecodeCfg c{64, D, G, P, e.big ? 3 : 2, 4};
  j.add(k, c, q.view(B, H, D), kc.view(pages, P, Hk, D), vc.view(pages, P, Hk, D), table.view(B, per), len.p,
        o.view(B, H, splits, D), l.view(B, H, splits), scale);
  j.add(combine, c, o.view(B, H, splits, D), l.view(B, H, splits), y.view(B, H, D));
  j.check = [=] {
    std::vector<double> want(B * H * D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> s(len.h[b]);
        double m = -1e30, t = 0;
        auto at = [&](int i) { return ((size_t(perm[b * per + i / P]) * P + i % P) * Hk + h / G) * D; };
        for (int i = 0; i < len.h[b]; ++i) {
          for (int d = 0; d < D; ++d) s[i] += q[(b * H + h) * D + d] * kc[at(i) + d] * scale;
          m = std::max(m, s[i]);
        }
        for (auto& x : s) t += x = std::exp(x - m);
        for (int i = 0; i < len.h[b]; ++i)
          for (int d = 0; d < D; ++d) want[(b * H + h) * D + d] += s[i] / t * vc[at(i) + d];
      }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- attention with a relative position bias looked up in a table (T5), optional window
struct AttCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 8;
  bool bias = true;
  int window = 0;
};
auto attention = kernel("user_attention", [](const AttCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                             Tensor<const half, 3> V, Tensor<const float, 2> T, Tensor<half, 3> O,
                                             F32 scale, I32 reach) {
                   num_warps(c.warps);
                   auto bh = program_id(1), m0 = program_id(0) * c.BM;
                   auto N = K.dim(1), H = T.dim(0);
                   auto rows = m0 + arange(0, c.BM);
                   auto q = Q.load({bh, m0, 0}, {c.BM, c.D});
                   Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
                   Tile lo = 0, hi = N;
                   if (c.window) {
                     lo = max(m0 - c.window + 1, 0) / c.BN * c.BN;
                     hi = min(m0 + c.BM, N);
                   }
                   for (auto n0 : range(lo, hi, c.BN, {.stages = c.stages})) {
                     auto cols = n0 + arange(0, c.BN);
                     auto s = dot(q, trans(K.load({bh, n0, 0}, {c.BN, c.D}))) * (scale * kLog2e);
                     auto d = cols.row() - rows.col();
                     if (c.bias) {
                       auto bucket = clamp(d, -reach, reach) + reach;
                       s += load(T.ptr() + bh % H * cast(T.stride(0), i32) + bucket) * kLog2e;
                     }
                     auto ok = (cols < N).row();
                     if (c.window) ok = ok & (d <= 0) & (d > -c.window);
                     s = where(ok, s, -INFINITY);
                     auto m2 = max(m, max(s, axis(1)));
                     auto p = exp2(s - where(m2 == -INFINITY, 0.f, m2));
                     auto alpha = exp2(m - where(m2 == -INFINITY, 0.f, m2));
                     l = l * alpha + sum(p, axis(1));
                     acc = dot(cast(p, f16), V.load({bh, n0, 0}, {c.BN, c.D}), acc * alpha);
                     m = m2;
                   }
                   O.store({bh, m0, 0}, reshape(cast(acc / l, f16), {1, c.BM, c.D}));
                 }).grid([](const AttCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Job attention_job(Env& e, bool bias, int window) {
  int B = e.big ? 4 : 1, H = e.big ? 16 : 2, S = e.big ? 4096 : 150, D = e.big ? 128 : 64, reach = 32;
  if (!e.big && window) window = 40;
  auto q = random<half>(e, size_t(B) * H * S * D), k = random<half>(e, size_t(B) * H * S * D),
       v = random<half>(e, size_t(B) * H * S * D);
  auto t = random<float>(e, H * (2 * reach + 1));
  auto o = constant<half>(e, size_t(B) * H * S * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = window ? 4e-9 * B * H * double(S) * window * D : 4e-9 * B * H * double(S) * S * D;
  AttCfg c{128, 64, D, 2, 8, bias, window};
  if (e.big && !bias) c.BN = 128;  // the table's offsets of 128 keys would not fit the registers
  j.add(attention, c, q.view(B * H, S, D), k.view(B * H, S, D), v.view(B * H, S, D), t.view(H, 2 * reach + 1),
        o.view(B * H, S, D), scale, reach);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * S * D);
    for (int b = 0; b < B * H; ++b)
      for (int i = 0; i < S; ++i) {
        std::vector<double> s(S, -INFINITY);
        double m = -INFINITY, sum = 0;
        for (int n = 0; n < S; ++n) {
          if (window && (n > i || n <= i - window)) continue;
          s[n] = 0;
          for (int d = 0; d < D; ++d) s[n] += q[(size_t(b) * S + i) * D + d] * k[(size_t(b) * S + n) * D + d] * scale;
          if (bias) s[n] += t[b % H * (2 * reach + 1) + std::clamp(n - i, -reach, reach) + reach];
          m = std::max(m, s[n]);
        }
        for (auto& x : s) sum += x = std::exp(x - m);
        for (int n = 0; n < S; ++n)
          for (int d = 0; d < D; ++d) want[(size_t(b) * S + i) * D + d] += s[n] / sum * v[(size_t(b) * S + n) * D + d];
      }
    return agree(o.now(), want, 2e-3, 2e-3);
  };
  return j;
}
Register r2("attention_bias", [](Env& e) { return attention_job(e, true, 0); });
Register r3("attention_window", [](Env& e) { return attention_job(e, false, 512); });
Register r4("attention_plain", [](Env& e) { return attention_job(e, false, 0); });

}  // namespace attentions
}  // namespace users
