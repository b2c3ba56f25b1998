// library_ports.cpp - more kernels of libraries in their own shape: sums over residual streams behind a table of
// pointers, gated slots, sticks broken backwards, products of reflections, a router's sort.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace library_ports {

// --- attention over the residual streams of earlier layers (one tensor each, behind a table of addresses): a program a
// token
struct ResidualsCfg {
  int BL = 4, BD = 1024, warps = 4;
};
auto residuals =
    kernel("user_residuals",
           [](const ResidualsCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> r0, Ptr<const bfloat16> r1,
              Ptr<const bfloat16> r2, Ptr<const bfloat16> r3, Ptr<const bfloat16> r4, Ptr<const bfloat16> r5,
              Ptr<const bfloat16> r6, Ptr<const bfloat16> r7, Ptr<const bfloat16> w, Ptr<const bfloat16> ow,
              Ptr<bfloat16> o, Ptr<float> rstd, Ptr<float> logit, Ptr<float> lse, I32 N, I32 L, I32 D, F32 eps,
              F32 scale) {
             num_warps(c.warps);
             auto n = cast(program_id(0), i64);
             auto d = arange(0, c.BD);
             auto in = d < D;
             auto qw = cast(load(q + d, {.mask = in}), f32) * cast(load(w + d, {.mask = in}), f32);
             Tile top = to_scalar(full({1}, -INFINITY, f32)), total = to_scalar(zeros({1}, f32)),
                  acc = zeros({c.BD}, f32);
             for (auto i : range(cdiv(L, c.BL))) {
               auto l = i * c.BL + arange(0, c.BL);
               auto ok = l < L;
               Tile rows = r0 + zeros({c.BL}, i32);
               const std::array<Expr, 7> others{r1, r2, r3, r4, r5, r6, r7};
               for (int x = 1; x < 8; ++x) rows = where(l == x, others[x - 1], rows);
               auto v = cast(load(rows.col() + (n * D + d.row()),
                                  {.mask = ok.col() & in.row(), .other = 0, .cache = Cache::streaming}),
                             f32);
               auto r = rsqrt(squeeze(sum(v * v, axis(1)), 1) / cast(D, f32) + eps);
               auto g = squeeze(sum(v * qw.row(), axis(1)), 1) * r;
               auto s = where(ok, g * scale, -INFINITY);
               auto now = max(top, max(s));
               auto keep = exp(top - now);
               auto p = exp(s - now);
               total = total * keep + sum(p);
               acc = acc * keep + squeeze(sum(p.col() * v, axis(0)), 0);
               top = now;
               store(rstd + n + cast(l, i64) * N, r, {.mask = ok});
               store(logit + n + cast(l, i64) * N, g, {.mask = ok});
             }
             store(lse + n, top + log(total));
             acc = acc / total;
             auto norm = rsqrt(sum(where(in, acc * acc, 0.f)) / cast(D, f32) + eps);
             store(o + (n * D + d), cast(acc * norm * cast(load(ow + d, {.mask = in}), f32), bf16), {.mask = in});
           })
        .grid([](const ResidualsCfg&, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto,
                 auto, auto, int N, auto...) { return Grid{N}; });
