// What is particular to CUDA: the user's own streams and contexts, several GPUs, what is refused at load.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/cuda/driver.h"
#include "runtime/env.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    install_host_loader();
    Result<std::shared_ptr<Device>> opened = open_device("cuda:0");
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = *opened;
    driver_ = &*cu::driver();
  }
  std::shared_ptr<Module> load(const std::shared_ptr<Device>& device, const std::string& name) {
    return must(device->load(binary_for(*device, name)));
  }
  void expect_iota(const std::shared_ptr<Device>& device, Stream& stream) {
    const auto iota = load(device, "iota");
    Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device, 200));
    ASSERT_OK(launch(stream, *iota, {2}, {slot(out.data()), slot(200)}));
    EXPECT_EQ(199, must(out.to_host())[199]);
  }
  // Not among the functions tile uses: a user's program creates contexts by itself.
  template <class F>
  F driver_symbol(const char* name) {
    void* library = dlopen(env_text(Env::libcuda).value_or("libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<F>(dlsym(library, name));
  }
  cu::CUcontext create_context(int ordinal = 0) {
    cu::CUdevice handle = 0;
    driver_->cuDeviceGet(&handle, ordinal);
    cu::CUcontext context = nullptr;
    EXPECT_EQ(cu::CUDA_SUCCESS,
              driver_symbol<cu::CUresult (*)(cu::CUcontext*, unsigned, int)>("cuCtxCreate_v2")(&context, 0, handle));
    return context;
  }
  void destroy_context(cu::CUcontext context) {
    driver_symbol<cu::CUresult (*)(cu::CUcontext)>("cuCtxDestroy_v2")(context);
  }
  cu::CUcontext current() {
    cu::CUcontext context = nullptr;
    driver_->cuCtxGetCurrent(&context);
    return context;
  }

  std::shared_ptr<Device> device_;
  const cu::Driver* driver_ = nullptr;
};

TEST_F(CudaTest, UsersOwnStream) {
  driver_->cuCtxSetCurrent(static_cast<cu::CUcontext>(device_->native_context()));
  cu::CUstream native = nullptr;
  ASSERT_EQ(cu::CUDA_SUCCESS, driver_->cuStreamCreate(&native, 0));
  {
    const auto stream = must(device_->wrap_stream(native));
    EXPECT_EQ(native, stream->native());
    expect_iota(device_, *stream);
    EXPECT_EQ(device_, must(device_from_cuda_stream(native)));
  }
  EXPECT_EQ(cu::CUDA_SUCCESS, driver_->cuStreamSynchronize(native)) << "the stream is still the user's";
  driver_->cuStreamDestroy(native);
}

TEST_F(CudaTest, CodeForAnOlderGpu) {
  const auto with = [&](const char* target, const auto& look) {
    const cu::CUcontext context = create_context();
    setenv("TILE_GPU_TARGET", target, 1);
    look(device_from_cuda_context(context));  // gone before its context
    unsetenv("TILE_GPU_TARGET");
    destroy_context(context);
  };
  with("sm_80", [&](Result<std::shared_ptr<Device>> device) {
    const DeviceProperties p = must(std::move(device))->properties();
    EXPECT_EQ(p.target, "sm_80");
    EXPECT_TRUE(p.needs_ptx) << "cubins run on their own generation only";
    EXPECT_EQ(p.model, device_->properties().model + " as sm_80") << "tuned configurations are not for it";
    EXPECT_LE(p.max_shared_bytes, 166912u);
  });
  auto refused = [](const char* why) {
    return [why](const Result<std::shared_ptr<Device>>& device) { expect_error(device, ErrorKind::user, why); };
  };
  with("sm_75", refused("it takes sm_80, sm_86 and sm_89"));
  if (device_->properties().sm < 89) with("sm_89", refused("newer than"));
}

TEST_F(CudaTest, UsersOwnPointer) {
  driver_->cuCtxSetCurrent(static_cast<cu::CUcontext>(device_->native_context()));
  cu::CUdeviceptr memory = 0;
  ASSERT_EQ(cu::CUDA_SUCCESS, driver_->cuMemAlloc(&memory, 400));
  const auto iota = load(device_, "iota");
  ASSERT_OK(launch(device_->default_stream(), *iota, {1}, {memory, slot(100)}));
  std::vector<int32_t> got(100);
  ASSERT_OK(device_->default_stream().copy_to_host(got.data(), reinterpret_cast<void*>(memory), 400));
  ASSERT_OK(device_->default_stream().synchronize());
  EXPECT_EQ(99, got[99]);
  driver_->cuMemFree(memory);
}

TEST_F(CudaTest, UsersOwnContext) {
  const cu::CUcontext context = create_context();
  std::shared_ptr<Device> own = must(device_from_cuda_context(context));
  EXPECT_NE(device_, own);
  EXPECT_EQ(context, own->native_context());
  EXPECT_EQ(device_->properties().model, own->properties().model);
  driver_->cuCtxSetCurrent(nullptr);
  expect_iota(own, own->default_stream());
  expect_iota(device_, device_->default_stream());

  cu::CUstream native = nullptr;
  driver_->cuCtxSetCurrent(context);
  ASSERT_EQ(cu::CUDA_SUCCESS, driver_->cuStreamCreate(&native, 0));
  expect_error(device_->wrap_stream(native), ErrorKind::user, "belongs to another CUDA context");
  EXPECT_EQ(context, must(device_from_cuda_stream(native))->native_context());
  driver_->cuStreamDestroy(native);
  auto module = load(own, "nothing");
  expect_error(launch(device_->default_stream(), *module, {1}, {}), ErrorKind::user, "was loaded on");
  module.reset();
  own.reset();
  destroy_context(context);
}

TEST_F(CudaTest, PrimaryContextIsTheDevicesOwn) {
  EXPECT_EQ(device_, must(device_from_cuda_context(device_->native_context())));
}

TEST_F(CudaTest, NoContextNoStream) {
  expect_error(device_from_cuda_context(nullptr), ErrorKind::user, "the context is null");
  expect_error(device_from_cuda_stream(nullptr), ErrorKind::user, "null stream");
}

TEST_F(CudaTest, TheThreadsCurrentContextComesBack) {
  const cu::CUcontext context = create_context();
  ASSERT_EQ(context, current());
  expect_iota(device_, device_->default_stream());
  EXPECT_EQ(context, current());
  driver_->cuCtxSetCurrent(nullptr);
  destroy_context(context);
}

TEST_F(CudaTest, FreshThreadsNeedNoPreparation) {
  std::thread([&] { expect_iota(device_, device_->default_stream()); }).join();
}

TEST_F(CudaTest, LaunchesCanBeCapturedIntoAGraph) {
  if (device_->properties().model.starts_with("Fake")) GTEST_SKIP() << "the fake driver has no graphs";
  const auto begin = driver_symbol<cu::CUresult (*)(cu::CUstream, int)>("cuStreamBeginCapture_v2");
  const auto end = driver_symbol<cu::CUresult (*)(cu::CUstream, void**)>("cuStreamEndCapture");
  const auto instantiate =
      driver_symbol<cu::CUresult (*)(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags");
  const auto run = driver_symbol<cu::CUresult (*)(void*, cu::CUstream)>("cuGraphLaunch");
  ASSERT_TRUE(begin && end && instantiate && run);
  const auto delayed = load(device_, "delayed"), print = load(device_, "debug_print");
  const auto stream = must(device_->create_stream());
  const auto native = static_cast<cu::CUstream>(stream->native());
  Buffer<int32_t> out = must(Buffer<int32_t>::from(device_, std::vector<int32_t>{1}));
  driver_->cuCtxSetCurrent(static_cast<cu::CUcontext>(device_->native_context()));
  ASSERT_EQ(cu::CUDA_SUCCESS, begin(native, 0));
  EXPECT_OK(launch(*stream, *delayed, {1}, {slot(out.data()), slot(1), slot(int64_t{0})}));
  expect_error(launch(*stream, *print, {1}, {slot(out.data()), slot(1)}), ErrorKind::user,
               "cannot be captured into a graph");
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cu::CUDA_SUCCESS, end(native, &graph));
  ASSERT_EQ(cu::CUDA_SUCCESS, instantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cu::CUDA_SUCCESS, run(executable, native));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(15, must(out.to_host())[0]) << "1 -> 3 -> 7 -> 15";
}

TEST_F(CudaTest, TwoDevices) {
  const auto names = device_names();
  if (names.size() < 3) GTEST_SKIP() << "this machine has one GPU";
  const auto other = must(open_device("cuda:1"));
  EXPECT_EQ(1, other->ordinal());
  expect_iota(other, other->default_stream());
  expect_iota(device_, device_->default_stream());
  const auto iota = load(device_, "iota");
  expect_error(launch(other->default_stream(), *iota, {1}, {64, slot(1)}), ErrorKind::user,
               "was loaded on cuda:0, the stream belongs to cuda:1");

  Buffer<int32_t> here = must(Buffer<int32_t>::from(device_, std::vector<int32_t>{1, 2, 3}));
  Buffer<int32_t> there = must(Buffer<int32_t>::allocate(other, 3));
  ASSERT_OK(device_->synchronize());
  ASSERT_OK(other->default_stream().copy(there.data(), here.data(), 12));
  EXPECT_EQ((std::vector<int32_t>{1, 2, 3}), must(there.to_host()));

  // Work of one GPU waits for the other's.
  const auto slow = load(device_, "delayed"), next = load(other, "delayed");
  const auto event = must(device_->create_event());
  Buffer<int32_t> a = must(Buffer<int32_t>::from(device_, std::vector<int32_t>{1}));
  ASSERT_OK(launch(device_->default_stream(), *slow, {1}, {slot(a.data()), slot(1), slot(int64_t{5000000})}));
  ASSERT_OK(device_->default_stream().record(*event));
  ASSERT_OK(other->default_stream().wait(*event));
  ASSERT_OK(other->default_stream().copy(there.data(), a.data(), 4));
  EXPECT_EQ(3, must(there.to_host())[0]);
  expect_error(other->default_stream().record(*event), ErrorKind::user, "another device");
}

TEST_F(CudaTest, MemoryOfAnotherGpu) {
  ASSERT_OK(device_->enable_peer_access(*device_));
  const auto host = must(open_device("host"));
  expect_error(device_->enable_peer_access(*host), ErrorKind::user,
               "cuda:0 cannot reach memory of host: only GPUs reach each other's");
  expect_error(host->enable_peer_access(*device_), ErrorKind::user, "host cannot reach memory of cuda:0");
  if (device_names().size() < 3) GTEST_SKIP() << "this machine has one GPU";
  const auto other = must(open_device("cuda:1"));
  ASSERT_OK(other->enable_peer_access(*device_));
  ASSERT_OK(other->enable_peer_access(*device_));  // again
  Buffer<int32_t> here = must(Buffer<int32_t>::allocate(device_, 200));
  const auto iota = load(other, "iota");
  ASSERT_OK(launch(other->default_stream(), *iota, {2}, {slot(here.data()), slot(200)}));
  ASSERT_OK(other->synchronize());
  EXPECT_EQ(199, must(here.to_host())[199]);
}

TEST_F(CudaTest, NonexistentDeviceSaysWhatThereIs) {
  const size_t gpus = device_names().size() - 1;
  expect_error(open_device("cuda:77"), ErrorKind::user,
               gpus == 1 ? "there is no cuda:77: this machine has 1 GPU (cuda:0)"
                         : "there is no cuda:77: this machine has " + std::to_string(gpus) + " GPUs (cuda:0 to cuda:");
}

TEST_F(CudaTest, SharedMemoryOverTheLimitIsRefusedWithItsTable) {
  KernelBinary k = binary_for(*device_, "shared_end");
  k.shared_bytes = 1 << 20;
  k.buffers = {{"scratch of reduce", "k.cpp", 7, 900000, 1000}, {"ring of 3 x 128x64xf16", "k.cpp", 5, 0, 900000}};
  const auto refused = device_->load(k);
  expect_error(refused, ErrorKind::compile, "needs 1048576 bytes of shared memory per program, cuda:0");
  EXPECT_NE(std::string::npos, refused.error().message.find(std::to_string(device_->properties().max_shared_bytes)));
  ASSERT_EQ(2u, refused.error().diagnostics.size());
  EXPECT_EQ("  900000 bytes at      0: ring of 3 x 128x64xf16", refused.error().diagnostics[0].message);
  EXPECT_EQ(5u, refused.error().diagnostics[0].line);
}

TEST_F(CudaTest, AllTheSharedMemoryThereIs) {
  KernelBinary k = binary_for(*device_, "shared_end");
  k.shared_bytes = device_->properties().max_shared_bytes;
  ASSERT_GT(k.shared_bytes, 48u * 1024);
  const auto module = must(device_->load(k));
  EXPECT_EQ(1, module->resident_programs());
  Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device_, 1));
  ASSERT_OK(launch_and_wait(device_->default_stream(), *module, {1},
                            {slot(out.data()), slot(static_cast<int32_t>(k.shared_bytes))}));
  EXPECT_EQ(77, must(out.to_host())[0]);
}

