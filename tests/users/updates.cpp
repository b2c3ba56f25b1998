// updates.cpp - what training adds to a step: weights rounded at random, gradients of group norms and of gates, both
// orders of a matrix in 8 bits from one read, gradients of an embedding from a sorted list.
#include "tests/users/use.h"
namespace users {
namespace updates {

// --- Adam on weights of 16 bits without a master copy: rounded up or down at random, so that small steps count
struct RoundCfg {
  int N = 1024, warps = 4;
};
struct AdamStep {
  float rate = 1e-2f, b1 = .9f, b2 = .95f, eps = 1e-8f, decay = .1f;
};
auto adam_random =
    kernel("user_adam_random", [](const RoundCfg& c, Tensor<bfloat16, 1> P, Tensor<const bfloat16, 1> G,
                                  Tensor<float, 1> M, Tensor<float, 1> V, F32 rate, F32 b1, F32 b2, F32 eps, F32 decay,
                                  F32 fix1, F32 fix2, U64 seed) {
      num_warps(c.warps);
      auto at = program_id(0) * c.N;
      auto g = cast(G.load({at}, {c.N}), f32), p = cast(P.load({at}, {c.N}), f32);
      auto m = M.load({at}, {c.N}) * b1 + g * (1.f - b1), v = V.load({at}, {c.N}) * b2 + g * g * (1.f - b2);
      p -= rate * (m * fix1 / (sqrt(v * fix2) + eps) + decay * p);
      // a word per pair of weights, half of it each
      auto pair = randint(seed, program_id(0) * (c.N / 2) + arange(0, c.N / 2));
      auto noise = reshape(join(pair & 0xffffu, pair >> 16), {c.N});
      auto rounded = cast((bitcast(p, u32) + noise) >> 16, u16);
      P.store({at}, bitcast(rounded, bf16));
      M.store({at}, m), V.store({at}, v);
    }).grid([](const RoundCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[0], c.N)}; });
Register r1("adam_random", [](Env& e) {
  RoundCfg c;
  if (!e.big) c = {256, 2};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 26 : 3001;
  auto p = random<bfloat16>(e, n), g = random<bfloat16>(e, n);
  auto m = random<float>(e, n), v = random<float>(e, n, 0, 1);
  const AdamStep s;
  const float fix1 = 1 / (1 - s.b1 * s.b1), fix2 = 1 / (1 - s.b2 * s.b2);
  Job j;
  j.mbytes = 22e-6 * n;
  j.inTurn = true;
  j.add(adam_random, c, p.view(n), g.view(n), m.view(n), v.view(n), s.rate, s.b1, s.b2, s.eps, s.decay, fix1, fix2,
        uint64_t(17));
  j.check = [=] {
    std::vector<double> M(n), V(n);
    const auto got = p.now();
    double bias = 0;
    for (int i = 0; i < n; ++i) {
      M[i] = m[i] * s.b1 + g[i] * (1 - s.b1), V[i] = v[i] * s.b2 + g[i] * g[i] * (1 - s.b2);
      const double want = p[i] - s.rate * (M[i] * fix1 / (std::sqrt(V[i] * fix2) + s.eps) + s.decay * p[i]);
      const double ulp = std::ldexp(1., std::ilogb(want) - 7), off = (double(float(got[i])) - want) / ulp;
      if (!(std::abs(off) < 1.01)) return "weight " + std::to_string(i) + " is off by " + std::to_string(off) + " ulp";
      bias += off / n;
    }
    if (!(std::abs(bias) < .05)) return "rounding leans by " + std::to_string(bias) + " ulp";
    if (std::string wrong = agree(m.now(), M, 1e-5, 1e-5); !wrong.empty()) return wrong;
    return agree(v.now(), V, 1e-5, 1e-5);
  };
  return j;
});

