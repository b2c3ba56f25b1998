// choices.cpp - kernels that choose: words by rejection, blocks by a mask's summary, rows that optimisers visit.
#include "tests/users/use.h"
namespace users {
namespace choices {

constexpr float kLog2e = 1.4426950408889634f;

// --- a word of the K likeliest whose probabilities sum to P, without sorting (FlashInfer): a draw among what is above
// a pivot; where too many or too much is above the word, its probability becomes the pivot
struct RejectCfg {
  int B = 2048, warps = 0;
};
auto reject_sample =
    kernel("user_reject_sample", [](const RejectCfg& c, Ptr<const float> probs, Ptr<const float> noise,
                                    Ptr<int32_t> words, I32 V, I32 K, F32 P, I32 rounds, I32 /*rows*/) {
      // probs [rows, V], noise [rows, rounds]
      if (c.warps) num_warps(c.warps);
      auto r = program_id(0);
      auto p = probs + cast(r, i64) * V;
      Tile pivot = full({}, -1.f, f32), mass = full({}, 1.f, f32), word = full({}, 0, i32), round = full({}, 0, i32);
      Tile open = full({}, 1, i1);
      while_([&] { return open; },
             [&] {
               auto target = load(noise + r * rounds + round) * mass;
               Tile before = full({}, 0.f, f32), found = full({}, -1, i32), last = full({}, 0, i32);
               for (auto first : range(0, V, c.B)) {
                 auto i = first + arange(0, c.B);
                 auto x = load(p + i, {.mask = i < V});
                 x = where(x > pivot, x, 0.f);
                 auto total = sum(x);
                 for (auto _ : when((found < 0) & (before + total > target))) {
                   auto hit = (cumsum(x, axis(0)) + before > target) & (x > 0.f);
                   found = min(where(hit, i, 0x7FFFFFFF));
                 }
                 last = max(last, max(where(x > 0.f, i, 0)));
                 before += total;
               }
               word = where(found < 0, last, found);
               auto mine = load(p + word);
               Tile count = full({}, 0, i32), above = full({}, 0.f, f32);
               for (auto first : range(0, V, c.B)) {
                 auto i = first + arange(0, c.B);
                 auto x = load(p + i, {.mask = i < V});
                 count += sum(cast(x > mine, i32)), above += sum(where(x > mine, x, 0.f));
               }
               open = ((count >= K) | (above >= P)) & (round + 1 < rounds);
               pivot = where(open, mine, pivot), mass = where(open, above, mass);
               round += 1;
             });
      store(words + r, word);
    }).grid([](const RejectCfg&, auto, auto, auto, int, int, float, int, int rows) { return Grid{rows}; });
Register r1("reject_sample", [](Env& e) {
  RejectCfg c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B), c.warps = e.field("warps", 0);
  const int R = e.big ? 1024 : 9, V = e.big ? 128256 : 200, K = e.big ? 50 : 6, rounds = 32;
  const float P = .8f;
  std::vector<float> values(e.device ? size_t(e.big ? 8 : R) * V : 0);
  for (size_t r = 0; r < values.size() / V; ++r) {
    double total = 0;
    for (int i = 0; i < V; ++i) total += values[r * V + i] = float(std::exp(8 * e.uniform() * e.uniform()));
    for (int i = 0; i < V; ++i) values[r * V + i] = float(values[r * V + i] / total);
  }
  auto probs = repeated<float>(e, size_t(R) * V, values);
  auto noise = random<float>(e, size_t(R) * rounds, 0, 1);
  auto words = constant<int32_t>(e, R, -1);
  Job j;
  j.mbytes = 4e-6 * probs.n;
  j.add(reject_sample, c, probs.p, noise.p, words.p, V, K, P, rounds, R);
  j.check = [=]() -> std::string {
    const auto got = words.now();
    for (int r = 0; r < R; ++r) {
      // The same walk; a draw near a boundary may fall on the neighbour, so the word only has to be one that may be.
      const int w = got[r];
      if (w < 0 || w >= V) return "row " + std::to_string(r) + ": no word";
      int count = 0;
      double above = 0;
      for (int i = 0; i < V; ++i)
        if (probs[size_t(r) * V + i] > probs[size_t(r) * V + w]) ++count, above += probs[size_t(r) * V + i];
      if (count >= K || above >= P + 1e-5) return "row " + std::to_string(r) + ": a word that may not be";
      double pivot = -1, mass = 1;
      int want = 0;
      bool close = false;
      for (int round = 0; round < rounds; ++round) {
        const double target = noise[r * rounds + round] * mass;
        double sum = 0;
        for (int i = 0; i < V; ++i) {
          const double x = probs[size_t(r) * V + i];
          if (x <= pivot) continue;
          close |= std::abs(sum + x - target) < 1e-5;
          want = i;
          if ((sum += x) > target) break;
        }
        count = 0, above = 0;
        for (int i = 0; i < V; ++i)
          if (probs[size_t(r) * V + i] > probs[size_t(r) * V + want]) ++count, above += probs[size_t(r) * V + i];
        close |= std::abs(above - P) < 1e-5;
        if (count < K && above < P) break;
        pivot = probs[size_t(r) * V + want], mass = above;
      }
      if (w != want && !close)
        return "row " + std::to_string(r) + ": " + std::to_string(w) + " instead of " + std::to_string(want);
    }
    return "";
  };
  return j;
});

// --- attention under a mask given by blocks (FlexAttention): first the blocks of which some pairs are visible, with a
// mask of documents, then those of which all are
struct FlexCfg {
  int BM = 128, BN = 128, D = 128, stages = 2, warps = 8;
};
auto flex =
    kernel("user_flex", [](const FlexCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                           Tensor<const bfloat16, 3> V, Ptr<const int32_t> document, Ptr<const int32_t> partial_count,
                           Tensor<const int32_t, 2> partial, Ptr<const int32_t> full_count,
                           Tensor<const int32_t, 2> whole, Tensor<bfloat16, 3> O, F32 scale) {
      // [B H, S, D]; document [S]; lists of key blocks of every block of queries
      num_warps(c.warps);
      auto i = program_id(0), b = program_id(1), m0 = i * c.BM;
      auto q = squeeze(Q.load({b, m0, 0}, {1, c.BM, c.D}), 0);
      auto rows = m0 + arange(0, c.BM);
      auto mine = load(document + rows);
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32);
      auto visit = [&](Tile block, bool masked) {
        auto n0 = block * c.BN;
        auto k = squeeze(K.load({b, n0, 0}, {1, c.BN, c.D}), 0), v = squeeze(V.load({b, n0, 0}, {1, c.BN, c.D}), 0);
        auto s = dot(q, trans(k)) * (scale * kLog2e);
        if (masked) {
          auto keys = n0 + arange(0, c.BN);
          s = where((keys.row() <= rows.col()) & (load(document + keys).row() == mine.col()), s, -INFINITY);
        }
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      };
      for (auto at : range(0, load(partial_count + i), {.stages = c.stages})) visit(partial.load({i, at}), true);
      for (auto at : range(0, load(full_count + i), {.stages = c.stages})) visit(whole.load({i, at}), false);
      O.store({b, m0, 0}, expand_dims(cast(acc / l, bf16), 0));
    }).grid([](const FlexCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r2("flex", [](Env& e) {
  FlexCfg c;
  if (!e.big) c = {16, 16, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, S = e.big ? 8192 : 96, D = c.D, blocks = S / c.BM, columns = S / c.BN;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto document = filled<int32_t>(e, S, [&](size_t i) { return int(i / (S / 3 + 5)); });
  std::vector<std::vector<int>> some(blocks), all(blocks);
  double pairs = 0;
  for (int i = 0; i < blocks; ++i)
    for (int x = 0; x < columns; ++x) {
      auto visible = [&](int r, int key) { return key <= r && r / (S / 3 + 5) == key / (S / 3 + 5); };
      int count = 0;
      for (int r = i * c.BM; r < (i + 1) * c.BM; ++r)
        for (int key = x * c.BN; key < (x + 1) * c.BN; ++key) count += visible(r, key);
      if (count) (count == c.BM * c.BN ? all : some)[i].push_back(x), pairs += c.BM * double(c.BN);
    }
  auto lists = [&](const auto& of) {
    return filled<int32_t>(e, size_t(blocks) * columns, [&](size_t i) {
      const auto& list = of[i / columns];
      return i % columns < list.size() ? list[i % columns] : -1;
    });
  };
  auto counts = [&](const auto& of) { return filled<int32_t>(e, blocks, [&](size_t i) { return int(of[i].size()); }); };
  auto pc = counts(some), fc = counts(all), pl = lists(some), fl = lists(all);
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * pairs * D;
  j.add(flex, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), document.p, pc.p, pl.view(blocks, columns), fc.p,
        fl.view(blocks, columns), o.view(B, S, D), scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (int r = 0; r < B * S; ++r) {
      const int row = r % S, b = r / S;
      double total = 0;
      for (int key = 0; key <= row; ++key) {
        if (document.h[key] != document.h[row]) continue;
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * k[(size_t(b) * S + key) * D + d];
        const double p = std::exp(s * scale);
        total += p;
        for (int d = 0; d < D; ++d) want[size_t(r) * D + d] += p * v[(size_t(b) * S + key) * D + d];
      }
      for (int d = 0; d < D; ++d) want[size_t(r) * D + d] /= total;
    }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

// --- rows of an embedding table updated by AdaGrad with one number per row (FBGEMM): lookups sorted by row, a row's
// gradients summed, its accumulator, the row
struct BagCfg {
  int D = 128;
};
auto row_adagrad = kernel("user_row_adagrad",
                          [](const BagCfg& c, Ptr<const int32_t> rows, Ptr<const int32_t> starts,
                             Ptr<const int32_t> bags, Ptr<const float> weights, Tensor<const half, 2> G,
                             Tensor<half, 2> table, Ptr<float> state, F32 lr, F32 eps, U64 seed, I32 /*count*/) {
                            // rows [count]: which; starts [count + 1] into bags and weights: whose gradient, how much
                            // of it
                            auto r = program_id(0);
                            auto row = load(rows + r);
                            auto begin = load(starts + r), end = load(starts + r + 1);
                            auto d = arange(0, c.D);
                            Tile sum_of = zeros({c.D}, f32);
                            for (auto i : range(begin, end))
                              sum_of += load(weights + i) * cast(G.load({load(bags + i), 0}, {c.D}), f32);
                            auto s = load(state + row) + sum(sum_of * sum_of) / float(c.D);
                            store(state + row, s);
                            auto w = cast(table.load({row, 0}, {c.D}), f32) - sum_of * (lr / (sqrt(s) + eps));
                            table.store({row, 0}, cast_stochastic(w, f16, randint(seed, cast(row, i64) * c.D + d)));
                          })
                       .grid([](const BagCfg&, auto, auto, auto, auto, const auto&, const auto&, auto, float, float,
                                uint64_t, int count) { return Grid{count}; });
Register r3("row_adagrad", [](Env& e) {
  BagCfg c;
  if (!e.big) c.D = 16;
  const int N = e.big ? 1 << 20 : 40, count = e.big ? 1 << 18 : 12, bags = e.big ? 65536 : 20, D = c.D;
  std::vector<int32_t> begin{0};
  for (int i = 0; i < count; ++i) begin.push_back(begin.back() + 1 + int(e.uniform() * e.uniform() * 12));
  auto rows = filled<int32_t>(e, count, [&](size_t i) { return int(i * 3 + i % 3); });
  auto starts = filled<int32_t>(e, count + 1, [&](size_t i) { return begin[i]; });
  auto which = integers<int32_t>(e, begin.back(), 0, bags);
  auto weights = random<float>(e, begin.back(), 0, 1);
  auto g = random<half>(e, size_t(bags) * D), table = random<half>(e, size_t(N) * D);
  auto state = random<float>(e, N, 0, 1);
  Job j;
  j.mbytes = 2e-6 * D * (double(begin.back()) + 2. * count);
  j.inTurn = true;
  j.add(row_adagrad, c, rows.p, starts.p, which.p, weights.p, g.view(bags, D), table.view(N, D), state.p, .1f, 1e-6f,
        uint64_t(3), count);
  j.check = [=]() -> std::string {
    std::vector<double> want(table.n), sums(N);
    for (size_t i = 0; i < table.n; ++i) want[i] = table[i];
    for (int i = 0; i < N; ++i) sums[i] = state[i];
    for (int r = 0; r < count; ++r) {
      const int row = rows.h[r];
      std::vector<double> sum(D);
      double square = 0;
      for (int i = begin[r]; i < begin[r + 1]; ++i)
        for (int d = 0; d < D; ++d) sum[d] += weights[i] * g[size_t(which.h[i]) * D + d];
      for (double x : sum) square += x * x;
      sums[row] += square / D;
      for (int d = 0; d < D; ++d) want[size_t(row) * D + d] -= .1 * sum[d] / (std::sqrt(sums[row]) + 1e-6);
    }
    auto bad = agree(state.now(), sums, 1e-4, 1e-4);
    return bad.empty() ? agree(table.now(), want, 1.1e-3, 1e-3) : bad;
  };
  return j;
});

}  // namespace choices
}  // namespace users
