// random_persistent_test.cpp - random kernels of many tiles (random_persistent.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_persistent.h"

#include <numeric>

#include "compiler/targets/nvptx.h"
#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomPersistent : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = PersistentMaker<T, Sum>;
  static constexpr int kMost = Maker::kMost, kPitch = 304, kTiles = Maker::kTiles;
  static constexpr int kParts = kTiles * Maker::kSplits, kPart = Maker::kSides * 160;
  enum Buffer { a, b, terms, order, depths, out, sums, narrow, parts, rows, counters };

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      m = 40 + number(kMost - 40), n = 40 + number(kMost - 40), depth = number(5) ? number(400) : 64 * number(4);
      columns = number(4) ? (n + 15) / 16 * 16 : n;
      const int k = std::max(1, depth - number(3) * 8);
      view_a = fill(m, k), view_b = fill(k, n);
      auto small = [&] { return static_cast<Sum>(number(5) - 2); };
      add<Sum>(kMost * kPitch, small);
      std::vector<int> turns(kTiles);
      std::iota(turns.begin(), turns.end(), 0);
      for (int i = kTiles - 1; i > 0; --i) std::swap(turns[i], turns[number(i + 1)]);
      int at = 0;
      add<int32_t>(kTiles, [&] { return turns[at++]; });
      add<int32_t>(kTiles, [&] { return number(200); });
      add<Sum>(kMost * kPitch, [] { return Sum(-77); });
      add<Sum>(kMost * kPitch, [] { return Sum(0); });
      add<T>(kMost * kPitch, [] { return whole<T>(-7); });
      add<Sum>(kParts * kPart, [] { return Sum(0); });
      add<Sum>(kMost, [] { return Sum(0); });
      add<int32_t>(Maker::kCounters, [] { return 0; });
      grid = number(3) ? Grid{2 * (1 + number(3)), 1 + number(3)} : Grid{1 + number(16)};
      if (number(4) == 0) grid = Grid{10, 10};
    }
    TensorView<const T, 3> fill(int rows, int columns) {
      const int unit = number(8) ? 16 / static_cast<int>(sizeof(T)) : 1;  // bulk copies want rows of 16 bytes
      const bool across = number(2);
      const int length = ((across ? rows : columns) + unit - 1) / unit * unit, lines = across ? columns : rows;
      const T* data = add<T>(2 * lines * length, [&] { return whole<T>(number(5) - 2); }).template as<T>();
      return across ? TensorView<const T, 3>(data, {2, rows, columns}, {lines * length, 1, length})
                    : TensorView<const T, 3>(data, {2, rows, columns}, {lines * length, length, 1});
    }
    TensorView<const T, 3> view_a, view_b;
    int m = 0, n = 0, depth = 0, columns = 0;
    Grid grid;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    using In = Tensor<const T, 3>;
    const auto k = kernel("random_persistent", [](const RandomSeed& c, In a, In b, Tensor<const Sum, 2> terms,
                                                  Ptr<const int32_t> order, Ptr<const int32_t> depths,
                                                  Tensor<Sum, 2> out, Tensor<Sum, 2> sums, Tensor<T, 2> narrow,
                                                  Tensor<Sum, 3> parts, Ptr<Sum> rows, Ptr<int32_t> counters,
                                                  I32 depth) {
      Maker(c.seed, {a, b, terms, order, depths, out, sums, narrow, parts, rows, counters, depth}).program();
    });
    MemoryOnDevice there(device, m);
    auto of_sums = [&](Buffer i) {
      return TensorView<Sum, 2>(there.template data<Sum>(i), {m.m, m.n}, {kPitch, 1});
    };
    auto view_a = m.view_a, view_b = m.view_b;
    view_a.data = there.template data<T>(a), view_b.data = there.template data<T>(b);
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(
        stream, {seed}, m.grid, view_a, view_b, TensorView<const Sum, 2>(of_sums(terms)),
        static_cast<const int32_t*>(there.template data<int32_t>(order)),
        static_cast<const int32_t*>(there.template data<int32_t>(depths)), of_sums(out), of_sums(sums),
        TensorView<T, 2>(there.template data<T>(narrow), {m.m, m.n}, {m.columns, 1}),
        TensorView<Sum, 3>(there.template data<Sum>(parts), {kParts, Maker::kSides, 160}),
        there.template data<Sum>(rows), there.template data<int32_t>(counters), m.depth);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<half, bfloat16, fp8_e4m3, int8_t, float>;
TYPED_TEST_SUITE(RandomPersistent, Types);

TYPED_TEST(RandomPersistent, HostAndGpusAgree) {
  using Fixture = TestFixture;
  using Memory = typename TestFixture::Memory;
  using Sum = typename TestFixture::Sum;
  host_and_gpus_agree<Memory>(
      4, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<Sum>(want, Fixture::out, Fixture::kPitch), "") << target << ", out";
        EXPECT_EQ(got.template difference<Sum>(want, Fixture::sums, Fixture::kPitch), "") << target << ", sums";
        EXPECT_EQ(got.template difference<TypeParam>(want, Fixture::narrow, want.columns), "") << target << ", narrow";
        EXPECT_EQ(got.template difference<Sum>(want, Fixture::rows, 1), "") << target << ", sums of rows";
      });
  print_launches();
}

// Sums that begin with what memory holds, or with those of a loop in front, were taken for accumulators that others than
// products write (C7515; start_accumulators.h).
TYPED_TEST(RandomPersistent, ProductsAreNotSerialised) {
  if (ir::findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  ::setenv("TILE_RANDOM_ASSEMBLE", "only", 1);
  for (const int seed : {1, 11, 13, 34}) {
    typename TestFixture::Memory memory(seed);
    const Status ran = this->run(makeSimtDevice("sm_90a"), memory, seed);
    ASSERT_FALSE(ran.ok());
    const std::string said = ran.error().to_string();
    EXPECT_TRUE(said.find(kAssembledOnly) != said.npos || is_over_budget(ran.error())) << said;
    EXPECT_EQ(said.find("(C75"), said.npos) << "seed " << seed << ": " << said;
  }
  ::unsetenv("TILE_RANDOM_ASSEMBLE");
}

}  // namespace
}  // namespace tile::testing
