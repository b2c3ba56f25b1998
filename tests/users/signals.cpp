// signals.cpp - sound, pictures and fields: filters run forth and back, raw pixels to colours, motion of blocks, spins,
// slices from projections, cells of a surface, the likeliest path, eigenvalues of small matrices.
#include <algorithm>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace signals {

// --- a biquad over every channel, forth and then back over its own output: the recurrence is a scan of affine maps
struct BiquadCfg {
  int BC = 4, BT = 256, warps = 4;
};
auto biquad(bool back) {
  return kernel(back ? "user_biquad_back" : "user_biquad",
                [back](const BiquadCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, F32 b0, F32 b1, F32 b2, F32 a1,
                       F32 a2) {
    // X, Y [channels, N]: y[t] = b0 x[t] + b1 x[t - 1] + b2 x[t - 2] - a1 y[t - 1] - a2 y[t - 2], or with t + 1, t + 2
    num_warps(c.warps);
    auto ch = program_id(0) * c.BC;
    auto n = X.dim(1);
    const int s = back ? 1 : -1;
    const Shape box{c.BC, c.BT};
    Tile y1 = zeros({c.BC, 1}, f32), y2 = zeros({c.BC, 1}, f32);  // the outputs in front of a block
    auto blocks = cdiv(n, c.BT);
    for (auto i : range(0, blocks)) {
      auto t = (back ? blocks - 1 - i : i) * c.BT;
      auto f = b0 * X.load({ch, t}, box) + b1 * X.load({ch, t + s}, box) + b2 * X.load({ch, t + 2 * s}, box);
      // (y[t], y[t-1]) = M (y[t-1], y[t-2]) + (f, 0)
      auto ones_ = ones(box, f32), none = zeros(box, f32);
      auto all = scan({ones_ * -a1, ones_ * -a2, ones_, none, f, none}, axis(1),
                      [](Tile a, Tile b, Tile c, Tile d, Tile u, Tile v, Tile A, Tile B, Tile C, Tile D, Tile U,
                         Tile V) {
                        return std::tuple(A * a + B * c, A * b + B * d, C * a + D * c, C * b + D * d, A * u + B * v + U,
                                          C * u + D * v + V);
                      },
                      {.reverse = back});
      auto y = all[0] * y1 + all[1] * y2 + all[4];
      auto before = all[2] * y1 + all[3] * y2 + all[5];
      Y.store({ch, t}, y);
      auto last = arange(0, c.BT).row() == (back ? 0 : c.BT - 1);
      y1 = sum(where(last, y, 0.f), axis(1));
      y2 = sum(where(last, before, 0.f), axis(1));
    }
  }).grid([](const BiquadCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BC)}; });
}
auto biquad_forth = biquad(false);
auto biquad_back = biquad(true);
Register r1("biquad", [](Env& e) {
  BiquadCfg c;
  if (!e.big) c = {2, 64, 2};
  c.BC = e.field("BC", c.BC), c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps);
  const int C = e.big ? 512 : 5, N = e.big ? 48000 : 200;
  auto x = random<float>(e, size_t(C) * N);
  auto y = constant<float>(e, x.n, NAN), z = constant<float>(e, x.n, NAN);
  const float b0 = .2f, b1 = .4f, b2 = .2f, a1 = -.5f, a2 = .3f;
  Job j;
  j.mbytes = 16e-6 * C * N;
  j.inTurn = true;
  j.add(biquad_forth, c, x.view(C, N), y.view(C, N), b0, b1, b2, a1, a2);
  // behind the end of a row the way back starts from nothing: its last block is whole or padded with zeros
  j.add(biquad_back, c, y.view(C, N), z.view(C, N), b0, b1, b2, a1, a2);
  j.check = [=] {
    std::vector<double> forth(x.n), both(x.n);
    for (int ch = 0; ch < C; ++ch) {
      const size_t o = size_t(ch) * N;
      auto get = [&](auto& v, int t) { return t < 0 || t >= N ? 0. : v[o + t]; };
      for (int t = 0; t < N; ++t)
        forth[o + t] = b0 * get(x, t) + b1 * get(x, t - 1) + b2 * get(x, t - 2) - a1 * get(forth, t - 1) -
                       a2 * get(forth, t - 2);
      for (int t = N - 1; t >= 0; --t)
        both[o + t] = b0 * get(forth, t) + b1 * get(forth, t + 1) + b2 * get(forth, t + 2) - a1 * get(both, t + 1) -
                      a2 * get(both, t + 2);
    }
    const auto wrong = agree(y.now(), forth, 1e-5, 1e-5);
    return wrong.empty() ? agree(z.now(), both, 1e-5, 1e-5) : "back: " + wrong;
  };
  return j;
});

