// quantised_moves.cpp - rows that become 8 or 4 bits on their way somewhere: tokens to their experts, rotated queries
// and keys to pages of a cache, gradients turned by Hadamard matrices and rounded by chance; and padded sequences
// packed.
#include "tests/users/use.h"
namespace users {
namespace quantised_moves {

// --- tokens in the order of their experts, in f8 with a factor per 128 columns; factors column-major for the product
struct PermuteCfg {
  int BM = 8, BD = 512, K = 8, warps = 4;
};
auto permute_f8 =
    kernel("user_permute_f8", [](const PermuteCfg& c, Ptr<const bfloat16> x, Ptr<const int32_t> order, Ptr<fp8_e4m3> y,
                                 Ptr<float> scales, Ptr<int32_t> place, I32 rows, I32 D) {
      num_warps(c.warps);
      auto r = program_id(0) * c.BM + arange(0, c.BM);
      auto d = program_id(1) * c.BD + arange(0, c.BD);
      auto from = load(order + r, {.mask = r < rows, .other = -1});  // token * K + choice, or -1
      auto here = (from >= 0).col() & (d < D).row();
      auto v = cast(load(x + ((from / c.K).col() * D + d.row()), {.mask = here}), f32);
      auto groups = reshape(v, {c.BM, c.BD / 128, 128});
      auto s = max(max(abs(groups), axis(2)), 1e-4f) / 448.f;
      auto q = reshape(cast(clamp(groups / s, -448.f, 448.f), f8e4m3), {c.BM, c.BD});
      store(y + (r.col() * D + d.row()), q, {.mask = (r < rows).col() & (d < D).row()});
      auto g = program_id(1) * (c.BD / 128) + arange(0, c.BD / 128);
      store(scales + (g.row() * rows + r.col()), squeeze(s, 2), {.mask = (r < rows).col() & (g * 128 < D).row()});
      for (auto _ : when(program_id(1) == 0)) store(place + from, r, {.mask = from >= 0});
    }).grid([](const PermuteCfg& c, auto, auto, auto, auto, auto, int rows, int D) {
      return Grid{cdiv(rows, c.BM), cdiv(D, c.BD)};
    });
Register r1("permute_f8", [](Env& e) {
  PermuteCfg c;
  if (!e.big) c = {4, 256, 2, 2};
  c.BM = e.field("BM", c.BM), c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 11, D = e.big ? 7168 : 384, rows = e.big ? T * c.K + 8192 : 37;
  auto x = random<bfloat16>(e, size_t(T) * D, -3, 3);
  // Every choice has one row, in an order that jumps about; the others are padding.
  auto order = filled<int32_t>(e, rows, [&](size_t i) {
    const int64_t at = int64_t(i) * 5 % rows;
    return at < T * c.K ? int32_t(at) : -1;
  });
  auto y = constant<fp8_e4m3>(e, size_t(rows) * D, 1);
  auto s = constant<float>(e, size_t(rows) * (D / 128), NAN);
  auto place = constant<int32_t>(e, T * c.K, -7);
  Job j;
  j.mbytes = 1e-6 * D * (3. * rows);
  j.add(permute_f8, c, x.p, order.p, y.p, s.p, place.p, rows, D);
  j.check = [=]() -> std::string {
    std::vector<double> want, got, factors;
    const auto o = y.now();
    const auto f = s.now();
    const auto p = place.now();
    for (int r = 0; r < rows; ++r) {
      const int from = order.at(r);
      if (from >= 0 && p[from] != r) return "place of choice " + std::to_string(from);
      for (int g = 0; g < D / 128; ++g) {
        double top = 1e-4;
        for (int d = g * 128; d < g * 128 + 128; ++d) {
          const double v = from < 0 ? 0 : x[size_t(from / c.K) * D + d];
          top = std::max(top, std::abs(v)), want.push_back(v);
          got.push_back(double(float(o[size_t(r) * D + d])) * f[size_t(g) * rows + r]);
        }
        factors.push_back(top / 448);
      }
    }
    std::vector<float> rowwise;
    for (int r = 0; r < rows; ++r)
      for (int g = 0; g < D / 128; ++g) rowwise.push_back(f[size_t(g) * rows + r]);
    auto wrong = agree(rowwise, factors, 1e-9, 1e-5);
    return wrong.empty() ? agree(got, want, 5e-3, 7e-2) : "factors: " + wrong;
  };
  return j;
});

// --- a row of q, k and v: q and k are rotated, q goes out in f8, k and v to their slots of a cache in f8
struct RopeCfg {
  int D = 128, HQ = 32, HK = 8, warps = 1;
};
auto rope_f8_pages =
    kernel("user_rope_f8_pages", [](const RopeCfg& c, Ptr<const bfloat16> qkv, Ptr<const int64_t> positions,
                                    Ptr<const float> cos_sin, Ptr<const int64_t> slots, Ptr<const float> factors,
                                    Ptr<fp8_e4m3> q, Ptr<fp8_e4m3> pages, I64 v_offset) {
      num_warps(c.warps);
      auto t = program_id(0), h = program_id(1);
      auto i = arange(0, c.D / 2);
      auto row = qkv + (t * ((c.HQ + 2 * c.HK) * c.D) + h * c.D);
      Tile a = cast(load(row + i), f32), b = cast(load(row + c.D / 2 + i), f32);
      if_(h < c.HQ + c.HK, [&] {
        auto table = cos_sin + load(positions + t) * c.D;
        auto co = load(table + i), si = load(table + c.D / 2 + i);
        auto turned = a * co - b * si;
        b = b * co + a * si;
        a = turned;
      });
      Tile kind = cast(h >= c.HQ, i32) + cast(h >= c.HQ + c.HK, i32);  // q, k, v
      auto scale = load(factors + kind);
      auto a8 = cast(clamp(a / scale, -448.f, 448.f), f8e4m3), b8 = cast(clamp(b / scale, -448.f, 448.f), f8e4m3);
      if_(
          h < c.HQ,
          [&] {
            auto to = q + (t * (c.HQ * c.D) + h * c.D);
            store(to + i, a8);
            store(to + c.D / 2 + i, b8);
          },
          [&] {
            auto slot = load(slots + t);
            auto head = h - c.HQ - where(kind == 2, c.HK, 0);
            auto to = pages + (slot * (c.HK * c.D) + head * c.D + where(kind == 2, v_offset, int64_t(0)));
            store(to + i, a8, {.mask = slot >= 0});
            store(to + c.D / 2 + i, b8, {.mask = slot >= 0});
          });
    });
Register r2("rope_f8_pages", [](Env& e) {
  RopeCfg c;
  if (!e.big) c = {32, 4, 2, 1};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 9, far = e.big ? 8192 : 64, slots = e.big ? 16384 : 24, width = (c.HQ + 2 * c.HK) * c.D;
  auto x = random<bfloat16>(e, size_t(T) * width, -2, 2);
  auto at = integers<int64_t>(e, T, 0, far);
  auto table = filled<float>(e, size_t(far) * c.D, [&](size_t i) {
    const int p = i / c.D, d = i % c.D, k = d % (c.D / 2);
    const double angle = p * std::pow(1e4, -2. * k / c.D);
    return float(d < c.D / 2 ? std::cos(angle) : std::sin(angle));
  });
  auto slot = filled<int64_t>(e, T, [&](size_t i) { return i == 3 ? -1 : int64_t(i * 7 % slots); });
  auto f = repeated<float>(e, 3, {.01f, .02f, .005f});
  const int64_t v_offset = int64_t(slots) * c.HK * c.D;
  auto q = constant<fp8_e4m3>(e, size_t(T) * c.HQ * c.D, 5), pages = constant<fp8_e4m3>(e, size_t(2 * v_offset), 5);
  Job j;
  j.mbytes = 3e-6 * T * width;
  j.add(rope_f8_pages.grid([T](const RopeCfg& c, auto...) {
    return Grid{T, c.HQ + 2 * c.HK};
  }),
        c, x.p, at.p, table.p, slot.p, f.p, q.p, pages.p, v_offset);
  j.check = [=]() -> std::string {
    std::vector<double> wq(q.n), wp(pages.n, 5);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < c.HQ + 2 * c.HK; ++h) {
        const int kind = (h >= c.HQ) + (h >= c.HQ + c.HK);
        double* to = kind == 0        ? &wq[(size_t(t) * c.HQ + h) * c.D]
                     : slot.at(t) < 0 ? nullptr
                                      : &wp[(kind == 2) * v_offset + (slot.at(t) * c.HK + (h - c.HQ) % c.HK) * c.D];
        for (int i = 0; i < c.D / 2 && to; ++i) {
          double a = x[size_t(t) * width + h * c.D + i], b = x[size_t(t) * width + h * c.D + c.D / 2 + i];
          if (kind < 2) {
            const double co = table[at.at(t) * c.D + i], si = table[at.at(t) * c.D + c.D / 2 + i],
                         turned = a * co - b * si;
            b = b * co + a * si, a = turned;
          }
          to[i] = std::clamp(a / f[kind], -448., 448.), to[c.D / 2 + i] = std::clamp(b / f[kind], -448., 448.);
        }
      }
    auto wrong = agree(q.now(), wq, 1e-2, 7e-2);
    return wrong.empty() ? agree(pages.now(), wp, 1e-2, 7e-2) : "q: " + wrong;
  };
  return j;
});

// --- NVFP4 for gradients: every 16 numbers times a Hadamard matrix with random signs, a factor in e4m3 for them, and
// rounding to e2m1 by chance, two in a byte
struct Fp4Cfg {
  int BM = 16, BN = 128, warps = 4;
};
auto rht_fp4 =
    kernel("user_rht_fp4", [](const Fp4Cfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> signed_h,
                              Tensor<uint8_t, 2> Y, Tensor<fp8_e4m3, 2> S, F32 whole, U64 seed) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      const int groups = c.BM * c.BN / 16;
      auto x = reshape(X.load({m, n}, {c.BM, c.BN}), {groups, 16});
      auto y = dot(x, signed_h.load({0, 0}, {16, 16})) * .25f;
      auto top = max(abs(y), axis(1));
      auto s8 = cast(min(top / (6.f * whole), 448.f), f8e4m3);
      auto s = cast(s8, f32) * whole;
      auto v = min(where(s > 0.f, abs(y) / s, 0.f), 6.f);
      auto step = where(v < 2.f, .5f, where(v < 4.f, 1.f, 2.f));
      auto g = arange(0, groups);
      auto row = m + g / (c.BN / 16), column = n + g % (c.BN / 16) * 16;
      auto at = (cast(row, i64) * X.dim64(1) + column).col() + arange(0, 16).row();
      auto q = min(floor(v / step + rand(seed, at)) * step, 6.f);
      auto code = cast(where(q < 2.f, q * 2.f, where(q < 4.f, q + 2.f, q * .5f + 4.f)), u8);
      code = where(y < 0.f, code | uint8_t(8), code);
      auto [low, high] = split(reshape(code, {c.BM, c.BN / 2, 2}));
      Y.store({m, program_id(1) * (c.BN / 2)}, low | (high << 4));
      S.store({m, program_id(1) * (c.BN / 16)}, reshape(s8, {c.BM, c.BN / 16}));
    }).grid([](const Fp4Cfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
    });
