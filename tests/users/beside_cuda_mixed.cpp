// beside_cuda_mixed.cpp - medians of 7 x 7 bytes, small f64 products of 23 x 23, affine warps of packed pixels, a
// bottom-up step of breadth-first search, a histogram of 65536 bins.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_mixed {

// --- median of 7 x 7 bytes, bit by bit: how many of 49 are at least what the bits so far and the next one say
struct Median7Cfg {
  int BY = 8, BX = 128, warps = 4, reload = 0, form = 0;
};
// form 1: four bytes in a word, the same eight decisions for all four
auto median7_words =
    kernel("user_median7_words", [](const Median7Cfg& c, Tensor<const uint32_t, 2> X, Tensor<uint32_t, 2> Y) {
      num_warps(c.warps);
      const int BX = c.BX / 4;
      auto y = program_id(1) * c.BY, x = program_id(0) * BX;
      constexpr uint32_t one = 0x01010101u, top = 0x80808080u;
      std::vector<Tile> t;
      for (int dy = -3; dy <= 3; ++dy) {
        auto word = [&](int dx) { return X.load({y + dy, x + dx}, {c.BY, BX}); };
        auto a = word(-1), b = word(0), d = word(1);
        for (int s = 8; s < 32; s += 8) t.push_back((a >> s) | (b << (32 - s)));
        t.push_back(b);
        for (int s = 8; s < 32; s += 8) t.push_back((b >> s) | (d << (32 - s)));
      }
      Tile count = zeros({c.BY, BX}, u32);
      for (const Tile& k : t) count += (k >> 7) & one;
      Tile m = (count + 103u * one) & top;
      auto whole = [&](const Tile& h) { return h | (h - (h >> 7)); };
      const Tile all = whole(m);
      for (Tile& k : t) {
        auto full = whole(k & top);
        k = (k & ~(all ^ full)) | (full & ~all) | top;
      }
      for (uint32_t bit = 64; bit; bit /= 2) {
        auto trial = (m & ~top) | (bit * one);
        Tile n = zeros({c.BY, BX}, u32);
        for (const Tile& k : t) n += ((k - trial) >> 7) & one;
        m |= (((n + 103u * one) & top) >> 7) * bit;
      }
      Y.store({y, x}, m);
    }).grid([](const Median7Cfg& c, const auto& x, const auto&) {
      return Grid{cdiv(x.shape[1], c.BX / 4), cdiv(x.shape[0], c.BY)};
    });
auto median7 = kernel("user_median7", [](const Median7Cfg& c, Tensor<const uint8_t, 2> X, Tensor<uint8_t, 2> Y) {
                 num_warps(c.warps);
                 auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                 auto tap = [&](int k) { return X.load({y + (k / 7 - 3), x + (k % 7 - 3)}, {c.BY, c.BX}); };
                 std::vector<Tile> taps;
                 if (!c.reload)
                   for (int k = 0; k < 49; ++k) taps.push_back(tap(k));
                 Tile m = zeros({c.BY, c.BX}, u8);
                 for (int bit = 128; bit; bit /= 2) {
                   auto trial = m | bit;
                   Tile count = zeros({c.BY, c.BX}, u8);
                   for (int k = 0; k < 49; ++k) count += cast((c.reload ? tap(k) : taps[k]) >= trial, u8);
                   m = where(count >= 25, trial, m);
                 }
                 Y.store({y, x}, m);
               }).grid([](const Median7Cfg& c, const auto& x, const auto&) {
  return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
});
Register r1("median7", [](Env& e) {
  Median7Cfg c;
  if (!e.big) c = {4, 16, 2, 0, 0};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  c.reload = e.field("reload", c.reload), c.form = e.field("form", 0);
  const int H = e.big ? 4096 : 19, W = e.big ? 4096 : 44;
  auto x = integers<uint8_t>(e, size_t(H) * W, 0, 256), y = constant<uint8_t>(e, size_t(H) * W, 1),
       z = constant<uint8_t>(e, size_t(H) * W, 1);
  Job j;
  j.mbytes = 2e-6 * H * W;
  if (!e.big || !c.form) j.add(median7, c, x.view(H, W), y.view(H, W));
  if (!e.big || c.form)
    j.add(median7_words, c, TensorView<const uint32_t, 2>(reinterpret_cast<const uint32_t*>(x.p), {H, W / 4}),
          TensorView<uint32_t, 2>(reinterpret_cast<uint32_t*>(z.p), {H, W / 4}));
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(H) * W);
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k) {
        std::vector<int> all;
        for (int dy = -3; dy <= 3; ++dy)
          for (int dx = -3; dx <= 3; ++dx) {
            const int a = i + dy, b = k + dx;
            all.push_back(a < 0 || b < 0 || a >= H || b >= W ? 0 : x.at(size_t(a) * W + b));
          }
        std::sort(all.begin(), all.end());
        want[size_t(i) * W + k] = all[24];
      }
    auto first = agree(y.now(), want, 1e-9, 0);
    return first.empty() ? agree(z.now(), want, 1e-9, 0) : first;
  };
  return j;
});

