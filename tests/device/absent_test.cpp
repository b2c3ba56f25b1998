// Machines without a GPU, a driver or NVRTC: clear words, and everything else still works. The libraries are looked for
// once per process, so each case has a fresh one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/cuda/nvrtc.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

TEST(Absent, HiddenGpus) {
  RUN_IN_FRESH_PROCESS([] {
    setenv("TILE_LIBCUDA", "none", 1);
    unsetenv("TILE_DEVICE");
    EXPECT_EQ(std::vector<std::string>{"host"}, device_names());
    expect_error(open_device("cuda"), ErrorKind::device, "GPUs are hidden (TILE_LIBCUDA=none)");
    EXPECT_EQ("host", must(default_device())->name());
  });
}

TEST(Absent, NoDriver) {
  RUN_IN_FRESH_PROCESS([] {
    setenv("TILE_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    expect_error(open_device("cuda:0"), ErrorKind::device,
                 "no NVIDIA driver on this machine (/nonexistent/libcuda.so.1");
    int no_context;
    expect_error(device_from_cuda_context(&no_context), ErrorKind::device, "no NVIDIA driver");
    expect_error(device_from_cuda_stream(&no_context), ErrorKind::device, "no NVIDIA driver");
  });
}

TEST(Absent, SomeOtherLibraryInPlaceOfTheDriver) {
  RUN_IN_FRESH_PROCESS([] {
    setenv("TILE_LIBCUDA", "libm.so.6", 1);
    expect_error(open_device("cuda:0"), ErrorKind::device, "'libm.so.6' is older than CUDA 11.4");
  });
}

TEST(Absent, NoNvrtcSaysWhereItLooked) {
  RUN_IN_FRESH_PROCESS([] {
    setenv("TILE_NVRTC", "/nonexistent/libnvrtc.so", 1);
    expect_error(nvrtc_version(), ErrorKind::user, "libnvrtc is not on this machine (tried /nonexistent/libnvrtc.so)");
    CudaSource source;
    source.entry = "f";
    expect_error(compile_cuda(source, "sm_80", nullptr), ErrorKind::user, "libnvrtc is not on this machine");
  });
}

TEST(Absent, SomeOtherLibraryInPlaceOfNvrtc) {
  RUN_IN_FRESH_PROCESS([] {
    setenv("TILE_NVRTC", "libm.so.6", 1);
    expect_error(nvrtc_version(), ErrorKind::user, "'libm.so.6' has no nvrtcVersion");
  });
}

}  // namespace
}  // namespace tile
