// sequences.cpp - attention that forgets, attention by distance (Transformer-XL), a step of Mamba over slots, inverses
// of triangles inside chunks, rotations in three sections, gradients of a gate in place.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace sequences {
constexpr float kLog2e = 1.44269504f;

// --- causal attention that forgets: every token has a gate, scores fall by the sum of log gates between the two
struct ForgetCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto forget = kernel("user_forget", [](const ForgetCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                       Tensor<const bfloat16, 3> V, Tensor<const float, 2> gates,
                                       Tensor<bfloat16, 3> O, Tensor<float, 2> lse, F32 scale) {
  // Q, K, V, O [B, N, D], gates [B, N]: running sums of log gates
  num_warps(c.warps);
  auto b = program_id(1), m = (num_programs(0) - 1 - program_id(0)) * c.BM;
  auto N = Q.dim(1);
  auto q = Q.load({b, m, 0}, {c.BM, c.D});
  auto gq = gates.load({b, m}, {c.BM}) * kLog2e;
  auto row = (m + arange(0, c.BM)).col();
  Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
  for (auto n : range(0, min(m + c.BM, N), c.BN, {.stages = c.stages})) {
    auto gk = gates.load({b, n}, {c.BN}) * kLog2e;
    auto s = dot(q, trans(K.load({b, n, 0}, {c.BN, c.D}))) * (scale * kLog2e) + (gq.col() - gk.row());
    s = where(row >= (n + arange(0, c.BN)).row(), s, -INFINITY);
    auto next = max(top, max(s, axis(1)));
    auto p = exp2(s - next), a = exp2(top - next);
    l = l * a + sum(p, axis(1));
    acc = dot(cast(p, bf16), V.load({b, n, 0}, {c.BN, c.D}), acc * a);
    top = next;
  }
  O.store({b, m, 0}, cast(acc / l, bf16));
  lse.store({b, m}, squeeze((top + log2(l)) * (1 / kLog2e), 1));
}).grid([](const ForgetCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[0]}; });
Register r1("forget", [](Env& e) {
  ForgetCfg c;
  if (!e.big) c = {32, 16, 32, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 2, N = e.big ? 4096 : 77, D = c.D;
  auto q = random<bfloat16>(e, size_t(B) * N * D), k = random<bfloat16>(e, q.n), v = random<bfloat16>(e, q.n);
  double sum = 0;
  auto g = filled<float>(e, size_t(B) * N, [&](size_t i) {
    sum = i % N ? sum + std::log(.8 + .2 * e.uniform()) : 0;
    return float(sum);
  });
  auto o = constant<bfloat16>(e, q.n, NAN);
  auto l = constant<float>(e, g.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * B * double(N) * N * D;
  j.add(forget, c, q.view(B, N, D), k.view(B, N, D), v.view(B, N, D), g.view(B, N), o.view(B, N, D), l.view(B, N),
        scale);
  j.check = [=] {
    std::vector<double> want(q.n), sums;
    for (int m = 0; m < B * N; ++m) {
      double total = 0;
      for (int n = m / N * N; n <= m; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(m) * D + d] * k[size_t(n) * D + d];
        s = std::exp(s * scale + g[m] - g[n]), total += s;
        for (int d = 0; d < D; ++d) want[size_t(m) * D + d] += s * v[size_t(n) * D + d];
      }
      for (int d = 0; d < D; ++d) want[size_t(m) * D + d] /= total;
      sums.push_back(std::log(total));
    }
    const auto wrong = agree(o.now(), want, 5e-3, 1e-2);
    return wrong.empty() ? agree(l.now(), sums, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- Transformer-XL: scores are (q + u) k_j + (q + v) r_(i - j): the second product has a column for every distance,
// and row i of it takes column i - j
struct RelativeCfg {
  int B = 64, D = 64, stages = 2, warps = 8;
};
auto relative = kernel("user_relative", [](const RelativeCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                           Tensor<const half, 3> V, Tensor<const half, 2> R, Tensor<const half, 1> u,
                                           Tensor<const half, 1> v, Tensor<half, 3> O, F32 scale) {
  // Q, K, V, O [H, N, D], R [N, D]: of distance 0 to N - 1; causal
  num_warps(c.warps);
  auto h = program_id(1), m = program_id(0) * c.B;
  auto q = Q.load({h, m, 0}, {c.B, c.D});
  auto qu = q + u.load({0}, {c.D}).row(), qv = q + v.load({0}, {c.D}).row();
  auto i = arange(0, c.B).col(), k = arange(0, c.B).row();
  Tile top = full({c.B, 1}, -INFINITY, f32), l = zeros({c.B, 1}, f32), acc = zeros({c.B, c.D}, f32);
  for (auto n : range(0, m + c.B, c.B, {.stages = c.stages})) {
    auto s = dot(qu, trans(K.load({h, n, 0}, {c.B, c.D})));
    // distances m - n - B .. m - n + B - 1
    auto by = dot(qv, trans(R.load({m - n - c.B, 0}, {2 * c.B, c.D})));
    s = (s + take(by, i - k + c.B, 1)) * (scale * kLog2e);
    s = where(m + i >= n + k, s, -INFINITY);
    auto next = max(top, max(s, axis(1)));
    auto p = exp2(s - next), a = exp2(top - next);
    l = l * a + sum(p, axis(1));
    acc = dot(cast(p, f16), V.load({h, n, 0}, {c.B, c.D}), acc * a);
    top = next;
  }
  O.store({h, m, 0}, cast(acc / l, f16));
}).grid([](const RelativeCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.B), q.shape[0]}; });
Register r2("relative", [](Env& e) {
  RelativeCfg c;
  if (!e.big) c = {16, 32, 2, 1};
  c.B = e.field("B", c.B), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 128 : 2, N = e.big ? 2048 : 53, D = c.D;
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, q.n), v = random<half>(e, q.n);
  auto r = random<half>(e, size_t(N) * D), u = random<half>(e, D), w = random<half>(e, D);
  auto o = constant<half>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * H * double(N) * N * D;
  j.add(relative, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), r.view(N, D), u.view(D), w.view(D),
        o.view(H, N, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int m = 0; m < H * N; ++m) {
      double total = 0;
      for (int n = m / N * N; n <= m; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d) {
          const double x = q[size_t(m) * D + d];
          s += in_half(x + u[d]) * k[size_t(n) * D + d] + in_half(x + w[d]) * r[size_t(m - n) * D + d];
        }
        s = std::exp(s * scale), total += s;
        for (int d = 0; d < D; ++d) want[size_t(m) * D + d] += s * v[size_t(n) * D + d];
      }
      for (int d = 0; d < D; ++d) want[size_t(m) * D + d] /= total;
    }
    return agree(o.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- one token of Mamba for sequences whose states live in slots: h = exp(dt A) h + dt B x, y = C h + D x, gated
struct SlotCfg {
  int BP = 16, N = 128, warps = 4;
};
auto slot_step = kernel("user_slot_step", [](const SlotCfg& c, Tensor<float, 4> H, Tensor<const bfloat16, 3> X,
                                             Tensor<const float, 2> dt, Tensor<const float, 1> A,
                                             Tensor<const bfloat16, 3> B, Tensor<const bfloat16, 3> C,
                                             Tensor<const float, 1> D, Tensor<const bfloat16, 3> Z,
                                             Ptr<const int32_t> slots, Tensor<bfloat16, 3> Y, I32 group) {
  // H [slots, heads, P, N], X, Z, Y [S, heads, P], dt [S, heads] before softplus, B, C [S, groups, N]
  num_warps(c.warps);
  auto p = program_id(0) * c.BP, head = program_id(1), s = program_id(2);
  auto slot = load(slots + s);
  return_if(slot < 0);  // padding
  auto g = head / group;
  auto raw = dt.load({s, head});
  auto step = where(raw > 20.f, raw, log1p(exp(raw)));
  auto x = cast(X.load({s, head, p}, {c.BP}), f32);
  auto row = [&](auto& t) { return cast(t.load({s, g, 0}, {c.N}), f32).row(); };
  auto h = reshape(H.load({slot, head, p, 0}, {1, 1, c.BP, c.N}), {c.BP, c.N});
  h = h * exp(step * A.load({head})) + (x * step).col() * row(B);
  H.store({slot, head, p, 0}, h);
  auto y = squeeze(sum(h * row(C), axis(1)), 1) + x * D.load({head});
  Y.store({s, head, p}, cast(y * silu(cast(Z.load({s, head, p}, {c.BP}), f32)), bf16));
}).grid([](const SlotCfg& c, const auto& h, const auto& x, const auto&...) {
  return Grid{cdiv(h.shape[2], c.BP), h.shape[1], x.shape[0]};
});
Register r3("slot_step", [](Env& e) {
  SlotCfg c;
  if (!e.big) c = {8, 16, 1};
  c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 128 : 3, many = e.big ? 160 : 5, heads = e.big ? 64 : 4, P = e.big ? 64 : 12, N = c.N;
  const int group = e.big ? 8 : 2;
  auto h = random<float>(e, size_t(many) * heads * P * N);
  auto x = random<bfloat16>(e, size_t(S) * heads * P), z = random<bfloat16>(e, x.n, -3, 3);
  auto dt = random<float>(e, size_t(S) * heads, -3, 3), a = random<float>(e, heads, -1, 0), d = random<float>(e, heads);
  auto b = random<bfloat16>(e, size_t(S) * heads / group * N), cc = random<bfloat16>(e, b.n);
  auto slots = filled<int32_t>(e, S, [&](size_t i) { return i == 1 ? -1 : int32_t(many - 1 - i); });
  auto y = constant<bfloat16>(e, x.n, 7);
  Job j;
  j.inTurn = true;
  j.mbytes = 8e-6 * S * heads * P * double(N);
  j.add(slot_step, c, h.view(many, heads, P, N), x.view(S, heads, P), dt.view(S, heads), a.view(heads),
        b.view(S, heads / group, N), cc.view(S, heads / group, N), d.view(heads), z.view(S, heads, P), slots.p,
        y.view(S, heads, P), group);
  j.check = [=] {
    std::vector<double> want(x.n, 7), state(h.n);
    for (size_t i = 0; i < h.n; ++i) state[i] = h[i];
    for (int s = 0; s < S; ++s)
      for (int i = 0; i < heads * P && slots.at(s) >= 0; ++i) {
        const int head = i / P;
        const double step = std::log1p(std::exp(dt[s * heads + head])), v = x[size_t(s) * heads * P + i];
        double sum = v * d[head];
        for (int n = 0; n < N; ++n) {
          double& mine = state[(size_t(slots.at(s)) * heads * P + i) * N + n];
          const size_t at = (size_t(s) * (heads / group) + head / group) * N + n;
          mine = mine * std::exp(step * a[head]) + step * v * b[at];
          sum += mine * cc[at];
        }
        const double gate = z[size_t(s) * heads * P + i];
        want[size_t(s) * heads * P + i] = sum * gate / (1 + std::exp(-gate));
      }
    const auto wrong = agree(h.now(), state, 1e-4, 1e-4);
    return wrong.empty() ? agree(y.now(), want, 1e-2, 1e-2) : "states: " + wrong;
  };
  return j;
});

// --- (I + A)^-1 for the triangles below the diagonals of 64 x 64 chunks: blocks of 16 row by row, then put together by
// products (what delta rules need)
struct InverseCfg {
  int warps = 1;
};
auto inverse = kernel("user_inverse", [](const InverseCfg& c, Tensor<const float, 3> A, Tensor<half, 3> Y) {
  // A, Y [chunks, 64, 64]; what A has on and above the diagonal does not count
  num_warps(c.warps);
  auto b = program_id(0);
  const Shape box{16, 16};
  auto i = arange(0, 16).col(), k = arange(0, 16).row();
  std::array<std::array<Tile, 4>, 4> y;
  for (int d = 0; d < 4; ++d) {
    auto a = where(i > k, -A.load({b, 16 * d, 16 * d}, box), 0.f);
    Tile x = a;
    for (int r = 2; r < 16; ++r) {
      auto mine = sum(where(i == r, a, 0.f), axis(0));  // row r of a
      auto next = mine + sum(trans(mine) * x, axis(0));
      x = where(i == r, next, x);
    }
    y[d][d] = x + where(i == k, 1.f, full(box, 0, f32));
  }
  for (int gap = 1; gap < 4; ++gap)
    for (int d = 0; d + gap < 4; ++d) {
      const int r = d + gap;
      Tile s = zeros(box, f32);
      for (int m = d; m < r; ++m) s = dot(A.load({b, 16 * r, 16 * m}, box), y[m][d], s, Prec::tf32x3);
      y[r][d] = -dot(y[r][r], s, Prec::tf32x3);
    }
  for (int r = 0; r < 4; ++r)
    for (int d = 0; d < 4; ++d) Y.store({b, 16 * r, 16 * d}, d > r ? zeros(box, f16) : cast(y[r][d], f16));
}).grid([](const InverseCfg&, const auto& a, const auto&) { return Grid{a.shape[0]}; });
Register r4("inverse", [](Env& e) {
  InverseCfg c;
  if (!e.big) c.warps = 2;
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32768 : 3;
  auto a = random<float>(e, size_t(B) * 4096, -.2, .2);
  auto y = constant<half>(e, a.n, NAN);
  Job j;
  j.mbytes = 6e-6 * a.n;
  j.add(inverse, c, a.view(B, 64, 64), y.view(B, 64, 64));
  j.check = [=] {
    std::vector<double> want(a.n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < 64; ++d)
        for (int r = d; r < 64; ++r) {
          double s = r == d;
          for (int m = d; m < r; ++m) s -= a[(size_t(b) * 64 + r) * 64 + m] * want[(size_t(b) * 64 + m) * 64 + d];
          want[(size_t(b) * 64 + r) * 64 + d] = s;
        }
    return agree(y.now(), want, 1e-3, 2e-3);
  };
  return j;
});

// --- rotary positions in three sections of the head (time, height, width), queries and keys of packed rows in place
struct SectionCfg {
  int BH = 8, D = 128, t = 16, h = 24, w = 24, warps = 4;
};
auto sections = kernel("user_sections", [](const SectionCfg& c, Tensor<bfloat16, 3> QKV, Tensor<const int64_t, 2> at,
                                           Tensor<const float, 2> cosine, Tensor<const float, 2> sine, I32 rotated) {
  // QKV [T, heads, D]: the first `rotated` heads are turned; at [3, T], tables [places, D / 2]
  num_warps(c.warps);
  auto token = program_id(1), head = program_id(0) * c.BH;
  const int half_d = c.D / 2;
  auto d = arange(0, half_d);
  auto of = [&](int s) { return at.load({s, token}); };
  auto place = where(d < c.t, of(0), where(d < c.t + c.h, of(1), of(2)));
  auto offset = place * half_d + cast(d, i64);
  auto cs = load(cosine.ptr() + offset).row(), sn = load(sine.ptr() + offset).row();
  auto half_of = [&](int k) {
    return cast(reshape(QKV.load({token, head, k * half_d}, {1, c.BH, half_d}), {c.BH, half_d}), f32);
  };
  auto a = half_of(0), b = half_of(1);
  auto turned = cat(a * cs - b * sn, b * cs + a * sn, 1);
  auto heads = head + arange(0, c.BH);
  store(QKV.ptr() + token * QKV.stride(0) + heads.col() * c.D + arange(0, c.D).row(), cast(turned, bf16),
        {.mask = (heads < rotated).col()});
}).grid([](const SectionCfg& c, const auto& q, const auto&, const auto&, const auto&, int rotated) {
  return Grid{cdiv(rotated, c.BH), q.shape[0]};
});
Register r5("sections", [](Env& e) {
  SectionCfg c;
  if (!e.big) c = {4, 32, 4, 6, 6, 1};
  c.BH = e.field("BH", c.BH), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 7, heads = e.big ? 48 : 9, rotated = e.big ? 40 : 7, places = e.big ? 32768 : 50;
  const int D = c.D, W = D / 2;
  auto x = random<bfloat16>(e, size_t(T) * heads * D);
  auto at = integers<int64_t>(e, size_t(3) * T, 0, places);
  auto cs = random<float>(e, size_t(places) * W), sn = random<float>(e, cs.n);
  Job j;
  j.inTurn = true;
  j.mbytes = 4e-6 * T * double(rotated) * D;
  j.add(sections, c, x.view(T, heads, D), at.view(3, T), cs.view(places, W), sn.view(places, W), rotated);
  j.check = [=] {
    std::vector<double> want;
    for (size_t i = 0; i < x.n; ++i) {
      const int token = int(i / (heads * D)), d = int(i % D), k = d % W;
      const size_t row = at.at((k < c.t ? 0 : k < c.t + c.h ? 1 : 2) * T + token) * size_t(W) + k;
      const double other = d < W ? -x[i + W] : x[i - W];
      want.push_back(int(i / D % heads) < rotated ? x[i] * cs[row] + other * sn[row] : x[i]);
    }
    return agree(x.now(), want, 1e-3, 1e-2);
  };
  return j;
});

// --- gradients of gelu(e) g in place: h where dY was, de where e was, dg where g was (Unsloth)
struct GateCfg {
  int block = 1024, warps = 4;
};
auto gelu_gate = kernel("user_gelu_gate", [](const GateCfg& c, Ptr<half> dy, Ptr<half> ep, Ptr<half> gp, I64 n) {
  num_warps(c.warps);
  auto i = cast(program_id(0), i64) * c.block + cast(arange(0, c.block), i64);
  auto in = i < n;
  auto d = cast(load(dy + i, {.mask = in}), f32), e = cast(load(ep + i, {.mask = in}), f32);
  auto g = cast(load(gp + i, {.mask = in}), f32);
  auto share = .5f * (erf(e * 0.70710678f) + 1.f);
  auto f = share * e;
  auto slope = share + 0.39894228f * e * exp(-.5f * e * e);
  store(dy + i, cast(f * g, f16), {.mask = in});
  store(ep + i, cast(d * g * slope, f16), {.mask = in});
  store(gp + i, cast(d * f, f16), {.mask = in});
}).grid([](const GateCfg& c, half*, half*, half*, int64_t n) { return Grid{cdiv(n, int64_t(c.block))}; });
Register r6("gelu_gate", [](Env& e) {
  GateCfg c;
  if (!e.big) c = {128, 1};
  c.block = e.field("block", c.block), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? int64_t(1) << 27 : 1003;
  auto dy = random<half>(e, n), a = random<half>(e, n, -4, 4), g = random<half>(e, n);
  Job j;
  j.inTurn = true;
  j.mbytes = 12e-6 * double(n);
  j.add(gelu_gate, c, dy.p, a.p, g.p, n);
  j.check = [=] {
    std::vector<double> h, de, dg;
    for (int64_t i = 0; i < n; ++i) {
      const double x = a[i], share = .5 * std::erfc(-x / std::sqrt(2.));
      h.push_back(share * x * g[i]), dg.push_back(dy[i] * share * x);
      de.push_back(dy[i] * g[i] * (share + x * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979)));
    }
    std::string wrong = agree(dy.now(), h, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(a.now(), de, 1e-3, 1e-3);
    return wrong.empty() ? agree(g.now(), dg, 1e-3, 1e-3) : wrong;
  };
  return j;
});

}  // namespace sequences
}  // namespace users
