// powers.cpp - squares of scores as products of features, and steps of a trapezoid: states of sequences, chunk by
// chunk.
#include "tests/users/use.h"
namespace users {
namespace powers {

// --- power retention: (q k)^2 as a product of features, of all pairs of blocks of 8 numbers; sums of features and
// values of each chunk, then attention inside chunks and what earlier chunks' sums add
struct PowerCfg {
  int C = 128, D = 64, b = 8, BM = 64, stages = 2, warps = 4;
};
struct Pair {
  Tile i, j, weight;
};
/// Pair p of blocks i <= j, counted row after row.
Pair pair_of(const PowerCfg& c, const Tile& p) {
  const int n = c.D / c.b;
  Tile i = full({}, 0, i32), before = full({}, 0, i32);
  for (int row = 1; row < n; ++row) {
    const int first = row * n - row * (row - 1) / 2;
    auto past = p >= first;
    i = where(past, row, i), before = where(past, first, before);
  }
  auto j = p - before + i;
  return {i, j, where(i == j, 1.f, 1.4142135f)};
}
Tile features(const PowerCfg& c, const Tensor<const bfloat16, 3>& X, const Tile& h, const Tile& t, const Pair& p,
              int rows) {
  auto x = cast(X.load({h, t, p.i * c.b}, {rows, c.b}), f32), y = cast(X.load({h, t, p.j * c.b}, {rows, c.b}), f32);
  return cast(reshape(expand_dims(x * p.weight, 2) * expand_dims(y, 1), {rows, c.b * c.b}), bf16);
}
auto power_sums = kernel("user_power_sums", [](const PowerCfg& c, Tensor<const bfloat16, 3> K,
                                               Tensor<const bfloat16, 3> V, Tensor<float, 4> S) {
                    // K, V [B H, T, D]; S [B H, chunks, pairs b b, D]
                    num_warps(c.warps);
                    auto pair = pair_of(c, program_id(0));
                    auto chunk = program_id(1), h = program_id(2);
                    Tile acc = zeros({c.b * c.b, c.D}, f32);
                    for (auto t : range(chunk * c.C, chunk * c.C + c.C, c.BM, {.stages = c.stages}))
                      acc = dot(trans(features(c, K, h, t, pair, c.BM)), V.load({h, t, 0}, {c.BM, c.D}), acc);
                    S.store({h, chunk, program_id(0) * (c.b * c.b), 0}, acc);
                  }).grid([](const PowerCfg& c, const auto& k, const auto&, const auto&) {
  const int n = c.D / c.b;
  return Grid{n * (n + 1) / 2, cdiv(k.shape[1], c.C), k.shape[0]};
});
auto power_out =
    kernel("user_power_out", [](const PowerCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 4> S, Tensor<const float, 3> norm,
                                Tensor<bfloat16, 3> O) {
      // S, norm: sums of all chunks before each; norm [B H, chunks, pairs b b]
      num_warps(c.warps);
      auto t = program_id(0) * c.BM, h = program_id(1), chunk = t / c.C;
      Tile acc = zeros({c.BM, c.D}, f32), over = full({c.BM, 1}, 1e-6f, f32);
      const int n = c.D / c.b, wide = c.b * c.b;
      for (auto p : range(0, n * (n + 1) / 2, 1, {.stages = c.stages})) {
        auto f = features(c, Q, h, t, pair_of(c, p), c.BM);
        acc = dot(f, reshape(S.load({h, chunk, p * wide, 0}, {wide, c.D}), {wide, c.D}), acc);
        over += sum(cast(f, f32) * norm.load({h, chunk, p * wide}, {wide}).row(), axis(1));
      }
      auto q = Q.load({h, t, 0}, {c.BM, c.D});
      auto i = (t + arange(0, c.BM)).col();
      for (auto s : range(chunk * c.C, t + c.BM, c.BM, {.stages = c.stages})) {
        auto x = dot(q, trans(K.load({h, s, 0}, {c.BM, c.D})));
        auto p = where((s + arange(0, c.BM)).row() <= i, x * x, 0.f);
        over += sum(p, axis(1));
        acc = dot(cast(p, bf16), V.load({h, s, 0}, {c.BM, c.D}), acc);
      }
      O.store({h, t, 0}, cast(acc / over, bf16));
    }).grid([](const PowerCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("power", [](Env& e) {
  PowerCfg c;
  c.C = 1024, c.BM = 128, c.warps = 8;
  if (!e.big) c = {32, 16, 4, 16, 2, 1};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 32 : 2, T = e.big ? 8192 : 96, D = c.D, chunks = T / c.C, n = D / c.b,
            F = n * (n + 1) / 2 * c.b * c.b;
  const size_t all = size_t(B) * T * D;
  auto q = random<bfloat16>(e, all), k = random<bfloat16>(e, all), v = random<bfloat16>(e, all);
  auto feature = [=](const Array<bfloat16>& x, size_t row, int f) {
    int p = f / (c.b * c.b), i = 0;
    while (p >= n - i) p -= n - i, ++i;
    const int jj = i + p, r = f % (c.b * c.b);
    return x[row * D + i * c.b + r / c.b] * x[row * D + jj * c.b + r % c.b] * (i == jj ? 1 : 1.4142135623);
  };
  std::vector<double> sums(e.big ? 0 : size_t(B) * chunks * F * D), each(sums.size()),
      norms(e.big ? 0 : size_t(B) * chunks * F);
  if (!e.big)
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int f = 0; f < F; ++f) {
          const double y = feature(k, size_t(b) * T + t, f);
          for (int d = 0; d < D; ++d) {
            const double z = y * v[(size_t(b) * T + t) * D + d];
            each[((size_t(b) * chunks + t / c.C) * F + f) * D + d] += z;
            for (int later = t / c.C + 1; later < chunks; ++later)
              sums[((size_t(b) * chunks + later) * F + f) * D + d] += z;
          }
          for (int later = t / c.C + 1; later < chunks; ++later) norms[(size_t(b) * chunks + later) * F + f] += y;
        }
  const size_t ns = size_t(B) * chunks * F * D;
  auto s = filled<bfloat16>(e, ns, [&](size_t i) { return bfloat16(e.big ? .1f : float(sums[i])); });
  auto norm = filled<float>(e, ns / D, [&](size_t i) { return e.big ? .1f : float(norms[i]); });
  auto out = constant<float>(e, ns, NAN);
  auto o = constant<bfloat16>(e, all, NAN);
  Job j;
  j.gflop = 2e-9 * all * F;
  j.add(power_sums, c, k.view(B, T, D), v.view(B, T, D), out.view(B, chunks, F, D));
  j.add(power_out, c, q.view(B, T, D), k.view(B, T, D), v.view(B, T, D), s.view(B, chunks, F, D),
        norm.view(B, chunks, F), o.view(B, T, D));
  j.check = [=]() -> std::string {
    std::vector<double> want(all);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < T; ++i) {
        double over = 0;
        for (int m = 0; m <= i; ++m) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(b) * T + i) * D + d] * k[(size_t(b) * T + m) * D + d];
          over += x * x;
          for (int d = 0; d < D; ++d) want[(size_t(b) * T + i) * D + d] += x * x * v[(size_t(b) * T + m) * D + d];
        }
        for (int d = 0; d < D; ++d) want[(size_t(b) * T + i) * D + d] /= over;
      }
    if (auto w = agree(out.now(), each, 5e-2, 1e-2); !w.empty()) return "sums: " + w;
    return agree(o.now(), want, 3e-2, 2e-2);
  };
  return j;
});

