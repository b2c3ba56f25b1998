// swept_chunk_states.cpp - chunked linear attention taken apart as flash-linear-attention does it: states in front of
// chunks for a gate and for the gated delta rule, outputs from states, w and u of the WY form, the states' gradients.
// Tiles, warps and stages are fields.
#include "tests/users/swept_chunks.h"
namespace users {
namespace swept_chunk_states {

// --- states in front of chunks, a gate for each row: h = e^(g of the last row) h + k' (e^(g last - g) v)
auto gated_h = kernel("user_gated_h", [](const FlaCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> v, Ptr<bfloat16> h,
                                         Ptr<const float> g, Ptr<const float> h0, Ptr<float> ht, I32 T, I32) {
                 num_warps(c.warps);
                 auto k0 = program_id(0) * c.BK, v0 = program_id(1) * c.BV;
                 auto b = program_id(2) / c.H, head = program_id(2) % c.H;
                 auto NT = cdiv(T, c.BT);
                 auto keys = turned_rows_of(c, k, b, head, T, c.K);
                 auto values = rows_of(c, v, b, head, T, c.V);
                 auto start = make_view<const float>(h0 + program_id(2) * (c.K * c.V), {c.K, c.V}, {c.V, 1});
                 Tile state = start.load({k0, v0}, {c.BK, c.BV});
                 for (auto t : range(0, NT, {.stages = c.stages})) {
                   state_of(c, h, b, head, NT, t).store({k0, v0}, cast(state, bf16));
                   auto last = min((t + 1) * c.BT, T) - 1;
                   auto bk = keys.load({k0, t * c.BT}, {c.BK, c.BT});
                   auto bv = values.load({t * c.BT, v0}, {c.BT, c.BV});
                   auto row = t * c.BT + arange(0, c.BT);
                   auto g_last = load(g + (b * T + last) * c.H + head);
                   auto bg = load(g + (b * T * c.H + head) + row * c.H, {.mask = row < T, .other = 0.f});
                   state *= exp(g_last);
                   state += dot(bk, cast(cast(bv, f32) * exp(g_last - bg).col(), bf16));
                 }
                 auto end = make_view<float>(ht + program_id(2) * (c.K * c.V), {c.K, c.V}, {c.V, 1});
                 end.store({k0, v0}, state);
               }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, int, int B) {
  return Grid{cdiv(c.K, c.BK), cdiv(c.V, c.BV), B * c.H};
});
Register r1("gated_h", [](Env& e) {
  const auto c = fla_cfg(e, {});
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V;
  auto k = random<bfloat16>(e, rows * c.K), v = random<bfloat16>(e, rows * c.V);
  auto g = gate_sums(e, c, l);
  auto h0 = random<float>(e, size_t(l.B) * c.H * KV);
  auto h = constant<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV, NAN);
  auto ht = constant<float>(e, h0.n, NAN);
  Job j;
  j.gflop = 2e-9 * rows * KV;
  j.add(gated_h, c, k.p, v.p, h.p, g.p, h0.p, ht.p, l.T, l.B);
  j.check = [=] {
    std::vector<double> want(h.n), ends(ht.n);
    for (int b = 0; b < l.B; ++b)
      for (int head = 0; head < c.H; ++head) {
        const size_t bh = size_t(b) * c.H + head;
        std::vector<double> s(KV);
        for (int i = 0; i < KV; ++i) s[i] = h0[bh * KV + i];
        for (int t = 0; t < l.T; ++t) {
          const size_t row = (size_t(b) * l.T + t) * c.H + head;
          if (t % c.BT == 0)
            for (int i = 0; i < KV; ++i) want[((size_t(b) * l.NT + t / c.BT) * c.H + head) * KV + i] = s[i];
          const double decay = std::exp(g[row] - (t % c.BT ? g[row - c.H] : 0));
          for (int i = 0; i < KV; ++i) s[i] = decay * s[i] + k[row * c.K + i / c.V] * v[row * c.V + i % c.V];
        }
        std::copy(s.begin(), s.end(), &ends[bh * KV]);
      }
    auto wrong = agree(h.now(), want, 3e-2, 1e-2);
    return wrong.empty() ? agree(ht.now(), ends, 3e-2, 1e-2) : wrong;
  };
  return j;
});

