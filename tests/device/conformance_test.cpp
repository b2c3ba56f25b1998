// The law every Device keeps, run on each one present. A device that is absent is skipped with the reason.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "runtime/debug.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    install_host_loader();
    Result<std::shared_ptr<Device>> opened = open_device(GetParam());
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = *opened;
  }
  void TearDown() override { set_print_sink({}); }

  Stream& stream() { return device_->default_stream(); }
  std::shared_ptr<Module> load(const std::string& name) { return must(device_->load(binary_for(*device_, name))); }
  template <class T>
  Buffer<T> buffer(size_t n) {
    return must(Buffer<T>::allocate(device_, n));
  }
  template <class T>
  Buffer<T> buffer_of(const std::vector<T>& values) {
    return must(Buffer<T>::from(device_, values));
  }
  std::vector<std::string>& collect_prints() {
    set_print_sink([this](const std::string& text) {
      std::lock_guard lock(mutex_);
      prints_.push_back(text);
    });
    return prints_;
  }

  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<std::string> prints_;
};

INSTANTIATE_TEST_SUITE_P(Each, DeviceTest, testing::Values("host", "cuda:0"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4); });

TEST_P(DeviceTest, DescribesItself) {
  const DeviceProperties& p = device_->properties();
  EXPECT_EQ(GetParam(), device_->name());
  EXPECT_FALSE(p.model.empty());
  EXPECT_FALSE(p.target.empty());
  EXPECT_GT(p.memory_bytes, 1u << 20);
  EXPECT_GE(p.multiprocessors, 1);
  EXPECT_GE(p.max_threads, 1);
  EXPECT_GE(p.grid.y, 65535);
  const MemoryInfo memory = must(device_->memory());
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

TEST_P(DeviceTest, OpensToTheSameObject) { EXPECT_EQ(device_, must(open_device(GetParam()))); }

TEST_P(DeviceTest, BuffersKeepTheirData) {
  for (size_t n : {size_t{1}, size_t{255}, size_t{100003}}) {
    std::vector<int32_t> values(n);
    std::iota(values.begin(), values.end(), 5);
    Buffer<int32_t> b = buffer_of(values);
    EXPECT_EQ(n, b.size());
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(b.data()) % 256);
    EXPECT_EQ(values, must(b.to_host()));
    Buffer<int32_t> taken = std::move(b);
    EXPECT_EQ(nullptr, b.data());
    EXPECT_EQ(values, must(taken.to_host()));
  }
}

TEST_P(DeviceTest, BuffersOfBool) {
  const std::vector<bool> values{true, false, false, true, true};
  const Buffer<bool> b = must(Buffer<bool>::from(device_, values));
  EXPECT_EQ(5u, b.bytes());
  EXPECT_EQ(values, must(b.to_host()));
}

TEST_P(DeviceTest, EmptyBuffersAreFine) {
  Buffer<float> b = buffer<float>(0);
  EXPECT_EQ(0u, b.size());
  EXPECT_OK(b.copy_from(std::span<const float>()));
  EXPECT_OK(b.fill(stream(), 1.0f));
  EXPECT_TRUE(must(b.to_host()).empty());
}

TEST_P(DeviceTest, CopiesOutsideTheBufferAreRefused) {
  Buffer<float> b = buffer<float>(4);
  std::vector<float> five(5);
  expect_error(b.copy_from(std::span<const float>(five)), ErrorKind::user,
               "20 bytes at offset 0: the buffer has 16 bytes");
  expect_error(b.copy_to(std::span<float>(five)), ErrorKind::user, "the buffer has 16 bytes");
  DeviceMemory m = must(DeviceMemory::allocate(device_, 16));
  expect_error(m.copy_from(five.data(), 8, 12), ErrorKind::user, "8 bytes at offset 12");
  expect_error(m.copy_from(five.data(), 1, SIZE_MAX), ErrorKind::user, "the buffer has 16 bytes");
}

