// training.cpp - what training loops run beside products: optimisers, norms and their gradients, statistics of rows.
#include <algorithm>

#include "tests/users/use.h"

namespace users {
namespace training {

// --- AdamW: moments and master weights in f32, gradients in bf16, the model's weights written as bf16
struct AdamCfg {
  int B = 1024, warps = 4;
};
auto adamw =
    kernel("user_adamw", [](const AdamCfg& c, Ptr<const bfloat16> grad, Ptr<float> master, Ptr<float> m, Ptr<float> v,
                            Ptr<bfloat16> weight, I64 n, F32 lr, F32 decay, F32 correct1, F32 correct2) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
      auto live = i < n;
      auto g = cast(load(grad + i, {.mask = live}), f32);
      auto m1 = 0.9f * load(m + i, {.mask = live}) + 0.1f * g;
      auto v1 = 0.95f * load(v + i, {.mask = live}) + 0.05f * g * g;
      auto w = load(master + i, {.mask = live});
      w = w - lr * (m1 * correct1 / (sqrt(v1 * correct2) + 1e-8f) + decay * w);
      store(m + i, m1, {.mask = live});
      store(v + i, v1, {.mask = live});
      store(master + i, w, {.mask = live});
      store(weight + i, cast(w, bf16), {.mask = live});
    }).grid([](const AdamCfg& c, const bfloat16*, float*, float*, float*, bfloat16*, int64_t n, const auto&...) {
      return Grid{cdiv(n, int64_t(c.B))};
    });
Register r1("adamw", [](Env& e) {
  int64_t n = e.big ? 100'000'000 : 5000;
  auto g = random<bfloat16>(e, n);
  auto w = random<float>(e, n), m = random<float>(e, n), v = random<float>(e, n, 0, 1);
  auto out = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 28;
  j.add(adamw, AdamCfg{}, g.p, w.p, m.p, v.p, out.p, n, 1e-2f, .1f, 1.5f, 1.2f);
  j.check = [=] {
    std::vector<double> want(n), moments(n);
    for (int i = 0; i < n; ++i) {
      double m1 = .9 * m[i] + .1 * g[i], v1 = .95 * v[i] + .05 * g[i] * g[i];
      moments[i] = m1;
      want[i] = w[i] - 1e-2 * (m1 * 1.5 / (std::sqrt(v1 * 1.2) + 1e-8) + .1 * w[i]);
    }
    auto wrong = agree(w.now(), want, 1e-6, 1e-5) + agree(m.now(), moments, 1e-6, 1e-5);
    return wrong.empty() ? agree(out.now(), want, 1e-3, 4e-3) : wrong;
  };
  return j;
});

// --- group norm, channels last: a group is a box of pixels and channels, read twice
struct GroupCfg {
  int rows = 64, C = 32, warps = 4;  // channels of a group
};
auto group_norm = kernel("user_group_norm", [](const GroupCfg& c, Tensor<const half, 3> X, Tensor<const float, 1> W,
                                               Tensor<const float, 1> B, Tensor<half, 3> Y) {
                    // X, Y [N, pixels, channels]
                    num_warps(c.warps);
                    auto g = program_id(0) * c.C, n = program_id(1);
                    auto pixels = X.dim(1);
                    Tile s = zeros({c.rows, c.C}, f32), ss = zeros({c.rows, c.C}, f32);
                    for (auto p : range(0, pixels, c.rows)) {
                      auto x = cast(X.load({n, p, g}, {c.rows, c.C}), f32);
                      s += x, ss += x * x;
                    }
                    auto count = cast(pixels, f32) * float(c.C);
                    auto mean = sum(s) / count;
                    auto scale = rsqrt(sum(ss) / count - mean * mean + 1e-5f);
                    auto a = W.load({g}, {c.C}) * scale, b = B.load({g}, {c.C}) - mean * a;
                    for (auto p : range(0, pixels, c.rows)) {
                      auto x = cast(X.load({n, p, g}, {c.rows, c.C}), f32);
                      Y.store({n, p, g}, cast(silu(x * a.row() + b.row()), f16));
                    }
                  }).grid([](const GroupCfg& c, const auto& x, const auto&...) {
  return Grid{x.shape[2] / c.C, x.shape[0]};
});
Register r2("group_norm", [](Env& e) {
  int N = e.big ? 16 : 2, P = e.big ? 64 * 64 : 150, C = e.big ? 512 : 64, per = e.big ? 16 : 32;
  auto x = random<half>(e, size_t(N) * P * C, -1, 3);
  auto w = random<float>(e, C), b = random<float>(e, C);
  auto y = constant<half>(e, size_t(N) * P * C, NAN);
  Job j;
  j.mbytes = 6e-6 * N * double(P) * C;
  j.add(group_norm, e.big ? GroupCfg{256, per, 8} : GroupCfg{64, per, 4}, x.view(N, P, C), w.view(C), b.view(C),
        y.view(N, P, C));
  j.check = [=] {
    std::vector<double> want(size_t(N) * P * C);
    for (int n = 0; n < N; ++n)
      for (int g = 0; g < C; g += per) {
        double s = 0, ss = 0;
        auto at = [&](int p, int ch) { return (size_t(n) * P + p) * C + g + ch; };
        for (int p = 0; p < P; ++p)
          for (int ch = 0; ch < per; ++ch) s += x[at(p, ch)] / (P * per), ss += x[at(p, ch)] * x[at(p, ch)] / (P * per);
        for (int p = 0; p < P; ++p)
          for (int ch = 0; ch < per; ++ch) {
            double v = (x[at(p, ch)] - s) / std::sqrt(ss - s * s + 1e-5) * w[g + ch] + b[g + ch];
            want[at(p, ch)] = v / (1 + std::exp(-v));
          }
      }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- RMS norm, backward: dX of rows, and the gradient of the weight summed over the rows of a program
struct RmsCfg {
  int N = 4096, rows = 32, warps = 8;
};
auto rms_bwd = kernel("user_rms_bwd", [](const RmsCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 1> W,
                                         Tensor<const bfloat16, 2> dY, Tensor<bfloat16, 2> dX, Tensor<float, 2> dW) {
                 num_warps(c.warps);
                 auto first = program_id(0) * c.rows;
                 auto w = cast(W.load({0}, {c.N}), f32);
                 auto count = cast(X.dim(1), f32);
                 Tile dw = zeros({c.N}, f32);
                 for (auto r : range(first, min(first + c.rows, X.dim(0)))) {
                   auto x = cast(X.load({r, 0}, {c.N}), f32), dy = cast(dY.load({r, 0}, {c.N}), f32);
                   auto inv = rsqrt(sum(x * x) / count + 1e-6f);
                   auto xh = x * inv, g = dy * w;
                   dX.store({r, 0}, cast((g - xh * (sum(g * xh) / count)) * inv, bf16));
                   dw += dy * xh;
                 }
                 dW.store({program_id(0), 0}, dw);
               }).grid([](const RmsCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.rows)}; });
Register r3("rms_bwd", [](Env& e) {
  int M = e.big ? 16384 : 37, N = e.big ? 4096 : 300, rows = e.big ? 32 : 8, parts = cdiv(M, rows);
  auto x = random<bfloat16>(e, size_t(M) * N), w = random<bfloat16>(e, N), dy = random<bfloat16>(e, size_t(M) * N);
  auto dx = constant<bfloat16>(e, size_t(M) * N, NAN);
  auto dw = constant<float>(e, size_t(parts) * N, NAN);
  Job j;
  j.mbytes = 6e-6 * M * double(N);
  j.add(rms_bwd, e.big ? RmsCfg{} : RmsCfg{512, rows, 4}, x.view(M, N), w.view(N), dy.view(M, N), dx.view(M, N),
        dw.view(parts, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N), weight(size_t(parts) * N);
    for (int m = 0; m < M; ++m) {
      double ss = 0, dot = 0;
      for (int n = 0; n < N; ++n) ss += x[m * N + n] * x[m * N + n] / N;
      double inv = 1 / std::sqrt(ss + 1e-6);
      for (int n = 0; n < N; ++n) dot += dy[m * N + n] * w[n] * x[m * N + n] * inv / N;
      for (int n = 0; n < N; ++n) {
        double xh = x[m * N + n] * inv;
        want[m * N + n] = (dy[m * N + n] * w[n] - xh * dot) * inv;
        weight[m / rows * N + n] += dy[m * N + n] * xh;
      }
    }
    auto wrong = agree(dx.now(), want, 5e-3, 8e-3);
    return wrong.empty() ? agree(dw.now(), weight, 1e-4, 1e-4) : "dW: " + wrong;
  };
  return j;
});

// --- log sum exp and the best class of every row, any number of columns
struct LseCfg {
  int N = 4096, warps = 8;
};
auto lse_argmax =
    kernel("user_lse_argmax", [](const LseCfg& c, Tensor<const bfloat16, 2> X, Ptr<float> lse, Ptr<int32_t> best) {
      num_warps(c.warps);
      auto r = program_id(0);
      Tile m = full({c.N}, -INFINITY, f32), l = zeros({c.N}, f32), at = zeros({c.N}, i32);
      for (auto n : range(0, X.dim(1), c.N)) {
        auto x = cast(X.load({r, n}, {c.N}, {.pad = -INFINITY}), f32);
        auto bigger = x > m;
        auto m2 = where(bigger, x, m);
        auto safe = where(m2 == -INFINITY, 0.f, m2);
        l = l * exp(m - safe) + exp(x - safe);
        at = where(bigger, n + arange(0, c.N), at);
        m = m2;
      }
      auto top = max(m);
      store(lse + r, log(sum(l * exp(m - top))) + top);
      store(best + r, min(where(m == top, at, 2147483647)));
    }).grid([](const LseCfg&, const auto& x, float*, int32_t*) { return Grid{x.shape[0]}; });
Register r4("lse_argmax", [](Env& e) {
  int M = e.big ? 4096 : 9, N = e.big ? 128256 : 1500;
  auto x = drawn<bfloat16>(e, size_t(M) * N, [&] { return bfloat16(float(8 * e.uniform())); });
  auto lse = constant<float>(e, M, NAN);
  auto best = constant<int32_t>(e, M, -1);
  Job j;
  j.mbytes = 2e-6 * M * double(N);
  j.add(lse_argmax, e.big ? LseCfg{} : LseCfg{512, 4}, x.view(M, N), lse.p, best.p);
  j.check = [=] {
    std::vector<double> want(M), place(M);
    for (int m = 0; m < M; ++m) {
      for (int n = 0; n < N; ++n) {
        want[m] += std::exp(x[m * N + n]);
        if (x[m * N + n] > x[m * N + int(place[m])]) place[m] = n;
      }
      want[m] = std::log(want[m]);
    }
    return agree(lse.now(), want, 1e-5, 1e-5) + agree(best.now(), place, .1, 0);
  };
  return j;
});

// --- median (or any quantile) of rows by bisection: count what is below, narrow the interval
struct QuantileCfg {
  int N = 4096, steps = 40, warps = 8;
};
auto quantile = kernel("user_quantile", [](const QuantileCfg& c, Tensor<const float, 2> X, Ptr<float> Q, I32 rank) {
                  num_warps(c.warps);
                  auto r = program_id(0);
                  auto x = X.load({r, 0}, {c.N}, {.pad = INFINITY});
                  Tile low = min(x), high = max(where(x == INFINITY, -INFINITY, x));
                  // The smallest value v with at least rank + 1 elements <= v.
                  for (auto i : range(c.steps)) {
                    auto middle = 0.5f * low + 0.5f * high;
                    auto enough = sum(cast(x <= middle, i32)) > rank;
                    high = where(enough, middle, high);
                    low = where(enough, low, middle);
                  }
                  store(Q + r, min(where(x > low, x, high)));
                }).grid([](const QuantileCfg&, const auto& x, float*, int) { return Grid{x.shape[0]}; });
Register r5("quantile", [](Env& e) {
  int M = e.big ? 8192 : 7, N = e.big ? 4096 : 333, rank = N / 2;
  auto x = random<float>(e, size_t(M) * N, -5, 5);
  auto q = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 4e-6 * M * double(N);
  j.add(quantile, e.big ? QuantileCfg{} : QuantileCfg{512, 40, 4}, x.view(M, N), q.p, rank);
  j.check = [=] {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m) {
      std::vector<float> row(x.h.begin() + m * N, x.h.begin() + (m + 1) * N);
      std::nth_element(row.begin(), row.begin() + rank, row.end());
      want[m] = row[rank];
    }
    return agree(q.now(), want, 1e-6, 1e-6);
  };
  return j;
});

// --- running maximum with its place, and an exponential average, along the rows of [time, channels]
struct RunCfg {
  int T = 128, C = 32, warps = 4;
};
auto running =
    kernel("user_running", [](const RunCfg& c, Tensor<const float, 2> X, Tensor<float, 2> M, Tensor<int32_t, 2> I,
                              Tensor<float, 2> A, F32 decay) {
      num_warps(c.warps);
      auto ch = program_id(0) * c.C;
      Tile best = full({1, c.C}, -INFINITY, f32), where_best = zeros({1, c.C}, i32), average = zeros({1, c.C}, f32);
      auto is_last = arange(0, c.T).col() == c.T - 1;
      for (auto t : range(0, X.dim(0), c.T)) {
        auto x = X.load({t, ch}, {c.T, c.C}, {.pad = -INFINITY});
        auto index = broadcast_to((t + arange(0, c.T)).col(), {c.T, c.C});
        auto [m, i] = scan({x, index}, axis(0), [](Tile m0, Tile i0, Tile m1, Tile i1) {
          auto later = m1 > m0;
          return std::tuple(where(later, m1, m0), where(later, i1, i0));
        });
        auto before = best >= m;
        Tile mm = where(before, best, m), ii = where(before, where_best, i);
        M.store({t, ch}, mm);
        I.store({t, ch}, ii);
        auto value = where(x == -INFINITY, 0.f, x) * (1.f - decay);
        auto [f, a] = scan({full({c.T, c.C}, decay, f32), value}, axis(0),
                           [](Tile f0, Tile a0, Tile f1, Tile a1) { return std::tuple(f0 * f1, a0 * f1 + a1); });
        Tile aa = a + f * average;
        A.store({t, ch}, aa);
        best = max(where(is_last, mm, -INFINITY), axis(0));
        where_best = max(where(is_last, ii, 0), axis(0));
        average = sum(where(is_last, aa, 0.f), axis(0));
      }
    }).grid([](const RunCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.C)}; });
