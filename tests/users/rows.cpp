// rows.cpp - kernels over rows and elements: norms, losses, scans, gathers, stencils, random numbers.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace {

// --- layer norm, forward and backward (two kernels)
struct LnCfg {
  int BLOCK = 1024, warps = 4;
};
auto ln_fwd =
    kernel("user_ln_fwd", [](const LnCfg& c, Tensor<const half, 2> X, Tensor<const half, 1> W, Tensor<const half, 1> B,
                             Tensor<half, 2> Y, Ptr<float> mean, Ptr<float> rstd, F32 eps) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto N = X.dim(1);
      auto cols = arange(0, c.BLOCK);
      auto x = cast(X.load({row, 0}, {c.BLOCK}), f32);
      auto n = cast(N, f32);
      auto mu = sum(x) / n;
      auto d = where(cols < N, x - mu, 0.f);
      auto r = rsqrt(sum(d * d) / n + eps);
      auto y = d * r * cast(W.load({0}, {c.BLOCK}), f32) + cast(B.load({0}, {c.BLOCK}), f32);
      Y.store({row, 0}, reshape(cast(y, f16), {1, c.BLOCK}));
      store(mean + row, mu);
      store(rstd + row, r);
    }).grid([](const LnCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });

auto ln_bwd = kernel("user_ln_bwd", [](const LnCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> dY,
                                       Tensor<const half, 1> W, Ptr<const float> mean, Ptr<const float> rstd,
                                       Tensor<half, 2> dX, Tensor<float, 2> dW, Tensor<float, 2> dB) {
  num_warps(c.warps);
  auto M = X.dim(0), N = X.dim(1);
  auto n = cast(N, f32);
  auto w = cast(W.load({0}, {c.BLOCK}), f32);
  Tile dw = zeros({c.BLOCK}, f32), db = dw;
  for (auto row : range(program_id(0), M, num_programs(0))) {
    auto x = cast(X.load({row, 0}, {c.BLOCK}), f32), dy = cast(dY.load({row, 0}, {c.BLOCK}), f32);
    auto mu = load(mean + row), r = load(rstd + row);
    auto xhat = where(arange(0, c.BLOCK) < N, (x - mu) * r, 0.f);
    auto wdy = w * dy;
    auto c1 = sum(xhat * wdy) / n, c2 = sum(wdy) / n;
    dX.store({row, 0}, reshape(cast((wdy - (xhat * c1 + c2)) * r, f16), {1, c.BLOCK}));
    dw += dy * xhat;
    db += dy;
  }
  dW.store({program_id(0), 0}, reshape(dw, {1, c.BLOCK}));
  dB.store({program_id(0), 0}, reshape(db, {1, c.BLOCK}));
});
struct ColCfg {
  int BM = 32, BN = 64;
};
auto column_sums = kernel("user_column_sums", [](const ColCfg& c, Tensor<const float, 2> X, Tensor<float, 1> Y) {
                     auto n = program_id(0) * c.BN;
                     Tile acc = zeros({c.BM, c.BN}, f32);
                     for (auto m : range(0, X.dim(0), c.BM)) acc += X.load({m, n}, {c.BM, c.BN});
                     Y.store({n}, squeeze(sum(acc, axis(0)), 0));
                   }).grid([](const ColCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[1], c.BN)}; });
