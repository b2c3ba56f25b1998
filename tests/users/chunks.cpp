// chunks.cpp - sequence models whose state a kernel carries from chunk to chunk: Mamba-2, retention, delta rule,
// RWKV-6.
#include "tests/users/use.h"
namespace users {
namespace chunks {

constexpr float kLog2e = 1.4426950408889634f;

// --- Mamba-2 (SSD): y_t = C_t h_t + D x_t, h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t, a chunk of L steps as products
struct SsdCfg {
  int L = 64, N = 64, P = 64, stages = 2, warps = 4;
};
auto ssd = kernel("user_ssd", [](const SsdCfg& c, Tensor<const bfloat16, 4> X, Tensor<const float, 3> dt,
                                 Ptr<const float> A, Tensor<const bfloat16, 3> B, Tensor<const bfloat16, 3> C,
                                 Ptr<const float> D, Tensor<bfloat16, 4> Y, Tensor<float, 4> last) {
             // X, Y [batch, T, H, P], dt [batch, H, T], A, D [H], B, C [batch, T, N], last [batch, H, N, P]
             num_warps(c.warps);
             auto h = program_id(0), b = program_id(1);
             auto a = load(A + h) * kLog2e, skip = load(D + h);
             auto i = arange(0, c.L);
             Tile state = zeros({c.N, c.P}, f32);
             for (auto t : range(0, X.dim(1), c.L, {.stages = c.stages})) {
               auto x = reshape(X.load({b, t, h, 0}, {1, c.L, 1, c.P}), {c.L, c.P});
               auto step = dt.load({b, h, t}, {c.L});
               auto bb = B.load({b, t, 0}, {c.L, c.N}), cc = C.load({b, t, 0}, {c.L, c.N});
               auto g = cumsum(step * a, axis(0));
               auto total = sum(step * a);
               auto decay = exp2(where(i.col() >= i.row(), g.col() - g.row(), -INFINITY)) * step.row();
               auto y = dot(cast(dot(cc, trans(bb)) * decay, bf16), x);
               y = dot(cast(cast(cc, f32) * exp2(g).col(), bf16), cast(state, bf16), y);
               Y.store({b, t, h, 0}, reshape(cast(y + skip * cast(x, f32), bf16), {c.L, 1, c.P}));
               auto w = cast(cast(bb, f32) * (exp2(total - g) * step).col(), bf16);
               state = dot(trans(w), x, state * exp2(total));
             }
             last.store({b, h, 0, 0}, state);
           }).grid([](const SsdCfg&, const auto& x, const auto&...) {
  return Grid{x.shape[2], x.shape[0]};
});
Register r1("ssd", [](Env& e) {
  int Z = e.big ? 8 : 2, T = e.big ? 4096 : 75, H = e.big ? 64 : 2, N = e.big ? 128 : 32, P = e.big ? 64 : 32;
  auto x = random<bfloat16>(e, size_t(Z) * T * H * P), b = random<bfloat16>(e, size_t(Z) * T * N),
       c = random<bfloat16>(e, size_t(Z) * T * N);
  auto dt = random<float>(e, size_t(Z) * H * T, .01, .2), a = random<float>(e, H, -2, -.5), d = random<float>(e, H);
  auto y = constant<bfloat16>(e, size_t(Z) * T * H * P, NAN);
  auto last = constant<float>(e, size_t(Z) * H * N * P, NAN);
  Job j;
  j.gflop = 2e-9 * Z * H * double(T) * (64. * (N + P) + 2. * N * P);
  j.add(ssd, e.big ? SsdCfg{64, N, P, 2, 8} : SsdCfg{32, N, P, 2, 4}, x.view(Z, T, H, P), dt.view(Z, H, T), a.p,
        b.view(Z, T, N), c.view(Z, T, N), d.p, y.view(Z, T, H, P), last.view(Z, H, N, P));
  j.check = [=] {
    std::vector<double> want(size_t(Z) * T * H * P), state;
    std::vector<double> ends;
    for (int zh = 0; zh < Z * H; ++zh) {
      int z = zh / H, h = zh % H;
      state.assign(N * P, 0);
      for (int t = 0; t < T; ++t) {
        double s = dt[size_t(zh) * T + t];
        for (int p = 0; p < P; ++p) {
          size_t at = ((size_t(z) * T + t) * H + h) * P + p;
          want[at] = d[h] * x[at];
          for (int n = 0; n < N; ++n) {
            double& v = state[n * P + p];
            v = std::exp(s * a[h]) * v + s * b[(size_t(z) * T + t) * N + n] * x[at];
            want[at] += c[(size_t(z) * T + t) * N + n] * v;
          }
        }
      }
      ends.insert(ends.end(), state.begin(), state.end());
    }
    auto wrong = agree(y.now(), want, .04, .02);
    return wrong.empty() ? agree(last.now(), ends, .03, .01) : "state: " + wrong;
  };
  return j;
});

// --- retention: every head has its decay; chunks, value columns split over programs
struct RetCfg {
  int L = 64, K = 64, BV = 64, stages = 2, warps = 4;
};
auto retention = kernel("user_retention", [](const RetCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                             Tensor<const half, 3> V, Ptr<const float> log_decay, Tensor<half, 3> O) {
                   // Q, K [BH, T, K], V, O [BH, T, V]
                   num_warps(c.warps);
                   auto v0 = program_id(0) * c.BV, bh = program_id(1);
                   auto g = load(log_decay + bh) * kLog2e;
                   auto i = cast(arange(0, c.L), f32);
                   auto inside = where(i.col() >= i.row(), exp2((i.col() - i.row()) * g), 0.f);
                   auto from = exp2((i + 1.f) * g).col(), to = exp2((c.L - 1.f - i) * g).col();
                   auto whole = exp2(g * float(c.L));
                   Tile state = zeros({c.K, c.BV}, f32);
                   for (auto t : range(0, Q.dim(1), c.L, {.stages = c.stages})) {
                     auto q = Q.load({bh, t, 0}, {c.L, c.K}), k = K.load({bh, t, 0}, {c.L, c.K});
                     auto v = V.load({bh, t, v0}, {c.L, c.BV});
                     auto o = dot(q, cast(state, f16)) * from;
                     o = dot(cast(dot(q, trans(k)) * inside, f16), v, o);
                     O.store({bh, t, v0}, reshape(cast(o, f16), {1, c.L, c.BV}));
                     state = dot(trans(k), cast(cast(v, f32) * to, f16), state * whole);
                   }
                 }).grid([](const RetCfg& c, const auto&, const auto&, const auto& v, const float*, const auto&) {
  return Grid{cdiv(v.shape[2], c.BV), v.shape[0]};
});
Register r2("retention", [](Env& e) {
  int H = e.big ? 128 : 2, T = e.big ? 4096 : 70, K = e.big ? 128 : 32, V = e.big ? 256 : 64;
  auto q = random<half>(e, size_t(H) * T * K, -.3, .3), k = random<half>(e, size_t(H) * T * K, -.3, .3),
       v = random<half>(e, size_t(H) * T * V);
  auto g = random<float>(e, H, -.1, -.01);
  auto o = constant<half>(e, size_t(H) * T * V, NAN);
  Job j;
  j.gflop = 2e-9 * H * double(T) * (64. * (K + V) + 2. * K * V);
  j.add(retention, e.big ? RetCfg{64, K, 64, 3, 4} : RetCfg{32, K, 32, 2, 4}, q.view(H, T, K), k.view(H, T, K),
        v.view(H, T, V), g.p, o.view(H, T, V));
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * V), state;
    for (int h = 0; h < H; ++h) {
      state.assign(K * V, 0);
      for (int t = 0; t < T; ++t)
        for (int d = 0; d < K; ++d)
          for (int w = 0; w < V; ++w) {
            double& s = state[d * V + w];
            s = std::exp(g[h]) * s + k[(size_t(h) * T + t) * K + d] * v[(size_t(h) * T + t) * V + w];
            want[(size_t(h) * T + t) * V + w] += q[(size_t(h) * T + t) * K + d] * s;
          }
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- delta rule in chunks: S_t = S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t)^T. Inside a chunk the triangular system
// (I + strict lower part of beta K K^T) is inverted row by row, as Triton users do it.
struct DeltaCfg {
  int L = 32, D = 64, BV = 64, stages = 1, warps = 4;
};
auto delta = kernel("user_delta_rule", [](const DeltaCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                          Tensor<const half, 3> V, Tensor<const float, 2> beta, Tensor<half, 3> O) {
               // Q, K [BH, T, D], V, O [BH, T, V], beta [BH, T]
               num_warps(c.warps);
               auto v0 = program_id(0) * c.BV, bh = program_id(1);
               auto i = arange(0, c.L);
               auto below = i.col() > i.row();
               Tile state = zeros({c.D, c.BV}, f32);
               for (auto t : range(0, Q.dim(1), c.L, {.stages = c.stages})) {
                 auto q = Q.load({bh, t, 0}, {c.L, c.D}), k = K.load({bh, t, 0}, {c.L, c.D});
                 auto v = V.load({bh, t, v0}, {c.L, c.BV});
                 auto b = beta.load({bh, t}, {c.L}).col();
                 Tile inverse = where(below, -(dot(k, trans(k)) * b), 0.f);
                 for (auto r : range(1, c.L)) {
                   auto here = i.col() == r;
                   auto row = sum(where(here, inverse, 0.f), axis(0));  // 1 x L
                   row = row + sum(trans(row) * inverse, axis(0));
                   inverse = where(here, row, inverse);
                 }
                 inverse += where(i.col() == i.row(), 1.f, 0.f);
                 auto s16 = cast(state, f16);
                 auto rest = (cast(v, f32) - dot(k, s16)) * b;
                 auto u = cast(dot(cast(inverse, f16), cast(rest, f16)), f16);
                 auto scores = where(i.col() >= i.row(), dot(q, trans(k)), 0.f);
                 O.store({bh, t, v0}, reshape(cast(dot(cast(scores, f16), u, dot(q, s16)), f16), {1, c.L, c.BV}));
                 state = dot(trans(k), u, state);
               }
             }).grid([](const DeltaCfg& c, const auto&, const auto&, const auto& v, const auto&...) {
  return Grid{cdiv(v.shape[2], c.BV), v.shape[0]};
});
Register r3("delta_rule", [](Env& e) {
  int H = e.big ? 256 : 2, T = e.big ? 4096 : 64, D = e.big ? 64 : 32, V = e.big ? 64 : 32;
  auto q = random<half>(e, size_t(H) * T * D, -.2, .2), k = random<half>(e, size_t(H) * T * D, -.2, .2),
       v = random<half>(e, size_t(H) * T * V);
  auto b = random<float>(e, size_t(H) * T, .2, 1);
  auto o = constant<half>(e, size_t(H) * T * V, NAN);
  Job j;
  j.gflop = 2e-9 * H * double(T) * (32. * 2 * (D + V) + 3. * D * V);
  j.add(delta, DeltaCfg{32, D, V, 1, 4}, q.view(H, T, D), k.view(H, T, D), v.view(H, T, V), b.view(H, T),
        o.view(H, T, V));
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * V), S;
    for (int h = 0; h < H; ++h) {
      S.assign(D * V, 0);
      for (int t = 0; t < T; ++t)
        for (int w = 0; w < V; ++w) {
          const size_t at = size_t(h) * T + t;
          double u = v[at * V + w];
          for (int d = 0; d < D; ++d) u -= k[at * D + d] * S[d * V + w];
          for (int d = 0; d < D; ++d) want[at * V + w] += q[at * D + d] * (S[d * V + w] += b[at] * k[at * D + d] * u);
        }
    }
    return agree(o.now(), want, 4e-3, 1e-2);
  };
  return j;
});

// --- RWKV-6, one token at a time: y_t = r_t (S + u k_t v_t^T), S = diag(exp(-exp(w_t))) S + k_t v_t^T
struct RwkvCfg {
  int D = 64, stages = 4, warps = 2;
};
auto rwkv = kernel("user_rwkv6", [](const RwkvCfg& c, Tensor<const bfloat16, 3> R, Tensor<const bfloat16, 3> K,
                                    Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> W, Tensor<const float, 2> U,
                                    Tensor<bfloat16, 3> Y) {
              num_warps(c.warps);
              auto b = program_id(1), h = program_id(0);
              auto u = U.load({h, 0}, {c.D}).col();
              Tile S = zeros({c.D, c.D}, f32);
              for (auto t : range(0, R.dim(1), {.stages = c.stages})) {
                auto at = [&](auto& X) { return cast(X.load({b, t, h * c.D}, {c.D}), f32); };
                auto kv = at(K).col() * at(V).row();
                auto y = sum(at(R).col() * (S + u * kv), axis(0));
                Y.store({b, t, h * c.D}, squeeze(cast(y, bf16), 0));
                S = exp(-exp(at(W))).col() * S + kv;
              }
            }).grid([](const RwkvCfg& c, const auto& r, const auto&...) {
  return Grid{r.shape[2] / c.D, r.shape[0]};
});
Register r4("rwkv6", [](Env& e) {
  int B = e.big ? 8 : 2, T = e.big ? 4096 : 40, H = e.big ? 32 : 2, D = e.big ? 64 : 32, C = H * D;
  auto r = random<bfloat16>(e, size_t(B) * T * C), k = random<bfloat16>(e, size_t(B) * T * C),
       v = random<bfloat16>(e, size_t(B) * T * C), w = random<bfloat16>(e, size_t(B) * T * C, -3, 0);
  auto u = random<float>(e, C);
  auto y = constant<bfloat16>(e, size_t(B) * T * C, NAN);
  Job j;
  j.mbytes = 10e-6 * B * double(T) * C;
  j.add(rwkv, e.big ? RwkvCfg{} : RwkvCfg{32, 2, 2}, r.view(B, T, C), k.view(B, T, C), v.view(B, T, C), w.view(B, T, C),
        u.view(H, D), y.view(B, T, C));
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * C), S;
    for (int bh = 0; bh < B * H; ++bh) {
      S.assign(D * D, 0);
      for (int t = 0; t < T; ++t) {
        size_t at = (size_t(bh / H) * T + t) * C + bh % H * D;
        for (int d = 0; d < D; ++d)
          for (int x = 0; x < D; ++x) {
            double kv = k[at + d] * v[at + x];
            want[at + x] += r[at + d] * (S[d * D + x] + u[bh % H * D + d] * kv);
            S[d * D + x] = std::exp(-std::exp(w[at + d])) * S[d * D + x] + kv;
          }
      }
    }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace chunks
}  // namespace users