template <class T>
void check_fill(const std::shared_ptr<Device>& device, T value) {
  Buffer<T> b = must(Buffer<T>::allocate(device, 1001));
  ASSERT_OK(b.fill(device->default_stream(), value));
  EXPECT_EQ(std::vector<T>(1001, value), must(b.to_host()));
}
TEST_P(DeviceTest, FillsWithPatternsOfEverySize) {
  check_fill<uint8_t>(device_, 0xab);
  check_fill<uint16_t>(device_, 0xabcd);
  check_fill<float>(device_, -1.25f);
  check_fill<double>(device_, 3.141592653589793);
  check_fill<int64_t>(device_, -1);
  const char pattern[3] = {1, 2, 3};
  Buffer<uint8_t> b = buffer<uint8_t>(9);
  expect_error(stream().fill(b.data(), pattern, 3, 3), ErrorKind::user, "1, 2, 4 or 8 bytes");
}

TEST_P(DeviceTest, FillsLeaveNoTail) {
  DeviceMemory m = must(DeviceMemory::allocate(device_, 10));
  const uint64_t eight = 1;
  expect_error(m.fill(stream(), &eight, 8), ErrorKind::user, "the buffer has 10 bytes, no whole number of patterns of 8");
  EXPECT_OK(m.fill(stream(), &eight, 2));
  for (size_t odd : {0, 3, 16}) {
    expect_error(m.fill(stream(), &eight, odd), ErrorKind::user, "patterns of 1, 2, 4 or 8 bytes, got");
    expect_error(stream().fill(m.data(), &eight, odd, 1), ErrorKind::user, "patterns of 1, 2, 4 or 8 bytes, got");
  }
  expect_error(stream().fill(m.data(), &eight, 8, SIZE_MAX / 4), ErrorKind::user, "2^64 bytes or more");
}

TEST_P(DeviceTest, NullAddressesAreRefused) {
  Buffer<int32_t> b = buffer<int32_t>(4);
  DeviceMemory m = must(DeviceMemory::allocate(device_, 16));
  int32_t word = 0;
  expect_error(m.copy_from(nullptr, 8), ErrorKind::user, "copy_to_device of 8 bytes: the source is null");
  expect_error(m.copy_to(nullptr, 8), ErrorKind::user, "copy_to_host of 8 bytes: the destination is null");
  expect_error(m.fill(stream(), nullptr, 4), ErrorKind::user, "fill of 16 bytes: the pattern is null");
  expect_error(stream().copy(nullptr, b.data(), 4), ErrorKind::user, "copy of 4 bytes: the destination is null");
  expect_error(stream().copy(b.data(), nullptr, 4), ErrorKind::user, "copy of 4 bytes: the source is null");
  expect_error(stream().copy_to_device(nullptr, &word, 4), ErrorKind::user, "the destination is null");
  expect_error(stream().copy_to_host(&word, nullptr, 4), ErrorKind::user, "the source is null");
  expect_error(stream().fill(nullptr, &word, 4, 1), ErrorKind::user, "fill of 4 bytes: the destination is null");
  EXPECT_OK(stream().copy(nullptr, nullptr, 0));
  EXPECT_OK(stream().fill(nullptr, &word, 4, 0));
  const auto iota = load("iota");
  size_t slots = 0;
  for (const ParamInfo& p : iota->info().params) slots += p.slots();
  expect_error(stream().launch(*iota, {1}, nullptr, slots), ErrorKind::user, "the launch passes a null pointer");
}

TEST_P(DeviceTest, ViewsStayInsideTheirBuffer) {
  const Buffer<float> b = buffer<float>(16);
  auto refusal = [&](auto... shape) {
    try {
      (void)b.view(shape...);
    } catch (const Exception& e) {
      return e.error().message;
    }
    return std::string();
  };
  EXPECT_EQ("", refusal(4, 4));
  EXPECT_EQ("", refusal(0, int64_t{1} << 62, 4));
  EXPECT_EQ("a view of shape [64] does not fit a buffer of 16 elements", refusal(64));
  EXPECT_EQ("a view of shape [5, 4] does not fit a buffer of 16 elements", refusal(5, 4));
  EXPECT_EQ("a view of shape [-1, 4] does not fit a buffer of 16 elements", refusal(-1, 4));
  EXPECT_NE("", refusal(int64_t{1} << 32, int64_t{1} << 32)) << "the product wraps";
}

