// unpacked_weights.cpp - products with narrow weights in the ways people write them: GPTQ words unpacked by shifts or
// by a third dim, f8 blocks with scales, experts by sorted tokens.
#include "tests/users/use.h"
namespace users {
namespace unpacked_weights {

struct QmCfg {
  int BM = 64, BN = 64, BK = 64, G = 128, stages = 3, warps = 4, way = 0;
};
// --- GPTQ: words of eight 4-bit rows of a column, zeros packed along columns, scales per group of rows
auto gptq = kernel("user_gptq_ways", [](const QmCfg& c, Ptr<const half> A, Ptr<const int> W, Ptr<const half> scales,
                                        Ptr<const int> zeros_, Ptr<half> C, I32 M, I32 N, I32 K) {
              num_warps(c.warps);
              auto om = program_id(0) * c.BM + arange(0, c.BM), on = program_id(1) * c.BN + arange(0, c.BN);
              auto ok = arange(0, c.BK);
              auto in = om.col() < M;
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                auto a = load(A + (om.col() * K + (k + ok).row()), {.mask = in & ((k + ok).row() < K)});
                Tile w;
                if (c.way == 0) {  // every row of a word loads it
                  auto words =
                      load(W + (((k + ok) / 8).col() * N + on.row()), {.mask = ((k + ok).col() < K) & (on.row() < N)});
                  w = (words >> (ok % 8 * 4).col()) & 15;
                } else {  // a word is loaded once and spread over a third dim
                  auto ow = k / 8 + arange(0, c.BK / 8);
                  auto words = load(W + (ow.col() * N + on.row()), {.mask = (ow.col() * 8 < K) & (on.row() < N)});
                  auto shifts = reshape(arange(0, 8) * 4, {1, 8, 1});
                  w = reshape((expand_dims(words, 1) >> shifts) & 15, {c.BK, c.BN});
                }
                auto g = k / c.G;
                auto s = load(scales + (g * N + on), {.mask = on < N});
                auto z = load(zeros_ + (g * (N / 8) + on / 8), {.mask = on < N});
                auto zero = ((z >> (on % 8 * 4)) & 15) + 1;
                acc = dot(a, cast(w - zero.row(), f16) * s.row(), acc);
              }
              store(C + (om.col() * N + on.row()), cast(acc, f16), {.mask = in & (on.row() < N)});
            }).grid([](const QmCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Job gptq_job(Env& e, int way) {
  QmCfg c;
  c.way = way, c.G = e.field("G", e.big ? 128 : 32), c.BM = e.field("BM", e.big ? 64 : 32);
  c.BN = e.field("BN", e.big ? 128 : 32), c.BK = e.field("BK", e.big ? 64 : 32);
  c.stages = e.field("stages", 3), c.warps = e.field("warps", 4);
  const int M = e.big ? 512 : 45, N = e.big ? 8192 : 72, K = e.big ? 8192 : 160;
  auto a = random<half>(e, size_t(M) * K);
  auto word = [&] { return int(uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536)); };
  auto w = drawn<int>(e, size_t(K / 8) * N, word), z = drawn<int>(e, size_t(cdiv(K, c.G)) * N / 8, word);
  auto s = random<half>(e, size_t(cdiv(K, c.G)) * N, .01, .1);
  auto o = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(gptq, c, a.p, w.p, s.p, z.p, o.p, M, N, K);
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) {
      const int q = w.h[k / 8 * N + n] >> k % 8 * 4 & 15, zero = (z.h[k / c.G * (N / 8) + n / 8] >> n % 8 * 4 & 15) + 1;
      return in_half((q - zero) * s[k / c.G * N + n]);
    });
    return agree(o.now(), want, 1e-2, 2e-3);
  };
  return j;
}
Register r0("gptq_shifts", [](Env& e) { return gptq_job(e, 0); });
Register r1("gptq_spread", [](Env& e) { return gptq_job(e, 1); });

// --- f8 with a scale per row and 128 of K (A), per 128 x 128 block (B, stored [N, K])
auto f8_blocks = kernel("user_f8_scaled", [](const QmCfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const fp8_e4m3, 2> B,
                                             Ptr<const float> sa, Ptr<const float> sb, Tensor<bfloat16, 2> C, I32 K) {
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, M = C.dim(0), N = C.dim(1);
                   auto groups = cdiv(K, c.G);
                   auto om = m + arange(0, c.BM), on = n + arange(0, c.BN);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                     auto a = A.load({m, k}, {c.BM, c.BK});
                     auto b = trans(B.load({n, k}, {c.BN, c.BK}));
                     auto x = load(sa + (om * groups + k / c.G), {.mask = om < M});
                     if (c.way == 0) {
                       auto y = load(sb + (on / c.G * groups + k / c.G), {.mask = on < N});
                       acc += dot(a, b, zeros({c.BM, c.BN}, f32)) * x.col() * y.row();
                     } else {
                       auto y = load(sb + (n / c.G * groups + k / c.G));
                       acc += dot(a, b, zeros({c.BM, c.BN}, f32)) * (x * y).col();
                     }
                   }
                   C.store({m, n}, cast(acc, bf16));
                 }).grid([](const QmCfg& c, const auto&, const auto&, auto, auto, const auto& o, int) {
  return Grid{cdiv(o.shape[0], c.BM), cdiv(o.shape[1], c.BN)};
});
Job f8_job(Env& e, int way) {
  QmCfg c;
  c.way = way, c.G = e.field("G", e.big ? 128 : 32), c.BM = e.field("BM", e.big ? 128 : 32);
  c.BN = e.field("BN", e.big ? 128 : 32), c.BK = e.field("BK", e.big ? 128 : 32);
  c.stages = e.field("stages", 3), c.warps = e.field("warps", e.big ? 8 : 4);
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 80, K = e.big ? 7168 : 160, groups = int(cdiv(K, c.G));
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto sa = random<float>(e, size_t(M) * groups, .1, 1), sb = random<float>(e, size_t(cdiv(N, c.G)) * groups, .1, 1);
  auto o = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(f8_blocks, c, a.view(M, K), b.view(N, K), sa.p, sb.p, o.view(M, N), K);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k)
          want[size_t(m) * N + n] +=
              a[size_t(m) * K + k] * b[size_t(n) * K + k] * sa[m * groups + k / c.G] * sb[n / c.G * groups + k / c.G];
    return agree(o.now(), want, 2e-2, 1e-2);
  };
  return j;
}
Register r2("f8_scaled_blocks", [](Env& e) { return f8_job(e, 0); });
Register r3("f8_scaled", [](Env& e) { return f8_job(e, 1); });

