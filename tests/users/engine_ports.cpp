// engine_ports.cpp - parts of inference engines and of small dense algebra, as ported from CUDA: Q6_K and IQ2_XXS rows
// of llama.cpp, im2col, softmax with slopes (ALiBi), heads transposed with a bias and without padding, transposed 1-D
// convolutions, detection for four antennas, Householder QR in tiles, means of similar patches (NLM).
#include <complex>
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace engine_ports {
float half_at(const std::vector<uint8_t>& b, size_t at) {
  half h;
  std::memcpy(&h, &b[at], 2);
  return float(h);
}

// --- Q6_K: 256 weights in 210 bytes: low nibbles [128], high pairs [64], scales of 16 as int8 [16], d in f16
struct RowCfg {
  int R = 2, warps = 4;
};
auto q6k = kernel("user_q6_k", [](const RowCfg& c, Ptr<const uint8_t> w, Ptr<const int8_t> w8, Ptr<const half> w16,
                                  Ptr<const float> x, Ptr<float> y, I32 M, I32 blocks) {
             num_warps(c.warps);
             auto r = (program_id(0) * c.R + arange(0, c.R)).col();
             auto in = r < M;
             auto l = arange(0, 128).row();  // half n = l / 64 has quarters of 32: l % 64 in two of them
             auto n = l / 64, i = l % 64;
             Tile acc = zeros({c.R, 128}, f32);
             for (auto b : range(blocks)) {
               auto at = cast(r * blocks + b, i64) * 210;
               auto ok = broadcast_to(in, {c.R, 128});
               auto low = cast(load(w + (at + l), {.mask = ok}), i32);
               auto high = cast(load(w + (at + 128 + n * 32 + i % 32), {.mask = ok}), i32);
               // byte l holds weight n * 128 + i in its low nibble and n * 128 + 64 + i in its high one
               auto shift = (i / 32) * 2;
               auto q0 = ((low & 15) | (((high >> shift) & 3) << 4)) - 32,
                    q1 = ((low >> 4) | (((high >> (shift + 4)) & 3) << 4)) - 32;
               auto s0 = cast(load(w8 + (at + 192 + n * 8 + i / 16), {.mask = ok}), f32);
               auto s1 = cast(load(w8 + (at + 192 + n * 8 + i / 16 + 4), {.mask = ok}), f32);
               auto d = cast(load(w16 + (at / 2 + 104), {.mask = in}), f32);
               auto x0 = load(x + (b * 256 + n * 128 + i)), x1 = load(x + (b * 256 + n * 128 + 64 + i));
               acc += d * (s0 * cast(q0, f32) * x0 + s1 * cast(q1, f32) * x1);
             }
             store(y + squeeze(r, 1), squeeze(sum(acc, axis(1)), 1), {.mask = squeeze(in, 1)});
           }).grid([](const RowCfg& c, auto, auto, auto, auto, auto, int M, int) { return Grid{cdiv(M, c.R)}; });
Register r1("q6_k", [](Env& e) {
  RowCfg c;
  if (!e.big) c = {3, 1};
  c.R = e.field("R", c.R), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 7, blocks = e.big ? 16 : 3;
  std::vector<uint8_t> b(size_t(M) * blocks * 210);
  for (auto& v : b) v = uint8_t(e.uniform() * 256);
  for (size_t i = 0; i < size_t(M) * blocks; ++i) {
    half h(float(e.uniform() - .5) / 64);
    std::memcpy(&b[i * 210 + 208], &h, 2);
  }
  auto w = repeated<uint8_t>(e, b.size(), b);
  auto x = random<float>(e, blocks * 256), y = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * b.size();
  j.add(q6k, c, w.p, reinterpret_cast<const int8_t*>(w.p), reinterpret_cast<const half*>(w.p), x.p, y.p, M, blocks);
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int g = 0; g < blocks; ++g) {
        const uint8_t* p = &w.h[(size_t(m) * blocks + g) * 210];
        const double d = half_at(w.h, (size_t(m) * blocks + g) * 210 + 208);
        for (int n = 0; n < 2; ++n)
          for (int l = 0; l < 32; ++l) {
            const uint8_t *ql = p + n * 64, *qh = p + 128 + n * 32;
            const int8_t* sc = reinterpret_cast<const int8_t*>(p + 192 + n * 8);
            const int q[4] = {(ql[l] & 15) | (qh[l] & 3) << 4, (ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4,
                              ql[l] >> 4 | (qh[l] >> 4 & 3) << 4, ql[l + 32] >> 4 | (qh[l] >> 6 & 3) << 4};
            for (int k = 0; k < 4; ++k)
              want[m] += d * sc[l / 16 + 2 * k] * (q[k] - 32) * x[g * 256 + n * 128 + l + 32 * k];
          }
      }
    return agree(y.now(), want, 2e-2, 1e-3);
  };
  return j;
});

