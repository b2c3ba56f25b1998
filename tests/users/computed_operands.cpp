// computed_operands.cpp - products whose operands are computed on the way: gated and rounded to 8 bits, 4-bit codes
// with zero points a group, one matrix of scores read from both sides, Fourier features, Newton-Schulz until it is
// near.
#include "tests/users/use.h"
namespace users {
namespace computed_operands {

auto rows_of(const std::vector<double>& a, int width) {
  return [&a, width](int row, int column) { return a[size_t(row) * width + column]; };
}

// --- silu(a) b in 8 bits with a scale for each row and group of KG columns, made in front of the product with int8
struct GatedCfg {
  int BM = 64, BN = 96, KG = 64, stages = 3, warps = 4;
};
auto gated_quant =
    kernel("user_gated_down8", [](const GatedCfg& c, Tensor<const bfloat16, 2> H, Tensor<const int8_t, 2> W,
                                  Ptr<const float> scales, Tensor<bfloat16, 2> Y) {
      // H [M, 2 F] (a beside b), W [N, F], scales [N], Y [M, N]
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
      auto F = W.dim(1);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, F, c.KG, {.stages = c.stages})) {
        auto a = cast(H.load({m, k}, {c.BM, c.KG}), f32), b = cast(H.load({m, F + k}, {c.BM, c.KG}), f32);
        auto in = (k + arange(0, c.KG)).row() < F;
        auto g = where(in, silu(a) * b, 0.f);  // behind the end of a comes b
        auto s = max(max(abs(g), axis(1)) / 127.f, 1e-12f);
        auto q = saturate(rint(g / s), i8);
        acc += cast(dot(q, trans(W.load({n, k}, {c.BN, c.KG}))), f32) * s;
      }
      auto column = n + arange(0, c.BN);
      acc = acc * load(scales + column, {.mask = column < Y.dim(1)}).row();
      Y.store({m, n}, cast(acc, bf16));
    }).grid([](const GatedCfg& c, const auto& h, const auto& w, float const*, const auto&) {
      return Grid{cdiv(w.shape[0], c.BN), cdiv(h.shape[0], c.BM)};
    });
Register r1("gated_down8", [](Env& e) {
  const int M = e.big ? 2048 : 75, N = e.big ? 4096 : 200, F = e.big ? 11008 : 168;
  auto h = random<bfloat16>(e, size_t(M) * 2 * F, -3, 3);
  auto w = integers<int8_t>(e, size_t(N) * F, -127, 128);
  auto s = random<float>(e, N, .001, .002);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  GatedCfg c{e.field("BM", 64), e.field("BN", 96), 64, e.field("stages", 3), e.field("warps", 4)};
  Job j;
  j.gflop = 2e-9 * M * double(N) * F;
  j.add(gated_quant, c, h.view(M, 2 * F), w.view(N, F), s.p, y.view(M, N));
  j.check = [=] {
    std::vector<double> q(size_t(M) * F);
    for (int m = 0; m < M; ++m)
      for (int k0 = 0; k0 < F; k0 += 64) {
        double most = 0;
        const int k1 = std::min(F, k0 + 64);
        for (int k = k0; k < k1; ++k) {
          const double a = h[size_t(m) * 2 * F + k], b = h[size_t(m) * 2 * F + F + k];
          q[size_t(m) * F + k] = a / (1 + std::exp(-a)) * b;
          most = std::max(most, std::abs(q[size_t(m) * F + k]));
        }
        for (int k = k0; k < k1; ++k) {
          double& x = q[size_t(m) * F + k];
          x = std::rint(x / (most / 127)) * (most / 127);
        }
      }
    return agree(y.now(), product(M, N, F, rows_of(q, F), [&](int k, int n) { return s[n] * w.h[size_t(n) * F + k]; }),
                 3e-2, 1e-2);
  };
  return j;
});

