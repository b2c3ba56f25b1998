// beside_triton_chunks.cpp - linear attention by chunks: kk' and its inverse in one kernel, lightning attention 2,
// gradients of SSD.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_chunks {
constexpr float kLog2e = 1.4426950408889634f;

// --- gated delta rule: (I + strictly lower beta k k' decay)^-1 of a chunk of 64, by blocks of 16, in one kernel
struct GdnCfg {
  int D = 128, BK = 64, warps = 4, BT = 64;
};
auto gdn_solve = kernel("user_gdn_solve", [](const GdnCfg& c, Tensor<const bfloat16, 3> K, Tensor<const float, 2> G,
                                             Tensor<const float, 2> Beta, Tensor<bfloat16, 3> A) {
                   // K [T, H, D], G, Beta [T, H], A [T, H, 64]
                   num_warps(c.warps);
                   auto t = program_id(0) * 64, h = program_id(1);
                   Tile a[4][4];
                   for (int i = 0; i < 4; ++i)
                     for (int j = 0; j <= i; ++j) a[i][j] = zeros({16, 16}, f32);
                   for (int d = 0; d < c.D; d += c.BK) {
                     std::vector<Tile> k;
                     for (int i = 0; i < 4; ++i) k.push_back(squeeze(K.load({t + 16 * i, h, d}, {16, 1, c.BK}), 1));
                     for (int i = 0; i < 4; ++i)
                       for (int j = 0; j <= i; ++j) a[i][j] = dot(k[i], trans(k[j]), a[i][j]);
                   }
                   std::vector<Tile> g, b;
                   for (int i = 0; i < 4; ++i) {
                     g.push_back(squeeze(G.load({t + 16 * i, h}, {16, 1}), 1));
                     b.push_back(squeeze(Beta.load({t + 16 * i, h}, {16, 1}), 1));
                   }
                   auto o = arange(0, 16);
                   Tile x[4][4];
                   for (int i = 0; i < 4; ++i)
                     for (int j = 0; j <= i; ++j) {
                       a[i][j] = a[i][j] * b[i].col() * exp(g[i].col() - g[j].row());
                       if (i == j) {
                         a[i][i] = where(o.col() > o.row(), a[i][i], 0.f);
                         x[i][i] = -a[i][i];
                       }
                     }
                   for (auto r : range(2, 16))
                     for (int i = 0; i < 4; ++i) {
                       auto row = sum(where((o == r).col(), -a[i][i], 0.f), axis(0));  // 1 x 16
                       auto now = row + sum(trans(row) * x[i][i], axis(0));
                       x[i][i] = where((o == r).col(), now, x[i][i]);
                     }
                   for (int i = 0; i < 4; ++i) x[i][i] += where(o.col() == o.row(), 1.f, 0.f);
                   for (int i = 1; i < 4; ++i)
                     for (int j = i - 1; j >= 0; --j) {
                       Tile s = zeros({16, 16}, f32);
                       for (int m = j; m < i; ++m) s = dot(a[i][m], x[m][j], s, Prec::tf32);
                       x[i][j] = -dot(x[i][i], s, zeros({16, 16}, f32), Prec::tf32);
                     }
                   auto none = zeros({16, 1, 16}, bf16);
                   for (int i = 0; i < 4; ++i)
                     for (int j = 0; j < 4; ++j) {
                       if (j <= i)
                         A.store({t + 16 * i, h, 16 * j}, cast(expand_dims(x[i][j], 1), bf16));
                       else
                         A.store({t + 16 * i, h, 16 * j}, none);
                     }
                 }).grid([](const GdnCfg&, const auto& k, const auto&...) {
  return Grid{cdiv(k.shape[0], 64), k.shape[1]};
});
// w = A (beta e^g k), u = A (beta v)
auto gdn_wu = kernel("user_gdn_wu", [](const GdnCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                       Tensor<const float, 2> G, Tensor<const float, 2> Beta,
                                       Tensor<const bfloat16, 3> A, Tensor<bfloat16, 3> W, Tensor<bfloat16, 3> U) {
                num_warps(c.warps);
                auto t = program_id(0) * 64, h = program_id(1);
                auto a = squeeze(A.load({t, h, 0}, {64, 1, 64}), 1);
                auto b = Beta.load({t, h}, {64, 1}), g = exp(G.load({t, h}, {64, 1}));
                for (int d = 0; d < c.D; d += c.BK) {
                  auto v = squeeze(V.load({t, h, d}, {64, 1, c.BK}), 1);
                  auto u = dot(a, cast(cast(v, f32) * b, bf16));
                  U.store({t, h, d}, cast(expand_dims(u, 1), bf16));
                }
                for (int d = 0; d < c.D; d += c.BK) {
                  auto k = squeeze(K.load({t, h, d}, {64, 1, c.BK}), 1);
                  auto w = dot(a, cast(cast(k, f32) * (b * g), bf16));
                  W.store({t, h, d}, cast(expand_dims(w, 1), bf16));
                }
              }).grid([](const GdnCfg&, const auto& k, const auto&...) {
  return Grid{cdiv(k.shape[0], 64), k.shape[1]};
});
Register r1("gdn", [](Env& e) {
  GdnCfg c;
  if (!e.big) c = {32, 16, 4, 64};
  c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 151, H = e.big ? 32 : 3, D = c.D;
  const size_t n = size_t(T) * H * D;
  auto k = random<bfloat16>(e, n, -std::sqrt(3. / D), std::sqrt(3. / D)), v = random<bfloat16>(e, n);
  auto beta = random<float>(e, size_t(T) * H, 0, 1);
  auto g = filled<float>(e, size_t(T) * H, [&](size_t i) { return float(-.05 * (double(i / H % 64) + e.uniform())); });
  auto a = constant<bfloat16>(e, size_t(T) * H * 64, NAN), w = constant<bfloat16>(e, n, NAN),
       u = constant<bfloat16>(e, n, NAN);
  Job j;
  j.add(gdn_solve, c, k.view(T, H, D), g.view(T, H), beta.view(T, H), a.view(T, H, 64));
  j.add(gdn_wu, c, k.view(T, H, D), v.view(T, H, D), g.view(T, H), beta.view(T, H), a.view(T, H, 64), w.view(T, H, D),
        u.view(T, H, D));
  j.check = [=]() -> std::string {
    std::vector<double> inverse(a.n), ww(n), uu(n);
    for (int h = 0; h < H; ++h)
      for (int t0 = 0; t0 < T; t0 += 64) {
        const int L = std::min(64, T - t0);
        auto at = [&](int i) { return size_t(t0 + i) * H + h; };
        std::vector<double> m(64 * 64), x(64 * 64);
        for (int i = 0; i < L; ++i)
          for (int l = 0; l < i; ++l) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += k[at(i) * D + d] * k[at(l) * D + d];
            m[i * 64 + l] = s * beta[at(i)] * std::exp(g[at(i)] - g[at(l)]);
          }
        for (int col = 0; col < L; ++col)
          for (int i = 0; i < L; ++i) {
            double s = i == col;
            for (int l = 0; l < i; ++l) s -= m[i * 64 + l] * x[l * 64 + col];
            x[i * 64 + col] = s;
          }
        for (int i = 0; i < L; ++i) {
          for (int l = 0; l < 64; ++l) inverse[at(i) * 64 + l] = x[i * 64 + l];
          for (int d = 0; d < D; ++d)
            for (int l = 0; l < L; ++l) {
              uu[at(i) * D + d] += x[i * 64 + l] * beta[at(l)] * v[at(l) * D + d];
              ww[at(i) * D + d] += x[i * 64 + l] * beta[at(l)] * std::exp(g[at(l)]) * k[at(l) * D + d];
            }
        }
      }
    auto wrong = agree(a.now(), inverse, 2e-2, 1e-2);
    if (!wrong.empty()) return "inverse: " + wrong;
    wrong = agree(w.now(), ww, 3e-2, 2e-2);
    return wrong.empty() ? agree(u.now(), uu, 3e-2, 2e-2) : "w: " + wrong;
  };
  return j;
});

