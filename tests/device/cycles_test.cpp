// Cycles of multiprocessors: how readings become one figure, and counting around a kernel of known length.
#include "runtime/cycles.h"

#include <algorithm>

#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

TEST(Cycles, TheMedianOfTheMultiprocessorsReadTwice) {
  const uint64_t begin[] = {100, 1000, 0, 5000, 50}, end[] = {400, 1500, 900, 5200, 0};
  EXPECT_EQ(median_cycles(begin, end, 3), 300) << "of 300, 500 and 200; a zero was not read";
  EXPECT_EQ(median_cycles(begin, end, 6), 300);
  EXPECT_EQ(median_cycles(begin, end, 7), 0) << "fewer than half of them were read";
  EXPECT_EQ(median_cycles({}, {}, 0), 0);
  const uint64_t later[] = {700}, earlier[] = {600};
  EXPECT_EQ(median_cycles(later, earlier, 1), 0) << "readings of other intervals";
}

TEST(Cycles, TheHostHasNone) {
  const auto host = must(open_device("host"));
  EXPECT_FALSE(CycleCounter::create(host->default_stream()));
}

TEST(CyclesOfKernels, GrowWithTheWork) {
  install_host_loader();
  const auto opened = open_device("cuda:0");
  if (!opened) GTEST_SKIP() << opened.error().message;
  const auto device = *opened;
  Stream& stream = device->default_stream();
  auto counter = must(CycleCounter::create(stream));
  const auto delayed = must(device->load(binary_for(*device, "delayed")));
  auto out = must(Buffer<int32_t>::from(device, std::vector<int32_t>(1)));
  const auto cycles_of = [&](int64_t ns) {
    EXPECT_TRUE(counter.begin(stream).ok());
    EXPECT_TRUE(launch(stream, *delayed, {1}, {slot(out.data()), slot(1), slot(ns)}).ok());
    EXPECT_TRUE(counter.end(stream).ok());
    EXPECT_TRUE(stream.synchronize().ok());
    return must(counter.cycles());
  };
  (void)cycles_of(1000);
  // Interruptions only add: the least of a few readings is the kernel's own.
  double two = cycles_of(2000000);
  for (int i = 0; i < 4; ++i) two = std::min(two, static_cast<double>(cycles_of(2000000)));
  const double eight = cycles_of(8000000);
  EXPECT_GT(two, 2e6 * 0.2) << "no GPU's clock is under 200 MHz";
  EXPECT_GT(eight, 2 * two);
}

}  // namespace
}  // namespace tile
