// asked_attentions.cpp - attention as inference asks for it: heads of 72 numbers, queries of a group of heads in one
// tile, blocks of keys that bounds rule out, and latents of a paged cache whose parts the last program merges.
#include "tests/users/use.h"
namespace users {
namespace asked_attentions {

/// The usual state of a row that has seen some of its keys.
struct Online {
  Tile m, l, acc;
  Online(int rows, int width) : m(full({rows, 1}, -INFINITY, f32)), l(zeros({rows, 1}, f32)), acc(zeros({rows, width}, f32)) {}
  /// Scores in units of log2; rows that have seen nothing yet stay at 0.
  void add(const Tile& s, const Tile& v) {
    auto top = maximum(m, max(s, axis(1)));
    auto at = where(top == -INFINITY, 0.f, top);
    auto p = exp2(s - at), keep = exp2(m - at);
    l = l * keep + sum(p, axis(1));
    acc = dot(cast(p, v.dtype()), v, acc * keep);
    m = top;
  }
};
constexpr float kLog2e = 1.44269504f;

/// softmax(q k' scale + bias) v of one row, the score of key j being score(j) (-inf: not seen), values v(j, d).
template <class S, class V>
std::vector<double> attend(int keys, int width, S score, V v, double sink = -INFINITY) {
  double top = sink, sum = 0;
  for (int j = 0; j < keys; ++j) top = std::max(top, score(j));
  std::vector<double> out(width, 0);
  if (std::isinf(top)) return out;
  sum = std::isinf(sink) ? 0 : std::exp(sink - top);
  for (int j = 0; j < keys; ++j) {
    const double p = std::exp(score(j) - top);
    sum += p;
    if (p > 0)
      for (int d = 0; d < width; ++d) out[d] += p * v(j, d);
  }
  for (double& x : out) x /= sum;
  return out;
}

// --- pictures: heads of 72, everything sees everything, a mask for what pads the batch; [batch, tokens, heads, 72]
struct SiglipCfg {
  int BM = 128, BN = 64, D = 72, wide = 80;
};
auto siglip = kernel("user_siglip", [](const SiglipCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K, Tensor<const half, 4> V,
                                       Ptr<const int32_t> lengths, Tensor<half, 4> O, F32 scale) {
  auto m = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
  auto n = load(lengths + b);
  auto box = [&](const auto& x, const Tile& row, int rows) {
    return reshape(x.load({b, row, h, 0}, {1, rows, 1, c.wide}), {rows, c.wide});
  };
  auto q = box(Q, m, c.BM);
  Online state(c.BM, c.wide);
  for (auto j : range(0, n, c.BN)) {
    auto s = dot(q, trans(box(K, j, c.BN))) * (scale * kLog2e);
    s = where((j + arange(0, c.BN) < n).row(), s, -INFINITY);
    state.add(s, box(V, j, c.BN));
  }
  auto out = state.acc / where(state.l == 0.f, 1.f, state.l);
  O.store({b, m, h, 0}, reshape(cast(out, f16), {1, c.BM, 1, c.wide}));
}).grid([](const SiglipCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[2], q.shape[0]}; });
Register r1("siglip", [](Env& e) {
  SiglipCfg c = e.big ? SiglipCfg{} : SiglipCfg{32, 32, 24, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  const int B = e.big ? 16 : 2, T = e.big ? 1024 : 70, H = e.big ? 16 : 2, D = c.D;
  const size_t size = size_t(B) * T * H * D;
  auto q = random<half>(e, size), k = random<half>(e, size), v = random<half>(e, size), o = constant<half>(e, size, NAN);
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return e.big ? T : int(i) * 45; });  // one of them is empty
  Job j;
  j.gflop = 4e-9 * B * T * double(T) * H * D;
  j.add(siglip, c, q.view(B, T, H, D), k.view(B, T, H, D), v.view(B, T, H, D), lengths.p, o.view(B, T, H, D), .3f);
  j.check = [=] {
    std::vector<double> want;
    auto row = [=](int b, int t, int h) { return ((size_t(b) * T + t) * H + h) * D; };
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int h = 0; h < H; ++h) {
          auto one = attend(lengths.h[b], D, [&](int i) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[row(b, t, h) + d] * k[row(b, i, h) + d];
            return s * .3f;
          }, [&](int i, int d) { return v[row(b, i, h) + d]; });
          want.insert(want.end(), one.begin(), one.end());
        }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- heads that share keys lie in one tile: BM queries times G heads, a window, a cap, and a sink for every head
struct PackedCfg {
  int BM = 16, G = 8, BN = 64, D = 128;
};
auto packed_queries = kernel("user_packed_queries", [](const PackedCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                                       Tensor<const bfloat16, 3> V, Ptr<const float> sinks, Tensor<bfloat16, 3> O,
                                                       I32 window, F32 scale, F32 cap) {
  constexpr auto rows_of = [](const PackedCfg& c) { return c.BM * c.G; };
  auto first = program_id(0) * c.BM, g = program_id(1);
  auto q = reshape(Q.load({first, g * c.G, 0}, {c.BM, c.G, c.D}), {rows_of(c), c.D});
  auto r = arange(0, rows_of(c)), place = (first + r / c.G).col();
  Online state(rows_of(c), c.D);
  auto begin = max(first - window + 1, 0) / c.BN * c.BN, end = min(first + c.BM, K.dim(0));
  for (auto j : range(begin, end, c.BN)) {
    auto k = reshape(K.load({j, g, 0}, {c.BN, 1, c.D}), {c.BN, c.D}), v = reshape(V.load({j, g, 0}, {c.BN, 1, c.D}), {c.BN, c.D});
    auto s = tanh(dot(q, trans(k)) * (scale / cap)) * (cap * kLog2e);
    auto key = (j + arange(0, c.BN)).row();
    state.add(where((key <= place) & (key > place - window), s, -INFINITY), v);
  }
  auto sink = load(sinks + (g * c.G + r % c.G)).col() * kLog2e;
  auto top = max(state.m, sink);
  auto keep = exp2(state.m - top);
  auto out = state.acc * (keep / (state.l * keep + exp2(sink - top)));
  O.store({first, g * c.G, 0}, reshape(cast(out, bf16), {c.BM, c.G, c.D}));
}).grid([](const PackedCfg& c, const auto& q, const auto& k, const auto&...) { return Grid{cdiv(q.shape[0], c.BM), k.shape[1]}; });
Register r2("packed_queries", [](Env& e) {
  const PackedCfg c = e.big ? PackedCfg{e.field("BM", 16), 8, e.field("BN", 64), 64} : PackedCfg{8, 5, 16, 32};
  const int T = e.big ? 8192 : 45, KV = e.big ? 8 : 2, H = KV * c.G, D = c.D, window = e.field("window", e.big ? 1024 : 19);
  auto q = random<bfloat16>(e, size_t(T) * H * D), k = random<bfloat16>(e, size_t(T) * KV * D), v = random<bfloat16>(e, size_t(T) * KV * D);
  auto sinks = random<float>(e, H, -1, 2);
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  Job j;
  j.gflop = 4e-9 * T * double(window) * H * D;
  j.add(packed_queries, c, q.view(T, H, D), k.view(T, KV, D), v.view(T, KV, D), sinks.p, o.view(T, H, D), window, .2f, 5.f);
  j.check = [=] {
    std::vector<double> want;
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h) {
        auto one = attend(T, D, [&](int i) {
          if (i > t || i <= t - window) return -double(INFINITY);
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(t * H + h) * D + d] * k[(i * KV + h / c.G) * D + d];
          return std::tanh(s * .2f / 5) * 5;
        }, [&](int i, int d) { return v[(i * KV + h / c.G) * D + d]; }, sinks[h]);
        want.insert(want.end(), one.begin(), one.end());
      }
    return agree(o.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- blocks of keys of which a bound (centre and radius) says that no query of the tile can care are left out
struct BoundCfg {
  int BM = 128, BN = 128, D = 64;
  float far = 20;
};
auto key_bounds = kernel("user_key_bounds", [](const BoundCfg& c, Tensor<const half, 2> K, Ptr<half> centre, Ptr<float> radius, I32 N) {
  auto b = program_id(0), d = arange(0, c.D);
  auto in = (b * c.BN + arange(0, c.BN) < N).col();
  auto k = cast(K.load({b * c.BN, 0}, {c.BN, c.D}), f32);
  auto count = min(N - b * c.BN, c.BN);
  auto mean = cast(cast(sum(k, axis(0)) / cast(count, f32), f16), f32);
  auto away = where(in, k - mean, 0.f);
  store(centre + b * c.D + d, cast(squeeze(mean, 0), f16));
  store(radius + b, sqrt(max(sum(away * away, axis(1)))));
}).grid([](const BoundCfg& c, const auto&, auto, auto, int N) { return Grid{cdiv(N, c.BN)}; });
auto ruled_out = kernel("user_ruled_out", [](const BoundCfg& c, Tensor<const half, 2> Q, Tensor<const half, 2> K, Tensor<const half, 2> V,
                                             Ptr<const half> centre, Ptr<const float> radius, Tensor<half, 2> O, Ptr<int32_t> done) {
  auto m = program_id(0) * c.BM;
  auto q = Q.load({m, 0}, {c.BM, c.D});
  auto f = cast(q, f32);
  auto length = sqrt(sum(f * f, axis(1)));
  Online state(c.BM, c.D);
  Tile used = program_id(0) * 0;
  for (auto b : range(0, cdiv(K.dim(0), c.BN))) {
    auto x = cast(load(centre + (b * c.D + arange(0, c.D))), f32).row();
    auto bound = (sum(f * x, axis(1)) + length * load(radius + b)) * kLog2e;
    continue_if(all(bound < state.m - c.far));
    auto j = b * c.BN;
    auto s = dot(q, trans(K.load({j, 0}, {c.BN, c.D}))) * kLog2e;
    state.add(where((j + arange(0, c.BN) < K.dim(0)).row(), s, -INFINITY), V.load({j, 0}, {c.BN, c.D}));
    used += 1;
  }
  O.store({m, 0}, cast(state.acc / state.l, f16));
  atomic_add(done, used, {.order = Order::relaxed});
}).grid([](const BoundCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BM)}; });
Register r3("ruled_out", [](Env& e) {
  const BoundCfg c = e.big ? BoundCfg{} : BoundCfg{32, 32, 32};
  const int T = e.big ? 16384 : 200, N = e.big ? 16384 : 170, D = c.D, blocks = cdiv(N, c.BN);
  auto near = [&](int block, double spread) {  // keys and queries of a block lie around one of four directions
    return [&, block, spread](size_t i) {
      const double base = int(i) % D / (D / 4) == int(i / (size_t(block) * D)) % 4 ? 2 : 0;
      return half(float(base + spread * (2 * e.uniform() - 1)));
    };
  };
  auto q = filled<half>(e, size_t(T) * D, near(c.BM, .3)), k = filled<half>(e, size_t(N) * D, near(c.BN, .3));
  auto v = random<half>(e, size_t(N) * D), centre = constant<half>(e, size_t(blocks) * D, NAN), o = constant<half>(e, size_t(T) * D, NAN);
  auto radius = constant<float>(e, blocks, NAN);
  auto done = constant<int32_t>(e, 1, 0);
  Job j;
  j.gflop = 4e-9 * T * double(N) * D;
  j.add(key_bounds, c, k.view(N, D), centre.p, radius.p, N);
  j.add(ruled_out, c, q.view(T, D), k.view(N, D), v.view(N, D), centre.p, radius.p, o.view(T, D), done.p);
  j.check = [=] {
    std::vector<double> want;
    for (int t = 0; t < T; ++t) {
      auto one = attend(N, D, [&](int i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[t * D + d] * k[i * D + d];
        return s;
      }, [&](int i, int d) { return v[i * D + d]; });
      want.insert(want.end(), one.begin(), one.end());
    }
    const int used = done.now()[0], all = cdiv(T, c.BM) * blocks;
    if (used >= all || used < cdiv(T, c.BM)) return "blocks used: " + std::to_string(used) + " of " + std::to_string(all);
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace asked_attentions
}  // namespace users
