// frames.cpp - steps of a frame: all levels of a picture in one launch, orientations of features.
#include "tests/users/use.h"
namespace users {
namespace frames {

// --- all levels of a picture in one launch: a program halves its tile again and again; who finishes last goes on with
// what all left
struct MipCfg {
  int T = 64, warps = 4;
};
auto mips =
    kernel("user_mips", [](const MipCfg& c, Tensor<const half, 3> picture, Ptr<half> levels, Ptr<int32_t> done) {
      // picture [N, N, 4], N = T 2^k; levels: N / 2, N / 4 .. 1, one behind the other, four channels a pixel
      num_warps(c.warps);
      auto side = cast(picture.dim(0), i32), x = program_id(0), y = program_id(1);
      auto put = [&](const Tile& t, int n, const Tile& start, const Tile& width, const Tile& ty, const Tile& tx) {
        auto r = reshape(arange(0, n), {n, 1, 1}), q = reshape(arange(0, n), {1, n, 1}),
             k = reshape(arange(0, 4), {1, 1, 4});
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
      auto r = reshape(arange(0, c.T), {c.T, 1, 1}), q = reshape(arange(0, c.T), {1, c.T, 1}),
           k = reshape(arange(0, 4), {1, 1, 4});
      auto in = broadcast_to((r < width) & (q < width), {c.T, c.T, 4});
      Tile rest = cast(load(levels + (start - width * width * 4) + ((r * width + q) * 4 + k),
                            {.mask = in, .cache = Cache::volatile_}),
                       f32);
      Tile at = start, w = width / 2;
      for (int n = c.T / 2; n >= 1; n /= 2) {
        rest = reshape(sum(sum(reshape(rest, {n, 2, n, 2, 4}), axis(3)), axis(1)), {n, n, 4}) * .25f;
        auto a = reshape(arange(0, n), {n, 1, 1}), b = reshape(arange(0, n), {1, n, 1});
        store(levels + at + ((a * w + b) * 4 + k), cast(rest, f16),
              {.mask = broadcast_to((a < w) & (b < w), {n, n, 4})});
        at = at + w * w * 4, w = w / 2;
      }
    }).grid([](const MipCfg& c, const auto& p, auto, auto) {
      return Grid{p.shape[0] / c.T, p.shape[0] / c.T};
    });
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

// --- orientations of features (SIFT): gradients around a key point, weighted, in 36 bins; the strongest one, smoothed
struct OrientCfg {
  int R = 16, warps = 1;
};
auto orientations =
    kernel("user_orientations", [](const OrientCfg& c, Tensor<const float, 2> picture, Ptr<const int32_t> points,
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
  auto points =
      filled<int32_t>(e, size_t(n) * 2, [&](size_t i) { return int32_t(10 + e.uniform() * ((i % 2 ? X : Y) - 20)); });
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
          const double gx = in[size_t(y) * X + x + 1] - in[size_t(y) * X + x - 1],
                       gy = in[size_t(y + 1) * X + x] - in[size_t(y - 1) * X + x];
          double turn = std::atan2(gy, gx) / (2 * M_PI);
          turn -= std::floor(turn);
          raw[std::min(int(turn * 36), 35)] +=
              std::hypot(gx, gy) * std::exp(-2. / (c.R * c.R) * (std::pow(r - c.R / 2, 2) + std::pow(q - c.R / 2, 2)));
        }
      for (int k = 0; k < 36; ++k) want[p * 36 + k] = raw[(k + 35) % 36] / 4 + raw[k] / 2 + raw[(k + 1) % 36] / 4;
    }
    return agree(h.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace frames
}  // namespace users
