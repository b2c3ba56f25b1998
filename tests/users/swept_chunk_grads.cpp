// swept_chunk_grads.cpp - what comes back through chunked linear attention, taken apart as flash-linear-attention does
// it: gradients of states from the last chunk on, for a gate and for the gated delta rule, and of queries, keys, gates
// and w from states. Tiles, warps and stages are fields; gate and dw say which of the variants it is.
#include "tests/users/swept_chunks.h"
namespace users {
namespace swept_chunk_grads {

// --- gradients of q, k, w and g of a chunk and a block of keys, from the states and their gradients
auto dqkwg =
    kernel(
        "user_dqkwg",
        [](const FlaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v, Ptr<const bfloat16> h,
           Ptr<const float> g, Ptr<const bfloat16> dO, Ptr<const bfloat16> dH, Ptr<const bfloat16> dV, Ptr<bfloat16> dQ,
           Ptr<bfloat16> dK, Ptr<bfloat16> dW, Ptr<float> dG, F32 scale, I32 T, I32 B) {
          num_warps(c.warps);
          auto k0 = program_id(0) * c.BK, i = program_id(1), t = i * c.BT;
          auto b = program_id(2) / c.H, head = program_id(2) % c.H;
          auto NT = cdiv(T, c.BT);
          auto values = rows_of(c, v, b, head, T, c.V), grads = rows_of(c, dO, b, head, T, c.V);
          auto states = turned_state_of(c, h, b, head, NT, i), dstates = turned_state_of(c, dH, b, head, NT, i);
          Tile dq = zeros({c.BT, c.BK}, f32), dk = zeros({c.BT, c.BK}, f32), dw = zeros({c.BT, c.BK}, f32);
          Tile ds = zeros({c.BT, c.BT}, f32), dg_last = full({}, 0.f, f32);
          for (auto n : range(0, c.V, c.BV, {.stages = c.stages})) {
            auto bv = values.load({t, n}, {c.BT, c.BV}), bo = grads.load({t, n}, {c.BT, c.BV});
            auto bh = states.load({n, k0}, {c.BV, c.BK}), bdh = dstates.load({n, k0}, {c.BV, c.BK});
            if (c.gate) dg_last += sum(cast(bh, f32) * cast(bdh, f32));
            ds += dot(bo, trans(bv));
            dq += dot(bo, bh);
            dk += dot(bv, bdh);
            if (c.dw) dw += dot(rows_of(c, dV, b, head, T, c.V).load({t, n}, {c.BT, c.BV}), bh);
          }
          if (c.dw) rows_of(c, dW, b, head, T, c.K).store({t, k0}, cast(-dw, bf16));
          auto bq = rows_of(c, q, b, head, T, c.K).load({t, k0}, {c.BT, c.BK});
          auto bk = rows_of(c, k, b, head, T, c.K).load({t, k0}, {c.BT, c.BK});
          auto row = t + arange(0, c.BT);
          auto lower = (row.col() >= row.row()) & (row < T).col() & (row < T).row();
          if (c.gate) {
            auto bg = gates_of(c, g, b, head, T).load({t}, {c.BT});
            auto g_last = load(g + (b * T + min(t + c.BT, T) - 1) * c.H + head);
            dg_last *= exp(g_last);
            dq *= exp(bg).col() * scale;
            Tile dg = sum(dq * cast(bq, f32), axis(1));
            dk *= where(row < T, exp(g_last - bg), 0.f).col();
            auto of_keys = cast(bk, f32) * dk;
            dg -= sum(of_keys, axis(1));
            dg_last += sum(of_keys);
            ds = where(lower, ds * exp(bg.col() - bg.row()), 0.f) * scale;
            auto shares = ds * dot(bq, trans(bk));
            dg += sum(shares, axis(1));
            auto all = squeeze(dg, 1) - squeeze(sum(shares, axis(0)), 0);
            auto ds16 = cast(ds, bf16);
            dq += dot(ds16, bk);
            dk += dot(trans(ds16), bq);
            all = where(row < min(t + c.BT, T) - 1, all, all + dg_last);
            gates_of(c, dG, program_id(0) * B + b, head, T).store({t}, all);
          } else {
            auto ds16 = cast(where(lower, ds, 0.f), bf16);
            dq += dot(ds16, bk);
            dk += dot(trans(ds16), bq) * scale;
            dq *= scale;
          }
          rows_of(c, dQ, b, head, T, c.K).store({t, k0}, cast(dq, bf16));
          rows_of(c, dK, b, head, T, c.K).store({t, k0}, cast(dk, bf16));
        })
        .grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, float, int T,
                 int B) {
          return Grid{cdiv(c.K, c.BK), cdiv(T, c.BT), B * c.H};
        });
