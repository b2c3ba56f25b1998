// frames.cpp - steps of a renderer's frame and of a simulation's: all levels of a picture in one launch, smooth edges,
// orientations of features, cloth by constraints of one colour, grids that particles write to.
#include "tests/users/use.h"
namespace users {
namespace {

// --- all levels of a picture in one launch: a program halves its tile again and again; who finishes last goes on with
// what all left
struct MipCfg {
  int T = 64, warps = 8;
};
auto mips = kernel("user_mips", [](const MipCfg& c, Tensor<const half, 3> picture, Ptr<half> levels, Ptr<int32_t> done) {
              // picture [N, N, 4], N = T 2^k; levels: N / 2, N / 4 .. 1, one behind the other, four channels a pixel
              num_warps(c.warps);
              auto side = cast(picture.dim(0), i32), x = program_id(0), y = program_id(1);
              auto put = [&](const Tile& t, int n, const Tile& start, const Tile& width, const Tile& ty, const Tile& tx) {
                auto r = reshape(arange(0, n), {n, 1, 1}), q = reshape(arange(0, n), {1, n, 1}), k = reshape(arange(0, 4), {1, 1, 4});
                store(levels + start + (((ty * n + r) * width + tx * n + q) * 4 + k), cast(t, f16));
              };
              auto halves = [&](Tile t, Tile start, Tile width, const Tile& ty, const Tile& tx) {
                for (int n = c.T / 2; n >= 1; n /= 2) {
                  t = reshape(sum(sum(reshape(t, {n, 2, n, 2, 4}), axis(3)), axis(1)), {n, n, 4}) * .25f;
                  put(t, n, start, width, ty, tx);
                  start = start + width * width * 4, width = width / 2;
                }
                return start;
              };
              auto t = cast(picture.load({y * c.T, x * c.T, 0}, {c.T, c.T, 4}), f32);
              auto start = halves(t, Tile(0), side / 2, y, x);
              auto width = side / c.T;  // of the level that has a pixel of every program
              auto before = atomic_add(done, 1, {.order = Order::acq_rel});
              return_if(before != width * width - 1);
              store(done, 0);
              // what is there is no more than a tile: rows and columns beyond are not used
              auto r = reshape(arange(0, c.T), {c.T, 1, 1}), q = reshape(arange(0, c.T), {1, c.T, 1}), k = reshape(arange(0, 4), {1, 1, 4});
              auto in = broadcast_to((r < width) & (q < width), {c.T, c.T, 4});
              Tile rest = cast(load(levels + (start - width * width * 4) + ((r * width + q) * 4 + k), {.mask = in, .cache = Cache::volatile_}), f32);
              Tile at = start, w = width / 2;
              for (int n = c.T / 2; n >= 1; n /= 2) {
                rest = reshape(sum(sum(reshape(rest, {n, 2, n, 2, 4}), axis(3)), axis(1)), {n, n, 4}) * .25f;
                auto a = reshape(arange(0, n), {n, 1, 1}), b = reshape(arange(0, n), {1, n, 1});
                store(levels + at + ((a * w + b) * 4 + k), cast(rest, f16), {.mask = broadcast_to((a < w) & (b < w), {n, n, 4})});
                at = at + w * w * 4, w = w / 2;
              }
            }).grid([](const MipCfg& c, const auto& p, auto, auto) { return Grid{p.shape[0] / c.T, p.shape[0] / c.T}; });
Register r1("mips", [](Env& e) {
  MipCfg c;
  if (!e.big) c = {8, 2};
  c.warps = e.field("warps", c.warps);
  const int N = e.big ? 4096 : 32;
  auto in = random<half>(e, size_t(N) * N * 4, 0, 1);
  auto out = constant<half>(e, size_t(N) * N * 4 / 3 + 4, NAN);
  auto done = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * (in.n * 2 + out.n * 2);
  j.add(mips, c, in.view(N, N, 4), out.p, done.p);
  j.check = [=] {
    std::vector<double> level(in.n), want;
    for (size_t i = 0; i < in.n; ++i) level[i] = in[i];
    for (int n = N / 2; n; n /= 2) {
      std::vector<double> next(size_t(n) * n * 4);
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          for (int k = 0; k < 4; ++k)
            for (int s = 0; s < 4; ++s)
              next[(size_t(y) * n + x) * 4 + k] += level[(size_t(2 * y + s / 2) * 2 * n + 2 * x + s % 2) * 4 + k] / 4;
      want.insert(want.end(), next.begin(), next.end()), level = next;
    }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- smooth edges (FXAA): where brightness jumps, both ends of the edge are looked for, a few pixels each way; which end
// is nearer says how far the colour is taken from across
struct EdgeCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto smooth = kernel("user_smooth_edges", [](const EdgeCfg& c, Ptr<const float> picture, Ptr<float> out, I32 Y, I32 X) {
                // picture, out [Y, X, 4]: colour and brightness
                num_warps(c.warps);
                auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
                auto in = (y < Y) & (x < X);
                auto at = [&](const Tile& v, const Tile& u) { return (clamp(v, 0, Y - 1) * X + clamp(u, 0, X - 1)) * 4; };
                auto luma = [&](const Tile& v, const Tile& u) { return load(picture + at(v, u) + 3, {.mask = in}); };
                auto m = luma(y, x), n = luma(y - 1, x), s = luma(y + 1, x), w = luma(y, x - 1), e = luma(y, x + 1);
                auto high = max(max(max(n, s), max(w, e)), m), low = min(min(min(n, s), min(w, e)), m);
                auto contrast = high - low;
                auto active0 = in & (contrast > max(.0312f, high * .125f));
                auto nw = luma(y - 1, x - 1), ne = luma(y - 1, x + 1), sw = luma(y + 1, x - 1), se = luma(y + 1, x + 1);
                auto level = abs(n + s - 2.f * m) * 2.f + abs(ne + se - 2.f * e) + abs(nw + sw - 2.f * w);
                auto upright = abs(e + w - 2.f * m) * 2.f + abs(ne + nw - 2.f * n) + abs(se + sw - 2.f * s);
                auto lies = level >= upright;
                auto before = where(lies, n, w), behind = where(lies, s, e);
                auto is_before = abs(before - m) >= abs(behind - m);
                auto side = where(is_before, -1, 1);
                auto dy = where(lies, side, 0), dx = where(lies, 0, side);  // across
                auto ty = where(lies, 0, 1), tx = where(lies, 1, 0);        // along
                auto edge = (m + where(is_before, before, behind)) * .5f;
                auto steep = abs(where(is_before, before, behind) - m) * .25f;
                auto pair = [&](const Tile& k) {
                  return (luma(y + ty * k, x + tx * k) + luma(y + dy + ty * k, x + dx + tx * k)) * .5f - edge;
                };
                Tile left = zeros({c.BY, c.BX}, i32), right = left, open_left = active0, open_right = active0;
                Tile end_left = zeros({c.BY, c.BX}, f32), end_right = end_left, steps = Tile(0);
                while_([&] { return any(open_left | open_right) & (steps < 8); }, [&] {
                  left = where(open_left, left + 1, left), right = where(open_right, right + 1, right);
                  end_left = where(open_left, pair(-left), end_left), end_right = where(open_right, pair(right), end_right);
                  open_left = open_left & (abs(end_left) < steep), open_right = open_right & (abs(end_right) < steep);
                  steps += 1;
                });
                auto left_near = left < right;
                auto end = where(left_near, end_left, end_right);
                auto wrong_way = (end < 0.f) != (m - edge < 0.f);
                auto share = where(active0 & wrong_way, .5f - cast(min(left, right), f32) / cast(max(left + right, 1), f32), 0.f);
                auto to = at(y, x), across = at(y + dy, x + dx);
                for (int k = 0; k < 4; ++k) {
                  auto own = load(picture + to + k, {.mask = in}), other = load(picture + across + k, {.mask = in});
                  store(out + ((y * X + x) * 4 + k), own + (other - own) * share, {.mask = in});
                }
              }).grid([](const EdgeCfg& c, auto, auto, int Y, int X) { return Grid{cdiv(X, c.BX), cdiv(Y, c.BY)}; });
Register r2("smooth_edges", [](Env& e) {
  EdgeCfg c;
  if (!e.big) c = {4, 8, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int Y = e.big ? 2160 : 21, X = e.big ? 3840 : 29;
  auto in = drawn<float>(e, size_t(Y) * X * 4, [&, i = size_t(0)]() mutable {
    const int p = int(i++ / 4), x = p % X, y = p / X;
    return float((3 * y + x) % 23 < 11 ? .25 : .75) + float(i % 4) / 64;  // sums of these are exact
  });
  auto out = constant<float>(e, in.n, NAN);
  Job j;
  j.mbytes = 8e-6 * in.n;
  j.add(smooth, c, in.p, out.p, Y, X);
  j.check = [=] {
    std::vector<double> want(in.n);
    auto L = [&](int y, int x) { return in[(size_t(std::clamp(y, 0, Y - 1)) * X + std::clamp(x, 0, X - 1)) * 4 + 3]; };
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x) {
        const double m = L(y, x), n = L(y - 1, x), s = L(y + 1, x), w = L(y, x - 1), e = L(y, x + 1);
        const double high = std::max({m, n, s, w, e}), low = std::min({m, n, s, w, e});
        const double nw = L(y - 1, x - 1), ne = L(y - 1, x + 1), sw = L(y + 1, x - 1), se = L(y + 1, x + 1);
        const bool lies = std::abs(n + s - 2 * m) * 2 + std::abs(ne + se - 2 * e) + std::abs(nw + sw - 2 * w) >=
                          std::abs(e + w - 2 * m) * 2 + std::abs(ne + nw - 2 * n) + std::abs(se + sw - 2 * s);
        const double before = lies ? n : w, behind = lies ? s : e;
        const bool isBefore = std::abs(before - m) >= std::abs(behind - m);
        const double other = isBefore ? before : behind, edge = (m + other) / 2, steep = std::abs(other - m) / 4;
        const int dy = lies ? (isBefore ? -1 : 1) : 0, dx = lies ? 0 : isBefore ? -1 : 1;
        double share = 0;
        if (high - low > std::max(double(.0312f), high * .125)) {
          int step[2] = {};
          double end[2] = {};
          for (int k = 0; k < 2; ++k)
            for (bool open = true; open && step[k] < 8;) {
              const int t = ++step[k] * (k ? 1 : -1), v = lies ? 0 : t, u = lies ? t : 0;
              end[k] = (L(y + v, x + u) + L(y + dy + v, x + dx + u)) / 2 - edge;
              open = std::abs(end[k]) < steep;
            }
          const double last = step[0] < step[1] ? end[0] : end[1];
          if ((last < 0) != (m - edge < 0)) share = .5 - double(std::min(step[0], step[1])) / std::max(step[0] + step[1], 1);
        }
        for (int k = 0; k < 4; ++k) {
          const double own = in[(size_t(y) * X + x) * 4 + k];
          want[(size_t(y) * X + x) * 4 + k] =
              own + (in[(size_t(std::clamp(y + dy, 0, Y - 1)) * X + std::clamp(x + dx, 0, X - 1)) * 4 + k] - own) * share;
        }
      }
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- orientations of features (SIFT): gradients around a key point, weighted, in 36 bins; the strongest one, smoothed
struct OrientCfg {
  int R = 16, warps = 1;
};
auto orientations = kernel("user_orientations", [](const OrientCfg& c, Tensor<const float, 2> picture, Ptr<const int32_t> points,
                                                   Ptr<float> histograms, Ptr<float> angles, I32) {
                      // points [n, 2]: row and column; histograms [n, 36]
                      num_warps(c.warps);
                      auto p = program_id(0);
                      auto y = load(points + p * 2) - c.R / 2, x = load(points + p * 2 + 1) - c.R / 2;
                      auto at = [&](int dy, int dx) { return picture.load({y + dy, x + dx}, {c.R, c.R}); };
                      auto gx = at(0, 1) - at(0, -1), gy = at(1, 0) - at(-1, 0);
                      auto r = cast(arange(0, c.R).col() - c.R / 2, f32), q = cast(arange(0, c.R).row() - c.R / 2, f32);
                      auto weight = sqrt(gx * gx + gy * gy) * exp((r * r + q * q) * (-2.f / (c.R * c.R)));
                      auto turn = atan2(gy, gx) * float(.5 / M_PI);
                      auto bin = clamp(cast(floor((turn - floor(turn)) * 36.f), i32), 0, 35);
                      auto bins = reshape(arange(0, 64), {64, 1});  // a power of two is no need, but lanes are
                      auto flat = reshape(bin, {1, c.R * c.R}), w = reshape(weight, {1, c.R * c.R});
                      auto h = sum(where(flat == bins, w, 0.f), axis(1));
                      auto place = bins;
                      auto near = [&](int d) { return take(h, broadcast_to((place + 36 + d) % 36, {64, 1}), 0); };
                      auto s = where(place < 36, near(-1) * .25f + h * .5f + near(1) * .25f, -1.f);
                      store(histograms + p * 36 + place, s, {.mask = place < 36});
                      auto best = argmax(s, axis(0));
                      store(angles + p, (cast(to_scalar(best), f32) + .5f) * float(2 * M_PI / 36));
                    }).grid([](const OrientCfg&, const auto&, auto, auto, auto, int n) { return Grid{n}; });
Register r3("orientations", [](Env& e) {
  OrientCfg c;
  c.warps = e.field("warps", c.warps);
  const int Y = e.big ? 2048 : 40, X = e.big ? 2048 : 53, n = e.big ? 1 << 16 : 9;
  auto in = random<float>(e, size_t(Y) * X, 0, 1);
  auto points = filled<int32_t>(e, size_t(n) * 2, [&](size_t i) { return int32_t(10 + e.uniform() * ((i % 2 ? X : Y) - 20)); });
  auto h = constant<float>(e, size_t(n) * 36, NAN), a = constant<float>(e, n, NAN);
  Job j;
  j.add(orientations, c, in.view(Y, X), points.p, h.p, a.p, n);
  j.check = [=] {
    std::vector<double> want(h.n);
    for (int p = 0; p < n; ++p) {
      double raw[36] = {};
      for (int r = 0; r < c.R; ++r)
        for (int q = 0; q < c.R; ++q) {
          const int y = points.h[p * 2] - c.R / 2 + r, x = points.h[p * 2 + 1] - c.R / 2 + q;
          const double gx = in[size_t(y) * X + x + 1] - in[size_t(y) * X + x - 1], gy = in[size_t(y + 1) * X + x] - in[size_t(y - 1) * X + x];
          double turn = std::atan2(gy, gx) / (2 * M_PI);
          turn -= std::floor(turn);
          raw[std::min(int(turn * 36), 35)] += std::hypot(gx, gy) * std::exp(-2. / (c.R * c.R) * (std::pow(r - c.R / 2, 2) + std::pow(q - c.R / 2, 2)));
        }
      for (int k = 0; k < 36; ++k) want[p * 36 + k] = raw[(k + 35) % 36] / 4 + raw[k] / 2 + raw[(k + 1) % 36] / 4;
    }
    return agree(h.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace
}  // namespace users
