// memory_test.cpp - loads, stores, atomics and shapes of the language on every device.
#include <algorithm>
#include <numeric>

#include "ops.h"

namespace tile::ops {
namespace {

TEST(Memory, MaskedLanesAreDefinedAndTouchNothing) {
  for (auto& device : devices()) {
    std::vector<float> x(100), out(128, -9);
    std::iota(x.begin(), x.end(), 1.f);
    auto k = kernel("masked", [](Ptr<const float> p, Ptr<float> out) {
      auto i = arange(0, 64);
      auto m = (i % 3 == 0) & (i < 50);
      store(out + i, load(p + i * 2 + 1, {.mask = m}));
      store(out + 64 + i, load(p + i * 2 + 1, {.mask = m, .other = 5}), {.mask = i != 7});
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < 64; ++i) {
      const bool in = i % 3 == 0 && i < 50;
      ASSERT_EQ(out[i], in ? x[2 * i + 1] : 0) << device->name() << " " << i;
      ASSERT_EQ(out[64 + i], i == 7 ? -9 : in ? x[2 * i + 1] : 5) << device->name() << " " << i;
    }
  }
}

// Places that grow in steps of two but for edges, in rows that leave a single element behind whole vectors.
TEST(Memory, ClampedPlacesOfRowsOfAnyLength) {
  for (auto& device : devices())
    for (int n : {1, 3, 9, 17, 33, 100}) {
      std::vector<float> x(150), out(n, -9);
      std::iota(x.begin(), x.end(), 1.f);
      std::vector<int32_t> skipped{5};
      auto k = kernel("clamped", [n](Ptr<const float> p, Ptr<const int32_t> skipped, Ptr<float> out) {
        auto i = arange(0, n);
        auto at = min(max(i * 2 - 4, 0), 140);
        store(out + i, load(p + at, {.mask = i % 7 != load(skipped), .other = -1}));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, skipped, out));
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(out[i], i % 7 == 5 ? -1 : x[std::clamp(i * 2 - 4, 0, 140)]) << device->name() << " " << n << ", " << i;
    }
}

TEST(Memory, OffsetsBeyond32Bits) {
  // The address arithmetic is 64-bit although every factor fits in 32: (2^20 * 2^13 - 2^33 + i) must be i.
  for (auto& device : devices()) {
    std::vector<int32_t> out(16, -1), factor{1 << 20};
    auto k = kernel("wide", [](Ptr<const int32_t> f, Ptr<int32_t> out) {
      auto big = cast(load(f), i64) * (1 << 13);
      store(out + big - (int64_t{1} << 33) + arange(0, 16), arange(0, 16));
    });
    ASSERT_TRUE(run_on(device, k, {}, factor, out));
    for (int i = 0; i < 16; ++i) ASSERT_EQ(out[i], i) << device->name();
  }
}

/// A box of a strided view at coordinates in and out of bounds, for reading and writing.
TEST(Memory, BoxesAreBoundsChecked) {
  const int H = 19, W = 23, ld = 27;
  std::vector<float> data(H * ld);
  std::iota(data.begin(), data.end(), 1.f);
  for (auto& device : devices()) {
    for (auto [r0, c0] : {std::pair{0, 0}, {4, 8}, {-3, -5}, {12, 16}, {30, 2}, {0, 100}}) {
      std::vector<float> in = data, out(16 * 8), target(H * ld, -1.f);
      auto k = kernel("boxes", [=](Ptr<const float> p, Ptr<float> out, Ptr<float> target) {
        auto view = make_view(p, {H, W}, {ld, 1});
        auto box = view.load({r0, c0}, {16, 8}, {.pad = -2});
        store(out + arange(0, 16).col() * 8 + arange(0, 8).row(), box);
        make_view(target, {H, W}, {ld, 1}).store({r0, c0}, view.load({r0, c0}, {16, 8}));
      });
      ASSERT_TRUE(run_on(device, k, {}, in, out, target));
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 8; ++c) {
          const int y = r0 + r, x = c0 + c;
          const bool inside = y >= 0 && y < H && x >= 0 && x < W;
          ASSERT_EQ(out[r * 8 + c], inside ? data[y * ld + x] : -2) << device->name() << " box at " << r0 << ", " << c0;
        }
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < ld; ++x) {
          const bool written = x < W && y >= r0 && y < r0 + 16 && x >= c0 && x < c0 + 8;
          ASSERT_EQ(target[y * ld + x], written ? data[y * ld + x] : -1)
              << device->name() << " box at " << r0 << ", " << c0;
        }
    }
  }
}

/// Parts of a tensor: one of the middle dim, a stretch of the first; what is behind the stretch is outside.
TEST(Memory, PartsOfTensors) {
  constexpr int kTokens = 21, kHeads = 3, kWidth = 20;
  std::vector<int32_t> in(kTokens * kHeads * kWidth), ends{4, 4, 15, 21};
  std::iota(in.begin(), in.end(), 1);
  for (auto& device : devices()) {
    std::vector<int32_t> out(in.size(), -1), last(kHeads, -1);
    auto k = kernel("parts", [](Ptr<const int32_t> x, Ptr<const int32_t> ends, Ptr<int32_t> y, Ptr<int32_t> last) {
      auto s = program_id(0), h = program_id(1);
      Tile begin = load(ends + (s - 1), {.mask = s > 0}), length = load(ends + s) - begin;
      auto all = make_view(x, {kTokens, kHeads, kWidth}, {kHeads * kWidth, kWidth, 1});
      auto own = all.select(1, h).narrow(0, begin, length);
      auto to = make_view(y, {kTokens, kHeads, kWidth}, {kHeads * kWidth, kWidth, 1}).narrow(0, begin, length).select(1, h);
      for (auto t : range(0, own.dim(0), 8)) to.store({t, 16}, own.load({t, 16}, {8, 16}, {.pad = -5}) * 2);
      store(last + h, all.select(0, 20).select(0, h).load({kWidth - 1}));
    });
    ASSERT_TRUE(run_on(device, k, Grid{4, kHeads}, in, ends, out, last));
    for (size_t i = 0; i < in.size(); ++i) {
      const bool isWritten = i % kWidth >= 16;
      ASSERT_EQ(out[i], isWritten ? 2 * in[i] : -1) << device->name() << " " << i;
    }
    for (int h = 0; h < kHeads; ++h) EXPECT_EQ(last[h], in[((20 * kHeads) + h) * kWidth + kWidth - 1]);
  }
}

/// Boxes under masks that broadcast to them: elements for which the mask is false are neither read nor written.
TEST(Memory, BoxesUnderMasks) {
  const int kH = 3, kM = 9, kN = 21;
  std::vector<int16_t> in(kH * kM * kN);
  std::iota(in.begin(), in.end(), int16_t(1));
  for (auto& device : devices())
    for (int first : {0, -3, 5}) {
      auto k = kernel("masked", [=](Ptr<const int16_t> x, Ptr<int16_t> read, Ptr<int16_t> written, Ptr<int16_t> rows) {
        auto from = make_view<const int16_t>(x, {kH, kM, kN}, {kM * kN, kN, 1});
        auto to = make_view<int16_t>(written, {kH, kM, kN}, {kM * kN, kN, 1});
        auto row = (first + arange(0, 8)).col(), column = arange(0, 16).row();
        auto picked = (row + column) % 3 == 0;
        auto box = from.load({only(1), first, 8}, {8, 16}, {.pad = -7, .mask = picked});
        store(read + arange(0, 8).col() * 16 + column, box);
        to.store({2, first, 8}, box, {.mask = row % 2 == 0});  // a column of the mask for all of a row
        to.store({0, 0, 0}, from.load({1, 4, 0}, {kN}, {.mask = program_id(0) > 0}), {.mask = true});
        auto y = make_view<int16_t>(rows, {kM, kN}, {kN, 1});
        y.scatter(arange(0, 8) + 1, 0, y.gather(arange(0, 8), 0, 16, {.pad = 3, .mask = column < 2}) + box,
                  {.mask = column % 2 == 1});
      });
      std::vector<int16_t> read(8 * 16), written(in.size(), -1), rows(kM * kN, 5);
      ASSERT_TRUE(run_on(device, k, Grid{1}, in, read, written, rows));
      std::vector<int16_t> want(in.size(), -1), wantRows(kM * kN, 5);
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 16; ++j) {
          const int m = first + i, n = 8 + j;
          const bool inside = m >= 0 && m < kM && n < kN;
          const int16_t value = inside && (m + j) % 3 == 0 ? in[(kM + m) * kN + n] : -7;
          ASSERT_EQ(read[i * 16 + j], value) << device->name() << " " << i << " " << j << " from " << first;
          if (inside && m % 2 == 0) want[(2 * kM + m) * kN + n] = value;
          if (j % 2 == 1) wantRows[(i + 1) * kN + j] = int16_t(value + (j < 2 ? 5 : 3));
        }
      for (int n = 0; n < kN; ++n) want[n] = 0;  // of a mask that is false everywhere
      EXPECT_EQ(written, want) << device->name() << " from " << first;
      EXPECT_EQ(rows, wantRows) << device->name() << " from " << first;
    }
}

