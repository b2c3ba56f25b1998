// outlines.cpp - pictures and surfaces: surfaces between cells, fragments of pixels in lists, exact distances, edges, the
// flow between two pictures, letters from outlines.
#include "tests/users/use.h"
namespace users {
namespace outlines {

// --- surface nets: where the sign changes inside a cell lies one point, the mean of where its edges cross zero; points
// are counted by an atomic, so their order is nobody's
struct NetCfg {
  int Z = 2, Y = 4, X = 32, warps = 4;
};
auto surface_nets =
    kernel("user_surface_nets", [](const NetCfg& c, Tensor<const float, 3> F, Ptr<float> points, Ptr<int32_t> cells,
                                   Ptr<int32_t> count) {
      num_warps(c.warps);
      auto z = program_id(2) * c.Z, y = program_id(1) * c.Y, x = program_id(0) * c.X;
      const Shape shape{c.Z, c.Y, c.X};
      auto line = [&](int size, int axis) {
        Shape s{1, 1, 1};
        s[axis] = size;
        return reshape(arange(0, size), s);
      };
      auto cz = z + line(c.Z, 0), cy = y + line(c.Y, 1), cx = x + line(c.X, 2);
      auto inside = (cz < F.dim(0) - 1) & (cy < F.dim(1) - 1) & (cx < F.dim(2) - 1);
      std::array<Tile, 8> f;
      for (int k = 0; k < 8; ++k) f[k] = F.load({z + (k >> 2), y + (k >> 1 & 1), x + (k & 1)}, shape);
      Tile n = zeros(shape, f32), px = n, py = n, pz = n;
      for (int a = 0; a < 8; ++a)
        for (int bit : {1, 2, 4}) {
          if (a & bit) continue;
          const int b = a | bit;
          auto crosses = (f[a] < 0.f) != (f[b] < 0.f);
          auto t = f[a] / where(crosses, f[a] - f[b], 1.f);
          auto along = [&](int axis) { return bit == axis ? t : full(shape, a & axis ? 1.f : 0.f, f32); };
          n += cast(crosses, f32);
          px += where(crosses, along(1), 0.f), py += where(crosses, along(2), 0.f), pz += where(crosses, along(4), 0.f);
        }
      auto there = ravel(inside & (n > 0.f));
      auto mine = sum(cast(there, i32));
      return_if(mine == 0);
      auto at = atomic_add(count, mine, {.order = Order::relaxed}) + cumsum(cast(there, i32), axis(0)) - 1;
      auto put = [&](int k, Tile base, Tile offset) {
        store(points + at * 3 + k, ravel(cast(base, f32) + offset / max(n, 1.f)), {.mask = there});
      };
      put(0, cx, px), put(1, cy, py), put(2, cz, pz);
      store(cells + at, ravel((cz * F.dim(1) + cy) * F.dim(2) + cx), {.mask = there});
    }).grid([](const NetCfg& c, const auto& f, auto, auto, auto) {
      return Grid{cdiv(f.shape[2], c.X), cdiv(f.shape[1], c.Y), cdiv(f.shape[0], c.Z)};
    });
Register r2("surface_nets", [](Env& e) {
  NetCfg c;
  if (!e.big) c = {2, 3, 8, 1};
  c.warps = e.field("warps", c.warps), c.Z = e.field("BZ", c.Z), c.Y = e.field("BY", c.Y);
  const int Z = e.big ? 256 : 7, Y = e.big ? 256 : 8, X = e.big ? 256 : 19;
  auto f = filled<float>(e, size_t(Z) * Y * X, [&](size_t i) {
    const double x = double(i % X) / X - .5, y = double(i / X % Y) / Y - .5, z = double(i / X / Y) / Z - .5;
    return float(x * x + y * y + z * z - .15 + .01 * e.uniform());
  });
  auto points = constant<float>(e, f.n * 3, NAN);
  auto cells = constant<int32_t>(e, f.n, -1), count = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 4e-6 * f.n;
  j.inTurn = true;
  restore(e, j, count);
  j.add(surface_nets, c, f.view(Z, Y, X), points.p, cells.p, count.p);
  j.check = [=]() -> std::string {
    const int n = count.now()[0];
    const auto at = cells.now();
    const auto p = points.now();
    if (n < 0 || n > int(at.size())) return "number of points";
    std::map<int, int> found;
    for (int i = 0; i < n; ++i) found[at[i]] = i;
    int wanted = 0;
    for (int z = 0; z + 1 < Z; ++z)
      for (int y = 0; y + 1 < Y; ++y)
        for (int x = 0; x + 1 < X; ++x) {
          double sum[3] = {}, m = 0;
          auto value = [&](int k) { return f[(size_t(z + (k >> 2)) * Y + y + (k >> 1 & 1)) * X + x + (k & 1)]; };
          for (int a = 0; a < 8; ++a)
            for (int axis = 0; axis < 3; ++axis) {
              const int b = a | 1 << axis;
              if (a == b || (value(a) < 0) == (value(b) < 0)) continue;
              ++m;
              for (int k = 0; k < 3; ++k) sum[k] += k == axis ? value(a) / (value(a) - value(b)) : a >> k & 1;
            }
          if (!m) continue;
          ++wanted;
          const auto it = found.find((z * Y + y) * X + x);
          if (it == found.end()) return "no point";
          const double base[3] = {double(x), double(y), double(z)};
          for (int k = 0; k < 3; ++k)
            if (!(std::abs(p[it->second * 3 + k] - base[k] - sum[k] / m) < 1e-4)) return "place of a point";
        }
    return wanted == n ? "" : "number of points";
  };
  return j;
});

// --- order-independent transparency: fragments of a pixel in a linked list, newest first; the nearest 8 are kept
// sorted while the list is walked, then blended front to back
struct FragmentCfg {
  int B = 128, K = 8, warps = 4;
};
auto fragments =
    kernel("user_fragments", [](const FragmentCfg& c, Ptr<const int32_t> head, Ptr<const int32_t> next,
                                Ptr<const float> depth, Ptr<const uint32_t> colour, Ptr<uint32_t> out, I32 n) {
      num_warps(c.warps);
      auto p = program_id(0) * c.B + arange(0, c.B);
      Tile at = load(head + p, {.mask = p < n, .other = -1});
      std::vector<Tile> z, rgba;
      for (int k = 0; k < c.K; ++k) z.push_back(full({c.B}, INFINITY, f32)), rgba.push_back(zeros({c.B}, u32));
      while_([&] { return any(at >= 0); },
             [&] {
               auto there = at >= 0;
               Tile d = load(depth + at, {.mask = there, .other = INFINITY}), x = load(colour + at, {.mask = there});
               for (int k = 0; k < c.K; ++k) {  // put in where it belongs, the others move on
                 auto nearer = d < z[k];
                 Tile d2 = where(nearer, z[k], d), x2 = where(nearer, rgba[k], x);
                 z[k] = where(nearer, d, z[k]), rgba[k] = where(nearer, x, rgba[k]);
                 d = d2, x = x2;
               }
               at = load(next + at, {.mask = there, .other = -1});
             });
      std::array<Tile, 3> sum;
      for (Tile& s : sum) s = zeros({c.B}, f32);
      Tile through = full({c.B}, 1.f, f32);
      for (int k = 0; k < c.K; ++k) {
        auto alpha = cast(rgba[k] >> 24, f32) / 255.f;
        for (int i = 0; i < 3; ++i) sum[i] += through * alpha * cast((rgba[k] >> (8 * i)) & 255, f32);
        through *= 1.f - alpha;
      }
      Tile word = cast(saturate(rint(255.f * (1.f - through)), u8), u32) << 24;
      for (int i = 0; i < 3; ++i) word |= cast(saturate(rint(sum[i]), u8), u32) << (8 * i);
      store(out + p, word, {.mask = p < n});
    }).grid([](const FragmentCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("fragments", [](Env& e) {
  FragmentCfg c;
  if (!e.big) c = {32, 4, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 21 : 135, m = e.big ? n * 4 : 700;
  std::vector<int32_t> heads(n, -1), nexts(m, -1);
  for (int i = 0; i < m; ++i) {
    const int p = int(e.uniform() * e.uniform() * n);
    nexts[i] = heads[p], heads[p] = i;
  }
  auto head = filled<int32_t>(e, n, [&](size_t i) { return heads[i]; });
  auto next = filled<int32_t>(e, m, [&](size_t i) { return nexts[i]; });
  auto depth = random<float>(e, m);
  auto colour = integers<uint32_t>(e, m, 0, 1ll << 32);
  auto out = constant<uint32_t>(e, n, 0);
  Job j;
  j.mbytes = 12e-6 * m + 8e-6 * n;
  j.add(fragments, c, head.p, next.p, depth.p, colour.p, out.p, n);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int p = 0; p < n; ++p) {
      std::vector<std::pair<double, uint32_t>> list;
      for (int i = heads[p]; i >= 0; i = nexts[i]) list.push_back({depth[i], colour.at(i)});
      std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.first < b.first; });
      double sum[4] = {}, through = 1;
      for (size_t k = 0; k < list.size() && int(k) < c.K; ++k) {
        const double alpha = double(list[k].second >> 24) / 255;
        for (int i = 0; i < 3; ++i) sum[i] += through * alpha * double(list[k].second >> 8 * i & 255);
        through *= 1 - alpha;
      }
      sum[3] = 255 * (1 - through);
      for (int i = 0; i < 4; ++i)
        if (std::abs(double(got[p] >> 8 * i & 255) - sum[i]) > .51) return "pixel " + std::to_string(p);
    }
    return "";
  };
  return j;
});

// --- exact distances (Felzenszwalb and Huttenlocher): along a column the lower envelope of parabolas, a column a lane,
// its stack in memory; then the same along rows, through the same arrays turned by their strides
struct EnvelopeCfg {
  int B = 8, warps = 1;  // few lanes: a warp goes on until the last of its columns is done
};
auto envelope = kernel("user_envelope", [](const EnvelopeCfg& c, Tensor<const float, 2> f, Tensor<float, 2> out,
                                           Tensor<int32_t, 2> places, Tensor<float, 2> bounds) {
                  // f, out [length, lines], places, bounds [length + 1, lines]
                  num_warps(c.warps);
                  auto line = program_id(0) * c.B + arange(0, c.B);
                  auto in = line < f.dim(1);
                  auto length = f.dim(0);
                  auto at = [&](auto& view, Tile i) {
                    return view.ptr() + (cast(i, i64) * view.stride(0) + cast(line, i64) * view.stride(1));
                  };
                  Tile k = zeros({c.B}, i32);
                  store(at(places, k), k, {.mask = in});
                  store(at(bounds, k), full({c.B}, -1e20f, f32), {.mask = in});
                  store(at(bounds, k + 1), full({c.B}, 1e20f, f32), {.mask = in});
                  for (auto q : range(1, length)) {
                    auto fq = load(at(f, full({c.B}, q, i32)), {.mask = in}) + cast(q * q, f32);
                    auto meets = [&](Tile mask) {
                      auto v = load(at(places, k), {.mask = mask});
                      return (fq - (load(at(f, v), {.mask = mask}) + cast(v * v, f32))) / cast(2 * q - 2 * v, f32);
                    };
                    Tile s = meets(in);
                    Tile back = in & (s <= load(at(bounds, k), {.mask = in}));
                    while_([&] { return any(back); },
                           [&] {
                             k -= cast(back, i32);
                             s = where(back, meets(back), s);
                             back = back & (s <= load(at(bounds, k), {.mask = back}));
                           });
                    k += 1;
                    store(at(places, k), full({c.B}, q, i32), {.mask = in});
                    store(at(bounds, k), s, {.mask = in});
                    store(at(bounds, k + 1), full({c.B}, 1e20f, f32), {.mask = in});
                  }
                  k = zeros({c.B}, i32);
                  for (auto q : range(length)) {
                    Tile on = in & (load(at(bounds, k + 1), {.mask = in}) < cast(q, f32));
                    while_([&] { return any(on); },
                           [&] {
                             k += cast(on, i32);
                             on = on & (load(at(bounds, k + 1), {.mask = on}) < cast(q, f32));
                           });
                    auto v = load(at(places, k), {.mask = in});
                    auto d = cast(q - v, f32);
                    store(at(out, full({c.B}, q, i32)), d * d + load(at(f, v), {.mask = in}), {.mask = in});
                  }
                }).grid([](const EnvelopeCfg& c, const auto& f, const auto&, const auto&, const auto&) {
  return Grid{cdiv(f.shape[1], c.B)};
});
Register r4("envelope", [](Env& e) {
  EnvelopeCfg c;
  if (!e.big) c = {16, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int Y = e.big ? 2048 : 23, X = e.big ? 4096 : 37, longer = std::max(X, Y) + 1;
  auto f = filled<float>(e, size_t(Y) * X, [&](size_t) { return e.uniform() < .03 ? 0.f : 1e9f; });
  auto half_way = constant<float>(e, f.n, NAN), out = constant<float>(e, f.n, NAN);
  auto places = constant<int32_t>(e, size_t(longer) * std::max(X, Y), 0);
  auto bounds = constant<float>(e, places.n, 0);
  auto turned = [&](auto& a, int rows, int columns) {  // columns as rows
    return TensorView<std::remove_reference_t<decltype(*a.p)>, 2>(a.p, {columns, rows}, {1, columns});
  };
  Job j;
  j.mbytes = 16e-6 * f.n;
  j.add(envelope, c, TensorView<const float, 2>(f.p, {Y, X}, {X, 1}), half_way.view(Y, X), places.view(Y + 1, X),
        bounds.view(Y + 1, X));
  j.add(envelope, c, TensorView<const float, 2>(half_way.p, {X, Y}, {1, X}), turned(out, Y, X), places.view(X + 1, Y),
        bounds.view(X + 1, Y));
  j.check = [=] {
    std::vector<double> want(f.n, 1e30);
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x)
        for (int v = 0; v < Y; ++v)
          for (int u = 0; u < X; ++u)
            want[y * X + x] = std::min(want[y * X + x], (y - v) * (y - v) + (x - u) * (x - u) + f[v * X + u]);
    return agree(out.now(), want, 1e-3, 1e-5);
  };
  return j;
});

// --- edges (Canny): gradients of a picture of bytes, only the steepest across an edge stay, weak ones where they touch
// strong ones, again and again inside a tile with a border
struct EdgeCfg {
  int Y = 32, X = 64, warps = 8;
};
auto canny = kernel("user_canny", [](const EdgeCfg& c, Tensor<const uint8_t, 2> image, Tensor<uint8_t, 2> out, I32 low,
                                     I32 high) {
               num_warps(c.warps);
               auto y = program_id(1) * (c.Y - 2), x = program_id(0) * (c.X - 2);
               auto pixel = [&](int dy, int dx) { return cast(image.load({y - 1 + dy, x - 1 + dx}, {c.Y, c.X}), i32); };
               auto gradient = [&](int dy, int dx) {
                 auto p = [&](int v, int u) { return pixel(dy + v, dx + u); };
                 auto gx = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
                 auto gy = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
                 return std::pair(gx, gy);
               };
               auto size = [&](int dy, int dx) {
                 auto [gx, gy] = gradient(dy, dx);
                 return abs(gx) + abs(gy);
               };
               auto [gx, gy] = gradient(0, 0);
               auto m = abs(gx) + abs(gy);
               auto flat = abs(gy) * 5 < abs(gx) * 2, steep = abs(gx) * 5 < abs(gy) * 2, rising = (gx > 0) == (gy > 0);
               auto before =
                   where(flat, size(0, -1), where(steep, size(-1, 0), where(rising, size(-1, -1), size(-1, 1))));
               auto after = where(flat, size(0, 1), where(steep, size(1, 0), where(rising, size(1, 1), size(1, -1))));
               auto crest = (m > before) & (m >= after);
               Tile strong = crest & (m >= high), weak = crest & (m >= low) & (m < high), grows = any(weak);
               while_([&] { return grows; },
                      [&] {
                        Tile near = cast(strong, i8);
                        for (int axis : {0, 1}) {
                          Shape edge{c.Y, c.X}, kept{c.Y, c.X}, from{0, 0};
                          edge[axis] = 1, kept[axis] -= 1, from[axis] = 1;
                          near = near | cat(zeros(edge, i8), extract(near, {0, 0}, kept), axis) |
                                 cat(extract(near, from, kept), zeros(edge, i8), axis);
                        }
                        auto more = weak & (near != 0);
                        strong = strong | more, weak = weak & ~more;
                        grows = any(more);
                      });
               auto r = arange(0, c.Y).col(), q = arange(0, c.X).row();
               auto inner = (r > 0) & (r < c.Y - 1) & (q > 0) & (q < c.X - 1);
               auto row = cast(y - 1 + r, i64), column = cast(x - 1 + q, i64);
               store(out.ptr() + row * out.stride(0) + column, where(strong, 255, where(weak, 1, 0)).to(u8),
                     {.mask = inner & (row < out.dim64(0)) & (column < out.dim64(1))});
             }).grid([](const EdgeCfg& c, const auto& image, const auto&, int, int) {
  return Grid{cdiv(image.shape[1], c.X - 2), cdiv(image.shape[0], c.Y - 2)};
});
Register r5("canny", [](Env& e) {
  EdgeCfg c;
  if (!e.big) c = {9, 16, 1};
  c.warps = e.field("warps", c.warps);
  const int Y = e.big ? 4096 : 19, X = e.big ? 4096 : 45;
  auto image = integers<uint8_t>(e, size_t(Y) * X, 0, 200);
  auto out = constant<uint8_t>(e, image.n, 7);
  Job j;
  j.mbytes = 2e-6 * image.n;
  j.add(canny, c, image.view(Y, X), out.view(Y, X), 250, 420);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    auto p = [&](int y, int x) { return y < 0 || x < 0 || y >= Y || x >= X ? 0 : int(image.at(y * X + x)); };
    auto grad = [&](int y, int x) {
      return std::pair(
          p(y - 1, x + 1) + 2 * p(y, x + 1) + p(y + 1, x + 1) - p(y - 1, x - 1) - 2 * p(y, x - 1) - p(y + 1, x - 1),
          p(y + 1, x - 1) + 2 * p(y + 1, x) + p(y + 1, x + 1) - p(y - 1, x - 1) - 2 * p(y - 1, x) - p(y - 1, x + 1));
    };
    auto size = [&](int y, int x) {
      auto [a, b] = grad(y, x);
      return std::abs(a) + std::abs(b);
    };
    for (int ty = 0; ty < Y; ty += c.Y - 2)
      for (int tx = 0; tx < X; tx += c.X - 2) {
        std::vector<int> kind(c.Y * c.X);
        for (int r = 0; r < c.Y; ++r)
          for (int q = 0; q < c.X; ++q) {
            const int y = ty - 1 + r, x = tx - 1 + q, m = size(y, x);
            auto [gx, gy] = grad(y, x);
            const bool flat = std::abs(gy) * 5 < std::abs(gx) * 2, steep = std::abs(gx) * 5 < std::abs(gy) * 2;
            const bool rising = (gx > 0) == (gy > 0);
            const int dy = flat ? 0 : 1, dx = flat ? 1 : steep ? 0 : rising ? 1 : -1;
            const bool crest = m > size(y - dy, x - dx) && m >= size(y + dy, x + dx);
            kind[r * c.X + q] = !crest ? 0 : m >= 420 ? 255 : m >= 250 ? 1 : 0;
          }
        for (bool grows = true; grows;) {
          grows = false;
          for (int r = 0; r < c.Y; ++r)
            for (int q = 0; q < c.X; ++q)
              for (int k = 0; k < 9 && kind[r * c.X + q] == 1; ++k) {
                const int v = r + k / 3 - 1, u = q + k % 3 - 1;
                if (v >= 0 && u >= 0 && v < c.Y && u < c.X && kind[v * c.X + u] == 255)
                  kind[r * c.X + q] = 255, grows = true;
              }
        }
        for (int r = 1; r < c.Y - 1; ++r)
          for (int q = 1; q < c.X - 1; ++q) {
            const int y = ty - 1 + r, x = tx - 1 + q;
            if (y < Y && x < X && got[y * X + x] != kind[r * c.X + q])
              return "pixel " + std::to_string(y) + ", " + std::to_string(x);
          }
      }
    return "";
  };
  return j;
});