Job dqkwg_job(Env& e, FlaCfg c) {
  const int gate = e.field("gate", c.gate), with_w = e.field("dw", c.dw);
  c = fla_cfg(e, c), c.gate = gate, c.dw = with_w;
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V, NK = cdiv(c.K, c.BK);
  auto q = random<bfloat16>(e, rows * c.K), k = random<bfloat16>(e, rows * c.K), v = random<bfloat16>(e, rows * c.V);
  auto dO = random<bfloat16>(e, rows * c.V), dV = random<bfloat16>(e, rows * c.V);
  auto h = random<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV), dH = random<bfloat16>(e, h.n);
  auto g = gate_sums(e, c, l);
  auto dq = constant<bfloat16>(e, q.n, NAN), dk = constant<bfloat16>(e, q.n, NAN);
  auto dw = constant<bfloat16>(e, q.n, NAN);
  auto dg = constant<float>(e, rows * NK, NAN);
  Job j;
  j.gflop = 2e-9 * rows * ((2. + c.dw) * KV + double(c.BT) * (NK * c.V + (2. + c.gate) * c.K));
  j.add(dqkwg, c, q.p, k.p, v.p, h.p, g.p, dO.p, dH.p, dV.p, dq.p, dk.p, dw.p, dg.p, .125f, l.T, l.B);
  j.check = [=]() -> std::string {
    std::vector<double> wq(q.n), wk(q.n), ww(q.n), wg(rows), last(rows);
    auto gate = [&](size_t row) { return c.gate ? g[row] : 0; };
    for (size_t row = 0; row < rows; ++row) {
      const int t = row / c.H % l.T, first = t / c.BT * c.BT, end = std::min(first + c.BT, l.T);
      const size_t state = ((row / c.H / l.T * l.NT + t / c.BT) * c.H + row % c.H) * KV;
      const size_t last_row = row + size_t(end - 1 - t) * c.H;
      for (int i = 0; i < c.K; ++i) {
        double from_h = 0, from_dh = 0, w = 0, both = 0;
        for (int n = 0; n < c.V; ++n) {
          const double hi = h[state + i * c.V + n], di = dH[state + i * c.V + n];
          from_h += dO[row * c.V + n] * hi, from_dh += v[row * c.V + n] * di, w += dV[row * c.V + n] * hi;
          both += hi * di;
        }
        from_dh *= std::exp(gate(last_row) - gate(row));
        wq[row * c.K + i] += .125 * std::exp(gate(row)) * from_h, wk[row * c.K + i] += from_dh;
        ww[row * c.K + i] = -w;
        last[last_row] += from_dh * k[row * c.K + i];
        if (row == last_row) last[row] += both * std::exp(gate(row));
      }
      for (int s = first; s <= t; ++s) {
        const size_t at = row - size_t(t - s) * c.H;
        double x = 0;
        for (int n = 0; n < c.V; ++n) x += dO[row * c.V + n] * v[at * c.V + n];
        x *= .125 * std::exp(gate(row) - gate(at));
        for (int i = 0; i < c.K; ++i)
          wq[row * c.K + i] += x * k[at * c.K + i], wk[at * c.K + i] += x * q[row * c.K + i];
      }
    }
    for (size_t i = 0; i < q.n; ++i) wg[i / c.K] += q[i] * wq[i] - k[i] * wk[i];
    if (auto wrong = agree(dq.now(), wq, 3e-2, 1e-2); !wrong.empty()) return "q: " + wrong;
    if (auto wrong = agree(dk.now(), wk, 5e-2, 1e-2); !wrong.empty()) return "k: " + wrong;
    if (c.dw)
      if (auto wrong = agree(dw.now(), ww, 3e-2, 1e-2); !wrong.empty()) return "w: " + wrong;
    if (!c.gate) return "";
    std::vector<double> got(rows);
    const auto parts = dg.now();
    for (size_t i = 0; i < parts.size(); ++i) got[i % rows] += parts[i];
    for (size_t i = 0; i < rows; ++i) wg[i] += last[i];
    auto wrong = agree(got, wg, .1, 2e-2);
    return wrong.empty() ? "" : "g: " + wrong;
  };
  return j;
}
Register r1("gated_dqkg", [](Env& e) { return dqkwg_job(e, {.stages = 2}); });
Register r2("delta_dqkw", [](Env& e) { return dqkwg_job(e, {.stages = 2, .gate = 0, .dw = 1}); });

