// state_chunks.cpp - models with a state, taken apart as their libraries take them apart: the states of chunks, what
// one hands to the next, what a chunk makes of both; and the same models one token at a time, with states in a pool.
#include "tests/users/use.h"
namespace users {
namespace state_chunks {

// --- Mamba-2 in three kernels. x [B, T, H, P], b, c [B, T, G, N], decays summed inside each chunk of Q: a [B, H, T]
struct ChunkCfg {
  int Q = 128, P = 64, N = 128;
};
auto chunk_state =
    kernel("user_chunk_state", [](const ChunkCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 4> B,
                                  Tensor<const float, 3> A, Tensor<const float, 3> dt, Tensor<float, 5> S) {
      auto chunk = program_id(0), h = program_id(1), b = program_id(2);
      auto g = h / (X.dim(2) / B.dim(2));
      auto last = reshape(A.load({b, h, chunk * c.Q + c.Q - 1}, {1, 1, 1}), {1});
      Tile acc = zeros({c.P, c.N}, f32);
      for (auto k : range(0, c.Q, 32)) {
        auto t = chunk * c.Q + k;
        auto x = reshape(X.load({b, t, h, 0}, {1, 32, 1, c.P}), {32, c.P});
        auto keys = reshape(B.load({b, t, g, 0}, {1, 32, 1, c.N}), {32, c.N});
        auto scale = exp(last - A.load({b, h, t}, {32})) * dt.load({b, h, t}, {32});
        acc += dot(trans(x), cast(cast(keys, f32) * scale.col(), bf16));
      }
      S.store({b, chunk, h, 0, 0}, acc);
    }).grid([](const ChunkCfg& c, const auto& x, const auto&...) {
      return Grid{x.shape[1] / c.Q, x.shape[2], x.shape[0]};
    });
auto pass_states = kernel("user_pass_states",
                          [](const ChunkCfg& c, Tensor<const float, 4> S, Tensor<const float, 3> A,
                             Tensor<bfloat16, 4> before) {  // S [B, chunks, H, P * N]
                            auto at = program_id(0) * 512, h = program_id(1), b = program_id(2);
                            Tile state = zeros({512}, f32);
                            for (auto i : range(0, S.dim(1))) {
                              before.store({b, i, h, at}, cast(state, bf16));
                              auto decay = exp(to_scalar(A.load({b, h, i * c.Q + c.Q - 1}, {1})));
                              state = state * decay + S.load({b, i, h, at}, {512});
                            }
                          })
                       .grid([](const ChunkCfg&, const auto& s, const auto&...) {
                         return Grid{cdiv(s.shape[3], 512), s.shape[2], s.shape[0]};
                       });
auto chunk_scan =
    kernel("user_chunk_scan", [](const ChunkCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 4> B,
                                 Tensor<const bfloat16, 4> C, Tensor<const float, 3> A, Tensor<const float, 3> dt,
                                 Tensor<const bfloat16, 5> before, Tensor<const float, 1> D, Tensor<bfloat16, 4> Y) {
      const int M = 64, K = 32;
      auto part = program_id(0) % (c.Q / M), chunk = program_id(0) / (c.Q / M);
      auto h = program_id(1), b = program_id(2);
      auto g = h / (X.dim(2) / B.dim(2));
      auto t = chunk * c.Q + part * M;
      auto q = reshape(C.load({b, t, g, 0}, {1, M, 1, c.N}), {M, c.N});
      auto am = A.load({b, h, t}, {M});
      auto state = reshape(before.load({b, chunk, h, 0, 0}, {1, 1, 1, c.P, c.N}), {c.P, c.N});
      Tile acc = dot(q, trans(state)) * exp(am).col();
      auto row = part * M + arange(0, M);
      for (auto k : range(0, (part + 1) * M, K)) {
        auto s = chunk * c.Q + k;
        auto keys = reshape(B.load({b, s, g, 0}, {1, K, 1, c.N}), {K, c.N});
        auto x = reshape(X.load({b, s, h, 0}, {1, K, 1, c.P}), {K, c.P});
        auto ak = A.load({b, h, s}, {K}), d = dt.load({b, h, s}, {K});
        auto scores = dot(q, trans(keys)) * exp(am.col() - ak.row()) * d.row();
        scores = where(row.col() >= (k + arange(0, K)).row(), scores, 0.f);
        acc += dot(cast(scores, bf16), x);
      }
      auto skip = reshape(X.load({b, t, h, 0}, {1, M, 1, c.P}), {M, c.P});
      acc += cast(skip, f32) * to_scalar(D.load({h}, {1}));
      Y.store({b, t, h, 0}, reshape(cast(acc, bf16), {1, M, 1, c.P}));
    }).grid([](const ChunkCfg& c, const auto& x, const auto&...) {
      return Grid{x.shape[1] / 64, x.shape[2], x.shape[0]};
    });
Register r1("ssd_parts", [](Env& e) {
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 256, H = e.big ? 64 : 4, G = e.big ? 1 : 2, P = e.big ? 64 : 32;
  const int N = e.big ? 128 : 32, Q = e.big ? 256 : 128, chunks = T / Q;
  const size_t rows = size_t(B) * T;
  auto x = random<bfloat16>(e, rows * H * P), b = random<bfloat16>(e, rows * G * N, -.5, .5),
       c = random<bfloat16>(e, rows * G * N, -.5, .5);
  auto dt = random<float>(e, rows * H, .1, .5), skip = random<float>(e, H);
  double sum = 0;
  size_t n = 0;
  auto a = filled<float>(e, rows * H, [&](size_t i) {
    if (i % Q == 0) sum = 0;
    return static_cast<float>(sum -= .1 * (++n % 5));
  });
  auto s = constant<float>(e, size_t(B) * chunks * H * P * N, NAN);
  auto before = constant<bfloat16>(e, size_t(B) * chunks * H * P * N, NAN);
  auto y = constant<bfloat16>(e, rows * H * P, NAN);
  const ChunkCfg cfg{Q, P, N};
  Job j;
  j.add(chunk_state, cfg, x.view(B, T, H, P), b.view(B, T, G, N), a.view(B, H, T), dt.view(B, H, T),
        s.view(B, chunks, H, P, N));
  j.add(pass_states, cfg, s.view(B, chunks, H, P * N), a.view(B, H, T), before.view(B, chunks, H, P * N));
  j.add(chunk_scan, cfg, x.view(B, T, H, P), b.view(B, T, G, N), c.view(B, T, G, N), a.view(B, H, T), dt.view(B, H, T),
        before.view(B, chunks, H, P, N), skip.view(H), y.view(B, T, H, P));
  j.check = [=] {
    std::vector<double> want(rows * H * P);
    for (int i = 0; i < B; ++i)
      for (int h = 0; h < H; ++h) {
        std::vector<double> state(P * N);
        const int g = h / (H / G);
        for (int t = 0; t < T; ++t) {
          const size_t at = (size_t(i) * H + h) * T + t, row = size_t(i) * T + t;
          const double decay = std::exp(a[at] - (t % Q ? a[at - 1] : 0));
          for (int p = 0; p < P; ++p) {
            double out = skip[h] * x[(row * H + h) * P + p];
            for (int k = 0; k < N; ++k) {
              double& m = state[p * N + k];
              m = m * decay + dt[at] * x[(row * H + h) * P + p] * b[(row * G + g) * N + k];
              out += m * c[(row * G + g) * N + k];
            }
            want[(row * H + h) * P + p] = out;
          }
        }
      }
    return agree(y.now(), want, 5e-2, 3e-2);
  };
  return j;
});

// --- RWKV-7, one token for every sequence: the state S [slots, H, D, D] (rows are values) is found by a number
struct StepCfg {
  int D = 64;
};
auto rwkv7_step =
    kernel("user_rwkv7_step", [](const StepCfg& c, Tensor<const bfloat16, 3> R, Tensor<const bfloat16, 3> W,
                                 Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> A,
                                 Tensor<const bfloat16, 3> Kappa, Tensor<float, 4> S, Ptr<const int> slot,
                                 Tensor<bfloat16, 3> Y) {
      auto h = program_id(0), b = program_id(1);
      auto at = load(slot + b);
      return_if(at < 0);
      auto vec = [&](const auto& X) { return cast(X.load({b, h, 0}, {c.D}), f32); };
      auto r = vec(R), w = exp(-exp(vec(W))), k = vec(K), v = vec(V), a = vec(A), kappa = vec(Kappa);
      kappa = kappa * rsqrt(sum(kappa * kappa) + 1e-12f);
      Tile s = S.load({at, h, 0, 0}, {c.D, c.D});
      auto sa = sum(s * kappa.row(), axis(1));
      s = s * w.row() - sa * (kappa * a).row() + v.col() * k.row();
      S.store({at, h, 0, 0}, s);
      Y.store({b, h, 0}, cast(squeeze(sum(s * r.row(), axis(1)), 1), bf16));
    }).grid([](const StepCfg&, const auto& r, const auto&...) {
      return Grid{r.shape[1], r.shape[0]};
    });
Register r2("rwkv7_step", [](Env& e) {
  const int B = e.big ? 256 : 5, H = e.big ? 64 : 3, D = e.big ? 64 : 32, slots = B + 3;
  const size_t n = size_t(B) * H * D;
  auto r = random<bfloat16>(e, n), w = random<bfloat16>(e, n, -3, 0), k = random<bfloat16>(e, n),
       v = random<bfloat16>(e, n), a = random<bfloat16>(e, n, 0, 1), kappa = random<bfloat16>(e, n);
  auto s = random<float>(e, size_t(slots) * H * D * D);
  auto slot = filled<int>(e, B, [&](size_t i) { return i == 2 ? -1 : int(i * 3 % slots); });
  auto y = constant<bfloat16>(e, n, 7);
  Job j;
  j.mbytes = 8e-6 * n * D;
  j.add(rwkv7_step, StepCfg{D}, r.view(B, H, D), w.view(B, H, D), k.view(B, H, D), v.view(B, H, D), a.view(B, H, D),
        kappa.view(B, H, D), s.view(slots, H, D, D), slot.p, y.view(B, H, D));
  j.check = [=] {
    std::vector<double> want(n, 7), states(s.h.begin(), s.h.end());
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H && slot.at(b) >= 0; ++h) {
        const size_t o = (size_t(b) * H + h) * D;
        double* m = &states[(size_t(slot.at(b)) * H + h) * D * D];
        double norm = 1e-12;
        for (int i = 0; i < D; ++i) norm += kappa[o + i] * kappa[o + i];
        norm = 1 / std::sqrt(norm);
        for (int i = 0; i < D; ++i) {
          double sa = 0, out = 0;
          for (int l = 0; l < D; ++l) sa += m[i * D + l] * kappa[o + l] * norm;
          for (int l = 0; l < D; ++l) {
            double& x = m[i * D + l];
            x = x * std::exp(-std::exp(w[o + l])) - sa * kappa[o + l] * norm * a[o + l] + v[o + i] * k[o + l];
            out += x * r[o + l];
          }
          want[o + i] = out;
        }
      }
    auto wrong = agree(y.now(), want, 2e-2, 1e-2);
    return wrong.empty() ? agree(s.now(), states, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- gated DeltaNet, one token for every sequence: value heads share key heads, q and k are normalised here
auto delta_step =
    kernel("user_delta_step",
           [](const StepCfg& c, Tensor<const bfloat16, 2> QKV, Tensor<const bfloat16, 2> ba, Ptr<const float> Alog,
              Ptr<const float> bias, Tensor<float, 4> S, Ptr<const int> slot, Tensor<bfloat16, 3> O, I32 keyHeads) {
             // a row of QKV: q of all key heads, k of all key heads, v of all value heads
             const int BV = 32;
             auto part = program_id(0) * BV, h = program_id(1), b = program_id(2), heads = num_programs(1);
             auto kh = h / (heads / keyHeads);
             auto q = cast(QKV.load({b, kh * c.D}, {c.D}), f32);
             auto k = cast(QKV.load({b, (keyHeads + kh) * c.D}, {c.D}), f32);
             auto v = cast(QKV.load({b, (2 * keyHeads + h) * c.D + part}, {BV}), f32);
             q = q * rsqrt(sum(q * q) + 1e-6f) * (1 / std::sqrt(float(c.D)));
             k = k * rsqrt(sum(k * k) + 1e-6f);
             auto beta = sigmoid(cast(to_scalar(ba.load({b, h}, {1})), f32));
             auto a = cast(to_scalar(ba.load({b, heads + h}, {1})), f32) + load(bias + h);
             auto softplus = where(a > 20.f, a, log1p(exp(a)));
             auto decay = exp(-exp(load(Alog + h)) * softplus);
             auto at = load(slot + b);
             Tile s = S.load({at, h, 0, part}, {c.D, BV}) * decay;  // keys x values
             auto error = (v - squeeze(sum(s * k.col(), axis(0)), 0)) * beta;
             s += k.col() * error.row();
             S.store({at, h, 0, part}, s);
             O.store({b, h, part}, cast(squeeze(sum(s * q.col(), axis(0)), 0), bf16));
           })
        .grid([](const StepCfg& c, const auto&, const auto&, const float*, const float*, const auto& s, const int*,
                 const auto& o, int) {
          return Grid{c.D / 32, s.shape[1], o.shape[0]};
        });
Register r3("delta_step", [](Env& e) {
  const int B = e.big ? 128 : 3, KH = e.big ? 16 : 2, H = e.big ? 32 : 4, D = e.big ? 128 : 64, slots = B + 1;
  const int width = (2 * KH + H) * D;
  auto x = random<bfloat16>(e, size_t(B) * width), ba = random<bfloat16>(e, size_t(B) * 2 * H, -2, 2);
  auto alog = random<float>(e, H, -1, 1), bias = random<float>(e, H);
  auto s = random<float>(e, size_t(slots) * H * D * D);
  auto slot = filled<int>(e, B, [&](size_t i) { return int((i + 1) % slots); });
  auto o = constant<bfloat16>(e, size_t(B) * H * D, NAN);
  Job j;
  j.mbytes = 8e-6 * B * H * D * D;
  j.add(delta_step, StepCfg{D}, x.view(B, width), ba.view(B, 2 * H), alog.p, bias.p, s.view(slots, H, D, D), slot.p,
        o.view(B, H, D), KH);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * D), states(s.h.begin(), s.h.end());
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        const size_t row = size_t(b) * width, kh = h / (H / KH);
        double qq = 1e-6, kk = 1e-6;
        auto q = [&](int i) { return x[row + kh * D + i]; };
        auto k = [&](int i) { return x[row + (KH + kh) * D + i]; };
        for (int i = 0; i < D; ++i) qq += q(i) * q(i), kk += k(i) * k(i);
        qq = 1 / std::sqrt(qq * D), kk = 1 / std::sqrt(kk);
        const double beta = 1 / (1 + std::exp(-ba[size_t(b) * 2 * H + h]));
        const double decay =
            std::exp(-std::exp(alog[h]) * std::log1p(std::exp(ba[size_t(b) * 2 * H + H + h] + bias[h])));
        double* m = &states[(size_t(slot.at(b)) * H + h) * D * D];
        for (int d = 0; d < D; ++d) {
          double sum = 0, out = 0;
          for (int i = 0; i < D; ++i) sum += (m[i * D + d] *= decay) * k(i) * kk;
          const double error = (x[row + (2 * KH + h) * D + d] - sum) * beta;
          for (int i = 0; i < D; ++i) out += (m[i * D + d] += k(i) * kk * error) * q(i) * qq;
          want[(size_t(b) * H + h) * D + d] = out;
        }
      }
    auto wrong = agree(o.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(s.now(), states, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- DeltaNet by chunks as first written: the inverse of the lower triangle by forward substitution, row after row
struct DeltaCfg {
  int C = 32, D = 64;
};
auto delta_chunks =
    kernel("user_delta_chunks", [](const DeltaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Tensor<const float, 2> beta, Tensor<const float, 2> G,
                                   Tensor<bfloat16, 3> O) {
      auto h = program_id(0);
      auto i = arange(0, c.C);
      Tile s = zeros({c.D, c.D}, f32);
      for (auto t : range(0, Q.dim(1), c.C)) {
        auto q = Q.load({h, t, 0}, {c.C, c.D}), k = K.load({h, t, 0}, {c.C, c.D});
        auto v = V.load({h, t, 0}, {c.C, c.D});
        auto b = beta.load({h, t}, {c.C});
        auto g = cumsum(G.load({h, t}, {c.C}), axis(0));
        auto decay = exp(g.col() - g.row());
        Tile a = where(i.col() > i.row(), dot(k, trans(k)) * decay * b.col(), 0.f);
        a = -a;
        for (auto r : range(1, c.C)) {                           // row r of (1 + L)^-1, from the rows above
          auto row = sum(where(i.col() == r, a, 0.f), axis(0));  // 1 x C
          auto next = row + sum(trans(row) * a, axis(0));
          a = where(i.col() == r, broadcast_to(next, {c.C, c.C}), a);
        }
        a += where(i.col() == i.row(), 1.f, 0.f);
        auto ab = cast(a, bf16);
        auto u = dot(ab, cast(cast(v, f32) * b.col(), bf16));
        auto w = dot(ab, cast(cast(k, f32) * (b * exp(g)).col(), bf16));
        auto sb = cast(s, bf16);
        auto fresh = u - dot(cast(w, bf16), sb);
        auto scores = where(i.col() >= i.row(), dot(q, trans(k)) * decay, 0.f);
        auto o = dot(cast(cast(q, f32) * exp(g).col(), bf16), sb) + dot(cast(scores, bf16), cast(fresh, bf16));
        O.store({h, t, 0}, cast(o, bf16));
        auto end = sum(where(i == c.C - 1, g, 0.f));
        s = s * exp(end) + dot(trans(cast(cast(k, f32) * exp(end - g).col(), bf16)), cast(fresh, bf16));
      }
    }).grid([](const DeltaCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r4("delta_chunks", [](Env& e) {
  const int H = e.big ? 256 : 2, T = e.big ? 2048 : 96, D = e.big ? 128 : 32;
  const size_t n = size_t(H) * T;
  auto q = random<bfloat16>(e, n * D, -.2, .2), k = random<bfloat16>(e, n * D, -.3, .3), v = random<bfloat16>(e, n * D);
  auto beta = random<float>(e, n, .1, .9), g = random<float>(e, n, -.2, 0);
  auto o = constant<bfloat16>(e, n * D, NAN);
  Job j;
  j.add(delta_chunks, DeltaCfg{e.field("C", 32), D}, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), beta.view(H, T),
        g.view(H, T), o.view(H, T, D));
  j.check = [=] {
    std::vector<double> want(n * D);
    for (int h = 0; h < H; ++h) {
      std::vector<double> s(D * D);
      for (int t = 0; t < T; ++t) {
        const size_t row = (size_t(h) * T + t), at = row * D;
        for (double& x : s) x *= std::exp(g[row]);
        for (int d = 0; d < D; ++d) {
          double sum = 0, out = 0;
          for (int i = 0; i < D; ++i) sum += s[i * D + d] * k[at + i];
          const double error = (v[at + d] - sum) * beta[row];
          for (int i = 0; i < D; ++i) out += (s[i * D + d] += k[at + i] * error) * q[at + i];
          want[at + d] = out;
        }
      }
    }
    return agree(o.now(), want, 2e-2, 3e-2);
  };
  return j;
});

}  // namespace state_chunks
}  // namespace users
