// weighted_counts.cpp - sums by a computed key, in tables of a program: a power spectrum by shells of |k|, amounts of a
// list of sales by shop.
#include "tests/users/use.h"
namespace users {
namespace weighted_counts {

// --- power spectrum by shells of |k|, from the half of a transform of real numbers [N, N, N/2+1] (re, im): every
// element adds its |F|^2 (twice, but for planes kz = 0 and N/2) to shell round(|k|).
// form 0: row by row; form 1: elements of several rows at a time; form 2: row by row, atomics to tables in memory
struct ShellCfg {
  int BZ = 512, NB = 256, rows = 64, warps = 4, form = 0, parts = 1;
};
auto shells = kernel("user_shells", [](const ShellCfg& c, Ptr<const float> F, Ptr<float> part, I32 N) {
                // part [parts, NB]
                num_warps(c.warps);
                auto M = N / 2 + 1;
                auto first = program_id(0) * c.rows, last = min(first + c.rows, N * N);
                auto table = part + (program_id(0) % c.parts) * c.NB;
                auto signed_k = [&](const Tile& k) { return where(k > N / 2, k - N, k); };
                Tile total = zeros({c.NB}, f32);
                auto add = [&](const Tile& at, const Tile& kx, const Tile& ky, const Tile& kz, const Tile& inside) {
                  auto re = load(F + at, {.mask = inside}), im = load(F + at + 1, {.mask = inside});
                  auto p = (re * re + im * im) * where((kz == 0) | (kz == N / 2), 1.f, 2.f);
                  auto shell = cast(sqrt_rn(cast(kx * kx + ky * ky + kz * kz, f32)) + .5f, i32);
                  if (c.form == 2)
                    atomic_add(table + shell, p, {.mask = inside & (shell < c.NB)});
                  else
                    total += histogram(shell, c.NB, {.mask = inside, .weight = p});
                };
                if (c.form == 1) {
                  for (auto i0 : range(first * M, last * M, c.BZ)) {
                    auto i = i0 + arange(0, c.BZ);
                    auto r = i / M;
                    add(cast(i, i64) * 2, signed_k(r % N), signed_k(r / N), i % M, i < last * M);
                  }
                } else {
                  for (auto r : range(first, last))
                    for (auto z0 : range(0, M, c.BZ)) {
                      auto kz = z0 + arange(0, c.BZ);
                      add((cast(r, i64) * M + kz) * 2, signed_k(r % N), signed_k(r / N), kz, kz < M);
                    }
                }
                if (c.form != 2) atomic_add(table + arange(0, c.NB), total, {.mask = total != 0});
              }).grid([](const ShellCfg& c, auto, auto, int N) { return Grid{cdiv(N * N, c.rows)}; });
auto shells_sum = kernel("user_shells_sum", [](const ShellCfg& c, Tensor<const float, 2> part, Tensor<float, 1> out) {
                    auto b = program_id(0) * 32;
                    Tile s = zeros({1, 32}, f32);
                    for (auto p : range(0, c.parts, 32)) s += sum(part.load({p, b}, {32, 32}), axis(0));
                    out.store({b}, squeeze(s, 0));
                  }).grid([](const ShellCfg& c, const auto&...) { return Grid{cdiv(c.NB, 32)}; });
auto shells_zero = kernel("user_shells_zero", [](const ShellCfg& c, Tensor<float, 2> part) {
                     part.store({program_id(0), 0}, zeros({1, c.NB}, f32));
                   }).grid([](const ShellCfg& c, const auto&) { return Grid{c.parts}; });
Register r1("shells", [](Env& e) {
  ShellCfg c;
  if (!e.big) c = {24, 16, 3, 1, 0, 1};
  c.rows = e.field("rows", c.rows), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  c.parts = e.field("parts", c.parts), c.BZ = e.field("BZ", c.BZ);
  const int N = e.big ? 512 : 30, M = N / 2 + 1;
  auto f = random<float>(e, size_t(N) * N * M * 2);
  auto part = constant<float>(e, size_t(c.parts) * c.NB, NAN), out = constant<float>(e, c.NB, NAN);
  Job j;
  j.mbytes = 8e-6 * N * N * M;
  j.inTurn = true;
  j.add(shells_zero, c, part.view(c.parts, c.NB));
  j.add(shells, c, f.p, part.p, N);
  if (c.parts > 1) j.add(shells_sum, c, part.view(c.parts, c.NB), out.view(c.NB));
  j.check = [=] {
    std::vector<double> want(c.NB);
    for (int y = 0; y < N; ++y)
      for (int x = 0; x < N; ++x)
        for (int z = 0; z < M; ++z) {
          const int ky = y > N / 2 ? y - N : y, kx = x > N / 2 ? x - N : x;
          const int b = int(std::sqrt(double(kx * kx + ky * ky + z * z)) + .5);
          const size_t at = ((size_t(y) * N + x) * M + z) * 2;
          if (b < c.NB) want[b] += (f[at] * f[at] + f[at + 1] * f[at + 1]) * (z == 0 || z == N / 2 ? 1 : 2);
        }
    return agree(c.parts > 1 ? out.now() : part.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- amounts (i32) and how many sales by shop, of days from `from` on; shops that are not known are left out
struct SalesCfg {
  int B = 1000, shops = 37;
};
auto sales =
    kernel("user_sales", [](const SalesCfg& c, Ptr<const int32_t> shop, Ptr<const int32_t> amount,
                            Ptr<const int16_t> day, Ptr<int32_t> out, I32 from, I32 n) {
      Tile sums = zeros({c.shops}, i32), counts = zeros({c.shops}, i32);
      for (auto i0 : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
        auto i = i0 + arange(0, c.B);
        auto k = load(shop + i, {.mask = i < n, .other = -1});
        auto wanted = load(day + i, {.mask = i < n}) >= from;
        sums += histogram(k, c.shops, {.mask = wanted, .weight = load(amount + i, {.mask = i < n})});
        counts += histogram(k, c.shops, {.mask = wanted});
      }
      auto s = arange(0, c.shops);
      atomic_add(out + s, sums), atomic_add(out + c.shops + s, counts);
    }).grid([](const SalesCfg& c, auto, auto, auto, auto, int, int n) { return Grid{min(264, cdiv(n, c.B))}; });
Register r2("sales", [](Env& e) {
  SalesCfg c;
  if (!e.big) c.B = 100;
  const int n = e.big ? 10'000'003 : 777, from = 100;
  auto shop = integers<int32_t>(e, n, -3, c.shops + 3), amount = integers<int32_t>(e, n, -50, 1000);
  auto day = integers<int16_t>(e, n, 0, 365);
  auto out = constant<int32_t>(e, 2 * c.shops, 0);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(sales, c, shop.p, amount.p, day.p, out.p, from, n);
  j.check = [=] {
    std::vector<double> want(2 * c.shops);
    for (int i = 0; i < n; ++i) {
      const int k = shop.at(i);
      if (day[i] >= from && k >= 0 && k < c.shops) want[k] += amount[i], ++want[c.shops + k];
    }
    return agree(out.now(), want, 0.5, 0);
  };
  return j;
});

}  // namespace weighted_counts
}  // namespace users
