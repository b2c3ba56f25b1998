// partial_factors.cpp - sparse factors that keep the pattern of their matrix, waves in a room whose four walls are of
// different kinds, and Brownian paths built from their middles.
#include <map>
#include <set>

#include "tests/users/use.h"
namespace users {
namespace partial_factors {

// --- incomplete factors without fill (ILU(0)) of a matrix of rows, level by level of rows that do not need each other.
// A row of up to N entries lies in a tile; rows above it are matched with it by column
struct Ilu {
  int N = 24;
};
auto ilu0 = kernel("user_ilu0", [](const Ilu& c, Ptr<const int64_t> start, Ptr<const int32_t> column, Ptr<double> value,
                                   Ptr<const int64_t> diagonal, Ptr<const int32_t> level, I32 rows) {
              auto i = program_id(0);
              return_if(i >= rows);
              Tile row = load(level + i);
              Tile lane = arange(0, c.N);
              Tile from = load(start + row), to = load(start + row + 1);
              Tile in = from + lane < to;
              Tile mine = load(column + from + lane, {.mask = in, .other = -1});
              Tile v = load(value + from + lane, {.mask = in});
              Tile below = sum(cast(in & (mine < row), i32));  // columns are in order: the first ones
              for (auto p : range(0, below)) {
                Tile k = sum(where(lane == p, mine, 0));
                Tile pivot = load(diagonal + k), end = load(start + k + 1);
                Tile factor = sum(where(lane == p, v, 0.0)) / load(value + pivot);
                Tile inside = pivot + 1 + lane < end;  // what lies right of the diagonal there
                Tile theirs = load(column + pivot + 1 + lane, {.mask = inside, .other = -2});
                Tile u = load(value + pivot + 1 + lane, {.mask = inside});
                Tile hit = mine.col() == theirs.row();
                v -= factor * squeeze(sum(where(hit, u.row(), 0.0), axis(1)), 1);
                v = where(lane == p, factor, v);
              }
              store(value + from + lane, v, {.mask = in});
            }).grid([](const Ilu&, const int64_t*, const int32_t*, double*, const int64_t*, const int32_t*, int rows) {
  return Grid{rows};
});
Register q1("ilu0", [](Env& e) {
  const int W = e.big ? 512 : 9, H = e.big ? 512 : 7, n = W * H;
  std::vector<int64_t> start{0}, diagonal;
  std::vector<int32_t> column;
  std::vector<double> values;
  std::vector<int> depth(n);
  std::map<int, std::vector<int>> levels;
  for (int r = 0; r < n; ++r) {  // nine points; some connections are missing
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int y = r / W + dy, x = r % W + dx, k = y * W + x;
        if (y < 0 || y >= H || x < 0 || x >= W || (k != r && (std::min(k, r) * 7 + std::max(k, r)) % 11 == 0)) continue;
        if (k == r) diagonal.push_back(column.size());
        column.push_back(k), values.push_back(k == r ? 9 + r % 3 : -1 - 0.25 * ((k + r) % 4));
        if (k < r) depth[r] = std::max(depth[r], depth[k] + 1);
      }
    start.push_back(column.size());
    levels[depth[r]].push_back(r);
  }
  auto s = filled<int64_t>(e, n + 1, [&](size_t i) { return start[i]; });
  auto cols = filled<int32_t>(e, column.size(), [&](size_t i) { return column[i]; });
  auto v = filled<double>(e, column.size(), [&](size_t i) { return values[i]; });
  auto d = filled<int64_t>(e, n, [&](size_t i) { return diagonal[i]; });
  std::vector<int> order;
  for (const auto& [at, rows] : levels) order.insert(order.end(), rows.begin(), rows.end());
  auto rows = filled<int32_t>(e, n, [&](size_t i) { return order[i]; });
  Job j;
  j.inTurn = true;
  restore(e, j, v);
  int first = 0;
  for (const auto& [at, in] : levels) {
    if (e.device || at < 2) j.add(ilu0, Ilu{}, s.p, cols.p, v.p, d.p, rows.p + first, int(in.size()));
    first += int(in.size());
  }
  j.check = [=] {
    std::vector<double> want = values;
    for (int r = 0; r < n; ++r)
      for (int64_t p = start[r]; p < diagonal[r]; ++p) {
        const int k = column[p];
        want[p] /= want[diagonal[k]];
        for (int64_t q = diagonal[k] + 1; q < start[k + 1]; ++q)
          for (int64_t o = p + 1; o < start[r + 1]; ++o)
            if (column[o] == column[q]) want[o] -= want[p] * want[q];
      }
    return agree(v.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- sound in a room: five points in space, two in time; every wall is fixed, mirrors, absorbs or leads to the other
// side. The room is a window of a larger array, columns lie first, and sources are added in the same launch
struct Walls {
  int left = 0, right = 0, top = 0, bottom = 0;  // host's: 0 fixed, 1 mirror, 2 absorbing, 3 leads to the other side
};
struct Room {
  int BY = 12, BX = 160;
};
Tile neighbour(const Tensor<const float, 2>& now, const Tile& y, const Tile& x, const Tile& kind, const Tile& inner,
               const Tile& ghostY, const Tile& ghostX, const Tile& mirrorY, const Tile& mirrorX, const Tile& self,
               const Tile& in) {
  Tile gy = where(inner, y, where(kind == 3, ghostY, mirrorY)), gx = where(inner, x, where(kind == 3, ghostX, mirrorX));
  Tile at = now.ptr() + cast(gy, i64) * now.stride(0) + cast(gx, i64) * now.stride(1);
  Tile v = load(at, {.mask = in & (inner | (kind == 3) | (kind == 1))});
  return where(inner | (kind == 3) | (kind == 1), v, where(kind == 2, self, 0.f));
}
auto wave_room =
    kernel("user_wave_room",
           [](const Room& c, Tensor<const float, 2> before, Tensor<const float, 2> now, Tensor<float, 2> next,
              Tensor<const float, 2> speed, I32 left, I32 right, I32 top, I32 bottom, I32 sourceY, I32 sourceX,
              F32 source) {
             Tile H = now.dim(0), W = now.dim(1);
             Tile y = (program_id(1) * c.BY + arange(0, c.BY)).col(),
                  x = (program_id(0) * c.BX + arange(0, c.BX)).row();
             y = broadcast_to(y, {c.BY, c.BX}), x = broadcast_to(x, {c.BY, c.BX});
             Tile in = (y < H) & (x < W);
             auto box = [&](const Tensor<const float, 2>& a) {
               return a.load({program_id(1) * c.BY, program_id(0) * c.BX}, {c.BY, c.BX});
             };
             Tile u = box(now), k = box(speed);
             Tile w = neighbour(now, y, x - 1, left, in & (x > 0), y, broadcast_to(W - 1, {c.BY, c.BX}), y, x, u, in);
             Tile e = neighbour(now, y, x + 1, right, in & (x < W - 1), y, zeros_like(x), y, x, u, in);
             Tile n = neighbour(now, y - 1, x, top, in & (y > 0), broadcast_to(H - 1, {c.BY, c.BX}), x, y, x, u, in);
             Tile s = neighbour(now, y + 1, x, bottom, in & (y < H - 1), zeros_like(y), x, y, x, u, in);
             Tile r = 2.f * u - box(before) + k * (w + e + n + s - 4.f * u);
             Tile damped = ((x == 0) & (left == 2)) | ((x == W - 1) & (right == 2)) | ((y == 0) & (top == 2)) |
                           ((y == H - 1) & (bottom == 2));
             r = where(damped, u + sqrt(k) * (r - u) * 0.5f, r);
             r += where((y == sourceY) & (x == sourceX), source, 0.f);
             next.store({program_id(1) * c.BY, program_id(0) * c.BX}, r);
           })
        .grid([](const Room& c, const auto& a, const auto&, const auto&, const auto&, int, int, int, int, int, int,
                 float) {
          return Grid{cdiv(a.shape[1], c.BX), cdiv(a.shape[0], c.BY)};
        });
Register q2("wave_room", [](Env& e) {
  const int H = e.big ? 8000 : 31, W = e.big ? 8100 : 333, pitch = e.big ? 8192 : 340;
  const size_t all = size_t(H + 2) * pitch;
  auto a = random<float>(e, all), b = random<float>(e, all), k = random<float>(e, all, 0.05, 0.3);
  auto y = constant<float>(e, all, 9), z = constant<float>(e, all, 9);
  auto window = [=](auto* p) {
    return TensorView<std::remove_pointer_t<decltype(p)>, 2>(p + pitch + 4, {H, W}, {pitch, 1});
  };
  auto in = [=](float* p) { return TensorView<const float, 2>(p + pitch + 4, {H, W}, {pitch, 1}); };
  const Walls one{0, 1, 2, 1}, two{3, 3, 1, 2};
  Job j;
  auto add = [&](const Walls& w, float* to) {
    j.add(wave_room, Room{e.field("BY", 12), e.field("BX", 160)}, in(a.p), in(b.p), window(to), in(k.p), w.left,
          w.right, w.top, w.bottom, H / 2, W / 3, 0.5f);
  };
  add(one, y.p), add(two, z.p);
  j.mbytes = 2e-6 * H * W * 16;
  j.check = [=]() -> std::string {
    auto after = [&](const Walls& o) {
      std::vector<double> want(all, 9.);
      auto at = [&](const Array<float>& f, int r, int c) { return f[size_t(r + 1) * pitch + c + 4]; };
      for (int r = 0; r < H; ++r)
        for (int c = 0; c < W; ++c) {
          const double u = at(b, r, c), speed = at(k, r, c);
          auto side = [&](int rr, int cc, int kind, int gr, int gc) {
            if (rr >= 0 && rr < H && cc >= 0 && cc < W) return at(b, rr, cc);
            return kind == 3 ? at(b, gr, gc) : kind == 0 ? 0. : u;
          };
          const double sum = side(r, c - 1, o.left, r, W - 1) + side(r, c + 1, o.right, r, 0) +
                             side(r - 1, c, o.top, H - 1, c) + side(r + 1, c, o.bottom, 0, c);
          double n = 2 * u - at(a, r, c) + speed * (sum - 4 * u);
          if ((c == 0 && o.left == 2) || (c == W - 1 && o.right == 2) || (r == 0 && o.top == 2) ||
              (r == H - 1 && o.bottom == 2))
            n = u + std::sqrt(speed) * (n - u) * 0.5;
          want[size_t(r + 1) * pitch + c + 4] = n + (r == H / 2 && c == W / 3 ? 0.5 : 0);
        }
      return want;
    };
    if (auto m = agree(y.now(), after(one), 1e-5, 1e-5); !m.empty()) return "one: " + m;
    if (auto m = agree(z.now(), after(two), 1e-5, 1e-5); !m.empty()) return "two: " + m;
    return "";
  };
  return j;
});

// --- prices of an average over Brownian paths of 64 steps, built from their middles (bridges): what is known so far
// and the new middles alternate. A tile of paths doubles its columns six times
struct Bridge {
  int P = 16;
};
auto bridge_paths =
    kernel("user_bridge_paths", [](const Bridge& c, Ptr<const float> normals, Ptr<const double> sigmas,
                                   Ptr<double> payoff, Ptr<float> highest, I64 paths, F64 strike, F64 drift) {
      Tile p = cast(program_id(0), i64) * c.P + arange(0, c.P);
      Tile in = (p < paths).col();
      auto draw = [&](int first, int n) {  // n columns of the path's 64 numbers
        return cast(
            load(normals + (p.col() * 64 + first + arange(0, n).row()), {.mask = in & (arange(0, n) >= 0).row()}), f64);
      };
      Tile known = draw(0, 1) * 8.0;  // at the end: time 64, behind a start at 0
      for (int n = 1; n < 64; n *= 2) {
        Tile before =
            n == 1 ? zeros({c.P, 1}, f64) : cat(zeros({c.P, 1}, f64), extract(known, {0, 0}, {c.P, n - 1}), 1);
        Tile middle = 0.5 * (before + known) + draw(n, n) * sqrt(16.0 / double(n));
        known = interleave(middle, known);
      }
      Tile t = cast(arange(1, 65), f64).row();
      Tile s = exp(known * load(sigmas) + drift * t);
      Tile mean = sum(s, axis(1)) / 64.0;
      store(payoff + p, max(squeeze(mean, 1) - strike, 0.0), {.mask = p < paths});
      store(highest + p, cast(squeeze(max(s, axis(1)), 1), f32), {.mask = p < paths});
    }).grid([](const Bridge& c, const float*, const double*, double*, float*, int64_t n, double, double) {
      return Grid{cdiv(n, c.P)};
    });
Register q3("bridge_paths", [](Env& e) {
  const int64_t n = e.big ? 1'000'000 : 37;
  auto x = random<float>(e, n * 64, -1.7, 1.7);
  auto sigma = filled<double>(e, 1, [](size_t) { return 0.03; });
  auto payoff = constant<double>(e, n, 9);
  auto highest = constant<float>(e, n, 9);
  Job j;
  j.add(bridge_paths, Bridge{e.field("P", 16)}, x.p, sigma.p, payoff.p, highest.p, n, 0.98, -0.0004);
  j.add(bridge_paths, Bridge{e.field("P", 16)}, x.p, sigma.p, payoff.p, highest.p, int64_t(0), 0.98, -0.0004);
  j.mbytes = 256e-6 * double(n);
  j.check = [=]() -> std::string {
    std::vector<double> pay, high;
    for (int64_t p = 0; p < n; ++p) {
      std::vector<double> w(65);
      w[64] = 8 * x[p * 64];
      for (int n = 1, gap = 64; n < 64; n *= 2, gap /= 2)
        for (int k = 0; k < n; ++k)
          w[k * gap + gap / 2] = (w[k * gap] + w[k * gap + gap]) / 2 + x[p * 64 + n + k] * std::sqrt(16. / n);
      double sum = 0, most = 0;
      for (int t = 1; t <= 64; ++t) {
        const double s = std::exp(w[t] * 0.03 - 0.0004 * t);
        sum += s, most = std::max(most, s);
      }
      pay.push_back(std::max(sum / 64 - 0.98, 0.)), high.push_back(most);
    }
    if (auto m = agree(payoff.now(), pay, 1e-12, 1e-12); !m.empty()) return "payoff: " + m;
    return agree(highest.now(), high, 0, 1e-6);
  };
  return j;
});

}  // namespace partial_factors
}  // namespace users
