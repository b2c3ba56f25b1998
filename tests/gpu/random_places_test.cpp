// random_places_test.cpp - random places in memory (random_places.h) on the host, on the simulated machines and on the
// GPU that TILE_RANDOM_DEVICE names: the same as in plain loops (random_run.h has the settings). All devices share what
// the compiler knows about integers: another device is no reference.
#include "tests/gpu/random_places.h"

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomPlaces : public ::testing::Test {
 protected:
  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      add<T>(PlaceMaker::kTable, [&] { return static_cast<T>(number(200) - 100); });
      add<int32_t>(PlaceMaker::kPrograms, [&] { return number(128) - 64; });
      add<int32_t>(PlaceMaker::kPrograms * PlaceMaker::kMost, [] { return -77; });
      add<T>(PlaceMaker::kTable, [] { return T{111}; });
      auto some = [&](int most) {
        return number(2) ? 16 * (number(most / 8 + 1) - most / 16) : number(2 * most + 1) - most;
      };
      at = {some(512), some(64), number(2) ? 16 * (1 + number(4)) : 1 + number(64), 1 + number(64)};
    }
    PlaceArguments at;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_places", [](const RandomSeed& c, Ptr<const T> table, Ptr<const int32_t> numbers,
                                              Ptr<int32_t> out, Ptr<T> marks, I32 a, I32 b, I32 m, I32 n) {
      const PlaceMaker maker(c.seed);
      PlaceKernel<T>(maker, table, numbers, out, marks, a, b, m, n).program();
    });
    MemoryOnDevice there(device, m);
    Status ran =
        launch_one_way(k, device, seed, Grid{PlaceMaker::kPrograms}, static_cast<const T*>(there.template data<T>(0)),
                       static_cast<const int32_t*>(there.template data<int32_t>(1)), there.template data<int32_t>(2),
                       there.template data<T>(3), m.at.a, m.at.b, m.at.m, m.at.n);
    if (ran.ok()) ran = device->default_stream().synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }

  static void compute(Memory& m, int seed) {
    const PlaceMaker maker(seed);
    PlaceReference<T> reference{maker, m.at, m.buffer(0).template as<T>(), m.buffer(1).template as<int32_t>(),
                                m.buffer(3).template as<T>()};
    int32_t* out = m.buffer(2).template as<int32_t>();
    for (int p = 0; p < PlaceMaker::kPrograms; ++p)
      for (int r = 0; r < maker.rows; ++r)
        for (int c = 0; c < maker.columns; ++c) *out++ = reference.element(p, r, c);
  }
};

using Types = ::testing::Types<int32_t, int8_t>;
TYPED_TEST_SUITE(RandomPlaces, Types);

TYPED_TEST(RandomPlaces, DevicesAgreeWithPlainLoops) {
  using Memory = typename TestFixture::Memory;
  constexpr int kPrograms = 25;
  const auto check = [](const std::string& target, const Memory& got, const Memory& want, int) {
    EXPECT_EQ(got.template difference<int32_t>(want, 2, 64), "") << target;
    EXPECT_EQ(got.template difference<TypeParam>(want, 3, 64), "") << target << ", marks";
  };
  const auto run = [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); };
  const int first = setting("TILE_RANDOM_SEED", 1), end = first + setting("TILE_RANDOM_PROGRAMS", kPrograms);
  const auto host = open_device("host").value_or_throw();
  for (int seed = first; seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Memory want(seed), got(seed);
    this->compute(want, seed);
    const Status ran = run(host, got, seed);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    check("host", got, want, seed);
  }
  host_and_gpus_agree<Memory>(kPrograms, run, check);
  print_launches();
}

}  // namespace
}  // namespace tile::testing
