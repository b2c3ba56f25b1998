// precisions.cpp - numbers whose roundings the user chooses: f32 products of bf16 or tf32 parts, weights kept in bf16
// and updated with random rounding, rows chosen by number, roots and quotients to the bit.
#include "tests/users/use.h"
namespace users {
namespace precisions {

// --- an f32 GEMM on tensor cores: prec 1 = tf32, 2 = three tf32, 3 = three bf16, 4 = six bf16
struct PartsCfg {
  int BM = 128, BN = 128, BK = 32, stages = 3, warps = 8, prec = 3;
};
auto parts_gemm =
    kernel("user_parts_gemm", [](const PartsCfg& c, Tensor<const float, 2> A, Tensor<const float, 2> B,
                                 Tensor<float, 2> C) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc, static_cast<Prec>(c.prec));
      C.store({m, n}, acc);
    }).grid([](const PartsCfg& c, const auto& a, const auto& b, const auto&) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
    });
Register r1("parts_gemm", [](Env& e) {
  const int M = e.big ? 4096 : 200, N = e.big ? 4096 : 136, K = e.big ? 4096 : 100;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(K) * N),
       c = constant<float>(e, size_t(M) * N, NAN);
  PartsCfg cfg;
  cfg.BM = e.field("BM", cfg.BM), cfg.BN = e.field("BN", cfg.BN), cfg.BK = e.field("BK", cfg.BK);
  cfg.stages = e.field("stages", cfg.stages), cfg.warps = e.field("warps", cfg.warps),
  cfg.prec = e.field("prec", cfg.prec);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(parts_gemm, cfg, a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N), [](double s, int, int) { return s; });
    const double off = cfg.prec == 1 ? 2e-2 : cfg.prec == 3 ? 3e-4 : 3e-5;
    return agree(c.now(), want, off, off);
  };
  return j;
});

// --- the tutorial's update of weights kept in bf16: without random rounding small steps would be lost
struct StepCfg {
  int B = 2048, warps = 4;
};
auto stochastic_sgd = kernel("user_stochastic_sgd", [](const StepCfg& c, Ptr<bfloat16> w, Ptr<const bfloat16> g,
                                                       Ptr<float> mean, F32 rate, I32 n, U64 seed) {
                        num_warps(c.warps);
                        auto i = program_id(0) * c.B + arange(0, c.B);
                        auto inside = i < n;
                        auto m =
                            load(mean + i, {.mask = inside}) * 0.9f + cast(load(g + i, {.mask = inside}), f32) * 0.1f;
                        auto next = cast(load(w + i, {.mask = inside}), f32) - rate * m;
                        store(mean + i, m, {.mask = inside});
                        store(w + i, cast_stochastic(next, bf16, randint(seed, i)), {.mask = inside});
                      }).grid([](const StepCfg& c, bfloat16*, const bfloat16*, float*, float, int n, uint64_t) {
  return Grid{cdiv(n, c.B)};
});
Register r2("stochastic_sgd", [](Env& e) {
  const int n = e.big ? 1 << 25 : 5000;
  auto w = constant<bfloat16>(e, n, 1), g = random<bfloat16>(e, n);
  auto m = constant<float>(e, n, 0);
  Job j;
  j.mbytes = 14e-6 * n;
  j.add(stochastic_sgd, StepCfg{e.field("B", 2048), e.field("warps", 4)}, w.p, g.p, m.p, 1e-3f, n, uint64_t{17});
  j.check = [=]() -> std::string {
    double sum = 0, want = 0;
    auto now = w.now();
    for (int i = 0; i < n; ++i) {
      const double exact = 1 - 1e-3 * static_cast<double>(m[i]), got = static_cast<double>(now[i]);
      if (!(std::fabs(got - exact) <= 0x1p-7)) return "element " + std::to_string(i) + " moved too far";
      sum += got, want += exact;
    }
    return std::fabs(sum - want) < 5 * 0x1p-8 * std::sqrt(double(n)) ? "" : "the mean is off";
  };
  return j;
});