// --- raw pixels of a sensor (red, green / green, blue) to three colours a pixel
struct DemosaicCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto demosaic =
    kernel("user_demosaic", [](const DemosaicCfg& c, Tensor<const uint16_t, 2> raw, Tensor<uint8_t, 3> rgb, F32 black,
                               F32 red_gain, F32 blue_gain, F32 gain) {
      // raw [H, W], rgb [H, W, 3]
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      auto H = raw.dim(0), W = raw.dim(1);
      auto row = (y + arange(0, c.BY)).col(), column = (x + arange(0, c.BX)).row();
      auto inside = (row < H) & (column < W);
      // over the border the picture goes on as its mirror
      auto at = [&](int dy, int dx) {
        auto r = abs(row + dy), q = abs(column + dx);
        r = where(r >= H, 2 * H - 2 - r, r), q = where(q >= W, 2 * W - 2 - q, q);
        return max(cast(load(raw.ptr() + r * W + q, {.mask = inside}), f32) - black, 0.f);
      };
      auto mid = at(0, 0), up = at(-1, 0), down = at(1, 0), left = at(0, -1), right = at(0, 1);
      auto corners = (at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)) * .25f;
      auto cross = (up + down + left + right) * .25f;
      auto even_row = row % 2 == 0, even_column = column % 2 == 0;
      auto r = where(even_row, where(even_column, mid, (left + right) * .5f),
                     where(even_column, (up + down) * .5f, corners));
      auto g = where(even_row == even_column, cross, mid);
      auto b = where(even_row, where(even_column, corners, (up + down) * .5f),
                     where(even_column, (left + right) * .5f, mid));
      auto byte = [&](Tile v, Tile by) { return expand_dims(cast(rint(clamp(v * by * gain, 0.f, 255.f)), u8), 2); };
      rgb.store({y, x, 0}, cat(cat(byte(r, red_gain), byte(g, 1.f), 2), byte(b, blue_gain), 2));
    }).grid([](const DemosaicCfg& c, const auto& raw, const auto&...) {
      return Grid{cdiv(raw.shape[1], c.BX), cdiv(raw.shape[0], c.BY)};
    });
Register r2("demosaic", [](Env& e) {
  DemosaicCfg c;
  if (!e.big) c = {4, 32, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4000 : 14, W = e.big ? 6000 : 70;
  auto raw = integers<uint16_t>(e, size_t(H) * W, 0, 4096);
  auto rgb = filled<uint8_t>(e, size_t(H) * W * 3, [](size_t) { return uint8_t(77); });
  Job j;
  j.mbytes = 5e-6 * H * W;
  j.add(demosaic, c, raw.view(H, W), rgb.view(H, W, 3), 64.f, 1.5f, 1.75f, 1.f / 16);
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        auto at = [&](int dy, int dx) {
          int r = std::abs(y + dy), q = std::abs(x + dx);
          if (r >= H) r = 2 * H - 2 - r;
          if (q >= W) q = 2 * W - 2 - q;
          return std::max(raw.at(size_t(r) * W + q) - 64., 0.);
        };
        const double cross = (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) / 4, lr = (at(0, -1) + at(0, 1)) / 2;
        const double corners = (at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)) / 4, ud = (at(-1, 0) + at(1, 0)) / 2;
        const bool er = y % 2 == 0, ec = x % 2 == 0;
        const double r = er ? (ec ? at(0, 0) : lr) : (ec ? ud : corners), g = er == ec ? cross : at(0, 0);
        const double b = er ? (ec ? corners : ud) : (ec ? lr : at(0, 0));
        for (double v : {r * 1.5, g, b * 1.75}) want.push_back(std::min(v / 16, 255.));
      }
    return agree(rgb.now(), want, .501, 0);
  };
  return j;
});

