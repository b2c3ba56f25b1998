// packed_weights.cpp - weights and caches in the formats of other programs: records of bytes, numbers of 6 and 2 bits,
// vectors of code books.
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace packed_weights {

constexpr float kLog2e = 1.4426950408889634f;
float half_of(uint32_t bits) {
  half h;
  std::memcpy(&h, &bits, 2);
  return float(h);
}

// --- a matrix in llama.cpp's Q4_K times a vector: records of 144 bytes hold 256 weights: two f16 factors, 8 scales and
// 8 minima of 6 bits in 12 bytes, 128 bytes of two weights each
struct Q4KCfg {
  int BR = 4, warps = 4;
};
auto q4k =
    kernel("user_q4k", [](const Q4KCfg& c, Ptr<const uint8_t> w, Ptr<const half> wh, Ptr<const float> x, Ptr<float> y,
                          I32 rows, I32 K) {
      // w [rows, K / 256, 144], wh the same memory; x [K], y [rows]
      num_warps(c.warps);
      auto row = program_id(0) * c.BR + arange(0, c.BR);
      auto group = arange(0, 8).row(), chunk = arange(0, 4), at = arange(0, 32);
      Tile acc = zeros({c.BR, 4, 32}, f32);
      for (auto i : range(0, K / 256)) {
        auto record = (cast(row, i64) * cast(K / 256, i64) + cast(i, i64)) * 144;
        auto inside = row < rows;
        auto d = cast(load(wh + record / 2, {.mask = inside}), f32),
             dmin = cast(load(wh + record / 2 + 1, {.mask = inside}), f32);
        auto byte = [&](Tile j) {
          return cast(load(w + record.col() + 4 + j, {.mask = inside.col()}), i32);
        };  // [BR, 8]
        auto low = byte(group), high = byte(where(group < 4, group + 4, group - 4)),
             late = byte(where(group < 4, 0, group + 4));
        auto sc = where(group < 4, low & 63, (late & 15) | ((high >> 6) << 4));
        auto mn = where(group < 4, high & 63, (late >> 4) | ((low >> 6) << 4));
        auto [s0, s1] = split(reshape(cast(sc, f32) * d.col(), {c.BR, 4, 2}));
        auto [m0, m1] = split(reshape(cast(mn, f32) * dmin.col(), {c.BR, 4, 2}));
        auto where_in = reshape(chunk, {1, 4, 1}) * 32 + reshape(at, {1, 1, 32});
        auto q =
            cast(load(w + reshape(record, {c.BR, 1, 1}) + 16 + where_in, {.mask = reshape(inside, {c.BR, 1, 1})}), i32);
        auto xs = x + i * 256 + reshape(chunk, {1, 4, 1}) * 64 + reshape(at, {1, 1, 32});
        acc += (expand_dims(s0, 2) * cast(q & 15, f32) - expand_dims(m0, 2)) * load(xs);
        acc += (expand_dims(s1, 2) * cast(q >> 4, f32) - expand_dims(m1, 2)) * load(xs + 32);
      }
      store(y + row, squeeze(squeeze(sum(sum(acc, axis(2)), axis(1)), 2), 1), {.mask = row < rows});
    }).grid([](const Q4KCfg& c, auto, auto, auto, auto, int rows, int) { return Grid{cdiv(rows, c.BR)}; });
Register r1("q4k", [](Env& e) {
  Q4KCfg c;
  c.BR = e.field("BR", c.BR), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 13, K = e.big ? 8192 : 512, R = K / 256;
  auto w = integers<uint8_t>(e, size_t(M) * R * 144, 0, 256);
  if (e.device && !e.big) {
    for (size_t r = 0; r < w.n; r += 144) w.h[r + 1] = 0x20 | (w.h[r + 1] & 7), w.h[r + 3] = 0x20 | (w.h[r + 3] & 7);
    w = filled<uint8_t>(e, w.n, [h = w.h](size_t i) { return h[i]; });
  }
  auto x = random<float>(e, K), y = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * w.n;
  j.add(q4k, c, w.p, reinterpret_cast<const half*>(w.p), x.p, y.p, M, K);
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k) {
        const uint8_t* b = &w.h[(size_t(m) * R + k / 256) * 144];
        const int g = k % 256 / 32;
        const int sc = g < 4 ? b[4 + g] & 63 : (b[8 + g] & 15) | (b[g] >> 6) << 4;
        const int mn = g < 4 ? b[8 + g] & 63 : b[8 + g] >> 4 | (b[4 + g] >> 6) << 4;
        const int q = b[16 + g / 2 * 32 + k % 32] >> (g % 2 * 4) & 15;
        want[m] += (double(half_of(b[0] | b[1] << 8)) * sc * q - double(half_of(b[2] | b[3] << 8)) * mn) * x[k];
      }
    return agree(y.now(), want, 2e-3, 1e-4);
  };
  return j;
});

