// nested_gradients.cpp - gradients of Kimi delta attention between chunks: a loop over keys with one over values
// inside, five products each, of which some happen for the first block of keys only.
#include "tests/users/use.h"
namespace users {
namespace nested_gradients {
struct DeltaBackCfg {
  int BT = 64, BK = 32, BV = 64, K = 128, V = 128, warps = 8, stages = 2;
};
auto delta_back = kernel("user_delta_back",
                         [](const DeltaBackCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                            Ptr<const bfloat16> v_new, Ptr<const float> g, Ptr<const bfloat16> beta,
                            Ptr<const bfloat16> A, Ptr<const bfloat16> h, Ptr<const bfloat16> dO,
                            Ptr<const bfloat16> dh, Ptr<float> dq, Ptr<float> dk, Ptr<const bfloat16> dv,
                            Ptr<bfloat16> dv2, Ptr<float> dg, Ptr<float> db, Ptr<float> dA, F32 scale, I32 T, I32 H) {
                           num_warps(c.warps);
                           const int K = c.K, V = c.V;
                           auto it = program_id(0), b = program_id(1) / H, head = program_id(1) % H;
                           auto bos = cast(b, i64) * T, one = bos * H + head;
                           auto state = cast((b * cdiv(T, c.BT) + it) * H + head, i64) * (K * V);
                           auto t = it * c.BT + arange(0, c.BT), i = arange(0, c.BT);
                           auto in = t < T;
                           auto last = min(T, it * c.BT + c.BT) - 1;
                           auto bb = cast(load(beta + one + t * H, {.mask = in, .other = 0}), f32);
                           auto a = load(A + one * c.BT + (i.col() + t.row() * (H * c.BT)),
                                         {.mask = in.row(), .other = 0});  // A transposed
                           Tile bdA = zeros({c.BT, c.BT}, f32), bdb = zeros({c.BT}, f32);
                           for (auto k0 : range(0, K, c.BK)) {
                             auto d = k0 + arange(0, c.BK);
                             auto kin = in.col() & (d < K).row();
                             auto kat = one * K + (t.col() * (H * K) + d.row());
                             auto bk = cast(load(k + kat, {.mask = kin, .other = 0}), f32),
                                  bg = load(g + kat, {.mask = kin, .other = 0});
                             auto gn = load(g + one * K + (last * (H * K) + d), {.mask = d < K, .other = 0});
                             Tile bdq = zeros({c.BT, c.BK}, f32), bdk = zeros({c.BT, c.BK}, f32),
                                  bdw = zeros({c.BT, c.BK}, f32), dgk = zeros({c.BK}, f32);
                             for (auto v0 : range(0, V, c.BV, {.stages = c.stages})) {
                               auto e = v0 + arange(0, c.BV);
                               auto vin = in.col() & (e < V).row(), hin = (e < V).col() & (d < K).row();
                               auto vat = one * V + (t.col() * (H * V) + e.row());
                               auto hat = state + (e.col() * K + d.row());
                               auto bvn = load(v_new + vat, {.mask = vin, .other = 0}),
                                    go = load(dO + vat, {.mask = vin, .other = 0});
                               auto bh = load(h + hat, {.mask = hin, .other = 0}),
                                    bdh = load(dh + hat, {.mask = hin, .other = 0});
                               auto bdv = load(dv + vat, {.mask = vin, .other = 0});
                               dgk += squeeze(sum(cast(bh, f32) * cast(bdh, f32), axis(0)), 0);
                               bdq = dot(go, bh, bdq);
                               bdk = dot(bvn, bdh, bdk);
                               bdw = dot(bdv, bh, bdw);
                               if_(k0 == 0, [&] {
                                 auto bv = load(v + vat, {.mask = vin, .other = 0});
                                 bdA = dot(bdv, trans(bv), bdA);
                                 auto dvb = dot(a, bdv);
                                 store(dv2 + vat, cast(dvb * bb.col(), bf16), {.mask = vin});
                                 bdb += squeeze(sum(dvb * cast(bv, f32), axis(1)), 1);
                               });
                             }
                             auto ge = exp2(bg), gb = ge * bb.col();
                             dgk *= exp2(gn);
                             bdq = bdq * ge * scale;
                             bdk = bdk * where(in.col(), exp2(gn.row() - bg), 0.f);
                             auto kg = bk * ge;
                             auto w = cast(-bdw, bf16);
                             bdA = dot(w, trans(cast(kg, bf16)), bdA);
                             auto dkgb = dot(a, w);
                             bdb += squeeze(sum(dkgb * kg, axis(1)), 1);
                             auto bq = cast(load(q + kat, {.mask = kin, .other = 0}), f32);
                             auto kdk = bk * bdk;
                             dgk += squeeze(sum(kdk, axis(0)), 0);
                             auto bdg = bq * bdq - kdk + cast(t == last, f32).col() * dgk.row() + kg * dkgb * bb.col();
                             bdk = bdk + dkgb * gb;
                             store(dq + kat, bdq, {.mask = kin});
                             store(dk + kat, bdk, {.mask = kin});
                             store(dg + kat, bdg, {.mask = kin});
                           }
                           auto lower = (t.col() > t.row()) & in.col() & in.row();
                           bdA = where(lower, bdA * bb.row(), 0.f);
                           bdA = dot(cast(bdA, bf16), a);
                           bdA = dot(a, cast(bdA, bf16));
                           bdA = where(lower, -bdA, 0.f);
                           store(dA + one * c.BT + (t.col() * (H * c.BT) + i.row()), bdA, {.mask = in.col()});
                           store(db + one + t * H, bdb, {.mask = in});
                         })
                      .grid([](const DeltaBackCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto,
                               auto, auto, auto, auto, auto, auto, float, int T, int H) {
                        return Grid{cdiv(T, c.BT), 2 * H};
                      });
Register r1("delta_back", [](Env& e) {
  DeltaBackCfg c;
  if (!e.big) c = {16, 32, 16, 40, 24, 4, 2};
  c.BT = e.field("BT", c.BT), c.BK = e.field("BK", c.BK), c.BV = e.field("BV", c.BV), c.K = e.field("K", c.K),
  c.V = e.field("V", c.V);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 8192 : 37), H = e.big ? 16 : 2, K = c.K, V = c.V, BT = c.BT,
            NT = (T + BT - 1) / BT;
  const size_t n = size_t(B) * T * H, ns = size_t(B) * NT * H * K * V;
  auto q = random<bfloat16>(e, n * K), k = random<bfloat16>(e, n * K, -.4, .4), v = random<bfloat16>(e, n * V),
       vn = random<bfloat16>(e, n * V), g_o = random<bfloat16>(e, n * V), dv = random<bfloat16>(e, n * V);
  auto beta = random<bfloat16>(e, n, 0, 1), A = random<bfloat16>(e, n * BT, -.3, .3),
       h = random<bfloat16>(e, ns, -.3, .3), dh = random<bfloat16>(e, ns, -.3, .3);
  std::vector<float> sums(std::min<size_t>(n * K, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = (i / (size_t(H) * K) % T % BT == 0 || i < size_t(H) * K ? 0.f : sums[i - size_t(H) * K]) -
              float(.1 * e.uniform());
  auto g = repeated(e, n * K, sums);
  auto out = [&](size_t m) { return constant<float>(e, m, NAN); };
  auto dq = out(n * K), dk = out(n * K), dg = out(n * K), db = out(n), dA = out(n * BT);
  auto dv2 = constant<bfloat16>(e, n * V, NAN);
  Job j;
  j.gflop = 2e-9 * n * (3. * K * V + 2 * BT * (V + K));
  j.add(delta_back, c, q.p, k.p, v.p, vn.p, g.p, beta.p, A.p, h.p, g_o.p, dh.p, dq.p, dk.p, dv.p, dv2.p, dg.p, db.p,
        dA.p, .2f, T, H);
  j.check = [=] {
    std::vector<double> wq(n * K), wk(n * K), wg(n * K), wb(n), wA(n * BT), wv(n * V);
    for (int z = 0; z < B; ++z)
      for (int hd = 0; hd < H; ++hd)
        for (int c0 = 0; c0 < NT; ++c0) {
          const int t0 = c0 * BT, L = std::min(BT, T - t0);
          auto row = [&](int i) { return (size_t(z) * T + t0 + i) * H + hd; };
          const size_t st = ((size_t(z) * NT + c0) * H + hd) * K * V;
          auto At = [&](int i, int s) { return A[row(s) * BT + i]; };
          std::vector<double> D(BT * BT), w(L * K), dgk(K);
          for (int i = 0; i < L; ++i)
            for (int e2 = 0; e2 < V; ++e2) {
              double x = 0;
              for (int s = 0; s < L; ++s) x += At(i, s) * dv[row(s) * V + e2];
              wv[row(i) * V + e2] = x * beta[row(i)], wb[row(i)] += x * v[row(i) * V + e2];
            }
          for (int i = 0; i < L; ++i)
            for (int s = 0; s < L; ++s)
              for (int e2 = 0; e2 < V; ++e2) D[i * BT + s] += dv[row(i) * V + e2] * v[row(s) * V + e2];
          for (int d = 0; d < K; ++d) {
            const double gn = g[row(L - 1) * K + d];
            for (int e2 = 0; e2 < V; ++e2) dgk[d] += h[st + e2 * K + d] * dh[st + e2 * K + d];
            dgk[d] *= std::exp2(gn);
            for (int i = 0; i < L; ++i) {
              double xq = 0, xk = 0, xw = 0;
              for (int e2 = 0; e2 < V; ++e2) {
                xq += g_o[row(i) * V + e2] * h[st + e2 * K + d], xk += vn[row(i) * V + e2] * dh[st + e2 * K + d];
                xw += dv[row(i) * V + e2] * h[st + e2 * K + d];
              }
              const size_t at = row(i) * K + d;
              wq[at] = xq * std::exp2(g[at]) * .2, wk[at] = xk * std::exp2(gn - g[at]), w[i * K + d] = -xw;
              dgk[d] += k[at] * wk[at];
            }
          }
          for (int i = 0; i < L; ++i)
            for (int s = 0; s < L; ++s)
              for (int d = 0; d < K; ++d)
                D[i * BT + s] += w[i * K + d] * k[row(s) * K + d] * std::exp2(g[row(s) * K + d]);
          for (int i = 0; i < L; ++i)
            for (int d = 0; d < K; ++d) {
              const size_t at = row(i) * K + d;
              double x = 0;
              for (int s = 0; s < L; ++s) x += At(i, s) * w[s * K + d];
              const double kg = k[at] * std::exp2(g[at]);
              wb[row(i)] += x * kg;
              wg[at] = q[at] * wq[at] - k[at] * wk[at] + (i == L - 1 ? dgk[d] : 0) + kg * x * beta[row(i)];
              wk[at] += x * std::exp2(g[at]) * beta[row(i)];
            }
          std::vector<double> E(BT * BT), F(BT * BT);
          for (int i = 0; i < L; ++i)
            for (int s = 0; s < L; ++s)
              for (int m = 0; m < i; ++m) E[i * BT + s] += D[i * BT + m] * beta[row(m)] * At(m, s);
          for (int i = 0; i < L; ++i)
            for (int s = 0; s < i; ++s) {
              for (int m = 0; m < L; ++m) F[i * BT + s] += At(i, m) * E[m * BT + s];
              wA[row(i) * BT + s] = -F[i * BT + s];
            }
        }
    std::string wrong;
    auto look = [&](const auto& got, const std::vector<double>& want, const char* name, double abs) {
      auto one = agree(got.now(), want, abs, 4e-2);
      if (!one.empty()) wrong += std::string(name) + " " + one + "; ";
    };
    look(dq, wq, "dq", 5e-2), look(dk, wk, "dk", 1e-1), look(dg, wg, "dg", 1e-1), look(db, wb, "db", 1e-1),
        look(dv2, wv, "dv", 5e-2);
    std::vector<double> rows = wA;
    look(dA, rows, "dA", 2e-1);
    return wrong;
  };
  return j;
});
}  // namespace nested_gradients
}  // namespace users
