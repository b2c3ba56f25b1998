// fused_rows.cpp - rows as training and serving want them: norm, rotation and cache write in one, a norm with its
// quantised sum, gradients of layer norm in two steps, Adam with 8-bit states, Sinkhorn's normalisation, batch norm.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace fused_rows {

// --- queries and keys normalised per head, rotated (halves), keys and values written to their slots of a paged cache
struct QkCfg {
  int D = 128, H = 16, warps = 4;
};
auto qk_norm_rope = kernel(
    "user_qk_norm_rope", [](const QkCfg& c, Tensor<const bfloat16, 3> X, Ptr<const bfloat16> gq, Ptr<const bfloat16> gk,
                            Tensor<const float, 2> table, Ptr<const int32_t> positions, Ptr<const int64_t> slots,
                            Tensor<bfloat16, 3> Q, Tensor<bfloat16, 3> KC, Tensor<bfloat16, 3> VC, I32 Hq, I32 Hk) {
      // X [tokens, Hq + 2 Hk, D]; table [positions, D]: cosines, then sines; Q [tokens, Hq, D], caches [slots, Hk, D]
      num_warps(c.warps);
      const int h = c.D / 2;
      auto t = program_id(0), first = program_id(1) * c.H;
      auto at = load(positions + t);
      auto slot = load(slots + t);
      auto d = arange(0, h);
      auto co = table.load({at, 0}, {1, h}), si = table.load({at, h}, {1, h});
      auto heads = (first + arange(0, c.H)).col();
      auto x = cast(X.load({t, first, 0}, {c.H, h}), f32), y = cast(X.load({t, first, h}, {c.H, h}), f32);
      auto scale = rsqrt((sum(x * x, axis(1)) + sum(y * y, axis(1))) / float(c.D) + 1e-6f);
      auto isq = heads < Hq, isk = (heads >= Hq) & (heads < Hq + Hk);
      auto gain = [&](int from) {
        return where(isq, cast(load(gq + from + d).row(), f32), cast(load(gk + from + d).row(), f32)) * scale;
      };
      auto nx = x * gain(0), ny = y * gain(h);
      auto a = where(isq | isk, nx * co - ny * si, x), b = where(isq | isk, ny * co + nx * si, y);
      auto dd = d.row();
      auto write = [&](const Tile& to, const Tile& mask) {
        store(to + dd, cast(a, bf16), {.mask = mask});
        store(to + dd + h, cast(b, bf16), {.mask = mask});
      };
      write(Q.ptr() + (cast(t * Hq + heads, i64) * c.D), isq);
      write(KC.ptr() + ((slot * Hk + heads - Hq) * c.D), isk & (slot >= 0));
      write(VC.ptr() + ((slot * Hk + heads - Hq - Hk) * c.D), (heads >= Hq + Hk) & (heads < Hq + 2 * Hk) & (slot >= 0));
    }).grid([](const QkCfg& c, const auto& x, const auto&...) { return Grid{x.shape[0], cdiv(x.shape[1], c.H)}; });