// --- motion: for every 16 x 16 block the shift within R pixels that differs least
struct MotionCfg {
  int R = 7, warps = 1;
};
auto motion =
    kernel("user_motion", [](const MotionCfg& c, Tensor<const uint8_t, 2> now, Tensor<const uint8_t, 2> before,
                             Tensor<int8_t, 3> shifts, Tensor<uint16_t, 2> costs) {
      // now, before [H, W], shifts [H / 16, W / 16, 2] (dy, dx), costs [H / 16, W / 16]
      num_warps(c.warps);
      auto bx = program_id(0), by = program_id(1);
      auto here = cast(cast(now.load({by * 16, bx * 16}, {16, 16}), u32), i32);
      Tile best = 1 << 20, best_y = 0, best_x = 0;
      for (auto dy : range(-c.R, c.R + 1))
        for (auto dx : range(-c.R, c.R + 1)) {
          auto y = by * 16 + dy, x = bx * 16 + dx;
          continue_if((y < 0) | (x < 0) | (y + 16 > now.dim(0)) | (x + 16 > now.dim(1)));
          auto there = cast(cast(before.load({y, x}, {16, 16}), u32), i32);
          auto cost = sum(abs(here - there)) + 2 * (abs(dy) + abs(dx));
          auto better = cost < best;
          best = where(better, cost, best), best_y = where(better, dy, best_y), best_x = where(better, dx, best_x);
        }
      shifts.store({by, bx, 0}, cast(best_y, i8));
      shifts.store({by, bx, 1}, cast(best_x, i8));
      costs.store({by, bx}, cast(best, u16));
    }).grid([](const MotionCfg&, const auto& n, const auto&...) {
      return Grid{n.shape[1] / 16, n.shape[0] / 16};
    });
Register r3("motion", [](Env& e) {
  MotionCfg c;
  if (!e.big) c.R = 2;
  c.warps = e.field("warps", c.warps);
  const int H = e.big ? 1088 : 48, W = e.big ? 1920 : 64, y = H / 16, x = W / 16;
  auto before = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto now = filled<uint8_t>(e, size_t(H) * W, [&](size_t i) {
    const int r = std::clamp(int(i / W) + 1, 0, H - 1), q = std::clamp(int(i % W) - 2, 0, W - 1);
    return uint8_t(std::min(255, before.at(size_t(r) * W + q) + int(i * 7 % 5)));
  });
  auto shifts = constant<int8_t>(e, size_t(y) * x * 2, 99);
  auto costs = constant<uint16_t>(e, size_t(y) * x, 9);
  Job j;
  j.gflop = 3e-9 * H * W * (2 * c.R + 1) * (2 * c.R + 1);
  j.add(motion, c, now.view(H, W), before.view(H, W), shifts.view(y, x, 2), costs.view(y, x));
  j.check = [=] {
    std::vector<double> way, least;
    for (int by = 0; by < y; ++by)
      for (int bx = 0; bx < x; ++bx) {
        int best = 1 << 20, sy = 0, sx = 0;
        for (int dy = -c.R; dy <= c.R; ++dy)
          for (int dx = -c.R; dx <= c.R; ++dx) {
            const int oy = by * 16 + dy, ox = bx * 16 + dx;
            if (oy < 0 || ox < 0 || oy + 16 > H || ox + 16 > W) continue;
            int cost = 2 * (std::abs(dy) + std::abs(dx));
            for (int i = 0; i < 256; ++i)
              cost += std::abs(now.at(size_t(by * 16 + i / 16) * W + bx * 16 + i % 16) -
                               before.at(size_t(oy + i / 16) * W + ox + i % 16));
            if (cost < best) best = cost, sy = dy, sx = dx;
          }
        way.push_back(sy), way.push_back(sx), least.push_back(best);
      }
    const auto wrong = agree(shifts.now(), way, .5, 0);
    return wrong.empty() ? agree(costs.now(), least, .5, 0) : wrong;
  };
  return j;
});

