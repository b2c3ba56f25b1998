// rows.cpp - kernels over rows: norms, losses, rotary embedding, quantisation, gathered sums.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace rows {

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

// --- Welford over looped rows with a tuple reduction; embedding rows gathered and summed; scatter with atomics
struct WelfordCfg {
  int BLOCK = 2048, warps = 4;
};
auto welford = kernel("user_welford", [](const WelfordCfg& c, Tensor<const float, 2> X, Ptr<float> mean, Ptr<float> var) {
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
               }).grid([](const WelfordCfg&, const auto& x, auto*, auto*) { return Grid{x.shape[0]}; });
Register r21("welford", [](Env& e) {
  int M = e.big ? 4096 : 4, N = e.big ? 16384 : 777;
  auto x = random<float>(e, size_t(M) * N, 3, 5);
  auto mu = constant<float>(e, M, NAN), var = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * M * N * 4;
  j.add(welford, WelfordCfg{e.big ? 2048 : 256, 4}, x.view(M, N), mu.p, var.p);
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

}  // namespace rows
}  // namespace users
