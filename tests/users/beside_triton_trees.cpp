// beside_triton_trees.cpp - attention over trees, block lists and windows; triangular update; an MLP block in one
// kernel
#include "tests/users/use.h"
namespace users {
namespace beside_triton_trees {

constexpr float kLog2e = 1.4426950408889634f;

// --- verification of a speculation tree: 64 draft tokens over a paged cache and over their own ancestors
struct TreeCfg {
  int BT = 16, G = 8, D = 128, PAGE = 64, stages = 0, warps = 0;
};
auto tree_verify =
    kernel("user_tree_verify", [](const TreeCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> Kc,
                                  Tensor<const bfloat16, 4> Vc, Tensor<const bfloat16, 4> Kn,
                                  Tensor<const bfloat16, 4> Vn, Tensor<const int, 2> table, Ptr<const int> length,
                                  Tensor<const uint64_t, 2> ancestors, Tensor<bfloat16, 4> O, F32 scale) {
      // Q, O [B, 64, Hq, D]; Kc, Vc [pages, PAGE, Hkv, D]; Kn, Vn [B, 64, Hkv, D]; ancestors [B, 64]
      if (c.warps) num_warps(c.warps);
      auto t = program_id(0) * c.BT, h = program_id(1), b = program_id(2);
      const int M = c.BT * c.G;
      auto q = reshape(Q.load({b, t, h * c.G, 0}, {c.BT, c.G, c.D}), {M, c.D});
      auto n = load(length + b);
      Tile m = full({M, 1}, -INFINITY, f32), l = zeros({M, 1}, f32), acc = zeros({M, c.D}, f32);
      auto step = [&](const Tile& k, const Tile& v, auto seen) {
        auto s = where(seen, dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto alpha = exp2(m - m2), p = exp2(s - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      };
      for (auto i : range(0, cdiv(n, c.PAGE), 1, {.stages = c.stages})) {
        auto page = table.load({b, i});
        auto k = Kc.load({page, 0, only(h), 0}, {c.PAGE, c.D}), v = Vc.load({page, 0, only(h), 0}, {c.PAGE, c.D});
        step(k, v, (i * c.PAGE + arange(0, c.PAGE)).row() < n);
      }
      auto bits = repeat(ancestors.load({b, t}, {c.BT}), c.G, axis(0)).col();
      auto seen = ((bits >> cast(arange(0, 64), u64).row()) & 1u) != 0u;
      step(Kn.load({b, 0, only(h), 0}, {64, c.D}), Vn.load({b, 0, only(h), 0}, {64, c.D}), seen);
      O.store({b, t, h * c.G, 0}, reshape(cast(acc / l, bf16), {c.BT, c.G, c.D}));
    }).grid([](const TreeCfg& c, const auto& q, const auto& k, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BT), k.shape[2], q.shape[0]};
    });
Register r1("tree_verify", [](Env& e) {
  const int B = e.big ? 8 : 3, Hkv = e.big ? 8 : 2, G = 8, D = e.big ? 128 : 64, PAGE = e.big ? 64 : 16, T = 64;
  const int longest = e.big ? 8192 : 83, per = (longest + PAGE - 1) / PAGE, Hq = Hkv * G, pages = B * per;
  TreeCfg c;
  c.BT = e.field("BT", c.BT), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.D = D, c.PAGE = PAGE;
  std::vector<int> lens(B), tab(size_t(B) * per);
  for (int b = 0; b < B; ++b) lens[b] = b == 0 ? longest : b == 1 && !e.big ? 0 : longest - (b * 977) % (longest / 2);
  for (int i = 0; i < pages; ++i) tab[i] = (int64_t(i) * 7919 + 13) % pages;
  auto q = random<bfloat16>(e, size_t(B) * T * Hq * D, -2, 2);
  auto kc = random<bfloat16>(e, size_t(pages) * PAGE * Hkv * D),
       vc = random<bfloat16>(e, size_t(pages) * PAGE * Hkv * D);
  auto kn = random<bfloat16>(e, size_t(B) * T * Hkv * D), vn = random<bfloat16>(e, size_t(B) * T * Hkv * D);
  auto table = repeated<int>(e, tab.size(), tab), len = repeated<int>(e, B, lens);
  std::vector<uint64_t> anc(size_t(B) * T);
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) anc[b * T + t] = (t ? anc[b * T + int(e.uniform() * t)] : 0) | uint64_t(1) << t;
  auto bits = repeated<uint64_t>(e, anc.size(), anc);
  auto o = constant<bfloat16>(e, size_t(B) * T * Hq * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  double keys = 0;
  for (int x : lens) keys += x + T;
  j.gflop = 4e-9 * keys * T * Hq * D, j.mbytes = 4e-6 * keys * Hkv * D;
  j.add(tree_verify, c, q.view(B, T, Hq, D), kc.view(pages, PAGE, Hkv, D), vc.view(pages, PAGE, Hkv, D),
        kn.view(B, T, Hkv, D), vn.view(B, T, Hkv, D), table.view(B, per), len.p, bits.view(B, T), o.view(B, T, Hq, D),
        scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * Hq * D);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int h = 0; h < Hq; ++h) {
          const size_t r = ((size_t(b) * T + t) * Hq + h) * D;
          double total = 0;
          auto key = [&](const auto& K, const auto& V, size_t x) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[r + d] * K[x + d];
            s = std::exp(s * scale), total += s;
            for (int d = 0; d < D; ++d) want[r + d] += s * V[x + d];
          };
          for (int n = 0; n < lens[b]; ++n)
            key(kc, vc, ((size_t(tab[b * per + n / PAGE]) * PAGE + n % PAGE) * Hkv + h / G) * D);
          for (int n = 0; n < T; ++n)
            if (anc[b * T + t] >> n & 1) key(kn, vn, ((size_t(b) * T + n) * Hkv + h / G) * D);
          for (int d = 0; d < D; ++d) want[r + d] /= total;
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- MoBA: a block of queries reads the blocks of keys of its list, and its own causally. Q, K and V lie packed.
struct MobaCfg {
  int BS = 128, D = 128, TOP = 16, stages = 0, warps = 0, form = 0;
};
auto moba = kernel("user_moba", [](const MobaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Ptr<const int> lists, Tensor<bfloat16, 3> O,
                                   Tensor<float, 2> LSE, F32 scale) {
              // Q, O [T, H, D]; K, V [T, Hkv, D]; lists [H, blocks, TOP], -1 behind the last; LSE [H, T]
              if (c.warps) num_warps(c.warps);
              auto b = num_programs(0) - 1 - program_id(0), h = program_id(1);
              auto kv = h * K.dim(1) / Q.dim(1);
              auto q = Q.load({b * c.BS, only(h), 0}, {c.BS, c.D});
              Tile m = full({c.BS, 1}, -INFINITY, f32), l = zeros({c.BS, 1}, f32);
              Tile acc = zeros({c.BS, c.D}, f32);
              auto step = [&](const Tile& n, bool own) {
                auto k = K.load({n * c.BS, only(kv), 0}, {c.BS, c.D});
                auto v = V.load({n * c.BS, only(kv), 0}, {c.BS, c.D});
                auto s = dot(q, trans(k)) * (scale * kLog2e);
                if (own) s = where(arange(0, c.BS).row() <= arange(0, c.BS).col(), s, -INFINITY);
                auto m2 = max(m, max(s, axis(1)));
                auto alpha = exp2(m - m2), p = exp2(s - m2);
                l = l * alpha + sum(p, axis(1));
                acc = dot(cast(p, bf16), v, acc * alpha);
                m = m2;
              };
              step(b, true);
              auto list = lists + (h * num_programs(0) + b) * c.TOP;
              if (c.form == 0) {
                for (auto i : range(0, c.TOP, 1, {.stages = c.stages})) {
                  auto n = load(list + i);
                  break_if(n < 0);
                  step(n, false);
                }
              } else {  // counted first
                auto count = sum(cast(load(list + arange(0, c.TOP)) >= 0, i32));
                for (auto i : range(0, count, 1, {.stages = c.stages})) step(load(list + i), false);
              }
              O.store({b * c.BS, only(h), 0}, cast(acc / l, bf16));
              LSE.store({h, b * c.BS}, squeeze((m + log2(l)) / kLog2e, 1));
            }).grid([](const MobaCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[0], c.BS), q.shape[1]};
});
Register r2("moba", [](Env& e) {
  const int T = e.big ? 16384 : 205, H = e.big ? 16 : 4, Hkv = e.big ? 4 : 2, D = e.big ? 128 : 64;
  MobaCfg c;
  c.BS = e.big ? 128 : 32, c.D = D, c.TOP = e.big ? 16 : 4;
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  const int blocks = (T + c.BS - 1) / c.BS, W = (H + 2 * Hkv) * D, TOP = c.TOP, BS = c.BS;
  auto qkv = random<bfloat16>(e, size_t(T) * W, -1.5, 1.5);
  std::vector<int> lists(size_t(H) * blocks * TOP, -1);
  double read = 0;
  for (int h = 0; h < H; ++h)
    for (int b = 0; b < blocks; ++b) {
      const int most = std::min(b, TOP - (h + b) % 5 % TOP);
      for (int i = 0; i < most; ++i) lists[(size_t(h) * blocks + b) * TOP + i] = int(int64_t(i) * b / most);
      read += most + 1;
    }
  auto list = repeated<int>(e, lists.size(), lists);
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  auto lse = constant<float>(e, size_t(H) * T, NAN);
  auto part = [&](int first, int heads) {
    return TensorView<const bfloat16, 3>(qkv.p + size_t(first) * D, {T, heads, D}, {W, D, 1});
  };
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * read * BS * BS * D, j.mbytes = 2e-6 * T * (W + H * D);
  j.add(moba, c, part(0, H), part(H, Hkv), part(H + Hkv, Hkv), list.p, o.view(T, H, D), lse.view(H, T), scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(T) * H * D), wl(size_t(H) * T);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        double total = 0;
        const int b = t / BS, kv = h * Hkv / H;
        const size_t r = (size_t(t) * H + h) * D;
        auto key = [&](int n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += qkv[size_t(t) * W + h * D + d] * qkv[size_t(n) * W + (H + kv) * D + d];
          s = std::exp(s * scale), total += s;
          for (int d = 0; d < D; ++d) want[r + d] += s * qkv[size_t(n) * W + (H + Hkv + kv) * D + d];
        };
        for (int n = b * BS; n <= t; ++n) key(n);
        for (int i = 0; i < TOP; ++i) {
          const int x = lists[(size_t(h) * blocks + b) * TOP + i];
          if (x < 0) break;
          for (int n = x * BS; n < (x + 1) * BS; ++n) key(n);
        }
        for (int d = 0; d < D; ++d) want[r + d] /= total;
        wl[size_t(h) * T + t] = std::log(total);
      }
    auto a = agree(o.now(), want, 1e-2, 1e-2), b = agree(lse.now(), wl, 2e-3, 1e-3);
    return !a.empty() ? a : !b.empty() ? "lse " + b : "";
  };
  return j;
});

