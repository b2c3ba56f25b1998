// short_numbers.cpp - integers of 16 and 8 bits, and single bits: local alignments of many sequences in 16 bits
// (CUDASW++), a lane each; elements taken apart into planes of bits for compression (bitshuffle), and back.
#include "tests/users/use.h"
namespace users {
namespace short_numbers {

// --- Smith-Waterman with affine gaps: a lane per sequence of the database, which is stored position by position; eight
// rows of the query at a time stay in registers, what the strip above left comes from memory
struct AlignCfg {
  int B = 256, warps = 4;
};
constexpr int kRows = 8, kLetters = 24;
auto align16 =
    kernel("user_align16", [](const AlignCfg& c, Ptr<const uint8_t> database, Ptr<const int32_t> lengths,
                              Ptr<const uint8_t> query, Ptr<const int8_t> matrix, Ptr<int16_t> edge_h,
                              Ptr<int16_t> edge_f, Ptr<int16_t> scores, I32 sequences, I32 longest, I32 rows) {
      num_warps(c.warps);
      auto lane = program_id(0) * c.B + arange(0, c.B);
      auto in = lane < sequences;
      auto length = load(lengths + lane, {.mask = in});
      const int16_t open = 11, extend = 1, least = -30000;
      Tile best = zeros({c.B}, i16);
      for (auto strip : range(0, rows, kRows)) {
        std::array<Tile, kRows> h, e;
        for (int r = 0; r < kRows; ++r) h[r] = zeros({c.B}, i16), e[r] = full({c.B}, least, i16);
        Tile corner = zeros({c.B}, i16);
        for (auto at : range(max(length))) {
          auto place = cast(at, i64) * cast(sequences, i64) + cast(lane, i64);
          auto here = at < length;
          auto code = cast(load(database + place, {.mask = here}), i32);
          auto inner = here & (strip > 0);
          Tile above = load(edge_h + place, {.mask = inner}), f = load(edge_f + place, {.mask = inner, .other = least});
          Tile diagonal = corner;
          corner = above;
          for (int r = 0; r < kRows; ++r) {
            auto letter = cast(load(query + min(strip + r, rows - 1)), i32);
            auto s = cast(load(matrix + (letter * kLetters + code), {.mask = here & (strip + r < rows)}), i16);
            e[r] = max(e[r] - extend, h[r] - open);
            f = max(f - extend, above - open);
            auto now = max(max(diagonal + s, e[r]), max(f, int16_t(0)));
            diagonal = h[r];
            h[r] = now, above = now;
            best = max(best, where(here & (strip + r < rows), now, int16_t(0)));
          }
          store(edge_h + place, above, {.mask = here});
          store(edge_f + place, f, {.mask = here});
        }
      }
      store(scores + lane, best, {.mask = in});
    }).grid([](const AlignCfg& c, auto, auto, auto, auto, auto, auto, auto, int sequences, int, int) {
      return Grid{cdiv(sequences, c.B)};
    });
Register r1("align16", [](Env& e) {
  AlignCfg c;
  if (!e.big) c = {48, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 65536 : 77, L = e.big ? 384 : 29, Q = e.big ? 256 : 19;
  auto database = integers<uint8_t>(e, size_t(S) * L, 0, 20);
  auto lengths = filled<int32_t>(e, S, [&](size_t i) { return int32_t(i % 13 == 5 ? 0 : L - int(i) * 7 % (L / 3)); });
  auto query = integers<uint8_t>(e, Q, 0, 20);
  auto matrix = filled<int8_t>(e, kLetters * kLetters, [](size_t i) {
    const int a = int(i) / kLetters, b = int(i) % kLetters;
    return int8_t(a == b ? 4 + a % 8 : (a * b * 7 + a + b) % 8 - 5);
  });
  auto edge_h = constant<int16_t>(e, size_t(S) * L, 0), edge_f = constant<int16_t>(e, size_t(S) * L, 0);
  auto scores = constant<int16_t>(e, S, -1);
  Job j;
  j.gflop = 1e-9 * S * double(L) * Q;  // cells
  j.add(align16, c, database.p, lengths.p, query.p, matrix.p, edge_h.p, edge_f.p, scores.p, S, L, Q);
  j.check = [=] {
    std::vector<double> want(S);
    for (int s = 0; s < S; ++s) {
      std::vector<int> h(Q + 1), e_(Q + 1, -100000);
      for (int d = 0; d < lengths.at(s); ++d) {
        int diagonal = 0, f = -100000;
        for (int q = 1; q <= Q; ++q) {
          e_[q] = std::max(e_[q] - 1, h[q] - 11);
          f = std::max(f - 1, h[q - 1] - 11);
          const int match = matrix.at(query.at(q - 1) * kLetters + database.at(size_t(d) * S + s));
          const int now = std::max({0, diagonal + match, e_[q], f});
          diagonal = h[q], h[q] = now;
          want[s] = std::max<double>(want[s], now);
        }
      }
    }
    return agree(scores.now(), want, .1, 0);
  };
  return j;
});

// --- bitshuffle: bit b of 32 neighbours in one word, planes of each block one after the other; and the way back
struct ShuffleCfg {
  int W = 16, warps = 4;  // words of a plane per block
};
auto bits_apart =
    kernel("user_bits_apart", [](const ShuffleCfg& c, Ptr<const uint32_t> in, Ptr<uint32_t> planes, I64 n) {
      num_warps(c.warps);
      auto first = cast(program_id(0), i64) * (c.W * 32);
      auto i = first + reshape(arange(0, c.W * 32), {c.W, 32});
      auto x = load(in + i, {.mask = i < n});
      auto place = arange(0, 32).row();
      for (int b = 0; b < 32; ++b) {
        auto word = sum(cast(x >> b & uint32_t(1), u32) << place, axis(1));
        store(planes + first + (b * c.W + arange(0, c.W)), squeeze(word, 1));
      }
    }).grid([](const ShuffleCfg& c, auto, auto, int64_t n) { return Grid{cdiv(n, c.W * 32)}; });
auto bits_together =
    kernel("user_bits_together", [](const ShuffleCfg& c, Ptr<const uint32_t> planes, Ptr<uint32_t> out, I64 n) {
      num_warps(c.warps);
      auto first = cast(program_id(0), i64) * (c.W * 32);
      auto place = arange(0, 32).row();
      Tile x = zeros({c.W, 32}, u32);
      for (int b = 0; b < 32; ++b) {
        auto word = load(planes + first + (b * c.W + arange(0, c.W)));
        x = x | (word.col() >> place & uint32_t(1)) << b;
      }
      auto i = first + reshape(arange(0, c.W * 32), {c.W, 32});
      store(out + i, x, {.mask = i < n});
    }).grid([](const ShuffleCfg& c, auto, auto, int64_t n) { return Grid{cdiv(n, c.W * 32)}; });
Register r2("bitshuffle", [](Env& e) {
  ShuffleCfg c;
  if (!e.big) c = {3, 1};
  c.W = e.field("W", c.W), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? 1 << 25 : 32 * 7 + 5, blocks = (n + c.W * 32 - 1) / (c.W * 32);
  auto in = drawn<uint32_t>(e, n, [&] { return uint32_t(e.uniform() * 0x1p20) * 2654435761u; });
  auto planes = constant<uint32_t>(e, blocks * c.W * 32, 7);
  auto out = constant<uint32_t>(e, n, 9);
  Job j;
  j.mbytes = 1e-6 * 16 * double(n);
  j.add(bits_apart, c, in.p, planes.p, n);
  j.add(bits_together, c, planes.p, out.p, n);
  j.check = [=] {
    const auto got = planes.now(), back = out.now();
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t block = i / (c.W * 32), b = i / c.W % 32, word = i % c.W;
      uint32_t want = 0;
      for (size_t k = 0; k < 32; ++k) {
        const size_t at = (block * c.W + word) * 32 + k;
        if (at < size_t(n)) want |= (in.at(at) >> b & 1) << k;
      }
      if (got[i] != want) return "word " + std::to_string(i);
    }
    return std::string(back == in.h ? "" : "another array comes back");
  };
  return j;
});

}  // namespace short_numbers
}  // namespace users
