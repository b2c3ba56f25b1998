// products_in_turn.cpp - two query tiles of attention in one program, heads and their projection in one loop, complex
// products of planes, Newton-Schulz steps and a recurrent layer whose weights stay on the chip.
#include "tests/users/use.h"
namespace {
using namespace users;
constexpr float kLog2e = 1.44269504f;
struct Cfg {
  int D = 64, BM = 128, BN = 64, warps = 8, stages = 0, E = 128;
};
Cfg cfg(Env& e) {
  return {e.field("D", 64),    e.field("BM", 128),   e.field("BN", 64),
          e.field("warps", 8), e.field("stages", 0), e.field("E", 128)};
}

// e. two query tiles in one program
auto twice = kernel("user_twice", [](const Cfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                     Tensor<const half, 3> V, Tensor<half, 3> O, F32 scale) {
               num_warps(c.warps);
               auto m = program_id(0) * 2 * c.BM, h = program_id(1);
               Tile q[2], mx[2], l[2], acc[2];
               for (int i = 0; i < 2; ++i) {
                 q[i] = Q.load({h, m + i * c.BM, 0}, {c.BM, c.D});
                 mx[i] = full({c.BM, 1}, -1e30f, f32), l[i] = zeros({c.BM, 1}, f32), acc[i] = zeros({c.BM, c.D}, f32);
               }
               for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
                 auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.D});
                 for (int i = 0; i < 2; ++i) {
                   Tile s = dot(q[i], trans(k)) * (scale * kLog2e);
                   s = where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
                   Tile m2 = max(mx[i], max(s, axis(1)));
                   Tile p = exp2(s - m2), alpha = exp2(mx[i] - m2);
                   l[i] = l[i] * alpha + sum(p, axis(1));
                   acc[i] = dot(cast(p, f16), v, acc[i] * alpha);
                   mx[i] = m2;
                 }
               }
               for (int i = 0; i < 2; ++i) O.store({h, m + i * c.BM, 0}, cast(acc[i] / l[i], f16));
             }).grid([](const Cfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], 2 * c.BM), q.shape[0]};
});
std::vector<double> attention(int H, int N, int D, double scale, const Array<half>& q, const Array<half>& k,
                              const Array<half>& v) {
  std::vector<double> wo(size_t(H) * N * D);
  for (int h = 0; h < H; ++h)
    for (int i = 0; i < N; ++i) {
      const size_t r = size_t(h) * N + i;
      double sum = 0;
      std::vector<double> p(N);
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[r * D + d] * k[(size_t(h) * N + n) * D + d];
        sum += p[n] = std::exp(s * scale);
      }
      for (int n = 0; n < N; ++n)
        for (int d = 0; d < D; ++d) wo[r * D + d] += p[n] / sum * v[(size_t(h) * N + n) * D + d];
    }
  return wo;
}
Register r1("twice", [](Env& e) {
  const Cfg c = cfg(e);
  const int H = e.big ? 32 : 2, N = e.big ? 4096 : 139, D = c.D;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, size_t(H) * N * D),
       v = random<half>(e, size_t(H) * N * D), o = constant<half>(e, size_t(H) * N * D, NAN);
  Job j;
  j.gflop = 4e-9 * H * D * double(N) * N;
  j.add(twice, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), o.view(H, N, D), scale);
  j.check = [=] { return agree(o.now(), attention(H, N, D, scale, q, k, v), 5e-3, 5e-3); };
  return j;
});

// g. attention and its output projection, heads in a loop: Y = sum over heads of softmax(Q K^T) V Wo
auto projected =
    kernel("user_projected", [](const Cfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
                                Tensor<const half, 3> W, Tensor<float, 2> Y, F32 scale) {
      num_warps(c.warps);  // Q K V [H, N, D], W [H, D, E], Y [N, E]
      auto m = program_id(0) * c.BM;
      Tile y = zeros({c.BM, c.E}, f32);
      for (auto h : range(0, Q.dim(0), 1)) {
        auto q = Q.load({h, m, 0}, {c.BM, c.D});
        Tile mx = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
        for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
          Tile s = dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
          s = where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
          Tile m2 = max(mx, max(s, axis(1)));
          Tile p = exp2(s - m2), alpha = exp2(mx - m2);
          l = l * alpha + sum(p, axis(1));
          acc = dot(cast(p, f16), V.load({h, n, 0}, {c.BN, c.D}), acc * alpha);
          mx = m2;
        }
        y = dot(cast(acc / l, f16), W.load({h, 0, 0}, {c.D, c.E}), y);
      }
      Y.store({m, 0}, y);
    }).grid([](const Cfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM)}; });
