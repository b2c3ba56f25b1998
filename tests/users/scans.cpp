// scans.cpp - kernels that order or accumulate: top k, sort, scans, histogram, selective scan, FFT.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace scans {

// --- top k of each row by repeated argmax; sort by a bitonic network
struct TopCfg {
  int BLOCK = 256, K = 8, warps = 4;
};
auto topk =
    kernel("user_topk", [](const TopCfg& c, Tensor<const float, 2> X, Tensor<float, 2> V, Tensor<int32_t, 2> I) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto cols = arange(0, c.BLOCK);
      Tile x = X.load({row, 0}, {c.BLOCK}, {.pad = -INFINITY});
      for (auto k : range(0, c.K)) {
        auto [v, i] = reduce({x, cols}, axis(0), [](Tile a, Tile i0, Tile b, Tile i1) {
          auto first = (a > b) | ((a == b) & (i0 < i1));
          return std::tuple(where(first, a, b), where(first, i0, i1));
        });
        V.store({row, k}, reshape(v, {1, 1}));
        I.store({row, k}, reshape(i, {1, 1}));
        x = where(cols == i, -INFINITY, x);
      }
    }).grid([](const TopCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r5("topk", [](Env& e) {
  int M = e.big ? 16384 : 11, N = e.big ? 256 : 200, K = 8;
  auto x = random<float>(e, size_t(M) * N);
  auto v = constant<float>(e, M * K, NAN);
  auto i = constant<int32_t>(e, M * K, -1);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(topk, TopCfg{256, K, e.big ? 1 : 4}, x.view(M, N), v.view(M, K), i.view(M, K));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      std::vector<std::pair<double, int>> r;
      for (int n = 0; n < N; ++n) r.push_back({-x[m * N + n], n});
      std::sort(r.begin(), r.end());
      for (int k = 0; k < K; ++k) want.push_back(r[k].second);
    }
    return agree(i.now(), want, .1, 0);
  };
  return j;
});
struct SortCfg {
  int N = 256, warps = 4;
};
auto bitonic = kernel("user_sort", [](const SortCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y) {
                 num_warps(c.warps);
                 auto row = program_id(0);
                 auto i = arange(0, c.N);
                 Tile x = X.load({row, 0}, {c.N}, {.pad = INFINITY});
                 for (int k = 2; k <= c.N; k *= 2)
                   for (int j = k / 2; j > 0; j /= 2) {
                     auto other = take(x, i ^ j, 0);
                     auto keep_small = ((i & j) == 0) == ((i & k) == 0);
                     x = where(keep_small, min(x, other), max(x, other));
                   }
                 Y.store({row, 0}, reshape(x, {1, c.N}));
               }).grid([](const SortCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r6("sort", [](Env& e) {
  int M = e.big ? 16384 : 5, N = e.big ? 512 : 50;
  auto x = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 8;
  j.add(bitonic, SortCfg{e.big ? 512 : 64, 4}, x.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      std::vector<double> r(x.h.begin() + m * N, x.h.begin() + (m + 1) * N);
      std::sort(r.begin(), r.end());
      want.insert(want.end(), r.begin(), r.end());
    }
    return agree(y.now(), want, 1e-9, 0);
  };
  return j;
});

// --- cumulative sums over long rows; the same restarted where flags are set
struct ScanCfg {
  int BLOCK = 2048, warps = 4;
};
auto long_cumsum = kernel("user_cumsum", [](const ScanCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y) {
                     num_warps(c.warps);
                     auto row = program_id(0);
                     Tile carry = 0.f;
                     for (auto n : range(0, X.dim(1), c.BLOCK)) {
                       auto x = X.load({row, n}, {c.BLOCK});
                       Y.store({row, n}, reshape(cumsum(x, axis(0)) + carry, {1, c.BLOCK}));
                       carry += sum(x);
                     }
                   }).grid([](const ScanCfg&, const auto& x, const auto&) { return Grid{x.shape[0]}; });
auto segmented = kernel("user_segmented_scan", [](const ScanCfg& c, Tensor<const float, 2> X,
                                                  Tensor<const uint8_t, 2> F, Tensor<float, 2> Y) {
                   num_warps(c.warps);
                   auto row = program_id(0);
                   auto last = arange(0, c.BLOCK) == c.BLOCK - 1;
                   Tile carry = 0.f;
                   for (auto n : range(0, X.dim(1), c.BLOCK)) {
                     auto x = X.load({row, n}, {c.BLOCK});
                     auto f = cast(F.load({row, n}, {c.BLOCK}), i32);
                     auto [s, any_flag] = scan({x, f}, axis(0), [](Tile a, Tile fa, Tile b, Tile fb) {
                       return std::tuple(where(fb != 0, b, a + b), fa | fb);
                     });
                     s = where(any_flag != 0, s, s + carry);
                     Y.store({row, n}, reshape(s, {1, c.BLOCK}));
                     carry = sum(where(last, s, 0.f));
                   }
                 }).grid([](const ScanCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r7("cumsum", [](Env& e) {
  int M = e.big ? 1024 : 3, N = e.big ? 32768 : 5000;
  auto x = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 8;
  j.add(long_cumsum, ScanCfg{2048, 4}, x.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[m * N + n] = x[m * N + n] + (n ? want[m * N + n - 1] : 0);
    return agree(y.now(), want, 1e-4, 1e-5);
  };
  return j;
});
Register r8("segmented_scan", [](Env& e) {
  int M = e.big ? 1024 : 3, N = e.big ? 32768 : 5000;
  auto x = random<float>(e, size_t(M) * N);
  auto f = drawn<uint8_t>(e, size_t(M) * N, [&] { return e.uniform() < .002; });
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 9;
  j.add(segmented, ScanCfg{2048, 4}, x.view(M, N), f.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[m * N + n] = x[m * N + n] + (n && !f.h[m * N + n] ? want[m * N + n - 1] : 0);
    return agree(y.now(), want, 1e-4, 1e-5);
  };
  return j;
});

// --- histogram of bytes: an atomic per element, and counts of a program's elements first
struct HistCfg {
  int BLOCK = 4096, STEPS = 8, warps = 8;
};
auto counts_atomic = kernel("user_histogram_atomic", [](const HistCfg& c, Ptr<const uint8_t> x, Ptr<int32_t> bins, I64 n) {
                       num_warps(c.warps);
                       auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
                       auto v = load(x + i, {.mask = i < n});
                       atomic_add(bins + cast(v, i32), 1, {.mask = i < n});
                     }).grid([](const HistCfg& c, auto*, auto*, int64_t n) { return Grid{cdiv(n, c.BLOCK)}; });
auto counts = kernel("user_histogram", [](const HistCfg& c, Ptr<const uint8_t> x, Ptr<int32_t> bins, I64 n) {
                num_warps(c.warps);
                Tile total = zeros({256}, i32);
                for (auto k : range(0, c.STEPS)) {
                  auto i = (cast(program_id(0), i64) * c.STEPS + k) * c.BLOCK + arange(0, c.BLOCK);
                  total += histogram(cast(load(x + i, {.mask = i < n}), i32), 256, {.mask = i < n});
                }
                atomic_add(bins + arange(0, 256), total, {.order = Order::relaxed});
              }).grid([](const HistCfg& c, auto*, auto*, int64_t n) { return Grid{cdiv(n, c.BLOCK * c.STEPS)}; });
template <class K>
Job count_bytes(Env& e, const K& kernel, HistCfg config) {
  int64_t n = e.big ? 1 << 26 : 5000;
  auto x = integers<uint8_t>(e, n, 0, 256);
  auto b = constant<int32_t>(e, 256, 0);
  Job j;
  j.mbytes = 1e-6 * n;
  j.add(kernel, config, x.p, b.p, n);
  j.check = [=] {
    std::vector<double> want(256);
    for (auto v : x.h) ++want[v];
    return agree(b.now(), want, .1, 0);
  };
  return j;
}
Register r9("histogram", [](Env& e) { return count_bytes(e, counts, {}); });
Register r9a("histogram_atomic", [](Env& e) { return count_bytes(e, counts_atomic, {1024, 1, 4}); });

// --- selective scan (Mamba): h = exp(dt A) h + dt B u, y = C h + D u
struct SsmCfg {
  int BD = 32, N = 16, warps = 1;
};
auto ssm = kernel("user_selective_scan", [](const SsmCfg& c, Tensor<const float, 3> U, Tensor<const float, 3> dt,
                                            Tensor<const float, 2> A, Tensor<const float, 3> B,
                                            Tensor<const float, 3> C, Tensor<const float, 1> D, Tensor<float, 3> Y) {
             num_warps(c.warps);
             auto b = program_id(0), d = program_id(1) * c.BD;
             auto a = A.load({d, 0}, {c.BD, c.N}) * 1.44269504f;
             auto skip = D.load({d}, {c.BD});
             Tile h = zeros({c.BD, c.N}, f32);
             for (auto t : range(0, U.dim(1), 1, {.stages = 4})) {
               auto u = U.load({b, t, d}, {c.BD}), step = dt.load({b, t, d}, {c.BD});
               auto bt = B.load({b, t, 0}, {1, c.N}), ct = C.load({b, t, 0}, {1, c.N});
               h = exp2(step.col() * a) * h + (step * u).col() * bt;
               Y.store({b, t, d}, reshape(squeeze(sum(h * ct, axis(1)), 1) + skip * u, {1, 1, c.BD}));
             }
           }).grid([](const SsmCfg& c, const auto& u, const auto&...) {
  return Grid{u.shape[0], cdiv(u.shape[2], c.BD)};
});
Register r17("selective_scan", [](Env& e) {
  int Bn = e.big ? 8 : 2, L = e.big ? 2048 : 19, Dn = e.big ? 2048 : 40, N = 16;
  auto u = random<float>(e, size_t(Bn) * L * Dn), dt = random<float>(e, size_t(Bn) * L * Dn, .01, .3),
       a = random<float>(e, Dn * N, -2, -.1);
  auto b = random<float>(e, Bn * L * N), cc = random<float>(e, Bn * L * N), D = random<float>(e, Dn);
  auto y = constant<float>(e, size_t(Bn) * L * Dn, NAN);
  Job j;
  j.mbytes = 1e-6 * Bn * L * Dn * 12;
  j.add(ssm, SsmCfg{}, u.view(Bn, L, Dn), dt.view(Bn, L, Dn), a.view(Dn, N), b.view(Bn, L, N), cc.view(Bn, L, N),
        D.view(Dn), y.view(Bn, L, Dn));
  j.check = [=] {
    std::vector<double> want(size_t(Bn) * L * Dn);
    for (int i = 0; i < Bn; ++i)
      for (int d = 0; d < Dn; ++d) {
        std::vector<double> h(N);
        for (int t = 0; t < L; ++t) {
          size_t at = (size_t(i) * L + t) * Dn + d;
          double s = D[d] * u[at];
          for (int n = 0; n < N; ++n) {
            h[n] = std::exp(dt[at] * a[d * N + n]) * h[n] + dt[at] * b[(i * L + t) * N + n] * u[at];
            s += h[n] * cc[(i * L + t) * N + n];
          }
          want[at] = s;
        }
      }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- FFT of rows, radix 2, decimation in frequency; complex numbers as pairs
struct FftCfg {
  int N = 256, ROWS = 4, warps = 4;
};
auto fft = kernel("user_fft", [](const FftCfg& c, Tensor<const float, 3> X, Tensor<float, 3> Y) {
             num_warps(c.warps);
             auto row = program_id(0) * c.ROWS;
             auto [re0, im0] = split(X.load({row, 0, 0}, {c.ROWS, c.N, 2}));
             Tile re = re0, im = im0;
             // Stockham: [rows, 2, n/2 * s]: butterflies between halves, results interleaved
             for (int n = c.N, s = 1; n > 1; n /= 2, s *= 2) {
               int m = n / 2;
               auto halves = [&](Tile x) { return split(permute(reshape(x, {c.ROWS, 2, m * s}), {0, 2, 1})); };
               auto [ar, br] = halves(re);
               auto [ai, bi] = halves(im);
               auto p = arange(0, m * s) / s;
               auto angle = (cast(p, f32) * float(-2 * M_PI / n)).row();
               auto wr = cos(angle), wi = sin(angle);
               auto dr = ar - br, di = ai - bi;
               auto inter = [&](Tile a, Tile b) {  // element (p, q) of a to 2p, of b to 2p + 1
                 return reshape(permute(join(reshape(a, {c.ROWS, m, s}), reshape(b, {c.ROWS, m, s})), {0, 1, 3, 2}),
                                {c.ROWS, c.N});
               };
               re = inter(ar + br, dr * wr - di * wi);
               im = inter(ai + bi, dr * wi + di * wr);
             }
             Y.store({row, 0, 0}, join(re, im));
           }).grid([](const FftCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
Register r18("fft", [](Env& e) {
  int M = e.big ? 65536 : 6, N = e.big ? 256 : 64;
  auto x = random<float>(e, size_t(M) * N * 2);
  auto y = constant<float>(e, size_t(M) * N * 2, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 16;
  j.add(fft, FftCfg{N, 4, 4}, x.view(M, N, 2), y.view(M, N, 2));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N * 2);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < N; ++k)
        for (int n = 0; n < N; ++n) {
          double t = -2 * M_PI * n * k / N, a = x[(m * N + n) * 2], b = x[(m * N + n) * 2 + 1];
          want[(m * N + k) * 2] += a * std::cos(t) - b * std::sin(t);
          want[(m * N + k) * 2 + 1] += a * std::sin(t) + b * std::cos(t);
        }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace scans
}  // namespace users
