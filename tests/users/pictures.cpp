// pictures.cpp - more of vision: kernels of every pixel's own, similarity of structure, depthwise windows with a norm of
// their channels, boxes that fade beside better ones.
#include "tests/users/use.h"
namespace users {
namespace pictures {

// --- involution: every pixel has its own 7 x 7 weights for a group of channels; channels last
struct OwnCfg {
  int BX = 64, C = 16, K = 7, warps = 4;
};
auto involution =
    kernel("user_involution", [](const OwnCfg& c, Tensor<const half, 4> X, Tensor<const half, 5> W, Tensor<half, 4> Y) {
      // X, Y [N, H, W, C]; W [N, H, W, G, K K]
      num_warps(c.warps);
      auto x = program_id(0) * c.BX, y = program_id(1);
      const int groups = 1;
      (void)groups;
      auto g = program_id(2) % W.dim(3), n = program_id(2) / W.dim(3);
      Tile acc = zeros({c.BX, c.C}, f32);
      for (auto v : range(c.K))
        for (auto u : range(c.K)) {
          auto w = W.load({n, y, x, g, v * c.K + u}, {1, 1, c.BX, 1, 1});
          auto in = X.load({n, y + v - c.K / 2, x + u - c.K / 2, g * c.C}, {1, 1, c.BX, c.C});
          acc += cast(reshape(in, {c.BX, c.C}), f32) * cast(reshape(w, {c.BX, 1}), f32);
        }
      Y.store({n, y, x, g * c.C}, reshape(cast(acc, f16), {1, 1, c.BX, c.C}));
    }).grid([](const OwnCfg& c, const auto& x, const auto& w, const auto&) {
      return Grid{cdiv(x.shape[2], c.BX), x.shape[1], x.shape[0] * w.shape[3]};
    });
Register r1("involution", [](Env& e) {
  OwnCfg c;
  if (!e.big) c = {8, 8, 3, 1};
  c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 16 : 2, H = e.big ? 112 : 5, W = e.big ? 112 : 13, G = e.big ? 16 : 2, C = G * c.C,
            KK = c.K * c.K;
  auto x = random<half>(e, size_t(N) * H * W * C), w = random<half>(e, size_t(N) * H * W * G * KK);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 2e-6 * (2 * x.n + w.n);
  j.add(involution, c, x.view(N, H, W, C), w.view(N, H, W, G, KK), y.view(N, H, W, C));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int n = 0; n < N; ++n)
      for (int i = 0; i < H * W; ++i)
        for (int ch = 0; ch < C; ++ch)
          for (int t = 0; t < KK; ++t) {
            const int yy = i / W + t / c.K - c.K / 2, xx = i % W + t % c.K - c.K / 2;
            if (yy < 0 || xx < 0 || yy >= H || xx >= W) continue;
            want[(size_t(n) * H * W + i) * C + ch] +=
                x[(size_t(n) * H * W + yy * W + xx) * C + ch] * w[((size_t(n) * H * W + i) * G + ch / c.C) * KK + t];
          }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- similarity of structure (SSIM) of two pictures, 11 x 11 Gaussian windows: five sums along rows, then along
// columns through products with a band of weights; the mean per program
struct StructureCfg {
  int BY = 22, BX = 54, warps = 4;
};
auto ssim =
    kernel("user_ssim", [](const StructureCfg& c, Tensor<const uint8_t, 3> A, Tensor<const uint8_t, 3> B,
                           Ptr<float> sums) {
      // sums [programs]: of the values of whole windows that begin in a program's tile
      num_warps(c.warps);
      const int R = 11;
      double w[R], total = 0;
      for (int k = 0; k < R; ++k) total += w[k] = std::exp(-(k - 5) * (k - 5) / 4.5);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX, n = program_id(2);
      auto a = cast(A.load({n, y, x}, {c.BY + R - 1, c.BX + R - 1}), f32) / 255.f;
      auto b = cast(B.load({n, y, x}, {c.BY + R - 1, c.BX + R - 1}), f32) / 255.f;
      auto blurred = [&](const Tile& t) {
        Tile rows = zeros({c.BY + R - 1, c.BX}, f32), out = zeros({c.BY, c.BX}, f32);
        for (int k = 0; k < R; ++k) rows += float(w[k] / total) * extract(t, {0, k}, {c.BY + R - 1, c.BX});
        for (int k = 0; k < R; ++k) out += float(w[k] / total) * extract(rows, {k, 0}, {c.BY, c.BX});
        return out;
      };
      auto ma = blurred(a), mb = blurred(b), aa = blurred(a * a) - ma * ma, bb = blurred(b * b) - mb * mb,
           ab = blurred(a * b) - ma * mb;
      auto s = (2.f * ma * mb + 1e-4f) * (2.f * ab + 9e-4f) / ((ma * ma + mb * mb + 1e-4f) * (aa + bb + 9e-4f));
      auto whole = ((y + arange(0, c.BY)).col() + R <= A.dim(1)) & ((x + arange(0, c.BX)).row() + R <= A.dim(2));
      store(sums + (n * num_programs(1) + program_id(1)) * num_programs(0) + program_id(0), sum(where(whole, s, 0.f)));
    }).grid([](const StructureCfg& c, const auto& a, const auto&, auto) {
      return Grid{cdiv(a.shape[2] - 10, c.BX), cdiv(a.shape[1] - 10, c.BY), a.shape[0]};
    });
Register r2("ssim", [](Env& e) {
  StructureCfg c;
  if (!e.big) c = {6, 22, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 24 : 2, H = e.big ? 1080 : 27, W = e.big ? 1920 : 45;
  auto a = integers<uint8_t>(e, size_t(N) * H * W, 0, 256), b = integers<uint8_t>(e, a.n, 0, 256);
  const int programs = N * cdiv(H - 10, c.BY) * cdiv(W - 10, c.BX);
  auto sums = constant<float>(e, programs, NAN);
  Job j;
  j.mbytes = 2e-6 * a.n;
  j.add(ssim, c, a.view(N, H, W), b.view(N, H, W), sums.p);
  j.check = [=]() -> std::string {
    double want = 0, got = 0, w[11], total = 0;
    for (int k = 0; k < 11; ++k) total += w[k] = std::exp(-(k - 5) * (k - 5) / 4.5);
    for (int n = 0; n < N; ++n)
      for (int y = 0; y + 11 <= H; ++y)
        for (int x = 0; x + 11 <= W; ++x) {
          double m[5] = {};
          for (int v = 0; v < 11; ++v)
            for (int u = 0; u < 11; ++u) {
              const size_t at = (size_t(n) * H + y + v) * W + x + u;
              const double p = a[at] / 255, q = b[at] / 255, g = w[u] * w[v] / total / total;
              m[0] += g * p, m[1] += g * q, m[2] += g * p * p, m[3] += g * q * q, m[4] += g * p * q;
            }
          const double aa = m[2] - m[0] * m[0], bb = m[3] - m[1] * m[1], ab = m[4] - m[0] * m[1];
          want += (2 * m[0] * m[1] + 1e-4) * (2 * ab + 9e-4) / ((m[0] * m[0] + m[1] * m[1] + 1e-4) * (aa + bb + 9e-4));
        }
    for (float s : sums.now()) got += s;
    return std::abs(got - want) < 1e-3 * std::abs(want) + .1
               ? ""
               : "sum " + std::to_string(got) + " " + std::to_string(want);
  };
  return j;
});

// --- the first half of a ConvNeXt block: 7 x 7 depthwise, then a norm over the channels of every pixel; channels last
struct NextCfg {
  int BX = 16, C = 96, warps = 1;
};
auto convnext = kernel("user_convnext", [](const NextCfg& c, Tensor<const bfloat16, 4> X, Ptr<const float> W,
                                           Ptr<const float> bias, Ptr<const float> gain, Ptr<const float> shift,
                                           Tensor<bfloat16, 4> Y) {
                  // X, Y [N, H, W, C]; W [49, C]
                  num_warps(c.warps);
                  auto x = program_id(0) * c.BX, y = program_id(1), n = program_id(2);
                  auto ch = arange(0, c.C);
                  Tile acc = zeros({c.BX, c.C}, f32) + load(bias + ch).row();
                  for (auto v : range(7))
                    for (int u = 0; u < 7; ++u)
                      acc += cast(reshape(X.load({n, y + v - 3, x + u - 3, 0}, {1, 1, c.BX, c.C}), {c.BX, c.C}), f32) *
                             load(W + ((v * 7 + u) * c.C + ch)).row();
                  auto mean = sum(acc, axis(1)) / float(c.C);
                  auto apart = acc - mean;
                  auto inverse = rsqrt(sum(apart * apart, axis(1)) / float(c.C) + 1e-6f);
                  auto z = apart * inverse * load(gain + ch).row() + load(shift + ch).row();
                  Y.store({n, y, x, 0}, reshape(cast(z, bf16), {1, 1, c.BX, c.C}));
                }).grid([](const NextCfg& c, const auto& x, auto...) {
  return Grid{cdiv(x.shape[2], c.BX), x.shape[1], x.shape[0]};
});
Register r3("convnext", [](Env& e) {
  NextCfg c;
  if (!e.big) c = {4, 24, 1};
  c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 64 : 2, H = e.big ? 56 : 9, W = e.big ? 56 : 11, C = c.C;
  auto x = random<bfloat16>(e, size_t(N) * H * W * C);
  auto w = random<float>(e, 49 * C), b = random<float>(e, C), g = random<float>(e, C), s = random<float>(e, C);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.gflop = 98e-9 * x.n;
  j.add(convnext, c, x.view(N, H, W, C), w.p, b.p, g.p, s.p, y.view(N, H, W, C));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int p = 0; p < N * H * W; ++p) {
      std::vector<double> a(C);
      double mean = 0, var = 0;
      for (int ch = 0; ch < C; ++ch) {
        a[ch] = b[ch];
        for (int t = 0; t < 49; ++t) {
          const int yy = p / W % H + t / 7 - 3, xx = p % W + t % 7 - 3;
          if (yy >= 0 && xx >= 0 && yy < H && xx < W)
            a[ch] += x[(size_t(p / (H * W)) * H * W + yy * W + xx) * C + ch] * w[t * C + ch];
        }
        mean += a[ch] / C;
      }
      for (double v : a) var += (v - mean) * (v - mean) / C;
      for (int ch = 0; ch < C; ++ch) want[size_t(p) * C + ch] = (a[ch] - mean) / std::sqrt(var + 1e-6) * g[ch] + s[ch];
    }
    return agree(y.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- boxes fade beside better ones (soft NMS, Gaussian): the best one left is taken, the others lose by how much they
// overlap it; a program an image and class
struct FadeCfg {
  int B = 512, warps = 2;
};
auto soft_nms =
    kernel("user_soft_nms", [](const FadeCfg& c, Tensor<const float, 3> boxes, Tensor<const float, 2> scores,
                               Tensor<int32_t, 2> order, Tensor<float, 2> kept, I32 n, F32 sigma, F32 least) {
      // boxes [P, n, 4] (x0, y0, x1, y1); order, kept [P, n]: -1 and 0 behind the last one
      num_warps(c.warps);
      auto p = program_id(0);
      auto i = arange(0, c.B);
      auto corner = [&](int k) { return squeeze(boxes.load({p, 0, k}, {c.B, 1}), 1); };
      auto x0 = corner(0), y0 = corner(1), x1 = corner(2), y1 = corner(3);
      auto area = (x1 - x0) * (y1 - y0);
      Tile s = where(i < n, squeeze(scores.load({p, 0}, {1, c.B}), 0), -1.f);
      Tile place = full({c.B}, -1, i32), value = zeros({c.B}, f32);
      for (auto k : range(n)) {
        auto [best, at] = max_with_index(s, axis(0));
        auto top = to_scalar(best), b = to_scalar(at);
        break_if(top < least);
        place = where(i == k, b, place), value = where(i == k, top, value);
        auto of = [&](const Tile& t) { return sum(where(i == b, t, 0.f)); };
        auto w = max(min(x1, of(x1)) - max(x0, of(x0)), 0.f), h = max(min(y1, of(y1)) - max(y0, of(y0)), 0.f);
        auto overlap = w * h / (area + of(area) - w * h);
        s = where(i == b, -1.f, s * exp(-overlap * overlap / sigma));
      }
      order.store({p, 0}, reshape(place, {1, c.B}));
      kept.store({p, 0}, reshape(value, {1, c.B}));
    }).grid([](const FadeCfg&, const auto& b, auto...) { return Grid{b.shape[0]}; });
Register r4("soft_nms", [](Env& e) {
  FadeCfg c;
  if (!e.big) c = {40, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 1280 : 3, n = e.big ? 500 : 37;
  auto boxes = filled<float>(e, size_t(P) * n * 4, [&, x = 0., y = 0.](size_t k) mutable {
    switch (k % 4) {
      case 0:
        return float(x = e.uniform() * 60);
      case 1:
        return float(y = e.uniform() * 60);
      case 2:
        return float(x + 5 + e.uniform() * 30);
      default:
        return float(y + 5 + e.uniform() * 30);
    }
  });
  auto scores = random<float>(e, size_t(P) * n, 0, 1);
  auto order = constant<int32_t>(e, scores.n, -2);
  auto kept = constant<float>(e, scores.n, NAN);
  Job j;
  j.gflop = 20e-9 * P * double(n) * n;
  j.add(soft_nms, c, boxes.view(P, n, 4), scores.view(P, n), order.view(P, n), kept.view(P, n), n, .5f, .05f);
  j.check = [=]() -> std::string {
    const auto go = order.now();
    std::vector<double> want(scores.n);
    for (int p = 0; p < P; ++p) {
      std::vector<double> s(n);
      for (int i = 0; i < n; ++i) s[i] = scores[p * n + i];
      for (int k = 0; k < n; ++k) {
        const int b = int(std::max_element(s.begin(), s.end()) - s.begin());
        if (s[b] < .05) break;
        if (std::abs(s[b] - .05) < 1e-6) return "";
        want[p * n + k] = s[b];
        if (go[p * n + k] != b && std::abs(s[go[p * n + k]] - s[b]) > 1e-5) return "order " + std::to_string(p * n + k);
        s[b] = -1;
        for (int i = 0; i < n; ++i) {
          auto at = [&](int q, int d) { return boxes[(size_t(p) * n + q) * 4 + d]; };
          const double w = std::max(std::min(at(i, 2), at(b, 2)) - std::max(at(i, 0), at(b, 0)), 0.);
          const double h = std::max(std::min(at(i, 3), at(b, 3)) - std::max(at(i, 1), at(b, 1)), 0.);
          const double o =
              w * h /
              ((at(i, 2) - at(i, 0)) * (at(i, 3) - at(i, 1)) + (at(b, 2) - at(b, 0)) * (at(b, 3) - at(b, 1)) - w * h);
          if (i != b && s[i] >= 0) s[i] *= std::exp(-o * o / .5);
        }
      }
    }
    return agree(kept.now(), want, 1e-4, 1e-3);
  };
  return j;
});

}  // namespace pictures
}  // namespace users
