// triangles.cpp - dense algebra by tiles that wait for each other, matrices that are views of vectors, polynomials,
// least squares with exchanged columns, systems of Toeplitz matrices, refinement, and a table filled from its diagonal.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace triangles {

// --- Cholesky of a large matrix in one launch: programs draw tiles from a counter, wait until what they need of their
// rows and columns is done, and say so when they are
struct TilesCfg {
  int B = 32, programs = 132, warps = 4;
};
auto cholesky_tiles =
    kernel("user_cholesky_tiles", [](const TilesCfg& c, Tensor<double, 2> A, Ptr<int32_t> next, Ptr<int32_t> done,
                                     I32 n) {
      // A [n B, n B], the lower half in place; done [n, n] starts as zeros; tiles are drawn column by column
      num_warps(c.warps);
      auto wait = [&](Tile row, Tile column) {
        while_([&] { return atomic_add(done + row * n + column, 0) == 0; }, [&] {});
      };
      auto i = arange(0, c.B);
      const int64_t count = c.B;
      Tile ticket = atomic_add(next, 1);
      while_(
          [&] { return ticket < n * (n + 1) / 2; },
          [&] {
            // The column whose tiles hold the ticket.
            Tile k = full({}, 0, i32), before = k;
            while_([&] { return before + (n - k) <= ticket; }, [&] { before += n - k, k += 1; });
            auto row = k + (ticket - before);
            Tile X = A.load({row * c.B, k * c.B}, {count, count});
            for (auto p : range(k)) {
              wait(row, p);
              wait(k, p);
              X -= dot(A.load({row * c.B, p * c.B}, {count, count}), trans(A.load({k * c.B, p * c.B}, {count, count})));
            }
            if_(
                row == k,
                [&] {
                  for (auto j : range(c.B)) {  // right looking
                    auto column = sum(where(i.row() == j, X, 0.), axis(1));
                    auto pivot = sqrt(sum(where(i.col() == j, column, 0.)));
                    auto l = where(i.col() == j, pivot, where(i.col() > j, column / pivot, 0.));
                    X = where(i.row() == j, l, where((i.row() > j) & (i.col() > j), X - l * trans(l), X));
                  }
                  A.store({row * c.B, k * c.B}, where(i.col() >= i.row(), X, 0.));
                },
                [&] {
                  wait(k, k);
                  auto L = A.load({k * c.B, k * c.B}, {count, count});
                  for (auto j : range(c.B)) {                           // X L^T = X: columns from the left
                    auto l = sum(where(i.row() == j, L, 0.), axis(1));  // column j of L as [B, 1]
                    auto pivot = sum(where(i.col() == j, l, 0.));
                    auto x = sum(where(i.row() == j, X, 0.), axis(1)) / pivot;
                    X = where(i.row() == j, x, where(i.row() > j, X - x * trans(l), X));
                  }
                  A.store({row * c.B, k * c.B}, X);
                });
            atomic_exchange(done + row * n + k, 1);
            ticket = atomic_add(next, 1);
          });
    }).grid([](const TilesCfg& c, auto...) { return Grid{c.programs}; });