// --- outputs of a chunk: from the state in front of it, and from its own rows
auto gated_o =
    kernel("user_gated_o", [](const FlaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                              Ptr<const bfloat16> h, Ptr<const float> g, Ptr<bfloat16> o, F32 scale, I32 T, I32) {
      num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, t = program_id(1);
      auto b = program_id(2) / c.H, head = program_id(2) % c.H;
      auto queries = rows_of(c, q, b, head, T, c.K);
      auto keys = turned_rows_of(c, k, b, head, T, c.K);
      auto state = state_of(c, h, b, head, cdiv(T, c.BT), t);
      Tile acc = zeros({c.BT, c.BV}, f32), scores = zeros({c.BT, c.BT}, f32);
      for (auto i : range(0, c.K, c.BK, {.stages = c.stages})) {
        auto bq = queries.load({t * c.BT, i}, {c.BT, c.BK});
        auto bk = keys.load({i, t * c.BT}, {c.BK, c.BT});
        auto bh = state.load({i, v0}, {c.BK, c.BV});
        acc += dot(bq, bh);
        scores += dot(bq, bk);
      }
      auto bg = make_view<const float>(g + (b * T * c.H + head), {T}, {c.H}).load({t * c.BT}, {c.BT});
      acc *= exp(bg).col();
      scores *= exp(bg.col() - bg.row());
      auto row = t * c.BT + arange(0, c.BT);
      scores = where((row.col() >= row.row()) & (row < T).col() & (row < T).row(), scores, 0.f);
      auto bv = rows_of(c, v, b, head, T, c.V).load({t * c.BT, v0}, {c.BT, c.BV});
      acc = acc * scale + dot(cast(scores, bf16), bv) * scale;
      rows_of(c, o, b, head, T, c.V).store({t * c.BT, v0}, cast(acc, bf16));
    }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, float, int T, int B) {
      return Grid{cdiv(c.V, c.BV), cdiv(T, c.BT), B * c.H};
    });