/// Rows by number, of any strides: what is outside reads `pad` and is not written.
TEST(Memory, RowsByNumber) {
  struct Cfg {
    int row_step = 24, column_step = 1;
  };
  const int H = 9, W = 20;
  for (auto& device : devices())
    for (const Cfg& c : {Cfg{24, 1}, Cfg{1, 9}, Cfg{48, 2}}) {
      std::vector<half> data(9 * 48), gathered(8 * 16), scattered(9 * 48, half(-1.f));
      for (size_t i = 0; i < data.size(); ++i) data[i] = half(float(i));
      std::vector<int32_t> rows{3, 0, -1, 8, 3, 9, 2147483647, 5};
      for (int first : {0, 8, -3, 100}) {
        auto k = kernel("rows", [=](Ptr<const half> p, Ptr<const int32_t> rows, Ptr<half> out, Ptr<half> target) {
          auto x = make_view<const half>(p, {H, W}, {c.row_step, c.column_step});
          auto y = make_view<half>(target, {H, W}, {c.row_step, c.column_step});
          auto picked = x.gather(load(rows + arange(0, 8)), first, 16, {.pad = -2});
          store(out + arange(0, 8).col() * 16 + arange(0, 16).row(), picked);
          y.scatter(load(rows + arange(0, 8)), Tile(first), picked);
        });
        std::fill(scattered.begin(), scattered.end(), half(-1.f));
        ASSERT_TRUE(run_on(device, k, Grid{1}, data, rows, gathered, scattered));
        std::vector<half> want(scattered.size(), half(-1.f));
        for (int r = 0; r < 8; ++r)
          for (int i = 0; i < 16; ++i) {
            const int row = rows[r], column = first + i;
            const bool inside = row >= 0 && row < H && column >= 0 && column < W;
            const size_t at = inside ? row * c.row_step + column * c.column_step : 0;
            if (inside) want[at] = data[at];
            ASSERT_EQ(widen(gathered[r * 16 + i]), inside ? widen(data[at]) : -2.0)
                << device->name() << " row " << row << " column " << column;
          }
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_EQ(widen(scattered[i]), widen(want[i])) << device->name() << " element " << i << " from " << first;
      }
    }
}