Register r1("qk_norm_rope", [](Env& e) {
  int T = e.big ? 8192 : 19, Hq = e.big ? 32 : 6, Hk = e.big ? 8 : 2, D = e.big ? 128 : 32, h = D / 2, H = Hq + 2 * Hk,
      slots = 2 * T, P = 4096;
  auto x = random<bfloat16>(e, size_t(T) * H * D), gq = random<bfloat16>(e, D), gk = random<bfloat16>(e, D);
  auto angle = [=](size_t i) { return double(i / D) * std::pow(10000., -double(i % D % h) / h); };
  auto table = filled<float>(e, size_t(P) * D, [=](size_t i) {
    return float(int(i % D) < h ? std::cos(angle(i)) : std::sin(angle(i)));
  });
  auto pos = filled<int32_t>(e, T, [=](size_t i) { return int(i * 37 % P); });
  auto slot = filled<int64_t>(e, T, [=](size_t i) { return i % 7 == 5 ? -1 : int64_t((i * 2 + 1) % slots); });
  auto q = constant<bfloat16>(e, size_t(T) * Hq * D, NAN), kc = constant<bfloat16>(e, size_t(slots) * Hk * D, 0),
       vc = constant<bfloat16>(e, size_t(slots) * Hk * D, 0);
  Job j;
  j.mbytes = 4e-6 * T * H * D;
  j.add(qk_norm_rope, QkCfg{D, e.field("H", e.big ? 16 : 4), e.field("warps", 4)}, x.view(T, H, D), gq.p, gk.p,
        table.view(P, D), pos.p, slot.p, q.view(T, Hq, D), kc.view(slots, Hk, D), vc.view(slots, Hk, D), Hq, Hk);
  j.check = [=] {
    std::vector<double> wq(size_t(T) * Hq * D), wk(size_t(slots) * Hk * D), wv(size_t(slots) * Hk * D);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < H; ++i) {
        const size_t r = (size_t(t) * H + i) * D;
        double ss = 0;
        for (int d = 0; d < D; ++d) ss += x[r + d] * x[r + d];
        ss = 1 / std::sqrt(ss / D + 1e-6);
        const bool isq = i < Hq, isk = !isq && i < Hq + Hk;
        double* to = isq ? &wq[(size_t(t) * Hq + i) * D]
                     : slot.h[t] < 0 ? nullptr
                     : isk ? &wk[(slot.h[t] * Hk + i - Hq) * D] : &wv[(slot.h[t] * Hk + i - Hq - Hk) * D];
        if (!to) continue;
        for (int d = 0; d < h; ++d) {
          auto g = [&](int k) { return isq ? gq[k] : gk[k]; };
          const double a = x[r + d] * ss * g(d), b = x[r + h + d] * ss * g(h + d);
          const double cs = table[size_t(pos.h[t]) * D + d], sn = table[size_t(pos.h[t]) * D + h + d];
          to[d] = isq || isk ? a * cs - b * sn : x[r + d], to[h + d] = isq || isk ? b * cs + a * sn : x[r + h + d];
        }
      }
    auto bad = agree(q.now(), wq, 1e-2, 1e-2);
    if (bad.empty()) bad = agree(kc.now(), wk, 1e-2, 1e-2);
    return bad.empty() ? agree(vc.now(), wv, 1e-2, 1e-2) : bad;
  };
  return j;
});

// --- residual sum, its rms norm, and that in e4m3 with a scale per row
struct AddCfg {
  int R = 1, D = 4096, warps = 4;
};
auto add_rms_quant = kernel("user_add_rms_quant", [](const AddCfg& c, Tensor<const half, 2> X, Tensor<half, 2> residual,
                                                     Tensor<const half, 1> gain, Tensor<fp8_e4m3, 2> Y,
                                                     Tensor<float, 1> scale) {
                       num_warps(c.warps);
                       auto r = program_id(0) * c.R;
                       auto s = cast(X.load({r, 0}, {c.R, c.D}), f32) + cast(residual.load({r, 0}, {c.R, c.D}), f32);
                       residual.store({r, 0}, cast(s, f16));
                       auto y = s * rsqrt(sum(s * s, axis(1)) / cast(X.dim(1), f32) + 1e-6f) *
                                cast(gain.load({0}, {c.D}), f32).row();
                       auto by = max(max(abs(y), axis(1)) / 448.f, 1e-10f);
                       Y.store({r, 0}, cast(y / by, f8e4m3));
                       scale.store({r}, squeeze(by, 1));
                     }).grid([](const AddCfg& c, const auto& x, const auto&...) {
                       return Grid{cdiv(x.shape[0], c.R)};
                     });
