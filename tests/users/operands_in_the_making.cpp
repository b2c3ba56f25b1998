// operands_in_the_making.cpp - products whose left operand is made on the way, per step of K, by more than elementwise
// work: rounded to 8 bits per group of 32 (fake quantisation), normalised per step, ordered, looked up in a table,
// summed up along K.
#include "tests/users/use.h"
namespace users {
namespace operands_in_the_making {
struct Cfg {
  int BM = 128, BN = 128, BK = 64, warps = 8, kind = 0;
};
auto made = kernel("user_made_operand", [](const Cfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W,
                                           Tensor<float, 2> Y, Tensor<const float, 1> table) {
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              const int G = c.BK / 32;
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, X.dim(1), c.BK)) {
                Tile x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
                if (c.kind == 0) {
                  auto g = reshape(x, {c.BM, G, 32});
                  auto s = max(max(abs(g), axis(2)) * (1.f / 127), 1e-8f);
                  x = reshape(rint(g / s) * s, {c.BM, c.BK});
                } else if (c.kind == 1) {
                  auto s = rsqrt(sum(x * x, axis(1)) * (1.f / float(c.BK)) + 1e-6f);
                  x = x * s;
                } else if (c.kind == 2) {
                  x = cumsum(x, axis(1)) * .125f;
                } else if (c.kind == 3) {
                  auto i = cast(clamp(x * 8.f + 8.f, 0.f, 15.f), i32);
                  x = reshape(take(table.load({0}, {16}), reshape(i, {c.BM * c.BK}), 0), {c.BM, c.BK});
                } else if (c.kind == 4) {
                  x = x + flip(x, axis(1));
                }
                acc = dot(cast(x, f16), W.load({k, n}, {c.BK, c.BN}), acc);
              }
              Y.store({m, n}, acc);
            }).grid([](const Cfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
template <int kind>
Job job(Env& e) {
  Cfg c;
  if (!e.big) c = {16, 16, 64, 1};
  c.kind = kind;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 19, N = e.big ? 4096 : 21, K = e.big ? 4096 : 144;
  auto X = random<half>(e, size_t(M) * K), W = random<half>(e, size_t(K) * N);
  auto Y = constant<float>(e, size_t(M) * N, NAN), table = random<float>(e, 16);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(made, c, X.view(M, K), W.view(K, N), Y.view(M, N), table.view(16));
  j.check = [=] {
    std::vector<double> x(size_t(M) * K);
    for (int m = 0; m < M; ++m)
      for (int k0 = 0; k0 < K; k0 += c.BK) {
        auto at = [&](int k) { return k < K ? X[size_t(m) * K + k] : 0.; };
        double sum = 0;
        for (int k = k0; k < k0 + c.BK; ++k) sum += at(k) * at(k);
        double running = 0;
        for (int k = k0; k < std::min(K, k0 + c.BK); ++k) {
          double v = at(k);
          running += v;
          if (kind == 0) {
            double s = 1e-8 * 127;
            for (int l = k / 32 * 32; l < k / 32 * 32 + 32; ++l) s = std::max(s, std::abs(at(l)));
            const float sf = float(s) * (1.f / 127);
            v = std::rint(float(v) / sf) * sf;
          } else if (kind == 1)
            v /= std::sqrt(sum / c.BK + 1e-6);
          else if (kind == 2)
            v = running * .125;
          else if (kind == 3)
            v = table[int(std::clamp(v * 8 + 8, 0., 15.))];
          else
            v += at(2 * k0 + c.BK - 1 - k);
          x[size_t(m) * K + k] = in_half(v);
        }
      }
    return agree(Y.now(),
                 product(
                     M, N, K, [&](int m, int k) { return x[size_t(m) * K + k]; }, matrix(W, N)),
                 kind == 0 ? 5e-2 : 2e-2, 1e-2);
  };
  return j;
}
Register r0("group_rounded", job<0>);
Register r1("step_normed", job<1>);
Register r2("summed_operand", job<2>);
Register r3("looked_up_operand", job<3>);
Register r4("mirrored_operand", job<4>);
}  // namespace operands_in_the_making
}  // namespace users