Register r1("layernorm", [](Env& e) {
  int M = e.big ? 8192 : 37, N = e.big ? 4096 : 200, P = e.big ? 132 * 2 : 5;
  auto x = random<half>(e, size_t(M) * N, -2, 3), dy = random<half>(e, size_t(M) * N), w = random<half>(e, N),
       b = random<half>(e, N);
  auto y = constant<half>(e, size_t(M) * N, NAN), dx = constant<half>(e, size_t(M) * N, NAN);
  auto mean = constant<float>(e, M, NAN), rstd = constant<float>(e, M, NAN);
  auto pw = constant<float>(e, size_t(P) * N, NAN), pb = constant<float>(e, size_t(P) * N, NAN),
       dw = constant<float>(e, N, NAN), db = constant<float>(e, N, NAN);
  LnCfg c{e.big ? 4096 : 256, e.big ? 8 : 4};
  Job j;
  j.mbytes = 1e-6 * M * N * 2 * 5;
  j.add(ln_fwd, c, x.view(M, N), w.view(N), b.view(N), y.view(M, N), mean.p, rstd.p, 1e-5f);
  auto bwd = ln_bwd.grid([P](const LnCfg&, const auto&, const auto&...) { return Grid{P}; });
  j.add(bwd, c, x.view(M, N), dy.view(M, N), w.view(N), mean.p, rstd.p, dx.view(M, N), pw.view(P, N), pb.view(P, N));
  j.add(column_sums, ColCfg{}, pw.view(P, N), dw.view(N));
  j.add(column_sums, ColCfg{}, pb.view(P, N), db.view(N));
  j.check = [=]() -> std::string {
    std::vector<double> Y(M * N), DX(M * N), DW(N), DB(N);
    for (int m = 0; m < M; ++m) {
      double mu = 0, v = 0, c1 = 0, c2 = 0;
      for (int n = 0; n < N; ++n) mu += x[m * N + n] / N;
      for (int n = 0; n < N; ++n) v += (x[m * N + n] - mu) * (x[m * N + n] - mu) / N;
      double r = 1 / std::sqrt(v + 1e-5);
      for (int n = 0; n < N; ++n) {
        double h = (x[m * N + n] - mu) * r, g = dy[m * N + n];
        Y[m * N + n] = h * w[n] + b[n];
        c1 += h * w[n] * g / N, c2 += w[n] * g / N;
        DW[n] += g * h, DB[n] += g;
      }
      for (int n = 0; n < N; ++n) DX[m * N + n] = (w[n] * dy[m * N + n] - (x[m * N + n] - mu) * r * c1 - c2) * r;
    }
    for (auto s : {agree(y.now(), Y, 2e-3, 2e-3), agree(dx.now(), DX, 2e-3, 2e-3), agree(dw.now(), DW, 1e-4, 1e-4),
                   agree(db.now(), DB, 1e-4, 1e-4)})
      if (!s.empty()) return s;
    return "";
  };
  return j;
});