Register r2("add_rms_quant", [](Env& e) {
  int M = e.big ? 16384 : 9, D = e.big ? 4096 : 200, wide = e.big ? 4096 : 256;
  auto x = random<half>(e, size_t(M) * D), r = random<half>(e, size_t(M) * D), g = random<half>(e, D);
  auto y = constant<fp8_e4m3>(e, size_t(M) * D, 0);
  auto s = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 7e-6 * M * D;
  j.add(add_rms_quant, AddCfg{1, wide, e.field("warps", 8)}, x.view(M, D), r.view(M, D), g.view(D), y.view(M, D),
        s.view(M));
  j.check = [=] {
    std::vector<double> wr, wy, ws;
    auto by = s.now();
    for (int m = 0; m < M; ++m) {
      double ss = 0, top = 0;
      for (int d = 0; d < D; ++d) {
        wr.push_back(x[m * D + d] + r[m * D + d]);
        ss += wr.back() * wr.back();
      }
      ss = 1 / std::sqrt(ss / D + 1e-6);
      for (int d = 0; d < D; ++d) {
        const double v = wr[m * D + d] * ss * g[d];
        top = std::max(top, std::abs(v));
        wy.push_back(v / by[m]);
      }
      ws.push_back(top / 448);
    }
    auto bad = agree(r.now(), wr, 1e-3, 1e-3);
    if (bad.empty()) bad = agree(by, ws, 0, 1e-4);
    return bad.empty() ? agree(y.now(), wy, .01, .07) : bad;
  };
  return j;
});

// --- gradients of layer norm: dx per row, sums of dgamma and dbeta per program, then over programs
struct LnCfg {
  int R = 4, D = 1024, programs = 528, warps = 4;
};
auto ln_bwd = kernel("user_layernorm_bwd", [](const LnCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> G,
                                              Tensor<const bfloat16, 1> gain, Tensor<const float, 1> mean,
                                              Tensor<const float, 1> rstd, Tensor<bfloat16, 2> dX,
                                              Tensor<float, 2> parts) {
                // parts [2 programs, D]: dgamma of every program, then dbeta
                num_warps(c.warps);
                auto p = program_id(0);
                auto g = cast(gain.load({0}, {c.D}), f32).row();
                Tile dgain = zeros({1, c.D}, f32), dbias = zeros({1, c.D}, f32);
                const float n = float(c.D);
                for (auto r : range(p * c.R, X.dim(0), num_programs(0) * c.R)) {
                  auto m = mean.load({r}, {c.R}).col(), s = rstd.load({r}, {c.R}).col();
                  auto x = cast(X.load({r, 0}, {c.R, c.D}), f32), dy = cast(G.load({r, 0}, {c.R, c.D}), f32);
                  auto xhat = (x - m) * s;
                  dgain += sum(dy * xhat, axis(0));
                  dbias += sum(dy, axis(0));
                  auto w = dy * g;
                  auto c1 = sum(xhat * w, axis(1)) / n, c2 = sum(w, axis(1)) / n;
                  dX.store({r, 0}, cast((w - xhat * c1 - c2) * s, bf16));
                }
                parts.store({p, 0}, dgain);
                parts.store({num_programs(0) + p, 0}, dbias);
              }).grid([](const LnCfg& c, const auto&...) { return Grid{c.programs}; });
struct SumCfg {
  int R = 32, D = 64, warps = 4;
};
auto sum_parts = kernel("user_sum_parts", [](const SumCfg& c, Tensor<const float, 3> parts, Tensor<float, 2> out) {
                   num_warps(c.warps);
                   auto d = program_id(0) * c.D, which = program_id(1);
                   Tile acc = zeros({c.R, c.D}, f32);
                   for (auto r : range(0, parts.dim(1), c.R)) acc += parts.load({which, r, d}, {c.R, c.D});
                   out.store({which, d}, sum(acc, axis(0)));
                 }).grid([](const SumCfg& c, const auto& p, const auto&) {
                   return Grid{cdiv(p.shape[2], c.D), p.shape[0]};
                 });