// --- group norm backward, channels last: one program per image and group
struct GroupBwdCfg {
  int rows = 64, C = 16, warps = 4;
};
auto group_bwd =
    kernel("user_group_norm_bwd", [](const GroupBwdCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> dY,
                                     Tensor<const float, 1> W, Tensor<const float, 2> mean, Tensor<const float, 2> rstd,
                                     Tensor<half, 3> dX, Tensor<float, 1> dW, Tensor<float, 1> dB) {
      // X, dY, dX [N, HW, C], W, dW, dB [C], mean, rstd [N, G]
      num_warps(c.warps);
      auto g = program_id(0), n = program_id(1), channel = g * c.C;
      auto mu = mean.load({n, g}), r = rstd.load({n, g});
      auto w = W.load({channel}, {c.C}).row();
      auto at = [&](auto& T, const Tile& i) {
        return cast(squeeze(T.load({n, i, channel}, {1, c.rows, c.C}), 0), f32);
      };
      Tile dw = zeros({1, c.C}, f32), db = zeros({1, c.C}, f32);
      for (auto i : range(0, X.dim(1), c.rows)) {
        auto dy = at(dY, i);
        dw += sum(dy * ((at(X, i) - mu) * r), axis(0)), db += sum(dy, axis(0));
      }
      dW.atomic_add({channel}, squeeze(dw, 0));
      dB.atomic_add({channel}, squeeze(db, 0));
      auto count = cast(X.dim(1) * c.C, f32);
      auto a = sum(db * w) / count, b = sum(dw * w) / count;
      for (auto i : range(0, X.dim(1), c.rows)) {
        auto dx = (at(dY, i) * w - a - (at(X, i) - mu) * r * b) * r;
        dX.store({n, i, channel}, expand_dims(cast(dx, f16), 0));
      }
    }).grid([](const GroupBwdCfg& c, const auto& x, const auto&...) {
      return Grid{x.shape[2] / c.C, x.shape[0]};
    });
Register r2("group_norm_bwd", [](Env& e) {
  GroupBwdCfg c;
  if (!e.big) c = {16, 6, 2};
  c.rows = e.field("rows", c.rows), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 32 : 3, S = e.big ? 64 * 64 : 45, G = e.big ? 32 : 3, C = G * c.C;
  auto x = random<half>(e, size_t(N) * S * C), dy = random<half>(e, size_t(N) * S * C);
  auto w = random<float>(e, C), mean = random<float>(e, size_t(N) * G, -.1, .1),
       rstd = random<float>(e, size_t(N) * G, 1, 2);
  auto dx = constant<half>(e, size_t(N) * S * C, NAN);
  auto dw = constant<float>(e, C, 0), db = constant<float>(e, C, 0);
  Job j;
  j.mbytes = 6e-6 * N * S * C;
  j.inTurn = true;
  j.add(group_bwd, c, x.view(N, S, C), dy.view(N, S, C), w.view(C), mean.view(N, G), rstd.view(N, G), dx.view(N, S, C),
        dw.view(C), db.view(C));
  j.check = [=] {
    std::vector<double> wx(size_t(N) * S * C), ww(C), wb(C);
    for (int n = 0; n < N; ++n)
      for (int g = 0; g < G; ++g) {
        double a = 0, b = 0;
        const double mu = mean[n * G + g], r = rstd[n * G + g], count = double(S) * c.C;
        auto each = [&](auto f) {
          for (int s = 0; s < S; ++s)
            for (int k = g * c.C; k < (g + 1) * c.C; ++k) f((size_t(n) * S + s) * C + k, k);
        };
        each([&](size_t i, int k) {
          const double norm = (x[i] - mu) * r;
          a += dy[i] * w[k] / count, b += dy[i] * w[k] * norm / count, ww[k] += dy[i] * norm, wb[k] += dy[i];
        });
        each([&](size_t i, int k) { wx[i] = (dy[i] * w[k] - a - (x[i] - mu) * r * b) * r; });
      }
    if (std::string wrong = agree(dw.now(), ww, 1e-3, 1e-4); !wrong.empty()) return "dW: " + wrong;
    if (std::string wrong = agree(db.now(), wb, 1e-3, 1e-4); !wrong.empty()) return "dB: " + wrong;
    return agree(dx.now(), wx, 2e-3, 1e-3);
  };
  return j;
});

