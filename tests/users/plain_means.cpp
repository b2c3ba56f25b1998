// plain_means.cpp - attention and losses without a softmax's shortcuts, convolutions over time going back and pooling
// of volumes, as first written through pointers, masks and computed bounds.
#include "tests/users/use.h"
namespace users {
namespace plain_means {

// --- attention of squared ReLUs over the keys a query sees (causal, a window, the first keys always), a mean by their
// count; every index has 64 bits
struct MeanCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 8;
};
auto relu2_attention =
    kernel("user_relu2_attention",
           [](const MeanCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v, Ptr<bfloat16> o,
              I64 S, I64 H, I64 window, I64 first, F32 scale) {
             // [B, S, H, D]
             num_warps(c.warps);
             auto b = cast(program_id(1), i64) / H, h = cast(program_id(1), i64) % H;
             auto m = cast(program_id(0), i64) * c.BM + cast(arange(0, c.BM), i64);
             auto d = cast(arange(0, c.D), i64);
             auto head = b * S * H * c.D + h * c.D;
             auto qs = load(q + head + (m.col() * (H * c.D) + d.row()), {.mask = (m < S).col(), .other = 0});
             Tile acc = zeros({c.BM, c.D}, f32), seen = zeros({c.BM, 1}, f32);
             auto step = [&](Tile n0) {
               auto n = n0 + cast(arange(0, c.BN), i64);
               auto ks = load(k + head + (n.col() * (H * c.D) + d.row()), {.mask = (n < S).col(), .other = 0});
               auto vs = load(v + head + (n.col() * (H * c.D) + d.row()), {.mask = (n < S).col(), .other = 0});
               auto s = dot(qs, trans(ks)) * scale;
               auto near = (m.col() - n.row() < window) | (n.row() < first);
               auto on = (n.row() <= m.col()) & near & (n < S).row();
               auto p = where(on, max(s, 0.f) * max(s, 0.f), 0.f);
               seen += sum(cast(on, f32), axis(1));
               acc = dot(cast(p, bf16), vs, acc);
             };
             auto top = (cast(program_id(0), i64) + 1) * c.BM;
             auto low = max(top - c.BM - window + 1, cast(0, i64)) / c.BN * c.BN;
             auto always = min(cdiv(first, cast(c.BN, i64)) * c.BN, low);
             for (auto n : range(0, always, c.BN, {.stages = c.stages})) step(n);
             for (auto n : range(low, min(top, S), c.BN, {.stages = c.stages})) step(n);
             auto y = acc / max(seen, 1.f);
             store(o + head + (m.col() * (H * c.D) + d.row()), cast(y, bf16), {.mask = (m < S).col()});
           })
        .grid([](const MeanCfg& c, const bfloat16*, const bfloat16*, const bfloat16*, bfloat16*, int64_t S, int64_t H,
                 int64_t, int64_t, float) {
          return Grid{cdiv(S, int64_t(c.BM)), H * 2};
        });
Register r1("relu2_attention", [](Env& e) {
  const int64_t B = 2, S = e.big ? 8192 : 150, H = e.big ? 16 : 2, D = e.big ? 128 : 32, window = e.big ? 1024 : 40,
                first = e.big ? 4 : 3;
  auto q = random<bfloat16>(e, B * S * H * D), k = random<bfloat16>(e, B * S * H * D),
       v = random<bfloat16>(e, B * S * H * D);
  auto o = constant<bfloat16>(e, B * S * H * D, NAN), whole = constant<bfloat16>(e, e.big ? 1 : B * S * H * D, NAN);
  Job j;
  j.gflop = 4e-9 * double(B * H * S * window * D);
  const MeanCfg c =
      e.big ? MeanCfg{e.field("BM", 64), e.field("BN", 64), 128, 2, e.field("warps", 8)} : MeanCfg{64, 32, 32, 2, 4};
  j.add(relu2_attention, c, q.p, k.p, v.p, o.p, S, H, window, first, .2f);
  constexpr int64_t kNoWindow = int64_t{1} << 60;
  if (!e.big) j.add(relu2_attention, c, q.p, k.p, v.p, whole.p, S, H, kNoWindow, first, .2f);
  auto agrees = [=](const Array<bfloat16>& got, int64_t window) {
    std::vector<double> want(B * S * H * D);
    for (int64_t bh = 0; bh < B * H; ++bh)
      for (int64_t m = 0; m < S; ++m) {
        auto at = [&](int64_t s) { return ((bh / H * S + s) * H + bh % H) * D; };
        double seen = 0;
        for (int64_t n = 0; n <= m; ++n) {
          if (m - n >= window && n >= first) continue;
          double s = 0;
          for (int64_t d = 0; d < D; ++d) s += q[at(m) + d] * k[at(n) + d] * .2;
          s = std::max(s, 0.), seen += 1;
          for (int64_t d = 0; d < D; ++d) want[at(m) + d] += s * s * v[at(n) + d];
        }
        for (int64_t d = 0; d < D; ++d) want[at(m) + d] /= seen;
      }
    return agree(got.now(), want, 3e-3, 1e-2);
  };
  j.check = [=] {
    auto wrong = agrees(o, window);
    return wrong.empty() ? agrees(whole, kNoWindow) : wrong;
  };
  return j;
});

// --- supervised contrast: of every row the mean over rows of its own class of log softmax of z z^T / t, itself left
// out; the gradient needs the sums only: dZ = (G + G^T) Z
struct ContrastCfg {
  int BM = 64, BN = 128, D = 128, warps = 4;
};
auto contrast_loss =
    kernel("user_supcon", [](const ContrastCfg& c, Tensor<const half, 2> Z, Ptr<const int> label, Ptr<float> lse,
                             Ptr<float> alike, Ptr<float> loss, I32 n, F32 inv) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto row = m + arange(0, c.BM);
      auto z = Z.load({m, 0}, {c.BM, c.D});
      auto mine = load(label + row, {.mask = row < n, .other = -1}).col();
      Tile top = full({c.BM, 1}, -1e30f, f32), sum_ = zeros({c.BM, 1}, f32), same = sum_, count = sum_;
      for (auto j : range(0, n, c.BN, {.stages = 2})) {
        auto col = j + arange(0, c.BN);
        auto s = dot(z, trans(Z.load({j, 0}, {c.BN, c.D}))) * inv;
        auto theirs = load(label + col, {.mask = col < n, .other = -2}).row();
        auto other = (col.row() != row.col()) & (col < n).row();
        auto good = other & (theirs == mine);
        auto seen = where(other, s, -1e30f);
        auto t = max(top, max(seen, axis(1)));
        sum_ = sum_ * exp(top - t) + sum(where(other, exp(seen - t), 0.f), axis(1));
        top = t;
        same += sum(where(good, s, 0.f), axis(1));
        count += sum(cast(good, f32), axis(1));
      }
      auto l = top + log(sum_);
      auto safe = max(count, 1.f);
      store(lse + row, squeeze(l, 1), {.mask = row < n});
      store(alike + row, squeeze(count, 1), {.mask = row < n});
      store(loss + row, squeeze(where(count > 0.f, l - same / safe, 0.f), 1), {.mask = row < n});
    }).grid([](const ContrastCfg& c, const auto& z, const auto&...) { return Grid{cdiv(z.shape[0], c.BM)}; });
