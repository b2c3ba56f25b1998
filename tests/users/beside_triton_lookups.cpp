// beside_triton_lookups.cpp - chunked prefill over paged e4m3 keys, a gated product of e4m3, Nystrom attention, RAFT's
// lookup.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_lookups {

constexpr float kLog2e = 1.4426950408889634f;

// --- prefill of NQ new queries per sequence over pages of e4m3, [pages, PS, HK, D]
struct PrefixCfg {
  int BM = 128, BN = 64, D = 128, PS = 16, G = 4, warps = 8;
};
auto prefix = kernel("user_prefix_f8", [](const PrefixCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const fp8_e4m3, 4> K,
                                          Tensor<const fp8_e4m3, 4> V, Tensor<const int, 2> table,
                                          Tensor<const int, 1> lengths, Tensor<const float, 1> k_scale,
                                          Tensor<const float, 1> v_scale, Tensor<bfloat16, 4> O, F32 scale) {
                // Q, O [B, NQ, H, D]; lengths count the new tokens, too
                if (c.warps) num_warps(c.warps);
                auto m = program_id(0) * c.BM, h = program_id(1), b = program_id(2), hk = h / c.G;
                auto length = lengths.load({b}), before = length - Q.dim(1);
                auto q = Q.load({b, m, only(h), 0}, {c.BM, c.D});
                auto factor = k_scale.load({hk}) * (scale * kLog2e);
                auto row = (before + m + arange(0, c.BM)).col();
                auto d = arange(0, c.D).row();
                Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
                for (auto n : range(0, min(before + m + c.BM, length), c.BN)) {
                  auto at = n + arange(0, c.BN);
                  auto page = load(table.ptr() + (b * table.dim(1) + at / c.PS), {.mask = at < length});
                  auto place =
                      (cast(page, i64) * K.stride(0) + cast(at % c.PS, i64) * K.stride(1) + cast(hk * c.D, i64)).col() +
                      cast(d, i64);
                  auto there = (at < length).col();
                  auto k = cast(load(K.ptr() + place, {.mask = there}), bf16);
                  auto v = cast(load(V.ptr() + place, {.mask = there}), bf16);
                  auto s = where(at.row() <= row, dot(q, trans(k)) * factor, -INFINITY);
                  auto now = max(top, max(s, axis(1)));
                  auto p = exp2(s - now), alpha = exp2(top - now);
                  l = l * alpha + sum(p, axis(1));
                  acc = dot(cast(p, bf16), v, acc * alpha);
                  top = now;
                }
                O.store({b, m, only(h), 0}, cast(acc / l * v_scale.load({hk}), bf16));
              }).grid([](const PrefixCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[2], q.shape[0]};
});
Register r1("prefix_f8", [](Env& e) {
  const int B = e.big ? 8 : 3, NQ = e.big ? 512 : 37, H = e.big ? 32 : 4, G = 4, HK = H / G, D = e.big ? 128 : 64;
  PrefixCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 64 : 32), D, e.field("PS", 16), G,
              e.field("warps", e.big ? 8 : 4)};
  const int PS = c.PS, most = e.big ? 4096 : 130, pages = cdiv(most, PS);
  auto q = random<bfloat16>(e, size_t(B) * NQ * H * D, -2, 2);
  auto k = random<fp8_e4m3>(e, size_t(B) * pages * PS * HK * D, -4, 4),
       v = random<fp8_e4m3>(e, size_t(B) * pages * PS * HK * D, -4, 4);
  std::vector<int> t(B * pages), len(B);
  for (int i = 0; i < B * pages; ++i) t[i] = int((i * 7919ll + 13) % (B * pages));
  for (int b = 0; b < B; ++b) len[b] = e.big ? most - 128 * b : most - 21 * b;
  auto table = repeated(e, t.size(), t), lengths = repeated(e, len.size(), len);
  auto ks = random<float>(e, HK, .2, .3), vs = random<float>(e, HK, .2, .3);
  auto o = constant<bfloat16>(e, size_t(B) * NQ * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(prefix, c, q.view(B, NQ, H, D), k.view(B * pages, PS, HK, D), v.view(B * pages, PS, HK, D),
        table.view(B, pages), lengths.view(B), ks.view(HK), vs.view(HK), o.view(B, NQ, H, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * NQ * H * D);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < NQ; ++i)
        for (int h = 0; h < H; ++h) {
          const size_t r = ((size_t(b) * NQ + i) * H + h) * D;
          double total = 0;
          for (int n = 0; n <= len[b] - NQ + i; ++n) {
            const size_t x = ((size_t(t[b * pages + n / PS]) * PS + n % PS) * HK + h / G) * D;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[r + d] * k[x + d];
            total += s = std::exp(s * scale * ks[h / G]);
            for (int d = 0; d < D; ++d) want[r + d] += s * v[x + d];
          }
          for (int d = 0; d < D; ++d) want[r + d] *= vs[h / G] / total;
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- silu(x W1) * (x W2), e4m3 with factors per 1x128 and 128x128, quantised again per 1x128
struct DualCfg {
  int BM = 64, BN = 128, BK = 128, warps = 0;
};
auto dual = kernel("user_dual_gemm_f8", [](const DualCfg& c, Tensor<const fp8_e4m3, 2> X, Tensor<const float, 2> xs,
                                           Tensor<const fp8_e4m3, 2> W1, Tensor<const float, 2> ws1,
                                           Tensor<const fp8_e4m3, 2> W2, Tensor<const float, 2> ws2,
                                           Tensor<fp8_e4m3, 2> Y, Tensor<float, 2> ys) {
              if (c.warps) num_warps(c.warps);
              auto [i, jn] = swizzle2d(program_id(1), program_id(0), num_programs(1), num_programs(0), 8);
              auto m = i * c.BM, n = jn * c.BN;
              Tile a1 = zeros({c.BM, c.BN}, f32), a2 = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, X.dim(1), c.BK)) {
                auto x = X.load({m, k}, {c.BM, c.BK});
                auto f = xs.load({m, k / 128}, {c.BM, 1});
                a1 += dot(x, trans(W1.load({n, k}, {c.BN, c.BK}))) * (f * ws1.load({n / 128, k / 128}));
                a2 += dot(x, trans(W2.load({n, k}, {c.BN, c.BK}))) * (f * ws2.load({n / 128, k / 128}));
              }
              auto y = silu(a1) * a2;
              auto s = max(max(abs(y), axis(1)), 1e-10f) / 448.f;
              Y.store({m, n}, cast(y / s, f8e4m3));
              ys.store({m, n / 128}, s);
            }).grid([](const DualCfg& c, const auto& x, const auto&, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[0], c.BN), cdiv(x.shape[0], c.BM)};
});
Register r2("dual_gemm_f8", [](Env& e) {
  DualCfg c;
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 77, N = e.big ? 4096 : 256, K = e.big ? 4096 : 384;
  auto x = random<fp8_e4m3>(e, size_t(M) * K, -8, 8), w1 = random<fp8_e4m3>(e, size_t(N) * K, -8, 8),
       w2 = random<fp8_e4m3>(e, size_t(N) * K, -8, 8);
  auto xs = random<float>(e, size_t(M) * K / 128, .05, .1), s1 = random<float>(e, N / 128 * (K / 128), .01, .02),
       s2 = random<float>(e, N / 128 * (K / 128), .01, .02);
  auto y = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto ys = constant<float>(e, size_t(M) * N / 128, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * K;
  j.add(dual, c, x.view(M, K), xs.view(M, K / 128), w1.view(N, K), s1.view(N / 128, K / 128), w2.view(N, K),
        s2.view(N / 128, K / 128), y.view(M, N), ys.view(M, N / 128));
  j.check = [=]() -> std::string {
    auto one = [&](const auto& w, const auto& s) {
      return product(
          M, N, K, [&](int m, int k) { return x[size_t(m) * K + k] * xs[size_t(m) * (K / 128) + k / 128]; },
          [&](int k, int n) { return w[size_t(n) * K + k] * s[n / 128 * (K / 128) + k / 128]; });
    };
    auto a = one(w1, s1), b = one(w2, s2);
    std::vector<double> ws(size_t(M) * N / 128), want(size_t(M) * N);
    std::vector<float> got(size_t(M) * N);
    const auto gy = y.now();
    const auto gs = ys.now();
    for (size_t i = 0; i < a.size(); ++i) {
      want[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
      ws[i / 128] = std::max(ws[i / 128], std::abs(want[i]) / 448);
    }
    for (size_t i = 0; i < a.size(); ++i) got[i] = float(gy[i]) * gs[i / 128] / gs[i / 128], want[i] /= ws[i / 128];
    auto t = agree(gs, ws, 0, 2e-2);
    return t.empty() ? agree(got, want, .5, .08) : "scales: " + t;
  };
  return j;
});

// --- Nystrom attention with 64 landmarks
struct NysCfg {
  int BM = 64, BN = 64, M = 64, D = 64, prec = 0;
};
auto nys_means = kernel("user_nys_means", [](const NysCfg& c, Tensor<const half, 3> X, Tensor<half, 3> L) {
                   // one program per landmark: its segment of S / 64 rows
                   auto i = program_id(0), h = program_id(1), per = X.dim(1) / c.M;
                   auto part = X.select(0, h).narrow(0, i * per, per);
                   Tile total = zeros({1, c.D}, f32);
                   for (auto r : range(0, per, c.BM)) total += sum(part.load({r, 0}, {c.BM, c.D}), axis(0));
                   L.store({h, i, 0}, expand_dims(cast(total / cast(per, f32), f16), 0));
                 }).grid([](const NysCfg& c, const auto& x, const auto&) {
  return Grid{c.M, x.shape[0]};
});
// B V = softmax(q~ K^T) V, one program per head
auto nys_bv = kernel("user_nys_bv", [](const NysCfg& c, Tensor<const half, 3> QL, Tensor<const half, 3> K,
                                       Tensor<const half, 3> V, Tensor<float, 3> BV, F32 scale) {
                auto h = program_id(0);
                auto q = QL.load({h, 0, 0}, {c.M, c.D});
                Tile top = full({c.M, 1}, -INFINITY, f32), l = zeros({c.M, 1}, f32), acc = zeros({c.M, c.D}, f32);
                for (auto n : range(0, K.dim(1), c.BN)) {
                  auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.D});
                  auto s = dot(q, trans(k)) * (scale * kLog2e);
                  s = where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
                  auto now = max(top, max(s, axis(1)));
                  auto p = exp2(s - now), alpha = exp2(top - now);
                  l = l * alpha + sum(p, axis(1));
                  acc = dot(cast(p, f16), v, acc * alpha);
                  top = now;
                }
                BV.store({h, 0, 0}, expand_dims(acc / l, 0));
              }).grid([](const NysCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
// W = pinv(softmax(q~ k~^T)) B V, six steps of Razavi's iteration
auto nys_pinv =
    kernel("user_nys_pinv", [](const NysCfg& c, Tensor<const half, 3> QL, Tensor<const half, 3> KL,
                               Tensor<const float, 3> BV, Tensor<half, 3> W, F32 scale) {
      auto h = program_id(0);
      const Prec prec = c.prec == 0 ? Prec::tf32x3 : c.prec == 1 ? Prec::ieee : Prec::tf32;
      auto a = softmax(dot(QL.load({h, 0, 0}, {c.M, c.D}), trans(KL.load({h, 0, 0}, {c.M, c.D}))) * scale, axis(1));
      auto i = arange(0, c.M);
      auto one = cast(i.col() == i.row(), f32);
      Tile z = trans(a) / max(sum(a, axis(0)));
      for (auto step : range(6)) {
        (void)step;
        auto az = dot(a, z, prec);
        auto t = one * 7.f - az;
        t = one * 15.f - dot(az, t, prec);
        t = one * 13.f - dot(az, t, prec);
        z = dot(z, t, prec) * .25f;
      }
      W.store({h, 0, 0}, expand_dims(cast(dot(z, BV.load({h, 0, 0}, {c.M, c.D}), prec), f16), 0));
    }).grid([](const NysCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
auto nys_out = kernel("user_nys_out", [](const NysCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> KL,
                                         Tensor<const half, 3> W, Tensor<half, 3> O, F32 scale) {
                 auto m = program_id(0) * c.BM, h = program_id(1);
                 auto q = Q.load({h, m, 0}, {c.BM, c.D});
                 auto p = softmax(dot(q, trans(KL.load({h, 0, 0}, {c.M, c.D}))) * scale, axis(1));
                 O.store({h, m, 0}, expand_dims(cast(dot(cast(p, f16), W.load({h, 0, 0}, {c.M, c.D})), f16), 0));
               }).grid([](const NysCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Register r3("nystrom", [](Env& e) {
  NysCfg c;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.prec = e.field("prec", 0);
  const int BH = e.big ? 192 : 2, S = e.big ? 4096 : 64 * 5, D = c.D, M = c.M;
  if (!e.big) c.M = M;
  auto q = random<half>(e, size_t(BH) * S * D, -2, 2), k = random<half>(e, size_t(BH) * S * D, -2, 2),
       v = random<half>(e, size_t(BH) * S * D);
  const size_t n = size_t(BH) * M * D;
  auto ql = constant<half>(e, n, NAN), kl = constant<half>(e, n, NAN), w = constant<half>(e, n, NAN);
  auto bv = constant<float>(e, n, NAN);
  auto o = constant<half>(e, size_t(BH) * S * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.inTurn = true;
  j.mbytes = 12e-6 * BH * S * D;
  j.add(nys_means, c, q.view(BH, S, D), ql.view(BH, M, D));
  j.add(nys_means, c, k.view(BH, S, D), kl.view(BH, M, D));
  j.add(nys_bv, c, ql.view(BH, M, D), k.view(BH, S, D), v.view(BH, S, D), bv.view(BH, M, D), scale);
  j.add(nys_pinv, c, ql.view(BH, M, D), kl.view(BH, M, D), bv.view(BH, M, D), w.view(BH, M, D), scale);
  j.add(nys_out, c, q.view(BH, S, D), kl.view(BH, M, D), w.view(BH, M, D), o.view(BH, S, D), scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(BH) * S * D);
    for (int h = 0; h < BH; ++h) {
      using Mat = std::vector<double>;
      auto mul = [](const Mat& a, const Mat& b, int m, int k, int n) {
        Mat c(size_t(m) * n);
        for (int i = 0; i < m; ++i)
          for (int x = 0; x < k; ++x)
            for (int y = 0; y < n; ++y) c[size_t(i) * n + y] += a[size_t(i) * k + x] * b[size_t(x) * n + y];
        return c;
      };
      auto part = [&](const auto& x) {
        Mat m(size_t(S) * D);
        for (size_t i = 0; i < m.size(); ++i) m[i] = x[size_t(h) * S * D + i];
        return m;
      };
      auto turn = [](const Mat& a, int m, int n) {
        Mat t(a.size());
        for (int i = 0; i < m; ++i)
          for (int y = 0; y < n; ++y) t[size_t(y) * m + i] = a[size_t(i) * n + y];
        return t;
      };
      auto soft = [&](Mat a, int m, int n) {
        for (int i = 0; i < m; ++i) {
          double total = 0;
          for (int y = 0; y < n; ++y) total += a[size_t(i) * n + y] = std::exp(a[size_t(i) * n + y] * scale);
          for (int y = 0; y < n; ++y) a[size_t(i) * n + y] /= total;
        }
        return a;
      };
      auto land = [&](const Mat& x) {
        Mat l(size_t(M) * D);
        for (int s = 0; s < S; ++s)
          for (int d = 0; d < D; ++d) l[size_t(s / (S / M)) * D + d] += x[size_t(s) * D + d] / (S / M);
        for (auto& y : l) y = in_half(y);
        return l;
      };
      Mat Q = part(q), K = part(k), V = part(v), QL = land(Q), KL = land(K);
      Mat a = soft(mul(QL, turn(KL, M, D), M, D, M), M, M);
      double most = 0;
      for (int y = 0; y < M; ++y) {
        double t = 0;
        for (int i = 0; i < M; ++i) t += a[i * M + y];
        most = std::max(most, t);
      }
      Mat z = turn(a, M, M);
      for (auto& y : z) y /= most;
      for (int it = 0; it < 6; ++it) {
        Mat az = mul(a, z, M, M, M), t = az;
        auto less = [&](double f, const Mat& x) {
          Mat r(x);
          for (int i = 0; i < M * M; ++i) r[i] = (i % (M + 1) == 0 ? f : 0) - x[i];
          return r;
        };
        t = less(13, mul(az, less(15, mul(az, less(7, az), M, M, M)), M, M, M));
        z = mul(z, t, M, M, M);
        for (auto& y : z) y *= .25;
      }
      Mat W = mul(z, mul(soft(mul(QL, turn(K, S, D), M, D, S), M, S), V, M, S, D), M, M, D);
      Mat O = mul(soft(mul(Q, turn(KL, M, D), S, D, M), S, M), W, S, M, D);
      std::copy(O.begin(), O.end(), want.begin() + size_t(h) * S * D);
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- RAFT: correlation of all pairs (f16), pooled three times, windows of 9 x 9 looked up around a flow
struct CorrCfg {
  int BM = 128, BN = 128, BK = 64;
};
auto corr = kernel("user_raft_corr", [](const CorrCfg& c, Tensor<const half, 3> A, Tensor<const half, 3> B,
                                        Tensor<half, 3> C, F32 scale) {
              auto n = program_id(0) * c.BN, m = program_id(1) * c.BM, b = program_id(2);
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, A.dim(2), c.BK))
                acc = dot(A.load({b, m, k}, {c.BM, c.BK}), trans(B.load({b, n, k}, {c.BN, c.BK})), acc);
              C.store({b, m, n}, cast(acc * scale, f16));
            }).grid([](const CorrCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[1], c.BM), a.shape[0]};
});
struct PoolCfg {
  int BLOCK = 1024;
};
auto pool = kernel("user_raft_pool", [](const PoolCfg& c, Ptr<const half> in, Ptr<half> out, I64 n, I32 H, I32 W) {
              // [planes, H, W] -> [planes, H / 2, W / 2]; n: elements of the result
              auto i = cast(program_id(0), i64) * c.BLOCK + cast(arange(0, c.BLOCK), i64);
              auto w = cast(W / 2, i64), h = cast(H / 2, i64);
              auto x = i % w, y = i / w % h, plane = i / (w * h);
              auto at = (plane * cast(H, i64) + y * 2) * cast(W, i64) + x * 2;
              auto in_range = i < n;
              auto one = [&](const Tile& p) { return cast(load(in + p, {.mask = in_range}), f32); };
              auto s = one(at) + one(at + 1) + one(at + cast(W, i64)) + one(at + cast(W, i64) + 1);
              store(out + i, cast(s * .25f, f16), {.mask = in_range});
            }).grid([](const PoolCfg& c, const auto&, const auto&, int64_t n, const auto&...) {
  return Grid{cdiv(n, int64_t(c.BLOCK))};
});
struct LookCfg {
  int BP = 16, R = 4, L = 4;
};
auto lookup =
    kernel("user_raft_lookup", [](const LookCfg& c, Ptr<const half> c0, Ptr<const half> c1, Ptr<const half> c2,
                                  Ptr<const half> c3, Tensor<const float, 3> flow, Tensor<half, 3> out, I32 H, I32 W) {
      // flow [B, H W, 2] in pixels; out [B, H W, L (2R+1)^2]
      const int N = (2 * c.R + 1) * (2 * c.R + 1);
      auto p0 = program_id(0) * c.BP, b = program_id(1);
      auto p = p0 + arange(0, c.BP);
      auto fx = squeeze(flow.load({b, p0, 0}, {c.BP, 1}), 1), fy = squeeze(flow.load({b, p0, 1}, {c.BP, 1}), 1);
      auto cx = cast(p % W, f32) + fx, cy = cast(p / W, f32) + fy;
      auto j = arange(0, N);
      const Ptr<const half> levels[] = {c0, c1, c2, c3};
      for (int l = 0; l < c.L; ++l) {
        const int f = 1 << l;
        auto h = H / f, w = W / f;
        auto x = (cx * (1.f / f)).col() + cast(j / (2 * c.R + 1) - c.R, f32).row();  // x outside, as RAFT has it
        auto y = (cy * (1.f / f)).col() + cast(j % (2 * c.R + 1) - c.R, f32).row();
        auto gx = floor(x), gy = floor(y);
        auto ix = cast(gx, i32), iy = cast(gy, i32);
        auto ax = x - gx, ay = y - gy;
        auto plane = levels[l] + (cast(b * (H * W) + p, i64) * cast(h * w, i64)).col();
        Tile v = zeros({c.BP, N}, f32);
        for (int dy = 0; dy < 2; ++dy)
          for (int dx = 0; dx < 2; ++dx) {
            auto jx = ix + dx, jy = iy + dy;
            auto inside = (jx >= 0) & (jx < w) & (jy >= 0) & (jy < h) & (p < H * W).col();
            auto t = cast(load(plane + (jy * w + jx), {.mask = inside}), f32);
            v += t * (dx ? ax : 1.f - ax) * (dy ? ay : 1.f - ay);
          }
        out.store({b, p0, l * N}, expand_dims(cast(v, f16), 0));
      }
    }).grid([](const LookCfg& c, const auto&, const auto&, const auto&, const auto&, const auto& f, const auto&...) {
      return Grid{cdiv(f.shape[1], c.BP), f.shape[0]};
    });
Register r4("raft_lookup", [](Env& e) {
  CorrCfg c;
  if (!e.big) c = {32, 32, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  LookCfg lc;
  lc.BP = e.field("BP", lc.BP);
  const int B = e.big ? 4 : 2, H = e.big ? 48 : 9, W = e.big ? 64 : 13, P = H * W, D = e.big ? 256 : 40, R = 4, N = 81;
  auto a = random<half>(e, size_t(B) * P * D), b = random<half>(e, size_t(B) * P * D);
  auto flow = random<float>(e, size_t(B) * P * 2, -6, 6);
  std::vector<Array<half>> level;
  std::vector<int> hs, ws;
  for (int l = 0; l < 4; ++l) {
    hs.push_back(H >> l), ws.push_back(W >> l);
    level.push_back(constant<half>(e, size_t(B) * P * hs[l] * ws[l], NAN));
  }
  auto out = constant<half>(e, size_t(B) * P * 4 * N, NAN);
  Job j;
  j.inTurn = true;
  j.gflop = 2e-9 * B * P * P * D;
  j.add(corr, c, a.view(B, P, D), b.view(B, P, D), level[0].view(B, P, P), float(1 / std::sqrt(double(D))));
  for (int l = 0; l < 3; ++l) j.add(pool, PoolCfg{}, level[l].p, level[l + 1].p, int64_t(level[l + 1].n), hs[l], ws[l]);
  j.add(lookup, lc, level[0].p, level[1].p, level[2].p, level[3].p, flow.view(B, P, 2), out.view(B, P, 4 * N), H, W);
  j.check = [=] {
    std::vector<double> want(size_t(B) * P * 4 * N);
    for (int bb = 0; bb < B; ++bb)
      for (int p = 0; p < P; ++p) {
        std::vector<double> m(P);
        for (int x = 0; x < P; ++x) {
          for (int d = 0; d < D; ++d) m[x] += a[(size_t(bb) * P + p) * D + d] * b[(size_t(bb) * P + x) * D + d];
          m[x] = in_half(m[x] / std::sqrt(double(D)));
        }
        for (int l = 0; l < 4; ++l) {
          const int h = hs[l], w = ws[l];
          for (int k = 0; k < N; ++k) {
            const float x = (p % W + float(flow[(size_t(bb) * P + p) * 2])) / (1 << l) + k / 9 - R,
                        y = (p / W + float(flow[(size_t(bb) * P + p) * 2 + 1])) / (1 << l) + k % 9 - R;
            const int ix = int(std::floor(x)), iy = int(std::floor(y));
            double v = 0;
            for (int t = 0; t < 4; ++t) {
              const int jx = ix + t % 2, jy = iy + t / 2;
              if (jx < 0 || jx >= w || jy < 0 || jy >= h) continue;
              v += m[jy * w + jx] * (t % 2 ? x - ix : 1 - (x - ix)) * (t / 2 ? y - iy : 1 - (y - iy));
            }
            want[(size_t(bb) * P + p) * 4 * N + l * N + k] = v;
          }
          if (l == 3) break;
          const size_t some = size_t(hs[l + 1]) * ws[l + 1];
          std::vector<double> next(some);
          for (int y = 0; y < hs[l + 1]; ++y)
            for (int x = 0; x < ws[l + 1]; ++x)
              next[y * ws[l + 1] + x] = in_half((m[2 * y * w + 2 * x] + m[2 * y * w + 2 * x + 1] +
                                                 m[(2 * y + 1) * w + 2 * x] + m[(2 * y + 1) * w + 2 * x + 1]) /
                                                4);
          m = next;
        }
      }
    return agree(out.now(), want, 3e-3, 3e-3);
  };
  return j;
});
}  // namespace beside_triton_lookups
}  // namespace users
