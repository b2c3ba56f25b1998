// chunk_ports.cpp - kernels of flash-linear-attention whose loops have branches, inner loops and updates of memory:
// states of twelve levels of a sequence, decays of every channel between queries and keys, what comes back through
// products of reflections.
#include "tests/users/use.h"
namespace users {
namespace chunk_ports {

// --- log-linear attention: the state of level l holds the last 2^l chunks that the binary counter of chunks names; a
// chunk reads those whose bit is set, and a carry adds one to the next
struct LogLinearCfg {
  int BT = 32, BK = 32, V = 64, levels = 6, warps = 4, stages = 2;
};
auto log_linear =
    kernel("user_log_linear", [](const LogLinearCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                 Ptr<const bfloat16> v, Ptr<const float> g, Ptr<const bfloat16> scales,
                                 Ptr<const int32_t> table, Ptr<bfloat16> o, I32 T, I32 G, I32 H, I32 K, I32 L) {
      num_warps(c.warps);
      const int inside = int(std::log2(c.BT)) + 1;
      auto i = arange(0, c.BT), vi = arange(0, c.V);
      auto at_level = load(table + (i.col() * c.BT + i.row()));
      auto kblocks = cdiv(K, c.BK);
      auto ik = program_id(0) % kblocks, nh = program_id(0) / kblocks, n = nh / H, h = nh % H, grp = h / (H / G);
      auto bos = cast(n, i64) * T;
      auto d = ik * c.BK + arange(0, c.BK);
      std::vector<Tile> kv(c.levels);
      for (Tile& x : kv) x = zeros({c.BK, c.V}, f32);
      auto qp = q + (bos * G + grp) * K;
      auto kp = k + (bos * G + grp) * K;
      auto vp = v + (bos * H + h) * c.V;
      auto gp = g + bos * H + h;
      auto lp = scales + (bos * H + h) * L;
      auto op = o + ((bos * H + h) * kblocks + ik) * c.V;
      auto NT = cdiv(T, c.BT);
      for (auto t : range(0, NT, 1, {.stages = c.stages})) {
        auto r = t * c.BT + i;
        auto in = r < T;
        auto bh = load(lp + (min(r, T - 1).col() * (H * L) + at_level),
                       {.mask = (i.col() >= i.row()) & in.col() & in.row(), .other = 0});
        auto bg = load(gp + r * H, {.mask = in, .other = 0});
        auto bq = load(qp + (r.col() * (G * K) + d.row()), {.mask = in.col() & (d < K).row(), .other = 0});
        auto bk = load(kp + (d.col() + r.row() * (G * K)), {.mask = (d < K).col() & in.row(), .other = 0});
        auto bs = where((i.col() >= i.row()) & in.col() & in.row(), exp(bg.col() - bg.row()), 0.f);
        auto weights = cast(dot(bq, bk) * bs, bf16) * bh;
        auto bv = load(vp + (r.col() * (H * c.V) + vi.row()), {.mask = in.col(), .other = 0});
        Tile out = dot(weights, bv);
        for (int l = 0; l < c.levels; ++l)
          if_((t & (1 << l)) != 0, [&] {
            auto bl = load(lp + (r.col() * (H * L) + (inside + l)), {.mask = in.col() & (inside + l < L), .other = 0});
            out += dot(bl * bq, cast(kv[l], bf16)) * exp(bg).col();
          });
        store(op + (r.col() * (H * kblocks * c.V) + vi.row()), cast(out, bf16), {.mask = in.col()});
        if_((t < NT - 1) | (T % c.BT == 0), [&] {
          auto last = load(gp + (min((t + 1) * c.BT, T) - 1) * H);
          for (Tile& x : kv) x *= exp(last);
          auto decayed = cast(cast(bv, f32) * exp(last - bg).col(), bf16);
          kv[0] = dot(bk, decayed, kv[0]);
          auto carry = (~t & (t + 1)) - 1;
          for (int l = 0; l + 1 < c.levels; ++l)
            if_((carry & (1 << l)) != 0, [&] {
              kv[l + 1] += kv[l];
              kv[l] = zeros({c.BK, c.V}, f32);
            });
        });
      }
    }).grid([](const LogLinearCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int, int H, int K, int) {
      return Grid{cdiv(K, c.BK) * 2 * H};
    });
Register r1("log_linear", [](Env& e) {
  LogLinearCfg c;
  c.levels = e.field("levels", e.big ? 6 : 4);
  c.BT = e.field("BT", e.big ? 64 : 16), c.BK = e.field("BK", 32), c.V = e.field("V", e.big ? 64 : 32);
  c.warps = e.field("warps", e.big ? 8 : 4), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 8192 : 16 * 9 + 5), G = e.big ? 8 : 1, H = e.big ? 32 : 2,
            K = e.field("K", e.big ? 128 : 32), V = c.V, BT = c.BT;
  const int inside = int(std::log2(BT)) + 1, L = inside + c.levels, KB = (K + c.BK - 1) / c.BK;
  auto q = random<bfloat16>(e, size_t(B) * T * G * K, -.5, .5), k = random<bfloat16>(e, size_t(B) * T * G * K, -.5, .5),
       v = random<bfloat16>(e, size_t(B) * T * H * V);
  std::vector<float> sums(std::min<size_t>(size_t(B) * T * H, 1 << 18));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = (i / H % T % BT == 0 || i < size_t(H) ? 0 : sums[i - H]) - float(.1 * e.uniform());
  auto g = repeated(e, size_t(B) * T * H, sums);
  auto scales = random<bfloat16>(e, size_t(B) * T * H * L, 0, 1);
  std::vector<int> levels(BT * BT);  // of the pair (i, j) in a chunk: 0 on the diagonal, else where their bits part
  for (int i = 0; i < BT; ++i)
    for (int j = 0; j <= i; ++j) levels[i * BT + j] = i == j ? 0 : 32 - __builtin_clz(i ^ j);
  auto table = repeated(e, BT * BT, levels);
  auto o = constant<bfloat16>(e, size_t(B) * T * H * KB * V, NAN);
  Job j;
  j.gflop = 2e-9 * B * T * H * K * (V * 4. + BT);
  j.add(log_linear, c, q.p, k.p, v.p, g.p, scales.p, table.p, o.p, T, G, H, K, L);
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * H * KB * V);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int kb = 0; kb < KB; ++kb)
          for (int t = 0; t < T; ++t)
            for (int s = 0; s <= t; ++s) {
              const int tc = t / BT, sc = s / BT;
              const size_t rt = size_t(b) * T + t, rs = size_t(b) * T + s;
              double decay = 0;
              int level;
              if (tc == sc)
                level = levels[t % BT * BT + s % BT], decay = g[rt * H + h] - g[rs * H + h];
              else {
                decay = g[rt * H + h] - g[rs * H + h];
                for (int m = sc; m < tc; ++m) decay += g[(size_t(b) * T + m * BT + BT - 1) * H + h];
                level = -1;  // chunk sc lies in the block of the counter tc whose bit is ...
                int start = 0;
                for (int bit = 20; bit >= 0; --bit)
                  if (tc >> bit & 1) {
                    if (sc >= start && sc < start + (1 << bit)) level = inside + bit;
                    start += 1 << bit;
                  }
                if (level >= L) level = -1;  // more levels than the kernel keeps
              }
              if (level < 0) continue;
              double x = 0;
              const int grp = h / (H / G);
              for (int d = kb * c.BK; d < std::min(K, (kb + 1) * c.BK); ++d)
                x += q[(rt * G + grp) * K + d] * k[(rs * G + grp) * K + d];
              x *= std::exp(decay) * scales[(rt * H + h) * L + level];
              for (int d = 0; d < V; ++d) want[((rt * H + h) * KB + kb) * V + d] += x * v[(rs * H + h) * V + d];
            }
    return agree(o.now(), want, 5e-2, 3e-2);
  };
  return j;
});

