// odd_steps.cpp - steps of sequence models that take another shape than attention: a reading that is turned by a phase
// and answers with rows of a table, conjugate gradients for one token or a chunk, keys that stand for blocks, lists of
// who chose a block.
#include "tests/users/use.h"
namespace users {
namespace odd_steps {

// --- what a chunk reads of its state and itself is turned by a phase in pairs, asks a small table (softmax), and the
// answer is turned back
struct ReadingCfg {
  int BT = 64, BR = 16, BK = 128, M = 64, K = 128, warps = 4, stages = 2;
};
auto reading =
    kernel(
        "user_reading",
        [](const ReadingCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> qw, Ptr<const float> rstd,
           Ptr<const bfloat16> k, Ptr<const bfloat16> write, Ptr<const bfloat16> h, Ptr<const float> g,
           Ptr<const float> lambdas, Ptr<const bfloat16> table, Ptr<bfloat16> weights, F32 scale, I32 T, I32 H, I32 C) {
          const int K = c.K;
          num_warps(c.warps);
          auto ir = program_id(0), it = program_id(1), b = program_id(2) / H, head = program_id(2) % H;
          auto chunks = cdiv(T, c.BT);
          auto bos = cast(b, i64) * T, bh = bos * H + head;
          auto t = it * c.BT + ir * c.BR + arange(0, c.BR), s = it * c.BT + arange(0, c.BT), m = arange(0, c.M);
          auto tin = t < T, sin_ = s < T;
          auto hp = h + cast((b * chunks + it) * H + head, i64) * (c.M * K);
          Tile x = zeros({c.BR, c.M}, f32);
          auto gt = load(g + bh + t * H, {.mask = tin, .other = 0}),
               gs = load(g + bh + s * H, {.mask = sin_, .other = 0});
          auto seen = (t.col() >= s.row()) & tin.col() & sin_.row();
          auto w = load(write + bh * c.M + (s.col() * (H * c.M) + m.row()), {.mask = sin_.col(), .other = 0});
          for (auto k0 : range(0, K, c.BK, {.stages = c.stages})) {
            auto d = k0 + arange(0, c.BK);
            auto bq = cast(
                load(q + bh * K + (t.col() * (H * K) + d.row()), {.mask = tin.col() & (d < K).row(), .other = 0}), f32);
            auto r = load(rstd + bh + t * H, {.mask = tin, .other = 0});
            auto bw = cast(load(qw + d, {.mask = d < K, .other = 0}), f32);
            auto qn = cast(bq * r.col() * bw.row(), bf16);
            auto bk =
                load(k + bh * K + (d.col() + s.row() * (H * K)), {.mask = (d < K).col() & sin_.row(), .other = 0});
            auto hh = load(hp + (m.col() * K + d.row()), {.mask = (d < K).row(), .other = 0});
            auto part = dot(qn, trans(hh)) * exp2(gt).col();
            auto a = dot(qn, bk) * exp2(gt.col() - gs.row());
            a = where(seen, a, 0.f);
            part = (part + dot(cast(a, bf16), w)) * scale;
            x += cast(cast(part, bf16), f32);
          }
          auto even = 2 * arange(0, c.M / 2);
          auto [x0, x1] = split(reshape(x, {c.BR, c.M / 2, 2}));
          auto lam = load(lambdas + bh + t * H, {.mask = tin, .other = 0}).col();
          const int period = c.M - 1;
          auto pair = (even / 2).row();
          auto whole = floor(lam);
          auto fraction = lam - whole;
          auto wm = cast(whole, i32) % period;
          wm = where(wm < 0, wm + period, wm);
          auto at = cast((wm * pair) % period, f32) + fraction * cast(pair, f32);
          at = where(at > period * .5f, at - float(period), at);
          auto phase = at * float(6.283185307179586 / period);
          auto co = cos(phase), si = sin(phase);
          auto z = reshape(join(co * x0 - si * x1, si * x0 + co * x1), {c.BR, c.M});
          z = where(tin.col(), z, 0.f);
          auto rows = m < C;
          auto tb = load(table + head * C * c.M + (m.col() * c.M + m.row()), {.mask = rows.col(), .other = 0});
          auto logits = where(rows.row(), dot(cast(z, bf16), trans(tb)), -INFINITY);
          auto p = where(rows.row(), exp(logits - max(logits, axis(1))), 0.f);
          auto total = sum(p, axis(1));
          p *= where(total > 0.f, 1.f / total, 0.f);
          auto u = dot(cast(p, bf16), tb);
          auto [u0, u1] = split(reshape(u, {c.BR, c.M / 2, 2}));
          auto y = reshape(join(co * u0 + si * u1, -si * u0 + co * u1), {c.BR, c.M});
          store(weights + bh * c.M + (t.col() * (H * c.M) + m.row()), cast(y, bf16), {.mask = tin.col()});
        })
        .grid([](const ReadingCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, float, int T, int H,
                 auto...) {
          return Grid{c.BT / c.BR, cdiv(T, c.BT), 2 * H};
        });
Register r1("reading", [](Env& e) {
  ReadingCfg c;
  c.BT = e.field("BT", e.big ? 64 : 32), c.BR = e.field("BR", 16), c.BK = e.field("BK", e.big ? 128 : 32),
  c.M = e.field("M", e.big ? 64 : 16), c.K = e.field("K", e.big ? 128 : 40);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 8192 : 45), H = e.big ? 32 : 2, K = c.K, M = c.M,
            C = e.field("C", e.big ? 48 : 11), NT = (T + c.BT - 1) / c.BT;
  const size_t n = size_t(B) * T * H;
  auto q = random<bfloat16>(e, n * K), qw = random<bfloat16>(e, K), k = random<bfloat16>(e, n * K),
       w = random<bfloat16>(e, n * M);
  auto h = random<bfloat16>(e, size_t(B) * NT * H * M * K), table = random<bfloat16>(e, size_t(H) * C * M);
  auto rstd = random<float>(e, n, .5, 1), lam = random<float>(e, n, -40, 40);
  std::vector<float> sums(std::min<size_t>(n, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = (i / H % T % c.BT == 0 || i < size_t(H) ? 0.f : sums[i - H]) - float(.1 * e.uniform());
  auto g = repeated(e, n, sums);
  auto out = constant<bfloat16>(e, n * M, NAN);
  Job j;
  j.gflop = 2e-9 * n * (K * (M + c.BT) + M * (c.BT + 2 * M));
  j.add(reading, c, q.p, qw.p, rstd.p, k.p, w.p, h.p, g.p, lam.p, table.p, out.p, .2f, T, H, C);
  j.check = [=] {
    std::vector<double> want(n * M);
    for (size_t r = 0; r < n; ++r) {
      const int hd = int(r % H), t = int(r / H % T), b = int(r / H / T), t0 = t / c.BT * c.BT;
      std::vector<double> x(M), z(M), p(C), u(M);
      for (int k0 = 0; k0 < K; k0 += c.BK) {
        auto qn = [&](int d) { return double(float(bfloat16(float(q[r * K + d] * rstd[r] * qw[d])))); };
        std::vector<double> part(M);
        for (int m = 0; m < M; ++m) {
          for (int d = k0; d < std::min(K, k0 + c.BK); ++d)
            part[m] += qn(d) * h[((size_t(b) * NT + t / c.BT) * H + hd) * M * K + m * K + d];
          part[m] *= std::exp2(g[r]);
        }
        for (int s = t0; s <= t; ++s) {
          const size_t rs = (size_t(b) * T + s) * H + hd;
          double a = 0;
          for (int d = k0; d < std::min(K, k0 + c.BK); ++d) a += qn(d) * k[rs * K + d];
          a *= std::exp2(g[r] - g[rs]);
          for (int m = 0; m < M; ++m) part[m] += a * w[rs * M + m];
        }
        for (int m = 0; m < M; ++m) x[m] += part[m] * .2f;
      }
      const double lm = lam[r], per = M - 1;
      for (int i = 0; i < M / 2; ++i) {
        const double ph = 6.283185307179586 / per * std::fmod(lm * i, per);
        z[2 * i] = std::cos(ph) * x[2 * i] - std::sin(ph) * x[2 * i + 1],
              z[2 * i + 1] = std::sin(ph) * x[2 * i] + std::cos(ph) * x[2 * i + 1];
      }
      double top = -INFINITY, total = 0;
      for (int a = 0; a < C; ++a) {
        p[a] = 0;
        for (int m = 0; m < M; ++m) p[a] += z[m] * table[(size_t(hd) * C + a) * M + m];
        top = std::max(top, p[a]);
      }
      for (double& y : p) y = std::exp(y - top), total += y;
      for (int m = 0; m < M; ++m)
        for (int a = 0; a < C; ++a) u[m] += p[a] / total * table[(size_t(hd) * C + a) * M + m];
      for (int i = 0; i < M / 2; ++i) {
        const double ph = 6.283185307179586 / per * std::fmod(lm * i, per);
        want[r * M + 2 * i] = std::cos(ph) * u[2 * i] + std::sin(ph) * u[2 * i + 1],
                         want[r * M + 2 * i + 1] = -std::sin(ph) * u[2 * i] + std::cos(ph) * u[2 * i + 1];
      }
    }
    return agree(out.now(), want, 6e-2, 5e-2);
  };
  return j;
});

// --- one token of a Mesa layer: both states updated, then conjugate gradients against K x K numbers kept in registers
struct MesaStepCfg {
  int BK = 64, BV = 64, steps = 30, warps = 4;
};
auto mesa_step =
    kernel("user_mesa_step", [](const MesaStepCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                Ptr<const bfloat16> v, Ptr<const float> g, Ptr<bfloat16> o, Ptr<const float> ridge,
                                Ptr<const float> beta, Ptr<const float> hk, Ptr<const float> hv, Ptr<float> hk_new,
                                Ptr<float> hv_new, I32 H, I32 K, I32 V) {
      num_warps(c.warps);
      auto n = cast(program_id(0), i64);
      auto d = arange(0, c.BK), e = arange(0, c.BV);
      auto din = d < K, ein = e < V;
      auto bg = exp(load(g + n)), bb = load(beta + n);
      auto vec = [&](const auto& p, const Tile& i, const Tile& in, const auto& size) {
        return cast(load(p + (n * size + i), {.mask = in}), f32);
      };
      auto bk = vec(k, d, din, K), bq = vec(q, d, din, K), bv = vec(v, e, ein, V);
      auto lam = load(ridge + ((program_id(0) % H) * K + d), {.mask = din, .other = 0});
      auto kk = din.col() & din.row(), kv = din.col() & ein.row();
      Tile hh = load(hk + n * K * K + (d.col() * K + d.row()), {.mask = kk, .other = 0});
      hh = hh * bg + (bk * bb).col() * bk.row();
      store(hk_new + n * K * K + (d.col() * K + d.row()), hh, {.mask = kk});
      Tile hw = load(hv + n * K * V + (d.col() * V + e.row()), {.mask = kv, .other = 0});
      hw = hw * bg + (bk * bb).col() * bv.row();
      store(hv_new + n * K * V + (d.col() * V + e.row()), hw, {.mask = kv});
      auto diagonal = squeeze(sum(where((d.col() == d.row()) & kk, hh, 0.f), axis(1)), 1);
      auto times = [&](const Tile& x) { return squeeze(sum(hh * x.col(), axis(0)), 0) + lam * x; };
      Tile x = bq / (diagonal + lam + 1e-5f);
      Tile r = bq - times(x), p = r;
      Tile old = sum(r * r);
      for (auto _ : range(c.steps)) {
        auto ap = times(p);
        auto alpha = old / (sum(p * ap) + 1e-5f);
        x = x + alpha * p;
        r = r - alpha * ap;
        auto now = sum(r * r);
        p = r + now / (old + 1e-5f) * p;
        old = now;
      }
      store(o + (n * V + e), cast(squeeze(sum(hw * x.col(), axis(0)), 0), bf16), {.mask = ein});
    }).grid([](const MesaStepCfg&, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int H, auto...) {
      return Grid{H * 4};
    });
Register r2("mesa_step", [](Env& e) {
  MesaStepCfg c;
  c.BK = e.field("BK", e.big ? 128 : 32), c.BV = e.field("BV", e.big ? 128 : 32),
  c.warps = e.field("warps", e.big ? 16 : 4), c.steps = e.field("steps", c.steps);
  const int H = e.big ? 512 : 3, N = H * 4, K = e.field("K", e.big ? 128 : 24), V = e.field("V", e.big ? 128 : 17);
  auto q = random<bfloat16>(e, size_t(N) * K), k = random<bfloat16>(e, size_t(N) * K),
       v = random<bfloat16>(e, size_t(N) * V);
  auto g = random<float>(e, N, -.3, 0), beta = random<float>(e, N, .5, 1),
       ridge = random<float>(e, size_t(H) * K, .5, 2);
  std::vector<float> sym(std::min<size_t>(size_t(N) * K * K, 1 << 20));
  for (size_t i = 0; i < sym.size(); ++i) sym[i] = i / K % K == i % K ? 4.f : .05f;
  auto hk = repeated(e, size_t(N) * K * K, sym), hv = random<float>(e, size_t(N) * K * V);
  auto hk2 = constant<float>(e, size_t(N) * K * K, NAN), hv2 = constant<float>(e, size_t(N) * K * V, NAN);
  auto o = constant<bfloat16>(e, size_t(N) * V, NAN);
  Job j;
  j.mbytes = 8e-6 * N * K * (K + V);
  j.add(mesa_step, c, q.p, k.p, v.p, g.p, o.p, ridge.p, beta.p, hk.p, hv.p, hk2.p, hv2.p, H, K, V);
  j.check = [=] {
    std::vector<double> want(size_t(N) * V), wk(size_t(N) * K * K), wv(size_t(N) * K * V);
    for (int n = 0; n < N; ++n) {
      double* A0 = &wk[size_t(n) * K * K];
      double* W = &wv[size_t(n) * K * V];
      const double bg = std::exp(g[n]);
      for (int a = 0; a < K; ++a) {
        for (int b = 0; b < K; ++b)
          A0[a * K + b] = hk[(size_t(n) * K + a) * K + b] * bg + k[n * K + a] * beta[n] * k[n * K + b];
        for (int b = 0; b < V; ++b)
          W[a * V + b] = hv[(size_t(n) * K + a) * V + b] * bg + k[n * K + a] * beta[n] * v[n * V + b];
      }
      std::vector<double> A(A0, A0 + K * K), z(K);
      for (int d = 0; d < K; ++d) A[d * K + d] += ridge[(n % H) * K + d], z[d] = q[n * K + d];
      for (int p = 0; p < K; ++p)
        for (int r = p + 1; r < K; ++r) {
          const double f = A[r * K + p] / A[p * K + p];
          for (int x = p; x < K; ++x) A[r * K + x] -= f * A[p * K + x];
          z[r] -= f * z[p];
        }
      for (int p = K; p--;) {
        for (int x = p + 1; x < K; ++x) z[p] -= A[p * K + x] * z[x];
        z[p] /= A[p * K + p];
      }
      for (int b = 0; b < V; ++b)
        for (int a = 0; a < K; ++a) want[size_t(n) * V + b] += z[a] * W[a * V + b];
    }
    auto wrong = agree(o.now(), want, 1e-2, 1e-2);
    if (wrong.empty()) wrong = agree(hk2.now(), wk, 1e-4, 1e-4);
    return wrong.empty() ? agree(hv2.now(), wv, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- running log-sum-exp along time: sums inside a block of time as a product with a triangle of ones
struct LogSumCfg {
  int BT = 16, S = 64, warps = 4;
};
auto log_sums = kernel("user_log_sums", [](const LogSumCfg& c, Ptr<const float> s, Ptr<float> z, I32 T) {
                  num_warps(c.warps);
                  auto i = arange(0, c.BT), d = arange(0, c.S);
                  auto ones = where(i.col() >= i.row(), full({c.BT, c.BT}, 1.f, f32), 0.f);
                  Tile top = full({c.S}, -INFINITY, f32), total = zeros({c.S}, f32);
                  auto base = cast(program_id(0), i64) * T * c.S;
                  for (auto t : range(cdiv(T, c.BT))) {
                    auto r = t * c.BT + i;
                    auto x = load(s + base + (r.col() * c.S + d.row()), {.mask = (r < T).col(), .other = 0});
                    auto now = max(top, squeeze(max(x, axis(0)), 0));
                    total = total * exp(top - now);
                    auto y = dot(ones, exp(x - now.row())) + total.row();
                    top = now;
                    total = squeeze(max(y, axis(0)), 0);
                    store(z + base + (r.col() * c.S + d.row()), log(where(y != 0.f, y, 1e-20f)) + now.row(),
                          {.mask = (r < T).col()});
                  }
                }).grid([](const LogSumCfg&, auto, auto, int) { return Grid{256}; });
Register r3("log_sums", [](Env& e) {
  LogSumCfg c;
  c.BT = e.field("BT", e.big ? 64 : 16), c.S = e.field("S", e.big ? 64 : 24), c.warps = e.field("warps", c.warps);
  const int T = e.field("T", e.big ? 4096 : 45), S = c.S;
  auto s = random<float>(e, size_t(256) * T * S, -3, 3);
  auto z = constant<float>(e, size_t(256) * T * S, NAN);
  Job j;
  j.mbytes = 8e-6 * 256 * T * S;
  j.add(log_sums, c, s.p, z.p, T);
  j.check = [=] {
    std::vector<double> want(size_t(256) * T * S);
    for (int b = 0; b < 256; ++b)
      for (int d = 0; d < S; ++d) {
        double sum = 0;
        for (int t = 0; t < T; ++t) {
          const size_t at = (size_t(b) * T + t) * S + d;
          sum += std::exp(s[at]), want[at] = std::log(sum);
        }
      }
    return agree(z.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- keys that stand for blocks of 32, going back: rows are queries times heads of a group, a key is seen once its
// block is over
struct StandInCfg {
  int BC = 64, BQ = 16, G = 4, BS = 32, BK = 64, warps = 4, stages = 2;
};
auto stand_ins =
    kernel("user_stand_ins", [](const StandInCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                Ptr<const bfloat16> v, Ptr<const float> lse, Ptr<const float> delta,
                                Ptr<const bfloat16> dO, Ptr<bfloat16> dk, Ptr<bfloat16> dv, F32 scale, I32 T, I32 H,
                                I32 HQ, I32 K) {
      num_warps(c.warps);
      auto ic = program_id(0), b = program_id(1) / H, h = program_id(1) % H;
      auto TC = cdiv(T, c.BS);
      auto bos = cast(b, i64) * T, boc = cast(b, i64) * TC;
      auto n = ic * c.BC + arange(0, c.BC), d = arange(0, c.BK);
      auto kin = (n < TC).col() & (d < K).row();
      auto at = (boc * H + h) * K + (n.col() * (H * K) + d.row());
      auto bk = load(k + at, {.mask = kin, .other = 0}), bv = load(v + at, {.mask = kin, .other = 0});
      Tile bdk = zeros({c.BC, c.BK}, f32), bdv = zeros({c.BC, c.BK}, f32);
      for (auto i : range(ic * c.BC * c.BS, T, c.BQ, {.stages = c.stages})) {
        auto og = arange(0, c.BQ * c.G);
        auto m = i + og / c.G, hq = h * c.G + og % c.G;
        auto in = (m < T) & (hq < HQ);
        auto qat = bos * HQ * K + (m.col() * (HQ * K) + hq.col() * K + d.row());
        auto bq = load(q + qat, {.mask = in.col() & (d < K).row(), .other = 0});
        bq = cast(cast(bq, f32) * scale, bf16);
        auto g = load(dO + qat, {.mask = in.col() & (d < K).row(), .other = 0});
        auto bl = load(lse + bos * HQ + (m * HQ + hq), {.mask = in, .other = 0}),
             bd = load(delta + bos * HQ + (m * HQ + hq), {.mask = in, .other = 0});
        auto s = dot(bk, trans(bq));
        auto p = where(in.row() & (m.row() >= max((n + 1) * c.BS - 1, 0).col()), exp(s - bl.row()), 0.f);
        bdv = dot(cast(p, bf16), g, bdv);
        auto ds = p * (dot(bv, trans(g)) - bd.row());
        bdk = dot(cast(ds, bf16), bq, bdk);
      }
      store(dk + at, cast(bdk, bf16), {.mask = kin});
      store(dv + at, cast(bdv, bf16), {.mask = kin});
    }).grid([](const StandInCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int T, int H, auto...) {
      return Grid{cdiv(cdiv(T, c.BS), c.BC), 2 * H};
    });
Register r4("stand_ins", [](Env& e) {
  StandInCfg c;
  c.BC = e.field("BC", e.big ? 64 : 16), c.BQ = e.field("BQ", e.big ? 16 : 8), c.G = e.field("G", e.big ? 4 : 3),
  c.BS = e.big ? 32 : 4, c.BK = e.field("BK", e.big ? 64 : 32);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 8192 : 93), H = e.big ? 8 : 2, HQ = H * c.G,
            K = e.field("K", e.big ? 64 : 24), TC = (T + c.BS - 1) / c.BS;
  const size_t nq = size_t(B) * T * HQ, nk = size_t(B) * TC * H;
  auto q = random<bfloat16>(e, nq * K), g = random<bfloat16>(e, nq * K), k = random<bfloat16>(e, nk * K),
       v = random<bfloat16>(e, nk * K);
  auto lse = random<float>(e, nq, 1, 3), delta = random<float>(e, nq);
  auto dk = constant<bfloat16>(e, nk * K, NAN), dv = constant<bfloat16>(e, nk * K, NAN);
  Job j;
  j.gflop = 4e-9 * nq * TC * K;
  j.add(stand_ins, c, q.p, k.p, v.p, lse.p, delta.p, g.p, dk.p, dv.p, .2f, T, H, HQ, K);
  j.check = [=] {
    std::vector<double> wk(nk * K), wv(nk * K);
    for (size_t r = 0; r < nq; ++r) {
      const int hq = int(r % HQ), t = int(r / HQ % T), b = int(r / HQ / T);
      for (int n = 0; n < TC && (n + 1) * c.BS - 1 <= t; ++n) {
        const size_t rk = (size_t(b) * TC + n) * H + hq / c.G;
        double s = 0, dp = 0;
        for (int d = 0; d < K; ++d) s += q[r * K + d] * .2 * k[rk * K + d], dp += g[r * K + d] * v[rk * K + d];
        const double p = std::exp(s - lse[r]), ds = p * (dp - delta[r]) * .2;
        for (int d = 0; d < K; ++d) wv[rk * K + d] += p * g[r * K + d], wk[rk * K + d] += ds * q[r * K + d];
      }
    }
    auto wrong = agree(dv.now(), wv, 1e-1, 3e-2);
    return wrong.empty() ? agree(dk.now(), wk, 1e-1, 3e-2) : wrong;
  };
  return j;
});

// --- who chose a block: the places of queries in lists per block, drawn from counters (their order is nobody's); the
// sequence of a query by bisection, all queries at once
struct CsrCfg {
  int BT = 32, S = 8, BS = 16, warps = 4;
  bool count = false;
};
auto block_lists =
    kernel("user_chosen_lists", [](const CsrCfg& c, Ptr<const int32_t> chosen, Ptr<const int32_t> counts,
                                   Ptr<const int32_t> cu, Ptr<const int32_t> first_block, Ptr<int32_t> cursor,
                                   Ptr<int32_t> lists, Ptr<int32_t> starts, I32 N, I32 T, I32 H) {
      num_warps(c.warps);
      auto h = cast(program_id(1), i64);
      auto t = program_id(0) * c.BT + arange(0, c.BT), s = arange(0, c.S);
      auto in = t < T;
      auto row = cast(t, i64) * H + h;
      auto b = cast(load(chosen + (row.col() * c.S + cast(s, i64).row()), {.mask = in.col(), .other = -1}), i64);
      Tile lo = zeros({c.BT}, i32), hi = zeros({c.BT}, i32) + N;
      for (auto _ : range(32)) {
        auto mid = (lo + hi) / 2;
        auto go = load(cu + mid + 1, {.mask = in & (mid < N), .other = 0x7FFFFFFF}) <= t;
        lo = where(go, mid + 1, lo), hi = where(go, hi, mid);
      }
      auto begin = load(cu + lo, {.mask = in, .other = 0});
      auto ok = in.col() & (s.row() < load(counts + row, {.mask = in, .other = 0}).col());
      ok = ok & (b >= 0) & (b * c.BS <= cast(t - begin, i64).col());
      auto id = (cast(load(first_block + lo, {.mask = in, .other = 0}), i64).col() + b) * H + h;
      if (c.count)
        atomic_add(starts + id + 1, full({c.BT, c.S}, 1, i32), {.mask = ok});
      else {
        auto to = load(starts + id, {.mask = ok, .other = 0}) +
                  atomic_add(cursor + id, full({c.BT, c.S}, 1, i32), {.mask = ok});
        store(lists + to, broadcast_to(t.col(), {c.BT, c.S}), {.mask = ok});
      }
    }).grid([](const CsrCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int T, int H) {
      return Grid{cdiv(T, c.BT), H};
    });
Register r5("block_lists", [](Env& e) {
  CsrCfg c;
  c.warps = e.field("warps", c.warps), c.BT = e.field("BT", c.BT);
  std::vector<int> lengths = e.big ? std::vector<int>(16, 4096) : std::vector<int>{37, 1, 50, 16};
  const int N = int(lengths.size()), H = e.big ? 8 : 2, S = c.S;
  std::vector<int> cu{0}, first{0};
  for (int x : lengths) cu.push_back(cu.back() + x), first.push_back(first.back() + (x + c.BS - 1) / c.BS);
  const int T = cu.back(), blocks = first.back();
  std::vector<int> pick(size_t(T) * H * S), cnt(size_t(T) * H), start(blocks * H + 1);
  for (int& x : pick) x = int(e.uniform() * 5) - 1;
  for (int& x : cnt) x = int(e.uniform() * (S + 1));
  std::vector<std::vector<int>> who(blocks * H);
  for (int i = 0, t = 0; i < N; ++i)
    for (; t < cu[i + 1]; ++t)
      for (int h = 0; h < H; ++h)
        for (int s = 0; s < cnt[t * H + h]; ++s) {
          const int b = pick[(size_t(t) * H + h) * S + s];
          if (b >= 0 && b * c.BS <= t - cu[i]) who[(first[i] + b) * H + h].push_back(t);
        }
  for (int b = 0; b < blocks * H; ++b) start[b + 1] = start[b] + int(who[b].size());
  auto chosen = repeated(e, pick.size(), pick), counts = repeated(e, cnt.size(), cnt), cus = repeated(e, cu.size(), cu),
       fb = repeated(e, first.size(), first);
  auto st = repeated(e, start.size(), start);
  auto counted = constant<int32_t>(e, blocks * H + 1, 0), cursor = constant<int32_t>(e, blocks * H, 0),
       lists = constant<int32_t>(e, std::max(1, start.back()), -1);
  Job j;
  j.mbytes = 4e-6 * T * H * S * 2;
  restore(e, j, counted, cursor);
  c.count = true;
  j.add(block_lists, c, chosen.p, counts.p, cus.p, fb.p, cursor.p, lists.p, counted.p, N, T, H);
  c.count = false;
  j.add(block_lists, c, chosen.p, counts.p, cus.p, fb.p, cursor.p, lists.p, st.p, N, T, H);
  j.check = [=] {
    auto got = lists.now();
    const auto n = counted.now();
    std::vector<double> want, sorted, wn(blocks * H + 1);
    for (int b = 0; b < blocks * H; ++b) {
      std::sort(got.begin() + start[b], got.begin() + start[b + 1]);
      want.insert(want.end(), who[b].begin(), who[b].end());
      wn[b + 1] = double(who[b].size());
    }
    auto wrong = agree(got, want, .1, 0);
    return wrong.empty() ? agree(n, wn, .1, 0) : wrong;
  };
  return j;
});

}  // namespace odd_steps
}  // namespace users