// --- shifted windows of 7 x 7 tokens
struct SwinCfg {
  int BM = 64, D = 32, N = 49, warps = 0;
};
auto swin =
    kernel("user_swin", [](const SwinCfg& c, Tensor<const half, 5> QKV, Tensor<const half, 2> bias,
                           Tensor<const int, 2> index, Tensor<const int, 2> region, Tensor<half, 4> O, F32 scale) {
      // QKV [windows, 49, 3, H, D]; bias [169, H]; index [49, 49]; region [windows an image, 49]
      if (c.warps) num_warps(c.warps);
      auto w = program_id(0), h = program_id(1);
      auto part = [&](int i) { return QKV.load({w, 0, only(i), only(h), 0}, {c.BM, c.D}); };
      auto q = part(0), k = part(1), v = part(2);
      auto token = arange(0, c.BM);
      auto at = index.load({0, 0}, {c.BM, c.BM});
      auto b = load(bias.ptr() + (at * bias.dim(1) + h));
      auto r = region.load({w % region.dim(0), 0}, {c.BM});
      auto s = dot(q, trans(k)) * scale + cast(b, f32);
      s = s + where(r.col() != r.row(), -100.f, 0.f);
      s = where(token.row() < c.N, s, -INFINITY);
      auto p = exp2((s - max(s, axis(1))) * kLog2e);
      auto o = dot(cast(p, f16), v) / sum(p, axis(1));
      O.store({w, 0, only(h), 0}, cast(o, f16));
    }).grid([](const SwinCfg&, const auto& x, const auto&...) {
      return Grid{x.shape[0], x.shape[3]};
    });
