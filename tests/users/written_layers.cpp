// written_layers.cpp - convolutions and sparse products as people write them who know another language for tiles.
#include "tests/users/use.h"
namespace users {
namespace written_layers {

struct WrittenLayerCfg {
  int BM = 128, BN = 128, BK = 64;
};
WrittenLayerCfg layer_cfg(Env& e, WrittenLayerCfg big, WrittenLayerCfg small) {
  WrittenLayerCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK)};
}

// --- 3 x 3, channels last, pixels as rows of a product; bias, SiLU and what was there before
auto taps_silu = kernel("user_taps_silu", [](const WrittenLayerCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<const half> bias,
                                             Ptr<half> y, I32 N, I32 H, I32 W, I32 C, I32 O) {
                   // x [N, H, W, C], w [3, 3, C, O], y [N, H, W, O]
                   auto p = program_id(0) * c.BM + arange(0, c.BM), o = program_id(1) * c.BN + arange(0, c.BN), k = arange(0, c.BK);
                   auto px = p % W, py = p / W % H, pn = p / (W * H);
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto r : range(0, 3))
                     for (auto s : range(0, 3)) {
                       auto h = py + r - 1, v = px + s - 1;
                       auto in = (pn < N) & (h >= 0) & (h < H) & (v >= 0) & (v < W);
                       auto row = ((pn * H + h) * W + v) * C;
                       for (auto i : range(0, C, c.BK)) {
                         auto a = load(x + (row.col() + (i + k).row()), {.mask = in.col() & (i + k < C).row(), .other = 0});
                         auto b = load(w + (((r * 3 + s) * C + i + k).col() * O + o.row()), {.mask = (i + k < C).col() & (o < O).row(), .other = 0});
                         acc = dot(a, b, acc);
                       }
                     }
                   acc += cast(load(bias + o, {.mask = o < O}), f32).row();
                   acc = acc * sigmoid(acc);
                   store(y + (p.col() * O + o.row()), cast(acc, f16), {.mask = (pn < N).col() & (o < O).row()});
                 }).grid([](const WrittenLayerCfg& c, auto, auto, auto, auto, int N, int H, int W, int, int O) {
  return Grid{cdiv(N * H * W, c.BM), cdiv(O, c.BN)};
});
Register r1("taps_silu", [](Env& e) {
  const auto c = layer_cfg(e, {}, {64, 32, 16});
  const int N = e.big ? 16 : 2, H = e.big ? 56 : 7, W = e.big ? 56 : 9, C = e.big ? 256 : 32, O = e.big ? 256 : 48;
  auto x = random<half>(e, size_t(N) * H * W * C), w = random<half>(e, size_t(9) * C * O, -.1, .1), bias = random<half>(e, O);
  auto y = constant<half>(e, size_t(N) * H * W * O, NAN);
  Job j;
  j.gflop = 2e-9 * N * H * W * C * O * 9;
  j.add(taps_silu, c, x.p, w.p, bias.p, y.p, N, H, W, C, O);
  j.check = [=] {
    auto want = product(N * H * W, O, 9 * C, [&](int p, int k) {
      const int t = k / C, h = p / W % H + t / 3 - 1, v = p % W + t % 3 - 1;
      return h < 0 || h >= H || v < 0 || v >= W ? 0. : x[((size_t(p / (W * H)) * H + h) * W + v) * C + k % C];
    }, matrix(w, O), [&](double s, int, int o) { s += bias[o]; return s / (1 + std::exp(-s)); });
    return agree(y.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- 7 x 7 with steps of 2 over three colours: all of a window is one row
auto stem = kernel("user_stem", [](const WrittenLayerCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<half> y, I32 N, I32 H, I32 W,
                                   I32 O) {
              // x [N, H, W, 3], w [147, O], y [N, H / 2, W / 2, O]
              auto OH = H / 2, OW = W / 2;
              auto p = program_id(0) * c.BM + arange(0, c.BM), o = program_id(1) * c.BN + arange(0, c.BN);
              auto px = p % OW, py = p / OW % OH, pn = p / (OW * OH);
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto i : range(0, 147, c.BK)) {
                auto k = i + arange(0, c.BK);
                auto h = py.col() * 2 - 3 + (k / 21).row(), v = px.col() * 2 - 3 + (k / 3 % 7).row();
                auto in = (pn < N).col() & (k < 147).row() & (h >= 0) & (h < H) & (v >= 0) & (v < W);
                auto a = load(x + (((pn.col() * H + h) * W + v) * 3 + (k % 3).row()), {.mask = in, .other = 0});
                auto b = load(w + (k.col() * O + o.row()), {.mask = (k < 147).col() & (o < O).row(), .other = 0});
                acc = dot(a, b, acc);
              }
              store(y + (p.col() * O + o.row()), cast(max(acc, 0.f), f16), {.mask = (pn < N).col() & (o < O).row()});
            }).grid([](const WrittenLayerCfg& c, auto, auto, auto, int N, int H, int W, int O) {
  return Grid{cdiv(N * (H / 2) * (W / 2), c.BM), cdiv(O, c.BN)};
});
Register r2("stem", [](Env& e) {
  const auto c = layer_cfg(e, {128, 64, 32}, {64, 16, 32});
  const int N = e.big ? 64 : 2, H = e.big ? 224 : 12, W = e.big ? 224 : 10, O = e.big ? 64 : 24;
  auto x = random<half>(e, size_t(N) * H * W * 3), w = random<half>(e, size_t(147) * O, -.2, .2);
  auto y = constant<half>(e, size_t(N) * (H / 2) * (W / 2) * O, NAN);
  Job j;
  j.gflop = 2e-9 * N * (H / 2) * (W / 2) * O * 147;
  j.add(stem, c, x.p, w.p, y.p, N, H, W, O);
  j.check = [=] {
    const int OH = H / 2, OW = W / 2;
    auto want = product(N * OH * OW, O, 147, [&](int p, int k) {
      const int h = p / OW % OH * 2 - 3 + k / 21, v = p % OW * 2 - 3 + k / 3 % 7;
      return h < 0 || h >= H || v < 0 || v >= W ? 0. : x[((size_t(p / (OW * OH)) * H + h) * W + v) * 3 + k % 3];
    }, matrix(w, O), [](double s, int, int) { return std::max(s, 0.); });
    return agree(y.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- blocks of a sparse matrix, rows of blocks in a list, times a dense one
auto block_rows = kernel("user_block_rows", [](const WrittenLayerCfg& c, Ptr<const half> blocks, Ptr<const int32_t> starts,
                                               Ptr<const int32_t> columns, Ptr<const half> b, Ptr<half> y, I32, I32 N) {
                    // blocks [count, BM, BK], starts [rows + 1], columns [count], b [K, N], y [rows * BM, N]
                    auto row = program_id(1);
                    auto n = program_id(0) * c.BN + arange(0, c.BN), m = arange(0, c.BM), k = arange(0, c.BK);
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto i : range(load(starts + row), load(starts + row + 1))) {
                      auto column = load(columns + i);
                      auto a = load(blocks + (cast(i, i64) * (c.BM * c.BK) + (m.col() * c.BK + k.row())));
                      auto v = load(b + ((column * c.BK + k).col() * N + n.row()), {.mask = (n < N).row(), .other = 0});
                      acc = dot(a, v, acc);
                    }
                    store(y + ((row * c.BM + m).col() * N + n.row()), cast(acc, f16), {.mask = (n < N).row()});
                  }).grid([](const WrittenLayerCfg& c, auto, auto, auto, auto, auto, int rows, int N) { return Grid{cdiv(N, c.BN), rows}; });
Register r3("block_rows", [](Env& e) {
  const auto c = layer_cfg(e, {64, 128, 64}, {64, 32, 32});
  const int R = e.big ? 64 : 3, KB = e.big ? 64 : 4, N = e.big ? 4096 : 48, most = e.big ? 16 : 3;
  std::vector<int32_t> starts{0}, columns;
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < most - r % 2; ++i) columns.push_back((r * 7 + i * 5) % KB);
    starts.push_back(int32_t(columns.size()));
  }
  auto blocks = random<half>(e, columns.size() * c.BM * c.BK), b = random<half>(e, size_t(KB) * c.BK * N);
  auto st = repeated<int32_t>(e, starts.size(), starts), co = repeated<int32_t>(e, columns.size(), columns);
  auto y = constant<half>(e, size_t(R) * c.BM * N, NAN);
  Job j;
  j.gflop = 2e-9 * columns.size() * c.BM * c.BK * N;
  j.add(block_rows, c, blocks.p, st.p, co.p, b.p, y.p, R, N);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int r = 0; r < R; ++r)
      for (int i = starts[r]; i < starts[r + 1]; ++i) {
        auto one = product(c.BM, N, c.BK, matrix(blocks, c.BK, size_t(i) * c.BM * c.BK), matrix(b, N, size_t(columns[i]) * c.BK * N));
        for (size_t k = 0; k < one.size(); ++k) want[size_t(r) * c.BM * N + k] += one[k];
      }
    return agree(y.now(), want, 1e-2, 5e-3);
  };
  return j;
});

}  // namespace written_layers
}  // namespace users