auto contrast_grad =
    kernel("user_supcon_grad", [](const ContrastCfg& c, Tensor<const half, 2> Z, Ptr<const int> label,
                                  Ptr<const float> lse, Ptr<const float> alike, Tensor<float, 2> dZ, I32 n, F32 inv) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto row = m + arange(0, c.BM);
      auto z = Z.load({m, 0}, {c.BM, c.D});
      auto read = [&](auto& p, Tile at) { return load(p + at, {.mask = at < n, .other = 0}); };
      auto lm = read(lse, row).col(), am = read(alike, row).col();
      auto ym = read(label, row).col();
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto j : range(0, n, c.BN, {.stages = 2})) {
        auto col = j + arange(0, c.BN);
        auto zj = Z.load({j, 0}, {c.BN, c.D});
        auto s = dot(z, trans(zj)) * inv;
        auto ln = read(lse, col).row(), an = read(alike, col).row();
        auto other = (col.row() != row.col()) & (col < n).row();
        auto good = other & (read(label, col).row() == ym);
        auto side = [&](Tile l, Tile a) {  // rows without one of their kind have no loss
          return where((a > 0.f) & other, exp(s - l), 0.f) - where(good, 1.f / max(a, 1.f), 0.f);
        };
        acc = dot(cast((side(lm, am) + side(ln, an)) * inv, f16), zj, acc);
      }
      dZ.store({m, 0}, acc);
    }).grid([](const ContrastCfg& c, const auto& z, const auto&...) { return Grid{cdiv(z.shape[0], c.BM)}; });
