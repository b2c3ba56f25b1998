// beside_triton_sparse.cpp - block-sparse products: scores, softmax and values over CSR blocks of 32; a transposed BSR
// weight in tf32; gradients of the blocks that exist; blocks by bits
#include "tests/users/use.h"
namespace users {
namespace beside_triton_sparse {

constexpr float kLog2e = 1.4426950408889634f;

std::vector<int> blocks_of(int b, int blocks, int local, int every) {
  std::vector<int> out;
  for (int n = 0; n <= b && n < blocks; ++n)
    if (n == 0 || b - n < local || (n * 7 + b * 3) % every == 1) out.push_back(n);
  return out;
}

// --- SDDMM, softmax, DSD: attention in three steps over blocks of 32 x 32 that exist (causal), scores in memory
struct ScoresCfg {
  int D = 64, warps = 4, stages = 0;
};
auto scores = kernel("user_block_scores", [](const ScoresCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                             Ptr<const int> first, Ptr<const int> list, Tensor<half, 4> S, F32 scale) {
                if (c.warps) num_warps(c.warps);
                auto b = program_id(0), h = program_id(1);
                auto q = Q.load({h, b * 32, 0}, {32, c.D});
                for (auto i : range(load(first + b), load(first + b + 1), 1, {.stages = c.stages})) {
                  auto n = load(list + i) * 32;
                  auto s = dot(q, trans(K.load({h, n, 0}, {32, c.D}))) * scale;
                  s = where((n + arange(0, 32)).row() <= (b * 32 + arange(0, 32)).col(), s, -INFINITY);
                  S.store({h, i, 0, 0}, cast(s, f16));
                }
              }).grid([](const ScoresCfg&, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], 32), q.shape[0]};
});
struct SparseSoftCfg {
  int NB = 4, warps = 4, stages = 0;
};
auto block_softmax =
    kernel("user_block_softmax", [](const SparseSoftCfg& c, Tensor<half, 4> S, Ptr<const int> first, I32 rows) {
      if (c.warps) num_warps(c.warps);
      auto b = program_id(0), h = program_id(1);
      auto begin = load(first + b), end = load(first + b + 1);
      Tile m = full({1, 32, 1}, -1e30f, f32), l = zeros({1, 32, 1}, f32);
      auto there = [&](const Tile& i) { return reshape(i + arange(0, c.NB), {c.NB, 1, 1}) < end; };
      for (auto i : range(begin, end, c.NB, {.stages = c.stages})) {
        auto s = cast(S.load({h, i, 0, 0}, {c.NB, 32, 32}), f32) * kLog2e;
        s = where(there(i), s, -INFINITY);
        auto m2 = max(m, max(max(s, axis(2)), axis(0)));
        l = l * exp2(m - m2) + sum(sum(exp2(s - m2), axis(2)), axis(0));
        m = m2;
      }
      auto shift = m + log2(l);
      for (auto i : range(begin, end)) {
        auto s = cast(S.load({h, i, 0, 0}, {1, 32, 32}), f32) * kLog2e;
        S.store({h, i, 0, 0}, cast(exp2(s - shift), f16));
      }
    }).grid([](const SparseSoftCfg&, const auto& s, const int*, int rows) {
      return Grid{rows, s.shape[0]};
    });
struct DsdCfg {
  int D = 64, warps = 4, stages = 0;
};
auto dsd = kernel("user_block_values", [](const DsdCfg& c, Tensor<const half, 4> S, Tensor<const half, 3> V,
                                          Ptr<const int> first, Ptr<const int> list, Tensor<half, 3> O) {
             if (c.warps) num_warps(c.warps);
             auto b = program_id(0), h = program_id(1);
             Tile acc = zeros({32, c.D}, f32);
             for (auto i : range(load(first + b), load(first + b + 1), 1, {.stages = c.stages})) {
               auto n = load(list + i) * 32;
               acc = dot(S.load({h, i, 0, 0}, {32, 32}), V.load({h, n, 0}, {32, c.D}), acc);
             }
             O.store({h, b * 32, 0}, cast(acc, f16));
           }).grid([](const DsdCfg&, const auto&, const auto& v, const auto&...) {
  return Grid{cdiv(v.shape[1], 32), v.shape[0]};
});
Register r1("sparse_scores", [](Env& e) {
  const int H = e.big ? 16 : 2, T = e.big ? 8192 : 233, D = e.big ? 64 : 48, blocks = (T + 31) / 32;
  std::vector<int> ptr{0}, all;
  for (int b = 0; b < blocks; ++b) {
    auto x = blocks_of(b, blocks, e.big ? 12 : 2, e.big ? 12 : 3);
    all.insert(all.end(), x.begin(), x.end()), ptr.push_back(int(all.size()));
  }
  const int nnz = int(all.size());
  auto q = random<half>(e, size_t(H) * T * D, -2, 2), k = random<half>(e, size_t(H) * T * D, -2, 2),
       v = random<half>(e, size_t(H) * T * D);
  auto s = constant<half>(e, size_t(H) * nnz * 1024, NAN), o = constant<half>(e, size_t(H) * T * D, NAN);
  auto first = repeated<int>(e, ptr.size(), ptr), list = repeated<int>(e, all.size(), all);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 8e-6 * H * double(nnz) * 1024;
  j.add(scores, ScoresCfg{D, e.field("warps", 4), e.field("stages", 0)}, q.view(H, T, D), k.view(H, T, D), first.p,
        list.p, s.view(H, nnz, 32, 32), scale);
  j.add(block_softmax, SparseSoftCfg{e.field("NB", 4), e.field("swarps", 4), e.field("sstages", 0)},
        s.view(H, nnz, 32, 32), first.p, blocks);
  j.add(dsd, DsdCfg{D, e.field("vwarps", 4), e.field("vstages", 0)}, s.view(H, nnz, 32, 32), v.view(H, T, D), first.p,
        list.p, o.view(H, T, D));
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        double total = 0;
        const size_t r = (size_t(h) * T + t) * D;
        for (int i = ptr[t / 32]; i < ptr[t / 32 + 1]; ++i)
          for (int n = all[i] * 32; n < std::min(t + 1, all[i] * 32 + 32); ++n) {
            double x = 0;
            for (int d = 0; d < D; ++d) x += q[r + d] * k[(size_t(h) * T + n) * D + d];
            x = std::exp(x * scale), total += x;
            for (int d = 0; d < D; ++d) want[r + d] += x * v[(size_t(h) * T + n) * D + d];
          }
        for (int d = 0; d < D; ++d) want[r + d] /= total;
      }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
});

