// chunk_insides.cpp - what happens inside a chunk of linear attention with a gate per channel, as flash-linear-
// attention writes it: blocks of 16 rows under conditions, rows picked from tiles, inverses put together from blocks.
#include "tests/users/use.h"
namespace users {
namespace chunk_insides {

// --- Kimi delta attention: products of blocks below the diagonal of a chunk with a gate per channel, forward
// substitution on the diagonal's, and the inverse of 1 + A from both, in one kernel; blocks past the end are skipped
struct SolveCfg {
  int BC = 16, NC = 4, BK = 32, K = 128, warps = 4;
};
auto kda_solve =
    kernel("user_kda_solve", [](const SolveCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const float> g,
                                Ptr<const bfloat16> beta, Ptr<bfloat16> Aqk, Ptr<const float> Akkd, Ptr<bfloat16> Akk,
                                F32 scale, I32 T, I32 H) {
      num_warps(c.warps);
      const int BC = c.BC, BT = c.BC * c.NC;
      auto t0 = program_id(0) * BT, h = program_id(1) % H, b = program_id(1) / H;
      auto row = cast(b, i64) * T * H + h;
      auto qp = q + row * c.K, kp = k + row * c.K;
      auto gp = g + row * c.K;
      auto o = arange(0, BC);
      std::vector<Tile> at, in;
      for (int n = 0; n < c.NC; ++n) at.push_back(t0 + n * BC + o), in.push_back(t0 + n * BC + o < T);
      std::vector<std::vector<Tile>> aqk(c.NC), akk(c.NC);
      for (int i = 1; i < c.NC; ++i)
        for (int j = 0; j < i; ++j) aqk[i].push_back(zeros({BC, BC}, f32)), akk[i].push_back(zeros({BC, BC}, f32));
      for (auto kk : range(0, c.K, c.BK)) {
        auto d = kk + arange(0, c.BK);
        auto box = [&](const auto& p, int n) {
          return cast(
              load(p + (at[n].col() * (H * c.K) + d.row()), {.mask = in[n].col() & (d < c.K).row(), .other = 0}), f32);
        };
        std::vector<Tile> ks{box(kp, 0)}, gs{box(gp, 0)};
        std::function<void(int)> step = [&](int n) {
          if (n == c.NC) return;
          if_(t0 + n * BC < T, [&] {
            auto qn = box(qp, n);
            ks.push_back(box(kp, n)), gs.push_back(box(gp, n));
            auto first = load(gp + ((t0 + n * BC) * (H * c.K) + d), {.mask = d < c.K, .other = 0});
            auto grown = where(in[n].col(), exp2(gs[n] - first.row()), 0.f);
            auto qg = qn * grown, kg = ks[n] * grown;
            for (int j = 0; j < n; ++j) {
              auto kt = trans(ks[j] * exp2(first.row() - gs[j]));
              aqk[n][j] = dot(qg, kt, aqk[n][j], Prec::tf32);
              akk[n][j] = dot(kg, kt, akk[n][j], Prec::tf32);
            }
            step(n + 1);
          });
          ks.resize(n), gs.resize(n);
        };
        step(1);
      }
      auto outq = Aqk + row * BT;
      auto outk = Akk + row * BT;
      auto diagonal = Akkd + row * BC;
      for (int i = 1; i < c.NC; ++i)
        if_(t0 + i * BC < T, [&] {
          auto bt = cast(load(beta + (row + cast(at[i] * H, i64)), {.mask = in[i], .other = 0}), f32);
          for (int j = 0; j < i; ++j) {
            store(outq + (at[i].col() * (H * BT) + (o + j * BC).row()), cast(aqk[i][j] * scale, bf16),
                  {.mask = in[i].col()});
            akk[i][j] = akk[i][j] * bt.col();
          }
        });
      std::vector<std::vector<Tile>> inv(c.NC);
      for (int i = 0; i < c.NC; ++i) {
        Tile a = load(diagonal + (at[i].col() * (H * BC) + o.row()), {.mask = in[i].col(), .other = 0});
        a = -where(o.col() > o.row(), a, 0.f);
        for (auto r : range(i * BC + 2, min((i + 1) * BC, T - t0))) {
          Tile line = -load(diagonal + ((t0 + r) * (H * BC) + o));
          line = where(o < r - i * BC, line, 0.f);
          line += squeeze(sum(line.col() * a, axis(0)), 0);
          a = where((o == r - i * BC).col(), line.row(), a);
        }
        a += cast(o.col() == o.row(), f32);
        inv[i].resize(i + 1);
        inv[i][i] = a;
      }
      auto mul = [&](const Tile& x, const Tile& y) { return dot(x, y, zeros({BC, BC}, f32), Prec::tf32); };
      for (int apart = 1; apart < c.NC; ++apart)
        for (int i = apart; i < c.NC; ++i) {
          const int j = i - apart;
          Tile s = mul(akk[i][j], inv[j][j]);
          for (int m = j + 1; m < i; ++m) s = s + mul(akk[i][m], inv[m][j]);
          inv[i][j] = -mul(inv[i][i], s);
        }
      for (int i = 0; i < c.NC; ++i)
        for (int j = 0; j <= i; ++j)
          store(outk + (at[i].col() * (H * BT) + (o + j * BC).row()), cast(inv[i][j], bf16), {.mask = in[i].col()});
    }).grid([](const SolveCfg& c, auto, auto, auto, auto, auto, auto, auto, float, int T, int H) {
      return Grid{cdiv(T, c.BC * c.NC), 2 * H};
    });
Register r1("kda_solve", [](Env& e) {
  SolveCfg c;
  if (!e.big) c.K = 48;
  c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps), c.NC = e.field("NC", c.NC);
  const int B = 2, T = e.field("T", e.big ? 8192 : 101), H = e.big ? 32 : 3, K = c.K, BC = c.BC, BT = BC * c.NC;
  const size_t n = size_t(B) * T * H;
  auto q = random<bfloat16>(e, n * K), k = random<bfloat16>(e, n * K, -.3, .3), beta = random<bfloat16>(e, n, 0, 1);
  auto diag = random<float>(e, n * BC, -.3, .3);
  std::vector<float> sums(std::min<size_t>(n * K, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t t = i / (size_t(H) * K) % T;
    sums[i] = (t % BT == 0 || i < size_t(H) * K ? 0 : sums[i - size_t(H) * K]) - float(.3 * e.uniform());
  }
  auto g = repeated(e, n * K, sums);
  auto aqk = constant<bfloat16>(e, n * BT, 0), akk = constant<bfloat16>(e, n * BT, 0);
  Job j;
  j.gflop = 2e-9 * n * K * BT;
  j.add(kda_solve, c, q.p, k.p, g.p, beta.p, aqk.p, diag.p, akk.p, .25f, T, H);
  j.check = [=] {
    std::vector<double> wq(n * BT), wk(n * BT);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t0 = 0; t0 < T; t0 += BT) {
          const int L = std::min(BT, T - t0);
          std::vector<double> A(BT * BT);
          auto row = [&](int t) { return (size_t(b) * T + t0 + t) * H + h; };
          for (int i = 0; i < L; ++i)
            for (int s = 0; s < i; ++s)
              if (i / BC == s / BC)
                A[i * BT + s] = diag[row(i) * BC + s % BC];
              else {
                double x = 0, y = 0;
                for (int d = 0; d < K; ++d) {
                  const double w = k[row(s) * K + d] * std::exp2(g[row(i) * K + d] - g[row(s) * K + d]);
                  x += q[row(i) * K + d] * w, y += k[row(i) * K + d] * w;
                }
                wq[row(i) * BT + s] = x * .25, A[i * BT + s] = y * beta[row(i)];
              }
          for (int s = 0; s < L; ++s) {
            std::vector<double> x(L);
            x[s] = 1;
            for (int i = s + 1; i < L; ++i)
              for (int m = s; m < i; ++m) x[i] -= A[i * BT + m] * x[m];
            for (int i = s; i < L; ++i) wk[row(i) * BT + s] = x[i];
          }
        }
    auto wrong = agree(aqk.now(), wq, 2e-2, 2e-2);
    return wrong.empty() ? agree(akk.now(), wk, 2e-2, 2e-2) : wrong;
  };
  return j;
});

// --- generalised delta rule (diagonal plus low rank): the four matrices of pairs of a chunk of 16 with a gate per
// channel; row j of three tiles is taken inside the loop
struct DplrCfg {
  int BC = 16, BK = 64, warps = 4;
};
auto dplr_pairs = kernel("user_dplr_pairs",
                         [](const DplrCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> a,
                            Ptr<const bfloat16> b, Ptr<const float> gi, Ptr<const float> ge, Ptr<bfloat16> qg,
                            Ptr<bfloat16> kg, Ptr<bfloat16> ag, Ptr<bfloat16> bg, Ptr<float> Aqk, Ptr<float> Aqb,
                            Ptr<float> Aab, Ptr<float> Aak, F32 scale, I32 T, I32 H, I32 K) {
                           num_warps(c.warps);
                           auto t = program_id(0) * c.BC + arange(0, c.BC), d = arange(0, c.BK), o = arange(0, c.BC);
                           auto bos = cast(program_id(1), i64) * T, h = cast(program_id(2), i64);
                           auto in = (t < T).col() & (d < K).row();
                           auto at = (bos * H + h) * K + (t.col() * (H * K) + d.row());
                           auto last = min((program_id(0) + 1) * c.BC, T) - 1;
                           auto g_last = load(gi + ((bos * H + h) * K + (last * (H * K) + d)), {.mask = d < K});
                           auto box = [&](const auto& p) { return load(p + at, {.mask = in, .other = 0}); };
                           Tile qs = cast(box(q), f32) * scale;
                           Tile ks = box(k), as = box(a), bs = box(b), g = box(gi), gx = box(ge);
                           auto grown = exp2(g), left = exp2(g_last.row() - g);
                           store(qg + at, cast(qs * grown, bf16), {.mask = in});
                           store(bg + at, cast(cast(bs, f32) * left, bf16), {.mask = in});
                           store(ag + at, cast(cast(as, f32) * exp2(gx), bf16), {.mask = in});
                           store(kg + at, cast(cast(ks, f32) * left, bf16), {.mask = in});
                           auto qb = cast(cast(qs, bf16), f32), af = cast(as, f32);
                           auto out = (bos * H + h) * c.BC + t * (H * c.BC);
                           for (auto j : range(0, min(c.BC, T - program_id(0) * c.BC))) {
                             auto pick = full({1, c.BK}, 0, i32) + j;
                             auto kj = cast(take(ks, pick, 0), f32), gj = take(g, pick, 0),
                                  bj = cast(take(bs, pick, 0), f32);
                             auto e1 = exp2(g - gj), e2 = exp2(gx - gj);
                             auto rows = [&](const Tile& x) { return squeeze(sum(x, axis(1)), 1); };
                             auto lower = cast(o >= j, f32), below = cast(o > j, f32);
                             store(Aqk + (out + j), rows(qb * kj * e1) * lower, {.mask = t < T});
                             store(Aqb + (out + j), rows(qb * bj * e1) * lower, {.mask = t < T});
                             store(Aab + (out + j), rows(af * bj * e2) * below, {.mask = t < T});
                             store(Aak + (out + j), rows(af * kj * e2) * below, {.mask = t < T});
                           }
                         })
                      .grid([](const DplrCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto,
                               auto, auto, float, int T, int H, int) {
                        return Grid{cdiv(T, c.BC), 2, H};
                      });
Register r2("dplr_pairs", [](Env& e) {
  DplrCfg c;
  c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps), c.BC = e.field("BC", c.BC);
  const int B = 2, T = e.field("T", e.big ? 8192 : 45), H = e.big ? 32 : 3, K = e.field("K", e.big ? 64 : 40),
            BC = c.BC;
  const size_t n = size_t(B) * T * H;
  auto q = random<bfloat16>(e, n * K), k = random<bfloat16>(e, n * K), a = random<bfloat16>(e, n * K),
       b = random<bfloat16>(e, n * K);
  std::vector<float> sums(std::min<size_t>(n * K, 1 << 20)), before(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t t = i / (size_t(H) * K) % T;
    before[i] = t % BC == 0 || i < size_t(H) * K ? 0 : sums[i - size_t(H) * K];
    sums[i] = before[i] - float(.3 * e.uniform());
  }
  auto gi = repeated(e, n * K, sums), ge = repeated(e, n * K, before);
  auto out = [&] { return constant<bfloat16>(e, n * K, NAN); };
  auto qg = out(), kg = out(), ag = out(), bg = out();
  auto pairs = [&] { return constant<float>(e, n * BC, 0); };
  auto qk = pairs(), qb = pairs(), ab = pairs(), ak = pairs();
  Job j;
  j.mbytes = 1e-6 * n * (K * (8 + 8 + 8) + BC * 16);
  j.add(dplr_pairs, c, q.p, k.p, a.p, b.p, gi.p, ge.p, qg.p, kg.p, ag.p, bg.p, qk.p, qb.p, ab.p, ak.p, .125f, T, H, K);
  j.check = [=] {
    std::vector<double> wqk(n * BC), wqb(n * BC), wab(n * BC), wak(n * BC), wq(n * K), wk(n * K), wa(n * K), wb(n * K);
    for (size_t r = 0; r < n; ++r) {
      const int h = int(r % H), t = int(r / H % T), z = int(r / H / T), t0 = t / BC * BC,
                last = std::min(t0 + BC, T) - 1;
      auto row = [&](int s) { return ((size_t(z) * T + s) * H + h) * K; };
      for (int d = 0; d < K; ++d) {
        const size_t at = r * K + d;
        const double left = std::exp2(gi[row(last) + d] - gi[at]);
        wq[at] = q[at] * .125 * std::exp2(gi[at]), wk[at] = k[at] * left, wa[at] = a[at] * std::exp2(ge[at]),
        wb[at] = b[at] * left;
        for (int s = t0; s <= t; ++s) {
          const size_t as = row(s) + d, to = r * BC + s - t0;
          const double e1 = std::exp2(gi[at] - gi[as]), e2 = std::exp2(ge[at] - gi[as]);
          wqk[to] += .125 * q[at] * k[as] * e1, wqb[to] += .125 * q[at] * b[as] * e1;
          if (s < t) wab[to] += a[at] * b[as] * e2, wak[to] += a[at] * k[as] * e2;
        }
      }
    }
    std::string wrong;
    auto look = [&](const auto& got, const std::vector<double>& want, const char* name) {
      auto one = agree(got.now(), want, 2e-2, 2e-2);
      if (!one.empty()) wrong += std::string(name) + " " + one + "; ";
    };
    look(qk, wqk, "qk"), look(qb, wqb, "qb"), look(ab, wab, "ab"), look(ak, wak, "ak");
    look(qg, wq, "qg"), look(kg, wk, "kg"), look(ag, wa, "ag"), look(bg, wb, "bg");
    return wrong;
  };
  return j;
});

}  // namespace chunk_insides
}  // namespace users