// --- C = A B of many 23 x 23 matrices in f64
struct Small23Cfg {
  int BB = 2, warps = 4, form = 0;
};
auto gemm23 = kernel("user_gemm23", [](const Small23Cfg& c, Tensor<const double, 3> A, Tensor<const double, 3> B,
                                       Tensor<double, 3> C) {
                num_warps(c.warps);
                auto b = program_id(0) * c.BB;
                auto a = A.load({b, 0, 0}, {c.BB, 24, 24}), x = B.load({b, 0, 0}, {c.BB, 24, 24});
                Tile acc = zeros({c.BB, 24, 24}, f64);
                if (c.form == 0) {
                  acc = dot(a, x, acc);
                } else {
                  for (int k = 0; k < 23; ++k)
                    acc += extract(a, {0, 0, k}, {c.BB, 24, 1}) * extract(x, {0, k, 0}, {c.BB, 1, 24});
                }
                C.store({b, 0, 0}, acc);
              }).grid([](const Small23Cfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BB)}; });
Register r2("gemm23", [](Env& e) {
  Small23Cfg c;
  c.BB = e.field("BB", c.BB), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  const int n = e.big ? 100'000 : 7, S = 23;
  auto a = random<double>(e, size_t(n) * S * S), b = random<double>(e, size_t(n) * S * S);
  auto o = constant<double>(e, size_t(n) * S * S, NAN);
  Job j;
  j.mbytes = 24e-6 * n * S * S, j.gflop = 2e-9 * n * S * S * S;
  j.add(gemm23, c, a.view(n, S, S), b.view(n, S, S), o.view(n, S, S));
  j.check = [=] {
    std::vector<double> want(size_t(n) * S * S);
    for (int m = 0; m < n; ++m)
      for (int i = 0; i < S; ++i)
        for (int k = 0; k < S; ++k)
          for (int l = 0; l < S; ++l)
            want[(size_t(m) * S + i) * S + k] += a[(size_t(m) * S + i) * S + l] * b[(size_t(m) * S + l) * S + k];
    return agree(o.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- an affine warp of packed pixels (four bytes), bilinear in steps of 1/16, places in 16.16
struct WarpCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto warp_rgba = kernel("user_warp_rgba", [](const WarpCfg& c, Ptr<const uint32_t> from, Tensor<uint32_t, 2> to, I32 H,
                                             I32 W, I32 ax, I32 bx, I32 cx, I32 ay, I32 by, I32 cy) {
                   num_warps(c.warps);
                   auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                   auto yy = (y + arange(0, c.BY)).col(), xx = (x + arange(0, c.BX)).row();
                   auto sx = ax * xx + bx * yy + cx, sy = ay * xx + by * yy + cy;
                   auto ix = sx >> 16, iy = sy >> 16;
                   auto fx = cast((sx >> 12) & 15, u32), fy = cast((sy >> 12) & 15, u32);
                   auto pixel = [&](int dy, int dx) {
                     auto py = iy + dy, px = ix + dx;
                     return load(from + (py * W + px), {.mask = (py >= 0) & (py < H) & (px >= 0) & (px < W)});
                   };
                   Tile even = full({c.BY, c.BX}, 0x00800080u, u32), odd = even;
                   auto add = [&](const Tile& p, const Tile& w) {
                     even += (p & 0x00FF00FFu) * w;
                     odd += ((p >> 8) & 0x00FF00FFu) * w;
                   };
                   add(pixel(0, 0), (16u - fx) * (16u - fy)), add(pixel(0, 1), fx * (16u - fy));
                   add(pixel(1, 0), (16u - fx) * fy), add(pixel(1, 1), fx * fy);
                   to.store({y, x}, ((even >> 8) & 0x00FF00FFu) | (odd & 0xFF00FF00u));
                 }).grid([](const WarpCfg& c, auto, const auto& t, auto...) {
  return Grid{cdiv(t.shape[1], c.BX), cdiv(t.shape[0], c.BY)};
});
Register r3("warp_rgba", [](Env& e) {
  WarpCfg c;
  if (!e.big) c = {4, 16, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 6000 : 41, W = e.big ? 6000 : 53;
  const int ax = 62001, bx = -21003, cx = e.big ? 1000 * 65536 : 9 * 65536 + 777, ay = 21003, by = 62001,
            cy = e.big ? -900 * 65536 : -5 * 65536;
  auto from = drawn<uint32_t>(e, size_t(H) * W,
                              [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto to = constant<uint32_t>(e, size_t(H) * W, 1);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(warp_rgba, c, from.p, to.view(H, W), H, W, ax, bx, cx, ay, by, cy);
  j.check = [=]() -> std::string {
    const auto got = to.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const int sx = ax * x + bx * y + cx, sy = ay * x + by * y + cy;
        uint32_t want = 0;
        for (int ch = 0; ch < 4; ++ch) {
          int s = 128;
          for (int t = 0; t < 4; ++t) {
            const int px = (sx >> 16) + t % 2, py = (sy >> 16) + t / 2, fx = sx >> 12 & 15, fy = sy >> 12 & 15;
            if (px < 0 || py < 0 || px >= W || py >= H) continue;
            s += int(from.at(size_t(py) * W + px) >> (8 * ch) & 255) * (t % 2 ? fx : 16 - fx) * (t / 2 ? fy : 16 - fy);
          }
          want |= uint32_t(s >> 8) << (8 * ch);
        }
        if (got[size_t(y) * W + x] != want) return "pixel " + std::to_string(y) + " " + std::to_string(x);
      }
    return "";
  };
  return j;
});

// --- a bottom-up step of breadth-first search: every vertex without a level looks for a neighbour in the frontier
// (bits)
struct PullCfg {
  int B = 128, warps = 4;
};
auto bfs_pull =
    kernel("user_bfs_pull", [](const PullCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> columns,
                               Ptr<const int32_t> level, Ptr<const uint32_t> frontier, Ptr<int32_t> parent, I32 n) {
      num_warps(c.warps);
      auto v = program_id(0) * c.B + arange(0, c.B);
      auto open = (v < n) & (load(level + v, {.mask = v < n}) < 0);
      Tile at = load(starts + v, {.mask = open});
      auto end = load(starts + v + 1, {.mask = open});
      Tile found = full({c.B}, -1, i32), active = open & (at < end);
      while_([&] { return any(active); },
             [&] {
               auto u = load(columns + at, {.mask = active});
               auto bit = (load(frontier + (u >> 5), {.mask = active}) >> (u & 31)) & 1u;
               found = where(active & (bit != 0u), u, found);
               at = where(active, at + 1, at);
               active = active & (found < 0) & (at < end);
             });
      store(parent + v, found, {.mask = open});
    }).grid([](const PullCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("bfs_pull", [](Env& e) {
  PullCfg c;
  if (!e.big) c = {32, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 2'000'000 : 517;
  auto mix = [](uint32_t x) { return x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^ x >> 16; };
  std::vector<int32_t> s(n + 1);
  for (int i = 0; i < n; ++i) {
    const uint32_t r = mix(uint32_t(i) * 3 + 1);
    s[i + 1] = s[i] + int(r % 16 == 0 ? r / 16 % 128 : r / 16 % 24);  // mean 14.7
  }
  const int edges = s[n];
  auto starts = filled<int32_t>(e, n + 1, [&](size_t i) { return s[i]; });
  auto columns = filled<int32_t>(e, edges, [&](size_t i) { return int32_t(mix(uint32_t(i) * 5 + 2) % uint32_t(n)); });
  auto level = filled<int32_t>(e, n, [&](size_t i) { return mix(uint32_t(i) * 7 + 3) % 4 ? -1 : 2; });
  auto frontier = filled<uint32_t>(e, n / 32 + 1, [&](size_t i) {
    const uint32_t k = uint32_t(i) * 11;
    return mix(k) & mix(k + 1) & mix(k + 2);  // one of eight
  });
  auto parent = constant<int32_t>(e, n, -7);
  Job j;
  j.mbytes = 1e-6 * (4. * edges + 12. * n);
  j.add(bfs_pull, c, starts.p, columns.p, level.p, frontier.p, parent.p, n);
  j.check = [=] {
    std::vector<double> want(n, -7);
    for (int v = 0; v < n; ++v) {
      if (level.h[v] >= 0) continue;
      want[v] = -1;
      for (int k = starts.h[v]; k < starts.h[v + 1]; ++k) {
        const int u = columns.h[k];
        if (frontier.h[u / 32] >> (u % 32) & 1) {
          want[v] = u;
          break;
        }
      }
    }
    return agree(parent.now(), want, 1e-9, 0);
  };
  return j;
});

// --- a histogram of 16-bit samples, 65536 bins. form 0: one atomic a sample; form 1: a program counts one part of the
// bins over a slice of the samples
struct Bins16Cfg {
  int B = 2048, parts = 16, slices = 64, warps = 8, form = 0;
};
auto bins16_atomic =
    kernel("user_bins16_atomic", [](const Bins16Cfg& c, Ptr<const uint16_t> x, Ptr<int32_t> bins, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto v = cast(load(x + i, {.mask = i < n}), i32);
      atomic_add(bins + v, 1, {.mask = i < n});
    }).grid([](const Bins16Cfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto bins16_parts =
    kernel("user_bins16_parts", [](const Bins16Cfg& c, Ptr<const uint16_t> x, Ptr<int32_t> bins, I32 n) {
      num_warps(c.warps);
      const int own = 65536 / c.parts;
      auto first = program_id(0) * own;
      auto share = cdiv(cdiv(n, c.B), c.slices) * c.B, from = program_id(1) * share;
      Tile count = zeros({own}, i32);
      for (auto j : range(from, min(from + share, n), c.B)) {
        auto i = j + arange(0, c.B);
        auto v = cast(load(x + i, {.mask = i < n}), i32) - first;
        count += histogram(v, own, {.mask = (i < n) & (v >= 0) & (v < own)});
      }
      atomic_add(bins + first + arange(0, own), count, {.mask = count > 0});
    }).grid([](const Bins16Cfg& c, auto, auto, int) {
      return Grid{c.parts, c.slices};
    });
Register r5("bins16", [](Env& e) {
  Bins16Cfg c;
  if (!e.big) c = {512, 16, 3, 4, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  c.parts = e.field("parts", c.parts), c.slices = e.field("slices", c.slices);
  const int n = e.big ? 67'108'864 : 3333;
  auto x =
      drawn<uint16_t>(e, n, [&] { return uint16_t((e.uniform() + e.uniform() + e.uniform() + e.uniform()) * 16384); });
  auto bins = constant<int32_t>(e, 65536, 0), other = constant<int32_t>(e, 65536, 0);
  Job j;
  j.mbytes = 2e-6 * n;
  if (!e.big || !c.form) j.add(bins16_atomic, c, x.p, bins.p, n);
  if (!e.big || c.form) j.add(bins16_parts, c, x.p, other.p, n);
  j.check = [=] {
    std::vector<double> want(65536);
    for (int i = 0; i < n; ++i) want[x.at(i)] += 1;
    auto first = agree(bins.now(), want, 1e-9, 0);
    return first.empty() ? agree(other.now(), want, 1e-9, 0) : first;
  };
  return j;
});

}  // namespace beside_cuda_mixed
}  // namespace users
