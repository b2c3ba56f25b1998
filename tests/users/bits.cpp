// bits.cpp - kernels of integers and single bits: boxes suppressed by masks of 64, edit distances a word at a time, a
// stream cipher, binary products, columns packed in any width, codes of variable length, blocks of a picture, connected
// components, sorted lists merged.
#include <algorithm>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace bits {

// --- boxes that overlap a better one: 64 x 64 pairs to 64 words, then a walk over the boxes from the best
struct NmsCfg {
  int words = 64, warps = 4;
};
auto nms_pairs = kernel("user_nms_pairs", [](const NmsCfg& c, Tensor<const float, 2> boxes, Tensor<uint64_t, 2> masks,
                                             F32 threshold) {
  // boxes [N, 4] (x0, y0, x1, y1; best first), masks [N, words]: bit j of word w: box 64 w + j is behind and overlaps
  num_warps(c.warps);
  auto i0 = program_id(1) * 64, j0 = program_id(0) * 64;
  auto i = i0 + arange(0, 64).col(), j = j0 + arange(0, 64).row();
  return_if(j0 + 63 < i0);
  auto corner = [&](Tile from, int which) { return boxes.load({from, which}, {64, 1}); };
  auto span = [&](int low, int high) {
    auto a = min(corner(i0, high), trans(corner(j0, high))), b = max(corner(i0, low), trans(corner(j0, low)));
    return max(a - b, 0.f);
  };
  auto area = [&](Tile from) {
    return (corner(from, 2) - corner(from, 0)) * (corner(from, 3) - corner(from, 1));
  };
  auto both = span(0, 2) * span(1, 3);
  auto overlaps = (both > threshold * (area(i0) + trans(area(j0)) - both)) & (j > i) & (j < boxes.dim(0));
  auto bits = where(overlaps, cast(1, u64) << cast(arange(0, 64).row(), u64), cast(0, u64));
  auto word = reduce(bits, axis(1), [](Tile a, Tile b) { return a | b; });
  masks.store({i0, program_id(0)}, word);
}).grid([](const NmsCfg& c, const auto& b, const auto&...) { return Grid{c.words, cdiv(b.shape[0], 64)}; });
auto nms_walk = kernel("user_nms_walk", [](const NmsCfg& c, Tensor<const uint64_t, 2> masks, Ptr<bool> keep,
                                           Ptr<int32_t> count) {
  num_warps(1);
  Tile removed = zeros({c.words}, u64);
  Tile n = 0;
  for (auto i : range(0, masks.dim(0))) {
    auto word = sum(where(arange(0, c.words) == i / 64, removed, cast(0, u64)));
    auto kept = ((word >> cast(i % 64, u64)) & 1) == 0;
    store(keep + i, kept);
    for (auto _ : when(kept)) {
      removed |= squeeze(masks.load({i, 0}, {1, c.words}), 0);
      n += 1;
    }
  }
  store(count, n);
}).grid([](const NmsCfg&, const auto&...) { return Grid{1}; });
Register r1("nms", [](Env& e) {
  const int N = e.big ? 4096 : 150;
  NmsCfg c{(N + 63) / 64, 4};
  auto boxes = filled<float>(e, size_t(N) * 4, [&](size_t) { return 0.f; });
  if (e.device) {
    for (int i = 0; i < N; ++i) {
      const double x = e.uniform() * 100, y = e.uniform() * 100;
      boxes.h[i * 4] = float(x), boxes.h[i * 4 + 1] = float(y);
      boxes.h[i * 4 + 2] = float(x + 5 + 20 * e.uniform()), boxes.h[i * 4 + 3] = float(y + 5 + 20 * e.uniform());
    }
    boxes = filled<float>(e, boxes.n, [h = boxes.h](size_t i) { return h[i]; });
  }
  auto masks = filled<uint64_t>(e, size_t(N) * c.words, [](size_t) { return uint64_t(0); });
  auto keep = filled<uint8_t>(e, N, [](size_t) { return uint8_t(7); });
  auto count = constant<int32_t>(e, 1, -1);
  Job j;
  j.inTurn = true;
  j.add(nms_pairs, c, boxes.view(N, 4), masks.view(N, c.words), .3f);
  j.add(nms_walk, c, masks.view(N, c.words), reinterpret_cast<bool*>(keep.p), count.p);
  j.check = [=] {
    std::vector<double> want(N, 1);
    double total = 0;
    auto at = [&](int i, int k) { return float(boxes[i * 4 + k]); };
    for (int i = 0; i < N; ++i) {
      if (want[i] == 0) continue;
      total += 1;
      for (int j = i + 1; j < N; ++j) {
        const float w = std::max(std::min(at(i, 2), at(j, 2)) - std::max(at(i, 0), at(j, 0)), 0.f);
        const float h = std::max(std::min(at(i, 3), at(j, 3)) - std::max(at(i, 1), at(j, 1)), 0.f);
        auto area = [&](int k) { return (at(k, 2) - at(k, 0)) * (at(k, 3) - at(k, 1)); };
        if (w * h > .3f * (area(i) + area(j) - w * h)) want[j] = 0;
      }
    }
    const auto wrong = agree(keep.now(), want, .5, 0);
    return wrong.empty() ? agree(count.now(), {total}, .5, 0) : wrong;
  };
  return j;
});