TEST(Memory, TensorParametersWithAnyStrides) {
  // A transposed, a broadcast (stride 0) and a reversed (negative stride) view through one kernel.
  auto k = kernel("strided", [](Tensor<const float, 2> a, Tensor<float, 2> o) {
    o.store({0, 0}, a.load({0, 0}, {16, 32}));
  });
  for (auto& device : devices()) {
    std::vector<float> host(32 * 32);
    std::iota(host.begin(), host.end(), 0.f);
    auto in = Buffer<float>::from(device, std::span<const float>(host)).value_or_throw();
    auto out = Buffer<float>::allocate(device, 16 * 32).value_or_throw();
    const TensorView<float, 2> dense(in.data(), {32, 16}, {16, 1});
    for (int form = 0; form < 3; ++form) {
      TensorView<float, 2> v = form == 0   ? dense.transposed()
                               : form == 1 ? TensorView<float, 2>(in.data() + 3, {16, 32}, {0, 1})
                                           : TensorView<float, 2>(in.data() + 15 * 32 + 31, {16, 32}, {-32, -1});
      Status s = k.try_launch(device->default_stream(), {}, {}, v, out.view(16, 32));
      ASSERT_TRUE(s.ok()) << s.error().to_string();
      ASSERT_TRUE(device->synchronize().ok());
      const std::vector<float> got = out.to_host().value_or_throw();
      for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 32; ++c) {
          const float want = form == 0 ? host[c * 16 + r] : form == 1 ? host[3 + c] : host[(15 - r) * 32 + 31 - c];
          ASSERT_EQ(got[r * 32 + c], want) << device->name() << " form " << form << " at " << r << ", " << c;
        }
    }
  }
}

