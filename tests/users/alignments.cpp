// alignments.cpp - pairs of sequences put side by side: affine gaps along anti-diagonals with the way back, and
// wavefronts that go as far as letters agree.
#include "tests/users/use.h"
namespace users {
namespace alignments {

/// A sequence and a copy with errors.
struct Pair {
  std::vector<uint8_t> a, b;
};
Pair relatives(Env& e, int length, int letters, double errors) {
  Pair p;
  auto letter = [&] { return uint8_t(e.uniform() * letters); };
  for (int i = 0; i < length; ++i) {
    p.a.push_back(letter());
    const double r = e.uniform() / errors;
    if (r < .4) p.b.push_back(letter());
    if (r > .7) p.b.push_back(p.a.back());
    for (double more = r; more < .2; more += .05) p.b.push_back(letter());
  }
  return p;
}

// --- Gotoh: the best local alignment with affine gaps, one pair per program, lanes along an anti-diagonal. A byte per
// cell says where its three numbers come from; a second kernel walks them back, a pair per lane, and writes runs
struct GotohCfg {
  int M = 256, B = 32, warps = 4;  ///< letters of a query at most, pairs per program on the way back (a lane each)
};
enum Op : int { match, gap_in_query, gap_in_text };
constexpr int kOpen = 5, kExtend = 2, kMatch = 3, kMismatch = -4;
auto gotoh = kernel("user_gotoh", [](const GotohCfg& c, Ptr<const uint8_t> query, Ptr<const uint8_t> text,
                                     Ptr<const int32_t> query_begins, Ptr<const int32_t> text_begins, Ptr<uint8_t> ways,
                                     I64 pitch, Ptr<int32_t> scores, Ptr<int32_t> ends) {
               // ways [pairs, diagonals, M], `pitch` bytes a pair: bits 0..1 where H came from (0 nothing, 1 the
               // corner, 2 E, 3 F), bit 2 and 3: E and F go on; ends [pairs, 2]: query, text, behind the last letters
               num_warps(c.warps);
               auto pair = program_id(0);
               auto q0 = load(query_begins + pair), m = load(query_begins + pair + 1) - q0;
               auto t0 = load(text_begins + pair), n = load(text_begins + pair + 1) - t0;
               auto i = arange(0, c.M);
               auto letter = load(query + q0 + i, {.mask = i < m});
               auto one_down = [&](Tile x) { return cat(zeros({1}, i16), extract(x, {0}, {c.M - 1})); };
               Tile h1 = zeros({c.M}, i16), h2 = h1, gap_e = full({c.M}, -30000, i16), gap_f = gap_e;
               Tile best = h1, best_at = zeros({c.M}, i32);
               auto way = ways + cast(pair, i64) * pitch;
               for (auto d : range(m + n - 1)) {
                 auto j = d - i;
                 auto inside = (i < m) & (j >= 0) & (j < n);
                 auto other = load(text + t0 + j, {.mask = inside});
                 auto open_e = h1 - kOpen, open_f = one_down(h1) - kOpen;
                 // From above the first row comes nothing: 0 - open is below every number that counts.
                 auto above = where(i == 0, -30000, cat(full({1}, -30000, i16), extract(gap_f, {0}, {c.M - 1})));
                 auto on_e = gap_e - kExtend, on_f = max(above, -20000) - kExtend;
                 auto e = max(open_e, max(on_e, -20000)), f = max(open_f, on_f);
                 auto corner = one_down(h2) + where(letter == other, cast(kMatch, i16), kMismatch);
                 auto h = max(max(corner, 0), max(e, f));
                 auto from = where(h == 0, 0, where(h == corner, 1, where(h == e, 2, 3)));
                 auto code = from | (cast(on_e > open_e, i32) << 2) | (cast(on_f > open_f, i32) << 3);
                 store(way + cast(d, i64) * c.M + i, cast(code, u8), {.mask = inside});
                 h = where(inside, h, 0);
                 auto better = h > best;
                 best = where(better, h, best), best_at = where(better, d, best_at);
                 h2 = h1, h1 = h, gap_e = where(inside, e, -30000), gap_f = where(inside, f, -30000);
               }
               auto [top, row] = max_with_index(best, axis(0));
               auto diagonal = sum(where(i == row, best_at, 0));
               store(scores + pair, cast(to_scalar(top), i32));
               store(ends + 2 * pair, to_scalar(row) + 1);
               store(ends + 2 * pair + 1, diagonal - to_scalar(row) + 1);
             }).grid([](const GotohCfg&, const auto&...) { return Grid{1}; });
auto way_back = kernel("user_way_back", [](const GotohCfg& c, Ptr<const uint8_t> ways, I64 pitch,
                                           Ptr<const int32_t> ends, Ptr<const int32_t> scores, Ptr<uint32_t> runs,
                                           Ptr<int32_t> counts, I32 most, I32 pairs) {
                  // runs [pairs, most]: length << 4 | op, from the end of the alignment to its beginning
                  num_warps(cdiv(c.B, 32));  // several would wait for each other: their stores keep an order
                  auto pair = program_id(0) * c.B + arange(0, c.B);
                  auto there = pair < pairs;
                  Tile i = load(ends + 2 * pair, {.mask = there}) - 1,
                       j = load(ends + 2 * pair + 1, {.mask = there}) - 1;
                  Tile active = there & (load(scores + pair, {.mask = there}) > 0);
                  Tile in = zeros({c.B}, i8), last = full({c.B}, -1, i8), length = zeros({c.B}, u32);
                  Tile count = zeros({c.B}, i32);
                  auto base = cast(pair, i64) * pitch;
                  while_([&] { return any(active); },
                         [&] {
                           auto cell = base + cast(i + j, i64) * c.M + cast(i, i64);
                           auto way = load(ways + cell, {.mask = active});
                           // Inside of a gap its own bit counts, else where H came from.
                           auto from = cast(way & 3, i8);
                           auto state = where(in == 0, where(from >= 2, from, 0), in);
                           auto steps = active & (from != 0);
                           auto stops = active & (in == 0) & (from == 0);
                           auto moves = active & ~stops;
                           auto op = where(state == 0, cast(match, i8), state - 1);
                           auto ends_run = moves & (op != last) & (length > 0);
                           store(runs + pair * most + count, (length << 4) | cast(last, u32), {.mask = ends_run});
                           count += cast(ends_run, i32);
                           length = where(moves, where(op == last, length + 1, 1), length);
                           last = where(moves, op, last);
                           auto goes_on = where(state == 2, (way & 4) != 0, (way & 8) != 0);
                           in = where(moves, where((state != 0) & goes_on, state, 0), in);
                           i -= cast(moves & (state != 2), i32), j -= cast(moves & (state != 3), i32);
                           active = moves & (i >= 0) & (j >= 0);
                         });
                  auto rest = there & (length > 0);
                  store(runs + pair * most + count, (length << 4) | cast(last, u32), {.mask = rest});
                  store(counts + pair, count + cast(rest, i32), {.mask = there});
                }).grid([](const GotohCfg& c, auto, int64_t, auto, auto, auto, auto, int, int pairs) {
  return Grid{cdiv(pairs, c.B)};
});
Register r1("gotoh", [](Env& e) {
  GotohCfg c;
  if (!e.big) c = {64, 8, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int pairs = e.big ? 4096 : 13;
  std::vector<uint8_t> query, text;
  std::vector<int32_t> qb{0}, tb{0};
  int diagonals = 0, most = 0;
  for (int p = 0; p < pairs; ++p) {
    Pair one = relatives(e, e.big ? 400 : 20 + p * 4, 4, .2);
    if (!e.big && p == 3) one.b.assign(one.a.size(), 9);  // nothing agrees
    if (int(one.a.size()) > c.M) one.a.resize(c.M);
    query.insert(query.end(), one.a.begin(), one.a.end()), text.insert(text.end(), one.b.begin(), one.b.end());
    diagonals = std::max(diagonals, int(one.a.size() + one.b.size())), most = std::max<int>(most, diagonals);
    qb.push_back(int32_t(query.size())), tb.push_back(int32_t(text.size()));
  }
  const int64_t pitch = int64_t(diagonals) * c.M;
  auto q = repeated<uint8_t>(e, query.size(), query), t = repeated<uint8_t>(e, text.size(), text);
  auto qs = repeated<int32_t>(e, qb.size(), qb), ts = repeated<int32_t>(e, tb.size(), tb);
  auto ways = constant<uint8_t>(e, size_t(pitch) * pairs, 0xFF);
  auto scores = constant<int32_t>(e, pairs, -1), ends = constant<int32_t>(e, 2 * pairs, -1),
       counts = constant<int32_t>(e, pairs, -1);
  auto runs = constant<uint32_t>(e, size_t(pairs) * most, 0);
  Job j;
  j.mbytes = 1e-6 * double(c.M) * diagonals * pairs;
  const auto k = gotoh.grid([pairs](const GotohCfg&, const auto&...) { return Grid{pairs}; });
  j.add(k, c, q.p, t.p, qs.p, ts.p, ways.p, pitch, scores.p, ends.p);
  j.add(way_back, c, ways.p, pitch, ends.p, scores.p, runs.p, counts.p, most, pairs);
  j.check = [=]() -> std::string {
    const auto got = scores.now(), end = ends.now(), count = counts.now();
    const auto run = runs.now();
    for (int p = 0; p < pairs; ++p) {
      const int m = qb[p + 1] - qb[p], n = tb[p + 1] - tb[p], bad = -100000;
      std::vector<std::vector<int>> H(m + 1, std::vector<int>(n + 1)), E = H, F = H;
      int best = 0;
      for (int i = 0; i <= m; ++i)
        for (int k = 0; k <= n; ++k) {
          E[i][k] = k ? std::max(H[i][k - 1] - kOpen, E[i][k - 1] - kExtend) : bad;
          F[i][k] = i ? std::max(H[i - 1][k] - kOpen, F[i - 1][k] - kExtend) : bad;
          if (!i || !k) continue;
          const bool same = query[qb[p] + i - 1] == text[tb[p] + k - 1];
          H[i][k] = std::max({0, H[i - 1][k - 1] + (same ? kMatch : kMismatch), E[i][k], F[i][k]});
          best = std::max(best, H[i][k]);
        }
      const std::string name = "pair " + std::to_string(p);
      if (got[p] != best) return name + ": score " + std::to_string(got[p]) + " instead of " + std::to_string(best);
      // Any way with that score will do: the runs are followed back and paid for.
      int i = end[2 * p], k = end[2 * p + 1], paid = 0, before = -1;
      for (int r = 0; r < count[p]; ++r) {
        const int op = int(run[size_t(p) * most + r] & 15), length = int(run[size_t(p) * most + r] >> 4);
        if (op == before || length < 1 || op > 2) return name + ": run " + std::to_string(r);
        before = op;
        if (op != match) paid -= kOpen + (length - 1) * kExtend;
        for (int s = 0; s < length; ++s) {
          if (op != gap_in_text) --k;  // E: along the text
          if (op != gap_in_query) --i;
          if (op == match && (i < 0 || k < 0)) return name + ": past the beginning";
          if (op == match) paid += query[qb[p] + i] == text[tb[p] + k] ? kMatch : kMismatch;
        }
      }
      if (i < 0 || k < 0 || paid != best) return name + ": the way back is worth " + std::to_string(paid);
    }
    return "";
  };
  return j;
});

// --- wavefronts (WFA): for every score the furthest place on each diagonal, of matches, insertions and deletions; as
// long as letters agree a front goes on for nothing. Penalties 4 (mismatch), 6 + 2 per letter of a gap: in halves of
// them
struct FrontCfg {
  int W = 128, K = 4, warps = 4;  ///< diagonals, letters looked at between two votes
};
auto wavefront =
    kernel("user_wfa", [](const FrontCfg& c, Ptr<const uint8_t> a, Ptr<const uint8_t> b, Ptr<const int32_t> a_begins,
                          Ptr<const int32_t> b_begins, Ptr<int32_t> penalty, I32 most) {
      num_warps(c.warps);
      auto pair = program_id(0);
      auto a0 = load(a_begins + pair), m = load(a_begins + pair + 1) - a0;
      auto b0 = load(b_begins + pair), n = load(b_begins + pair + 1) - b0;
      constexpr int kNever = -(1 << 20);
      auto k = arange(0, c.W) - c.W / 2;  // places in b less places in a
      auto never = full({c.W}, kNever, i32);
      auto from_left = [&](Tile x) { return cat(full({1}, kNever, i32), extract(x, {0}, {c.W - 1})); };
      auto from_right = [&](Tile x) { return cat(extract(x, {1}, {c.W - 1}), full({1}, kNever, i32)); };
      auto valid = [&](Tile h) { return where((h <= n) & (h - k <= m), h, kNever); };
      auto extended = [&](Tile h) {
        Tile going = h >= 0;
        while_([&] { return any(going); },
               [&] {
                 for (int step = 0; step < c.K; ++step) {
                   auto inside = going & (h < n) & (h - k < m);
                   going = inside & (load(a + a0 + (h - k), {.mask = inside}) == load(b + b0 + h, {.mask = inside}));
                   h += cast(going, i32);
                 }
               });
        return h;
      };
      Tile m1 = extended(where(k == 0, 0, never)), m2 = never, m3 = never, m4 = never;
      Tile ins = never, del = never, score = cast(0, i32);
      auto goal = n - m;
      auto arrived = [&](Tile h) { return any((k == goal) & (h >= n)); };
      Tile done = arrived(m1);
      while_([&] { return ~done & (score < most); },
             [&] {
               ins = valid(max(from_left(m4), from_left(ins)) + 1);
               del = valid(max(from_right(m4), from_right(del)));
               auto next = extended(max(valid(m2 + 1), max(ins, del)));
               m4 = m3, m3 = m2, m2 = m1, m1 = next;
               score += 1;
               done = arrived(m1);
             });
      store(penalty + pair, where(done, 2 * score, -1));
    }).grid([](const FrontCfg&, const auto&...) { return Grid{1}; });
Register r2("wfa", [](Env& e) {
  FrontCfg c;
  if (!e.big) c = {64, 4, 2};
  c.W = e.field("W", c.W), c.K = e.field("K", c.K), c.warps = e.field("warps", c.warps);
  const int pairs = e.big ? 1 << 15 : 15, most = c.W / 2;
  std::vector<uint8_t> a, b;
  std::vector<int32_t> ab{0}, bb{0};
  for (int p = 0; p < pairs; ++p) {
    Pair one = relatives(e, e.big ? 150 : 10 + 5 * p, 4, e.big ? .05 : p == 7 ? .9 : .12);
    if (!e.big && p == 2) one.b = one.a;
    if (!e.big && p == 4) one.b.resize(1);
    a.insert(a.end(), one.a.begin(), one.a.end()), b.insert(b.end(), one.b.begin(), one.b.end());
    ab.push_back(int32_t(a.size())), bb.push_back(int32_t(b.size()));
  }
  auto as = repeated<uint8_t>(e, a.size(), a), bs = repeated<uint8_t>(e, b.size(), b);
  auto an = repeated<int32_t>(e, ab.size(), ab), bn = repeated<int32_t>(e, bb.size(), bb);
  auto out = constant<int32_t>(e, pairs, -7);
  Job j;
  j.mbytes = 1e-6 * double(a.size() + b.size());
  const auto k = wavefront.grid([pairs](const FrontCfg&, const auto&...) { return Grid{pairs}; });
  j.add(k, c, as.p, bs.p, an.p, bn.p, out.p, most);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    int given_up = 0;
    for (int p = 0; p < pairs; ++p) {
      const int m = ab[p + 1] - ab[p], n = bb[p + 1] - bb[p], far = 1 << 20;
      std::vector<std::vector<int>> H(m + 1, std::vector<int>(n + 1, far)), I = H, D = H;
      H[0][0] = 0;
      for (int i = 0; i <= m; ++i)
        for (int k = 0; k <= n; ++k) {
          if (k) I[i][k] = std::min(H[i][k - 1] + 8, I[i][k - 1] + 2);
          if (i) D[i][k] = std::min(H[i - 1][k] + 8, D[i - 1][k] + 2);
          H[i][k] = std::min({H[i][k], I[i][k], D[i][k]});
          if (i && k) H[i][k] = std::min(H[i][k], H[i - 1][k - 1] + (a[ab[p] + i - 1] == b[bb[p] + k - 1] ? 0 : 4));
        }
      const int want = H[m][n] <= 2 * most ? H[m][n] : -1;
      given_up += want < 0;
      if (got[p] != want)
        return "pair " + std::to_string(p) + ": " + std::to_string(got[p]) + " instead of " + std::to_string(want);
    }
    return given_up == pairs ? "data tests nothing" : "";
  };
  return j;
});

}  // namespace alignments
}  // namespace users