// --- edit distance of one pattern of up to 64 characters and many texts (Myers 1999): a column of the table is two
// words
struct EditCfg {
  int B = 128, warps = 4;
};
auto edit_distance =
    kernel("user_edit_distance", [](const EditCfg& c, Tensor<const uint8_t, 2> texts, Ptr<const int32_t> lengths,
                                    Ptr<const uint64_t> positions, Ptr<int32_t> distances, I32 m) {
      // texts [longest, N], a column each; positions [256]: bit i: pattern[i] is that character
      num_warps(c.warps);
      auto n = program_id(0) * c.B + arange(0, c.B);
      auto inside = n < texts.dim(1);
      auto length = load(lengths + n, {.mask = inside});
      auto high = cast(1, u64) << cast(m - 1, u64);
      Tile vp = full({c.B}, ~0ull, u64), vn = zeros({c.B}, u64), score = full({c.B}, m, i32);
      for (auto j : range(0, max(length))) {
        auto live = j < length;
        auto letter = cast(load(texts.ptr() + j * texts.dim(1) + n, {.mask = live}), i32);
        auto eq = load(positions + letter);
        auto d0 = (((eq & vp) + vp) ^ vp) | eq | vn;
        auto hp = vn | ~(d0 | vp), hn = d0 & vp;
        score = where(live & ((hp & high) != 0), score + 1, where(live & ((hn & high) != 0), score - 1, score));
        auto shifted = (hp << 1) | 1;
        vp = where(live, (hn << 1) | ~(d0 | shifted), vp);
        vn = where(live, d0 & shifted, vn);
      }
      store(distances + n, score, {.mask = inside});
    }).grid([](const EditCfg& c, const auto& t, const auto&...) { return Grid{cdiv(t.shape[1], c.B)}; });
