// random_idioms_test.cpp - random kernels of statements people write (random_idioms.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_idioms.h"

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomIdioms : public ::testing::Test {
 protected:
  using Wide = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = IdiomMaker<T, Wide>;
  static constexpr int kPitch = Maker::kPitch, kLayer = Maker::kLayer;
  static constexpr int kPrograms = Maker::kPrograms, kOut = kPrograms * Maker::kResults * Maker::kResult;

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      add<T>(Maker::kSide * kPitch, [&] { return whole<T>(number(5) - 2); });
      add<T>(Maker::kLayers * kLayer * kLayer, [&] { return whole<T>(number(5) - 2); });
      add<int8_t>(Maker::kSide * kPitch, [&] { return static_cast<int8_t>(number(5) - 2); });
      add<Wide>(Maker::kRecords, [&] { return static_cast<Wide>(number(7) - 3); });
      add<int32_t>(Maker::kPlaces, [&] { return number(100); });
      add<uint32_t>(Maker::kPlaces, [&] { return static_cast<uint32_t>(number(1 << 16) << 16 | number(1 << 16)); });
      add<Wide>(kOut, [] { return Wide(-77); });
      add<T>(kPrograms * Maker::kScratch, [] { return whole<T>(1); });
      add<Wide>(kPrograms * Maker::kScratch, [] { return Wide(-7); });
      add<int32_t>(Maker::kCounters, [] { return 0; });
      columns = kPitch - (number(2) ? 0 : number(20));
      limit = number(60);
      columns_first = number(4) == 0;
    }
    int columns = 0, limit = 0;
    bool columns_first = false;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_idioms", [](const RandomSeed& c, Tensor<const T, 2> view, Tensor<const T, 3> layers,
                                              Tensor<const int8_t, 2> bytes, Ptr<const Wide> records,
                                              Ptr<const int32_t> places, Ptr<const uint32_t> words, Ptr<Wide> out,
                                              Ptr<T> narrow, Ptr<Wide> wide, Ptr<int32_t> counters, I32 limit) {
      Maker(c.seed, {view, layers, bytes, records, places, words, out, narrow, wide, counters, limit}).program();
    });
    MemoryOnDevice there(device, m);
    const T* box = there.template data<T>(0);
    const auto view = m.columns_first ? TensorView<const T, 2>(box, {m.columns, Maker::kSide}, {1, kPitch})
                                      : TensorView<const T, 2>(box, {Maker::kSide, m.columns}, {kPitch, 1});
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(
        stream, {seed}, Grid{kPrograms}, view,
        TensorView<const T, 3>(there.template data<T>(1), {Maker::kLayers, kLayer, kLayer}),
        TensorView<const int8_t, 2>(there.template data<int8_t>(2), {Maker::kSide, m.columns}, {kPitch, 1}),
        static_cast<const Wide*>(there.template data<Wide>(3)),
        static_cast<const int32_t*>(there.template data<int32_t>(4)),
        static_cast<const uint32_t*>(there.template data<uint32_t>(5)), there.template data<Wide>(6),
        there.template data<T>(7), there.template data<Wide>(8), there.template data<int32_t>(9), m.limit);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<half, bfloat16, fp8_e4m3, int8_t, float>;
TYPED_TEST_SUITE(RandomIdioms, Types);

TYPED_TEST(RandomIdioms, HostAndGpusAgree) {
  using Memory = typename TestFixture::Memory;
  using Wide = typename TestFixture::Wide;
  using Sizes = typename TestFixture::Maker::Values;
  host_and_gpus_agree<Memory>(
      4, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<Wide>(want, 6, Sizes::kResult), "") << target << ", out";
        EXPECT_EQ(got.template difference<TypeParam>(want, 7, Sizes::kScratch), "") << target << ", narrow";
        EXPECT_EQ(got.template difference<Wide>(want, 8, Sizes::kScratch), "") << target << ", wide";
        EXPECT_EQ(got.template difference<int32_t>(want, 9, Sizes::kCounters), "") << target << ", counters";
      });
  print_launches();
}

}  // namespace
}  // namespace tile::testing
