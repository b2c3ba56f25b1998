// random_products_test.cpp - random products through pointers (random_products.h) on the host, on the simulated machines
// and on the GPU that TILE_RANDOM_DEVICE names: the same bits in every output (random_run.h has the settings).
#include "tests/gpu/random_products.h"

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

template <class T>
class RandomProducts : public ::testing::Test {
 protected:
  using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using Maker = ProductMaker<T, Sum>;
  enum Buffer { a, b, updated, c, bias };

  struct Memory : RandomMemory {
    explicit Memory(int seed) : RandomMemory(seed) {
      M = 1 + number(Maker::kMostRows), N = 1 + number(Maker::kMostRows), K = 1 + number(Maker::kMostDepth);
      if (number(3) == 0) M = 64 * (1 + number(3)), N = 64 * (1 + number(3)), K = 64 * (1 + number(4));
      a_along_k = number(3) != 0, b_along_k = number(2) != 0;
      // Bulk copies want rows of whole 16 bytes, at whole 16 bytes.
      const int unit = number(8) ? 16 / static_cast<int>(sizeof(T)) : 1;
      auto length = [&](int n) { return (n + unit - 1) / unit * unit + unit * number(3); };
      lda = length(a_along_k ? K : M), ldb = length(b_along_k ? K : N), ldc = N + number(9);
      plane = std::max((a_along_k ? M : K) * lda, (b_along_k ? N : K) * ldb);
      skip = number(8) ? 0 : 1 + number(3);
      auto small = [&] { return whole<T>(number(5) - 2); };
      add<T>(skip + Maker::kTaps * plane, small);
      add<T>(skip + Maker::kTaps * plane, small);
      add<T>(Maker::kPrograms * Maker::kUpdated, small);
      add<Sum>((M + Maker::kSlack) * ldc, [] { return Sum(-77); });
      add<Sum>(N, [&] { return Sum(number(9)); });
      limit = number(301);
    }
    int M, N, K, lda, ldb, ldc, skip, limit;
    int64_t plane;
    bool a_along_k, b_along_k;
  };

  static Status run(const std::shared_ptr<Device>& device, Memory& m, int seed) {
    const bool a_along_k = m.a_along_k, b_along_k = m.b_along_k;
    const int known[] = {m.lda, m.ldb, m.M, m.N, m.K};
    const auto k = kernel("random_products", [=](const RandomSeed& s, Ptr<const T> a, Ptr<const T> b, Ptr<T> updated,
                                                 Ptr<Sum> c, Ptr<const Sum> bias, I32 M, I32 N, I32 K, I32 lda, I32 ldb,
                                                 I32 ldc, I64 plane, I32 limit) {
      Maker(s.seed, {a, b, updated, c, bias, M, N, K, lda, ldb, ldc, plane, limit, a_along_k, b_along_k, known[0],
                     known[1], known[2], known[3], known[4]})
          .program();
    });
    MemoryOnDevice there(device, m);
    Stream& stream = device->default_stream();
    Status ran = launch_one_way(
        k, device, seed, Grid{Maker::kPrograms}, static_cast<const T*>(there.template data<T>(a) + m.skip),
        static_cast<const T*>(there.template data<T>(b) + m.skip), there.template data<T>(updated),
        there.template data<Sum>(c), static_cast<const Sum*>(there.template data<Sum>(bias)), m.M, m.N, m.K, m.lda, m.ldb,
        m.ldc, m.plane, m.limit);
    if (ran.ok()) ran = stream.synchronize();
    return ran.ok() ? there.copy_back() : ran;
  }
};

using Types = ::testing::Types<half, int8_t, float>;
TYPED_TEST_SUITE(RandomProducts, Types);

TYPED_TEST(RandomProducts, HostAndGpusAgree) {
  using Fixture = TestFixture;
  using Memory = typename Fixture::Memory;
  using Sum = typename Fixture::Sum;
  host_and_gpus_agree<Memory>(
      8, [&](const auto& device, Memory& m, int seed) { return this->run(device, m, seed); },
      [&](const std::string& target, const Memory& got, const Memory& want, int) {
        EXPECT_EQ(got.template difference<Sum>(want, Fixture::c, want.ldc), "") << target;
        EXPECT_EQ(got.template difference<TypeParam>(want, Fixture::updated, Fixture::Maker::kUpdated), "") << target;
      });
  print_launches();
}

}  // namespace
}  // namespace tile::testing
