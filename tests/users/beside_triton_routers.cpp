// beside_triton_routers.cpp - a product that leaves as MXFP8 both ways, a router with its balance, operands spread over
// basis functions.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_routers {

// --- C = A B quantised to e4m3 with powers of two per 32, along rows for the next product and, transposed, along
// columns for the gradient's
struct MxOutCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, group = 8;
};
auto mx_out = kernel("user_mx_out", [](const MxOutCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                       Tensor<fp8_e4m3, 2> Y, Tensor<uint8_t, 2> S, Tensor<fp8_e4m3, 2> YT,
                                       Tensor<uint8_t, 2> ST) {
                // Y [M, N], S [M, N / 32], YT [N, M], ST [N, M / 32]
                num_warps(c.warps);
                auto [pm, pn] = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), c.group);
                auto m = pm * c.BM, n = pn * c.BN;
                Tile acc = zeros({c.BM, c.BN}, f32);
                for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                  acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                auto exponent = [](Tile top) {  // biased, of the smallest power of two p with top / p <= 448
                  return clamp((bitcast(top * (1.f / 448.f), i32) + 0x7fffff) >> 23, 1, 254);
                };
                auto inverse = [](Tile e) { return bitcast((254 - e) << 23, f32); };
                auto rows = reshape(acc, {c.BM, c.BN / 32, 32});
                auto e = exponent(max(abs(rows), axis(2)));
                Y.store({m, n}, cast(reshape(rows * inverse(e), {c.BM, c.BN}), f8e4m3));
                S.store({m, n / 32}, cast(squeeze(e, 2), u8));
                auto cols = reshape(acc, {c.BM / 32, 32, c.BN});
                auto f = exponent(max(abs(cols), axis(1)));
                YT.store({n, m}, trans(cast(reshape(cols * inverse(f), {c.BM, c.BN}), f8e4m3)));
                ST.store({n, m / 32}, trans(cast(squeeze(f, 1), u8)));
              }).grid([](const MxOutCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r1("mx_out", [](Env& e) {
  MxOutCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps), c.group = e.field("group", c.group);
  const int M = e.big ? 8192 : 96, N = e.big ? 4096 : 160, K = e.big ? 2048 : 72;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(K) * N);
  auto y = constant<fp8_e4m3>(e, size_t(M) * N, 0), yt = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto s = filled<uint8_t>(e, size_t(M) * N / 32, [](size_t) { return 0; });
  auto st = filled<uint8_t>(e, size_t(M) * N / 32, [](size_t) { return 0; });
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(mx_out, c, a.view(M, K), b.view(K, N), y.view(M, N), s.view(M, N / 32), yt.view(N, M), st.view(N, M / 32));
  j.check = [=]() -> std::string {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N));
    auto one = y.now(), two = yt.now();
    auto f = s.now(), g = st.now();
    std::vector<double> gone(want.size()), gtwo(want.size());
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        const size_t i = size_t(m) * N + n, t = size_t(n) * M + m;
        if (m % 32 == 0) {
          double top = 0;
          for (int d = 0; d < 32; ++d) top = std::max(top, std::abs(want[i + size_t(d) * N]));
          const double p = std::exp2(g[t / 32] - 127.);
          if (top / p > 448.01 || top / p < 223.9) return "a factor of columns";
        }
        if (n % 32 == 0) {
          double top = 0;
          for (int d = 0; d < 32; ++d) top = std::max(top, std::abs(want[i + d]));
          const double p = std::exp2(f[i / 32] - 127.);
          if (top / p > 448.01 || top / p < 223.9) return "a factor of rows";
        }
        gone[i] = double(float(one[i])) * std::exp2(f[i / 32] - 127.);
        gtwo[i] = double(float(two[t])) * std::exp2(g[t / 32] - 127.);
      }
    auto wrong = agree(gone, want, 1e-3, 7e-2);
    return wrong.empty() ? agree(gtwo, want, 1e-3, 7e-2) : wrong;
  };
  return j;
});