// --- int8 rows times 4-bit columns: w = scale (code - zero) a group of 32 rows of K, codes two a byte along K; the
// zero points leave the product as zero x sum of the row
struct ZeroCfg {
  int BM = 64, BN = 64, KG = 32, stages = 4, warps = 4;
};
auto zero_points =
    kernel("user_int8_int4_zeros", [](const ZeroCfg& c, Tensor<const int8_t, 2> A, Ptr<const float> rowscale,
                                      Tensor<const uint8_t, 2> W, Tensor<const half, 2> scale,
                                      Tensor<const uint8_t, 2> zero, Tensor<half, 2> Y) {
      // A [M, K], W [K / 2, N]: low half byte row 2 i, high one row 2 i + 1; scale, zero [K / KG, N]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto g : range(0, A.dim(1) / c.KG, 1, {.stages = c.stages})) {
        auto a = A.load({m, g * c.KG}, {c.BM, c.KG});
        auto w = W.load({g * (c.KG / 2), n}, {c.KG / 2, c.BN});
        auto low = cast(w & 15, i8), high = cast(w >> 4, i8);
        auto codes = reshape(permute(join(low, high), {0, 2, 1}), {c.KG, c.BN});
        auto s = cast(scale.load({g, n}, {c.BN}), f32).row();
        auto z = cast(zero.load({g, n}, {c.BN}), i32).row();
        auto total = sum(a, axis(1));  // i32
        acc += cast(dot(a, codes) - total * z, f32) * s;
      }
      auto row = m + arange(0, c.BM);
      Y.store({m, n}, cast(acc * load(rowscale + row, {.mask = row < A.dim(0)}).col(), f16));
    }).grid([](const ZeroCfg& c, const auto& a, auto*, const auto& w, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
    });
Register r2("int8_int4_zeros", [](Env& e) {
  const int M = e.big ? 256 : 70, N = e.big ? 8192 : 136, K = e.big ? 8192 : 192, G = 32;
  auto a = integers<int8_t>(e, size_t(M) * K, -127, 128);
  auto rs = random<float>(e, M, .001, .002);
  auto w = integers<uint8_t>(e, size_t(K / 2) * N, 0, 256);
  auto s = random<half>(e, size_t(K / G) * N, .01, .03);
  auto z = integers<uint8_t>(e, size_t(K / G) * N, 0, 16);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  ZeroCfg c{e.field("BM", 64), e.field("BN", 64), G, e.field("stages", 4), e.field("warps", 4)};
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(zero_points, c, a.view(M, K), rs.p, w.view(K / 2, N), s.view(K / G, N), z.view(K / G, N), y.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int byte = w.h[size_t(k / 2) * N + n], code = k % 2 ? byte >> 4 : byte & 15;
      return s[size_t(k / G) * N + n] * (code - int(z.h[size_t(k / G) * N + n]));
    };
    return agree(y.now(),
                 product(
                     M, N, K, [&](int m, int k) { return rs[m] * a.h[size_t(m) * K + k]; }, weight),
                 2e-3, 2e-3);
  };
  return j;
});

// --- scores p = relu(q k)^2 read from both sides: rows gather values (kept in the program), columns gather rows'
// values (added to by all programs)
struct SidesCfg {
  int BM = 64, BN = 64, D = 40, stages = 2, warps = 4;
};
auto both_sides =
    kernel("user_both_sides", [](const SidesCfg& c, Tensor<const half, 2> Q, Tensor<const half, 2> K,
                                 Tensor<const half, 2> U, Tensor<const half, 2> V, Tensor<half, 2> rows,
                                 Tensor<float, 2> columns) {
      // Q, U [M, D], K, V [N, D]: rows = P V, columns += P^T U
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto q = Q.load({m, 0}, {c.BM, c.D}), u = U.load({m, 0}, {c.BM, c.D});
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, K.dim(0), c.BN, {.stages = c.stages})) {
        auto s = max(dot(q, trans(K.load({n, 0}, {c.BN, c.D}))), 0.f);
        auto p = cast(s * s, f16);
        acc = dot(p, V.load({n, 0}, {c.BN, c.D}), acc);
        columns.atomic_add({n, 0}, dot(trans(p), u));
      }
      rows.store({m, 0}, cast(acc * (1.f / cast(K.dim(0), f32)), f16));
    }).grid([](const SidesCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BM)}; });
