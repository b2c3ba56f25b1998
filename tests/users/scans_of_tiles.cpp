// scans_of_tiles.cpp - scans of several tiles and of three dims, long filters as products, filtered scores.
#include "tests/users/use.h"
namespace users {
namespace scans_of_tiles {

struct ScCfg {
  int BT = 32, BD = 32, N = 16, warps = 4, stages = 2;
};
ScCfg sc(Env& e, ScCfg big, ScCfg small) {
  ScCfg c = e.big ? big : small;
  return {e.field("BT", c.BT), e.field("BD", c.BD), e.field("N", c.N), e.field("warps", c.warps),
          e.field("stages", c.stages)};
}

// --- Mamba: a tile of tokens, channels and states is scanned along the tokens; packed sequences start anew
auto mamba3d = kernel("user_mamba3d", [](const ScCfg& c, Tensor<const bfloat16, 2> U, Tensor<const bfloat16, 2> DT,
                                         Ptr<const float> A, Tensor<const bfloat16, 2> B, Tensor<const bfloat16, 2> C,
                                         Ptr<const float> D, Ptr<const int32_t> cu, Tensor<bfloat16, 2> Y) {
  num_warps(c.warps);
  auto d0 = program_id(0) * c.BD, s = program_id(1);
  auto d = d0 + arange(0, c.BD), n = arange(0, c.N);
  auto a = load(A + d.col() * c.N + n.row(), {.mask = (d < U.dim(1)).col()});
  auto skip = load(D + d, {.mask = d < U.dim(1)});
  Tile h = zeros({1, c.BD, c.N}, f32);
  auto end = load(cu + s + 1);
  for (auto t : range(load(cu + s), end, c.BT)) {
    auto inside = expand_dims((t + arange(0, c.BT) < end).col(), 2);
    auto u = cast(U.load({t, d0}, {c.BT, c.BD}), f32);
    auto dt = cast(DT.load({t, d0}, {c.BT, c.BD}), f32);
    dt = where(dt > 20, dt, log1p(exp(dt)));
    auto b = cast(B.load({t, 0}, {c.BT, c.N}), f32), cc = cast(C.load({t, 0}, {c.BT, c.N}), f32);
    auto f = where(inside, exp(expand_dims(dt, 2) * expand_dims(a, 0)), 1);
    auto x = where(inside, expand_dims(dt * u, 2) * expand_dims(b, 1), 0);
    auto [p, q] =
        scan({f, x}, axis(0), [](Tile f0, Tile x0, Tile f1, Tile x1) { return std::tuple(f0 * f1, f1 * x0 + x1); });
    auto all = p * h + q;
    auto y = squeeze(sum(all * expand_dims(cc, 1), axis(2)), 2) + u * skip.row();
    auto rows = t + arange(0, c.BT);
    store(Y.ptr() + (rows.col() * Y.stride(0) + cast(d, i64).row()), cast(y, bf16),
          {.mask = (rows < end).col() & (d < U.dim(1)).row()});
    h = extract(all, {c.BT - 1, 0, 0}, {1, c.BD, c.N});
  }
});
Register r1("mamba3d", [](Env& e) {
  auto c = sc(e, {16, 16, 16, 4}, {8, 8, 4, 2});
  std::vector<int32_t> cu = e.big ? std::vector<int32_t>{0, 2048, 4096, 8192} : std::vector<int32_t>{0, 11, 11, 30};
  const int T = cu.back(), D = e.big ? 4096 : 19, N = c.N, S = int(cu.size()) - 1;
  auto u = random<bfloat16>(e, size_t(T) * D), dt = random<bfloat16>(e, size_t(T) * D, -3, 1),
       b = random<bfloat16>(e, T * N), cc = random<bfloat16>(e, T * N);
  auto A = random<float>(e, D * N, -2, 0), sk = random<float>(e, D);
  auto cud = repeated<int32_t>(e, cu.size(), cu);
  auto y = constant<bfloat16>(e, size_t(T) * D, NAN);
  Job j;
  j.mbytes = 6e-6 * T * double(D);
  j.add(mamba3d.grid(
            [S](const ScCfg& c, const auto& u, const auto&, auto, const auto&, const auto&, auto, auto, const auto&) {
              return Grid{cdiv(u.shape[1], c.BD), S};
            }),
        c, u.view(T, D), dt.view(T, D), A.p, b.view(T, N), cc.view(T, N), sk.p, cud.p, y.view(T, D));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int s = 0; s < S; ++s)
      for (int d = 0; d < D; ++d) {
        std::vector<double> h(N);
        for (int t = cu[s]; t < cu[s + 1]; ++t) {
          const double uu = u[size_t(t) * D + d], dd = std::log1p(std::exp(dt[size_t(t) * D + d]));
          double o = uu * sk[d];
          for (int n = 0; n < N; ++n)
            h[n] = h[n] * std::exp(dd * A[d * N + n]) + dd * uu * b[t * N + n], o += h[n] * cc[t * N + n];
          want[size_t(t) * D + d] = o;
        }
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- S5: complex diagonal states, four tiles in a scan
auto s5 = kernel("user_s5", [](const ScCfg& c, Tensor<const float, 3> BR, Tensor<const float, 3> BI,
                               Ptr<const float> lr, Ptr<const float> li, Tensor<float, 3> XR, Tensor<float, 3> XI) {
            num_warps(c.warps);
            auto p0 = program_id(0) * c.BD, b = program_id(1);
            auto p = p0 + arange(0, c.BD);
            auto in = p < BR.dim(2);
            auto ar = broadcast_to(load(lr + p, {.mask = in}).row(), {c.BT, c.BD}),
                 ai = broadcast_to(load(li + p, {.mask = in}).row(), {c.BT, c.BD});
            Tile hr = zeros({1, c.BD}, f32), hi = zeros({1, c.BD}, f32);
            for (auto t : range(0, BR.dim(1), c.BT)) {
              auto [fr, fi, xr, xi] =
                  scan({ar, ai, BR.load({b, t, p0}, {c.BT, c.BD}), BI.load({b, t, p0}, {c.BT, c.BD})}, axis(0),
                       [](Tile ar, Tile ai, Tile br, Tile bi, Tile cr, Tile ci, Tile dr, Tile di) {
                         return std::tuple(ar * cr - ai * ci, ar * ci + ai * cr, cr * br - ci * bi + dr,
                                           cr * bi + ci * br + di);
                       });
              auto yr = fr * hr - fi * hi + xr, yi = fr * hi + fi * hr + xi;
              XR.store({b, t, p0}, yr), XI.store({b, t, p0}, yi);
              hr = extract(yr, {c.BT - 1, 0}, {1, c.BD}), hi = extract(yi, {c.BT - 1, 0}, {1, c.BD});
            }
          }).grid([](const ScCfg& c, const auto& b, const auto&, auto, auto, const auto&, const auto&) {
  return Grid{cdiv(b.shape[2], c.BD), b.shape[0]};
});
Register r2("s5", [](Env& e) {
  auto c = sc(e, {64, 32, 0, 4}, {8, 8, 0, 2});
  const int B = e.big ? 16 : 2, T = e.big ? 4096 : 21, P = e.big ? 1024 : 13;
  auto br = random<float>(e, size_t(B) * T * P), bi = random<float>(e, size_t(B) * T * P),
       lr = random<float>(e, P, .3, .7), li = random<float>(e, P, -.6, .6);
  auto xr = constant<float>(e, size_t(B) * T * P, NAN), xi = constant<float>(e, size_t(B) * T * P, NAN);
  Job j;
  j.mbytes = 16e-6 * B * T * double(P);
  j.add(s5, c, br.view(B, T, P), bi.view(B, T, P), lr.p, li.p, xr.view(B, T, P), xi.view(B, T, P));
  j.check = [=] {
    std::vector<double> wr(xr.n), wi(xr.n);
    for (int b = 0; b < B; ++b)
      for (int p = 0; p < P; ++p) {
        double hr = 0, hi = 0;
        for (int t = 0; t < T; ++t) {
          const size_t i = (size_t(b) * T + t) * P + p;
          const double r = lr[p] * hr - li[p] * hi + br[i];
          hi = lr[p] * hi + li[p] * hr + bi[i], hr = r;
          wr[i] = hr, wi[i] = hi;
        }
      }
    auto bad = agree(xr.now(), wr, 1e-4, 1e-4);
    return bad.empty() ? agree(xi.now(), wi, 1e-4, 1e-4) : bad;
  };
  return j;
});

// --- minLSTM in logarithms: cumulative sum of log f, running log-sum-exp of the rest (Heinsen)
Tile softplus(Tile x) { return max(x, 0.f) + log1p(exp(-abs(x))); }
auto min_lstm = kernel("user_min_lstm", [](const ScCfg& c, Tensor<const half, 3> F, Tensor<const half, 3> I,
                                           Tensor<const half, 3> H, Tensor<half, 3> O) {
                  num_warps(c.warps);
                  auto d = program_id(0) * c.BD, b = program_id(1);
                  Tile last = full({1, c.BD}, -INFINITY, f32);  // log of the state
                  for (auto t : range(0, F.dim(1), c.BT)) {
                    auto f = cast(F.load({b, t, d}, {c.BT, c.BD}), f32), i = cast(I.load({b, t, d}, {c.BT, c.BD}), f32),
                         x = cast(H.load({b, t, d}, {c.BT, c.BD}), f32);
                    auto diff = softplus(-f) - softplus(-i);
                    auto lf = -softplus(diff), li = -softplus(-diff);
                    auto lg = where(x >= 0, log(max(x, 0.f) + 0.5f), -softplus(-x));
                    auto a = cumsum(lf, axis(0));
                    auto v = li + lg - a;
                    auto [m, s] = scan({v, ones({c.BT, c.BD}, f32)}, axis(0), [](Tile m0, Tile s0, Tile m1, Tile s1) {
                      auto m = max(m0, m1);
                      return std::tuple(m, s0 * exp(m0 - m) + s1 * exp(m1 - m));
                    });
                    auto inner = m + log(s);
                    auto top = max(inner, last);
                    auto y = a + top + log(exp(inner - top) + exp(last - top));
                    O.store({b, t, d}, cast(exp(y), f16));
                    last = extract(y, {c.BT - 1, 0}, {1, c.BD});
                  }
                }).grid([](const ScCfg& c, const auto& f, const auto&, const auto&, const auto&) {
  return Grid{cdiv(f.shape[2], c.BD), f.shape[0]};
});
Register r3("min_lstm", [](Env& e) {
  auto c = sc(e, {64, 32, 0, 4}, {8, 8, 0, 2});
  const int B = e.big ? 16 : 2, T = e.big ? 4096 : 24, P = e.big ? 1024 : 13;
  auto f = random<half>(e, size_t(B) * T * P, -4, 4), i = random<half>(e, size_t(B) * T * P, -4, 4),
       h = random<half>(e, size_t(B) * T * P, -2, 2);
  auto o = constant<half>(e, size_t(B) * T * P, NAN);
  Job j;
  j.mbytes = 8e-6 * B * T * double(P);
  j.add(min_lstm, c, f.view(B, T, P), i.view(B, T, P), h.view(B, T, P), o.view(B, T, P));
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int b = 0; b < B; ++b)
      for (int p = 0; p < P; ++p) {
        double s = 0;
        for (int t = 0; t < T; ++t) {
          const size_t k = (size_t(b) * T + t) * P + p;
          const double ff = 1 / (1 + std::exp(-f[k])), ii = 1 / (1 + std::exp(-i[k])),
                       g = h[k] >= 0 ? h[k] + .5 : 1 / (1 + std::exp(-h[k]));
          want[k] = s = ff / (ff + ii) * s + ii / (ff + ii) * g;
        }
      }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- Hyena: a long filter per channel as products of Toeplitz tiles that are read at differences; gated
auto hyena = kernel("user_hyena", [](const ScCfg& c, Ptr<const half> f, Ptr<const half> x, Ptr<const half> g,
                                     Ptr<half> y, I32 T, I32 D, I32 B) {
               // f [D, T], x, g, y [D, T, B]: batches side by side
               num_warps(c.warps);
               auto d = program_id(1), t0 = program_id(0) * c.BT;
               auto t = t0 + arange(0, c.BT), b = arange(0, c.N), k = arange(0, c.BD);
               auto base = cast(d, i64) * T;
               Tile acc = zeros({c.BT, c.N}, f32);
               for (auto s : range(0, min(t0 + c.BT, T), c.BD, {.stages = c.stages})) {
                 auto lag = t.col() - (s + k).row();
                 auto toeplitz = load(f + (base + lag), {.mask = (lag >= 0) & (lag < T), .other = 0});
                 auto v = load(x + ((base + s + k).col() * B + b.row()),
                               {.mask = (s + k < T).col() & (b < B).row(), .other = 0});
                 acc = dot(toeplitz, v, acc);
               }
               auto at = (base + t).col() * B + b.row();
               auto ok = (t < T).col() & (b < B).row();
               store(y + at, cast(acc * cast(load(g + at, {.mask = ok}), f32), f16), {.mask = ok});
             }).grid([](const ScCfg& c, auto, auto, auto, auto, int T, int D, int) {
  return Grid{cdiv(T, c.BT), D};
});
Register r4("hyena", [](Env& e) {
  auto c = sc(e, {128, 64, 16, 4, 3}, {32, 16, 16, 4, 2});
  const int D = e.big ? 768 : 3, T = e.big ? 4096 : 53, B = e.big ? 16 : 11;
  auto f = random<half>(e, size_t(D) * T, -.2, .2), x = random<half>(e, size_t(D) * T * B),
       g = random<half>(e, size_t(D) * T * B);
  auto y = constant<half>(e, size_t(D) * T * B, NAN);
  Job j;
  j.gflop = 1e-9 * D * T * double(T) * B;
  j.add(hyena, c, f.p, x.p, g.p, y.p, T, D, B);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int d = 0; d < D; ++d)
      for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b) {
          double s = 0;
          for (int k = 0; k <= t; ++k) s += f[size_t(d) * T + t - k] * x[(size_t(d) * T + k) * B + b];
          want[(size_t(d) * T + t) * B + b] = s * g[(size_t(d) * T + t) * B + b];
        }
    return agree(y.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- LLM.int8's preparation: rows to codes, large values left out and their columns marked
auto int8_rows_marked =
    kernel("user_int8_marked", [](const ScCfg& c, Tensor<const half, 2> X, Tensor<int8_t, 2> Q, Ptr<float> rows,
                                  Ptr<int32_t> marks, F32 limit) {
      num_warps(c.warps);
      auto r = program_id(0) * c.BT;
      auto R = X.dim(0), C = X.dim(1);
      Tile top = zeros({c.BT, 1}, f32);
      for (auto k : range(0, C, c.BD)) {
        auto x = abs(cast(X.load({r, k}, {c.BT, c.BD}), f32));
        auto big = x >= limit;
        auto any_big = squeeze(any(big, axis(0)), 0);
        auto col = k + arange(0, c.BD);
        store(marks + col, broadcast_to(reshape(ones({}, i32), {1}), {c.BD}), {.mask = any_big & (col < C)});
        top = max(top, max(where(big, 0, x), axis(1)));
      }
      auto ri = r + arange(0, c.BT);
      store(rows + ri, squeeze(top, 1), {.mask = ri < R});
      for (auto k : range(0, C, c.BD)) {
        auto x = cast(X.load({r, k}, {c.BT, c.BD}), f32);
        x = where(abs(x) >= limit, 0, x);
        Q.store({r, k}, saturate(rint(x * (127 / max(top, 1e-20f))), i8));
      }
    }).grid([](const ScCfg& c, const auto& x, const auto&, auto, auto, float) { return Grid{cdiv(x.shape[0], c.BT)}; });
Register r5("int8_marked", [](Env& e) {
  auto c = sc(e, {4, 1024, 0, 4}, {4, 32, 0, 2});
  const int R = e.big ? 8192 : 13, C = e.big ? 8192 : 75;
  auto x = filled<half>(e, e.big ? 0 : size_t(R) * C,
                        [&](size_t i) { return half(float(i % 97 == 5 ? 7 : e.uniform() * 4 - 2)); });
  if (e.big) x = random<half>(e, size_t(R) * C, -5, 5);
  auto q = constant<int8_t>(e, size_t(R) * C, 1);
  auto rows = constant<float>(e, R, NAN);
  auto marks = constant<int32_t>(e, C, 0);
  Job j;
  restore(e, j, marks);
  j.mbytes = 5e-6 * R * C;
  j.add(int8_rows_marked, c, x.view(R, C), q.view(R, C), rows.p, marks.p, 6.f);
  j.check = [=] {
    std::vector<double> wq(q.n), wm(C), got(q.n);
    auto codes = q.now();
    for (int r = 0; r < R; ++r) {
      double m = 0;
      for (int k = 0; k < C; ++k)
        if (std::abs(x[size_t(r) * C + k]) < 6)
          m = std::max(m, std::abs(x[size_t(r) * C + k]));
        else
          wm[k] = 1;
      for (int k = 0; k < C; ++k)
        wq[size_t(r) * C + k] = std::abs(x[size_t(r) * C + k]) < 6 ? x[size_t(r) * C + k] : 0,
                           got[size_t(r) * C + k] = codes[size_t(r) * C + k] * m / 127;
    }
    auto bad = agree(got, wq, 1e-2, 0);
    return bad.empty() ? agree(marks.now(), wm, 1e-9, 0) : bad;
  };
  return j;
});

// --- multi-token attention: scores are filtered over queries and keys before softmax (short rows, all keys in a tile)
struct MtaCfg {
  int BM = 16, BN = 128, D = 64, warps = 4;
};
auto multi_token =
    kernel("user_multi_token", [](const MtaCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                  Tensor<const half, 3> V, Ptr<const float> w, Tensor<half, 3> O, F32 scale) {
      // w [heads, 3, 5]: queries before, keys around
      num_warps(c.warps);
      auto h = program_id(1), m = program_id(0) * c.BM;
      auto T = Q.dim(1);
      auto rm = (m + arange(0, c.BM)).col(), rn = arange(0, c.BN).row();
      Tile s = zeros({c.BM, c.BN}, f32);
      for (int i = 0; i < 3; ++i)
        for (int j = -2; j <= 2; ++j) {
          auto q = Q.load({h, m - i, 0}, {c.BM, c.D});
          auto k = K.load({h, j, 0}, {c.BN, c.D});
          auto x = dot(q, trans(k)) * (scale * load(w + (h * 15 + i * 5 + j + 2)));
          s += where((rn + j <= rm - i) & (rn + j >= 0), x, 0);
        }
      s = where((rn <= rm) & (rn < T), s, -INFINITY);
      auto p = exp(s - max(s, axis(1)));
      auto o = dot(cast(p, f16), V.load({h, 0, 0}, {c.BN, c.D})) / sum(p, axis(1));
      O.store({h, m, 0}, cast(o, f16));
    }).grid([](const MtaCfg& c, const auto& q, const auto&, const auto&, auto, const auto&, float) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r6("multi_token", [](Env& e) {
  MtaCfg c = e.big ? MtaCfg{64, 128, 64, 8} : MtaCfg{16, 48, 16, 4};
  const int H = e.big ? 512 : 2, T = e.big ? 128 : 43, D = c.D;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, size_t(H) * T * D),
       v = random<half>(e, size_t(H) * T * D);
  auto w = random<float>(e, H * 15);
  auto o = constant<half>(e, size_t(H) * T * D, NAN);
  Job j;
  j.gflop = 2e-9 * H * T * double(T) * D * 16;
  j.add(multi_token, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), w.p, o.view(H, T, D), .25f);
  j.check = [=] {
    std::vector<double> want(o.n), S(size_t(T) * T);
    for (int h = 0; h < H; ++h) {
      for (int r = 0; r < T; ++r)
        for (int x = 0; x < T; ++x) {
          double s = 0;
          for (int i = 0; i < D; ++i) s += q[(size_t(h) * T + r) * D + i] * k[(size_t(h) * T + x) * D + i];
          S[r * T + x] = x <= r ? s * .25 : 0;
        }
      for (int r = 0; r < T; ++r) {
        std::vector<double> p(r + 1);
        double l = 0;
        for (int x = 0; x <= r; ++x) {
          double s = 0;
          for (int i = 0; i < 3; ++i)
            for (int j = -2; j <= 2; ++j)
              if (r - i >= 0 && x + j >= 0 && x + j < T) s += S[(r - i) * T + x + j] * w[h * 15 + i * 5 + j + 2];
          l += p[x] = std::exp(s);
        }
        for (int i = 0; i < D; ++i) {
          double s = 0;
          for (int x = 0; x <= r; ++x) s += p[x] * v[(size_t(h) * T + x) * D + i];
          want[(size_t(h) * T + r) * D + i] = s / l;
        }
      }
    }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace scans_of_tiles
}  // namespace users