// --- dX = dY W, W [N, K] of blocks 32 x 32 that exist (f32, products in tf32); every block column has a list (CSC)
struct BsrCfg {
  int BM = 128, stages = 3, warps = 4;
};
auto bsr_t =
    kernel("user_bsr_t", [](const BsrCfg& c, Tensor<const float, 2> dY, Tensor<const float, 3> W, Ptr<const int> first,
                            Ptr<const int> row, Ptr<const int> block, Tensor<float, 2> dX) {
      if (c.warps) num_warps(c.warps);
      auto j = program_id(0), m = program_id(1) * c.BM;
      Tile acc = zeros({c.BM, 32}, f32);
      for (auto i : range(load(first + j), load(first + j + 1), 1, {.stages = c.stages})) {
        auto n = load(row + i) * 32, b = load(block + i);
        acc = dot(dY.load({m, n}, {c.BM, 32}), W.load({b, 0, 0}, {32, 32}), acc, Prec::tf32);
      }
      dX.store({m, j * 32}, acc);
    }).grid([](const BsrCfg& c, const auto&, const auto&, const int*, const int*, const int*, const auto& x) {
      return Grid{cdiv(x.shape[1], 32), cdiv(x.shape[0], c.BM)};
    });
Register r2("bsr_t", [](Env& e) {
  const int M = e.big ? 4096 : 201, N = e.big ? 4096 : 224, K = e.big ? 4096 : 160, every = e.big ? 10 : 3;
  std::vector<int> ptr{0}, rows, ids;
  std::vector<std::array<int, 2>> at;  // blocks are numbered row by row
  for (int i = 0; i < N / 32; ++i)
    for (int j = 0; j < K / 32; ++j)
      if (j != 2 && (i * 7 + j * 3) % every == 1) at.push_back({i, j});
  for (int j = 0; j < K / 32; ++j) {
    for (size_t b = 0; b < at.size(); ++b)
      if (at[b][1] == j) rows.push_back(at[b][0]), ids.push_back(int(b));
    ptr.push_back(int(ids.size()));
  }
  auto y = random<float>(e, size_t(M) * N), w = random<float>(e, at.size() * 1024);
  auto x = constant<float>(e, size_t(M) * K, NAN);
  auto first = repeated<int>(e, ptr.size(), ptr), row = repeated<int>(e, rows.size(), rows),
       block = repeated<int>(e, ids.size(), ids);
  Job j;
  j.gflop = 2e-9 * M * 1024. * double(at.size());
  j.add(bsr_t, BsrCfg{e.field("BM", e.big ? 128 : 64), e.field("stages", 3), e.field("warps", 4)}, y.view(M, N),
        w.view(int(at.size()), 32, 32), first.p, row.p, block.p, x.view(M, K));
  j.check = [=] {
    std::vector<double> want(size_t(M) * K);
    for (size_t b = 0; b < at.size(); ++b)
      for (int m = 0; m < M; ++m)
        for (int i = 0; i < 32; ++i)
          for (int k = 0; k < 32; ++k)
            want[size_t(m) * K + at[b][1] * 32 + k] += y[size_t(m) * N + at[b][0] * 32 + i] * w[b * 1024 + i * 32 + k];
    return agree(x.now(), want, 3e-2, 1e-2);
  };
  return j;
});

