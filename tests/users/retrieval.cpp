// retrieval.cpp - how well things match: late interaction of tokens (ColBERT), codes of product quantisation, which
// keys a window of queries looks at (SnapKV), sums over a Gaussian kernel, pairs of a ranked list (LambdaRank).
#include "tests/users/use.h"
namespace users {
namespace retrieval {

constexpr float kLog2e = 1.4426950408889634f;

// --- late interaction: a document's score is the sum over the query's tokens of the best product with one of its
// tokens
struct MaxSimCfg {
  int NQ = 32, D = 128, BT = 64, warps = 4, stages = 2;
};
auto maxsim =
    kernel("user_maxsim", [](const MaxSimCfg& c, Tensor<const bfloat16, 2> Q, Tensor<const bfloat16, 2> tokens,
                             Ptr<const int32_t> starts, Tensor<float, 1> score) {
      // Q [NQ, D], tokens of all documents end to end [n, D], starts [documents + 1]
      num_warps(c.warps);
      auto doc = program_id(0);
      auto lo = load(starts + doc), hi = load(starts + doc + 1);
      auto q = Q.load({0, 0}, {c.NQ, c.D});
      Tile best = full({1, c.NQ}, -INFINITY, f32);
      for (auto t : range(lo, hi, c.BT, {.stages = c.stages})) {
        auto s = dot(tokens.load({t, 0}, {c.BT, c.D}), trans(q));
        auto inside = (t + arange(0, c.BT)).col() < hi;
        best = max(best, max(where(inside, s, -INFINITY), axis(0)));
      }
      score.store({doc}, ravel(sum(best)));
    }).grid([](const MaxSimCfg&, const auto&, const auto&, auto, const auto& score) { return Grid{score.shape[0]}; });
Register r1("maxsim", [](Env& e) {
  MaxSimCfg c;
  if (!e.big) c = {16, 32, 16, 2, 2};
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int docs = e.big ? 16384 : 9;
  std::vector<int32_t> first{0};
  for (int i = 0; i < docs; ++i)
    first.push_back(first.back() + (e.big ? 60 : 1) + int(e.uniform() * (e.big ? 240 : 50)));
  const int n = first.back();
  auto q = random<bfloat16>(e, size_t(c.NQ) * c.D), t = random<bfloat16>(e, size_t(n) * c.D);
  auto starts = filled<int32_t>(e, first.size(), [&](size_t i) { return first[i]; });
  auto score = constant<float>(e, docs, NAN);
  Job j;
  j.mbytes = 2e-6 * n * c.D;
  j.add(maxsim, c, q.view(c.NQ, c.D), t.view(n, c.D), starts.p, score.view(docs));
  j.check = [=] {
    std::vector<double> want(docs);
    for (int d = 0; d < docs; ++d)
      for (int i = 0; i < c.NQ; ++i) {
        double best = -INFINITY;
        for (int k = first[d]; k < first[d + 1]; ++k) {
          double s = 0;
          for (int x = 0; x < c.D; ++x) s += q[size_t(i) * c.D + x] * t[size_t(k) * c.D + x];
          best = std::max(best, s);
        }
        want[d] += best;
      }
    return agree(score.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- codes of product quantisation: a vector's distance is the sum of M entries of the query's table
struct CodesCfg {
  int M = 16, B = 1024, warps = 4;
};
auto pq_scan = kernel("user_pq_scan", [](const CodesCfg& c, Tensor<const uint8_t, 2> codes,
                                         Tensor<const float, 3> tables, Tensor<float, 2> distances) {
                 // codes [n, M], tables [queries, M, 256], distances [queries, n]
                 num_warps(c.warps);
                 auto n = program_id(0) * c.B, q = program_id(1);
                 auto code = cast(codes.load({n, 0}, {c.B, c.M}), i32);
                 auto entry = load(tables.ptr() + q * (c.M * 256) + arange(0, c.M).row() * 256 + code);
                 distances.store({q, n}, trans(sum(entry, axis(1))));
               }).grid([](const CodesCfg& c, const auto& codes, const auto& tables, const auto&) {
  return Grid{cdiv(codes.shape[0], c.B), tables.shape[0]};
});
Register r2("pq_scan", [](Env& e) {
  CodesCfg c;
  if (!e.big) c = {8, 64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 301, queries = e.big ? 16 : 3, M = c.M;
  auto codes = integers<uint8_t>(e, size_t(n) * M, 0, 256);
  auto tables = random<float>(e, size_t(queries) * M * 256, 0, 1);
  auto d = constant<float>(e, size_t(queries) * n, NAN);
  Job j;
  j.mbytes = 1e-6 * double(n) * queries * (M + 4);
  j.add(pq_scan, c, codes.view(n, M), tables.view(queries, M, 256), d.view(queries, n));
  j.check = [=] {
    std::vector<double> want(d.n);
    for (int q = 0; q < queries; ++q)
      for (int i = 0; i < n; ++i)
        for (int m = 0; m < M; ++m)
          want[size_t(q) * n + i] += tables[(size_t(q) * M + m) * 256 + codes.at(size_t(i) * M + m)];
    return agree(d.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- how much weight the queries give to every key: column sums of the softmax, its sums known from the forward pass
struct MassCfg {
  int BM = 64, BN = 128, D = 128, warps = 4, stages = 2;
};
auto key_mass = kernel("user_key_mass", [](const MassCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                           Tensor<const float, 2> lse, Tensor<float, 2> mass, F32 scale) {
                  // Q, K [heads, S, D], lse (base 2) [heads, S]
                  num_warps(c.warps);
                  auto h = program_id(1), n = program_id(0) * c.BN;
                  auto k = squeeze(K.load({h, n, 0}, {1, c.BN, c.D}), 0);
                  auto at = (n + arange(0, c.BN)).row();
                  Tile total = zeros({1, c.BN}, f32);
                  for (auto m : range(n / c.BM * c.BM, Q.dim(1), c.BM, {.stages = c.stages})) {
                    auto q = squeeze(Q.load({h, m, 0}, {1, c.BM, c.D}), 0);
                    auto l = lse.load({h, m}, {1, c.BM}, {.pad = INFINITY});
                    auto s = dot(q, trans(k)) * (scale * kLog2e);
                    auto p = exp2(s - trans(l));
                    total += sum(where((m + arange(0, c.BM)).col() >= at, p, 0.f), axis(0));
                  }
                  mass.store({h, n}, total);
                }).grid([](const MassCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BN), q.shape[0]};
});
Register r3("key_mass", [](Env& e) {
  MassCfg c;
  if (!e.big) c = {16, 32, 16, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  const int H = e.big ? 32 : 2, S = e.big ? 4096 : 75, D = c.D;
  auto q = random<bfloat16>(e, size_t(H) * S * D), k = random<bfloat16>(e, size_t(H) * S * D);
  const float scale = 1 / std::sqrt(float(D));
  std::vector<double> scores(e.big ? 0 : size_t(H) * S * S), sums(e.big ? 0 : size_t(H) * S);
  if (!e.big && e.device)
    for (int r = 0; r < H * S; ++r) {
      for (int i = 0; i <= r % S; ++i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * k[(size_t(r) / S * S + i) * D + d];
        sums[r] += scores[size_t(r) * S + i] = std::exp(s * scale);
      }
    }
  auto lse = filled<float>(e, size_t(H) * S, [&](size_t r) { return e.big ? 12.f : float(std::log2(sums[r])); });
  auto mass = constant<float>(e, size_t(H) * S, NAN);
  Job j;
  j.gflop = 1e-9 * H * double(S) * S * D;
  j.add(key_mass, c, q.view(H, S, D), k.view(H, S, D), lse.view(H, S), mass.view(H, S), scale);
  j.check = [=] {
    std::vector<double> want(mass.n);
    for (int r = 0; r < H * S; ++r)
      for (int i = 0; i <= r % S; ++i) want[r / S * S + i] += scores[size_t(r) * S + i] / sums[r];
    return agree(mass.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- sums over a Gaussian kernel without its matrix: y_i = sum_j exp(-|x_i - z_j|^2 / 2) b_j, points of D numbers
struct KernelSumCfg {
  int BM = 64, BN = 128, D = 3, warps = 4;
};
auto kernel_sum =
    kernel("user_kernel_sum", [](const KernelSumCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> Z,
                                 Tensor<const float, 2> b, Tensor<float, 2> y) {
      // X [m, D], Z [n, D], b [n, 1], y [m, 1]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      std::vector<Tile> x;
      for (int d = 0; d < c.D; ++d) x.push_back(X.load({m, d}, {c.BM, 1}));
      Tile total = zeros({c.BM, 1}, f32);
      for (auto n : range(0, Z.dim(0), c.BN)) {
        Tile square = zeros({c.BM, c.BN}, f32);
        for (int d = 0; d < c.D; ++d) {
          auto difference = x[d] - trans(Z.load({n, d}, {c.BN, 1}));
          square += difference * difference;
        }
        total += sum(exp2(square * (-.5f * kLog2e)) * trans(b.load({n, 0}, {c.BN, 1})), axis(1));
      }
      y.store({m, 0}, total);
    }).grid([](const KernelSumCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r4("kernel_sum", [](Env& e) {
  KernelSumCfg c;
  if (!e.big) c = {16, 32, 3, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int m = e.big ? 32768 : 45, n = e.big ? 32768 : 77;
  auto x = random<float>(e, size_t(m) * c.D), z = random<float>(e, size_t(n) * c.D), b = random<float>(e, n);
  auto y = constant<float>(e, m, NAN);
  Job j;
  j.gflop = 1e-9 * double(m) * n * (3 * c.D + 2);
  j.add(kernel_sum, c, x.view(m, c.D), z.view(n, c.D), b.view(n, 1), y.view(m, 1));
  j.check = [=] {
    std::vector<double> want(m);
    for (int i = 0; i < m; ++i)
      for (int k = 0; k < n; ++k) {
        double s = 0;
        for (int d = 0; d < c.D; ++d) s += std::pow(x[size_t(i) * c.D + d] - z[size_t(k) * c.D + d], 2);
        want[i] += std::exp(-s / 2) * b[k];
      }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- LambdaRank: gradients of a list's scores; every pair of documents weighs what a change of their ranks would cost
struct RankCfg {
  int N = 128, warps = 4;
};
auto lambda_rank =
    kernel("user_lambda_rank", [](const RankCfg& c, Tensor<const float, 2> scores, Tensor<const int32_t, 2> relevance,
                                  Ptr<const int32_t> counts, Tensor<float, 2> gradient) {
      // scores, relevance, gradient [lists, N], counts [lists]
      num_warps(c.warps);
      auto list = program_id(0);
      auto count = load(counts + list);
      auto at = arange(0, c.N);
      auto inside = at < count;
      auto s = squeeze(scores.load({list, 0}, {1, c.N}), 0);
      auto gain = exp2(cast(squeeze(relevance.load({list, 0}, {1, c.N}), 0), f32)) - 1.f;
      auto rank = argsort(argsort(where(inside, s, -INFINITY), axis(0), {.descending = true}), axis(0));
      auto discount = 1.f / log2(cast(rank, f32) + 2.f);
      auto ideal = sort(where(inside, gain, 0.f), axis(0), {.descending = true});
      auto best = sum(ideal / log2(cast(at, f32) + 2.f));
      auto delta = abs((gain.col() - gain.row()) * (discount.col() - discount.row())) / max(best, 1e-6f);
      auto lambda = sigmoid(s.row() - s.col()) * delta;
      auto pair = (gain.col() > gain.row()) & inside.col() & inside.row();
      auto g = where(pair, lambda, 0.f);
      gradient.store({list, 0}, sum(g, axis(0)) - trans(sum(g, axis(1))));
    }).grid([](const RankCfg&, const auto& s, const auto&...) { return Grid{s.shape[0]}; });
Register r5("lambda_rank", [](Env& e) {
  RankCfg c;
  if (!e.big) c = {32, 2};
  c.warps = e.field("warps", c.warps);
  const int lists = e.big ? 16384 : 7, N = c.N;
  auto s = random<float>(e, size_t(lists) * N, -3, 3);
  auto r = integers<int32_t>(e, size_t(lists) * N, 0, 5), counts = integers<int32_t>(e, lists, 1, N + 1);
  auto g = constant<float>(e, s.n, NAN);
  Job j;
  j.mbytes = 12e-6 * lists * N;
  j.add(lambda_rank, c, s.view(lists, N), r.view(lists, N), counts.p, g.view(lists, N));
  j.check = [=] {
    std::vector<double> want(g.n);
    for (int l = 0; l < lists; ++l) {
      const int n = counts.at(l);
      const size_t first = size_t(l) * N;
      std::vector<double> gain(n), discount(n), ideal;
      for (int i = 0; i < n; ++i) {
        int rank = 0;
        for (int k = 0; k < n; ++k) rank += s[first + k] > s[first + i] || (s[first + k] == s[first + i] && k < i);
        gain[i] = std::exp2(r.at(first + i)) - 1, discount[i] = 1 / std::log2(rank + 2.);
      }
      ideal = gain;
      std::sort(ideal.rbegin(), ideal.rend());
      double best = 0;
      for (int i = 0; i < n; ++i) best += ideal[i] / std::log2(i + 2.);
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
          if (gain[i] > gain[k]) {
            const double weight = std::abs((gain[i] - gain[k]) * (discount[i] - discount[k])) / std::max(best, 1e-6);
            const double x = weight / (1 + std::exp(s[first + i] - s[first + k]));
            want[first + i] -= x, want[first + k] += x;
          }
    }
    return agree(g.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace retrieval
}  // namespace users