Register r3("layernorm_bwd", [](Env& e) {
  int M = e.big ? 32768 : 37, D = e.big ? 2048 : 128, P = e.big ? e.field("programs", 528) : 5;
  auto x = random<bfloat16>(e, size_t(M) * D), g = random<bfloat16>(e, size_t(M) * D), gain = random<bfloat16>(e, D);
  auto mean = filled<float>(e, M, [&](size_t m) {
    double s = 0;
    for (int d = 0; d < D && !e.big; ++d) s += x[m * D + d];
    return float(s / D);
  });
  auto rstd = filled<float>(e, M, [&](size_t m) {
    double s = e.big ? D : 0;
    for (int d = 0; d < D && !e.big; ++d) s += (x[m * D + d] - mean[m]) * (x[m * D + d] - mean[m]);
    return float(1 / std::sqrt(s / D + 1e-5));
  });
  auto dx = constant<bfloat16>(e, size_t(M) * D, NAN);
  auto parts = constant<float>(e, size_t(2) * P * D, NAN), out = constant<float>(e, 2 * D, NAN);
  Job j;
  j.mbytes = 6e-6 * M * D;
  j.add(ln_bwd, LnCfg{e.field("R", e.big ? 1 : 4), D, P, e.field("warps", 4)}, x.view(M, D), g.view(M, D), gain.view(D),
        mean.view(M), rstd.view(M), dx.view(M, D), parts.view(2 * P, D));
  j.add(sum_parts, SumCfg{32, 64, 4}, parts.view(2, P, D), out.view(2, D));
  j.check = [=] {
    std::vector<double> wx, ws(2 * D);
    for (int m = 0; m < M; ++m) {
      double c1 = 0, c2 = 0;
      auto hat = [&](int d) { return (x[m * D + d] - mean[m]) * rstd[m]; };
      for (int d = 0; d < D; ++d) {
        ws[d] += g[m * D + d] * hat(d), ws[D + d] += g[m * D + d];
        c1 += hat(d) * g[m * D + d] * gain[d] / D, c2 += g[m * D + d] * gain[d] / D;
      }
      for (int d = 0; d < D; ++d) wx.push_back((g[m * D + d] * gain[d] - hat(d) * c1 - c2) * rstd[m]);
    }
    auto bad = agree(dx.now(), wx, 1e-2, 1e-2);
    return bad.empty() ? agree(out.now(), ws, 1e-4, 1e-4) : bad;
  };
  return j;
});

// --- Adam with states of 8 bits: m signed, v unsigned, both linear in their block's largest (blocks of 256)
struct Adam8Cfg {
  int B = 256, R = 8, warps = 4;
};
auto adam8 = kernel("user_adam8", [](const Adam8Cfg& c, Tensor<float, 2> P, Tensor<const float, 2> G,
                                     Tensor<int8_t, 2> M, Tensor<uint8_t, 2> V, Tensor<float, 2> ms, Tensor<float, 2> vs,
                                     F32 lr, F32 b1, F32 b2, F32 decay) {
               // P, G, M, V [blocks, B], ms, vs [blocks, 1]
               num_warps(c.warps);
               auto r = program_id(0) * c.R;
               auto g = G.load({r, 0}, {c.R, c.B}), p = P.load({r, 0}, {c.R, c.B});
               auto m = cast(M.load({r, 0}, {c.R, c.B}), f32) * (ms.load({r, 0}, {c.R, 1}) / 127.f);
               auto root = cast(V.load({r, 0}, {c.R, c.B}), f32) * (vs.load({r, 0}, {c.R, 1}) / 255.f);
               m = b1 * m + (1.f - b1) * g;
               auto v = b2 * (root * root) + (1.f - b2) * g * g;
               P.store({r, 0}, p - lr * (m / (sqrt(v) + 1e-8f) + decay * p));
               auto rv = sqrt(v);
               auto mm = max(abs(m), axis(1)), mv = max(rv, axis(1));
               M.store({r, 0}, cast(rint(m / max(mm, 1e-30f) * 127.f), i8));
               V.store({r, 0}, cast(rint(rv / max(mv, 1e-30f) * 255.f), u8));
               ms.store({r, 0}, mm);
               vs.store({r, 0}, mv);
             }).grid([](const Adam8Cfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[0], c.R)}; });
