// beside_cuda_moves.cpp - a transposition with odd sizes, integral images, bucketed hash look-ups, base64 decoding,
// four Jacobi steps in one pass.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_moves {

// --- transposition of f32 with rows that no vector divides
struct OddTransCfg {
  int BM = 64, BN = 64, warps = 4;
};
auto transpose_odd =
    kernel("user_transpose_odd", [](const OddTransCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Y.store({n, m}, trans(X.load({m, n}, {c.BM, c.BN})));
    }).grid([](const OddTransCfg& c, const auto& x, const auto&) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
    });
Register r1("transpose_odd", [](Env& e) {
  OddTransCfg c;
  if (!e.big) c = {16, 32, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8191 : 71, N = e.big ? 6143 : 93;
  auto x = random<float>(e, size_t(M) * N), y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 8e-6 * M * N;
  j.add(transpose_odd, c, x.view(M, N), y.view(N, M));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[size_t(n) * M + m] = x[size_t(m) * N + n];
    return agree(y.now(), want, 1e-30, 0);
  };
  return j;
});

// --- integral image: sums of all pixels above and to the left, bytes in, i32 out; rows, then columns in place
struct SatCfg {
  int BR = 4, BX = 512, BY = 32, BC = 32, warps = 4, colwarps = 4;
};
auto sat_rows = kernel("user_sat_rows", [](const SatCfg& c, Tensor<const uint8_t, 2> P, Tensor<int32_t, 2> S) {
                  num_warps(c.warps);
                  auto y = program_id(0) * c.BR;
                  Tile before = zeros({c.BR, 1}, i32);
                  for (auto x : range(0, P.dim(1), c.BX)) {
                    auto p = cast(P.load({y, x}, {c.BR, c.BX}), i32);
                    S.store({y, x}, cumsum(p, axis(1)) + before);
                    before += sum(p, axis(1));
                  }
                }).grid([](const SatCfg& c, const auto& p, const auto&) { return Grid{cdiv(p.shape[0], c.BR)}; });
auto sat_columns = kernel("user_sat_columns", [](const SatCfg& c, Tensor<int32_t, 2> S) {
                     num_warps(c.colwarps);
                     auto x = program_id(0) * c.BC;
                     Tile before = zeros({1, c.BC}, i32);
                     for (auto y : range(0, S.dim(0), c.BY)) {
                       auto p = S.load({y, x}, {c.BY, c.BC});
                       S.store({y, x}, cumsum(p, axis(0)) + before);
                       before += sum(p, axis(0));
                     }
                   }).grid([](const SatCfg& c, const auto& s) { return Grid{cdiv(s.shape[1], c.BC)}; });
Register r2("sat", [](Env& e) {
  SatCfg c;
  if (!e.big) c = {2, 32, 8, 16, 2, 2};
  c.BR = e.field("BR", c.BR), c.BX = e.field("BX", c.BX), c.BY = e.field("BY", c.BY), c.BC = e.field("BC", c.BC);
  c.warps = e.field("warps", c.warps), c.colwarps = e.field("colwarps", c.colwarps);
  const int H = e.big ? 6000 : 37, W = e.big ? 8000 : 83;
  auto p = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto s = constant<int32_t>(e, size_t(H) * W, -1);
  Job j;
  j.mbytes = 13e-6 * H * W;
  j.add(sat_rows, c, p.view(H, W), s.view(H, W));
  j.add(sat_columns, c, s.view(H, W));
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    for (int y = 0; y < H; ++y) {
      double row = 0;
      for (int x = 0; x < W; ++x)
        row += p.at(size_t(y) * W + x), want[size_t(y) * W + x] = row + (y ? want[size_t(y - 1) * W + x] : 0);
    }
    return agree(s.now(), want, 1e-9, 0);
  };
  return j;
});