// --- a router: softmax of X W over E experts, the best eight with weights that add up to 1, and for the balance how
// often an expert was chosen and the sum of its probabilities
struct RouterCfg {
  int BM = 64, E = 128, BK = 64, stages = 3, warps = 4;
};
auto router =
    kernel("user_router_balance", [](const RouterCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                                     Tensor<float, 2> weight, Tensor<int, 2> expert, Ptr<int> count, Ptr<float> mass) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      Tile acc = zeros({c.BM, c.E}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({0, k}, {c.E, c.BK})), acc);
      auto p = softmax(acc, axis(1));
      auto [best, at] = topk(p, 8, axis(1));
      weight.store({m, 0}, best / sum(best, axis(1)));
      expert.store({m, 0}, at);
      auto inside = (m + arange(0, c.BM)).col() < X.dim(0);
      auto n = histogram(reshape(where(inside, at, -1), {c.BM * 8}), c.E);
      atomic_add(count + arange(0, c.E), n);
      atomic_add(mass + arange(0, c.E), squeeze(sum(where(inside, p, 0.f), axis(0)), 0));
    }).grid([](const RouterCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("router_balance", [](Env& e) {
  RouterCfg c;
  if (!e.big) c = {16, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 65536 : 45, D = e.big ? 2048 : 88, E = c.E;
  auto x = random<bfloat16>(e, size_t(T) * D), w = random<bfloat16>(e, size_t(E) * D, -.1, .1);
  auto weight = constant<float>(e, size_t(T) * 8, NAN);
  auto expert = filled<int>(e, size_t(T) * 8, [](size_t) { return -1; });
  auto count = filled<int>(e, E, [](size_t) { return 0; });
  auto mass = constant<float>(e, E, 0);
  Job j;
  j.gflop = 2e-9 * T * E * double(D);
  j.mbytes = 2e-6 * T * D;
  j.add(router, c, x.view(T, D), w.view(E, D), weight.view(T, 8), expert.view(T, 8), count.p, mass.p);
  j.check = [=]() -> std::string {
    auto s = product(T, E, D, matrix(x, D), [&](int k, int n) { return w[size_t(n) * D + k]; });
    std::vector<double> masses(E, 0), want;
    std::vector<int> counts(E, 0);
    const auto got = expert.now();
    for (int t = 0; t < T; ++t) {
      double total = 0, chosen = 0;
      double* row = &s[size_t(t) * E];
      for (int n = 0; n < E; ++n) total += row[n] = std::exp(row[n]);
      for (int n = 0; n < E; ++n) masses[n] += row[n] / total;
      double before = INFINITY;
      for (int k = 0; k < 8; ++k) {
        const int n = got[size_t(t) * 8 + k];
        if (n < 0 || n >= E) return "an expert that does not exist";
        if (row[n] > before * (1 + 1e-5)) return "experts out of order";
        int better = 0;
        for (int i = 0; i < E; ++i) better += row[i] > row[n] * (1 + 1e-5);
        if (better > k) return "a better expert";
        before = row[n], chosen += row[n], ++counts[n];
      }
      for (int k = 0; k < 8; ++k) want.push_back(row[got[size_t(t) * 8 + k]] / chosen);
    }
    const auto n = count.now();
    for (int i = 0; i < E; ++i)
      if (n[i] != counts[i]) return "a count";
    auto wrong = agree(weight.now(), want, 1e-4, 1e-3);
    return wrong.empty() ? agree(mass.now(), masses, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- a layer of Kolmogorov-Arnold type: every input is spread over eight bells, which are the operand: y = Phi(X) W
struct KanCfg {
  int BM = 128, BN = 256, BK = 64, stages = 3, warps = 8;
};
auto kan = kernel("user_kan", [](const KanCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W, Tensor<half, 2> Y) {
             // X [M, K], W [8 K, N], Y [M, N]
             num_warps(c.warps);
             auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
             auto centre = cast(arange(0, 8), f32) - 3.5f;
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, X.dim(1) * 8, c.BK, {.stages = c.stages})) {
               auto x = cast(X.load({m, k / 8}, {c.BM, c.BK / 8}), f32) * 1.75f;
               auto d = expand_dims(x, 2) - reshape(centre, {1, 1, 8});
               auto bells = reshape(cast(exp2(d * d * -1.44269504f), f16), {c.BM, c.BK});
               acc = dot(bells, W.load({k, n}, {c.BK, c.BN}), acc);
             }
             Y.store({m, n}, cast(acc, f16));
           }).grid([](const KanCfg& c, const auto& x, const auto& w, const auto&) {
  return Grid{cdiv(w.shape[1], c.BN), cdiv(x.shape[0], c.BM)};
});
Register r3("kan", [](Env& e) {
  KanCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 45, N = e.big ? 512 : 88, K = e.big ? 512 : 24;
  auto x = random<half>(e, size_t(M) * K, -2, 2), w = random<half>(e, size_t(8) * K * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * 8. * K;
  j.add(kan, c, x.view(M, K), w.view(8 * K, N), y.view(M, N));
  j.check = [=] {
    auto bell = [&](int m, int k) {
      const double d = x[size_t(m) * K + k / 8] * 1.75 - (k % 8 - 3.5);
      return std::exp(-d * d);
    };
    return agree(y.now(), product(M, N, 8 * K, bell, matrix(w, N)), 1e-2, 2e-3);
  };
  return j;
});

}  // namespace beside_triton_routers
}  // namespace users