Register r1("cholesky_tiles", [](Env& e) {
  TilesCfg c;
  if (!e.big) c = {16, 3, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 64 : 5, N = n * c.B;
  auto r = random<double>(e, e.big ? 1 : size_t(N) * N);
  auto a = filled<double>(e, size_t(N) * N, [&](size_t at) {
    const int i = int(at / N), k = int(at % N);
    return e.big ? (i == k ? N : 0.) : r[i * N + k] + r[k * N + i] + (i == k ? 4 * std::sqrt(N) : 0);
  });
  auto next = constant<int32_t>(e, 1, 0), done = constant<int32_t>(e, n * n, 0);
  Job j;
  j.gflop = 1e-9 * N * N * N / 3;
  j.inTurn = true;
  restore(e, j, a, next, done);
  j.add(cholesky_tiles, c, a.view(N, N), next.p, done.p, n);
  j.check = [=] {
    std::vector<double> want(a.h);
    for (int k = 0; k < N; ++k) {
      for (int p = 0; p < k; ++p)
        for (int i = k; i < N; ++i) want[i * N + k] -= want[i * N + p] * want[k * N + p];
      const double d = std::sqrt(want[k * N + k]);
      for (int i = k; i < N; ++i) want[i * N + k] /= d;
    }
    auto got = a.now();
    for (int i = 0; i < N; ++i)
      for (int k = i + 1; k < N; ++k) got[i * N + k] = want[i * N + k] = 0;
    return agree(got, want, 1e-11, 1e-11);
  };
  return j;
});

// --- matrices that are views: H[i, j] = x[i + j] (Hankel: both strides are 1) and T[i, j] = t[i - j + n - 1]
// (Toeplitz: strides 1 and -1) times blocks of vectors; and the Gram matrix of all windows of a series
struct ViewsCfg {
  int BM = 64, BN = 64, BK = 32, warps = 4;
};
template <class T>
auto view_product(const char* name) {
  return kernel(name,
                [](const ViewsCfg& c, Tensor<const T, 2> A, Tensor<const T, 2> B, Tensor<float, 2> C) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto k : range(0, A.dim(1), c.BK))
                    acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                  C.store({m, n}, acc);
                })
      .grid([](const ViewsCfg& c, const auto& a, const auto& b, const auto&) {
        return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
      });
}
auto hankel = view_product<half>("user_hankel");
Register r2("hankel", [](Env& e) {
  ViewsCfg c, square{128, 256, 32, 8};
  if (!e.big) c = square = {16, 16, 16, 1};
  for (ViewsCfg* one : {&c, &square})
    one->BM = e.field("BM", one->BM), one->BN = e.field("BN", one->BN), one->BK = e.field("BK", one->BK),
    one->warps = e.field("warps", one->warps);
  const int64_t M = e.big ? 4096 : 37, K = e.big ? 4096 : 53, N = e.big ? 512 : 21;
  using View = TensorView<const half, 2>;
  auto x = random<half>(e, M + K), t = random<half>(e, M + K), b = random<half>(e, K * N);
  auto h = constant<float>(e, M * N, NAN), z = constant<float>(e, M * N, NAN), g = constant<float>(e, M * M, NAN);
  Job j;
  j.gflop = 2e-9 * (2. * M * N * K + M * M * K);
  j.add(hankel, c, View(x.p, {M, K}, {1, 1}), View(b.p, {K, N}, {N, 1}), h.view(M, N));
  j.add(hankel, c, View(t.p + K - 1, {M, K}, {1, -1}), View(b.p, {K, N}, {N, 1}), z.view(M, N));
  j.add(hankel, square, View(x.p, {M, K}, {1, 1}), View(x.p, {K, M}, {1, 1}), g.view(M, M));
  j.check = [=]() -> std::string {
    auto B = matrix(b, int(N));
    auto X = [&](int i, int k) { return x[i + k]; };
    if (auto w = agree(h.now(), product(M, N, K, X, B), 1e-3, 1e-3); !w.empty()) return "Hankel: " + w;
    if (auto w = agree(z.now(),
                       product(
                           M, N, K, [&](int i, int k) { return t[i - k + K - 1]; }, B),
                       1e-3, 1e-3);
        !w.empty())
      return "Toeplitz: " + w;
    return agree(g.now(), product(M, M, K, X, X), 1e-3, 1e-3);
  };
  return j;
});

