// dropped_rows.cpp - rows and channels normed in training, as first written: layer norm and softmax with seeded
// dropout and their gradients, batch norm going back over planes, group norm of channels last.
#include "tests/users/use.h"
namespace users {
namespace dropped_rows {

struct RowCfg {
  int BLOCK = 1024, ROWS = 4;
};
double drawn_unit(uint64_t seed, uint64_t at) { return double(reference_philox(seed, at)[0] >> 8) * 0x1p-24; }

// --- layer norm of a residual and what dropout leaves of a branch; the sum, means and 1 / sigma are kept
auto ln_dropout =
    kernel("user_ln_dropout", [](const RowCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> h, Ptr<const float> gamma,
                                 Ptr<const float> beta, Ptr<bfloat16> y, Ptr<bfloat16> kept, Ptr<float> mean,
                                 Ptr<float> rstd, I32 N, F32 p, U64 seed) {
      auto row = cast(program_id(0), i64);
      auto col = arange(0, c.BLOCK);
      auto in = col < N;
      auto at = row * N + cast(col, i64);
      auto keep = rand(seed, at) >= p;
      auto b = cast(load(h + at, {.mask = in, .other = 0}), f32);
      auto s = cast(load(x + at, {.mask = in, .other = 0}), f32) + where(keep, b * (1.f / (1.f - p)), 0.f);
      store(kept + at, cast(s, bf16), {.mask = in});
      auto n = cast(N, f32);
      auto mu = sum(s) / n;
      auto d = where(in, s - mu, 0.f);
      auto r = rsqrt(sum(d * d) / n + 1e-5f);
      store(mean + row, mu);
      store(rstd + row, r);
      auto out = d * r * load(gamma + col, {.mask = in}) + load(beta + col, {.mask = in});
      store(y + at, cast(out, bf16), {.mask = in});
    }).grid([](const RowCfg&, const auto&...) { return Grid{1}; });
// gradients: of x, of the branch (dropped again), and of gamma and beta per program of several rows
auto ln_dropout_bwd =
    kernel("user_ln_dropout_bwd", [](const RowCfg& c, Ptr<const bfloat16> dy, Ptr<const bfloat16> kept,
                                     Ptr<const float> gamma, Ptr<const float> mean, Ptr<const float> rstd,
                                     Ptr<bfloat16> dx, Ptr<bfloat16> dh, Ptr<float> dgamma, Ptr<float> dbeta, I32 M,
                                     I32 N, F32 p, U64 seed) {
      auto col = arange(0, c.BLOCK);
      auto in = col < N;
      auto g = load(gamma + col, {.mask = in, .other = 0});
      Tile dg = zeros({c.BLOCK}, f32), db = zeros({c.BLOCK}, f32);
      auto per = (M + num_programs(0) - 1) / num_programs(0);
      auto first = program_id(0) * per;
      for (auto row : range(first, min(first + per, M))) {
        auto at = cast(row, i64) * N + col;
        auto d = cast(load(dy + at, {.mask = in, .other = 0}), f32);
        auto s = cast(load(kept + at, {.mask = in, .other = 0}), f32);
        auto r = load(rstd + row);
        auto xhat = where(in, (s - load(mean + row)) * r, 0.f);
        dg += d * xhat, db += d;
        auto w = d * g;
        auto c1 = sum(w * xhat) / cast(N, f32), c2 = sum(w) / cast(N, f32);
        auto grad = (w - (xhat * c1 + c2)) * r;
        store(dx + at, cast(grad, bf16), {.mask = in});
        auto keep = rand(seed, at) >= p;
        store(dh + at, cast(where(keep, grad / (1.f - p), 0.f), bf16), {.mask = in});
      }
      store(dgamma + program_id(0) * N + col, dg, {.mask = in});
      store(dbeta + program_id(0) * N + col, db, {.mask = in});
    }).grid([](const RowCfg&, const auto&...) { return Grid{1}; });
auto sum_rows = kernel("user_row_parts", [](const RowCfg& c, Ptr<const float> parts, Ptr<float> out, I32 M, I32 N) {
                  auto col = program_id(0) * 64 + arange(0, 64);
                  auto row = arange(0, c.ROWS * 8);
                  Tile acc = zeros({c.ROWS * 8, 64}, f32);
                  for (auto m : range(0, M, c.ROWS * 8)) {
                    auto in = (m + row < M).col() & (col < N).row();
                    acc += load(parts + (m + row).col() * N + col.row(), {.mask = in, .other = 0});
                  }
                  store(out + col, squeeze(sum(acc, axis(0)), 0), {.mask = col < N});
                }).grid([](const RowCfg&, const float*, float*, int, int N) { return Grid{cdiv(N, 64)}; });
Register r1("ln_dropout", [](Env& e) {
  const int M = e.big ? 16384 : 21, N = e.big ? e.field("N", 4096) : 100, parts = e.big ? 264 : 4;
  const RowCfg c{.BLOCK = e.big ? e.field("BLOCK", 4096) : 128};
  const uint64_t seed = 0x1234567ull;
  const size_t n = size_t(M) * N;
  auto x = random<bfloat16>(e, n), h = random<bfloat16>(e, n), dy = random<bfloat16>(e, n);
  auto gamma = random<float>(e, N, .5, 1.5), beta = random<float>(e, N);
  auto y = constant<bfloat16>(e, n, NAN), kept = constant<bfloat16>(e, n, NAN), dx = constant<bfloat16>(e, n, NAN),
       dh = constant<bfloat16>(e, n, NAN);
  auto mean = constant<float>(e, M, NAN), rstd = constant<float>(e, M, NAN), dgp = constant<float>(e, parts * N, NAN),
       dbp = constant<float>(e, parts * N, NAN), dg = constant<float>(e, N, NAN), db = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 16e-6 * double(n);
  auto on = [&](auto k, int programs) { return k.grid([programs](const auto&...) { return Grid{programs}; }); };
  j.add(on(ln_dropout, M), c, x.p, h.p, gamma.p, beta.p, y.p, kept.p, mean.p, rstd.p, N, .1f, seed);
  j.add(on(ln_dropout_bwd, parts), c, dy.p, kept.p, gamma.p, mean.p, rstd.p, dx.p, dh.p, dgp.p, dbp.p, M, N, .1f, seed);
  j.add(sum_rows, c, dgp.p, dg.p, parts, N);
  j.add(sum_rows, c, dbp.p, db.p, parts, N);
  j.check = [=] {
    std::vector<double> want(n), wx(n), wh(n), wg(N), wb(N);
    const double q = .1f;
    for (int m = 0; m < M; ++m) {
      std::vector<double> s(N), keep(N);
      double mu = 0, var = 0, c1 = 0, c2 = 0;
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(m) * N + i;
        keep[i] = drawn_unit(seed, at) >= q ? 1 / (1 - q) : 0;
        s[i] = x[at] + h[at] * keep[i];
        mu += s[i] / N;
      }
      for (double v : s) var += (v - mu) * (v - mu) / N;
      const double r = 1 / std::sqrt(var + 1e-5);
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(m) * N + i;
        const double xhat = (s[i] - mu) * r;
        want[at] = xhat * gamma[i] + beta[i];
        wg[i] += dy[at] * xhat, wb[i] += dy[at];
        c1 += dy[at] * gamma[i] * xhat / N, c2 += dy[at] * gamma[i] / N;
      }
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(m) * N + i;
        wx[at] = (dy[at] * gamma[i] - (s[i] - mu) * r * c1 - c2) * r;
        wh[at] = wx[at] * keep[i];
      }
    }
    auto wrong = agree(y.now(), want, 1e-2, 1e-2);
    if (wrong.empty()) wrong = agree(dx.now(), wx, 3e-2, 1e-2);
    if (wrong.empty()) wrong = agree(dh.now(), wh, 3e-2, 1e-2);
    if (wrong.empty()) wrong = agree(dg.now(), wg, 3e-2, 1e-2);
    return wrong.empty() ? agree(db.now(), wb, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- softmax of masked scores with dropout, several rows a program; the gradient draws the same numbers again
auto softmax_dropout =
    kernel("user_softmax_dropout", [](const RowCfg& c, Tensor<const half, 2> X, Tensor<const uint8_t, 2> blocked,
                                      Tensor<half, 2> P, Tensor<half, 2> Y, F32 p, U64 seed) {
      auto row = program_id(0) * c.ROWS;
      auto x = cast(X.load({row, 0}, {c.ROWS, c.BLOCK}, {.pad = -INFINITY}), f32);
      auto off = blocked.load({row, 0}, {c.ROWS, c.BLOCK}, {.pad = 1}) != 0;
      auto s = where(off, -INFINITY, x);
      auto m = max(s, axis(1));
      auto safe = where(m == -INFINITY, 0.f, m);  // a row that sees nothing is zeros
      auto ex = exp(s - safe);
      auto total = sum(ex, axis(1));
      auto prob = ex / where(total == 0.f, 1.f, total);
      auto at = cast(row + arange(0, c.ROWS).col(), i64) * X.dim64(1) + cast(arange(0, c.BLOCK).row(), i64);
      auto words = randint4(seed, at);
      auto keep = cast(words[0] >> 8, f32) * 0x1p-24f >= p;
      P.store({row, 0}, cast(prob, f16));
      Y.store({row, 0}, cast(where(keep, prob / (1.f - p), 0.f), f16));
    }).grid([](const RowCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
auto softmax_dropout_bwd =
    kernel("user_softmax_dropout_bwd", [](const RowCfg& c, Tensor<const half, 2> P, Tensor<const half, 2> dY,
                                          Tensor<half, 2> dX, F32 p, U64 seed) {
      auto row = program_id(0) * c.ROWS;
      auto prob = cast(P.load({row, 0}, {c.ROWS, c.BLOCK}), f32);
      auto d = cast(dY.load({row, 0}, {c.ROWS, c.BLOCK}), f32);
      auto at = cast(row + arange(0, c.ROWS).col(), i64) * P.dim64(1) + cast(arange(0, c.BLOCK).row(), i64);
      auto g = where(rand(seed, at) >= p, d / (1.f - p), 0.f);
      auto dot_ = sum(g * prob, axis(1));
      dX.store({row, 0}, cast(prob * (g - dot_), f16));
    }).grid([](const RowCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.ROWS)}; });
Register r2("softmax_dropout", [](Env& e) {
  const int M = e.big ? 65536 : 13, N = e.big ? 1024 : 75;
  const RowCfg c{.BLOCK = e.big ? 1024 : 80, .ROWS = e.field("ROWS", 4)};
  const size_t n = size_t(M) * N;
  const uint64_t seed = 77;
  auto x = random<half>(e, n, -3, 3), dy = random<half>(e, n);
  auto off = filled<uint8_t>(e, e.big ? 1 << 20 : n, [&](size_t i) { return i / N == 5 || i % 7 == 3; });
  if (e.big) off = repeated(e, n, off.h);
  auto p = constant<half>(e, n, NAN), y = constant<half>(e, n, NAN), dx = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 13e-6 * double(n);
  j.add(softmax_dropout, c, x.view(M, N), off.view(M, N), p.view(M, N), y.view(M, N), .2f, seed);
  j.add(softmax_dropout_bwd, c, p.view(M, N), dy.view(M, N), dx.view(M, N), .2f, seed);
  j.check = [=] {
    std::vector<double> want(n), grad(n);
    const double q = .2f;
    for (int m = 0; m < M; ++m) {
      double total = 0, dot = 0;
      auto ex = [&](size_t at) { return off.at(at) ? 0 : std::exp(x[at]); };
      auto keep = [&](size_t at) { return drawn_unit(seed, at) >= q ? 1 / (1 - q) : 0; };
      for (int i = 0; i < N; ++i) total += ex(size_t(m) * N + i);
      if (total == 0) continue;
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(m) * N + i;
        want[at] = ex(at) / total * keep(at);
        dot += dy[at] * want[at];
      }
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(m) * N + i;
        grad[at] = ex(at) / total * (dy[at] * keep(at) - dot);
      }
    }
    auto wrong = agree(y.now(), want, 1e-4, 2e-3);
    return wrong.empty() ? agree(dx.now(), grad, 2e-4, 4e-3) : wrong;
  };
  return j;
});

// --- batch norm going back, channels first: a program a channel, images and pixels counted by one flat index
auto bn_sums =
    kernel("user_bn_sums", [](const RowCfg& c, Ptr<const half> x, Ptr<const half> dy, Ptr<const float> mean,
                              Ptr<const float> rstd, Ptr<float> dgamma, Ptr<float> dbeta, I32 N, I32 C, I32 HW) {
      auto ch = program_id(0);
      auto mu = load(mean + ch), r = load(rstd + ch);
      Tile g = zeros({c.BLOCK}, f32), b = zeros({c.BLOCK}, f32);
      for (auto i0 : range(0, N * HW, c.BLOCK)) {
        auto i = i0 + arange(0, c.BLOCK);
        auto in = i < N * HW;
        auto at = (i / HW * C + ch) * HW + i % HW;
        auto d = cast(load(dy + at, {.mask = in, .other = 0}), f32);
        auto v = cast(load(x + at, {.mask = in, .other = 0}), f32);
        g += d * ((v - mu) * r);
        b += d;
      }
      store(dgamma + ch, sum(g));
      store(dbeta + ch, sum(b));
    }).grid([](const RowCfg&, const half*, const half*, const float*, const float*, float*, float*, int, int C, int) {
      return Grid{C};
    });
auto bn_dx =
    kernel("user_bn_dx",
           [](const RowCfg& c, Ptr<const half> x, Ptr<const half> dy, Ptr<const float> mean, Ptr<const float> rstd,
              Ptr<const float> gamma, Ptr<const float> dgamma, Ptr<const float> dbeta, Ptr<half> dx, I32 N, I32 C,
              I32 HW) {
             auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
             auto in = i < N * C * HW;
             auto ch = (i / HW) % C;
             auto count = cast(N * HW, f32);
             auto r = load(rstd + ch, {.mask = in});
             auto xhat = (cast(load(x + i, {.mask = in}), f32) - load(mean + ch, {.mask = in})) * r;
             auto d = cast(load(dy + i, {.mask = in}), f32);
             auto v = load(gamma + ch, {.mask = in}) * r *
                      (d - load(dbeta + ch, {.mask = in}) / count - xhat * load(dgamma + ch, {.mask = in}) / count);
             store(dx + i, cast(v, f16), {.mask = in});
           })
        .grid([](const RowCfg& c, const half*, const half*, const float*, const float*, const float*, const float*,
                 const float*, half*, int N, int C, int HW) { return Grid{cdiv(N * C * HW, c.BLOCK)}; });
Register r3("bn_back", [](Env& e) {
  const int N = e.big ? 64 : 3, C = e.big ? 256 : 5, HW = e.big ? e.field("HW", 56 * 56) : 7 * 9;
  const size_t n = size_t(N) * C * HW;
  auto x = random<half>(e, n), dy = random<half>(e, n);
  auto mean = random<float>(e, C, -.1, .1), rstd = random<float>(e, C, 1.5, 1.8), gamma = random<float>(e, C, .5, 1.5);
  auto dg = constant<float>(e, C, NAN), db = constant<float>(e, C, NAN);
  auto dx = constant<half>(e, n, NAN);
  const RowCfg c{.BLOCK = e.field("BLOCK", 1024)};
  Job j;
  j.mbytes = 10e-6 * double(n);
  j.add(bn_sums, c, x.p, dy.p, mean.p, rstd.p, dg.p, db.p, N, C, HW);
  j.add(bn_dx, c, x.p, dy.p, mean.p, rstd.p, gamma.p, dg.p, db.p, dx.p, N, C, HW);
  j.check = [=] {
    std::vector<double> g(C), b(C), want(n);
    auto ch = [&](size_t i) { return i / HW % C; };
    auto xhat = [&](size_t i) { return (x[i] - mean[ch(i)]) * rstd[ch(i)]; };
    for (size_t i = 0; i < n; ++i) g[ch(i)] += dy[i] * xhat(i), b[ch(i)] += dy[i];
    for (size_t i = 0; i < n; ++i)
      want[i] = gamma[ch(i)] * rstd[ch(i)] * (dy[i] - (b[ch(i)] + xhat(i) * g[ch(i)]) / (N * HW));
    auto wrong = agree(dg.now(), g, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(db.now(), b, 1e-3, 1e-3);
    return wrong.empty() ? agree(dx.now(), want, 2e-3, 2e-3) : wrong;
  };
  return j;
});

// --- group norm and SiLU, channels last, groups of ten channels: a program a group of an image, a flat index
auto gn_flat = kernel("user_gn_flat", [](const RowCfg& c, Ptr<const half> x, Ptr<const float> gamma,
                                         Ptr<const float> beta, Ptr<half> y, I32 HW, I32 C, I32 G) {
                 auto g = program_id(0), n = program_id(1);
                 auto per = C / G;
                 auto base = cast(n, i64) * HW * C + g * per;
                 Tile s = zeros({c.BLOCK}, f32), q = zeros({c.BLOCK}, f32);
                 for (auto i0 : range(0, HW * per, c.BLOCK)) {
                   auto i = i0 + arange(0, c.BLOCK);
                   auto v = cast(load(x + base + (i / per * C + i % per), {.mask = i < HW * per, .other = 0}), f32);
                   s += v, q += v * v;
                 }
                 auto count = cast(HW * per, f32);
                 auto mu = sum(s) / count;
                 auto r = rsqrt(sum(q) / count - mu * mu + 1e-5f);
                 for (auto i0 : range(0, HW * per, c.BLOCK)) {
                   auto i = i0 + arange(0, c.BLOCK);
                   auto in = i < HW * per;
                   auto ch = g * per + i % per;
                   auto at = i / per * C + i % per;
                   auto v = (cast(load(x + base + at, {.mask = in}), f32) - mu) * r * load(gamma + ch, {.mask = in}) +
                            load(beta + ch, {.mask = in});
                   store(y + base + at, cast(silu(v), f16), {.mask = in});
                 }
               }).grid([](const RowCfg&, const half*, const float*, const float*, half*, int, int, int G) {
  return Grid{G, 16};
});
Register r4("gn_flat", [](Env& e) {
  const int B = 16, HW = e.big ? 64 * 64 : 35, C = e.big ? 320 : 30, G = e.big ? 32 : 3;
  const size_t n = size_t(B) * HW * C;
  auto x = random<half>(e, n, -1, 2);
  auto gamma = random<float>(e, C, .5, 1.5), beta = random<float>(e, C);
  auto y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 6e-6 * double(n);
  j.add(gn_flat, RowCfg{.BLOCK = e.field("BLOCK", 1024)}, x.p, gamma.p, beta.p, y.p, HW, C, G);
  j.check = [=] {
    std::vector<double> want(n);
    const int per = C / G;
    for (int b = 0; b < B; ++b)
      for (int g = 0; g < G; ++g) {
        double mu = 0, var = 0;
        auto each = [&](auto f) {
          for (int p = 0; p < HW; ++p)
            for (int k = 0; k < per; ++k) f((size_t(b) * HW + p) * C + g * per + k, g * per + k);
        };
        each([&](size_t at, int) { mu += x[at] / (HW * per); });
        each([&](size_t at, int) { var += (x[at] - mu) * (x[at] - mu) / (HW * per); });
        each([&](size_t at, int k) {
          const double v = (x[at] - mu) / std::sqrt(var + 1e-5) * gamma[k] + beta[k];
          want[at] = v / (1 + std::exp(-v));
        });
      }
    return agree(y.now(), want, 3e-3, 3e-3);
  };
  return j;
});

}  // namespace dropped_rows
}  // namespace users