Register r1("residuals", [](Env& e) {
  ResidualsCfg c;
  const int N = e.big ? 16384 : 9, L = e.field("L", e.big ? 8 : 5), D = e.field("D", e.big ? 2048 : 88);
  c.BL = e.field("BL", c.BL), c.BD = e.field("BD", e.big ? 2048 : 128), c.warps = e.field("warps", c.warps);
  auto q = random<bfloat16>(e, D), w = random<bfloat16>(e, D), ow = random<bfloat16>(e, D);
  auto all = random<bfloat16>(e, size_t(L) * N * D);
  auto at = [&](int l) { return all.p + size_t(l < L ? l : 0) * N * D; };
  auto o = constant<bfloat16>(e, size_t(N) * D, NAN);
  auto rstd = constant<float>(e, size_t(L) * N, NAN), logit = constant<float>(e, size_t(L) * N, NAN),
       lse = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 2e-6 * N * D * (L + 1);
  j.add(residuals, c, q.p, at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), w.p, ow.p, o.p, rstd.p, logit.p,
        lse.p, N, L, D, 1e-5f, .3f);
  j.check = [=] {
    std::vector<double> want(size_t(N) * D), wl(N), wg(size_t(L) * N);
    for (int n = 0; n < N; ++n) {
      std::vector<double> s(L), out(D);
      double total = 0;
      for (int l = 0; l < L; ++l) {
        double ss = 0, g = 0;
        for (int d = 0; d < D; ++d) {
          const double x = all[(size_t(l) * N + n) * D + d];
          ss += x * x, g += x * q[d] * w[d];
        }
        wg[size_t(l) * N + n] = g / std::sqrt(ss / D + 1e-5), s[l] = std::exp(.3 * wg[size_t(l) * N + n]),
                           total += s[l];
      }
      double ss = 0;
      for (int d = 0; d < D; ++d) {
        for (int l = 0; l < L; ++l) out[d] += s[l] / total * all[(size_t(l) * N + n) * D + d];
        ss += out[d] * out[d];
      }
      for (int d = 0; d < D; ++d) want[size_t(n) * D + d] = out[d] / std::sqrt(ss / D + 1e-5) * ow[d];
      wl[n] = std::log(total);
    }
    auto wrong = agree(o.now(), want, 2e-2, 2e-2);
    if (wrong.empty()) wrong = agree(logit.now(), wg, 1e-3, 1e-3);
    return wrong.empty() ? agree(lse.now(), wl, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- gated slots (GSA): what a chunk's earlier blocks of 16 hand to a block as a product, the block itself row by row
struct SlotsCfg {
  int BC = 16, NC = 4, BV = 64, warps = 4;
};
template <class G>
auto slots_kernel(const char* name) {
  return kernel(name,
                [](const SlotsCfg& c, Ptr<const bfloat16> v, Ptr<const G> g, Ptr<bfloat16> o, Ptr<const bfloat16> A,
                   I32 T, I32 H, I32 V) {
                  num_warps(c.warps);
                  const int BT = c.BC * c.NC;
                  auto NV = cdiv(V, c.BV);
                  auto iv = program_id(0) % NV, ic = program_id(0) / NV, it = ic / c.NC, ii = ic % c.NC;
                  auto b = program_id(1) / H, h = program_id(1) % H;
                  auto t0 = it * BT, r0 = t0 + ii * c.BC;
                  return_if(r0 >= T);
                  auto bos = cast(b, i64) * T;
                  auto i = arange(0, c.BC), r = r0 + i, d = iv * c.BV + arange(0, c.BV);
                  auto head = (bos * H + h) * V, heada = (bos * H + h) * BT;
                  auto vin = d < V;
                  auto at = [&](const Tile& rows) { return rows.col() * (H * V) + d.row(); };
                  auto gn = cast(load(g + head + (min(r0, T) * (H * V) + d), {.mask = vin, .other = 0}), f32);
                  Tile acc = zeros({c.BC, c.BV}, f32);
                  for (auto j : range(0, ii)) {
                    auto rj = t0 + j * c.BC + i;
                    auto in = (rj < T).col() & vin.row();
                    auto bv = load(v + head + at(rj), {.mask = in, .other = 0});
                    auto bg = cast(load(g + head + at(rj), {.mask = in, .other = 0}), f32);
                    auto vg = cast(cast(bv, f32) * exp2(gn.row() - bg), bf16);
                    auto bA = load(A + heada + (r.col() * (H * BT) + (j * c.BC + i).row()),
                                   {.mask = (r < T).col(), .other = 0});
                    acc = dot(bA, vg, acc);
                  }
                  auto in = (r < T).col() & vin.row();
                  auto bg = cast(load(g + head + at(r), {.mask = in, .other = 0}), f32);
                  acc *= exp2(bg - gn.row());
                  for (auto j : range(0, min(c.BC, T - r0))) {
                    auto bA =
                        cast(load(A + heada + (r * (H * BT) + (ii * c.BC + j)), {.mask = r < T, .other = 0}), f32);
                    auto bv = cast(load(v + head + ((r0 + j) * (H * V) + d), {.mask = vin, .other = 0}), f32);
                    auto bgv = cast(load(g + head + ((r0 + j) * (H * V) + d), {.mask = vin, .other = 0}), f32);
                    auto vg = bv.row() * exp2(bg - bgv.row());
                    acc += where(i.col() >= j, bA.col() * vg, 0.f);
                  }
                  store(o + head + at(r), cast(acc, bf16), {.mask = in});
                })
      .grid([](const SlotsCfg& c, auto, auto, auto, auto, int T, int H, int V) {
        return Grid{cdiv(V, c.BV) * cdiv(T, c.BC * c.NC) * c.NC, 2 * H};
      });
}
auto slots_f32 = slots_kernel<float>("user_slots_f32");
auto slots_bf16 = slots_kernel<bfloat16>("user_slots_bf16");
template <class G>
Job slots_job(
    Env& e,
    const Kernel<SlotsCfg, Ptr<const bfloat16>, Ptr<const G>, Ptr<bfloat16>, Ptr<const bfloat16>, I32, I32, I32>& k) {
  SlotsCfg c;
  c.BV = e.field("BV", e.big ? 64 : 32), c.warps = e.field("warps", c.warps), c.NC = e.field("NC", c.NC);
  const int B = 2, T = e.field("T", e.big ? 8192 : 93), H = e.big ? 32 : 2, V = e.field("V", e.big ? 64 : 40),
            BT = c.BC * c.NC;
  const size_t n = size_t(B) * T * H;
  auto v = random<bfloat16>(e, n * V), A = random<bfloat16>(e, n * BT);
  std::vector<G> sums(std::min<size_t>(n * V, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = G((i / (size_t(H) * V) % T % BT == 0 || i < size_t(H) * V ? 0.f : float(sums[i - size_t(H) * V])) -
                float(.3 * e.uniform()));
  auto g = repeated(e, n * V, sums);
  auto o = constant<bfloat16>(e, n * V, NAN);
  Job j;
  j.mbytes = 2e-6 * n * (V * 4 + BT);
  j.add(k, c, v.p, g.p, o.p, A.p, T, H, V);
  j.check = [=] {
    std::vector<double> want(n * V);
    for (size_t r = 0; r < n; ++r) {
      const int h = int(r % H), t = int(r / H % T), z = int(r / H / T), t0 = t / BT * BT;
      for (int s = t0; s <= t; ++s) {
        const size_t rs = (size_t(z) * T + s) * H + h;
        for (int d = 0; d < V; ++d)
          want[r * V + d] += A[r * BT + s - t0] * v[rs * V + d] * std::exp2(g[r * V + d] - g[rs * V + d]);
      }
    }
    return agree(o.now(), want, 3e-2, 3e-2);
  };
  return j;
}
Register r2("slots_f32", [](Env& e) { return slots_job<float>(e, slots_f32); });
Register r3("slots_bf16", [](Env& e) { return slots_job<bfloat16>(e, slots_bf16); });

// --- sticks broken from the near end, going back: sums along keys from the far end, and of pairs so that no difference
// of large sums is taken
struct StickCfg {
  int BS = 64, BT = 64, BK = 64, warps = 4, stages = 2;
};
Tile softplus2(const Tile& x) { return where(x > 20.f, x, log2(1.f + exp2(min(x, 20.f)))); }
auto stick_back =
    kernel("user_stick_back", [](const StickCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                                 Ptr<const bfloat16> dO, Ptr<bfloat16> dk, Ptr<bfloat16> dv, Ptr<const float> rem,
                                 Ptr<const float> deltas, F32 scale, I32 T, I32 NS, I32 H, I32 HQ, I32 K) {
      num_warps(c.warps);
      auto is = program_id(0), b = program_id(1) / H, h = program_id(1) % H;
      auto bos = cast(b, i64) * T;
      auto n = is * c.BS + arange(0, c.BS), d = arange(0, c.BK);
      auto kin = (n < T).col() & (d < K).row();
      auto key = (bos * H + h) * K;
      auto at = n.col() * (H * K) + d.row();
      auto bk = load(k + key + at, {.mask = kin, .other = 0}), bv = load(v + key + at, {.mask = kin, .other = 0});
      Tile bdk = zeros({c.BS, c.BK}, f32), bdv = zeros({c.BS, c.BK}, f32);
      auto G = HQ / H;
      for (auto ig : range(G)) {
        auto hq = h * G + ig;
        auto query = (bos * HQ + hq) * K;
        for (auto it : range(is * c.BS, T, c.BT, {.stages = c.stages})) {
          auto m = it + arange(0, c.BT);
          auto qin = (m < T).col() & (d < K).row();
          auto qat = m.col() * (HQ * K) + d.row();
          auto bq = load(q + query + qat, {.mask = qin, .other = 0}),
               g = load(dO + query + qat, {.mask = qin, .other = 0});
          auto snap = (bos * HQ + hq) * NS + is + cast(m, i64) * (HQ * NS);
          auto br = load(rem + snap, {.mask = m < T, .other = 0}),
               bd = load(deltas + snap, {.mask = m < T, .other = 0});
          auto seen = (n.col() < m.row()) & (n < T).col() & (m < T).row();
          auto s = dot(bk, trans(bq)) * scale * 1.4426950216f;
          auto dp = dot(bv, trans(g));
          auto leave = where(seen, -softplus2(s), 0.f);
          auto p = where(seen, exp2(s + cumsum(leave, axis(0), {.reverse = true}) + br.row()), 0.f);
          auto pdp = p * dp;
          auto [before, last] = scan({zeros_like(pdp), pdp}, axis(0),
                                     [](Tile s1, Tile x1, Tile s2, Tile x2) { return std::tuple(s1 + x1 + s2, x2); });
          auto delta = bd.row() + before;
          auto ds = where(seen, exp2(leave) * pdp - exp2(s + leave) * delta, 0.f);
          bdv = dot(cast(p, bf16), g, bdv);
          bdk = dot(cast(ds, bf16), bq, bdk);
        }
      }
      store(dk + key + at, cast(bdk * scale, bf16), {.mask = kin});
      store(dv + key + at, cast(bdv, bf16), {.mask = kin});
    }).grid([](const StickCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int T, int, int H, auto...) {
      return Grid{cdiv(T, c.BS), 2 * H};
    });
Register r4("stick_back", [](Env& e) {
  StickCfg c;
  c.BS = e.field("BS", e.big ? 64 : 16), c.BT = e.field("BT", e.big ? 32 : 16), c.BK = e.field("BK", e.big ? 64 : 32);
  c.warps = e.field("warps", e.big ? 8 : 4), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 4096 : 53), H = e.big ? 8 : 1, HQ = e.big ? 16 : 2,
            K = e.field("K", e.big ? 64 : 24), NS = (T + c.BS - 1) / c.BS;
  auto q = random<bfloat16>(e, size_t(B) * T * HQ * K), g = random<bfloat16>(e, size_t(B) * T * HQ * K);
  auto k = random<bfloat16>(e, size_t(B) * T * H * K), v = random<bfloat16>(e, size_t(B) * T * H * K);
  // what the forward pass of queries left in front of every block of keys (from the far end on)
  auto row = [=](int b, int t, int h, int heads) { return ((size_t(b) * T + t) * heads + h) * K; };
  std::vector<float> rems(size_t(B) * T * HQ * NS), dels(rems.size());
  std::vector<double> wk(size_t(B) * T * H * K), wv(wk.size());
  const double scale = .3;
  if (!e.big && e.device)
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < HQ; ++h)
        for (int t = 0; t < T; ++t) {
          std::vector<double> z(T), beta(T), p(T), dp(T), left(T + 1, 1);
          for (int s = t - 1; s >= 0; --s) {
            double x = 0;
            for (int d = 0; d < K; ++d)
              x += q[row(b, t, h, HQ) + d] * k[row(b, s, h / (HQ / H), H) + d],
                  dp[s] += g[row(b, t, h, HQ) + d] * v[row(b, s, h / (HQ / H), H) + d];
            z[s] = x * scale, beta[s] = 1 / (1 + std::exp(-z[s]));
            p[s] = beta[s] * left[s + 1], left[s] = left[s + 1] * (1 - beta[s]);
          }
          double sum = 0;
          const size_t at = ((size_t(b) * T + t) * HQ + h) * NS;
          for (int s = 0; s < t; ++s) {
            if (s % c.BS == 0) dels[at + s / c.BS] = float(sum);
            const int end = std::min(t, (s / c.BS + 1) * c.BS);
            if (s % c.BS == 0) rems[at + s / c.BS] = float(std::log2(left[end]));
            const double ds = (1 - beta[s]) * p[s] * dp[s] - beta[s] * sum;
            sum += p[s] * dp[s];
            for (int d = 0; d < K; ++d) {
              wk[row(b, s, h / (HQ / H), H) + d] += ds * scale * q[row(b, t, h, HQ) + d];
              wv[row(b, s, h / (HQ / H), H) + d] += p[s] * g[row(b, t, h, HQ) + d];
            }
          }
        }
  auto rem = repeated(e, rems.size(), rems), del = repeated(e, dels.size(), dels);
  auto dk = constant<bfloat16>(e, wk.size(), NAN), dv = constant<bfloat16>(e, wk.size(), NAN);
  Job j;
  j.gflop = 4e-9 * B * HQ * double(T) * T * K;
  j.add(stick_back, c, q.p, k.p, v.p, g.p, dk.p, dv.p, rem.p, del.p, float(scale), T, NS, H, HQ, K);
  j.check = [=] {
    auto wrong = agree(dv.now(), wv, 3e-2, 3e-2);
    return wrong.empty() ? agree(dk.now(), wk, 3e-2, 3e-2) : wrong;
  };
  return j;
});

// --- products of R gated reflections a token: the state is kept before every R-th of R * T steps; K of up to 128 in
// blocks of 64
struct ReflectCfg {
  int R = 3, BT = 64, BV = 64, KB = 2, warps = 4, stages = 2;
};
auto reflections =
    kernel("user_reflections", [](const ReflectCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                                  Ptr<const bfloat16> w, Ptr<bfloat16> v_new, Ptr<const float> g, Ptr<bfloat16> h,
                                  I32 T, I32 H, I32 K, I32 V) {
      num_warps(c.warps);
      auto NV = cdiv(V, c.BV), NT = cdiv(T, c.BT);
      auto iv = program_id(0) % NV, n = program_id(0) / NV / H, head = program_id(0) / NV % H;
      auto bos = cast(n, i64) * T, boh = cast(n, i64) * cdiv(T / c.R, c.BT);
      auto d = iv * c.BV + arange(0, c.BV);
      std::vector<Tile> state, kd;
      for (int i = 0; i < c.KB; ++i) state.push_back(zeros({64, c.BV}, f32)), kd.push_back(i * 64 + arange(0, 64));
      auto kp = k + (bos * H + head) * K;
      auto wp = w + (bos * H + head) * K;
      auto vp = v + (bos * H + head) * V;
      auto np = v_new + (bos * H + head) * V;
      auto gp = g + bos * H + head;
      auto hp = h + (boh * H + head) * K * V;
      for (auto t : range(0, NT, 1, {.stages = c.stages})) {
        if_(t % c.R == 0, [&] {
          for (int i = 0; i < c.KB; ++i)
            store(hp + cast(t / c.R, i64) * (H * K * V) + (kd[i].col() * V + d.row()), cast(state[i], bf16),
                  {.mask = (kd[i] < K).col() & (d < V).row()});
        });
        auto r = t * c.BT + arange(0, c.BT);
        auto in = r < T;
        Tile x = zeros({c.BT, c.BV}, f32);
        for (int i = 0; i < c.KB; ++i)
          x = dot(load(wp + (r.col() * (H * K) + kd[i].row()), {.mask = in.col() & (kd[i] < K).row(), .other = 0}),
                  cast(state[i], bf16), x);
        x = -x + cast(load(vp + (r.col() * (H * V) + d.row()), {.mask = in.col() & (d < V).row(), .other = 0}), f32);
        store(np + (r.col() * (H * V) + d.row()), cast(x, bf16), {.mask = in.col() & (d < V).row()});
        auto last = load(gp + (min((t + 1) * c.BT, T) - 1) * H);
        auto bg = load(gp + r * H, {.mask = in, .other = 0});
        auto xb = cast(x * where(in, exp2(last - bg), 0.f).col(), bf16);
        for (int i = 0; i < c.KB; ++i) {
          state[i] = state[i] * exp2(last);
          state[i] =
              dot(load(kp + (kd[i].col() + r.row() * (H * K)), {.mask = (kd[i] < K).col() & in.row(), .other = 0}), xb,
                  state[i]);
        }
      }
    }).grid([](const ReflectCfg& c, auto, auto, auto, auto, auto, auto, int, int H, int, int V) {
      return Grid{cdiv(V, c.BV) * 2 * H};
    });
Register r5("reflections", [](Env& e) {
  ReflectCfg c;
  c.BT = e.field("BT", e.big ? 64 : 16), c.BV = e.field("BV", e.big ? 64 : 32), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages), c.R = e.field("R", c.R);
  const int B = 2, T = e.field("T", c.R * (e.big ? 4096 : 16 * 4)), H = e.big ? 32 : 2,
            K = e.field("K", e.big ? 128 : 72), V = e.field("V", e.big ? 128 : 40);
  c.KB = (K + 63) / 64;
  const int NT = (T + c.BT - 1) / c.BT, NH = (T / c.R + c.BT - 1) / c.BT;
  const size_t n = size_t(B) * T * H;
  auto k = random<bfloat16>(e, n * K, -.2, .2), w = random<bfloat16>(e, n * K, -.2, .2), v = random<bfloat16>(e, n * V);
  std::vector<float> sums(std::min<size_t>(n, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = (i / H % T % c.BT == 0 || i < size_t(H) ? 0.f : sums[i - H]) - float(.05 * e.uniform());
  auto g = repeated(e, n, sums);
  auto vn = constant<bfloat16>(e, n * V, NAN), h = constant<bfloat16>(e, size_t(B) * NH * H * K * V, NAN);
  Job j;
  j.gflop = 4e-9 * n * K * V;
  j.add(reflections, c, k.p, v.p, w.p, vn.p, g.p, h.p, T, H, K, V);
  j.check = [=] {
    std::vector<double> wv(n * V), wh(size_t(B) * NH * H * K * V);
    for (int b = 0; b < B; ++b)
      for (int hd = 0; hd < H; ++hd) {
        std::vector<double> S(K * V);
        for (int t = 0; t < NT; ++t) {
          if (t % c.R == 0)
            for (int i = 0; i < K * V; ++i) wh[((size_t(b) * NH + t / c.R) * H + hd) * K * V + i] = S[i];
          auto next = S;
          const int end = std::min((t + 1) * c.BT, T);
          const double last = g[(size_t(b) * T + end - 1) * H + hd];
          for (double& x : next) x *= std::exp2(last);
          for (int r = t * c.BT; r < end; ++r) {
            const size_t row = (size_t(b) * T + r) * H + hd;
            for (int d = 0; d < V; ++d) {
              double x = v[row * V + d];
              for (int i = 0; i < K; ++i) x -= w[row * K + i] * S[i * V + d];
              wv[row * V + d] = x;
              x *= std::exp2(last - g[row]);
              for (int i = 0; i < K; ++i) next[i * V + d] += k[row * K + i] * x;
            }
          }
          S = next;
        }
      }
    auto wrong = agree(vn.now(), wv, 5e-2, 3e-2);
    return wrong.empty() ? agree(h.now(), wh, 5e-2, 3e-2) : wrong;
  };
  return j;
});

// --- a router's sort (Liger): the choices of a block of tokens sorted by expert with their place in the low half of
// the word, ranks in runs by a scan of those words
struct SortCfg {
  int tokens = 64, K2 = 4, K = 3, BM = 16, warps = 4;
};
auto router_sort = kernel("user_router_sort", [](const SortCfg& c, Ptr<int32_t> scatter_at, Ptr<int32_t> back,
                                                 Ptr<int32_t> from, Ptr<int32_t> tile_row, Ptr<int32_t> tile_expert,
                                                 Ptr<const int32_t> chosen, I32 T, Ptr<const int32_t> before, I32 tiles,
                                                 Ptr<const int32_t> starts, Ptr<const int32_t> tile_starts) {
                     num_warps(c.warps);
                     const int N = c.tokens * c.K2;
                     auto m = program_id(0);
                     auto local = arange(0, N), all = m * N + local;
                     auto token = m * c.tokens + local / c.K2, slot = local % c.K2;
                     auto e = cast(load(chosen + (token * c.K + min(slot, c.K - 1)),
                                        {.mask = (all < T * c.K2) & (slot < c.K), .other = -1}),
                                   u32);
                     auto words = sort((e << 16) | cast(local, u32), axis(0));
                     auto expert = words >> 16;
                     auto ok = expert != 0xFFFFu;
                     auto runs = scan((words & 0xFFFF0000u) | 1u, axis(0), [](Tile x, Tile y) {
                       auto kx = x & 0xFFFF0000u, ky = y & 0xFFFF0000u;
                       return where(kx == ky, x + y - kx, y);
                     });
                     auto rank = cast((runs - 1u) & 0xFFFFu, i32);
                     auto ex = cast(expert, i32);
                     auto within = load(before + m + ex * tiles, {.mask = ok, .other = 0}) + rank;
                     auto place = load(starts + ex, {.mask = ok, .other = 0}) + within;
                     auto first = ok & (within % c.BM == 0);
                     auto at = load(tile_starts + ex, {.mask = first, .other = 0}) + within / c.BM;
                     store(tile_row + at, place, {.mask = first});
                     store(tile_expert + at, ex, {.mask = first});
                     auto was = cast(words & 0xFFFFu, i32);
                     auto tok = m * c.tokens + was / c.K2;
                     auto entry = tok * c.K + was % c.K2;
                     store(back + entry, place, {.mask = ok});
                     store(scatter_at + place, entry, {.mask = ok});
                     store(from + place, tok, {.mask = ok});
                   }).grid([](const SortCfg& c, auto, auto, auto, auto, auto, auto, int T, auto...) {
  return Grid{cdiv(T, c.tokens)};
});
Register r6("router_sort", [](Env& e) {
  SortCfg c;
  c.tokens = e.field("tokens", e.big ? 512 : 16), c.K = e.field("K", e.big ? 6 : 3), c.K2 = e.big ? 8 : 4,
  c.warps = e.field("warps", c.warps);
  const int T = e.field("T", e.big ? 65536 : 53), E = e.big ? 64 : 5, tiles = (T + c.tokens - 1) / c.tokens,
            TK = T * c.K;
  std::vector<int> pick(TK), before(E * tiles), starts(E + 1), tstarts(E + 1), count(E);
  for (int& x : pick) x = int(e.uniform() * E);
  for (int i = 0; i < TK; ++i) ++before[pick[i] * tiles + i / c.K / c.tokens];
  for (int x = 0; x < E; ++x) {
    int sum = 0;
    for (int t = 0; t < tiles; ++t) std::swap(sum, before[x * tiles + t]), sum += before[x * tiles + t];
    count[x] = sum, starts[x + 1] = starts[x] + sum, tstarts[x + 1] = tstarts[x] + (sum + c.BM - 1) / c.BM;
  }
  auto chosen = repeated(e, TK, pick), bef = repeated(e, before.size(), before),
       st = repeated(e, starts.size(), starts), ts = repeated(e, tstarts.size(), tstarts);
  auto at = constant<int32_t>(e, TK, -1), back = constant<int32_t>(e, TK, -1), from = constant<int32_t>(e, TK, -1);
  auto row = constant<int32_t>(e, tstarts[E], -1), ex = constant<int32_t>(e, tstarts[E], -1);
  Job j;
  j.mbytes = 1e-6 * TK * 16;
  j.add(router_sort, c, at.p, back.p, from.p, row.p, ex.p, chosen.p, T, bef.p, tiles, st.p, ts.p);
  j.check = [=] {
    std::vector<double> wa(TK), wb(TK), wf(TK), wr(tstarts[E]), we(tstarts[E]);
    std::vector<int> next(starts.begin(), starts.end() - 1);
    for (int i = 0; i < TK; ++i) {
      const int p = next[pick[i]]++;
      wa[p] = i, wb[i] = p, wf[p] = i / c.K;
    }
    for (int x = 0; x < E; ++x)
      for (int t = tstarts[x]; t < tstarts[x + 1]; ++t) wr[t] = starts[x] + (t - tstarts[x]) * c.BM, we[t] = x;
    std::string wrong;
    auto look = [&](const auto& got, const std::vector<double>& want, const char* name) {
      auto one = agree(got.now(), want, .1, 0);
      if (!one.empty()) wrong += std::string(name) + " " + one + "; ";
    };
    look(at, wa, "at"), look(back, wb, "back"), look(from, wf, "from"), look(row, wr, "row"), look(ex, we, "expert");
    return wrong;
  };
  return j;
});

}  // namespace library_ports
}  // namespace users
