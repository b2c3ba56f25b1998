// beside_cuda_signals.cpp - a correlator of antennas, particles sorted by supercells deposited on a grid, Lanczos
// resize, products of bit matrices by tables.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_signals {

// --- FX correlator: per frequency all products of antennas' signals (complex, i8) summed over time, exact in i32;
// blocks above the diagonal are left out
struct CorrCfg {
  int BM = 128, BN = 64, BT = 128, stages = 3, warps = 8;
};
auto correlate = kernel("user_correlate", [](const CorrCfg& c, Tensor<const int8_t, 4> V, Tensor<int32_t, 3> RE,
                                             Tensor<int32_t, 3> IM) {
                   // V [F, A, 2, T]; RE, IM [F, A, A]: V_m conj(V_n)
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, f = program_id(2);
                   return_if(n >= m + c.BM);
                   Tile re = zeros({c.BM, c.BN}, i32), ir = zeros({c.BM, c.BN}, i32), ri = zeros({c.BM, c.BN}, i32);
                   for (auto t : range(0, V.dim(3), c.BT, {.stages = c.stages})) {
                     auto of = [&](auto at, int part, int size) {
                       return reshape(V.load({f, at, part, t}, {1, size, 1, c.BT}), {size, c.BT});
                     };
                     auto mr = of(m, 0, c.BM), mi = of(m, 1, c.BM), nr = trans(of(n, 0, c.BN)),
                          ni = trans(of(n, 1, c.BN));
                     re = dot(mr, nr, re);
                     re = dot(mi, ni, re);
                     ir = dot(mi, nr, ir);
                     ri = dot(mr, ni, ri);
                   }
                   RE.store({f, m, n}, expand_dims(re, 0));
                   IM.store({f, m, n}, expand_dims(ir - ri, 0));
                 }).grid([](const CorrCfg& c, const auto& v, const auto&...) {
  return Grid{cdiv(v.shape[1], c.BM), cdiv(v.shape[1], c.BN), v.shape[0]};
});
Register r1("correlate", [](Env& e) {
  CorrCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BT = e.field("BT", c.BT),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int F = e.big ? 64 : 2, A = e.big ? 256 : 53, T = e.big ? 4096 : 112;
  auto v = integers<int8_t>(e, size_t(F) * A * 2 * T, -127, 128);
  auto re = constant<int32_t>(e, size_t(F) * A * A, 0), im = constant<int32_t>(e, size_t(F) * A * A, 0);
  Job j;
  j.gflop = 8e-9 * F * A * A / 2 * T;
  j.add(correlate, c, v.view(F, A, 2, T), re.view(F, A, A), im.view(F, A, A));
  j.check = [=]() -> std::string {
    const auto r = re.now(), i = im.now();
    for (int f = 0; f < F; ++f)
      for (int m = 0; m < A; ++m)
        for (int n = 0; n <= m; ++n) {
          int64_t a = 0, b = 0;
          for (int t = 0; t < T; ++t) {
            auto at = [&](int k, int p) { return int(v.at(((size_t(f) * A + k) * 2 + p) * T + t)); };
            a += at(m, 0) * at(n, 0) + at(m, 1) * at(n, 1), b += at(m, 1) * at(n, 0) - at(m, 0) * at(n, 1);
          }
          if (r[(size_t(f) * A + m) * A + n] != a || i[(size_t(f) * A + m) * A + n] != b) return "a sum is off";
        }
    return "";
  };
  return j;
});