// --- IQ2_XXS: 256 weights in 66 bytes: d, then per 32 weights four bytes that name rows of a table (eight bytes each)
// and a word with four times seven bits of signs and a scale of four bits
auto iq2 = kernel("user_iq2_xxs", [](const RowCfg& c, Ptr<const half> w16, Ptr<const uint64_t> table,
                                     Ptr<const float> x, Ptr<float> y, I32 M, I32 blocks) {
             num_warps(c.warps);
             auto r = program_id(0) * c.R + arange(0, c.R);
             auto in = (r < M).col();
             auto g = arange(0, 32);  // groups of eight: 8 sub-blocks x 4
             auto sub = g / 4, k = g % 4;
             Tile acc = zeros({c.R, 32}, f32);
             for (auto b : range(blocks)) {
               auto at = (cast(r, i64).col() * cast(blocks, i64) + cast(b, i64)) * 33;
               auto ok = broadcast_to(in, {c.R, 32});
               auto word = [&](const Tile& i) {
                 return cast(bitcast(load(w16 + (at + 1 + i.row()), {.mask = ok}), u16), u32);
               };
               auto index = (word(sub * 4 + k / 2) >> cast((k % 2 * 8).row(), u32)) & 255;
               auto rest = word(sub * 4 + 2) | (word(sub * 4 + 3) << 16);
               auto seven = (rest >> cast((k * 7).row(), u32)) & 127;
               auto signs = seven | ((popcount(seven) & 1) << 7);
               auto scale = (cast(rest >> 28, f32) + .5f) * .25f;
               auto row = load(table + index, {.mask = ok});  // u64: eight magnitudes
               Tile sum = zeros({c.R, 32}, f32);
               for (int l = 0; l < 8; ++l) {
                 auto v = cast(cast((row >> (8 * l)) & 255, u32), f32);
                 auto xl = load(x + (b * 256 + g * 8 + l)).row();
                 sum += where(((signs >> l) & 1) != 0, -v, v) * xl;
               }
               acc += cast(load(w16 + at, {.mask = in}), f32) * scale * sum;
             }
             store(y + r, squeeze(sum(acc, axis(1)), 1), {.mask = r < M});
           }).grid([](const RowCfg& c, auto, auto, auto, auto, int M, int) { return Grid{cdiv(M, c.R)}; });
Register r2("iq2_xxs", [](Env& e) {
  RowCfg c{e.field("R", e.big ? 4 : 3), e.field("warps", e.big ? 4 : 1)};
  const int M = e.big ? 4096 : 7, blocks = e.big ? 16 : 3;
  std::vector<uint8_t> b(size_t(M) * blocks * 66);
  for (auto& v : b) v = uint8_t(e.uniform() * 256);
  for (size_t i = 0; i < size_t(M) * blocks; ++i) {
    half h(float(e.uniform() - .5) / 16);
    std::memcpy(&b[i * 66], &h, 2);
  }
  std::vector<uint64_t> t(256);
  for (auto& v : t)
    for (int l = 0; l < 8; ++l) v |= uint64_t(8 + 17 * int(e.uniform() * 3)) << (8 * l);
  auto w = repeated<uint8_t>(e, b.size(), b);
  auto table = repeated<uint64_t>(e, 256, t);
  auto x = random<float>(e, blocks * 256), y = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * b.size();
  j.add(iq2, c, reinterpret_cast<const half*>(w.p), table.p, x.p, y.p, M, blocks);
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int g = 0; g < blocks; ++g) {
        const size_t at = (size_t(m) * blocks + g) * 66;
        for (int s = 0; s < 8; ++s) {
          uint32_t a[2];
          std::memcpy(a, &w.h[at + 2 + s * 8], 8);
          const double db = half_at(w.h, at) * (.5 + (a[1] >> 28)) * .25;
          for (int k = 0; k < 4; ++k) {
            const uint64_t row = table.h[a[0] >> (8 * k) & 255];
            const uint32_t seven = a[1] >> (7 * k) & 127, signs = seven | (__builtin_popcount(seven) & 1) << 7;
            for (int l = 0; l < 8; ++l)
              want[m] +=
                  db * double(row >> (8 * l) & 255) * (signs >> l & 1 ? -1 : 1) * x[g * 256 + s * 32 + k * 8 + l];
          }
        }
      }
    return agree(y.now(), want, 2e-2, 1e-3);
  };
  return j;
});

