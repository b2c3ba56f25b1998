// random_tiles_test.cpp - random kernels (random_tiles.h) on the host, on the simulated machines and, where
// TILE_RANDOM_DEVICE names one, on a GPU: the same bits in every output. TILE_RANDOM_PROGRAMS=n runs n programs of
// every type, TILE_RANDOM_SEED=s starts at seed s, TILE_RANDOM_SCHEDULE=t has the simulated machines take schedule t.
#include "tests/gpu/random_tiles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/gpu/random_run.h"
#include "tests/gpu/settings.h"
#include "tests/gpu/simt_device.h"

namespace tile::testing {
namespace {

template <class Types>
class RandomTilesTest : public ::testing::Test {
 protected:
  using Narrow = typename Types::first_type;
  using Wide = typename Types::second_type;
  using Maker = TileMaker<Narrow, Wide>;
  using Sizes = TileMemory<Narrow, Wide>;
  static constexpr int kPitch = 96, kView = Sizes::kRows * kPitch, kPlaces = 64;
  static constexpr int kScratch = Sizes::kPrograms * Sizes::kScratch;
  static constexpr int kOut = Sizes::kPrograms * Sizes::kResults * Sizes::kResult;

  struct Memory {
    explicit Memory(int seed) : random(static_cast<uint32_t>(seed)) {
      fill<Narrow>(view, kView, [&] { return whole<Narrow>(number(7) - 3); });
      fill<Narrow>(flat, Sizes::kElements, [&] { return whole<Narrow>(number(7) - 3); });
      fill<int32_t>(places, kPlaces, [&] { return number(100); });
      fill<Wide>(scratch, kScratch, [] { return Wide(0); });
      fill<Wide>(out, kOut, [] { return Wide(-77); });
      fill<int32_t>(counters, Sizes::kCounters, [] { return 0; });
      columnsFirst = number(4) == 0;
      limit = number(60);
    }
    int number(int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); }
    template <class T, class F>
    static void fill(const GuardedBuffer& b, int n, F&& next) {
      std::generate_n(b.as<T>(), n, next);
    }

    std::mt19937 random;
    GuardedBuffer view{sizeof(Narrow) * kView}, flat{sizeof(Narrow) * Sizes::kElements}, places{4 * kPlaces},
        scratch{sizeof(Wide) * kScratch}, out{sizeof(Wide) * kOut}, counters{4 * Sizes::kCounters};
    bool columnsFirst = false;
    int limit = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const auto k = kernel("random_tiles", [](const RandomSeed& c, Tensor<const Narrow, 2> view, Ptr<const Narrow> flat,
                                             Ptr<const int32_t> places, Ptr<Wide> scratch, Ptr<Wide> out,
                                             Ptr<int32_t> counters, I32 limit) {
      Maker(c.seed, view, flat, places, scratch, out, counters, limit).program();
    });
    OnDevice<Narrow> view(device, m.view, kView), flat(device, m.flat, Sizes::kElements);
    OnDevice<int32_t> places(device, m.places, kPlaces), counters(device, m.counters, Sizes::kCounters);
    OnDevice<Wide> scratch(device, m.scratch, kScratch), out(device, m.out, kOut);
    const TensorView<const Narrow, 2> boxes =
        m.columnsFirst ? TensorView<const Narrow, 2>(view.data(), {kPitch, Sizes::kRows}, {1, kPitch})
                       : TensorView<const Narrow, 2>(view.data(), {Sizes::kRows, Sizes::kColumns}, {kPitch, 1});
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(stream, {seed}, Grid{Sizes::kPrograms}, boxes,
                              static_cast<const Narrow*>(flat.data()), static_cast<const int32_t*>(places.data()),
                              scratch.data(), out.data(), counters.data(), m.limit);
    if (ran.ok()) ran = stream.synchronize();
    if (ran.ok()) ran = out.copy_back();
    if (ran.ok()) ran = counters.copy_back();
    return ran;
  }

  template <class V>
  static std::string difference(const GuardedBuffer& got, const GuardedBuffer& want, int n) {
    const auto size = static_cast<size_t>(n);
    return first_difference<V>({got.as<V>(), size}, {want.as<V>(), size}, n);
  }
};

using Types = ::testing::Types<std::pair<half, float>, std::pair<int8_t, int32_t>, std::pair<float, float>,
                               std::pair<bfloat16, float>>;
TYPED_TEST_SUITE(RandomTilesTest, Types);

TYPED_TEST(RandomTilesTest, HostAndGpusAgree) {
  using Memory = typename TestFixture::Memory;
  using Wide = typename TypeParam::second_type;
  host_and_gpus_agree<Memory>(
      6, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(this->template difference<Wide>(got.out, want.out, TestFixture::kOut), "") << target << ", out";
        EXPECT_EQ(this->template difference<int32_t>(got.counters, want.counters, TestFixture::Sizes::kCounters), "")
            << target << ", counters";
      });
}

}  // namespace
}  // namespace tile::testing
