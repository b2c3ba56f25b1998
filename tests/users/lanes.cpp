// lanes.cpp - every lane goes its own way: adaptive steps in f64, streams of bits, noise out of hashes, cells in words,
// lattices of a transducer.
#include "tests/users/use.h"
namespace users {
namespace lanes {

// --- the Lotka-Volterra equations by Bogacki and Shampine's pair, steps as long as each trajectory's error allows
struct OdeCfg {
  int B = 128, most = 2000, warps = 4;
  double tolerance = 1e-8;
};
auto adaptive =
    kernel("user_adaptive_ode", [](const OdeCfg& c, Tensor<const double, 2> start, F64 end, Tensor<double, 2> out,
                                   Ptr<int32_t> steps) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B;
      Tile x = start.load({0, i}, {c.B}, {.pad = 1}), y = start.load({1, i}, {c.B}, {.pad = 1});
      auto fx = [](const Tile& a, const Tile& b) { return 1.5 * a - a * b; };
      auto fy = [](const Tile& a, const Tile& b) { return a * b - 3.0 * b; };
      Tile t = zeros({c.B}, f64), h = full({c.B}, .01, f64), count = zeros({c.B}, i32);
      Tile kx = fx(x, y), ky = fy(x, y);
      while_([&] { return any((t < end) & (count < c.most)); },
             [&] {
               auto going = (t < end) & (count < c.most);
               auto s = min(h, end - t);
               auto ax = fx(x + .5 * s * kx, y + .5 * s * ky), ay = fy(x + .5 * s * kx, y + .5 * s * ky);
               auto bx = fx(x + .75 * s * ax, y + .75 * s * ay), by = fy(x + .75 * s * ax, y + .75 * s * ay);
               auto nx = x + s * (2. / 9 * kx + 1. / 3 * ax + 4. / 9 * bx);
               auto ny = y + s * (2. / 9 * ky + 1. / 3 * ay + 4. / 9 * by);
               auto lx = fx(nx, ny), ly = fy(nx, ny);
               auto ex = s * (-5. / 72 * kx + 1. / 12 * ax + 1. / 9 * bx - .125 * lx);
               auto ey = s * (-5. / 72 * ky + 1. / 12 * ay + 1. / 9 * by - .125 * ly);
               auto error = max(abs(ex), abs(ey)) / c.tolerance;
               auto good = going & (error <= 1.0);
               x = where(good, nx, x), y = where(good, ny, y);
               kx = where(good, lx, kx), ky = where(good, ly, ky);
               t = where(good, t + s, t);
               h = where(going, s * clamp(.9 / cbrt(max(error, 1e-12)), .2, 5.0), h);
               count += cast(going, i32);
             });
      out.store({0, i}, x);
      out.store({1, i}, y);
      auto at = i + arange(0, c.B);
      store(steps + at, count, {.mask = at < out.dim(1)});
    }).grid([](const OdeCfg& c, const auto& s, double, const auto&...) { return Grid{cdiv(s.shape[1], c.B)}; });
Register r1("adaptive_ode", [](Env& e) {
  int N = e.big ? 1 << 18 : 200;
  auto s = random<double>(e, 2 * size_t(N), .5, 3);
  auto o = constant<double>(e, 2 * size_t(N), NAN);
  auto steps = constant<int32_t>(e, N, 0);
  OdeCfg cfg;
  cfg.B = e.field("B", 128), cfg.warps = e.field("warps", 4);
  Job j;
  j.add(adaptive, cfg, s.view(2, N), 2.0, o.view(2, N), steps.p);
  j.check = [=] {
    std::vector<double> want(2 * N);
    for (int i = 0; i < N; ++i) {
      double x = s.h[i], y = s.h[N + i];
      const int n = 4000;
      for (int k = 0; k < n; ++k) {  // the classical method, steps short enough
        const double h = 2.0 / n;
        auto f = [](double a, double b) { return std::array{1.5 * a - a * b, a * b - 3 * b}; };
        auto k1 = f(x, y), k2 = f(x + h / 2 * k1[0], y + h / 2 * k1[1]), k3 = f(x + h / 2 * k2[0], y + h / 2 * k2[1]),
             k4 = f(x + h * k3[0], y + h * k3[1]);
        x += h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]), y += h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1]);
      }
      want[i] = x, want[N + i] = y;
    }
    return agree(o.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- the game of life, 32 cells in a word: neighbours are counted in three bit planes
struct LifeCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto life = kernel("user_life", [](const LifeCfg& c, Tensor<const uint32_t, 2> now, Tensor<uint32_t, 2> next) {
              num_warps(c.warps);
              auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
              Tile ones = zeros({c.BY, c.BX}, u32), twos = zeros({c.BY, c.BX}, u32), fours = zeros({c.BY, c.BX}, u32);
              auto add = [&](const Tile& cells) {
                auto carry = ones & cells;
                ones ^= cells;
                fours |= twos & carry;  // four and more: dead, eight or not
                twos ^= carry;
              };
              Tile centre;
              for (int dy = -1; dy <= 1; ++dy) {
                auto row = [&](int dx) { return now.load({y + dy, x + dx}, {c.BY, c.BX}); };
                auto here = row(0);
                add((here << 1u) | (row(-1) >> 31u));
                add((here >> 1u) | (row(1) << 31u));
                if (dy)
                  add(here);
                else
                  centre = here;
              }
              next.store({y, x}, twos & ~fours & (ones | centre));
            }).grid([](const LifeCfg& c, const auto& a, const auto&) {
  return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
});
Register r2("life", [](Env& e) {
  int H = e.big ? 16384 : 50, W = e.big ? 1024 : 7;
  auto a = drawn<uint32_t>(e, size_t(H) * W,
                           [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); });
  auto b = constant<uint32_t>(e, size_t(H) * W, 0);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(life, LifeCfg{e.field("BY", 8), e.field("BX", 128), e.field("warps", 4)}, a.view(H, W), b.view(H, W));
  j.check = [=]() -> std::string {
    auto cell = [&](int y, int x) {
      return y >= 0 && y < H && x >= 0 && x < 32 * W ? int(a.h[size_t(y) * W + x / 32] >> (x % 32) & 1) : 0;
    };
    const auto got = b.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < 32 * W; ++x) {
        int n = -cell(y, x);
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) n += cell(y + dy, x + dx);
        const int want = n == 3 || (n == 2 && cell(y, x));
        if (int(got[size_t(y) * W + x / 32] >> (x % 32) & 1) != want)
          return "cell " + std::to_string(y) + ", " + std::to_string(x);
      }
    return "";
  };
  return j;
});