// --- particles, sorted by supercells of 8 x 8 x 8 cells, leave charge and current at the eight corners of their cells
// (periodic grid). form 0: atomics; form 1: products of weights, a supercell a program
struct DepCfg {
  int B = 128, warps = 4, form = 0, prec = 0;
};
auto supercells =
    kernel("user_supercells", [](const DepCfg& c, Ptr<const int> start, Tensor<const float, 2> P, Ptr<float> G, I32 N) {
      // P [6, n]: x, y, z in cells, current; G [N, N, N, 4]; supercell s holds start[s] .. start[s + 1]
      num_warps(c.warps);
      auto s = program_id(0), S = N / 8;
      auto x0 = s % S * 8, y0 = s / S % S * 8, z0 = s / (S * S) * 8;
      auto first = load(start + s), last = load(start + s + 1);
      if (c.form != 1) {
        for (auto p : range(first, last, c.B)) {
          auto inside = p + arange(0, c.B) < last;
          auto get = [&](int k) { return P.load({k, p}, {c.B}); };
          auto x = get(0), y = get(1), z = get(2);
          auto ix = cast(floor(x), i32), iy = cast(floor(y), i32), iz = cast(floor(z), i32);
          auto fx = x - cast(ix, f32), fy = y - cast(iy, f32), fz = z - cast(iz, f32);
          Tile v[4] = {ones({c.B}, f32), get(3), get(4), get(5)};
          for (int k = 0; k < 8; ++k) {
            auto w = (k & 1 ? fx : 1.f - fx) * (k & 2 ? fy : 1.f - fy) * (k & 4 ? fz : 1.f - fz);
            auto at = (((iz + (k >> 2)) % N * N + (iy + (k >> 1 & 1)) % N) * N + (ix + (k & 1)) % N) * 4;
            if (c.form == 0)
              for (int q = 0; q < 4; ++q) atomic_add(G + at + q, w * v[q], {.mask = inside});
            else  // form 2: four neighbours at once
              atomic_add(G + at.col() + arange(0, 4).row(),
                         w.col() * reshape(join(join(v[0], v[2]), join(v[1], v[3])), {c.B, 4}), {.mask = inside.col()});
          }
        }
      } else {
        // rows: 10 x 10 of (z, y), 9 of each used, padded; columns: 12 of x, 4 values
        Tile acc = zeros({112, 48}, f32);
        auto row = arange(0, 112), column = arange(0, 48);
        auto ry = cast(row % 10, f32), rz = cast(row / 10, f32), cx = cast(column / 4, f32);
        auto which = column % 4;
        for (auto p : range(first, last, c.B)) {
          auto inside = p + arange(0, c.B) < last;
          auto get = [&](int k) { return P.load({k, p}, {c.B}); };
          auto x = get(0) - cast(x0, f32), y = get(1) - cast(y0, f32), z = get(2) - cast(z0, f32);
          auto hat = [](const Tile& d) { return max(1.f - abs(d), 0.f); };
          auto a = where(inside.row(), hat(rz.col() - z.row()) * hat(ry.col() - y.row()), 0.f);
          auto v = where(which == 0, 1.f, 0.f).row() + where(which == 1, 1.f, 0.f).row() * get(3).col() +
                   where(which == 2, 1.f, 0.f).row() * get(4).col() + where(which == 3, 1.f, 0.f).row() * get(5).col();
          auto b = hat(cx.row() - x.col()) * v;
          acc = dot(a, b, acc, c.prec == 0 ? Prec::ieee : c.prec == 1 ? Prec::tf32x3 : Prec::bf16x3);
        }
        auto at =
            (((z0 + row / 10) % N * N + (y0 + row % 10) % N) * N).col() * 4 + ((x0 + column / 4) % N * 4 + which).row();
        atomic_add(G + at, acc, {.mask = ((row / 10 < 9) & (row % 10 < 9)).col() & (column < 36).row()});
      }
    }).grid([](const DepCfg&, auto, const auto&, auto, int N) { return Grid{(N / 8) * (N / 8) * (N / 8)}; });