// --- experts: tokens sorted by expert and padded to blocks of BM (vLLM); way 0 pointers, way 1 gathered rows of a view
auto moe =
    kernel("user_moe_ways", [](const QmCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 3> W,
                               Ptr<const int> sorted, Ptr<const int> expert, Ptr<const int> padded,
                               Ptr<const float> weight, Ptr<bfloat16> out, I32 T, I32 top) {
      num_warps(c.warps);
      auto N = W.dim(1), K = W.dim(2);
      auto pm = program_id(0), pn = program_id(1);
      return_if(pm * c.BM >= load(padded));
      auto ids = load(sorted + (pm * c.BM + arange(0, c.BM)));
      auto valid = ids < T * top;
      auto e = load(expert + pm);
      auto on = (pn * c.BN + arange(0, c.BN));
      auto rows = ids / top;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
        auto ok = k + arange(0, c.BK);
        Tile a = c.way ? X.gather(where(valid, rows, -1), k, c.BK)
                       : load(X.ptr() + (cast(rows, i64).col() * K + cast(ok, i64).row()),
                              {.mask = valid.col() & (ok.row() < K)});
        Tile b = c.way ? trans(reshape(W.load({e, pn * c.BN, k}, {1, c.BN, c.BK}), {c.BN, c.BK}))
                       : load(W.ptr() + cast(e, i64) * N * K + (on.row() * K + ok.col()),
                              {.mask = (on.row() < N) & (ok.col() < K)});
        acc = dot(a, b, acc);
      }
      acc = acc * load(weight + ids, {.mask = valid}).col();
      store(out + (cast(ids, i64).col() * N + on.row()), cast(acc, bf16), {.mask = valid.col() & (on.row() < N)});
    }).grid([](const QmCfg& c, const auto&, const auto& w, auto, const int*, auto, auto, auto, int T, int top) {
      return Grid{cdiv(T * top, c.BM) + w.shape[0], cdiv(w.shape[1], c.BN)};
    });
Job moe_job(Env& e, int way) {
  QmCfg c;
  c.way = way, c.BM = e.field("BM", e.big ? 64 : 16), c.BN = e.field("BN", e.big ? 128 : 32);
  c.BK = e.field("BK", e.big ? 64 : 32), c.stages = e.field("stages", 3), c.warps = e.field("warps", 4);
  const int T = e.big ? 4096 : 29, top = 2, E = e.big ? 64 : 5, N = e.big ? 2048 : 72, K = e.big ? 4096 : 104;
  auto x = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * N * K);
  auto weight = random<float>(e, T * top, 0, 1);
  std::vector<int> of(T * top), sorted, expert;
  for (int& i : of) i = int(e.uniform() * (E - 1));  // the last one gets none
  for (int i = 0; i < E; ++i) {
    for (int t = 0; t < T * top; ++t)
      if (of[t] == i) sorted.push_back(t);
    while (sorted.size() % c.BM) sorted.push_back(T * top);
    while (expert.size() * c.BM < sorted.size()) expert.push_back(i);
  }
  const int padded = int(sorted.size());
  auto ps = repeated(e, sorted.size(), sorted), pe = repeated(e, expert.size(), expert),
       pp = repeated(e, 1, std::vector<int>{padded});
  auto o = constant<bfloat16>(e, size_t(T) * top * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * top * N * K;
  j.add(moe, c, x.view(T, K), w.view(E, N, K), ps.p, pe.p, pp.p, weight.p, o.p, T, top);
  j.check = [=] {
    std::vector<double> want(size_t(T) * top * N);
    for (int t = 0; t < T * top; ++t)
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int k = 0; k < K; ++k) s += x[size_t(t / top) * K + k] * w[(size_t(of[t]) * N + n) * K + k];
        want[size_t(t) * N + n] = s * weight[t];
      }
    return agree(o.now(), want, 2e-2, 1e-2);
  };
  return j;
}
Register r4("moe_pointers", [](Env& e) { return moe_job(e, 0); });
Register r5("moe_gather", [](Env& e) { return moe_job(e, 1); });

}  // namespace unpacked_weights
}  // namespace users
