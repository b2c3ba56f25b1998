// swept_recurrences.cpp - linear attention one token after the other, as flash-linear-attention's fused recurrent
// kernels do it: pointers that walk from token to token, states in registers, one to eight warps. q, k, gates
// [B, T, H, K], v, o [B, T, H, V]; columns of values and blocks of keys are split over programs.
#include "tests/users/use.h"
namespace users {
namespace swept_recurrences {

struct StepsCfg {
  int K = 128, V = 128, H = 32, BK = 64, BV = 64, stages = 3, warps = 1;
};
StepsCfg steps_cfg(Env& e, StepsCfg c) {
  if (!e.big) c = {24, 20, 2, 16, 16, 2, 1};
  c.BK = e.field("BK", c.BK), c.BV = e.field("BV", c.BV);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  return c;
}

// --- a gate for every key: h = e^gk h + k v', o = h q; a sum over each block of keys, added up by another kernel
auto rec_gated =
    kernel("user_rec_gated", [](const StepsCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                                Ptr<const float> gates, Ptr<float> o, Ptr<float> ht, F32 scale, I32 T, I32 B) {
      num_warps(c.warps);
      auto i = program_id(1) * c.BK + arange(0, c.BK), n = program_id(0) * c.BV + arange(0, c.BV);
      auto b = program_id(2) / c.H, head = program_id(2) % c.H;
      auto row = b * T * c.H + head;
      Tile pq = q + row * c.K + i, pk = k + row * c.K + i, pg = gates + row * c.K + i;
      Tile pv = v + row * c.V + n, po = o + (program_id(1) * B * T * c.H + row) * c.V + n;
      auto inside = (n < c.V).col() & (i < c.K).row();
      Tile h = zeros({c.BV, c.BK}, f32);
      for (auto t : range(0, T, {.stages = c.stages})) {
        auto bk = cast(load(pk, {.mask = i < c.K, .other = 0.f}), f32);
        auto bv = cast(load(pv, {.mask = n < c.V, .other = 0.f}), f32);
        auto bq = cast(load(pq, {.mask = i < c.K, .other = 0.f}), f32) * scale;
        auto bg = load(pg, {.mask = i < c.K, .other = 0.f});
        h = h * exp(bg).row();
        h += bk.row() * bv.col();
        store(po, squeeze(sum(h * bq.row(), axis(1)), 1), {.mask = n < c.V});
        pq += c.H * c.K;
        pk += c.H * c.K;
        pg += c.H * c.K;
        pv += c.H * c.V;
        po += c.H * c.V;
      }
      store(ht + program_id(2) * (c.K * c.V) + (i.row() * c.V + n.col()), h, {.mask = inside});
    }).grid([](const StepsCfg& c, auto, auto, auto, auto, auto, auto, float, int, int B) {
      return Grid{cdiv(c.V, c.BV), cdiv(c.K, c.BK), B * c.H};
    });
struct Rows {
  int B, T;
  size_t n;
  Rows(const Env& e, const StepsCfg& c) : B(e.big ? 4 : 2), T(e.big ? 2048 : 19), n(size_t(B) * T * c.H) {}
};
Register r1("rec_gated", [](Env& e) {
  const auto c = steps_cfg(e, {});
  const Rows r(e, c);
  const int NK = cdiv(c.K, c.BK);
  auto q = random<bfloat16>(e, r.n * c.K), k = random<bfloat16>(e, r.n * c.K), v = random<bfloat16>(e, r.n * c.V);
  auto g = random<float>(e, r.n * c.K, -.5, 0);
  auto o = constant<float>(e, r.n * c.V * NK, NAN), ht = constant<float>(e, size_t(r.B) * c.H * c.K * c.V, NAN);
  Job j;
  j.mbytes = 1e-6 * r.n * (c.K * 8. + c.V * (2. + 4. * NK));
  j.add(rec_gated, c, q.p, k.p, v.p, g.p, o.p, ht.p, .25f, r.T, r.B);
  j.check = [=] {
    std::vector<double> want(r.n * c.V), ends(ht.n), got(want.size());
    for (int bh = 0; bh < r.B * c.H; ++bh)
      for (int t = 0; t < r.T; ++t) {
        const size_t row = (size_t(bh / c.H) * r.T + t) * c.H + bh % c.H;
        for (int i = 0; i < c.K; ++i)
          for (int n = 0; n < c.V; ++n) {
            double& s = ends[(size_t(bh) * c.K + i) * c.V + n];
            s = s * std::exp(g[row * c.K + i]) + k[row * c.K + i] * v[row * c.V + n];
            want[row * c.V + n] += .25 * q[row * c.K + i] * s;
          }
      }
    const auto parts = o.now();
    for (size_t i = 0; i < parts.size(); ++i) got[i % got.size()] += parts[i];
    auto wrong = agree(got, want, 1e-4, 1e-4);
    return wrong.empty() ? agree(ht.now(), ends, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- gradients of the same: those of q go forward with the states, those of k and v back with the states' gradients
auto rec_gated_bwd =
    kernel("user_rec_gated_bwd", [](const StepsCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                    Ptr<const bfloat16> v, Ptr<const float> gates, Ptr<const bfloat16> dO,
                                    Ptr<float> dQ, Ptr<float> dK, Ptr<float> dV, F32 scale, I32 T, I32 B) {
      num_warps(c.warps);
      auto i = program_id(1) * c.BK + arange(0, c.BK), n = program_id(0) * c.BV + arange(0, c.BV);
      auto b = program_id(2) / c.H, head = program_id(2) % c.H;
      auto row = b * T * c.H + head, all = B * T * c.H;
      Tile pk = k + row * c.K + i, pg = gates + row * c.K + i, pv = v + row * c.V + n, po = dO + row * c.V + n;
      Tile pdq = dQ + (program_id(0) * all + row) * c.K + i;
      Tile h = zeros({c.BV, c.BK}, f32);
      for (auto t : range(0, T, {.stages = c.stages})) {
        auto bk = cast(load(pk, {.mask = i < c.K, .other = 0.f}), f32);
        auto bv = cast(load(pv, {.mask = n < c.V, .other = 0.f}), f32);
        auto bo = cast(load(po, {.mask = n < c.V, .other = 0.f}), f32);
        h = h * exp(load(pg, {.mask = i < c.K, .other = 0.f})).row();
        h += bk.row() * bv.col();
        store(pdq, squeeze(sum(h * bo.col(), axis(0)), 0) * scale, {.mask = i < c.K});
        pk += c.H * c.K;
        pg += c.H * c.K;
        pv += c.H * c.V;
        po += c.H * c.V;
        pdq += c.H * c.K;
      }
      auto last = row + (T - 1) * c.H;
      Tile pq = q + last * c.K + i, pdk = dK + (program_id(0) * all + last) * c.K + i;
      Tile pdv = dV + (program_id(1) * all + last) * c.V + n;
      pk = k + last * c.K + i, pg = gates + last * c.K + i, pv = v + last * c.V + n, po = dO + last * c.V + n;
      Tile dh = zeros({c.BK, c.BV}, f32);
      for (auto t : range(0, T, {.stages = c.stages})) {
        auto bq = cast(load(pq, {.mask = i < c.K, .other = 0.f}), f32) * scale;
        auto bk = cast(load(pk, {.mask = i < c.K, .other = 0.f}), f32);
        auto bv = cast(load(pv, {.mask = n < c.V, .other = 0.f}), f32);
        auto bo = cast(load(po, {.mask = n < c.V, .other = 0.f}), f32);
        dh += bq.col() * bo.row();
        store(pdk, squeeze(sum(dh * bv.row(), axis(1)), 1), {.mask = i < c.K});
        store(pdv, squeeze(sum(dh * bk.col(), axis(0)), 0), {.mask = n < c.V});
        dh *= exp(load(pg, {.mask = i < c.K, .other = 0.f})).col();
        pq += -c.H * c.K;
        pk += -c.H * c.K;
        pg += -c.H * c.K;
        pv += -c.H * c.V;
        po += -c.H * c.V;
        pdk += -c.H * c.K;
        pdv += -c.H * c.V;
      }
    }).grid([](const StepsCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int, int B) {
      return Grid{cdiv(c.V, c.BV), cdiv(c.K, c.BK), B * c.H};
    });
Register r2("rec_gated_bwd", [](Env& e) {
  const auto c = steps_cfg(e, {.BK = 32, .BV = 32});
  const Rows r(e, c);
  const int NK = cdiv(c.K, c.BK), NV = cdiv(c.V, c.BV);
  auto q = random<bfloat16>(e, r.n * c.K), k = random<bfloat16>(e, r.n * c.K), v = random<bfloat16>(e, r.n * c.V);
  auto g = random<float>(e, r.n * c.K, -.5, 0);
  auto dO = random<bfloat16>(e, r.n * c.V);
  auto dq = constant<float>(e, r.n * c.K * NV, NAN), dk = constant<float>(e, dq.n, NAN);
  auto dv = constant<float>(e, r.n * c.V * NK, NAN);
  Job j;
  j.mbytes = 1e-6 * (r.n * (c.K * 14. + c.V * 6.) + 8. * dq.n + 4. * dv.n);
  j.add(rec_gated_bwd, c, q.p, k.p, v.p, g.p, dO.p, dq.p, dk.p, dv.p, .25f, r.T, r.B);
  j.check = [=]() -> std::string {
    std::vector<double> wq(r.n * c.K), wk(r.n * c.K), wv(r.n * c.V);
    for (int bh = 0; bh < r.B * c.H; ++bh) {
      std::vector<double> s(c.K * c.V), ds(c.K * c.V);
      auto at = [&](int t) { return (size_t(bh / c.H) * r.T + t) * c.H + bh % c.H; };
      for (int t = 0; t < r.T; ++t)
        for (int i = 0; i < c.K; ++i)
          for (int n = 0; n < c.V; ++n) {
            double& x = s[i * c.V + n];
            x = x * std::exp(g[at(t) * c.K + i]) + k[at(t) * c.K + i] * v[at(t) * c.V + n];
            wq[at(t) * c.K + i] += .25 * x * dO[at(t) * c.V + n];
          }
      for (int t = r.T - 1; t >= 0; --t)
        for (int i = 0; i < c.K; ++i)
          for (int n = 0; n < c.V; ++n) {
            double& x = ds[i * c.V + n];
            x += .25 * q[at(t) * c.K + i] * dO[at(t) * c.V + n];
            wk[at(t) * c.K + i] += x * v[at(t) * c.V + n], wv[at(t) * c.V + n] += x * k[at(t) * c.K + i];
            x *= std::exp(g[at(t) * c.K + i]);
          }
    }
    auto added = [](const std::vector<float>& parts, size_t n) {
      std::vector<double> sum(n);
      for (size_t i = 0; i < parts.size(); ++i) sum[i % n] += parts[i];
      return sum;
    };
    if (auto wrong = agree(added(dq.now(), wq.size()), wq, 1e-4, 1e-4); !wrong.empty()) return "q: " + wrong;
    if (auto wrong = agree(added(dk.now(), wk.size()), wk, 1e-4, 1e-4); !wrong.empty()) return "k: " + wrong;
    return agree(added(dv.now(), wv.size()), wv, 1e-4, 1e-4);
  };
  return j;
});

// --- the gated delta rule: q and k are normalised here, all keys in a program, a few columns of values in each
auto rec_delta =
    kernel("user_rec_delta", [](const StepsCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                                Ptr<const float> g, Ptr<const bfloat16> beta, Ptr<bfloat16> o, Ptr<const float> h0,
                                Ptr<float> ht, F32 scale, I32 T, I32) {
      num_warps(c.warps);
      auto i = arange(0, c.BK), n = program_id(0) * c.BV + arange(0, c.BV);
      auto b = program_id(1) / c.H, head = program_id(1) % c.H;
      auto row = b * T * c.H + head;
      Tile pq = q + row * c.K + i, pk = k + row * c.K + i, pv = v + row * c.V + n, po = o + row * c.V + n;
      Tile pg = g + row, pb = beta + row;
      auto inside = (i < c.K).col() & (n < c.V).row();
      auto at = program_id(1) * (c.K * c.V) + (i.col() * c.V + n.row());
      Tile h = load(h0 + at, {.mask = inside, .other = 0.f});
      for (auto t : range(0, T, {.stages = c.stages})) {
        Tile bq = cast(load(pq, {.mask = i < c.K, .other = 0.f}), f32);
        Tile bk = cast(load(pk, {.mask = i < c.K, .other = 0.f}), f32);
        Tile bv = cast(load(pv, {.mask = n < c.V, .other = 0.f}), f32);
        auto bg = load(pg);
        auto bb = cast(load(pb), f32);
        bq = bq * rsqrt(sum(bq * bq) + 1e-6f) * scale;
        bk = bk * rsqrt(sum(bk * bk) + 1e-6f);
        h *= exp(bg);
        bv -= squeeze(sum(h * bk.col(), axis(0)), 0);
        bv *= bb;
        h += bk.col() * bv.row();
        store(po, cast(squeeze(sum(h * bq.col(), axis(0)), 0), bf16), {.mask = n < c.V});
        pq += c.H * c.K;
        pk += c.H * c.K;
        pv += c.H * c.V;
        po += c.H * c.V;
        pg += c.H;
        pb += c.H;
      }
      store(ht + at, h, {.mask = inside});
    }).grid([](const StepsCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int, int B) {
      return Grid{cdiv(c.V, c.BV), B * c.H};
    });
Register r3("rec_delta", [](Env& e) {
  auto c = steps_cfg(e, {.BK = 128, .BV = 8});
  if (!e.big) c.BK = 32, c.BV = 8;
  const Rows r(e, c);
  auto q = random<bfloat16>(e, r.n * c.K), k = random<bfloat16>(e, r.n * c.K), v = random<bfloat16>(e, r.n * c.V);
  auto g = random<float>(e, r.n, -.5, 0);
  auto beta = random<bfloat16>(e, r.n, .1, .9);
  auto h0 = random<float>(e, size_t(r.B) * c.H * c.K * c.V);
  auto o = constant<bfloat16>(e, r.n * c.V, NAN);
  auto ht = constant<float>(e, h0.n, NAN);
  Job j;
  j.mbytes = 1e-6 * r.n * (4. * c.K + 4. * c.V + 6);
  j.add(rec_delta, c, q.p, k.p, v.p, g.p, beta.p, o.p, h0.p, ht.p, .25f, r.T, r.B);
  j.check = [=] {
    std::vector<double> want(o.n), ends(h0.h.begin(), h0.h.end());
    for (int bh = 0; bh < r.B * c.H; ++bh)
      for (int t = 0; t < r.T; ++t) {
        const size_t row = (size_t(bh / c.H) * r.T + t) * c.H + bh % c.H;
        double qq = 1e-6, kk = 1e-6;
        for (int i = 0; i < c.K; ++i)
          qq += q[row * c.K + i] * q[row * c.K + i], kk += k[row * c.K + i] * k[row * c.K + i];
        qq = .25 / std::sqrt(qq), kk = 1 / std::sqrt(kk);
        for (int n = 0; n < c.V; ++n) {
          double error = v[row * c.V + n];
          auto s = [&](int i) -> double& { return ends[(size_t(bh) * c.K + i) * c.V + n]; };
          for (int i = 0; i < c.K; ++i) error -= (s(i) *= std::exp(g[row])) * k[row * c.K + i] * kk;
          for (int i = 0; i < c.K; ++i)
            want[row * c.V + n] += (s(i) += k[row * c.K + i] * kk * error * beta[row]) * q[row * c.K + i] * qq;
        }
      }
    auto wrong = agree(o.now(), want, 5e-3, 5e-3);
    return wrong.empty() ? agree(ht.now(), ends, 1e-4, 1e-4) : wrong;
  };
  return j;
});

}  // namespace swept_recurrences
}  // namespace users
