// factorings.cpp - small dense factorisations in batches, tridiagonal systems, sparse matrices, convolutions by
// channel.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace factorings {

// --- Cholesky of many 32x32 matrices: a column per step, rank-one updates of what is right of it
struct CholCfg {
  int N = 32, warps = 1;
};
auto cholesky = kernel("user_cholesky", [](const CholCfg& c, Tensor<const float, 3> A, Tensor<float, 3> L) {
                  num_warps(c.warps);
                  auto b = program_id(0);
                  auto i = arange(0, c.N).col(), k = arange(0, c.N).row();
                  Tile a = reshape(A.load({b, 0, 0}, {1, c.N, c.N}), {c.N, c.N});
                  for (auto j : range(c.N)) {
                    auto column = sum(where(k == j, a, 0.f), axis(1));      // N x 1
                    auto pivot = sum(where(i == j, column, 0.f), axis(0));  // 1 x 1
                    auto l = where(i >= j, column * rsqrt(pivot), 0.f);
                    a = where(k == j, l, where(k > j, a - l * trans(l), a));
                  }
                  L.store({b, 0, 0}, reshape(where(i >= k, a, 0.f), {1, c.N, c.N}));
                }).grid([](const CholCfg&, const auto& a, const auto&) { return Grid{a.shape[0]}; });
Register r1("cholesky", [](Env& e) {
  int B = e.big ? 100000 : 5, N = 32, different = 5;
  std::vector<float> rows(size_t(different) * N * N);
  for (auto& x : rows) x = float(2 * e.uniform() - 1);
  std::vector<float> products(rows.size());
  for (size_t at = 0; at < rows.size(); ++at) {
    size_t b = at / (N * N), i = at / N % N, k = at % N;
    products[at] = i == k ? 4.f : 0.f;
    for (int x = 0; x < N; ++x) products[at] += rows[b * N * N + i * N + x] * rows[b * N * N + k * N + x];
  }
  auto a = repeated(e, size_t(B) * N * N, products);
  auto l = constant<float>(e, size_t(B) * N * N, NAN);
  Job j;
  j.mbytes = 8e-6 * B * N * N;
  j.add(cholesky, CholCfg{}, a.view(B, N, N), l.view(B, N, N));
  j.check = [=] {
    std::vector<double> want(size_t(B) * N * N);
    for (int b = 0; b < B; ++b) {
      double* w = &want[size_t(b) * N * N];
      for (int i = 0; i < N; ++i)
        for (int k = 0; k <= i; ++k) {
          double s = a[size_t(b) * N * N + i * N + k];
          for (int x = 0; x < k; ++x) s -= w[i * N + x] * w[k * N + x];
          w[i * N + k] = i == k ? std::sqrt(s) : s / w[k * N + k];
        }
    }
    return agree(l.now(), want, 2e-5, 2e-5);
  };
  return j;
});