// --- weights of 6 bits (e3m2), four in three bytes, times activations in f16
struct Fp6Cfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
auto fp6 = kernel("user_fp6", [](const Fp6Cfg& c, Tensor<const half, 2> X, Ptr<const uint8_t> w, Ptr<const half> scale,
                                 Tensor<half, 2> Y) {
             // X [M, K], w [N, K / 4, 3], scale [N], Y [M, N]
             num_warps(c.warps);
             auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
             auto K = X.dim(1);
             auto rows = n + arange(0, c.BN);
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
               auto at = w + rows.col() * (K / 4 * 3) + (k / 4 + arange(0, c.BK / 4)).row() * 3;
               auto inside = rows.col() < Y.dim(1);
               auto b0 = cast(load(at, {.mask = inside}), u32), b1 = cast(load(at + 1, {.mask = inside}), u32),
                    b2 = cast(load(at + 2, {.mask = inside}), u32);
               auto four = b0 | (b1 << 8) | (b2 << 16);
               auto number = [&](int i) {
                 auto v = (four >> (6 * i)) & 63;
                 return bitcast(cast(((v & 32) << 10) | ((v & 31) << 8), u16), f16) * 4096.f;
               };
               auto b = reshape(join(join(number(0), number(2)), join(number(1), number(3))), {c.BN, c.BK});
               acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(b), acc);
             }
             auto s = load(scale + rows, {.mask = rows < Y.dim(1)});
             Y.store({m, n}, cast(acc * cast(s, f32).row(), f16));
           }).grid([](const Fp6Cfg& c, const auto&, auto, auto, const auto& y) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
});
Register r2("fp6", [](Env& e) {
  Fp6Cfg c;
  if (!e.big) c = {16, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 64 : 20, N = e.big ? 16384 : 50, K = e.big ? 8192 : 96;
  auto x = random<half>(e, size_t(M) * K), scale = random<half>(e, N), y = constant<half>(e, size_t(M) * N, NAN);
  auto w = integers<uint8_t>(e, size_t(N) * K / 4 * 3, 0, 256);
  Job j;
  j.mbytes = 1e-6 * w.n;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(fp6, c, x.view(M, K), w.p, scale.p, y.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const uint8_t* b = &w.h[(size_t(n) * K + k) / 4 * 3];
      const int v = (b[0] | b[1] << 8 | b[2] << 16) >> (6 * (k % 4)) & 63, exponent = v >> 2 & 7, mantissa = v & 3;
      const double size = exponent ? std::ldexp(1 + mantissa / 4., exponent - 3) : std::ldexp(mantissa / 4., -2);
      return (v & 32 ? -size : size) * scale[n];
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 4e-2, 2e-3);
  };
  return j;
});