// --- cross entropy over a large vocabulary: loss and log-sum-exp in one pass, gradient in place in a second
struct CeCfg {
  int BLOCK = 4096, warps = 8;
};
auto ce_fwd = kernel("user_ce_fwd", [](const CeCfg& c, Tensor<const bfloat16, 2> X, Ptr<const int64_t> label,
                                       Ptr<float> loss, Ptr<float> lse, I32 ignore) {
                num_warps(c.warps);
                auto row = program_id(0);
                auto V = X.dim(1);
                Tile m = -std::numeric_limits<float>::infinity(), s = 0.f;
                for (auto v : range(0, V, c.BLOCK)) {
                  auto x = cast(X.load({row, v}, {c.BLOCK}, {.pad = -INFINITY}), f32);
                  auto m2 = max(m, max(x));
                  s = s * exp(m - m2) + sum(exp(x - m2));
                  m = m2;
                }
                auto z = m + log(s);
                auto y = load(label + row);
                store(lse + row, z);
                if_(
                    y == ignore, [&] { store(loss + row, 0.f); },
                    [&] {
                      store(loss + row, z - cast(X.load({row, y}), f32));
                    });
              }).grid([](const CeCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
auto ce_bwd = kernel("user_ce_bwd", [](const CeCfg& c, Tensor<const bfloat16, 2> X, Ptr<const int64_t> label,
                                       Ptr<const float> lse, Tensor<bfloat16, 2> dX, I32 ignore, F32 scale) {
                num_warps(c.warps);
                auto row = program_id(0), v = program_id(1) * c.BLOCK;
                auto y = load(label + row), z = load(lse + row);
                auto cols = v + arange(0, c.BLOCK);
                auto p = exp(cast(X.load({row, v}, {c.BLOCK}), f32) - z);
                auto g = where(cols == y, p - 1.f, p) * where(y == ignore, 0.f, scale);
                dX.store({row, v}, reshape(cast(g, bf16), {1, c.BLOCK}));
              }).grid([](const CeCfg& c, const auto& x, const auto&...) {
  return Grid{x.shape[0], cdiv(x.shape[1], c.BLOCK)};
});
Register r2("cross_entropy", [](Env& e) {
  int M = e.big ? 1024 : 9, V = e.big ? 128256 : 5003;
  auto x = random<bfloat16>(e, size_t(M) * V, -8, 8);
  auto label = filled<int64_t>(e, M, [&](size_t i) { return i % 4 == 3 ? -100 : int64_t(e.uniform() * V); });
  auto loss = constant<float>(e, M, NAN), lse = constant<float>(e, M, NAN);
  auto dx = constant<bfloat16>(e, size_t(M) * V, NAN);
  Job j;
  j.mbytes = 1e-6 * M * double(V) * 2 * 3;
  j.add(ce_fwd, CeCfg{e.big ? 8192 : 1024, 8}, x.view(M, V), label.p, loss.p, lse.p, -100);
  j.add(ce_bwd, CeCfg{e.big ? 4096 : 1024, 8}, x.view(M, V), label.p, lse.p, dx.view(M, V), -100, 0.25f);
  j.check = [=]() -> std::string {
    std::vector<double> L(M), D(size_t(M) * V);
    for (int m = 0; m < M; ++m) {
      double s = 0;
      for (int v = 0; v < V; ++v) s += std::exp(x[m * V + v]);
      bool skip = label.h[m] == -100;
      L[m] = skip ? 0 : std::log(s) - x[m * V + label.h[m]];
      for (int v = 0; v < V; ++v) D[m * V + v] = skip ? 0 : 0.25 * (std::exp(x[m * V + v]) / s - (v == label.h[m]));
    }
    for (auto s : {agree(loss.now(), L, 1e-4, 1e-5), agree(dx.now(), D, 1e-6, 6e-3)})
      if (!s.empty()) return s;
    return "";
  };
  return j;
});

// --- rotary embedding of [T, H, D] with cos and sin [T, D / 2], halves
struct RopeCfg {
  int D = 128, BH = 8, warps = 4;
};
auto rope =
    kernel("user_rope", [](const RopeCfg& c, Tensor<const half, 3> X, Tensor<const float, 2> Cos,
                           Tensor<const float, 2> Sin, Tensor<half, 3> Y) {
      num_warps(c.warps);
      auto t = program_id(0), h = program_id(1) * c.BH;
      int half_d = c.D / 2;
      auto a = cast(X.load({t, h, 0}, {c.BH, half_d}), f32), b = cast(X.load({t, h, half_d}, {c.BH, half_d}), f32);
      auto co = Cos.load({t, 0}, {1, half_d}), si = Sin.load({t, 0}, {1, half_d});
      Y.store({t, h, 0}, reshape(cast(a * co - b * si, f16), {1, c.BH, half_d}));
      Y.store({t, h, half_d}, reshape(cast(b * co + a * si, f16), {1, c.BH, half_d}));
    }).grid([](const RopeCfg& c, const auto& x, const auto&...) {
      return Grid{x.shape[0], cdiv(x.shape[1], c.BH)};
    });
// interleaved pairs
auto rope2 = kernel("user_rope_pairs", [](const RopeCfg& c, Tensor<const half, 3> X, Tensor<const float, 2> Cos,
                                          Tensor<const float, 2> Sin, Tensor<half, 3> Y) {
               num_warps(c.warps);
               auto t = program_id(0), h = program_id(1) * c.BH;
               auto x = cast(X.load({t, h, 0}, {c.BH, c.D}), f32);
               auto [a, b] = split(reshape(x, {c.BH, c.D / 2, 2}));
               auto co = Cos.load({t, 0}, {1, c.D / 2}), si = Sin.load({t, 0}, {1, c.D / 2});
               auto y = reshape(join(a * co - b * si, b * co + a * si), {1, c.BH, c.D});
               Y.store({t, h, 0}, cast(y, f16));
             }).grid([](const RopeCfg& c, const auto& x, const auto&...) {
  return Grid{x.shape[0], cdiv(x.shape[1], c.BH)};
});
template <class K>
Job rope_job(Env& e, const K& k, bool pairs) {
  int T = e.big ? 8192 : 13, H = e.big ? 32 : 6, D = e.big ? 128 : 64;
  auto x = random<half>(e, size_t(T) * H * D);
  auto co = random<float>(e, T * D / 2), si = random<float>(e, T * D / 2);
  auto y = constant<half>(e, size_t(T) * H * D, NAN);
  Job j;
  j.mbytes = 1e-6 * T * H * D * 4;
  j.add(k, RopeCfg{D, 8, 4}, x.view(T, H, D), co.view(T, D / 2), si.view(T, D / 2), y.view(T, H, D));
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h)
        for (int d = 0; d < D / 2; ++d) {
          size_t at = (size_t(t) * H + h) * D, i = at + (pairs ? 2 * d : d), k2 = at + (pairs ? 2 * d + 1 : d + D / 2);
          double a = x[i], b = x[k2], c = co[t * D / 2 + d], s = si[t * D / 2 + d];
          want[i] = a * c - b * s, want[k2] = b * c + a * s;
        }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
}
Register r3("rope", [](Env& e) { return rope_job(e, rope, false); });
Register r4("rope_pairs", [](Env& e) { return rope_job(e, rope2, true); });

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
  auto f = filled<uint8_t>(e, size_t(M) * N, [&](size_t) { return e.uniform() < .002; });
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

// --- histogram by atomics
struct HistCfg {
  int BLOCK = 1024, warps = 4;
};
auto histogram = kernel("user_histogram", [](const HistCfg& c, Ptr<const uint8_t> x, Ptr<int32_t> bins, I64 n) {
                   num_warps(c.warps);
                   auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
                   auto v = load(x + i, {.mask = i < n});
                   atomic_add(bins + cast(v, i32), 1, {.mask = i < n});
                 }).grid([](const HistCfg& c, auto*, auto*, int64_t n) { return Grid{cdiv(n, c.BLOCK)}; });
Register r9("histogram", [](Env& e) {
  int64_t n = e.big ? 1 << 26 : 5000;
  auto x = integers<uint8_t>(e, n, 0, 256);
  auto b = constant<int32_t>(e, 256, 0);
  Job j;
  j.mbytes = 1e-6 * n;
  j.add(histogram, HistCfg{}, x.p, b.p, n);
  j.check = [=] {
    std::vector<double> want(256);
    for (auto v : x.h) ++want[v];
    return agree(b.now(), want, .1, 0);
  };
  return j;
});

// --- stencils
struct StencilCfg {
  int BM = 32, BN = 128, warps = 4;
};
auto stencil2 = kernel("user_stencil2d", [](const StencilCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, F32 a) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                  auto box = [&](int dm, int dn) { return X.load({m + dm, n + dn}, {c.BM, c.BN}); };
                  auto x = box(0, 0);
                  Y.store({m, n}, x + a * (box(-1, 0) + box(1, 0) + box(0, -1) + box(0, 1) - 4.f * x));
                }).grid([](const StencilCfg& c, const auto& x, const auto&, float) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
});
Register r10("stencil2d", [](Env& e) {
  int M = e.big ? 8192 : 50, N = e.big ? 8192 : 135;
  auto x = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 8;
  j.add(stencil2, StencilCfg{}, x.view(M, N), y.view(M, N), 0.1f);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    auto at = [&](int m, int n) { return m < 0 || n < 0 || m >= M || n >= N ? 0. : x[m * N + n]; };
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        want[m * N + n] = at(m, n) + .1 * (at(m - 1, n) + at(m + 1, n) + at(m, n - 1) + at(m, n + 1) - 4 * at(m, n));
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});
struct Stencil3Cfg {
  int BY = 16, BX = 64, warps = 4;
};
auto stencil3 = kernel("user_stencil3d", [](const Stencil3Cfg& c, Tensor<const float, 3> X, Tensor<float, 3> Y, F32 a) {
                  num_warps(c.warps);
                  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                  auto plane = [&](Tile z, int dy, int dx) { return X.load({z, y + dy, x + dx}, {c.BY, c.BX}); };
                  Tile below = zeros({c.BY, c.BX}, f32), here = plane(0, 0, 0);
                  for (auto z : range(0, X.dim(0))) {
                    auto above = plane(z + 1, 0, 0);
                    auto s = below + above + plane(z, -1, 0) + plane(z, 1, 0) + plane(z, 0, -1) + plane(z, 0, 1);
                    Y.store({z, y, x}, reshape(here + a * (s - 6.f * here), {1, c.BY, c.BX}));
                    below = here;
                    here = above;
                  }
                }).grid([](const Stencil3Cfg& c, const auto& x, const auto&, float) {
  return Grid{cdiv(x.shape[2], c.BX), cdiv(x.shape[1], c.BY)};
});
Register r11("stencil3d", [](Env& e) {
  int Z = e.big ? 256 : 7, M = e.big ? 512 : 20, N = e.big ? 512 : 70;
  auto x = random<float>(e, size_t(Z) * M * N);
  auto y = constant<float>(e, size_t(Z) * M * N, NAN);
  Job j;
  j.mbytes = 1e-6 * Z * M * N * 8;
  j.add(stencil3, Stencil3Cfg{}, x.view(Z, M, N), y.view(Z, M, N), 0.1f);
  j.check = [=] {
    std::vector<double> want(size_t(Z) * M * N);
    auto at = [&](int z, int m, int n) {
      return z < 0 || m < 0 || n < 0 || z >= Z || m >= M || n >= N ? 0. : x[(z * M + m) * N + n];
    };
    for (int z = 0; z < Z; ++z)
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n)
          want[(z * M + m) * N + n] =
              at(z, m, n) + .1 * (at(z - 1, m, n) + at(z + 1, m, n) + at(z, m - 1, n) + at(z, m + 1, n) +
                                  at(z, m, n - 1) + at(z, m, n + 1) - 6 * at(z, m, n));
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- transposition
struct TransCfg {
  int BM = 64, BN = 64, warps = 4;
};
auto transpose = kernel("user_transpose", [](const TransCfg& c, Tensor<const half, 2> X, Tensor<half, 2> Y) {
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   Y.store({n, m}, trans(X.load({m, n}, {c.BM, c.BN})));
                 }).grid([](const TransCfg& c, const auto& x, const auto&) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
});
Register r12("transpose", [](Env& e) {
  int M = e.big ? 8192 : 70, N = e.big ? 8192 : 135;
  auto x = random<half>(e, size_t(M) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(transpose, TransCfg{}, x.view(M, N), y.view(N, M));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[n * M + m] = x[m * N + n];
    return agree(y.now(), want, 1e-9, 0);
  };
  return j;
});

// --- matrix times vector
struct GemvCfg {
  int BM = 16, BK = 512, warps = 4;
};
auto gemv =
    kernel("user_gemv", [](const GemvCfg& c, Tensor<const half, 2> A, Tensor<const half, 1> x, Tensor<half, 1> y) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      Tile acc = zeros({c.BM, c.BK}, f32);
      for (auto k : range(0, A.dim(1), c.BK))
        acc += cast(A.load({m, k}, {c.BM, c.BK}), f32) * cast(x.load({k}, {c.BK}), f32).row();
      y.store({m}, cast(squeeze(sum(acc, axis(1)), 1), f16));
    }).grid([](const GemvCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BM)}; });