// --- spins on a torus, one colour of the checkerboard at a time, in place
struct SpinsCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto spins = kernel("user_spins", [](const SpinsCfg& c, Ptr<int8_t> s, I32 H, I32 W, I32 colour, F32 beta, U64 seed) {
  // s [H, W] of -1 and 1; H and W even
  num_warps(c.warps);
  auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
  auto mine = (y < H) & (x < W) & ((x + y) % 2 == colour);
  auto at = [&](Tile r, Tile q) { return cast(load(s + r * W + q, {.mask = mine}), i32); };
  auto up = (y + H - 1) % H, down = (y + 1) % H, left = (x + W - 1) % W, right = (x + 1) % W;
  auto field = at(up, x) + at(down, x) + at(y, left) + at(y, right);
  auto spin = at(y, x);
  auto cost = cast(2 * spin * field, f32);
  auto flip = rand(seed, y * W + x) < exp(-beta * cost);
  store(s + y * W + x, cast(where(flip, -spin, spin), i8), {.mask = mine});
}).grid([](const SpinsCfg& c, const auto*, int h, int w, int, float, uint64_t) {
  return Grid{cdiv(w, c.BX), cdiv(h, c.BY)};
});
Register r4("spins", [](Env& e) {
  SpinsCfg c;
  if (!e.big) c = {4, 32, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 8192 : 22, W = e.big ? 8192 : 50;
  auto s = drawn<int8_t>(e, size_t(H) * W, [&] { return int8_t(e.uniform() < .5 ? -1 : 1); });
  Job j;
  j.inTurn = true;
  j.mbytes = 4e-6 * H * W;
  const float beta = .44f;
  for (int step = 0; step < 2; ++step) j.add(spins, c, s.p, H, W, step, beta, uint64_t(77 + step));
  j.check = [=] {
    std::vector<int> want(s.h.begin(), s.h.end());
    const auto got = s.now();
    for (int colour = 0; colour < 2; ++colour)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          if ((x + y) % 2 != colour) continue;
          auto at = [&](int r, int q) { return want[((r + H) % H) * W + (q + W) % W]; };
          const int field = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
          const double u = (reference_philox(77 + colour, y * W + x)[0] >> 8) * 0x1p-24;
          const double p = std::exp(-double(beta) * 2 * at(y, x) * field);
          const int i = y * W + x;
          if (std::abs(u - p) < 1e-5 * (1 + p))
            want[i] = got[i];  // too near to say
          else if (u < p)
            want[i] = -want[i];
        }
    return agree(got, std::vector<double>(want.begin(), want.end()), .5, 0);
  };
  return j;
});