Register r3("swin_regions", [](Env& e) {
  const int side = e.big ? 8 : 2, images = e.big ? 64 : 2, H = e.big ? 4 : 3, D = 32, N = 49;
  const int per = side * side, W = images * per;
  SwinCfg c;
  c.warps = e.field("warps", c.warps);
  auto x = random<half>(e, size_t(W) * N * 3 * H * D, -2, 2);
  auto bias = random<half>(e, 169 * H);
  std::vector<int> idx(N * N), reg(per * N);
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k) idx[i * N + k] = (i / 7 - k / 7 + 6) * 13 + i % 7 - k % 7 + 6;
  for (int w = 0; w < per; ++w)
    for (int i = 0; i < N; ++i) {
      const int y = w / side * 7 + i / 7, z = w % side * 7 + i % 7, S = side * 7;
      auto band = [&](int a) { return a < S - 7 ? 0 : a < S - 3 ? 1 : 2; };
      reg[w * N + i] = band(y) * 3 + band(z);
    }
  auto index = repeated<int>(e, idx.size(), idx), region = repeated<int>(e, reg.size(), reg);
  auto o = constant<half>(e, size_t(W) * N * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 8e-6 * W * N * H * D;
  j.add(swin, c, x.view(W, N, 3, H, D), bias.view(169, H), index.view(N, N), region.view(per, N), o.view(W, N, H, D),
        scale);
  j.check = [=] {
    std::vector<double> want(size_t(W) * N * H * D);
    for (int w = 0; w < W; ++w)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < N; ++i) {
          double total = 0;
          const size_t r = ((size_t(w) * N + i) * H + h) * D;
          auto at = [&](int token, int which) { return (((size_t(w) * N + token) * 3 + which) * H + h) * D; };
          for (int k = 0; k < N; ++k) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += x[at(i, 0) + d] * x[at(k, 1) + d];
            s = s * scale + bias[idx[i * N + k] * H + h] - (reg[w % per * N + i] != reg[w % per * N + k] ? 100 : 0);
            s = std::exp(s), total += s;
            for (int d = 0; d < D; ++d) want[r + d] += s * x[at(k, 2) + d];
          }
          for (int d = 0; d < D; ++d) want[r + d] /= total;
        }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
});