Register r2("projected", [](Env& e) {
  const Cfg c = cfg(e);
  const int H = e.big ? 8 : 2, N = e.big ? 16384 : 139, D = c.D, E = c.E;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, size_t(H) * N * D),
       v = random<half>(e, size_t(H) * N * D), w = random<half>(e, size_t(H) * D * E);
  auto y = constant<float>(e, size_t(N) * E, NAN);
  Job j;
  j.gflop = 4e-9 * H * D * double(N) * N;
  j.add(projected, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), w.view(H, D, E), y.view(N, E), scale);
  j.check = [=] {
    auto a = attention(H, N, D, scale, q, k, v);
    std::vector<double> want(size_t(N) * E);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < N; ++i)
        for (int d = 0; d < D; ++d)
          for (int x = 0; x < E; ++x)
            want[size_t(i) * E + x] += a[(size_t(h) * N + i) * D + d] * w[(size_t(h) * D + d) * E + x];
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// i. complex product of planes
auto complex_mm = kernel("user_complex_planes", [](const Cfg& c, Tensor<const half, 2> Ar, Tensor<const half, 2> Ai,
                                                   Tensor<const half, 2> Br, Tensor<const half, 2> Bi,
                                                   Tensor<float, 2> Cr, Tensor<float, 2> Ci) {
                    num_warps(c.warps);
                    auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                    Tile re = zeros({c.BM, c.BN}, f32), im = re, rr = re;
                    for (auto k : range(0, Ar.dim(1), c.D, {.stages = c.stages})) {
                      auto ar = Ar.load({m, k}, {c.BM, c.D}), ai = Ai.load({m, k}, {c.BM, c.D}),
                           br = Br.load({k, n}, {c.D, c.BN}), bi = Bi.load({k, n}, {c.D, c.BN});
                      re = dot(ar, br, re);
                      rr = dot(ai, bi, rr);
                      im = dot(ar, bi, im);
                      im = dot(ai, br, im);
                    }
                    Cr.store({m, n}, re - rr);
                    Ci.store({m, n}, im);
                  }).grid([](const Cfg& c, const auto& a, const auto&, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r3("complex_planes", [](Env& e) {
  const Cfg c = cfg(e);
  const int M = e.big ? 4096 : 141, N = e.big ? 4096 : 72, K = e.big ? 2048 : 136;
  auto ar = random<half>(e, size_t(M) * K), ai = random<half>(e, size_t(M) * K), br = random<half>(e, size_t(K) * N),
       bi = random<half>(e, size_t(K) * N);
  auto cr = constant<float>(e, size_t(M) * N, NAN), ci = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 8e-9 * M * N * K;
  j.add(complex_mm, c, ar.view(M, K), ai.view(M, K), br.view(K, N), bi.view(K, N), cr.view(M, N), ci.view(M, N));
  j.check = [=]() -> std::string {
    auto p = [&](const auto& a, const auto& b) { return product(M, N, K, matrix(a, K), matrix(b, N)); };
    auto re = p(ar, br), x = p(ai, bi), im = p(ar, bi), z = p(ai, br);
    for (size_t i = 0; i < re.size(); ++i) re[i] -= x[i], im[i] += z[i];
    auto a = agree(cr.now(), re, 1e-2, 1e-3), b = agree(ci.now(), im, 1e-2, 1e-3);
    return !a.empty() ? "re " + a : !b.empty() ? "im " + b : "";
  };
  return j;
});

// k. Newton-Schulz (Muon) of matrices that fit a program: X = a X + (b A + c A A) X with A = X X^T, five times
auto schulz = kernel("user_schulz", [](const Cfg& c, Tensor<const float, 3> G, Tensor<float, 3> O) {
                num_warps(c.warps);
                auto b = program_id(0);
                Tile x = G.load({b, 0, 0}, {c.BN, c.E});
                x = x * rsqrt(sum(sum(x * x, axis(1)), axis(0)) + 1e-7f);
                for (auto i : range(0, 5, 1)) {
                  auto xh = cast(x, bf16);
                  Tile a = dot(xh, trans(xh));
                  auto ah = cast(a, bf16);
                  Tile p = -4.775f * a + 2.0315f * dot(ah, ah);
                  x = 3.4445f * x + dot(cast(p, bf16), xh);
                }
                O.store({b, 0, 0}, x);
              }).grid([](const Cfg&, const auto& g, const auto&) { return Grid{g.shape[0]}; });
Register r4("schulz", [](Env& e) {
  Cfg c = cfg(e);
  c.BN = e.field("BN", 64), c.warps = e.field("warps", 4);
  const int B = e.big ? 4096 : 3, R = c.BN, E = c.E;
  auto g = random<float>(e, size_t(B) * R * E), o = constant<float>(e, size_t(B) * R * E, NAN);
  Job j;
  j.gflop = 5e-9 * B * (4.0 * R * R * E + 2.0 * R * R * R);
  j.add(schulz, c, g.view(B, R, E), o.view(B, R, E));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> x(size_t(R) * E);
      double n = 0;
      for (size_t i = 0; i < x.size(); ++i) x[i] = g[b * x.size() + i], n += x[i] * x[i];
      for (double& v : x) v /= std::sqrt(n);
      for (int it = 0; it < 5; ++it) {
        std::vector<double> a(size_t(R) * R), p(size_t(R) * R), y(x.size());
        for (int i = 0; i < R; ++i)
          for (int j2 = 0; j2 < R; ++j2)
            for (int k = 0; k < E; ++k) a[i * R + j2] += x[size_t(i) * E + k] * x[size_t(j2) * E + k];
        for (int i = 0; i < R; ++i)
          for (int j2 = 0; j2 < R; ++j2) {
            double s = 0;
            for (int k = 0; k < R; ++k) s += a[i * R + k] * a[k * R + j2];
            p[i * R + j2] = -4.775 * a[i * R + j2] + 2.0315 * s;
          }
        for (int i = 0; i < R; ++i)
          for (int k = 0; k < E; ++k) {
            double s = 3.4445 * x[size_t(i) * E + k];
            for (int j2 = 0; j2 < R; ++j2) s += p[i * R + j2] * x[size_t(j2) * E + k];
            y[size_t(i) * E + k] = s;
          }
        x = y;
      }
      want.insert(want.end(), x.begin(), x.end());
    }
    return agree(o.now(), want, 3e-2, 5e-2);
  };
  return j;
});