// --- a slice from its projections: every pixel adds what it finds at its place of every angle
struct SliceCfg {
  int BY = 16, BX = 64, warps = 4;
};
auto backproject =
    kernel("user_backproject", [](const SliceCfg& c, Tensor<const float, 2> sinogram, Ptr<const float> cosines,
                                  Ptr<const float> sines, Tensor<float, 2> slice) {
      // sinogram [angles, D], slice [N, N], middle over middle
      num_warps(c.warps);
      auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
      auto n = cast(slice.dim(0), f32);
      auto D = sinogram.dim(1);
      auto y = cast(y0 + arange(0, c.BY).col(), f32) - (n - 1.f) * .5f;
      auto x = cast(x0 + arange(0, c.BX).row(), f32) - (n - 1.f) * .5f;
      auto middle = (cast(D, f32) - 1.f) * .5f;
      Tile acc = zeros({c.BY, c.BX}, f32);
      for (auto a : range(0, sinogram.dim(0))) {
        auto t = x * load(cosines + a) + y * load(sines + a) + middle;
        auto low = floor(t);
        auto i = cast(low, i32);
        auto part = t - low;
        auto row = sinogram.ptr() + a * D;
        auto left = load(row + i, {.mask = (i >= 0) & (i < D)}),
             right = load(row + i + 1, {.mask = (i >= -1) & (i < D - 1)});
        acc += left + (right - left) * part;
      }
      slice.store({y0, x0}, acc * (3.14159265f / cast(sinogram.dim(0), f32)));
    }).grid([](const SliceCfg& c, const auto&, const auto*, const auto*, const auto& s) {
      return Grid{cdiv(s.shape[1], c.BX), cdiv(s.shape[0], c.BY)};
    });
Register r5("backproject", [](Env& e) {
  SliceCfg c;
  if (!e.big) c = {8, 16, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int A = e.big ? 720 : 11, D = e.big ? 1024 : 30, N = e.big ? 1024 : 27;
  auto s = random<float>(e, size_t(A) * D);
  auto cosines = filled<float>(e, A, [&](size_t a) { return float(std::cos(M_PI * double(a) / A)); });
  auto sines = filled<float>(e, A, [&](size_t a) { return float(std::sin(M_PI * double(a) / A)); });
  auto out = constant<float>(e, size_t(N) * N, NAN);
  Job j;
  j.gflop = 10e-9 * N * N * double(A);
  j.add(backproject, c, s.view(A, D), cosines.p, sines.p, out.view(N, N));
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < N; ++y)
      for (int x = 0; x < N; ++x) {
        double sum = 0;
        for (int a = 0; a < A; ++a) {
          const double t = (x - (N - 1) * .5) * cosines[a] + (y - (N - 1) * .5) * sines[a] + (D - 1) * .5;
          const int i = int(std::floor(t));
          auto at = [&](int k) { return k >= 0 && k < D ? s[size_t(a) * D + k] : 0; };
          sum += at(i) + (at(i + 1) - at(i)) * (t - i);
        }
        want.push_back(sum * M_PI / A);
      }
    return agree(out.now(), want, 2e-4, 1e-4);
  };
  return j;
});

// --- cells that a surface crosses, which of their corners lie inside, and how many triangles there will be
struct CellsCfg {
  int BZ = 2, BY = 4, BX = 32, warps = 4;
};
auto no_cells = kernel("user_no_cells", [](Ptr<int32_t> totals) { store(totals + arange(0, 2), 0); })
                    .grid([](const NoConfig&, const auto*) { return Grid{1}; });