// --- additive quantisation (AQLM, two books of 256): eight weights are the sum of two vectors that two bytes name
struct AqlmCfg {
  int BM = 16, BN = 64, BK = 128, stages = 2, warps = 4;
};
auto aqlm = kernel("user_aqlm", [](const AqlmCfg& c, Tensor<const half, 2> X, Tensor<const uint8_t, 3> codes,
                                   Ptr<const half> books, Ptr<const half> scale, Tensor<half, 2> Y) {
              // X [M, K], codes [2, N, K / 8], books [2, 256, 8], scale [N], Y [M, N]
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              Tile acc = zeros({c.BM, c.BN}, f32);
              auto eight = reshape(arange(0, 8), {1, 1, 8});
              for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
                auto c0 = cast(codes.load({0, n, k / 8}, {c.BN, c.BK / 8}), i32),
                     c1 = cast(codes.load({1, n, k / 8}, {c.BN, c.BK / 8}), i32);
                auto w =
                    load(books + expand_dims(c0, 2) * 8 + eight) + load(books + 2048 + expand_dims(c1, 2) * 8 + eight);
                acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(reshape(w, {c.BN, c.BK})), acc);
              }
              auto s = load(scale + n + arange(0, c.BN), {.mask = n + arange(0, c.BN) < Y.dim(1)});
              Y.store({m, n}, cast(acc * cast(s, f32).row(), f16));
            }).grid([](const AqlmCfg& c, const auto&, const auto&, auto, auto, const auto& y) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
});
Register r3("aqlm", [](Env& e) {
  AqlmCfg c;
  if (!e.big) c = {16, 32, 64, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16 : 5, N = e.big ? 14336 : 40, K = e.big ? 4096 : 128;
  auto x = random<half>(e, size_t(M) * K), scale = random<half>(e, N), books = random<half>(e, 4096);
  auto codes = integers<uint8_t>(e, size_t(2) * N * K / 8, 0, 256);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.mbytes = 1e-6 * codes.n;
  j.add(aqlm, c, x.view(M, K), codes.view(2, N, K / 8), books.p, scale.p, y.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const size_t at = (size_t(n) * K + k) / 8;
      const double w = books[codes.h[at] * 8 + k % 8] + books[2048 + codes.h[at + size_t(N) * K / 8] * 8 + k % 8];
      return in_half(w) * scale[n];
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 1e-2, 2e-3);
  };
  return j;
});