// --- systems of symmetric Toeplitz matrices by Levinson's recursion, one a program, f64: the predictor and its mirror
struct LevinsonCfg {
  int N = 64, warps = 1;
};
auto levinson = kernel("user_levinson", [](const LevinsonCfg& c, Tensor<const double, 2> R, Tensor<const double, 2> Y,
                                           Tensor<double, 2> X) {
                  num_warps(c.warps);
                  auto p = program_id(0);
                  auto r = R.load({p, 0}, {c.N}), y = Y.load({p, 0}, {c.N});
                  auto i = arange(0, c.N);
                  auto at = [&](Tile v, Tile k) { return to_scalar(take(v, broadcast_to(reshape(k, {1}), {1}), 0)); };
                  auto mirrored = [&](Tile v, Tile m) {
                    return where(i <= m, take(v, clamp(m - i, 0, c.N - 1), 0), 0.);
                  };  // of 0 .. m
                  Tile a = where(i == 0, 1., zeros({c.N}, f64)), error = at(r, full({}, 0, i32));
                  Tile x = where(i == 0, at(y, full({}, 0, i32)) / error, zeros({c.N}, f64));
                  for (auto m : range(1, c.N)) {
                    auto back = mirrored(r, m);  // r[m - i]
                    auto k = -sum(a * back) / error;
                    auto turned = mirrored(a, m);
                    a += k * turned;
                    error *= 1. - k * k;
                    auto mu = (at(y, m) - sum(x * back)) / error;
                    x += mu * mirrored(a, m);
                  }
                  X.store({p, 0}, x);
                }).grid([](const LevinsonCfg&, const auto& r, const auto&, const auto&) { return Grid{r.shape[0]}; });
Register r3("levinson", [](Env& e) {
  LevinsonCfg c;
  if (!e.big) c = {24, 1};
  c.warps = e.field("warps", c.warps), c.N = e.field("N", c.N);
  const int P = e.big ? 8192 : 3, N = c.N;
  auto r = filled<double>(e, size_t(P) * N, [&](size_t i) { return i % N ? (e.uniform() - .5) / N * 2 : 1.5; });
  auto y = random<double>(e, size_t(P) * N);
  auto x = constant<double>(e, r.n, NAN);
  Job j;
  j.gflop = 1e-9 * P * N * N * 8;
  j.add(levinson, c, r.view(P, N), y.view(P, N), x.view(P, N));
  j.check = [=]() -> std::string {
    const auto got = x.now();
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < N; ++i) {
        double s = -y[p * N + i];
        for (int k = 0; k < N; ++k) s += r[p * N + std::abs(i - k)] * got[p * N + k];
        if (!(std::abs(s) < 1e-12)) return "row " + std::to_string(i) + " of " + std::to_string(p);
      }
    return "";
  };
  return j;
});

// --- products of polynomials modulo 2^32 (Karatsuba): tiles cut in halves until they are short, then by rotation
struct PolynomialCfg {
  int B = 32, N = 64, shortest = 8, warps = 4;
};
Tile low_half(const Tile& x) { return extract(x, {0, 0}, {x.shape()[0], x.shape()[1] / 2}); }
Tile high_half(const Tile& x) { return extract(x, {0, x.shape()[1] / 2}, {x.shape()[0], x.shape()[1] / 2}); }
Tile behind(const Tile& x, int64_t n) { return cat(full({x.shape()[0], n}, 0u, u32), x, 1); }
Tile before(const Tile& x, int64_t n) { return cat(x, full({x.shape()[0], n}, 0u, u32), 1); }
Tile karatsuba(const PolynomialCfg& c, const Tile& a, const Tile& b) {  // [B, n] times [B, n] is [B, 2 n]
  const int64_t rows = a.shape()[0], n = a.shape()[1];
  if (n <= c.shortest) {
    Tile s = full({rows, 2 * n}, 0u, u32);
    for (int64_t k = 0; k < n; ++k) {
      auto one = extract(a, {0, k}, {rows, 1});
      s += k ? before(behind(one * b, k), n - k) : before(one * b, n);
    }
    return s;
  }
  auto a0 = low_half(a), a1 = high_half(a), b0 = low_half(b), b1 = high_half(b);
  auto low = karatsuba(c, a0, b0), high = karatsuba(c, a1, b1);
  auto middle = karatsuba(c, a0 + a1, b0 + b1) - low - high;
  return cat(low, high, 1) + before(behind(middle, n / 2), n / 2);
}
auto polynomials = kernel("user_polynomials", [](const PolynomialCfg& c, Tensor<const uint32_t, 2> A,
                                                 Tensor<const uint32_t, 2> B, Tensor<uint32_t, 2> C) {
                     num_warps(c.warps);
                     auto p = program_id(0) * c.B;
                     C.store({p, 0}, karatsuba(c, A.load({p, 0}, {c.B, c.N}), B.load({p, 0}, {c.B, c.N})));
                   }).grid([](const PolynomialCfg& c, const auto& a, const auto&, const auto&) {
  return Grid{cdiv(a.shape[0], c.B)};
});
Register r4("polynomials", [](Env& e) {
  PolynomialCfg c;
  if (!e.big) c = {3, 16, 4, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B), c.N = e.field("N", c.N);
  const int P = e.big ? 1 << 17 : 5, N = c.N;
  auto a = integers<uint32_t>(e, size_t(P) * N, 0, 1ll << 32), b = integers<uint32_t>(e, size_t(P) * N, 0, 1ll << 32);
  auto out = constant<uint32_t>(e, size_t(P) * N * 2, 7);
  Job j;
  j.mbytes = 16e-6 * a.n;
  j.add(polynomials, c, a.view(P, N), b.view(P, N), out.view(P, 2 * N));
  j.check = [=]() -> std::string {
    std::vector<uint32_t> want(out.n);
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < N; ++i)
        for (int k = 0; k < N; ++k) want[p * 2 * N + i + k] += a.at(p * N + i) * b.at(p * N + k);
    return out.now() == want ? "" : "coefficients";
  };
  return j;
});