Register r2("edit_distance", [](Env& e) {
  EditCfg c;
  const int N = e.big ? 1 << 19 : 300, L = e.big ? 128 : 37, m = e.big ? 64 : 23;
  auto texts = integers<uint8_t>(e, size_t(N) * L, 'a', 'e');
  auto lengths = integers<int32_t>(e, N, 0, L + 1);
  std::string pattern;
  for (int i = 0; i < m; ++i) pattern += char('a' + i * i % 5 % 4);
  auto positions = filled<uint64_t>(e, 256, [&](size_t letter) {
    uint64_t bits = 0;
    for (int i = 0; i < m; ++i) bits |= uint64_t(size_t(pattern[i]) == letter) << i;
    return bits;
  });
  auto out = constant<int32_t>(e, N, -1);
  Job j;
  j.mbytes = 1e-6 * N * L;
  j.add(edit_distance, c, texts.view(L, N), lengths.p, positions.p, out.p, m);
  j.check = [=] {
    std::vector<double> want(N);
    for (int n = 0; n < N; ++n) {
      std::vector<int> row(m + 1);
      std::iota(row.begin(), row.end(), 0);
      for (int t = 0; t < lengths.at(n); ++t) {
        int before = row[0]++;
        for (int i = 1; i <= m; ++i) {
          const int other = before + (pattern[i - 1] != char(texts.at(size_t(t) * N + n)));
          before = row[i];
          row[i] = std::min({other, row[i] + 1, row[i - 1] + 1});
        }
      }
      want[n] = row[m];
    }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

// --- ChaCha20: every program enciphers blocks of 64 bytes
struct ChachaCfg {
  int B = 128, warps = 4;
};
Tile rotated(const Tile& x, int by) { return (x << by) | (x >> (32 - by)); }
Tile side_by_side(std::vector<Tile> parts) {  // [B] each to [B, parts], a power of two
  for (Tile& part : parts) part = part.col();
  while (parts.size() > 1) {
    std::vector<Tile> longer;
    for (size_t i = 0; i < parts.size(); i += 2) longer.push_back(cat(parts[i], parts[i + 1], 1));
    parts = longer;
  }
  return parts[0];
}
auto chacha = kernel("user_chacha", [](const ChachaCfg& c, Tensor<const uint32_t, 2> text, Tensor<uint32_t, 2> cipher,
                                       Ptr<const uint32_t> key, U64 counter, U64 nonce) {
  // text, cipher [blocks, 16], key [8]
  num_warps(c.warps);
  auto b = program_id(0) * c.B;
  auto block = counter + cast(b + arange(0, c.B), u64);
  auto word = [&](uint32_t x) { return full({c.B}, x, u32); };
  std::vector<Tile> first{word(0x61707865), word(0x3320646e), word(0x79622d32), word(0x6b206574)};
  for (int i = 0; i < 8; ++i) first.push_back(broadcast_to(load(key + i), {c.B}));
  first.push_back(cast(block, u32));
  first.push_back(cast(block >> 32, u32));
  first.push_back(broadcast_to(cast(nonce, u32), {c.B}));
  first.push_back(broadcast_to(cast(nonce >> 32, u32), {c.B}));
  std::vector<Tile> x = first;
  auto quarter = [&](int i, int j, int k, int l) {
    x[i] += x[j], x[l] = rotated(x[l] ^ x[i], 16);
    x[k] += x[l], x[j] = rotated(x[j] ^ x[k], 12);
    x[i] += x[j], x[l] = rotated(x[l] ^ x[i], 8);
    x[k] += x[l], x[j] = rotated(x[j] ^ x[k], 7);
  };
  for (auto round : range(0, 10)) {
    for (int i = 0; i < 4; ++i) quarter(i, i + 4, i + 8, i + 12);
    for (int i = 0; i < 4; ++i) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (int i = 0; i < 16; ++i) x[i] += first[i];
  cipher.store({b, 0}, text.load({b, 0}, {c.B, 16}) ^ side_by_side(x));
}).grid([](const ChachaCfg& c, const auto& t, const auto&...) { return Grid{cdiv(t.shape[0], c.B)}; });
Register r3("chacha", [](Env& e) {
  ChachaCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 20 : 150;
  auto text = integers<uint32_t>(e, size_t(N) * 16, 0, 1ll << 32), key = integers<uint32_t>(e, 8, 0, 1ll << 32);
  auto out = filled<uint32_t>(e, size_t(N) * 16, [](size_t) { return 0u; });
  const uint64_t counter = 0xfffffff0, nonce = 0x0123456789abcdefull;
  Job j;
  j.mbytes = 128e-6 * N;
  j.add(chacha, c, text.view(N, 16), out.view(N, 16), key.p, counter, nonce);
  j.check = [=] {
    const auto got = out.now();
    for (int n = 0; n < N; ++n) {
      uint32_t s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
      for (int i = 0; i < 8; ++i) s[4 + i] = key.at(i);
      s[12] = uint32_t(counter + n), s[13] = uint32_t((counter + n) >> 32);
      s[14] = uint32_t(nonce), s[15] = uint32_t(nonce >> 32);
      std::copy(s, s + 16, x);
      auto turn = [](uint32_t v, int by) { return v << by | v >> (32 - by); };
      auto quarter = [&](int i, int j, int k, int l) {
        x[i] += x[j], x[l] = turn(x[l] ^ x[i], 16), x[k] += x[l], x[j] = turn(x[j] ^ x[k], 12);
        x[i] += x[j], x[l] = turn(x[l] ^ x[i], 8), x[k] += x[l], x[j] = turn(x[j] ^ x[k], 7);
      };
      for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 4; ++i) quarter(i, i + 4, i + 8, i + 12);
        for (int i = 0; i < 4; ++i) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
      }
      for (int i = 0; i < 16; ++i)
        if (got[n * 16 + i] != ((x[i] + s[i]) ^ text.at(n * 16 + i))) return std::string("another stream");
    }
    return std::string();
  };
  return j;
});

// --- products of -1 and 1, a bit each
struct BinaryCfg {
  int BM = 64, BN = 64, BK = 4, warps = 8;
};
auto binary_product =
    kernel("user_binary_product", [](const BinaryCfg& c, Tensor<const uint32_t, 2> A, Tensor<const uint32_t, 2> B,
                                     Tensor<int32_t, 2> C) {
      // A [M, K / 32], B [N, K / 32], C [M, N]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile differ = zeros({c.BM, c.BN}, i32);
      for (auto k : range(0, A.dim(1), c.BK)) {
        auto a = expand_dims(A.load({m, k}, {c.BM, c.BK}), 1), b = expand_dims(B.load({n, k}, {c.BN, c.BK}), 0);
        differ += squeeze(sum(cast(popcount(a ^ b), i32), axis(2)), 2);
      }
      C.store({m, n}, A.dim(1) * 32 - 2 * differ);
    }).grid([](const BinaryCfg& c, const auto& a, const auto& b, const auto&) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
    });
Register r4("binary_product", [](Env& e) {
  BinaryCfg c;
  if (!e.big) c = {16, 32, 4, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 2048 : 37, N = e.big ? 2048 : 45, K = e.big ? 128 : 7;
  auto a = integers<uint32_t>(e, size_t(M) * K, 0, 1ll << 32), b = integers<uint32_t>(e, size_t(N) * K, 0, 1ll << 32);
  auto out = constant<int32_t>(e, size_t(M) * N, -1);
  Job j;
  j.gflop = 64e-9 * M * double(N) * K;
  j.add(binary_product, c, a.view(M, K), b.view(N, K), out.view(M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        int sum = 32 * K;
        for (int k = 0; k < K; ++k) sum -= 2 * __builtin_popcount(a.at(m * K + k) ^ b.at(n * K + k));
        want.push_back(sum);
      }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

// --- a column of a table: blocks of differences in as many bits as their largest needs, zigzag, from a base
struct ColumnCfg {
  int B = 256, warps = 2;
};
auto unpack_column =
    kernel("user_unpack_column", [](const ColumnCfg& c, Ptr<const uint64_t> words, Ptr<const int64_t> starts,
                                    Ptr<const uint8_t> widths, Ptr<const int64_t> bases, Ptr<int64_t> out, I64 n) {
      num_warps(c.warps);
      auto b = program_id(0);
      auto width = cast(load(widths + b), u64);
      auto i = arange(0, c.B);
      auto bit = cast(i, u64) * width;
      auto from = words + load(starts + b) + cast(bit / 64, i64);
      auto shift = bit % 64;
      auto spills = shift + width > 64;
      auto low = load(from) >> shift;
      auto high = where(spills, load(from + 1, {.mask = spills}) << ((64 - shift) % 64), cast(0, u64));
      auto code = (low | high) & ((cast(1, u64) << width) - 1);
      auto delta = cast(code >> 1, i64) ^ -cast(code & 1, i64);
      auto at = cast(b, i64) * c.B + i;
      store(out + at, load(bases + b) + cumsum(delta, axis(0)), {.mask = at < n});
    }).grid([](const ColumnCfg& c, const auto&, const auto&, const auto&, const auto&, const auto&, int64_t n) {
      return Grid{cdiv(n, c.B)};
    });
Register r5("unpack_column", [](Env& e) {
  ColumnCfg c;
  const int64_t n = e.big ? 1 << 25 : 1000;
  const int blocks = int((n + c.B - 1) / c.B);
  auto width_of = [](size_t b) { return uint8_t(1 + b * 7 % 41); };
  auto widths = filled<uint8_t>(e, blocks, width_of);
  std::vector<int64_t> start{0};
  for (int b = 0; b < blocks; ++b) start.push_back(start.back() + (width_of(b) * c.B + 63) / 64);
  auto starts = filled<int64_t>(e, blocks, [&](size_t b) { return start[b]; });
  auto words = drawn<uint64_t>(e, start.back() + 1, [&] {
    return uint64_t(e.uniform() * 16777216) << 40 ^ uint64_t(e.uniform() * 16777216) << 20 ^
           uint64_t(e.uniform() * 16777216);
  });
  auto bases = integers<int64_t>(e, blocks, -(1ll << 40), 1ll << 40);
  auto out = filled<int64_t>(e, n, [](size_t) { return int64_t(-1); });
  Job j;
  j.mbytes = 1e-6 * (8. * n + 8. * start.back());
  j.add(unpack_column, c, words.p, starts.p, widths.p, bases.p, out.p, n);
  j.check = [=] {
    const auto got = out.now();
    int64_t x = 0;
    for (int64_t i = 0; i < n; ++i) {
      const size_t b = i / c.B;
      if (i % c.B == 0) x = bases.at(b);
      uint64_t code = 0;
      for (int k = 0; k < widths.at(b); ++k) {
        const uint64_t bit = uint64_t(i % c.B) * widths.at(b) + k;
        code |= (words.at(starts.at(b) + bit / 64) >> bit % 64 & 1) << k;
      }
      x += int64_t(code >> 1) ^ -int64_t(code & 1);
      if (got[i] != x) return "element " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

// --- codes of variable length one behind the other: every block of symbols to a region of its own
struct CodesCfg {
  int B = 512, warps = 4;
};
auto pack_codes =
    kernel("user_pack_codes", [](const CodesCfg& c, Tensor<const uint8_t, 1> symbols, Ptr<const uint32_t> codes,
                                 Ptr<const uint8_t> lengths, Tensor<uint32_t, 2> out, Tensor<int32_t, 1> bits) {
      // codes, lengths [256] (at most 24 bits), out [blocks, words] of zeros, bits [blocks]
      num_warps(c.warps);
      auto b = program_id(0);
      auto i = b * c.B + arange(0, c.B);
      auto live = i < symbols.dim(0);
      auto symbol = cast(symbols.load({b * c.B}, {c.B}), i32);
      auto code = cast(load(codes + symbol), u64);
      auto length = where(live, cast(cast(load(lengths + symbol), u32), i32), 0);
      auto end = cumsum(length, axis(0));
      auto at = end - length;
      auto moved = code << cast(at % 32, u64);
      auto word = out.ptr() + cast(b, i64) * out.stride(0) + at / 32;
      auto low = cast(moved, u32), high = cast(moved >> 32, u32);
      atomic_or(word, low, {.mask = live, .order = Order::relaxed});
      atomic_or(word + 1, high, {.mask = live & (high != 0), .order = Order::relaxed});
      bits.store({b}, max(end));
    }).grid([](const CodesCfg& c, const auto& s, const auto&...) { return Grid{cdiv(s.shape[0], c.B)}; });
Register r6("pack_codes", [](Env& e) {
  CodesCfg c;
  if (!e.big) c = {128, 4};
  const int N = e.big ? 1 << 25 : 700, blocks = (N + c.B - 1) / c.B, words = c.B * 24 / 32 + 1;
  auto symbols = integers<uint8_t>(e, N, 0, 256);
  auto length = [](size_t i) { return uint8_t(1 + i * 5 % 24); };
  auto lengths = filled<uint8_t>(e, 256, length);
  auto codes = filled<uint32_t>(e, 256, [&](size_t i) { return uint32_t(i * 2654435761u) & ((1u << length(i)) - 1); });
  auto out = filled<uint32_t>(e, size_t(blocks) * words, [](size_t) { return 0u; });
  auto bits = constant<int32_t>(e, blocks, -1);
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * N * (1 + 12.5 / 8);
  j.add(pack_codes, c, symbols.view(N), codes.p, lengths.p, out.view(blocks, words), bits.view(blocks));
  j.check = [=] {
    std::vector<uint32_t> want(out.n);
    std::vector<double> ends(blocks);
    for (int i = 0; i < N; ++i) {
      const int b = i / c.B, s = symbols.at(i);
      for (int k = 0; k < lengths.at(s); ++k, ends[b] += 1)
        want[size_t(b) * words + int(ends[b]) / 32] |= (codes.at(s) >> k & 1) << (int(ends[b]) % 32);
    }
    if (out.now() != want) return std::string("other bits");
    return agree(bits.now(), ends, .5, 0);
  };
  return j;
});

// --- 8 x 8 blocks of a picture: cosine transform, quantised, in zigzag order
struct BlocksCfg {
  int BY = 2, BX = 8, warps = 4;
};
auto dct_blocks =
    kernel("user_dct_blocks", [](const BlocksCfg& c, Tensor<const uint8_t, 2> picture, Tensor<const float, 2> cosines,
                                 Tensor<const float, 2> steps, Ptr<const int32_t> order, Tensor<int16_t, 3> out) {
      // picture [H, W], cosines [8, 8], steps [8, 8], order [64], out [H / 8, W / 8, 64]
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      const int n = c.BY * c.BX;
      auto pixels = cast(picture.load({y * 8, x * 8}, {c.BY * 8, c.BX * 8}), f32) - 128.f;
      auto blocks = permute(reshape(pixels, {c.BY, 8, c.BX, 8}), {0, 2, 1, 3});  // [BY, BX, 8, 8]
      auto C = cosines.load({0, 0}, {8, 8});
      auto across = reshape(dot(reshape(blocks, {n * 8, 8}), trans(C)), {n, 8, 8});
      auto both = trans(reshape(dot(reshape(trans(across), {n * 8, 8}), trans(C)), {n, 8, 8}));
      auto levels = cast(rint(both / expand_dims(steps.load({0, 0}, {8, 8}), 0)), i16);
      auto zigzag = broadcast_to(load(order + arange(0, 64)).row(), {n, 64});
      out.store({y, x, 0}, reshape(take(reshape(levels, {n, 64}), zigzag, 1), {c.BY, c.BX, 64}));
    }).grid([](const BlocksCfg& c, const auto& p, const auto&...) {
      return Grid{cdiv(p.shape[1] / 8, c.BX), cdiv(p.shape[0] / 8, c.BY)};
    });
Register r7("dct_blocks", [](Env& e) {
  BlocksCfg c;
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4096 : 40, W = e.big ? 8192 : 104;
  auto p = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto cosine = [](int k, int i) { return std::cos((2 * i + 1) * k * M_PI / 16) * (k ? .5 : std::sqrt(.125)); };
  auto cosines = filled<float>(e, 64, [&](size_t i) { return float(cosine(int(i / 8), int(i % 8))); });
  auto steps = filled<float>(e, 64, [](size_t i) { return float(8 + i / 8 * 3 + i % 8 * 3); });
  std::vector<int> zigzag(64);
  std::iota(zigzag.begin(), zigzag.end(), 0);
  std::stable_sort(zigzag.begin(), zigzag.end(), [](int a, int b) {
    const int da = a / 8 + a % 8, db = b / 8 + b % 8;
    return da != db ? da < db : da % 2 ? a / 8 < b / 8 : a / 8 > b / 8;
  });
  auto order = filled<int32_t>(e, 64, [&](size_t i) { return zigzag[i]; });
  auto out = filled<int16_t>(e, size_t(H) * W, [](size_t) { return int16_t(-9999); });
  Job j;
  j.mbytes = 3e-6 * H * W;
  j.add(dct_blocks, c, p.view(H, W), cosines.view(8, 8), steps.view(8, 8), order.p, out.view(H / 8, W / 8, 64));
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    for (int by = 0; by < H / 8; ++by)
      for (int bx = 0; bx < W / 8; ++bx)
        for (int z = 0; z < 64; ++z) {
          double sum = 0;
          for (int i = 0; i < 64; ++i)
            sum += (p[size_t(by * 8 + i / 8) * W + bx * 8 + i % 8] - 128) * cosine(zigzag[z] / 8, i / 8) *
                   cosine(zigzag[z] % 8, i % 8);
          want[(size_t(by) * (W / 8) + bx) * 64 + z] = sum / steps[zigzag[z]];
        }
    return agree(out.now(), want, .501, 0);
  };
  return j;
});

// --- connected components: edges hook roots under smaller ones, then everybody looks for its root
struct ComponentsCfg {
  int B = 256, warps = 4;
};
auto hook = kernel("user_hook", [](const ComponentsCfg& c, Ptr<const int32_t> from, Ptr<const int32_t> to,
                                   Ptr<int32_t> parents, I32 edges) {
  num_warps(c.warps);
  auto i = program_id(0) * c.B + arange(0, c.B);
  auto live = i < edges;
  Tile u = load(from + i, {.mask = live}), v = load(to + i, {.mask = live});
  while_([&] { return any(u != v); },
         [&] {
           auto high = max(u, v), low = min(u, v);
           auto before = atomic_min(parents + high, low, {.mask = u != v, .order = Order::relaxed});
           // whoever was above `high` until now has to meet `low`, unless nobody was
           auto go_on = (u != v) & (before != high);
           u = where(go_on, before, low);
           v = low;
         });
});
auto find_roots = kernel("user_find_roots", [](const ComponentsCfg& c, Ptr<const int32_t> parents, Ptr<int32_t> labels,
                                               I32 n) {
  num_warps(c.warps);
  auto i = program_id(0) * c.B + arange(0, c.B);
  auto live = i < n;
  Tile at = i, above = load(parents + i, {.mask = live, .other = i});
  while_([&] { return any(above != at); },
         [&] {
           at = above;
           above = load(parents + at, {.mask = live, .other = at});
         });
  store(labels + i, at, {.mask = live});
}).grid([](const ComponentsCfg& c, const auto*, const auto*, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("components", [](Env& e) {
  ComponentsCfg c;
  const int N = e.big ? 1 << 21 : 600, E = e.big ? 1 << 22 : 500;
  auto from = integers<int32_t>(e, E, 0, N), to = integers<int32_t>(e, E, 0, N);
  auto parents = filled<int32_t>(e, N, [](size_t i) { return int32_t(i); });
  auto labels = constant<int32_t>(e, N, -1);
  static auto gridded = hook.grid([](const ComponentsCfg& c, const auto*, const auto*, const auto*, int n) {
    return Grid{cdiv(n, c.B)};
  });
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * (8. * E + 8. * N);
  j.add(gridded, c, from.p, to.p, parents.p, E);
  j.add(find_roots, c, parents.p, labels.p, N);
  j.check = [=] {
    std::vector<int> root(N);
    std::iota(root.begin(), root.end(), 0);
    auto find = [&](int x) {
      while (root[x] != x) x = root[x] = root[root[x]];
      return x;
    };
    for (int i = 0; i < E; ++i) {
      const int a = find(from.at(i)), b = find(to.at(i));
      root[std::max(a, b)] = std::min(a, b);
    }
    std::vector<double> want(N);
    for (int i = 0; i < N; ++i) want[i] = find(i);
    return agree(labels.now(), want, .5, 0);
  };
  return j;
});

// --- two sorted lists become one: every output looks for its place on its diagonal
struct MergeCfg {
  int B = 512, warps = 4;
};
auto merge = kernel("user_merge", [](const MergeCfg& c, Tensor<const int64_t, 1> A, Tensor<const int64_t, 1> B,
                                     Ptr<int64_t> out, Ptr<uint8_t> from_b) {
  num_warps(c.warps);
  auto na = A.dim(0), nb = B.dim(0);
  auto d = program_id(0) * c.B + arange(0, c.B);
  auto live = d < na + nb;
  // of the first d outputs, as many come from A as lie in [low, high]
  Tile low = max(d - nb, 0), high = min(d, na);
  while_([&] { return any(live & (low < high)); },
         [&] {
           auto searching = live & (low < high);
           auto middle = (low + high) / 2;
           auto a = load(A.ptr() + middle, {.mask = searching});
           auto b = load(B.ptr() + (d - 1 - middle), {.mask = searching});
           auto from_a = a <= b;
           low = where(searching & from_a, middle + 1, low);
           high = where(searching & !from_a, middle, high);
         });
  auto a = load(A.ptr() + low, {.mask = live & (low < na), .other = std::numeric_limits<int64_t>::max()});
  auto b = load(B.ptr() + (d - low), {.mask = live & (d - low < nb), .other = std::numeric_limits<int64_t>::max()});
  auto take_a = (low < na) & ((a <= b) | (d - low >= nb));
  store(out + d, where(take_a, a, b), {.mask = live});
  store(from_b + d, cast(cast(!take_a, u32), u8), {.mask = live});
}).grid([](const MergeCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0] + b.shape[0], c.B)};
});
Register r9("merge", [](Env& e) {
  MergeCfg c;
  if (!e.big) c = {128, 4};
  const int na = e.big ? 1 << 23 : 301, nb = e.big ? 1 << 22 : 77;
  auto sorted = [&](int n) {
    std::vector<int64_t> keys;
    if (e.device)
      for (int i = 0; i < n; ++i) keys.push_back(int64_t(e.uniform() * 1e4) * 1'000'000'007ll - 5'000'000'000'000ll);
    std::sort(keys.begin(), keys.end());
    return repeated(e, n, keys);
  };
  auto a = sorted(na), b = sorted(nb), out = constant<int64_t>(e, na + nb, 0);
  auto from = constant<uint8_t>(e, na + nb, 9);
  Job j;
  j.mbytes = 1e-6 * (na + nb) * 17;
  j.add(merge, c, a.view(na), b.view(nb), out.p, from.p);
  j.check = [=] {
    const auto keys = out.now();
    const auto sides = from.now();
    for (int i = 0, ia = 0, ib = 0; i < na + nb; ++i) {
      const bool second = ia == na || (ib < nb && b.at(ib) < a.at(ia));
      const int64_t want = second ? b.at(ib++) : a.at(ia++);
      if (keys[i] != want || sides[i] != second) return "element " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

}  // namespace bits
}  // namespace users