// --- triangular multiplicative update: out[i, j, c] = sigmoid(g[i, j, c]) * sum_k a[i, k, c] b[j, k, c]
struct TriCfg {
  int BM = 32, BN = 32, BK = 32, BC = 16, stages = 0, warps = 0;
};
auto triangle_mult =
    kernel("user_triangle_mult", [](const TriCfg& c, Tensor<const bfloat16, 3> A, Tensor<const bfloat16, 3> B,
                                    Tensor<const bfloat16, 3> G, Tensor<bfloat16, 3> O) {
      if (c.warps) num_warps(c.warps);
      auto x = program_id(0) * c.BC, n = program_id(1) * c.BN, m = program_id(2) * c.BM;
      Tile acc = zeros({c.BC, c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto a = permute(A.load({m, k, x}, {c.BM, c.BK, c.BC}), {2, 0, 1});
        auto b = permute(B.load({n, k, x}, {c.BN, c.BK, c.BC}), {2, 1, 0});
        acc = dot(a, b, acc);
      }
      auto g = cast(G.load({m, n, x}, {c.BM, c.BN, c.BC}), f32);
      O.store({m, n, x}, cast(permute(acc, {1, 2, 0}) * sigmoid(g), bf16));
    }).grid([](const TriCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[2], c.BC), cdiv(b.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
    });
Register r4("triangle_mult", [](Env& e) {
  const int N = e.big ? 512 : 45, C = e.big ? 128 : 24;
  TriCfg c;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.BC = e.field("BC", c.BC);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const size_t all = size_t(N) * N * C;
  auto a = random<bfloat16>(e, all), b = random<bfloat16>(e, all), g = random<bfloat16>(e, all, -3, 3);
  auto o = constant<bfloat16>(e, all, NAN);
  Job j;
  j.gflop = 2e-9 * N * double(all), j.mbytes = 8e-6 * all;
  j.add(triangle_mult, c, a.view(N, N, C), b.view(N, N, C), g.view(N, N, C), o.view(N, N, C));
  j.check = [=] {
    std::vector<double> want(all);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k)
        for (int x = 0; x < N; ++x)
          for (int z = 0; z < C; ++z)
            want[(size_t(i) * N + x) * C + z] += a[(size_t(i) * N + k) * C + z] * b[(size_t(x) * N + k) * C + z];
    for (size_t i = 0; i < all; ++i) want[i] /= 1 + std::exp(-g[i]);
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- x + down(silu(gate(norm(x))) * up(norm(x))), weights as nn.Linear keeps them
struct MlpCfg {
  int BM = 64, BI = 64, H = 256, stages = 0, warps = 0;
};
auto mlp_block = kernel("user_mlp_block", [](const MlpCfg& c, Tensor<const bfloat16, 2> X, Ptr<const bfloat16> gamma,
                                             Tensor<const bfloat16, 2> Wg, Tensor<const bfloat16, 2> Wu,
                                             Tensor<const bfloat16, 2> Wd, Tensor<bfloat16, 2> Y, F32 eps) {
                   // X, Y [T, H]; Wg, Wu [I, H]; Wd [H, I]
                   if (c.warps) num_warps(c.warps);
                   auto m = program_id(0) * c.BM;
                   auto x = cast(X.load({m, 0}, {c.BM, c.H}), f32);
                   auto r = rsqrt(sum(x * x, axis(1)) / float(c.H) + eps);
                   auto h = cast(x * r * cast(load(gamma + arange(0, c.H)), f32).row(), bf16);
                   Tile acc = zeros({c.BM, c.H}, f32);
                   for (auto i : range(0, Wg.dim(0), c.BI, {.stages = c.stages})) {
                     auto g = dot(h, trans(Wg.load({i, 0}, {c.BI, c.H})));
                     auto u = dot(h, trans(Wu.load({i, 0}, {c.BI, c.H})));
                     acc = dot(cast(silu(g) * u, bf16), trans(Wd.load({0, i}, {c.H, c.BI})), acc);
                   }
                   Y.store({m, 0}, cast(acc + cast(X.load({m, 0}, {c.BM, c.H}), f32), bf16));
                 }).grid([](const MlpCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r5("mlp_block", [](Env& e) {
  const int T = e.big ? 65536 : 77, H = e.big ? 256 : 64, I = e.big ? 1024 : 160;
  MlpCfg c;
  c.BM = e.field("BM", e.big ? c.BM : 32), c.BI = e.field("BI", c.BI), c.H = H;
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  auto x = random<bfloat16>(e, size_t(T) * H, -2, 2), gamma = random<bfloat16>(e, H, .5, 1.5);
  auto wg = random<bfloat16>(e, size_t(I) * H, -.2, .2), wu = random<bfloat16>(e, size_t(I) * H, -.2, .2),
       wd = random<bfloat16>(e, size_t(I) * H, -.1, .1);
  auto y = constant<bfloat16>(e, size_t(T) * H, NAN);
  Job j;
  j.gflop = 6e-9 * T * H * I, j.mbytes = 4e-6 * T * H;
  j.add(mlp_block, c, x.view(T, H), gamma.p, wg.view(I, H), wu.view(I, H), wd.view(H, I), y.view(T, H), 1e-6f);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H);
    for (int t = 0; t < T; ++t) {
      std::vector<double> h(H), z(I);
      double ss = 0;
      for (int k = 0; k < H; ++k) ss += x[t * H + k] * x[t * H + k];
      for (int k = 0; k < H; ++k) h[k] = x[t * H + k] / std::sqrt(ss / H + 1e-6) * gamma[k];
      for (int i = 0; i < I; ++i) {
        double g = 0, u = 0;
        for (int k = 0; k < H; ++k) g += h[k] * wg[i * H + k], u += h[k] * wu[i * H + k];
        z[i] = g / (1 + std::exp(-g)) * u;
      }
      for (int k = 0; k < H; ++k) {
        double s = x[t * H + k];
        for (int i = 0; i < I; ++i) s += z[i] * wd[k * I + i];
        want[t * H + k] = s;
      }
    }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});
}  // namespace beside_triton_trees
}  // namespace users
