// chosen_products.cpp - products whose steps or tiles memory chooses: offsets of a sparse convolution by the bits of
// masks, tiles of experts that programs find one after the other.
#include "tests/users/use.h"
namespace users {
namespace chosen_products {

// --- sparse convolution: row m of offset k takes input table[k, m], or none (-1). Bit k of a row's mask says whether
// there is one; a block walks the bits that any of its rows has set.
struct BitsCfg {
  int BM = 128, BN = 64, BK = 64, stages = 3;
};
auto bit_convolution =
    kernel("user_bit_convolution", [](const BitsCfg& c, Ptr<const half> x, Ptr<const int> table, Ptr<const int> masks,
                                      Tensor<const half, 3> W, Tensor<half, 2> y, I32 n) {
      auto rows = program_id(0) * c.BM + arange(0, c.BM);
      auto columns = program_id(1) * c.BN;
      const auto C = W.dim(1);
      auto own = load(masks + rows, {.mask = rows < n});
      Tile bits = to_scalar(reduce(own, axis(0), [](Tile a, Tile b) { return a | b; }));
      Tile acc = zeros({c.BM, c.BN}, f32);
      while_([&] { return bits != 0; },
             [&] {
               auto k = countr_zero(bits);
               bits = bits & (bits - 1);
               auto from = load(table + (k * n + rows), {.mask = rows < n, .other = -1});
               for (auto i : range(0, C, c.BK, {.stages = c.stages})) {
                 auto at = i + arange(0, c.BK);
                 auto a =
                     load(x + (cast(from, i64).col() * C + at.row()), {.mask = (from >= 0).col() & (at < C).row()});
                 acc = dot(a, W.load({k, i, columns}, {c.BK, c.BN}), acc);
               }
             });
      y.store({program_id(0) * c.BM, columns}, cast(acc, f16));
    }).grid([](const BitsCfg& c, const auto*, const auto*, const auto*, const auto& w, const auto&, int n) {
      return Grid{cdiv(n, c.BM), cdiv(w.shape[2], c.BN)};
    });
Register r1("bit_conv", [](Env& e) {
  const int n = e.big ? 100000 : 150, K = 27, C = e.big ? 64 : 40, O = e.big ? 64 : 24;
  auto x = random<half>(e, size_t(n) * C);
  auto w = random<half>(e, size_t(K) * C * O, -.2, .2);
  // rows sorted by their masks, as the library does, so that the rows of a block miss the same offsets
  std::vector<int> masks(n), table(e.device ? size_t(K) * n : 0);
  for (int m = 0; m < n; ++m) {
    const int kind = int(int64_t(m) * 24 / n);
    masks[m] = (kind * 0x2F35 ^ (kind << 19)) & 0x7FFFFFF & ~(m % 5 == 0 ? 1 << (kind % 27) : 0);
    for (int k = 0; k < K && e.device; ++k)
      table[size_t(k) * n + m] = masks[m] >> k & 1 ? int((m * 13LL + k * 7919) % n) : -1;
  }
  auto bits = repeated<int>(e, n, masks), places = repeated<int>(e, size_t(K) * n, table);
  auto y = constant<half>(e, size_t(n) * O, NAN);
  const BitsCfg c{e.field("BM", e.big ? 128 : 64), e.field("BN", 64), e.field("BK", e.big ? 64 : 32),
                  e.field("stages", 3)};
  Job j;
  j.gflop = 2e-9 * n * C * O * 9;
  j.add(bit_convolution, c, x.p, places.p, bits.p, w.view(K, C, O), y.view(n, O), n);
  j.check = [=] {
    std::vector<double> want(size_t(n) * O);
    for (int m = 0; m < n; ++m)
      for (int k = 0; k < K; ++k)
        for (int i = 0; i < C && table[size_t(k) * n + m] >= 0; ++i)
          for (int o = 0; o < O; ++o)
            want[size_t(m) * O + o] += x[size_t(table[size_t(k) * n + m]) * C + i] * w[(size_t(k) * C + i) * O + o];
    return agree(y.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- products of 8 bits for experts that have `counts` tokens of a padded batch; factors per 128 columns of K and 128
// rows of W. Programs stay, and walk through the experts to find their next tile.
struct MaskedCfg {
  int BM = 64, BN = 128, BK = 128, stages = 4;
};
auto masked_experts =
    kernel("user_masked_experts",
           [](const MaskedCfg& c, Tensor<const fp8_e4m3, 3> A, Tensor<const float, 3> As, Tensor<const fp8_e4m3, 3> B,
              Tensor<const float, 3> Bs, Ptr<const int> counts, Tensor<bfloat16, 3> out, I32 experts, I32) {
             const auto N = B.dim(1), K = A.dim(2);
             auto across = cdiv(N, c.BN);
             Tile tile = program_id(0), e = zeros({1}, i32), before = zeros({1}, i32), more = zeros({1}, i32) == 0;
             while_([&] { return to_scalar(more); },
                    [&] {
                      // the expert that has this tile: all tiles of those before it lie in front
                      Tile rows = load(counts + to_scalar(e));
                      while_(
                          [&] {
                            return (to_scalar(e) < experts) & (tile >= to_scalar(before) + cdiv(rows, c.BM) * across);
                          },
                          [&] {
                            before += cdiv(rows, c.BM) * across;
                            e += 1;
                            rows = load(counts + min(to_scalar(e), experts - 1));
                          });
                      more = e < experts;
                      for (auto _ : when(to_scalar(more))) {
                        auto x = to_scalar(e), here = tile - to_scalar(before);
                        auto m = here / across * c.BM, n = here % across * c.BN;
                        Tile acc = zeros({c.BM, c.BN}, f32);
                        for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                          auto a = A.load({x, m, k}, {c.BM, c.BK}), b = B.load({x, n, k}, {c.BN, c.BK});
                          auto fa = As.load({x, k / c.BK, m}, {c.BM}),
                               fb = load(Bs.ptr() + ((x * cdiv(N, 128) + n / 128) * cdiv(K, 128) + k / 128));
                          acc += dot(a, trans(b)) * (fa * fb).col();
                        }
                        auto at = m + arange(0, c.BM);
                        auto columns = n + arange(0, c.BN);
                        store(out.ptr() + ((cast(x * A.dim(1) + at, i64)).col() * N + columns.row()), cast(acc, bf16),
                              {.mask = (at < rows).col() & (columns < N).row()});
                      }
                      tile += num_programs(0);
                    });
           })
        .grid([](const MaskedCfg&, const auto&, const auto&, const auto&, const auto&, const auto*, const auto&, int,
                 int programs) { return Grid{programs}; });
Register r2("masked_experts", [](Env& e) {
  const int E = e.big ? 32 : 4, M = e.big ? 256 : 40, N = e.big ? 4096 : 256, K = e.big ? 2048 : 256;
  auto a = random<fp8_e4m3>(e, size_t(E) * M * K, -2, 2), b = random<fp8_e4m3>(e, size_t(E) * N * K, -2, 2);
  auto as = random<float>(e, size_t(E) * (K / 128) * M, .5, 1.5),
       bs = random<float>(e, size_t(E) * (N / 128) * (K / 128), .5, 1.5);
  auto counts = filled<int>(e, E, [&](size_t i) {
    return i == 2 ? 0 : e.big ? int(20 + i * 37 % 100) : int(1 + i * 13);
  });
  auto out = constant<bfloat16>(e, size_t(E) * M * N, 3);
  const MaskedCfg c{e.field("BM", e.big ? 64 : 16), 128, 128, e.field("stages", 4)};
  Job j;
  j.gflop = 2e-9 * E * 70 * double(N) * K;
  j.add(masked_experts, c, a.view(E, M, K), as.view(E, K / 128, M), b.view(E, N, K), bs.view(E, N / 128, K / 128),
        counts.p, out.view(E, M, N), E, e.big ? 132 : 3);
  j.check = [=] {
    std::vector<double> want(out.n, 3);
    for (int x = 0; x < E; ++x)
      for (int m = 0; m < counts.at(x); ++m)
        for (int n = 0; n < N; ++n) {
          double sum = 0;
          for (int k = 0; k < K; ++k)
            sum += a[(size_t(x) * M + m) * K + k] * b[(size_t(x) * N + n) * K + k] *
                   as[(size_t(x) * (K / 128) + k / 128) * M + m] *
                   bs[(size_t(x) * (N / 128) + n / 128) * (K / 128) + k / 128];
          want[(size_t(x) * M + m) * N + n] = sum;
        }
    return agree(out.now(), want, .05, 8e-3);
  };
  return j;
});

}  // namespace chosen_products
}  // namespace users