// --- gradients of the states behind every chunk, from the last to the first: dh = e^(g last) dh + (e^g q scale)' do
auto gated_dh =
    kernel("user_gated_dh", [](const FlaCfg& c, Ptr<const bfloat16> q, Ptr<const float> g, Ptr<const bfloat16> dO,
                               Ptr<bfloat16> dH, Ptr<float> dh0, F32 scale, I32 T, I32) {
      num_warps(c.warps);
      auto k0 = program_id(0) * c.BK, v0 = program_id(1) * c.BV;
      auto b = program_id(2) / c.H, head = program_id(2) % c.H;
      auto NT = cdiv(T, c.BT);
      auto queries = turned_rows_of(c, q, b, head, T, c.K);
      auto grads = rows_of(c, dO, b, head, T, c.V);
      Tile dh = zeros({c.BK, c.BV}, f32);
      for (auto i : range(NT - 1, -1, -1, {.stages = c.stages})) {
        state_of(c, dH, b, head, NT, i).store({k0, v0}, cast(dh, bf16));
        auto t = i * c.BT;
        auto bq = queries.load({k0, t}, {c.BK, c.BT});
        auto bo = grads.load({t, v0}, {c.BT, c.BV});
        auto row = t + arange(0, c.BT);
        auto bg = load(g + (b * T * c.H + head) + row * c.H, {.mask = row < T, .other = 0.f});
        auto scaled = cast(cast(bq, f32) * (exp(bg) * scale).row(), bf16);
        dh *= exp(load(g + (b * T + min(t + c.BT, T) - 1) * c.H + head));
        dh += dot(scaled, bo);
      }
      make_view<float>(dh0 + program_id(2) * (c.K * c.V), {c.K, c.V}, {c.V, 1}).store({k0, v0}, dh);
    }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, float, int, int B) {
      return Grid{cdiv(c.K, c.BK), cdiv(c.V, c.BV), B * c.H};
    });
Register r3("gated_dh", [](Env& e) {
  const auto c = fla_cfg(e, {});
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V;
  auto q = random<bfloat16>(e, rows * c.K), dO = random<bfloat16>(e, rows * c.V);
  auto g = gate_sums(e, c, l);
  auto dH = constant<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV, NAN);
  auto dh0 = constant<float>(e, size_t(l.B) * c.H * KV, NAN);
  Job j;
  j.gflop = 2e-9 * rows * KV;
  j.add(gated_dh, c, q.p, g.p, dO.p, dH.p, dh0.p, .125f, l.T, l.B);
  j.check = [=] {
    std::vector<double> want(dH.n), first(dh0.n);
    for (int b = 0; b < l.B; ++b)
      for (int head = 0; head < c.H; ++head) {
        std::vector<double> s(KV);
        auto at = [&](int t) { return (size_t(b) * l.T + t) * c.H + head; };
        for (int t = l.T - 1; t >= 0; --t) {
          if (t % c.BT == c.BT - 1 || t == l.T - 1)
            std::copy(s.begin(), s.end(), &want[((size_t(b) * l.NT + t / c.BT) * c.H + head) * KV]);
          const double decay = std::exp(g[at(t)] - (t % c.BT ? g[at(t - 1)] : 0));
          for (int i = 0; i < KV; ++i)
            s[i] = decay * (s[i] + .125 * q[at(t) * c.K + i / c.V] * dO[at(t) * c.V + i % c.V]);
        }
        std::copy(s.begin(), s.end(), &first[(size_t(b) * c.H + head) * KV]);
      }
    auto wrong = agree(dH.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(dh0.now(), first, 1e-2, 1e-2) : wrong;
  };
  return j;
});

