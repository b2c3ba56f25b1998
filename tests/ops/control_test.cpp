// control_test.cpp - control flow, random numbers, prints and assertions of the language on every device.
#include <mutex>

#include "ops.h"
#include "runtime/debug.h"

namespace tile::ops {
namespace {

TEST(Control, EarlyExits) {
  for (auto& device : devices()) {
    std::vector<int32_t> x{5, 3, -1, 8, 2, -7, 4, 9}, out(8, -99);
    auto k = kernel("exits", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      return_if(program_id(0) > 0);
      Tile skipped = 0, sum = 0, steps = 0;
      for (auto i : range(8)) {
        auto v = load(p + i);
        continue_if(v < 0);
        break_if(sum > 15);
        sum += v;
        steps += 1;
      }
      for (auto i : range(0, 8, 3)) skipped += load(p + i);
      Tile halvings = 0, n = 1000;
      while_([&] { return n > 1; },
             [&] {
               n = n / 2;
               halvings += 1;
               break_if(halvings >= 6);
             });
      Tile kind = 0;
      if_(
          sum > 17,
          [&] {
            if_(
                steps == 4, [&] { kind = 1; }, [&] { kind = 2; });
          },
          [&] { kind = 3; });
      store(out, sum);
      store(out + 1, steps);
      store(out + 2, skipped);
      store(out + 3, halvings);
      store(out + 4, n);
      store(out + 5, kind);
      for (auto _ : when(num_programs(0) == 2)) store(out + 6, 42);
    });
    ASSERT_TRUE(run_on(device, k, Grid{2}, x, out));
    EXPECT_EQ(out, (std::vector<int32_t>{16, 3, 17, 6, 15, 3, 42, -99})) << device->name();
  }
}

TEST(Control, LoopsOverTilesCarryThem) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(10 * 40, -1, 1, 8), out(80);
    auto k = kernel("carry", [](Ptr<const float> p, Ptr<float> out) {
      auto i = arange(0, 40);
      Tile even = zeros({40}, f32), odd = zeros({40}, f32);
      for (auto r : range(10)) {
        even += load(p + r * 40 + i);
        std::swap(even, odd);
      }
      store(out + i, even);
      store(out + 40 + i, odd);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int c = 0; c < 40; ++c) {
      float even = 0, odd = 0;
      for (int r = 0; r < 10; ++r) even += x[r * 40 + c], std::swap(even, odd);
      EXPECT_EQ(out[c], even) << device->name();
      EXPECT_EQ(out[40 + c], odd) << device->name();
    }
  }
}

// Searches in a row, of different lengths: what is done keeps its place while another goes on.
TEST(Control, SearchesInARow) {
  for (auto& device : devices()) {
    std::vector<int32_t> list(1000), wanted{-5, 0, 7, 1500, 2997, 2998, 1, 2};
    for (int i = 0; i < 1000; ++i) list[i] = 3 * i;
    std::vector<int32_t> out(16, -1);
    auto k = kernel("searches", [](Ptr<const int32_t> list, Ptr<const int32_t> wanted, Ptr<int32_t> out) {
      auto p = program_id(0);
      // how many of the first `size` are below x
      auto below = [&](const Tile& x, const Tile& size) {
        Tile low = 0, high = size;
        while_([&] { return low < high; },
               [&] {
                 auto mid = (low + high) / 2;
                 auto isBelow = load(list + mid) < x;
                 low = where(isBelow, mid + 1, low);
                 high = where(isBelow, high, mid);
               });
        return low;
      };
      auto all = below(load(wanted + 2 * p), 1000), few = below(load(wanted + 2 * p + 1), 300 * p);
      // the same, from where the first ended: it cannot begin earlier
      auto behind = below(load(wanted + 2 * p), min(all + 1, 1000));
      store(out + 4 * p, all);
      store(out + 4 * p + 1, few);
      store(out + 4 * p + 2, behind);
    });
    ASSERT_TRUE(run_on(device, k, Grid{4}, list, wanted, out));
    for (int p = 0; p < 4; ++p) {
      auto below = [&](int x, int size) {
        return static_cast<int>(std::lower_bound(list.begin(), list.begin() + size, x) - list.begin());
      };
      const int all = below(wanted[2 * p], 1000);
      EXPECT_EQ(out[4 * p], all) << device->name();
      EXPECT_EQ(out[4 * p + 1], below(wanted[2 * p + 1], 300 * p)) << device->name();
      EXPECT_EQ(out[4 * p + 2], below(wanted[2 * p], std::min(all + 1, 1000))) << device->name();
      EXPECT_EQ(out[4 * p + 3], -1) << device->name();
    }
  }
}

