// random_grids_test.cpp - random kernels over pictures and grids (random_grids.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_grids.h"

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomGrids : public ::testing::Test {
 protected:
  using Wide = std::conditional_t<std::is_integral_v<T>, int32_t, std::conditional_t<sizeof(T) == 8, double, float>>;
  using Maker = GridMaker<T, Wide>;

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      auto small = [&] { return whole<T>(number(7) - 3); };
      add<T>(Maker::kPicture, small);
      add<T>(Maker::kPrograms * Maker::kField, small);
      add<Wide>(Maker::kPrograms * Maker::kOut, [] { return Wide(-77); });
      width = number(2) ? 16 * (1 + number(20)) : 1 + number(Maker::kMostWidth);
      height = 1 + number(Maker::kMostHeight);
      start = number(44) - 4, few = number(6);
      const int all[] = {0, 5, -3, 1 << 30, INT32_MAX, INT32_MIN, INT32_MAX - 100, INT32_MIN + 60};
      far = all[number(8)];
    }
    int width = 0, height = 0, start = 0, few = 0, far = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_grids", [](const RandomSeed& c, Ptr<const T> picture, Ptr<T> field, Ptr<Wide> out,
                                             I32 width, I32 height, I32 start, I32 few, I32 far) {
      Maker(c.seed, {picture, field, out, width, height, start, few, far}).program();
    });
    MemoryOnDevice there(device, m);
    Stream& stream = device->default_stream();
    Status ran = launch_one_way(k, device, seed, Grid{Maker::kPrograms}, static_cast<const T*>(there.template data<T>(0)),
                              there.template data<T>(1), there.template data<Wide>(2), m.width, m.height, m.start,
                              m.few, m.far);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<float, int32_t, half, int8_t, double>;
TYPED_TEST_SUITE(RandomGrids, Types);

TYPED_TEST(RandomGrids, HostAndGpusAgree) {
  using Fixture = TestFixture;
  using Memory = typename TestFixture::Memory;
  using Wide = typename TestFixture::Wide;
  host_and_gpus_agree<Memory>(
      6, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<TypeParam>(want, 1, Fixture::Maker::kField), "") << target << ", field";
        EXPECT_EQ(got.template difference<Wide>(want, 2, Fixture::Maker::kOut), "") << target << ", out";
      });
}

}  // namespace
}  // namespace tile::testing
