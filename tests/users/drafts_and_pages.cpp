// drafts_and_pages.cpp - serving with drafts: blocks of drafted tokens verified together, and pages of 8-bit keys whose
// scale grows while tokens are appended.
#include "tests/users/use.h"
namespace users {
namespace drafts_and_pages {

// --- block verification of drafts (Sun et al. 2024): how likely the first i tokens are to be kept depends on all of
// them; then the token behind the last kept one is drawn from what the large model has left
struct Verify {
  int B = 1024;
};
auto block_weights =
    kernel("user_block_weights", [](const Verify& c, Tensor<const float, 3> large, Tensor<const float, 3> draft,
                                    Tensor<const int32_t, 2> tokens, Tensor<double, 2> kept, Tensor<double, 2> passed) {
      auto i = program_id(0), b = program_id(1);  // behind i tokens of the draft
      Tile p = full({}, 1.0, f64);
      for (auto j : range(0, i)) {
        Tile t = tokens.load({b, j});
        p = min(p * cast(large.load({b, j, t}), f64) / cast(draft.load({b, j, t}), f64), 1.0);
      }
      Tile left = zeros({c.B}, f64);
      Tile last = i == draft.dim(1);
      if_(~last, [&] {
        for (auto v : range(0, large.dim(2), c.B))
          left += max(p * cast(large.load({b, i, v}, {c.B}), f64) - cast(draft.load({b, i, v}, {c.B}), f64), 0.0);
      });
      Tile rest = sum(left);
      kept.store({b, i}, p);
      passed.store({b, i}, where(last | (i == 0), p, rest / (rest + 1.0 - p)));
    }).grid([](const Verify&, const auto& l, const auto&, const auto&, const auto&, const auto&) {
      return Grid{l.shape[1], l.shape[0]};
    });
auto block_verify =
    kernel("user_block_verify", [](const Verify& c, Tensor<const float, 3> large, Tensor<const float, 3> draft,
                                   Tensor<const double, 2> kept, Tensor<const double, 2> passed,
                                   Ptr<const float> uniform, Ptr<int32_t> length, Ptr<int32_t> next) {
      auto b = program_id(0);
      Tile n = draft.dim(1);
      Tile accepted = zeros({}, i32);
      for (auto i : range(1, n + 1))
        accepted = where(cast(load(uniform + (b * (n + 1) + i)), f64) <= passed.load({b, i}), i, accepted);
      Tile p = kept.load({b, accepted});
      auto rest = [&](const Tile& v) {  // past the end both read 0
        Tile mine = cast(large.load({b, accepted, v}, {c.B}), f64);
        Tile theirs = cast(draft.load({b, accepted, v}, {c.B}), f64);  // behind the last draft there is none: 0
        return where(accepted == n, mine, max(p * mine - theirs, 0.0));
      };
      Tile all = zeros({c.B}, f64);
      for (auto v : range(0, large.dim(2), c.B)) all += rest(v);
      Tile goal = sum(all) * cast(load(uniform + b * (n + 1)), f64);
      Tile before = zeros({}, f64), found = full({}, -1, i32), at = zeros({}, i32);
      while_([&] { return (found < 0) & (at < large.dim(2)); },
             [&] {
               Tile w = rest(at);
               Tile up_to = before + cumsum(w, axis(0));
               Tile hit = (up_to > goal) & (w > 0.0);
               if_(any(hit), [&] { found = at + to_scalar(argmax(cast(hit, i32), axis(0))); });
               before += sum(w), at += c.B;
             });
      store(length + b, accepted);
      store(next + b, found);
    }).grid([](const Verify&, const auto& l, const auto&, const auto&, const auto&, const float*, int32_t*, int32_t*) {
      return Grid{l.shape[0]};
    });
Register q1("block_verify", [](Env& e) {
  const int B = e.big ? 256 : 7, N = e.big ? 5 : 3, V = e.big ? 128256 : 2500, block = e.field("B", 1024);
  auto row = [&](int rows) {  // numbers that sum to about 1; every third is 0
    return filled<float>(e, size_t(rows) * V, [&](size_t i) {
      return i % 3 == 1 && i % V != 1 ? 0.f : float(std::floor(e.uniform() * 64) / 32 / V * 1.5);
    });
  };
  auto large = row(B * (N + 1)), draft = row(B * N);
  auto tokens = filled<int32_t>(e, B * N, [&](size_t) {
    int t = int(e.uniform() * V);
    return t % 3 == 1 ? t - 1 : t;
  });
  if (e.device && !e.big) {  // what was drafted had a chance
    auto d = draft.now();
    for (int i = 0; i < B * N; ++i) {
      float& x = d[size_t(i) * V + tokens.h[i]];
      x = std::max(x, float(i % 5 == 0 ? 8. / V : 0.7 / V));
    }
    draft = filled<float>(e, d.size(), [&](size_t i) { return d[i]; });
  }
  auto u = random<float>(e, B * (N + 1), 0, 1);
  auto kept = constant<double>(e, B * (N + 1), 9), passed = constant<double>(e, B * (N + 1), 9);
  auto length = constant<int32_t>(e, B, 9), next = constant<int32_t>(e, B, 9);
  Job j;
  j.add(block_weights, Verify{block}, large.view(B, N + 1, V), draft.view(B, N, V), tokens.view(B, N),
        kept.view(B, N + 1), passed.view(B, N + 1));
  j.add(block_verify, Verify{block}, large.view(B, N + 1, V), draft.view(B, N, V), kept.view(B, N + 1),
        passed.view(B, N + 1), u.p, length.p, next.p);
  j.mbytes = 1e-6 * B * (2 * N + 1) * V * 4;
  j.check = [=]() -> std::string {
    std::vector<double> lengths, nexts, weights;
    for (int b = 0; b < B; ++b) {
      double p = 1;
      std::vector<double> ps;
      int accepted = 0;
      for (int i = 0; i <= N; ++i) {
        if (i > 0) {
          const int t = tokens.h[b * N + i - 1];
          p = std::min(1., p * large[(size_t(b) * (N + 1) + i - 1) * V + t] / draft[(size_t(b) * N + i - 1) * V + t]);
        }
        ps.push_back(p), weights.push_back(p);
        double rest = 0;
        if (i < N)
          for (int v = 0; v < V; ++v)
            rest += std::max(0., p * large[(size_t(b) * (N + 1) + i) * V + v] - draft[(size_t(b) * N + i) * V + v]);
        const double h = i == N ? p : rest / (rest + 1 - p);
        if (i > 0 && u[b * (N + 1) + i] <= h) accepted = i;
      }
      auto rest = [&](int v) {
        const double mine = large[(size_t(b) * (N + 1) + accepted) * V + v];
        return accepted == N ? mine : std::max(0., ps[accepted] * mine - draft[(size_t(b) * N + accepted) * V + v]);
      };
      double all = 0, sum = 0;
      for (int v = 0; v < V; ++v) all += rest(v);
      int at = -1;
      for (int v = 0; v < V && at < 0; ++v)
        if (sum += rest(v); sum > all * u[b * (N + 1)] && rest(v) > 0) at = v;
      lengths.push_back(accepted), nexts.push_back(at);
    }
    if (auto m = agree(kept.now(), weights, 1e-12, 1e-12); !m.empty()) return "kept: " + m;
    if (auto m = agree(length.now(), lengths, 0.1, 0); !m.empty()) return "length: " + m;
    return agree(next.now(), nexts, 0.1, 0);
  };
  return j;
});

// --- tokens appended to pages of 8-bit keys: where one is larger than its page's scale allows, what the page holds is
// rounded anew. A sequence brings 0 to 4 tokens, which may cross into its next page
struct Append {
  int D = 128, P = 16;
};
auto page_requant =
    kernel("user_page_requant",
           [](const Append& c, Ptr<int8_t> cache, Ptr<float> scale, Ptr<const bfloat16> keys, Ptr<const int32_t> starts,
              Ptr<const int32_t> lengths, Ptr<const int32_t> table, I32, I32 heads, I32 most_pages) {
             auto s = program_id(0), h = program_id(1);
             Tile from = load(starts + s), to = load(starts + (s + 1));
             Tile at = load(lengths + s);  // tokens that the sequence has already
             Tile d = arange(0, c.D), r = arange(0, c.P);
             while_([&] { return from < to; },
                    [&] {
                      Tile slot = at % c.P, n = min(to - from, c.P - slot);
                      Tile page = cast(load(table + (s * most_pages + at / c.P)), i64);
                      Tile in = (r >= slot) & (r < slot + n);
                      Tile x = cast(load(keys + ((cast(from - slot + r, i64) * heads + h) * c.D).col() + d.row(),
                                         {.mask = in.col()}),
                                    f32);
                      Ptr<float> unit = scale;
                      Tile old = where(slot == 0, 0.f, load(unit + (page * heads + h)));
                      Tile need = max(abs(x)) / 127.f;
                      Tile now = max(old, need);
                      Tile where_ = cache + ((page * heads + h) * (c.P * c.D) + r.col() * c.D + d.row());
                      Tile inverse = where(now > 0.f, 1.f / now, 0.f);
                      if_(need > old, [&] {
                        Tile held = load(where_, {.mask = (r < slot).col()});
                        store(where_, cast(rint(cast(held, f32) * (old * inverse)), i8), {.mask = (r < slot).col()});
                        store(unit + (page * heads + h), now);
                      });
                      store(where_, cast(clamp(rint(x * inverse), -127.f, 127.f), i8), {.mask = in.col()});
                      from += n, at += n;
                    });
           })
        .grid([](const Append&, int8_t*, float*, const bfloat16*, const int32_t*, const int32_t*, const int32_t*,
                 int sequences, int heads, int) {
          return Grid{sequences, heads};
        });
Register q2("page_requant", [](Env& e) {
  const int S = e.big ? 1024 : 6, H = e.big ? 8 : 3, D = 128, P = 16, M = e.big ? 16 : 3;
  std::vector<int> have, brings, start{0};
  for (int s = 0; s < S; ++s) {
    have.push_back(e.big ? (s * 7) % (P * (M - 1)) : std::array{0, 14, 31, 5, 16, 15}[s]);
    brings.push_back(e.big ? 1 + s % 4 : std::array{1, 4, 3, 0, 2, 4}[s]);
    start.push_back(start.back() + brings.back());
  }
  auto held = integers<int8_t>(e, size_t(S) * M * H * P * D, -127, 128);
  auto scale = random<float>(e, size_t(S) * M * H, 0.5 / 127, 1.3 / 127);
  auto keys = random<bfloat16>(e, size_t(start[S]) * H * D, -1, 1);
  auto starts = filled<int32_t>(e, S + 1, [&](size_t i) { return start[i]; });
  auto lengths = filled<int32_t>(e, S, [&](size_t i) { return have[i]; });
  auto table = filled<int32_t>(e, S * M, [&](size_t i) { return int(i ^ 1) < S * M ? int(i ^ 1) : int(i); });
  Job j;
  restore(e, j, held, scale);
  j.add(page_requant, Append{}, held.p, scale.p, keys.p, starts.p, lengths.p, table.p, S, H, M);
  j.check = [=]() -> std::string {
    std::vector<double> bytes(held.h.begin(), held.h.end()), units(scale.h.begin(), scale.h.end());
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < brings[s];) {
          const int at = have[s] + t, slot = at % P, n = std::min(brings[s] - t, P - slot);
          const size_t unit = size_t(table.h[s * M + at / P]) * H + h, first = unit * P * D;
          float largest = 0;
          for (int i = 0; i < n; ++i)
            for (int d = 0; d < D; ++d)
              largest = std::max(largest, std::abs(float(keys[(size_t(start[s] + t + i) * H + h) * D + d])));
          const float old = slot ? float(units[unit]) : 0.f, need = largest / 127.f, now = std::max(old, need);
          if (need > old) {
            for (int i = 0; i < slot * D; ++i) bytes[first + i] = std::nearbyint(bytes[first + i] * double(old) / now);
            units[unit] = now;
          }
          for (int i = 0; i < n * D; ++i)
            bytes[first + slot * D + i] =
                std::nearbyint(keys[(size_t(start[s] + t + i / D) * H + h) * D + i % D] / double(now));
          t += n;
        }
    if (auto m = agree(scale.now(), units, 0, 1e-6); !m.empty()) return "scale: " + m;
    return agree(held.now(), bytes, 1.001, 0);
  };
  return j;
});

}  // namespace drafts_and_pages
}  // namespace users