// --- gates of experts, backward: chosen weights are a softmax over the chosen; a loss that keeps loads even adds
// f_e p_e for the share f of tokens of expert e
struct GateCfg {
  int T = 4, E = 256, K = 8, warps = 4;
};
auto gate_bwd =
    kernel("user_gate_bwd", [](const GateCfg& c, Tensor<const float, 2> logits, Tensor<const int32_t, 2> chosen,
                               Tensor<const float, 2> dweight, Tensor<const float, 1> share, Tensor<float, 2> dlogits,
                               F32 even) {
      num_warps(c.warps);
      auto t = program_id(0) * c.T;
      auto z = where(arange(0, c.E).row() < logits.dim(1), logits.load({t, 0}, {c.T, c.E}), -INFINITY);
      auto e = exp2((z - max(z, axis(1))) * 1.4426950408889634f);
      auto p = e / sum(e, axis(1));
      // both lists spread over experts
      auto id = expand_dims(chosen.load({t, 0}, {c.T, c.K}, {.pad = -1}), 2);
      auto here = id == reshape(arange(0, c.E), {1, 1, c.E});
      auto selected = squeeze(any(here, axis(1)), 1);
      auto dw = squeeze(sum(where(here, expand_dims(dweight.load({t, 0}, {c.T, c.K}), 2), 0.f), axis(1)), 1);
      auto among = where(selected, p, 0.f);
      auto w = among / sum(among, axis(1));
      auto f = share.load({0}, {c.E}).row() * even;
      auto dz = w * (dw - sum(w * dw, axis(1))) + p * (f - sum(p * f, axis(1)));
      dlogits.store({t, 0}, dz);
    }).grid([](const GateCfg& c, const auto& l, const auto&...) { return Grid{cdiv(l.shape[0], c.T)}; });
Register r3("gate_bwd", [](Env& e) {
  GateCfg c;
  if (!e.big) c = {8, 32, 4, 2};
  c.T = e.field("T", c.T), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 32768 : 45, E = e.big ? 256 : 27, K = c.K;
  auto z = random<float>(e, size_t(T) * E, -3, 3), dw = random<float>(e, size_t(T) * K), f = random<float>(e, E, 0, 1);
  auto ids =
      filled<int32_t>(e, size_t(T) * K, [&](size_t i) { return int32_t((i / K * 5 + i % K * 6 + i % K / 4) % E); });
  auto dz = constant<float>(e, size_t(T) * E, NAN);
  Job j;
  j.mbytes = 8e-6 * T * E;
  j.add(gate_bwd, c, z.view(T, E), ids.view(T, K), dw.view(T, K), f.view(E), dz.view(T, E), .01f);
  j.check = [=] {
    std::vector<double> want(size_t(T) * E);
    for (int t = 0; t < T; ++t) {
      double all = 0, some = 0, mean = 0, load = 0;
      for (int k = 0; k < E; ++k) all += std::exp(z[size_t(t) * E + k]);
      for (int k = 0; k < K; ++k) some += std::exp(z[size_t(t) * E + ids.h[t * K + k]]);
      for (int k = 0; k < K; ++k) mean += std::exp(z[size_t(t) * E + ids.h[t * K + k]]) / some * dw[t * K + k];
      for (int k = 0; k < E; ++k) load += std::exp(z[size_t(t) * E + k]) / all * f[k] * .01;
      for (int k = 0; k < E; ++k) want[size_t(t) * E + k] = std::exp(z[size_t(t) * E + k]) / all * (f[k] * .01 - load);
      for (int k = 0; k < K; ++k) {
        const size_t at = size_t(t) * E + ids.h[t * K + k];
        want[at] += std::exp(z[at]) / some * (dw[t * K + k] - mean);
      }
    }
    return agree(dz.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- both orders of a matrix in 8 bits, and the largest magnitude for the next step's scale
struct BothCfg {
  int BM = 64, BN = 128, warps = 4;
};
auto cast_both =
    kernel("user_cast_both", [](const BothCfg& c, Tensor<const bfloat16, 2> X, Tensor<const float, 1> scale,
                                Tensor<fp8_e4m3, 2> Y, Tensor<fp8_e4m3, 2> Yt, Ptr<int32_t> most) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto x = cast(X.load({m, n}, {c.BM, c.BN}), f32);
      auto y = cast(clamp(x * scale.load({0}), -448.f, 448.f), f8e4m3);
      Y.store({m, n}, y);
      Yt.store({n, m}, trans(y));
      atomic_max(most, bitcast(max(abs(x)), i32), {.order = Order::relaxed});
    }).grid([](const BothCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(x.shape[1], c.BN)};
    });
Register r4("cast_both", [](Env& e) {
  BothCfg c;
  if (!e.big) c = {16, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8192 : 53, N = e.big ? 8192 : 76;
  auto x = random<bfloat16>(e, size_t(M) * N, -3, 3);
  auto s = constant<float>(e, 1, 100);
  auto y = constant<fp8_e4m3>(e, size_t(M) * N, NAN), t = constant<fp8_e4m3>(e, size_t(M) * N, NAN);
  auto most = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 4e-6 * M * N;
  j.add(cast_both, c, x.view(M, N), s.view(1), y.view(M, N), t.view(N, M), most.p);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N), turned(want.size());
    double top = 0;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        const double v = x[size_t(m) * N + n];
        top = std::max(top, std::abs(v));
        want[size_t(m) * N + n] = turned[size_t(n) * M + m] = float(fp8_e4m3(float(v * 100)));
      }
    const int32_t bits = most.now()[0];
    if (std::bit_cast<float>(bits) != float(top)) return std::string("the largest is wrong");
    if (std::string wrong = agree(y.now(), want, 1e-6, 1e-6); !wrong.empty()) return wrong;
    return agree(t.now(), turned, 1e-6, 1e-6);
  };
  return j;
});