TEST_P(DeviceTest, OutOfMemorySaysHowMuch) {
  const Result<void*> huge = device_->allocate(size_t{1} << 50);
  expect_error(huge, ErrorKind::device, "out of memory");
  EXPECT_NE(std::string::npos, huge.error().message.find("1125899906842624")) << huge.error().message;
  expect_error(Buffer<double>::allocate(device_, SIZE_MAX), ErrorKind::device, "out of memory");
  EXPECT_EQ(std::vector<int>(3, 7), must(buffer_of(std::vector<int>(3, 7)).to_host())) << "and the device still works";
}

TEST_P(DeviceTest, LaunchRunsEveryProgram) {
  const auto iota = load("iota");
  const int n = 1000;
  Buffer<int32_t> out = buffer<int32_t>(n + 24);
  ASSERT_OK(out.fill(stream(), -1));
  ASSERT_OK(launch(stream(), *iota, {8}, {slot(out.data()), slot(n)}));
  std::vector<int32_t> want(n + 24, -1);
  std::iota(want.begin(), want.begin() + n, 0);
  EXPECT_EQ(want, must(out.to_host()));
}

TEST_P(DeviceTest, ViewsAndScalarsArriveAsFlattened) {
  const auto axpy = load("axpy");
  std::vector<float> x(600), y(300), want(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (size_t i = 0; i < y.size(); ++i) y[i] = 0.5f * static_cast<float>(i);
  want = y;
  for (size_t i = 0; i < 150; ++i) want[2 * i] += -2.5f * x[4 * i];
  Buffer<float> dx = buffer_of(x), dy = buffer_of(y);
  ASSERT_OK(launch(stream(), *axpy, {2},
                   {slot(dx.data()), slot(int64_t{150}), slot(int64_t{4}), slot(dy.data()), slot(int64_t{150}),
                    slot(int64_t{2}), slot(-2.5f)}));
  EXPECT_EQ(want, must(dy.to_host()));
}

TEST_P(DeviceTest, ThreeDimensionalGrid) {
  const auto ids = load("ids");
  Buffer<int32_t> out = buffer<int32_t>(5 * 4 * 3);
  ASSERT_OK(launch(stream(), *ids, {5, 4, 3}, {slot(out.data())}));
  std::vector<int32_t> want;
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) want.push_back(x + 100 * y + 10000 * z);
  EXPECT_EQ(want, must(out.to_host()));
}

TEST_P(DeviceTest, EmptyGridRunsNothing) {
  const auto iota = load("iota");
  EXPECT_OK(launch_and_wait(stream(), *iota, {0}, {0, 0}));
  EXPECT_OK(launch_and_wait(stream(), *iota, {4, 0, 2}, {0, 0}));
}

TEST_P(DeviceTest, BadLaunchesAreRefusedBeforeTheyRun) {
  const auto iota = load("iota");
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>(128, -1));
  expect_error(launch(stream(), *iota, {1}, {slot(out.data())}), ErrorKind::user,
               "takes 2 argument slots (2 parameters), the launch passes 1");
  expect_error(launch(stream(), *iota, {1}, {0, slot(4)}), ErrorKind::user, "argument 0 'out': null pointer");
  expect_error(launch(stream(), *iota, {1}, {slot(out.data()) + 2, slot(4)}), ErrorKind::user, "not aligned for i32");
  expect_error(launch(stream(), *iota, {-1}, {slot(out.data()), slot(4)}), ErrorKind::user, "negative in x");
  expect_error(launch(stream(), *iota, {int64_t{1} << 40}, {slot(out.data()), slot(4)}), ErrorKind::user,
               "1099511627776 programs in x");
  const int64_t over = device_->properties().grid.z + 1;
  expect_error(launch(stream(), *iota, {1, 1, over}, {slot(out.data()), slot(4)}), ErrorKind::user,
               std::to_string(over) + " programs in z");
  EXPECT_EQ(std::vector<int32_t>(128, -1), must(out.to_host()));
}

TEST_P(DeviceTest, CodeThatCannotRunHereIsRefusedAtLoad) {
  KernelBinary k = binary_for(*device_, "iota");
  k.abi_version = 99;
  expect_error(device_->load(k), ErrorKind::user, "ABI version 99");
  k = binary_for(*device_, "iota");
  k.entry = "no_such_entry";
  expect_error(device_->load(k), ErrorKind::internal, "no_such_entry");
  k = binary_for(*device_, "iota");
  k.format = device_->kind() == DeviceKind::cuda ? BinaryFormat::host_object : BinaryFormat::cubin;
  expect_error(device_->load(k), ErrorKind::user, "was compiled for");
}

