// swept_ssd.cpp - Mamba-2's chunked scan (SSD) in its five kernels as its authors lay them out: pointers that walk,
// masks on every access, all strides arguments; tile sizes, warps and stages are fields. x [B, T, H, P], dt [B, T, H],
// b and c [B, T, G, N], sums of decays and steps by chunk [B, H, chunks, L], states [B, chunks, H, P, N].
#include "tests/users/use.h"
namespace users {
namespace swept_ssd {

struct SsdCfg {
  int BM = 64, BN = 64, BK = 32, stages = 4, warps = 4, BD = 128;
};
SsdCfg ssd_cfg(Env& e, SsdCfg big, SsdCfg little) {
  SsdCfg c = e.big ? big : little;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  return c;
}
struct Sizes {  // T is no multiple of L in the small problem, and no tile divides P, N or L
  int B, T, H, G, P, N, L, chunks;
  explicit Sizes(const Env& e)
      : B(e.big ? 4 : 2),
        T(e.big ? 4096 : 107),
        H(e.big ? 64 : 4),
        G(e.big ? 1 : 2),
        P(e.big ? 64 : 24),
        N(e.big ? 128 : 40),
        L(e.big ? 256 : 48),
        chunks(cdiv(T, L)) {}
  size_t rows() const { return size_t(B) * T; }
  size_t sums() const { return size_t(B) * H * chunks * L; }
  size_t states() const { return size_t(B) * chunks * H * P * N; }
};
/// Sums of decays inside each chunk, and steps that are 0 behind the last row, as ssd_cumsum leaves them.
Array<float> decay_sums(Env& e, const Sizes& s) {
  double sum = 0;
  return filled<float>(e, s.sums(), [&](size_t i) {
    if (i % s.L == 0) sum = 0;
    const int t = int(i / s.L % s.chunks) * s.L + int(i % s.L);
    return static_cast<float>(sum -= t < s.T ? .08 * e.uniform() : 0);
  });
}
Array<float> steps_of(Env& e, const Sizes& s) {
  return filled<float>(e, s.sums(), [&](size_t i) {
    const int t = int(i / s.L % s.chunks) * s.L + int(i % s.L);
    return t < s.T ? static_cast<float>(.1 + .4 * e.uniform()) : 0.f;
  });
}

// --- softplus of steps with a bias, and the sums of step * A inside each chunk: a tile of heads x positions
auto ssd_cumsum =
    kernel("user_ssd_cumsum", [](const SsdCfg& c, Ptr<const bfloat16> dt, Ptr<const float> A, Ptr<const float> bias,
                                 Ptr<float> out, Ptr<float> sums, I32, I32 T, I32 H, I32 L, F32 low, F32 high, I32 db,
                                 I32 ds, I32 dh, I32 ob, I32 oh, I32 oc, I32 ol, I32 sb, I32 sh, I32 sc, I32 sl) {
      num_warps(c.warps);
      auto b = program_id(0), chunk = program_id(1);
      auto h = program_id(2) * c.BM + arange(0, c.BM), i = arange(0, c.BN);
      auto from = dt + (b * db + chunk * L * ds);
      auto to = out + (b * ob + chunk * oc);
      auto end = sums + (b * sb + chunk * sc);
      auto here = (h < H).col() & (i < min(L, T - chunk * L)).row(), whole = (h < H).col() & (i < L).row();
      Tile d = cast(load(from + (h.col() * dh + i.row() * ds), {.mask = here, .other = 0.f}), f32);
      d += load(bias + h, {.mask = h < H, .other = 0.f}).col();
      d = where(d <= 20.f, log(1.f + exp(d)), d);
      d = min(max(d, low), high);
      d = where(here, d, 0.f);
      store(to + (h.col() * oh + i.row() * ol), d, {.mask = whole});
      auto a = load(A + h, {.mask = h < H, .other = 0.f});
      store(end + (h.col() * sh + i.row() * sl), cumsum(d * a.col(), axis(1)), {.mask = whole});
    }).grid([](const SsdCfg& c, auto, auto, auto, auto, auto, int B, int T, int H, int L, auto...) {
      return Grid{B, cdiv(T, L), cdiv(H, c.BM)};
    });
Register r1("ssd_cumsum", [](Env& e) {
  const Sizes s(e);
  const auto c = ssd_cfg(e, {8, 256}, {4, 64, 16, 1, 2});
  auto dt = random<bfloat16>(e, s.rows() * s.H, -4, 2);
  auto A = random<float>(e, s.H, -2, -.1), bias = random<float>(e, s.H);
  auto out = constant<float>(e, s.sums(), NAN), sums = constant<float>(e, s.sums(), NAN);
  Job j;
  j.mbytes = 1e-6 * (s.sums() * 8. + s.rows() * s.H * 2.);
  const int hs = s.chunks * s.L;
  j.add(ssd_cumsum, c, dt.p, A.p, bias.p, out.p, sums.p, s.B, s.T, s.H, s.L, .01f, 1.5f, s.T * s.H, s.H, 1, s.H * hs,
        hs, s.L, 1, s.H * hs, hs, s.L, 1);
  j.check = [=] {
    std::vector<double> steps(s.sums()), want(s.sums());
    for (size_t i = 0; i < want.size(); ++i) {
      const int l = i % s.L, t = int(i / s.L % s.chunks) * s.L + l, h = i / hs % s.H, b = i / hs / s.H;
      const double x = t < s.T ? dt[(size_t(b) * s.T + t) * s.H + h] + bias[h] : 0;
      steps[i] = t < s.T ? std::clamp(std::log1p(std::exp(x)), .01, 1.5) : 0;
      want[i] = (l ? want[i - 1] : 0) + steps[i] * A[h];
    }
    auto wrong = agree(out.now(), steps, 1e-5, 1e-5);
    return wrong.empty() ? agree(sums.now(), want, 1e-4, 1e-5) : wrong;
  };
  return j;
});

// --- what a chunk adds to the state: x' (b e^(last - sums) dt), P x N, a sum over the rows of the chunk
auto ssd_state =
    kernel("user_ssd_state", [](const SsdCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> b, Ptr<float> states,
                                Ptr<const float> dt, Ptr<const float> sums, I32 P, I32 N, I32 L, I32 batch, I32 T, I32,
                                I32 ratio, I32 xb, I32 xs, I32 xh, I32 xp, I32 bb, I32 bs, I32 bg, I32 bn, I32 tb,
                                I32 tc, I32 th, I32 tp, I32 tn, I32 db, I32 dc, I32 dh, I32 dl) {
      num_warps(c.warps);
      auto chunk = program_id(1) / batch, z = program_id(1) - chunk * batch, h = program_id(2);
      auto across = cdiv(N, c.BN);
      auto p = program_id(0) / across * c.BM + arange(0, c.BM), n = program_id(0) % across * c.BN + arange(0, c.BN);
      auto k = arange(0, c.BK);
      auto x0 = x + (z * xb + chunk * L * xs + h * xh);
      auto b0 = b + (z * bb + chunk * L * bs + h / ratio * bg);
      auto s0 = sums + (z * db + chunk * dc + h * dh);
      auto d0 = dt + (z * db + chunk * dc + h * dh);
      Tile xp0 = x0 + (p.col() * xp + k.row() * xs), bp = b0 + (k.col() * bs + n.row() * bn);
      Tile sp = s0 + k * dl, dp = d0 + k * dl;
      auto last = load(s0 + (L - 1) * dl);
      auto rows = min(L, T - chunk * L);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, rows, c.BK, {.stages = c.stages})) {
        auto xt = load(xp0, {.mask = (p < P).col() & (k < rows - i).row(), .other = 0.f});
        auto bt = cast(load(bp, {.mask = (k < rows - i).col() & (n < N).row(), .other = 0.f}), f32);
        auto at = load(sp, {.mask = k < rows - i, .other = 0.f});
        auto step = load(dp, {.mask = k < rows - i, .other = 0.f});
        auto scaled = bt * (exp(min(last - at, 0.f)) * step).col();
        acc += dot(xt, cast(scaled, bf16));
        xp0 += c.BK * xs;
        bp += c.BK * bs;
        sp += c.BK * dl;
        dp += c.BK * dl;
      }
      auto t0 = states + (z * tb + chunk * tc + h * th);
      store(t0 + (p.col() * tp + n.row() * tn), acc, {.mask = (p < P).col() & (n < N).row()});
    }).grid([](const SsdCfg& c, auto, auto, auto, auto, auto, int P, int N, int L, int B, int T, int H, auto...) {
      return Grid{cdiv(P, c.BM) * cdiv(N, c.BN), B * cdiv(T, L), H};
    });