// --- gradient of an embedding: tokens sorted by word, one program per word that occurs
struct TableCfg {
  int C = 512, rows = 8, warps = 4;
};
auto table_grad =
    kernel("user_table_grad", [](const TableCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> word,
                                 Ptr<const int32_t> order, Tensor<const bfloat16, 2> dY, Tensor<float, 2> dW) {
      // word s occurs at tokens order[start[s]] .. order[start[s + 1]]
      num_warps(c.warps);
      auto s = program_id(0), channel = program_id(1) * c.C + arange(0, c.C);
      auto from = load(start + s), to = load(start + s + 1);
      Tile sums = zeros({c.rows, c.C}, f32);
      for (auto i : range(from, to, c.rows)) {
        auto k = i + arange(0, c.rows);
        auto token = load(order + k, {.mask = k < to});
        auto p = dY.ptr() + cast(token, i64).col() * dY.stride(0) + channel.row();
        sums += cast(load(p, {.mask = (k < to).col() & (channel < dY.dim(1)).row()}), f32);
      }
      dW.store({load(word + s), program_id(1) * c.C}, sum(sums, axis(0)));
    }).grid([](const TableCfg& c, const int32_t*, const int32_t* word, const int32_t*, const auto& dy, const auto& dw) {
      (void)word;
      return Grid{dw.shape[0], cdiv(dy.shape[1], c.C)};
    });
Register r5("table_grad", [](Env& e) {
  TableCfg c;
  if (!e.big) c = {32, 4, 1};
  c.C = e.field("C", c.C), c.rows = e.field("rows", c.rows), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 32768 : 97, words = e.big ? 8192 : 13, D = e.big ? 2048 : 45;
  std::vector<int32_t> start{0}, order;
  for (int w = 0; w < words; ++w) {
    for (int t = w * w % 7; t < T; t += words + w % 3) order.push_back((t * 31 + w) % T);
    start.push_back(int(order.size()));
  }
  auto st = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto ord = filled<int32_t>(e, order.size(), [&](size_t i) { return order[i]; });
  auto word = filled<int32_t>(e, words, [&](size_t i) { return int32_t(words - 1 - i); });
  auto dy = random<bfloat16>(e, size_t(T) * D);
  auto dw = constant<float>(e, size_t(words) * D, NAN);
  Job j;
  j.mbytes = 1e-6 * D * (2. * double(order.size()) + 4. * words);
  j.add(table_grad, c, st.p, word.p, ord.p, dy.view(T, D), dw.view(words, D));
  j.check = [=] {
    std::vector<double> want(size_t(words) * D);
    for (int w = 0; w < words; ++w)
      for (int i = start[w]; i < start[w + 1]; ++i)
        for (int d = 0; d < D; ++d) want[size_t(words - 1 - w) * D + d] += dy[size_t(order[i]) * D + d];
    return agree(dw.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace updates
}  // namespace users