// --- the flow between two pictures (Lucas and Kanade): sums of products of gradients over 5 x 5 pixels, two steps of
// Newton's with the second picture read between its pixels
struct FlowCfg {
  int Y = 8, X = 64, steps = 2, warps = 4;
};
auto optical_flow =
    kernel("user_optical_flow", [](const FlowCfg& c, Tensor<const uint8_t, 2> a, Tensor<const uint8_t, 2> b,
                                   Tensor<float, 3> flow) {
      num_warps(c.warps);
      auto y = program_id(1) * c.Y, x = program_id(0) * c.X;
      auto at = [&](int dy, int dx) { return cast(a.load({y + dy, x + dx}, {c.Y, c.X}), f32); };
      auto rows = cast(y + arange(0, c.Y), f32).col(), columns = cast(x + arange(0, c.X), f32).row();
      auto second = [&](const Tile& v, const Tile& u) {
        auto fy = floor(v), fx = floor(u), ty = v - fy, tx = u - fx;
        auto pixel = [&](int dy, int dx) {
          auto py = clamp(cast(fy, i32) + dy, 0, b.dim(0) - 1), px = clamp(cast(fx, i32) + dx, 0, b.dim(1) - 1);
          return cast(load(b.ptr() + cast(py, i64) * b.stride(0) + cast(px, i64)), f32);
        };
        return (1.f - ty) * ((1.f - tx) * pixel(0, 0) + tx * pixel(0, 1)) +
               ty * ((1.f - tx) * pixel(1, 0) + tx * pixel(1, 1));
      };
      const Shape shape{c.Y, c.X};
      Tile u = zeros(shape, f32), v = u, xx = u, xy = u, yy = u;
      for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
          auto gx = .5f * (at(dy, dx + 1) - at(dy, dx - 1)), gy = .5f * (at(dy + 1, dx) - at(dy - 1, dx));
          xx += gx * gx, xy += gx * gy, yy += gy * gy;
        }
      auto determinant = xx * yy - xy * xy;
      auto good = determinant > 1.f;
      for (int step = 0; step < c.steps; ++step) {
        Tile ex = zeros(shape, f32), ey = ex;
        for (auto dy : range(-2, 3))
          for (auto dx : range(-2, 3)) {
            auto near = [&](int oy, int ox) { return cast(a.load({y + dy + oy, x + dx + ox}, {c.Y, c.X}), f32); };
            auto gx = .5f * (near(0, 1) - near(0, -1)), gy = .5f * (near(1, 0) - near(-1, 0));
            auto d = second(rows + cast(dy, f32) + v, columns + cast(dx, f32) + u) - near(0, 0);
            ex += d * gx, ey += d * gy;
          }
        u = where(good, u - (yy * ex - xy * ey) / where(good, determinant, 1.f), 0.f);
        v = where(good, v - (xx * ey - xy * ex) / where(good, determinant, 1.f), 0.f);
        u = clamp(u, -4.f, 4.f), v = clamp(v, -4.f, 4.f);
      }
      flow.store({y, x, 0}, join(u, v));
    }).grid([](const FlowCfg& c, const auto& a, const auto&, const auto&) {
      return Grid{cdiv(a.shape[1], c.X), cdiv(a.shape[0], c.Y)};
    });
