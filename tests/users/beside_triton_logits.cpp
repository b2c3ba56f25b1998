// beside_triton_logits.cpp - logits_chain
#include "tests/users/use.h"
namespace users {
namespace beside_triton_logits {

// --- penalties, bias list, temperature, top-k 64, min-p, top-p and a draw, one program per row
struct ChainCfg {
  int BLOCK = 4096, top = 64, list = 16;
};
auto logits_chain =
    kernel("user_logits_chain", [](const ChainCfg& c, Tensor<const bfloat16, 2> X, Tensor<const uint8_t, 2> seen,
                                   Tensor<const int, 2> ids, Tensor<const float, 2> values, Tensor<const float, 1> draw,
                                   Tensor<int, 1> token, Tensor<float, 1> logprob, F32 repetition, F32 frequency,
                                   F32 temperature, F32 minp, F32 topp) {
      auto row = program_id(0);
      auto V = X.dim(1);
      auto id = ids.load({row, 0}, {c.list});
      auto extra = values.load({row, 0}, {c.list});
      Tile best = full({c.top}, -INFINITY, f32), at = zeros({c.top}, i32);
      for (auto n : range(0, V, c.BLOCK)) {
        auto x = cast(X.load({row, n}, {c.BLOCK}, {.pad = -INFINITY}), f32);
        auto count = cast(cast(seen.load({row, n}, {c.BLOCK}), i32), f32);
        x = where(count > 0.f, where(x > 0.f, x / repetition, x * repetition) - frequency * count, x);
        x = (x + put(zeros({c.BLOCK}, f32), id - n, extra, 0)) / temperature;
        if_(max(x) > min(best), [&] {
          auto [v, i] = topk(x, c.top, axis(0));
          auto [both, place] = topk(cat(best, v), c.top, axis(0));
          best = both;
          at = take(cat(at, n + i), place, 0);
        });
      }
      auto p = exp(best - max(best));
      p = where(p >= minp, p, 0.f);
      p = p / sum(p);
      p = where(cumsum(p, axis(0), {.exclusive = true}) < topp, p, 0.f);
      p = p / sum(p);
      auto sums = cumsum(p, axis(0));
      auto chosen = min(sum(cast(cast(sums <= draw.load({row}), i32), i32)), sum(cast(p > 0.f, i32)) - 1);
      token.store({row}, take(at, chosen, 0));
      logprob.store({row}, log(take(p, chosen, 0)));
    }).grid([](const ChainCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r1("logits_chain", [](Env& e) {
  const int R = e.big ? 256 : 5, V = e.big ? 151936 : 1003;
  ChainCfg c{e.field("BLOCK", e.big ? 4096 : 128), e.big ? 64 : 16, e.big ? 16 : 4};
  auto x = random<bfloat16>(e, size_t(R) * V, -8, 8);
  auto seen = drawn<uint8_t>(e, size_t(R) * V, [&] { return uint8_t(e.uniform() < .05 ? 1 + int(3 * e.uniform()) : 0); });
  std::vector<int> list;
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < c.list; ++i) list.push_back(int(e.uniform() * (V / c.list)) + i * (V / c.list));
  auto ids = repeated<int>(e, list.size(), list);
  auto values = random<float>(e, size_t(R) * c.list, -3, 3), draw = random<float>(e, R, 0, .999);
  auto token = constant<int>(e, R, -1);
  auto lp = constant<float>(e, R, NAN);
  Job j;
  j.mbytes = 3e-6 * R * V;
  j.add(logits_chain, c, x.view(R, V), seen.view(R, V), ids.view(R, c.list), values.view(R, c.list), draw.view(R),
        token.view(R), lp.view(R), 1.2f, .3f, .7f, .02f, .9f);
  j.check = [=]() -> std::string {
    const auto t = token.now();
    const auto l = lp.now();
    for (int r = 0; r < R; ++r) {
      std::vector<std::pair<double, int>> y(V);
      for (int v = 0; v < V; ++v) {
        double z = x[size_t(r) * V + v];
        const int n = seen.at(size_t(r) * V + v);
        if (n) z = (z > 0 ? z / 1.2f : z * 1.2f) - .3f * n;
        for (int i = 0; i < c.list; ++i)
          if (list[r * c.list + i] == v) z += values[r * c.list + i];
        y[v] = {float(z / .7f), v};
      }
      std::stable_sort(y.begin(), y.end(), [](auto a, auto b) { return a.first > b.first; });
      double total = 0, run = 0, kept = 0;
      std::vector<double> p(c.top);
      for (int i = 0; i < c.top; ++i) p[i] = std::exp(y[i].first - y[0].first), p[i] = p[i] >= .02f ? p[i] : 0, total += p[i];
      for (int i = 0; i < c.top; ++i) {
        const double q = p[i] / total;
        p[i] = run < .9f ? q : 0, run += q, kept += p[i];
      }
      bool found = false;  // any token within rounding of the draw, or of the same value
      double low = 0;
      for (int i = 0; i < c.top && !found; ++i) {
        const double high = low + p[i] / kept;
        if (p[i] > 0 && draw[r] >= low - 1e-4 && draw[r] <= high + 1e-4)
          for (int k = 0; k < c.top; ++k)
            found |= y[k].second == t[r] && std::abs(y[k].first - y[i].first) < 1e-5 && std::abs(std::log(p[i] / kept) - l[r]) < 1e-3;
        low = high;
      }
      if (!found) return "row " + std::to_string(r) + ": token " + std::to_string(t[r]);
    }
    return "";
  };
  return j;
});
}  // namespace beside_triton_logits
}  // namespace users
