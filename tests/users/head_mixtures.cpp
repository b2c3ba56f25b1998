// head_mixtures.cpp - heads that look at what other heads see: scores of four heads mixed before and behind the softmax
// (talking heads), as an array of tiles.
#include <array>

#include "tests/users/use.h"
namespace users {
namespace head_mixtures {

struct Talk {
  int BM = 64, BN = 32, D = 64, warps = 0;
  static constexpr int H = 4;
};
using FourTiles = std::array<Tile, Talk::H>;
// What each head sees of all of them: sum over h of mix[g][h] x[h].
FourTiles mixed(const FourTiles& x, const Ptr<const float>& mix) {
  FourTiles y;
  for (int g = 0; g < Talk::H; ++g) {
    y[g] = load(mix + (g * Talk::H)) * x[0];
    for (int h = 1; h < Talk::H; ++h) y[g] += load(mix + (g * Talk::H + h)) * x[h];
  }
  return y;
}
// Two passes over the keys: the sums of all heads have to be known before their probabilities can be mixed.
auto talking_heads =
    kernel("user_talking_heads", [](const Talk& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                    Tensor<const bfloat16, 4> V, Ptr<const float> before, Ptr<const float> behind,
                                    Tensor<bfloat16, 4> O, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, b = program_id(1);
      Tile n_keys = K.dim(2);
      FourTiles q, top, total, acc;
      for (int h = 0; h < c.H; ++h) {
        q[h] = Q.load({b, h, m, 0}, {c.BM, c.D});
        top[h] = full({c.BM, 1}, -INFINITY, f32), total[h] = zeros({c.BM, 1}, f32), acc[h] = zeros({c.BM, c.D}, f32);
      }
      auto scores = [&](const Tile& n) {
        FourTiles s;
        for (int h = 0; h < c.H; ++h) s[h] = dot(q[h], trans(K.load({b, h, n, 0}, {c.BN, c.D}))) * scale;
        s = mixed(s, before);
        for (Tile& x : s) x = where((n + arange(0, c.BN)).row() < n_keys, x, -INFINITY);
        return s;
      };
      for (auto n : range(0, n_keys, c.BN)) {
        FourTiles s = scores(n);
        for (int h = 0; h < c.H; ++h) {
          Tile now = max(top[h], max(s[h], axis(1)));
          total[h] = total[h] * exp(top[h] - now) + sum(exp(s[h] - now), axis(1));
          top[h] = now;
        }
      }
      for (auto n : range(0, n_keys, c.BN)) {
        FourTiles p = scores(n);
        for (int h = 0; h < c.H; ++h) p[h] = exp(p[h] - top[h]) / total[h];
        p = mixed(p, behind);
        for (int h = 0; h < c.H; ++h) acc[h] = dot(cast(p[h], bf16), V.load({b, h, n, 0}, {c.BN, c.D}), acc[h]);
      }
      for (int h = 0; h < c.H; ++h) O.store({b, h, m, 0}, cast(acc[h], bf16));
    }).grid([](const Talk& c, const auto& q, const auto&, const auto&, const float*, const float*, const auto&, float) {
      return Grid{cdiv(q.shape[2], c.BM), q.shape[0]};
    });
Register q1("talking_heads", [](Env& e) {
  const int B = e.big ? 32 : 2, T = e.big ? 2048 : 75, N = e.big ? 2048 : 45, H = 4, D = 64;
  auto q = random<bfloat16>(e, size_t(B) * H * T * D, -2, 2), k = random<bfloat16>(e, size_t(B) * H * N * D, -2, 2),
       v = random<bfloat16>(e, size_t(B) * H * N * D);
  auto before = random<float>(e, H * H), behind = random<float>(e, H * H);
  auto o = constant<bfloat16>(e, size_t(B) * H * T * D, 9);
  Job j;
  j.add(talking_heads, Talk{.BM = e.field("BM", 32), .BN = e.field("BN", 32), .warps = e.field("warps", 0)},
        q.view(B, H, T, D), k.view(B, H, N, D), v.view(B, H, N, D), before.p, behind.p, o.view(B, H, T, D), 0.125f);
  j.gflop = 6e-9 * B * H * T * double(N) * D;
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * T * D);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t) {
        std::vector<double> s(H * N), p(H * N);
        for (int h = 0; h < H; ++h)
          for (int n = 0; n < N; ++n)
            for (int d = 0; d < D; ++d)
              s[h * N + n] +=
                  0.125 * q[((size_t(b) * H + h) * T + t) * D + d] * k[((size_t(b) * H + h) * N + n) * D + d];
        for (int g = 0; g < H; ++g) {
          double sum = 0;
          for (int n = 0; n < N; ++n) {
            double x = 0;
            for (int h = 0; h < H; ++h) x += before[g * H + h] * s[h * N + n];
            sum += p[g * N + n] = std::exp(x);
          }
          for (int n = 0; n < N; ++n) p[g * N + n] /= sum;
        }
        for (int g = 0; g < H; ++g)
          for (int n = 0; n < N; ++n) {
            double x = 0;
            for (int h = 0; h < H; ++h) x += behind[g * H + h] * p[h * N + n];
            for (int d = 0; d < D; ++d)
              want[((size_t(b) * H + g) * T + t) * D + d] += x * v[((size_t(b) * H + g) * N + n) * D + d];
          }
      }
    return agree(o.now(), want, 8e-3, 8e-3);
  };
  return j;
});

}  // namespace head_mixtures
}  // namespace users