auto surface_cells =
    kernel("user_surface_cells", [](const CellsCfg& c, Tensor<const half, 3> field, Ptr<const uint8_t> triangles,
                                    Ptr<int32_t> cells, Ptr<uint8_t> cases, Ptr<int32_t> starts, Ptr<int32_t> totals,
                                    F32 level) {
      // field [Z, Y, X]; totals [2]: cells and triangles so far
      num_warps(c.warps);
      auto z = program_id(2) * c.BZ, y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      const Shape box{c.BZ, c.BY, c.BX};
      Tile which = zeros(box, i32);
      for (int corner = 0; corner < 8; ++corner) {
        auto v = field.load({z + (corner >> 2), y + (corner >> 1 & 1), x + (corner & 1)}, box);
        which |= cast(cast(v, f32) < level, i32) << corner;
      }
      auto along = [&](Tile from, int count, int dim) {
        auto i = from + arange(0, count);
        return (dim == 0 ? expand_dims(i.col(), 2) : dim == 1 ? expand_dims(i.row(), 2) : expand_dims(i.row(), 0));
      };
      auto iz = along(z, c.BZ, 0), iy = along(y, c.BY, 1), ix = along(x, c.BX, 2);
      auto Z = field.dim(0), Y = field.dim(1), X = field.dim(2);
      auto inside = (iz < Z - 1) & (iy < Y - 1) & (ix < X - 1);
      auto crossed = inside & (which != 0) & (which != 255);
      auto count = where(crossed, cast(cast(load(triangles + which), u32), i32), 0);
      const int n = c.BZ * c.BY * c.BX;
      auto flat = [&](Tile t) { return reshape(t, {n}); };
      auto mine = flat(cast(crossed, i32)), wanted = flat(count);
      auto ends = cumsum(mine, axis(0)), last = cumsum(wanted, axis(0));
      auto place = atomic_add(totals, sum(mine)) + ends - mine;
      auto first = atomic_add(totals + 1, sum(wanted)) + last - wanted;
      auto live = mine != 0;
      store(cells + place, flat((iz * Y + iy) * X + ix), {.mask = live});
      store(cases + place, cast(cast(flat(which), u32), u8), {.mask = live});
      store(starts + place, first, {.mask = live});
    }).grid([](const CellsCfg& c, const auto& f, const auto&...) {
      return Grid{cdiv(f.shape[2] - 1, c.BX), cdiv(f.shape[1] - 1, c.BY), cdiv(f.shape[0] - 1, c.BZ)};
    });
Register r6("surface_cells", [](Env& e) {
  CellsCfg c;
  c.BZ = e.field("BZ", c.BZ), c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX),
  c.warps = e.field("warps", c.warps);
  const int n = e.big ? 256 : 21, N = n * n * n;
  auto f = filled<half>(e, N, [&](size_t i) {
    const double z = double(i / n / n) / n, y = double(i / n % n) / n, x = double(i % n) / n;
    return half(float(std::sin(9 * x + 1) * std::cos(7 * y) + std::sin(8 * z)));
  });
  auto table = filled<uint8_t>(e, 256, [](size_t i) { return uint8_t(i == 0 || i == 255 ? 0 : 1 + i * 7 % 5); });
  auto cells = constant<int32_t>(e, N, -1), starts = constant<int32_t>(e, N, -1), totals = constant<int32_t>(e, 2, -7);
  auto cases = constant<uint8_t>(e, N, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 2e-6 * N;
  j.add(no_cells, NoConfig{}, totals.p);
  j.add(surface_cells, c, f.view(n, n, n), table.p, cells.p, cases.p, starts.p, totals.p, .25f);
  j.check = [=] {
    std::vector<std::pair<int, int>> want, got;
    int triangles = 0;
    for (int z = 0; z < n - 1; ++z)
      for (int y = 0; y < n - 1; ++y)
        for (int x = 0; x < n - 1; ++x) {
          int which = 0;
          for (int k = 0; k < 8; ++k)
            which |= int(f[size_t((z + (k >> 2)) * n + y + (k >> 1 & 1)) * n + x + (k & 1)] < .25) << k;
          if (which == 0 || which == 255) continue;
          want.push_back({(z * n + y) * n + x, which});
          triangles += table.at(which);
        }
    const auto sums = totals.now(), cell = cells.now(), start = starts.now();
    const auto which = cases.now();
    if (sums[0] != int(want.size()) || sums[1] != triangles) return std::string("another number");
    std::vector<char> taken(triangles);
    for (int i = 0; i < sums[0]; ++i) {
      got.push_back({cell[i], which[i]});
      for (int t = 0; t < table.at(which[i]); ++t)
        if (start[i] < 0 || start[i] + t >= triangles || taken[start[i] + t]++) return std::string("places overlap");
    }
    std::sort(got.begin(), got.end());
    return got == want ? std::string() : std::string("other cells");
  };
  return j;
});