TEST(Memory, AtomicsInALoopKeepWhatTheyReadFromOutsideIt) {
  // The offsets are computed before the loop and used by nothing but the atomic, whose result nobody reads.
  for (auto& device : devices()) {
    std::vector<float> x(64 * 32), out(64 * 32, 0);
    std::vector<int32_t> width{32};
    std::iota(x.begin(), x.end(), 1.f);
    auto k = kernel("atomic_loop", [](Ptr<const float> x, Ptr<const int32_t> width, Ptr<float> out) {
      auto stride = cast(load(width), i64);
      auto rows = make_view<const float>(x, {64, 32}, {stride, 1});
      auto at = cast(arange(0, 16), i64).col() * stride + cast(arange(0, 32), i64).row();
      for (auto i : range(0, 4))
        atomic_add(out + cast(i * 16, i64) * stride + at, rows.load({i * 16, 0}, {16, 32}), {.mask = at >= 0});
    });
    ASSERT_TRUE(run_on(device, k, {}, x, width, out));
    EXPECT_EQ(out, x) << device->name();
  }
}

TEST(Memory, AtomicsOfManyPrograms) {
  for (auto& device : devices()) {
    std::vector<int32_t> ints{0, INT32_MIN, INT32_MAX, -1, 0, 0, 0};
    std::vector<uint32_t> uints{0, UINT32_MAX};
    std::vector<float> floats{0, -1e30f, 1e30f};
    std::vector<int32_t> tickets(64 * 32, 0);
    auto k = kernel("atomics", [](Ptr<int32_t> a, Ptr<uint32_t> u, Ptr<float> f, Ptr<int32_t> tickets) {
      auto id = program_id(0);
      auto lane = arange(0, 32);
      auto unique = atomic_add(a + zeros({32}, i32), 1);  // 32 lanes of every program get numbers of their own
      atomic_add(tickets + unique, 1, {.order = Order::relaxed});
      atomic_max(a + 1, id - 7);
      atomic_min(a + 2, id - 7);
      atomic_and(a + 3, ~(1 << (id % 31)));
      atomic_or(a + 4, 1 << (id % 31));
      atomic_xor(a + 5, id);
      atomic_max(u, cast(id, u32) + 0x80000000u);
      atomic_min(u + 1, cast(id, u32) + 0x80000000u);
      atomic_add(f, 0.5f);
      atomic_max(f + 1, cast(id, f32) - 3);
      atomic_min(f + 2, cast(id, f32) - 3);
      atomic_add(a + 6 + lane * 0, lane, {.mask = lane < 4});
    });
    ASSERT_TRUE(run_on(device, k, Grid{64}, ints, uints, floats, tickets));
    int32_t all_xor = 0;
    for (int i = 0; i < 64; ++i) all_xor ^= i;
    EXPECT_EQ(ints,
              (std::vector<int32_t>{64 * 32, 56, -7, static_cast<int32_t>(0x80000000u), 0x7fffffff, all_xor, 64 * 6}))
        << device->name();
    EXPECT_EQ(uints, (std::vector<uint32_t>{0x80000000u + 63, 0x80000000u})) << device->name();
    EXPECT_EQ(floats, (std::vector<float>{32, 60, -3})) << device->name();
    EXPECT_TRUE(std::all_of(tickets.begin(), tickets.end(), [](int32_t t) { return t == 1; })) << device->name();
  }
}

template <class T>
class AddToTensor : public ::testing::Test {};
using Addable = ::testing::Types<double, float, half, bfloat16, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(AddToTensor, Addable);