Register r2("ssd_state", [](Env& e) {
  const Sizes s(e);
  const auto c = ssd_cfg(e, {64, 128, 32, 4, 4}, {16, 32, 16, 2, 2});
  auto x = random<bfloat16>(e, s.rows() * s.H * s.P), b = random<bfloat16>(e, s.rows() * s.G * s.N);
  auto dt = steps_of(e, s), sums = decay_sums(e, s);
  auto states = constant<float>(e, s.states(), NAN);
  Job j;
  j.gflop = 2e-9 * s.rows() * s.H * s.P * s.N;
  const int PN = s.P * s.N, hs = s.chunks * s.L;
  j.add(ssd_state, c, x.p, b.p, states.p, dt.p, sums.p, s.P, s.N, s.L, s.B, s.T, s.H, s.H / s.G, s.T * s.H * s.P,
        s.H * s.P, s.P, 1, s.T * s.G * s.N, s.G * s.N, s.N, 1, s.chunks * s.H * PN, s.H * PN, PN, s.N, 1, s.H * hs, s.L,
        hs, 1);
  j.check = [=] {
    std::vector<double> want(s.states());
    for (size_t i = 0; i < want.size(); ++i) {
      const int n = i % s.N, p = i / s.N % s.P, h = i / PN % s.H, chunk = i / PN / s.H % s.chunks,
                z = i / PN / s.H / s.chunks, g = h / (s.H / s.G);
      const size_t at = ((size_t(z) * s.H + h) * s.chunks + chunk) * s.L;
      for (int l = 0; l < s.L && chunk * s.L + l < s.T; ++l) {
        const size_t row = size_t(z) * s.T + chunk * s.L + l;
        want[i] += x[(row * s.H + h) * s.P + p] * b[(row * s.G + g) * s.N + n] * dt[at + l] *
                   std::exp(sums[at + s.L - 1] - sums[at + l]);
      }
    }
    return agree(states.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- the state in front of every chunk and the last one: a block of the P * N elements walks over the chunks
auto ssd_pass =
    kernel("user_ssd_pass", [](const SsdCfg& c, Ptr<const float> states, Ptr<bfloat16> before, Ptr<float> final,
                               Ptr<const float> sums, Ptr<const float> first, I32 n, I32 chunks, I32, I32, I32 sb,
                               I32 sc, I32 sh, I32 ab, I32 ac, I32 ah, I32 fb, I32 fh) {
      num_warps(c.warps);
      auto i = program_id(0) * c.BN + arange(0, c.BN), b = program_id(1), h = program_id(2);
      Tile from = states + (b * sb + h * sh) + i, to = before + (b * sb + h * sh) + i;
      Tile at = sums + (b * ab + h * ah);
      Tile state = load(first + (b * fb + h * fh) + i, {.mask = i < n, .other = 0.f});
      store(to, cast(state, bf16), {.mask = i < n});
      to += sc;
      for (auto chunk : range(0, chunks, {.stages = c.stages})) {
        auto fresh = load(from, {.mask = i < n, .other = 0.f});
        state = exp(load(at)) * state + fresh;
        if_(
            chunk < chunks - 1, [&] { store(to, cast(state, bf16), {.mask = i < n}); },
            [&] { store(final + (b * fb + h * fh) + i, state, {.mask = i < n}); });
        from += sc;
        at += ac;
        to += sc;
      }
    }).grid([](const SsdCfg& c, auto, auto, auto, auto, auto, int n, int, int B, int H, auto...) {
      return Grid{cdiv(n, c.BN), B, H};
    });
Register r3("ssd_pass", [](Env& e) {
  const Sizes s(e);
  const auto c = ssd_cfg(e, {64, 512, 32, 1, 4}, {16, 128, 16, 2, 2});
  const int PN = s.P * s.N;
  auto states = random<float>(e, s.states());
  auto sums = decay_sums(e, s);
  auto first = random<float>(e, size_t(s.B) * s.H * PN);
  auto before = constant<bfloat16>(e, s.states(), NAN);
  auto last = constant<float>(e, first.n, NAN);
  Job j;
  j.mbytes = 6e-6 * s.states();
  j.add(ssd_pass, c, states.p, before.p, last.p, sums.p + s.L - 1, first.p, PN, s.chunks, s.B, s.H, s.chunks * s.H * PN,
        s.H * PN, PN, s.H * s.chunks * s.L, s.L, s.chunks * s.L, s.H * PN, PN);
  j.check = [=] {
    std::vector<double> want(s.states()), ends(last.n);
    for (size_t i = 0; i < ends.size(); ++i) {
      const int k = i % PN, h = i / PN % s.H, z = i / PN / s.H;
      double state = first[i];
      for (int chunk = 0; chunk < s.chunks; ++chunk) {
        const size_t at = ((size_t(z) * s.chunks + chunk) * s.H + h) * PN + k;
        want[at] = state;
        state = state * std::exp(sums[((size_t(z) * s.H + h) * s.chunks + chunk) * s.L + s.L - 1]) + states[at];
      }
      ends[i] = state;
    }
    auto wrong = agree(before.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(last.now(), ends, 1e-4, 1e-4) : "last: " + wrong;
  };
  return j;
});

// --- scores of the rows of a chunk with one another, c b', below and on the diagonal only
auto ssd_bmm = kernel("user_ssd_bmm", [](const SsdCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> b, Ptr<float> out,
                                         I32 T, I32 L, I32 K, I32 G, I32, I32 ab, I32 as, I32 ag, I32 ak, I32 bb,
                                         I32 bs, I32 bg, I32 bk, I32 ob, I32 oc, I32 og, I32 om, I32 on) {
                 num_warps(c.warps);
                 auto z = program_id(1), chunk = program_id(2) / G, g = program_id(2) - chunk * G;
                 auto across = cdiv(L, c.BN);
                 auto pm = program_id(0) / across, pn = program_id(0) % across;
                 return_if(pn * c.BN >= (pm + 1) * c.BM);
                 auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                 auto rows = min(L, T - chunk * L);
                 Tile ap = a + (z * ab + chunk * L * as + g * ag) + (m.col() * as + k.row() * ak);
                 Tile bp = b + (z * bb + chunk * L * bs + g * bg) + (k.col() * bk + n.row() * bs);
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
                   auto x = load(ap, {.mask = (m < rows).col() & (k < K - i * c.BK).row(), .other = 0.f});
                   auto y = load(bp, {.mask = (k < K - i * c.BK).col() & (n < rows).row(), .other = 0.f});
                   acc += dot(x, y);
                   ap += c.BK * ak;
                   bp += c.BK * bk;
                 }
                 store(out + (z * ob + chunk * oc + g * og) + (m.col() * om + n.row() * on), acc,
                       {.mask = (m < L).col() & (n < L).row()});
               }).grid([](const SsdCfg& c, auto, auto, auto, int T, int L, int, int G, int B, auto...) {
  return Grid{cdiv(L, c.BM) * cdiv(L, c.BN), B, cdiv(T, L) * G};
});
Register r4("ssd_bmm", [](Env& e) {
  const Sizes s(e);
  const auto c = ssd_cfg(e, {64, 64, 64, 3, 4}, {16, 16, 16, 2, 1});
  const int G = e.big ? 8 : s.G;
  auto a = random<bfloat16>(e, s.rows() * G * s.N), b = random<bfloat16>(e, s.rows() * G * s.N);
  auto out = constant<float>(e, size_t(s.B) * s.chunks * G * s.L * s.L, 7);
  const int row = G * s.N, square = s.L * s.L;
  Job j;
  j.gflop = 1e-9 * s.rows() * G * s.L * s.N;
  j.add(ssd_bmm, c, a.p, b.p, out.p, s.T, s.L, s.N, G, s.B, s.T * row, row, s.N, 1, s.T * row, row, s.N, 1,
        s.chunks * G * square, G * square, square, s.L, 1);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (size_t i = 0; i < want.size(); ++i) {
      const int n = i % s.L, m = i / s.L % s.L, g = i / square % G, chunk = i / square / G % s.chunks,
                z = i / square / G / s.chunks;
      const int tm = chunk * s.L + m, tn = chunk * s.L + n;
      const bool above = n / c.BN * c.BN >= (m / c.BM + 1) * c.BM;  // written by nobody
      want[i] = above ? 7 : 0;
      for (int k = 0; k < s.N && !above && tm < s.T && tn < s.T; ++k)
        want[i] += a[(size_t(z) * s.T + tm) * row + g * s.N + k] * b[(size_t(z) * s.T + tn) * row + g * s.N + k];
    }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- rows of the output: what the state in front of the chunk gives, and a masked product with the chunk's scores
auto ssd_scan =
    kernel("user_ssd_scan",
           [](const SsdCfg& c, Ptr<const float> cb, Ptr<const bfloat16> x, Ptr<bfloat16> out, Ptr<const float> dt,
              Ptr<const float> sums, Ptr<const bfloat16> C, Ptr<const bfloat16> before, Ptr<const float> D, I32 L,
              I32 P, I32 N, I32 batch, I32 T, I32, I32 ratio, I32 qb, I32 qc, I32 qg, I32 qm, I32 qk, I32 xb, I32 xs,
              I32 xh, I32 xp, I32 db, I32 dc, I32 dh, I32 dl, I32 Cb, I32 Cs, I32 Cg, I32 Cn, I32 tb, I32 tc, I32 th,
              I32 tp, I32 tn) {
             num_warps(c.warps);
             auto chunk = program_id(1) / batch, z = program_id(1) - chunk * batch, h = program_id(2);
             auto across = cdiv(P, c.BN);
             auto pm = program_id(0) / across, pn = program_id(0) % across;
             auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN), k = arange(0, c.BK);
             auto rows = min(L, T - chunk * L);
             auto s0 = sums + (z * db + chunk * dc + h * dh);
             auto d0 = dt + (z * db + chunk * dc + h * dh);
             auto am = load(s0 + m * dl, {.mask = m < rows, .other = 0.f});
             auto d = arange(0, c.BD);
             auto q = load(C + (z * Cb + chunk * L * Cs + h / ratio * Cg) + (m.col() * Cs + d.row() * Cn),
                           {.mask = (m < rows).col() & (d < N).row(), .other = 0.f});
             auto state = load(before + (z * tb + chunk * tc + h * th) + (n.row() * tp + d.col() * tn),
                               {.mask = (d < N).col() & (n < P).row(), .other = 0.f});
             Tile acc = dot(q, state) * exp(am).col();
             Tile qp = cb + (z * qb + chunk * qc + h / ratio * qg) + (m.col() * qm + k.row() * qk);
             auto x0 = x + (z * xb + chunk * L * xs + h * xh);
             Tile xk = x0 + (k.col() * xs + n.row() * xp), sp = s0 + k * dl, dp = d0 + k * dl;
             for (auto i : range(0, min((pm + 1) * c.BM, rows), c.BK, {.stages = c.stages})) {
               Tile s = load(qp, {.mask = (m < L).col() & (k < L - i).row(), .other = 0.f});
               auto ak = load(sp, {.mask = k < L - i, .other = 0.f});
               s *= exp(min(am.col() - ak.row(), 0.f));
               s *= load(dp, {.mask = k < L - i, .other = 0.f}).row();
               s = where(m.col() >= (i + k).row(), s, 0.f);
               auto v = load(xk, {.mask = (k < rows - i).col() & (n < P).row(), .other = 0.f});
               acc += dot(cast(s, bf16), v);
               qp += c.BK * qk;
               xk += c.BK * xs;
               sp += c.BK * dl;
               dp += c.BK * dl;
             }
             auto inside = (m < rows).col() & (n < P).row();
             auto skip = cast(load(x0 + (m.col() * xs + n.row() * xp), {.mask = inside, .other = 0.f}), f32);
             acc += skip * load(D + h);
             auto y = out + (z * xb + chunk * L * xs + h * xh);
             store(y + (m.col() * xs + n.row() * xp), cast(acc, bf16), {.mask = inside});
           })
        .grid([](const SsdCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, int L, int P, int, int B, int T,
                 int H, auto...) {
          return Grid{cdiv(L, c.BM) * cdiv(P, c.BN), B * cdiv(T, L), H};
        });
Register r5("ssd_scan", [](Env& e) {
  const Sizes s(e);
  auto c = ssd_cfg(e, {64, 64, 32, 4, 4}, {16, 16, 16, 2, 1});
  c.BD = e.big ? 128 : 64;
  const int PN = s.P * s.N, square = s.L * s.L, hs = s.chunks * s.L;
  auto cb = random<float>(e, size_t(s.B) * s.chunks * s.G * square);
  auto x = random<bfloat16>(e, s.rows() * s.H * s.P), C = random<bfloat16>(e, s.rows() * s.G * s.N);
  auto dt = steps_of(e, s), sums = decay_sums(e, s), D = random<float>(e, s.H);
  auto before = random<bfloat16>(e, s.states());
  auto out = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.gflop = 2e-9 * s.rows() * s.H * s.P * (s.N + s.L / 2.);
  j.add(ssd_scan, c, cb.p, x.p, out.p, dt.p, sums.p, C.p, before.p, D.p, s.L, s.P, s.N, s.B, s.T, s.H, s.H / s.G,
        s.chunks * s.G * square, s.G * square, square, s.L, 1, s.T * s.H * s.P, s.H * s.P, s.P, 1, s.H * hs, s.L, hs, 1,
        s.T * s.G * s.N, s.G * s.N, s.N, 1, s.chunks * s.H * PN, s.H * PN, PN, s.N, 1);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (size_t i = 0; i < want.size(); ++i) {
      const int p = i % s.P, h = i / s.P % s.H, t = i / s.P / s.H % s.T, z = i / s.P / s.H / s.T, g = h / (s.H / s.G);
      const int chunk = t / s.L, l = t % s.L;
      const size_t at = ((size_t(z) * s.H + h) * s.chunks + chunk) * s.L, row = (size_t(z) * s.T + t) * s.G + g;
      double sum = 0;
      for (int n = 0; n < s.N; ++n)
        sum += C[row * s.N + n] * before[((size_t(z) * s.chunks + chunk) * s.H + h) * PN + p * s.N + n];
      want[i] = sum * std::exp(sums[at + l]) + D[h] * x[i];
      for (int k = 0; k <= l; ++k)
        want[i] += cb[((size_t(z) * s.chunks + chunk) * s.G + g) * square + l * s.L + k] * dt[at + k] *
                   std::exp(sums[at + l] - sums[at + k]) * x[((size_t(z) * s.T + t - l + k) * s.H + h) * s.P + p];
    }
    return agree(out.now(), want, 4e-2, 2e-2);
  };
  return j;
});

}  // namespace swept_ssd
}  // namespace users
