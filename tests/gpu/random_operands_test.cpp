// random_operands_test.cpp - random kernels of all kinds of operands (random_operands.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_operands.h"

#include "compiler/targets/nvptx.h"
#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomOperands : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = OperandMaker<T, Sum>;
  static constexpr int kRows = 200, kPitch = 208, kRowsOfZ = 150, kPitchOfZ = 176;
  static constexpr int kOutRows = Maker::kPrograms * Maker::kRowsOfProgram;

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      for (auto* view : {&x, &y}) {
        const int rows = 60 + number(140), columns = 60 + number(140);
        const int unit = number(8) ? 16 / static_cast<int>(sizeof(T)) : 1;  // bulk copies want rows of 16 bytes
        const int length = (columns + unit - 1) / unit * unit + unit * number(3), skip = number(8) ? 0 : 1 + number(3);
        T* data = add<T>(skip + rows * length, [&] { return whole<T>(number(5) - 2); }).template as<T>() + skip;
        *view = number(4) ? TensorView<const T, 2>(data, {rows, columns}, {length, 1})
                          : TensorView<const T, 2>(data, {columns, rows}, {1, length});
        skips.push_back(skip);
      }
      const T* data = add<T>(3 * kRowsOfZ * kPitchOfZ, [&] { return whole<T>(number(5) - 2); }).template as<T>();
      if (number(3))
        z = {data, {3, kRowsOfZ, kPitchOfZ - number(20)}, {kRowsOfZ * kPitchOfZ, kPitchOfZ, 1}};
      else
        z = {data, {3, kRowsOfZ, kPitchOfZ}, {kPitchOfZ, 3 * kPitchOfZ, 1}};
      add<int8_t>(kRows * kPitch, [&] { return static_cast<int8_t>(number(5) - 2); });
      add<uint8_t>(kRows * kPitch, [&] { return static_cast<uint8_t>(number(256)); });
      add<uint8_t>(kRows * kPitch, [&] { return static_cast<uint8_t>(126 + number(3)); });
      add<Sum>(kRows * kPitch, [&] { return static_cast<Sum>(number(5) - 2); });
      add<int32_t>(Maker::kTable, [&] { return number(210); });
      add<Sum>(kOutRows * Maker::kColumns, [] { return Sum(-77); });
      limit = number(4) ? number(300) : 64 * number(4);
      byteColumns = kPitch - (number(2) ? 0 : number(20));
    }
    TensorView<const T, 2> x, y;
    TensorView<const T, 3> z;
    std::vector<int> skips;
    int limit = 0, byteColumns = 0;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    using In = Tensor<const T, 2>;
    using Bytes = Tensor<const uint8_t, 2>;
    const auto k = kernel("random_operands", [](const RandomSeed& c, In x, In y, Tensor<const T, 3> z,
                                                Tensor<const int8_t, 2> bytes, Bytes packed, Bytes factors,
                                                Tensor<const Sum, 2> terms, Ptr<const int32_t> table,
                                                Tensor<Sum, 2> out, I32 limit) {
      Maker(c.seed, {x, y, z, bytes, packed, factors, terms, table, out, limit}).program();
    });
    MemoryOnDevice there(device, m);
    auto x = m.x, y = m.y;
    auto z = m.z;
    x.data = there.template data<T>(0) + m.skips[0], y.data = there.template data<T>(1) + m.skips[1];
    z.data = there.template data<T>(2);
    auto rows = [&]<class U>(size_t i, U*) {
      return TensorView<const U, 2>(there.template data<U>(i), {kRows, m.byteColumns}, {kPitch, 1});
    };
    Stream& stream = device->default_stream();
    Status ran = k.try_launch(
        stream, {seed}, Grid{Maker::kPrograms}, x, y, z, rows(3, static_cast<int8_t*>(nullptr)),
        rows(4, static_cast<uint8_t*>(nullptr)), rows(5, static_cast<uint8_t*>(nullptr)),
        rows(6, static_cast<Sum*>(nullptr)), static_cast<const int32_t*>(there.template data<int32_t>(7)),
        TensorView<Sum, 2>(there.template data<Sum>(8), {kOutRows, Maker::kColumns}), m.limit);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<half, bfloat16, fp8_e4m3, fp8_e5m2, int8_t, float, int32_t>;  // the last: as bits
TYPED_TEST_SUITE(RandomOperands, Types);

TYPED_TEST(RandomOperands, HostAndGpusAgree) {
  using Memory = typename TestFixture::Memory;
  using Sum = typename TestFixture::Sum;
  host_and_gpus_agree<Memory>(
      4, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<Sum>(want, 8, TestFixture::Maker::kColumns), "") << target << ", out";
      });
  print_launches();
}

// Registers that products in flight read were given to the next iteration's work: wrong on an H200, now and then.
TYPED_TEST(RandomOperands, RegistersInFlightAreKept) {
  if (ir::findPtxas({}).empty()) GTEST_SKIP() << "ptxas not found";
  ::setenv("TILE_RANDOM_ASSEMBLE", "only", 1);
  for (const int seed : {21400043, 21400054, 22300195}) {
    typename TestFixture::Memory memory(seed);
    const Status ran = this->run(makeSimtDevice("sm_90a"), memory, seed);
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.error().to_string().find("in flight"), std::string::npos) << seed << ran.error().to_string();
  }
  ::unsetenv("TILE_RANDOM_ASSEMBLE");
}

}  // namespace
}  // namespace tile::testing