Register r2("supercells", [](Env& e) {
  DepCfg c;
  if (!e.big) c = {32, 1, 0, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form),
  c.prec = e.field("prec", c.prec);
  const int N = e.big ? 128 : 16, S = N / 8, per = e.big ? 2000 : 45;
  std::vector<int> start{0};
  for (int s = 0; s < S * S * S; ++s)
    start.push_back(start.back() + (s % 5 == 2 ? 0 : per / 2 + int(e.uniform() * per)));
  const int n = start.back();
  auto starts = repeated(e, start.size(), start);
  int s = 0;
  auto p = filled<float>(e, size_t(6) * n, [&, n, S](size_t i) {
    const int k = int(i / n), at = int(i % n);
    if (at == 0) s = 0;
    while (at >= start[s + 1]) ++s;
    const int base = k == 0 ? s % S : k == 1 ? s / S % S : s / (S * S);
    return k < 3 ? float(base * 8) + 7.999f * float(e.uniform()) : float(2 * e.uniform() - 1);
  });
  auto g = constant<float>(e, size_t(N) * N * N * 4, 0);
  Job j;
  j.mbytes = 24e-6 * n + 16e-6 * N * N * N;
  j.add(supercells, c, starts.p, p.view(6, n), g.p, N);
  j.check = [=] {
    std::vector<double> want(g.n);
    for (int i = 0; i < n; ++i) {
      const float x[3] = {p.at(i), p.at(size_t(n) + i), p.at(2 * size_t(n) + i)};
      const double v[4] = {1, p[3 * size_t(n) + i], p[4 * size_t(n) + i], p[5 * size_t(n) + i]};
      for (int k = 0; k < 8; ++k) {
        double w = 1;
        size_t at = 0;
        for (int d = 2; d >= 0; --d) {
          const int f = int(std::floor(x[d])), o = k >> d & 1;
          w *= o ? x[d] - f : 1 - (x[d] - f), at = at * N + (f + o) % N;
        }
        for (int q = 0; q < 4; ++q) want[at * 4 + q] += w * v[q];
      }
    }
    return agree(g.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- a picture (four bytes a pixel) made smaller by Lanczos' kernel: taps from tables, rows first (into f16), then
// columns
struct LanczosCfg {
  int T = 10, BY = 4, BX = 64, BC = 256, BR = 4, warps = 4, colwarps = 4, form = 0;
};
auto lanczos_rows = kernel("user_lanczos_rows", [](const LanczosCfg& c, Ptr<const uint32_t> in, Ptr<const int> start,
                                                   Ptr<const float> weight, Tensor<half, 2> out, I32 H, I32 W, I32 w) {
                      // in [H, W]; start [w]; weight [T, w]; out [H, 4 w]
                      num_warps(c.warps);
                      auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
                      auto x = x0 + arange(0, c.BX), y = y0 + arange(0, c.BY);
                      auto first = load(start + x, {.mask = x < w});
                      std::vector<Tile> acc(4, zeros({c.BY, c.BX}, f32));
                      for (int t = 0; t < c.T; ++t) {
                        auto at = first + t;
                        auto k = load(weight + t * w + x, {.mask = x < w}).row();
                        auto p =
                            load(in + (y * W).col() + at.row(), {.mask = (y < H).col() & ((at >= 0) & (at < W)).row()});
                        for (int q = 0; q < 4; ++q) acc[q] += k * cast((p >> (8 * q)) & 255u, f32);
                      }
                      auto h = [&](int q) { return cast(acc[q], f16); };
                      out.store({y0, 4 * x0}, reshape(join(join(h(0), h(2)), join(h(1), h(3))), {c.BY, 4 * c.BX}));
                    }).grid([](const LanczosCfg& c, auto, auto, auto, const auto&, int H, int, int w) {
  return Grid{cdiv(w, c.BX), cdiv(H, c.BY)};
});
auto lanczos_columns =
    kernel("user_lanczos_columns", [](const LanczosCfg& c, Tensor<const half, 2> in, Ptr<const int> start,
                                      Ptr<const float> weight, Tensor<uint8_t, 2> out) {
      // in [H, 4 w]; start [h]; weight [h, T]; out [h, 4 w]
      num_warps(c.colwarps);
      auto x = program_id(0) * c.BC, y = program_id(1) * c.BR;
      auto result = [&](auto row) {
        auto first = load(start + row);
        Tile acc = zeros({1, c.BC}, f32);
        for (int t = 0; t < c.T; ++t)
          acc += load(weight + row * c.T + t) * cast(in.load({first + t, x}, {1, c.BC}), f32);
        out.store({row, x}, cast(clamp(acc + .5f, 0.f, 255.f), u8));
      };
      for (auto r : range(y, min(y + c.BR, out.dim(0)))) result(r);
    }).grid([](const LanczosCfg& c, const auto&, auto, auto, const auto& out) {
      return Grid{cdiv(out.shape[1], c.BC), cdiv(out.shape[0], c.BR)};
    });
Register r3("lanczos", [](Env& e) {
  LanczosCfg c;
  if (!e.big) c = {6, 2, 8, 16, 3, 1, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.BC = e.field("BC", c.BC), c.BR = e.field("BR", c.BR);
  c.warps = e.field("warps", c.warps), c.colwarps = e.field("colwarps", c.colwarps);
  const int H = e.big ? 4320 : 19, W = e.big ? 7680 : 31, h = e.big ? 2880 : 19, w = e.big ? 5120 : 29, T = c.T;
  auto in = drawn<uint32_t>(e, size_t(H) * W,
                            [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); });
  auto table = [&](int from, int to, bool taps_first) {
    std::vector<int> s(to);
    std::vector<float> k(size_t(to) * T);
    const double scale = std::max(1., double(from) / to), support = 3 * scale;
    for (int i = 0; i < to; ++i) {
      const double centre = (i + .5) * from / to;
      s[i] = int(std::floor(centre - support + .5));
      double sum = 0;
      std::vector<double> v(T);
      for (int t = 0; t < T; ++t) {
        const double x = (s[i] + t + .5 - centre) / scale;
        auto sinc = [](double a) { return a == 0 ? 1 : std::sin(M_PI * a) / (M_PI * a); };
        sum += v[t] = std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
      }
      for (int t = 0; t < T; ++t) k[taps_first ? size_t(t) * to + i : size_t(i) * T + t] = float(v[t] / sum);
    }
    return std::pair(s, k);
  };
  auto [xs, xk] = table(W, w, true);
  auto [ys, yk] = table(H, h, false);
  auto x_start = repeated(e, w, xs), y_start = repeated(e, h, ys);
  auto x_weight = repeated(e, xk.size(), xk), y_weight = repeated(e, yk.size(), yk);
  auto mid = constant<half>(e, size_t(H) * w * 4, 0);
  auto out = constant<uint8_t>(e, size_t(h) * w * 4, 0);
  Job j;
  j.inTurn = true;
  j.add(lanczos_rows, c, in.p, x_start.p, x_weight.p, mid.view(H, 4 * w), H, W, w);
  j.add(lanczos_columns, c, mid.view(H, 4 * w), y_start.p, y_weight.p, out.view(h, 4 * w));
  j.check = [=] {
    std::vector<double> m(size_t(H) * w * 4), want(out.n);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < w; ++x)
        for (int q = 0; q < 4; ++q)
          for (int t = 0; t < T; ++t) {
            const int at = x_start.at(x) + t;
            if (at >= 0 && at < W)
              m[(size_t(y) * w + x) * 4 + q] +=
                  x_weight[size_t(t) * w + x] * (in.at(size_t(y) * W + at) >> (8 * q) & 255);
          }
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < 4 * w; ++x) {
        double s = .5;
        for (int t = 0; t < T; ++t) {
          const int at = y_start.at(y) + t;
          if (at >= 0 && at < H) s += y_weight[size_t(y) * T + t] * m[size_t(at) * w * 4 + x];
        }
        want[size_t(y) * 4 * w + x] = std::clamp(std::floor(s), 0., 255.);
      }
    return agree(out.now(), want, 1.01, 0);
  };
  return j;
});

// --- C = A B over bits (and, xor), by tables: all 256 sums of eight rows of B, picked by the bytes of A
// form 0: take() from a table in the program; form 1: bits of A times rows, one by one
struct BitsCfg {
  int BM = 128, BW = 32, warps = 8, form = 0;
};
auto bit_matrix = kernel("user_bit_matrix", [](const BitsCfg& c, Tensor<const uint8_t, 2> A,
                                               Tensor<const uint32_t, 2> B, Tensor<uint32_t, 2> C) {
                    // A [M, K / 8] bytes; B [K, N / 32]; C [M, N / 32]
                    num_warps(c.warps);
                    auto m = program_id(0) * c.BM, w = program_id(1) * c.BW;
                    Tile acc = zeros({c.BM, c.BW}, u32);
                    for (auto k : range(0, A.dim(1))) {
                      auto a = cast(A.load({m, k}, {c.BM, 1}), i32);
                      if (c.form == 0) {
                        auto v = arange(0, 256).col();
                        Tile table = zeros({256, c.BW}, u32);
                        for (int b = 0; b < 8; ++b)
                          table = table ^ where(((v >> b) & 1) == 1, B.load({k * 8 + b, w}, {1, c.BW}), 0u);
                        acc = acc ^ take(table, broadcast_to(a, {c.BM, c.BW}), 0);
                      } else {
                        for (int b = 0; b < 8; ++b)
                          acc = acc ^ where(((a >> b) & 1) == 1, B.load({k * 8 + b, w}, {1, c.BW}), 0u);
                      }
                    }
                    C.store({m, w}, acc);
                  }).grid([](const BitsCfg& c, const auto& a, const auto&, const auto& y) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(y.shape[1], c.BW)};
});
Register r4("bit_matrix", [](Env& e) {
  BitsCfg c;
  if (!e.big) c = {16, 8, 1, 0};
  c.BM = e.field("BM", c.BM), c.BW = e.field("BW", c.BW), c.warps = e.field("warps", c.warps),
  c.form = e.field("form", c.form);
  const int M = e.big ? 4096 : 27, K = e.big ? 4096 : 72, N = e.big ? 8192 : 32 * 11;
  auto a = integers<uint8_t>(e, size_t(M) * K / 8, 0, 256);
  auto b = drawn<uint32_t>(e, size_t(K) * N / 32,
                           [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); });
  auto y = constant<uint32_t>(e, size_t(M) * N / 32, 0);
  Job j;
  j.add(bit_matrix, c, a.view(M, K / 8), b.view(K, N / 32), y.view(M, N / 32));
  j.check = [=]() -> std::string {
    const auto got = y.now();
    for (int m = 0; m < M; ++m)
      for (int w = 0; w < N / 32; ++w) {
        uint32_t s = 0;
        for (int k = 0; k < K; ++k)
          if (a.at(size_t(m) * K / 8 + k / 8) >> (k % 8) & 1) s ^= b.at(size_t(k) * N / 32 + w);
        if (s != got[size_t(m) * N / 32 + w]) return "a word is off";
      }
    return "";
  };
  return j;
});
}  // namespace beside_cuda_signals
}  // namespace users
