// training_bytes.cpp - what training in few bits and with experts needs: gradients of weights from fp8 with factors on
// both sides, numbers of 4 bits drawn after a rotation, experts' rows going back, sums over shards.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace training_bytes {

// --- gradients of experts' weights from e4m3: tokens lie side by side in both operands, factors for every 128 of them
// and each row of either
struct WeightGradCfg {
  int BM = 128, BN = 128, BK = 128, stages = 4, warps = 8;
};
auto f8_wgrad =
    kernel("user_f8_wgrad", [](const WeightGradCfg& c, Tensor<const fp8_e4m3, 2> dY, Tensor<const fp8_e4m3, 2> X,
                               Tensor<const float, 2> sY, Tensor<const float, 2> sX, Ptr<const int32_t> start,
                               Tensor<bfloat16, 3> dW) {
      // dY [N, T], X [K, T]; sY [T / 128, N], sX [T / 128, K]; start [experts + 1], multiples of 128; dW [experts, N,
      // K]
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN, e = program_id(2);
      auto first = multiple_of(load(start + e), 128), end = multiple_of(load(start + e + 1), 128);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto t : range(first, end, c.BK, {.stages = c.stages})) {
        auto both = sY.load({t / 128, m}, {c.BM}).col() * sX.load({t / 128, n}, {c.BN}).row();
        acc += dot(dY.load({m, t}, {c.BM, c.BK}), trans(X.load({n, t}, {c.BN, c.BK}))) * both;
      }
      dW.store({e, m, n}, cast(acc, bf16));
    }).grid([](const WeightGradCfg& c, const auto& y, const auto& x, const auto&, const auto&, auto, const auto& w) {
      return Grid{cdiv(x.shape[0], c.BN), cdiv(y.shape[0], c.BM), w.shape[0]};
    });
Register r1("f8_wgrad", [](Env& e) {
  WeightGradCfg c;
  if (!e.big) c = {32, 32, 128, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int E = e.big ? 8 : 3, N = e.big ? 4096 : 48, K = e.big ? 2048 : 40;
  std::vector<int32_t> begin{0};
  for (int i = 0; i < E; ++i) begin.push_back(begin.back() + (e.big ? 4096 + 128 * ((i * 13) % 7) : 128 * (i % 3)));
  const int T = begin.back();
  auto y = random<fp8_e4m3>(e, size_t(N) * T), x = random<fp8_e4m3>(e, size_t(K) * T);
  auto sy = random<float>(e, size_t(T) / 128 * N, .5, 2), sx = random<float>(e, size_t(T) / 128 * K, .5, 2);
  auto st = filled<int32_t>(e, E + 1, [&](size_t i) { return begin[i]; });
  auto w = constant<bfloat16>(e, size_t(E) * N * K, NAN);
  Job j;
  j.gflop = 2e-9 * double(N) * K * T;
  j.add(f8_wgrad, c, y.view(N, T), x.view(K, T), sy.view(T / 128, N), sx.view(T / 128, K), st.p, w.view(E, N, K));
  j.check = [=] {
    std::vector<double> want(w.n);
    for (int i = 0; i < E; ++i)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k)
          for (int t = begin[i]; t < begin[i + 1]; ++t)
            want[(size_t(i) * N + n) * K + k] +=
                y[size_t(n) * T + t] * x[size_t(k) * T + t] * sy[size_t(t / 128) * N + n] * sx[size_t(t / 128) * K + k];
    return agree(w.now(), want, 5e-2, 1e-2);
  };
  return j;
});