// --- QR with exchanged columns of many matrices of 48 x 33: the longest column that is left comes next; norms are
// updated, not summed again
struct PivotCfg {
  int M = 48, N = 33, warps = 2;
};
auto pivoted_qr = kernel("user_pivoted_qr", [](const PivotCfg& c, Tensor<const float, 3> A, Tensor<float, 3> R,
                                               Tensor<int32_t, 2> columns) {
                    num_warps(c.warps);
                    auto p = program_id(0);
                    Tile a = A.load({p, 0, 0}, {c.M, c.N});
                    auto row = arange(0, c.M).col(), column = arange(0, c.N).row();
                    Tile name = column, left = sum(a * a, axis(0));
                    for (auto k : range(c.N)) {
                      auto longest = argmax(where(column >= k, left, -1.f), axis(1));  // [1, 1]
                      // Change columns k and longest.
                      auto order = where(column == k, longest, where(column == longest, k, column));
                      a = take(a, broadcast_to(order, {c.M, c.N}), 1);
                      name = take(name, order, 1), left = take(left, order, 1);
                      auto x = where(row >= k, sum(where(column == k, a, 0.f), axis(1)), 0.f);
                      auto head = sum(where(row == k, x, 0.f)), length = sqrt(sum(x * x));
                      auto alpha = where(head > 0.f, -length, length);
                      auto v = x - where(row == k, alpha, 0.f);
                      auto vv = sum(v * v);
                      auto w = sum(v * a, axis(0)) * where(vv > 0.f, 2.f / vv, 0.f);
                      a -= v * w;
                      auto r = sum(where(row == k, a, 0.f), axis(0));
                      left = max(left - r * r, 0.f);
                    }
                    R.store({p, 0, 0}, where(row <= column, a, 0.f));
                    columns.store({p, 0}, reshape(name, {c.N}));
                  }).grid([](const PivotCfg&, const auto& a, const auto&, const auto&) { return Grid{a.shape[0]}; });
