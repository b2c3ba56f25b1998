// gated_steps.cpp - gates that wait for each other: steps of recurrent networks with two products and more.
#include "tests/users/use.h"
namespace users {
namespace gated_steps {

// --- sLSTM: exponential gates with a stabiliser, recurrent weights in blocks per head kept across all steps
struct SlstmCfg {
  int B = 16, D = 64, warps = 4;
};
auto slstm = kernel("user_slstm", [](const SlstmCfg& c, Tensor<const bfloat16, 4> G, Tensor<const bfloat16, 4> R,
                                     Tensor<const float, 3> bias, Tensor<bfloat16, 4> Y) {
               // G [T, B, 4, H * D]: what the inputs add to gates i, f, z, o; R [H, 4, D, D]; bias [H, 4, D]; Y [T, B,
               // H, D]
               num_warps(c.warps);
               auto h = program_id(0), b = program_id(1) * c.B;
               std::array<Tile, 4> r, add;
               for (int g = 0; g < 4; ++g)
                 r[g] = R.load({h, g, 0, 0}, {c.D, c.D}), add[g] = bias.load({h, g, 0}, {1, c.D});
               for (int g = 0; g < 4; ++g) add[g] = reshape(bias.load({h, g, 0}, {c.D}), {1, c.D});
               Tile y = zeros({c.B, c.D}, bf16), cell = zeros({c.B, c.D}, f32), n = zeros({c.B, c.D}, f32),
                    m = zeros({c.B, c.D}, f32);
               for (auto t : range(0, G.dim(0))) {
                 std::array<Tile, 4> s;
                 for (int g = 0; g < 4; ++g) {
                   auto in = reshape(G.load({t, b, g, h * c.D}, {1, c.B, 1, c.D}), {c.B, c.D});
                   s[g] = dot(y, r[g], cast(in, f32)) + add[g];
                 }
                 auto logf = min(s[1], 0.f) - log1p(exp(-abs(s[1])));
                 auto next = max(logf + m, s[0]);
                 auto fi = exp(s[0] - next), ff = exp(logf + m - next);
                 cell = ff * cell + fi * tanh(s[2]);
                 n = ff * n + fi;
                 m = next;
                 y = cast(sigmoid(s[3]) * cell / max(n, 1e-6f), bf16);
                 Y.store({t, b, h, 0}, reshape(y, {1, c.B, 1, c.D}));
               }
             }).grid([](const SlstmCfg& c, const auto& g, const auto& r, const auto&...) {
  return Grid{r.shape[0], cdiv(g.shape[1], c.B)};
});
Register r1("slstm", [](Env& e) {
  SlstmCfg c;
  if (!e.big) c = {16, 32, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  int T = e.big ? 512 : 9, B = e.big ? 256 : 21, H = e.big ? 16 : 2, D = c.D;
  auto g = random<bfloat16>(e, size_t(T) * B * 4 * H * D), r = random<bfloat16>(e, size_t(H) * 4 * D * D, -.2, .2);
  auto bias = random<float>(e, H * 4 * D);
  auto y = constant<bfloat16>(e, size_t(T) * B * H * D, NAN);
  Job j;
  j.gflop = 8e-9 * T * B * H * D * D;
  j.add(slstm, c, g.view(T, B, 4, H * D), r.view(H, 4, D, D), bias.view(H, 4, D), y.view(T, B, H, D));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int h = 0; h < H; ++h)
      for (int b = 0; b < B; ++b) {
        std::vector<double> yy(D), cc(D), nn(D), mm(D), out(D);
        for (int t = 0; t < T; ++t) {
          for (int d = 0; d < D; ++d) {
            double s[4];
            for (int q = 0; q < 4; ++q) {
              s[q] = g[((size_t(t) * B + b) * 4 + q) * H * D + h * D + d] + bias[(h * 4 + q) * D + d];
              for (int k = 0; k < D; ++k) s[q] += yy[k] * r[((size_t(h) * 4 + q) * D + k) * D + d];
            }
            double logf = -std::log1p(std::exp(-s[1])), next = std::max(logf + mm[d], s[0]);
            double fi = std::exp(s[0] - next), ff = std::exp(logf + mm[d] - next);
            cc[d] = ff * cc[d] + fi * std::tanh(s[2]), nn[d] = ff * nn[d] + fi, mm[d] = next;
            out[d] = cc[d] / std::max(nn[d], 1e-6) / (1 + std::exp(-s[3]));
          }
          for (int d = 0; d < D; ++d)
            yy[d] = double(float(bfloat16(float(out[d])))), want[((size_t(t) * B + b) * H + h) * D + d] = out[d];
        }
      }
    return agree(y.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- GRU: three recurrent gates kept in registers over all steps, two products a step, the reset gate between them
struct GruCfg {
  int B = 16, H = 64, warps = 4;
};
auto gru = kernel("user_gru", [](const GruCfg& c, Tensor<const half, 3> X, Tensor<const half, 2> U,
                                 Tensor<const half, 2> Un, Ptr<const int32_t> lengths, Tensor<half, 3> Y) {
             // X [T, B, 3 H] (z, r, n), U [H, 2 H], Un [H, H], Y [T, B, H]; rows stop at their length
             num_warps(c.warps);
             auto b = program_id(0) * c.B;
             auto u = U.load({0, 0}, {c.H, 2 * c.H}), un = Un.load({0, 0}, {c.H, c.H});
             auto who = b + arange(0, c.B);
             auto len = load(lengths + who, {.mask = who < X.dim(1)});
             Tile h = zeros({c.B, c.H}, f32);
             for (auto t : range(0, max(len))) {
               auto zr = sigmoid(dot(cast(h, f16), u, cast(X.load({t, b, 0}, {c.B, 2 * c.H}), f32)));
               auto z = extract(zr, {0, 0}, {c.B, c.H}), r = extract(zr, {0, c.H}, {c.B, c.H});
               auto n = tanh(dot(cast(r * h, f16), un, cast(X.load({t, b, 2 * c.H}, {c.B, c.H}), f32)));
               h = where((t < len).col(), z * h + (1.f - z) * n, h);
               Y.store({t, b, 0}, cast(h, f16));
             }
           }).grid([](const GruCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.B)}; });
Register r2("gru", [](Env& e) {
  GruCfg c;
  if (!e.big) c = {16, 32, 4};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  int T = e.big ? 512 : 7, B = e.big ? 2048 : 21, H = c.H;
  auto x = random<half>(e, size_t(T) * B * 3 * H), u = random<half>(e, H * 2 * H, -.3, .3),
       un = random<half>(e, H * H, -.3, .3);
  auto len = integers<int32_t>(e, B, T - 3, T + 1);
  auto y = constant<half>(e, size_t(T) * B * H, 0);
  Job j;
  j.gflop = 6e-9 * T * B * H * H;
  j.add(gru, c, x.view(T, B, 3 * H), u.view(H, 2 * H), un.view(H, H), len.p, y.view(T, B, H));
  j.check = [=] {
    std::vector<double> want(y.n);
    auto got = y.now();
    for (int b = 0; b < B; ++b) {
      std::vector<double> h(H), n(H), z(H), r(H);
      for (int t = 0; t < len.at(b); ++t) {
        for (int i = 0; i < 2 * H; ++i) {
          double s = x[(size_t(t) * B + b) * 3 * H + i];
          for (int k = 0; k < H; ++k) s += in_half(h[k]) * u[k * 2 * H + i];
          (i < H ? z[i] : r[i - H]) = 1 / (1 + std::exp(-s));
        }
        for (int i = 0; i < H; ++i) {
          double s = x[(size_t(t) * B + b) * 3 * H + 2 * H + i];
          for (int k = 0; k < H; ++k) s += in_half(r[k] * h[k]) * un[k * H + i];
          n[i] = std::tanh(s);
        }
        for (int i = 0; i < H; ++i) h[i] = z[i] * h[i] + (1 - z[i]) * n[i], want[(size_t(t) * B + b) * H + i] = h[i];
      }
      for (int t = len.at(b); t < T; ++t)
        for (int i = 0; i < H; ++i) want[(size_t(t) * B + b) * H + i] = double(float(got[(size_t(t) * B + b) * H + i]));
    }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace gated_steps
}  // namespace users