// --- gradient of a sparse layer: dW of the blocks that exist, dW_b = dY[:, row]^T X[:, column], blocks 64 x 64, bf16
struct GradCfg {
  int BS = 64, BT = 64, stages = 4, warps = 4;
};
auto sparse_grad =
    kernel("user_sparse_grad", [](const GradCfg& c, Tensor<const bfloat16, 2> dY, Tensor<const bfloat16, 2> X,
                                  Ptr<const int> row, Ptr<const int> column, Tensor<bfloat16, 3> dW) {
      if (c.warps) num_warps(c.warps);
      auto b = program_id(0);
      auto i = load(row + b) * c.BS, j = load(column + b) * c.BS;
      Tile acc = zeros({c.BS, c.BS}, f32);
      for (auto t : range(0, X.dim(0), c.BT, {.stages = c.stages}))
        acc = dot(trans(dY.load({t, i}, {c.BT, c.BS})), X.load({t, j}, {c.BT, c.BS}), acc);
      dW.store({b, 0, 0}, cast(acc, bf16));
    }).grid([](const GradCfg&, const auto&, const auto&, const int*, const int*, const auto& w) {
      return Grid{w.shape[0]};
    });
Register r3("sparse_grad", [](Env& e) {
  const int T = e.big ? 4096 : 153, N = e.big ? 8192 : 160, K = e.big ? 4096 : 96, BS = e.big ? 64 : 32,
            every = e.big ? 10 : 3;
  std::vector<int> rows, columns;
  for (int i = 0; i < N / BS; ++i)
    for (int j = 0; j < K / BS; ++j)
      if ((i * 7 + j * 3) % every == 1) rows.push_back(i), columns.push_back(j);
  const int nnz = int(rows.size());
  auto y = random<bfloat16>(e, size_t(T) * N), x = random<bfloat16>(e, size_t(T) * K);
  auto w = constant<bfloat16>(e, size_t(nnz) * BS * BS, NAN);
  auto row = repeated<int>(e, nnz, rows), column = repeated<int>(e, nnz, columns);
  Job j;
  j.gflop = 2e-9 * T * double(nnz) * BS * BS;
  j.add(sparse_grad, GradCfg{BS, e.field("BT", 64), e.field("stages", 4), e.field("warps", 4)}, y.view(T, N),
        x.view(T, K), row.p, column.p, w.view(nnz, BS, BS));
  j.check = [=] {
    std::vector<double> want(size_t(nnz) * BS * BS);
    for (int b = 0; b < nnz; ++b)
      for (int t = 0; t < T; ++t)
        for (int i = 0; i < BS; ++i)
          for (int k = 0; k < BS; ++k)
            want[(size_t(b) * BS + i) * BS + k] +=
                y[size_t(t) * N + rows[b] * BS + i] * x[size_t(t) * K + columns[b] * BS + k];
    return agree(w.now(), want, 5e-2, 1e-2);
  };
  return j;
});

// --- Y = A B, A dense in memory, but a bit per 128 x 64 block says whether it counts; 64 bits are a word
struct BitsCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, counted = 0;
};
auto bit_blocks = kernel("user_bit_blocks", [](const BitsCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                               Tensor<const uint64_t, 2> bits, Tensor<half, 2> Y) {
                    if (c.warps) num_warps(c.warps);
                    auto n = program_id(0) * c.BN, b = program_id(1), m = b * c.BM;
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto w : range(0, bits.dim(1))) {
                      Tile word = to_scalar(bits.load({b, w}, {1}));
                      auto step = [&] {
                        auto k = (w * 64 + cast(countr_zero(word), i32)) * c.BK;
                        acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                        word = word & (word - 1);
                      };
                      if (c.counted)
                        for (auto _ : range(0, cast(popcount(word), i32), 1, {.stages = c.stages})) step();
                      else
                        while_([&] { return word != 0; }, step);
                    }
                    Y.store({m, n}, cast(acc, f16));
                  }).grid([](const BitsCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r4("bit_blocks", [](Env& e) {
  const int M = e.big ? 8192 : 170, N = e.big ? 4096 : 104, K = e.big ? 8192 : 2144, BM = e.big ? 128 : 64,
            BK = e.big ? 64 : 32, every = 5;
  const int rows = (M + BM - 1) / BM, words = ((K + BK - 1) / BK + 63) / 64;
  auto on = [=](int i, int k) { return k * BK < K && (i * 7 + k * 3 + k * k) % every == 1; };
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  std::vector<uint64_t> bits(size_t(rows) * words);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < words * 64; ++k)
      if (on(i, k)) bits[size_t(i) * words + k / 64] |= uint64_t(1) << k % 64;
  auto d = Array<uint64_t>(repeated<uint64_t>(e, bits.size(), bits));
  Job j;
  j.gflop = 2e-9 * M * double(N) * K / every;
  j.add(bit_blocks,
        BitsCfg{BM, e.field("BN", e.big ? 128 : 64), BK, e.field("stages", 3), e.field("warps", e.big ? 8 : 4),
                e.field("counted", 0)},
        a.view(M, K), b.view(K, N), d.view(rows, words), y.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        if (on(m / BM, k / BK))
          for (int n = 0; n < N; ++n) want[size_t(m) * N + n] += a[size_t(m) * K + k] * b[size_t(k) * N + n];
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});
}  // namespace beside_triton_sparse
}  // namespace users
