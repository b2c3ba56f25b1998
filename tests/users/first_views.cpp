// first_views.cpp - first versions, as ported from other languages in an afternoon: raw pointers with sizes and strides
// as numbers, views made at the top of the kernel, no hints, block sizes by habit.
#include "tests/users/use.h"
namespace users {
namespace first_views {

// --- a linear layer of torch, forward: y = silu(x W^T + b) + r, and z = x W^T + b for the backward pass
struct LinearCfg {
  int BM = 128, BN = 128, BK = 32;
};
auto view_linear = kernel("user_view_linear", [](const LinearCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w,
                                                 Ptr<const float> b, Ptr<const bfloat16> r, Ptr<bfloat16> y,
                                                 Ptr<bfloat16> z, I32 M, I32 N, I32 K, I32 ldx, I32 ldw, I32 ldy) {
  auto X = make_view(x, {M, K}, {ldx, 1});
  auto W = make_view(w, {N, K}, {ldw, 1});
  auto R = make_view(r, {M, N}, {ldy, 1});
  auto Y = make_view(y, {M, N}, {ldy, 1});
  auto Z = make_view(z, {M, N}, {ldy, 1});
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, K, c.BK)) acc += dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})));
  auto at = n + arange(0, c.BN);
  auto pre = acc + load(b + at, {.mask = at < N}).row();
  Z.store({m, n}, cast(pre, bf16));
  Y.store({m, n}, cast(silu(pre) + cast(R.load({m, n}, {c.BM, c.BN}), f32), bf16));
}).grid([](const LinearCfg& c, auto, auto, auto, auto, auto, auto, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r1("view_linear", [](Env& e) {
  LinearCfg c;
  if (!e.big) c = {32, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 8192 : 70, N = e.big ? 4096 : 72, K = e.big ? 4096 : 56;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(N) * K, -.1, .1),
       r = random<bfloat16>(e, size_t(M) * N);
  auto b = random<float>(e, N);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN), z = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(view_linear, c, x.p, w.p, b.p, r.p, y.p, z.p, M, N, K, K, K, N);
  j.check = [=]() -> std::string {
    auto columns = [&](int k, int n) { return w[size_t(n) * K + k]; };
    auto pre = product(M, N, K, matrix(x, K), columns, [&](double s, int, int n) { return s + b[n]; });
    if (auto wrong = agree(z.now(), pre, 1e-2, 8e-3); !wrong.empty()) return "z: " + wrong;
    for (size_t i = 0; i < pre.size(); ++i) pre[i] = pre[i] / (1 + std::exp(-pre[i])) + r[i];
    return agree(y.now(), pre, 1e-2, 8e-3);
  };
  return j;
});

// --- weights of 8 bits, everything made f32 before it is multiplied, to be on the safe side
struct WidenedCfg {
  int BM = 128, BN = 128, BK = 64;
};
auto widened = kernel("user_widened", [](const WidenedCfg& c, Tensor<const bfloat16, 2> X, Tensor<const int8_t, 2> W,
                                         Ptr<const float> scale, Tensor<float, 2> Y) {
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, X.dim(1), c.BK)) {
    auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
    auto w = cast(W.load({n, k}, {c.BN, c.BK}), f32);
    acc += dot(x, trans(w));
  }
  auto at = n + arange(0, c.BN);
  Y.store({m, n}, acc * load(scale + at, {.mask = at < Y.dim(1)}).row());
}).grid([](const WidenedCfg& c, const auto& x, const auto& w, auto...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r5("widened", [](Env& e) {
  WidenedCfg c;
  if (!e.big) c = {32, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 4096 : 70, N = e.big ? 4096 : 72, K = e.big ? 4096 : 64;
  auto x = random<bfloat16>(e, size_t(M) * K);
  auto w = integers<int8_t>(e, size_t(N) * K, -128, 128);
  auto scale = random<float>(e, N, 0, .01);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(widened, c, x.view(M, K), w.view(N, K), scale.p, y.view(M, N));
  j.check = [=] {
    auto columns = [&](int k, int n) { return w[size_t(n) * K + k]; };
    return agree(y.now(), product(M, N, K, matrix(x, K), columns, [&](double s, int, int n) { return s * scale[n]; }),
                 1e-5, 1e-4);
  };
  return j;
});

// --- attention with four strides per tensor, a program for 128 queries of a head: the tutorial without its hints
struct ViewAttentionCfg {
  int BM = 128, BN = 32, D = 128, causal = 1;
};
auto view_attention = kernel(
    "user_view_attention",
    [](const ViewAttentionCfg& c, Ptr<const half> q, Ptr<const half> k, Ptr<const half> v, Ptr<half> o, Ptr<float> lse,
       F32 scale, I32 /*B*/, I32 H, I32 HK, I32 S, I32 qb, I32 qh, I32 qs, I32 kb, I32 kh, I32 ks) {
      auto m = program_id(0) * c.BM, h = program_id(1) % H, b = program_id(1) / H, hk = h / (H / HK);
      auto first = cast(b, i64) * cast(qb, i64) + cast(h, i64) * cast(qh, i64);
      auto first_k = cast(b, i64) * cast(kb, i64) + cast(hk, i64) * cast(kh, i64);
      auto Q = make_view<const half>(q + first, {S, c.D}, {qs, 1});
      auto K = make_view<const half>(k + first_k, {S, c.D}, {ks, 1});
      auto V = make_view<const half>(v + first_k, {S, c.D}, {ks, 1});
      auto O = make_view<half>(o + first, {S, c.D}, {qs, 1});
      auto rows = m + arange(0, c.BM);
      auto x = Q.load({m, 0}, {c.BM, c.D});
      Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, c.causal ? min(S, m + c.BM) : S, c.BN)) {
        auto s = dot(x, trans(K.load({n, 0}, {c.BN, c.D}))) * scale;
        auto columns = n + arange(0, c.BN);
        auto seen = columns.row() < S;
        if (c.causal) seen = seen & (columns.row() <= rows.col());
        s = where(seen, s, -INFINITY);
        auto now = max(top, max(s, axis(1)));
        auto p = exp(s - now), alpha = exp(top - now);
        acc = acc * alpha;
        acc = dot(cast(p, f16), V.load({n, 0}, {c.BN, c.D}), acc);
        total = total * alpha + sum(p, axis(1));
        top = now;
      }
      O.store({m, 0}, cast(acc / total, f16));
      store(lse + program_id(1) * S + rows, squeeze(top + log(total), 1), {.mask = rows < S});
    }).grid([](const ViewAttentionCfg& c, auto, auto, auto, auto, auto, float, int B, int H, int, int S, auto...) {
  return Grid{cdiv(S, c.BM), B * H};
});
Register r2("view_attention", [](Env& e) {
  ViewAttentionCfg c;
  if (!e.big) c = {32, 16, 32, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.causal = e.field("causal", c.causal);
  const int B = e.big ? 4 : 2, H = e.big ? 16 : 4, HK = e.big ? 4 : 2, S = e.big ? 4096 : 75, D = c.D;
  auto q = random<half>(e, size_t(B) * S * H * D), k = random<half>(e, size_t(B) * S * HK * D),
       v = random<half>(e, size_t(B) * S * HK * D);  // [B, S, H, D], as projections write them
  auto o = constant<half>(e, q.n, NAN);
  auto lse = constant<float>(e, size_t(B) * H * S, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * H * double(S) * S * D / (c.causal ? 2 : 1);
  j.add(view_attention, c, q.p, k.p, v.p, o.p, lse.p, scale, B, H, HK, S, S * H * D, D, H * D, S * HK * D, D, HK * D);
  j.check = [=]() -> std::string {
    std::vector<double> want(q.n), norms(size_t(B) * H * S), p(S);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < S; ++i) {
          const int g = h / (H / HK), end = c.causal ? i + 1 : S;
          double sum = 0;
          for (int n = 0; n < end; ++n) {
            double s = 0;
            for (int d = 0; d < D; ++d)
              s += q[((size_t(b) * S + i) * H + h) * D + d] * k[((size_t(b) * S + n) * HK + g) * D + d];
            sum += p[n] = std::exp(s * scale);
          }
          for (int d = 0; d < D; ++d) {
            double s = 0;
            for (int n = 0; n < end; ++n) s += p[n] * v[((size_t(b) * S + n) * HK + g) * D + d];
            want[((size_t(b) * S + i) * H + h) * D + d] = s / sum;
          }
          norms[(size_t(b) * H + h) * S + i] = std::log(sum);
        }
    if (auto wrong = agree(lse.now(), norms, 2e-3, 1e-3); !wrong.empty()) return "lse: " + wrong;
    return agree(o.now(), want, 2e-3, 4e-3);
  };
  return j;
});

// --- the softmax's gradient, in place, of rows that do not fit a tile: dy becomes y (dy - sum(y dy)) / temperature,
// where a mask of bytes allows it; the row's largest |dx| goes out as well
struct LongRowCfg {
  int B = 1024;
};
auto long_softmax_bwd = kernel("user_long_softmax_bwd", [](const LongRowCfg& c, Ptr<const half> y, Ptr<half> dy,
                                                           Ptr<const uint8_t> allowed, Ptr<float> largest, I32 rows,
                                                           I32 columns, F32 inverse) {
  auto row = program_id(0);
  auto Y = make_view(y, {rows, columns}, {columns, 1});
  auto D = make_view(dy, {rows, columns}, {columns, 1});
  auto A = make_view(allowed, {rows, columns}, {columns, 1});
  Tile total = zeros({c.B}, f32);
  for (auto at : range(0, columns, c.B))
    total += cast(Y.load({row, at}, {c.B}), f32) * cast(D.load({row, at}, {c.B}), f32);
  auto dot_product = sum(total);
  Tile most = full({}, 0.f, f32);
  for (auto at : range(0, columns, c.B)) {
    auto x = cast(Y.load({row, at}, {c.B}), f32) * (cast(D.load({row, at}, {c.B}), f32) - dot_product) * inverse;
    x = where(A.load({row, at}, {c.B}) != 0, x, 0.f);
    D.store({row, at}, cast(x, f16));
    most = max(most, max(abs(x)));
  }
  store(largest + row, most);
}).grid([](const LongRowCfg&, auto, auto, auto, auto, int rows, auto...) { return Grid{rows}; });
Register r3("long_softmax_bwd", [](Env& e) {
  LongRowCfg c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int M = e.big ? 4096 : 7, N = e.big ? 32768 : 117;
  auto y = random<half>(e, size_t(M) * N, 0, .01), dy = random<half>(e, size_t(M) * N);
  auto allowed = integers<uint8_t>(e, size_t(M) * N, 0, 3);
  auto largest = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 9e-6 * M * double(N);
  j.inTurn = true;
  j.add(long_softmax_bwd, c, y.p, dy.p, allowed.p, largest.p, M, N, 2.f);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(M) * N), most(M);
    for (int m = 0; m < M; ++m) {
      double s = 0;
      for (int n = 0; n < N; ++n) s += y[size_t(m) * N + n] * dy[size_t(m) * N + n];
      for (int n = 0; n < N; ++n) {
        const size_t i = size_t(m) * N + n;
        want[i] = allowed.at(i) ? y[i] * (dy[i] - s) * 2 : 0;
        most[m] = std::max(most[m], std::abs(want[i]));
      }
    }
    if (auto wrong = agree(largest.now(), most, 1e-6, 1e-4); !wrong.empty()) return "largest: " + wrong;
    return agree(dy.now(), want, 1e-5, 1e-3);
  };
  return j;
});