// --- attention with a decay of every channel between query and key (a "wall"): keys of earlier blocks in half
// precision against the first row of the block, those of the block itself in floats against the first row of every 32
// keys
struct WallCfg {
  int BT = 64, BS = 32, BK = 64, warps = 4, stages = 2, window = 0;
};
auto wall =
    kernel("user_wall", [](const WallCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                           Ptr<bfloat16> o, Ptr<const float> P, Ptr<const float> sink, Ptr<float> lse, F32 scale, I32 T,
                           I32 HQ, I32 H, I32 K) {
      num_warps(c.warps);
      auto b = program_id(1) / HQ, hq = program_id(1) % HQ, h = hq / (HQ / H);
      auto t0 = program_id(0) * c.BT;
      auto bos = cast(b, i64) * T;
      auto m = t0 + arange(0, c.BT), d = arange(0, c.BK), s = arange(0, c.BS);
      auto rows = (m < T).col() & (d < K).row();
      auto base_q = (bos * HQ + hq) * K, base_k = (bos * H + h) * K;
      auto bq = load(q + base_q + (m.col() * (HQ * K) + d.row()), {.mask = rows, .other = 0});
      auto pq = load(P + base_q + (m.col() * (HQ * K) + d.row()), {.mask = rows, .other = 0});
      auto first = [&](const Tile& at) { return load(P + base_q + (at * (HQ * K) + d), {.mask = d < K, .other = 0}); };
      auto R = first(t0);
      auto q_near = cast(cast(bq, f32) * exp2(pq - R.row()), bf16);
      const float kLog2e = 1.4426950216f;
      Tile acc = zeros({c.BT, c.BK}, f32), top = full({c.BT}, -INFINITY, f32), total = zeros({c.BT}, f32);
      auto add = [&](const Tile& x, const Tile& bv) {
        auto now = max(top, squeeze(max(x, axis(1)), 1));
        auto safe = where(now == -INFINITY, 0.f, now);
        auto r = exp2(top - safe);
        auto p = exp2(x - safe.col());
        total = total * r + squeeze(sum(p, axis(1)), 1);
        acc = acc * r.col() + dot(cast(p, bf16), bv);
        top = now;
      };
      Tile start = c.window ? max((t0 - c.window + 1) / c.BS * c.BS, 0) : t0 * 0;
      for (auto i : range(start, t0, c.BS, {.stages = c.stages})) {
        auto n = i + s;
        auto in = (d < K).col() & (n < T).row();
        auto bk = load(k + base_k + (d.col() + n.row() * (H * K)), {.mask = in, .other = 0});
        auto bv = load(v + base_k + (n.col() * (H * K) + d.row()), {.mask = (n < T).col() & (d < K).row(), .other = 0});
        auto pk = load(P + base_q + (d.col() + n.row() * (HQ * K)), {.mask = in, .other = 0});
        auto kt = cast(cast(bk, f32) * exp2(R.col() - pk), bf16);
        Tile x = dot(q_near, kt) * scale * kLog2e;
        if (c.window) x = where((m.col() - n.row() < c.window) & (n < T).row(), x, -INFINITY);
        add(x, bv);
      }
      for (auto i : range(t0, min(t0 + c.BT, T), c.BS, {.stages = c.stages})) {
        auto n = i + s;
        auto in = (d < K).col() & (n < T).row();
        auto local = first(i);
        auto bk = load(k + base_k + (d.col() + n.row() * (H * K)), {.mask = in, .other = 0});
        auto bv = load(v + base_k + (n.col() * (H * K) + d.row()), {.mask = (n < T).col() & (d < K).row(), .other = 0});
        auto pk = load(P + base_q + (d.col() + n.row() * (HQ * K)), {.mask = in, .other = 0});
        auto up = local.col() - pk;
        up = where(up > 110.f, zeros_like(up) + 110.f, up);
        auto kt = cast(bk, f32) * exp2(up);
        auto qt = cast(bq, f32) * exp2(min(pq - broadcast_to(local.row(), {c.BT, c.BK}), zeros({c.BT, c.BK}, f32)));
        Tile x = dot(qt, kt, zeros({c.BT, c.BS}, f32), Prec::tf32) * scale * kLog2e;
        Tile seen = (m.col() >= n.row()) & (n < T).row();
        if (c.window) seen = seen & (m.col() - n.row() < c.window);
        add(where(seen, x, -INFINITY), bv);
      }
      top = where(top == -INFINITY, 0.f, top);
      total += exp2(load(sink + hq) - top);
      store(o + base_q + (m.col() * (HQ * K) + d.row()), cast(acc / total.col(), bf16), {.mask = rows});
      store(lse + bos * HQ + hq + m * HQ, top + log2(total), {.mask = m < T});
    }).grid([](const WallCfg& c, auto, auto, auto, auto, auto, auto, auto, float, int T, int HQ, int, int) {
      return Grid{cdiv(T, c.BT), 2 * HQ};
    });