Register r4("adam8", [](Env& e) {
  int N = e.big ? 1 << 18 : 21, B = 256;
  const size_t n = size_t(N) * B;
  auto p = random<float>(e, n), g = random<float>(e, n);
  auto m = integers<int8_t>(e, n, -127, 128);
  auto v = integers<uint8_t>(e, n, 0, 256);
  auto ms = random<float>(e, N, .1, 1), vs = random<float>(e, N, .1, 1);
  Job j;
  j.mbytes = 1e-6 * n * 16;
  j.add(adam8, Adam8Cfg{B, e.field("R", 4), e.field("warps", 4)}, p.view(N, B), g.view(N, B), m.view(N, B),
        v.view(N, B), ms.view(N, 1), vs.view(N, 1), 1e-2f, .9f, .99f, .01f);
  j.check = [=] {
    std::vector<double> wp(n), wm(n), wv(n);
    for (int b = 0; b < N; ++b) {
      double tm = 0, tv = 0;
      for (size_t i = size_t(b) * B; i < size_t(b + 1) * B; ++i) {
        const double root = v.h[i] * double(vs[b]) / 255;
        wm[i] = .9 * m.h[i] * ms[b] / 127 + .1 * g[i], wv[i] = std::sqrt(.99 * root * root + .01 * g[i] * g[i]);
        wp[i] = p[i] - 1e-2 * (wm[i] / (wv[i] + 1e-8) + .01 * p[i]);
        tm = std::max(tm, std::abs(wm[i])), tv = std::max(tv, wv[i]);
      }
      for (size_t i = size_t(b) * B; i < size_t(b + 1) * B; ++i) wm[i] *= 127 / tm, wv[i] *= 255 / tv;
    }
    auto bad = agree(p.now(), wp, 1e-5, 1e-5);
    if (bad.empty()) bad = agree(m.now(), wm, .501, 0);
    return bad.empty() ? agree(v.now(), wv, .501, 0) : bad;
  };
  return j;
});

// --- Sinkhorn: exp(x / t), then rows and columns of small matrices made to sum to 1 in turns
struct SinkCfg {
  int N = 4, B = 64, rounds = 20, warps = 4;
};
auto sinkhorn = kernel("user_sinkhorn", [](const SinkCfg& c, Tensor<const float, 3> X, Tensor<float, 3> Y, F32 t) {
                  num_warps(c.warps);
                  auto b = program_id(0) * c.B;
                  auto x = X.load({b, 0, 0}, {c.B, c.N, c.N});
                  Tile p = exp((x - max(x, axis(2))) / t);
                  for (auto i : range(c.rounds)) {
                    p = p / sum(p, axis(2));
                    p = p / sum(p, axis(1));
                  }
                  Y.store({b, 0, 0}, p);
                }).grid([](const SinkCfg& c, const auto& x, const auto&...) {
                  return Grid{cdiv(x.shape[0], c.B)};
                });
Register r5("sinkhorn", [](Env& e) {
  int B = e.big ? 1 << 17 : 70, N = 4, rounds = 20;
  auto x = random<float>(e, size_t(B) * N * N, -2, 2);
  auto y = constant<float>(e, size_t(B) * N * N, NAN);
  Job j;
  j.mbytes = 8e-6 * B * N * N;
  j.add(sinkhorn, SinkCfg{N, e.field("B", 128), rounds, e.field("warps", 4)}, x.view(B, N, N), y.view(B, N, N), .5f);
  j.check = [=] {
    std::vector<double> p(size_t(B) * N * N);
    for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp(x[i] / .5);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < rounds; ++i)
        for (int side = 0; side < 2; ++side)
          for (int r = 0; r < N; ++r) {
            double s = 0;
            auto at = [&](int k) -> double& { return p[size_t(b) * N * N + (side ? k * N + r : r * N + k)]; };
            for (int k = 0; k < N; ++k) s += at(k);
            for (int k = 0; k < N; ++k) at(k) /= s;
          }
    return agree(y.now(), p, 1e-5, 1e-5);
  };
  return j;
});

