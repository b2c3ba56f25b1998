// microscaled.cpp - products in the OCP microscaling formats by dot_scaled: weights of MXFP4 under bf16 rows, experts
// in the way of gpt-oss (bias, gates and values interleaved, clamped SwiGLU), MXFP8 rows on MXFP4 weights, NVFP4.
#include "tests/users/use.h"
namespace users {
namespace microscaled {

double e2m1(int code) {
  const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * values[code & 7];
}
/// Element (n, k) of rows of K e2m1 numbers, two in a byte, with an exponent per 32.
auto mx4(const Array<uint8_t>& w, const Array<uint8_t>& s, int K, size_t row = 0) {
  return [&w, &s, K, row](int k, int n) {
    const size_t at = row + size_t(n);
    return e2m1(w.h[at * (K / 2) + k / 2] >> (k % 2 * 4) & 15) * std::exp2(s.h[at * (K / 32) + k / 32] - 127.);
  };
}

struct MxCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto linear = kernel("user_mx_linear", [](const MxCfg& c, Tensor<const bfloat16, 2> A, Tensor<const uint8_t, 2> W,
                                          Tensor<const uint8_t, 2> S, Tensor<bfloat16, 2> C) {
                // A [M, K], W [N, K / 2], S [N, K / 32], C [M, N]
                num_warps(c.warps);
                auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                Tile acc = zeros({c.BM, c.BN}, f32);
                for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                  auto w = trans(W.load({n, k / 2}, {c.BN, c.BK / 2}));
                  auto s = S.load({n, k / 32}, {c.BN, c.BK / 32});
                  acc = dot_scaled({A.load({m, k}, {c.BM, c.BK})}, {w, s}, acc);
                }
                C.store({m, n}, cast(acc, bf16));
              }).grid([](const MxCfg& c, const auto& a, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r1("mx_linear", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384;
  auto a = random<bfloat16>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * (K / 2), 0, 256);
  auto s = integers<uint8_t>(e, size_t(N) * (K / 32), 118, 126);
  auto c = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  MxCfg cfg{64, 64, 64, 2, 4};
  if (e.big)
    cfg = {e.field("BM", 128), e.field("BN", 128), e.field("BK", 128), e.field("stages", 3), e.field("warps", 8)};
  j.add(linear, cfg, a.view(M, K), w.view(N, K / 2), s.view(N, K / 32), c.view(M, N));
  j.check = [=] { return agree(c.now(), product(M, N, K, matrix(a, K), mx4(w, s, K)), 2e-3, 8e-3); };
  return j;
});

// --- experts: rows sorted by expert in whole blocks, each block's expert in a list; columns are gate, value, gate, ...
struct ExpertCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto experts = kernel("user_mx_experts", [](const ExpertCfg& c, Tensor<const bfloat16, 2> X, Tensor<const uint8_t, 3> W,
                                            Tensor<const uint8_t, 3> S, Tensor<const float, 2> bias,
                                            Tensor<const int32_t, 1> expert, Tensor<bfloat16, 2> Y) {
                 // X [R, K], W [E, 2N, K / 2], S [E, 2N, K / 32], bias [E, 2N], expert [R / BM], Y [R, N]
                 num_warps(c.warps);
                 auto block = program_id(0), e = expert.load({block});
                 return_if(e < 0);
                 auto m = block * c.BM, n = program_id(1) * c.BN;
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
                   auto w = trans(W.load({e, n, k / 2}, {c.BN, c.BK / 2}));
                   auto s = S.load({e, n, k / 32}, {c.BN, c.BK / 32});
                   acc = dot_scaled({X.load({m, k}, {c.BM, c.BK})}, {w, s}, acc);
                 }
                 acc += bias.load({e, n}, {c.BN}).row();
                 auto [gate, value] = split(reshape(acc, {c.BM, c.BN / 2, 2}));
                 gate = min(gate, 7.f);
                 value = clamp(value, -7.f, 7.f);
                 Y.store({m, n / 2}, cast(gate * sigmoid(gate * 1.702f) * (value + 1.f), bf16));
               }).grid([](const ExpertCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
Register r2("mx_experts", [](Env& e) {
  ExpertCfg cfg{16, 64, 64, 2, 4};
  if (e.big)
    cfg = {e.field("BM", 64), e.field("BN", 128), e.field("BK", 64), e.field("stages", 4), e.field("warps", 4)};
  const int E = e.big ? 32 : 3, N = e.big ? 2880 : 48, K = e.big ? 2880 : 192, blocks = e.big ? 4096 / cfg.BM : 5;
  const int R = blocks * cfg.BM;
  auto x = random<bfloat16>(e, size_t(R) * K);
  auto w = integers<uint8_t>(e, size_t(E) * 2 * N * (K / 2), 0, 256);
  auto s = integers<uint8_t>(e, size_t(E) * 2 * N * (K / 32), 118, 124);
  auto bias = random<float>(e, size_t(E) * 2 * N);
  auto owner = filled<int32_t>(e, blocks, [=](size_t i) { return int(i * E / blocks) - (i == 1 && !e.big ? 1 : 0); });
  auto y = constant<bfloat16>(e, size_t(R) * N, 0);
  Job j;
  j.gflop = 4e-9 * R * N * double(K);
  j.add(experts, cfg, x.view(R, K), w.view(E, 2 * N, K / 2), s.view(E, 2 * N, K / 32), bias.view(E, 2 * N),
        owner.view(blocks), y.view(R, N));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < blocks; ++b) {
      const int expert = owner.h[b];
      if (expert < 0) {
        want.resize(want.size() + size_t(cfg.BM) * N);
        continue;
      }
      auto rows = product(cfg.BM, 2 * N, K, matrix(x, K, size_t(b) * cfg.BM * K), mx4(w, s, K, size_t(expert) * 2 * N));
      for (size_t i = 0; i < rows.size(); i += 2) {
        const size_t column = size_t(expert) * 2 * N + i % (2 * N);
        const double gate = std::min(rows[i] + bias[column], 7.);
        const double value = std::clamp(rows[i + 1] + bias[column + 1], -7., 7.);
        want.push_back(gate / (1 + std::exp(-1.702 * gate)) * (value + 1));
      }
    }
    return agree(y.now(), want, 3e-2, 1e-2);
  };
  return j;
});