// --- gradients of a low-rank adapter y = (x A) B: dB = (x A)^T dy, dA = x^T (dy B^T); a program for a block of
// columns of x and one for a block of columns of dy walk over all tokens
struct LoraGradCfg {
  int BT = 128, BD = 64, R = 16;
};
auto lora_bwd = kernel("user_lora_bwd", [](const LoraGradCfg& c, Ptr<const half> x, Ptr<const half> dy,
                                           Ptr<const half> xa, Ptr<const half> g, Ptr<float> dA, Ptr<float> dB, I32 T,
                                           I32 D, I32 O, F32 scale) {
  // x [T, D], dy [T, O], xa = x A [T, R], g = dy B^T [T, R], dA [D, R], dB [R, O]
  auto XA = make_view(xa, {T, c.R}, {c.R, 1});
  auto G = make_view(g, {T, c.R}, {c.R, 1});
  auto at = program_id(0) * c.BD;
  if_(program_id(1) == 0,
      [&] {
        auto X = make_view(x, {T, D}, {D, 1});
        Tile acc = zeros({c.BD, c.R}, f32);
        for (auto t : range(0, T, c.BT)) acc += dot(trans(X.load({t, at}, {c.BT, c.BD})), G.load({t, 0}, {c.BT, c.R}));
        make_view(dA, {D, c.R}, {c.R, 1}).store({at, 0}, acc * scale);
      },
      [&] {
        auto Y = make_view(dy, {T, O}, {O, 1});
        Tile acc = zeros({c.R, c.BD}, f32);
        for (auto t : range(0, T, c.BT)) acc += dot(trans(XA.load({t, 0}, {c.BT, c.R})), Y.load({t, at}, {c.BT, c.BD}));
        make_view(dB, {c.R, O}, {O, 1}).store({0, at}, acc * scale);
      });
}).grid([](const LoraGradCfg& c, auto, auto, auto, auto, auto, auto, int, int D, int O, auto...) {
  return Grid{cdiv(std::max(D, O), c.BD), 2};
});
Register r4("lora_bwd", [](Env& e) {
  LoraGradCfg c;
  if (!e.big) c.BT = 32, c.BD = 16;
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD);
  const int T = e.big ? 16384 : 90, D = e.big ? 8192 : 40, O = e.big ? 8192 : 56, R = c.R;
  auto x = random<half>(e, size_t(T) * D), dy = random<half>(e, size_t(T) * O), xa = random<half>(e, size_t(T) * R),
       g = random<half>(e, size_t(T) * R);
  auto dA = constant<float>(e, size_t(D) * R, NAN), dB = constant<float>(e, size_t(R) * O, NAN);
  Job j;
  j.mbytes = 2e-6 * T * (double(D) + O);
  j.add(lora_bwd, c, x.p, dy.p, xa.p, g.p, dA.p, dB.p, T, D, O, .5f);
  j.check = [=]() -> std::string {
    auto half_of = [](double s, int, int) { return s / 2; };
    auto a = product(D, R, T, [&](int d, int t) { return x[size_t(t) * D + d]; }, matrix(g, R), half_of);
    auto b = product(R, O, T, [&](int r, int t) { return xa[size_t(t) * R + r]; }, matrix(dy, O), half_of);
    if (auto wrong = agree(dA.now(), a, 1e-4, 1e-4); !wrong.empty()) return "dA: " + wrong;
    return agree(dB.now(), b, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace first_views
}  // namespace users