// A loop of each element: those that are done keep what they have, and touch no memory.
TEST(Control, WhileOverElements) {
  constexpr int kSize = 300, kList = 40;
  for (auto& device : devices()) {
    // lists in `next`: -1 ends one; what lies outside of it must not be touched
    std::vector<int32_t> next(kList), first(kSize), sums(kSize, -7), steps(kSize, -7), visits(kList), rounds(1, -7);
    for (int i = 0; i < kList; ++i) next[i] = i % 7 == 3 ? -1 : (i * 5 + 2) % kList;
    for (int i = 0; i < kSize; ++i) first[i] = i % 11 == 4 ? -1 : i % kList;
    auto k = kernel("while_each", [](Ptr<const int32_t> next, Ptr<const int32_t> first, Ptr<int32_t> sums,
                                     Ptr<int32_t> steps, Ptr<int32_t> visits, Ptr<int32_t> rounds) {
      auto i = arange(0, kSize);
      Tile n = load(first + i), sum = zeros({kSize}, i32), step = zeros({kSize}, i32), round = 0;
      while_([&] { return n >= 0; },
             [&] {
               sum += n;
               step += 1;
               round += 1;
               device_assert((n >= 0) & (n < kList), "an element that goes on");
               atomic_add(visits + n, 1, {.order = Order::relaxed});
               n = load(next + n);
               break_if(round == 60);
             });
      store(sums + i, sum);
      store(steps + i, step);
      store(rounds, round);
    });
    ASSERT_TRUE(run_on(device, k, {}, next, first, sums, steps, visits, rounds));
    std::vector<int32_t> wanted(kList);
    int most = 0;
    for (int i = 0; i < kSize; ++i) {
      int sum = 0, step = 0;
      for (int n = first[i]; n >= 0 && step < 60; n = next[n]) sum += n, ++step, ++wanted[n];
      EXPECT_EQ(sums[i], sum) << device->name() << " " << i;
      EXPECT_EQ(steps[i], step) << device->name() << " " << i;
      most = std::max(most, step);
    }
    EXPECT_EQ(visits, wanted) << device->name();
    EXPECT_EQ(rounds[0], most) << device->name();
  }
}

// One inside the other, with stores, a box of the program's and columns that the condition broadcasts to.
TEST(Control, WhileOverElementsInAnother) {
  constexpr int kRows = 20, kColumns = 8;
  for (auto& device : devices()) {
    std::vector<int32_t> start(kRows), out(kRows * kColumns, -1), inner(kRows, -1);
    for (int r = 0; r < kRows; ++r) start[r] = r * 37 % 23;
    auto k = kernel("while_nested", [](Ptr<const int32_t> start, Ptr<int32_t> out, Ptr<int32_t> inner) {
      auto r = arange(0, kRows).col();
      auto c = arange(0, kColumns).row();
      Tile left = load(start + r), most = zeros({kRows, 1}, i32), sum = zeros({kRows, kColumns}, i32);
      while_([&] { return left > 0; },
             [&] {
               Tile halvings = zeros({kRows, 1}, i32), m = left;
               while_([&] { return m > 1; }, [&] { m = m / 2, halvings += 1; });
               most = max(most, halvings);
               sum += left * c;
               store(out + (r * kColumns + c), sum);
               left -= 3;
             });
      store(inner + r, most);
    });
    ASSERT_TRUE(run_on(device, k, {}, start, out, inner));
    for (int r = 0; r < kRows; ++r) {
      int most = 0, sum = 0, rounds = 0;
      for (int left = start[r]; left > 0; left -= 3, ++rounds) {
        int halvings = 0;
        for (int m = left; m > 1; m /= 2) ++halvings;
        most = std::max(most, halvings), sum += left;
      }
      EXPECT_EQ(inner[r], most) << device->name();
      for (int c = 0; c < kColumns; ++c)
        EXPECT_EQ(out[r * kColumns + c], rounds ? sum * c : -1) << device->name() << " " << r;
    }
  }
}

TEST(Control, WideAndUnsignedCounters) {
  for (auto& device : devices()) {
    std::vector<int64_t> out(2);
    std::vector<uint32_t> start{4294967290u};
    auto k = kernel("counters", [](Ptr<int64_t> out, Ptr<const uint32_t> p) {
      Tile s = int64_t{0};
      s = cast(s, i64);
      Tile first = load(p);
      for (auto i : range(first, first + 5, 2)) s += cast(i, i64);
      store(out, s);
      Tile t = cast(Tile(0), i64);
      for (auto i : range(int64_t{1} << 40, (int64_t{1} << 40) + 3)) t += i;
      store(out + 1, t);
    });
    ASSERT_TRUE(run_on(device, k, {}, out, start));
    EXPECT_EQ(out[0], 4294967290ll + 4294967292ll + 4294967294ll) << device->name();
    EXPECT_EQ(out[1], 3 * (int64_t{1} << 40) + 3) << device->name();
  }
}