// --- NVFP4 for training: 16 neighbours are turned (signs, Hadamard), a factor of e4m3 for 16 under one of the tensor,
// rounding up or down by chance; rows and columns of the tile both leave, two numbers in a byte
struct RotatedFourCfg {
  int BM = 64, BN = 64, warps = 4;
};
auto four_both =
    kernel("user_four_both", [](const RotatedFourCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> H,
                                Tensor<uint8_t, 2> rows, Tensor<fp8_e4m3, 2> rowScales, Tensor<uint8_t, 2> columns,
                                Tensor<fp8_e4m3, 2> columnScales, F32 global, I64 seed) {
      // X [M, N]; H [16, 16] with the signs; rows [M, N / 2] and [M, N / 16], columns [N, M / 2] and [N, M / 16]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto x = X.load({m, n}, {c.BM, c.BN});
      auto turn = H.load({0, 0}, {16, 16});
      auto quantise = [&](const Tile& t, int R, int C, auto& to, auto& scales, const Tile& r, const Tile& at,
                          const Tile& width, int stream) {
        auto y = dot(reshape(t, {R * C / 16, 16}), turn);
        auto most = max(abs(y), axis(1));
        auto s = cast(min(most * (1.f / 6.f) / global, 448.f), f8e4m3);
        auto sf = cast(s, f32) * global;
        auto a = min(abs(y) / where(sf > 0.f, sf, 1.f), 6.f);
        auto step = where(a < 2.f, .5f, where(a < 4.f, 1.f, 2.f));
        auto row = (r + arange(0, R)).col(), column = (at + arange(0, C)).row();
        auto u = reshape(rand(seed + stream, cast(row, i64) * cast(width, i64) + cast(column, i64)), {R * C / 16, 16});
        auto q = min(floor(a / step + u) * step, 6.f);
        auto code = cast(where(q < 2.f, q * 2.f, where(q < 4.f, q + 2.f, q * .5f + 4.f)), i32);
        code = where(y < 0.f, code | 8, code);
        auto [low, high] = split(reshape(code, {R, C / 2, 2}));
        to.store({r, at / 2}, cast(low | (high << 4), u8));
        scales.store({r, at / 16}, reshape(s, {R, C / 16}));
      };
      quantise(x, c.BM, c.BN, rows, rowScales, m, n, X.dim(1), 0);
      quantise(trans(x), c.BN, c.BM, columns, columnScales, n, m, X.dim(0), 1);
    }).grid([](const RotatedFourCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
    });
