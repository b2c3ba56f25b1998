// meshes.cpp - fields on meshes and pictures: spectral elements, colours of a lattice, a relaxation in place, sums over
// rectangles, distances to seeds, colours from a camera and through a table.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace meshes {

// --- spectral elements (Nekbone): w = D^T G D u for elements of n x n x n points, the derivative along every axis is a
// product with a matrix of n x n; f64
struct SpectralCfg {
  int n = 8, warps = 4;
};
auto spectral = kernel("user_spectral", [](const SpectralCfg& c, Tensor<const double, 4> U, Tensor<const double, 2> D_,
                                           Tensor<const double, 5> G, Tensor<double, 4> W) {
  // U, W [E, n, n, n], D [n, n], G [E, 6, n, n, n]: symmetric, 00 01 02 11 12 22 at every point
  num_warps(c.warps);
  auto el = program_id(0);
  const int n = c.n;
  const Shape cube{n, n, n};
  auto D = D_.load({0, 0}, {n, n}), Dt = trans(D);
  auto u = U.load({el, 0, 0, 0}, cube);
  // along the last, the middle and the first axis
  auto last = [&](Tile x, Tile m) { return reshape(dot(reshape(x, {n * n, n}), m), cube); };
  auto first = [&](Tile x, Tile m) { return reshape(dot(m, reshape(x, {n, n * n})), cube); };
  auto middle = [&](Tile x, Tile m) { return permute(last(permute(x, {0, 2, 1}), m), {0, 2, 1}); };
  auto r = last(u, Dt), s = middle(u, Dt), t = first(u, D);
  auto g = [&](int i) { return G.load({el, i, 0, 0, 0}, cube); };
  auto wr = g(0) * r + g(1) * s + g(2) * t;
  auto ws = g(1) * r + g(3) * s + g(4) * t;
  auto wt = g(2) * r + g(4) * s + g(5) * t;
  W.store({el, 0, 0, 0}, last(wr, D) + middle(ws, D) + first(wt, Dt));
}).grid([](const SpectralCfg&, const auto& u, const auto&...) { return Grid{u.shape[0]}; });
Register r1("spectral", [](Env& e) {
  SpectralCfg c;
  if (!e.big) c = {5, 2};
  c.n = e.field("n", c.n), c.warps = e.field("warps", c.warps);
  const int E = e.big ? 16384 : 3, n = c.n, P = n * n * n;
  auto draw = [&] { return 2 * e.uniform() - 1; };
  auto u = drawn<double>(e, size_t(E) * P, draw), d = drawn<double>(e, n * n, draw);
  auto g = drawn<double>(e, u.n * 6, draw);
  auto w = constant<double>(e, u.n, NAN);
  Job j;
  j.gflop = 1e-9 * E * P * (12. * n + 15);
  j.mbytes = 64e-6 * E * P;
  j.add(spectral, c, u.view(E, n, n, n), d.view(n, n), g.view(E, 6, n, n, n), w.view(E, n, n, n));
  j.check = [=] {
    std::vector<double> want(u.n);
    const int step[3] = {1, n, n * n};  // r, s, t
    for (int el = 0; el < E; ++el) {
      std::vector<double> flux(3 * P);
      for (int p = 0; p < P; ++p) {
        double du[3] = {};
        for (int a = 0; a < 3; ++a)
          for (int k = 0; k < n; ++k) {
            const int i = p / step[a] % n;
            du[a] += d[i * n + k] * u[size_t(el) * P + p + (k - i) * step[a]];
          }
        const int at[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) flux[a * P + p] += g[(size_t(el) * 6 + at[a][b]) * P + p] * du[b];
      }
      for (int p = 0; p < P; ++p)
        for (int a = 0; a < 3; ++a)
          for (int k = 0; k < n; ++k) {
            const int i = p / step[a] % n;
            want[size_t(el) * P + p] += d[k * n + i] * flux[a * P + p + (k - i) * step[a]];
          }
    }
    return agree(w.now(), want, 1e-11, 1e-11);
  };
  return j;
});