// --- rows of a table by number, summed per bag
struct BagCfg {
  int BC = 128, rows = 16, warps = 4;
};
auto row_bags = kernel("user_row_bags", [](const BagCfg& c, Tensor<const half, 2> table, Tensor<const int32_t, 2> bags,
                                           Tensor<float, 2> out) {
                  num_warps(c.warps);
                  auto bag = program_id(0), first = program_id(1) * c.BC;
                  Tile acc = zeros({1, c.BC}, f32);
                  for (auto k : range(0, bags.dim(1), c.rows)) {
                    auto numbers = bags.load({bag, k}, {c.rows}, {.pad = -1});
                    acc += sum(cast(table.gather(numbers, first, c.BC), f32), axis(0));
                  }
                  out.store({bag, first}, acc);
                }).grid([](const BagCfg& c, const auto& t, const auto& b, const auto&) {
  return Grid{b.shape[0], cdiv(t.shape[1], c.BC)};
});
Register r3("row_bags", [](Env& e) {
  const int V = e.big ? 100000 : 300, C = e.big ? 512 : 200, bags = e.big ? 8192 : 21, L = e.big ? 64 : 20;
  auto t = random<half>(e, size_t(V) * C);
  auto b = filled<int32_t>(e, size_t(bags) * L,
                           [=](size_t i) { return static_cast<int32_t>((i * 2654435761u + i / 7) % V); });
  auto o = constant<float>(e, size_t(bags) * C, NAN);
  Job j;
  j.mbytes = 2e-6 * bags * L * C;
  j.add(row_bags, BagCfg{e.field("BC", e.big ? 512 : 128), e.field("rows", 16), e.field("warps", 4)}, t.view(V, C),
        b.view(bags, L), o.view(bags, C));
  j.check = [=] {
    std::vector<double> want(size_t(bags) * C);
    for (int i = 0; i < bags; ++i)
      for (int k = 0; k < L; ++k)
        for (int c = 0; c < C; ++c) want[size_t(i) * C + c] += static_cast<double>(t[size_t(b[i * L + k]) * C + c]);
    return agree(o.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- a product of rows chosen by number, its rows put back where they came from
auto row_gemm = kernel("user_row_gemm", [](const PartsCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                           Tensor<const int32_t, 1> rows, Tensor<half, 2> C) {
                  num_warps(c.warps);
                  auto n = program_id(1) * c.BN;
                  auto r = rows.load({program_id(0) * c.BM}, {c.BM}, {.pad = -1});
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                    acc = dot(A.gather(r, k, c.BK), B.load({k, n}, {c.BK, c.BN}), acc);
                  C.scatter(r, n, cast(acc, f16));
                }).grid([](const PartsCfg& c, const auto&, const auto& b, const auto& r, const auto&) {
  return Grid{cdiv(r.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r5("row_gemm", [](Env& e) {
  const int V = e.big ? 8192 : 300, M = e.big ? 4096 : 150, N = e.big ? 4096 : 136, K = e.big ? 4096 : 104;
  auto a = random<half>(e, size_t(V) * K), b = random<half>(e, size_t(K) * N), c = constant<half>(e, size_t(V) * N, 7);
  auto r = filled<int32_t>(e, M, [=](size_t i) { return static_cast<int32_t>((i * 7 + 3) % V); });
  PartsCfg cfg;
  cfg.BM = e.field("BM", cfg.BM), cfg.BN = e.field("BN", cfg.BN), cfg.BK = e.field("BK", 64);
  cfg.stages = e.field("stages", cfg.stages), cfg.warps = e.field("warps", cfg.warps);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(row_gemm, cfg, a.view(V, K), b.view(K, N), r.view(M), c.view(V, N));
  j.check = [=]() -> std::string {
    auto pick = [=](int i, int k) { return static_cast<double>(a[size_t(r[i]) * K + k]); };
    auto want = product(M, N, K, pick, matrix(b, N), [](double s, int, int) { return s; });
    auto now = c.now();
    std::vector<half> got(size_t(M) * N);
    std::vector<bool> written(V);
    for (int i = 0; i < M; ++i) {
      written[r[i]] = true;
      for (int n = 0; n < N; ++n) got[size_t(i) * N + n] = now[size_t(r[i]) * N + n];
    }
    for (int v = 0; v < V; ++v)
      if (!written[v] && static_cast<float>(now[size_t(v) * N]) != 7) return "row " + std::to_string(v) + " was written";
    return agree(got, want, 4e-3, 2e-2);
  };
  return j;
});

// --- lengths and directions to the bit of what a CPU computes, and the largest of a row with its place
struct UnitCfg {
  int B = 1024, warps = 4;
};
auto exact_units = kernel("user_exact_units", [](const UnitCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y,
                                                 Tensor<int32_t, 1> place) {
                     num_warps(c.warps);
                     auto r = program_id(0);
                     auto x = X.load({r, 0}, {c.B}), y = X.load({r, c.B}, {c.B});
                     auto length = sqrt_rn(add_rn(mul_rn(x, x), mul_rn(y, y)));
                     Y.store({r, 0}, div_rn(x, length));
                     Y.store({r, c.B}, div_rn(y, length));
                     auto [most, at] = max_with_index(length, axis(0));
                     place.store({r}, at);
                   }).grid([](const UnitCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("exact_units", [](Env& e) {
  const int rows = e.big ? 16384 : 9, B = 1024;
  auto x = random<float>(e, size_t(rows) * 2 * B), y = constant<float>(e, size_t(rows) * 2 * B, NAN);
  auto p = constant<int32_t>(e, rows, -1);
  Job j;
  j.mbytes = 16e-6 * rows * B;
  j.add(exact_units, UnitCfg{B, e.field("warps", 4)}, x.view(rows, 2 * B), y.view(rows, 2 * B), p.view(rows));
  j.check = [=]() -> std::string {
    auto got = y.now();
    auto places = p.now();
    for (int r = 0; r < rows; ++r) {
      int best = 0;
      float most = -1;
      for (int i = 0; i < B; ++i) {
        const float a = x[(size_t(r) * 2) * B + i], b = x[(size_t(r) * 2 + 1) * B + i];
        const volatile float aa = a * a, bb = b * b;
        const float length = std::sqrt(aa + bb);
        if (length > most) most = length, best = i;
        if (got[(size_t(r) * 2) * B + i] != a / length || got[(size_t(r) * 2 + 1) * B + i] != b / length)
          return "row " + std::to_string(r) + " element " + std::to_string(i) + " is not exact";
      }
      if (places[r] != best) return "row " + std::to_string(r) + ": the longest is " + std::to_string(best);
    }
    return "";
  };
  return j;
});

}  // namespace precisions
}  // namespace users