Job wall_job(Env& e, int window) {
  WallCfg c;
  c.window = window;
  c.BT = e.field("BT", e.big ? 64 : 32), c.BS = e.field("BS", e.big ? 32 : 16), c.BK = e.field("BK", e.big ? 128 : 32);
  c.warps = e.field("warps", e.big ? 8 : 4), c.stages = e.field("stages", c.stages);
  const int B = 2, T = e.field("T", e.big ? 4096 : 101), HQ = e.big ? 32 : 4, H = e.big ? 8 : 2,
            K = e.field("K", e.big ? 128 : 24);
  auto q = random<bfloat16>(e, size_t(B) * T * HQ * K), k = random<bfloat16>(e, size_t(B) * T * H * K),
       v = random<bfloat16>(e, size_t(B) * T * H * K);
  std::vector<float> sums(std::min<size_t>(size_t(B) * T * HQ * K, 1 << 20));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] =
        (i / (size_t(HQ) * K) % T == 0 || i < size_t(HQ) * K ? 0 : sums[i - size_t(HQ) * K]) - float(.1 * e.uniform());
  auto P = repeated(e, size_t(B) * T * HQ * K, sums);
  auto sink = random<float>(e, HQ);
  auto o = constant<bfloat16>(e, size_t(B) * T * HQ * K, NAN);
  auto lse = constant<float>(e, size_t(B) * T * HQ, NAN);
  Job j;
  j.gflop = 2e-9 * B * HQ * double(T) * T * K;
  j.add(wall, c, q.p, k.p, v.p, o.p, P.p, sink.p, lse.p, .25f, T, HQ, H, K);
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * HQ * K), wl(size_t(B) * T * HQ);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < HQ; ++h)
        for (int t = 0; t < T; ++t) {
          const size_t r = (size_t(b) * T + t) * HQ + h;
          double total = std::exp2(sink[h]);
          std::vector<double> out(K);
          for (int s = window ? std::max(0, t - window + 1) : 0; s <= t; ++s) {
            const size_t kr = (size_t(b) * T + s) * H + h / (HQ / H), pr = (size_t(b) * T + s) * HQ + h;
            double x = 0;
            for (int d = 0; d < K; ++d) x += q[r * K + d] * k[kr * K + d] * std::exp2(P[r * K + d] - P[pr * K + d]);
            const double p = std::exp(x * .25);
            total += p;
            for (int d = 0; d < K; ++d) out[d] += p * v[kr * K + d];
          }
          for (int d = 0; d < K; ++d) want[r * K + d] = out[d] / total;
          wl[r] = std::log2(total);
        }
    auto wrong = agree(o.now(), want, 2e-2, 2e-2);
    return wrong.empty() ? agree(lse.now(), wl, 2e-2, 2e-2) : wrong;
  };
  return j;
}
Register r2("wall", [](Env& e) { return wall_job(e, 0); });
Register r3("wall_window", [](Env& e) { return wall_job(e, e.big ? 1024 : 20); });