Register r13("gemv", [](Env& e) {
  int M = e.big ? 16384 : 50, K = e.big ? 8192 : 700;
  auto a = random<half>(e, size_t(M) * K), x = random<half>(e, K);
  auto y = constant<half>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * M * K * 2;
  j.add(gemv, GemvCfg{16, 512, 4}, a.view(M, K), x.view(K), y.view(M));
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k) want[m] += a[m * K + k] * x[k];
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- dropout: Philox written by hand with integer operations
struct DropCfg {
  int BLOCK = 1024, warps = 4;
};
auto dropout =
    kernel("user_dropout", [](const DropCfg& c, Ptr<const half> x, Ptr<half> y, I64 n, F32 p, U64 seed) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto u = cast(i, u64);
      Tile x0 = cast(u, u32), x1 = cast(u >> 32, u32), x2 = zeros_like(x0), x3 = x2;
      Tile k0 = cast(seed, u32), k1 = cast(seed >> 32, u32);
      for (int r = 0; r < 10; ++r) {
        auto p0 = cast(x0, u64) * 0xD2511F53u, p1 = cast(x2, u64) * 0xCD9E8D57u;
        auto h0 = cast(p0 >> 32, u32), l0 = cast(p0, u32), h1 = cast(p1 >> 32, u32), l1 = cast(p1, u32);
        auto y0 = h1 ^ x1 ^ k0, y2 = h0 ^ x3 ^ k1;
        x0 = y0, x1 = l1, x2 = y2, x3 = l0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
      }
      auto keep = cast(x0 >> 8, f32) * 0x1p-24f >= p;
      auto v = cast(load(x + i, {.mask = i < n}), f32);
      store(y + i, cast(where(keep, v / (1.f - p), 0.f), f16), {.mask = i < n});
    }).grid([](const DropCfg& c, auto*, auto*, int64_t n, float, uint64_t) { return Grid{cdiv(n, c.BLOCK)}; });