// --- X = L^-1 B for a large triangular L: a program solves a block of columns, block of rows by block of rows;
// inverses of the diagonal blocks are given
struct TrsmCfg {
  int BM = 64, BN = 64, stages = 2, warps = 4;
};
auto trsm = kernel("user_trsm", [](const TrsmCfg& c, Tensor<const float, 2> L, Tensor<const float, 3> inverses,
                                   Tensor<const float, 2> B, Tensor<float, 2> X) {
              num_warps(c.warps);
              auto n = program_id(0) * c.BN;
              for (auto m : range(0, L.dim(0), c.BM)) {
                Tile rest = B.load({m, n}, {c.BM, c.BN});
                for (auto k : range(0, m, c.BM, {.stages = c.stages}))
                  rest = dot(-L.load({m, k}, {c.BM, c.BM}), X.load({k, n}, {c.BM, c.BN}), rest);
                X.store({m, n}, dot(inverses.load({m / c.BM, 0, 0}, {c.BM, c.BM}), rest));
              }
            }).grid([](const TrsmCfg& c, const auto&, const auto&, const auto& b, const auto&) {
  return Grid{cdiv(b.shape[1], c.BN)};
});
Register r2("trsm", [](Env& e) {
  int M = e.big ? 4096 : 96, N = e.big ? 8192 : 70, BM = e.big ? 64 : 32;
  auto l = filled<float>(e, size_t(M) * M, [&](size_t i) {
    size_t r = i / M, k = i % M;
    return k > r ? 0.f : k == r ? float(2 + e.uniform()) : float((2 * e.uniform() - 1) / std::sqrt(M));
  });
  auto b = random<float>(e, size_t(M) * N);
  auto inverses = filled<float>(e, size_t(M) * BM, [&](size_t at) {
    if (e.big) return 0.f;
    int block = at / (BM * BM), i = at / BM % BM, k = at % BM, base = block * BM;
    std::vector<double> x(BM);  // column k of the inverse
    for (int r = k; r <= i; ++r) {
      double s = r == k;
      for (int y = k; y < r; ++y) s -= l[(base + r) * M + base + y] * x[y];
      x[r] = s / l[(base + r) * M + base + r];
    }
    return float(x[i]);
  });
  auto x = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 1e-9 * M * double(M) * N;
  j.add(trsm, TrsmCfg{BM, e.big ? 64 : 32, 2, 4}, l.view(M, M), inverses.view(M / BM, BM, BM), b.view(M, N),
        x.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int n = 0; n < N; ++n)
      for (int m = 0; m < M; ++m) {
        double s = b[m * N + n];
        for (int k = 0; k < m; ++k) s -= l[m * M + k] * want[k * N + n];
        want[m * N + n] = s / l[m * M + m];
      }
    return agree(x.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- many tridiagonal systems at once (Thomas), unknowns along the slow dim, scratch in the output
struct TriCfg {
  int B = 128, warps = 4;
};
auto thomas = kernel("user_tridiagonal", [](const TriCfg& c, Tensor<const float, 2> low, Tensor<const float, 2> mid,
                                            Tensor<const float, 2> up, Tensor<const float, 2> rhs,
                                            Tensor<float, 2> scratch, Tensor<float, 2> X) {
                num_warps(c.warps);
                auto b = program_id(0) * c.B;
                auto n = mid.dim(0);
                Tile cp = zeros({c.B}, f32), dp = zeros({c.B}, f32);
                auto at = [&](auto& T, Tile i) { return T.load({i, b}, {c.B}); };
                for (auto i : range(n)) {
                  auto l = where(i > 0, at(low, i), 0.f);
                  auto inv = 1.f / (at(mid, i) - l * cp);
                  dp = (at(rhs, i) - l * dp) * inv;
                  cp = at(up, i) * inv;
                  scratch.store({i, b}, cp);
                  X.store({i, b}, dp);
                }
                Tile x = zeros({c.B}, f32);
                for (auto k : range(n)) {
                  auto i = n - 1 - k;
                  x = where(k > 0, at(X, i) - at(scratch, i) * x, at(X, i));
                  X.store({i, b}, x);
                }
              }).grid([](const TriCfg& c, const auto& low, const auto&...) { return Grid{cdiv(low.shape[1], c.B)}; });
Register r3("tridiagonal", [](Env& e) {
  int N = e.big ? 512 : 40, B = e.big ? 262144 : 150;
  size_t all = size_t(N) * B;
  auto l = random<float>(e, all), u = random<float>(e, all), d = random<float>(e, all, 3, 4), r = random<float>(e, all);
  auto s = constant<float>(e, all, NAN), x = constant<float>(e, all, NAN);
  Job j;
  j.mbytes = 4e-6 * all * 9;
  j.add(thomas, TriCfg{}, l.view(N, B), d.view(N, B), u.view(N, B), r.view(N, B), s.view(N, B), x.view(N, B));
  j.check = [=] {
    std::vector<double> want(all), c(N), y(N);
    for (int b = 0; b < B; ++b) {
      for (int i = 0; i < N; ++i) {
        double low = i ? l[i * B + b] : 0, inv = 1 / (d[i * B + b] - low * (i ? c[i - 1] : 0));
        c[i] = u[i * B + b] * inv, y[i] = (r[i * B + b] - low * (i ? y[i - 1] : 0)) * inv;
      }
      for (int i = N; i-- > 0;) want[i * B + b] = y[i] - (i + 1 < N ? c[i] * want[(i + 1) * B + b] : 0);
    }
    return agree(x.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- CSR: y = A x with a row per lane group, and C = A B with a row per program
struct CsrCfg {
  int rows = 32, B = 16, N = 64, warps = 4;
};
auto spmv = kernel("user_spmv", [](const CsrCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> col,
                                   Ptr<const float> val, Ptr<const float> x, Ptr<float> y, I32 rows) {
              num_warps(c.warps);
              auto r = program_id(0) * c.rows + arange(0, c.rows);
              auto live = r < rows;
              auto first = load(start + r, {.mask = live}), last = load(start + r + 1, {.mask = live});
              Tile acc = zeros({c.rows, c.B}, f32);
              for (auto i : range(0, max(last - first), c.B)) {
                auto at = first.col() + (i + arange(0, c.B)).row();
                auto in = at < last.col();
                acc += load(val + at, {.mask = in}) * load(x + load(col + at, {.mask = in}), {.mask = in});
              }
              store(y + r, squeeze(sum(acc, axis(1)), 1), {.mask = live});
            }).grid([](const CsrCfg& c, const auto*, const auto*, const float*, const float*, float*, int rows) {
  return Grid{cdiv(rows, c.rows)};
});
auto spmm = kernel("user_spmm", [](const CsrCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> col,
                                   Ptr<const float> val, Tensor<const half, 2> B, Tensor<half, 2> C) {
              num_warps(c.warps);
              auto r = program_id(0), n = program_id(1) * c.N;
              auto cols = n + arange(0, c.N);
              auto first = load(start + r), last = load(start + r + 1);
              Tile acc = zeros({c.B, c.N}, f32);
              for (auto i : range(first, last, c.B)) {
                auto at = i + arange(0, c.B);
                auto in = at < last;
                auto k = cast(load(col + at, {.mask = in}), i64);
                auto b =
                    load(B.ptr() + (k * B.stride(0)).col() + cols.row(), {.mask = in.col() & (cols < B.dim(1)).row()});
                acc += load(val + at, {.mask = in}).col() * cast(b, f32);
              }
              C.store({r, n}, cast(sum(acc, axis(0)), f16));
            }).grid([](const CsrCfg& c, const auto*, const auto*, const float*, const auto& b, const auto& y) {
  return Grid{y.shape[0], cdiv(b.shape[1], c.N)};
});
Register r4("csr", [](Env& e) {
  int M = e.big ? 1'000'000 : 77, K = e.big ? 1'000'000 : 60, N = e.big ? 128 : 70;
  std::vector<int32_t> from(M + 1);
  for (int i = 0; i < M; ++i) from[i + 1] = from[i] + int((e.big ? 32 : 40) * e.uniform());
  auto start = filled<int32_t>(e, M + 1, [&](size_t i) { return from[i]; });
  auto col = integers<int32_t>(e, from[M], 0, K);
  auto val = random<float>(e, from[M]), x = random<float>(e, K);
  auto b = random<half>(e, size_t(K) * N);
  auto y = constant<float>(e, M, NAN);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * (from[M] * (8. + 2. * N) + M * (2. * N + 8));
  j.add(spmv, CsrCfg{}, start.p, col.p, val.p, x.p, y.p, M);
  j.add(spmm, e.big ? CsrCfg{32, 8, 128, 4} : CsrCfg{}, start.p, col.p, val.p, b.view(K, N), c.view(M, N));
  j.check = [=] {
    std::vector<double> want(M), dense(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int i = from[m]; i < from[m + 1]; ++i) {
        want[m] += val[i] * x[col.h[i]];
        for (int n = 0; n < N; ++n) dense[m * N + n] += val[i] * b[size_t(col.h[i]) * N + n];
      }
    auto wrong = agree(y.now(), want, 1e-5, 1e-5);
    return wrong.empty() ? agree(c.now(), dense, 2e-3, 2e-3) : wrong;
  };
  return j;
});

// --- sums of rows of uneven groups (CSR offsets), wide rows
struct RaggedCfg {
  int B = 16, N = 128, warps = 4;
};
auto ragged = kernel("user_segment_sum", [](const RaggedCfg& c, Ptr<const int32_t> start, Tensor<const float, 2> X,
                                            Tensor<float, 2> Y) {
                num_warps(c.warps);
                auto g = program_id(0), n = program_id(1) * c.N;
                auto last = load(start + g + 1);
                Tile acc = zeros({c.B, c.N}, f32);
                for (auto r : range(load(start + g), last, c.B))
                  acc += where((r + arange(0, c.B)).col() < last, X.load({r, n}, {c.B, c.N}), 0.f);
                Y.store({g, n}, sum(acc, axis(0)));
              }).grid([](const RaggedCfg& c, const int32_t*, const auto& x, const auto& y) {
  return Grid{y.shape[0], cdiv(x.shape[1], c.N)};
});
Register r5("segment_sum", [](Env& e) {
  int G = e.big ? 20000 : 9, N = e.big ? 256 : 70;
  std::vector<int32_t> from(G + 1);
  for (int i = 0; i < G; ++i) from[i + 1] = from[i] + int((e.big ? 100 : 40) * e.uniform());
  int M = from[G];
  auto start = filled<int32_t>(e, G + 1, [&](size_t i) { return from[i]; });
  auto x = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(G) * N, NAN);
  Job j;
  j.mbytes = 4e-6 * M * double(N);
  j.add(ragged, RaggedCfg{}, start.p, x.view(M, N), y.view(G, N));
  j.check = [=] {
    std::vector<double> want(size_t(G) * N);
    for (int g = 0; g < G; ++g)
      for (int m = from[g]; m < from[g + 1]; ++m)
        for (int n = 0; n < N; ++n) want[g * N + n] += x[m * N + n];
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a 3x3 convolution of each channel by itself, channels last, with SiLU
struct DepthCfg {
  int BX = 16, C = 64, warps = 4;
};
auto depthwise = kernel("user_depthwise", [](const DepthCfg& c, Tensor<const half, 4> X, Tensor<const half, 3> W,
                                             Tensor<half, 4> Y) {
                   num_warps(c.warps);  // X, Y [N, H, W, C], W [3, 3, C]
                   auto across = cdiv(X.dim(3), c.C);
                   auto ch = program_id(0) % across * c.C, x = program_id(0) / across * c.BX, y = program_id(1),
                        n = program_id(2);
                   Tile acc = zeros({c.BX, c.C}, f32);
                   for (int i = 0; i < 3; ++i)
                     for (int k = 0; k < 3; ++k)
                       acc += cast(X.load({n, y + i - 1, x + k - 1, ch}, {c.BX, c.C}), f32) *
                              cast(W.load({i, k, ch}, {c.C}), f32).row();
                   Y.store({n, y, x, ch}, cast(silu(acc), f16));
                 }).grid([](const DepthCfg& c, const auto& x, const auto&, const auto&) {
  return Grid{cdiv(x.shape[2], c.BX) * cdiv(x.shape[3], c.C), x.shape[1], x.shape[0]};
});
Register r6("depthwise", [](Env& e) {
  int N = e.big ? 32 : 2, H = e.big ? 56 : 7, W = e.big ? 56 : 21, C = e.big ? 384 : 72;
  auto x = random<half>(e, size_t(N) * H * W * C), w = random<half>(e, 9 * C);
  auto y = constant<half>(e, size_t(N) * H * W * C, NAN);
  Job j;
  j.mbytes = 4e-6 * N * H * double(W) * C;
  j.add(depthwise, DepthCfg{}, x.view(N, H, W, C), w.view(3, 3, C), y.view(N, H, W, C));
  j.check = [=] {
    std::vector<double> want(size_t(N) * H * W * C);
    for (size_t at = 0; at < want.size(); ++at) {
      int c = at % C, k = at / C % W, h = at / C / W % H, n = at / C / W / H;
      double s = 0;
      for (int i = -1; i < 2; ++i)
        for (int d = -1; d < 2; ++d)
          if (h + i >= 0 && h + i < H && k + d >= 0 && k + d < W)
            s += x[((size_t(n) * H + h + i) * W + k + d) * C + c] * w[((i + 1) * 3 + d + 1) * C + c];
      want[at] = s / (1 + std::exp(-s));
    }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

}  // namespace factorings
}  // namespace users
