// places.cpp - kernels whose places are made by hand, as in languages that have pointers only: quotients and remainders
// of one index, columns that move on, pointers that come round, sums of four strides.
#include "tests/users/use.h"
namespace users {
namespace places {

// --- heads in front of positions become positions in front of heads, with a factor for every head and channel and a
// residual: one index taken apart
struct PartsCfg {
  int B = 1024, heads = 12, D = 64, warps = 4;
};
auto index_parts = kernel("user_index_parts", [](const PartsCfg& c, Ptr<const half> X, Ptr<const half> F,
                                                 Ptr<const half> R, Ptr<half> Y, I32 n, I32 T) {
                     // X [batch, heads, T, D], F [heads, D], R and Y [batch, T, heads, D]
                     num_warps(c.warps);
                     const int width = c.heads * c.D;
                     auto at = program_id(0) * c.B + arange(0, c.B);
                     auto mask = at < n;
                     auto d = at % c.D, head = at / c.D % c.heads, t = at / width % T, batch = at / width / T;
                     auto x = cast(load(X + (((batch * c.heads + head) * T + t) * c.D + d), {.mask = mask}), f32);
                     auto f = cast(load(F + (head * c.D + d), {.mask = mask}), f32);
                     auto r = cast(load(R + at, {.mask = mask}), f32);
                     store(Y + at, cast(x * sigmoid(f * x) + r, f16), {.mask = mask});
                   }).grid([](const PartsCfg& c, const half*, const half*, const half*, half*, int n, int) {
  return Grid{cdiv(n, c.B)};
});
Register r1("index_parts", [](Env& e) {
  PartsCfg c;
  if (!e.big) c = {256, 3, 16, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int batches = e.big ? 16 : 2, T = e.big ? 4096 : 16, width = c.heads * c.D, n = batches * T * width;
  auto x = random<half>(e, n), f = random<half>(e, width), r = random<half>(e, n), y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 6e-6 * n;
  j.add(index_parts, c, x.p, f.p, r.p, y.p, n, T);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < batches; ++b)
      for (int t = 0; t < T; ++t)
        for (int k = 0; k < width; ++k) {
          const double v = x[((size_t(b) * c.heads + k / c.D) * T + t) * c.D + k % c.D];
          want.push_back(v / (1 + std::exp(-f[k] * v)) + r[want.size()]);
        }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- levels of channels: the mean and the spread around it of all images' planes, block by block, then planes on a
// common level
struct LevelsCfg {
  int images = 32, B = 512, warps = 8;
};
auto channel_levels =
    kernel("user_channel_levels", [](const LevelsCfg& c, Ptr<const float> X, Ptr<float> mean, Ptr<float> spread,
                                     Ptr<float> Y, I32 N, I32 plane, I32 C) {
      // X and Y [N, C, plane]
      num_warps(c.warps);
      auto channel = program_id(0);
      auto image = arange(0, c.images).col();
      auto first = channel * plane + image * C * plane;
      Tile total = 0.f, squares = 0.f;
      for (auto p : range(0, plane, c.B)) {
        auto at = p + arange(0, c.B).row();
        auto mask = (image < N) & (at < plane);
        auto x = load(X + first + at, {.mask = mask});
        total += sum(x);
        auto centre = total / cast(min(p + c.B, plane) * N, f32);
        squares += sum(where(mask, (x - centre) * (x - centre), 0.f));
      }
      auto count = cast(plane * N, f32), m = total / count, s = sqrt(squares / count);
      store(mean + channel, m);
      store(spread + channel, s);
      for (auto p : range(0, plane, c.B)) {
        auto at = p + arange(0, c.B).row();
        auto mask = (image < N) & (at < plane);
        store(Y + first + at, (load(X + first + at, {.mask = mask}) - m) / (s + 1e-3f), {.mask = mask});
      }
    }).grid([](const LevelsCfg&, const float*, float*, float*, float*, int, int, int C) { return Grid{C}; });
Register r2("channel_levels", [](Env& e) {
  LevelsCfg c;
  if (!e.big) c = {8, 32, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 32 : 6, C = e.big ? 512 : 3, P = e.big ? 56 * 56 : 80;
  auto x = random<float>(e, size_t(N) * C * P, -1, 3), mean = constant<float>(e, C, NAN);
  auto spread = constant<float>(e, C, NAN), y = constant<float>(e, size_t(N) * C * P, NAN);
  Job j;
  j.mbytes = 12e-6 * N * C * P;
  j.add(channel_levels, c, x.p, mean.p, spread.p, y.p, N, P, C);
  j.check = [=] {
    std::vector<double> want(size_t(N) * C * P), means, spreads;
    for (int k = 0; k < C; ++k) {
      auto at = [&](int n, int p) { return (size_t(n) * C + k) * P + p; };
      double total = 0, squares = 0;
      for (int p = 0; p < P; p += c.B) {
        const int end = std::min(p + c.B, P);
        for (int n = 0; n < N; ++n)
          for (int q = p; q < end; ++q) total += x[at(n, q)];
        for (int n = 0; n < N; ++n)
          for (int q = p; q < end; ++q) squares += std::pow(x[at(n, q)] - total / (end * N), 2);
      }
      means.push_back(total / (N * P)), spreads.push_back(std::sqrt(squares / (N * P)));
      for (int n = 0; n < N; ++n)
        for (int p = 0; p < P; ++p) want[at(n, p)] = (x[at(n, p)] - means[k]) / (spreads[k] + 1e-3);
    }
    auto wrong = agree(mean.now(), means, 1e-4, 1e-4);
    if (wrong.empty()) wrong = agree(spread.now(), spreads, 1e-4, 1e-4);
    return wrong.empty() ? agree(y.now(), want, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- texts of several lengths, one behind the other, into rows of a block of their own, newest word first, and what is
// left is filled: columns and rows that move on
struct ShelvesCfg {
  int R = 32, C = 32, warps = 4;
};
auto shelves = kernel("user_shelves", [](const ShelvesCfg& c, Ptr<const bfloat16> words, Ptr<const int64_t> starts,
                                         Ptr<bfloat16> block, I32 rows, I32 width, F32 filling, I32 /*texts*/) {
                 // words [all, width], starts [texts + 1], block [texts, rows, width]
                 num_warps(c.warps);
                 auto text = program_id(0);
                 auto begin = load(starts + text), end = load(starts + text + 1);
                 auto to = block + cast(text, i64) * rows * width;
                 Tile row = arange(0, c.R).col();
                 for (auto i : range(0, rows, c.R)) {
                   auto from = end - 1 - cast(row, i64);
                   Tile column = arange(0, c.C).row();
                   for (auto k : range(0, width, c.C)) {
                     auto is_word = (from >= begin) & (column < width);
                     auto x = load(words + (from * width + column), {.mask = is_word, .other = cast(filling, bf16)});
                     store(to + (row * width + column), x, {.mask = (row < rows) & (column < width)});
                     column += c.C;
                   }
                   row += c.R;
                 }
               }).grid([](const ShelvesCfg&, const bfloat16*, const int64_t*, bfloat16*, int, int, float, int texts) {
  return Grid{texts};
});
Register r3("shelves", [](Env& e) {
  ShelvesCfg c;
  if (!e.big) c = {8, 16, 2};
  c.R = e.field("R", c.R), c.C = e.field("C", c.C), c.warps = e.field("warps", c.warps);
  const int texts = e.big ? 2048 : 4, rows = e.big ? 512 : 20, width = e.big ? 128 : 48;
  std::vector<int64_t> at{0};
  for (int i = 0; i < texts; ++i) at.push_back(at.back() + (i * 37 + 5) % (rows + 6));
  auto starts = filled<int64_t>(e, at.size(), [&](size_t i) { return at[i]; });
  auto words = random<bfloat16>(e, size_t(at.back()) * width);
  auto block = constant<bfloat16>(e, size_t(texts) * rows * width, NAN);
  Job j;
  j.mbytes = 2e-6 * width * (double(texts) * rows + double(at.back()));
  j.add(shelves, c, words.p, starts.p, block.p, rows, width, -2.f, texts);
  j.check = [=] {
    std::vector<double> want;
    for (int t = 0; t < texts; ++t)
      for (int r = 0; r < rows; ++r)
        for (int k = 0; k < width; ++k)
          want.push_back(at[t + 1] - 1 - r >= at[t] ? words[size_t(at[t + 1] - 1 - r) * width + k] : -2);
    return agree(block.now(), want, 1e-6, 0);
  };
  return j;
});

// --- a correlation with stride 2 of pictures that lie channel by channel, its places summed up from four strides
struct PatchesCfg {
  int M = 128, C = 32, O = 64, side = 3, warps = 4, stages = 3;
};
auto strided_patches =
    kernel("user_strided_patches", [](const PatchesCfg& c, Ptr<const half> X, Ptr<const half> W, Ptr<half> Y, I32 N,
                                      I32 C, I32 H, I32 V, I32 O, I32 h, I32 v) {
      // X [N, C, H, V], W [O, C, side, side], Y [N, O, h, v]
      num_warps(c.warps);
      auto place = program_id(0) * c.M + arange(0, c.M), o = program_id(1) * c.O + arange(0, c.O);
      auto column = place % v, row = place / v % h, n = place / v / h;
      Tile acc = zeros({c.M, c.O}, f32);
      for (auto tap : range(c.side * c.side))
        for (auto first : range(0, C, c.C, {.stages = c.stages})) {
          auto k = first + arange(0, c.C);
          auto y = 2 * row + tap / c.side - 1, x = 2 * column + tap % c.side - 1;
          auto from = X + (n * C * H * V).col() + (k * H * V).row() + (y * V).col() + x.col();
          auto inside = (n < N).col() & (k < C).row() & (y >= 0).col() & (y < H).col() & (x >= 0).col() & (x < V).col();
          auto weights = W + (o * C * c.side * c.side).row() + (k * c.side * c.side).col() + tap;
          acc += dot(load(from, {.mask = inside}), load(weights, {.mask = (k < C).col() & (o < O).row()}));
        }
      auto to = Y + (n * O * h * v).col() + (o * h * v).row() + (row * v).col() + column.col();
      store(to, cast(acc, f16), {.mask = (n < N).col() & (o < O).row()});
    }).grid([](const PatchesCfg& c, const half*, const half*, half*, int N, int, int, int, int O, int h, int v) {
      return Grid{cdiv(N * h * v, c.M), cdiv(O, c.O)};
    });
Register r4("strided_patches", [](Env& e) {
  PatchesCfg c;
  if (!e.big) c = {32, 16, 16, 3, 2, 2};
  c.M = e.field("M", c.M), c.C = e.field("C", c.C), c.O = e.field("O", c.O), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 32 : 2, C = e.big ? 128 : 24, H = e.big ? 64 : 12, V = e.big ? 64 : 16, O = e.big ? 128 : 24;
  const int h = H / 2, v = V / 2, S = c.side;
  auto x = random<half>(e, size_t(N) * C * H * V), w = random<half>(e, size_t(O) * C * S * S);
  auto y = constant<half>(e, size_t(N) * O * h * v, NAN);
  Job j;
  j.gflop = 2e-9 * N * O * h * v * C * S * S;
  j.add(strided_patches, c, x.p, w.p, y.p, N, C, H, V, O, h, v);
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int o = 0; o < O; ++o)
        for (int i = 0; i < h * v; ++i) {
          double s = 0;
          for (int k = 0; k < C; ++k)
            for (int t = 0; t < S * S; ++t) {
              const int r = 2 * (i / v) + t / S - 1, q = 2 * (i % v) + t % S - 1;
              if (r >= 0 && r < H && q >= 0 && q < V)
                s += x[((size_t(n) * C + k) * H + r) * V + q] * w[(size_t(o) * C + k) * S * S + t];
            }
          want.push_back(s);
        }
    return agree(y.now(), want, 2e-2, 5e-3);
  };
  return j;
});

// --- a memory that fades: rows read it, and add keys that fade until the end of their chunk; keys come as columns
struct FadingCfg {
  int B = 64, D = 128, V = 64, stages = 2, warps = 4;
};
auto fading_memory =
    kernel("user_fading_memory", [](const FadingCfg& c, Ptr<const bfloat16> Q, Ptr<const bfloat16> K,
                                    Ptr<const bfloat16> X, Ptr<const float> rate, Ptr<bfloat16> Y, I32 T, I32 heads) {
      // Q, K, X, Y [heads, T, D], rate [heads]
      num_warps(c.warps);
      auto head = program_id(0);
      auto base = cast(head, i64) * T * c.D;
      auto d = arange(0, c.D), v = program_id(1) * c.V + arange(0, c.V);
      auto s = load(rate + head);
      auto step = cast(arange(0, c.B), f32);
      auto since = exp(-s * (step.col() + 1.f)), until = exp(-s * (float(c.B - 1) - step.row()));
      auto between = where(step.col() >= step.row(), exp(-s * (step.col() - step.row())), 0.f);
      Tile memory = zeros({c.D, c.V}, f32), row = arange(0, c.B);
      for (auto chunk : range(0, cdiv(T, c.B), 1, {.stages = c.stages})) {
        auto in = row < T;
        auto q = load(Q + base + (row.col() * c.D + d.row()), {.mask = in.col()});
        auto k = load(K + base + (d.col() + row.row() * c.D), {.mask = in.row()});
        auto x = load(X + base + (row.col() * c.D + v.row()), {.mask = in.col()});
        auto own = dot(cast(dot(q, k) * between, bf16), x);
        auto old = dot(q, cast(memory, bf16)) * since;
        store(Y + base + (row.col() * c.D + v.row()), cast(own + old, bf16), {.mask = in.col()});
        memory = memory * exp(-s * float(c.B)) + dot(cast(cast(k, f32) * until, bf16), x);
        row += c.B;
      }
    }).grid([](const FadingCfg& c, auto, auto, auto, auto, auto, int, int heads) {
      return Grid{heads, c.D / c.V};
    });
Register r5("fading_memory", [](Env& e) {
  FadingCfg c;
  if (!e.big) c = {16, 32, 16, 2, 2};
  c.B = e.field("B", c.B), c.V = e.field("V", c.V), c.warps = e.field("warps", c.warps);
  const int heads = e.big ? 128 : 3, T = e.big ? 4096 : 44;
  auto q = random<bfloat16>(e, size_t(heads) * T * c.D), k = random<bfloat16>(e, size_t(heads) * T * c.D);
  auto x = random<bfloat16>(e, size_t(heads) * T * c.D), y = constant<bfloat16>(e, size_t(heads) * T * c.D, NAN);
  auto rate = random<float>(e, heads, .05, .2);
  Job j;
  j.gflop = 2e-9 * heads * T * c.D * (2. * c.B + 2 * c.D);
  j.add(fading_memory, c, q.p, k.p, x.p, rate.p, y.p, T, heads);
  j.check = [=] {
    std::vector<double> want;
    for (int h = 0; h < heads; ++h) {
      std::vector<double> memory(c.D * c.D);
      for (int t = 0; t < T; ++t) {
        const size_t at = (size_t(h) * T + t) * c.D;
        std::vector<double> out(c.D);
        for (int i = 0; i < c.D; ++i)
          for (int v = 0; v < c.D; ++v) {
            double& m = memory[i * c.D + v];
            m = m * std::exp(-rate[h]) + k[at + i] * x[at + v];
            out[v] += q[at + i] * m;
          }
        want.insert(want.end(), out.begin(), out.end());
      }
    }
    return agree(y.now(), want, 8e-2, 3e-2);
  };
  return j;
});

// --- a product of f8 with factors of blocks, columns wrapped at the end: a column's block is a quotient of a remainder
struct BlocksCfg {
  int M = 64, N = 128, K = 128, block = 128, stages = 3, warps = 8;
};
auto wrapped_blocks =
    kernel("user_wrapped_blocks",
           [](const BlocksCfg& c, Ptr<const fp8_e4m3> A, Ptr<const fp8_e4m3> B, Ptr<const float> a, Ptr<const float> b,
              Ptr<bfloat16> Y, I32 M, I32 N, I32 K) {
             // A [M, K], B [N, K], a [M, K / block], b [N / block, K / block]
             num_warps(c.warps);
             auto blocks = K / c.block;
             auto row = (program_id(1) * c.M + arange(0, c.M)) % M, column = (program_id(0) * c.N + arange(0, c.N)) % N;
             auto k = arange(0, c.K);
             Tile x = A + (row.col() * K + k.row()), w = B + (column.row() * K + k.col()), acc = zeros({c.M, c.N}, f32);
             for (auto i : range(0, K / c.K, 1, {.stages = c.stages})) {
               auto at = i * c.K / c.block;
               auto p = dot(load(x), load(w));
               acc += p * (load(a + (row * blocks + at)).col() * load(b + (column / c.block * blocks + at)).row());
               x += c.K;
               w += c.K;
             }
             auto m = program_id(1) * c.M + arange(0, c.M), n = program_id(0) * c.N + arange(0, c.N);
             store(Y + (cast(m.col(), i64) * N + n.row()), cast(acc, bf16), {.mask = (m.col() < M) & (n.row() < N)});
           })
        .grid([](const BlocksCfg& c, const fp8_e4m3*, const fp8_e4m3*, const float*, const float*, bfloat16*, int M,
                 int N, int) {
          return Grid{cdiv(N, c.N), cdiv(M, c.M)};
        });
Register r6("wrapped_blocks", [](Env& e) {
  BlocksCfg c;
  if (!e.big) c = {32, 32, 32, 32, 2, 2};
  c.M = e.field("M", c.M), c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int M = e.big ? 4096 : 48, N = e.big ? 4096 : 96, K = e.big ? 4096 : 96, blocks = K / c.block;
  auto A = random<fp8_e4m3>(e, size_t(M) * K), B = random<fp8_e4m3>(e, size_t(N) * K);
  auto a = random<float>(e, size_t(M) * blocks, .5, 1), b = random<float>(e, size_t(N) / c.block * blocks, .5, 1);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(wrapped_blocks, c, A.p, B.p, a.p, b.p, y.p, M, N, K);
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return A[m * K + k] * a[m * blocks + k / c.block]; },
        [&](int k, int n) { return B[n * K + k] * b[n / c.block * blocks + k / c.block]; });
    return agree(y.now(), want, 5e-2, 2e-2);
  };
  return j;
});

}  // namespace places
}  // namespace users