auto dropout2 =
    kernel("user_dropout_rand", [](const DropCfg& c, Ptr<const half> x, Ptr<half> y, I64 n, F32 p, U64 seed) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto v = cast(load(x + i, {.mask = i < n}), f32);
      store(y + i, cast(where(rand(seed, i) >= p, v / (1.f - p), 0.f), f16), {.mask = i < n});
    }).grid([](const DropCfg& c, auto*, auto*, int64_t n, float, uint64_t) { return Grid{cdiv(n, c.BLOCK)}; });
template <class K>
Job dropout_job(Env& e, const K& k) {
  int64_t n = e.big ? 1 << 26 : 3000;
  uint64_t seed = 0x123456789abcdefull;
  auto x = random<half>(e, n, .5, 1);
  auto y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 4;
  j.add(k, DropCfg{}, x.p, y.p, n, 0.3f, seed);
  j.check = [=] {
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i) {
      uint32_t c[4] = {uint32_t(i), uint32_t(uint64_t(i) >> 32), 0, 0}, k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
      for (int r = 0; r < 10; ++r) {
        uint64_t p0 = uint64_t(c[0]) * 0xD2511F53u, p1 = uint64_t(c[2]) * 0xCD9E8D57u;
        uint32_t d[4] = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1, uint32_t(p0)};
        std::copy(d, d + 4, c);
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
      }
      want[i] = float(c[0] >> 8) * 0x1p-24f >= .3f ? x[i] / .7 : 0;
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
}
Register r14("dropout", [](Env& e) { return dropout_job(e, dropout); });
Register r15("dropout_rand", [](Env& e) { return dropout_job(e, dropout2); });