// --- RWKV-6, what comes back inside a chunk: blocks of 16 rows against those before (dq) and behind (dk) as products,
// the block itself row by row
struct InsideCfg {
  int BC = 16, NC = 4, BK = 64, warps = 4;
};
auto rwkv6_inside =
    kernel("user_rwkv6_inside", [](const InsideCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                   Ptr<const float> gi, Ptr<const float> ge, Ptr<const float> dA, Ptr<float> dq,
                                   Ptr<float> dk, I32 T, I32 H, I32 K) {
      num_warps(c.warps);
      const int BT = c.BC * c.NC;
      auto nk = cdiv(K, c.BK);
      auto ik = program_id(0) % nk, ic = program_id(0) / nk, it = ic / c.NC, ii = ic % c.NC;
      auto b = program_id(1) / H, h = program_id(1) % H;
      auto bos = cast(b, i64) * T;
      auto t0 = it * BT, r0 = t0 + ii * c.BC;
      return_if(r0 >= T);
      auto d = ik * c.BK + arange(0, c.BK), i = arange(0, c.BC), r = r0 + i;
      auto kin = d < K;
      auto in = (r < T).col() & kin.row();
      auto head = (bos * H + h) * K, heada = (bos * H + h) * BT;
      auto at = [&](const Tile& rows) { return rows.col() * (H * K) + d.row(); };
      auto bge = load(ge + head + at(r), {.mask = in, .other = 0});
      Tile bdq = zeros({c.BC, c.BK}, f32);
      if_(ii > 0, [&] {
        auto gn = load(gi + head + ((r0 - 1) * (H * K) + d), {.mask = kin, .other = 0});
        for (auto j : range(0, ii)) {
          auto rj = t0 + j * c.BC + i;
          auto jin = (rj < T).col() & kin.row();
          auto bk = load(k + head + at(rj), {.mask = jin, .other = 0});
          auto bgk = load(gi + head + at(rj), {.mask = jin, .other = 0});
          auto kg = cast(bk, f32) * exp2(gn.row() - bgk);
          auto bdA =
              load(dA + heada + (r.col() * (H * BT) + (j * c.BC + i).row()), {.mask = (r < T).col(), .other = 0});
          bdq = dot(bdA, kg, bdq, Prec::tf32);
        }
        bdq *= exp2(bge - gn.row());
      });
      auto oA = heada + (ii * c.BC) + r * (H * BT);
      auto pk = head + (r0 * (H * K) + d);
      for (auto j : range(0, min(c.BC, T - r0))) {
        auto bdA = load(dA + oA + j, {.mask = r < T, .other = 0});
        auto bk = cast(load(k + pk + j * (H * K), {.mask = kin, .other = 0}), f32);
        auto bg = load(gi + pk + j * (H * K), {.mask = kin, .other = 0});
        bdq += where(i.col() > j, bdA.col() * bk.row() * exp2(bge - bg.row()), 0.f);
      }
      store(dq + head + at(r), bdq, {.mask = in});
      auto bgk = load(gi + head + at(r), {.mask = in, .other = 0});
      Tile bdk = zeros({c.BC, c.BK}, f32);
      auto blocks = min(c.NC, cdiv(T - t0, c.BC));
      if_(ii < blocks - 1, [&] {
        auto gn = load(gi + head + ((min(r0 + c.BC, T) - 1) * (H * K) + d), {.mask = kin, .other = 0});
        for (auto j : range(ii + 1, blocks)) {
          auto rj = t0 + j * c.BC + i;
          auto jin = (rj < T).col() & kin.row();
          auto bq = load(q + head + at(rj), {.mask = jin, .other = 0});
          auto gq = where(jin, load(ge + head + at(rj), {.mask = jin, .other = 0}), -INFINITY);
          auto qg = cast(bq, f32) * exp2(gq - gn.row());
          auto bdA =
              load(dA + heada + ((ii * c.BC + i).col() + rj.row() * (H * BT)), {.mask = (rj < T).row(), .other = 0});
          bdk = dot(bdA, qg, bdk, Prec::tf32);
        }
        bdk *= exp2(gn.row() - bgk);
      });
      for (auto j : range(0, min(c.BC, T - r0))) {
        auto bdA = load(dA + heada + ((r0 + j) * (H * BT) + ii * c.BC + i));
        auto bq = cast(load(q + pk + j * (H * K), {.mask = kin, .other = 0}), f32);
        auto bg = load(ge + pk + j * (H * K), {.mask = kin, .other = 0});
        bdk += where(i.col() < j, bdA.col() * bq.row() * exp2(bg.row() - bgk), 0.f);
      }
      store(dk + head + at(r), bdk, {.mask = in});
    }).grid([](const InsideCfg& c, auto, auto, auto, auto, auto, auto, auto, int T, int H, int K) {
      return Grid{cdiv(K, c.BK) * cdiv(T, c.BC * c.NC) * c.NC, 2 * H};
    });
