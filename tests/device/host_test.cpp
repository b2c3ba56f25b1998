// What is particular to the host device: threads, scratch arenas, stopping at a failed assertion, the loader.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "runtime/debug.h"
#include "runtime/host/grid_runner.h"
#include "runtime/host/host_device.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

class HostTest : public testing::Test {
 protected:
  void SetUp() override { install_host_loader(); }
  std::shared_ptr<Device> device_ = must(open_device("host"));
};

TEST_F(HostTest, NoLoaderIsAnErrorThatSaysSo) {
  set_host_loader(nullptr);
  expect_error(device_->load(binary_for(*device_, "iota")), ErrorKind::user, "no loader of host code is set");
}

TEST_F(HostTest, ArenasArePrivateToThreads) {
  const auto module = must(device_->load(binary_for(*device_, "use_arena")));
  Buffer<int32_t> wrong = must(Buffer<int32_t>::allocate(device_, 5000));
  ASSERT_OK(wrong.fill(device_->default_stream(), -1));
  ASSERT_OK(launch(device_->default_stream(), *module, {5000}, {slot(wrong.data())}));
  EXPECT_EQ(std::vector<int32_t>(5000, 0), must(wrong.to_host()));
}

// Whole huge pages: the system can only use them where a buffer starts at one. Odd sizes lose nothing at their ends.
TEST_F(HostTest, LargeBuffersStartAtHugePages) {
  for (size_t bytes : {size_t{4} << 20, (size_t{9} << 20) + 12345}) {
    Buffer<uint8_t> large = must(Buffer<uint8_t>::allocate(device_, bytes));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(large.data()) % (size_t{2} << 20));
    ASSERT_OK(large.fill(device_->default_stream(), uint8_t{7}));
    EXPECT_EQ(std::vector<uint8_t>(bytes, 7), must(large.to_host()));
  }
}

TEST_F(HostTest, NativeStreamsAreRefused) {
  int not_a_stream;
  expect_error(device_->wrap_stream(&not_a_stream), ErrorKind::user, "no native streams");
}

TEST_F(HostTest, ThePrintSinkMayLaunch) {
  const auto print = must(device_->load(binary_for(*device_, "debug_print")));
  const auto iota = must(device_->load(binary_for(*device_, "iota")));
  Buffer<int32_t> x = must(Buffer<int32_t>::allocate(device_, 4));
  Status inner = device_error("not run");
  set_print_sink([&](const std::string&) {
    inner = launch(device_->default_stream(), *iota, {1}, {slot(x.data()), slot(4)});
  });
  const Status outer = launch(device_->default_stream(), *print, {1}, {slot(x.data()), slot(1)});
  set_print_sink({});
  EXPECT_OK(outer);
  EXPECT_OK(inner);
  EXPECT_EQ(3, must(x.to_host())[3]);
}

std::atomic<int64_t> g_count{0};
void count(const uint64_t*, const HostProgram*, void*) { ++g_count; }
void mark(const uint64_t* s, const HostProgram* p, void*) {
  const int64_t linear = (int64_t{p->id[2]} * p->grid[1] + p->id[1]) * p->grid[0] + p->id[0];
  ++reinterpret_cast<std::atomic<int>*>(s[0])[linear];
}

class RunnerTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, RunnerTest, testing::Values(1, 2, 7));

TEST_P(RunnerTest, EveryProgramRunsOnce) {
  GridRunner runner(GetParam());
  for (Grid grid : {Grid{1}, Grid{1000}, Grid{13, 17, 5}, Grid{1, 1, 300}, Grid{1, 64, 1}}) {
    std::vector<std::atomic<int>> ran(static_cast<size_t>(grid.programs()));
    const uint64_t slots[] = {reinterpret_cast<uint64_t>(ran.data())};
    ASSERT_TRUE(runner.run(mark, slots, grid, 0, KernelBinary{}, nullptr));
    for (const auto& n : ran) ASSERT_EQ(1, n);
  }
}

TEST_P(RunnerTest, SeveralCallersAtOnce) {
  GridRunner runner(GetParam());
  g_count = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) runner.run(count, nullptr, Grid{40}, 64, KernelBinary{}, nullptr);
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(4 * 50 * 40, g_count);
}

TEST_P(RunnerTest, ScratchThatCannotBeHadIsReported) {
  GridRunner runner(GetParam());
  EXPECT_TRUE(runner.run(count, nullptr, Grid{4}, 1 << 20, KernelBinary{}, nullptr));
  rlimit before;
  ASSERT_EQ(0, getrlimit(RLIMIT_AS, &before));
  const rlimit tight{size_t{1} << 31, before.rlim_max};  // 2 GiB of addresses for everything
  ASSERT_EQ(0, setrlimit(RLIMIT_AS, &tight));
  g_count = 0;
  const bool ran = runner.run(count, nullptr, Grid{4}, 0xffffff00u, KernelBinary{}, nullptr);
  setrlimit(RLIMIT_AS, &before);
  EXPECT_FALSE(ran);
  EXPECT_EQ(0, g_count);
  EXPECT_TRUE(runner.run(count, nullptr, Grid{4}, 1 << 20, KernelBinary{}, nullptr)) << "and later kernels run again";
  EXPECT_EQ(4, g_count);
}

// Program 20 fails; those that had not started by then must not run.
void fail_at_20(const uint64_t* s, const HostProgram* p, void*) {
  ++g_count;
  if (p->id[0] != 20) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return;
  }
  auto* ring = reinterpret_cast<DebugRing*>(s[0]);
  const uint32_t at = std::atomic_ref<uint32_t>(ring->next).fetch_add(1);
  records_of(ring)[at] = {1, {20, 0, 0}, 0, 0, 0};
}

TEST_P(RunnerTest, FirstFailedAssertionStopsTheRest) {
  std::vector<uint64_t> words(2 + 4 * 16);
  auto* ring = reinterpret_cast<DebugRing*>(words.data());
  init_debug_ring(*ring, 16);
  KernelBinary kernel;
  kernel.debug_sites.resize(2);
  kernel.debug_sites[1].kind = DebugSite::assertion;
  g_count = 0;
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(ring)};
  GridRunner runner(GetParam());
  ASSERT_TRUE(runner.run(fail_at_20, slots, Grid{20000}, 0, kernel, ring));
  EXPECT_EQ(1u, read_debug_ring(kernel, *ring).failed_assertions.size());
  if (GetParam() == 1) {
    EXPECT_EQ(21, g_count);
  } else {
    EXPECT_LT(g_count, 20000);
  }
}

TEST_P(RunnerTest, PrintsDoNotStopAnything) {
  std::vector<uint64_t> words(2 + 4 * 16);
  auto* ring = reinterpret_cast<DebugRing*>(words.data());
  init_debug_ring(*ring, 16);
  KernelBinary kernel;
  kernel.debug_sites.resize(2);  // both prints
  g_count = 0;
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(ring)};
  GridRunner runner(GetParam());
  ASSERT_TRUE(runner.run(fail_at_20, slots, Grid{300}, 0, kernel, ring));
  EXPECT_EQ(300, g_count);
}

}  // namespace
}  // namespace tile
