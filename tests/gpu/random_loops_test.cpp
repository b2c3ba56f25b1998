// random_loops_test.cpp - random kernels (random_loops.h) on the host, on the simulated machines and on the GPU that
// TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "tests/gpu/random_run.h"
#include "tests/gpu/settings.h"
#include "tests/gpu/simt_device.h"

namespace tile::testing {
namespace {

template <class T>
class RandomLoops : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = LoopMaker<T, Sum>;
  static constexpr int kRows = kPrograms * Maker::kRowsOfProgram;

  /// Memory of one launch. Shapes, distances between rows and the order of dims follow from the seed.
  struct Memory {
    explicit Memory(int seed) : random(static_cast<uint32_t>(seed)) {
      for (int i = 0; i < 3; ++i) {
        const int rows = 40 + number(120), columns = 40 + number(120);
        const int unit = number(8) ? 16 / static_cast<int>(sizeof(T)) : 1;  // bulk copies want rows of 16 bytes
        const int length = (columns + unit - 1) / unit * unit + unit * number(3);
        auto& buffer = inputs.emplace_back(sizeof(T) * static_cast<size_t>(rows) * static_cast<size_t>(length));
        sizes.push_back(static_cast<size_t>(rows) * static_cast<size_t>(length));
        for (int j = 0; j < rows * length; ++j)
          buffer.template as<T>()[j] = whole<T>(number(2 * kLargestInput + 1) - kLargestInput);
        views.push_back(number(4) ? TensorView<const T, 2>(buffer.template as<T>(), {rows, columns}, {length, 1})
                                  : TensorView<const T, 2>(buffer.template as<T>(), {columns, rows}, {1, length}));
      }
      for (int j = 0; j < kTermRows * kTermColumns; ++j)
        terms.as<Sum>()[j] = static_cast<Sum>(number(2 * kLargestInput + 1) - kLargestInput);
      for (int j = 0; j < kTermRows * kTermColumns; ++j)
        bytes.as<int8_t>()[j] = static_cast<int8_t>(number(2 * kLargestInput + 1) - kLargestInput);
      for (int j = 0; j < kBlocks; ++j) blocks.as<int32_t>()[j] = number(4);
      limit = number(100);
      std::fill_n(out.as<Sum>(), kRows * Maker::kColumns, Sum(-77));
      std::fill_n(sums.as<Sum>(), kRows * 128, Sum(0));
    }
    int number(int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); }

    static constexpr int kTermRows = 150, kTermColumns = 144, kByteColumns = 133;
    std::mt19937 random;
    std::deque<GuardedBuffer> inputs;
    std::vector<size_t> sizes;
    std::vector<TensorView<const T, 2>> views;
    GuardedBuffer terms{sizeof(Sum) * kTermRows * kTermColumns}, blocks{4 * kBlocks},
        bytes{kTermRows * kTermColumns}, out{sizeof(Sum) * kRows * Maker::kColumns}, sums{sizeof(Sum) * kRows * 128};
    int limit = 0;
  };

  static auto make() {
    using In = Tensor<const T, 2>;
    return kernel("random_loops", [](const RandomSeed& c, In x, In y, In z, Tensor<const Sum, 2> terms,
                                     Ptr<const int32_t> blocks, Tensor<const int8_t, 2> bytes, Tensor<Sum, 2> out,
                                     Tensor<Sum, 2> sums, I32 limit) {
      Maker(c.seed, {&x, &y, &z}, terms, blocks, bytes, out, sums, limit).program();
    });
  }

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    std::array<TensorView<const T, 2>, 3> views;
    std::deque<OnDevice<T>> inputs;
    for (size_t i = 0; i < views.size(); ++i) {
      inputs.emplace_back(device, m.inputs[i], m.sizes[i]);
      views[i] = m.views[i], views[i].data = inputs[i].data();
    }
    OnDevice<Sum> terms(device, m.terms, m.kTermRows * m.kTermColumns), out(device, m.out, kRows * Maker::kColumns),
        sums(device, m.sums, kRows * 128);
    OnDevice<int32_t> blocks(device, m.blocks, kBlocks);
    OnDevice<int8_t> bytes(device, m.bytes, m.kTermRows * m.kTermColumns);
    Stream& stream = device->default_stream();
    Status ran = launch_one_way(make(), device, seed, Grid{kPrograms}, views[0], views[1], views[2],
        TensorView<const Sum, 2>(terms.data(), {m.kTermRows, m.kTermColumns}),
        static_cast<const int32_t*>(blocks.data()),
        TensorView<const int8_t, 2>(bytes.data(), {m.kTermRows, m.kByteColumns}, {m.kTermColumns, 1}),
        TensorView<Sum, 2>(out.data(), {kRows, Maker::kColumns}), TensorView<Sum, 2>(sums.data(), {kRows, 128}), m.limit);
    if (ran.ok()) ran = stream.synchronize();
    for (OnDevice<Sum>* made : {&out, &sums})
      if (ran.ok()) ran = made->copy_back();
    return ran;
  }
  static std::string difference(const GuardedBuffer& got, const GuardedBuffer& want, int columns) {
    const size_t size = static_cast<size_t>(kRows) * static_cast<size_t>(columns);
    return first_difference<Sum>({got.as<Sum>(), size}, {want.as<Sum>(), size}, columns);
  }
};

using Types = ::testing::Types<half, float, int8_t, fp8_e4m3, bfloat16>;
TYPED_TEST_SUITE(RandomLoops, Types);

TYPED_TEST(RandomLoops, HostAndGpusAgree) {
  using Memory = typename TestFixture::Memory;
  host_and_gpus_agree<Memory>(
      8, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(this->difference(got.out, want.out, TestFixture::Maker::kColumns), "") << target << ", out";
        EXPECT_EQ(this->difference(got.sums, want.sums, 128), "") << target << ", sums";
      });
  print_launches();
}

}  // namespace
}  // namespace tile::testing
