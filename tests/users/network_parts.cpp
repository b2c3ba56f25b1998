// network_parts.cpp - parts of networks of several kernels: a residual block of convolutions with folded norms, experts
// there and back, chunks of a gated delta rule as three kernels, Muon's iterations with half of every product.
#include "tests/users/use.h"
namespace users {
namespace network_parts {

// --- a residual block, channels last: batch norm folded into weights on the device; 3 x 3 of steps of two, ReLU; 3 x 3 and
// the 1 x 1 shortcut of steps of two in one kernel, their sum, ReLU
struct BlockCfg {
  int BP = 128, BO = 128, BC = 64;
};
auto fold_norm = kernel("user_fold_norm", [](Ptr<const half> w, Ptr<const float> gamma, Ptr<const float> beta,
                                             Ptr<const float> mean, Ptr<const float> var, Ptr<half> folded, Ptr<float> bias,
                                             I32, I32 O) {
                   constexpr int B = 1024;
                   auto row = program_id(0);  // a tap of a channel
                   for (auto o0 : range(0, O, B)) {
                     auto o = o0 + arange(0, B);
                     auto in = o < O;
                     auto s = load(gamma + o, {.mask = in}) * rsqrt(load(var + o, {.mask = in, .other = 1}) + 1e-5f);
                     store(folded + row * O + o, cast(cast(load(w + row * O + o, {.mask = in}), f32) * s, f16), {.mask = in});
                     if_(row == 0, [&] { store(bias + o, load(beta + o, {.mask = in}) - load(mean + o, {.mask = in}) * s, {.mask = in}); });
                   }
                 }).grid([](const NoConfig&, auto, auto, auto, auto, auto, auto, auto, int rows, int) { return Grid{rows}; });
auto block_down = kernel("user_block_down", [](const BlockCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<const float> bias,
                                               Ptr<half> y, I32 pixels, I32 H, I32 W, I32 C, I32 O) {
                    auto OH = (H + 1) / 2, OW = (W + 1) / 2;
                    auto p = program_id(0) * c.BP + arange(0, c.BP), o = program_id(1) * c.BO + arange(0, c.BO);
                    auto b = p / (OH * OW), h = p / OW % OH * 2 - 1, v = p % OW * 2 - 1;
                    Tile acc = zeros({c.BP, c.BO}, f32);
                    for (auto r : range(3))
                      for (auto s : range(3)) {
                        auto in = (p < pixels) & (h + r >= 0) & (h + r < H) & (v + s >= 0) & (v + s < W);
                        auto at = ((b * H + h + r) * W + v + s) * C;
                        for (auto i : range(0, C, c.BC)) {
                          auto ch = i + arange(0, c.BC);
                          auto xs = load(x + at.col() + ch.row(), {.mask = in.col() & (ch < C).row()});
                          auto ws = load(w + ((r * 3 + s) * C + ch.col()) * O + o.row(), {.mask = (ch < C).col() & (o < O).row()});
                          acc = dot(xs, ws, acc);
                        }
                      }
                    acc = max(acc + load(bias + o, {.mask = o < O}).row(), 0.f);
                    store(y + p.col() * O + o.row(), cast(acc, f16), {.mask = (p < pixels).col() & (o < O).row()});
                  }).grid([](const BlockCfg& c, auto, auto, auto, auto, int pixels, int, int, int, int O) {
  return Grid{cdiv(pixels, c.BP), cdiv(O, c.BO)};
});
auto block_join = kernel("user_block_join", [](const BlockCfg& c, Ptr<const half> t, Ptr<const half> w, Ptr<const half> x,
                                               Ptr<const half> shortcut, Ptr<const float> bias, Ptr<const float> bias2,
                                               Ptr<half> y, I32 pixels, I32 H, I32 W, I32 C, I32 O) {
                    // t [B, OH, OW, O], x [B, H, W, C]
                    auto OH = (H + 1) / 2, OW = (W + 1) / 2;
                    auto p = program_id(0) * c.BP + arange(0, c.BP), o = program_id(1) * c.BO + arange(0, c.BO);
                    auto b = p / (OH * OW), h = p / OW % OH, v = p % OW;
                    Tile acc = zeros({c.BP, c.BO}, f32);
                    for (auto tap : range(9)) {
                      auto hh = h + tap / 3 - 1, vv = v + tap % 3 - 1;
                      auto in = (p < pixels) & (hh >= 0) & (hh < OH) & (vv >= 0) & (vv < OW);
                      auto at = ((b * OH + hh) * OW + vv) * O;
                      for (auto i : range(0, O, c.BC)) {
                        auto ch = i + arange(0, c.BC);
                        auto ts = load(t + at.col() + ch.row(), {.mask = in.col() & (ch < O).row()});
                        auto ws = load(w + (tap * O + ch.col()) * O + o.row(), {.mask = (ch < O).col() & (o < O).row()});
                        acc = dot(ts, ws, acc);
                      }
                    }
                    auto at = ((b * H + h * 2) * W + v * 2) * C;
                    for (auto i : range(0, C, c.BC)) {
                      auto ch = i + arange(0, c.BC);
                      auto xs = load(x + at.col() + ch.row(), {.mask = (p < pixels).col() & (ch < C).row()});
                      auto ws = load(shortcut + ch.col() * O + o.row(), {.mask = (ch < C).col() & (o < O).row()});
                      acc = dot(xs, ws, acc);
                    }
                    acc = max(acc + (load(bias + o, {.mask = o < O}) + load(bias2 + o, {.mask = o < O})).row(), 0.f);
                    store(y + p.col() * O + o.row(), cast(acc, f16), {.mask = (p < pixels).col() & (o < O).row()});
                  }).grid([](const BlockCfg& c, auto, auto, auto, auto, auto, auto, auto, int pixels, int, int, int, int O) {
  return Grid{cdiv(pixels, c.BP), cdiv(O, c.BO)};
});
Register r1("residual_block", [](Env& e) {
  BlockCfg c;
  if (!e.big) c = {32, 16, 16};
  c.BP = e.field("BP", c.BP), c.BO = e.field("BO", c.BO), c.BC = e.field("BC", c.BC);
  const int B = e.big ? 32 : 2, H = e.big ? 56 : 7, W = e.big ? 56 : 10, C = e.big ? 128 : 24, O = e.big ? 256 : 40;
  const int OH = (H + 1) / 2, OW = (W + 1) / 2, P = B * OH * OW;
  auto x = random<half>(e, size_t(B) * H * W * C), y = constant<half>(e, size_t(P) * O, NAN), t = constant<half>(e, y.n, NAN);
  auto w1 = random<half>(e, size_t(9) * C * O, -.1, .1), w2 = random<half>(e, size_t(9) * O * O, -.1, .1), w3 = random<half>(e, size_t(C) * O, -.1, .1);
  std::vector<Array<float>> g, be, me, va, bias;
  std::vector<Array<half>> folded;
  for (auto* w : {&w1, &w2, &w3}) {
    g.push_back(random<float>(e, O, .5, 1.5)), be.push_back(random<float>(e, O)), me.push_back(random<float>(e, O)), va.push_back(random<float>(e, O, .5, 2));
    bias.push_back(constant<float>(e, O, NAN)), folded.push_back(constant<half>(e, w->n, NAN));
  }
  Job j;
  j.gflop = 2e-9 * P * O * 9 * C;
  for (int i = 0; i < 3; ++i) {
    auto& w = *std::array{&w1, &w2, &w3}[i];
    j.add(fold_norm, {}, w.p, g[i].p, be[i].p, me[i].p, va[i].p, folded[i].p, bias[i].p, int(w.n) / O, O);
  }
  j.add(block_down, c, x.p, folded[0].p, bias[0].p, t.p, P, H, W, C, O);
  j.add(block_join, c, t.p, folded[1].p, x.p, folded[2].p, bias[1].p, bias[2].p, y.p, P, H, W, C, O);
  j.check = [=] {
    auto scale = [&](int i, int o) { return g[i][o] / std::sqrt(va[i][o] + 1e-5); };
    auto offset = [&](int i, int o) { return be[i][o] - me[i][o] * scale(i, o); };
    std::vector<double> mid(t.n), want(t.n);
    for (int pass = 0; pass < 2; ++pass)
      for (size_t n = 0; n < t.n; ++n) {
        const int o = int(n) % O, v = int(n) / O % OW, h = int(n) / O / OW % OH, b = int(n) / O / OW / OH;
        double s = 0;
        for (int k = 0; k < 9; ++k) {
          const int hh = (pass ? h : h * 2) + k / 3 - 1, vv = (pass ? v : v * 2) + k % 3 - 1;
          if (hh < 0 || vv < 0 || hh >= (pass ? OH : H) || vv >= (pass ? OW : W)) continue;
          for (int ch = 0; ch < (pass ? O : C); ++ch)
            s += pass ? mid[((size_t(b) * OH + hh) * OW + vv) * O + ch] * w2[(size_t(k) * O + ch) * O + o]
                      : x[((size_t(b) * H + hh) * W + vv) * C + ch] * w1[(size_t(k) * C + ch) * O + o];
        }
        s = s * scale(pass, o) + offset(pass, o);
        if (pass) {
          double other = 0;
          for (int ch = 0; ch < C; ++ch) other += x[((size_t(b) * H + h * 2) * W + v * 2) * C + ch] * w3[size_t(ch) * O + o];
          s += other * scale(2, o) + offset(2, o);
        }
        (pass ? want : mid)[n] = pass ? std::max(s, 0.) : in_half(std::max(s, 0.));
      }
    return agree(y.now(), want, 1e-2, 5e-3);
  };
  return j;
});

// --- experts, there and back: the two best of a token, lists by expert (padded to blocks), y = sum of gate * (x W[e]);
// back: dx by the same lists, dgate, dW
struct ExpertCfg {
  int BM = 64, BN = 128, BK = 64, E = 64;
};
auto two_best = kernel("user_two_best", [](const ExpertCfg& c, Ptr<const float> logits, Ptr<int32_t> experts, Ptr<float> gates, Ptr<int32_t> counts, I32 n) {
                  constexpr int B = 64;
                  auto t = program_id(0) * B + arange(0, B);
                  auto e = arange(0, c.E).row();
                  auto x = load(logits + t.col() * c.E + e, {.mask = (t < n).col(), .other = 0});
                  auto [a, first] = max_with_index(x, axis(1));
                  auto [b, second] = max_with_index(where(e == first, -INFINITY, x), axis(1));
                  auto g = 1 / (1 + exp(b - a));
                  auto in = (t < n).col();
                  store(experts + t.col() * 2, first, {.mask = in});
                  store(experts + t.col() * 2 + 1, second, {.mask = in});
                  store(gates + t.col() * 2, g, {.mask = in});
                  store(gates + t.col() * 2 + 1, 1 - g, {.mask = in});
                  atomic_add(counts + arange(0, c.E), histogram(cat(squeeze(first, 1), squeeze(second, 1), 0), c.E, {.mask = cat(t < n, t < n, 0)}));
                }).grid([](const ExpertCfg&, auto, auto, auto, auto, int n) { return Grid{cdiv(n, 64)}; });
auto expert_starts = kernel("user_expert_starts", [](const ExpertCfg& c, Ptr<const int32_t> counts, Ptr<int32_t> starts, Ptr<int32_t> next, Ptr<int32_t> of_block, I32 blocks) {
                       auto e = arange(0, c.E);
                       auto padded = cdiv(load(counts + e), c.BM) * c.BM;
                       auto ends = cumsum(padded, axis(0));
                       store(starts + e, ends - padded);
                       store(starts + c.E, sum(padded));
                       store(next + e, ends - padded);
                       constexpr int B = 64;
                       for (auto i : range(0, blocks, B)) {  // the expert of a block: how many end at or before it
                         auto k = i + arange(0, B);
                         auto is = sum(cast(ends.row() <= (k * c.BM).col(), i32), axis(1));
                         store(of_block + k, min(squeeze(is, 1), c.E - 1), {.mask = k < blocks});
                       }
                     }).grid([](const ExpertCfg&, auto, auto, auto, auto, int) { return Grid{1}; });
auto expert_lists = kernel("user_expert_lists", [](const ExpertCfg& c, Ptr<const int32_t> experts, Ptr<int32_t> next, Ptr<int32_t> lists, I32 n) {
                      constexpr int B = 128;
                      auto i = program_id(0) * B + arange(0, B);
                      auto in = i < n;
                      auto mine = load(experts + i, {.mask = in, .other = -1});
                      auto is = mine.col() == arange(0, c.E).row();
                      auto rank = cumsum(cast(is, i32), axis(0));
                      auto many = squeeze(sum(cast(is, i32), axis(0)), 0);
                      auto from = atomic_add(next + arange(0, c.E), many, {.mask = many > 0});
                      auto to = sum(where(is, rank - 1 + from.row(), 0), axis(1));
                      store(lists + squeeze(to, 1), i, {.mask = in});
                    }).grid([](const ExpertCfg&, auto, auto, auto, int n) { return Grid{cdiv(n, 128)}; });
// y[i] = x[i / 2] W[e] for the places of the lists: rows of tokens gathered, rows of places scattered
auto expert_rows = kernel("user_expert_rows", [](const ExpertCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<const int32_t> lists,
                                                 Ptr<const int32_t> of_block, Ptr<const int32_t> starts, Ptr<bfloat16> y, I32 n, I32 N, I32 K, I32) {
                     auto block = program_id(1);
                     return_if(block * c.BM >= load(starts + c.E));
                     auto i = load(lists + block * c.BM + arange(0, c.BM));
                     auto is = i < n;
                     auto e = cast(load(of_block + block), i64);
                     auto j = program_id(0) * c.BN + arange(0, c.BN);
                     Tile acc = zeros({c.BM, c.BN}, f32);
                     for (auto k0 : range(0, K, c.BK)) {
                       auto k = k0 + arange(0, c.BK);
                       auto xs = load(x + (i / 2).col() * K + k.row(), {.mask = is.col() & (k < K).row()});
                       auto ws = load(w + (e * K * N + (k.col() * N + j.row())), {.mask = (k < K).col() & (j < N).row()});
                       acc = dot(xs, ws, acc);
                     }
                     store(y + i.col() * N + j.row(), cast(acc, bf16), {.mask = is.col() & (j < N).row()});
                   }).grid([](const ExpertCfg& c, auto, auto, auto, auto, auto, auto, int, int N, int, int blocks) { return Grid{cdiv(N, c.BN), blocks}; });
auto gates_together = kernel("user_gates_together", [](Ptr<const bfloat16> rows, Ptr<const float> gates, Ptr<bfloat16> y, I32, I32 N) {
                        constexpr int B = 1024;
                        auto t = program_id(0);
                        auto a = load(gates + t * 2), b = load(gates + t * 2 + 1);
                        for (auto j : range(0, N, B)) {
                          auto i = j + arange(0, B);
                          auto x = cast(load(rows + t * 2 * N + i, {.mask = i < N}), f32), z = cast(load(rows + (t * 2 + 1) * N + i, {.mask = i < N}), f32);
                          store(y + t * N + i, cast(a * x + b * z, bf16), {.mask = i < N});
                        }
                      }).grid([](const NoConfig&, auto, auto, auto, int n, int) { return Grid{n}; });
auto gates_back = kernel("user_gates_back", [](Ptr<const bfloat16> rows, Ptr<const bfloat16> dy, Ptr<float> dgates, I32, I32 N) {
                    constexpr int B = 1024;
                    auto t = program_id(0);
                    Tile a = zeros({B}, f32), b = zeros({B}, f32);
                    for (auto j : range(0, N, B)) {
                      auto i = j + arange(0, B);
                      auto d = cast(load(dy + t * N + i, {.mask = i < N}), f32);
                      a += d * cast(load(rows + t * 2 * N + i, {.mask = i < N}), f32);
                      b += d * cast(load(rows + (t * 2 + 1) * N + i, {.mask = i < N}), f32);
                    }
                    store(dgates + t * 2, sum(a));
                    store(dgates + t * 2 + 1, sum(b));
                  }).grid([](const NoConfig&, auto, auto, auto, int n, int) { return Grid{n}; });
// dx of a token: what its two places give, added as they come (f32)
auto expert_dx = kernel("user_expert_dx", [](const ExpertCfg& c, Ptr<const bfloat16> dy, Ptr<const bfloat16> w, Ptr<const int32_t> lists,
                                             Ptr<const int32_t> of_block, Ptr<const int32_t> starts, Ptr<const float> gates, Ptr<float> dx, I32 n, I32 N, I32 K, I32) {
                   auto block = program_id(1);
                   return_if(block * c.BM >= load(starts + c.E));
                   auto i = load(lists + block * c.BM + arange(0, c.BM));
                   auto is = i < n;
                   auto e = cast(load(of_block + block), i64);
                   auto k = program_id(0) * c.BN + arange(0, c.BN);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto j0 : range(0, N, c.BK)) {
                     auto j = j0 + arange(0, c.BK);
                     auto ds = load(dy + (i / 2).col() * N + j.row(), {.mask = is.col() & (j < N).row()});
                     auto ws = load(w + (e * K * N + (k.row() * N + j.col())), {.mask = (k < K).row() & (j < N).col()});
                     acc = dot(ds, ws, acc);
                   }
                   acc *= load(gates + i, {.mask = is}).col();
                   atomic_add(dx + (i / 2).col() * K + k.row(), acc, {.mask = is.col() & (k < K).row()});
                 }).grid([](const ExpertCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int, int K, int blocks) { return Grid{cdiv(K, c.BN), blocks}; });
// dW[e] = sum over its list of x gate dy
auto expert_dw = kernel("user_expert_dw", [](const ExpertCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> dy, Ptr<const int32_t> lists,
                                             Ptr<const int32_t> starts, Ptr<const float> gates, Ptr<bfloat16> dw, I32 n, I32 N, I32 K) {
                   auto e = program_id(2), k = program_id(1) * c.BN + arange(0, c.BN), j = program_id(0) * c.BN + arange(0, c.BN);
                   Tile acc = zeros({c.BN, c.BN}, f32);
                   for (auto at : range(load(starts + e), load(starts + e + 1), c.BM)) {
                     auto i = load(lists + at + arange(0, c.BM));
                     auto is = i < n;
                     auto xs = load(x + (i / 2).row() * K + k.col(), {.mask = is.row() & (k < K).col()});
                     auto ds = cast(load(dy + (i / 2).col() * N + j.row(), {.mask = is.col() & (j < N).row()}), f32);
                     acc = dot(xs, cast(ds * load(gates + i, {.mask = is}).col(), bf16), acc);
                   }
                   store(dw + (cast(e, i64) * K * N + (k.col() * N + j.row())), cast(acc, bf16), {.mask = (k < K).col() & (j < N).row()});
                 }).grid([](const ExpertCfg& c, auto, auto, auto, auto, auto, auto, int, int N, int K) { return Grid{cdiv(N, c.BN), cdiv(K, c.BN), c.E}; });
Register r2("experts_both_ways", [](Env& e) {
  ExpertCfg c;
  if (!e.big) c = {16, 32, 32, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int T = e.big ? 8192 : 70, N = e.big ? 1024 : 48, K = e.big ? 2048 : 40, E = c.E, rows = 2 * T, blocks = cdiv(rows, c.BM) + E;
  auto x = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * K * N, -.2, .2), dy = random<bfloat16>(e, size_t(T) * N);
  auto logits = random<float>(e, size_t(T) * E, -3, 3);
  auto experts = constant<int32_t>(e, rows, 0), counts = constant<int32_t>(e, E, 0), starts = constant<int32_t>(e, E + 1, 0), next = constant<int32_t>(e, E, 0);
  auto of_block = constant<int32_t>(e, blocks, 0), lists = constant<int32_t>(e, blocks * c.BM, 1 << 20);
  auto gates = constant<float>(e, rows, NAN), dgates = constant<float>(e, rows, NAN), dx = constant<float>(e, x.n, 0);
  auto some = constant<bfloat16>(e, size_t(rows) * N, NAN), y = constant<bfloat16>(e, size_t(T) * N, NAN), dw = constant<bfloat16>(e, w.n, NAN);
  Job j;
  j.gflop = 6e-9 * rows * N * K;
  j.inTurn = true;  // counts and lists are filled once
  restore(e, j, counts);
  j.add(two_best, c, logits.p, experts.p, gates.p, counts.p, T);
  j.add(expert_starts, c, counts.p, starts.p, next.p, of_block.p, blocks);
  j.add(expert_lists, c, experts.p, next.p, lists.p, rows);
  j.add(expert_rows, c, x.p, w.p, lists.p, of_block.p, starts.p, some.p, rows, N, K, blocks);
  j.add(gates_together, {}, some.p, gates.p, y.p, T, N);
  j.add(gates_back, {}, some.p, dy.p, dgates.p, T, N);
  j.add(expert_dx, c, dy.p, w.p, lists.p, of_block.p, starts.p, gates.p, dx.p, rows, N, K, blocks);
  j.add(expert_dw, c, x.p, dy.p, lists.p, starts.p, gates.p, dw.p, rows, N, K);
  j.check = [=] {
    std::vector<double> wy(y.n), wd(rows), wx(x.n), ww(w.n);
    for (int t = 0; t < T; ++t) {
      int best[2] = {-1, -1};
      for (int& b : best)
        for (int k = 0; k < E; ++k)
          if (k != best[0] && (b < 0 || logits[t * E + k] > logits[t * E + b])) b = k;
      const double g = 1 / (1 + std::exp(logits[t * E + best[1]] - logits[t * E + best[0]]));
      for (int s = 0; s < 2; ++s) {
        const double gate = s ? 1 - g : g;
        const size_t first = size_t(best[s]) * K * N;
        for (int n = 0; n < N; ++n) {
          double v = 0;
          for (int k = 0; k < K; ++k) {
            v += x[t * K + k] * w[first + k * N + n];
            wx[t * K + k] += gate * dy[t * N + n] * w[first + k * N + n];
            ww[first + k * N + n] += gate * dy[t * N + n] * x[t * K + k];
          }
          wy[t * N + n] += gate * v;
          wd[2 * t + s] += v * dy[t * N + n];
        }
      }
    }
    if (auto bad = agree(y.now(), wy, 2e-2, 2e-2); !bad.empty()) return "y: " + bad;
    if (auto bad = agree(dgates.now(), wd, 5e-2, 2e-2); !bad.empty()) return "gates: " + bad;
    if (auto bad = agree(dx.now(), wx, 1e-3, 1e-3); !bad.empty()) return "x: " + bad;
    auto bad = agree(dw.now(), ww, 2e-2, 2e-2);
    return bad.empty() ? bad : "w: " + bad;
  };
  return j;
});

// --- gated delta rule in chunks, as its library has it: the inverse by substitution, w and u; states; outputs
struct DeltaCfg {
  int L = 64, D = 128, BV = 64, warps = 0;
};
auto delta_wu = kernel("user_delta_wu", [](const DeltaCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> v, Ptr<const float> beta,
                                           Ptr<const float> g, Ptr<bfloat16> w, Ptr<bfloat16> u, I32 T, I32 H) {
                  // k, v, w, u [T, H, D]; beta, g [T, H], g summed within chunks
                  auto chunk = program_id(0), h = program_id(1);
                  auto t = chunk * c.L + arange(0, c.L), d = arange(0, c.D), i = arange(0, c.L);
                  auto at = (t.col() * H + h) * c.D + d.row();
                  auto in = (t < T).col();
                  auto b = load(beta + t * H + h, {.mask = t < T}).col(), gs = load(g + t * H + h, {.mask = t < T});
                  auto ks = load(k + at, {.mask = in});
                  Tile a = -where(i.col() > i.row(), dot(ks, trans(ks)) * b * exp(gs.col() - gs.row()), 0.f);
                  for (auto r : range(1, c.L)) {  // row r of the inverse from those above it
                    auto row = sum(where((i == r).col(), a, 0.f), axis(0));                   // 1 x L
                    auto more = sum(trans(row) * a, axis(0));
                    a = where((i == r).col(), row + where(i.row() < r, more, 0.f), a);
                  }
                  a += cast(i.col() == i.row(), f32);
                  auto ab = cast(a, bf16);
                  auto vb = cast(cast(load(v + at, {.mask = in}), f32) * b, bf16);
                  store(u + at, cast(dot(ab, vb), bf16), {.mask = in});
                  auto kb = cast(cast(ks, f32) * b * exp(gs).col(), bf16);
                  store(w + at, cast(dot(ab, kb), bf16), {.mask = in});
                }).grid([](const DeltaCfg& c, auto, auto, auto, auto, auto, auto, int T, int H) { return Grid{cdiv(T, c.L), H}; });
auto delta_states = kernel("user_delta_states", [](const DeltaCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> w, Ptr<const bfloat16> u,
                                                   Ptr<const float> g, Ptr<bfloat16> states, Ptr<bfloat16> fresh, I32 T, I32 H) {
                      // states [chunks, H, D, D] before every chunk; fresh [T, H, D]: u - w S
                      if (c.warps) num_warps(c.warps);
                      auto h = program_id(1), d = arange(0, c.D), e = program_id(0) * c.BV + arange(0, c.BV);
                      Tile S = zeros({c.D, c.BV}, f32);
                      for (auto chunk : range(cdiv(T, c.L))) {
                        auto t = chunk * c.L + arange(0, c.L);
                        auto in = (t < T).col();
                        store(states + ((cast(chunk, i64) * H + h) * c.D + d.col()) * c.D + e.row(), cast(S, bf16));
                        auto ws = load(w + (t.col() * H + h) * c.D + d.row(), {.mask = in});
                        auto us = load(u + (t.col() * H + h) * c.D + e.row(), {.mask = in});
                        auto x = cast(us, f32) - dot(ws, cast(S, bf16));
                        store(fresh + (t.col() * H + h) * c.D + e.row(), cast(x, bf16), {.mask = in});
                        auto last = load(g + (min(chunk * c.L + c.L, T) - 1) * H + h);
                        auto gs = load(g + t * H + h, {.mask = t < T});
                        x *= exp(last - gs).col();
                        auto ks = load(k + (t.row() * H + h) * c.D + d.col(), {.mask = (t < T).row()});
                        S = dot(ks, cast(x, bf16), S * exp(last));
                      }
                    }).grid([](const DeltaCfg& c, auto, auto, auto, auto, auto, auto, int, int H) { return Grid{cdiv(c.D, c.BV), H}; });
auto delta_outputs = kernel("user_delta_outputs", [](const DeltaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> fresh,
                                                     Ptr<const float> g, Ptr<const bfloat16> states, Ptr<bfloat16> o, I32 T, I32 H) {
                       auto e = program_id(0) * c.BV + arange(0, c.BV), chunk = program_id(1), h = program_id(2);
                       auto t = chunk * c.L + arange(0, c.L), d = arange(0, c.D), i = arange(0, c.L);
                       auto in = t < T;
                       auto qs = load(q + (t.col() * H + h) * c.D + d.row(), {.mask = in.col()});
                       auto ks = load(k + (t.row() * H + h) * c.D + d.col(), {.mask = in.row()});
                       auto S = load(states + ((cast(chunk, i64) * H + h) * c.D + d.col()) * c.D + e.row());
                       auto gs = load(g + t * H + h, {.mask = in});
                       Tile out = dot(qs, S) * exp(gs).col();
                       auto a = where(i.col() >= i.row(), dot(qs, ks) * exp(gs.col() - gs.row()), 0.f);
                       auto x = load(fresh + (t.col() * H + h) * c.D + e.row(), {.mask = in.col()});
                       out = dot(cast(a, bf16), x, out);
                       store(o + (t.col() * H + h) * c.D + e.row(), cast(out, bf16), {.mask = in.col()});
                     }).grid([](const DeltaCfg& c, auto, auto, auto, auto, auto, auto, int T, int H) { return Grid{cdiv(c.D, c.BV), cdiv(T, c.L), H}; });
Register r3("delta_parts", [](Env& e) {
  DeltaCfg c;
  if (!e.big) c = {16, 32, 16};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 75, H = e.big ? 32 : 2, D = c.D, L = c.L;
  const float most = 1 / std::sqrt(float(D));
  auto q = random<bfloat16>(e, size_t(T) * H * D, -most, most), k = random<bfloat16>(e, q.n, -most, most), v = random<bfloat16>(e, q.n);
  auto beta = random<float>(e, T * H, .2, 1), gate = random<float>(e, T * H, -.2, 0);
  auto g = filled<float>(e, T * H, [&](size_t i) {
    float s = 0;
    for (int t = int(i) / H / L * L; t <= int(i) / H; ++t) s += float(gate[t * H + i % H]);
    return s;
  });
  auto w = constant<bfloat16>(e, q.n, NAN), u = constant<bfloat16>(e, q.n, NAN), fresh = constant<bfloat16>(e, q.n, NAN), o = constant<bfloat16>(e, q.n, NAN);
  auto states = constant<bfloat16>(e, size_t(cdiv(T, L)) * H * D * D, NAN);
  Job j;
  j.gflop = 1e-9 * T * H * (4. * D * D + 4. * L * D + L * L);
  j.add(delta_wu, c, k.p, v.p, beta.p, g.p, w.p, u.p, T, H);
  j.add(delta_states, c, k.p, w.p, u.p, g.p, states.p, fresh.p, T, H);
  j.add(delta_outputs, c, q.p, k.p, fresh.p, g.p, states.p, o.p, T, H);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int h = 0; h < H; ++h) {
      std::vector<double> S(D * D);
      for (int t = 0; t < T; ++t) {
        const size_t at = (size_t(t) * H + h) * D;
        const double a = std::exp(gate[t * H + h]);
        for (double& s : S) s *= a;
        for (int f = 0; f < D; ++f) {
          double old = 0;
          for (int d = 0; d < D; ++d) old += k[at + d] * S[d * D + f];
          for (int d = 0; d < D; ++d) S[d * D + f] += k[at + d] * beta[t * H + h] * (v[at + f] - old);
          for (int d = 0; d < D; ++d) want[at + f] += q[at + d] * S[d * D + f];
        }
      }
    }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- Muon: X / |X|, then five times A = X X^T, B = b A + c A^2, X = a X + B X; A and A^2 are symmetric: tiles on and
// below the diagonal are computed and stored twice
struct MuonCfg {
  int BM = 128, BN = 128, BK = 64;
};
auto unit_size = kernel("user_unit_size", [](Ptr<const bfloat16> x, Ptr<float> total, I32 n) {
                   constexpr int B = 4096;
                   auto i = program_id(0) * B + arange(0, B);
                   auto v = cast(load(x + i, {.mask = i < n}), f32);
                   atomic_add(total, sum(v * v));
                 }).grid([](const NoConfig&, auto, auto, int n) { return Grid{cdiv(n, 4096)}; });
auto unit_scaled = kernel("user_unit_scaled", [](Ptr<const bfloat16> x, Ptr<const float> total, Ptr<bfloat16> y, I32 n) {
                     constexpr int B = 4096;
                     auto i = program_id(0) * B + arange(0, B);
                     auto v = cast(load(x + i, {.mask = i < n}), f32);
                     store(y + i, cast(v / (sqrt(load(total)) + 1e-7f), bf16), {.mask = i < n});
                   }).grid([](const NoConfig&, auto, auto, auto, int n) { return Grid{cdiv(n, 4096)}; });
// Y = alpha X X^T + beta X where X is square and symmetric, or X X^T
auto both_halves = kernel("user_both_halves", [](const MuonCfg& c, Ptr<const bfloat16> x, Ptr<bfloat16> y, I32 n, I32 K, F32 alpha, F32 beta) {
                     auto m0 = program_id(0) * c.BM, n0 = program_id(1) * c.BM;
                     return_if(n0 > m0);
                     auto m = m0 + arange(0, c.BM), j = n0 + arange(0, c.BM);
                     Tile acc = zeros({c.BM, c.BM}, f32);
                     for (auto i : range(0, K, c.BK)) {
                       auto k = i + arange(0, c.BK);
                       auto a = load(x + m.col() * K + k.row(), {.mask = (m < n).col() & (k < K).row()});
                       auto b = load(x + j.row() * K + k.col(), {.mask = (j < n).row() & (k < K).col()});
                       acc = dot(a, b, acc);
                     }
                     auto in = (m < n).col() & (j < n).row();
                     acc *= alpha;
                     if_(beta != 0.f, [&] { acc += beta * cast(load(x + m.col() * K + j.row(), {.mask = in}), f32); });
                     store(y + m.col() * n + j.row(), cast(acc, bf16), {.mask = in});
                     if_(n0 < m0, [&] { store(y + j.row() * n + m.col(), cast(acc, bf16), {.mask = in}); });
                   }).grid([](const MuonCfg& c, auto, auto, int n, int, float, float) { return Grid{cdiv(n, c.BM), cdiv(n, c.BM)}; });
auto muon_next = kernel("user_muon_next", [](const MuonCfg& c, Ptr<const bfloat16> b, Ptr<const bfloat16> x, Ptr<bfloat16> y, I32 n, I32 K, F32 a) {
                   auto m = program_id(0) * c.BM + arange(0, c.BM), j = program_id(1) * c.BN + arange(0, c.BN);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(0, n, c.BK)) {
                     auto k = i + arange(0, c.BK);
                     auto bs = load(b + m.col() * n + k.row(), {.mask = (m < n).col() & (k < n).row()});
                     auto xs = load(x + k.col() * K + j.row(), {.mask = (k < n).col() & (j < K).row()});
                     acc = dot(bs, xs, acc);
                   }
                   auto in = (m < n).col() & (j < K).row();
                   acc += a * cast(load(x + m.col() * K + j.row(), {.mask = in}), f32);
                   store(y + m.col() * K + j.row(), cast(acc, bf16), {.mask = in});
                 }).grid([](const MuonCfg& c, auto, auto, auto, int n, int K, float) { return Grid{cdiv(n, c.BM), cdiv(K, c.BN)}; });
Register r4("muon_halves", [](Env& e) {
  MuonCfg c;
  if (!e.big) c = {32, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int n = e.big ? 2048 : 70, K = e.big ? 8192 : 100, rounds = e.big ? 1 : 5;
  auto g = random<bfloat16>(e, size_t(n) * K);
  auto x = constant<bfloat16>(e, g.n, NAN), z = constant<bfloat16>(e, g.n, NAN), A = constant<bfloat16>(e, size_t(n) * n, NAN), B = constant<bfloat16>(e, A.n, NAN);
  auto total = constant<float>(e, 1, 0);
  Job j;
  j.gflop = 2e-9 * n * n * K;
  j.add(unit_size, {}, g.p, total.p, n * K);
  j.add(unit_scaled, {}, g.p, total.p, x.p, n * K);
  Array<bfloat16> from = x, to = z;
  for (int i = 0; i < rounds; ++i) {
    j.add(both_halves, c, from.p, A.p, n, K, 1.f, 0.f);
    j.add(both_halves, c, A.p, B.p, n, n, 2.0315f, -4.7750f);
    j.add(muon_next, c, B.p, from.p, to.p, n, K, 3.4445f);
    std::swap(from, to);
  }
  j.check = [=] {
    std::vector<double> X(g.n);
    double s = 0;
    for (size_t i = 0; i < g.n; ++i) s += g[i] * g[i];
    for (size_t i = 0; i < g.n; ++i) X[i] = g[i] / std::sqrt(s);
    for (int r = 0; r < rounds; ++r) {
      auto a = product(n, n, K, [&](int i, int k) { return X[i * K + k]; }, [&](int k, int i) { return X[i * K + k]; });
      auto b = product(n, n, n, [&](int i, int k) { return a[i * n + k]; }, [&](int k, int i) { return a[k * n + i]; },
                       [&](double v, int i, int k) { return 2.0315 * v - 4.7750 * a[i * n + k]; });
      X = product(n, K, n, [&](int i, int k) { return b[i * n + k]; }, [&](int k, int i) { return X[k * K + i]; },
                  [&](double v, int i, int k) { return v + 3.4445 * X[i * K + k]; });
    }
    return agree(from.now(), X, 2e-2, 5e-2);
  };
  return j;
});

}  // namespace network_parts
}  // namespace users