// --- the same for the gated delta rule: dv' = dv + e^(g last - g) k dh, dh = e^(g last) dh + (e^g q)' do scale - w'
// dv'
auto delta_dh =
    kernel("user_delta_dh", [](const FlaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> w,
                               Ptr<const float> g, Ptr<const bfloat16> dO, Ptr<const bfloat16> dV, Ptr<bfloat16> dH,
                               Ptr<bfloat16> dV2, Ptr<float> dh0, F32 scale, I32 T, I32) {
      num_warps(c.warps);
      const int rows = 64;
      auto v0 = program_id(0) * c.BV;
      auto b = program_id(1) / c.H, head = program_id(1) % c.H;
      auto NT = cdiv(T, c.BT);
      auto keys = rows_of(c, k, b, head, T, c.K);
      auto queries = turned_rows_of(c, q, b, head, T, c.K), ws = turned_rows_of(c, w, b, head, T, c.K);
      auto grads = rows_of(c, dO, b, head, T, c.V), dvs = rows_of(c, dV, b, head, T, c.V);
      std::vector<Tile> dh;
      for (int i = 0; i < c.K; i += rows) dh.push_back(zeros({rows, c.BV}, f32));
      for (auto n : range(NT - 1, -1, -1, {.stages = c.stages})) {
        auto t = n * c.BT;
        auto to = state_of(c, dH, b, head, NT, n);
        for (int i = 0; i < c.K; i += rows) to.store({i, v0}, cast(dh[i / rows], bf16));
        auto row = t + arange(0, c.BT);
        auto g_last = load(g + (b * T + min(t + c.BT, T) - 1) * c.H + head);
        auto bg = load(g + (b * T * c.H + head) + row * c.H, {.mask = row < T, .other = 0.f});
        auto bo = grads.load({t, v0}, {c.BT, c.BV});
        Tile dv = zeros({c.BT, c.BV}, f32);
        for (int i = 0; i < c.K; i += rows) dv += dot(keys.load({t, i}, {c.BT, rows}), cast(dh[i / rows], bf16));
        dv *= where(row < T, exp(g_last - bg), 0.f).col();
        dv += cast(dvs.load({t, v0}, {c.BT, c.BV}), f32);
        auto dv16 = cast(dv, bf16);
        rows_of(c, dV2, b, head, T, c.V).store({t, v0}, dv16);
        for (int i = 0; i < c.K; i += rows) {
          auto bw = ws.load({i, t}, {rows, c.BT}), bq = queries.load({i, t}, {rows, c.BT});
          auto scaled = cast(cast(bq, f32) * exp(bg).row(), bf16);
          dh[i / rows] *= exp(g_last);
          dh[i / rows] += dot(scaled, bo) * scale - dot(bw, dv16);
        }
      }
      auto start = make_view<float>(dh0 + program_id(1) * (c.K * c.V), {c.K, c.V}, {c.V, 1});
      for (int i = 0; i < c.K; i += rows) start.store({i, v0}, dh[i / rows]);
    }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, float, int, int B) {
      return Grid{cdiv(c.V, c.BV), B * c.H};
    });
Register r4("delta_dh", [](Env& e) {
  auto c = fla_cfg(e, {.BV = 32, .stages = 2});
  if (!e.big) c.K = 72;
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V;
  auto q = random<bfloat16>(e, rows * c.K), k = random<bfloat16>(e, rows * c.K, -.1, .1),
       w = random<bfloat16>(e, rows * c.K, -.1, .1);
  auto dO = random<bfloat16>(e, rows * c.V), dV = random<bfloat16>(e, rows * c.V);
  auto g = gate_sums(e, c, l);
  auto dH = constant<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV, NAN), dV2 = constant<bfloat16>(e, dV.n, NAN);
  auto dh0 = constant<float>(e, size_t(l.B) * c.H * KV, NAN);
  Job j;
  j.gflop = 6e-9 * rows * KV;
  j.add(delta_dh, c, q.p, k.p, w.p, g.p, dO.p, dV.p, dH.p, dV2.p, dh0.p, .125f, l.T, l.B);
  j.check = [=] {
    std::vector<double> want(dH.n), values(dV.n), start(dh0.n);
    for (int b = 0; b < l.B; ++b)
      for (int head = 0; head < c.H; ++head) {
        std::vector<double> s(KV);
        auto at = [&](int t) { return (size_t(b) * l.T + t) * c.H + head; };
        for (int i = l.NT - 1; i >= 0; --i) {
          const int first = i * c.BT, end = std::min(first + c.BT, l.T);
          const double last = g[at(end - 1)];
          std::copy(s.begin(), s.end(), &want[((size_t(b) * l.NT + i) * c.H + head) * KV]);
          const auto behind = s;
          for (double& x : s) x *= std::exp(last);
          for (int t = first; t < end; ++t)
            for (int n = 0; n < c.V; ++n) {
              double sum = 0;
              for (int d = 0; d < c.K; ++d) sum += k[at(t) * c.K + d] * behind[d * c.V + n];
              const double dv = values[at(t) * c.V + n] = dV[at(t) * c.V + n] + sum * std::exp(last - g[at(t)]);
              const double go = .125 * std::exp(g[at(t)]) * dO[at(t) * c.V + n];
              for (int d = 0; d < c.K; ++d) s[d * c.V + n] += q[at(t) * c.K + d] * go - w[at(t) * c.K + d] * dv;
            }
        }
        std::copy(s.begin(), s.end(), &start[(size_t(b) * c.H + head) * KV]);
      }
    if (auto wrong = agree(dH.now(), want, 2e-2, 1e-2); !wrong.empty()) return "states: " + wrong;
    if (auto wrong = agree(dV2.now(), values, 2e-2, 1e-2); !wrong.empty()) return "values: " + wrong;
    return agree(dh0.now(), start, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace swept_chunk_grads
}  // namespace users
