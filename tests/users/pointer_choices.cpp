// pointer_choices.cpp - pointers that a program chooses, elements that are multiplied into memory, scales per column of
// groups of rows.
#include "tests/users/use.h"
namespace users {
namespace pointer_choices {

// --- one launch for the product of matrices that are kept in 2 x 2 blocks (xformers): a program finds its block of the
// result, and the pointers of the blocks of both operands
struct Blocks {
  int BM = 128, BN = 128, BK = 32, warps = 8;
};
auto tiled_matmul =
    kernel("user_tiled_matmul",
           [](const Blocks& c, Ptr<const half> a00, Ptr<const half> a01, Ptr<const half> a10, Ptr<const half> a11,
              Ptr<const half> b00, Ptr<const half> b01, Ptr<const half> b10, Ptr<const half> b11, Ptr<half> c00,
              Ptr<half> c01, Ptr<half> c10, Ptr<half> c11, I32 M0, I32 M1, I32 N0, I32 N1, I32 K0, I32 K1) {
             num_warps(c.warps);
             Tile pm = program_id(0), pn = program_id(1), M = M0, N = N0;
             auto low = pm >= cdiv(M0, c.BM), right = pn >= cdiv(N0, c.BN);
             auto a0 = a00, a1 = a01, b0 = b00, b1 = b10;
             auto out = c00;
             if_(low, [&] { pm -= cdiv(M0, c.BM), a0 = a10, a1 = a11, out = c10, M = M1; });
             if_(right, [&] { pn -= cdiv(N0, c.BN), b0 = b01, b1 = b11, out = c01, N = N1; });
             if_(low & right, [&] { out = c11; });
             Tile m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN), k = arange(0, c.BK);
             Tile acc = zeros({c.BM, c.BN}, f32);
             auto part = [&](const auto& a, const auto& b, const Tile& K) {
               auto x = a + (m.col() * K + k.row());
               auto y = b + (k.col() * N + n.row());
               for (auto left : range(K, 0, -c.BK)) {
                 acc = dot(load(x, {.mask = (m < M).col() & (k < left).row()}),
                           load(y, {.mask = (k < left).col() & (n < N).row()}), acc);
                 x += c.BK, y += c.BK * N;
               }
             };
             part(a0, b0, K0), part(a1, b1, K1);
             store(out + (m.col() * N + n.row()), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
           });
Register p1("tiled_matmul", [](Env& e) {
  Blocks c;
  if (!e.big) c = {32, 32, 16, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const std::array M = e.big ? std::array{2048, 2048} : std::array{37, 40},
                   N = e.big ? std::array{3072, 1024} : std::array{33, 70},
                   K = e.big ? std::array{1024, 3072} : std::array{19, 0};  // no columns, but an address
  std::vector<Array<half>> a, b, out;
  for (int i = 0; i < 4; ++i) a.push_back(random<half>(e, std::max<size_t>(1, size_t(M[i / 2]) * K[i % 2])));
  for (int i = 0; i < 4; ++i) b.push_back(random<half>(e, std::max<size_t>(1, size_t(K[i / 2]) * N[i % 2])));
  for (int i = 0; i < 4; ++i) out.push_back(constant<half>(e, size_t(M[i / 2]) * N[i % 2], NAN));
  const Grid grid{cdiv(M[0], c.BM) + cdiv(M[1], c.BM), cdiv(N[0], c.BN) + cdiv(N[1], c.BN)};
  Job j;
  j.steps.push_back(
      {"user_tiled_matmul",
       [=](Stream& s) {
         return tiled_matmul.try_launch(s, c, grid, a[0].p, a[1].p, a[2].p, a[3].p, b[0].p, b[1].p, b[2].p, b[3].p,
                                        out[0].p, out[1].p, out[2].p, out[3].p, M[0], M[1], N[0], N[1], K[0], K[1]);
       },
       [=](const std::string& target) {
         return tiled_matmul.compile_for(target, c, a[0].p, a[1].p, a[2].p, a[3].p, b[0].p, b[1].p, b[2].p, b[3].p,
                                         out[0].p, out[1].p, out[2].p, out[3].p, M[0], M[1], N[0], N[1], K[0], K[1]);
       }});
  j.gflop = 2e-9 * (M[0] + M[1]) * double(N[0] + N[1]) * (K[0] + K[1]);
  j.check = [=]() -> std::string {
    for (int i = 0; i < 4; ++i) {
      const int m = M[i / 2], n = N[i % 2];
      auto want = product(m, n, K[0], matrix(a[i / 2 * 2], K[0]), matrix(b[i % 2], n));
      auto more = product(m, n, K[1], matrix(a[i / 2 * 2 + 1], K[1]), matrix(b[2 + i % 2], n));
      for (size_t x = 0; x < want.size(); ++x) want[x] += more[x];
      if (auto bad = agree(out[i].now(), want, 5e-3, 5e-3); !bad.empty())
        return "block " + std::to_string(i) + ": " + bad;
    }
    return "";
  };
  return j;
});

// --- scatter that multiplies (FlagGems): no machine multiplies atomically, so every element compares bits and swaps
// them until nobody came between; places repeat, others are out of range
struct Multiply {
  int B = 128;
};
auto scatter_mul = kernel("user_scatter_mul", [](const Multiply& c, Ptr<const float> src, Ptr<const int64_t> index,
                                                 Ptr<int32_t> out, I32 n, I32 columns, I32 rows) {
                     Tile i = program_id(0) * c.B + arange(0, c.B);
                     Tile mask = i < n;
                     Tile x = load(src + i, {.mask = mask}), row = load(index + i, {.mask = mask});
                     mask &= (row >= 0) & (row < cast(rows, i64));
                     Tile at = row * columns + i % columns;
                     Tile stop = ~mask;
                     Tile all = full({}, 0, i32);
                     while_([&] { return all == 0; },
                            [&] {
                              Tile now = load(out + at, {.mask = mask, .cache = Cache::volatile_});
                              Tile next = bitcast(bitcast(now, f32) * x, i32);
                              stop |= atomic_cas(out + at, now, next, {.mask = mask & ~stop}) == now;
                              all = cast(sum(cast(stop, i32)) == c.B, i32);
                            });
                   }).grid([](const Multiply& c, const float*, const int64_t*, int32_t*, int n, int, int) {
  return Grid{cdiv(n, c.B)};
});
Register p2("scatter_mul", [](Env& e) {
  Multiply c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int rows = e.big ? 4096 : 3, W = e.big ? 1024 : 7, n = e.big ? 16384 * 1024 : 23 * 7;
  auto src = random<float>(e, n, .8, 1.25);
  auto index = integers<int64_t>(e, n, -1, rows + 1);
  auto out = random<float>(e, size_t(rows) * W, 1, 2);
  Job j;
  restore(e, j, out);
  j.add(scatter_mul, c, src.p, index.p, reinterpret_cast<int32_t*>(out.p), n, W, rows);
  j.mbytes = 12e-6 * n;
  j.check = [=] {
    std::vector<double> want(out.n);
    for (size_t i = 0; i < out.n; ++i) want[i] = out[i];
    for (int i = 0; i < n; ++i)
      if (index.h[i] >= 0 && index.h[i] < rows) want[index.h[i] * W + i % W] *= src[i];
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- scales per column of every group of rows (gradients of experts in fp8, torchao): the largest of a group's column,
// a power of two, then the group once more, stored by columns; groups may be empty
struct Columns {
  int BR = 32, BC = 128;
};
auto column_scales =
    kernel("user_column_scales", [](const Columns& c, Ptr<const bfloat16> x, Ptr<const int32_t> ends, Ptr<fp8_e4m3> y,
                                    Ptr<float> scales, I32 N, I64 row_stride, I64 column_stride) {
      auto block = program_id(0), group = program_id(1);
      Tile begin = load(ends + (group - 1), {.mask = group > 0, .other = 0}), end = load(ends + group);
      Tile column = block * c.BC + arange(0, c.BC);
      Tile most = zeros({1, c.BC}, f32);
      for (auto first : range(begin, end, c.BR)) {
        Tile row = first + arange(0, c.BR);
        Tile v = load(x + (cast(row, i64).col() * row_stride + column.row()),
                      {.mask = (row < end).col() & (column < N).row()});
        most = max(most, cast(max(abs(v), axis(0)), f32));
      }
      Tile scale = exp2(floor(log2(448.f / max(most, 1e-12f))));
      store(scales + (group * N + column).row(), scale, {.mask = (column < N).row()});
      for (auto first : range(begin, end, c.BR)) {
        Tile row = first + arange(0, c.BR);
        Tile mask = (row < end).col() & (column < N).row();
        Tile v = cast(load(x + (cast(row, i64).col() * row_stride + column.row()), {.mask = mask}), f32) * scale;
        v = clamp(v, -448.f, 448.f);
        store(y + (row.col() + cast(column, i64).row() * column_stride), cast(v, f8e4m3), {.mask = mask});
      }
    });
Register p3("column_scales", [](Env& e) {
  Columns c;
  if (!e.big) c = {16, 32};
  c.BR = e.field("BR", c.BR), c.BC = e.field("BC", c.BC);
  const std::vector<int32_t> ends = e.big ? std::vector<int32_t>{2048, 4096, 7168, 8192, 8192, 12288, 14336, 16384}
                                          : std::vector<int32_t>{5, 5, 40, 41, 77};
  const int M = ends.back(), N = e.big ? 5120 : 53, G = int(ends.size());
  auto x = random<bfloat16>(e, size_t(M) * N, -7, 7);
  auto offs = repeated<int32_t>(e, G, ends);
  auto y = constant<fp8_e4m3>(e, x.n, 0);
  auto s = constant<float>(e, G * N, NAN);
  const Grid grid{cdiv(N, c.BC), G};
  Job j;
  j.steps.push_back({"user_column_scales",
                     [=](Stream& st) {
                       return column_scales.try_launch(st, c, grid, x.p, offs.p, y.p, s.p, N, int64_t(N), int64_t(M));
                     },
                     [=](const std::string& target) {
                       return column_scales.compile_for(target, c, x.p, offs.p, y.p, s.p, N, int64_t(N), int64_t(M));
                     }});
  j.mbytes = 5e-6 * x.n;
  j.check = [=]() -> std::string {
    std::vector<double> ws(s.n), wy(y.n);
    for (int g = 0; g < G; ++g)
      for (int n = 0; n < N; ++n) {
        double most = 1e-12;
        const int begin = g ? ends[g - 1] : 0;
        for (int m = begin; m < ends[g]; ++m) most = std::max(most, std::abs(x[size_t(m) * N + n]));
        ws[g * N + n] = std::exp2(std::floor(std::log2(448 / most)));
        for (int m = begin; m < ends[g]; ++m) wy[size_t(n) * M + m] = x[size_t(m) * N + n] * ws[g * N + n];
      }
    if (auto bad = agree(s.now(), ws, 0, 1e-5); !bad.empty()) return "scale: " + bad;
    return agree(y.now(), wy, 2e-3, .0626);
  };
  return j;
});
}  // namespace pointer_choices
}  // namespace users
