// tutorials.cpp - kernels of Triton's tutorials and of servers written after them, as they are: tiles of pointers that
// advance, masks, programs in groups, locks, tickets.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace tutorials {

// --- a product through tiles of pointers, programs in groups of rows, leaky relu behind it; any strides
struct PointerGemmCfg {
  int BM = 128, BN = 128, BK = 64, group = 8, stages = 3, warps = 8;
};
auto pointer_gemm = kernel("user_pointer_gemm", [](const PointerGemmCfg& c, Ptr<const half> a, Ptr<const half> b,
                                                   Ptr<half> out, I32 M, I32 N, I32 K, I32 am, I32 ak, I32 bk, I32 bn,
                                                   I32 cm, I32 cn) {
  num_warps(c.warps);
  auto pid = program_id(0);
  auto pids_m = cdiv(M, c.BM), pids_n = cdiv(N, c.BN);
  auto in_group = c.group * pids_n;
  auto first = pid / in_group * c.group;
  auto size = min(pids_m - first, c.group);
  auto pid_m = first + pid % in_group % size, pid_n = pid % in_group / size;
  auto rows = (pid_m * c.BM + arange(0, c.BM)) % M, columns = (pid_n * c.BN + arange(0, c.BN)) % N;
  auto k = arange(0, c.BK);
  Tile ap = a + (rows.col() * am + k.row() * ak), bp = b + (k.col() * bk + columns.row() * bn);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
    auto x = load(ap, {.mask = k.row() < K - i * c.BK, .other = 0.f});
    auto y = load(bp, {.mask = k.col() < K - i * c.BK, .other = 0.f});
    acc = dot(x, y, acc);
    ap += c.BK * ak;
    bp += c.BK * bk;
  }
  acc = where(acc >= 0.f, acc, 0.01f * acc);
  auto r = pid_m * c.BM + arange(0, c.BM), n = pid_n * c.BN + arange(0, c.BN);
  store(out + cm * r.col() + cn * n.row(), cast(acc, f16), {.mask = (r.col() < M) & (n.row() < N)});
}).grid([](const PointerGemmCfg& c, const half*, const half*, half*, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
});
Register r1("pointer_gemm", [](Env& e) {
  PointerGemmCfg c;
  if (!e.big) c = {32, 32, 16, 2, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int M = e.big ? 4096 : 75, N = e.big ? 4096 : 70, K = e.big ? 4096 : 56;
  const bool turned = e.field("turned", 0);  // B as its transpose
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto out = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(pointer_gemm, c, a.p, b.p, out.p, M, N, K, K, 1, turned ? 1 : N, turned ? K : 1, N, 1);
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) { return b[turned ? n * K + k : k * N + n]; },
                        [](double s, int, int) { return s >= 0 ? s : .01 * s; });
    return agree(out.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- attention of the tutorial: columns before the diagonal without a mask, those on it with one; m and l as one
struct PointerAttentionCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto pointer_attention = kernel("user_pointer_attention", [](const PointerAttentionCfg& c, Ptr<const bfloat16> Q,
                                                             Ptr<const bfloat16> K, Ptr<const bfloat16> V, F32 scale,
                                                             Ptr<float> L, Ptr<bfloat16> O, I64 head, I32 row, I32 T,
                                                             I32 /*heads*/) {
  // Q, K, V, O [heads, T, D] with strides `head` and `row`, L [heads, T]
  num_warps(c.warps);
  auto start = program_id(0), z = program_id(1);
  auto base = cast(z, i64) * head;
  auto m = start * c.BM + arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
  auto q = load(Q + base + (m.col() * row + d.row()), {.mask = m.col() < T});
  Tile kp = K + base + (d.col() + n.row() * row), vp = V + base + (n.col() * row + d.row());
  Tile top = full({c.BM}, -INFINITY, f32), total = full({c.BM}, 1.f, f32), acc = zeros({c.BM, c.D}, f32);
  auto qk_scale = scale * 1.44269504f;
  auto inner = [&](Expr low, Expr high, bool diagonal) {
    for (auto at : range(low, high, c.BN, {.stages = c.stages})) {
      auto k = load(kp, {.mask = at + n.row() < T});
      Tile qk = dot(q, k);
      Tile now;
      if (diagonal) {
        qk = qk * qk_scale + where(m.col() >= at + n.row(), 0.f, -1e6f);
        now = max(top, squeeze(max(qk, axis(1)), 1));
        qk = qk - now.col();
      } else {
        now = max(top, squeeze(max(qk, axis(1)), 1) * qk_scale);
        qk = qk * qk_scale - now.col();
      }
      auto p = exp2(qk);
      auto alpha = exp2(top - now);
      total = total * alpha + squeeze(sum(p, axis(1)), 1);
      acc = acc * alpha.col();
      acc = dot(cast(p, bf16), load(vp, {.mask = at + n.col() < T}), acc);
      top = now;
      kp += c.BN * row;
      vp += c.BN * row;
    }
  };
  inner(0, start * c.BM, false);
  inner(start * c.BM, min((start + 1) * c.BM, T), true);
  top += log2(total);
  acc = acc / total.col();
  store(L + z * T + m, top, {.mask = m < T});
  store(O + base + (m.col() * row + d.row()), cast(acc, bf16), {.mask = m.col() < T});
}).grid([](const PointerAttentionCfg& c, auto, auto, auto, float, auto, auto, int64_t, int, int T, int heads) {
  return Grid{cdiv(T, c.BM), heads};
});
Register r2("pointer_attention", [](Env& e) {
  PointerAttentionCfg c;
  if (!e.big) c = {32, 16, 32, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int Z = e.big ? 64 : 2, T = e.big ? 4096 : 77, D = c.D;
  auto q = random<bfloat16>(e, size_t(Z) * T * D), k = random<bfloat16>(e, size_t(Z) * T * D),
       v = random<bfloat16>(e, size_t(Z) * T * D);
  auto l = constant<float>(e, size_t(Z) * T, NAN);
  auto o = constant<bfloat16>(e, size_t(Z) * T * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * Z * double(T) * T * D;
  j.add(pointer_attention, c, q.p, k.p, v.p, scale, l.p, o.p, int64_t(T) * D, D, T, Z);
  j.check = [=] {
    std::vector<double> want, logs;
    for (int z = 0; z < Z; ++z)
      for (int m = 0; m < T; ++m) {
        std::vector<double> out(D), s(m + 1);
        double sum = 1e-300;
        for (int n = 0; n <= m; ++n) {
          for (int d = 0; d < D; ++d) s[n] += q[(size_t(z) * T + m) * D + d] * k[(size_t(z) * T + n) * D + d] * scale;
          sum += std::exp(s[n]);
        }
        for (int n = 0; n <= m; ++n)
          for (int d = 0; d < D; ++d) out[d] += std::exp(s[n]) / sum * v[(size_t(z) * T + n) * D + d];
        want.insert(want.end(), out.begin(), out.end());
        logs.push_back(std::log2(sum));
      }
    const auto wrong = agree(o.now(), want, 2e-2, 2e-2);
    return wrong.empty() ? agree(l.now(), logs, 1e-2, 1e-3) : "L: " + wrong;
  };
  return j;
});

// --- gradients of layer norm with locks: programs of a group add their rows' share into one row, one after the other;
// the first that comes stores
struct LockNormCfg {
  int BN = 1024, BM = 32, BC = 128, groups = 64, warps = 8;
};
auto lock_norm = kernel("user_lock_norm", [](const LockNormCfg& c, Ptr<half> DX, Ptr<const half> DY, Ptr<float> DW,
                                             Ptr<float> DB, Ptr<const half> X, Ptr<const half> W, Ptr<const float> mean,
                                             Ptr<const float> rstd, Ptr<int32_t> lock, I64 stride, I32 N, I32 /*M*/) {
  // DX, DY, X [M, N], DW, DB [groups, N], lock [2 * groups]: locks, then how often they were taken
  num_warps(c.warps);
  auto row = program_id(0);
  auto n = arange(0, c.BN);
  auto mask = n < N;
  auto at = cast(row, i64) * stride;
  auto group = row % c.groups;
  auto x = cast(load(X + at + n, {.mask = mask}), f32), dy = cast(load(DY + at + n, {.mask = mask}), f32);
  auto w = cast(load(W + n, {.mask = mask}), f32);
  auto mu = load(mean + row), r = load(rstd + row);
  auto xhat = where(mask, (x - mu) * r, 0.f), wdy = where(mask, w * dy, 0.f);
  auto c1 = sum(xhat * wdy) / cast(N, f32), c2 = sum(wdy) / cast(N, f32);
  store(DX + at + n, cast((wdy - (xhat * c1 + c2)) * r, f16), {.mask = mask});
  Tile dw = dy * xhat, db = dy;
  while_([&] { return atomic_cas(lock + group, 0, 1) == 1; }, [&] {});
  auto count = load(lock + c.groups + group);
  if_(count == 0, [&] { atomic_exchange(lock + c.groups + group, 1); },
      [&] {
        dw += load(DW + group * N + n, {.mask = mask});
        db += load(DB + group * N + n, {.mask = mask});
      });
  store(DW + group * N + n, dw, {.mask = mask});
  store(DB + group * N + n, db, {.mask = mask});
  atomic_exchange(lock + group, 0);
}).grid([](const LockNormCfg&, auto, auto, auto, auto, auto, auto, auto, auto, auto, int64_t, int, int M) {
  return Grid{M};
});
auto lock_norm_sum = kernel("user_lock_norm_sum", [](const LockNormCfg& c, Ptr<const float> DW, Ptr<const float> DB,
                                                     Ptr<half> w, Ptr<half> b, I32 groups, I32 N) {
  num_warps(4);
  auto n = program_id(0) * c.BC + arange(0, c.BC);
  Tile dw = zeros({c.BM, c.BC}, f32), db = zeros({c.BM, c.BC}, f32);
  for (auto i : range(0, groups, c.BM)) {
    auto r = i + arange(0, c.BM);
    auto mask = (r.col() < groups) & (n.row() < N);
    dw += load(DW + (r.col() * N + n.row()), {.mask = mask, .other = 0.f});
    db += load(DB + (r.col() * N + n.row()), {.mask = mask, .other = 0.f});
  }
  store(w + n, cast(squeeze(sum(dw, axis(0)), 0), f16), {.mask = n < N});
  store(b + n, cast(squeeze(sum(db, axis(0)), 0), f16), {.mask = n < N});
}).grid([](const LockNormCfg& c, auto, auto, auto, auto, int, int N) { return Grid{cdiv(N, c.BC)}; });
Register r3("lock_norm", [](Env& e) {
  LockNormCfg c;
  if (!e.big) c = {128, 16, 32, 3, 4};
  else c.BN = 8192;
  c.warps = e.field("warps", c.warps), c.groups = e.field("groups", c.groups);
  const int M = e.big ? 4096 : 13, N = e.big ? 8192 : 103;
  auto x = random<half>(e, size_t(M) * N), dy = random<half>(e, size_t(M) * N), w = random<half>(e, N);
  auto mean = random<float>(e, M, -.2, .2), rstd = random<float>(e, M, .8, 2);
  auto dx = constant<half>(e, size_t(M) * N, NAN), dw = constant<half>(e, N, NAN), db = constant<half>(e, N, NAN);
  auto DW = constant<float>(e, size_t(c.groups) * N, NAN), DB = constant<float>(e, size_t(c.groups) * N, NAN);
  auto lock = constant<int32_t>(e, 2 * c.groups, 0);
  Job j;
  j.mbytes = 6e-6 * M * N;
  j.add(lock_norm, c, dx.p, dy.p, DW.p, DB.p, x.p, w.p, mean.p, rstd.p, lock.p, int64_t(N), N, M);
  j.add(lock_norm_sum, c, DW.p, DB.p, dw.p, db.p, c.groups, N);
  j.check = [=] {
    std::vector<double> gx(size_t(M) * N), gw(N), gb(N);
    for (int m = 0; m < M; ++m) {
      double c1 = 0, c2 = 0;
      auto xhat = [&](int n) { return (x[size_t(m) * N + n] - mean[m]) * rstd[m]; };
      for (int n = 0; n < N; ++n) {
        const double g = dy[size_t(m) * N + n];
        c1 += xhat(n) * g * w[n] / N, c2 += g * w[n] / N, gw[n] += g * xhat(n), gb[n] += g;
      }
      for (int n = 0; n < N; ++n) gx[size_t(m) * N + n] = (dy[size_t(m) * N + n] * w[n] - xhat(n) * c1 - c2) * rstd[m];
    }
    auto wrong = agree(dx.now(), gx, 2e-3, 2e-3);
    if (wrong.empty()) wrong = agree(dw.now(), gw, 5e-3, 2e-3);
    return wrong.empty() ? agree(db.now(), gb, 5e-3, 2e-3) : wrong;
  };
  return j;
});

// --- programs that draw their next tile from a counter: rows of different lengths, a product with a transposed operand
// each. The last program to leave puts the counter back.
struct TicketCfg {
  int BM = 128, BN = 128, BK = 64, programs = 132, stages = 3, warps = 8;
};
auto ticket_gemm = kernel("user_ticket_gemm", [](const TicketCfg& c, Ptr<int32_t> ticket, Ptr<const int32_t> tiles,
                                                 Ptr<const int32_t> offsets, Ptr<const bfloat16> X,
                                                 Ptr<const bfloat16> W, Ptr<bfloat16> Y, I32 count, I32 N, I32 K) {
  // tiles [count, 2]: group, first row in it; offsets [groups + 1] of rows; W [groups, N, K]; ticket [2]
  num_warps(c.warps);
  auto across = cdiv(N, c.BN);
  auto r = arange(0, c.BM), n = arange(0, c.BN), k = arange(0, c.BK);
  Tile mine = atomic_add(ticket, 1);
  while_([&] { return mine < count * across; }, [&] {
    auto tile = mine / across, g = load(tiles + 2 * tile), m0 = load(tiles + 2 * tile + 1);
    auto end = load(offsets + g + 1);
    auto rows = load(offsets + g) + m0 + r, columns = mine % across * c.BN + n;
    Tile xp = X + (cast(rows.col(), i64) * K + k.row());
    Tile wp = W + (cast(g, i64) * N * K + (columns.row() * K + k.col()));
    Tile acc = zeros({c.BM, c.BN}, f32);
    for (auto at : range(0, K, c.BK, {.stages = c.stages})) {
      auto x = load(xp, {.mask = (rows.col() < end) & (at + k.row() < K)});
      auto w = load(wp, {.mask = (columns.row() < N) & (at + k.col() < K)});
      acc = dot(x, w, acc);
      xp += c.BK;
      wp += c.BK;
    }
    store(Y + (cast(rows.col(), i64) * N + columns.row()), cast(acc, bf16),
          {.mask = (rows.col() < end) & (columns.row() < N)});
    mine = atomic_add(ticket, 1);
  });
  auto left = atomic_add(ticket + 1, 1);
  if_(left == num_programs(0) - 1, [&] {
    store(ticket, 0);
    store(ticket + 1, 0);
  });
}).grid([](const TicketCfg& c, auto...) { return Grid{c.programs}; });
Register r4("ticket_gemm", [](Env& e) {
  TicketCfg c;
  if (!e.big) c = {32, 32, 16, 5, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int G = e.big ? 16 : 4, N = e.big ? 4096 : 72, K = e.big ? 2048 : 56;
  std::vector<int32_t> offsets{0}, tiles;
  for (int g = 0; g < G; ++g) offsets.push_back(offsets.back() + (e.big ? 128 + 97 * g : 37 * (g % 3)));
  for (int g = 0; g < G; ++g)
    for (int m = 0; m < offsets[g + 1] - offsets[g]; m += c.BM) tiles.insert(tiles.end(), {g, m});
  const int M = offsets.back(), count = int(tiles.size()) / 2;
  auto o = filled<int32_t>(e, offsets.size(), [&](size_t i) { return offsets[i]; });
  auto t = filled<int32_t>(e, tiles.size(), [&](size_t i) { return tiles[i]; });
  auto ticket = constant<int32_t>(e, 2, 0);
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(G) * N * K);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(ticket_gemm, c, ticket.p, t.p, o.p, x.p, w.p, y.p, count, N, K);
  j.check = [=] {
    std::vector<double> want;
    for (int g = 0; g < G; ++g)
      for (int m = offsets[g]; m < offsets[g + 1]; ++m)
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int k = 0; k < K; ++k) s += x[size_t(m) * K + k] * w[(size_t(g) * N + n) * K + k];
          want.push_back(s);
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace tutorials
}  // namespace users