// --- lightning attention 2: a program walks over the blocks of a head with k'v in registers
struct LightCfg {
  int D = 128, BE = 64, BN = 64, stages = 2, warps = 4;
};
auto lightning2 = kernel("user_lightning2",
                         [](const LightCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                            Tensor<const bfloat16, 3> V, Ptr<const float> slope, Tensor<bfloat16, 3> O,
                            I32 H) {  // [B * H, N, D]
                           num_warps(c.warps);
                           auto e = program_id(0) * c.BE, z = program_id(1);
                           auto s = load(slope + z % H) * kLog2e;
                           auto i = cast(arange(0, c.BN), f32);
                           auto q_decay = exp2(-s * (i + 1.f)), k_decay = exp2(-s * (c.BN - 1.f - i));
                           auto block_decay = exp2(-s * float(c.BN));
                           auto apart = i.col() - i.row();
                           auto diagonal = where(apart >= 0.f, exp2(-s * apart), 0.f);
                           Tile kv = zeros({c.D, c.BE}, f32);
                           for (auto n : range(0, Q.dim(1), c.BN, {.stages = c.stages})) {
                             auto q = squeeze(Q.load({z, n, 0}, {1, c.BN, c.D}), 0);
                             auto k = squeeze(K.load({z, n, 0}, {1, c.BN, c.D}), 0);
                             auto v = squeeze(V.load({z, n, e}, {1, c.BN, c.BE}), 0);
                             auto qk = dot(q, trans(k)) * diagonal;
                             auto inside = dot(cast(qk, bf16), v);
                             auto before = dot(q, cast(kv, bf16)) * q_decay.col();
                             O.store({z, n, e}, expand_dims(cast(inside + before, bf16), 0));
                             kv = dot(trans(cast(cast(k, f32) * k_decay.col(), bf16)), v, kv * block_decay);
                           }
                         })
                      .grid([](const LightCfg& c, const auto& q, const auto&...) {
                        return Grid{cdiv(q.shape[2], c.BE), q.shape[0]};
                      });