Register r5("pivoted_qr", [](Env& e) {
  PivotCfg c;
  if (!e.big) c = {11, 7, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 8192 : 4, M = c.M, N = c.N;
  auto a = random<float>(e, size_t(P) * M * N);
  auto r = constant<float>(e, a.n, NAN);
  auto columns = constant<int32_t>(e, size_t(P) * N, -1);
  Job j;
  j.gflop = 1e-9 * P * N * N * M * 2;
  j.add(pivoted_qr, c, a.view(P, M, N), r.view(P, M, N), columns.view(P, N));
  j.check = [=]() -> std::string {  // R^T R is A^T A with its columns exchanged, the diagonal falls
    const auto got = r.now();
    const auto name = columns.now();
    for (int p = 0; p < P; ++p) {
      std::vector<int> seen(N);
      for (int i = 0; i < N; ++i) {
        const int own = name[p * N + i];
        if (own < 0 || own >= N || seen[own]++) return "no column, or one twice";
      }
      for (int i = 0; i < N; ++i) {
        auto R = [&](int m, int n) { return double(got[(p * M + m) * N + n]); };
        for (int m = i + 1; m < M; ++m)
          if (!(std::abs(R(m, i)) < 1e-4)) return "below the diagonal of " + std::to_string(p);
        if (i && std::abs(R(i, i)) > std::abs(R(i - 1, i - 1)) * 1.0001) return "order of columns";
        for (int k = 0; k < N; ++k) {
          double want = 0, is = 0;
          for (int m = 0; m < M; ++m) {
            want += a[(p * M + m) * N + name[p * N + i]] * a[(p * M + m) * N + name[p * N + k]];
            is += R(m, i) * R(m, k);
          }
          if (!(std::abs(want - is) < 1e-4)) return "entry of " + std::to_string(p);
        }
      }
    }
    return "";
  };
  return j;
});

// --- a table filled from its diagonal outwards (Nussinov): the most pairs of bases of every piece of a strand; a
// strand a program, its table in memory, all pieces of a length at once
struct FoldCfg {
  int B = 128, apart = 3, warps = 4;
};
auto fold_strands =
    kernel("user_fold_strands", [](const FoldCfg& c, Tensor<const uint8_t, 2> strands, Tensor<int16_t, 3> table) {
      num_warps(c.warps);
      auto s = program_id(0), n = strands.dim(1);
      auto base = [&](Tile i, Tile mask) {
        return cast(load(strands.ptr() + cast(s, i64) * strands.stride(0) + cast(i, i64), {.mask = mask}), i32);
      };
      auto T = table.ptr() + cast(s, i64) * table.stride(0);
      auto at = [&](Tile i, Tile j) { return T + cast(i, i64) * table.stride(1) + cast(j, i64); };
      auto lane = arange(0, c.B);
      for (auto d : range(c.apart + 1, n)) {
        for (auto first : range(0, n - d, c.B)) {
          auto i = first + lane, j = i + d;
          auto in = j < n;
          auto pairs = (base(i, in) ^ base(j, in)) == 3;  // A 0, C 1, G 2, T 3
          auto whole = [&](Tile i, Tile j) { return cast(load(at(i, j), {.mask = in}), i32); };
          Tile best = max(whole(i + 1, j), max(whole(i, j - 1), whole(i + 1, j - 1) + cast(pairs, i32)));
          for (auto k : range(1, d - 1)) best = max(best, whole(i, i + k) + whole(i + k + 1, j));
          store(at(i, j), cast(best, i16), {.mask = in});
        }
      }
    }).grid([](const FoldCfg&, const auto& s, const auto&) { return Grid{s.shape[0]}; });
Register r6("fold_strands", [](Env& e) {
  FoldCfg c;
  if (!e.big) c = {8, 3, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int S = e.big ? 264 : 3, n = e.big ? 256 : 27;
  auto strands = integers<uint8_t>(e, size_t(S) * n, 0, 4);
  auto table = constant<int16_t>(e, size_t(S) * n * n, 0);
  Job j;
  j.gflop = 1e-9 * S * n * n * n / 6;
  j.add(fold_strands, c, strands.view(S, n), table.view(S, n, n));
  j.check = [=]() -> std::string {
    const auto got = table.now();
    for (int s = 0; s < S; ++s) {
      std::vector<int> t(n * n);
      for (int d = c.apart + 1; d < n; ++d)
        for (int i = 0; i + d < n; ++i) {
          const int k = i + d;
          int best = std::max({t[(i + 1) * n + k], t[i * n + k - 1],
                               t[(i + 1) * n + k - 1] + ((strands.at(s * n + i) ^ strands.at(s * n + k)) == 3)});
          for (int m = i + 1; m < k - 1; ++m) best = std::max(best, t[i * n + m] + t[(m + 1) * n + k]);
          t[i * n + k] = best;
        }
      for (int i = 0; i < n * n; ++i)
        if (got[s * n * n + i] != t[i]) return "entry " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- x of A x = b in f64 from products in f16: an approximate inverse corrects the residual until it is small enough;
// a system of 80 a program
struct RefineCfg {
  int N = 80, warps = 4;
};
auto refine = kernel("user_refine", [](const RefineCfg& c, Tensor<const double, 3> A, Tensor<const half, 3> inverse,
                                       Tensor<const double, 3> b, Tensor<double, 3> x, Ptr<int32_t> steps, F64 enough) {
                // b, x [systems, N, 16]: sixteen right sides each
                num_warps(c.warps);
                auto s = program_id(0);
                auto a = A.load({s, 0, 0}, {c.N, c.N}), right = b.load({s, 0, 0}, {c.N, 16});
                auto M = inverse.load({s, 0, 0}, {c.N, c.N});
                Tile y = zeros({c.N, 16}, f64), r = right, n = full({}, 0, i32);
                while_([&] { return (max(abs(r)) > enough) & (n < 50); },
                       [&] {
                         auto scale = max(abs(r), axis(0));
                         auto small = cast(r / where(scale > 0., scale, 1.), f16);
                         y += cast(dot(M, small), f64) * scale;
                         r = right - dot(a, y);
                         n += 1;
                       });
                x.store({s, 0, 0}, y);
                store(steps + s, n);
              }).grid([](const RefineCfg&, const auto& a, const auto&, const auto&, const auto&, auto, double) {
  return Grid{a.shape[0]};
});
Register r7("refine", [](Env& e) {
  RefineCfg c;
  if (!e.big) c = {32, 1};
  c.warps = e.field("warps", c.warps), c.N = e.field("N", c.N);
  const int S = e.big ? 4096 : 2, N = c.N;
  auto a = filled<double>(e, size_t(S) * N * N,
                          [&](size_t i) { return (i / N % N == i % N ? 2. : 0.) + (e.uniform() - .5) * .3; });
  std::vector<double> inverse(e.big ? 0 : a.n);
  for (int s = 0; s < (e.big ? 0 : S); ++s) {  // Gauss and Jordan
    std::vector<double> m(N * N * 2);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) m[i * 2 * N + k] = a[(s * N + i) * N + k], m[i * 2 * N + N + k] = i == k;
    for (int p = 0; p < N; ++p)
      for (int i = 0; i < N; ++i) {
        const double f = i == p ? 0 : m[i * 2 * N + p] / m[p * 2 * N + p];
        for (int k = 0; k < 2 * N; ++k) m[i * 2 * N + k] -= f * m[p * 2 * N + k];
      }
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) inverse[(s * N + i) * N + k] = m[i * 2 * N + N + k] / m[i * 2 * N + i];
  }
  auto inv = filled<half>(e, a.n, [&](size_t i) { return half(float(e.big ? i / N % N == i % N : inverse[i])); });
  auto b = random<double>(e, size_t(S) * N * 16);
  auto x = constant<double>(e, b.n, NAN);
  auto steps = constant<int32_t>(e, S, -1);
  Job j;
  j.mbytes = 10e-6 * a.n;
  j.add(refine, c, a.view(S, N, N), inv.view(S, N, N), b.view(S, N, 16), x.view(S, N, 16), steps.p, 1e-12);
  j.check = [=]() -> std::string {
    const auto got = x.now();
    const auto n = steps.now();
    for (int s = 0; s < S; ++s) {
      if (n[s] < 2 || n[s] > 12) return "steps: " + std::to_string(n[s]);
      for (int i = 0; i < N; ++i)
        for (int q = 0; q < 16; ++q) {
          double r = -b[(s * N + i) * 16 + q];
          for (int k = 0; k < N; ++k) r += a[(s * N + i) * N + k] * got[(s * N + k) * 16 + q];
          if (!(std::abs(r) < 2e-12)) return "row " + std::to_string(i);
        }
    }
    return "";
  };
  return j;
});

}  // namespace triangles
}  // namespace users
