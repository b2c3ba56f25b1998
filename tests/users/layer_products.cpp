// layer_products.cpp - products of a transformer's layers with what people put behind them: a residual and the sums of
// squares that the next norm wants, gradients of weights and of a bias in one pass, the two gradients of a gate, and
// projections that every head has for itself.
#include "tests/users/use.h"
namespace users {
namespace layer_products {

struct LayerCfg {
  int BM = 128, BN = 128, BK = 64, stages = 0;
};
LayerCfg layer_cfg(Env& e, LayerCfg big, LayerCfg small) {
  const LayerCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("stages", c.stages)};
}

// --- y = x W' + residual, and of every row the sum of squares of its part: blocks of 96 and 160 columns
auto residual_squares = kernel("user_residual_squares", [](const LayerCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                                                           Tensor<bfloat16, 2> Y, Tensor<float, 2> squares) {
  auto pn = program_id(0), m = program_id(1) * c.BM, n = pn * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
    acc += dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})));
  auto y = cast(cast(Y.load({m, n}, {c.BM, c.BN}), f32) + acc, bf16);  // the stream is updated where it is
  Y.store({m, n}, y);
  auto f = cast(y, f32);
  squares.store({pn, m}, reshape(sum(f * f, axis(1)), {1, c.BM}));
}).grid([](const LayerCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[0], c.BN), cdiv(x.shape[0], c.BM)};
});
auto scale_rows = kernel("user_scale_rows", [](const LayerCfg& c, Tensor<const bfloat16, 2> Y, Tensor<const float, 2> squares,
                                               Ptr<const bfloat16> weight, Tensor<bfloat16, 2> Z) {
  auto row = program_id(0);
  Tile s = full({}, 0.f, f32);
  for (auto p : range(0, squares.dim(0))) s += squares.load({p, row});
  auto scale = rsqrt(s / cast(Y.dim(1), f32) + 1e-6f);
  for (auto j : range(0, Y.dim(1), c.BN)) {
    auto n = j + arange(0, c.BN);
    Z.store({row, j}, cast(cast(Y.load({row, j}, {c.BN}), f32) * scale * cast(load(weight + n, {.mask = n < Y.dim(1)}), f32), bf16));
  }
}).grid([](const LayerCfg&, const auto& y, const auto&...) { return Grid{y.shape[0]}; });
Register r1("residual_squares", [](Env& e) {
  const auto c = layer_cfg(e, {128, 160, 64}, {64, 48, 32});
  const int M = e.big ? 8192 : 70, N = e.big ? 5120 : 104, K = e.big ? 5120 : 72, parts = cdiv(N, c.BN);
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(N) * K, -.1, .1), y = random<bfloat16>(e, size_t(M) * N);
  auto squares = constant<float>(e, size_t(parts) * M, NAN);
  auto weight = random<bfloat16>(e, N), z = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  restore(e, j, y);
  j.add(residual_squares, c, x.view(M, K), w.view(N, K), y.view(M, N), squares.view(parts, M));
  j.add(scale_rows, LayerCfg{.BN = e.big ? 1024 : 64}, y.view(M, N), squares.view(parts, M), weight.p, z.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(x, K), [&](int k, int n) { return w[n * K + k]; },
                        [&](double s, int m, int n) { return s + y[m * N + n]; });
    auto wrong = agree(y.now(), want, 1e-2, 1e-2);
    for (int m = 0; m < M; ++m) {
      double s = 0;
      for (int n = 0; n < N; ++n) s += want[m * N + n] * want[m * N + n];
      for (int n = 0; n < N; ++n) want[m * N + n] *= weight[n] / std::sqrt(s / N + 1e-6);
    }
    return wrong.empty() ? agree(z.now(), want, 2e-2, 2e-2) : wrong;
  };
  return j;
});