Register r3("rht_fp4", [](Env& e) {
  Fp4Cfg c;
  if (!e.big) c = {8, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 13, N = e.big ? 4096 : 80;
  auto x = random<bfloat16>(e, size_t(M) * N, -2, 2);
  auto h = filled<bfloat16>(e, 256, [](size_t i) {  // rows with signs of their own
    const int r = i / 16, k = i % 16;
    return bfloat16(float((__builtin_popcount(r & k) + (0x5A3C >> r & 1)) % 2 ? -1 : 1));
  });
  auto y = constant<uint8_t>(e, size_t(M) * N / 2, 0);
  auto s = constant<fp8_e4m3>(e, size_t(M) * N / 16, 0);
  const float whole = .003f;
  const uint64_t seed = 77;
  Job j;
  j.mbytes = 1e-6 * M * double(N) * (2.5 + 1. / 16);
  j.add(rht_fp4, c, x.view(M, N), h.view(16, 16), y.view(M, N / 2), s.view(M, N / 16), whole, seed);
  j.check = [=]() -> std::string {
    const auto bytes = y.now();
    const auto factors = s.now();
    const double values[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; n += 16) {
        double t[16], top = 0;
        for (int k = 0; k < 16; ++k) {
          t[k] = 0;
          for (int r = 0; r < 16; ++r) t[k] += .25 * x[size_t(m) * N + n + r] * h[r * 16 + k];
          top = std::max(top, std::abs(t[k]));
        }
        const double f8 = float(factors[(size_t(m) * N + n) / 16]);
        if (std::abs(f8 - top / (6 * whole)) > .07 * f8) return "factor " + std::to_string((m * N + n) / 16);
        for (int k = 0; k < 16; ++k) {
          const size_t at = size_t(m) * N + n + k;
          const int code = bytes[at / 2] >> at % 2 * 4 & 15;
          const double v = std::min(std::abs(t[k]) / (f8 * whole), 6.), step = v < 2 ? .5 : v < 4 ? 1 : 2;
          const double u = (reference_philox(seed, at)[0] >> 8) * 0x1p-24;
          const double got = values[code & 7];
          auto rounded = [&](double by) { return std::min(std::floor((v + by) / step + u) * step, 6.); };
          const bool near = std::abs(v - 2) < 1e-4 || std::abs(v - 4) < 1e-4;  // either step will do
          if (!near && got != rounded(1e-4) && got != rounded(-1e-4)) return "element " + std::to_string(at);
          if (std::abs(t[k]) > 1e-4 && got > 0 && (code >> 3) != (t[k] < 0)) return "sign of " + std::to_string(at);
        }
      }
    return "";
  };
  return j;
});

// --- padded sequences become one: where a token comes from is found in the sums of lengths
struct PackCfg {
  int B = 256, steps = 9, warps = 4;
};
auto pack_tokens = kernel("user_pack_tokens", [](const PackCfg& c, Ptr<const int64_t> ids, Ptr<const int32_t> ends,
                                                 Ptr<int64_t> packed, Ptr<int64_t> labels, Ptr<int32_t> position,
                                                 Ptr<int32_t> owner, I32 sequences, I32 width, I32 capacity) {
                     num_warps(c.warps);
                     auto i = program_id(0) * c.B + arange(0, c.B);
                     Tile low = zeros({c.B}, i32), high = full({c.B}, 1, i32) * sequences;  // first whose end is past i
                     for (int step = 0; step < c.steps; ++step) {
                       auto middle = (low + high) / 2;
                       auto end = load(ends + middle, {.mask = middle < sequences, .other = 0x7fffffff});
                       auto right = (end <= i) & (low < high);
                       low = where(right, middle + 1, low);
                       high = where(right, high, min(high, middle));
                     }
                     auto inside = (low < sequences) & (i < capacity);
                     auto begin = load(ends + low - 1, {.mask = inside & (low > 0), .other = 0});
                     auto end = load(ends + low, {.mask = inside, .other = 0});
                     auto at = i - begin;
                     auto from = ids + (cast(low, i64) * width + at);
                     auto all = i < capacity;
                     store(packed + i, load(from, {.mask = inside, .other = 0}), {.mask = all});
                     auto label = load(from + 1, {.mask = inside & (i + 1 < end), .other = -100});
                     store(labels + i, label, {.mask = all});
                     store(position + i, where(inside, at, 0), {.mask = all});
                     store(owner + i, where(inside, low, -1), {.mask = all});
                   }).grid([](const PackCfg& c, auto, auto, auto, auto, auto, auto, int, int, int capacity) {
  return Grid{cdiv(capacity, c.B)};
});
Register r4("pack_tokens", [](Env& e) {
  PackCfg c;
  if (!e.big) c = {32, 4, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 256 : 7, width = e.big ? 4096 : 23;
  std::vector<int32_t> sums;
  for (int i = 0, sum = 0; i < S; ++i)
    sums.push_back(sum += i == 2 ? 0 : 1 + int(e.uniform() * (width - 1)));  // one of them is empty
  const int total = sums.back(), capacity = (total + 127) / 128 * 128 + 64;
  auto ends = repeated(e, S, sums);
  auto ids = integers<int64_t>(e, size_t(S) * width, 0, 128256);
  auto packed = constant<int64_t>(e, capacity, 9), labels = constant<int64_t>(e, capacity, 9);
  auto position = constant<int32_t>(e, capacity, 9), owner = constant<int32_t>(e, capacity, 9);
  Job j;
  j.mbytes = 32e-6 * capacity;
  j.add(pack_tokens, c, ids.p, ends.p, packed.p, labels.p, position.p, owner.p, S, width, capacity);
  j.check = [=]() -> std::string {
    const auto p = packed.now(), l = labels.now();
    const auto at = position.now(), own = owner.now();
    int i = 0;
    for (int s = 0; s < S; ++s)
      for (int k = 0, n = sums[s] - i; k < n; ++k, ++i) {
        const size_t from = size_t(s) * width + k;
        if (p[i] != ids.at(from) || l[i] != (k + 1 < n ? ids.at(from + 1) : -100) || at[i] != k || own[i] != s)
          return "token " + std::to_string(i);
      }
    for (; i < capacity; ++i)
      if (p[i] || l[i] != -100 || at[i] || own[i] != -1) return "padding " + std::to_string(i);
    return "";
  };
  return j;
});

}  // namespace quantised_moves
}  // namespace users
