// second_rounds.cpp - sums that go on from one tile of rows to the next: rows past the end, which are others' copies
// (`rows % M`, `min(rows, M - 1)`), are looked at when the next round comes to rows that are there.
#include "tests/users/use.h"
namespace users {
namespace second_rounds {

struct RoundCfg {
  int BM = 64, BN = 32, BK = 32, wraps = 1;
};
auto rounds = kernel("user_rounds", [](const RoundCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<float> y, I32 M,
                                       I32 N, I32 K) {
  auto n = program_id(0) * c.BN + arange(0, c.BN);
  auto tiles = cdiv(M, c.BM);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto t : range(0, 2 * tiles)) {
    auto m = t % tiles * c.BM + arange(0, c.BM);
    auto rows = c.wraps ? m % M : min(m, M - 1);
    for (auto start : range(0, K, c.BK)) {
      auto k = start + arange(0, c.BK);
      auto a = load(x + (rows.col() * K + k.row()), {.mask = k.row() < K});
      auto b = load(w + (k.col() * N + n.row()), {.mask = (k.col() < K) & (n.row() < N)});
      acc = dot(a, b, acc);
    }
    store(y + (m.col() * N + n.row()), acc, {.mask = (m < M).col() & (n < N).row()});
  }
}).grid([](const RoundCfg& c, auto, auto, auto, int, int N, int) { return Grid{cdiv(N, c.BN)}; });

Job two_rounds(Env& e, bool wraps) {
  const RoundCfg c{.wraps = wraps};
  const int M = e.big ? 1000 : 150, N = e.big ? 8192 : 48, K = e.big ? 1024 : 96;
  auto x = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(K) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * K;
  j.add(rounds, c, x.p, w.p, y.p, M, N, K);
  j.check = [=] {
    const int tiles = cdiv(M, c.BM);
    auto all = product(M, N, K, matrix(x, K), matrix(w, N));
    std::vector<double> sum(size_t(c.BM) * N, 0), want(size_t(M) * N);
    for (int t = 0; t < 2 * tiles; ++t)
      for (int i = 0; i < c.BM; ++i)
        for (int n = 0; n < N; ++n) {
          const int m = t % tiles * c.BM + i, row = wraps ? m % M : std::min(m, M - 1);
          double& s = sum[size_t(i) * N + n];
          s += all[size_t(row) * N + n];
          if (m < M) want[size_t(m) * N + n] = s;
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r1("rounds_wrapped", [](Env& e) { return two_rounds(e, true); });
Register r2("rounds_clamped", [](Env& e) { return two_rounds(e, false); });

}  // namespace second_rounds
}  // namespace users