// --- quantise rows to f8 by their largest magnitude
struct Q8Cfg {
  int BLOCK = 4096, warps = 8;
};
auto quant8 =
    kernel("user_quant_f8", [](const Q8Cfg& c, Tensor<const bfloat16, 2> X, Tensor<fp8_e4m3, 2> Y, Ptr<float> scale) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto x = cast(X.load({row, 0}, {c.BLOCK}), f32);
      auto s = max(max(abs(x)) / 448.f, 1e-12f);
      store(scale + row, s);
      Y.store({row, 0}, reshape(cast(x / s, f8e4m3), {1, c.BLOCK}));
    }).grid([](const Q8Cfg&, const auto& x, const auto&, float*) { return Grid{x.shape[0]}; });
Register r16("quant_f8", [](Env& e) {
  int M = e.big ? 8192 : 7, N = e.big ? 8192 : 333;
  auto x = random<bfloat16>(e, size_t(M) * N, -3, 3);
  auto y = filled<fp8_e4m3>(e, size_t(M) * N, [](size_t) { return fp8_e4m3(0.f); });
  auto s = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 3;
  j.add(quant8, Q8Cfg{e.big ? 8192 : 512, 8}, x.view(M, N), y.view(M, N), s.p);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m) {
      double t = 0;
      for (int n = 0; n < N; ++n) t = std::max(t, std::abs(x[m * N + n]));
      for (int n = 0; n < N; ++n) want[m * N + n] = x[m * N + n] / (t / 448);
    }
    return agree(y.now(), want, 2e-3, 0.0626);
  };
  return j;
});

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

