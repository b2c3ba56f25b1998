// beside_triton_retention.cpp - linear attention: retention with its norm and gate, gated slots in chunks (two passes
// in one loop)
#include "tests/users/use.h"
namespace users {
namespace beside_triton_retention {

constexpr float kLog2e = 1.4426950408889634f;

// --- RetNet in chunks: states of all chunks, then outputs, normed over the head and gated; [batch, tokens, heads,
// width]
struct RetHCfg {
  int C = 64, D = 128, BV = 128, stages = 2, warps = 4;
};
auto ret_states = kernel("user_ret_states",
                         [](const RetHCfg& c, Tensor<const bfloat16, 4> K, Tensor<const bfloat16, 4> V,
                            Ptr<const float> decay, Tensor<bfloat16, 4> S) {  // S [B H, chunks, D, DV]
                           if (c.warps) num_warps(c.warps);
                           auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
                           auto g = load(decay + h);  // log2
                           auto to_end = exp2(g * cast(c.C - 1 - arange(0, c.C), f32)).col();
                           Tile state = zeros({c.D, c.BV}, f32);
                           for (auto n : range(0, S.dim(1), 1, {.stages = c.stages})) {
                             S.store({b * K.dim(2) + h, n, 0, v0}, cast(state, bf16));
                             auto k = squeeze(K.load({b, n * c.C, h, 0}, {c.C, 1, c.D}), 1),
                                  v = squeeze(V.load({b, n * c.C, h, v0}, {c.C, 1, c.BV}), 1);
                             auto kd = cast(cast(k, f32) * to_end, bf16);
                             state = dot(trans(kd), v, state * exp2(g * float(c.C)));
                           }
                         })
                      .grid([](const RetHCfg& c, const auto& k, const auto& v, const auto&...) {
                        return Grid{cdiv(v.shape[3], c.BV), k.shape[2], k.shape[0]};
                      });
struct RetOCfg {
  int C = 64, D = 128, DV = 256, warps = 8;
};
auto ret_out =
    kernel("user_ret_out", [](const RetOCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                              Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> G, Ptr<const float> decay,
                              Tensor<const bfloat16, 4> S, Tensor<bfloat16, 4> Y, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0), h = program_id(1), b = program_id(2), t = n * c.C;
      auto rows = [&](const auto& X, int width) { return squeeze(X.load({b, t, h, 0}, {c.C, 1, width}), 1); };
      auto g = load(decay + h);
      auto q = rows(Q, c.D), k = rows(K, c.D), v = rows(V, c.DV);
      auto s = S.load({b * Q.dim(2) + h, n, 0, 0}, {c.D, c.DV});
      auto at = cast(arange(0, c.C), f32);
      auto apart = at.col() - at.row();
      auto w = where(apart >= 0.f, exp2(g * apart), 0.f) * scale;
      Tile o = dot(q, s) * (exp2(g * (at + 1.f)).col() * scale);
      o = dot(cast(dot(q, trans(k)) * w, bf16), v, o);
      auto r = rsqrt(sum(o * o, axis(1)) / float(c.DV) + 1e-5f);
      auto gate = cast(rows(G, c.DV), f32);
      Y.store({b, t, h, 0}, expand_dims(cast(o * r * silu(gate), bf16), 1));
    }).grid([](const RetOCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.C), q.shape[2], q.shape[0]};
    });
Register r1("retnet", [](Env& e) {
  const int B = e.big ? 4 : 2, T = e.big ? 4096 : 147, H = e.big ? 16 : 3, D = e.big ? 128 : 32, DV = e.big ? 256 : 64;
  const int C = e.field("C", e.big ? 64 : 32), chunks = (T + C - 1) / C;
  auto q = random<bfloat16>(e, size_t(B) * T * H * D), k = random<bfloat16>(e, size_t(B) * T * H * D),
       v = random<bfloat16>(e, size_t(B) * T * H * DV), g = random<bfloat16>(e, size_t(B) * T * H * DV, -2, 2);
  auto decay =
      filled<float>(e, H, [&](size_t h) { return std::log2(1 - std::exp2(-float(e.big ? 5 : 3) - float(h) / 2)); });
  auto s = constant<bfloat16>(e, size_t(B) * H * chunks * D * DV, NAN),
       y = constant<bfloat16>(e, size_t(B) * T * H * DV, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(ret_states, RetHCfg{C, D, std::min(DV, e.field("BV", 128)), e.field("stages", 2), e.field("warps", 4)},
        k.view(B, T, H, D), v.view(B, T, H, DV), decay.p, s.view(B * H, chunks, D, DV));
  j.add(ret_out, RetOCfg{C, D, DV, e.field("owarps", 8)}, q.view(B, T, H, D), k.view(B, T, H, D), v.view(B, T, H, DV),
        g.view(B, T, H, DV), decay.p, s.view(B * H, chunks, D, DV), y.view(B, T, H, DV), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * H * DV);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> state(size_t(D) * DV);
        for (int t = 0; t < T; ++t) {
          const size_t r = (size_t(b) * T + t) * H + h;
          double sum = 0;
          for (int d = 0; d < D; ++d)
            for (int x = 0; x < DV; ++x) {
              double& z = state[size_t(d) * DV + x];
              z = z * std::exp2(double(decay[h])) + k[r * D + d] * v[r * DV + x];
              want[r * DV + x] += q[r * D + d] * scale * z;
            }
          for (int x = 0; x < DV; ++x) sum += want[r * DV + x] * want[r * DV + x];
          for (int x = 0; x < DV; ++x)
            want[r * DV + x] *= g[r * DV + x] / (1 + std::exp(-g[r * DV + x])) / std::sqrt(sum / DV + 1e-5);
        }
      }
    return agree(y.now(), want, 3e-2, 2e-2);
  };
  return j;
});