// --- rows of e4m3 with exponents per 32 on weights of e2m1 (W4A8)
auto both = kernel("user_mx_both", [](const MxCfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const uint8_t, 2> SA,
                                      Tensor<const uint8_t, 2> W, Tensor<const uint8_t, 2> SW, Tensor<bfloat16, 2> C) {
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                auto a = A.load({m, k}, {c.BM, c.BK}), sa = SA.load({m, k / 32}, {c.BM, c.BK / 32});
                auto w = W.load({n, k / 2}, {c.BN, c.BK / 2}), sw = SW.load({n, k / 32}, {c.BN, c.BK / 32});
                acc = dot_scaled({a, sa}, {trans(w), sw}, acc);
              }
              C.store({m, n}, cast(acc, bf16));
            }).grid([](const MxCfg& c, const auto& a, const auto&, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r3("mx_both", [](Env& e) {
  int M = e.big ? 2048 : 70, N = e.big ? 8192 : 144, K = e.big ? 4096 : 384;
  auto a = random<fp8_e4m3>(e, size_t(M) * K, -200, 200);
  auto sa = integers<uint8_t>(e, size_t(M) * (K / 32), 116, 122);
  auto w = integers<uint8_t>(e, size_t(N) * (K / 2), 0, 256);
  auto sw = integers<uint8_t>(e, size_t(N) * (K / 32), 118, 126);
  auto c = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  MxCfg cfg{64, 64, 64, 2, 4};
  if (e.big)
    cfg = {e.field("BM", 128), e.field("BN", 128), e.field("BK", 128), e.field("stages", 3), e.field("warps", 8)};
  j.add(both, cfg, a.view(M, K), sa.view(M, K / 32), w.view(N, K / 2), sw.view(N, K / 32), c.view(M, N));
  j.check = [=] {
    auto row = [&](int m, int k) {
      return a[size_t(m) * K + k] * std::exp2(sa.h[size_t(m) * (K / 32) + k / 32] - 127.);
    };
    return agree(c.now(), product(M, N, K, row, mx4(w, sw, K)), 3e-1, 8e-3);
  };
  return j;
});

// --- NVFP4: e2m1 with factors of e4m3 per 16 and one for the whole matrix, under f16 rows
auto nvfp4 = kernel("user_nvfp4", [](const MxCfg& c, Tensor<const half, 2> A, Tensor<const uint8_t, 2> W,
                                     Tensor<const fp8_e4m3, 2> S, F32 scale, Tensor<half, 2> C) {
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                 auto w = trans(W.load({n, k / 2}, {c.BN, c.BK / 2}));
                 acc = dot_scaled({A.load({m, k}, {c.BM, c.BK})}, {w, S.load({n, k / 16}, {c.BN, c.BK / 16})}, acc);
               }
               C.store({m, n}, cast(acc * scale, f16));
             }).grid([](const MxCfg& c, const auto& a, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r4("nvfp4", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384;
  auto a = random<half>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * (K / 2), 0, 256);
  auto s = random<fp8_e4m3>(e, size_t(N) * (K / 16), .5, 8);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  MxCfg cfg{64, 64, 64, 2, 4};
  if (e.big)
    cfg = {e.field("BM", 128), e.field("BN", 128), e.field("BK", 128), e.field("stages", 3), e.field("warps", 8)};
  j.add(nvfp4, cfg, a.view(M, K), w.view(N, K / 2), s.view(N, K / 16), .01f, c.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      return e2m1(w.h[size_t(n) * (K / 2) + k / 2] >> (k % 2 * 4) & 15) * s[size_t(n) * (K / 16) + k / 16];
    };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight, [](double x, int, int) { return .01 * x; }), 1e-3,
                 2e-3);
  };
  return j;
});

}  // namespace microscaled
}  // namespace users