TEST_P(DeviceTest, ModulesOfAnotherDeviceAreRefused) {
  for (const std::string& name : device_names()) {
    if (name == device_->name()) continue;
    const auto other = must(open_device(name));
    const auto module = must(other->load(binary_for(*other, "nothing")));
    expect_error(launch(stream(), *module, {1}, {}), ErrorKind::user,
                 "was loaded on " + name + ", the stream belongs to " + device_->name());
  }
}

TEST_P(DeviceTest, OneStreamIsInOrder) {
  const auto delayed = load("delayed");
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>{0});
  const auto stream = must(device_->create_stream());
  int32_t want = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(launch(*stream, *delayed, {1}, {slot(out.data()), slot(i), slot(int64_t{100000})}));
    want = 2 * want + i;
  }
  int32_t got = -1;
  ASSERT_OK(out.copy_to(*stream, std::span<int32_t>(&got, 1)));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(want, got);
}

TEST_P(DeviceTest, CopiesFillsAndLaunchesKeepTheirOrder) {
  const auto axpy = load("axpy");
  const auto stream = must(device_->create_stream());
  const int64_t n = 1000;
  Buffer<float> x = buffer<float>(n), y = buffer<float>(n), z = buffer<float>(n);
  std::vector<float> ones(n, 1), result(n);
  ASSERT_OK(y.fill(*stream, 10.0f));
  ASSERT_OK(x.copy_from(*stream, ones));
  const auto run = [&](float a) {
    return launch(*stream, *axpy, {8},
                  {slot(x.data()), slot(n), slot(int64_t{1}), slot(y.data()), slot(n), slot(int64_t{1}), slot(a)});
  };
  ASSERT_OK(run(2));
  ASSERT_OK(x.fill(*stream, 5.0f));
  ASSERT_OK(run(100));
  ASSERT_OK(stream->copy(z.data(), y.data(), n * sizeof(float)));
  ASSERT_OK(y.fill(*stream, 0.0f));
  ASSERT_OK(z.copy_to(*stream, result));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(std::vector<float>(n, 512), result);
  EXPECT_EQ(std::vector<float>(n, 0), must(y.to_host()));
}

TEST_P(DeviceTest, EventsOrderStreams) {
  const auto delayed = load("delayed");
  const auto first = must(device_->create_stream()), second = must(device_->create_stream());
  const auto event = must(device_->create_event());
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>{1});
  ASSERT_OK(launch(*first, *delayed, {1}, {slot(out.data()), slot(5), slot(int64_t{20000000})}));
  ASSERT_OK(first->record(*event));
  ASSERT_OK(second->wait(*event));
  ASSERT_OK(launch(*second, *delayed, {1}, {slot(out.data()), slot(1), slot(int64_t{0})}));
  int32_t got = -1;
  ASSERT_OK(out.copy_to(*second, std::span<int32_t>(&got, 1)));
  ASSERT_OK(second->synchronize());
  EXPECT_EQ(2 * (2 * 1 + 5) + 1, got);
}

TEST_P(DeviceTest, EventsMeasureTime) {
  const auto delayed = load("delayed");
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>{1});
  const auto begin = must(device_->create_event()), end = must(device_->create_event());
  ASSERT_OK(stream().record(*begin));
  ASSERT_OK(launch(stream(), *delayed, {1}, {slot(out.data()), slot(0), slot(int64_t{10000000})}));
  ASSERT_OK(stream().record(*end));
  ASSERT_OK(end->synchronize());
  EXPECT_TRUE(must(end->is_done()));
  const double ms = must(end->elapsed_ms(*begin));
  EXPECT_GE(ms, 9.9);
  EXPECT_LT(ms, 5000);
  const auto never = must(device_->create_event());
  EXPECT_FALSE(end->elapsed_ms(*never)) << "never recorded";
}

