// gradients.cpp - gradients whose sums run over what forward passes keep apart: images under a filter, batches under a
// learned bias.
#include "tests/users/use.h"
namespace users {
namespace gradients {

constexpr float kLog2e = 1.4426950408889634f;

// --- weights of a 3x3 convolution (channels last, padding 1): sums over images and pixels, split over programs
struct FilterCfg {
  int PH = 4, PW = 16, BC = 64, BK = 128, splits = 4, stages = 3, warps = 8;
};
auto filter_grad =
    kernel("user_filter_grad", [](const FilterCfg& c, Tensor<const half, 4> X, Tensor<const half, 4> dY,
                                  Tensor<float, 3> dW) {
      // X [B, H, W, C], dY [B, H, W, K], dW [9, C, K], zero at first
      num_warps(c.warps);
      auto tap = program_id(2) / c.splits, part = program_id(2) % c.splits;
      auto c0 = program_id(0) * c.BC, k0 = program_id(1) * c.BK;
      auto dy = tap / 3 - 1, dx = tap % 3 - 1;
      auto across = cdiv(X.dim(2), c.PW), patches = cdiv(X.dim(1), c.PH) * across;
      auto all = X.dim(0) * patches, per = cdiv(all, c.splits);
      const int pixels = c.PH * c.PW;
      Tile acc = zeros({c.BC, c.BK}, f32);
      for (auto i : range(part * per, min((part + 1) * per, all), {.stages = c.stages})) {
        auto b = i / patches, y = i % patches / across * c.PH, x = i % across * c.PW;
        auto in = reshape(X.load({b, y + dy, x + dx, c0}, {1, c.PH, c.PW, c.BC}), {pixels, c.BC});
        auto out = reshape(dY.load({b, y, x, k0}, {1, c.PH, c.PW, c.BK}), {pixels, c.BK});
        acc = dot(trans(in), out, acc);
      }
      dW.atomic_add({tap, c0, k0}, expand_dims(acc, 0));
    }).grid([](const FilterCfg& c, const auto& x, const auto& dy, const auto&) {
      return Grid{cdiv(x.shape[3], c.BC), cdiv(dy.shape[3], c.BK), 9 * c.splits};
    });
Register r1("filter_grad", [](Env& e) {
  int B = e.big ? 32 : 2, H = e.big ? 56 : 7, W = e.big ? 56 : 9, C = e.big ? 128 : 24, K = e.big ? 128 : 40;
  auto x = random<half>(e, size_t(B) * H * W * C), dy = random<half>(e, size_t(B) * H * W * K);
  auto dw = constant<float>(e, 9 * C * K, 0);
  Job j;
  j.gflop = 2e-9 * 9 * B * H * W * double(C) * K;
  j.add(filter_grad, e.big ? FilterCfg{8, 8, 128, 128, 14, 4, 8} : FilterCfg{4, 8, 64, 64, 2, 2, 4}, x.view(B, H, W, C),
        dy.view(B, H, W, K), dw.view(9, C, K));
  j.check = [=] {
    std::vector<double> want(size_t(9) * C * K);
    for (int t = 0; t < 9; ++t)
      for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
          for (int w = 0; w < W; ++w) {
            const int y = h + t / 3 - 1, z = w + t % 3 - 1;
            if (y < 0 || y >= H || z < 0 || z >= W) continue;
            for (int i = 0; i < C; ++i)
              for (int k = 0; k < K; ++k)
                want[(size_t(t) * C + i) * K + k] += x[((size_t(b) * H + y) * W + z) * C + i] *
                                                     dy[((size_t(b) * H + h) * W + w) * K + k];
          }
    return agree(dw.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- a bias learned per head and pair of positions: its gradient sums the batch
struct BiasCfg {
  int BM = 64, BN = 64, D = 64, stages = 2, warps = 4;
};
auto bias_grad = kernel("user_bias_grad", [](const BiasCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K,
                                             Tensor<const half, 4> V, Tensor<const half, 4> dO,
                                             Tensor<const half, 3> bias, Tensor<const float, 3> lse,
                                             Tensor<const float, 3> delta, Tensor<float, 3> dB, F32 scale) {
                   // Q, K, V, dO [B, H, S, D], bias, dB [H, S, S], lse (base e), delta = rowsum(dO O) [B, H, S]
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, h = program_id(2);
                   auto add = cast(bias.load({h, m, n}, {c.BM, c.BN}), f32) * kLog2e;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto b : range(0, Q.dim(0), {.stages = c.stages})) {
                     auto q = Q.load({b, h, m, 0}, {c.BM, c.D}), k = K.load({b, h, n, 0}, {c.BN, c.D});
                     auto o = dO.load({b, h, m, 0}, {c.BM, c.D}), v = V.load({b, h, n, 0}, {c.BN, c.D});
                     auto l = lse.load({b, h, m}, {c.BM}).col(), d = delta.load({b, h, m}, {c.BM}).col();
                     auto p = exp2(dot(q, trans(k)) * (scale * kLog2e) + add - l * kLog2e);
                     acc += p * (dot(o, trans(v)) - d);
                   }
                   dB.store({h, m, n}, expand_dims(acc, 0));
                 }).grid([](const BiasCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BM), cdiv(q.shape[2], c.BN), q.shape[1]};
});
Register r2("bias_grad", [](Env& e) {
  int B = e.big ? 32 : 3, H = e.big ? 8 : 2, S = e.big ? 1024 : 70, D = e.big ? 64 : 32;
  const size_t n = size_t(B) * H * S;
  auto q = random<half>(e, n * D), k = random<half>(e, n * D), v = random<half>(e, n * D), go = random<half>(e, n * D);
  auto bias = random<half>(e, size_t(H) * S * S);
  auto lse = random<float>(e, n, 4, 6), delta = random<float>(e, n);
  auto db = constant<float>(e, size_t(H) * S * S, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * n * double(S) * D;
  j.add(bias_grad, e.big ? BiasCfg{128, 64, D, 3, 8} : BiasCfg{64, 32, D, 2, 4}, q.view(B, H, S, D),
        k.view(B, H, S, D), v.view(B, H, S, D), go.view(B, H, S, D), bias.view(H, S, S), lse.view(B, H, S),
        delta.view(B, H, S), db.view(H, S, S), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * S * S);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int m = 0; m < S; ++m)
          for (int i = 0; i < S; ++i) {
            const size_t row = (size_t(b) * H + h) * S + m, key = (size_t(b) * H + h) * S + i,
                         at = (size_t(h) * S + m) * S + i;
            double s = 0, dp = 0;
            for (int d = 0; d < D; ++d) s += q[row * D + d] * k[key * D + d], dp += go[row * D + d] * v[key * D + d];
            want[at] += std::exp(s * scale + bias[at] - lse[row]) * (dp - delta[row]);
          }
    return agree(db.now(), want, 1e-4, 2e-3);
  };
  return j;
});

// --- one step of an LSTM: four gates from one product of inputs and state
struct LstmCfg {
  int BM = 64, BN = 64, BK = 64, stages = 3, warps = 4;
};
auto lstm = kernel("user_lstm", [](const LstmCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> W,
                                   Tensor<const float, 2> bias, Tensor<const float, 2> C0, Tensor<float, 2> C1,
                                   Tensor<half, 2> H1) {
              // X [B, I] (input and state side by side), W [4, I, N], bias [4, N], C0, C1, H1 [B, N]
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              std::array<Tile, 4> gate;
              for (auto& g : gate) g = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
                auto x = X.load({m, k}, {c.BM, c.BK});
                for (int i = 0; i < 4; ++i) gate[i] = dot(x, W.load({i, k, n}, {c.BK, c.BN}), gate[i]);
              }
              for (int i = 0; i < 4; ++i) gate[i] += bias.load({i, n}, {c.BN}).row();
              auto cell = sigmoid(gate[1]) * C0.load({m, n}, {c.BM, c.BN}) + sigmoid(gate[0]) * tanh(gate[2]);
              C1.store({m, n}, cell);
              H1.store({m, n}, cast(sigmoid(gate[3]) * tanh(cell), f16));
            }).grid([](const LstmCfg& c, const auto&, const auto&, const auto&, const auto& c0, const auto&...) {
  return Grid{cdiv(c0.shape[0], c.BM), cdiv(c0.shape[1], c.BN)};
});
Register r3("lstm", [](Env& e) {
  int B = e.big ? 2048 : 70, I = e.big ? 4096 : 96, N = e.big ? 2048 : 72;
  auto x = random<half>(e, size_t(B) * I), w = random<half>(e, size_t(4) * I * N, -.1, .1);
  auto bias = random<float>(e, 4 * N), c0 = random<float>(e, size_t(B) * N);
  auto c1 = constant<float>(e, size_t(B) * N, NAN);
  auto h1 = constant<half>(e, size_t(B) * N, NAN);
  Job j;
  j.gflop = 8e-9 * B * double(I) * N;
  j.add(lstm, e.big ? LstmCfg{128, 64, 64, 4, 8} : LstmCfg{64, 32, 32, 2, 4}, x.view(B, I), w.view(4, I, N),
        bias.view(4, N), c0.view(B, N), c1.view(B, N), h1.view(B, N));
  j.check = [=] {
    std::vector<double> cell, state;
    auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (int b = 0; b < B; ++b)
      for (int n = 0; n < N; ++n) {
        double g[4];
        for (int i = 0; i < 4; ++i) {
          g[i] = bias[i * N + n];
          for (int k = 0; k < I; ++k) g[i] += x[size_t(b) * I + k] * w[(size_t(i) * I + k) * N + n];
        }
        cell.push_back(sigma(g[1]) * c0[size_t(b) * N + n] + sigma(g[0]) * std::tanh(g[2]));
        state.push_back(sigma(g[3]) * std::tanh(cell.back()));
      }
    const auto wrong = agree(c1.now(), cell, 1e-3, 1e-3);
    return wrong.empty() ? agree(h1.now(), state, 2e-3, 1e-3) : wrong;
  };
  return j;
});

}  // namespace gradients
}  // namespace users