Register r2("gated_o", [](Env& e) {
  const auto c = fla_cfg(e, {.BK = 128, .BV = 128});
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V;
  auto q = random<bfloat16>(e, rows * c.K), k = random<bfloat16>(e, rows * c.K), v = random<bfloat16>(e, rows * c.V);
  auto h = random<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV);
  auto g = gate_sums(e, c, l);
  auto o = constant<bfloat16>(e, rows * c.V, NAN);
  Job j;
  j.gflop = 2e-9 * rows * (KV + double(c.BT) * (c.K + c.V));
  j.add(gated_o, c, q.p, k.p, v.p, h.p, g.p, o.p, .125f, l.T, l.B);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (size_t row = 0; row < rows; ++row) {
      const int t = row / c.H % l.T, first = t / c.BT * c.BT;
      const size_t state = ((row / c.H / l.T * l.NT + t / c.BT) * c.H + row % c.H) * KV;
      for (int n = 0; n < c.V; ++n) {
        double sum = 0;
        for (int i = 0; i < c.K; ++i) sum += q[row * c.K + i] * h[state + i * c.V + n];
        want[row * c.V + n] = .125 * sum * std::exp(g[row]);
      }
      for (int s = first; s <= t; ++s) {
        const size_t at = row - size_t(t - s) * c.H;
        double sum = 0;
        for (int i = 0; i < c.K; ++i) sum += q[row * c.K + i] * k[at * c.K + i];
        for (int n = 0; n < c.V; ++n) want[row * c.V + n] += .125 * sum * std::exp(g[row] - g[at]) * v[at * c.V + n];
      }
    }
    return agree(o.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- states of the gated delta rule: v' = u - w h, h = e^(g last) h + k' (e^(g last - g) v'), all keys in a program by
// blocks of 64 rows of the state
auto delta_h =
    kernel("user_delta_h", [](const FlaCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> u, Ptr<const bfloat16> w,
                              Ptr<bfloat16> fresh, Ptr<const float> g, Ptr<bfloat16> h, Ptr<float> ht, I32 T, I32) {
      num_warps(c.warps);
      const int rows = 64;
      auto v0 = program_id(0) * c.BV;
      auto b = program_id(1) / c.H, head = program_id(1) % c.H;
      auto NT = cdiv(T, c.BT);
      auto keys = turned_rows_of(c, k, b, head, T, c.K);
      auto ws = rows_of(c, w, b, head, T, c.K), us = rows_of(c, u, b, head, T, c.V);
      auto out = rows_of(c, fresh, b, head, T, c.V);
      std::vector<Tile> state;
      for (int i = 0; i < c.K; i += rows) state.push_back(zeros({rows, c.BV}, f32));
      for (auto t : range(0, NT, {.stages = c.stages})) {
        auto to = state_of(c, h, b, head, NT, t);
        for (int i = 0; i < c.K; i += rows) to.store({i, v0}, cast(state[i / rows], bf16));
        Tile bv = zeros({c.BT, c.BV}, f32);
        for (int i = 0; i < c.K; i += rows)
          bv += dot(ws.load({t * c.BT, i}, {c.BT, rows}), cast(state[i / rows], bf16));
        bv = cast(us.load({t * c.BT, v0}, {c.BT, c.BV}), f32) - bv;
        out.store({t * c.BT, v0}, cast(bv, bf16));
        auto row = t * c.BT + arange(0, c.BT);
        auto g_last = load(g + (b * T + min((t + 1) * c.BT, T) - 1) * c.H + head);
        auto bg = load(g + (b * T * c.H + head) + row * c.H, {.mask = row < T, .other = 0.f});
        bv *= where(row < T, exp(g_last - bg), 0.f).col();
        auto b16 = cast(bv, bf16);
        for (int i = 0; i < c.K; i += rows) {
          state[i / rows] *= exp(g_last);
          state[i / rows] += dot(keys.load({i, t * c.BT}, {rows, c.BT}), b16);
        }
      }
      auto end = make_view<float>(ht + program_id(1) * (c.K * c.V), {c.K, c.V}, {c.V, 1});
      for (int i = 0; i < c.K; i += rows) end.store({i, v0}, state[i / rows]);
    }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int B) {
      return Grid{cdiv(c.V, c.BV), B * c.H};
    });
Register r3("delta_h", [](Env& e) {
  auto c = fla_cfg(e, {.BV = 32, .stages = 2});
  if (!e.big) c.K = 72;
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  const int KV = c.K * c.V;
  auto k = random<bfloat16>(e, rows * c.K, -.1, .1), w = random<bfloat16>(e, rows * c.K, -.1, .1),
       u = random<bfloat16>(e, rows * c.V);
  auto g = gate_sums(e, c, l);
  auto fresh = constant<bfloat16>(e, rows * c.V, NAN);
  auto h = constant<bfloat16>(e, size_t(l.B) * l.NT * c.H * KV, NAN);
  auto ht = constant<float>(e, size_t(l.B) * c.H * KV, NAN);
  Job j;
  j.gflop = 4e-9 * rows * KV;
  j.add(delta_h, c, k.p, u.p, w.p, fresh.p, g.p, h.p, ht.p, l.T, l.B);
  j.check = [=] {
    std::vector<double> want(h.n), values(fresh.n), ends(ht.n);
    for (int b = 0; b < l.B; ++b)
      for (int head = 0; head < c.H; ++head) {
        std::vector<double> s(KV);
        auto at = [&](int t) { return (size_t(b) * l.T + t) * c.H + head; };
        for (int first = 0; first < l.T; first += c.BT) {
          const int end = std::min(first + c.BT, l.T);
          const double last = g[at(end - 1)];
          std::copy(s.begin(), s.end(), &want[((size_t(b) * l.NT + first / c.BT) * c.H + head) * KV]);
          const auto before = s;
          for (double& x : s) x *= std::exp(last);
          for (int t = first; t < end; ++t)
            for (int n = 0; n < c.V; ++n) {
              double sum = u[at(t) * c.V + n];
              for (int i = 0; i < c.K; ++i) sum -= w[at(t) * c.K + i] * before[i * c.V + n];
              values[at(t) * c.V + n] = sum;
              for (int i = 0; i < c.K; ++i) s[i * c.V + n] += k[at(t) * c.K + i] * sum * std::exp(last - g[at(t)]);
            }
        }
        std::copy(s.begin(), s.end(), &ends[(size_t(b) * c.H + head) * KV]);
      }
    if (auto wrong = agree(h.now(), want, 1e-2, 1e-2); !wrong.empty()) return "states: " + wrong;
    if (auto wrong = agree(fresh.now(), values, 1e-2, 1e-2); !wrong.empty()) return "values: " + wrong;
    return agree(ht.now(), ends, 1e-2, 1e-2);
  };
  return j;
});

// --- w = A (beta e^g k) and u = A (beta v) of one chunk, by blocks of columns
auto wy_uw =
    kernel("user_wy_uw", [](const FlaCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> v, Ptr<const bfloat16> beta,
                            Ptr<bfloat16> w, Ptr<bfloat16> u, Ptr<const bfloat16> A, Ptr<const float> g, I32 T, I32) {
      num_warps(c.warps);
      auto t = program_id(0) * c.BT;
      auto b = program_id(1) / c.H, head = program_id(1) % c.H;
      auto first = b * T * c.H + head;
      auto bb = cast(make_view<const bfloat16>(beta + first, {T}, {c.H}).load({t}, {c.BT}), f32);
      auto a = rows_of(c, A, b, head, T, c.BT).load({t, 0}, {c.BT, c.BT});
      auto values = rows_of(c, v, b, head, T, c.V);
      auto us = rows_of(c, u, b, head, T, c.V);
      for (auto i : range(0, c.V, c.BV, {.stages = c.stages})) {
        auto scaled = cast(cast(values.load({t, i}, {c.BT, c.BV}), f32) * bb.col(), bf16);
        us.store({t, i}, cast(dot(a, scaled), bf16));
      }
      auto eg = exp(make_view<const float>(g + first, {T}, {c.H}).load({t}, {c.BT}));
      auto keys = rows_of(c, k, b, head, T, c.K);
      auto ws = rows_of(c, w, b, head, T, c.K);
      for (auto i : range(0, c.K, c.BK, {.stages = c.stages})) {
        auto scaled = cast(cast(keys.load({t, i}, {c.BT, c.BK}), f32) * bb.col() * eg.col(), bf16);
        ws.store({t, i}, cast(dot(a, scaled), bf16));
      }
    }).grid([](const FlaCfg& c, auto, auto, auto, auto, auto, auto, auto, int T, int B) {
      return Grid{cdiv(T, c.BT), B * c.H};
    });
Register r4("wy_uw", [](Env& e) {
  const auto c = fla_cfg(e, {});
  const Lengths l(e, c);
  const size_t rows = size_t(l.B) * l.T * c.H;
  auto k = random<bfloat16>(e, rows * c.K), v = random<bfloat16>(e, rows * c.V), beta = random<bfloat16>(e, rows, 0, 1);
  auto A = drawn<bfloat16>(e, rows * c.BT, [&] { return bfloat16(float(2 * e.uniform() - 1)); });
  auto g = gate_sums(e, c, l);
  auto w = constant<bfloat16>(e, k.n, NAN), u = constant<bfloat16>(e, v.n, NAN);
  Job j;
  j.gflop = 2e-9 * rows * c.BT * (c.K + c.V);
  j.add(wy_uw, c, k.p, v.p, beta.p, w.p, u.p, A.p, g.p, l.T, l.B);
  j.check = [=] {
    std::vector<double> ww(w.n), wu(u.n);
    for (size_t row = 0; row < rows; ++row) {
      const int t = row / c.H % l.T, first = t / c.BT * c.BT;
      for (int s = first; s < std::min(first + c.BT, l.T); ++s) {
        const size_t at = row + size_t(s) * c.H - size_t(t) * c.H;
        const double x = A[row * c.BT + s - first] * beta[at];
        for (int i = 0; i < c.K; ++i) ww[row * c.K + i] += x * std::exp(g[at]) * k[at * c.K + i];
        for (int i = 0; i < c.V; ++i) wu[row * c.V + i] += x * v[at * c.V + i];
      }
    }
    auto wrong = agree(w.now(), ww, 2e-2, 1e-2);
    return wrong.empty() ? agree(u.now(), wu, 2e-2, 1e-2) : "u: " + wrong;
  };
  return j;
});

}  // namespace swept_chunk_states
}  // namespace users
