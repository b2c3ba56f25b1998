// listed_keys.cpp - keys and tokens that lists name: attention of query blocks to blocks and to single columns
// (vertical and slash patterns), experts that choose their tokens.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace listed_keys {

// --- attention to what lists name, as long prompts are read: blocks of keys along diagonals, then single keys that
// every query looks at. The same fold takes both; a block of queries may have no keys at all
struct Slash {
  int BM = 64, BN = 64, D = 64;
};
auto vertical_slash =
    kernel("user_vertical_slash",
           [](const Slash& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
              Ptr<const int32_t> blocks, Ptr<const int32_t> block_count, Ptr<const int32_t> columns,
              Ptr<const int32_t> column_count, Tensor<half, 3> O, I32 most_blocks, I32 most_columns, F32 scale) {
             auto qb = program_id(0), h = program_id(1);
             Tile q = Q.load({h, qb * c.BM, 0}, {c.BM, c.D});
             Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
             Tile rows = qb * c.BM + arange(0, c.BM);
             auto fold = [&](const Tile& k, const Tile& v, const Tile& seen) {
               Tile s = where(seen, dot(q, trans(k)) * scale, -INFINITY);
               Tile now = max(top, max(s, axis(1)));
               Tile base = where(now > -INFINITY, now, 0.f);
               Tile p = exp2(s - base), keep = exp2(top - base);
               total = total * keep + sum(p, axis(1));
               acc = dot(cast(p, f16), v, acc * keep);
               top = now;
             };
             Tile list = h * num_programs(0) + qb;
             Tile nb = load(block_count + list), nc = load(column_count + list);
             for (auto i : range(0, nb)) {
               Tile at = load(blocks + (list * most_blocks + i)) * c.BN;
               fold(K.load({h, at, 0}, {c.BN, c.D}), V.load({h, at, 0}, {c.BN, c.D}),
                    (at + arange(0, c.BN)).row() <= rows.col());
             }
             for (auto i : range(0, nc, c.BN)) {
               Tile which = i + arange(0, c.BN);
               Tile there = which < nc;
               Tile at = load(columns + (list * most_columns + which), {.mask = there});
               Tile spot = cast(h, i64) * K.stride(0) + cast(at, i64).col() * K.stride(1) + arange(0, c.D).row();
               fold(load(K.ptr() + spot, {.mask = there.col()}), load(V.ptr() + spot, {.mask = there.col()}),
                    (at.row() <= rows.col()) & there.row());
             }
             O.store({h, qb * c.BM, 0}, cast(where(total > 0.f, acc / total, 0.f), f16));
           })
        .grid([](const Slash& c, const auto& q, const auto&, const auto&, const int32_t*, const int32_t*,
                 const int32_t*, const int32_t*, const auto&, int, int, float) {
          return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
        });
Register q1("vertical_slash", [](Env& e) {
  const int H = e.big ? 16 : 2, T = e.big ? 16384 : 203, D = 64, B = 64, QB = cdiv(T, B);
  const int NB = e.big ? 24 : 4, NC = e.big ? 1024 : 70;
  auto q = random<half>(e, size_t(H) * T * D, -2, 2), k = random<half>(e, size_t(H) * T * D, -2, 2),
       v = random<half>(e, size_t(H) * T * D);
  auto bc = filled<int32_t>(e, H * QB, [&](size_t i) {  // none, one, as many as there are
    return e.big ? std::min(int(i % QB) + 1, NB) : std::array{0, 2, 0, 3}[i % 4];
  });
  auto blocks = filled<int32_t>(e, size_t(H) * QB * NB, [&](size_t i) {  // the diagonal block first, then every second
    const int qb = int(i / NB) % QB, j = int(i % NB);
    return std::max(0, e.big ? qb - j : qb - 2 * j);
  });
  auto cc = filled<int32_t>(e, H * QB, [&](size_t i) { return e.big ? NC - 3 : std::array{0, 70, 5, 64}[i % 4]; });
  auto columns = filled<int32_t>(e, size_t(H) * QB * NC, [&](size_t i) {
    const int qb = int(i / NC) % QB, j = int(i % NC);
    return e.big ? int((j * 37 + qb) % T) : (j * 5 + qb) % T;
  });
  auto o = constant<half>(e, size_t(H) * T * D, 9);
  const float scale = 1.44269504f / 8;
  Job j;
  j.add(vertical_slash, Slash{}, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), blocks.p, bc.p, columns.p, cc.p,
        o.view(H, T, D), NB, NC, scale);
  j.gflop = 4e-9 * H * T * double(NB * B + NC) * D;
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        const int list = h * QB + t / B;
        std::vector<int> keys;
        for (int b = 0; b < bc.h[list]; ++b)
          for (int n = 0; n < B; ++n) keys.push_back(blocks.h[list * NB + b] * B + n);
        for (int n = 0; n < cc.h[list]; ++n) keys.push_back(columns.h[list * NC + n]);
        std::erase_if(keys, [&](int x) { return x > t; });
        double sum = 0;
        std::vector<double> out(D);
        for (int at : keys) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(size_t(h) * T + t) * D + d] * k[(size_t(h) * T + at) * D + d];
          const double p = std::exp2(s * scale);
          sum += p;
          for (int d = 0; d < D; ++d) out[d] += p * v[(size_t(h) * T + at) * D + d];
        }
        for (int d = 0; d < D; ++d) want[(size_t(h) * T + t) * D + d] = sum > 0 ? out[d] / sum : 0;
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- experts choose tokens: probabilities of every token are stored by expert; every expert takes its C largest of a
// group, found by halving the range of their bits, equals in the order of tokens, and counts how often tokens were
// taken
struct Scores {
  int BT = 32, E = 64;
};
auto choice_scores =
    kernel("user_choice_scores", [](const Scores& c, Tensor<const bfloat16, 2> logits, Tensor<float, 2> by_expert) {
      auto t = program_id(0) * c.BT;
      Tile x = cast(logits.load({t, 0}, {c.BT, c.E}, {.pad = -INFINITY}), f32);
      Tile known = (t + arange(0, c.BT)).col() < logits.dim(0);
      Tile p = exp(x - max(where(known, x, 0.f), axis(1)));
      by_expert.store({0, t}, trans(p / sum(p, axis(1))));
    }).grid([](const Scores& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.BT)}; });