Register r2("supcon", [](Env& e) {
  const int N = e.big ? 8192 : 150, D = e.big ? 128 : 32;
  auto z = random<half>(e, size_t(N) * D, -.3, .3);
  auto y = filled<int>(e, N, [&](size_t i) { return i == 7 ? 1000 : int(i * 7 % 11); });
  auto lse = constant<float>(e, N, NAN), count = constant<float>(e, N, NAN), loss = constant<float>(e, N, NAN);
  auto dz = constant<float>(e, size_t(N) * D, NAN);
  const ContrastCfg c{64, e.field("BN", 64), D, 4};
  Job j;
  j.gflop = 6e-9 * N * N * D;
  j.add(contrast_loss, c, z.view(N, D), y.p, lse.p, count.p, loss.p, N, 1 / .5f);
  j.add(contrast_grad, c, z.view(N, D), y.p, lse.p, count.p, dz.view(N, D), N, 1 / .5f);
  j.check = [=] {
    auto s = product(N, N, D, matrix(z, D), [&](int k, int n) { return z[size_t(n) * D + k] * 2; });
    std::vector<double> l(N), a(N), want(N), grad(size_t(N) * D);
    for (int m = 0; m < N; ++m) {
      double same = 0;
      for (int n = 0; n < N; ++n)
        if (n != m) {
          l[m] += std::exp(s[size_t(m) * N + n]);
          if (y.at(m) == y.at(n)) a[m] += 1, same += s[size_t(m) * N + n];
        }
      l[m] = std::log(l[m]);
      if (a[m] > 0) want[m] = l[m] - same / a[m];
    }
    for (int m = 0; m < N; ++m)
      for (int n = 0; n < N; ++n) {
        if (m == n) continue;
        double g = 0;
        for (int r : {m, n})
          if (a[r] > 0) g += std::exp(s[size_t(m) * N + n] - l[r]) - (y.at(m) == y.at(n) ? 1 / a[r] : 0);
        for (int d = 0; d < D; ++d) grad[size_t(m) * D + d] += 2 * g * z[size_t(n) * D + d];
      }
    auto wrong = agree(loss.now(), want, 2e-3, 2e-3);
    return wrong.empty() ? agree(dz.now(), grad, 1e-2, 5e-3) : wrong;
  };
  return j;
});

// --- a dilated convolution over time, [B, C, T], going back: the input's gradient, and the weights' by products over
// time of taps shifted
struct TimeCfg {
  int BT = 128, BC = 64, BK = 64, TAPS = 3, stages = 2, warps = 8;
};
auto conv1d_dx =
    kernel("user_conv1d_dx", [](const TimeCfg& c, Ptr<const half> dy, Ptr<const half> w, Ptr<half> dx, I32 T, I32 Ci,
                                I32 Co, I32 dilation) {
      // w [Co, Ci, TAPS]; y[t] = sum w[k] x[t + (k - 1) dilation]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT + arange(0, c.BT), ci = program_id(1) * c.BC + arange(0, c.BC);
      auto b = program_id(2);
      Tile acc = zeros({c.BC, c.BT}, f32);
      for (auto k : range(0, c.TAPS))
        for (auto o0 : range(0, Co, c.BK, {.stages = c.stages})) {
          auto o = o0 + arange(0, c.BK);
          auto from = t - (k - c.TAPS / 2) * dilation;
          auto ws =
              load(w + (o.row() * Ci + ci.col()) * c.TAPS + k, {.mask = (ci < Ci).col() & (o < Co).row(), .other = 0});
          auto ys = load(dy + (b * Co + o.col()) * T + from.row(),
                         {.mask = (o < Co).col() & ((from >= 0) & (from < T)).row(), .other = 0});
          acc = dot(ws, ys, acc);
        }
      store(dx + (b * Ci + ci.col()) * T + t.row(), cast(acc, f16), {.mask = (ci < Ci).col() & (t < T).row()});
    }).grid([](const TimeCfg& c, const half*, const half*, half*, int T, int Ci, int, int) {
      return Grid{cdiv(T, c.BT), cdiv(Ci, c.BC), 8};
    });