Register r3("both_sides", [](Env& e) {
  const int M = e.big ? 16384 : 150, N = e.big ? 4096 : 170, D = e.big ? 72 : 40;
  auto q = random<half>(e, size_t(M) * D), u = random<half>(e, size_t(M) * D), k = random<half>(e, size_t(N) * D),
       v = random<half>(e, size_t(N) * D);
  auto r = constant<half>(e, size_t(M) * D, NAN);
  auto col = constant<float>(e, size_t(N) * D, .5);
  Job j;
  j.gflop = 6e-9 * M * double(N) * D;
  restore(e, j, col);
  j.add(both_sides, SidesCfg{e.field("BM", 64), e.field("BN", 64), D, e.field("stages", 2), e.field("warps", 4)},
        q.view(M, D), k.view(N, D), u.view(M, D), v.view(N, D), r.view(M, D), col.view(N, D));
  j.check = [=] {
    std::vector<double> wr(size_t(M) * D), wc(size_t(N) * D, .5);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[m * D + d] * k[n * D + d];
        s = std::max(s, 0.) * std::max(s, 0.);
        for (int d = 0; d < D; ++d) wr[m * D + d] += s * v[n * D + d] / N, wc[n * D + d] += s * u[m * D + d];
      }
    const auto bad = agree(r.now(), wr, 3e-3, 3e-3);
    return bad.empty() ? agree(col.now(), wc, 3e-2, 3e-3) : bad;
  };
  return j;
});