TEST_P(DeviceTest, SynchronousCopiesSeeWorkOfEveryStream) {
  const auto delayed = load("delayed");
  const auto other = must(device_->create_stream());
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>{1});
  ASSERT_OK(launch(*other, *delayed, {1}, {slot(out.data()), slot(1), slot(int64_t{20000000})}));
  EXPECT_EQ(3, must(out.to_host())[0]);
}

TEST_P(DeviceTest, MemoryAndModulesMayGoWhileWorkRuns) {
  const auto stream = must(device_->create_stream());
  Buffer<int32_t> kept = buffer_of(std::vector<int32_t>{1});
  {
    const auto delayed = load("delayed");
    Buffer<int32_t> gone = buffer_of(std::vector<int32_t>{1});
    ASSERT_OK(launch(*stream, *delayed, {1}, {slot(gone.data()), slot(1), slot(int64_t{5000000})}));
    ASSERT_OK(launch(*stream, *delayed, {1}, {slot(kept.data()), slot(1), slot(int64_t{5000000})}));
  }
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(3, must(kept.to_host())[0]);
}

TEST_P(DeviceTest, PrintsComeOutAsTiles) {
  const auto print = load("debug_print");
  std::vector<int32_t> values(256);
  std::iota(values.begin(), values.end(), 1000);
  Buffer<int32_t> x = buffer_of(values);
  auto& prints = collect_prints();
  ASSERT_OK(launch_and_wait(stream(), *print, {2}, {slot(x.data()), slot(256)}));
  ASSERT_EQ(2u, prints.size());
  std::sort(prints.begin(), prints.end());
  EXPECT_TRUE(prints[0].starts_with("debug_print (0, 0, 0): x 128xi32 = [1000, 1001, 1002")) << prints[0];
  EXPECT_TRUE(prints[1].ends_with("1253, 1254, 1255]")) << prints[1];
}

TEST_P(DeviceTest, ManyPrintingLaunchesWithoutSynchronising) {
  const auto print = load("debug_print");
  Buffer<int32_t> x = buffer_of(std::vector<int32_t>{4});
  auto& prints = collect_prints();
  for (int i = 0; i < 100; ++i) ASSERT_OK(launch(stream(), *print, {1}, {slot(x.data()), slot(1)}));
  ASSERT_OK(stream().synchronize());
  EXPECT_EQ(100u, prints.size());
}

TEST_P(DeviceTest, PrintsOfOneStreamAreNotTakenForAnothers) {
  const auto print = load("debug_print");
  const auto a = must(device_->create_stream()), b = must(device_->create_stream());
  Buffer<int32_t> x = buffer_of(std::vector<int32_t>{4, 5});
  auto& prints = collect_prints();
  ASSERT_OK(launch(*a, *print, {1}, {slot(x.data()), slot(1)}));
  ASSERT_OK(launch(*b, *print, {1}, {slot(x.data() + 1), slot(1)}));
  ASSERT_OK(a->synchronize());
  EXPECT_GE(prints.size(), 1u);
  ASSERT_OK(device_->synchronize());
  ASSERT_EQ(2u, prints.size());
  EXPECT_NE(prints[0], prints[1]);
}

TEST_P(DeviceTest, FailedAssertionsNameTheLineAndTheElement) {
  const auto check = load("debug_assert");
  std::vector<int32_t> values(256, 1);
  values[130] = 50;
  Buffer<int32_t> x = buffer_of(values);
  EXPECT_OK(launch_and_wait(stream(), *check, {2}, {slot(x.data()), slot(256), slot(51), slot(0)}));
  const Status failed = launch_and_wait(stream(), *check, {2}, {slot(x.data()), slot(256), slot(50), slot(0)});
  expect_error(
      failed, ErrorKind::device,
      "kernel 'debug_assert': kernel.cpp:42: assertion failed: x < limit (program (1, 0, 0), element [2] of 128xi32)");
  EXPECT_OK(launch_and_wait(stream(), *check, {2}, {slot(x.data()), slot(256), slot(51), slot(0)}));  // reported once
}

TEST_P(DeviceTest, SynchronousCopiesReportFailedAssertions) {
  const auto check = load("debug_assert");
  Buffer<int32_t> x = buffer_of(std::vector<int32_t>(128, 9));
  const Status launched = launch(stream(), *check, {1}, {slot(x.data()), slot(128), slot(3), slot(0)});
  const Status noticed =
      launched ? Status(x.to_host().ok() ? ok() : Status(device_error("assertion failed"))) : launched;
  expect_error(noticed, ErrorKind::device, "assertion failed");
}