// --- gated slot attention in chunks: scores of slots from one recurrence, their softmax asks the other
struct GsaCfg {
  int C = 64, D = 128, DV = 128, BV = 128, M = 64, stages = 2, warps = 8;
};
auto gsa =
    kernel("user_gsa", [](const GsaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                          Tensor<const bfloat16, 3> V, Tensor<const float, 3> G, Tensor<bfloat16, 3> O, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, h = program_id(1);
      auto low = arange(0, c.C).col() >= arange(0, c.C).row();
      Tile hk = zeros({c.D, c.M}, f32), hv = zeros({c.M, c.BV}, f32);
      for (auto t : range(0, Q.dim(1), c.C, {.stages = c.stages})) {
        auto q = Q.load({h, t, 0}, {c.C, c.D}), k = K.load({h, t, 0}, {c.C, c.D}), v = V.load({h, t, v0}, {c.C, c.BV});
        auto gate = G.load({h, t, 0}, {c.C, c.M}) * kLog2e;
        auto g = cumsum(gate, axis(0)), last = sum(gate, axis(0));  // last [1, M]
        auto s = 1.f - exp2(gate), eg = exp2(g);
        auto sg = cast(s * exp2(-g), bf16), sl = cast(s * exp2(last - g), bf16);
        auto a = cast(where(low, dot(q, trans(k)), 0.f), bf16);
        auto x = dot(a, sg, dot(q, cast(hk, bf16))) * eg * scale;
        auto p = exp(x - max(x, axis(1)));
        auto pe = cast(p / sum(p, axis(1)) * eg, bf16);
        auto b = cast(where(low, dot(pe, trans(sg)), 0.f), bf16);
        O.store({h, t, v0}, cast(dot(b, v, dot(pe, cast(hv, bf16))), bf16));
        auto keep = exp2(last);
        hk = dot(trans(k), sl, hk * keep);
        hv = dot(trans(sl), v, hv * trans(keep));
      }
    }).grid([](const GsaCfg& c, const auto& q, const auto&...) {
      return Grid{c.DV / c.BV, q.shape[0]};
    });
Register r2("gsa", [](Env& e) {
  const int H = e.big ? 128 : 3, T = e.big ? 4096 : 139, D = e.big ? 128 : 32, M = e.big ? 64 : 32;
  auto q = random<bfloat16>(e, size_t(H) * T * D), k = random<bfloat16>(e, size_t(H) * T * D),
       v = random<bfloat16>(e, size_t(H) * T * D);
  auto g = random<float>(e, size_t(H) * T * M, -.08, 0);
  auto o = constant<bfloat16>(e, size_t(H) * T * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(gsa,
        GsaCfg{e.field("C", e.big ? 64 : 32), D, D, std::min(D, e.field("BV", 128)), M, e.field("stages", 2),
               e.field("warps", 8)},
        q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), g.view(H, T, M), o.view(H, T, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h) {
      std::vector<double> hk(size_t(D) * M), hv(size_t(M) * D);
      for (int t = 0; t < T; ++t) {
        const size_t r = size_t(h) * T + t;
        std::vector<double> p(M);
        double top = -INFINITY, sum = 0;
        for (int m = 0; m < M; ++m) {
          const double f = std::exp(g[r * M + m]), s = 1 - f;
          for (int d = 0; d < D; ++d) {
            double& a = hk[size_t(d) * M + m];
            a = a * f + k[r * D + d] * s, p[m] += q[r * D + d] * scale * a;
            double& b = hv[size_t(m) * D + d];
            b = b * f + v[r * D + d] * s;
          }
          top = std::max(top, p[m]);
        }
        for (auto& x : p) sum += x = std::exp(x - top);
        for (int m = 0; m < M; ++m)
          for (int d = 0; d < D; ++d) want[r * D + d] += p[m] / sum * hv[size_t(m) * D + d];
      }
    }
    return agree(o.now(), want, 1e-2, 2e-2);
  };
  return j;
});
}  // namespace beside_triton_retention
}  // namespace users
