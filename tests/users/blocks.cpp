// blocks.cpp - parts of networks whose products follow each other in one program: a feed-forward layer without its
// hidden activations, the outer product mean of pair representations, spectra of overlapping frames through a mel
// filter, attention with the decomposed positions of an image encoder.
#include "tests/users/use.h"
namespace users {
namespace blocks {

constexpr float kLog2e = 1.4426950408889634f;

// --- a gated feed-forward layer: Y = (silu(X G) * (X U)) W, hidden columns in chunks that never leave the program
struct FeedForwardCfg {
  int BM = 128, D = 256, BH = 64, warps = 8, stages = 2;
};
auto feed_forward =
    kernel("user_feed_forward", [](const FeedForwardCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> G,
                                   Tensor<const bfloat16, 2> U, Tensor<const bfloat16, 2> W, Tensor<bfloat16, 2> Y) {
      // X, Y [T, D], G, U [D, hidden], W [hidden, D]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto x = X.load({m, 0}, {c.BM, c.D});
      Tile y = zeros({c.BM, c.D}, f32);
      for (auto h : range(0, G.dim(1), c.BH, {.stages = c.stages})) {
        auto g = dot(x, G.load({0, h}, {c.D, c.BH})), u = dot(x, U.load({0, h}, {c.D, c.BH}));
        y = dot(cast(silu(g) * u, bf16), W.load({h, 0}, {c.BH, c.D}), y);
      }
      Y.store({m, 0}, cast(y, bf16));
    }).grid([](const FeedForwardCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r1("feed_forward", [](Env& e) {
  FeedForwardCfg c;
  if (!e.big) c = {32, 32, 16, 4, 2};
  c.BM = e.field("BM", c.BM), c.BH = e.field("BH", c.BH), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  const int T = e.big ? 65536 : 75, D = c.D, H = e.big ? 1024 : 56;
  auto x = random<bfloat16>(e, size_t(T) * D), g = random<bfloat16>(e, size_t(D) * H, -.1, .1);
  auto u = random<bfloat16>(e, size_t(D) * H, -.1, .1), w = random<bfloat16>(e, size_t(H) * D);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.gflop = 6e-9 * T * double(D) * H;
  j.add(feed_forward, c, x.view(T, D), g.view(D, H), u.view(D, H), w.view(H, D), y.view(T, D));
  j.check = [=] {
    const auto a = product(T, H, D, matrix(x, D), matrix(g, H)), b = product(T, H, D, matrix(x, D), matrix(u, H));
    return agree(y.now(),
                 product(
                     T, D, H,
                     [&](int t, int h) {
                       const double s = a[size_t(t) * H + h];
                       return s / (1 + std::exp(-s)) * b[size_t(t) * H + h];
                     },
                     matrix(w, D)),
                 2e-2, 1e-2);
  };
  return j;
});

// --- outer product mean: z[i, j] = W^T vec(1/S sum_s a[s, i] b[s, j]^T), residues i, j, sequences s, C channels
struct OuterCfg {
  int BI = 8, BJ = 4, C = 32, Z = 128, BS = 64, BK = 128, warps = 8, stages = 2;
};
auto outer_mean =
    kernel("user_outer_mean", [](const OuterCfg& c, Tensor<const bfloat16, 3> A, Tensor<const bfloat16, 3> B,
                                 Tensor<const bfloat16, 2> W, Tensor<bfloat16, 3> Out) {
      // A, B [S, R, C], W [C * C, Z], Out [R, R, Z]
      num_warps(c.warps);
      auto i = program_id(0) * c.BI, k = program_id(1) * c.BJ;
      Tile p = zeros({c.BI * c.C, c.BJ * c.C}, f32);
      for (auto s : range(0, A.dim(0), c.BS, {.stages = c.stages})) {
        auto a = reshape(A.load({s, i, 0}, {c.BS, c.BI, c.C}), {c.BS, c.BI * c.C});
        auto b = reshape(B.load({s, k, 0}, {c.BS, c.BJ, c.C}), {c.BS, c.BJ * c.C});
        p = dot(trans(a), b, p);
      }
      auto pairs =
          reshape(cast(permute(reshape(p, {c.BI, c.C, c.BJ, c.C}), {0, 2, 1, 3}), bf16), {c.BI * c.BJ, c.C * c.C});
      Tile z = zeros({c.BI * c.BJ, c.Z}, f32);
      for (int k = 0; k < c.C * c.C; k += c.BK)
        z = dot(extract(pairs, {0, k}, {c.BI * c.BJ, c.BK}), W.load({k, 0}, {c.BK, c.Z}), z);
      auto mean = z * (1.f / cast(A.dim(0), f32));
      Out.store({i, k, 0}, reshape(cast(mean, bf16), {c.BI, c.BJ, c.Z}));
    }).grid([](const OuterCfg& c, const auto& a, const auto&...) {
      return Grid{cdiv(a.shape[1], c.BI), cdiv(a.shape[1], c.BJ)};
    });
Register r2("outer_mean", [](Env& e) {
  OuterCfg c;
  if (!e.big) c = {8, 4, 32, 128, 64, 128, 8, 2};  // as large: its straight-line copies take turns
  c.BI = e.field("BI", c.BI), c.BJ = e.field("BJ", c.BJ), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  const int S = e.big ? 512 : 37, R = e.big ? 256 : 10, C = c.C, Z = c.Z;
  auto a = random<bfloat16>(e, size_t(S) * R * C), b = random<bfloat16>(e, size_t(S) * R * C);
  auto w = random<bfloat16>(e, size_t(C) * C * Z);
  auto out = constant<bfloat16>(e, size_t(R) * R * Z, NAN);
  Job j;
  j.gflop = 2e-9 * double(R) * R * C * C * (S + Z);
  j.add(outer_mean, c, a.view(S, R, C), b.view(S, R, C), w.view(C * C, Z), out.view(R, R, Z));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int i = 0; i < R; ++i)
      for (int k = 0; k < R; ++k)
        for (int x = 0; x < C; ++x)
          for (int y = 0; y < C; ++y) {
            double p = 0;
            for (int s = 0; s < S; ++s) p += a[(size_t(s) * R + i) * C + x] * b[(size_t(s) * R + k) * C + y];
            for (int z = 0; z < Z; ++z) want[(size_t(i) * R + k) * Z + z] += p / S * w[(size_t(x) * C + y) * Z + z];
          }
    return agree(out.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- log mel spectrogram: frames overlap, the window and the transform are one table of cosines and sines
struct MelCfg {
  int BF = 64, N = 400, hop = 160, bins = 208, mels = 80, BK = 80, warps = 8, stages = 2;
};
auto log_mel =
    kernel("user_log_mel", [](const MelCfg& c, Tensor<const float, 2> frames, Tensor<const float, 2> cosines,
                              Tensor<const float, 2> sines, Tensor<const float, 2> filters, Tensor<float, 2> out) {
      // frames [n, N], rows `hop` apart, cosines, sines [N, bins], filters [bins, mels], out [n, mels]
      num_warps(c.warps);
      auto f = program_id(0) * c.BF;
      Tile re = zeros({c.BF, c.bins}, f32), im = zeros({c.BF, c.bins}, f32);
      for (auto k : range(0, c.N, c.BK, {.stages = c.stages})) {
        auto x = frames.load({f, k}, {c.BF, c.BK});
        re = dot(x, cosines.load({k, 0}, {c.BK, c.bins}), re, Prec::tf32);
        im = dot(x, sines.load({k, 0}, {c.BK, c.bins}), im, Prec::tf32);
      }
      auto mel = dot(re * re + im * im, filters.load({0, 0}, {c.bins, c.mels}), Prec::tf32);
      out.store({f, 0}, log10(max(mel, 1e-10f)));
    }).grid([](const MelCfg& c, const auto& frames, const auto&...) { return Grid{cdiv(frames.shape[0], c.BF)}; });
Register r3("log_mel", [](Env& e) {
  MelCfg c;
  if (!e.big) c = {16, 48, 16, 32, 16, 16, 2, 2};
  c.BF = e.field("BF", c.BF), c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  const int n = e.big ? 96000 : 37, N = c.N, hop = c.hop, bins = c.bins, mels = c.mels;
  auto audio = random<float>(e, size_t(n) * hop + N);
  auto wave = [&](double (*f)(double)) {
    return filled<float>(e, size_t(N) * bins, [&](size_t i) {
      const double k = double(i / bins), bin = double(i % bins), pi = 3.141592653589793;
      return float(bin > N / 2 ? 0 : (.5 - .5 * std::cos(2 * pi * k / N)) * f(2 * pi * k * bin / N));
    });
  };
  auto c0 = wave(std::cos), s0 = wave(std::sin);
  auto filters = random<float>(e, size_t(bins) * mels, 0, 1);
  auto out = constant<float>(e, size_t(n) * mels, NAN);
  Job j;
  j.gflop = 2e-9 * n * double(bins) * (2 * N + mels);
  TensorView<float, 2> overlapping(audio.p, {n, N}, {hop, 1});
  j.add(log_mel, c, overlapping, c0.view(N, bins), s0.view(N, bins), filters.view(bins, mels), out.view(n, mels));
  j.check = [=] {
    auto at = [&](int f, int k) { return audio[size_t(f) * hop + k]; };
    const auto re = product(n, bins, N, at, matrix(c0, bins)), im = product(n, bins, N, at, matrix(s0, bins));
    return agree(out.now(),
                 product(
                     n, mels, bins,
                     [&](int f, int b) {
                       const size_t i = size_t(f) * bins + b;
                       return re[i] * re[i] + im[i] * im[i];
                     },
                     matrix(filters, mels), [](double s, int, int) { return std::log10(std::max(s, 1e-10)); }),
                 4e-3, 2e-3);
  };
  return j;
});

// --- attention over an image (SAM): a query's bias for a pixel is a number of the pixel's row and one of its column
struct PixelsCfg {
  int BM = 128, W = 64, D = 64, warps = 8, stages = 2;
};
auto pixel_attention =
    kernel("user_pixel_attention", [](const PixelsCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                      Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> rows,
                                      Tensor<const bfloat16, 3> columns, Tensor<bfloat16, 3> O, F32 scale) {
      // Q, K, V, O [heads, H W, D]; rows [heads, H W, H] and columns [heads, H W, W]: biases of a query by row and
      // column
      num_warps(c.warps);
      auto h = program_id(1), m = program_id(0) * c.BM;
      auto q = squeeze(Q.load({h, m, 0}, {1, c.BM, c.D}), 0);
      auto across = cast(squeeze(columns.load({h, m, 0}, {1, c.BM, c.W}), 0), f32) * kLog2e;
      Tile acc = zeros({c.BM, c.D}, f32), l = zeros({c.BM, 1}, f32), top = full({c.BM, 1}, -INFINITY, f32);
      for (auto y : range(0, rows.dim(2), {.stages = c.stages})) {
        auto k = squeeze(K.load({h, y * c.W, 0}, {1, c.W, c.D}), 0),
             v = squeeze(V.load({h, y * c.W, 0}, {1, c.W, c.D}), 0);
        auto down = cast(squeeze(rows.load({h, m, y}, {1, c.BM, 1}), 0), f32) * kLog2e;
        auto s = dot(q, trans(k)) * (scale * kLog2e) + across + down;
        auto next = max(top, max(s, axis(1)));
        auto p = exp2(s - next), shrink = exp2(top - next);
        l = l * shrink + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * shrink);
        top = next;
      }
      O.store({h, m, 0}, expand_dims(cast(acc / l, bf16), 0));
    }).grid([](const PixelsCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r4("pixel_attention", [](Env& e) {
  PixelsCfg c;
  if (!e.big) c = {32, 16, 16, 2, 2};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int heads = e.big ? 48 : 2, H = e.big ? 64 : 5, W = c.W, D = c.D, S = H * W;
  const size_t n = size_t(heads) * S;
  auto q = random<bfloat16>(e, n * D), k = random<bfloat16>(e, n * D), v = random<bfloat16>(e, n * D);
  auto rows = random<bfloat16>(e, n * H), columns = random<bfloat16>(e, n * W);
  auto o = constant<bfloat16>(e, n * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * double(n) * S * D;
  j.add(pixel_attention, c, q.view(heads, S, D), k.view(heads, S, D), v.view(heads, S, D), rows.view(heads, S, H),
        columns.view(heads, S, W), o.view(heads, S, D), scale);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (size_t r = 0; r < n; ++r) {
      const size_t first = r / S * S;
      double all = 0;
      for (int i = 0; i < S; ++i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[r * D + d] * k[(first + i) * D + d];
        const double p = std::exp(s * scale + rows[r * H + i / W] + columns[r * W + i % W]);
        all += p;
        for (int d = 0; d < D; ++d) want[r * D + d] += p * v[(first + i) * D + d];
      }
      for (int d = 0; d < D; ++d) want[r * D + d] /= all;
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace blocks
}  // namespace users