// --- decoding over a cache of 2 bits (KIVI): keys quantised by channel over 32 tokens and packed along the tokens,
// values by token over 32 channels and packed along the channels; parts of the cache, merged by a second kernel
struct KiviCfg {
  int G = 8, D = 128, BT = 128, parts = 16, stages = 2, warps = 4;
};
auto kivi = kernel("user_kivi", [](const KiviCfg& c, Tensor<const half, 3> Q, Tensor<const uint32_t, 3> KW,
                                   Tensor<const half, 3> KS, Tensor<const half, 3> KZ, Tensor<const uint32_t, 3> VW,
                                   Tensor<const half, 3> VS, Tensor<const half, 3> VZ, Tensor<float, 4> O,
                                   Tensor<float, 3> L, F32 scale, I32 T) {
              // Q [B, G, D], KW [B, D, T / 16], KS, KZ [B, D, T / 32], VW [B, T, D / 16], VS, VZ [B, T, D / 32]; O [B,
              // parts, G, D]
              num_warps(c.warps);
              auto b = program_id(0), part = program_id(1);
              auto share = cdiv(cdiv(T, c.BT), c.parts) * c.BT;
              auto q = Q.load({b, 0, 0}, {c.G, c.D});
              auto two = reshape(cast(arange(0, 16) * 2, u32), {1, 1, 16});
              auto spread = [&](Tile words, Tile s, Tile z, int rows, int columns) {
                auto codes = reshape(cast((expand_dims(words, 2) >> two) & 3, f16), {rows, columns / 32, 32});
                return reshape(codes * expand_dims(s, 2) + expand_dims(z, 2), {rows, columns});
              };
              Tile acc = zeros({c.G, c.D}, f32), m = full({c.G, 1}, -1e30f, f32), l = zeros({c.G, 1}, f32);
              for (auto t : range(part * share, min(T, part * share + share), c.BT, {.stages = c.stages})) {
                auto k = spread(KW.load({b, 0, t / 16}, {c.D, c.BT / 16}), KS.load({b, 0, t / 32}, {c.D, c.BT / 32}),
                                KZ.load({b, 0, t / 32}, {c.D, c.BT / 32}), c.D, c.BT);
                auto v = spread(VW.load({b, t, 0}, {c.BT, c.D / 16}), VS.load({b, t, 0}, {c.BT, c.D / 32}),
                                VZ.load({b, t, 0}, {c.BT, c.D / 32}), c.BT, c.D);
                auto s = where((t + arange(0, c.BT)).row() < T, dot(q, k) * (scale * kLog2e), -INFINITY);
                auto m2 = max(m, max(s, axis(1)));
                auto p = exp2(s - m2), alpha = exp2(m - m2);
                l = l * alpha + sum(p, axis(1));
                acc = dot(cast(p, f16), v, acc * alpha);
                m = m2;
              }
              O.store({b, part, 0, 0}, acc / max(l, 1e-30f));
              L.store({b, part, 0}, squeeze(m + log2(l), 1));
            }).grid([](const KiviCfg& c, const auto& q, const auto&...) {
  return Grid{q.shape[0], c.parts};
});
auto kivi_merge = kernel("user_kivi_merge", [](const KiviCfg& c, Tensor<const float, 4> O, Tensor<const float, 3> L,
                                               Tensor<half, 3> Y) {
                    auto b = program_id(0), g = program_id(1);
                    auto l = squeeze(L.load({b, 0, g}, {c.parts, 1}), 1);
                    auto w = exp2(l - max(l));
                    auto o = squeeze(O.load({b, 0, g, 0}, {c.parts, 1, c.D}), 1);
                    Y.store({b, g, 0}, cast(squeeze(sum(o * w.col(), axis(0)), 0) / sum(w), f16));
                  }).grid([](const KiviCfg& c, const auto& o, const auto&...) {
  return Grid{o.shape[0], c.G};
});
Register r4("kivi", [](Env& e) {
  KiviCfg c;
  if (!e.big) c = {8, 64, 32, 3, 2, 4};
  c.BT = e.field("BT", c.BT), c.parts = e.field("parts", c.parts);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 3, T = e.big ? 16384 : 160, D = c.D, G = c.G;
  auto q = random<half>(e, size_t(B) * G * D);
  auto words = [&](size_t n) {
    return drawn<uint32_t>(e, n, [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  };
  auto kw = words(size_t(B) * D * T / 16), vw = words(size_t(B) * D * T / 16);
  auto some = [&](double low, double high) { return random<half>(e, size_t(B) * D * T / 32, low, high); };
  auto ks = some(.1, .7), kz = some(-1, 0), vs = some(.1, .7), vz = some(-1, 0);
  auto o = constant<float>(e, size_t(B) * c.parts * G * D, NAN), l = constant<float>(e, size_t(B) * c.parts * G, NAN);
  auto y = constant<half>(e, size_t(B) * G * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 1e-6 * (8. * kw.n + 8. * ks.n);
  j.add(kivi, c, q.view(B, G, D), kw.view(B, D, T / 16), ks.view(B, D, T / 32), kz.view(B, D, T / 32),
        vw.view(B, T, D / 16), vs.view(B, T, D / 32), vz.view(B, T, D / 32), o.view(B, c.parts, G, D),
        l.view(B, c.parts, G), scale, T);
  j.add(kivi_merge, c, o.view(B, c.parts, G, D), l.view(B, c.parts, G), y.view(B, G, D));
  j.check = [=] {
    std::vector<double> want(y.n);
    auto number = [](const auto& w, const auto& s, const auto& z, size_t at) {
      return (w.h[at / 16] >> (at % 16 * 2) & 3) * s[at / 32] + z[at / 32];
    };
    for (int r = 0; r < B * G; ++r) {
      double total = 0;
      for (int t = 0; t < T; ++t) {
        double x = 0;
        for (int d = 0; d < D; ++d) x += q[size_t(r) * D + d] * number(kw, ks, kz, (size_t(r / G) * D + d) * T + t);
        const double p = std::exp(x * scale);
        total += p;
        for (int d = 0; d < D; ++d) want[size_t(r) * D + d] += p * number(vw, vs, vz, (size_t(r / G) * T + t) * D + d);
      }
      for (int d = 0; d < D; ++d) want[size_t(r) * D + d] /= total;
    }
    return agree(y.now(), want, 4e-3, 4e-3);
  };
  return j;
});

}  // namespace packed_weights
}  // namespace users