// --- im2col (ggml): pictures to rows of patches in f16, strides, padding and dilation of the launch
struct PatchCfg {
  int B = 1024, warps = 4;
};
auto im2col =
    kernel("user_im2col", [](const PatchCfg& c, Ptr<const float> x, Ptr<half> out, I32 IC, I32 IH, I32 IW, I32 KH,
                             I32 KW, I32 OH, I32 OW, I32 s, I32 p, I32 d) {
      num_warps(c.warps);  // out [N, OH, OW, IC * KH * KW]
      auto n = program_id(2), oy = program_id(1);
      auto K = IC * KH * KW;
      auto i = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
      auto in = i < cast(OW, i64) * cast(K, i64);
      auto ox = cast(i / cast(K, i64), i32), k = cast(i % cast(K, i64), i32);
      auto kx = k % KW, ky = k / KW % KH, ic = k / (KW * KH);
      auto y = oy * s + ky * d - p, xx = ox * s + kx * d - p;
      auto inside = in & (y >= 0) & (y < IH) & (xx >= 0) & (xx < IW);
      auto v =
          load(x + (((cast(n, i64) * cast(IC, i64) + cast(ic, i64)) * cast(IH, i64) + cast(y, i64)) * cast(IW, i64) +
                    cast(xx, i64)),
               {.mask = inside});
      store(out + ((cast(n, i64) * cast(OH, i64) + cast(oy, i64)) * (cast(OW, i64) * cast(K, i64)) + i), cast(v, f16),
            {.mask = in});
    }).grid([](const PatchCfg& c, auto, auto, int IC, int, int, int KH, int KW, int OH, int OW, int, int, int) {
      return Grid{cdiv(int64_t(OW) * IC * KH * KW, c.B), OH, 2};
    });