// --- a small field of Fourier features: sin and cos of 2 pi x B side by side are the rows of the first product, whose
// relu is the operand of the next; three colours leave
struct FieldCfg {
  int BM = 128, F = 48, HID = 96, warps = 8;
};
auto fourier_field =
    kernel("user_fourier_field", [](const FieldCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> B,
                                    Tensor<const half, 2> W1, Ptr<const half> b1, Tensor<const half, 2> W2,
                                    Tensor<const half, 2> W3, Tensor<float, 2> Y) {
      // X [N, 3], B [3, F], W1 [2 F, HID], W2 [HID, HID], W3 [3, HID], Y [N, 3]
      num_warps(c.warps);
      auto n = program_id(0) * c.BM;
      Tile turns = zeros({c.BM, c.F}, f32);
      for (int i = 0; i < 3; ++i) turns += X.load({n, i}, {c.BM, 1}) * B.load({i, 0}, {1, c.F});
      auto features = cast(cat(sinpi(2.f * turns), cospi(2.f * turns), 1), f16);
      auto bias = cast(load(b1 + arange(0, c.HID)), f32).row();
      auto h = cast(max(dot(features, W1.load({0, 0}, {2 * c.F, c.HID})) + bias, 0.f), f16);
      auto h2 = max(dot(h, W2.load({0, 0}, {c.HID, c.HID})), 0.f);
      for (int i = 0; i < 3; ++i) Y.store({n, i}, sigmoid(sum(h2 * cast(W3.load({i, 0}, {1, c.HID}), f32), axis(1))));
    }).grid([](const FieldCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r4("fourier_field", [](Env& e) {
  const int N = e.big ? 1 << 20 : 333, F = 48, H = 96;
  auto x = random<float>(e, size_t(N) * 3), b = random<float>(e, 3 * F, -4, 4);
  auto w1 = random<half>(e, 2 * F * H, -.2, .2), b1 = random<half>(e, H), w2 = random<half>(e, H * H, -.2, .2),
       w3 = random<half>(e, 3 * H, -.2, .2);
  auto y = constant<float>(e, size_t(N) * 3, NAN);
  Job j;
  j.gflop = 2e-9 * N * (2. * F * H + H * H);
  j.add(fourier_field, FieldCfg{e.field("BM", 128), F, H, e.field("warps", 8)}, x.view(N, 3), b.view(3, F),
        w1.view(2 * F, H), b1.p, w2.view(H, H), w3.view(3, H), y.view(N, 3));
  j.check = [=] {
    auto f = product(N, F, 3, matrix(x, 3), matrix(b, F));
    auto wave = [&](int n, int k) {
      const double t = 2 * M_PI * f[size_t(n) * F + k % F];
      return in_half(k < F ? std::sin(t) : std::cos(t));
    };
    auto h = product(N, H, 2 * F, wave, matrix(w1, H),
                     [&](double s, int, int k) { return in_half(std::max(0., s + b1[k])); });
    auto h2 = product(N, H, H, rows_of(h, H), matrix(w2, H), [](double s, int, int) { return std::max(0., s); });
    return agree(y.now(),
                 product(
                     N, 3, H, rows_of(h2, H), [&](int k, int i) { return w3[i * H + k]; },
                     [](double s, int, int) { return 1 / (1 + std::exp(-s)); }),
                 2e-3, 2e-3);
  };
  return j;
});

// --- the nearest matrix with orthonormal rows, in float64: Newton-Schulz until the rows are, at most 40 times; how
// often is a result, too
struct OrthoCfg {
  int R = 24, C = 40, warps = 2;
};
auto near_ortho = kernel("user_schulz_until", [](const OrthoCfg& c, Tensor<const double, 3> A, Tensor<double, 3> X,
                                                 Ptr<int> steps, F64 near) {
                    num_warps(c.warps);
                    auto b = program_id(0);
                    Tile x = A.load({b, 0, 0}, {c.R, c.C});
                    x = x / sqrt(sum(x * x));
                    auto one = where(arange(0, c.R).col() == arange(0, c.R).row(), 1.0, zeros({c.R, c.R}, f64));
                    Tile gram = dot(x, trans(x)), n = zeros({}, i32);
                    while_([&] { return (max(abs(gram - one)) > near) & (n < 40); },
                           [&] {
                             x = 1.5 * x - 0.5 * dot(gram, x);
                             gram = dot(x, trans(x));
                             n += 1;
                           });
                    X.store({b, 0, 0}, expand_dims(x, 0));
                    store(steps + b, n);
                  }).grid([](const OrthoCfg&, const auto& a, const auto&...) { return Grid{a.shape[0]}; });
Register r5("schulz_until", [](Env& e) {
  const int B = e.big ? 4096 : 5, R = 24, C = 40;
  const double near = 1e-9;
  auto a = drawn<double>(e, size_t(B) * R * C, [&] { return 2 * e.uniform() - 1; });
  auto x = constant<double>(e, a.n, NAN);
  auto n = constant<int>(e, B, -1);
  Job j;
  j.gflop = 4e-9 * B * R * R * C * 18.;
  j.add(near_ortho, OrthoCfg{R, C, e.field("warps", 2)}, a.view(B, R, C), x.view(B, R, C), n.p, near);
  j.check = [=] {
    std::vector<double> all, times;
    for (int b = 0; b < B; ++b) {
      std::vector<double> y(a.h.begin() + b * R * C, a.h.begin() + (b + 1) * R * C), g;
      double norm = 0, worst = 1;
      for (double v : y) norm += v * v;
      for (double& v : y) v /= std::sqrt(norm);
      int step = -1;
      while (++step < 41) {
        g = product(R, R, C, rows_of(y, C), [&](int k, int i) { return y[i * C + k]; });
        worst = 0;
        for (int i = 0; i < R * R; ++i) worst = std::max(worst, std::abs(g[i] - (i % (R + 1) == 0)));
        if (!(worst > near) || step == 40) break;
        auto gy = product(R, C, R, rows_of(g, R), rows_of(y, C));
        for (int i = 0; i < R * C; ++i) y[i] = 1.5 * y[i] - .5 * gy[i];
      }
      all.insert(all.end(), y.begin(), y.end()), times.push_back(step);
    }
    const auto bad = agree(x.now(), all, 1e-10, 0);
    return bad.empty() ? agree(n.now(), times, .5, 0) : bad;
  };
  return j;
});
}  // namespace computed_operands
}  // namespace users
