// packings.cpp - attention over what servers and vision models pack: sequences end to end by cu_seqlens, sigmoid
// weights with a table of 2-D positions, keys and values of 8 bits split among programs.
#include "tests/users/use.h"
namespace users {
namespace packings {

constexpr float kLog2e = 1.4426950408889634f;

// --- sequences end to end: causal, query heads share key heads
struct VarlenCfg {
  int BM = 128, BN = 128, D = 128, stages = 2, warps = 8;
};
auto varlen = kernel("user_varlen", [](const VarlenCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                       Tensor<const half, 3> V, Ptr<const int32_t> cu, Tensor<half, 3> O, F32 scale) {
  // Q, O [total, H, D], K, V [total, Hkv, D], sequence b has rows cu[b] .. cu[b + 1]
  num_warps(c.warps);
  auto h = program_id(1), b = program_id(2);
  auto from = load(cu + b), len = load(cu + b + 1) - from;
  auto m = program_id(0) * c.BM;
  return_if(m >= len);
  auto hk = h / (Q.dim(1) / K.dim(1));
  auto q = squeeze(Q.load({from + m, h, 0}, {c.BM, 1, c.D}), 1);
  auto row = (m + arange(0, c.BM)).col();
  Tile acc = zeros({c.BM, c.D}, f32), top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
  for (auto n : range(0, min(m + c.BM, len), c.BN, {.stages = c.stages})) {
    auto k = squeeze(K.load({from + n, hk, 0}, {c.BN, 1, c.D}), 1);
    auto v = squeeze(V.load({from + n, hk, 0}, {c.BN, 1, c.D}), 1);
    auto s = where((n + arange(0, c.BN)).row() <= row, dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
    auto top2 = max(top, max(s, axis(1)));
    auto p = exp2(s - top2), alpha = exp2(top - top2);
    l = l * alpha + sum(p, axis(1));
    acc = dot(cast(p, f16), v, acc * alpha);
    top = top2;
  }
  // the view ends with the sequence: rows behind it belong to the next one
  auto out = make_view<half>(O.ptr() + cast(from, i64) * O.stride(0) + h * c.D, {len, c.D}, {O.stride(0), 1});
  out.store({m, 0}, cast(acc / l, f16));
});
Register r1("varlen", [](Env& e) {
  VarlenCfg c;
  if (!e.big) c = {32, 16, 32, 2, 4};
  c.BN = e.field("BN", c.BN);
  std::vector<int32_t> cu{0};
  if (e.big)
    for (int i = 0; i < 16; ++i) cu.push_back(cu.back() + 512 + 347 * ((i * 7) % 16));
  else
    cu = {0, 37, 37, 38, 101};
  const int B = int(cu.size()) - 1, total = cu.back(), H = e.big ? 32 : 4, Hk = e.big ? 8 : 2, D = c.D;
  int longest = 0;
  double pairs = 0;
  for (int b = 0; b < B; ++b) {
    const int n = cu[b + 1] - cu[b];
    longest = std::max(longest, n), pairs += .5 * n * n;
  }
  auto q = random<half>(e, size_t(total) * H * D), k = random<half>(e, size_t(total) * Hk * D),
       v = random<half>(e, size_t(total) * Hk * D);
  auto at = filled<int32_t>(e, cu.size(), [&](size_t i) { return cu[i]; });
  auto o = constant<half>(e, size_t(total) * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  static auto launched = varlen;
  const int blocks = cdiv(longest, c.BM);
  launched = varlen.grid([=](const VarlenCfg&, const auto&...) { return Grid{blocks, H, B}; });
  Job j;
  j.gflop = 4e-9 * pairs * H * D;
  j.add(launched, c, q.view(total, H, D), k.view(total, Hk, D), v.view(total, Hk, D), at.p, o.view(total, H, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(total) * H * D);
    for (int b = 0; b < B; ++b)
      for (int t = cu[b]; t < cu[b + 1]; ++t)
        for (int h = 0; h < H; ++h) {
          double sum = 0;
          double* out = &want[(size_t(t) * H + h) * D];
          for (int n = cu[b]; n <= t; ++n) {
            const size_t key = (size_t(n) * Hk + h / (H / Hk)) * D;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[(size_t(t) * H + h) * D + d] * k[key + d];
            const double p = std::exp(s * scale);
            sum += p;
            for (int d = 0; d < D; ++d) out[d] += p * v[key + d];
          }
          for (int d = 0; d < D; ++d) out[d] /= sum;
        }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- sigmoid weights over an image: bias by the distance of the two pixels in both directions, from a table per head
struct SigmoidCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 8;
};
auto sigmoid_image =
    kernel("user_sigmoid_image", [](const SigmoidCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                    Tensor<const bfloat16, 3> V, Tensor<const float, 2> table, Tensor<bfloat16, 3> O,
                                    I32 width, F32 scale, F32 shift) {
      // Q, K, V, O [BH, height * width, D], table [H, (2 height - 1) (2 width - 1)]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, z = program_id(1), h = z % table.dim(0);
      auto q = squeeze(Q.load({z, m, 0}, {1, c.BM, c.D}), 0);
      auto i = (m + arange(0, c.BM)).col();
      auto count = K.dim(1), height = count / width;
      auto base = table.ptr() + h * table.dim(1);
      auto place = (i / width + height - 1) * (2 * width - 1) + i % width + width - 1;
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, count, c.BN, {.stages = c.stages})) {
        auto k = squeeze(K.load({z, n, 0}, {1, c.BN, c.D}), 0), v = squeeze(V.load({z, n, 0}, {1, c.BN, c.D}), 0);
        auto j = (n + arange(0, c.BN)).row();
        auto inside = (i < count) & (j < count);
        auto bias = load(base + (place - j / width * (2 * width - 1) - j % width), {.mask = inside});
        auto s = dot(q, trans(k)) * scale + bias + shift;
        acc = dot(cast(where(j < count, sigmoid(s), 0.f), bf16), v, acc);
      }
      O.store({z, m, 0}, reshape(cast(acc, bf16), {1, c.BM, c.D}));
    }).grid([](const SigmoidCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r2("sigmoid_image", [](Env& e) {
  SigmoidCfg c;
  if (!e.big) c = {32, 16, 16, 2, 4};
  c.warps = e.field("warps", c.warps), c.BN = e.field("BN", c.BN);
  const int H = e.big ? 16 : 3, BH = e.big ? 64 : 6, W = e.big ? 48 : 7, Ht = e.big ? 48 : 5, n = W * Ht, D = c.D;
  const int places = (2 * W - 1) * (2 * Ht - 1);
  auto q = random<bfloat16>(e, size_t(BH) * n * D), k = random<bfloat16>(e, size_t(BH) * n * D),
       v = random<bfloat16>(e, size_t(BH) * n * D);
  auto table = random<float>(e, size_t(H) * places);
  auto o = constant<bfloat16>(e, size_t(BH) * n * D, NAN);
  const float scale = 1 / std::sqrt(float(D)), shift = -std::log(float(n));
  Job j;
  j.gflop = 4e-9 * BH * double(n) * n * D;
  j.add(sigmoid_image, c, q.view(BH, n, D), k.view(BH, n, D), v.view(BH, n, D), table.view(H, places), o.view(BH, n, D),
        W, scale, shift);
  j.check = [=] {
    std::vector<double> want(size_t(BH) * n * D);
    for (int z = 0; z < BH; ++z)
      for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) {
          const size_t row = (size_t(z) * n + a) * D, key = (size_t(z) * n + b) * D;
          const int dy = a / W - b / W + Ht - 1, dx = a % W - b % W + W - 1;
          double s = table[size_t(z % H) * places + dy * (2 * W - 1) + dx] + shift;
          for (int d = 0; d < D; ++d) s += scale * q[row + d] * k[key + d];
          const double p = 1 / (1 + std::exp(-s));
          for (int d = 0; d < D; ++d) want[row + d] += p * v[key + d];
        }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

// --- one token per sequence over keys and values of 8 bits with a scale per head; each program a part of the keys
struct ByteCfg {
  int G = 8, BN = 128, D = 128, parts = 4, stages = 3, warps = 4;
};
auto byte_decode =
    kernel("user_byte_decode", [](const ByteCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const fp8_e4m3, 4> K,
                                  Tensor<const fp8_e4m3, 4> V, Tensor<const float, 1> kscale,
                                  Tensor<const int32_t, 1> lengths, Tensor<float, 5> O, Tensor<float, 4> L, F32 scale) {
      // Q [B, Hkv, G, D], K, V [B, S, Hkv, D], O [parts, B, Hkv, G, D], L [parts, B, Hkv, G] (base 2)
      num_warps(c.warps);
      auto part = program_id(0), h = program_id(1), b = program_id(2);
      auto length = lengths.load({b});
      auto each = cdiv(cdiv(length, c.BN), c.parts) * c.BN;
      auto q = Q.load({b, h, 0, 0}, {c.G, c.D});
      auto factor = scale * kLog2e * kscale.load({h});
      auto end = min(length, (part + 1) * each);
      Tile acc = zeros({c.G, c.D}, f32), top = full({c.G, 1}, -1e30f, f32), l = zeros({c.G, 1}, f32);
      for (auto n : range(part * each, end, c.BN, {.stages = c.stages})) {
        auto k = cast(reshape(K.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D}), bf16);
        auto v = cast(reshape(V.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D}), bf16);
        auto s = where((n + arange(0, c.BN)).row() < end, dot(q, trans(k)) * factor, -INFINITY);
        auto top2 = max(top, max(s, axis(1)));
        auto p = exp2(s - top2), alpha = exp2(top - top2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        top = top2;
      }
      O.store({part, b, h, 0, 0}, where(l > 0.f, acc / l, 0.f));
      L.store({part, b, h, 0}, squeeze(where(l > 0.f, top + log2(l), -INFINITY), 1));
    }).grid([](const ByteCfg& c, const auto& q, const auto&...) {
      return Grid{c.parts, q.shape[1], q.shape[0]};
    });
auto byte_join = kernel("user_byte_join", [](const ByteCfg& c, Tensor<const float, 5> O, Tensor<const float, 4> L,
                                             Tensor<const float, 1> vscale, Tensor<bfloat16, 4> Y) {
                   num_warps(1);
                   auto g = program_id(0), h = program_id(1), b = program_id(2);
                   auto lse = reshape(L.load({0, b, h, g}, {c.parts, 1, 1, 1}), {c.parts, 1});
                   auto top = max(lse, axis(0));
                   auto w = exp2(lse - where(top == -INFINITY, 0.f, top));
                   auto o = reshape(O.load({0, b, h, g, 0}, {c.parts, 1, 1, 1, c.D}), {c.parts, c.D});
                   auto y = sum(o * w, axis(0)) / sum(w, axis(0)) * vscale.load({h});
                   Y.store({b, h, g, 0}, reshape(cast(y, bf16), {1, 1, 1, c.D}));
                 }).grid([](const ByteCfg&, const auto&, const auto&, const auto&, const auto& y) {
  return Grid{y.shape[2], y.shape[1], y.shape[0]};
});
Register r3("byte_decode", [](Env& e) {
  ByteCfg c;
  if (!e.big) c = {5, 32, 32, 3, 2, 4};
  c.parts = e.field("parts", c.parts), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 3, S = e.big ? 8192 : 150, H = e.big ? 8 : 2, G = c.G, D = c.D, P = c.parts;
  auto q = random<bfloat16>(e, size_t(B) * H * G * D);
  auto k = random<fp8_e4m3>(e, size_t(B) * S * H * D, -4, 4), v = random<fp8_e4m3>(e, size_t(B) * S * H * D, -4, 4);
  auto ks = random<float>(e, H, .2, .4), vs = random<float>(e, H, .2, .4);
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return i == 1 ? 1 : S - int(i) * (e.big ? 0 : 17); });
  auto parts = constant<float>(e, size_t(P) * B * H * G * D, NAN), lse = constant<float>(e, size_t(P) * B * H * G, NAN);
  auto y = constant<bfloat16>(e, size_t(B) * H * G * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 2e-6 * B * S * H * D;
  j.add(byte_decode, c, q.view(B, H, G, D), k.view(B, S, H, D), v.view(B, S, H, D), ks.view(H), lengths.view(B),
        parts.view(P, B, H, G, D), lse.view(P, B, H, G), scale);
  j.add(byte_join, c, parts.view(P, B, H, G, D), lse.view(P, B, H, G), vs.view(H), y.view(B, H, G, D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * G * D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int g = 0; g < G; ++g) {
          double sum = 0;
          double* out = &want[((size_t(b) * H + h) * G + g) * D];
          for (int n = 0; n < lengths.h[b]; ++n) {
            const size_t key = ((size_t(b) * S + n) * H + h) * D;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[((size_t(b) * H + h) * G + g) * D + d] * k[key + d];
            const double p = std::exp(s * scale * ks[h]);
            sum += p;
            for (int d = 0; d < D; ++d) out[d] += p * v[key + d] * vs[h];
          }
          for (int d = 0; d < D; ++d) out[d] /= sum;
        }
    return agree(y.now(), want, 8e-3, 1e-2);
  };
  return j;
});

}  // namespace packings
}  // namespace users
