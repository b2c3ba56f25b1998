// few_programs_test.cpp - launches of at most one program per multiprocessor and of more: other code where it matters, the
// same where it does not, in memory and on disk. On a GPU, or over the fake driver (dsl_few_programs_fake_gpu).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "dsl/tile.h"
#include "runtime/cache.h"
#include "runtime/env.h"

using namespace tile;

namespace {

class FewPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& name : device_names())
      if (auto d = open_device(name); d && (*d)->properties().sm >= 80) device_ = *d;
    if (!device_) GTEST_SKIP() << "needs a GPU";
    many_ = device_->properties().multiprocessors + 1;
    CacheOptions options;
    options.directory = (std::filesystem::temp_directory_path() / ("few_programs_" + std::to_string(getpid()))).string();
    std::filesystem::remove_all(options.directory);
    directory_ = options.directory;
    set_jit_policy({.disk = std::make_shared<DiskCache>(options)});
    x_ = Buffer<float>::allocate(device_, kRow).value_or_throw();
    y_ = Buffer<float>::allocate(device_, many_).value_or_throw();
  }
  void TearDown() override {
    set_jit_policy({});
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  /// Kernels that the launch compiles (0: what is there already runs).
  template <class K>
  uint64_t compiles(const K& k, int64_t programs) {
    const uint64_t before = jit_stats().compiles;
    Status s = k.try_launch(device_->default_stream(), {}, Grid{programs}, x_.view(kRow), y_.data());
    EXPECT_TRUE(s) << s.error().to_string();
    return jit_stats().compiles - before;
  }

  static constexpr int64_t kRow = 8192;
  std::shared_ptr<Device> device_;
  std::string directory_;
  int64_t many_ = 0;
  Buffer<float> x_, y_;
};

/// Sums a row of `elements`: of 4096, each thread of four warps would hold 32.
template <int elements>
auto row_sum(int warps = 0) {
  return kernel("few_programs_sum", [warps](Tensor<const float, 1> x, Ptr<float> y) {
           if (warps) num_warps(warps);
           store(y + program_id(0), sum(x.load({0}, {elements})));
         }).options({.ptxas = "none"});
}

TEST_F(FewPrograms, CodeThatVariesIsCompiledForBoth) {
  const auto k = row_sum<4096>();
  EXPECT_EQ(compiles(k, many_), 1u);
  EXPECT_EQ(compiles(k, many_ - 1), 1u) << "a multiprocessor for each program";
  EXPECT_EQ(compiles(k, many_), 0u);
  EXPECT_EQ(compiles(k, 1), 0u);
  k.clear_memory_cache();
  EXPECT_EQ(compiles(k, 1), 0u) << "on disk";
  EXPECT_EQ(compiles(k, many_), 0u) << "on disk, both";
}

TEST_F(FewPrograms, CodeThatDoesNotVaryIsCompiledOnce) {
  for (const auto& k : {row_sum<256>(), row_sum<4096>(4)}) {
    EXPECT_EQ(compiles(k, 1), 1u);
    EXPECT_EQ(compiles(k, many_), 0u) << "the same code";
    k.clear_memory_cache();
    EXPECT_EQ(compiles(k, many_), 0u) << "on disk, whoever asks";
    EXPECT_EQ(compiles(k, 1), 0u);
  }
}

TEST_F(FewPrograms, NothingIsCompiledForALaunchWithoutPrograms) {
  const auto k = row_sum<4096>();
  EXPECT_EQ(compiles(k, many_), 1u);
  EXPECT_EQ(compiles(k, 0), 0u);
  EXPECT_EQ(compiles(k, 1), 1u);
}

// 2^64 programs are not few, though they wrap to none; and are refused.
TEST_F(FewPrograms, GridsThatWrapAreRefused) {
  const auto k = row_sum<4096>();
  EXPECT_EQ(compiles(k, many_), 1u);
  const uint64_t before = jit_stats().compiles;
  const Grid huge{int64_t{1} << 32, int64_t{1} << 32};
  EXPECT_EQ(huge.programs(), INT64_MAX);
  EXPECT_FALSE(k.try_launch(device_->default_stream(), {}, huge, x_.view(kRow), y_.data()));
  EXPECT_EQ(jit_stats().compiles, before);
}

TEST_F(FewPrograms, CapturesTakeWhatIsLoaded) {
  void* driver = dlopen(env_text(Env::libcuda).value_or("libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto capture = driver ? reinterpret_cast<void (*)(int)>(dlsym(driver, "fake_capture")) : nullptr;
  if (!capture) GTEST_SKIP() << "needs the fake driver";
  const auto k = row_sum<4096>(), other = row_sum<2048>();
  EXPECT_EQ(compiles(k, many_), 1u);
  capture(1);
  EXPECT_EQ(compiles(k, 1), 0u) << "loads nothing; the code for many programs is right for one";
  EXPECT_FALSE(other.try_launch(device_->default_stream(), {}, Grid{1}, x_.view(kRow), y_.data())) << "was never launched";
  capture(0);
  EXPECT_EQ(compiles(k, 1), 1u) << "now that it can be loaded";
  EXPECT_TRUE(other.try_launch(device_->default_stream(), {}, Grid{1}, x_.view(kRow), y_.data()));
}

TEST_F(FewPrograms, ThreadsLaunchFewAndManyAtOnce) {
  const auto k = row_sum<4096>();
  const uint64_t before = jit_stats().compiles;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Status s = k.try_launch(device_->default_stream(), {}, Grid{(t + i) % 2 ? many_ : 1}, x_.view(kRow), y_.data());
        EXPECT_TRUE(s) << s.error().to_string();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(jit_stats().compiles - before, 2u);
}

TEST_F(FewPrograms, WhereNothingMayBeCompiledEitherWillDo) {
  for (int64_t first : {int64_t{1}, many_}) {
    const auto k = row_sum<4096>();
    JitPolicy policy = jit_policy();
    EXPECT_EQ(compiles(k, first), 1u);
    policy.on_miss = JitPolicy::OnMiss::fail;
    set_jit_policy(policy);
    EXPECT_EQ(compiles(k, many_ + 1 - first), 0u) << "from disk";
    k.clear_memory_cache();
    EXPECT_EQ(compiles(k, many_ + 1 - first), 0u) << "from disk, first of all";
    k.clear_memory_cache();
    EXPECT_EQ(compiles(k, first), 0u);
    policy.use_disk = false;
    set_jit_policy(policy);
    EXPECT_EQ(compiles(k, many_ + 1 - first), 0u) << "what is loaded";
    EXPECT_EQ(compiles(k, many_ + 1 - first), 0u);
    policy.on_miss = JitPolicy::OnMiss::compile;
    policy.use_disk = true;
    std::filesystem::remove_all(directory_);
    set_jit_policy(policy);
  }
}

TEST_F(FewPrograms, MayBeAskedFor) {
  const auto k = row_sum<4096>();
  const AnyKernel& any = k;
  const KernelOptions few{.few_programs = true, .ptxas = "none"}, many{.ptxas = "none"};
  const auto ofFew = any.compile(device_, {}, {}, few), ofMany = any.compile(device_, {}, {}, many);
  ASSERT_TRUE(ofFew) << ofFew.error().to_string();
  ASSERT_TRUE(ofMany) << ofMany.error().to_string();
  EXPECT_EQ(ofFew->info().threads, 512u);
  EXPECT_EQ(ofMany->info().threads, 128u);
  EXPECT_TRUE(ofFew->info().varies_with_grid);
  EXPECT_TRUE(ofMany->info().varies_with_grid);
}

}  // namespace