// j. a recurrent layer: h = tanh(h W + x), W stays on the chip
auto rnn = kernel("user_elman", [](const Cfg& c, Tensor<const half, 3> X, Tensor<const half, 2> W, Tensor<half, 3> H) {
             num_warps(c.warps);  // X, H [T, B, D]
             auto b = program_id(0) * c.BM;
             auto w = W.load({0, 0}, {c.D, c.D});
             Tile h = zeros({c.BM, c.D}, f16);
             for (auto t : range(0, X.dim(0), 1, {.stages = c.stages})) {
               h = cast(tanh(dot(h, w) + cast(X.load({t, b, 0}, {c.BM, c.D}), f32)), f16);
               H.store({t, b, 0}, h);
             }
           }).grid([](const Cfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.BM)}; });
Register r5("elman", [](Env& e) {
  const Cfg c = cfg(e);
  const int T = e.big ? 256 : 7, B = e.big ? 16896 : 139, D = c.D;
  auto x = random<half>(e, size_t(T) * B * D), w = random<half>(e, size_t(D) * D, -.2, .2),
       h = constant<half>(e, size_t(T) * B * D, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(B) * D * D;
  j.mbytes = 4e-6 * T * double(B) * D;
  j.add(rnn, c, x.view(T, B, D), w.view(D, D), h.view(T, B, D));
  j.check = [=] {
    std::vector<double> want(size_t(T) * B * D), s(size_t(B) * D);
    for (int t = 0; t < T; ++t) {
      std::vector<double> n(s.size());
      for (int b = 0; b < B; ++b)
        for (int i = 0; i < D; ++i) {
          double v = x[(size_t(t) * B + b) * D + i];
          for (int k = 0; k < D; ++k) v += s[size_t(b) * D + k] * w[size_t(k) * D + i];
          n[size_t(b) * D + i] = in_half(std::tanh(v));
        }
      s = n;
      std::copy(s.begin(), s.end(), want.begin() + size_t(t) * B * D);
    }
    return agree(h.now(), want, 5e-3, 5e-3);
  };
  return j;
});
}  // namespace