/// 6 programs add boxes that overlap, stick out of the tensor on every side, or lie outside; whole numbers, so that no
/// order of additions rounds.
TYPED_TEST(AddToTensor, BoxesOfManyPrograms) {
  using T = TypeParam;
  const int H = 21, W = 40, ld = 48;
  for (auto& device : devices()) {
    for (auto [rows, cols] : {std::pair{16, 32}, {5, 7}, {1, 64}}) {
      std::vector<T> target(H * ld), want(H * ld);
      for (int i = 0; i < H * ld; ++i) target[i] = want[i] = narrow<T>(static_cast<Wide<T>>(i % 5));
      auto k = kernel("add_boxes", [=, r = rows, c = cols](Ptr<T> p) {
        auto id = program_id(0);
        auto value = cast(arange(0, r).col() + arange(0, c).row() % 3 + id, dtype_of<T>());
        make_view<T>(p, {H, W}, {ld, 1}).atomic_add({id * 7 - 9, id * 8 - 6}, value);
        make_view<T>(p, {H, W}, {ld, 1}).atomic_add({id, 3}, cast(id + 1, dtype_of<T>()));  // one element
      });
      ASSERT_TRUE(run_on(device, k, Grid{6}, target));
      for (int id = 0; id < 6; ++id) {
        auto add = [&](int y, int x, int v) {
          if (y < 0 || y >= H || x < 0 || x >= W) return;
          want[y * ld + x] = narrow<T>(static_cast<Wide<T>>(widen(want[y * ld + x]) + static_cast<Wide<T>>(v)));
        };
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < cols; ++c) add(id * 7 - 9 + r, id * 8 - 6 + c, r + c % 3 + id);
        add(id, 3, id + 1);
      }
      for (int i = 0; i < H * ld; ++i)
        ASSERT_EQ(widen(target[i]), widen(want[i]))
            << device->name() << " " << rows << "x" << cols << " at " << i / ld << ", " << i % ld;
    }
  }
}

TEST(Memory, CompareAndSwapBuildsALock) {
  for (auto& device : devices()) {
    std::vector<int32_t> memory{0, 0};
    auto k = kernel("lock", [](Ptr<int32_t> p) {
      Tile free = 1;
      while_([&] { return free != 0; }, [&] { free = atomic_cas(p, 0, 1); });
      store(p + 1, load(p + 1, {.cache = Cache::volatile_}) + 1, {.cache = Cache::volatile_});
      atomic_exchange(p, 0);
    });
    ASSERT_TRUE(run_on(device, k, Grid{50}, memory));
    EXPECT_EQ(memory, (std::vector<int32_t>{0, 50})) << device->name();
  }
}

TEST(Shapes, MoveElementsWhereTheySay) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(24), out(9 * 24, -1);
    std::iota(x.begin(), x.end(), 0);
    auto k = kernel("shapes", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      auto flat = arange(0, 24);
      auto t = reshape(load(p + flat), {2, 3, 4});
      auto put = [&](int slot, const Tile& v) {
        store(out + slot * 24 + arange(0, v.shape().elements()), reshape(v, {v.shape().elements()}));
      };
      put(0, permute(t, {2, 0, 1}));
      put(1, trans(t));
      put(2, cat(reshape(t, {6, 4}), reshape(t, {6, 4}) + 100, 1) + 0);  // 48 elements: slots 2 and 3
      put(4, extract(t, {0, 1, 2}, {2, 2, 2}));
      put(5, join(reshape(t, {24}), reshape(t, {24}) * -1));  // slots 5 and 6
      auto [even, odd] = split(reshape(t, {12, 2}));
      put(7, cat(even, odd));
      put(8, take(reshape(t, {24}), (flat * 7) % 24, 0));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 3; ++b)
        for (int c = 0; c < 4; ++c) {
          const int v = (a * 3 + b) * 4 + c;
          EXPECT_EQ(out[(c * 2 + a) * 3 + b], v) << device->name() << " permute";
          EXPECT_EQ(out[24 + (a * 4 + c) * 3 + b], v) << device->name() << " trans";
          if (b >= 1 && c >= 2) {
            EXPECT_EQ(out[96 + (a * 2 + b - 1) * 2 + c - 2], v) << device->name() << " extract";
          }
        }
    for (int i = 0; i < 24; ++i) {
      EXPECT_EQ(out[48 + i / 4 * 8 + i % 4], i) << device->name() << " cat";
      EXPECT_EQ(out[48 + i / 4 * 8 + 4 + i % 4], i + 100) << device->name() << " cat";
      EXPECT_EQ(out[120 + 2 * i], i) << device->name() << " join";
      EXPECT_EQ(out[120 + 2 * i + 1], -i) << device->name() << " join";
      EXPECT_EQ(out[168 + i], i < 12 ? 2 * i : 2 * (i - 12) + 1) << device->name() << " split";
      EXPECT_EQ(out[192 + i], i * 7 % 24) << device->name() << " take";
    }
  }
}

