// adapters.cpp - products around language models: adapters chosen per row, microscaled operands, the best class of a
// head that is never stored, a step of Newton and Schulz, weights whose groups are listed by row.
#include "tests/users/use.h"
namespace users {
namespace adapters {

// --- adapters of low rank, one per segment of rows: Y += scale (X A_s^T) B_s^T
struct SgmvCfg {
  int BM = 64, BN = 128, BK = 64, R = 16, stages = 3, warps = 4;
};
auto sgmv =
    kernel("user_sgmv", [](const SgmvCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 3> A,
                           Tensor<const bfloat16, 3> B, Tensor<const int32_t, 2> blocks, Tensor<bfloat16, 2> Y,
                           F32 scale) {
      // X [T, K], A [n, R, K], B [n, N, R], blocks [count, 3]: first row, end, adapter
      num_warps(c.warps);
      auto i = program_id(0);
      auto first = blocks.load({i, 0}), end = blocks.load({i, 1}), adapter = blocks.load({i, 2});
      Tile low = zeros({c.BM, c.R}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
        low = dot(X.load({first, k}, {c.BM, c.BK}), trans(squeeze(A.load({adapter, 0, k}, {1, c.R, c.BK}), 0)), low);
      auto h = cast(low * scale, bf16);
      auto rows = make_view<bfloat16>(Y.ptr(), {end, Y.dim(1)}, {Y.stride(0), 1});
      for (auto n : range(0, Y.dim(1), c.BN, {.stages = c.stages})) {
        auto b = squeeze(B.load({adapter, n, 0}, {1, c.BN, c.R}), 0);
        auto y = rows.load({first, n}, {c.BM, c.BN});
        rows.store({first, n}, cast(cast(y, f32) + dot(h, trans(b)), bf16));
      }
    }).grid([](const SgmvCfg&, const auto&, const auto&, const auto&, const auto& blocks, const auto&...) {
      return Grid{blocks.shape[0]};
    });
Register r1("sgmv", [](Env& e) {
  SgmvCfg c;
  if (!e.big) c = {16, 32, 32, 8, 2, 4};
  c.R = e.field("R", c.R), c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 32 : 4, K = e.big ? 4096 : 100, N = e.big ? 4096 : 72, R = c.R;
  std::vector<int32_t> blocks, owner;
  for (int s = 0; s < n; ++s) {
    const int from = int(owner.size()), rows = e.big ? 20 + 37 * s % 300 : 5 + 11 * s;
    owner.insert(owner.end(), rows, (s * 5 + 1) % n);
    for (int m = from; m < from + rows; m += c.BM) blocks.insert(blocks.end(), {m, from + rows, owner[from]});
  }
  const int T = int(owner.size()), count = int(blocks.size()) / 3;
  auto x = random<bfloat16>(e, size_t(T) * K), a = random<bfloat16>(e, size_t(n) * R * K, -.2, .2),
       b = random<bfloat16>(e, size_t(n) * N * R), y = random<bfloat16>(e, size_t(T) * N);
  auto list = filled<int32_t>(e, blocks.size(), [&](size_t i) { return blocks[i]; });
  Job j;
  j.gflop = 2e-9 * T * R * (double(K) + N);
  j.inTurn = true;
  j.add(sgmv, c, x.view(T, K), a.view(n, R, K), b.view(n, N, R), list.view(count, 3), y.view(T, N), .5f);
  j.check = [=] {
    std::vector<double> want(size_t(T) * N), low(R);
    for (int t = 0; t < T; ++t) {
      for (int r = 0; r < R; ++r) {
        low[r] = 0;
        for (int k = 0; k < K; ++k) low[r] += x[size_t(t) * K + k] * a[(size_t(owner[t]) * R + r) * K + k];
      }
      for (int m = 0; m < N; ++m) {
        double s = 0;
        for (int r = 0; r < R; ++r) s += low[r] * b[(size_t(owner[t]) * N + m) * R + r];
        want[size_t(t) * N + m] = y[size_t(t) * N + m] + .5 * s;
      }
    }
    return agree(y.now(), want, 3e-2, 1e-2);
  };
  return j;
});

// --- MXFP8: both operands of 8 bits with a power of two per 32 of K, multiplied as bf16
struct MxCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto mxfp8 = kernel("user_mxfp8", [](const MxCfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const uint8_t, 2> SA,
                                     Tensor<const fp8_e4m3, 2> W, Tensor<const uint8_t, 2> SW, Tensor<bfloat16, 2> C) {
               // A [M, K], SA [M, K / 32], W [N, K], SW [N, K / 32], C [M, N]
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               auto wide = [&](auto& X, auto& S, const Tile& row, const Tile& k, int rows) {
                 auto power = bitcast(cast(S.load({row, k / 32}, {rows, c.BK / 32}), u16) << 7, bf16);
                 auto x = reshape(cast(X.load({row, k}, {rows, c.BK}), bf16), {rows, c.BK / 32, 32});
                 return reshape(x * expand_dims(power, 2), {rows, c.BK});
               };
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                 acc = dot(wide(A, SA, m, k, c.BM), trans(wide(W, SW, n, k, c.BN)), acc);
               C.store({m, n}, cast(acc, bf16));
             }).grid([](const MxCfg& c, const auto& a, const auto&, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r2("mxfp8", [](Env& e) {
  MxCfg c;
  if (!e.big) c = {32, 64, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int M = e.big ? 2048 : 45, N = e.big ? 8192 : 96, K = e.big ? 8192 : 192;
  auto a = random<fp8_e4m3>(e, size_t(M) * K, -4, 4), w = random<fp8_e4m3>(e, size_t(N) * K, -4, 4);
  auto sa = integers<uint8_t>(e, size_t(M) * (K / 32), 122, 126),
       sw = integers<uint8_t>(e, size_t(N) * (K / 32), 122, 126);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(mxfp8, c, a.view(M, K), sa.view(M, K / 32), w.view(N, K), sw.view(N, K / 32), y.view(M, N));
  j.check = [=] {
    auto left = [&](int m, int k) {
      return a[size_t(m) * K + k] * std::exp2(sa.h[size_t(m) * (K / 32) + k / 32] - 127.);
    };
    auto right = [&](int k, int n) {
      return w[size_t(n) * K + k] * std::exp2(sw.h[size_t(n) * (K / 32) + k / 32] - 127.);
    };
    return agree(y.now(), product(M, N, K, left, right), 1e-3, 8e-3);
  };
  return j;
});

// --- the best class of every row without the logits: programs meet in one word per row, value above class
struct HeadCfg {
  int BM = 128, BN = 256, BK = 64, stages = 3, warps = 8;
};
auto head_argmax = kernel("user_head_argmax", [](const HeadCfg& c, Tensor<const bfloat16, 2> X,
                                                 Tensor<const bfloat16, 2> W, Tensor<uint64_t, 1> best) {
                     // X [M, K], W [V, K], best [M], zeroed: ordered bits of the value, then ~class
                     num_warps(c.warps);
                     auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                     Tile acc = zeros({c.BM, c.BN}, f32);
                     for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                       acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
                     auto column = n + arange(0, c.BN);
                     auto y = where((column < W.dim(0)).row(), acc, -INFINITY);
                     auto bits = bitcast(squeeze(max(y, axis(1)), 1), u32);
                     auto ordered = where((bits >> 31) != 0, ~bits, bits | 0x80000000u);
                     auto which = cast(n + squeeze(argmax(y, axis(1)), 1), u32);
                     auto word = cast(ordered, u64) << 32 | cast(~which, u64);
                     auto row = m + arange(0, c.BM);
                     atomic_max(best.ptr() + row, word, {.mask = row < X.dim(0), .order = Order::relaxed});
                   }).grid([](const HeadCfg& c, const auto& x, const auto& w, const auto&) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r3("head_argmax", [](Env& e) {
  HeadCfg c;
  if (!e.big) c = {32, 64, 32, 2, 4};
  const int M = e.big ? 512 : 45, V = e.big ? 128256 : 300, K = e.big ? 4096 : 72;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(V) * K);
  auto best = filled<uint64_t>(e, M, [](size_t) { return 0; });
  Job j;
  j.gflop = 2e-9 * M * double(V) * K;
  j.inTurn = true;
  j.add(head_argmax, c, x.view(M, K), w.view(V, K), best.view(M));
  j.check = [=] {
    const auto got = best.now();
    const auto y = product(M, V, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * K + k]; });
    for (int m = 0; m < M; ++m) {
      const auto row = y.begin() + size_t(m) * V;
      const uint32_t which = ~uint32_t(got[m]);
      const double top = *std::max_element(row, row + V);
      if (which >= uint32_t(V) || row[which] < top - 1e-4)
        return "row " + std::to_string(m) + ": class " + std::to_string(which);
    }
    return std::string();
  };
  return j;
});

// --- Muon: X <- a X + (b G + c G G) X with G = X X^T; the symmetric products only above the diagonal, mirrored
struct MuonCfg {
  int BM = 128, BK = 64, stages = 3, warps = 8;
};
auto muon_gram = kernel("user_muon_gram", [](const MuonCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> G,
                                             Tensor<bfloat16, 2> out, F32 of, F32 plus) {
                   // out = of X X^T + plus G, symmetric [M, M]; blocks in order (0, 0), (1, 0), (1, 1), (2, 0) ..
                   num_warps(c.warps);
                   auto p = program_id(0);
                   auto i = cast(floor((sqrt(8.f * cast(p, f32) + 1.f) - 1.f) * .5f), i32);
                   i += cast((i + 1) * (i + 2) / 2 <= p, i32) - cast(i * (i + 1) / 2 > p, i32);
                   auto j = p - i * (i + 1) / 2;
                   auto m = j * c.BM, n = i * c.BM;
                   Tile acc = zeros({c.BM, c.BM}, f32);
                   for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                     acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(X.load({n, k}, {c.BM, c.BK})), acc);
                   auto y = cast(acc * of + cast(G.load({m, n}, {c.BM, c.BM}), f32) * plus, bf16);
                   out.store({m, n}, y);
                   if_(i != j, [&] { out.store({n, m}, trans(y)); });
                 }).grid([](const MuonCfg& c, const auto& x, const auto&...) {
  const int64_t n = cdiv(x.shape[0], c.BM);
  return Grid{n * (n + 1) / 2};
});
auto muon_apply = kernel("user_muon_apply", [](const MuonCfg& c, Tensor<const bfloat16, 2> P,
                                               Tensor<const bfloat16, 2> X, Tensor<bfloat16, 2> Y, F32 a) {
                    num_warps(c.warps);
                    auto m = program_id(0) * c.BM, n = program_id(1) * c.BM;
                    Tile acc = zeros({c.BM, c.BM}, f32);
                    for (auto k : range(0, P.dim(1), c.BK, {.stages = c.stages}))
                      acc = dot(P.load({m, k}, {c.BM, c.BK}), X.load({k, n}, {c.BK, c.BM}), acc);
                    Y.store({m, n}, cast(acc + cast(X.load({m, n}, {c.BM, c.BM}), f32) * a, bf16));
                  }).grid([](const MuonCfg& c, const auto& p, const auto& x, const auto&...) {
  return Grid{cdiv(p.shape[0], c.BM), cdiv(x.shape[1], c.BM)};
});
Register r4("muon", [](Env& e) {
  MuonCfg c;
  if (!e.big) c = {32, 16, 2, 4};
  const int M = e.big ? 4096 : 72, N = e.big ? 4096 : 112;
  const double most = 1.7 / std::sqrt(double(N));
  const float a = 3.4445f, b = -4.775f, cc = 2.0315f;
  auto x = random<bfloat16>(e, size_t(M) * N, -most / 2, most / 2);
  auto g = constant<bfloat16>(e, size_t(M) * M, 0), p = constant<bfloat16>(e, size_t(M) * M, 0);
  auto none = constant<bfloat16>(e, size_t(M) * M, 0);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * (double(M) * M * N * 1.5 + .5 * double(M) * M * M);
  j.add(muon_gram, c, x.view(M, N), none.view(M, M), g.view(M, M), 1.f, 0.f);
  j.add(muon_gram, c, g.view(M, M), g.view(M, M), p.view(M, M), cc, b);
  j.add(muon_apply, c, p.view(M, M), x.view(M, N), y.view(M, N), a);
  j.check = [=] {
    auto row = matrix(x, N);
    const auto G = product(M, M, N, row, [&](int k, int n) { return row(n, k); });
    auto of = [&](int m, int n) { return G[size_t(m) * M + n]; };
    const auto P = product(M, M, M, of, of, [&](double s, int m, int n) { return cc * s + b * of(m, n); });
    const auto want = product(
        M, N, M, [&](int m, int k) { return P[size_t(m) * M + k]; }, row,
        [&](double s, int m, int n) { return s + a * row(m, n); });
    return agree(y.now(), want, 1e-2, 1.5e-2);
  };
  return j;
});

// --- 4-bit weights whose rows name their group, with zero points (act-order GPTQ)
struct OrderCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto act_order = kernel("user_act_order", [](const OrderCfg& c, Tensor<const half, 2> A, Tensor<const int32_t, 2> W,
                                             Ptr<const int32_t> group, Tensor<const half, 2> S,
                                             Tensor<const int32_t, 2> Z, Tensor<half, 2> C) {
                   // A [M, K], W [K / 8, N]: eight rows a word, group [K], S [G, N], Z [G, N / 8]: eight columns a
                   // word, C [M, N]
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   auto kk = arange(0, c.BK), nn = n + arange(0, c.BN);
                   auto shift = reshape(arange(0, 8) * 4, {1, 8, 1});
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                     auto word = W.load({k / 8, n}, {c.BK / 8, c.BN});
                     auto digit = (expand_dims(word, 1) >> shift) & 15;
                     auto q = reshape(digit, {c.BK, c.BN});
                     auto g = load(group + k + kk).col();
                     auto s = load(S.ptr() + g * S.dim(1) + nn.row(), {.mask = (nn < S.dim(1)).row()});
                     auto zw = load(Z.ptr() + g * Z.dim(1) + (nn / 8).row(), {.mask = (nn < S.dim(1)).row()});
                     auto zero = (zw >> (nn % 8 * 4).row()) & 15;
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), cast(q - zero - 1, f16) * s, acc);
                   }
                   C.store({m, n}, cast(acc, f16));
                 }).grid([](const OrderCfg& c, const auto& a, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
Register r5("act_order", [](Env& e) {
  OrderCfg c;
  if (!e.big) c = {32, 64, 32, 2, 4};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int M = e.big ? 64 : 21, N = e.big ? 8192 : 88, K = e.big ? 8192 : 192, G = K / (e.big ? 128 : 32);
  auto word = [&] { return int32_t(uint32_t(e.uniform() * 65536) * 65536u + uint32_t(e.uniform() * 65536)); };
  auto a = random<half>(e, size_t(M) * K, -.3, .3), s = random<half>(e, size_t(G) * N, .01, .1);
  auto w = drawn<int32_t>(e, size_t(K / 8) * N, word), z = drawn<int32_t>(e, size_t(G) * N / 8, word);
  auto g = filled<int32_t>(e, K, [&](size_t k) { return int32_t(k * 7 % K / (K / G)); });
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.mbytes = 1e-6 * (.5 * N * K);
  j.add(act_order, c, a.view(M, K), w.view(K / 8, N), g.p, s.view(G, N), z.view(G, N / 8), y.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int q = uint32_t(w.h[size_t(k / 8) * N + n]) >> (k % 8 * 4) & 15;
      const int zero = uint32_t(z.h[size_t(g.h[k]) * (N / 8) + n / 8]) >> (n % 8 * 4) & 15;
      return in_half((q - zero - 1) * s[size_t(g.h[k]) * N + n]);
    };
    return agree(y.now(), product(M, N, K, matrix(a, K), weight), 4e-3, 2e-3);
  };
  return j;
});

}  // namespace adapters
}  // namespace users
