// random_pointers_test.cpp - random kernels that write what they read (random_pointers.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in all memory (random_run.h has the settings).
#include "tests/gpu/random_pointers.h"

#include <numeric>

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomPointers : public ::testing::Test {
 protected:
  using Maker = PointerMaker<T>;
  enum Buffer { memory, input, places, counters };

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      auto small = [&] { return whole<T>(number(7) - 3); };
      add<T>(Maker::kPrograms * Maker::kRegion, small);
      add<T>(Maker::kInput, small);
      int order[16], at = 0;
      add<int32_t>(Maker::kPlaces, [&] {
        if (at % 16 == 0) {
          std::iota(order, order + 16, 0);
          for (int i = 15; i > 0; --i) std::swap(order[i], order[number(i + 1)]);
        }
        return order[at++ % 16];
      });
      add<int32_t>(Maker::kCounters, [] { return 0; });
      const int steps[] = {0, 1, 3, 16, 64, 100, 256, 512, 600};
      step = steps[number(9)], pitch = number(2) ? 64 : 64 + number(37), limit = number(61);
      skip = number(2) ? 0 : number(3);
    }
    int step = 0, pitch = 0, limit = 0;
    int64_t skip = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_pointers", [](const RandomSeed& c, Ptr<T> memory, Ptr<const T> input,
                                                Ptr<const int32_t> places, Ptr<int32_t> counters, I32 step, I32 pitch,
                                                I32 limit, I64 skip) {
      Maker(c.seed, {memory, input, places, counters, step, pitch, limit, skip}).program();
    });
    MemoryOnDevice there(device, m);
    Stream& stream = device->default_stream();
    Status ran = launch_one_way(k, device, seed, Grid{Maker::kPrograms}, there.template data<T>(memory),
                              static_cast<const T*>(there.template data<T>(input)),
                              static_cast<const int32_t*>(there.template data<int32_t>(places)),
                              there.template data<int32_t>(counters), m.step, m.pitch, m.limit, m.skip);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<float, int32_t, half, int8_t>;
TYPED_TEST_SUITE(RandomPointers, Types);

TYPED_TEST(RandomPointers, HostAndGpusAgree) {
  using Fixture = TestFixture;
  using Memory = typename TestFixture::Memory;
  host_and_gpus_agree<Memory>(
      8, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<TypeParam>(want, Fixture::memory, Fixture::Maker::kRegion), "") << target;
        EXPECT_EQ(got.template difference<int32_t>(want, Fixture::counters, 1), "") << target << ", counters";
      });
}

}  // namespace
}  // namespace tile::testing
