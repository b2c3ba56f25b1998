// passes_back.cpp - layers of language models and what comes back through them: sums of normed powers, optimisers with
// states of 4 bits and of low rank, experts whose weights have 4 bits, kernels of state spaces, positions turned back.
#include <complex>
#include <numbers>

#include "tests/users/use.h"
namespace users {
namespace passes_back {

// --- PolyNorm: y = w0 norm(x^3) + w1 norm(x^2) + w2 norm(x) + b, and the gradients: rows at a time, those of the three
// weights and the bias summed per program
struct PolyCfg {
  int N = 4096, rows = 8, warps = 8;
};
auto poly_norm = kernel("user_poly_norm", [](const PolyCfg& c, Tensor<const bfloat16, 2> X, Ptr<const float> W,
                                             Tensor<bfloat16, 2> Y, Ptr<float> inverse, I32 columns) {
                   // W [4]: three weights and the bias; inverse [M, 3]: of the powers' root mean squares
                   num_warps(c.warps);
                   auto row = program_id(0);
                   auto x = cast(reshape(X.load({row, 0}, {1, c.N}), {c.N}), f32);
                   auto over = 1.f / cast(columns, f32);
                   Tile y = full({c.N}, 0.f, f32) + load(W + 3), power = x;
                   std::array<Tile, 3> p;
                   for (int k = 2; k >= 0; --k) {
                     p[k] = power;
                     if (k) power = power * x;
                   }
                   for (int k = 0; k < 3; ++k) {
                     auto r = rsqrt(sum(p[k] * p[k]) * over + 1e-6f);
                     store(inverse + row * 3 + k, r);
                     y += p[k] * (r * load(W + k));
                   }
                   Y.store({row, 0}, reshape(cast(y, bf16), {1, c.N}));
                 }).grid([](const PolyCfg&, const auto& x, auto, const auto&, auto, int) { return Grid{x.shape[0]}; });
auto poly_norm_bwd =
    kernel("user_poly_norm_bwd", [](const PolyCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> dY,
                                    Ptr<const float> W, Ptr<const float> inverse, Tensor<bfloat16, 2> dX, Ptr<float> dW,
                                    I32 columns) {
      // dW [programs, 4]
      num_warps(c.warps);
      auto over = 1.f / cast(columns, f32);
      std::array<Tile, 4> grads;
      for (Tile& g : grads) g = full({}, 0.f, f32);
      auto first = program_id(0) * c.rows;
      for (auto row : range(first, min(first + c.rows, X.dim(0)))) {
        auto x = cast(reshape(X.load({row, 0}, {1, c.N}), {c.N}), f32);
        auto dy = cast(reshape(dY.load({row, 0}, {1, c.N}), {c.N}), f32);
        Tile dx = zeros({c.N}, f32);
        for (int k = 0; k < 3; ++k) {
          Tile p = x, slope = full({c.N}, 1.f, f32);
          for (int q = 2; q > k; --q) slope = p * float(4 - q), p = p * x;
          auto r = load(inverse + row * 3 + k), w = load(W + k);
          auto both = sum(dy * p);
          grads[k] += both * r;
          dx += slope * (w * r) * (dy - p * (both * r * r * over));
        }
        grads[3] += sum(dy);
        dX.store({row, 0}, reshape(cast(dx, bf16), {1, c.N}));
      }
      for (int k = 0; k < 4; ++k) store(dW + program_id(0) * 4 + k, grads[k]);
    }).grid([](const PolyCfg& c, const auto& x, const auto&, auto, auto, const auto&, auto, int) {
      return Grid{cdiv(x.shape[0], c.rows)};
    });
Register r1("poly_norm", [](Env& e) {
  PolyCfg c;
  if (!e.big) c = {40, 3, 1};
  c.rows = e.field("rows", c.rows), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 7, N = e.big ? c.N : 37;
  auto x = random<bfloat16>(e, size_t(M) * N), dy = random<bfloat16>(e, x.n);
  auto w = random<float>(e, 4);
  auto y = constant<bfloat16>(e, x.n, NAN), dx = constant<bfloat16>(e, x.n, NAN);
  auto inverse = constant<float>(e, size_t(M) * 3, 1);
  const int programs = cdiv(M, c.rows);
  auto dw = constant<float>(e, programs * 4, NAN);
  Job j;
  j.mbytes = 10e-6 * x.n;
  j.add(poly_norm, c, x.view(M, N), w.p, y.view(M, N), inverse.p, N);
  j.add(poly_norm_bwd, c, x.view(M, N), dy.view(M, N), w.p, inverse.p, dx.view(M, N), dw.p, N);
  j.check = [=]() -> std::string {
    std::vector<double> wy(x.n), wx(x.n), ww(4);
    for (int m = 0; m < M; ++m) {
      for (int n = 0; n < N; ++n) wy[m * N + n] = w[3], ww[3] += dy[m * N + n];
      for (int k = 0; k < 3; ++k) {
        double mean = 0, both = 0;
        auto p = [&](int n) { return std::pow(x[m * N + n], 3 - k); };
        for (int n = 0; n < N; ++n) mean += p(n) * p(n) / N, both += dy[m * N + n] * p(n);
        const double r = 1 / std::sqrt(mean + 1e-6);
        ww[k] += both * r;
        for (int n = 0; n < N; ++n) {
          wy[m * N + n] += w[k] * r * p(n);
          wx[m * N + n] +=
              (3 - k) * std::pow(x[m * N + n], 2 - k) * w[k] * r * (dy[m * N + n] - p(n) * both * r * r / N);
        }
      }
    }
    const auto parts = dw.now();
    std::vector<float> got(4);
    for (size_t i = 0; i < parts.size(); ++i) got[i % 4] += parts[i];
    if (auto wrong = agree(y.now(), wy, 2e-2, 1e-2); !wrong.empty()) return "y: " + wrong;
    if (auto wrong = agree(got, ww, 1e-3, 1e-3); !wrong.empty()) return "weights: " + wrong;
    return agree(dx.now(), wx, 2e-2, 1e-2);
  };
  return j;
});

// --- Adam whose moments have 4 bits: two in a byte, blocks of 128 with their largest magnitude; the first moment by a
// table of 16 signed numbers (nearest by bisection), the second linear without zero
struct FourCfg {
  int B = 1024, warps = 4;
};
constexpr float kSigned[16] = {-.8875f, -.6625f, -.4375f, -.2125f, -.0775f, -.0325f, -.0055f, 0,
                               .0055f,  .0325f,  .0775f,  .2125f,  .4375f,  .6625f,  .8875f,  1};
auto adam4 = kernel("user_adam4", [](const FourCfg& c, Ptr<bfloat16> w, Ptr<const bfloat16> g, Ptr<uint8_t> m,
                                     Ptr<uint8_t> v, Ptr<float> mScale, Ptr<float> vScale, Ptr<const float> table,
                                     F32 lr, F32 b1, F32 b2, F32 fix1, F32 fix2) {
               // m, v [n / 2]: even elements low; scales [n / 128]
               num_warps(c.warps);
               auto start = cast(program_id(0), i64) * c.B;
               auto at = start + arange(0, c.B), byte = start / 2 + arange(0, c.B / 2);
               const int groups = c.B / 128;
               auto scale = start / 128 + arange(0, groups);
               auto spread = [&](const Tile& s) { return reshape(broadcast_to(s.col(), {groups, 128}), {c.B}); };
               auto unpacked = [&](Ptr<uint8_t> p) {
                 auto b = cast(load(p + byte), i32);
                 return interleave(b & 15, b >> 4);
               };
               auto values = load(table + arange(0, 16));
               auto grad = cast(load(g + at), f32);
               Tile first = take(values, unpacked(m), 0) * spread(load(mScale + scale));
               Tile second = (cast(unpacked(v), f32) + 1.f) / 16.f * spread(load(vScale + scale));
               first = b1 * first + (1.f - b1) * grad;
               second = b2 * second + (1.f - b2) * grad * grad;
               auto weight = cast(load(w + at), f32);
               store(w + at, cast(weight - lr * (first * fix1) / (sqrt(second * fix2) + 1e-8f), bf16));
               auto largest = [&](const Tile& x) {
                 return max(squeeze(max(reshape(abs(x), {groups, 128}), axis(1)), 1), 1e-12f);
               };
               auto sm = largest(first), sv = largest(second);
               store(mScale + scale, sm), store(vScale + scale, sv);
               auto packed = [&](const Tile& code) {
                 auto [low, high] = split(reshape(code, {c.B / 2, 2}));
                 return cast(low | (high << 4), u8);
               };
               auto x = first / spread(sm);
               Tile code = zeros({c.B}, i32);
               for (int i = 0; i < 15; ++i) code += cast(x > (kSigned[i] + kSigned[i + 1]) / 2, i32);
               store(m + byte, packed(code));
               store(v + byte, packed(clamp(cast(rint(second / spread(sv) * 16.f), i32) - 1, 0, 15)));
             }).grid([](const FourCfg&, auto...) { return Grid{1}; });
Register r2("adam4", [](Env& e) {
  FourCfg c;
  if (!e.big) c = {256, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const size_t n = e.big ? size_t(1) << 26 : 1024;
  auto w = random<bfloat16>(e, n), g = random<bfloat16>(e, n, -.1, .1);
  auto m = integers<uint8_t>(e, n / 2, 0, 256), v = integers<uint8_t>(e, n / 2, 0, 256);
  auto ms = random<float>(e, n / 128, .01, .1), vs = random<float>(e, n / 128, .001, .01);
  auto table = filled<float>(e, 16, [](size_t i) { return kSigned[i]; });
  Job j;
  j.mbytes = 8e-6 * n;
  auto sized = adam4;
  j.add(sized.grid([=](const FourCfg& c, auto...) { return Grid{int64_t(n) / c.B}; }), c, w.p, g.p, m.p, v.p, ms.p,
        vs.p, table.p, 1e-2f, .9f, .99f, 2.f, 3.f);
  j.inTurn = true;
  j.check = [=]() -> std::string {
    const auto gw = w.now();
    const auto gm = m.now(), gv = v.now();
    const auto gms = ms.now(), gvs = vs.now();
    for (size_t b = 0; b < n / 128; ++b) {
      double first[128], second[128], lm = 1e-12, lv = 1e-12;
      for (int i = 0; i < 128; ++i) {
        const size_t at = b * 128 + i;
        auto nibble = [&](const Array<uint8_t>& x) { return at % 2 ? x.at(at / 2) >> 4 : x.at(at / 2) & 15; };
        first[i] = .9f * (kSigned[nibble(m)] * ms[b]) + (1 - .9f) * g[at];
        second[i] = .99f * ((nibble(v) + 1) / 16. * vs[b]) + (1 - .99f) * g[at] * g[at];
        lm = std::max(lm, std::abs(first[i])), lv = std::max(lv, second[i]);
        const double want = w[at] - 1e-2f * first[i] * 2 / (std::sqrt(second[i] * 3) + 1e-8);
        if (std::abs(float(gw[at]) - want) > 1e-2 + 1e-2 * std::abs(want)) return "weight " + std::to_string(at);
      }
      if (std::abs(gms[b] - lm) > 1e-5 || std::abs(gvs[b] - lv) > 1e-5) return "scale " + std::to_string(b);
      for (int i = 0; i < 128; ++i) {  // the code chosen is as near as any other, but for rounding
        const size_t at = b * 128 + i;
        auto nibble = [&](const std::vector<uint8_t>& x) { return at % 2 ? x[at / 2] >> 4 : x[at / 2] & 15; };
        double best = 9;
        for (float t : kSigned) best = std::min(best, std::abs(t - first[i] / lm));
        if (std::abs(kSigned[nibble(gm)] - first[i] / lm) > best + 1e-4) return "first moment " + std::to_string(at);
        if (std::abs((nibble(gv) + 1) / 16. - second[i] / lv) > 1 / 32. + 1e-4 && second[i] / lv > 1 / 16.)
          return "second moment " + std::to_string(at);
      }
    }
    return "";
  };
  return j;
});

// --- kernels of diagonal state spaces (S4D): K[h, l] = 2 Re sum_n C[h, n] exp(l dt A[h, n]); a program a head and a
// part of the lengths: powers of one block by exponentials, others by a product with that of the block's length
struct SpaceCfg {
  int L = 256, N = 32, parts = 8, warps = 4;
};
auto s4d = kernel("user_s4d", [](const SpaceCfg& c, Ptr<const float> A, Ptr<const float> C, Ptr<const float> step,
                                 Tensor<float, 2> K) {
             // A, C [H, N, 2] complex, step [H], K [H, length]
             num_warps(c.warps);
             auto h = program_id(1), first = program_id(0) * (c.L * c.parts);
             auto n = (h * c.N + arange(0, c.N)) * 2;
             auto dt = load(step + h);
             auto are = (load(A + n) * dt).col(), aim = (load(A + n + 1) * dt).col();
             auto cre = load(C + n).col(), cim = load(C + n + 1).col();
             auto l = cast(first + arange(0, c.L), f32).row();
             auto size = exp(are * l), angle = aim * l;
             auto pre = size * cos(angle), pim = size * sin(angle);
             Tile re = cre * pre - cim * pim, im = cre * pim + cim * pre;
             auto jump = exp(are * float(c.L));
             auto jre = jump * cos(aim * float(c.L)), jim = jump * sin(aim * float(c.L));
             for (auto p : range(c.parts)) {
               K.store({h, first + p * c.L}, 2.f * sum(re, axis(0)));
               auto next = re * jre - im * jim;
               im = re * jim + im * jre;
               re = next;
             }
           }).grid([](const SpaceCfg& c, auto, auto, auto, const auto& k) {
  return Grid{cdiv(k.shape[1], c.L * c.parts), k.shape[0]};
});
Register r3("s4d", [](Env& e) {
  SpaceCfg c;
  if (!e.big) c = {16, 6, 2, 1};
  c.L = e.field("L", c.L), c.warps = e.field("warps", c.warps), c.parts = e.field("parts", c.parts);
  const int H = e.big ? 1024 : 3, length = e.big ? 16384 : 75;
  auto a = filled<float>(e, size_t(H) * c.N * 2, [](size_t i) { return i % 2 ? float(3.14159 * (i / 2 % 32)) : -.5f; });
  auto cc = random<float>(e, a.n);
  auto step = random<float>(e, H, .001, .1);
  auto k = constant<float>(e, size_t(H) * length, NAN);
  Job j;
  j.mbytes = 4e-6 * k.n;
  j.gflop = 8e-9 * k.n * c.N;
  j.add(s4d, c, a.p, cc.p, step.p, k.view(H, length));
  j.check = [=] {
    std::vector<double> want(k.n);
    for (int h = 0; h < H; ++h)
      for (int l = 0; l < length; ++l)
        for (int n = 0; n < c.N; ++n) {
          const size_t at = (size_t(h) * c.N + n) * 2;
          want[size_t(h) * length + l] +=
              2 * (std::complex<double>(cc[at], cc[at + 1]) *
                   std::exp(std::complex<double>(a[at], a[at + 1]) * double(step.at(h)) * double(l)))
                      .real();
        }
    return agree(k.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- experts with weights of 4 bits: rows sorted by expert and padded to blocks; groups of 128 of k have a scale and a
// zero; what comes out is weighed by the router
struct FewBitsCfg {
  int BM = 64, BN = 128, BK = 128, group = 128, stages = 3, warps = 4;
};
auto moe_w4 =
    kernel("user_moe_w4", [](const FewBitsCfg& c, Tensor<const half, 2> X, Tensor<const uint8_t, 3> W,
                             Tensor<const half, 3> scales, Tensor<const uint8_t, 3> zeros_, Ptr<const int32_t> rows,
                             Ptr<const int32_t> experts, Ptr<const float> weights, Tensor<half, 2> Y, I32 top) {
      // X [T, K], W [E, N, K / 2] (even k low), scales [E, K / group, N], zeros [E, K / group, N]; rows [padded]: token
      // * top + choice, or -1; experts [blocks]; weights [T top]; Y [T top, N]
      num_warps(c.warps);
      auto n = program_id(0) * c.BN, block = program_id(1);
      auto e = load(experts + block);
      return_if(e < 0);
      auto which = load(rows + block * c.BM + arange(0, c.BM));
      auto token = where(which >= 0, which / top, -1);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
        auto x = X.gather(token, k, c.BK);
        auto b = W.load({e, n, k / 2}, {c.BN, c.BK / 2});
        auto w = cast(interleave(b & 15, b >> 4), f16);
        auto s = scales.load({e, k / c.group, n}, {c.BN}).col();
        auto z = cast(zeros_.load({e, k / c.group, n}, {c.BN}), f16).col();
        acc = dot(x, trans((w - z) * s), acc);
      }
      acc *= load(weights + which, {.mask = which >= 0}).col();
      Y.scatter(which, n, cast(acc, f16));
    }).grid([](const FewBitsCfg& c, auto...) { return Grid{1}; });
Register r4("moe_w4", [](Env& e) {
  FewBitsCfg c;
  if (!e.big) c = {16, 32, 32, 32, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int T = e.big ? 4096 : 23, E = e.big ? 32 : 4, top = 2, K = e.big ? 2048 : 64, N = e.big ? 4096 : 48;
  auto x = random<half>(e, size_t(T) * K);
  auto w = integers<uint8_t>(e, size_t(E) * N * K / 2, 0, 256);
  auto s = random<half>(e, size_t(E) * (K / c.group) * N, .01, .02);
  auto z = integers<uint8_t>(e, s.n, 6, 10);
  auto weights = random<float>(e, size_t(T) * top, .2, .8);
  std::vector<std::vector<int32_t>> lists(E);
  std::vector<int> chosen(T * top);
  for (int t = 0; t < T; ++t)
    for (int i = 0; i < top; ++i) {
      const int ex = (int(e.uniform() * (E / 2)) + i * (E / 2)) % E;
      lists[ex].push_back(t * top + i), chosen[t * top + i] = ex;
    }
  std::vector<int32_t> rows, experts;
  for (int ex = 0; ex < E; ++ex) {
    while (lists[ex].size() % c.BM) lists[ex].push_back(-1);
    rows.insert(rows.end(), lists[ex].begin(), lists[ex].end());
    for (size_t i = 0; i < lists[ex].size() / c.BM; ++i) experts.push_back(ex);
  }
  experts.push_back(-1);
  auto r = filled<int32_t>(e, rows.size() + c.BM, [&](size_t i) { return i < rows.size() ? rows[i] : -1; });
  auto ex = filled<int32_t>(e, experts.size(), [&](size_t i) { return experts[i]; });
  auto y = constant<half>(e, size_t(T) * top * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * top * double(K) * N;
  auto sized = moe_w4;
  const int blocks = int(experts.size());
  j.add(sized.grid([=](const FewBitsCfg& c, auto...) {
    return Grid{cdiv(N, c.BN), blocks};
  }),
        c, x.view(T, K), w.view(E, N, K / 2), s.view(E, K / c.group, N), z.view(E, K / c.group, N), r.p, ex.p,
        weights.p, y.view(T * top, N), top);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int i = 0; i < T * top; ++i)
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int k = 0; k < K; ++k) {
          const size_t at = (size_t(chosen[i]) * N + n) * K + k,
                       g = (size_t(chosen[i]) * (K / c.group) + k / c.group) * N + n;
          const int b = w.at(at / 2);
          sum += x[size_t(i / top) * K + k] * ((k % 2 ? b >> 4 : b & 15) - z.at(g)) * s[g];
        }
        want[size_t(i) * N + n] = sum * weights[i];
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- gradients back through rotary positions and the norms of queries (or keys): dx, and the weight's summed per
// program
struct TurnCfg {
  int rows = 8, D = 128, steps = 16, warps = 4;
};
auto qk_norm_rope_bwd =
    kernel("user_qk_norm_rope_bwd", [](const TurnCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> dY,
                                       Ptr<const float> weight, Tensor<const float, 2> cosines,
                                       Tensor<const float, 2> sines, Tensor<bfloat16, 2> dX, Tensor<float, 2> dW,
                                       I32 heads) {
      // X, dY, dX [T heads, D]; cosines, sines [T, D / 2]; dW [programs, D]
      num_warps(c.warps);
      const int H = c.D / 2;
      auto wa = load(weight + arange(0, H)).row(), wb = load(weight + H + arange(0, H)).row();
      Tile sa = zeros({c.rows, H}, f32), sb = sa;
      for (auto i : range(c.steps)) {
        auto row = (program_id(0) * c.steps + i) * c.rows;
        auto half_of = [&](auto& x, int at) { return cast(x.load({row, at}, {c.rows, H}), f32); };
        auto xa = half_of(X, 0), xb = half_of(X, H), ga = half_of(dY, 0), gb = half_of(dY, H);
        auto token = (row + arange(0, c.rows)) / heads;
        auto co = cosines.gather(token, 0, H), si = sines.gather(token, 0, H);
        auto na = ga * co + gb * si, nb = gb * co - ga * si;  // turned back
        auto inverse = rsqrt((sum(xa * xa, axis(1)) + sum(xb * xb, axis(1))) / float(c.D) + 1e-6f);
        auto ya = xa * inverse, yb = xb * inverse;
        sa += na * ya, sb += nb * yb;
        auto da = na * wa, db = nb * wb;
        auto mean = (sum(da * ya, axis(1)) + sum(db * yb, axis(1))) / float(c.D);
        dX.store({row, 0}, cast((da - ya * mean) * inverse, bf16));
        dX.store({row, H}, cast((db - yb * mean) * inverse, bf16));
      }
      dW.store({program_id(0), 0}, squeeze(sum(sa, axis(0)), 0));
      dW.store({program_id(0), H}, squeeze(sum(sb, axis(0)), 0));
    }).grid([](const TurnCfg& c, const auto& x, auto...) { return Grid{cdiv(x.shape[0], c.rows * c.steps)}; });
Register r5("qk_norm_rope_bwd", [](Env& e) {
  TurnCfg c;
  if (!e.big) c = {4, 16, 3, 1};
  c.rows = e.field("rows", c.rows), c.steps = e.field("steps", c.steps), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 13, heads = e.big ? 32 : 3, D = c.D, M = T * heads;
  auto x = random<bfloat16>(e, size_t(M) * D), dy = random<bfloat16>(e, x.n);
  auto w = random<float>(e, D, .5, 1.5);
  auto angle = [&](size_t i) { return double(i / (D / 2)) * std::pow(1e4, -2. * (i % (D / 2)) / D); };
  auto co = filled<float>(e, size_t(T) * D / 2, [&](size_t i) { return float(std::cos(angle(i))); });
  auto si = filled<float>(e, co.n, [&](size_t i) { return float(std::sin(angle(i))); });
  auto dx = constant<bfloat16>(e, x.n, NAN);
  const int programs = cdiv(M, c.rows * c.steps);
  auto dw = constant<float>(e, size_t(programs) * D, NAN);
  Job j;
  j.mbytes = 6e-6 * x.n + 8e-6 * co.n;
  j.add(qk_norm_rope_bwd, c, x.view(M, D), dy.view(M, D), w.p, co.view(T, D / 2), si.view(T, D / 2), dx.view(M, D),
        dw.view(programs, D), heads);
  j.check = [=] {
    std::vector<double> wx(x.n), ww(D);
    for (int r = 0; r < M; ++r) {
      std::vector<double> n(D);
      double square = 0, mean = 0;
      for (int d = 0; d < D; ++d) square += x[r * D + d] * x[r * D + d] / D;
      const double inverse = 1 / std::sqrt(square + 1e-6);
      for (int d = 0; d < D; ++d) {
        const int h = d % (D / 2), t = r / heads;
        const double co_ = co[t * (D / 2) + h], si_ = si[t * (D / 2) + h], a = dy[r * D + h], b = dy[r * D + h + D / 2];
        n[d] = d < D / 2 ? a * co_ + b * si_ : b * co_ - a * si_;
        ww[d] += n[d] * x[r * D + d] * inverse;
        n[d] *= w[d], mean += n[d] * x[r * D + d] * inverse / D;
      }
      for (int d = 0; d < D; ++d) wx[r * D + d] = (n[d] - x[r * D + d] * inverse * mean) * inverse;
    }
    const auto parts = dw.now();
    std::vector<float> got(D);
    for (size_t i = 0; i < parts.size(); ++i) got[i % D] += parts[i];
    if (auto wrong = agree(got, ww, 2e-3, 1e-3); !wrong.empty()) return "weight: " + wrong;
    return agree(dx.now(), wx, 2e-2, 1e-2);
  };
  return j;
});

// --- words of a prompt after the fact: every row's log probability of its word, how many words are likelier, the
// likeliest word, in one pass over the logits
struct WordCfg {
  int B = 4096, warps = 16;
};
auto prompt_words =
    kernel("user_prompt_words", [](const WordCfg& c, Tensor<const bfloat16, 2> X, Ptr<const int64_t> words,
                                   Ptr<float> chance, Ptr<int32_t> rank, Ptr<int64_t> best) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto mine = cast(X.load({row, load(words + row)}), f32);
      Tile most = full({c.B}, -INFINITY, f32), sum = zeros({c.B}, f32), at = zeros({c.B}, i32),
           above = zeros({c.B}, i32);
      for (auto n : range(0, X.dim(1), c.B)) {
        auto x = cast(reshape(X.load({row, n}, {1, c.B}, {.pad = -INFINITY}), {c.B}), f32);
        above += cast(x > mine, i32);
        auto next = max(most, x);
        at = where(x > most, n + arange(0, c.B), at);
        sum = where(next == -INFINITY, 0.f, sum * exp(most - next) + exp(x - next));
        most = next;
      }
      auto top = max(most);
      auto total = tile::sum(where(most == -INFINITY, 0.f, sum * exp(most - top)));
      store(chance + row, mine - top - log(total));
      store(rank + row, tile::sum(above) + 1);
      store(best + row, cast(min(where(most == top, at, INT32_MAX)), i64));
    }).grid([](const WordCfg&, const auto& x, auto...) { return Grid{x.shape[0]}; });
Register r6("prompt_words", [](Env& e) {
  WordCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 4096 : 5, V = e.big ? 128256 : 333;
  auto x = random<bfloat16>(e, size_t(T) * V, -8, 8);
  auto words = integers<int64_t>(e, T, 0, V);
  auto chance = constant<float>(e, T, NAN);
  auto rank = constant<int32_t>(e, T, -1);
  auto best = constant<int64_t>(e, T, -1);
  Job j;
  j.mbytes = 2e-6 * x.n;
  j.add(prompt_words, c, x.view(T, V), words.p, chance.p, rank.p, best.p);
  j.check = [=]() -> std::string {
    const auto gr = rank.now();
    const auto gb = best.now();
    std::vector<double> want(T);
    for (int t = 0; t < T; ++t) {
      double total = 0;
      int above = 1, top = 0;
      const double mine = x[size_t(t) * V + words.at(t)];
      for (int v = 0; v < V; ++v) {
        const double y = x[size_t(t) * V + v];
        total += std::exp(y), above += y > mine;
        if (y > x[size_t(t) * V + top]) top = v;
      }
      want[t] = mine - std::log(total);
      if (gr[t] != above) return "rank of " + std::to_string(t);
      if (gb[t] != top) return "best of " + std::to_string(t);
    }
    return agree(chance.now(), want, 1e-3, 1e-4);
  };
  return j;
});

}  // namespace passes_back
}  // namespace users