// --- Mamba-3: steps of a trapezoid (what came a token earlier counts again), keys and queries turned by angles that
// add up over time; one pass over the chunks, the state and the angle carried
struct TrapezoidCfg {
  int C = 64, N = 128, P = 64, warps = 8;
};
auto trapezoid =
    kernel("user_trapezoid", [](const TrapezoidCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 3> B,
                                Tensor<const bfloat16, 3> C, Tensor<const float, 3> Dt, Tensor<const float, 3> lambda,
                                Tensor<const float, 1> A, Tensor<const bfloat16, 3> theta, Tensor<bfloat16, 4> Y) {
      // X, Y [B, T, H, P], B, C [B, T, N], Dt, lambda [B, H, T], A [H], theta [B, T, N / 2] (angles by unit of time)
      num_warps(c.warps);
      auto h = program_id(0), b = program_id(1);
      auto a = A.load({h});
      auto i = arange(0, c.C);
      Tile S = zeros({c.N, c.P}, f32), angle = zeros({1, c.N / 2}, f32);
      for (auto t : range(0, X.dim(1), c.C, {.stages = 2})) {
        auto dt = Dt.load({b, h, t}, {c.C}), later = Dt.load({b, h, t + 1}, {c.C});
        auto la = lambda.load({b, h, t}, {c.C}), laLater = lambda.load({b, h, t + 1}, {c.C});
        auto g = cumsum(dt * a, axis(0));
        auto turned = cumsum(cast(theta.load({b, t, 0}, {c.C, c.N / 2}), f32) * dt.col(), axis(0)) + angle;
        angle = extract(turned, {c.C - 1, 0}, {1, c.N / 2});
        auto cosine = cos(turned), sine = sin(turned);
        auto turn = [&](auto& M) {
          auto [x, y] = split(reshape(cast(M.load({b, t, 0}, {c.C, c.N}), f32), {c.C, c.N / 2, 2}));
          return cast(reshape(join(x * cosine - y * sine, x * sine + y * cosine), {c.C, c.N}), bf16);
        };
        auto k = turn(B), q = turn(C);
        auto x = reshape(X.load({b, t, h, 0}, {1, c.C, 1, c.P}), {c.C, c.P});
        auto own = la * dt, both = own + (1.f - laLater) * later;
        auto s = dot(q, trans(k)) * where(i.col() > i.row(), both.row() * exp(g.col() - g.row()),
                                          where(i.col() == i.row(), own.row(), 0.f));
        auto y = dot(cast(s, bf16), x);
        y = y + dot(q, cast(S, bf16)) * exp(g).col();
        Y.store({b, t, h, 0}, reshape(cast(y, bf16), {1, c.C, 1, c.P}));
        auto last = extract(g, {c.C - 1}, {1});
        S = dot(trans(k), cast(cast(x, f32) * (both * exp(last - g)).col(), bf16), S * to_scalar(exp(last)));
      }
    }).grid([](const TrapezoidCfg&, const auto& x, const auto&...) {
      return Grid{x.shape[2], x.shape[0]};
    });
