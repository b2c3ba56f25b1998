// pair_layers.cpp - layers over pairs of residues and over images whose results lie the other way round or have windows
// of different sizes.
#include "tests/users/use.h"
namespace users {
namespace pair_layers {

// --- sigmoid(x1 w1' + b1) (x2 w2' + b2), under a mask of rows, stored as columns if asked for (triangle
// multiplication): two products share a loop, pointers walk
struct Dual {
  int BM = 64, BN = 64, BK = 32;
  bool two = true, bias = true, mask = true, turned = true;
  int warps = 4;
};
auto dual_gate = kernel("user_dual_gate",
                        [](const Dual& c, Ptr<const bfloat16> x1, Ptr<const bfloat16> x2, Ptr<const bfloat16> w1,
                           Ptr<const bfloat16> w2, Ptr<const float> b1, Ptr<const float> b2, Ptr<const float> m,
                           Ptr<bfloat16> out, I32 M, I32 N, I32 K) {
                          num_warps(c.warps);
                          auto pm = program_id(0), pn = program_id(1);
                          Tile row = pm * c.BM + arange(0, c.BM), column = pn * c.BN + arange(0, c.BN),
                               k = arange(0, c.BK);
                          auto p1 = x1 + (cast(row, i64).col() * K + k.row());
                          auto p2 = (c.two ? x2 : x1) + (cast(row, i64).col() * K + k.row());
                          auto q1 = w1 + (column.row() * K + k.col());
                          auto q2 = w2 + (column.row() * K + k.col());
                          Tile acc1 = zeros({c.BM, c.BN}, f32), acc2 = zeros({c.BM, c.BN}, f32);
                          for (auto i : range(0, cdiv(K, c.BK))) {
                            Tile there = k < K - i * c.BK;
                            Tile a1 = load(p1, {.mask = (row < M).col() & there.row()});
                            Tile a2 = c.two ? load(p2, {.mask = (row < M).col() & there.row()}) : a1;
                            acc1 = dot(a1, load(q1, {.mask = there.col() & (column < N).row()}), acc1);
                            acc2 = dot(a2, load(q2, {.mask = there.col() & (column < N).row()}), acc2);
                            p1 += c.BK, p2 += c.BK, q1 += c.BK, q2 += c.BK;
                          }
                          if (c.bias) {
                            acc1 += load(b1 + column, {.mask = column < N}).row();
                            acc2 += load(b2 + column, {.mask = column < N}).row();
                          }
                          Tile y = acc2 / (1 + exp(-acc1));
                          if (c.mask) y *= load(m + row, {.mask = row < M}).col();
                          Tile inside = (row < M).col() & (column < N).row();
                          if (c.turned)
                            store(out + (cast(column, i64).row() * M + row.col()), cast(y, bf16), {.mask = inside});
                          else
                            store(out + (cast(row, i64).col() * N + column.row()), cast(y, bf16), {.mask = inside});
                        })
                     .grid([](const Dual& c, const bfloat16*, const bfloat16*, const bfloat16*, const bfloat16*,
                              const float*, const float*, const float*, bfloat16*, int M, int N, int) {
                       return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
                     });
Job dual(Env& e, bool all) {
  Dual c;
  if (!all) c.two = c.bias = c.mask = c.turned = false;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 768 * 768 : 93, N = e.big ? 128 : 75, K = e.big ? 128 : 45;
  auto x1 = random<bfloat16>(e, size_t(M) * K), x2 = random<bfloat16>(e, size_t(M) * K),
       w1 = random<bfloat16>(e, N * K), w2 = random<bfloat16>(e, N * K);
  auto b1 = random<float>(e, N), b2 = random<float>(e, N), m = integers<float>(e, M, 0, 2);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.add(dual_gate, c, x1.p, all ? x2.p : nullptr, w1.p, w2.p, all ? b1.p : nullptr, all ? b2.p : nullptr,
        all ? m.p : nullptr, y.p, M, N, K);
  j.gflop = 4e-9 * M * N * K;
  j.mbytes = 1e-6 * M * ((all ? 4. : 2.) * K + 2. * N);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int i = 0; i < M; ++i)
      for (int n = 0; n < N; ++n) {
        double g = all ? b1[n] : 0, v = all ? b2[n] : 0;
        for (int k = 0; k < K; ++k)
          g += x1[size_t(i) * K + k] * w1[n * K + k], v += (all ? x2 : x1)[size_t(i) * K + k] * w2[n * K + k];
        want[all ? size_t(n) * M + i : size_t(i) * N + n] = v / (1 + std::exp(-g)) * (all ? m[i] : 1);
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register b1("dual_gate", [](Env& e) { return dual(e, true); });
Register b2("dual_gate_plain", [](Env& e) { return dual(e, false); });

// --- layer norm from and to [rows, D] or [D, rows], as a layout says; statistics are kept, rows in f32
enum { kRows, kColumns };
struct Turned {
  int BN = 64, D = 128, BD = 64, from = kColumns, to = kRows;
};
auto norm_turned =
    kernel("user_norm_turned", [](const Turned& c, Ptr<const float> x, Ptr<const float> w, Ptr<const float> b,
                                  Ptr<float> y, Ptr<float> means, Ptr<float> rstds, I32 N) {
      Tile n = program_id(0) * c.BN + arange(0, c.BN);
      Tile there = n < N;
      auto at = [&](const Tile& d, int layout) {
        if (layout == kRows) return cast(n, i64).col() * c.D + d.row();
        return cast(d, i64).row() * N + n.col();
      };
      Tile s = zeros({c.BN}, f32), q = zeros({c.BN}, f32);
      for (auto first : range(0, c.D, c.BD)) {
        Tile d = first + arange(0, c.BD);
        Tile v = load(x + at(d, c.from), {.mask = there.col() & (d < c.D).row()});
        s += squeeze(sum(v, axis(1)), 1), q += squeeze(sum(v * v, axis(1)), 1);
      }
      Tile mean = s / c.D, rstd = rsqrt(q / c.D - mean * mean + 1e-5f);
      store(means + n, mean, {.mask = there});
      store(rstds + n, rstd, {.mask = there});
      for (auto first : range(0, c.D, c.BD)) {
        Tile d = first + arange(0, c.BD);
        Tile inside = there.col() & (d < c.D).row();
        Tile v = load(x + at(d, c.from), {.mask = inside});
        Tile scale = load(w + d, {.mask = d < c.D}).row(), shift = load(b + d, {.mask = d < c.D}).row();
        store(y + at(d, c.to), (v - mean.col()) * rstd.col() * scale + shift, {.mask = inside});
      }
    }).grid([](const Turned& c, const float*, const float*, const float*, float*, float*, float*, int n) {
      return Grid{cdiv(n, c.BN)};
    });
Register b3("norm_turned", [](Env& e) {
  Turned c;
  if (!e.big) c.D = 45, c.BD = 16, c.BN = 32;
  c.BN = e.field("BN", c.BN);
  const int N = e.big ? 512 * 512 : 101, D = c.D;
  auto x = random<float>(e, size_t(N) * D, -1, 2), w = random<float>(e, D), b = random<float>(e, D);
  auto mean = constant<float>(e, N, NAN), rstd = constant<float>(e, N, NAN);
  Job j;
  std::vector<Array<float>> ys;
  const std::vector<std::array<int, 2>> ways{
      {kColumns, kRows}, {kRows, kColumns}, {kRows, kRows}, {kColumns, kColumns}};
  for (auto [from, to] : ways) {
    c.from = from, c.to = to;
    ys.push_back(constant<float>(e, x.n, NAN));
    j.add(norm_turned, c, x.p, w.p, b.p, ys.back().p, mean.p, rstd.p, N);
  }
  j.mbytes = 8e-6 * x.n;
  j.check = [=]() -> std::string {
    for (size_t i = 0; i < ways.size(); ++i) {
      auto at = [&](int layout, int n, int d) { return layout == kRows ? size_t(n) * D + d : size_t(d) * N + n; };
      std::vector<double> want(x.n);
      for (int n = 0; n < N; ++n) {
        double m = 0, v = 0;
        for (int d = 0; d < D; ++d) m += x[at(ways[i][0], n, d)] / D;
        for (int d = 0; d < D; ++d) v += std::pow(x[at(ways[i][0], n, d)] - m, 2) / D;
        for (int d = 0; d < D; ++d)
          want[at(ways[i][1], n, d)] = (x[at(ways[i][0], n, d)] - m) / std::sqrt(v + 1e-5) * w[d] + b[d];
      }
      if (auto bad = agree(ys[i].now(), want, 1e-4, 1e-4); !bad.empty()) return "way " + std::to_string(i) + ": " + bad;
    }
    return "";
  };
  return j;
});

// --- adaptive average pooling and its gradient: windows of different sizes that may overlap; outputs are flat, loops
// run to the largest window
struct Adaptive {
  int B = 256;
};
auto adaptive_pool =
    kernel("user_adaptive_pool", [](const Adaptive& c, Ptr<const float> x, Ptr<float> y, I32 n, I32 H, I32 W, I32 OH,
                                    I32 OW, I32 most_h, I32 most_w) {
      Tile i = program_id(0) * c.B + arange(0, c.B);
      Tile ow = i % OW, oh = i / OW % OH, plane = i / OW / OH;
      Tile h0 = oh * H / OH, h1 = ((oh + 1) * H + OH - 1) / OH;
      Tile w0 = ow * W / OW, w1 = ((ow + 1) * W + OW - 1) / OW;
      Tile acc = zeros({c.B}, f32);
      for (auto dh : range(0, most_h))
        for (auto dw : range(0, most_w)) {
          Tile h = h0 + dh, w = w0 + dw;
          acc += load(x + ((cast(plane, i64) * H + h) * W + w), {.mask = (i < n) & (h < h1) & (w < w1)});
        }
      store(y + i, acc / cast((h1 - h0) * (w1 - w0), f32), {.mask = i < n});
    }).grid([](const Adaptive& c, const float*, float*, int n, const auto&...) { return Grid{cdiv(n, c.B)}; });
auto adaptive_back =
    kernel("user_adaptive_back", [](const Adaptive& c, Ptr<const float> dy, Ptr<float> dx, I32 n, I32 H, I32 W, I32 OH,
                                    I32 OW) {
      Tile i = program_id(0) * c.B + arange(0, c.B);
      Tile w = i % W, h = i / W % H, plane = i / W / H;
      Tile oh0 = h * OH / H, oh1 = ((h + 1) * OH + H - 1) / H, ow0 = w * OW / W, ow1 = ((w + 1) * OW + W - 1) / W;
      Tile acc = zeros({c.B}, f32), oh = oh0;
      while_([&] { return any((i < n) & (oh < oh1)); },
             [&] {
               Tile high = ((oh + 1) * H + OH - 1) / OH - oh * H / OH;
               Tile ow = ow0;
               while_([&] { return any((i < n) & (ow < ow1)); },
                      [&] {
                        Tile wide = ((ow + 1) * W + OW - 1) / OW - ow * W / OW;
                        Tile live = (i < n) & (oh < oh1) & (ow < ow1);
                        acc += load(dy + ((cast(plane, i64) * OH + oh) * OW + ow), {.mask = live}) /
                               cast(high * wide, f32);
                        ow += 1;
                      });
               oh += 1;
             });
      store(dx + i, acc, {.mask = i < n});
    }).grid([](const Adaptive& c, const float*, float*, int n, const auto&...) { return Grid{cdiv(n, c.B)}; });
Register b4("adaptive_pool", [](Env& e) {
  Adaptive c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int P = e.big ? 64 * 512 : 3, H = e.big ? 37 : 11, W = e.big ? 50 : 13, OH = e.big ? 7 : 4, OW = e.big ? 7 : 15;
  auto from = [](int o, int n, int on) { return o * n / on; };
  auto to = [](int o, int n, int on) { return ((o + 1) * n + on - 1) / on; };
  int mh = 0, mw = 0;
  for (int o = 0; o < OH; ++o) mh = std::max(mh, to(o, H, OH) - from(o, H, OH));
  for (int o = 0; o < OW; ++o) mw = std::max(mw, to(o, W, OW) - from(o, W, OW));
  auto x = random<float>(e, size_t(P) * H * W), dy = random<float>(e, size_t(P) * OH * OW);
  auto y = constant<float>(e, dy.n, NAN), dx = constant<float>(e, x.n, NAN);
  Job j;
  j.add(adaptive_pool, c, x.p, y.p, P * OH * OW, H, W, OH, OW, mh, mw);
  j.add(adaptive_back, c, dy.p, dx.p, P * H * W, H, W, OH, OW);
  j.mbytes = 4e-6 * (x.n + y.n);
  j.check = [=]() -> std::string {
    std::vector<double> wy(y.n), wx(x.n);
    for (int p = 0; p < P; ++p)
      for (int o = 0; o < OH; ++o)
        for (int q = 0; q < OW; ++q) {
          const size_t at = (size_t(p) * OH + o) * OW + q;
          const double n = (to(o, H, OH) - from(o, H, OH)) * (to(q, W, OW) - from(q, W, OW));
          for (int h = from(o, H, OH); h < to(o, H, OH); ++h)
            for (int w = from(q, W, OW); w < to(q, W, OW); ++w)
              wy[at] += x[(size_t(p) * H + h) * W + w] / n, wx[(size_t(p) * H + h) * W + w] += dy[at] / n;
        }
    if (auto bad = agree(y.now(), wy, 1e-5, 1e-5); !bad.empty()) return bad;
    return agree(dx.now(), wx, 1e-5, 1e-5);
  };
  return j;
});
}  // namespace pair_layers
}  // namespace users
