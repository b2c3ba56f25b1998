// heads.cpp - products at the ends of a model and many at once: linear layer with cross entropy over the vocabulary,
// a list of ragged products, layer norm in front and a residual behind.
#include "tests/users/use.h"
namespace users {
namespace heads {

// --- linear layer and cross entropy without the logits in memory: a program has BM tokens and a part of the vocabulary
struct HeadCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto linear_ce =
    kernel("user_linear_ce", [](const HeadCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                                Tensor<const int32_t, 1> labels, Tensor<float, 2> lse, Tensor<float, 1> target) {
      // X [T, D], W [V, D], lse [parts, T], target [T]
      num_warps(c.warps);
      auto m0 = program_id(0) * c.BM, part = program_id(1);
      auto V = W.dim(0);
      auto per = cdiv(cdiv(V, c.BN), num_programs(1)) * c.BN;
      auto rows = m0 + arange(0, c.BM);
      auto label = labels.load({m0}, {c.BM}).col();
      Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), mine = zeros({c.BM, 1}, f32);
      for (auto n : range(part * per, min(part * per + per, V), c.BN)) {
        Tile acc = zeros({c.BM, c.BN}, f32);
        for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
          acc = dot(X.load({m0, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
        auto cols = (n + arange(0, c.BN)).row();
        mine += sum(where(cols == label, acc, 0.f), axis(1));
        acc = where(cols < V, acc, -INFINITY);
        auto m2 = max(m, max(acc, axis(1)));
        l = l * exp(m - m2) + sum(exp(acc - m2), axis(1));
        m = m2;
      }
      lse.store({part, m0}, reshape(m + log(l), {1, c.BM}));
      auto here = (label >= part * per) & (label < part * per + per);
      store(target.ptr() + rows, squeeze(mine, 1), {.mask = squeeze(here, 1) & (rows < X.dim(0))});
    }).grid([](const HeadCfg& c, const auto& x, const auto&, const auto&, const auto& lse, const auto&) {
      return Grid{cdiv(x.shape[0], c.BM), lse.shape[0]};
    });
auto finish_ce = kernel("user_finish_ce", [](const HeadCfg& c, Tensor<const float, 2> lse,
                                             Tensor<const float, 1> target, Tensor<float, 1> loss) {
                   num_warps(4);
                   auto t = program_id(0) * c.BM;
                   auto x = lse.load({0, t}, {c.BN, c.BM}, {.pad = -INFINITY});
                   auto top = max(x, axis(0));
                   auto z = top + log(sum(exp(x - top), axis(0)));
                   loss.store({t}, squeeze(z, 0) - target.load({t}, {c.BM}));
                 }).grid([](const HeadCfg& c, const auto&, const auto&, const auto& loss) {
  return Grid{cdiv(loss.shape[0], c.BM)};
});
Register r1("linear_ce", [](Env& e) {
  int T = e.big ? 4096 : 70, D = e.big ? 2048 : 96, V = e.big ? 32000 : 300, parts = e.big ? 8 : 2;
  auto x = random<bfloat16>(e, size_t(T) * D), w = random<bfloat16>(e, size_t(V) * D, -.1, .1);
  auto labels = integers<int32_t>(e, T, 0, V);
  auto lse = constant<float>(e, parts * T, NAN), target = constant<float>(e, T, NAN), loss = constant<float>(e, T, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(V) * D;
  j.add(linear_ce, e.big ? HeadCfg{128, 192, 64, 3, 8} : HeadCfg{64, 64, 32, 2, 4}, x.view(T, D), w.view(V, D),
        labels.view(T), lse.view(parts, T), target.view(T));
  j.add(finish_ce, HeadCfg{64, 8, 0, 0, 4}, lse.view(parts, T), target.view(T), loss.view(T));
  j.check = [=] {
    std::vector<double> want(T);
    auto logits = product(T, V, D, matrix(x, D), [&](int k, int n) { return w[size_t(n) * D + k]; });
    for (int t = 0; t < T; ++t) {
      double s = 0;
      for (int v = 0; v < V; ++v) s += std::exp(logits[size_t(t) * V + v]);
      want[t] = std::log(s) - logits[size_t(t) * V + labels.h[t]];
    }
    return agree(loss.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- a list of products of different sizes, [m, n, k, start of A, of B, of C] each, tiles dealt out to all programs
struct GroupedCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto grouped = kernel("user_grouped_gemm", [](const GroupedCfg& c, Ptr<const half> A, Ptr<const half> B, Ptr<half> C,
                                              Tensor<const int64_t, 2> problems) {
  num_warps(c.warps);
  Tile tile = program_id(0), first = 0;
  for (auto g : range(0, problems.dim(0))) {
    auto field = [&](int i) { return multiple_of(problems.load({g, i}), 8); };
    auto M = problems.load({g, 0}), N = field(1), K = field(2);
    auto across = cast(cdiv(cast(N, u64), cast(c.BN, u64)), i32);
    auto tiles = cast(cdiv(cast(M, u64), cast(c.BM, u64)), i32) * across;
    auto a = make_view<const half>(A + field(3), {M, K}, {K, 1}),
         b = make_view<const half>(B + field(4), {K, N}, {N, 1});
    auto out = make_view<half>(C + field(5), {M, N}, {N, 1});
    while_([&] { return tile < first + tiles; },
           [&] {
             auto m = (tile - first) / across * c.BM, n = (tile - first) % across * c.BN;
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, cast(K, i32), c.BK, {.stages = c.stages}))
               acc = dot(a.load({m, k}, {c.BM, c.BK}), b.load({k, n}, {c.BK, c.BN}), acc);
             out.store({m, n}, cast(acc, f16));
             tile += num_programs(0);
           });
    first += tiles;
  }
});
Register r2("grouped_gemm", [](Env& e) {
  std::vector<std::array<int, 3>> sizes;
  if (e.big)
    for (int i = 0; i < 16; ++i) sizes.push_back({200 + 211 * (i * 7 % 16), 4096, 2048});
  else
    sizes = {{70, 40, 64}, {8, 136, 40}, {0, 64, 64}, {130, 72, 200}};
  std::vector<int64_t> table;
  int64_t a_size = 0, b_size = 0, c_size = 0;
  Job j;
  for (auto [m, n, k] : sizes) {
    for (int64_t x : {int64_t(m), int64_t(n), int64_t(k), a_size, b_size, c_size}) table.push_back(x);
    a_size += int64_t(m) * k, b_size += int64_t(k) * n, c_size += int64_t(m) * n;
    j.gflop += 2e-9 * m * double(n) * k;
  }
  auto a = random<half>(e, a_size), b = random<half>(e, b_size);
  auto c = constant<half>(e, c_size, NAN);
  auto list = filled<int64_t>(e, table.size(), [&](size_t i) { return table[i]; });
  const int programs = e.big ? 132 : 3;
  j.add(grouped.grid([=](const GroupedCfg&, auto*, auto*, auto*, const auto&) { return Grid{programs}; }),
        e.big ? GroupedCfg{128, e.field("BN", 256)} : GroupedCfg{64, 64, 32, 2, 4}, a.p, b.p, c.p,
        list.view(int(sizes.size()), 6));
  j.check = [=] {
    std::vector<double> want;
    for (size_t g = 0; g < sizes.size(); ++g) {
      auto [m, n, k] = sizes[g];
      auto one = product(m, n, k, matrix(a, k, table[6 * g + 3]), matrix(b, n, table[6 * g + 4]));
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(c.now(), want, 1e-2, 2e-3);
  };
  return j;
});

// --- layer norm in front of a product and a residual behind: the row statistics come from a pass over the row first
struct NormCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto norm_linear =
    kernel("user_norm_linear", [](const NormCfg& c, Tensor<const half, 2> X, Tensor<const half, 1> g,
                                  Tensor<const half, 1> t, Tensor<const half, 2> W, Tensor<const half, 2> R,
                                  Tensor<half, 2> Y) {
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
      auto D = X.dim(1);
      Tile s = zeros({c.BM, 1}, f32), q = zeros({c.BM, 1}, f32);
      for (auto k : range(0, D, c.BK)) {
        auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
        s += sum(x, axis(1)), q += sum(x * x, axis(1));
      }
      auto mean = s / cast(D, f32);
      auto scale = rsqrt(q / cast(D, f32) - mean * mean + 1e-5f);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, D, c.BK, {.stages = c.stages})) {
        auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
        auto y = (x - mean) * scale * cast(g.load({k}, {c.BK}), f32).row() + cast(t.load({k}, {c.BK}), f32).row();
        acc = dot(cast(y, f16), W.load({k, n}, {c.BK, c.BN}), acc);
      }
      Y.store({m, n}, cast(acc + cast(R.load({m, n}, {c.BM, c.BN}), f32), f16));
    }).grid([](const NormCfg& c, const auto& x, const auto&, const auto&, const auto& w, const auto&...) {
      return Grid{cdiv(w.shape[1], c.BN), cdiv(x.shape[0], c.BM)};
    });
Register r3("norm_linear", [](Env& e) {
  int M = e.big ? 8192 : 70, N = e.big ? 4096 : 80, D = e.big ? 1024 : 96;
  auto x = random<half>(e, size_t(M) * D, -1, 2), g = random<half>(e, D), t = random<half>(e, D),
       w = random<half>(e, size_t(D) * N), r = random<half>(e, size_t(M) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * D;
  j.add(norm_linear, e.big ? NormCfg{} : NormCfg{64, 64, 32, 2, 4}, x.view(M, D), g.view(D), t.view(D), w.view(D, N),
        r.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> mean(M), scale(M);
    for (int m = 0; m < M; ++m) {
      double v = 0;
      for (int d = 0; d < D; ++d) mean[m] += x[m * D + d] / D;
      for (int d = 0; d < D; ++d) v += std::pow(x[m * D + d] - mean[m], 2) / D;
      scale[m] = 1 / std::sqrt(v + 1e-5);
    }
    auto want = product(
        M, N, D, [&](int m, int k) { return in_half((x[m * D + k] - mean[m]) * scale[m] * g[k] + t[k]); }, matrix(w, N),
        [&](double s, int m, int n) { return s + r[m * N + n]; });
    return agree(y.now(), want, 1e-2, 5e-3);
  };
  return j;
});

}  // namespace heads
}  // namespace users