// --- a lattice of four dims whose sites have a colour vector and whose links a matrix of 3 x 3 complex numbers (the
// staggered operator): sum over directions of U(x) v(x + mu) - U(x - mu)^H v(x - mu)
struct DslashCfg {
  int BS = 64, warps = 2;
};
auto dslash = kernel("user_dslash", [](const DslashCfg& c, Ptr<const float> V, Ptr<const float> U, Tensor<float, 3> Y,
                                       I32 X, I32 L) {
  // V, Y [3, 2, sites], U [4, 3, 3, 2, sites]; sites L x L x L x X, the last fastest
  num_warps(c.warps);
  auto s0 = program_id(0) * c.BS;
  auto site = s0 + arange(0, c.BS);
  auto sites = L * L * L * X;
  auto in = reshape(site < sites, {1, 1, c.BS});
  auto i = reshape(arange(0, 3), {3, 1, 1}), k = reshape(arange(0, 3), {1, 3, 1});
  struct Complex {
    Tile re, im;
  };
  auto vector = [&](Tile at, Tile colour) {
    auto p = V + colour * (2 * sites) + reshape(at, {1, 1, c.BS});
    return Complex{load(p, {.mask = in}), load(p + sites, {.mask = in})};
  };
  auto matrix = [&](int mu, Tile at) {
    auto p = U + (mu * 9 + i * 3 + k) * (2 * sites) + reshape(at, {1, 1, c.BS});
    return Complex{load(p, {.mask = in}), load(p + sites, {.mask = in})};
  };
  Tile re = zeros({3, 1, c.BS}, f32), im = re;
  for (int mu = 0; mu < 4; ++mu) {
    Tile step = full({}, 1, i32), size = X;
    for (int d = 0; d < mu; ++d) step = d == 0 ? X + 0 : step * L;
    if (mu) size = L;
    auto place = site / step % size;
    auto up = where(place == size - 1, site - (size - 1) * step, site + step);
    auto down = where(place == 0, site + (size - 1) * step, site - step);
    auto u = matrix(mu, site), w = matrix(mu, down);
    auto v = vector(up, k), x = vector(down, i);
    re += sum(u.re * v.re - u.im * v.im, axis(1));
    im += sum(u.re * v.im + u.im * v.re, axis(1));
    re -= permute(sum(w.re * x.re + w.im * x.im, axis(0)), {1, 0, 2});
    im -= permute(sum(w.re * x.im - w.im * x.re, axis(0)), {1, 0, 2});
  }
  Y.store({0, 0, s0}, re);
  Y.store({0, 1, s0}, im);
}).grid([](const DslashCfg& c, const auto*, const auto*, const auto& y, int, int) {
  return Grid{cdiv(y.shape[2], c.BS)};
});
Register r2("dslash", [](Env& e) {
  DslashCfg c;
  if (!e.big) c = {32, 1};
  c.BS = e.field("BS", c.BS), c.warps = e.field("warps", c.warps);
  const int L = e.big ? 32 : 3, X = e.big ? 32 : 5, S = L * L * L * X;
  auto v = random<float>(e, size_t(6) * S), u = random<float>(e, size_t(72) * S);
  auto y = constant<float>(e, v.n, NAN);
  Job j;
  j.mbytes = 4e-6 * S * (72. + 12);
  j.add(dslash, c, v.p, u.p, y.view(3, 2, S), X, L);
  j.check = [=] {
    std::vector<double> want(v.n);
    for (int s = 0; s < S; ++s)
      for (int mu = 0, step = 1; mu < 4; step *= mu++ ? L : X) {
        const int size = mu ? L : X, place = s / step % size;
        const int up = s + (place == size - 1 ? 1 - size : 1) * step, down = s - (place == 0 ? 1 - size : 1) * step;
        for (int i = 0; i < 3; ++i)
          for (int k = 0; k < 3; ++k) {
            auto link = [&](int a, int b, int part, int at) {
              return u[size_t((mu * 9 + a * 3 + b) * 2 + part) * S + at];
            };
            auto colour = [&](int a, int part, int at) { return v[size_t(a * 2 + part) * S + at]; };
            const double a = link(i, k, 0, s), b = link(i, k, 1, s), p = colour(k, 0, up), q = colour(k, 1, up);
            const double x = link(k, i, 0, down), z = link(k, i, 1, down);
            const double f = colour(k, 0, down), g = colour(k, 1, down);
            want[size_t(i * 2) * S + s] += a * p - b * q - (x * f + z * g);
            want[size_t(i * 2 + 1) * S + s] += a * q + b * p - (x * g - z * f);
          }
      }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- relaxation of Poisson's equation in place, one colour of the chequerboard at a time, with the largest change
struct RelaxCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto relax = kernel("user_relax", [](const RelaxCfg& c, Tensor<double, 2> U, Tensor<const float, 2> F,
                                     Ptr<float> largest, I32 colour, F64 omega) {
  // U [H, W] with a border that stays, F [H, W]: right side times the square of the spacing
  num_warps(c.warps);
  auto y = program_id(1) * c.BY + 1, x = program_id(0) * c.BX + 1;
  const Shape box{c.BY, c.BX};
  auto row = (y + arange(0, c.BY)).col(), column = (x + arange(0, c.BX)).row();
  auto mine = ((row + column) % 2 == colour) & (row < U.dim(0) - 1) & (column < U.dim(1) - 1);
  auto u = U.load({y, x}, box);
  auto around = U.load({y - 1, x}, box) + U.load({y + 1, x}, box) + U.load({y, x - 1}, box) + U.load({y, x + 1}, box);
  auto change = omega * (.25 * (around - cast(F.load({y, x}, box), f64)) - u);
  store(U.ptr() + cast(row, i64) * U.stride(0) + cast(column, i64), u + change, {.mask = mine});
  atomic_max(largest, cast(max(where(mine, abs(change), 0.)), f32), {.order = Order::relaxed});
}).grid([](const RelaxCfg& c, const auto& u, const auto&...) {
  return Grid{cdiv(u.shape[1] - 2, c.BX), cdiv(u.shape[0] - 2, c.BY)};
});
Register r3("relax", [](Env& e) {
  RelaxCfg c;
  if (!e.big) c = {4, 32, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 8194 : 19, W = e.big ? 8194 : 77;
  auto u = drawn<double>(e, size_t(H) * W, [&] { return e.uniform(); });
  auto f = random<float>(e, u.n);
  auto largest = constant<float>(e, 2, 0);
  Job j;
  j.mbytes = 40e-6 * u.n;
  j.inTurn = true;
  for (int colour = 0; colour < 2; ++colour)
    j.add(relax, c, u.view(H, W), f.view(H, W), largest.p + colour, colour, 1.5);
  j.check = [=] {
    std::vector<double> want(u.n), most(2);
    for (size_t i = 0; i < u.n; ++i) want[i] = u[i];
    for (int colour = 0; colour < 2; ++colour)
      for (int y = 1; y < H - 1; ++y)
        for (int x = 1; x < W - 1; ++x) {
          if ((x + y) % 2 != colour) continue;
          double* at = &want[size_t(y) * W + x];
          const double change = 1.5 * (.25 * (at[-W] + at[W] + at[-1] + at[1] - f[size_t(y) * W + x]) - *at);
          *at += change, most[colour] = std::max(most[colour], std::abs(change));
        }
    const auto wrong = agree(u.now(), want, 1e-12, 1e-12);
    return wrong.empty() ? agree(largest.now(), most, 1e-6, 1e-6) : wrong;
  };
  return j;
});

// --- sums over rectangles of a picture: running sums along both axes, of the pixels (32 bits) and their squares (64)
struct AreaCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto area_rows = kernel("user_area_rows", [](const AreaCfg& c, Tensor<const uint8_t, 2> P, Tensor<uint32_t, 2> S,
                                             Tensor<int64_t, 2> Q) {
  num_warps(c.warps);
  auto y = program_id(0) * c.BY;
  Tile s = zeros({c.BY, 1}, u32), q = zeros({c.BY, 1}, u32);
  for (auto x : range(0, P.dim(1), c.BX)) {
    auto p = cast(P.load({y, x}, {c.BY, c.BX}), u32);
    S.store({y, x}, s + cumsum(p, axis(1)));
    Q.store({y, x}, cast(q + cumsum(p * p, axis(1)), i64));
    s += sum(p, axis(1)), q += sum(p * p, axis(1));
  }
}).grid([](const AreaCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[0], c.BY)}; });
auto area_columns = kernel("user_area_columns", [](const AreaCfg& c, Tensor<uint32_t, 2> S, Tensor<int64_t, 2> Q) {
  num_warps(c.warps);
  const int rows = 4 * c.BY, columns = c.BX / 4;
  auto x = program_id(0) * columns;
  Tile s = zeros({1, columns}, u32), q = zeros({1, columns}, i64);
  for (auto y : range(0, S.dim(0), rows)) {
    auto a = S.load({y, x}, {rows, columns});
    auto b = Q.load({y, x}, {rows, columns});
    S.store({y, x}, s + cumsum(a, axis(0)));
    Q.store({y, x}, q + cumsum(b, axis(0)));
    s += sum(a, axis(0)), q += sum(b, axis(0));
  }
}).grid([](const AreaCfg& c, const auto& s, const auto&) { return Grid{cdiv(s.shape[1], c.BX / 4)}; });
Register r4("summed_area", [](Env& e) {
  AreaCfg c;
  if (!e.big) c = {4, 64, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4320 : 37, W = e.big ? 7680 : 143, pitch = W + 17;
  auto p = integers<uint8_t>(e, size_t(H) * pitch, 0, 256);
  auto s = constant<uint32_t>(e, size_t(H) * W, 7);
  auto q = constant<int64_t>(e, s.n, 7);
  Job j;
  j.mbytes = 37e-6 * s.n;
  j.inTurn = true;
  const TensorView<const uint8_t, 2> picture(p.p, {H, W}, {pitch, 1});
  j.add(area_rows, c, picture, s.view(H, W), q.view(H, W));
  j.add(area_columns, c, s.view(H, W), q.view(H, W));
  j.check = [=] {
    const auto sums = s.now();
    const auto squares = q.now();
    std::vector<int64_t> a(W), b(W);
    for (int y = 0; y < H; ++y)
      for (int64_t x = 0, row = 0, square = 0; x < W; ++x) {
        const int64_t v = p.at(size_t(y) * pitch + x);
        a[x] += row += v, b[x] += square += v * v;
        if (int64_t(sums[size_t(y) * W + x]) != a[x] || squares[size_t(y) * W + x] != b[x])
          return "pixel " + std::to_string(y) + ", " + std::to_string(x);
      }
    return std::string();
  };
  return j;
});

// --- the nearest seed of every pixel by jumps: pixels ask their neighbours at distance N / 2, N / 4 .. 1, and 1 again
struct JumpCfg {
  int BY = 4, BX = 64, warps = 4;
};
auto jump = kernel("user_jump", [](const JumpCfg& c, Tensor<const uint32_t, 2> from, Tensor<uint32_t, 2> to,
                                   Tensor<float, 2> distance, I32 step) {
  // from, to [H, W]: y in the upper half, x in the lower, all ones: nothing found yet
  num_warps(c.warps);
  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
  auto row = cast((y + arange(0, c.BY)).col(), f32), column = cast((x + arange(0, c.BX)).row(), f32);
  Tile best = full({c.BY, c.BX}, INFINITY, f32), seed = full({c.BY, c.BX}, 0xffffffffu, u32);
  for (auto dy : range(-1, 2))
    for (auto dx : range(-1, 2)) {
      auto s = from.load({y + dy * step, x + dx * step}, {c.BY, c.BX}, {.pad = 4294967295.});
      auto a = cast(s >> 16, f32) - row, b = cast(s & 0xffffu, f32) - column;
      auto d = where(s == 0xffffffffu, INFINITY, a * a + b * b);
      auto nearer = d < best;
      best = where(nearer, d, best), seed = where(nearer, s, seed);
    }
  to.store({y, x}, seed);
  for (auto _ : when(step == 1)) distance.store({y, x}, sqrt(best));
}).grid([](const JumpCfg& c, const auto& from, const auto&...) {
  return Grid{cdiv(from.shape[1], c.BX), cdiv(from.shape[0], c.BY)};
});
Register r5("jump_flood", [](Env& e) {
  JumpCfg c;
  if (!e.big) c = {2, 32, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 2160 : 37, W = e.big ? 3840 : 61;
  std::vector<uint32_t> first(size_t(H) * W, 0xffffffffu);
  const size_t seeds = e.big ? 4000 : 9;
  for (size_t i = 0; i < seeds; ++i) {
    const size_t at = size_t(e.uniform() * double(first.size()));
    first[at] = uint32_t(at / W << 16 | at % W);
  }
  auto a = repeated(e, first.size(), first), b = constant<uint32_t>(e, first.size(), 0);
  auto d = constant<float>(e, first.size(), NAN);
  Job j;
  j.inTurn = true;
  int step = 1, steps = 1;
  while (2 * step < std::max(H, W)) step *= 2, ++steps;
  j.mbytes = 8e-6 * double(first.size()) * (steps + 1);
  for (bool again = true, there = true; step; there = !there) {
    j.add(jump, c, (there ? a : b).view(H, W), (there ? b : a).view(H, W), d.view(H, W), step);
    if (step > 1)
      step /= 2;
    else if (again)
      again = false;
    else
      step = 0;
  }
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double best = INFINITY;
        for (uint32_t s : first)
          if (s != 0xffffffffu) best = std::min(best, std::hypot(int(s >> 16) - y, int(s & 0xffff) - x));
        want.push_back(best);
      }
    return agree(d.now(), want, 1e-5, 1e-5);
  };
  return j;
});

}  // namespace meshes
}  // namespace users