Register r6("running", [](Env& e) {
  int T = e.big ? 8192 : 150, C = e.big ? 8192 : 40;
  auto x = random<float>(e, size_t(T) * C);
  auto m = constant<float>(e, size_t(T) * C, NAN), a = constant<float>(e, size_t(T) * C, NAN);
  auto i = constant<int32_t>(e, size_t(T) * C, -1);
  Job j;
  j.mbytes = 16e-6 * T * double(C);
  j.add(running, e.big ? RunCfg{} : RunCfg{64, 32, 4}, x.view(T, C), m.view(T, C), i.view(T, C), a.view(T, C), .9f);
  j.check = [=] {
    std::vector<double> best(size_t(T) * C), place(size_t(T) * C), average(size_t(T) * C);
    for (int c = 0; c < C; ++c) {
      double b = -INFINITY, v = 0;
      int at = 0;
      for (int t = 0; t < T; ++t) {
        if (x[t * C + c] > b) b = x[t * C + c], at = t;
        best[t * C + c] = b, place[t * C + c] = at, average[t * C + c] = v = .9 * v + .1 * x[t * C + c];
      }
    }
    return agree(m.now(), best, 1e-6, 0) + agree(i.now(), place, .1, 0) + agree(a.now(), average, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace training
}  // namespace users