// Known answers of the generator's authors (Random123, kat_vectors: philox4x32 10, and 7).
TEST(Random, PhiloxKnownAnswers) {
  for (auto& device : devices()) {
    std::vector<uint32_t> out(16);
    auto k = kernel("philox", [](Ptr<uint32_t> out) {
      auto a = philox(0u, 0u, 0u, 0u, 0u, 0u);
      auto b = philox(0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu);
      auto c = philox(0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u);
      auto seven = philox(0u, 0u, 0u, 0u, 0u, 0u, 7);
      for (int i = 0; i < 4; ++i) {
        store(out + i, a[i]);
        store(out + 4 + i, b[i]);
        store(out + 8 + i, c[i]);
        store(out + 12 + i, seven[i]);
      }
    });
    ASSERT_TRUE(run_on(device, k, {}, out));
    EXPECT_EQ(out, (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d, 0x41c83b0e,
                                          0xa20bc7c6, 0x6d5451fd, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1,
                                          0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}))
        << device->name();
  }
}

TEST(Random, DistributionsAndIndependenceOfTheTileShape) {
  constexpr int n = 4096;
  for (auto& device : devices()) {
    std::vector<float> u(n), g(n), again(n);
    auto k = kernel("random", [](Ptr<float> u, Ptr<float> g) {
      auto i = program_id(0) * 1024 + arange(0, 1024);
      store(u + i, rand(1234, i));
      store(g + i, randn(int64_t{99} << 32, i));
    });
    auto other = kernel("random2", [](Ptr<float> u) {
      auto i = program_id(0) * 96 + arange(0, 96);
      store(u + i, rand(1234, i), {.mask = i < n});
    });
    ASSERT_TRUE(run_on(device, k, Grid{4}, u, g));
    ASSERT_TRUE(run_on(device, other, Grid{43}, again));
    EXPECT_EQ(u, again) << device->name();
    double mean = 0, var = 0, gm = 0, gv = 0;
    for (int i = 0; i < n; ++i) {
      ASSERT_GE(u[i], 0.f);
      ASSERT_LT(u[i], 1.f);
      ASSERT_TRUE(std::isfinite(g[i]));
      mean += u[i] / n, var += (u[i] - 0.5) * (u[i] - 0.5) / n, gm += g[i] / n, gv += g[i] * g[i] / n;
    }
    EXPECT_NEAR(mean, 0.5, 0.02);
    EXPECT_NEAR(var, 1.0 / 12, 0.01);
    EXPECT_NEAR(gm, 0, 0.06);
    EXPECT_NEAR(gv, 1, 0.08);
  }
}

TEST(Random, FourAtATime) {
  constexpr int n = 4096;
  for (auto& device : devices()) {
    std::vector<float> u(4 * n), g(4 * n), one(2 * n);
    auto k = kernel("random4", [](Ptr<float> u, Ptr<float> g, Ptr<float> one) {
      auto i = program_id(0) * 1024 + arange(0, 1024);
      const auto uniform = rand4(5, i), normal = randn4(5, i);
      for (int j = 0; j < 4; ++j) store(u + j * n + i, uniform[j]), store(g + j * n + i, normal[j]);
      store(one + i, rand(5, i));
      store(one + n + i, randn(5, i));
    });
    ASSERT_TRUE(run_on(device, k, Grid{4}, u, g, one));
    for (int i = 0; i < n; ++i) ASSERT_TRUE(u[i] == one[i] && g[i] == one[n + i]) << device->name() << " " << i;
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b <= a; ++b) {  // each has its variance, pairs have none in common
        double uniform = 0, normal = 0;
        for (int i = 0; i < n; ++i) {
          uniform += (u[a * n + i] - 0.5) * (u[b * n + i] - 0.5) / n;
          normal += double(g[a * n + i]) * g[b * n + i] / n;
        }
        EXPECT_NEAR(uniform, a == b ? 1.0 / 12 : 0, 0.006) << device->name() << " " << a << ", " << b;
        EXPECT_NEAR(normal, a == b, 0.08) << device->name() << " " << a << ", " << b;
      }
  }
}