TEST_F(CudaTest, ThreadsOverTheLimitsAreRefused) {
  KernelBinary k = binary_for(*device_, "iota");
  k.threads = 2048;
  expect_error(device_->load(k), ErrorKind::compile, "runs 2048 threads per program, cuda:0 takes 1 to 1024");
  k.threads = 0;
  expect_error(device_->load(k), ErrorKind::compile, "runs 0 threads per program");
  k = binary_for(*device_, "narrow");  // the code itself allows 64
  k.threads = 128;
  expect_error(device_->load(k), ErrorKind::compile, "cuda:0 can launch 64 such threads");
  k.threads = 64;
  EXPECT_TRUE(device_->load(k).ok());
}

TEST_F(CudaTest, OtherArchitecturesAreRefused) {
  KernelBinary k = binary_for(*device_, "iota");
  k.format = BinaryFormat::cubin;
  k.target = "sm_70";
  expect_error(device_->load(k), ErrorKind::user, "was compiled for sm_70 (cubin), cuda:0 is an");
  k.target = device_->properties().sm >= 90 ? "sm_80" : "sm_90a";
  expect_error(device_->load(k), ErrorKind::user, "was compiled for " + k.target);
  k.format = BinaryFormat::ptx;
  k.target = "sm_999";
  expect_error(device_->load(k), ErrorKind::user, "was compiled for sm_999 (PTX)");
  k.target = "riscv";
  expect_error(device_->load(k), ErrorKind::user, "unknown target 'riscv'");
}