// --- while loops, nested ifs, early exits: Mandelbrot counts; binary search in sorted rows; Newton's square root
struct ManCfg {
  int BLOCK = 256, warps = 4;
};
auto mandelbrot = kernel("user_mandelbrot", [](const ManCfg& c, Tensor<int32_t, 2> out, F32 scale, I32 most) {
                    num_warps(c.warps);
                    auto row = program_id(0), col = program_id(1) * c.BLOCK + arange(0, c.BLOCK);
                    return_if(row >= out.dim(0));
                    auto cy = cast(row, f32) * scale - 1.2f;
                    auto cx = cast(col, f32) * scale - 2.f;
                    Tile zx = zeros({c.BLOCK}, f32), zy = zx, count = zeros({c.BLOCK}, i32);
                    Tile n = 0;
                    while_([&] { return (n < most) & any(zx * zx + zy * zy <= 4.f); },
                           [&] {
                             auto live = zx * zx + zy * zy <= 4.f;
                             auto t = zx * zx - zy * zy + cx;
                             zy = where(live, 2.f * zx * zy + cy, zy);
                             zx = where(live, t, zx);
                             count += cast(live, i32);
                             n += 1;
                           });
                    if_(any(count == most), [&] {
                      if_(
                          row % 2 == 0, [&] { count = where(count == most, -1, count); },
                          [&] { count = where(count == most, -2, count); });
                    });
                    out.store({row, program_id(1) * c.BLOCK}, reshape(count, {1, c.BLOCK}));
                  }).grid([](const ManCfg& c, const auto& o, float, int) {
  return Grid{o.shape[0] + 2, cdiv(o.shape[1], c.BLOCK)};
});
Register r19("mandelbrot", [](Env& e) {
  int M = e.big ? 4096 : 12, N = e.big ? 4096 : 300, most = e.big ? 500 : 60;
  float scale = e.big ? .0006f : .01f;
  auto y = constant<int32_t>(e, size_t(M) * N, -9);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(mandelbrot, ManCfg{256, e.big ? 2 : 4}, y.view(M, N), scale, most);
  j.check = [=]() -> std::string {
    int bad = 0;
    auto got = y.now();
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double cy = m * double(scale) - 1.2f, cx = n * double(scale) - 2, x = 0, z = 0;
        int k = 0;
        for (; k < most && x * x + z * z <= 4; ++k) {
          double t = x * x - z * z + cx;
          z = 2 * x * z + cy, x = t;
        }
        bad += got[m * N + n] != (k == most ? (m % 2 ? -2 : -1) : k);
      }
    return bad > M * N / 200 ? std::to_string(bad) + " pixels differ" : "";  // the border is chaotic
  };
  return j;
});
struct FindCfg {
  int BLOCK = 128;
};
auto lower_bound = kernel("user_lower_bound", [](const FindCfg& c, Ptr<const float> sorted, I32 n, Ptr<const float> q,
                                                 Ptr<int32_t> out, I32 m) {
                     auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                     auto x = load(q + i, {.mask = i < m});
                     Tile lo = zeros({c.BLOCK}, i32), hi = full({c.BLOCK}, n, i32);
                     for (auto step : range(0, 32)) {
                       auto open = lo < hi;
                       break_if(!any(open));
                       auto mid = (lo + hi) / 2;
                       auto v = load(sorted + mid, {.mask = open});
                       lo = where(open & (v < x), mid + 1, lo);
                       hi = where(open & (v >= x), mid, hi);
                     }
                     store(out + i, lo, {.mask = i < m});
                   }).grid([](const FindCfg& c, auto*, int, auto*, auto*, int m) { return Grid{cdiv(m, c.BLOCK)}; });