Register r2("trapezoid", [](Env& e) {
  TrapezoidCfg c;
  if (!e.big) c = {16, 32, 16, 1};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 2, T = e.big ? 4096 : 48, H = e.big ? 64 : 3, N = c.N, P = c.P;
  auto x = random<bfloat16>(e, size_t(B) * T * H * P), b = random<bfloat16>(e, size_t(B) * T * N),
       cc = random<bfloat16>(e, b.n);
  auto dt = random<float>(e, size_t(B) * H * T, .05, .3), la = random<float>(e, dt.n, .3, .8),
       a = random<float>(e, H, -1, -.2);
  auto theta = random<bfloat16>(e, size_t(B) * T * N / 2, -3, 3);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.gflop = 2e-9 * B * T * H * (double(c.C) * (N + P) + 2. * N * P);
  j.add(trapezoid, c, x.view(B, T, H, P), b.view(B, T, N), cc.view(B, T, N), dt.view(B, H, T), la.view(B, H, T),
        a.view(H), theta.view(B, T, N / 2), y.view(B, T, H, P));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int i = 0; i < B; ++i)
      for (int h = 0; h < H; ++h) {
        std::vector<double> S(N * P), before(N * P), angle(N / 2);
        for (int t = 0; t < T; ++t) {
          const size_t r = size_t(i) * T + t, at = (size_t(i) * H + h) * T + t;
          const double decay = std::exp(dt[at] * a[h]);
          std::vector<double> k(N), q(N), now(N * P);
          for (int n = 0; n < N / 2; ++n) {
            angle[n] += dt[at] * theta[r * N / 2 + n];
            const double co = std::cos(angle[n]), si = std::sin(angle[n]);
            auto turn = [&](const Array<bfloat16>& m, std::vector<double>& to) {
              to[2 * n] = m[r * N + 2 * n] * co - m[r * N + 2 * n + 1] * si;
              to[2 * n + 1] = m[r * N + 2 * n] * si + m[r * N + 2 * n + 1] * co;
            };
            turn(b, k), turn(cc, q);
          }
          for (int n = 0; n < N; ++n)
            for (int p = 0; p < P; ++p) {
              now[n * P + p] = k[n] * x[(r * H + h) * P + p];
              S[n * P + p] = decay * S[n * P + p] + (1 - la[at]) * dt[at] * decay * before[n * P + p] +
                             la[at] * dt[at] * now[n * P + p];
              want[(r * H + h) * P + p] += q[n] * S[n * P + p];
            }
          before = now;
        }
      }
    return agree(y.now(), want, 5e-2, 2e-2);
  };
  return j;
});

}  // namespace powers
}  // namespace users