Register r4("rwkv6_inside", [](Env& e) {
  InsideCfg c;
  c.BC = e.field("BC", c.BC), c.NC = e.field("NC", c.NC), c.BK = e.field("BK", e.big ? 64 : 32),
  c.warps = e.field("warps", c.warps);
  const int B = 2, T = e.field("T", e.big ? 8192 : 93), H = e.big ? 32 : 2, K = e.field("K", e.big ? 64 : 40),
            BT = c.BC * c.NC;
  const size_t n = size_t(B) * T * H;
  auto q = random<bfloat16>(e, n * K), k = random<bfloat16>(e, n * K);
  auto dA = random<float>(e, n * BT);
  std::vector<float> sums(std::min<size_t>(n * K, 1 << 20)), before(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t t = i / (size_t(H) * K) % T;
    before[i] = t % BT == 0 || i < size_t(H) * K ? 0 : sums[i - size_t(H) * K];
    sums[i] = before[i] - float(.3 * e.uniform());
  }
  auto gi = repeated(e, n * K, sums), ge = repeated(e, n * K, before);
  auto dq = constant<float>(e, n * K, NAN), dk = constant<float>(e, n * K, NAN);
  Job j;
  j.mbytes = 1e-6 * n * K * 24;
  j.add(rwkv6_inside, c, q.p, k.p, gi.p, ge.p, dA.p, dq.p, dk.p, T, H, K);
  j.check = [=] {
    std::vector<double> wq(n * K), wk(n * K);
    for (size_t r = 0; r < n; ++r) {
      const int h = int(r % H), t = int(r / H % T), z = int(r / H / T), t0 = t / BT * BT;
      for (int s = t0; s < t; ++s) {
        const size_t rs = (size_t(z) * T + s) * H + h;
        const double w = dA[r * BT + s - t0];
        for (int d = 0; d < K; ++d) {
          const double x = w * std::exp2(ge[r * K + d] - gi[rs * K + d]);
          wq[r * K + d] += x * k[rs * K + d], wk[rs * K + d] += x * q[r * K + d];
        }
      }
    }
    auto wrong = agree(dq.now(), wq, 1e-2, 5e-3);
    return wrong.empty() ? agree(dk.now(), wk, 1e-2, 5e-3) : wrong;
  };
  return j;
});

