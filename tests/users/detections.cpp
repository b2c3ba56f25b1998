// detections.cpp - pictures and clouds of points: attention at sampled places, regions of interest, farthest points,
// matching of stereo pairs, upsampling by a transposed convolution.
#include "tests/users/use.h"
namespace users {
namespace detections {

// --- attention at P sampled places of each of several levels (deformable detectors)
struct DeformCfg {
  int BQ = 32, D = 32, L = 4, P = 4, warps = 4;
};
auto deform = kernel("user_deform", [](const DeformCfg& c, Tensor<const half, 4> values, Ptr<const int32_t> sizes,
                                       Ptr<const int32_t> starts, Tensor<const float, 6> places,
                                       Tensor<const float, 5> weights, Tensor<half, 4> out) {
  // values [B, S, H, D], sizes [L, 2] (height, width), starts [L], places [B, Q, H, L, P, 2] (x, y in [0, 1]),
  // weights [B, Q, H, L, P], out [B, Q, H, D]
  num_warps(c.warps);
  auto q = program_id(0) * c.BQ + arange(0, c.BQ), h = program_id(1), b = program_id(2);
  auto Q = out.dim(1), live = q < Q;
  auto d = arange(0, c.D).row();
  Tile acc = zeros({c.BQ, c.D}, f32);
  auto first = ((cast(b, i64) * Q + q) * out.dim(2) + h) * c.L;
  for (auto l : range(0, c.L)) {
    auto height = load(sizes + 2 * l), width = load(sizes + 2 * l + 1), start = load(starts + l);
    for (auto p : range(0, c.P)) {
      auto at = (first + l) * c.P + p;
      auto x = load(places.ptr() + at * 2, {.mask = live}) * cast(width, f32) - .5f;
      auto y = load(places.ptr() + at * 2 + 1, {.mask = live}) * cast(height, f32) - .5f;
      auto w = load(weights.ptr() + at, {.mask = live});
      auto x0 = floor(x), y0 = floor(y);
      auto fx = x - x0, fy = y - y0;
      auto ix = cast(x0, i32), iy = cast(y0, i32);
      for (int dy = 0; dy < 2; ++dy)
        for (int dx = 0; dx < 2; ++dx) {
          auto px = ix + dx, py = iy + dy;
          auto in = live & (px >= 0) & (px < width) & (py >= 0) & (py < height);
          auto part = (dx ? fx : 1.f - fx) * (dy ? fy : 1.f - fy) * w;
          auto row = (cast(b, i64) * values.dim(1) + start + py * width + px) * values.dim(2) + h;
          auto v = load(values.ptr() + (row * c.D).col() + d, {.mask = in.col()});
          acc = acc + part.col() * cast(v, f32);
        }
    }
  }
  store(out.ptr() + (((cast(b, i64) * Q + q) * out.dim(2) + h) * c.D).col() + d, cast(acc, f16), {.mask = live.col()});
}).grid([](const DeformCfg& c, const auto& v, const auto*, const auto*, const auto& places, const auto&...) {
  return Grid{cdiv(places.shape[1], c.BQ), v.shape[2], v.shape[0]};
});
Register r1("deform", [](Env& e) {
  DeformCfg c;
  if (!e.big) c = {16, 16, 2, 3, 2};
  c.BQ = e.field("BQ", c.BQ), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 2, Q = e.big ? 13294 : 21, H = e.big ? 8 : 2, D = c.D, L = c.L, P = c.P;
  std::vector<int32_t> sizes, starts;
  int S = 0;
  for (int l = 0; l < L; ++l) {
    const int h = e.big ? 100 >> l : 7 - 3 * l, w = e.big ? 100 >> l : 5 - l;
    sizes.push_back(h), sizes.push_back(w), starts.push_back(S), S += h * w;
  }
  auto values = random<half>(e, size_t(B) * S * H * D);
  auto places = random<float>(e, size_t(B) * Q * H * L * P * 2, -.1, 1.1);
  auto weights = random<float>(e, places.n / 2, 0, 1);
  auto si = repeated(e, sizes.size(), sizes), st = repeated(e, starts.size(), starts);
  auto out = constant<half>(e, size_t(B) * Q * H * D, NAN);
  Job j;
  j.mbytes = 1e-6 * (out.n * 2. + weights.n * 12. + values.n * 2);
  j.add(deform, c, values.view(B, S, H, D), si.p, st.p, places.view(B, Q, H, L, P, 2), weights.view(B, Q, H, L, P),
        out.view(B, Q, H, D));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (size_t bq = 0; bq < size_t(B) * Q; ++bq)
      for (int h = 0; h < H; ++h)
        for (int l = 0; l < L; ++l)
          for (int p = 0; p < P; ++p) {
            const size_t at = ((bq * H + h) * L + l) * P + p;
            const int hh = sizes[2 * l], ww = sizes[2 * l + 1];
            const float x = float(places[2 * at]) * float(ww) - .5f, y = float(places[2 * at + 1]) * float(hh) - .5f;
            const int x0 = int(std::floor(x)), y0 = int(std::floor(y));
            for (int dy = 0; dy < 2; ++dy)
              for (int dx = 0; dx < 2; ++dx) {
                const int px = x0 + dx, py = y0 + dy;
                if (px < 0 || px >= ww || py < 0 || py >= hh) continue;
                const double w = (1 - std::abs(x - px)) * (1 - std::abs(y - py)) * weights[at];
                for (int d = 0; d < D; ++d)
                  want[(bq * H + h) * D + d] += w * values[((bq / Q * S + starts[l] + py * ww + px) * H + h) * D + d];
              }
          }
    return agree(out.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- regions of interest: 7 x 7 bins of every box, four samples each, all channels
struct RegionCfg {
  int BC = 32, bins = 7, warps = 4;
};
auto regions = kernel("user_regions", [](const RegionCfg& c, Tensor<const float, 4> X, Tensor<const float, 2> boxes,
                                         Tensor<float, 3> out, F32 scale) {
  // X [B, C, H, W], boxes [N, 5] (batch, x1, y1, x2, y2), out [N, C, bins * bins]
  num_warps(c.warps);
  auto n = program_id(1), ch = program_id(0) * c.BC + arange(0, c.BC);
  auto b = cast(boxes.load({n, 0}), i32);
  auto x1 = boxes.load({n, 1}) * scale - .5f, y1 = boxes.load({n, 2}) * scale - .5f;
  auto bw = (boxes.load({n, 3}) * scale - .5f - x1) / float(c.bins);
  auto bh = (boxes.load({n, 4}) * scale - .5f - y1) / float(c.bins);
  auto bin = arange(0, c.bins * c.bins);
  auto by = cast(bin / c.bins, f32), bx = cast(bin % c.bins, f32);
  auto H = X.dim(2), W = X.dim(3);
  auto plane = X.ptr() + ((cast(b, i64) * X.dim(1) + ch) * H * W).col();
  auto live = (ch < X.dim(1)).col();
  Tile acc = zeros({c.BC, c.bins * c.bins}, f32);
  for (int sy = 0; sy < 2; ++sy)
    for (int sx = 0; sx < 2; ++sx) {
      auto y = y1 + (by + (sy + .5f) / 2) * bh, x = x1 + (bx + (sx + .5f) / 2) * bw;
      auto in = (y >= -1.f) & (y <= cast(H, f32)) & (x >= -1.f) & (x <= cast(W, f32));
      y = max(y, 0.f), x = max(x, 0.f);
      auto y0 = min(cast(y, i32), H - 1), x0 = min(cast(x, i32), W - 1);
      auto y2 = min(y0 + 1, H - 1), x2 = min(x0 + 1, W - 1);
      auto fy = where(y0 == H - 1, 0.f, y - cast(y0, f32)), fx = where(x0 == W - 1, 0.f, x - cast(x0, f32));
      auto at = [&](Tile r, Tile q) { return load(plane + (r * W + q).row(), {.mask = live & in.row()}); };
      acc += at(y0, x0) * ((1.f - fy) * (1.f - fx)).row() + at(y0, x2) * ((1.f - fy) * fx).row() +
             at(y2, x0) * (fy * (1.f - fx)).row() + at(y2, x2) * (fy * fx).row();
    }
  out.store({n, program_id(0) * c.BC, 0}, acc * .25f);
}).grid([](const RegionCfg& c, const auto& x, const auto& boxes, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BC), boxes.shape[0]};
});
Register r2("regions", [](Env& e) {
  RegionCfg c;
  if (!e.big) c = {4, 3, 2};
  c.BC = e.field("BC", c.BC), c.warps = e.field("warps", c.warps);
  const int B = 2, C = e.big ? 256 : 7, H = e.big ? 200 : 13, W = e.big ? 272 : 17, N = e.big ? 1000 : 6, n = c.bins;
  auto x = random<float>(e, size_t(B) * C * H * W);
  auto boxes = filled<float>(e, size_t(N) * 5, [&](size_t i) {
    const double u = e.uniform();
    return float(i % 5 == 0 ? int(u * B) : i % 5 < 3 ? u * H * 2 - 6 : H * 2 + u * H * 2);
  });
  auto out = constant<float>(e, size_t(N) * C * n * n, NAN);
  Job j;
  j.mbytes = 4e-6 * (double(out.n) + x.n);
  j.add(regions, c, x.view(B, C, H, W), boxes.view(N, 5), out.view(N, C, n * n), .25f);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int k = 0; k < N; ++k)
      for (int bin = 0; bin < n * n; ++bin)
        for (int s = 0; s < 4; ++s) {
          auto edge = [&](int i) { return boxes[k * 5 + i] * .25 - .5; };
          double y = edge(2) + (bin / n + (s / 2 + .5) / 2) * (edge(4) - edge(2)) / n;
          double xx = edge(1) + (bin % n + (s % 2 + .5) / 2) * (edge(3) - edge(1)) / n;
          if (y < -1 || y > H || xx < -1 || xx > W) continue;
          y = std::min(std::max(y, 0.), H - 1.), xx = std::min(std::max(xx, 0.), W - 1.);
          const int y0 = int(y), x0 = int(xx), y1 = std::min(y0 + 1, H - 1), x1 = std::min(x0 + 1, W - 1);
          const double fy = y - y0, fx = xx - x0;
          for (int ch = 0; ch < C; ++ch) {
            auto at = [&](int r, int q) { return x[((size_t(boxes[k * 5]) * C + ch) * H + r) * W + q]; };
            want[(size_t(k) * C + ch) * n * n + bin] +=
                .25 * (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x1)) +
                .25 * fy * ((1 - fx) * at(y1, x0) + fx * at(y1, x1));
          }
        }
    return agree(out.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- farthest points: M of N points of a cloud, each as far as can be from those before it
struct FarthestCfg {
  int N = 4096, warps = 8;
};
auto farthest = kernel("user_farthest", [](const FarthestCfg& c, Tensor<const float, 3> points,
                                           Tensor<int32_t, 2> chosen) {
  // points [B, N, 3], chosen [B, M]
  num_warps(c.warps);
  auto b = program_id(0), n = points.dim(1);
  auto i = arange(0, c.N);
  auto at = [&](int axis_) {
    return load(points.ptr() + b * points.stride(0) + i * points.stride(1) + axis_, {.mask = i < n});
  };
  auto x = at(0), y = at(1), z = at(2);
  Tile distance = where(i < n, 1e30f, -1.f), last = 0;
  chosen.store({b, 0}, full({1}, 0, i32));
  for (auto m : range(1, chosen.dim(1))) {
    auto dx = x - points.load({b, last, 0}), dy = y - points.load({b, last, 1}), dz = z - points.load({b, last, 2});
    distance = min(distance, dx * dx + dy * dy + dz * dz);
    last = to_scalar(argmax(distance, axis(0)));
    chosen.store({b, m}, reshape(last, {1}));
  }
}).grid([](const FarthestCfg&, const auto& p, const auto&...) { return Grid{p.shape[0]}; });
Register r3("farthest", [](Env& e) {
  FarthestCfg c;
  if (!e.big) c = {128, 4};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 3, N = e.big ? 4096 : 101, M = e.big ? 1024 : 17;
  auto p = integers<float>(e, size_t(B) * N * 3, -100, 100);
  auto chosen = constant<int32_t>(e, size_t(B) * M, -7);
  Job j;
  j.mbytes = 1e-6 * B * (12. * N + 4 * M);
  j.add(farthest, c, p.view(B, N, 3), chosen.view(B, M));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> d(N, 1e30);
      int last = 0;
      for (int m = 0; m < M; ++m) {
        want.push_back(last);
        int best = 0;
        for (int i = 0; i < N; ++i) {
          double s = 0;
          for (int k = 0; k < 3; ++k)
            s += std::pow(p[(size_t(b) * N + i) * 3 + k] - p[(size_t(b) * N + last) * 3 + k], 2);
          d[i] = std::min(d[i], s);
          if (d[i] > d[best]) best = i;
        }
        last = best;
      }
    }
    return agree(chosen.now(), want, .5, 0);
  };
  return j;
});

// --- stereo: every pixel's neighbours as bits (census), then the shift whose bits differ least in 3 x 3 pixels
struct StereoCfg {
  int BY = 8, BX = 128, shifts = 64, warps = 4;
};
auto census = kernel("user_census", [](const StereoCfg& c, Tensor<const uint8_t, 2> X, Tensor<uint32_t, 2> bits) {
  num_warps(c.warps);
  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
  auto middle = X.load({y, x}, {c.BY, c.BX});
  Tile code = zeros({c.BY, c.BX}, u32);
  for (int dy = -2; dy <= 2; ++dy)
    for (int dx = -2; dx <= 2; ++dx)
      if (dx || dy) code = (code << 1) | cast(X.load({y + dy, x + dx}, {c.BY, c.BX}) < middle, u32);
  bits.store({y, x}, code);
}).grid([](const StereoCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
});
auto stereo = kernel("user_stereo", [](const StereoCfg& c, Tensor<const uint32_t, 2> left,
                                       Tensor<const uint32_t, 2> right, Tensor<uint8_t, 2> out) {
  num_warps(c.warps);
  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
  Tile best = full({c.BY, c.BX}, 1 << 20, i32), which = zeros({c.BY, c.BX}, i32);
  for (auto s : range(0, c.shifts)) {
    Tile cost = zeros({c.BY, c.BX}, u32);
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        cost += popcount(left.load({y + dy, x + dx}, {c.BY, c.BX}) ^ right.load({y + dy, x + dx - s}, {c.BY, c.BX}));
    auto less = cast(cost, i32) < best;
    best = where(less, cast(cost, i32), best);
    which = where(less, s, which);
  }
  out.store({y, x}, cast(which, u8));
}).grid([](const StereoCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
});
Register r4("stereo", [](Env& e) {
  StereoCfg c;
  if (!e.big) c = {4, 32, 7, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 1080 : 11, W = e.big ? 1920 : 45;
  auto l = integers<uint8_t>(e, size_t(H) * W, 0, 256), r = integers<uint8_t>(e, l.n, 0, 256);
  auto lb = constant<uint32_t>(e, l.n, 0), rb = constant<uint32_t>(e, l.n, 0);
  auto out = constant<uint8_t>(e, l.n, 77);
  Job j;
  j.mbytes = 9e-6 * H * W;
  j.add(census, c, l.view(H, W), lb.view(H, W));
  j.add(census, c, r.view(H, W), rb.view(H, W));
  j.add(stereo, c, lb.view(H, W), rb.view(H, W), out.view(H, W));
  j.check = [=] {
    auto code = [&](auto& X) {
      std::vector<uint32_t> bits;
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          uint32_t v = 0;
          for (int dy = -2; dy <= 2; ++dy)
            for (int dx = -2; dx <= 2; ++dx)
              if (dx || dy) {
                const bool in = y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W;
                v = v << 1 | ((in ? X.at(size_t(y + dy) * W + x + dx) : 0) < X.at(size_t(y) * W + x));
              }
          bits.push_back(v);
        }
      return bits;
    };
    const auto cl = code(l), cr = code(r);
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        int best = 1 << 20, which = 0;
        for (int s = 0; s < c.shifts; ++s) {
          int cost = 0;
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
              const int py = y + dy, px = x + dx, qx = px - s;
              if (py < 0 || py >= H) continue;
              const uint32_t a = px >= 0 && px < W ? cl[size_t(py) * W + px] : 0;
              const uint32_t b = qx >= 0 && qx < W ? cr[size_t(py) * W + qx] : 0;
              cost += __builtin_popcount(a ^ b);
            }
          if (cost < best) best = cost, which = s;
        }
        want.push_back(which);
      }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

// --- twice the pixels: a transposed convolution of 4 x 4 taps, one program for each of the four phases
struct UpCfg {
  int BY = 4, BX = 32, BN = 64, BK = 64, stages = 3, warps = 4;
};
auto upsample = kernel("user_upsample", [](const UpCfg& c, Tensor<const half, 4> X, Tensor<const half, 3> W,
                                           Ptr<const float> bias, Tensor<half, 4> Y) {
  // X [B, H, W, I], W [16, I, O], Y [B, 2 H, 2 W, O]
  num_warps(c.warps);
  auto across = cdiv(X.dim(2), c.BX);
  auto y = program_id(0) / across * c.BY, x = program_id(0) % across * c.BX, n = program_id(1) * c.BN;
  auto b = program_id(2) / 4, phase = program_id(2) % 4, py = phase / 2, px = phase % 2;
  Tile acc = zeros({c.BY * c.BX, c.BN}, f32);
  for (auto tap : range(0, 4)) {
    auto ty = tap / 2, tx = tap % 2;
    // row 2 y + py comes from rows y + py - 1 + ty
    auto weight = (3 - py - 2 * ty) * 4 + 3 - px - 2 * tx;
    for (auto k : range(0, X.dim(3), c.BK, {.stages = c.stages})) {
      auto a = X.load({b, y + py - 1 + ty, x + px - 1 + tx, k}, {1, c.BY, c.BX, c.BK});
      acc = dot(reshape(a, {c.BY * c.BX, c.BK}), W.load({weight, k, n}, {c.BK, c.BN}), acc);
    }
  }
  auto i = n + arange(0, c.BN);
  acc += load(bias + i, {.mask = i < Y.dim(3)}).row();
  auto O = Y.dim(3), wide = Y.dim(2);
  make_view<half>(Y.ptr() + b * Y.stride(0) + py * Y.stride(1) + px * Y.stride(2), {X.dim(1), X.dim(2), O},
                  {2 * wide * O, 2 * O, 1})
      .store({y, x, n}, reshape(cast(acc, f16), {c.BY, c.BX, c.BN}));
}).grid([](const UpCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BY) * cdiv(x.shape[2], c.BX), cdiv(w.shape[2], c.BN), 4 * x.shape[0]};
});
Register r5("upsample", [](Env& e) {
  UpCfg c;
  if (!e.big) c = {2, 8, 16, 16, 2, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.BN = e.field("BN", c.BN);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 16 : 2, H = e.big ? 64 : 5, W = e.big ? 64 : 11, I = e.big ? 256 : 24, O = e.big ? 128 : 24;
  auto x = random<half>(e, size_t(B) * H * W * I), w = random<half>(e, size_t(16) * I * O, -.3, .3);
  auto bias = random<float>(e, O);
  auto y = constant<half>(e, size_t(B) * 4 * H * W * O, NAN);
  Job j;
  j.gflop = 2e-9 * B * 4. * H * W * O * 4. * I;
  j.add(upsample, c, x.view(B, H, W, I), w.view(16, I, O), bias.p, y.view(B, 2 * H, 2 * W, O));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i) want[i] = bias[i % O];
    for (int b = 0; b < B; ++b)
      for (int r = 0; r < H; ++r)
        for (int q = 0; q < W; ++q)
          for (int t = 0; t < 16; ++t) {
            const int yy = 2 * r - 1 + t / 4, xx = 2 * q - 1 + t % 4;
            if (yy < 0 || yy >= 2 * H || xx < 0 || xx >= 2 * W) continue;
            for (int i = 0; i < I; ++i)
              for (int o = 0; o < O; ++o)
                want[((size_t(b) * 2 * H + yy) * 2 * W + xx) * O + o] +=
                    x[((size_t(b) * H + r) * W + q) * I + i] * w[(size_t(t) * I + i) * O + o];
          }
    return agree(y.now(), want, 1e-2, 4e-3);
  };
  return j;
});

}  // namespace detections
}  // namespace users