/// Values of every kind: inside, outside on both sides, masked; few bins (many meet), odd numbers of bins, ranks.
TEST(Memory, HistogramsCountWhatIsInside) {
  for (auto& device : devices())
    for (int bins : {1, 5, 64, 300}) {
      std::vector<int32_t> x(24 * 50), counts(static_cast<size_t>(2 * bins), -1);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i * i % 331) - 10;
      auto k = kernel("histogram", [bins](Ptr<const int32_t> p, Ptr<int32_t> out) {
        Tile at = arange(0, 24).col() * 50 + arange(0, 50).row();
        Tile v = load(p + at);
        store(out + arange(0, bins), histogram(v, bins));
        store(out + bins + arange(0, bins), histogram(reshape(v, {1200}), bins, {.mask = reshape(at, {1200}) % 3 == 1}));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, counts));
      std::vector<int32_t> want(counts.size());
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i] >= 0 && x[i] < bins) {
          ++want[static_cast<size_t>(x[i])];
          want[static_cast<size_t>(bins + x[i])] += i % 3 == 1;
        }
      EXPECT_EQ(counts, want) << device->name() << ", " << bins << " bins";
    }
}

/// Weights of every type, small whole numbers: sums are exact in any order. Narrow ones add up in 32 bits; one weight for
/// all, or for each row.
TEST(Memory, HistogramsAddWeights) {
  for (auto& device : devices())
    for (int bins : {1, 5, 64, 300}) {
      const auto n = static_cast<size_t>(bins);
      std::vector<int32_t> x(24 * 50), whole(2 * n, -1);
      std::vector<float> floats(3 * n, -1);
      std::vector<double> wide(n, -1);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i * i % 331) - 10;
      auto k = kernel("weighted", [bins](Ptr<const int32_t> p, Ptr<int32_t> ints, Ptr<float> f, Ptr<double> d) {
        Tile row = arange(0, 24).col(), at = row * 50 + arange(0, 50).row(), to = arange(0, bins);
        Tile v = load(p + at), w = at % 7 - 3;
        store(ints + to, histogram(v, bins, {.weight = cast(w, i8)}));
        store(ints + bins + to, histogram(v, bins, {.mask = at % 3 == 1, .weight = -2}));
        store(f + to, histogram(v, bins, {.weight = cast(w, f16)}));
        store(f + bins + to, histogram(v, bins, {.mask = at % 3 == 1, .weight = cast(w, f32)}));
        store(f + 2 * bins + to, histogram(v, bins, {.weight = cast(row, f32)}));
        store(d + to, histogram(v, bins, {.weight = cast(w, f64)}));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, whole, floats, wide));
      std::vector<int32_t> want_whole(2 * n);
      std::vector<float> want_floats(3 * n);
      std::vector<double> want_wide(n);
      for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] < 0 || x[i] >= bins) continue;
        const auto to = static_cast<size_t>(x[i]);
        const int w = static_cast<int>(i % 7) - 3;
        want_whole[to] += w, want_floats[to] += static_cast<float>(w), want_wide[to] += w;
        want_floats[2 * n + to] += static_cast<float>(i / 50);
        if (i % 3 == 1) want_whole[n + to] -= 2, want_floats[n + to] += static_cast<float>(w);
      }
      EXPECT_EQ(whole, want_whole) << device->name() << ", " << bins << " bins";
      EXPECT_EQ(floats, want_floats) << device->name() << ", " << bins << " bins";
      EXPECT_EQ(wide, want_wide) << device->name() << ", " << bins << " bins";
    }
}

}  // namespace
}  // namespace tile::ops