// --- the likeliest path through a hidden Markov model: forward with back pointers, then back along them
struct ViterbiCfg {
  int S = 64, warps = 2;
};
auto viterbi = kernel("user_viterbi", [](const ViterbiCfg& c, Tensor<const float, 3> emissions,
                                         Tensor<const float, 2> moves, Tensor<uint8_t, 3> from, Tensor<int32_t, 2> path,
                                         Tensor<float, 1> scores) {
  // emissions [B, T, S], moves [S, S] (from, to), from [B, T, S]: workspace, path [B, T]
  num_warps(c.warps);
  auto b = program_id(0);
  auto T = emissions.dim(1);
  auto move = moves.load({0, 0}, {c.S, c.S});
  Tile best = squeeze(emissions.load({b, 0, 0}, {1, 1, c.S}), 0);  // [1, S]
  for (auto t : range(1, T)) {
    auto all = trans(best) + move;
    from.store({b, t, 0}, expand_dims(cast(cast(argmax(all, axis(0)), u32), u8), 0));
    best = max(all, axis(0)) + squeeze(emissions.load({b, t, 0}, {1, 1, c.S}), 0);
  }
  scores.store({b}, max(best));
  Tile state = to_scalar(argmax(best, axis(1)));
  for (auto i : range(0, T)) {
    auto t = T - 1 - i;
    path.store({b, t}, state);
    if_(t > 0, [&] { state = cast(cast(load(from.ptr() + (b * T + t) * c.S + state), u32), i32); });
  }
}).grid([](const ViterbiCfg&, const auto& e, const auto&...) { return Grid{e.shape[0]}; });
Register r7("viterbi", [](Env& e) {
  ViterbiCfg c;
  if (!e.big) c = {16, 2};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 512 : 3, T = e.big ? 1024 : 19, S = c.S;
  auto x = random<float>(e, size_t(B) * T * S, -5, 0), m = random<float>(e, size_t(S) * S, -5, 0);
  auto from = constant<uint8_t>(e, size_t(B) * T * S, 255);
  auto path = constant<int32_t>(e, size_t(B) * T, -1);
  auto scores = constant<float>(e, B, NAN);
  Job j;
  j.gflop = 2e-9 * B * double(T) * S * S;
  j.add(viterbi, c, x.view(B, T, S), m.view(S, S), from.view(B, T, S), path.view(B, T), scores.view(B));
  j.check = [=] {
    std::vector<double> want, got;
    const auto way = path.now();
    for (int b = 0; b < B; ++b) {
      std::vector<double> best(S), next(S);
      for (int t = 0; t < T; ++t, best = next)
        for (int s = 0; s < S; ++s) {
          double top = t ? -1e30 : 0;
          for (int r = 0; t && r < S; ++r) top = std::max(top, best[r] + m[r * S + s]);
          next[s] = top + x[(size_t(b) * T + t) * S + s];
        }
      want.push_back(*std::max_element(best.begin(), best.end()));
      double sum = 0;  // the path found has to be worth as much
      for (int t = 0; t < T; ++t) {
        const int s = way[b * T + t];
        if (s < 0 || s >= S) return std::string("a state that does not exist");
        sum += x[(size_t(b) * T + t) * S + s] + (t ? m[way[b * T + t - 1] * S + s] : 0);
      }
      if (std::abs(sum - want.back()) > 1e-3) return std::string("a path of another score");
    }
    return agree(scores.now(), want, 1e-3, 1e-5);
  };
  return j;
});