TEST_P(DeviceTest, ThreadsWithTheirOwnStreams) {
  const auto axpy = load("axpy");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const auto stream = must(device_->create_stream());
      const int64_t n = 500 + t;
      Buffer<float> x = must(Buffer<float>::allocate(device_, n)), y = must(Buffer<float>::allocate(device_, n));
      std::vector<float> got(n);
      bool good = x.fill(*stream, 1.0f).ok() && y.fill(*stream, 0.0f).ok();
      for (int i = 0; i < 50; ++i)
        good &= launch(*stream, *axpy, {8},
                       {slot(x.data()), slot(n), slot(int64_t{1}), slot(y.data()), slot(n), slot(int64_t{1}),
                        slot(float(t))})
                    .ok();
      good &= y.copy_to(*stream, got).ok() && stream->synchronize().ok();
      if (!good || got != std::vector<float>(n, 50.0f * static_cast<float>(t))) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(0, wrong);
}

TEST_P(DeviceTest, ThreadsSharingOneStreamAndPrinting) {
  const auto delayed = load("delayed");
  const auto print = load("debug_print");
  Buffer<int32_t> out = buffer_of(std::vector<int32_t>{0}), x = buffer_of(std::vector<int32_t>{1});
  auto& prints = collect_prints();
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        // 2 * x + 0 with x = 0 stays 0 in any order; lost exclusion on the host would crash or hang
        if (!launch(stream(), *delayed, {1}, {slot(out.data()), slot(0), slot(int64_t{0})})) ++failed;
        if (!launch(stream(), *print, {1}, {slot(x.data()), slot(1)})) ++failed;
        if (i % 5 == 0 && !stream().synchronize()) ++failed;
      }
    });
  for (std::thread& t : threads) t.join();
  ASSERT_OK(stream().synchronize());
  EXPECT_EQ(0, failed);
  EXPECT_EQ(800u, prints.size()) << "none lost to a synchronisation of another thread";
}

TEST_P(DeviceTest, TheNullStreamIsAccepted) {
  const auto iota = load("iota");
  const auto stream = must(device_->wrap_stream(nullptr));
  Buffer<int32_t> out = buffer<int32_t>(4);
  ASSERT_OK(launch_and_wait(*stream, *iota, {1}, {slot(out.data()), slot(4)}));
  EXPECT_EQ((std::vector<int32_t>{0, 1, 2, 3}), must(out.to_host()));
}

TEST(OpenDevice, NamesThatAreNoDevice) {
  expect_error(open_device("hots"), ErrorKind::user, "unknown device 'hots'; did you mean 'host'? known: host");
  expect_error(open_device("gpu"), ErrorKind::user, "unknown device 'gpu'");
  expect_error(open_device(""), ErrorKind::user, "unknown device ''");
  for (const char* bad : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999999999999"})
    expect_error(open_device(bad), ErrorKind::user, "is not a device: after 'cuda:' comes the number");
  const Result<std::shared_ptr<Device>> none = open_device("cuda:77");
  ASSERT_FALSE(none);
  EXPECT_FALSE(none.error().message.empty());
}

TEST(OpenDevice, DefaultIsTheBestPresentUnlessSaidOtherwise) {
  unsetenv("TILE_DEVICE");
  const auto names = device_names();
  EXPECT_EQ("host", names.at(0));
  EXPECT_EQ(names.size() > 1 ? "cuda:0" : "host", must(default_device())->name());
  setenv("TILE_DEVICE", "host", 1);
  EXPECT_EQ("host", must(default_device())->name());
  setenv("TILE_DEVICE", "hosd", 1);
  expect_error(default_device(), ErrorKind::user, "did you mean 'host'? known: host");
  expect_error(default_device(), ErrorKind::user, "(TILE_DEVICE is set)");
  unsetenv("TILE_DEVICE");
}

TEST(OpenDevice, BuffersNeedADevice) {
  expect_error(Buffer<int>::allocate(nullptr, 3), ErrorKind::user, "no device given");
}

}  // namespace
}  // namespace tile
