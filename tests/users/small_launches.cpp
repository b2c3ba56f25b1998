// small_launches.cpp - launches of fewer programs than a GPU has multiprocessors: steps of decoding, a few long rows,
// one row, a grid that walks an array. Their time is latency.
#include "tests/users/use.h"
namespace users {
namespace small_launches {

struct RowCfg {
  int BLOCK = 4096, warps = 0, programs = 132;
};
RowCfg row_config(const Env& e) {
  return {e.field("BLOCK", e.big ? 4096 : 256), e.field("warps", 0), e.big ? 132 : 3};
}

// --- the likeliest token of a row of logits, and its log-probability: one pass with a running maximum
auto greedy = kernel("user_greedy", [](const RowCfg& c, Tensor<const float, 2> logits, Ptr<int> token,
                                       Ptr<float> logp) {
                if (c.warps) num_warps(c.warps);
                auto r = program_id(0);
                Tile best = full({c.BLOCK}, -INFINITY, f32), at = zeros({c.BLOCK}, i32), mass = zeros({c.BLOCK}, f32);
                for (auto j : range(0, logits.dim(1), c.BLOCK)) {
                  auto x = logits.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                  auto higher = x > best;
                  auto top = max(x, best);
                  auto kept = where(best == -INFINITY, 0.f, exp(best - top));
                  mass = mass * kept + where(x == -INFINITY, 0.f, exp(x - top));
                  at = where(higher, j + arange(0, c.BLOCK), at);
                  best = top;
                }
                auto top = max(best);
                store(token + r, min(where(best == top, at, 0x7fffffff)));
                store(logp + r, -log(sum(mass * exp(best - top))));
              }).grid([](const RowCfg&, const auto& x, auto, auto) { return Grid{x.shape[0]}; });
Register r1("greedy", [](Env& e) {
  const int R = e.big ? 16 : 4, V = e.big ? 128256 : 1003;
  auto x = random<float>(e, size_t(R) * V, -8, 8);
  auto token = constant<int>(e, R, -1);
  auto logp = constant<float>(e, R, NAN);
  Job j;
  j.mbytes = 4e-6 * R * V;
  j.add(greedy, row_config(e), x.view(R, V), token.p, logp.p);
  j.check = [=]() -> std::string {
    const auto got = token.now();
    std::vector<double> want(R);
    for (int r = 0; r < R; ++r) {
      int best = 0;
      double mass = 0;
      for (int v = 0; v < V; ++v)
        if (x[size_t(r) * V + v] > x[size_t(r) * V + best]) best = v;
      for (int v = 0; v < V; ++v) mass += std::exp(x[size_t(r) * V + v] - x[size_t(r) * V + best]);
      want[r] = -std::log(mass);
      if (got[r] != best) return "row " + std::to_string(r) + ": token " + std::to_string(got[r]);
    }
    return agree(logp.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- softmax of a few long rows: one walk for maximum and sum, one that writes
auto long_rows = kernel("user_long_rows", [](const RowCfg& c, Tensor<const half, 2> X, Tensor<half, 2> Y, F32 scale) {
                   if (c.warps) num_warps(c.warps);
                   auto r = program_id(0);
                   auto n = X.dim(1);
                   Tile m = full({c.BLOCK}, -INFINITY, f32), s = zeros({c.BLOCK}, f32);
                   for (auto j : range(0, n, c.BLOCK)) {
                     auto x = cast(X.load({r, j}, {c.BLOCK}, {.pad = -INFINITY}), f32) * scale;
                     auto top = max(max(m, x), -1e30f);
                     s = s * exp(m - top) + exp(x - top);
                     m = top;
                   }
                   auto top = max(m);
                   auto inverse = 1.f / sum(s * exp(m - top));
                   for (auto j : range(0, n, c.BLOCK)) {
                     auto x = cast(X.load({r, j}, {c.BLOCK}), f32) * scale;
                     Y.store({r, j}, cast(exp(x - top) * inverse, f16));
                   }
                 }).grid([](const RowCfg&, const auto& x, const auto&, float) { return Grid{x.shape[0]}; });
Register r2("long_rows", [](Env& e) {
  const int R = e.big ? 8 : 3, N = e.big ? 131072 : 700;
  auto x = random<half>(e, size_t(R) * N, -4, 4), y = constant<half>(e, size_t(R) * N, NAN);
  Job j;
  j.mbytes = 6e-6 * R * N;
  j.add(long_rows, row_config(e), x.view(R, N), y.view(R, N), 1.5f);
  j.check = [=] {
    std::vector<double> want(size_t(R) * N);
    for (int r = 0; r < R; ++r) {
      double mass = 0;
      for (int i = 0; i < N; ++i) mass += std::exp(1.5 * x[size_t(r) * N + i]);
      for (int i = 0; i < N; ++i) want[size_t(r) * N + i] = std::exp(1.5 * x[size_t(r) * N + i]) / mass;
    }
    return agree(y.now(), want, 1e-5, 2e-3);
  };
  return j;
});

// --- prefix sums of one long row in one program, which carries what it has
auto row_prefix = kernel("user_row_prefix", [](const RowCfg& c, Ptr<const int> x, Ptr<int64_t> y, I32 n) {
                    if (c.warps) num_warps(c.warps);
                    Tile before = cast(0, i64);
                    for (auto i : range(0, n, c.BLOCK)) {
                      auto at = i + arange(0, c.BLOCK);
                      auto v = cast(load(x + at, {.mask = at < n}), i64);
                      store(y + at, cumsum(v, axis(0)) - v + before, {.mask = at < n});
                      before += sum(v);
                    }
                  }).grid([](const RowCfg&, auto, auto, int) { return Grid{1}; });
Register r3("row_prefix", [](Env& e) {
  const int N = e.big ? 1 << 18 : 1301;
  auto x = integers<int>(e, N, -5, 2000000000);
  auto y = constant<int64_t>(e, N, -1);
  Job j;
  j.mbytes = 12e-6 * N;
  j.add(row_prefix, row_config(e), x.p, y.p, N);
  j.check = [=]() -> std::string {
    const auto got = y.now();
    int64_t sum = 0;
    for (int i = 0; i < N; ++i) {
      if (got[i] != sum) return "element " + std::to_string(i);
      sum += x.at(i);
    }
    return "";
  };
  return j;
});

// --- a dot product by a grid that walks the arrays; a second launch adds its parts
auto dot_parts = kernel("user_dot_parts", [](const RowCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<double> parts,
                                             I32 n) {
                   if (c.warps) num_warps(c.warps);
                   Tile acc = zeros({c.BLOCK}, f32);
                   for (auto i : range(program_id(0) * c.BLOCK, n, num_programs(0) * c.BLOCK)) {
                     auto at = i + arange(0, c.BLOCK);
                     acc += load(x + at, {.mask = at < n}) * load(y + at, {.mask = at < n});
                   }
                   store(parts + program_id(0), sum(cast(acc, f64)));
                 }).grid([](const RowCfg& c, auto, auto, auto, int) { return Grid{c.programs}; });
auto dot_sum = kernel("user_dot_sum", [](const RowCfg& c, Ptr<const double> parts, Ptr<double> result) {
                 auto i = arange(0, 256);
                 store(result, sum(load(parts + i, {.mask = i < c.programs})));
               }).grid([](const RowCfg&, auto, auto) { return Grid{1}; });
Register r4("grid_dot", [](Env& e) {
  const int N = e.big ? 1 << 24 : 100003;
  const RowCfg c = row_config(e);
  auto x = random<float>(e, N), y = random<float>(e, N);
  auto parts = constant<double>(e, c.programs, NAN), result = constant<double>(e, 1, NAN);
  Job j;
  j.mbytes = 8e-6 * N;
  j.add(dot_parts, c, x.p, y.p, parts.p, N);
  j.add(dot_sum, c, parts.p, result.p);
  j.check = [=] {
    double sum = 0;
    for (int i = 0; i < N; ++i) sum += x[i] * y[i];
    return agree(result.now(), {sum}, 1e-3, 1e-5);
  };
  return j;
});

// --- one step of decoding times a matrix of 4 bits in groups of 128, 64 outputs a program
struct GemvCfg {
  int BN = 64, BK = 512, warps = 0;
};
auto gemv4 = kernel("user_gemv4", [](const GemvCfg& c, Tensor<const half, 2> x, Tensor<const uint32_t, 2> W,
                                     Tensor<const half, 2> scales, Tensor<half, 2> y) {
               if (c.warps) num_warps(c.warps);
               // W [N, K / 8], eight numbers in a word, the first lowest; scales [N, K / 128]
               auto n = program_id(0) * c.BN, t = program_id(1);
               Tile acc = zeros({c.BN, c.BK / 8}, f32);
               for (auto k : range(0, x.dim(1), c.BK)) {
                 auto w = W.load({n, k / 8}, {c.BN, c.BK / 8});
                 auto s = cast(scales.load({n, k / 128}, {c.BN, c.BK / 128}), f32);
                 auto each = reshape(broadcast_to(expand_dims(s, 2), {c.BN, c.BK / 128, 16}), {c.BN, c.BK / 8});
                 auto X = reshape(cast(x.load({t, k}, {c.BK}), f32), {c.BK / 8, 8});
                 Tile part = zeros({c.BN, c.BK / 8}, f32);
                 for (int i = 0; i < 8; ++i) {
                   auto q = cast((w >> (4 * i)) & 15u, i32) - 8;
                   part += cast(q, f32) * reshape(extract(X, {0, i}, {c.BK / 8, 1}), {1, c.BK / 8});
                 }
                 acc += part * each;
               }
               y.store({t, n}, cast(squeeze(sum(acc, axis(1)), 1), f16));
             }).grid([](const GemvCfg& c, const auto& x, const auto& w, const auto&, const auto&) {
  return Grid{cdiv(w.shape[0], c.BN), x.shape[0]};
});
Register r5("gemv4", [](Env& e) {
  const int T = e.big ? 1 : 2, N = e.big ? 4096 : 100, K = e.big ? 8192 : 1024;
  auto x = random<half>(e, size_t(T) * K), s = random<half>(e, size_t(N) * (K / 128), .01, .1);
  auto w = drawn<uint32_t>(e, size_t(N) * (K / 8), [&] { return uint32_t(e.uniform() * 65536) * 65537u ^ 0x5A3Cu; });
  auto y = constant<half>(e, size_t(T) * N, NAN);
  GemvCfg c{e.field("BN", 64), e.field("BK", 512), e.field("warps", 0)};
  Job j;
  j.mbytes = .5e-6 * N * K;
  j.add(gemv4, c, x.view(T, K), w.view(N, K / 8), s.view(N, K / 128), y.view(T, N));
  j.check = [=] {
    const auto want = product(T, N, K, matrix(x, K), [&](int k, int n) {
      const int q = w.at(size_t(n) * (K / 8) + k / 8) >> (4 * (k % 8)) & 15;
      return (q - 8) * s[size_t(n) * (K / 128) + k / 128];
    });
    return agree(y.now(), want, 3e-2, 3e-3);
  };
  return j;
});

}  // namespace small_launches
}  // namespace users