TEST(Debug, RegistersOfTheMachine) {
  for (auto& device : devices()) {
    std::vector<uint64_t> out(6, 99);
    auto k = kernel("machine", [](Ptr<uint64_t> out) {
      auto t = globaltimer(), c = clock64();
      store(out, t), store(out + 1, c), store(out + 2, cast(smid(), u64));
      store(out + 3, globaltimer() - t), store(out + 4, clock64() - c);
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, out));
    const bool gpu = device->kind() == DeviceKind::cuda;
    EXPECT_EQ(out[0] > 0, gpu) << device->name();
    EXPECT_EQ(out[4] > 0, gpu) << device->name();
    EXPECT_LT(out[2], 1000u) << device->name();
    EXPECT_LT(out[3], 1'000'000'000u) << device->name();
    EXPECT_EQ(out[5], 99u) << device->name();
  }
}

TEST(Debug, PrintsWholeTilesFromChosenPrograms) {
  for (auto& device : devices()) {
    std::mutex mutex;
    std::vector<std::string> messages;
    set_print_sink([&](const std::string& m) {
      std::lock_guard lock(mutex);
      messages.push_back(m);
    });
    std::vector<int32_t> out(1);
    auto k = kernel("prints", [](Ptr<int32_t> out) {
      if_(program_id(0) == 3, [&] { device_print("row", arange(10, 14)); });
      store(out, 1);
    });
    const auto ran = run_on(device, k, Grid{5}, out);
    set_print_sink({});
    ASSERT_TRUE(ran);
    ASSERT_EQ(messages.size(), 1u) << device->name();
    for (const char* part : {"row", "10", "11", "12", "13"})
      EXPECT_NE(messages[0].find(part), std::string::npos) << messages[0];
  }
}

TEST(Debug, PrintsUnsignedElementsAsSuch) {
  for (auto& device : devices()) {
    std::mutex mutex;
    std::string all;
    set_print_sink([&](const std::string& m) {
      std::lock_guard lock(mutex);
      all += m + "\n";
    });
    std::vector<uint32_t> out{4000000000u};
    auto k = kernel("prints_unsigned", [](Ptr<uint32_t> p) {
      device_print("byte", full({2}, 200, u8));
      device_print("signed", full({2}, -56, i8));
      device_print("word", load(p));
      device_print("long", cast(Tile(-1), u64));
      store(p, 1u);
    });
    const auto ran = run_on(device, k, {}, out);
    set_print_sink({});
    ASSERT_TRUE(ran);
    for (const char* part : {"byte 2xu8 = [200, 200]", "signed 2xi8 = [-56, -56]", "word = 4000000000",
                             "long = 18446744073709551615"})
      EXPECT_NE(all.find(part), std::string::npos) << device->name() << ": " << part << " in\n" << all;
  }
}

// Defined on every device; the host reports it as well (tests/dsl/misuse_test.cpp).
TEST(Control, LoopsWithoutAPositiveStepHaveNoIteration) {
  for (auto& device : devices()) {
    if (device->kind() == DeviceKind::host) continue;
    auto k = kernel("steps", [](Ptr<const int32_t> bounds, Ptr<int32_t> out) {
      Tile n = 0;
      for (auto i : range(load(bounds), load(bounds + 1), load(bounds + 2))) n += 1;
      store(out, n);
    });
    for (auto [low, high, step, trips] : {std::array{0, 10, 0, 0}, {0, 10, -3, 0}, {10, 0, -3, 0}, {0, 10, 3, 4}}) {
      std::vector<int32_t> bounds{low, high, step}, out(1, -1);
      ASSERT_TRUE(run_on(device, k, {}, bounds, out));
      EXPECT_EQ(out[0], trips) << low << " " << high << " " << step << " " << device->name();
    }
  }
}

TEST(Debug, FailedAssertionsNameTheLine) {
  for (auto& device : devices()) {
    if (device->kind() == DeviceKind::cuda)
      continue;  // the trap ends the context: tests/device runs it in a process of its own
    std::vector<int32_t> out(8);
    const int line = __LINE__ + 2;
    auto k = kernel("asserts", [](Ptr<int32_t> out) {
      device_assert(arange(0, 8) != 5, "five is right out");
      store(out + arange(0, 8), 1);
    });
    const auto ran = run_on(device, k, {}, out);
    ASSERT_FALSE(ran);
    const std::string text = ran.message();
    EXPECT_NE(text.find("five is right out"), std::string::npos) << text;
    EXPECT_NE(text.find(":" + std::to_string(line)), std::string::npos) << text;
    std::vector<int32_t> fine(1);
    auto next = kernel("after", [](Ptr<int32_t> out) { store(out, 7); });
    ASSERT_TRUE(run_on(device, next, {}, fine));  // the device goes on
    EXPECT_EQ(fine[0], 7);
  }
}

/// What a program does before it leaves, also to the variables that the condition was made of.
TEST(Control, ReturnsBehindLastWords) {
  for (auto& device : devices()) {
    std::vector<int32_t> x{3, -1, 0, -7}, out(4, 50);
    auto k = kernel("last_words", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
      Tile v = load(p + program_id(0)), leaves = v < 0;
      return_if(leaves, [&] {
        store(out + program_id(0), v * 10);
        v = 9;
        leaves = v < 0;
      });
      store(out + program_id(0), v);
    });
    ASSERT_TRUE(run_on(device, k, Grid{4}, x, out));
    EXPECT_EQ(out, (std::vector<int32_t>{3, -10, 0, -70})) << device->name();
  }
}

}  // namespace
}  // namespace tile::ops