// --- eigenvalues of symmetric 3 x 3 matrices, rotations until nothing is left beside the diagonal
struct EigenCfg {
  int B = 128, warps = 4;
};
auto eigen3 = kernel("user_eigen3", [](const EigenCfg& c, Ptr<const double> A, Ptr<double> values, Ptr<int32_t> sweeps,
                                       I32 n) {
  // A [n, 3, 3], values [n, 3] ascending
  num_warps(c.warps);
  auto i = program_id(0) * c.B + arange(0, c.B);
  auto live = i < n;
  auto at = [&](int r, int q) { return load(A + i * 9 + r * 3 + q, {.mask = live}); };
  Tile a = at(0, 0), b = at(1, 1), d = at(2, 2), ab = at(0, 1), ad = at(0, 2), bd = at(1, 2);
  auto rotate = [](Tile& p, Tile& q, Tile& pq, Tile& pr, Tile& qr) {
    auto theta = (q - p) / (2.0 * where(pq == 0.0, 1.0, pq));
    auto sign = where(theta < 0.0, -1.0, 1.0);
    auto t = where(pq == 0.0, 0.0, sign / (abs(theta) + sqrt(theta * theta + 1.0)));
    auto cosine = 1.0 / sqrt(t * t + 1.0), sine = t * cosine;
    p -= t * pq;
    q += t * pq;
    pq = zeros_like(pq);
    auto r = cosine * pr - sine * qr;
    qr = sine * pr + cosine * qr;
    pr = r;
  };
  Tile sweep = 0;
  while_([&] { return (sweep < 12) & any(abs(ab) + abs(ad) + abs(bd) > 1e-14 * (abs(a) + abs(b) + abs(d))); },
         [&] {
           rotate(a, b, ab, ad, bd);
           rotate(a, d, ad, ab, bd);
           rotate(b, d, bd, ab, ad);
           sweep += 1;
         });
  auto low = min(a, b), high = max(a, b);
  auto least = min(low, d), rest = max(low, d);
  store(values + i * 3, least, {.mask = live});
  store(values + i * 3 + 1, min(rest, high), {.mask = live});
  store(values + i * 3 + 2, max(rest, high), {.mask = live});
  store(sweeps + program_id(0), sweep);
}).grid([](const EigenCfg& c, const auto*, auto*, auto*, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("eigen3", [](Env& e) {
  EigenCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 300;
  std::vector<double> m;
  if (e.device)
    for (int i = 0; i < std::min(n, 4096); ++i) {
      double v[6];
      for (double& x : v) x = e.uniform() * 2 - 1;
      for (int k : {0, 1, 2, 1, 3, 4, 2, 4, 5}) m.push_back(i % 50 == 7 && k % 3 ? 0 : v[k]);
    }
  auto a = repeated(e, size_t(n) * 9, m);
  auto values = filled<double>(e, size_t(n) * 3, [](size_t) { return NAN; });
  auto sweeps = constant<int32_t>(e, (n + c.B - 1) / c.B, -1);
  Job j;
  j.mbytes = 96e-6 * n;
  j.add(eigen3, c, a.p, values.p, sweeps.p, n);
  j.check = [=] {
    const auto got = values.now();
    for (int i = 0; i < n; ++i) {
      const double* A = &a.h[size_t(i) * 9];
      // sums, sums of squares and the determinant say which three numbers they are
      const double x = got[i * 3], y = got[i * 3 + 1], z = got[i * 3 + 2];
      double squares = 0;
      for (int k = 0; k < 9; ++k) squares += A[k] * A[k];
      const double det = A[0] * (A[4] * A[8] - A[5] * A[7]) - A[1] * (A[3] * A[8] - A[5] * A[6]) +
                         A[2] * (A[3] * A[7] - A[4] * A[6]);
      if (!(x <= y && y <= z) || !(std::abs(x + y + z - A[0] - A[4] - A[8]) < 1e-12) ||
          !(std::abs(x * x + y * y + z * z - squares) < 1e-12) || !(std::abs(x * y * z - det) < 1e-12))
        return "matrix " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

}  // namespace signals
}  // namespace users
