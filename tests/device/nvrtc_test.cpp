// CUDA C++ through NVRTC. Compiling needs no GPU; running the result does.
#include "runtime/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> version = nvrtc_version();
    if (!version) GTEST_SKIP() << version.error().message;
    std::string pattern = testing::TempDir() + "tile_nvrtc_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    std::error_code ec;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ec);
  }
  CacheOptions cache_options() {
    CacheOptions o;
    o.directory = directory_;
    return o;
  }
  static CudaSource saxpy() {
    CudaSource s;
    s.source = R"(
      #include <cuda_fp16.h>
      template <class T>
      __global__ void saxpy(const T* x, float* y, float a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * float(x[i]);
      })";
    s.file_name = "saxpy.cu";
    s.entry = "saxpy<__half>";
    s.params = {{.kind = ParamInfo::pointer, .dtype = DType::f16, .name = "x"},
                {.kind = ParamInfo::pointer, .dtype = DType::f32, .name = "y"},
                {.kind = ParamInfo::scalar, .dtype = DType::f32, .name = "a"},
                {.kind = ParamInfo::scalar, .dtype = DType::i32, .name = "n"}};
    s.threads = 128;
    return s;
  }
  std::string directory_;
};

TEST_F(NvrtcTest, CompilesTemplatesToACubin) {
  const KernelBinary k = must(compile_cuda(saxpy(), "sm_80", nullptr));
  EXPECT_EQ(BinaryFormat::cubin, k.format);
  EXPECT_EQ("sm_80", k.target);
  EXPECT_TRUE(
      k.bytes.starts_with("\x7f"
                          "ELF"));
  EXPECT_NE("saxpy<__half>", k.entry) << "the mangled name";
  EXPECT_NE(std::string::npos, k.bytes.find(k.entry));
  EXPECT_EQ(4u, k.params.size());
  EXPECT_EQ(128u, k.threads);
}

TEST_F(NvrtcTest, ErrorsCarryTheCompilersLog) {
  CudaSource bad = saxpy();
  bad.source = "extern \"C\" __global__ void f(float* x) { x[0] = undefined_name; }";
  bad.entry = "f";
  const auto result = compile_cuda(bad, "sm_80", nullptr);
  expect_error(
      result, ErrorKind::user,
      "CUDA source 'saxpy.cu' does not compile: saxpy.cu(1): error: identifier \"undefined_name\" is undefined");
  ASSERT_EQ(1u, result.error().diagnostics.size());
  EXPECT_NE(std::string::npos, result.error().diagnostics[0].message.find("1 error detected"));
}

TEST_F(NvrtcTest, MistakesOfTheCall) {
  CudaSource s = saxpy();
  s.entry = "no_such_kernel";
  expect_error(compile_cuda(s, "sm_80", nullptr), ErrorKind::user, "does not compile");
  s.entry = "";
  expect_error(compile_cuda(s, "sm_80", nullptr), ErrorKind::user, "no entry is named");
  expect_error(compile_cuda(saxpy(), "host", nullptr), ErrorKind::user, "cannot be compiled for 'host'");
  expect_error(compile_cuda(saxpy(), "sm_12", nullptr), ErrorKind::user, "does not compile");
  s = saxpy();
  s.params[0].kind = ParamInfo::view;
  expect_error(compile_cuda(s, "sm_80", nullptr), ErrorKind::user, "parameter 'x' is a view");
}

TEST_F(NvrtcTest, IsCachedByEverythingThatMatters) {
  DiskCache cache(cache_options());
  const KernelBinary first = must(compile_cuda(saxpy(), "sm_80", &cache));
  EXPECT_EQ(0u, cache.stats().hits);
  const KernelBinary second = must(compile_cuda(saxpy(), "sm_80", &cache));
  EXPECT_EQ(1u, cache.stats().hits);
  EXPECT_EQ(first.bytes, second.bytes);
  CudaSource other = saxpy();
  other.threads = 64;  // only how it is launched: the same code
  EXPECT_EQ(64u, must(compile_cuda(other, "sm_80", &cache)).threads);
  EXPECT_EQ(2u, cache.stats().hits);
  must(compile_cuda(saxpy(), "sm_90a", &cache));
  other = saxpy();
  other.options = {"--use_fast_math"};
  must(compile_cuda(other, "sm_80", &cache));
  other = saxpy();
  other.entry = "saxpy<float>";
  must(compile_cuda(other, "sm_80", &cache));
  other = saxpy();
  other.source += " ";
  must(compile_cuda(other, "sm_80", &cache));
  EXPECT_EQ(2u, cache.stats().hits);
  EXPECT_EQ(5u, cache.usage().entries);
}

TEST_F(NvrtcTest, SourcesWithHeadersOfTheirOwnAreNotCached) {
  DiskCache cache(cache_options());
  CudaSource s = saxpy();
  s.options = {"-I" + directory_};
  must(compile_cuda(s, "sm_80", &cache));
  EXPECT_EQ(0u, cache.usage().entries);
}

TEST_F(NvrtcTest, DamagedCacheEntriesAreCompiledAgain) {
  DiskCache cache(cache_options());
  must(compile_cuda(saxpy(), "sm_80", &cache));
  for (const auto& file : std::filesystem::directory_iterator(directory_)) std::filesystem::resize_file(file, 100);
  const KernelBinary k = must(compile_cuda(saxpy(), "sm_80", &cache));
  EXPECT_TRUE(
      k.bytes.starts_with("\x7f"
                          "ELF"));
  EXPECT_EQ(1u, cache.stats().damaged);
}

TEST_F(NvrtcTest, RunsOnTheGpu) {
  const auto device = open_device("cuda:0");
  if (!device) GTEST_SKIP() << device.error().message;
  if ((*device)->properties().model.starts_with("Fake")) GTEST_SKIP() << "the fake driver runs no cubins";
  const KernelBinary k = must(compile_cuda(saxpy(), (*device)->properties().target, nullptr));
  const auto module = must((*device)->load(k));
  const int n = 1000;
  Buffer<half> x = must(Buffer<half>::from(*device, std::vector<half>(n, half(1.5f))));
  Buffer<float> y = must(Buffer<float>::from(*device, std::vector<float>(n, 10)));
  ASSERT_OK(launch((*device)->default_stream(), *module, {8}, {slot(x.data()), slot(y.data()), slot(2.0f), slot(n)}));
  EXPECT_EQ(std::vector<float>(n, 13), must(y.to_host()));
}

}  // namespace
}  // namespace tile