Register r2("four_both", [](Env& e) {
  RotatedFourCfg c;
  if (!e.big) c = {32, 16, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8192 : 64, N = e.big ? 8192 : 48;
  auto x = random<bfloat16>(e, size_t(M) * N, -3, 3);
  auto h = filled<bfloat16>(e, 256, [&](size_t i) {
    return bfloat16(((__builtin_popcount(i / 16 & i % 16) + (i / 16 * 5 / 3)) & 1 ? -.25f : .25f));
  });
  auto rows = constant<uint8_t>(e, x.n / 2, 0), columns = constant<uint8_t>(e, x.n / 2, 0);
  auto rs = constant<fp8_e4m3>(e, x.n / 16, 0), cs = constant<fp8_e4m3>(e, x.n / 16, 0);
  const float global = .004f;
  Job j;
  j.mbytes = 1e-6 * x.n * (2 + 2 * (.5 + 1. / 16));
  j.add(four_both, c, x.view(M, N), h.view(16, 16), rows.view(M, N / 2), rs.view(M, N / 16), columns.view(N, M / 2),
        cs.view(N, M / 16), global, int64_t(7));
  j.check = [=]() -> std::string {
    const float levels[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    for (int side = 0; side < 2; ++side) {
      const int R = side ? N : M, C = side ? M : N;
      const auto got = side ? columns.now() : rows.now();
      const auto scales = side ? cs.now() : rs.now();
      double bias = 0, all = 0;
      for (int r = 0; r < R; ++r)
        for (int g = 0; g < C / 16; ++g) {
          double y[16], most = 0;
          for (int i = 0; i < 16; ++i) {
            y[i] = 0;
            for (int k = 0; k < 16; ++k) {
              const int col = g * 16 + k;
              y[i] += (side ? x[size_t(col) * N + r] : x[size_t(r) * N + col]) * h[k * 16 + i];
            }
            most = std::max(most, std::abs(y[i]));
          }
          const double s = double(float(scales[size_t(r) * (C / 16) + g])) * global;
          if (std::abs(s - most / 6) > most / 6 / 14)
            return "factor " + std::to_string(r) + " of side " + std::to_string(side);
          for (int i = 0; i < 16; ++i) {
            const size_t at = size_t(r) * C + g * 16 + i;
            const int code = at % 2 ? got[at / 2] >> 4 : got[at / 2] & 15;
            const double q = (code & 8 ? -1 : 1) * double(levels[code & 7]) * s;
            const double a = std::min(std::abs(y[i]) / s, 6.), step = a < 2 ? .5 : a < 4 ? 1 : 2;
            if (std::abs(q - y[i]) > step * s * 1.001 + most / 14)
              return "number " + std::to_string(at) + " of side " + std::to_string(side);
            if (a < 5.5) bias += (std::abs(q) - std::abs(y[i])) / s, ++all;
          }
        }
      if (std::abs(bias / all) > .03) return "bias " + std::to_string(bias / all);
    }
    return "";
  };
  return j;
});

// --- experts going back: gradients of what the down projection read, from the tokens' rows, through SiLU and gate,
// with the gradients of the router's weights and the scaled activations that the weights' gradients want
struct DownBackCfg {
  int BM = 128, BN = 64, BK = 64, stages = 3, warps = 8;
};
auto down_bwd =
    kernel("user_down_bwd", [](const DownBackCfg& c, Tensor<const bfloat16, 2> dY, Tensor<const bfloat16, 3> W,
                               Tensor<const bfloat16, 2> H, Ptr<const int32_t> token, Ptr<const float> weight,
                               Ptr<const int32_t> expert, Tensor<bfloat16, 2> dH, Tensor<bfloat16, 2> act,
                               Ptr<float> dWeight) {
      // dY [T, D], W [experts, D, I], H, dH [rows, 2 I] (gate, up), token, weight [rows] (token -1: padding), expert
      // [rows / BM], act [rows, I]
      num_warps(c.warps);
      auto n = program_id(0) * c.BN, m = program_id(1) * c.BM;
      auto e = load(expert + program_id(1));
      auto rows = m + arange(0, c.BM);
      auto from = load(token + rows);
      auto I = W.dim(2);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, W.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(dY.gather(from, k, c.BK), W.load({e, k, n}, {c.BK, c.BN}), acc);
      auto gate = cast(H.load({m, n}, {c.BM, c.BN}), f32), up = cast(H.load({m, I + n}, {c.BM, c.BN}), f32);
      auto w = load(weight + rows).col();
      auto s = sigmoid(gate), a = gate * s, y = a * up;
      atomic_add(dWeight + rows, squeeze(sum(acc * y, axis(1)), 1), {.mask = from >= 0, .order = Order::relaxed});
      auto g = acc * w;
      dH.store({m, n}, cast(g * up * (s + a * (1.f - s)), bf16));
      dH.store({m, I + n}, cast(g * a, bf16));
      act.store({m, n}, cast(y * w, bf16));
    }).grid([](const DownBackCfg& c, const auto&, const auto& w, const auto& h, auto&&...) {
      return Grid{cdiv(w.shape[2], c.BN), h.shape[0] / c.BM};
    });
Register r3("down_bwd", [](Env& e) {
  DownBackCfg c;
  if (!e.big) c = {16, 16, 16, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 30, D = e.big ? 2048 : 40, I = e.big ? 1024 : 32, E = e.big ? 32 : 3,
            rows = e.big ? T * 4 : 96;
  auto y = random<bfloat16>(e, size_t(T) * D), w = random<bfloat16>(e, size_t(E) * D * I, -.2, .2);
  auto h = random<bfloat16>(e, size_t(rows) * 2 * I, -2, 2);
  auto token = filled<int32_t>(e, rows, [&](size_t i) { return i % 16 == 15 ? -1 : int32_t(i * 7919 % T); });
  auto weight = random<float>(e, rows, .1, .6);
  auto expert = filled<int32_t>(e, rows / c.BM, [&](size_t i) { return int32_t(i * E / (rows / c.BM)); });
  auto dh = constant<bfloat16>(e, h.n, NAN), act = constant<bfloat16>(e, h.n / 2, NAN);
  auto dw = constant<float>(e, rows, 0);
  Job j;
  j.gflop = 2e-9 * rows * double(D) * I;
  j.add(down_bwd, c, y.view(T, D), w.view(E, D, I), h.view(rows, 2 * I), token.p, weight.p, expert.p,
        dh.view(rows, 2 * I), act.view(rows, I), dw.p);
  j.check = [=] {
    std::vector<double> wh(h.n), wa(act.n), ww(rows);
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < I; ++i) {
        double g = 0;
        for (int d = 0; d < D && token.h[r] >= 0; ++d)
          g += y[size_t(token.h[r]) * D + d] * w[(size_t(expert.h[r / c.BM]) * D + d) * I + i];
        const double x = h[size_t(r) * 2 * I + i], u = h[size_t(r) * 2 * I + I + i], s = 1 / (1 + std::exp(-x));
        ww[r] += g * x * s * u, wa[r * I + i] = weight[r] * x * s * u;
        wh[size_t(r) * 2 * I + i] = g * weight[r] * u * (s + x * s * (1 - s)),
                               wh[size_t(r) * 2 * I + I + i] = g * weight[r] * x * s;
      }
    if (auto x = agree(dw.now(), ww, 1e-3, 1e-3); !x.empty()) return "weights: " + x;
    if (auto x = agree(act.now(), wa, 1e-2, 1e-2); !x.empty()) return "activations: " + x;
    return agree(dh.now(), wh, 1e-2, 1e-2);
  };
  return j;
});

// --- the parts of eight devices summed with the residual and normed (a one-shot all-reduce): a table of addresses,
// each a matrix of its own
struct ShardCfg {
  int N = 8192, shards = 8, warps = 8;
};
auto shards =
    kernel("user_shards", [](const ShardCfg& c, Ptr<const uint64_t> parts, Tensor<const bfloat16, 2> residual,
                             Tensor<const bfloat16, 1> weight, Tensor<bfloat16, 2> sums, Tensor<bfloat16, 2> Y) {
      num_warps(c.warps);
      auto m = program_id(0);
      auto N = residual.dim(1);
      auto x = cast(residual.load({m, 0}, {1, c.N}), f32);
      for (int i = 0; i < c.shards; ++i) {
        auto part = make_view<const bfloat16>(pointer_to<const bfloat16>(multiple_of(load(parts + i), 16)),
                                              {residual.dim(0), N}, {residual.stride(0), 1});
        x = x + cast(part.load({m, 0}, {1, c.N}), f32);
      }
      sums.store({m, 0}, cast(x, bf16));
      auto r = rsqrt(sum(x * x, axis(1)) / cast(N, f32) + 1e-6f);
      Y.store({m, 0}, cast(x * r * cast(weight.load({0}, {c.N}), f32).row(), bf16));
    }).grid([](const ShardCfg&, auto, const auto& r, const auto&...) { return Grid{r.shape[0]}; });
Register r4("shards", [](Env& e) {
  ShardCfg c;
  if (!e.big) c = {64, 3, 1};
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 5, N = e.big ? c.N : 56;
  std::vector<Array<bfloat16>> parts;
  for (int i = 0; i < c.shards; ++i) parts.push_back(random<bfloat16>(e, size_t(M) * N));
  auto table = filled<uint64_t>(e, c.shards, [&](size_t i) { return reinterpret_cast<uint64_t>(parts[i].p); });
  auto residual = random<bfloat16>(e, size_t(M) * N), weight = random<bfloat16>(e, N);
  auto sums = constant<bfloat16>(e, residual.n, NAN), y = constant<bfloat16>(e, residual.n, NAN);
  Job j;
  j.mbytes = 2e-6 * residual.n * (c.shards + 3);
  j.add(shards, c, table.p, residual.view(M, N), weight.view(N), sums.view(M, N), y.view(M, N));
  j.check = [=] {
    std::vector<double> ws(sums.n), wy(sums.n);
    for (int m = 0; m < M; ++m) {
      double square = 0;
      for (int n = 0; n < N; ++n) {
        double& x = ws[m * N + n];
        x = residual[m * N + n];
        for (auto& p : parts) x += p[m * N + n];
        square += x * x / N;
      }
      for (int n = 0; n < N; ++n) wy[m * N + n] = ws[m * N + n] / std::sqrt(square + 1e-6) * weight[n];
    }
    if (auto w = agree(sums.now(), ws, 1e-2, 1e-2); !w.empty()) return "sums: " + w;
    return agree(y.now(), wy, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace training_bytes
}  // namespace users