// --- batch norm in training: statistics of channels over images and pixels in parts (Chan's formula), then applied
struct BatchCfg {
  int R = 64, C = 64, parts = 32, warps = 4;
};
auto channel_parts = kernel("user_batchnorm_parts", [](const BatchCfg& c, Tensor<const half, 2> X,
                                                       Tensor<float, 3> parts) {
                       // X [pixels, channels], parts [3, parts, channels]: count, mean, squares
                       num_warps(c.warps);
                       auto ch = program_id(0) * c.C, part = program_id(1);
                       auto per = cdiv(X.dim(0), num_programs(1)), end = min(part * per + per, X.dim(0));
                       Tile n = zeros({c.R, 1}, f32), mean = zeros({c.R, c.C}, f32), m2 = zeros({c.R, c.C}, f32);
                       for (auto r : range(part * per, end, c.R)) {
                         auto live = (r + arange(0, c.R)).col() < end;
                         auto x = cast(X.load({r, ch}, {c.R, c.C}), f32);
                         n += where(live, 1.f, 0.f);
                         auto delta = where(live, x - mean, 0.f);
                         mean += delta / max(n, 1.f);
                         m2 += where(live, delta * (x - mean), 0.f);
                       }
                       auto all = reduce({broadcast_to(n, {c.R, c.C}), mean, m2}, axis(0),
                                         [](Tile na, Tile ma, Tile sa, Tile nb, Tile mb, Tile sb) {
                                           auto sum = na + nb, d = mb - ma, w = nb / max(sum, 1.f);
                                           return std::tuple(sum, ma + d * w, sa + sb + d * d * (na * w));
                                         });
                       for (int i = 0; i < 3; ++i) parts.store({i, part, ch}, all[i]);
                     }).grid([](const BatchCfg& c, const auto& x, const auto& p) {
                       return Grid{cdiv(x.shape[1], c.C), p.shape[1]};
                     });
auto batch_apply = kernel("user_batchnorm_apply", [](const BatchCfg& c, Tensor<const half, 2> X,
                                                     Tensor<const float, 3> parts, Tensor<const float, 2> affine,
                                                     Tensor<half, 2> Y) {
                     num_warps(c.warps);
                     auto ch = program_id(0) * c.C, r = program_id(1) * c.R;
                     auto read = [&](int i) { return reshape(parts.load({i, 0, ch}, {1, c.parts, c.C}), {c.parts, c.C}); };
                     auto n = read(0), mean = read(1), m2 = read(2);
                     auto total = sum(n, axis(0)), m = sum(n * mean, axis(0)) / total;
                     auto var = (sum(m2, axis(0)) + sum(n * (mean - m) * (mean - m), axis(0))) / total;
                     auto scale = rsqrt(var + 1e-5f) * affine.load({0, ch}, {1, c.C});
                     auto x = cast(X.load({r, ch}, {c.R, c.C}), f32);
                     Y.store({r, ch}, cast(max((x - m) * scale + affine.load({1, ch}, {1, c.C}), 0.f), f16));
                   }).grid([](const BatchCfg& c, const auto& x, const auto&...) {
                     return Grid{cdiv(x.shape[1], c.C), cdiv(x.shape[0], c.R)};
                   });
Register r6("batchnorm", [](Env& e) {
  int M = e.big ? 64 * 56 * 56 : 333, C = e.big ? 256 : 72, parts = 32;
  auto x = random<half>(e, size_t(M) * C, 2, 4);
  auto affine = random<float>(e, 2 * C);
  auto p = constant<float>(e, size_t(3) * parts * C, NAN);
  auto y = constant<half>(e, size_t(M) * C, NAN);
  Job j;
  j.mbytes = 6e-6 * M * C;
  j.add(channel_parts, BatchCfg{e.field("R", 64), 64, parts, 4}, x.view(M, C), p.view(3, parts, C));
  j.add(batch_apply, BatchCfg{e.field("RA", 128), 64, parts, 4}, x.view(M, C), p.view(3, parts, C), affine.view(2, C),
        y.view(M, C));
  j.check = [=] {
    std::vector<double> want(size_t(M) * C);
    for (int k = 0; k < C; ++k) {
      double s = 0, v = 0;
      for (int m = 0; m < M; ++m) s += x[size_t(m) * C + k] / M;
      for (int m = 0; m < M; ++m) v += (x[size_t(m) * C + k] - s) * (x[size_t(m) * C + k] - s) / M;
      for (int m = 0; m < M; ++m)
        want[size_t(m) * C + k] =
            std::max(0., (x[size_t(m) * C + k] - s) / std::sqrt(v + 1e-5) * affine[k] + affine[C + k]);
    }
    return agree(y.now(), want, 3e-3, 3e-3);
  };
  return j;
});

}  // namespace fused_rows
}  // namespace users