auto conv1d_dw = kernel("user_conv1d_dw", [](const TimeCfg& c, Tensor<const half, 3> dY, Tensor<const half, 3> X,
                                             Ptr<float> dw, I32 dilation) {
                   num_warps(c.warps);
                   auto ci = program_id(0) * c.BC, co = program_id(1) * c.BC, k = program_id(2);
                   auto shift = (k - c.TAPS / 2) * dilation;
                   Tile acc = zeros({c.BC, c.BC}, f32);
                   for (auto b : range(0, X.dim(0)))
                     for (auto t : range(0, X.dim(2), c.BT, {.stages = c.stages})) {
                       auto y = squeeze(dY.load({b, co, t}, {1, c.BC, c.BT}), 0);
                       auto x = squeeze(X.load({b, ci, t + shift}, {1, c.BC, c.BT}), 0);
                       acc = dot(y, trans(x), acc);
                     }
                   auto o = co + arange(0, c.BC), i = ci + arange(0, c.BC);
                   auto in = (o < dY.dim(1)).col() & (i < X.dim(1)).row();
                   store(dw + (o.col() * X.dim(1) + i.row()) * c.TAPS + k, acc, {.mask = in});
                 }).grid([](const TimeCfg& c, const auto& y, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BC), cdiv(y.shape[1], c.BC), c.TAPS};
});
Register r3("conv1d_back", [](Env& e) {
  const int B = 8, T = e.big ? 4096 : 90, Ci = e.big ? 512 : 40, Co = e.big ? 512 : 70, dilation = e.big ? 9 : 5, K = 3;
  auto dy = random<half>(e, size_t(B) * Co * T), x = random<half>(e, size_t(B) * Ci * T);
  auto w = random<half>(e, size_t(Co) * Ci * K, -.2, .2);
  auto dx = constant<half>(e, size_t(B) * Ci * T, NAN);
  auto dw = constant<float>(e, size_t(Co) * Ci * K, NAN);
  const TimeCfg c{.BT = e.field("BT", e.big ? 128 : 64), .BC = e.field("BC", e.big ? 128 : 64), .BK = 64};
  Job j;
  j.gflop = 4e-9 * B * T * Ci * Co * K;
  j.add(conv1d_dx, c, dy.p, w.p, dx.p, T, Ci, Co, dilation);
  j.add(conv1d_dw, c, dy.view(B, Co, T), x.view(B, Ci, T), dw.p, dilation);
  j.check = [=] {
    std::vector<double> wx(dx.n), ww(dw.n);
    for (int b = 0; b < B; ++b)
      for (int o = 0; o < Co; ++o)
        for (int i = 0; i < Ci; ++i)
          for (int k = 0; k < K; ++k)
            for (int t = 0; t < T; ++t) {
              const int from = t + (k - 1) * dilation;
              if (from < 0 || from >= T) continue;
              const size_t yt = (size_t(b) * Co + o) * T + t, xt = (size_t(b) * Ci + i) * T + from,
                           wt = (size_t(o) * Ci + i) * K + k;
              wx[xt] += dy[yt] * w[wt], ww[wt] += dy[yt] * x[xt];
            }
    auto wrong = agree(dx.now(), wx, 5e-3, 2e-3);
    return wrong.empty() ? agree(dw.now(), ww, 1e-2, 1e-3) : wrong;
  };
  return j;
});

}  // namespace plain_means
}  // namespace users