Register r3("im2col", [](Env& e) {
  PatchCfg c{e.field("B", e.big ? 1024 : 32), e.field("warps", e.big ? 4 : 1)};
  const int N = 2, IC = e.big ? 64 : 3, IH = e.big ? 128 : 7, IW = e.big ? 128 : 9, KH = 3, KW = e.big ? 3 : 2,
            s = e.big ? 1 : 2, p = e.big ? 1 : 2, d = e.big ? 1 : 2;
  const int OH = (IH + 2 * p - d * (KH - 1) - 1) / s + 1, OW = (IW + 2 * p - d * (KW - 1) - 1) / s + 1,
            K = IC * KH * KW;
  auto x = random<float>(e, size_t(N) * IC * IH * IW);
  auto out = constant<half>(e, size_t(N) * OH * OW * K, NAN);
  Job j;
  j.mbytes = 2e-6 * out.n + 4e-6 * x.n;
  j.add(im2col, c, x.p, out.p, IC, IH, IW, KH, KW, OH, OW, s, p, d);
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int oy = 0; oy < OH; ++oy)
        for (int ox = 0; ox < OW; ++ox)
          for (int k = 0; k < K; ++k) {
            const int kx = k % KW, ky = k / KW % KH, ic = k / KW / KH, y = oy * s + ky * d - p,
                      xx = ox * s + kx * d - p;
            want.push_back(y >= 0 && y < IH && xx >= 0 && xx < IW ? x[((size_t(n) * IC + ic) * IH + y) * IW + xx] : 0);
          }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- softmax of scores with a scale, an f16 mask and slopes of heads (ggml's soft_max_ext with ALiBi); rows of any
// length
struct SoftCfg {
  int B = 1024, warps = 4;
};
auto soft_max_ext =
    kernel("user_soft_max_ext", [](const SoftCfg& c, Tensor<const float, 3> x, Tensor<const half, 2> mask,
                                   Tensor<float, 3> out, F32 scale, F32 maxBias, I32 headLog2) {
      num_warps(c.warps);  // x [heads, rows, columns]
      auto h = program_id(1), r = program_id(0);
      auto n = cast(headLog2, f32);
      auto m0 = exp2(-maxBias / n), m1 = exp2(-maxBias * .5f / n);
      auto base = where(h < headLog2, m0, m1), times = cast(where(h < headLog2, h + 1, 2 * (h - headLog2) + 1), f32);
      auto slope = where(maxBias > 0.f, pow(base, times), 1.f);
      Tile high = full({c.B}, -INFINITY, f32), total = zeros({c.B}, f32);
      for (auto i : range(0, x.dim(2), c.B)) {
        auto v = x.load({h, r, i}, {c.B}, {.pad = -INFINITY}) * scale + slope * cast(mask.load({r, i}, {c.B}), f32);
        auto next = max(high, v);
        auto safe = where(next == -INFINITY, 0.f, next);
        total = total * exp(where(high == -INFINITY, -INFINITY, high - safe)) + exp(v - safe);
        high = next;
      }
      auto top = max(high);
      auto sum_ = sum(total * exp(where(high == -INFINITY, -INFINITY, high - top)));
      for (auto i : range(0, x.dim(2), c.B)) {
        auto v = x.load({h, r, i}, {c.B}, {.pad = -INFINITY}) * scale + slope * cast(mask.load({r, i}, {c.B}), f32);
        out.store({h, r, i}, exp(v - top) / sum_);
      }
    }).grid([](const SoftCfg&, const auto& x, const auto&...) {
      return Grid{x.shape[1], x.shape[0]};
    });
Register r4("soft_max_ext", [](Env& e) {
  SoftCfg c{e.field("B", e.big ? 1024 : 16), e.field("warps", e.big ? 4 : 1)};
  const int H = e.big ? 40 : 3, R = e.big ? 512 : 5, N = e.big ? 4096 : 37, log2 = e.big ? 32 : 2;
  auto x = random<float>(e, size_t(H) * R * N, -4, 4);
  auto mask =
      filled<half>(e, size_t(R) * N, [&](size_t i) { return half(i % 7 == 3 ? -INFINITY : -float(i % N) / 8); });
  auto out = constant<float>(e, size_t(H) * R * N, NAN);
  Job j;
  j.mbytes = 8e-6 * H * R * N;
  j.add(soft_max_ext, c, x.view(H, R, N), mask.view(R, N), out.view(H, R, N), .125f, 8.f, log2);
  j.check = [=] {
    std::vector<double> want;
    for (int h = 0; h < H; ++h) {
      const double slope =
          h < log2 ? std::pow(std::exp2(-8. / log2), h + 1) : std::pow(std::exp2(-4. / log2), 2 * (h - log2) + 1);
      for (int r = 0; r < R; ++r) {
        std::vector<double> v(N);
        double top = -INFINITY, s = 0;
        for (int i = 0; i < N; ++i)
          v[i] = x[(size_t(h) * R + r) * N + i] * .125 + slope * mask[size_t(r) * N + i], top = std::max(top, v[i]);
        for (double& k : v) s += k = std::exp(k - top);
        for (double k : v) want.push_back(k / s);
      }
    }
    return agree(out.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- FasterTransformer: [tokens, 3, H, D] with a bias to three of [batch, H, S, D]; tokens without padding find their
// place
struct HeadCfg {
  int T = 16, warps = 4;
};
auto split_heads =
    kernel("user_split_heads", [](const HeadCfg& c, Tensor<const half, 3> qkv, Tensor<const half, 2> bias,
                                  Ptr<const int32_t> offsets, Tensor<half, 4> q, Tensor<half, 4> k, Tensor<half, 4> v) {
      num_warps(c.warps);  // qkv [tokens, 3, H * D]; offsets [tokens]: how much padding is in front
      const int D = 64;
      auto t = program_id(0) * c.T + arange(0, c.T), h = program_id(1);
      auto in = t < qkv.dim(0);
      auto place = t + load(offsets + t, {.mask = in});
      auto S = q.dim(2), b = place / S, s = place % S;
      auto columns = arange(0, D);
      Tensor<half, 4>* outs[] = {&q, &k, &v};
      for (int part = 0; part < 3; ++part) {
        auto x =
            squeeze(qkv.load({program_id(0) * c.T, part, h * D}, {c.T, 1, D}), 1) + bias.load({part, h * D}, {1, D});
        auto at = ((cast(b, i64) * q.dim64(1) + cast(h, i64)) * q.dim64(2) + cast(s, i64)) * D;
        store(outs[part]->ptr() + (at.col() + cast(columns, i64).row()), x, {.mask = broadcast_to(in.col(), {c.T, D})});
      }
    }).grid([](const HeadCfg& c, const auto& x, const auto&, auto, const auto& q, const auto&...) {
      return Grid{cdiv(x.shape[0], c.T), q.shape[1]};
    });
Register r5("split_heads", [](Env& e) {
  HeadCfg c{e.field("T", e.big ? 16 : 4), e.field("warps", e.big ? 4 : 1)};
  const int B = e.big ? 32 : 3, S = e.big ? 512 : 7, H = e.big ? 16 : 2, D = 64;
  std::vector<int32_t> off;
  for (int b = 0; b < B; ++b) {
    const int len = 1 + int(e.uniform() * S), pad = b * S - int(off.size());
    for (int i = 0; i < len; ++i) off.push_back(pad);
  }
  const int T = int(off.size());
  auto offsets = repeated<int32_t>(e, T, off);
  auto x = random<half>(e, size_t(T) * 3 * H * D), bias = random<half>(e, 3 * H * D);
  std::array<Array<half>, 3> o;
  for (auto& a : o) a = constant<half>(e, size_t(B) * H * S * D, 0);
  Job j;
  j.mbytes = 12e-6 * T * H * D;
  j.add(split_heads, c, x.view(T, 3, H * D), bias.view(3, H * D), offsets.p, o[0].view(B, H, S, D),
        o[1].view(B, H, S, D), o[2].view(B, H, S, D));
  j.check = [=] {
    for (int p = 0; p < 3; ++p) {
      std::vector<double> want(o[p].n);
      for (int t = 0; t < T; ++t)
        for (int h = 0; h < H; ++h)
          for (int d = 0; d < D; ++d) {
            const int at = t + off[t];
            want[((size_t(at / S) * H + h) * S + at % S) * D + d] =
                in_half(x[(size_t(t) * 3 + p) * H * D + h * D + d] + bias[p * H * D + h * D + d]);
          }
      auto a = agree(o[p].now(), want, 1e-3, 1e-3);
      if (!a.empty()) return a;
    }
    return std::string();
  };
  return j;
});

// --- a transposed 1-D convolution (vocoders): every output sums the taps that reach it
struct ConvCfg {
  int BO = 64, BT = 64, BI = 32, warps = 4;
};
auto conv_t1d =
    kernel("user_conv_transpose_1d", [](const ConvCfg& c, Tensor<const half, 3> w, Tensor<const half, 2> x,
                                        Tensor<float, 2> y, I32 stride) {
      num_warps(c.warps);  // w [K, O, I], x [I, T], y [O, (T - 1) stride + K]; outputs of one phase together
      auto phase = program_id(2), K = w.dim(0);
      auto o = program_id(0) * c.BO, u = program_id(1) * c.BT;
      Tile acc = zeros({c.BO, c.BT}, f32);
      for (auto k : range(phase, K, stride))
        for (auto i : range(0, x.dim(0), c.BI))
          acc = dot(squeeze(w.load({k, o, i}, {1, c.BO, c.BI}), 0), x.load({i, u - (k - phase) / stride}, {c.BI, c.BT}),
                    acc);
      auto row = o + arange(0, c.BO), col = (u + arange(0, c.BT)) * stride + phase;
      store(y.ptr() + (row.col() * y.dim(1) + col.row()), acc,
            {.mask = (row < y.dim(0)).col() & (col < y.dim(1)).row()});
    }).grid([](const ConvCfg& c, const auto& w, const auto&, const auto& y, int s) {
      return Grid{cdiv(w.shape[1], c.BO), cdiv(cdiv(y.shape[1], s), c.BT), s};
    });
Register r6("conv_transpose_1d", [](Env& e) {
  ConvCfg c;
  if (!e.big) c = {16, 16, 16, 1};
  c.BO = e.field("BO", c.BO), c.BT = e.field("BT", c.BT), c.BI = e.field("BI", c.BI),
  c.warps = e.field("warps", c.warps);
  const int K = e.big ? 16 : 5, O = e.big ? 256 : 19, I = e.big ? 512 : 11, T = e.big ? 4096 : 13, s = e.big ? 8 : 3,
            L = (T - 1) * s + K;
  auto w = random<half>(e, size_t(K) * O * I), x = random<half>(e, size_t(I) * T);
  auto y = constant<float>(e, size_t(O) * L, NAN);
  Job j;
  j.gflop = 2e-9 * K * O * double(I) * T;
  j.add(conv_t1d, c, w.view(K, O, I), x.view(I, T), y.view(O, L), s);
  j.check = [=] {
    std::vector<double> want(size_t(O) * L);
    for (int o = 0; o < O; ++o)
      for (int t = 0; t < T; ++t)
        for (int k = 0; k < K; ++k)
          for (int i = 0; i < I; ++i)
            want[size_t(o) * L + t * s + k] += w[(size_t(k) * O + o) * I + i] * x[size_t(i) * T + t];
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- four antennas, four users (MMSE): x = (H^H H + s I)^-1 H^H y per subcarrier, by a complex Cholesky; matrices as
// they lie in memory (32 floats each), cut out of a box
struct MimoCfg {
  int B = 64, warps = 2;
};
struct C {
  Tile re, im;
};
C operator*(const C& a, const C& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
C conj(const C& a) { return {a.re, -a.im}; }
auto mimo =
    kernel("user_mimo", [](const MimoCfg& c, Tensor<const float, 2> H, Tensor<const float, 2> y, Tensor<float, 2> out,
                           F32 noise) {
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      Tile h = H.load({b, 0}, {c.B, 32}), v = y.load({b, 0}, {c.B, 8});
      auto pick = [&](const Tile& t, int k) {
        return C{squeeze(extract(t, {0, 2 * k}, {c.B, 1}), 1), squeeze(extract(t, {0, 2 * k + 1}, {c.B, 1}), 1)};
      };
      C m[4][4], g[4][4], r[4];
      for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k) m[i][k] = pick(h, 4 * i + k);
      auto add = [](C& a, const C& b) { a.re += b.re, a.im += b.im; };
      auto sub = [](C& a, const C& b) { a.re -= b.re, a.im -= b.im; };
      for (int i = 0; i < 4; ++i) {
        r[i] = {zeros({c.B}, f32), zeros({c.B}, f32)};
        for (int k = 0; k < 4; ++k) add(r[i], conj(m[k][i]) * pick(v, k));
        for (int l = 0; l <= i; ++l) {
          g[i][l] = {zeros({c.B}, f32), zeros({c.B}, f32)};
          for (int k = 0; k < 4; ++k) add(g[i][l], conj(m[k][i]) * m[k][l]);
        }
        g[i][i].re += noise;
      }
      Tile inverse[4];
      for (int k = 0; k < 4; ++k) {
        for (int l = 0; l < k; ++l) sub(g[k][k], g[k][l] * conj(g[k][l]));
        inverse[k] = rsqrt(g[k][k].re);
        for (int i = k + 1; i < 4; ++i) {
          for (int l = 0; l < k; ++l) sub(g[i][k], g[i][l] * conj(g[k][l]));
          g[i][k].re *= inverse[k], g[i][k].im *= inverse[k];
        }
      }
      for (int i = 0; i < 4; ++i) {
        for (int l = 0; l < i; ++l) sub(r[i], g[i][l] * r[l]);
        r[i].re *= inverse[i], r[i].im *= inverse[i];
      }
      for (int i = 3; i >= 0; --i) {
        for (int l = i + 1; l < 4; ++l) sub(r[i], conj(g[l][i]) * r[l]);
        r[i].re *= inverse[i], r[i].im *= inverse[i];
      }
      for (int i = 0; i < 4; ++i) out.store({b, 2 * i}, join(r[i].re, r[i].im));
    }).grid([](const MimoCfg& c, const auto& h, const auto&...) { return Grid{cdiv(h.shape[0], c.B)}; });
Register r7("mimo", [](Env& e) {
  MimoCfg c{e.field("B", e.big ? 64 : 16), e.field("warps", e.big ? 2 : 1)};
  const int n = e.big ? 1 << 20 : 37;
  auto H = random<float>(e, size_t(n) * 32), y = random<float>(e, size_t(n) * 8),
       out = constant<float>(e, size_t(n) * 8, NAN);
  Job j;
  j.mbytes = 4e-6 * n * 48;
  j.add(mimo, c, H.view(n, 32), y.view(n, 8), out.view(n, 8), .1f);
  j.check = [=] {  // (H^H H + s I) x = H^H y
    using Z = std::complex<double>;
    auto x = out.now();
    std::vector<double> got, want;
    for (int s = 0; s < n; ++s) {
      auto h = [&](int i, int k) { return Z(H[s * 32 + 8 * i + 2 * k], H[s * 32 + 8 * i + 2 * k + 1]); };
      for (int i = 0; i < 4; ++i) {
        Z l = .1 * Z(x[s * 8 + 2 * i], x[s * 8 + 2 * i + 1]), r = 0;
        for (int k = 0; k < 4; ++k) {
          r += std::conj(h(k, i)) * Z(y[s * 8 + 2 * k], y[s * 8 + 2 * k + 1]);
          for (int q = 0; q < 4; ++q) l += std::conj(h(k, i)) * h(k, q) * Z(x[s * 8 + 2 * q], x[s * 8 + 2 * q + 1]);
        }
        got.insert(got.end(), {l.real(), l.imag()}), want.insert(want.end(), {r.real(), r.imag()});
      }
    }
    return agree(got, want, 1e-3, 1e-3);
  };
  return j;
});

// --- QR of 8 x 8 matrices by Householder, tiles of three dims, float64: R in place, Q next to it
struct QrCfg {
  int B = 8, warps = 4;
};
auto householder =
    kernel("user_householder", [](const QrCfg& c, Tensor<const double, 3> A, Tensor<double, 3> Q, Tensor<double, 3> R) {
      num_warps(c.warps);
      constexpr int N = 8;
      auto b = program_id(0) * c.B;
      Tile a = A.load({b, 0, 0}, {c.B, N, N});
      auto row = expand_dims(arange(0, N).col(), 0), col = expand_dims(arange(0, N).row(), 0);
      Tile q = broadcast_to(cast(cast(row == col, i32), f64), {c.B, N, N});
      for (int k = 0; k < N - 1; ++k) {
        auto x = where(row >= k, extract(a, {0, 0, k}, {c.B, N, 1}), 0.);
        auto first = extract(a, {0, k, k}, {c.B, 1, 1});
        auto norm = sqrt(sum(x * x, axis(1)));
        auto v = x + where(row == k, copysign(norm, first), 0.);
        auto vv = sum(v * v, axis(1));
        auto beta = where(vv > 0., 2. / vv, 0.);
        a -= beta * v * sum(v * a, axis(1));
        q -= beta * sum(q * permute(v, {0, 2, 1}), axis(2)) * permute(v, {0, 2, 1});
      }
      Q.store({b, 0, 0}, q), R.store({b, 0, 0}, where(row <= col, a, 0.));
    }).grid([](const QrCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r8("householder", [](Env& e) {
  QrCfg c{e.field("B", e.big ? 8 : 4), e.field("warps", e.big ? 4 : 1)};
  const int n = e.big ? 1 << 17 : 11;
  auto A = random<double>(e, size_t(n) * 64);
  auto Q = constant<double>(e, size_t(n) * 64, NAN), R = constant<double>(e, size_t(n) * 64, NAN);
  Job j;
  j.mbytes = 24e-6 * n * 64;
  j.add(householder, c, A.view(n, 8, 8), Q.view(n, 8, 8), R.view(n, 8, 8));
  j.check = [=] {
    auto q = Q.now(), r = R.now();
    std::vector<double> got, want;
    for (int m = 0; m < n; ++m)
      for (int i = 0; i < 8; ++i)
        for (int k = 0; k < 8; ++k) {
          double p = 0, o = 0;
          for (int l = 0; l < 8; ++l)
            p += q[m * 64 + i * 8 + l] * r[m * 64 + l * 8 + k], o += q[m * 64 + l * 8 + i] * q[m * 64 + l * 8 + k];
          got.insert(got.end(), {p, o}), want.insert(want.end(), {A[size_t(m) * 64 + i * 8 + k], double(i == k)});
        }
    return agree(got, want, 1e-12, 0);
  };
  return j;
});

// --- means of similar patches (NLM): a window of 13 x 13, patches of 5 x 5, colours in float, edges clamped
struct NlmCfg {
  int BY = 8, BX = 32, S = 6, P = 2, warps = 4;
};
auto nlm =
    kernel("user_patch_means", [](const NlmCfg& c, Ptr<const float> x, Ptr<float> out, F32 strength, I32 H, I32 W) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY + arange(0, c.BY), xx = program_id(0) * c.BX + arange(0, c.BX);
      auto in = (y < H).col() & (xx < W).row();
      auto at = [&](auto dy, auto dx) {
        return load(x + (clamp(y + dy, 0, H - 1).col() * W + clamp(xx + dx, 0, W - 1).row()));
      };
      Tile total = zeros({c.BY, c.BX}, f32), weights = zeros({c.BY, c.BX}, f32);
      for (auto sy : range(-c.S, c.S + 1))
        for (auto sx : range(-c.S, c.S + 1)) {
          Tile d = zeros({c.BY, c.BX}, f32);
          for (int py = -c.P; py <= c.P; ++py)
            for (int px = -c.P; px <= c.P; ++px) {
              auto diff = at(py, px) - at(sy + py, sx + px);
              d += diff * diff;
            }
          auto w = exp(-d * strength);
          total += w * at(sy, sx), weights += w;
        }
      store(out + (y.col() * W + xx.row()), total / weights, {.mask = in});
    }).grid([](const NlmCfg& c, auto, auto, float, int H, int W) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r9("patch_means", [](Env& e) {
  NlmCfg c;
  if (!e.big) c = {4, 8, 2, 1, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 1080 : 11, W = e.big ? 1920 : 13;
  auto x = random<float>(e, size_t(H) * W, 0, 1), out = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.gflop = 3e-9 * 169 * 25 * H * double(W);
  j.add(nlm, c, x.p, out.p, .7f, H, W);
  j.check = [=] {
    auto at = [&](int y, int xx) { return x[size_t(std::clamp(y, 0, H - 1)) * W + std::clamp(xx, 0, W - 1)]; };
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int i = 0; i < W; ++i) {
        double t = 0, ws = 0;
        for (int sy = -c.S; sy <= c.S; ++sy)
          for (int sx = -c.S; sx <= c.S; ++sx) {
            double d = 0;
            for (int py = -c.P; py <= c.P; ++py)
              for (int px = -c.P; px <= c.P; ++px) d += std::pow(at(y + py, i + px) - at(y + sy + py, i + sx + px), 2);
            const double w = std::exp(-d * .7f);
            t += w * at(y + sy, i + sx), ws += w;
          }
        want.push_back(t / ws);
      }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace engine_ports
}  // namespace users