// --- dW = beta dW + dY' X, and db += the columns of dY, by the programs that see each of them first
auto weight_and_bias = kernel("user_weight_and_bias", [](const LayerCfg& c, Ptr<const half> dy, Ptr<const half> x, Ptr<float> dw,
                                                         Ptr<float> db, I32 T, I32 N, I32 K, F32 beta) {
  auto first = program_id(0) == 0;
  auto k = program_id(0) * c.BN + arange(0, c.BN), n = program_id(1) * c.BM + arange(0, c.BM);
  Tile acc = zeros({c.BM, c.BN}, f32), bias = zeros({1, c.BM}, f32);
  for (auto i : range(0, T, c.BK, {.stages = c.stages})) {
    auto t = (i + arange(0, c.BK)).col();
    auto g = load(dy + (cast(t, i64) * N + n.row()), {.mask = (t < T) & (n < N).row()});
    auto v = load(x + (cast(t, i64) * K + k.row()), {.mask = (t < T) & (k < K).row()});
    acc = dot(trans(g), v, acc);
    if_(first, [&] { bias += sum(g, axis(0)); });
  }
  auto at = cast(n, i64).col() * K + k.row();
  auto in = (n < N).col() & (k < K).row();
  if_(beta != 0.f, [&] { acc += beta * load(dw + at, {.mask = in}); });
  store(dw + at, acc, {.mask = in});
  if_(first, [&] { store(db + n, load(db + n, {.mask = n < N}) + squeeze(bias, 0), {.mask = n < N}); });
}).grid([](const LayerCfg& c, auto, auto, auto, auto, int, int N, int K, float) { return Grid{cdiv(K, c.BN), cdiv(N, c.BM)}; });
Register r2("weight_and_bias", [](Env& e) {
  const auto c = layer_cfg(e, {128, 128, 64}, {64, 32, 32});
  const int T = e.big ? 16384 : 100, N = e.big ? 4096 : 72, K = e.big ? 2048 : 88;
  auto dy = random<half>(e, size_t(T) * N), x = random<half>(e, size_t(T) * K);
  auto dw = random<float>(e, size_t(N) * K), db = random<float>(e, N), empty = constant<float>(e, size_t(N) * K, NAN);
  auto none = constant<float>(e, N, 3);
  Job j;
  j.gflop = 2e-9 * T * N * K;
  restore(e, j, dw, db);
  j.add(weight_and_bias, c, dy.p, x.p, dw.p, db.p, T, N, K, .5f);
  if (!e.big) j.add(weight_and_bias, c, dy.p, x.p, empty.p, none.p, 0, N, K, 0.f);  // no tokens: zeros, whatever was there
  j.check = [=] {
    std::vector<double> bias(N);
    for (int n = 0; n < N; ++n) {
      bias[n] = db[n];
      for (int t = 0; t < T; ++t) bias[n] += dy[t * N + n];
    }
    auto wrong = agree(dw.now(), product(N, K, T, [&](int n, int t) { return dy[t * N + n]; }, matrix(x, K),
                                         [&](double s, int n, int k) { return s + .5 * dw[n * K + k]; }), 1e-2, 1e-3);
    if (wrong.empty()) wrong = agree(db.now(), bias, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(empty.now(), std::vector<double>(N * K, 0), 1e-30, 0);
    return wrong.empty() ? agree(none.now(), std::vector<double>(N, 3), 0, 1e-6) : wrong;
  };
  return j;
});

// --- behind dH = dY W_down': what silu(gate) * up hands back to both, and H itself for the gradient of W_down
template <class P>
Tile tile_of(const P& p, const Tile& at, const Tile& in) {
  return cast(load(p + at, {.mask = in}), f32);
}
auto glu_grads = kernel("user_glu_grads", [](const LayerCfg& c, Tensor<const bfloat16, 2> dY, Tensor<const bfloat16, 2> Down,
                                             Ptr<const bfloat16> gate_up, Ptr<bfloat16> d_gate_up, Ptr<bfloat16> h) {
  auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
  auto F = Down.dim(1), M = dY.dim(0);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, dY.dim(1), c.BK, {.stages = c.stages}))
    acc = dot(dY.load({m, k}, {c.BM, c.BK}), Down.load({k, n}, {c.BK, c.BN}), acc);
  auto row = (m + arange(0, c.BM)).col(), column = (n + arange(0, c.BN)).row();
  auto in = (row < M) & (column < F);
  auto at = cast(row, i64) * 2 * F + column;
  auto gate = tile_of(gate_up, at, in), up = tile_of(gate_up, at + F, in);
  auto s = sigmoid(gate), silu_gate = gate * s;
  store(d_gate_up + at, cast(acc * up * (s + silu_gate * (1 - s)), bf16), {.mask = in});
  store(d_gate_up + (at + F), cast(acc * silu_gate, bf16), {.mask = in});
  store(h + (cast(row, i64) * F + column), cast(silu_gate * up, bf16), {.mask = in});
}).grid([](const LayerCfg& c, const auto& dy, const auto& down, const auto&...) {
  return Grid{cdiv(down.shape[1], c.BN), cdiv(dy.shape[0], c.BM)};
});
Register r3("glu_grads", [](Env& e) {
  const auto c = layer_cfg(e, {128, 96, 64}, {64, 32, 32});
  const int M = e.big ? 8192 : 70, F = e.big ? 8192 : 88, K = e.big ? 4096 : 104;
  auto dy = random<bfloat16>(e, size_t(M) * K), down = random<bfloat16>(e, size_t(K) * F, -.2, .2);
  auto gate_up = random<bfloat16>(e, size_t(M) * 2 * F, -3, 3);
  auto grads = constant<bfloat16>(e, size_t(M) * 2 * F, NAN), h = constant<bfloat16>(e, size_t(M) * F, NAN);
  Job j;
  j.gflop = 2e-9 * M * F * K;
  j.add(glu_grads, c, dy.view(M, K), down.view(K, F), gate_up.p, grads.p, h.p);
  j.check = [=] {
    std::vector<double> want(size_t(M) * 2 * F), forward(size_t(M) * F);
    auto dh = product(M, F, K, matrix(dy, K), matrix(down, F));
    for (int m = 0; m < M; ++m)
      for (int f = 0; f < F; ++f) {
        const double g = gate_up[m * 2 * F + f], u = gate_up[m * 2 * F + F + f], s = 1 / (1 + std::exp(-g)), d = dh[m * F + f];
        want[m * 2 * F + f] = d * u * (s + g * s * (1 - s)), want[m * 2 * F + F + f] = d * g * s;
        forward[m * F + f] = g * s * u;
      }
    auto wrong = agree(grads.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(h.now(), forward, 1e-2, 1e-2) : wrong;
  };
  return j;
});

// --- y[t, h] = x[t, h] W[h]: queries on their way into the space of latents, few tokens or many; heads are the middle dim
auto head_projection = kernel("user_head_projection", [](const LayerCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> W,
                                                         Tensor<bfloat16, 3> Y) {
  auto n = program_id(0) * c.BN, t = program_id(1) * c.BM, h = program_id(2);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, X.dim(2), c.BK)) {
    auto x = reshape(X.load({t, h, k}, {c.BM, 1, c.BK}), {c.BM, c.BK});
    acc = dot(x, W.load({h, k, n}, {c.BK, c.BN}), acc);
  }
  Y.store({t, h, n}, reshape(cast(acc, bf16), {c.BM, 1, c.BN}));
}).grid([](const LayerCfg& c, const auto& x, const auto& w, const auto&) {
  return Grid{cdiv(w.shape[2], c.BN), cdiv(x.shape[0], c.BM), x.shape[1]};
});
Register r4("head_projection", [](Env& e) {
  const auto c = layer_cfg(e, {64, 128, 64}, {16, 48, 32});
  const int T = e.big ? 1024 : 37, H = e.big ? 128 : 3, K = e.big ? 128 : 40, N = e.big ? 512 : 72, wide = K + (e.big ? 64 : 8);
  auto x = random<bfloat16>(e, size_t(T) * H * wide), w = random<bfloat16>(e, size_t(H) * K * N);
  auto y = constant<bfloat16>(e, size_t(T) * H * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * H * K * N;
  auto part = [&](int tokens) { return TensorView<const bfloat16, 3>(x.p, {tokens, H, K}, {int64_t(H) * wide, wide, 1}); };
  j.add(head_projection, c, part(T), w.view(H, K, N), y.view(T, H, N));
  if (!e.big) j.add(head_projection, c, part(0), w.view(H, K, N), y.view(0, H, N));  // a step without tokens
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * N);
    for (int h = 0; h < H; ++h) {
      auto one = product(T, N, K, [&](int t, int k) { return x[(size_t(t) * H + h) * wide + k]; }, matrix(w, N, size_t(h) * K * N));
      for (int t = 0; t < T; ++t)
        for (int n = 0; n < N; ++n) want[(size_t(t) * H + h) * N + n] = one[size_t(t) * N + n];
    }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace layer_products
}  // namespace users