Register r2("lightning2", [](Env& e) {
  LightCfg c;
  if (!e.big) c = {32, 16, 16, 2, 4};
  c.BE = e.field("BE", c.BE), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 2, H = e.big ? 32 : 3, N = e.big ? 4096 : 75, D = c.D;
  const size_t n = size_t(B) * H * N * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto slope = filled<float>(e, H, [&](size_t h) { return float(std::exp2(-8. * double(h + 1) / H)); });
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * N * double(D) * (2 * D + 2 * c.BN);
  j.add(lightning2, c, q.view(B * H, N, D), k.view(B * H, N, D), v.view(B * H, N, D), slope.p, o.view(B * H, N, D), H);
  j.check = [=] {
    std::vector<double> want(n);
    for (int z = 0; z < B * H; ++z)
      for (int t = 0; t < N; ++t)
        for (int s = 0; s <= t; ++s) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(z) * N + t) * D + d] * k[(size_t(z) * N + s) * D + d];
          x *= std::exp(-slope[z % H] * (t - s));
          for (int d = 0; d < D; ++d) want[(size_t(z) * N + t) * D + d] += x * v[(size_t(z) * N + s) * D + d];
        }
    return agree(o.now(), want, 1e-1, 2e-2);
  };
  return j;
});

// --- Mamba-2 going back, the gradient of the sums of decays: for every element of the lower triangle of a chunk the
// sum of what lies left of it in its row, added up over the rows of a block
struct SsdBackCfg {
  int BM = 64, BN = 64, warps = 4, stages = 2, P = 64, N = 128;
};
struct SsdShape {
  int B, S, H, G, L;
  explicit SsdShape(const Env& e)
      : B(e.big ? 4 : 2), S(e.big ? 4096 : 96), H(e.big ? 64 : 4), G(e.big ? 1 : 2), L(e.big ? 256 : 48) {}
  int chunks() const { return S / L; }
  size_t rows() const { return size_t(B) * S * H; }
  size_t cb() const { return size_t(B) * chunks() * G * L * L; }
  Array<float> sums(Env& e) const {
    double sum = 0;
    return filled<float>(e, rows(), [&, L = L](size_t i) {
      if (i % L == 0) sum = 0;
      return float(sum -= .04 * e.uniform());
    });
  }
};
auto ssd_dda = kernel("user_ssd_dda", [](const SsdBackCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 4> DO,
                                         Tensor<const float, 4> Dt, Tensor<const float, 4> A, Tensor<const float, 5> CB,
                                         Tensor<float, 5> Out, I32 ratio) {
                 // X, DO [B, S, H, P], Dt, A [B, H, C, L], CB [B, C, G, L, L], Out [B, H, C, L / BM, L]
                 num_warps(c.warps);
                 auto block = program_id(0), m = block * c.BM, h = program_id(2);
                 auto C = A.dim(2), L = A.dim(3);
                 auto b = program_id(1) / C, chunk = program_id(1) % C;
                 auto rows = m + arange(0, c.BM);
                 auto d = reshape(DO.load({b, chunk * L + m, h, 0}, {1, c.BM, 1, c.P}), {c.BM, c.P});
                 auto am = reshape(A.load({b, h, chunk, m}, {1, 1, 1, c.BM}), {c.BM, 1});
                 Tile left = zeros({c.BM, 1}, f32);
                 for (auto n : range(0, min(m + c.BM, L), c.BN, {.stages = c.stages})) {
                   auto x = reshape(X.load({b, chunk * L + n, h, 0}, {1, c.BN, 1, c.P}), {c.BN, c.P});
                   auto dt = reshape(Dt.load({b, h, chunk, n}, {1, 1, 1, c.BN}), {1, c.BN});
                   auto an = reshape(A.load({b, h, chunk, n}, {1, 1, 1, c.BN}), {1, c.BN});
                   auto cb = reshape(CB.load({b, chunk, h / ratio, m, n}, {1, 1, 1, c.BM, c.BN}), {c.BM, c.BN});
                   auto below = rows.col() > (n + arange(0, c.BN)).row();
                   auto y = where(below & (rows < L).col(), dot(d, trans(x)) * dt * cb * exp(am - an), 0.f);
                   auto z = where(below, cumsum(y, axis(1)) + left, 0.f);
                   left += sum(y, axis(1));
                   Out.store({b, h, chunk, block, n + 1}, reshape(sum(z, axis(0)), {1, 1, 1, 1, c.BN}));
                 }
               }).grid([](const SsdBackCfg& c, const auto& x, const auto&, const auto&, const auto& a, const auto&...) {
  return Grid{cdiv(a.shape[3], c.BM), x.shape[0] * a.shape[2], a.shape[1]};
});
Register r3("ssd_dda", [](Env& e) {
  const SsdShape s(e);
  SsdBackCfg c;
  if (!e.big) c = {16, 16, 4, 2, 16, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int P = c.P, L = s.L, C = s.chunks(), H = s.H, blocks = cdiv(L, c.BM);
  auto x = random<bfloat16>(e, s.rows() * P), d = random<bfloat16>(e, s.rows() * P);
  auto dt = random<float>(e, s.rows(), .1, .5), a = s.sums(e), cb = random<float>(e, s.cb());
  auto out = constant<float>(e, s.rows() * blocks, 0);
  Job j;
  j.add(ssd_dda, c, x.view(s.B, s.S, H, P), d.view(s.B, s.S, H, P), dt.view(s.B, H, C, L), a.view(s.B, H, C, L),
        cb.view(s.B, C, s.G, L, L), out.view(s.B, H, C, blocks, L), H / s.G);
  j.check = [=] {
    std::vector<double> want(s.rows()), got(s.rows());
    const auto o = out.now();
    for (size_t z = 0; z < s.rows() / L; ++z) {
      const int b = z / (H * C), h = z / C % H, chunk = z % C;
      auto at = [&](int l) { return ((size_t(b) * s.S + chunk * L + l) * H + h) * P; };
      for (int i = 0; i < L; ++i) {
        double left = 0;
        for (int l = 0; l + 1 <= i; ++l) {
          double y = 0;
          for (int p = 0; p < P; ++p) y += d[at(i) + p] * x[at(l) + p];
          left += y * dt[z * L + l] * cb[(((size_t(b) * C + chunk) * s.G + h / (H / s.G)) * L + i) * L + l] *
                  std::exp(a[z * L + i] - a[z * L + l]);
          want[z * L + l + 1] += left;
        }
        for (int m = 0; m < blocks; ++m) got[z * L + i] += o[(z * blocks + m) * L + i];
      }
    }
    return agree(got, want, 1e-2, 1e-2);
  };
  return j;
});

// --- Mamba-2 going back, the gradient of x: from the states' gradients, then from the rows behind
auto ssd_dx = kernel("user_ssd_dx", [](const SsdBackCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 4> DO,
                                       Tensor<const float, 4> Dt, Tensor<const float, 4> A, Tensor<const float, 5> CB,
                                       Tensor<const bfloat16, 4> Bm, Tensor<const float, 5> DS, Tensor<bfloat16, 4> DX,
                                       Tensor<float, 4> DDt, I32 ratio) {
                // Bm [B, S, G, N], DS [B, C, H, P, N]
                num_warps(c.warps);
                auto m = program_id(0) * c.BM, h = program_id(2);
                auto C = A.dim(2), L = A.dim(3);
                auto b = program_id(1) / C, chunk = program_id(1) % C;
                auto rows = m + arange(0, c.BM);
                auto am = reshape(A.load({b, h, chunk, m}, {1, 1, 1, c.BM}), {1, c.BM});
                auto last = load(A.ptr() + b * A.stride(0) + h * A.stride(1) + chunk * A.stride(2) + (L - 1));
                auto bm = reshape(Bm.load({b, chunk * L + m, h / ratio, 0}, {1, c.BM, 1, c.N}), {c.BM, c.N});
                auto ds = reshape(DS.load({b, chunk, h, 0, 0}, {1, 1, 1, c.P, c.N}), {c.P, c.N});
                Tile acc = dot(bm, trans(cast(ds, bf16))) * trans(exp(last - am));
                for (auto k : range(m, L, c.BN, {.stages = c.stages})) {
                  auto cb = reshape(CB.load({b, chunk, h / ratio, k, m}, {1, 1, 1, c.BN, c.BM}), {c.BN, c.BM});
                  auto d = reshape(DO.load({b, chunk * L + k, h, 0}, {1, c.BN, 1, c.P}), {c.BN, c.P});
                  auto ak = reshape(A.load({b, h, chunk, k}, {1, 1, 1, c.BN}), {c.BN, 1});
                  auto ks = k + arange(0, c.BN);
                  auto p = where((ks.col() >= rows.row()) & (ks < L).col(), cb * exp(ak - am), 0.f);
                  acc = dot(trans(cast(p, bf16)), d, acc);
                }
                auto x = cast(reshape(X.load({b, chunk * L + m, h, 0}, {1, c.BM, 1, c.P}), {c.BM, c.P}), f32);
                auto dt = reshape(Dt.load({b, h, chunk, m}, {1, 1, 1, c.BM}), {c.BM, 1});
                DX.store({b, chunk * L + m, h, 0}, reshape(cast(acc * dt, bf16), {1, c.BM, 1, c.P}));
                DDt.store({b, h, chunk, m}, reshape(sum(acc * x, axis(1)), {1, 1, 1, c.BM}));
              }).grid([](const SsdBackCfg& c, const auto& x, const auto&, const auto&, const auto& a, const auto&...) {
  return Grid{cdiv(a.shape[3], c.BM), x.shape[0] * a.shape[2], a.shape[1]};
});
Register r4("ssd_dx", [](Env& e) {
  const SsdShape s(e);
  SsdBackCfg c;
  if (!e.big) c = {16, 16, 4, 2, 16, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int P = c.P, N = c.N, L = s.L, C = s.chunks(), H = s.H;
  auto x = random<bfloat16>(e, s.rows() * P), d = random<bfloat16>(e, s.rows() * P);
  auto dt = random<float>(e, s.rows(), .1, .5), a = s.sums(e), cb = random<float>(e, s.cb());
  auto bm = random<bfloat16>(e, size_t(s.B) * s.S * s.G * N);
  auto ds = random<float>(e, size_t(s.B) * C * H * P * N);
  auto dx = constant<bfloat16>(e, s.rows() * P, NAN);
  auto ddt = constant<float>(e, s.rows(), NAN);
  Job j;
  j.add(ssd_dx, c, x.view(s.B, s.S, H, P), d.view(s.B, s.S, H, P), dt.view(s.B, H, C, L), a.view(s.B, H, C, L),
        cb.view(s.B, C, s.G, L, L), bm.view(s.B, s.S, s.G, N), ds.view(s.B, C, H, P, N), dx.view(s.B, s.S, H, P),
        ddt.view(s.B, H, C, L), H / s.G);
  j.check = [=] {
    std::vector<double> want(s.rows() * P), steps(s.rows());
    for (size_t z = 0; z < s.rows() / L; ++z) {
      const int b = z / (H * C), h = z / C % H, chunk = z % C, g = h / (H / s.G);
      auto row = [&](int l) { return size_t(b) * s.S + chunk * L + l; };
      for (int i = 0; i < L; ++i)
        for (int p = 0; p < P; ++p) {
          double y = 0;
          for (int n = 0; n < N; ++n)
            y += bm[(row(i) * s.G + g) * N + n] * ds[(((size_t(b) * C + chunk) * H + h) * P + p) * N + n];
          y *= std::exp(a[z * L + L - 1] - a[z * L + i]);
          for (int k = i; k < L; ++k)
            y += cb[(((size_t(b) * C + chunk) * s.G + g) * L + k) * L + i] * std::exp(a[z * L + k] - a[z * L + i]) *
                 d[(row(k) * H + h) * P + p];
          want[(row(i) * H + h) * P + p] = y * dt[z * L + i];
          steps[z * L + i] += y * x[(row(i) * H + h) * P + p];
        }
    }
    auto wrong = agree(dx.now(), want, 3e-2, 2e-2);
    return wrong.empty() ? agree(ddt.now(), steps, 1e-1, 2e-2) : wrong;
  };
  return j;
});

}  // namespace beside_triton_chunks
}  // namespace users
