// put_test.cpp - put: elements to computed places of a tile, in every type, along every axis.
#include "tests/ops/ops.h"

namespace tile::ops {
namespace {

template <class T>
class Put : public ::testing::Test {};
using Kinds = ::testing::Types<double, float, half, bfloat16, uint8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(Put, Kinds);

constexpr int H = 6, W = 20, N = 9, LINE = 31;

/// Places inside and outside of the tile, on both sides; masks; tiles with fewer places than elements, and with more.
TYPED_TEST(Put, ElementsGoWhereTheirIndicesSay) {
  using T = TypeParam;
  for (auto& device : devices()) {
    std::vector<T> x(H * W), out(N * W + H * N + LINE + H * 2 * W);
    for (int i = 0; i < H * W; ++i) x[i] = narrow<T>(static_cast<Wide<T>>(i % 97 + 1));
    auto k = kernel("put", [](Ptr<const T> p, Ptr<T> out) {
      const DType d = dtype_of<T>();
      auto i = arange(0, H).col(), j = arange(0, W).row();
      auto v = load(p + i * W + j);
      auto rows = put(full({N, W}, 3, d), 7 - 3 * broadcast_to(i, {H, W}), v, 0);  // to 7, 4, 1, -2 ..
      auto columns = put(full({H, N}, 5, d), j * 7 % W + i * 0, v, 1, {.mask = (i + j) % 3 != 0});
      auto line = put(zeros({LINE}, d), reshape(i * W + j, {H * W}) * 5 - 50, reshape(v, {H * W}), 0);
      auto middle = put(zeros({H, 2, W}, d), zeros({H, 1, W}, i32) + 1, reshape(v, {H, 1, W}), 1);
      auto store_all = [&](int at, const Tile& t) {
        store(out + at + arange(0, t.shape().elements()), reshape(t, {t.shape().elements()}));
      };
      store_all(0, rows);
      store_all(N * W, columns);
      store_all(N * W + H * N, line);
      store_all(N * W + H * N + LINE, middle);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));

    std::vector<Wide<T>> want(N * W, 3);
    want.resize(N * W + H * N, 5);
    want.resize(out.size(), 0);
    for (int i = 0; i < H; ++i)
      for (int j = 0; j < W; ++j) {
        const auto v = widen(x[i * W + j]);
        if (7 - 3 * i >= 0) want[(7 - 3 * i) * W + j] = v;
        if (j * 7 % W < N && (i + j) % 3 != 0) want[N * W + i * N + j * 7 % W] = v;
        const int at = (i * W + j) * 5 - 50;
        if (at >= 0 && at < LINE) want[N * W + H * N + at] = v;
        want[N * W + H * N + LINE + (i * 2 + 1) * W + j] = v;
      }
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(widen(out[i]), want[i]) << device->name() << " at " << i;
  }
}

/// A table that a loop goes on writing to; one value for all; flags.
TEST(Put, TablesOfLoops) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(96), out(64 + 16);
    for (int i = 0; i < 96; ++i) x[i] = i * 37 % 64;
    auto k = kernel("put_in_loop", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      Tile last = full({64}, -1, i32), seen = zeros({16}, i1);
      for (auto r : range(0, 6)) {
        auto at = load(p + r * 16 + arange(0, 16));
        last = put(last, at, r * 16 + arange(0, 16), 0);  // places of one round differ
        seen = put(seen, at / 4, true, 0, {.mask = at % 2 == 1});
      }
      store(out + arange(0, 64), last);
      store(out + 64 + arange(0, 16), cast(seen, i32));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    std::vector<int32_t> want(64, -1);
    want.resize(80, 0);
    for (int i = 0; i < 96; ++i) {
      want[x[i]] = i;
      if (x[i] % 2 == 1) want[64 + x[i] / 4] = 1;
    }
    EXPECT_EQ(out, want) << device->name();
  }
}

/// Elements of one value sorted by a key of few bits: each to its place among those of its key.
TEST(Put, CountingSort) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(512), out(1024);
    for (int i = 0; i < 512; ++i) x[i] = (i * i % 509) * 4 + i % 4;
    auto k = kernel("counting_sort", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      auto v = load(p + arange(0, 512));
      auto is = cast(v.col() % 4 == arange(0, 4).row(), i32);
      auto rank = cumsum(is, axis(0)) - is;
      auto count = sum(is, axis(0));
      auto start = cumsum(count, axis(1)) - count;
      auto place = sum(where(is != 0, rank + start, 0), axis(1));
      auto whole = put(v, squeeze(place, 1), v, 0, {.whole = true});
      store(out + arange(0, 512), put(zeros({512}, i32), squeeze(place, 1), v, 0));
      // One more over all of it.
      store(out + 512 + arange(0, 512), put(whole, arange(0, 2) * 511, -1, 0));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    auto want = x;
    std::stable_sort(want.begin(), want.end(), [](int a, int b) { return a % 4 < b % 4; });
    want.insert(want.end(), want.begin(), want.end());
    want[512] = want[1023] = -1;
    EXPECT_EQ(out, want) << device->name();
  }
}

}  // namespace
}  // namespace tile::ops