struct Choice2 {
  int N = 4096;
};
auto expert_choice =
    kernel("user_expert_choice", [](const Choice2& c, Ptr<const float> by_expert, Ptr<int32_t> tokens,
                                    Ptr<half> weights, Ptr<int32_t> taken, I32 T, I32, I32 C) {
      auto e = program_id(0), group = program_id(1);
      Tile i = arange(0, c.N);
      Tile t = group * c.N + i;
      Tile p = load(by_expert + (cast(e, i64) * T + t), {.mask = t < T, .other = -1.f});
      Tile bits = where(t < T, bitcast(p, i32), -1);  // probabilities are not negative: their bits are in their order
      Tile low = full({}, 0, i32), high = full({}, 0x3F800000, i32);
      while_([&] { return low < high; },
             [&] {  // the largest number that at least C reach
               Tile middle = low + (high - low + 1) / 2;
               Tile enough = sum(cast(bits >= middle, i32)) >= C;
               low = where(enough, middle, low), high = where(enough, high, middle - 1);
             });
      Tile above = bits > low, equal = bits == low;
      Tile room = C - sum(cast(above, i32));
      Tile in = above | (equal & (cumsum(cast(equal, i32), axis(0)) <= room));
      Tile place = cumsum(cast(in, i32), axis(0)) - 1;
      Tile out = (e * num_programs(1) + group) * C + place;
      store(tokens + out, t, {.mask = in});
      store(weights + out, cast(p, f16), {.mask = in});
      atomic_add(taken + t, full({c.N}, 1, i32), {.mask = in});
    }).grid([](const Choice2& c, const float*, int32_t*, half*, int32_t*, int T, int E, int) {
      return Grid{E, cdiv(T, c.N)};
    });
Register q2("expert_choice", [](Env& e) {
  const int N = e.big ? 4096 : 192, T = e.big ? 65536 : 2 * 192 + 45, E = e.big ? 64 : 12, G = cdiv(T, N),
            C = e.big ? 128 : 20;
  auto x = filled<bfloat16>(e, size_t(T) * E, [&](size_t i) {
    const double u = e.uniform();
    return bfloat16(float(i / E % 7 == 3 ? 0.25 : std::floor(u * 16) / 4));  // many equals
  });
  auto s = constant<float>(e, size_t(E) * T, 9);
  auto tokens = constant<int32_t>(e, size_t(E) * G * C, -1);
  auto weights = constant<half>(e, size_t(E) * G * C, 9);
  auto taken = constant<int32_t>(e, T, 0);
  Job j;
  restore(e, j, taken);
  j.add(choice_scores, Scores{.E = E}, x.view(T, E), s.view(E, T));
  j.add(expert_choice, Choice2{N}, s.p, tokens.p, weights.p, taken.p, T, E, C);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(E) * T);
    for (int t = 0; t < T; ++t) {
      double sum = 0;
      for (int k = 0; k < E; ++k) sum += std::exp(x[t * E + k] - 4);
      for (int k = 0; k < E; ++k) want[size_t(k) * T + t] = std::exp(x[t * E + k] - 4) / sum;
    }
    const auto got = s.now();
    if (auto m = agree(got, want, 1e-6, 1e-4); !m.empty()) return "scores: " + m;
    std::vector<double> chosen, weight, counts(T);
    for (int k = 0; k < E; ++k)
      for (int g = 0; g < G; ++g) {
        const int first = g * N, n = std::min(N, T - first);
        std::vector<int> order(n);
        std::iota(order.begin(), order.end(), first);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return got[size_t(k) * T + a] > got[size_t(k) * T + b]; });
        order.resize(C);
        std::sort(order.begin(), order.end());
        for (int t : order) chosen.push_back(t), weight.push_back(in_half(got[size_t(k) * T + t])), counts[t] += 1;
      }
    if (auto m = agree(tokens.now(), chosen, 0.1, 0); !m.empty()) return "tokens: " + m;
    if (auto m = agree(taken.now(), counts, 0.1, 0); !m.empty()) return "taken: " + m;
    return agree(weights.now(), weight, 1e-6, 1e-6);
  };
  return j;
});

}  // namespace listed_keys
}  // namespace users
