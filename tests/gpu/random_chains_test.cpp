// random_chains_test.cpp - random kernels of chained products (random_chains.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_chains.h"

#include <array>
#include <deque>

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomChains : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = ChainMaker<T, Sum>;
  static constexpr int kHeads = Maker::kHeads, kTermRows = 200, kTermColumns = 168;
  static constexpr int kTerms = kHeads * kTermRows * kTermColumns;
  static constexpr int kOut = kHeads * Maker::kOutRows * Maker::kOutColumns;

  /// Memory of one launch. Sizes and the order of dims follow from the seed.
  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      for (auto& view : views) {
        const int rows = 60 + number(240), columns = number(3) ? 128 : 40 + number(90);
        const int unit = number(8) ? 16 / static_cast<int>(sizeof(T)) : 1;  // bulk copies want rows of 16 bytes
        const int length = (columns + unit - 1) / unit * unit + unit * number(3);
        const int n = kHeads * rows * length;
        auto& buffer = add<T>(n, [&] { return whole<T>(number(5) - 2); });
        T* data = buffer.template as<T>();
        switch (number(4)) {
          case 0: view = {data, {kHeads, rows, columns}, {length, kHeads * length, 1}}; break;  // heads side by side
          case 1: view = {data, {kHeads, columns, rows}, {rows * length, 1, length}}; break;
          default: view = {data, {kHeads, rows, columns}, {rows * length, length, 1}};
        }
      }
      add<Sum>(kTerms, [&] { return static_cast<Sum>(number(5) - 2); });
      add<int32_t>(Maker::kTable, [&] { return number(4); });
      add<Sum>(kOut, [] { return Sum(-77); });
      add<Sum>(kOut, [] { return Sum(0); });
      trips = number(7), length = number(300);
    }
    std::array<TensorView<const T, 3>, 4> views;
    int trips = 0, length = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    using In = Tensor<const T, 3>;
    const auto k = kernel("random_chains", [](const RandomSeed& c, In q, In k, In v, In w, Tensor<const Sum, 3> terms,
                                              Ptr<const int32_t> table, Tensor<Sum, 3> out, Tensor<Sum, 3> sums,
                                              I32 trips, I32 length) {
      Maker(c.seed, {q, k, v, w, terms, table, out, sums, trips, length}).program();
    });
    MemoryOnDevice there(device, m);
    auto views = m.views;
    for (size_t i = 0; i < views.size(); ++i) views[i].data = there.template data<T>(i);
    const std::array<int64_t, 3> outs{kHeads, Maker::kOutRows, Maker::kOutColumns};
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(
        stream, {seed}, Grid{Maker::kRowPrograms, kHeads}, views[0], views[1], views[2], views[3],
        TensorView<const Sum, 3>(there.template data<Sum>(4), {kHeads, kTermRows, kTermColumns}),
        static_cast<const int32_t*>(there.template data<int32_t>(5)),
        TensorView<Sum, 3>(there.template data<Sum>(6), outs), TensorView<Sum, 3>(there.template data<Sum>(7), outs),
        m.trips, m.length);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<half, bfloat16, fp8_e4m3, int8_t, float>;
TYPED_TEST_SUITE(RandomChains, Types);

TYPED_TEST(RandomChains, HostAndGpusAgree) {
  using Memory = typename TestFixture::Memory;
  using Sum = typename TestFixture::Sum;
  host_and_gpus_agree<Memory>(
      3, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<Sum>(want, 6, TestFixture::Maker::kOutColumns), "") << target << ", out";
        EXPECT_EQ(got.template difference<Sum>(want, 7, TestFixture::Maker::kOutColumns), "") << target << ", sums";
      });
  print_launches();
}

}  // namespace
}  // namespace tile::testing