Register r6("optical_flow", [](Env& e) {
  FlowCfg c;
  if (!e.big) c = {3, 16, 2, 1};
  c.warps = e.field("warps", c.warps), c.Y = e.field("Y", c.Y), c.X = e.field("X", c.X);
  const int Y = e.big ? 1024 : 14, X = e.big ? 2048 : 37;
  auto picture = [&](double dy, double dx) {
    return filled<uint8_t>(e, size_t(Y) * X, [&](size_t i) {
      const double y = double(i / X) + dy, x = double(i % X) + dx;
      return uint8_t(128 + 60 * std::sin(.5 * x + .2 * y) + 50 * std::cos(.6 * y - .3 * x));
    });
  };
  auto a = picture(0, 0), b = picture(.4, -.7);
  auto flow = constant<float>(e, a.n * 2, NAN);
  Job j;
  j.mbytes = 10e-6 * a.n;
  j.add(optical_flow, c, a.view(Y, X), b.view(Y, X), flow.view(Y, X, 2));
  j.check = [=] {
    auto p = [&](int y, int x) { return y < 0 || x < 0 || y >= Y || x >= X ? 0. : double(a.at(y * X + x)); };
    auto q = [&](int y, int x) { return double(b.at(std::clamp(y, 0, Y - 1) * X + std::clamp(x, 0, X - 1))); };
    std::vector<double> want;
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x) {
        double u = 0, v = 0, xx = 0, xy = 0, yy = 0;
        auto gradient = [&](int dy, int dx) {
          return std::pair(.5 * (p(y + dy, x + dx + 1) - p(y + dy, x + dx - 1)),
                           .5 * (p(y + dy + 1, x + dx) - p(y + dy - 1, x + dx)));
        };
        for (int k = 0; k < 25; ++k) {
          auto [gx, gy] = gradient(k / 5 - 2, k % 5 - 2);
          xx += gx * gx, xy += gx * gy, yy += gy * gy;
        }
        const double det = xx * yy - xy * xy;
        for (int s = 0; s < c.steps && det > 1; ++s) {
          double ex = 0, ey = 0;
          for (int k = 0; k < 25; ++k) {
            const int dy = k / 5 - 2, dx = k % 5 - 2;
            auto [gx, gy] = gradient(dy, dx);
            const double sy = y + dy + v, sx = x + dx + u;
            const int fy = int(std::floor(sy)), fx = int(std::floor(sx));
            const double ty = sy - fy, tx = sx - fx;
            const double d = (1 - ty) * ((1 - tx) * q(fy, fx) + tx * q(fy, fx + 1)) +
                             ty * ((1 - tx) * q(fy + 1, fx) + tx * q(fy + 1, fx + 1)) - p(y + dy, x + dx);
            ex += d * gx, ey += d * gy;
          }
          const double nu = u - (yy * ex - xy * ey) / det, nv = v - (xx * ey - xy * ex) / det;
          u = std::clamp(nu, -4., 4.), v = std::clamp(nv, -4., 4.);
        }
        want.push_back(u), want.push_back(v);
      }
    return agree(flow.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- letters from outlines: the signed area that lines cut from every pixel, summed along rows; a letter a program
struct GlyphCfg {
  int Y = 48, X = 40, warps = 4;
};
auto glyphs =
    kernel("user_glyphs", [](const GlyphCfg& c, Ptr<const float> lines, Ptr<const int32_t> start,
                             Tensor<uint8_t, 3> out) {
      // lines [.., 4]: from (x, y) to (x, y), closed outlines; out [letters, Y, X]
      num_warps(c.warps);
      auto g = program_id(0);
      auto py = cast(arange(0, c.Y), f32).col(), px = cast(arange(0, c.X), f32).row();
      Tile area = zeros({c.Y, c.X}, f32);  // what of a pixel lies right of the lines, and all of those behind it
      for (auto i : range(load(start + g), load(start + g + 1))) {
        auto x0 = load(lines + i * 4), y0 = load(lines + i * 4 + 1), x1 = load(lines + i * 4 + 2),
             y1 = load(lines + i * 4 + 3);
        auto down = where(y1 > y0, 1.f, -1.f);
        auto top = min(y0, y1), bottom = max(y0, y1);
        auto low = max(top, py), high = min(bottom, py + 1.f);  // of the row, [Y, 1]
        auto height = max(high - low, 0.f);
        auto slope = (x1 - x0) / where(y1 == y0, 1.f, y1 - y0);
        auto xa = x0 + (low - y0) * slope, xb = x0 + (high - y0) * slope;
        auto left = min(xa, xb), right = max(xa, xb);
        // The mean over the piece of how much of the pixel lies right of it: an integral of clamp(px + 1 - x, 0, 1).
        auto F = [&](Tile t) { return where(t < 0.f, 0.f, where(t > 1.f, t - .5f, .5f * t * t)); };
        auto wide = right - left;
        auto mean = where(wide > 1e-4f, (F(px + 1.f - left) - F(px + 1.f - right)) / max(wide, 1e-4f),
                          clamp(px + 1.f - left, 0.f, 1.f));
        area += down * height * mean;
      }
      out.store({g, 0, 0}, saturate(rint(255.f * min(abs(area), 1.f)), u8));
    }).grid([](const GlyphCfg&, auto, auto, const auto& out) { return Grid{out.shape[0]}; });
Register r7("glyphs", [](Env& e) {
  GlyphCfg c;
  if (!e.big) c = {11, 13, 1};
  c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 4, corners = e.big ? 60 : 7;
  std::vector<float> lines;
  std::vector<int32_t> start{0};
  for (int g = 0; g < n; ++g) {
    const int m = corners - g % 3;
    for (int k = 0; k < m; ++k)
      for (int end : {k, k + 1}) {
        const double w = 2 * M_PI * (end % m) / m, r = (end % m % 2 ? .45 : .25) * std::min(c.X, c.Y);
        lines.push_back(float(c.X / 2. + r * std::cos(w) + .3)), lines.push_back(float(c.Y / 2. + r * std::sin(w)));
      }
    start.push_back(int(lines.size() / 4));
  }
  auto l = filled<float>(e, lines.size(), [&](size_t i) { return lines[i]; });
  auto s = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto out = constant<uint8_t>(e, size_t(n) * c.Y * c.X, 7);
  Job j;
  j.mbytes = 1e-6 * out.n;
  j.add(glyphs, c, l.p, s.p, out.view(n, c.Y, c.X));
  j.check = [=] {
    std::vector<double> want(out.n);
    constexpr int kFine = 32;  // samples of a pixel along both axes, by even and odd
    for (int g = 0; g < n; ++g)
      for (int y = 0; y < c.Y * kFine; ++y) {
        const double sy = (y + .5) / kFine;
        std::vector<double> crossings;
        for (int i = start[g]; i < start[g + 1]; ++i) {
          const double x0 = lines[i * 4], y0 = lines[i * 4 + 1], x1 = lines[i * 4 + 2], y1 = lines[i * 4 + 3];
          if ((y0 <= sy) != (y1 <= sy)) crossings.push_back(x0 + (sy - y0) * (x1 - x0) / (y1 - y0));
        }
        std::sort(crossings.begin(), crossings.end());
        for (size_t k = 0; k + 1 < crossings.size(); k += 2)
          for (int x = 0; x < c.X; ++x)
            want[(size_t(g) * c.Y + y / kFine) * c.X + x] +=
                255. / kFine * std::max(0., std::min(crossings[k + 1], x + 1.) - std::max(crossings[k], double(x)));
      }
    return agree(out.now(), want, 2.5, 0);
  };
  return j;
});

}  // namespace outlines
}  // namespace users