Register r20("lower_bound", [](Env& e) {
  int N = e.big ? 1 << 20 : 1000, M = e.big ? 1 << 22 : 300;
  auto s = filled<float>(e, N, [&](size_t i) { return float(i) / N; });
  auto q = random<float>(e, M, -.1, 1.1);
  auto o = constant<int32_t>(e, M, -1);
  Job j;
  j.mbytes = 1e-6 * M * 8;
  j.add(lower_bound, FindCfg{}, s.p, N, q.p, o.p, M);
  j.check = [=] {
    std::vector<double> want;
    for (float x : q.h) want.push_back(double(std::lower_bound(s.h.begin(), s.h.end(), x) - s.h.begin()));
    return agree(o.now(), want, .1, 0);
  };
  return j;
});
// --- Welford over looped rows with a tuple reduction; embedding rows gathered and summed; scatter with atomics
auto welford = kernel("user_welford", [](const ScanCfg& c, Tensor<const float, 2> X, Ptr<float> mean, Ptr<float> var) {
                 num_warps(c.warps);
                 auto row = program_id(0);
                 auto N = X.dim(1);
                 Tile mu = zeros({c.BLOCK}, f32), m2 = mu, count = mu;
                 for (auto n : range(0, N, c.BLOCK)) {
                   auto x = X.load({row, n}, {c.BLOCK});
                   auto in = n + arange(0, c.BLOCK) < N;
                   auto d = x - mu;
                   auto k = count + 1.f;
                   auto mu2 = mu + d / k;
                   m2 = where(in, m2 + d * (x - mu2), m2);
                   mu = where(in, mu2, mu);
                   count = where(in, k, count);
                 }
                 auto r = reduce({mu, m2, count}, axis(0), [](Tile ma, Tile sa, Tile na, Tile mb, Tile sb, Tile nb) {
                   auto n = na + nb;
                   auto d = mb - ma;
                   auto w = where(n == 0.f, 0.f, nb / n);
                   return std::tuple(ma + d * w, sa + sb + d * d * na * w, n);
                 });
                 store(mean + row, to_scalar(r[0]));
                 store(var + row, to_scalar(r[1]) / to_scalar(r[2]));
               }).grid([](const ScanCfg&, const auto& x, auto*, auto*) { return Grid{x.shape[0]}; });
Register r21("welford", [](Env& e) {
  int M = e.big ? 4096 : 4, N = e.big ? 16384 : 777;
  auto x = random<float>(e, size_t(M) * N, 3, 5);
  auto mu = constant<float>(e, M, NAN), var = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(welford, ScanCfg{e.big ? 2048 : 256, 4}, x.view(M, N), mu.p, var.p);
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      double s = 0, v = 0;
      for (int n = 0; n < N; ++n) s += x[m * N + n] / N;
      for (int n = 0; n < N; ++n) v += (x[m * N + n] - s) * (x[m * N + n] - s) / N;
      want.push_back(v);
    }
    return agree(var.now(), want, 1e-5, 1e-5);
  };
  return j;
});
struct BagCfg {
  int D = 128, warps = 1;
};
auto bag = kernel("user_embedding_bag", [](const BagCfg& c, Tensor<const half, 2> table, Ptr<const int32_t> ids,
                                           Ptr<const int32_t> offsets, Tensor<float, 2> out) {
             num_warps(c.warps);
             auto b = program_id(0);
             auto begin = load(offsets + b), end = load(offsets + b + 1);
             Tile acc = zeros({c.D}, f32);
             for (auto i : range(begin, end)) acc += cast(table.load({load(ids + i), 0}, {c.D}), f32);
             out.store({b, 0}, reshape(acc, {1, c.D}));
           }).grid([](const BagCfg&, const auto&, auto*, auto*, const auto& o) { return Grid{o.shape[0]}; });
Register r22("embedding_bag", [](Env& e) {
  int V = e.big ? 1 << 18 : 100, B = e.big ? 32768 : 17, D = 128;
  auto t = random<half>(e, size_t(V) * D);
  std::vector<int> off{0};
  for (int b = 0; b < B; ++b) off.push_back(off.back() + int(e.uniform() * 40));
  auto o = filled<int32_t>(e, B + 1, [&](size_t i) { return off[i]; });
  auto ids = integers<int32_t>(e, off.back() + 1, 0, V);
  auto y = constant<float>(e, size_t(B) * D, NAN);
  Job j;
  j.mbytes = 1e-6 * (off.back() * 2. * D + B * 4. * D);
  j.add(bag, BagCfg{}, t.view(V, D), ids.p, o.p, y.view(B, D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * D);
    for (int b = 0; b < B; ++b)
      for (int i = off[b]; i < off[b + 1]; ++i)
        for (int d = 0; d < D; ++d) want[b * D + d] += t[ids.h[i] * D + d];
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace
}  // namespace users