// --- canonical Huffman codes, a stream per lane: lengths of codes by comparing with the first code of every length
struct HuffmanCfg {
  int B = 128, longest = 12, warps = 4;
};
auto huffman = kernel("user_huffman", [](const HuffmanCfg& c, Ptr<const uint32_t> words, Ptr<const int32_t> starts,
                                         Ptr<const uint32_t> limits, Ptr<const int32_t> bases,
                                         Ptr<const uint8_t> symbols, Tensor<uint8_t, 2> out) {
                 // limits[l]: first code longer than l bits, in 16 bits from the left; bases[l]: symbol less code
                 num_warps(c.warps);
                 auto i = program_id(0) * c.B;
                 auto lane = i + arange(0, c.B);
                 auto inside = lane < out.dim(1);
                 Tile at = load(starts + lane, {.mask = inside}), have = full({c.B}, 0, i32);
                 Tile bits = zeros({c.B}, u64);
                 for (auto n : range(0, out.dim(0))) {
                   auto short_of = have < 32;
                   auto word = cast(load(words + at, {.mask = short_of & inside}), u64);
                   bits = where(short_of, bits | (word << cast(32 - have, u64)), bits);
                   have += where(short_of, 32, 0);
                   at += cast(short_of, i32);
                   auto top = cast(bits >> 48u, u32);
                   Tile length = full({c.B}, 1, i32);
                   for (int l = 1; l < c.longest; ++l) length += cast(top >= load(limits + l), i32);
                   auto code = cast(top, i32) >> (16 - length);
                   auto symbol = load(symbols + (code + load(bases + length)), {.mask = inside});
                   store(out.ptr() + n * out.dim(1) + lane, symbol, {.mask = inside});
                   bits = bits << cast(length, u64);
                   have -= length;
                 }
               }).grid([](const HuffmanCfg& c, auto*, auto*, auto*, auto*, auto*, const auto& out) {
  return Grid{cdiv(out.shape[1], c.B)};
});
Register r3("huffman", [](Env& e) {
  const int lanes = e.big ? 1 << 18 : 150, length = e.big ? 256 : 40, longest = 12;
  // lengths 2, 3, 4 .. 12, 12 and more at the end: Kraft's sum is 1
  std::vector<int> sizes{2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 12, 12};
  double kraft = 0;
  for (int s : sizes) kraft += std::ldexp(1, -s);
  while (kraft < 1) sizes.push_back(12), kraft += std::ldexp(1, -12);
  std::sort(sizes.begin(), sizes.end());
  const int n = int(sizes.size());
  std::vector<uint32_t> codes(n), limits(longest + 1);
  std::vector<int32_t> bases(longest + 1);
  uint32_t code = 0;
  for (int s = 0, l = 1; l <= longest; ++l) {
    bases[l] = s - int(code);
    for (; s < n && sizes[s] == l; ++s) codes[s] = code++;
    limits[l] = code << (16 - l);
    code <<= 1;
  }
  // streams: a lane's symbols are drawn so that short codes come often; big problems repeat the first streams
  const int made = e.big ? 512 : lanes;
  std::vector<uint32_t> stream;
  std::vector<int32_t> first;
  std::vector<uint8_t> text(size_t(made) * length);
  for (int lane = 0; lane < made; ++lane) {
    first.push_back(int(stream.size()));
    uint64_t word = 0;
    int have = 0;
    for (int k = 0; k < length; ++k) {
      const int s = int(e.uniform() * (e.uniform() < .3 ? n : 8)) % n;
      text[size_t(lane) * length + k] = uint8_t(s * 7 % 251);
      word = word << sizes[s] | codes[s], have += sizes[s];
      if (have >= 32) stream.push_back(uint32_t(word >> (have - 32))), have -= 32;
    }
    stream.push_back(have ? uint32_t(word << (32 - have)) : 0), stream.push_back(0);
  }
  auto words = filled<uint32_t>(e, stream.size(), [&](size_t i) { return stream[i]; });
  auto starts = filled<int32_t>(e, lanes, [&](size_t i) { return first[i % made]; });
  auto lim = filled<uint32_t>(e, limits.size(), [&](size_t i) { return limits[i]; });
  auto base = filled<int32_t>(e, bases.size(), [&](size_t i) { return bases[i]; });
  auto symbols = filled<uint8_t>(e, n, [](size_t i) { return uint8_t(i * 7 % 251); });
  auto out = constant<uint8_t>(e, size_t(lanes) * length, 0);
  Job j;
  j.mbytes = 1e-6 * lanes * length;
  j.add(huffman, HuffmanCfg{e.field("B", 128), longest, e.field("warps", 4)}, words.p, starts.p, lim.p, base.p,
        symbols.p, out.view(length, lanes));
  j.check = [=] {
    std::vector<double> want(size_t(lanes) * length);
    for (int k = 0; k < length; ++k)
      for (int lane = 0; lane < lanes; ++lane) want[size_t(k) * lanes + lane] = text[size_t(lane) * length + k];
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

// --- fractal noise: gradients at the corners of cells by hashing, eight octaves
struct NoiseCfg {
  int BY = 4, BX = 64, octaves = 8, warps = 4;
};
auto noise = kernel("user_noise", [](const NoiseCfg& c, Tensor<float, 2> out, F32 step, U32 seed) {
               num_warps(c.warps);
               auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
               auto shape = Shape{c.BY, c.BX};
               auto x = broadcast_to(cast(x0 + arange(0, c.BX), f32).row() * step, shape);
               auto y = broadcast_to(cast(y0 + arange(0, c.BY), f32).col() * step, shape);
               Tile total = zeros(shape, f32), size = 1.f, scale = 1.f;
               for (auto o : range(0, c.octaves)) {
                 auto u = x * scale, v = y * scale;
                 auto fx = floor(u), fy = floor(v);
                 auto ix = cast(cast(fx, i32), u32), iy = cast(cast(fy, i32), u32);
                 auto dx = u - fx, dy = v - fy;
                 auto corner = [&](unsigned cx, unsigned cy) {
                   auto h = (ix + cx) * 0x9E3779B1u ^ (iy + cy) * 0x85EBCA77u ^ (seed + cast(o, u32)) * 0xC2B2AE3Du;
                   h ^= h >> 15u;
                   h *= 0x2C1B3C6Du;
                   h ^= h >> 12u;
                   auto gx = where((h & 1u) != 0u, 1.f, -1.f), gy = where((h & 2u) != 0u, 1.f, -1.f);
                   auto flip = (h & 4u) != 0u;
                   auto a = dx - float(cx), b = dy - float(cy);
                   return where(flip, gx * a + .5f * gy * b, .5f * gx * a + gy * b);
                 };
                 auto fade = [](const Tile& t) { return t * t * t * (t * (t * 6.f - 15.f) + 10.f); };
                 auto sx = fade(dx), sy = fade(dy);
                 auto low = corner(0, 0), high = corner(0, 1);
                 low += sx * (corner(1, 0) - low), high += sx * (corner(1, 1) - high);
                 total += size * (low + sy * (high - low));
                 size *= .5f, scale *= 2.f;
               }
               out.store({y0, x0}, total);
             }).grid([](const NoiseCfg& c, const auto& o, float, uint32_t) {
  return Grid{cdiv(o.shape[1], c.BX), cdiv(o.shape[0], c.BY)};
});
Register r4("noise", [](Env& e) {
  int H = e.big ? 4096 : 30, W = e.big ? 4096 : 70;
  auto o = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 4e-6 * H * W;
  j.add(noise, NoiseCfg{e.field("BY", 4), e.field("BX", 64), 8, e.field("warps", 4)}, o.view(H, W), 0.0371f, 7u);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    for (int py = 0; py < H; ++py)
      for (int px = 0; px < W; ++px) {
        float size = 1, scale = 1;
        for (unsigned k = 0; k < 8; ++k, size *= .5f, scale *= 2) {
          const float u = float(px) * .0371f * scale, v = float(py) * .0371f * scale, fx = std::floor(u),
                      fy = std::floor(v);
          const double dx = u - fx, dy = v - fy;
          auto corner = [&](unsigned cx, unsigned cy) {
            uint32_t h = (uint32_t(int(fx)) + cx) * 0x9E3779B1u ^ (uint32_t(int(fy)) + cy) * 0x85EBCA77u ^
                         (7u + k) * 0xC2B2AE3Du;
            h ^= h >> 15, h *= 0x2C1B3C6Du, h ^= h >> 12;
            const double gx = h & 1 ? 1 : -1, gy = h & 2 ? 1 : -1, a = dx - cx, b = dy - cy;
            return h & 4 ? gx * a + .5 * gy * b : .5 * gx * a + gy * b;
          };
          auto fade = [](double t) { return t * t * t * (t * (t * 6 - 15) + 10); };
          const double low = corner(0, 0) + fade(dx) * (corner(1, 0) - corner(0, 0)),
                       high = corner(0, 1) + fade(dx) * (corner(1, 1) - corner(0, 1));
          want[size_t(py) * W + px] += size * (low + fade(dy) * (high - low));
        }
      }
    return agree(o.now(), want, 2e-4, 1e-4);
  };
  return j;
});

// --- the lattice of a transducer (RNN-T): all paths through T frames and U labels, diagonal after diagonal
struct LatticeCfg {
  int BU = 128, warps = 4;
};
auto rnnt = kernel("user_rnnt", [](const LatticeCfg& c, Tensor<const float, 3> blank, Tensor<const float, 3> emit,
                                   Ptr<const int32_t> frames, Ptr<const int32_t> labels, Tensor<float, 3> alpha,
                                   Ptr<float> loss) {
              // blank, emit, alpha [B, T, U + 1]: log probabilities of a blank and of the next label at (t, u)
              num_warps(c.warps);
              auto b = program_id(0);
              auto T = load(frames + b), U = load(labels + b);
              auto u = arange(0, c.BU);
              auto before = max(u - 1, 0);
              auto width = blank.dim(2);
              auto here = [&](const Tensor<const float, 3>& X, const Tile& t, const Tile& col, const Tile& ok) {
                return load(X.ptr() + (b * X.dim(1) + t) * width + col, {.mask = ok, .other = -INFINITY});
              };
              Tile a = where(u == 0, 0.f, -INFINITY);
              store(alpha.ptr() + b * alpha.dim(1) * width + u, a, {.mask = u == 0});
              for (auto d : range(1, T + U)) {
                auto t = d - u;
                auto valid = (u <= U) & (t >= 0) & (t < T);
                auto stay = a + here(blank, t - 1, u, valid & (t >= 1));
                auto step = take(a, before, 0) + here(emit, t, u - 1, valid & (u >= 1));
                auto top = max(stay, step), low = min(stay, step);
                a = where(valid, where(low > -INFINITY, top + log1p(exp(low - top)), top), -INFINITY);
                store(alpha.ptr() + (b * alpha.dim(1) + t) * width + u, a, {.mask = valid});
              }
              auto last = sum(where(u == U, a, 0.f));
              store(loss + b, -(last + blank.load({b, T - 1, U})));
            }).grid([](const LatticeCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r5("rnnt", [](Env& e) {
  int B = e.big ? 256 : 3, T = e.big ? 500 : 20, U = e.big ? 100 : 9;
  size_t n = size_t(B) * T * (U + 1);
  auto blank = random<float>(e, n, -3, -.1), emit = random<float>(e, n, -3, -.1);
  auto frames = filled<int32_t>(e, B, [&](size_t i) { return T - int(i) % 3; });
  auto labels = filled<int32_t>(e, B, [&](size_t i) { return U - int(i) % 2; });
  auto alpha = constant<float>(e, n, NAN), loss = constant<float>(e, B, NAN);
  Job j;
  j.mbytes = 12e-6 * n;
  j.add(rnnt, LatticeCfg{e.big ? 128 : 16, e.field("warps", e.big ? 4 : 1)}, blank.view(B, T, U + 1),
        emit.view(B, T, U + 1), frames.p, labels.p, alpha.view(B, T, U + 1), loss.p);
  j.check = [=] {
    std::vector<double> want(B);
    for (int b = 0; b < B; ++b) {
      const int tb = frames.h[b], ub = labels.h[b], w = U + 1;
      std::vector<double> a(tb * w, -INFINITY);
      auto at = [&](const Array<float>& x, int t, int u) { return x[(size_t(b) * T + t) * w + u]; };
      for (int t = 0; t < tb; ++t)
        for (int u = 0; u <= ub; ++u) {
          double s = t + u == 0 ? 1 : 0;
          if (t) s += std::exp(a[(t - 1) * w + u] + at(blank, t - 1, u));
          if (u) s += std::exp(a[t * w + u - 1] + at(emit, t, u - 1));
          a[t * w + u] = std::log(s);
        }
      want[b] = -(a[(tb - 1) * w + ub] + at(blank, tb - 1, ub));
    }
    return agree(loss.now(), want, 1e-3, 1e-4);
  };
  return j;
});

}  // namespace lanes
}  // namespace users
