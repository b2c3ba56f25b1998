// fallback_test.cpp - launches whose arguments a tensor map does not take: the same kernel without bulk copies runs
// instead. Over the fake driver (dsl_fallback_fake_gpu), which refuses maps on demand; elsewhere skipped.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "dsl/tile.h"
#include "runtime/env.h"

using namespace tile;

namespace {

auto product() {
  return kernel("fallback_product",
                [](Tensor<const half, 2> a, Tensor<const half, 2> b, Tensor<float, 2> d) {
                  num_warps(4);
                  auto m0 = program_id(0) * 64, n0 = program_id(1) * 64;
                  Tile acc = zeros({64, 64}, f32);
                  for (auto k0 : range(0, a.dim(1), 64, {.stages = 2}))
                    acc = dot(a.load({m0, k0}, {64, 64}), b.load({k0, n0}, {64, 64}), acc);
                  d.store({m0, n0}, acc);
                })
      .grid([](NoConfig, const auto&, const auto&, const auto& d) {
        return Grid{cdiv(d.shape[0], 64), cdiv(d.shape[1], 64)};
      })
      .options({.ptxas = "none"});
}

class Fallback : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& name : device_names())
      if (auto d = open_device(name); d && (*d)->properties().sm >= 90) device_ = *d;
    void* driver = dlopen(env_text(Env::libcuda).value_or("libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (driver) refuse_ = reinterpret_cast<void (*)(int)>(dlsym(driver, "fake_refuse_maps"));
    if (!device_ || !refuse_) GTEST_SKIP() << "needs the fake driver";
    set_jit_policy({.use_disk = false, .on_compile = [this](const std::string& what) { built_.push_back(what); }});
    a_ = Buffer<half>::allocate(device_, 4 * n * n).value_or_throw();
    d_ = Buffer<float>::allocate(device_, n * n).value_or_throw();
  }
  void TearDown() override {
    if (refuse_) refuse_(0);
    set_jit_policy({});
  }
  template <class K>
  Status run(const K& k, size_t offset = 0) {
    return k.try_call(device_->default_stream(), {}, TensorView<const half, 2>(a_.data() + offset, {n, n}),
                      TensorView<const half, 2>(a_.data(), {n, n}), d_.view(n, n));
  }

  static constexpr int64_t n = 256;
  std::shared_ptr<Device> device_;
  void (*refuse_)(int) = nullptr;
  std::vector<std::string> built_;
  Buffer<half> a_;
  Buffer<float> d_;
};

TEST_F(Fallback, RefusedMapsCompileTheKernelOnceMore) {
  const auto k = product();
  ASSERT_TRUE(run(k));
  ASSERT_EQ(built_.size(), 1u);
  const auto code = static_cast<const AnyKernel&>(k).compile(
      device_, {}, static_cast<const AnyKernel&>(k).loaded_for({}).at(0), k.options());
  ASSERT_TRUE(code);
  ASSERT_FALSE(code->info().tensor_maps.empty()) << "this kernel should use bulk copies";

  refuse_(1);
  const Status refused = run(k, n * n);
  ASSERT_TRUE(refused) << refused.error().to_string();
  ASSERT_EQ(built_.size(), 2u);
  EXPECT_NE(built_[1].find("without bulk copies: "), std::string::npos) << built_[1];
  EXPECT_NE(built_[1].find("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"), std::string::npos) << built_[1];
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(k, n * n));
  EXPECT_TRUE(run(k)) << "arguments that maps take still use them";
  EXPECT_TRUE(run(k, 2 * n * n));
  EXPECT_EQ(built_.size(), 2u) << "neither compiled again";
}

TEST_F(Fallback, CompiledObjectsDoTheSame) {
  const auto k = product();
  auto view = [&](size_t offset) { return TensorView<const half, 2>(a_.data() + offset, {n, n}); };
  const auto code = k.compile(device_, NoConfig{}, view(0), view(0), d_.view(n, n)).value_or_throw();
  refuse_(1);
  EXPECT_TRUE(code.try_launch(device_->default_stream(), {4, 4}, view(n * n), view(0), d_.view(n, n)));
  EXPECT_EQ(built_.size(), 2u);
}

TEST_F(Fallback, RepeatedRowsGetCodeWithoutMapsAtOnce) {
  const auto k = product();
  const TensorView<const half, 2> rows(a_.data(), {n, n}, {0, 1});
  ASSERT_TRUE(
      k.try_call(device_->default_stream(), {}, rows, TensorView<const half, 2>(a_.data(), {n, n}), d_.view(n, n)));
  ASSERT_EQ(built_.size(), 1u);
  EXPECT_NE(built_[0].find("no_bulk_copies"), std::string::npos) << built_[0];
}

}  // namespace
