// Kernels that die. CUDA's contexts do not survive them, so ctest runs each test in a process of its own; so should
// you.
#include <gtest/gtest.h>

#include "runtime/debug.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    install_host_loader();
    Result<std::shared_ptr<Device>> opened = open_device("cuda:0");
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = *opened;
  }
  std::shared_ptr<Module> load(const std::string& name) { return must(device_->load(binary_for(*device_, name))); }
  Stream& stream() { return device_->default_stream(); }
  std::shared_ptr<Device> device_;
};

TEST_F(FailureTest, IllegalAddressNamesTheKernelAndStays) {
  RUN_IN_FRESH_PROCESS([this] {
    const auto fault = load("fault"), iota = load("iota");
    Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device_, 4));
    ASSERT_OK(launch(stream(), *fault, {1}, {slot(int64_t{0x40})}));
    const Status failed = stream().synchronize();
    expect_error(failed, ErrorKind::device, "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
    EXPECT_NE(std::string::npos, failed.error().message.find("the last kernel launched on this stream is 'fault'"))
        << failed.error().message;
    EXPECT_NE(std::string::npos, failed.error().message.find("the GPU context is lost"));
    EXPECT_NE(std::string::npos, failed.error().message.find("a pointer to memory of the host"));

    // Everything after it fails with words, not crashes, and remembers the cause.
    const Status later = launch_and_wait(stream(), *iota, {1}, {slot(out.data()), slot(4)});
    expect_error(later, ErrorKind::device,
                 "the context was lost before, by: cuda:0: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
    expect_error(device_->synchronize(), ErrorKind::device, "ILLEGAL_ADDRESS");
    expect_error(out.to_host(), ErrorKind::device, "ILLEGAL_ADDRESS");
    expect_error(device_->allocate(64), ErrorKind::device, "ILLEGAL_ADDRESS");
    EXPECT_FALSE(device_->load(binary_for(*device_, "iota")).ok());
    EXPECT_EQ(device_, must(open_device("cuda:0")));
    // Buffers, modules and streams are released now; that must not crash either.
  });
}

TEST_F(FailureTest, AFailedAssertionThatTrapsIsNamed) {
  RUN_IN_FRESH_PROCESS([this] {
    const auto check = load("debug_assert");
    Buffer<int32_t> x = must(Buffer<int32_t>::from(device_, std::vector<int32_t>{1, 2, 99, 4}));
    ASSERT_OK(launch(stream(), *check, {1}, {slot(x.data()), slot(4), slot(50), slot(1)}));
    const Status failed = stream().synchronize();
    expect_error(failed, ErrorKind::device,
                 "kernel 'debug_assert': kernel.cpp:42: assertion failed: x < limit (program (0, 0, 0), element [2] of "
                 "128xi32)");
    ASSERT_EQ(1u, failed.error().diagnostics.size());
    EXPECT_EQ("kernel.cpp", failed.error().diagnostics[0].file);
    EXPECT_EQ(42u, failed.error().diagnostics[0].line);
    expect_error(device_->synchronize(), ErrorKind::device,
                 "lost before, by: kernel 'debug_assert': kernel.cpp:42: assertion failed");
  });
}

TEST_F(FailureTest, PrintsBeforeTheDeathAreNotLost) {
  RUN_IN_FRESH_PROCESS([this] {
    const auto print = load("debug_print"), fault = load("fault");
    Buffer<int32_t> x = must(Buffer<int32_t>::from(device_, std::vector<int32_t>{7}));
    std::vector<std::string> prints;
    set_print_sink([&](const std::string& text) { prints.push_back(text); });
    ASSERT_OK(launch(stream(), *print, {1}, {slot(x.data()), slot(1)}));
    ASSERT_OK(launch(stream(), *fault, {1}, {slot(int64_t{0x40})}));
    EXPECT_FALSE(stream().synchronize().ok());
    set_print_sink({});
    ASSERT_EQ(1u, prints.size());
    EXPECT_NE(std::string::npos, prints[0].find("x 128xi32 = [7, ")) << prints[0];
  });
}

TEST_F(FailureTest, TheHostGoesOn) {
  RUN_IN_FRESH_PROCESS([this] {
    const auto fault = load("fault");
    ASSERT_OK(launch(stream(), *fault, {1}, {slot(int64_t{0x40})}));
    EXPECT_FALSE(stream().synchronize().ok());
    const auto host = must(open_device("host"));
    const auto iota = must(host->load(binary_for(*host, "iota")));
    Buffer<int32_t> out = must(Buffer<int32_t>::allocate(host, 4));
    ASSERT_OK(launch(host->default_stream(), *iota, {1}, {slot(out.data()), slot(4)}));
    EXPECT_EQ(3, must(out.to_host())[3]);
  });
}

}  // namespace
}  // namespace tile