// --- PaTH attention going back, inside a part of the sequence: queries are turned by an inner loop for every block of
// keys, gradients of keys, values and reflections are added up in memory
struct PathCfg {
  int BT = 64, BK = 64, S = 512, warps = 4;
};
auto path_back = kernel("user_path_back",
                        [](const PathCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                           Ptr<const float> gates, Ptr<const bfloat16> w1, Ptr<const bfloat16> w2, Ptr<const float> L,
                           Ptr<const float> D, Ptr<const float> dq, Ptr<bfloat16> dq_new, Ptr<float> dk, Ptr<float> dv,
                           Ptr<float> dw1, Ptr<float> dw2, Ptr<const bfloat16> dO, Ptr<float> dgates, I32 T, F32 scale,
                           I32 HQ, I32 H, I32 K) {
                          num_warps(c.warps);
                          auto it = program_id(0), b = program_id(1) / HQ, hq = program_id(1) % HQ, h = hq / (HQ / H);
                          auto bos = cast(b, i64) * T;
                          auto key = (bos * H + h) * K, query = (bos * HQ + hq) * K, one = bos * HQ + hq;
                          auto t0 = it * c.BT, t = t0 + arange(0, c.BT), d = arange(0, c.BK), s = arange(0, c.BT);
                          auto in = (t < T).col() & (d < K).row();
                          auto rows = [&](const Tile& r, const auto& heads) { return r.col() * (heads * K) + d.row(); };
                          auto g = load(dO + query + rows(t, HQ), {.mask = in, .other = 0});
                          auto delta = load(D + one + t * HQ, {.mask = t < T, .other = 0}),
                               l = load(L + one + t * HQ, {.mask = t < T, .other = 0});
                          Tile bdq = zeros({c.BT, c.BK}, f32);
                          bdq += load(dq + query + rows(t, HQ), {.mask = in, .other = 0});
                          auto bq = load(q + query + rows(t, HQ), {.mask = in, .other = 0});
                          auto gq = load(gates + one + t * HQ, {.mask = t < T, .other = 0});
                          Tile dgq = zeros({c.BT}, f32);
                          auto start = t0 / c.S * c.S;
                          for (auto offset : range(start, t0, c.BT)) {
                            auto n = offset + s;
                            auto nin = (n < T).col() & (d < K).row();
                            auto bk = load(k + key + rows(n, H), {.mask = nin, .other = 0});
                            Tile turned = cast(bq, f32);
                            for (auto w : range(t0 - c.BT, offset, -c.BT)) {
                              auto win = (w + s < T).col() & (d < K).row();
                              auto b1 = load(w1 + key + rows(w + s, H), {.mask = win, .other = 0});
                              auto b2 = load(w2 + key + rows(w + s, H), {.mask = win, .other = 0});
                              auto a = dot(cast(turned, bf16), trans(b1));
                              turned -= dot(cast(a, bf16), b2);
                            }
                            auto q2 = cast(turned, bf16);
                            Tile a = dot(q2, trans(bk));
                            auto gk = load(gates + one + n * HQ, {.mask = n < T, .other = 0});
                            a = a + gq.col() - gk.row();
                            a = where((t < T).col(), a, -INFINITY);
                            auto p = exp2(a * (scale * 1.44269504f) - l.col());
                            atomic_add(dv + query + rows(n, HQ), dot(trans(cast(p, bf16)), g), {.mask = nin});
                            auto bv = load(v + key + rows(n, H), {.mask = nin, .other = 0});
                            auto dp = dot(g, trans(bv));
                            auto da = (dp - delta.col()) * p * scale;
                            atomic_add(dgates + one + n * HQ, -squeeze(sum(da, axis(0)), 0), {.mask = n < T});
                            dgq += squeeze(sum(da, axis(1)), 1);
                            auto dab = cast(da, bf16);
                            atomic_add(dk + query + rows(n, HQ), dot(trans(dab), q2), {.mask = nin});
                            auto b1 = load(w1 + key + rows(n, H), {.mask = nin, .other = 0});
                            auto b2 = load(w2 + key + rows(n, H), {.mask = nin, .other = 0});
                            auto da2 = cast(dot(cast(bdq, bf16), trans(b2)), bf16), a2 = cast(dot(q2, trans(b1)), bf16);
                            atomic_add(dw2 + query + rows(n, HQ), -dot(trans(a2), cast(bdq, bf16)), {.mask = nin});
                            atomic_add(dw1 + query + rows(n, HQ), -dot(trans(da2), q2), {.mask = nin});
                            bdq -= dot(da2, b1);
                            bdq = dot(dab, bk, bdq);
                          }
                          store(dq_new + query + rows(t, HQ), cast(bdq, bf16), {.mask = in});
                          atomic_add(dgates + one + t * HQ, dgq, {.mask = t < T});
                        })
                     .grid([](const PathCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto,
                              auto, auto, auto, auto, int T, float, int HQ, int, int) {
                       return Grid{cdiv(T, c.BT), 2 * HQ};
                     });