// --- look-ups in a hash table of buckets of eight keys, two buckets a key
struct HashCfg {
  int B = 128, warps = 4;
};
constexpr uint32_t kHash1 = 0x9E3779B1u, kHash2 = 0x85EBCA6Bu;
auto hash_find = kernel("user_hash_find", [](const HashCfg& c, Ptr<const uint32_t> queries, Ptr<const uint32_t> keys,
                                             Ptr<const uint32_t> values, Ptr<uint32_t> out, I32 n, I32 shift) {
                   num_warps(c.warps);
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   auto key = load(queries + i, {.mask = i < n, .other = 0xFFFFFFFEu});
                   auto eight = arange(0, 8).row();
                   auto bucket = [&](uint32_t factor) { return cast((key * factor) >> shift, i32); };
                   auto look = [&](Tile b, Tile wanted) {
                     auto slots = load(keys + (b * 8).col() + eight, {.mask = wanted.col(), .other = 0xFFFFFFFFu});
                     return squeeze(max(where(slots == key.col(), eight, -1), axis(1)), 1);
                   };
                   auto b1 = bucket(kHash1), at1 = look(b1, i < n);
                   auto b2 = bucket(kHash2), at2 = look(b2, (i < n) & (at1 < 0));
                   auto at = where(at1 >= 0, b1 * 8 + at1, b2 * 8 + at2);
                   auto v = load(values + at, {.mask = (at1 >= 0) | (at2 >= 0), .other = 0xFFFFFFFFu});
                   store(out + i, v, {.mask = i < n});
                 }).grid([](const HashCfg& c, auto, auto, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r3("hash_find", [](Env& e) {
  HashCfg c;
  if (!e.big) c = {32, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int bits = e.big ? 21 : 6, n = e.big ? 1 << 24 : 333, entries = (8 << bits) / 2;
  const size_t slots = size_t(8) << bits;
  auto mix = [](uint32_t x) { return x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^ x >> 16; };
  std::vector<uint32_t> hk(slots, 0xFFFFFFFFu), hv(slots, 0);
  if (e.device)
    for (int i = 0; i < entries; ++i) {
      const uint32_t key = mix(uint32_t(i)) & 0x7FFFFFFF;  // twice the same: the first is found
      for (uint32_t f : {kHash1, kHash2}) {
        const size_t b = size_t(key * f >> (32 - bits)) * 8;
        size_t s = b;
        while (s < b + 8 && hk[s] != 0xFFFFFFFFu && hk[s] != key) ++s;
        if (s == b + 8) continue;
        if (hk[s] != key) hk[s] = key, hv[s] = uint32_t(i);
        break;
      }
    }
  auto q = filled<uint32_t>(
      e, n, [&](size_t i) { return mix(uint32_t(mix(uint32_t(i) + 77) % (2u * entries))) & 0x7FFFFFFF; });
  auto k = filled<uint32_t>(e, slots, [&](size_t i) { return hk[i]; });
  auto v = filled<uint32_t>(e, slots, [&](size_t i) { return hv[i]; });
  auto o = constant<uint32_t>(e, n, 7);
  Job j;
  j.mbytes = 104e-6 * n;
  j.add(hash_find, c, q.p, k.p, v.p, o.p, n, 32 - bits);
  j.check = [=]() -> std::string {
    const auto got = o.now();
    for (int i = 0; i < n; ++i) {
      uint32_t want = 0xFFFFFFFFu;
      for (uint32_t f : {kHash2, kHash1}) {
        const size_t b = size_t(q.h[i] * f >> (32 - bits)) * 8;
        for (size_t s = b; s < b + 8; ++s)
          if (k.h[s] == q.h[i]) want = v.h[s];
      }
      if (got[i] != want) return "query " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- base64 decoded: four letters to three bytes. form 0: bytes as they are; form 1: words of four letters, three
// words made of four
struct DecodeCfg {
  int B = 1024, warps = 4, form = 0;
};
Tile six_bits_of_four(const Tile& c) {  // four letters in a word, each to its number
  auto ge = [&](uint32_t k) { return (((c | 0x80808080u) - k * 0x01010101u) >> 7) & 0x01010101u; };
  return c + 19u * 0x01010101u - 3u * ge('/') - 12u * ge('0') - 69u * ge('A') - 6u * ge('a');
}
Tile six_bits(const Tile& x) {
  return where(x >= 'a', x - 71, where(x >= 'A', x - 65, where(x >= '0', x + 4, where(x == '+', 62, 63))));
}
auto base64_decode =
    kernel("user_base64_decode", [](const DecodeCfg& c, Ptr<const uint8_t> text, Ptr<uint8_t> bytes, I32 quads) {
      num_warps(c.warps);
      auto t = program_id(0) * c.B + arange(0, c.B);
      auto in = (t < quads).col();
      auto v = six_bits(cast(load(text + (t * 4).col() + arange(0, 4).row(), {.mask = in, .other = 'A'}), i32));
      auto word = sum(v << (18 - 6 * arange(0, 4)).row(), axis(1));
      store(bytes + (t * 3).col() + arange(0, 3).row(), cast((word >> (16 - 8 * arange(0, 3)).row()) & 255, u8),
            {.mask = in});
    }).grid([](const DecodeCfg& c, auto, auto, int quads) { return Grid{cdiv(quads, c.B)}; });
// form 3: as form 0, through views: whole boxes of bytes
auto base64_boxes =
    kernel("user_base64_boxes", [](const DecodeCfg& c, Tensor<const uint8_t, 1> text, Tensor<uint8_t, 1> bytes) {
      num_warps(c.warps);
      auto t = program_id(0) * c.B;
      auto v = six_bits(cast(reshape(text.load({t * 4}, {c.B * 4}), {c.B, 4}), i32));
      auto word = sum(v << (18 - 6 * arange(0, 4)).row(), axis(1));
      bytes.store({t * 3}, reshape(cast((word >> (16 - 8 * arange(0, 3)).row()) & 255, u8), {c.B * 3}));
    }).grid([](const DecodeCfg& c, const auto& t, const auto&) { return Grid{cdiv(t.shape[0], 4 * c.B)}; });
auto base64_words =
    kernel("user_base64_words", [](const DecodeCfg& c, Ptr<const uint32_t> text, Ptr<uint32_t> words, I32 quads) {
      num_warps(c.warps);  // quads: a multiple of 4
      auto t = program_id(0) * c.B + arange(0, c.B);
      Tile a, b, d, f;
      if (c.form == 2) {
        auto w = cast(six_bits_of_four(load(text + t, {.mask = t < quads, .other = 0x41414141u})), i32);
        a = w & 63, b = (w >> 8) & 63, d = (w >> 16) & 63, f = (w >> 24) & 63;
      } else {
        auto w = cast(load(text + t, {.mask = t < quads}), i32);
        auto at = [&](int k) { return six_bits((w >> (8 * k)) & 255); };
        a = at(0), b = at(1), d = at(2), f = at(3);
      }
      auto v = (a << 2 | b >> 4) | ((b & 15) << 4 | d >> 2) << 8 | ((d & 3) << 6 | f) << 16;  // 24 bits, little endian
      auto [even, odd] = split(reshape(v, {c.B / 4, 2, 2}));
      auto [v0, v2] = split(even);
      auto [v1, v3] = split(odd);
      auto g = program_id(0) * (c.B / 4) + arange(0, c.B / 4);
      auto put = [&](int k, Tile x) { store(words + g * 3 + k, cast(x, u32), {.mask = g * 4 < quads}); };
      put(0, v0 | v1 << 24), put(1, cast(cast(v1, u32) >> 8, i32) | v2 << 16), put(2, v2 >> 16 | v3 << 8);
    }).grid([](const DecodeCfg& c, auto, auto, int quads) { return Grid{cdiv(quads, c.B)}; });
Register r4("base64_decode", [](Env& e) {
  DecodeCfg c;
  if (!e.big) c = {64, 2, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", 2);
  const int quads = e.big ? 64'000'000 : 332;
  const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  auto text = drawn<uint8_t>(e, size_t(quads) * 4, [&] { return uint8_t(letters[int(e.uniform() * 64)]); });
  auto out = constant<uint8_t>(e, size_t(quads) * 3, 0), words = constant<uint8_t>(e, size_t(quads) * 3, 0),
       third = constant<uint8_t>(e, size_t(quads) * 3, 0);
  Job j;
  j.mbytes = 7e-6 * quads;
  if (!e.big || !c.form) j.add(base64_decode, c, text.p, out.p, quads);
  if (e.big && c.form == 3) j.add(base64_boxes, c, text.view(quads * 4), out.view(quads * 3));
  if (!e.big) j.add(base64_boxes, c, text.view(quads * 4), third.view(quads * 3));
  if (!e.big || (c.form && c.form < 3))
    j.add(base64_words, c, reinterpret_cast<const uint32_t*>(text.p), reinterpret_cast<uint32_t*>(words.p), quads);
  j.check = [=]() -> std::string {
    const auto got = out.now(), other = words.now(), boxes = third.now();
    const std::string all = letters;
    for (int i = 0; i < quads; ++i) {
      int w = 0;
      for (int k = 0; k < 4; ++k) w = w << 6 | int(all.find(char(text.at(size_t(i) * 4 + k))));
      for (int k = 0; k < 3; ++k)
        if (got[i * 3 + k] != (w >> (16 - 8 * k) & 255) || other[i * 3 + k] != (w >> (16 - 8 * k) & 255) ||
            boxes[i * 3 + k] != (w >> (16 - 8 * k) & 255))
          return "byte " + std::to_string(i * 3 + k);
    }
    return "";
  };
  return j;
});

// --- four steps of Jacobi in one pass over the grid: a program has its cells and four more on every side
struct JacobiCfg {
  int BY = 32, BX = 120, warps = 4, form = 0, stages = 0, unroll = 0;
};
// form 1: a program marches down BX columns, the rows of all steps that are still needed in registers
auto jacobi_march =
    kernel("user_jacobi_march", [](const JacobiCfg& c, Tensor<const float, 2> U, Tensor<float, 2> V, F32 a, F32 b) {
      num_warps(c.warps);
      const int W = c.BX + 8;
      auto y0 = program_id(1) * c.BY, x = program_id(0) * c.BX;
      auto xx = x - 4 + arange(0, W);
      auto inside = (xx >= 0) & (xx < U.dim(1));
      auto edge = zeros({1}, f32);
      std::array<Tile, 4> older, old;
      for (int s = 0; s < 4; ++s) older[s] = zeros({W}, f32), old[s] = zeros({W}, f32);
      for (auto r : range(y0 - 4, y0 + (c.BY + 4), 1, {.stages = c.stages, .unroll = c.unroll})) {
        Tile now = squeeze(U.load({r, x - 4}, {1, W}), 0);
        for (int s = 0; s < 4; ++s) {
          const Tile up = older[s], mid = old[s];
          auto left = cat(edge, extract(mid, {0}, {W - 1})), right = cat(extract(mid, {1}, {W - 1}), edge);
          auto next = a * mid + b * ((up + now) + (left + right));
          auto y = r - (s + 1);
          older[s] = mid, old[s] = now;
          now = where(inside & (y >= 0) & (y < U.dim(0)), next, 0.f);
        }
        for (auto _ : when(r >= y0 + 4)) V.store({r - 4, x}, expand_dims(extract(now, {4}, {c.BX}), 0));
      }
    }).grid([](const JacobiCfg& c, const auto& u, const auto&...) {
      return Grid{cdiv(u.shape[1], c.BX), cdiv(u.shape[0], c.BY)};
    });
auto jacobi_t4 =
    kernel("user_jacobi_t4", [](const JacobiCfg& c, Tensor<const float, 2> U, Tensor<float, 2> V, F32 a, F32 b) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      int h = c.BY + 8, w = c.BX + 8;
      Tile u = U.load({y - 4, x - 4}, {h, w});
      for (int s = 1; s <= 4; ++s) {
        h -= 2, w -= 2;
        auto part = [&](int dy, int dx) { return extract(u, {1 + dy, 1 + dx}, {h, w}); };
        auto next = a * part(0, 0) + b * (part(-1, 0) + part(1, 0) + part(0, -1) + part(0, 1));
        auto yy = y - 4 + s + arange(0, h), xx = x - 4 + s + arange(0, w);
        auto inside = ((yy >= 0) & (yy < U.dim(0))).col() & ((xx >= 0) & (xx < U.dim(1))).row();
        Tile masked = where(inside, next, 0.f);
        u = masked;
      }
      V.store({y, x}, u);
    }).grid([](const JacobiCfg& c, const auto& u, const auto&...) {
      return Grid{cdiv(u.shape[1], c.BX), cdiv(u.shape[0], c.BY)};
    });
Register r5("jacobi_t4", [](Env& e) {
  JacobiCfg c;
  if (!e.big) c = {8, 16, 2, 0};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  c.form = e.field("form", 0), c.stages = e.field("stages", 0), c.unroll = e.field("unroll", 0);
  const int Y = e.big ? 8192 : 29, X = e.big ? 8192 : 45;
  const size_t n = size_t(Y) * X;
  auto u = random<float>(e, n), v = constant<float>(e, n, NAN), other = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 8e-6 * double(n);
  if (!e.big || !c.form) j.add(jacobi_t4, c, u.view(Y, X), v.view(Y, X), .2f, .19f);
  if (!e.big || c.form) j.add(jacobi_march, c, u.view(Y, X), other.view(Y, X), .2f, .19f);
  j.check = [=] {
    std::vector<double> now(n), next(n);
    for (size_t i = 0; i < n; ++i) now[i] = u[i];
    for (int s = 0; s < 4; ++s, now = next)
      for (int y = 0; y < Y; ++y)
        for (int x = 0; x < X; ++x) {
          auto at = [&](int dy, int dx) {
            const int i = y + dy, k = x + dx;
            return i < 0 || k < 0 || i >= Y || k >= X ? 0. : now[size_t(i) * X + k];
          };
          next[size_t(y) * X + x] =
              double(.2f) * at(0, 0) + double(.19f) * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1));
        }
    auto first = agree(v.now(), now, 1e-6, 1e-6);
    return first.empty() ? agree(other.now(), now, 1e-6, 1e-6) : first;
  };
  return j;
});

}  // namespace beside_cuda_moves
}  // namespace users
