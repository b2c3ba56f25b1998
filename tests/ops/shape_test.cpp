// shape_test.cpp - verbs that put tiles together, move their elements along an axis, and boxes without some dims.
#include "tests/ops/ops.h"

namespace tile::ops {
namespace {

/// One after the other from `at` on, whatever the shape.
template <class T>
void store_all(const Ptr<T>& out, int64_t at, const Tile& t) {
  const int64_t n = t.shape().elements();
  store(out + (arange(0, n) + at), reshape(t, {n}));
}

TEST(Shapes, CatAndStackTakeAnyNumber) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(12), out(3 * 12 + 24 + 36, -1);
    std::iota(x.begin(), x.end(), 0);
    auto k = kernel("cat_stack", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      auto t = reshape(load(p + arange(0, 12)), {3, 4});
      store_all(out, 0, cat({t, t + 100, t + 200}, 1));
      store_all(out, 36, stack({t, t + 100}));
      store_all(out, 60, stack({t, t + 100, t + 200}, -1));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        for (int part = 0; part < 3; ++part) {
          const int v = i * 4 + j + 100 * part;
          EXPECT_EQ(out[i * 12 + part * 4 + j], v) << device->name() << " cat";
          if (part < 2) {
            EXPECT_EQ(out[36 + part * 12 + i * 4 + j], v) << device->name() << " stack";
          }
          EXPECT_EQ(out[60 + (i * 4 + j) * 3 + part], v) << device->name() << " stack behind";
        }
  }
}

/// In the middle, at each edge, over whole dims, over everything; numbers and flags.
TEST(Shapes, InsertReplacesABox) {
  constexpr int H = 6, W = 8;
  struct Box {
    int row, column, rows, columns;
  };
  for (auto& device : devices())
    for (const Box& box : {Box{1, 2, 3, 4}, {0, 0, 2, 2}, {3, 5, 3, 3}, {2, 0, 1, W}, {0, 7, H, 1}, {0, 0, H, W}}) {
      std::vector<float> x(H * W), out(3 * H * W, -1);
      std::iota(x.begin(), x.end(), 1.f);
      auto k = kernel("insert", [box](Ptr<const float> p, Ptr<float> out) {
        auto t = reshape(load(p + arange(0, H * W)), {H, W});
        auto part = extract(-t, {0, 0}, {box.rows, box.columns});
        store_all(out, 0, insert(t, part, {box.row, box.column}));
        store_all(out, H * W, cast(insert(t > 20.f, part < -3.f, {box.row, box.column}), f32));
        auto cube = insert(reshape(t, {2, 3, W}), full({1, 2, W}, -7, f32), {1, 1, 0});
        store_all(out, 2 * H * W, cube);
      });
      ASSERT_TRUE(run_on(device, k, {}, x, out));
      for (int i = 0; i < H; ++i)
        for (int j = 0; j < W; ++j) {
          const int r = i - box.row, c = j - box.column;
          const bool in = r >= 0 && r < box.rows && c >= 0 && c < box.columns;
          const float v = x[i * W + j], part = in ? x[r * W + c] : 0;
          EXPECT_EQ(out[i * W + j], in ? -part : v) << device->name();
          EXPECT_EQ(out[(H + i) * W + j], float(in ? part > 3 : v > 20)) << device->name();
          EXPECT_EQ(out[(2 * H + i) * W + j], i >= 4 ? -7 : v) << device->name();
        }
    }
}

TEST(Shapes, ShiftFillsTheEnd) {
  for (auto& device : devices())
    for (int by : {0, 1, -1, 3, -5, 6, 7, -9}) {
      constexpr int H = 6, W = 7;
      std::vector<float> x(H * W), out(3 * H * W, -1);
      for (int i = 0; i < H * W; ++i) x[i] = static_cast<float>(i + 1);
      auto k = kernel("shift", [by](Ptr<const float> p, Ptr<float> out) {
        auto t = reshape(load(p + arange(0, H * W)), {H, W});
        store_all(out, 0, shift(t, by, axis(0)));
        store_all(out, H * W, shift(t, by, axis(-1), {.fill = -2.5f}));
        store_all(out, 2 * H * W, cast(shift(t > 20.f, by, axis(0), {.fill = true}), f32));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, out));
      for (int i = 0; i < H; ++i)
        for (int j = 0; j < W; ++j) {
          const bool row = i - by >= 0 && i - by < H, column = j - by >= 0 && j - by < W;
          const float above = row ? x[(i - by) * W + j] : 0;
          EXPECT_EQ(out[i * W + j], above) << device->name() << " " << by;
          EXPECT_EQ(out[H * W + i * W + j], column ? x[i * W + j - by] : -2.5f) << device->name() << " " << by;
          EXPECT_EQ(out[2 * H * W + i * W + j], row ? float(above > 20) : 1) << device->name() << " " << by;
        }
    }
}

TEST(Shapes, RepeatIsForMembersOfGroups) {
  for (auto& device : devices()) {
    std::vector<int16_t> x(15), out(45 + 60, -1);
    std::iota(x.begin(), x.end(), int16_t{0});
    auto k = kernel("repeat", [](Ptr<const int16_t> p, Ptr<int16_t> out) {
      auto t = reshape(load(p + arange(0, 15)), {3, 5});
      store_all(out, 0, repeat(t, 3, axis(0)));
      store_all(out, 45, repeat(t, 4, axis(1)));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < 45; ++i) EXPECT_EQ(out[i], i / 5 / 3 * 5 + i % 5) << device->name();
    for (int i = 0; i < 60; ++i) EXPECT_EQ(out[45 + i], i / 4) << device->name();
  }
}

/// Fields of every width of words of every width, along either axis, as integers and floats.
template <class T>
void expect_unpacked(const std::shared_ptr<Device>& device, int bits) {
  constexpr int H = 3, W = 8;
  const int per = 8 * int(sizeof(T)) / bits;
  std::vector<T> x(H * W);
  for (int i = 0; i < H * W; ++i) x[i] = static_cast<T>(0x9E3779B97F4A7C15ull * uint64_t(i + 1) >> 3);
  std::vector<int64_t> rows(H * W * per), columns(H * W * per);
  std::vector<float> floats(H * W * per);
  auto k = kernel("unpack", [=](Ptr<const T> p, Ptr<int64_t> r, Ptr<int64_t> c, Ptr<float> f) {
    auto t = reshape(load(p + arange(0, H * W)), {H, W});
    store_all(r, 0, unpack(t, bits, axis(0), i64));
    store_all(c, 0, unpack(t, bits, axis(1), i64, {.is_signed = true}));
    store_all(f, 0, unpack(t, bits, axis(-1), f32));
  });
  ASSERT_TRUE(run_on(device, k, {}, x, rows, columns, floats));
  for (int i = 0; i < H; ++i)
    for (int j = 0; j < W; ++j)
      for (int q = 0; q < per; ++q) {
        const uint64_t word = static_cast<std::make_unsigned_t<T>>(x[i * W + j]);
        const auto field = static_cast<int64_t>(word >> (q * bits) & ((uint64_t{1} << bits) - 1));
        const int64_t negative = field >> (bits - 1) ? field - (int64_t{1} << bits) : field;
        ASSERT_EQ(rows[(i * per + q) * W + j], field) << device->name() << " " << bits << " of " << 8 * sizeof(T);
        ASSERT_EQ(columns[(i * W + j) * per + q], negative) << device->name() << " " << bits << " of " << 8 * sizeof(T);
        ASSERT_EQ(floats[(i * W + j) * per + q], static_cast<float>(field)) << device->name() << " " << bits;
      }
}
TEST(Shapes, UnpackTakesWordsApart) {
  for (auto& device : devices()) {
    for (int bits : {1, 2, 4}) expect_unpacked<uint8_t>(device, bits);
    for (int bits : {1, 4, 16}) expect_unpacked<int32_t>(device, bits);
    for (int bits : {2, 8}) expect_unpacked<uint32_t>(device, bits);
    for (int bits : {4, 32}) expect_unpacked<uint64_t>(device, bits);
  }
}

TEST(Shapes, TriangleWalksRowByRow) {
  for (auto& device : devices()) {
    constexpr int n = 256;
    for (int from : {0, 1073720970 - n / 2}) {  // where row 46340 begins
      std::vector<int32_t> row(n, -1), column(n, -1);
      auto k = kernel("triangle", [from](Ptr<int32_t> r, Ptr<int32_t> c) {
        auto [i, j] = triangle(arange(0, n) + from);
        store_all(r, 0, i);
        store_all(c, 0, j);
      });
      ASSERT_TRUE(run_on(device, k, {}, row, column));
      for (int e = 0; e < n; ++e) {
        const int64_t r = row[e], c = column[e];
        ASSERT_TRUE(c >= 0 && c <= r && r * (r + 1) / 2 + c == int64_t{from} + e) << device->name() << " " << from + e;
      }
    }
  }
}

TEST(Shapes, RunningSumsWithoutTheElementItself) {
  for (auto& device : devices()) {
    constexpr int H = 4, W = 33;
    std::vector<float> x(H * W), out(4 * H * W, -1);
    for (int i = 0; i < H * W; ++i) x[i] = static_cast<float>(i % 3) + 0.5f;
    auto k = kernel("exclusive", [](Ptr<const float> p, Ptr<float> out) {
      auto t = reshape(load(p + arange(0, H * W)), {H, W});
      store_all(out, 0, cumsum(t, axis(1), {.exclusive = true}));
      store_all(out, H * W, cumsum(t, axis(1), {.reverse = true, .exclusive = true}));
      store_all(out, 2 * H * W, cumprod(t, axis(0), {.exclusive = true}));
      store_all(out, 3 * H * W, cumsum(t, axis(0), {.reverse = true}));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < H; ++i)
      for (int j = 0; j < W; ++j) {
        float before = 0, behind = 0, product = 1, below = 0;
        for (int q = 0; q < j; ++q) before += x[i * W + q];
        for (int q = j + 1; q < W; ++q) behind += x[i * W + q];
        for (int q = 0; q < i; ++q) product *= x[q * W + j];
        for (int q = i; q < H; ++q) below += x[q * W + j];
        const int at = i * W + j;
        EXPECT_EQ(out[at], before) << device->name();
        EXPECT_EQ(out[H * W + at], behind) << device->name();
        EXPECT_EQ(out[2 * H * W + at], product) << device->name();
        EXPECT_EQ(out[3 * H * W + at], below) << device->name();
      }
  }
}

/// Tokens x heads x channels, one head at a time: partly outside, a vector, a scalar; read, written and added to.
TEST(Memory, BoxesWithOnlyOneIndexOfADim) {
  constexpr int T = 10, H = 3, D = 8;
  for (auto& device : devices()) {
    std::vector<float> x(T * H * D), y(T * H * D, -1), sums(T * H * D, 0), one(H * T, -1);
    std::iota(x.begin(), x.end(), 0.f);
    auto k = kernel("heads", [](Ptr<const float> p, Ptr<float> q, Ptr<float> s, Ptr<float> o) {
      auto X = make_view<const float>(p, {T, H, D}, {H * D, D, 1});
      auto Y = make_view<float>(q, {T, H, D}, {H * D, D, 1}), S = make_view<float>(s, {T, H, D}, {H * D, D, 1});
      auto h = program_id(0);
      for (auto t : range(0, T, 4)) {
        auto box = X.load({t, only(h), 0}, {4, D}, {.pad = 7});
        Y.store({t, only(H - 1 - h), 0}, box * 2.f);
        S.atomic_add({t, only(h), 0}, box);
        store(o + h * T + t + arange(0, 4), X.load({t, only(h), only(5)}, {4}), {.mask = t + arange(0, 4) < T});
      }
      S.store({only(0), h, only(3)}, X.load({only(1), h, only(2)}));
    });
    ASSERT_TRUE(run_on(device, k, Grid{H}, x, y, sums, one));
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h)
        for (int d = 0; d < D; ++d) {
          const int at = (t * H + h) * D + d;
          EXPECT_EQ(y[(t * H + H - 1 - h) * D + d], 2 * x[at]) << device->name();
          EXPECT_EQ(sums[at], t == 0 && d == 3 ? x[(1 * H + h) * D + 2] : x[at]) << device->name();
          if (d == 5) {
            EXPECT_EQ(one[h * T + t], x[at]) << device->name();
          }
        }
  }
}

/// One row or column, several of them, a table at places of another shape: numbers known when the kernel runs.
TEST(Shapes, SlicesAndTables) {
  for (auto& device : devices()) {
    std::vector<float> x(6 * 10), row(10, -1), column(6, -1), rows(3 * 10, -1), part(6 * 4, -1), looked(4 * 8, -1), one(1, -1);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 91);
    std::vector<int32_t> at{4, 7, 5};
    auto k = kernel("slices", [](Ptr<const float> p, Ptr<const int32_t> at, Ptr<float> row, Ptr<float> column, Ptr<float> rows,
                                 Ptr<float> part, Ptr<float> looked, Ptr<float> one) {
      auto x = load(p + arange(0, 6).col() * 10 + arange(0, 10).row());
      auto r = load(at), c = load(at + 1), b = load(at + 2);
      store(row + arange(0, 10), take(x, r, 0));
      store(column + arange(0, 6), take(x, c, -1));
      store(rows + arange(0, 3).col() * 10 + arange(0, 10).row(), take(x, r - arange(0, 3) * 2, 0));
      store(part + arange(0, 6).col() * 4 + arange(0, 4).row(), take(x, b + arange(0, 4), 1));
      auto i = arange(0, 4).col() * 8 + arange(0, 8).row();
      auto table = load(p + arange(0, 20));
      store(looked + i, take(table, i * 7 % 20, 0));
      store(one, take(table, b, 0));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, at, row, column, rows, part, looked, one));
    for (int j = 0; j < 10; ++j) ASSERT_EQ(row[j], x[4 * 10 + j]) << device->name();
    for (int i = 0; i < 6; ++i) ASSERT_EQ(column[i], x[i * 10 + 7]) << device->name();
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 10; ++j) ASSERT_EQ(rows[i * 10 + j], x[(4 - 2 * i) * 10 + j]) << device->name();
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 4; ++j) ASSERT_EQ(part[i * 4 + j], x[i * 10 + 5 + j]) << device->name();
    for (int i = 0; i < 32; ++i) ASSERT_EQ(looked[i], x[i * 7 % 20]) << device->name();
    EXPECT_EQ(one[0], x[5]) << device->name();
  }
}

}  // namespace
}  // namespace tile::ops