Register r5("path_back", [](Env& e) {
  PathCfg c;
  c.BT = e.field("BT", e.big ? 64 : 16), c.BK = e.field("BK", e.big ? 64 : 32), c.S = e.field("S", e.big ? 512 : 48),
  c.warps = e.field("warps", e.big ? 8 : 4);
  const int B = 2, T = e.field("T", e.big ? 4096 : 101), HQ = e.big ? 32 : 2, H = e.big ? 8 : 1,
            K = e.field("K", e.big ? 64 : 24), BT = c.BT, S = c.S;
  const size_t nq = size_t(B) * T * HQ, nk = size_t(B) * T * H;
  auto q = random<bfloat16>(e, nq * K), k = random<bfloat16>(e, nk * K), v = random<bfloat16>(e, nk * K),
       g = random<bfloat16>(e, nq * K);
  auto w1 = random<bfloat16>(e, nk * K, -.2, .2), w2 = random<bfloat16>(e, nk * K, -.2, .2);
  auto gates = random<float>(e, nq, -.5, .5), L = random<float>(e, nq, 1, 2), D = random<float>(e, nq);
  auto dq = random<float>(e, nq * K);
  auto dq_new = constant<bfloat16>(e, nq * K, NAN);
  auto dk = constant<float>(e, nq * K, 0), dv = constant<float>(e, nq * K, 0), dw1 = constant<float>(e, nq * K, 0),
       dw2 = constant<float>(e, nq * K, 0), dg = constant<float>(e, nq, 0);
  Job j;
  j.gflop = 2e-9 * nq * K * (S / 2) * 10;
  restore(e, j, dk, dv, dw1, dw2, dg);
  const float scale = .2f;
  j.add(path_back, c, q.p, k.p, v.p, gates.p, w1.p, w2.p, L.p, D.p, dq.p, dq_new.p, dk.p, dv.p, dw1.p, dw2.p, g.p, dg.p,
        T, scale, HQ, H, K);
  j.check = [=] {
    std::vector<double> wq(nq * K), wk(nq * K), wv(nq * K), ww1(nq * K), ww2(nq * K), wg(nq);
    for (int z = 0; z < B; ++z)
      for (int hq = 0; hq < HQ; ++hq) {
        auto row = [&](int t) { return (size_t(z) * T + t) * HQ + hq; };
        auto krow = [&](int t) { return ((size_t(z) * T + t) * H + hq / (HQ / H)) * K; };
        for (int t0 = 0; t0 < T; t0 += BT)
          for (int t = t0; t < std::min(T, t0 + BT); ++t) {
            const size_t r = row(t);
            std::vector<double> back(K);
            for (int d = 0; d < K; ++d) back[d] = dq[r * K + d];
            for (int off = t0 / S * S; off < t0; off += BT) {
              std::vector<double> x(K);
              for (int d = 0; d < K; ++d) x[d] = q[r * K + d];
              for (int w = t0 - BT; w > off; w -= BT) {
                std::vector<double> y = x;
                for (int s = w; s < w + BT; ++s) {
                  double a = 0;
                  for (int d = 0; d < K; ++d) a += x[d] * w1[krow(s) + d];
                  for (int d = 0; d < K; ++d) y[d] -= a * w2[krow(s) + d];
                }
                x = y;
              }
              std::vector<double> next = back;
              for (int s = off; s < off + BT; ++s) {
                double a = 0, dp = 0, da2 = 0, a2 = 0;
                const size_t rs = row(s);
                for (int d = 0; d < K; ++d)
                  a += x[d] * k[krow(s) + d], dp += g[r * K + d] * v[krow(s) + d], da2 += back[d] * w2[krow(s) + d],
                      a2 += x[d] * w1[krow(s) + d];
                a += gates[r] - gates[rs];
                const double p = std::exp2(a * scale * 1.44269504 - L[r]), da = (dp - D[r]) * p * scale;
                wg[r] += da, wg[rs] -= da;
                for (int d = 0; d < K; ++d) {
                  wv[rs * K + d] += p * g[r * K + d], wk[rs * K + d] += da * x[d];
                  ww2[rs * K + d] -= a2 * back[d], ww1[rs * K + d] -= da2 * x[d];
                  next[d] += da * k[krow(s) + d] - da2 * w1[krow(s) + d];
                }
              }
              back = next;
            }
            for (int d = 0; d < K; ++d) wq[r * K + d] = back[d];
          }
      }
    std::string wrong;
    auto look = [&](const auto& got, const std::vector<double>& want, const char* name) {
      auto one = agree(got.now(), want, 1e-1, 3e-2);
      if (!one.empty()) wrong += std::string(name) + " " + one + "; ";
    };
    look(dq_new, wq, "dq"), look(dk, wk, "dk"), look(dv, wv, "dv"), look(dw1, ww1, "dw1"), look(dw2, ww2, "dw2"),
        look(dg, wg, "dg");
    return wrong;
  };
  return j;
});

}  // namespace chunk_ports
}  // namespace users