TEST_F(CudaTest, CodeThatDoesNotAssembleShowsTheLog) {
  KernelBinary k = binary_for(*device_, "iota");
  k.bytes = ".version 7.1\n.target sm_80\nnonsense";
  const auto refused = device_->load(k);
  expect_error(refused, ErrorKind::device, "kernel 'iota' (PTX for sm_80) does not load");
  EXPECT_NE(std::string::npos, refused.error().message.find("\n  "))
      << "the assembler's own words follow: " << refused.error().message;
  k.format = BinaryFormat::cubin;
  k.target = "sm_" + std::to_string(device_->properties().sm);
  k.bytes = "neither";
  expect_error(device_->load(k), ErrorKind::device, "does not load");
}

TEST_F(CudaTest, TooManyArgumentsAreRefused) {
  KernelBinary k = binary_for(*device_, "nothing");
  k.params.resize(600, ParamInfo{.kind = ParamInfo::scalar, .name = "s"});
  expect_error(device_->load(k), ErrorKind::compile, "600 argument slots");
}

TEST_F(CudaTest, ModulesReportTheirResources) {
  const auto module = load(device_, "iota");
  EXPECT_GT(module->info().resources.registers, 0);
  EXPECT_GT(module->resident_programs(), 0);
  EXPECT_TRUE(module->info().bytes.empty()) << "the code itself is not kept twice";
}

}  // namespace
}  // namespace tile
